"""Assembly: from some coordinates to a posture that closes the loops, and from some rates to
velocities that keep them closed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array
from ramify.core.errors import LoopError, StateError
from ramify.dynamics.closure import ROUNDED, constraint_names, reach, rounding
from ramify.dynamics.redundancy import redundancy
from ramify.kernels.make import kernel
from ramify.loops.constraints import (
    LoopGap,
    column_sizes,
    gap_of_loop,
    gap_of_row,
    independent_rows,
    loop_gaps,
    may_open,
    rate_of_row,
    rounded_rows,
    row_sizes,
)
from ramify.loops.doubtful_start import far_from_guess
from ramify.loops.far_guess import nearer
from ramify.loops.given_values import ValuesByName, start_of
from ramify.loops.independent import Independent
from ramify.loops.planar import refuse_crooked
from ramify.loops.rank import NEAR, RankWatch, lets_go
from ramify.model.driven import driven
from ramify.model.robot import Robot

_CLOSED = 1e-11  # of the robot's size
_STRIDE = 0.1  # of the robot's size, or rad: steps from row to row of a path
_FARTHEST = 500.0  # robot's sizes, or rad: longer ways are refused
_DEAD = 1e-6  # smallest singular value, as a share, at which dependent rates are still reported
_ASTRAY = 0.1  # what one of these may have to be corrected by; more is another branch
_NEAR = 1e-3  # gap, as a share of the size, within which Newton's steps are the best
_STARTS = 24
_MOST_STEPS = 20_000  # tried from all starts together, times the rates: what one takes grows so
_CONTRADICTED = 30.0  # times what rounded data may miss by: up to there they are the reason
_AGREED = 1e-6  # share of the size by which coordinates that depend on each other may disagree


@dataclass(frozen=True)
class State:
    """A consistent state: q (..., nq), v and a (..., nv); ``q, v, a = state`` works.

    ``gap`` is the largest residual left, in m or rad. ``branch`` tells which of the ways of
    assembly this is: the sign of the determinant of the dependent coordinates' Jacobian, 0 where
    there is none. ``margin``: its smallest singular value, as a share of the largest; zero at a
    dead centre. ``note`` says how it was computed.
    """

    q: Array
    v: Array
    a: Array
    gap: float
    branch: int
    margin: float
    note: str

    def __iter__(self) -> Iterator[Array]:
        return iter((self.q, self.v, self.a))


def assemble(
    model: Robot,
    independent: ValuesByName = None,
    rates: ValuesByName = None,
    guess: ArrayLike | ValuesByName = None,
    accelerations: ValuesByName = None,
) -> State:
    """See Model.assemble."""
    if not model.loops:
        raise LoopError(f"{model.name} has no loops to assemble; any q will do")
    named = {"independent": independent, "rates": rates, "accelerations": accelerations}
    for what, values in named.items():
        if values is not None and not isinstance(values, Mapping):
            raise StateError(
                f"{what} must be values by name, e.g. {{{model.coordinates[0]!r}: 0.0}}; a whole q "
                "is a guess"
            )
    if guess is None and not (independent or rates or accelerations):
        kept = _driven_start(model)
        with suppress(LoopError):  # the driven coordinates stay where the loops close there
            if kept:
                return assemble(model, kept, guess={})
    chosen = Independent(model, independent or {}, rates or {}, accelerations or {})
    work = _Assembly(model, chosen)
    start = work.completed(*start_of(model, guess))
    state = work.state(start, 0) if work.chosen.rows is None else _path(work, start)
    refuse_crooked(model, state.q.reshape(-1, model.nq)[0])
    far = "" if independent else far_from_guess(model, state.q, guess)
    return replace(state, note=f"{state.note}; {far}") if far else state


def _driven_start(model: Robot) -> dict[str, ArrayLike]:
    """The driven coordinates that the robot's guess names; all of them, neutral, without one."""
    chosen, (q, _) = driven(model), start_of(model, None)
    named = {model.coordinates[i]: float(q[i]) for i in chosen.q if i >= 0}
    return {name: x for name, x in named.items() if name in (model.guess or named)}


def _path(work: _Assembly, start: Array) -> State:
    """States one after the other, each from the one before, so that they stay on one branch."""
    states: list[State] = []
    assert work.chosen.rows is not None
    last = start
    for i in range(work.chosen.rows):
        states.append(work.state(start, i, first=i == 0))
        now = states[i]
        if i and work.crosses_singularity(last, now.q):
            rows = [work.chosen.described(work.chosen.tables[0][k]) for k in (i - 1, i)]
            raise LoopError(
                f"{work.model.name}: the branch changes between rows {i - 1} and {i} ({rows[0]} to "
                f"{rows[1]}): "
                "the way leads through a dead centre; take other independent coordinates there"
            )
        if i + 1 < work.chosen.rows:
            last, start = work.predict(now.q, i)
    q, v, a = map(np.stack, zip(*states, strict=True))
    worst = min(states, key=lambda s: s.margin)
    gap = max(s.gap for s in states)
    return State(q, v, a, gap, worst.branch, worst.margin, states[0].note)


def _wrong_way_round(model: Robot, residual: Array) -> str:
    """The first loop, by name, whose axes are more than a quarter turn off where all else closes;
    "" where there is none.
    """
    rows = [name.rsplit(".", 1) for name in constraint_names(model)]
    angle = np.array([row.startswith(("tilt", "turn")) for _, row in rows])
    if (np.abs(residual * row_sizes(model)) > rounding(model))[~angle].any():
        return ""
    turned = angle & (np.abs(residual) > 1.0)
    return min((rows[i][0] for i in np.flatnonzero(turned)), default="")


class _Assembly:
    """Newton's steps in the dependent coordinates; arrays of others are rows of a path."""

    def __init__(self, model: Robot, chosen: Independent) -> None:
        self.model, self.chosen = model, chosen
        self.in_q, self.in_v, self.free = chosen.in_q, chosen.in_v, chosen.free
        self.turns, self.with_values = chosen.turns, chosen.with_values
        self.sizes, self.size = row_sizes(model), reach(model)
        self.columns, self.tolerance = column_sizes(model), redundancy(model).tolerance
        self.nearest: list[tuple[float, LoopGap]] = []  # where starts ended: |r|, m, its worst gap
        self.crossed = False  # whether the last way led past a dead centre
        self.steps = 0  # tried so far
        self.kernel = kernel(model, "constraints")
        self.usual = 0  # the rank of J at the start: where it is lost, the posture is singular
        self._last_jacobian: (
            tuple[Array, tuple[Array, Array, tuple[Array, Array, Array], int]] | None
        ) = None

    def completed(self, start: Array, named: set[int]) -> Array:
        """A guess completed by the coordinates that it does not name, where the loops close best,
        so that they do not lead to another branch.
        """
        free = [k for k in self.free if k not in named]
        if not named or not free:
            return start
        q = self.with_values(start, self.chosen.tables[0][0])
        said = [i for i, k in zip(self.in_q, self.in_v, strict=False) if k in named]
        q[said] = start[said]
        return nearer(self.model, q, free)[0]

    def crosses_singularity(self, q: Array, other: Array) -> bool:
        """Whether a short path between two postures leads through a dead centre, where the
        independent coordinates determine all others.
        """
        hold = RankWatch.at(self._jacobian(q)[1], self.tolerance)
        if hold.rank != len(self.free):
            return False
        change = hold.change(self._jacobian(other)[1])
        return float(np.linalg.norm(change)) >= NEAR and bool(lets_go(change))

    def predict(self, q: Array, row: int) -> tuple[Array, Array]:
        """(last, next): a posture to start at for the next row, along the tangent of the path in
        short steps, so that it stays on the branch; and the last closed one on the path.
        """
        begin = self.chosen.tables[0][row]
        way = self.chosen.way(begin, self.chosen.tables[0][row + 1])
        length = self._length(way, begin + way[: len(begin)], f"row {row}")
        pieces = max(1, math.ceil(length / _STRIDE))
        for k in range(pieces):
            values = begin + way[: len(begin)] * (k / pieces)
            step, _, _ = self.velocity(q, way / pieces, np.zeros(len(self.sizes)), None, values)
            moved = self.model.integrate(q, step, 1.0)
            now = begin + way[: len(begin)] * ((k + 1) / pieces)
            moved = self.with_values(moved, now)
            if k + 1 == pieces:
                break
            before = q
            q, gap = self.close(moved)
            if gap > _CLOSED * self.size:
                self.refuse(q, gap, now, row)
            if self.crosses_singularity(before, q):
                raise LoopError(
                    f"{self.model.name}: the branch changes after row {row}, before "
                    f"{self.chosen.described(now)}: the way leads through a dead "
                    "centre; take other independent coordinates there"
                )
        return q, moved

    # ---- position ----

    def residual(self, q: Array) -> tuple[Array, Array]:
        """Residual (nc,) and J (nc, nv), rows in m."""
        r, J, _ = self.kernel(q, np.zeros(self.model.nv))
        return r * self.sizes, J.reshape(len(r), -1) * self.sizes[:, None]

    def close(self, q: Array, most: int = 60) -> tuple[Array, float]:
        """The nearest posture with smaller gap (m), by damped Newton steps in what is free."""
        r, J = self.residual(q)
        damping = 1e-6 if np.abs(r).max() > _NEAR * self.size else 1e-14
        scale = self.columns[self.free]
        for _ in range(most):
            A = J[:, self.free] / scale
            largest = float(np.linalg.norm(A, 2)) or 1.0
            if np.abs(r).max() < _CLOSED * self.size * 1e-2 and damping <= 1e-12:
                break
            u, s, vt = np.linalg.svd(A, full_matrices=False)
            ease = damping * largest**2 * min(1.0, float(np.abs(r).max()) / self.size)
            weights = s / np.maximum(s**2 + ease, 1e-300)
            weights[s < self.tolerance * largest] = 0.0
            step = np.zeros(self.model.nv)
            step[self.free] = -(vt.T @ (weights * (u.T @ r))) / scale
            longest = float(np.abs(step * self.columns).max() / self.size)
            moved = self.model.integrate(q, step * min(1.0, 1.0 / max(longest, 1e-300)), 1.0)
            r_new, J_new = self.residual(moved)
            self.steps += 1
            if np.linalg.norm(r_new) < np.linalg.norm(r):
                q, r, J, damping = moved, r_new, J_new, max(damping * 0.1, 1e-14)
            elif np.abs(r).max() < _CLOSED * self.size:
                break
            else:
                damping *= 10.0
                if damping > 1e3:
                    break
        return q, self.gap(r, J)

    def gap(self, r: Array, J: Array) -> float:
        """m: the largest residual. What no motion can close, because the rows are redundant and
        their data rounded, does not count as far as data may be; nor does what the given
        coordinates alone could, up to a millionth of the size.
        """
        largest = float(np.abs(r).max(initial=0.0))
        if largest <= _CLOSED * self.size or (np.abs(r) > rounding(self.model)).any():
            return largest
        held = r - self._closable(r, J, slice(None))
        agreed = np.abs(r - held).max(initial=0.0) <= _AGREED * self.size
        return float(np.abs(self._closable(r, J, self.free)).max()) if agreed else largest

    def _closable(self, r: Array, J: Array, columns: slice | list[int]) -> Array:
        """The part of a residual (nc,) that motions of some coordinates change."""
        u, s, _ = np.linalg.svd(J[:, columns] / self.columns[columns], full_matrices=False)
        u = u[:, s > self.tolerance * s[0]] if len(s) else u
        return u @ (u.T @ r)

    def state(self, start: Array, row: int, first: bool = True) -> State:
        """The consistent state of a row, from a posture to start at."""
        values, rates, second = (table[row] for table in self.chosen.tables)
        q = self.with_values(start, values)
        self.crossed = False
        posture, gap = (self.continue_from(start, values) if first else None) or self.close(q)
        note = "from the guess"
        if self.crossed:
            note += ", past a dead centre on the way, where the branch of the guess ends"
        if gap > _CLOSED * self.size and first:
            posture, gap, note = self.restart(q, posture, gap)
        if gap > _CLOSED * self.size:
            self.refuse(posture, gap, values, None if first else row - 1)
        v, margin, branch = self.velocity(posture, rates, np.zeros(len(self.sizes)), None, values)
        _, _, bias = self.kernel(posture, v)
        a, _, _ = self.velocity(posture, second, bias, v, values)
        residual = self.kernel(posture, v)[0]
        what = {1: "positive", -1: "negative", 0: "no"}[branch]
        left = len(self.free) - self.rank
        choice = (
            f"; {left} left free, near the guess" if left else f"; branch of {what} determinant"
        )
        left_open = float(np.abs(residual).max(initial=0.0))
        missed = rounded_rows(self.model, residual)
        note = f"{note}{choice}; {missed}" if missed else f"{note}{choice}"
        return State(posture, v, a, left_open, branch, margin, note)

    def continue_from(self, start: Array, values: Array) -> tuple[Array, float] | None:
        """The posture that the mechanism reaches when it moves from the start to these values with
        its loops closed, so that the branch is that of the start; and its gap (m). None where the
        start cannot be closed, or the path is blocked.
        """
        q, gap = self.close(start)
        if gap > _CLOSED * self.size:
            return None
        J = self.residual(q)[1] / self.columns
        self.usual = max(self.usual, int(np.linalg.matrix_rank(J, rtol=self.tolerance)))
        begin, scale, from_q = q[self.in_q], self.columns[self.free], q
        way = self.chosen.way(begin, values)
        turned = self.model.difference(q, self.with_values(q, values))
        way[len(begin) :] = turned[self.in_v[len(begin) :]]
        length = self._length(way, values, "the guess")
        done, step = 0.0, min(1.0, _STRIDE / max(length, 1e-300))
        for _ in range(int(_FARTHEST / _STRIDE)):
            if done >= 1.0:
                break
            step = min(step, 1.0 - done)
            _, J = self.residual(q)
            move = np.zeros(self.model.nv)
            move[self.in_v] = way * step
            A = J[:, self.free] / scale
            move[self.free] = (
                -np.linalg.lstsq(A, J[:, self.in_v] @ move[self.in_v], rcond=self.tolerance)[0]
                / scale
            )
            ahead = self.model.integrate(q, move, 1.0)
            whole = np.zeros(self.model.nv)
            whole[self.in_v] = way * (done + step)
            there = self.model.integrate(from_q, whole, 1.0)
            ahead[self.in_q] = there[self.in_q]
            for i in self.turns:
                ahead[i : i + 4] = there[i : i + 4]
            posture, gap = self.close(ahead)
            off = np.abs(self.model.difference(ahead, posture) * self.columns).max() / self.size
            if gap > _CLOSED * self.size or off > _ASTRAY:
                step *= 0.5
                if step * length < _STRIDE * 1e-3:
                    return None
                continue
            if self.crosses_singularity(q, posture):
                if step * length > _STRIDE * 1e-3:
                    step *= 0.5
                    continue
                self.crossed = True
            q, done, step = posture, done + step, step * 1.5
        if done < 1.0:
            return None
        asked = self.with_values(q, values)  # with its whole turns
        return (q, gap) if np.array_equal(q, asked) else self.close(asked)

    def _length(self, way: Array, values: Array, origin: str) -> float:
        """The length of a way of the independent coordinates, as a share of the robot's size, or
        rad; LoopError where it is too long to be followed.
        """
        shares = np.abs(way * self.columns[self.in_v]) / self.size
        length = float(shares.max(initial=0.0))
        if length > _FARTHEST:
            k = int(np.argmax(shares[: len(values)]))
            steps = [step for joint in self.model.joints for step in joint.steps]
            unit = steps[self.in_v[k]].unit
            most = _FARTHEST * (1.0 if unit == "rad" else self.size)
            raise LoopError(
                f"{self.model.name}: the way from {origin} to {self.chosen.described(values)} is "
                f"too long to follow: {self.chosen.names[k]!r} moves by {abs(way[k]):.3g} {unit} "
                f"on it, and {most:.3g} {unit} is the most; give a guess that is nearer, or rows "
                "between"
            )
        return length

    def restart(self, q: Array, best: Array, gap: float) -> tuple[Array, float, str]:
        """From the guess by least squares of the pose errors; then from other postures, always the
        same ones, both ways.
        """
        note = "from the guess, by least squares"
        least = float(np.linalg.norm(self.residual(best)[0]))
        starts = [q, *(self.model.tree.random(seed)[0] for seed in range(_STARTS))]
        self.steps = 0
        for k, start in enumerate(starts):
            if self.steps * self.model.nv > _MOST_STEPS:
                break
            start = self.with_values(start, q[self.in_q])
            for by_poses in (False, True) if self.free else (False,):
                if by_poses:
                    start, tried = nearer(self.model, start, self.free)
                    self.steps += tried
                posture, left = self.close(start)
                open_by = np.abs(self.residual(posture)[0])
                worst = int(np.argmax(open_by / rounding(self.model)))
                whole = float(np.linalg.norm(open_by))
                self.nearest.append((whole, gap_of_loop(self.model, open_by, worst)))
                if left <= _CLOSED * self.size or whole < least:
                    best, gap, least = posture, left, whole
                    if k:
                        note = f"from random start {k}, because none was found from the guess"
                if gap <= _CLOSED * self.size:
                    return best, gap, note
        return best, gap, note

    def refuse(self, q: Array, gap: float, values: Array, closed: int | None = None) -> None:
        """Say why the loops do not close at these values; ``closed`` is the last row of a path at
        which they did.
        """
        model = self.model
        r = self.kernel(q, np.zeros(model.nv))[0]
        open_by = np.abs(r * self.sizes)
        turned = _wrong_way_round(model, r)
        if turned:
            raise LoopError(
                f"{model.name}: loop {turned!r} closes only the wrong way round with "
                f"{self.chosen.described(values)}; give another guess, or turn the "
                "axis in one of its frames round"
            )
        gaps = loop_gaps(model, open_by, 0.1 * gap)
        left = f"a gap of {gaps[0].text(model)} remains in {gaps[0].rows}"
        left += "".join(f", of {other.text(model)} in {other.rows}" for other in gaps[1:4])
        if closed is not None:
            before = self.chosen.described(self.chosen.tables[0][closed])
            raise LoopError(
                f"{model.name} cannot be assembled with {self.chosen.described(values)}: {left}. "
                f"Row {closed} of the path ({before}) still closes: the edge of what can be "
                "reached lies between the two, or the rows are too far apart"
            )
        if not self.in_v:
            raise LoopError(self._never(left, [other.loop for other in gaps]))
        free = _Assembly(model, Independent(model, {}, {}, {}))
        free.state(q, 0)  # whose error is the reason where no posture closes the loops
        why = "this posture is out of reach; give other independent coordinates or another guess"
        if redundancy(model).redundant and (open_by < _CONTRADICTED * rounding(model)).all():
            why = (
                "rows that follow from others contradict these there, by more than rounded data "
                f"may (a share of {ROUNDED:g} of the loop's size, or rad)"
            )
        raise LoopError(
            f"{model.name} cannot be assembled with {self.chosen.described(values)}: {left}; {why}"
        )

    def _never(self, left: str, loops: list[str]) -> str:
        """That the loops close from no start, and the row that never does, where there is one."""
        model = self.model
        least, gap = min(self.nearest, key=lambda end: end[0])
        alike = [other for whole, other in self.nearest if whole < 1.01 * least]
        clash, starts = "the frames of this loop contradict each other", len(self.nearest)
        if len(set(loops)) > 1:
            involved = ", ".join(map(repr, sorted(set(loops))))
            clash = f"the loops {involved} contradict each other"
        if 2 * len(alike) <= starts:
            return (
                f"{model.name} cannot be assembled from any of {starts} starts: {left} at the "
                f"nearest posture; give a guess that is nearer, or {clash}"
            )
        if len(loops) > len(set(loops)):  # one gap of a loop may be closed at the cost of another
            return (
                f"{model.name} cannot be assembled: {left} at the nearest posture, to which "
                f"{len(alike)} of {starts} starts lead: {clash}; correct them"
            )
        group = [other for other in alike if other.group == gap.group]
        rows = sorted({row for other in group for row in other.open_rows})
        may = gap_of_row(model, gap.row, rounding(model)[gap.row])
        miss, these = ("misses", "this row") if len(rows) == 1 else ("miss", "these rows")
        return (
            f"{model.name} cannot be assembled: {', '.join(rows)} {miss} by {gap.text(model)} in "
            f"every posture, more than the {may} that rounded data may: {clash}; correct them, or "
            f"take a joint that leaves {these} free"
        )

    # ---- velocity and acceleration ----

    def velocity(
        self, q: Array, independent: Array, bias: Array, v: Array | None, values: Array
    ) -> tuple[Array, float, int]:
        """(x, margin, branch): x with J x = -bias and the given values of the independent ones;
        rates, or at rates v accelerations.
        """
        model, what = self.model, "rates" if v is None else "accelerations"
        J, A, (u, s, vt), rank = self._jacobian(q)
        x = np.zeros(model.nv)
        x[self.in_v] = independent
        b = -(bias * self.sizes) - J[:, self.in_v] @ independent
        largest = float(s.max(initial=0.0)) or 1.0  # 0: the others do not move the loops
        counted = s > self.tolerance * largest
        self.rank = int(counted.sum())
        last = min(rank, len(s))
        margin = float(s[last - 1] / largest) if last else 1.0
        margin = margin if rank >= self.usual else 0.0
        solved = vt.T[:, counted] @ ((u.T @ b)[counted] / s[counted])
        x[self.free] = solved / self.columns[self.free]
        opening = np.abs(J @ x + bias * self.sizes)
        left = float(opening.max(initial=0.0))
        demand = float(np.abs(b).max(initial=0.0))
        if left > may_open(model, x, v):
            per = "s" if v is None else "s^2"
            most = rate_of_row(model, int(np.argmax(opening)), left, per)
            raise LoopError(
                f"{model.name}: {what} of {', '.join(self.chosen.names)} cannot be kept at "
                f"{self.chosen.described(values)}: the loops would open by {most}; it is a dead "
                "centre, or more is given than can be free"
            )
        if margin < _DEAD and demand > 1e-12:
            raise LoopError(
                f"{model.name}: at {self.chosen.described(values)} the mechanism is within "
                f"{margin:.2g} of a dead centre: {what} of the "
                "other coordinates are not determined; take other independent coordinates there"
            )
        return x, margin, self._branch(A, rank)

    def _jacobian(self, q: Array) -> tuple[Array, Array, tuple[Array, Array, Array], int]:
        """J with its rows in m, that of the free coordinates without units, its singular values,
        and the rank of all of J.
        """
        if self._last_jacobian is None or self._last_jacobian[0] is not q:
            J = self.residual(q)[1]
            A = J[:, self.free] / self.columns[self.free]
            whole = np.linalg.svd(J / self.columns, compute_uv=False)
            rank = int((whole > self.tolerance * whole[0]).sum())
            self._last_jacobian = q, (J, A, np.linalg.svd(A, full_matrices=False), rank)
        return self._last_jacobian[1]

    def _branch(self, A: Array, rank: int) -> int:
        rows = independent_rows(A, self.tolerance)
        if len(rows) != A.shape[1] or len(rows) != rank:
            return 0
        return int(np.sign(np.linalg.det(A[rows])))
