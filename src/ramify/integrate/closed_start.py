"""The start of a run with loops: q0 and v0 are closed, or refused with the row that is open."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ramify.control.computed_torque import ComputedTorque
from ramify.control.feedforward import Feedforward, MeasuredFeedforward
from ramify.control.robot_text import RobotText
from ramify.control.sum import parts_of
from ramify.core.arrays import Array
from ramify.core.errors import LoopError, SimulationError
from ramify.core.messages import degrees
from ramify.core.warning import warn
from ramify.dynamics.closure import constraint_names, reach, rounding
from ramify.dynamics.redundancy import redundancy
from ramify.loops.assemble import assemble
from ramify.loops.closed_dynamics import refuse_overdriven
from ramify.loops.constraints import (
    Constraints,
    column_sizes,
    constraints,
    gap_of_row,
    rate_of_row,
    rounded_rows,
    row_sizes,
)
from ramify.loops.doubtful_start import far_from_guess, lost_freedoms
from ramify.loops.planar import refuse_crooked
from ramify.loops.rank import RankWatch, jacobians
from ramify.loops.stabilise import projector
from ramify.model.robot import Robot
from ramify.plant.field import Field

_NEAR = 1e-3  # share of the robot's size up to which a start is closed instead of refused
_SLOW = 1e-3  # the same for rates, of the speeds that must cancel in a loop
_CHANGED = 1e-9  # the same, above which a change of v0 is reported: the rounding of doubles
_STILL = 1e-12  # of the robot's size per s: below it rates are those of a robot at rest
_MOVED = 1e-2  # rad or m by which closing moves a start that is nearly closed, at most, silently
_ASKED = 9  # times at which a motion of too many coordinates is checked against the loops
_APART = 1e-2  # rad, or share of the robot's size, by which it may miss them


def closed_start(
    model: Robot, q0: ArrayLike | None, q: Array, v: Array
) -> tuple[Array, Array, str]:
    """(q, v, note): a start that closes the loops. Without q0 the model's own guess is assembled;
    a nearly closed q0 is closed, and the note says by how much it moved and which rows
    miss because data are rounded; the rest is refused with its gap. A change of v0 beyond rounding,
    a start far from the guess, and one that the loops lock are RuntimeWarnings.
    """
    note = ""
    if q0 is None:
        q, note = assemble(model).q, "assembled near the model's guess"
        if far := far_from_guess(model, q):
            note = far
            warn(f"{model.name!r}: {far}", RuntimeWarning)
    refuse_open_states(model, q[None], v[None])
    refuse_crooked(model, q)
    warn_of_changed_rates(model, q[None], v[None])
    gap = constraints(model, q).gap
    y = np.concatenate([q, v])
    project, before = projector(model), y
    for _ in range(3):
        y = project(y)
    moved = np.abs(y - before)
    shift = [float(x.max(initial=0.0)) for x in (moved[: model.nq], moved[model.nq :])]
    if max(shift) > 1e-9:
        note = (
            f"q0 moved by {shift[0]:.3g} and v0 by {shift[1]:.3g} to close the loops "
            f"(gap {gap:.3g})"
        )
    if shift[0] > _MOVED:
        warn(
            f"{model.name!r}: {note}; so close to a singular posture the loops hardly hold. "
            "model.assemble(guess=q0) gives a start that is closed",
            RuntimeWarning,
        )
    warn_of_lost_freedoms(model, y[: model.nq])
    missed = rounded_rows(model, constraints(model, y[: model.nq]).residual)
    return y[: model.nq], y[model.nq :], "; ".join(x for x in (note, missed) if x)


def warn_of_lost_freedoms(model: Robot, q: Array) -> None:
    """Warn of a start at which the loops leave nothing free, or less than they nearly do."""
    if lost := lost_freedoms(model, q):
        warn(f"at the start {lost}", RuntimeWarning)


def start_on_prescribed_motion(field: Field, q: Array, v: Array) -> tuple[Array, Array, str]:
    """(q, v, note): a closed state with the driven coordinates and rates at the start of a
    prescribed motion; the others follow from the loops, and what these leave free is unchanged.
    """
    model, prescribed = field.model, field.prescribed
    if prescribed is None:
        return q, v, ""
    there, rates = (
        np.array(x, dtype=np.float64) for x in field.apply_prescribed_motion(0.0, list(q), list(v))
    )
    driven = prescribed.driven(RobotText(model))
    note = ""
    if np.abs(there - q).max(initial=0.0) > 0.0:
        wanted = {model.coordinates[i]: there[i] for i in driven.q}
        q, note = assemble(model, wanted, guess=q).q, "assembled where the motion begins"
    free = [k for k in range(model.nv) if k not in driven.v]
    J, scale = constraints(model, q).J, column_sizes(model)[free]
    rates[free] -= (
        np.linalg.lstsq(J[:, free] / scale, J @ rates, rcond=redundancy(model).tolerance)[0] / scale
    )
    return q, rates, note


def refuse_open_states(model: Robot, q: Array, v: Array) -> None:
    """Refuse states (N, nq), (N, nv) whose loops are open, cannot close, or do not stay closed."""
    c = constraints(model, q, v)
    rows, size = row_sizes(model), reach(model)
    opening, fastest = _opening(model, c, v)
    gaps = c.residual * rows
    _refuse_beyond(model, "q0", gap_of_row, gaps, np.full_like(fastest, _NEAR * size))
    _refuse_unclosable(model, c, gaps)
    _refuse_beyond(model, "v0", _speed_of_row, opening, _SLOW * fastest + 1e-9 * size)


def _opening(model: Robot, c: Constraints, v: Array) -> tuple[Array, Array]:
    """(rates, speeds) (N, nc), m/s: how fast the rows open, and the largest speed of each loop's
    joints that must cancel in it; joints outside the loop do not count.
    """
    rows = row_sizes(model)
    parts = np.einsum("tki,ti->tk", np.abs(c.J), np.abs(v)) * rows
    fastest = np.empty_like(parts)
    start = 0
    for loop in model.loops:
        rows_of_loop = slice(start, start + len(loop.rows))
        fastest[:, rows_of_loop] = parts[:, rows_of_loop].max(axis=1, initial=0.0)[:, None]
        start = rows_of_loop.stop
    return np.einsum("tki,ti->tk", c.J, v) * rows, fastest


def _speed_of_row(model: Robot, row: int, speed: float) -> str:
    return rate_of_row(model, row, speed, "s")


def _refuse_beyond(
    model: Robot, what: str, shown: Callable[[Robot, int, float], str], values: Array, most: Array
) -> None:
    beyond = np.where(np.abs(values) > most, np.abs(values), 0.0)
    worst = beyond.max(axis=1, initial=0.0)
    bad = np.flatnonzero(worst > 0.0)
    if bad.size:
        row = int(np.argmax(beyond[bad[0]]))
        raise LoopError(
            f"{what} of state {bad[0]} ({bad.size} of {len(values)} in all) opens the loops of "
            f"{model.name!r}: {constraint_names(model)[row]} by "
            f"{shown(model, row, float(worst[bad[0]]))}; "
            "model.assemble(…) gives states that close them, or says which row cannot be closed"
        )


def _refuse_unclosable(model: Robot, c: Constraints, gaps: Array) -> None:
    """Refuse nearly closed states with a gap that no motion closes, beyond what rounded data may
    miss by.
    """
    if not redundancy(model).redundant:
        return
    u, s, _ = np.linalg.svd(c.scaled, full_matrices=False)
    u = u * (s > c.tolerance * s[:, :1])[:, None]
    left = np.abs(gaps - np.einsum("tki,tji,tj->tk", u, u, gaps))
    over = left / rounding(model)
    state, row = np.unravel_index(int(np.argmax(over)), over.shape)
    if over[state, row] > 1.0:
        raise LoopError(
            f"q0 of state {state} opens the loops of {model.name!r}: "
            f"{constraint_names(model)[row]} misses by "
            f"{gap_of_row(model, int(row), left[state, row])}, which no motion closes: the row "
            "follows from others, and data may be rounded by "
            f"{gap_of_row(model, int(row), rounding(model)[row])}; correct the frames of this loop"
        )


def warn_of_changed_rates(model: Robot, q: Array, v: Array) -> None:
    """Warn of rates that open the loops by little, but more than rounding: they are changed."""
    opening, fastest = _opening(model, constraints(model, q, v), v)
    over = np.abs(opening) - _CHANGED * fastest - _STILL * reach(model)
    state, row = np.unravel_index(int(np.argmax(over)), over.shape)
    if over[state, row] > 0.0:
        rate, speed = (
            _speed_of_row(model, int(row), float(abs(x[state, row]))) for x in (opening, fastest)
        )
        warn(
            f"v0 of state {state} opens the loops of {model.name!r} a little: "
            f"{constraint_names(model)[row]} by {rate}, of {speed} of its joints; it is "
            "changed to keep them closed: model.assemble(…, rates=…) gives rates that fit",
            RuntimeWarning,
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
    prescribed = np.zeros(field.model.nv, dtype=bool)
    prescribed[list(field.prescribed.driven(RobotText(field.model)).v)] = True
    refuse_overdriven(field.model, q, prescribed)


def _refuse_impossible(model: Robot, control: object, q: Array, t_end: float) -> None:
    """Refuse to follow a motion of more coordinates than can be free, where it does not agree with
    the loops at times until t_end: as many coordinates as can be free are led along it, and the
    others must be where it wants them, to a hundredth of a radian or of the robot's size.
    """
    if not isinstance(control, (ComputedTorque, Feedforward, MeasuredFeedforward)):
        return
    driven = control.driven(RobotText(model))
    A, tolerance, free = jacobians(model, q), redundancy(model).tolerance, list[int]()
    rank = RankWatch.at(A, tolerance).rank
    for k in driven.v:
        left = [j for j in range(model.nv) if j not in (*free, k)]
        free += [k] if RankWatch.at(A[:, left], tolerance).rank == rank else []
    if len(free) == len(driven) or -1 in driven.q:
        return
    followed = [driven.v.index(k) for k in free]
    sizes = column_sizes(model)[list(driven.v)] / reach(model)
    for t in np.linspace(0.0, t_end, _ASKED):
        wanted = control.motion.at(float(t)).q
        if len(wanted) == model.nv == model.nq:
            wanted = wanted[list(driven.v)]
        independent = {model.coordinates[driven.q[i]]: wanted[i] for i in followed}
        q = assemble(model, independent, guess=q).q
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
        refuse_open_states(model, q, v)
    except LoopError as error:
        raise SimulationError(
            f"at the end of the rollout, {error}; the steps are too long, or lead past a dead "
            "centre"
        ) from None
