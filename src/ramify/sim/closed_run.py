"""Closed loops in a run: a start that closes them, steps that keep them closed, postures where no
motion is determined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from ramify.control.computed_torque import ComputedTorque
from ramify.control.feedforward import Feedforward
from ramify.control.robot_text import RobotText
from ramify.control.sum import parts_of
from ramify.core.arrays import Array, one_number
from ramify.core.cached import cached_property
from ramify.core.errors import LoopError, SimulationError
from ramify.core.messages import degrees
from ramify.dynamics.closure import names, reach
from ramify.dynamics.linear import RANK
from ramify.kernels.make import kernel
from ramify.loops.assemble import assemble
from ramify.loops.closed_dynamics import refuse_overdriven
from ramify.loops.constraints import column_sizes, constraints, open_by, row_sizes, scaled_jacobian
from ramify.loops.planar import refuse_crooked
from ramify.loops.rank import SINGULAR, RankWatch, jacobians
from ramify.loops.stabilise import projector
from ramify.model.robot import Robot
from ramify.sim.audit_checks import TORN
from ramify.sim.field import Field
from ramify.sim.run_pieces import Piece

STABILISATIONS: Final = ("projection", "none")
"""Ways to keep loops closed by name; a number is Baumgarte's rate in 1/s."""

_NEAR = 1e-3  # share of the robot's size up to which a start is closed instead of refused
_SLOW = 1e-3  # the same for rates
_STRIDE = 0.1  # rad or m between two looks
_ASKED = 9  # times at which a motion of too many coordinates is asked whether it fits the loops
_APART = 1e-2  # rad, or share of the robot's size, by which it may miss them
_CLOSE = 1e-2  # margin below which the error of a failed run mentions a dead centre
_TOUCHED = 1e-4, 1e-3  # bounds of the margin below which a drive touches a dead centre


def stabilisation_rate(stabilisation: object) -> float:
    """Baumgarte's rate; 0 for the other ways. SimulationError for what is none."""
    if isinstance(stabilisation, str) and stabilisation in STABILISATIONS:
        return 0.0
    rate = one_number(stabilisation)
    if 0.0 < rate < np.inf:
        return rate
    raise SimulationError(
        f"stabilisation {stabilisation!r} must be 'projection', 'none', or a rate in 1/s above 0 "
        "(Baumgarte's)"
    )


def closed_start(
    model: Robot, q0: ArrayLike | None, q: Array, v: Array
) -> tuple[Array, Array, str]:
    """(q, v, note): a start that closes the loops. Without q0 the model's own guess is assembled;
    what is given and nearly closed is closed, and the note says by how much it moved; the rest is
    refused with its gap.
    """
    note = ""
    if q0 is None:
        q, note = assemble(model).q, "assembled near the model's guess"
    refuse_open(model, q[None], v[None])
    refuse_crooked(model, q)
    gap = constraints(model, q).gap
    y = np.concatenate([q, v])
    settle, before = projector(model), y
    for _ in range(3):
        y = settle(y)
    moved = np.abs(y - before)
    shift = [float(x.max(initial=0.0)) for x in (moved[: model.nq], moved[model.nq :])]
    if max(shift) > 1e-9:
        note = (
            f"q0 moved by {shift[0]:.3g} and v0 by {shift[1]:.3g} to close the loops "
            f"(gap {gap:.3g})"
        )
    return y[: model.nq], y[model.nq :], note


def led_start(field: Field, q: Array, v: Array) -> tuple[Array, Array, str]:
    """(q, v, note): a closed state with the driven coordinates and rates where a prescribed motion
    begins; the others follow by the loops, and what these leave free stays as it is.
    """
    model, prescribed = field.model, field.prescribed
    if prescribed is None:
        return q, v, ""
    there, rates = (np.array(x, dtype=np.float64) for x in field.placed(0.0, list(q), list(v)))
    driven = prescribed.driven(RobotText(model))
    note = ""
    if np.abs(there - q).max(initial=0.0) > 0.0:
        wanted = {model.coordinates[i]: there[i] for i in driven.q}
        q, note = assemble(model, wanted, guess=q).q, "assembled where the motion begins"
    free = [k for k in range(model.nv) if k not in driven.v]
    J, scale = constraints(model, q).J, column_sizes(model)[free]
    rates[free] -= np.linalg.lstsq(J[:, free] / scale, J @ rates, rcond=RANK)[0] / scale
    return q, rates, note


def refuse_open(model: Robot, q: Array, v: Array) -> None:
    """Refuse states (N, nq), (N, nv) whose loops are open, or do not stay closed."""
    c = constraints(model, q, v)
    rows, size = row_sizes(model), reach(model)
    # speeds that must cancel in each loop; what moves elsewhere takes no part
    parts = np.einsum("tki,ti->tk", np.abs(c.J), np.abs(v)) * rows
    fastest = np.empty_like(parts)
    start = 0
    for loop in model.loops:
        own = slice(start, start + len(loop.rows))
        fastest[:, own] = parts[:, own].max(axis=1, initial=0.0)[:, None]
        start = own.stop
    for what, unit, values, most in (
        ("q0", "m", c.residual * rows, np.full_like(fastest, _NEAR * size)),
        ("v0", "m/s", np.einsum("tki,ti->tk", c.J, v) * rows, _SLOW * fastest + 1e-9 * size),
    ):
        beyond = np.where(np.abs(values) > most, np.abs(values), 0.0)
        worst = beyond.max(axis=1, initial=0.0)
        bad = np.flatnonzero(worst > 0.0)
        if bad.size:
            name = names(model)[int(np.argmax(beyond[bad[0]]))]
            raise LoopError(
                f"{what} of state {bad[0]} ({bad.size} of {len(q)} in all) opens the loops of "
                f"{model.name!r}: {name} by "
                f"{worst[bad[0]]:.4g} {unit}; model.assemble(…) gives states that close them"
            )


def refuse_contradiction(field: Field, q: Array, t_end: float) -> None:
    """Refuse a prescribed motion of coordinates that depend on each other through the loops, and a
    motion to follow until t_end that would open them.
    """
    if not q.size:
        return
    if field.prescribed is None:
        for part in parts_of(field.control):
            _refuse_impossible(field.model, part, q.reshape(-1, field.model.nq)[0], t_end)
        return
    held = np.zeros(field.model.nv, dtype=bool)
    held[list(field.prescribed.driven(RobotText(field.model)).v)] = True
    refuse_overdriven(field.model, q, held)


def _refuse_impossible(model: Robot, control: object, q: Array, t_end: float) -> None:
    """Refuse to follow a motion of more coordinates than can be free, where it does not agree with
    the loops at times until t_end: as many coordinates as can be free are led along it, and the
    others must be where it wants them, to a hundredth of a radian or of the robot's size.
    """
    if not isinstance(control, (ComputedTorque, Feedforward)):
        return
    driven = control.driven(RobotText(model))
    A, rank, free = jacobians(model, q), RankWatch.at(jacobians(model, q)).rank, list[int]()
    for k in driven.v:
        left = [j for j in range(model.nv) if j not in (*free, k)]
        free += [k] if RankWatch.at(A[:, left]).rank == rank else []
    if len(free) == len(driven) or -1 in driven.q:
        return
    own = [driven.v.index(k) for k in free]
    sizes = column_sizes(model)[list(driven.v)] / reach(model)
    for t in np.linspace(0.0, t_end, _ASKED):
        wanted = control.motion.at(float(t)).q
        if len(wanted) == model.nv == model.nq:
            wanted = wanted[list(driven.v)]
        q = assemble(model, {model.coordinates[driven.q[i]]: wanted[i] for i in own}, guess=q).q
        off = np.abs(q[list(driven.q)] - wanted) * sizes
        if off.max() > _APART:
            i = int(np.argmax(off))
            raise LoopError(
                f"{model.name!r} has {degrees(model.nv - rank)}: the {len(driven)} driven "
                "coordinates depend on each other by the loops, and the motion contradicts "
                f"them: at t = {t:.4g} s it asks for {driven.names[i]!r} at {wanted[i]:.4g}, which "
                f"is at {q[driven.q[i]]:.4g}; drive fewer joints, or take a "
                "motion from model.assemble(…)"
            )


def refuse_torn(model: Robot, q: Array, v: Array) -> None:
    """Refuse the outcome of a rollout whose loops have come apart."""
    try:
        refuse_open(model, q, v)
    except LoopError as error:
        raise SimulationError(
            f"at the end of the rollout, {error}; the steps are too long, or lead past a dead "
            "centre"
        ) from None


class Closing:
    """What a run does for the loops after each step.

    ``held``: the velocities that a drive decides, whatever the loops do to it (see ``decided``).
    The others must then be held by the loops alone, and where they are not the drive stands in a
    dead centre of its own. A motion that turns back there only touches it: steps of a tolerance
    ``rtol`` then come within a margin of about its square root, and no nearer.
    """

    def __init__(
        self, model: Robot, project: bool, at_singularity: str, held: Sequence[int], rtol: float
    ) -> None:
        self.model, self.project, self.stop = model, project, at_singularity == "stop"
        self.passed: list[float] = []  # s
        self.held = held
        self._least = float(np.clip(math.sqrt(rtol), *_TOUCHED)) if held else SINGULAR
        self._left = [k for k in range(model.nv) if k not in self.held]
        self._anchor: RankWatch | None = None
        self._last: tuple[float, Array] | None = None  # time of the last look, J there
        self._rank, self._sure, self._clear = 0, False, True

    @cached_property
    def _settle(self) -> Callable[[Array], Array]:
        return projector(self.model)

    def settle(self, y: Array) -> Array:
        """The state, back on the loops."""
        if not self.project:
            return y
        n = self.model.nq + self.model.nv
        out = np.array(y)
        out[:n] = self._settle(np.ascontiguousarray(y[:n]))
        return out

    @cached_property
    def _scale(self) -> Array:
        return scaled_jacobian(
            self.model, np.ones((sum(len(loop.rows) for loop in self.model.loops), self.model.nv))
        )

    def _jacobian(self, t: float, y: Array) -> Array:
        """J without units and held columns; loops that projection does not close are refused."""
        residual, flat, _ = kernel(self.model, "constraints")(
            y[: self.model.nq], np.zeros(self.model.nv)
        )
        if self.project:
            self._refuse_torn(t, residual)
        return (flat.reshape(self._scale.shape) * self._scale)[:, self._left]

    def _refuse_torn(self, t: float, residual: Array) -> None:
        gap = np.abs(residual * row_sizes(self.model))
        if not gap.max(initial=0.0) <= TORN * reach(self.model):
            raise SimulationError(
                f"the loops of {self.model.name!r} do not close any more at t = {t:.6g} s: "
                f"{open_by(self.model, gap)}; the steps are too long, or what is asked for is out "
                "of reach"
            )

    def watch_step(self, piece: Piece, before: Array) -> None:
        """End a run that meets, or has passed, a posture at which the loops do not determine the
        motion.

        J is looked at once for every tenth of a radian (or a metre) that a joint moves, at the end
        of the step, and closer wherever it has changed so much since the last look that it may have
        lost its rank in between (see loops/hold.py).
        """
        t, y = piece.end, piece.y(piece.end)
        if self._last is None:
            self._begin(piece.start, before)
        far = min(int(float(np.abs(y - before)[: self.model.nq].max(initial=0.0)) / _STRIDE), 64)
        try:
            for k in range(1, far + 1):
                now = piece.start + (t - piece.start) * k / (far + 1)
                self._watch(piece, now, self._jacobian(now, piece.y(now)))
            self._watch(piece, t, self._jacobian(t, y))
        except _SingularError as met:
            self._meet(met)

    def _begin(self, t: float, y: Array) -> None:
        A = self._jacobian(t, y)
        self._anchor, self._last = RankWatch.at(A), (t, A)
        self._rank, self._sure = self._anchor.rank, False

    def _watch(self, piece: Piece, t: float, A: Array) -> None:
        """From the last look to the state at t, in ever shorter steps where need be."""
        assert self._anchor is not None
        assert self._last is not None
        ahead = [(t, A)]
        while ahead:
            t, A = ahead[-1]
            near = self.held and self._anchor.margin < 4.0 * self._least
            if self._sure and not near and self._anchor.reaches(A):
                self._last = ahead.pop()
                continue
            before, last = self._last
            self._renew(before, last)
            if self._anchor.reaches(A):
                self._last = ahead.pop()
                self._renew(t, A)
                self._sure = True
            elif t - before <= 1e-12 * max(1.0, abs(t)) or len(ahead) > 60:
                raise _SingularError(t, f"has passed a singular posture before t = {t:.6g} s")
            else:
                middle = 0.5 * (before + t)
                ahead.append((middle, self._jacobian(middle, piece.y(middle))))

    def _renew(self, t: float, A: Array) -> None:
        """Follow from here on what holds here."""
        found = RankWatch.at(A)
        if found.rank == self._rank and found.margin >= self._least:
            self._anchor, self._clear = found, self._clear or found.margin > _CLOSE
            return
        why, where = f"margin {found.margin:.2g}", "stands in"
        if found.rank != self._rank:
            now, usual = (len(self._left) - rank for rank in (found.rank, self._rank))
            why = f"margin 0, {degrees(now)} instead of {usual}"
        elif found.margin >= SINGULAR:
            where = "comes too close to"
        raise _SingularError(t, f"{where} a singular posture at t = {t:.6g} s ({why})")

    def _meet(self, met: _SingularError) -> None:
        """Stop at a singular posture, or note it and look anew after the step."""
        if self.stop:
            driven = ", ".join(repr(self.model.velocities[k]) for k in self.held)
            whose = f" where the loops do not follow the drive of {driven}" if driven else ""
            raise SingularPostureError(
                f"{self.model.name} {met.what}{whose}: where loops lose their hold, at a dead "
                "centre, the branch that is followed "
                "is not theirs to decide; end the run before it, add what decides (a second crank, "
                "a spring), or go on with the "
                "velocity: at_singularity='pass'"
            )
        self._last = None
        if self._clear:  # once, however long it takes to get away
            self.passed.append(met.t)
        self._clear = False

    @property
    def suspicion(self) -> str:
        """A hint for a run that fails: a dead centre, where the last look was close to one."""
        if self.passed and not self._clear:
            return f"; it has passed a dead centre at t = {self.passed[-1]:.6g} s"
        if self._last is None:
            return ""
        margin = RankWatch.at(self._last[1]).margin
        near = margin < _CLOSE
        return f"; it stands close to a dead centre, with a margin of {margin:.2g}" if near else ""


class SingularPostureError(SimulationError):
    """A run that stops where the loops do not determine the motion."""


class _SingularError(Exception):
    """A singular posture on the way: when, and in words."""

    def __init__(self, t: float, what: str) -> None:
        super().__init__(what)
        self.t, self.what = t, what


def decided(field: Field, q: Array) -> tuple[int, ...]:
    """The velocities whose accelerations the controller decides, as far as the loops leave them
    free at q: those of a prescribed motion and of computed torque; none where the controller adds
    forces and no more, or drives what depends on each other.
    """
    robot = RobotText(field.model)
    held: set[int] = set()
    for part in parts_of(field.control):
        if part.prescribes or isinstance(part, ComputedTorque):
            held.update(part.driven(robot).v)
    A = jacobians(field.model, q)
    left = [k for k in range(field.model.nv) if k not in held]
    free = held and RankWatch.at(A[:, left]).rank == RankWatch.at(A).rank
    return tuple(sorted(held)) if free else ()
