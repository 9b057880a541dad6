"""Closed loops: the equation of motion in the driven coordinates alone, N' Y pi = tau, where N maps
the rates of the drives to all rates that keep the loops closed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import LoopError, StateError
from ramify.loops.assemble import assemble
from ramify.loops.constraints import constraints
from ramify.model.robot import Robot


def whole_motion(
    robot: Robot, drives: Sequence[int], q: Array, v: Array, a: Array, name: str
) -> tuple[Array, Array, Array]:
    """The motion of all coordinates: as measured, or, in loops, from that of the drives."""
    if not robot.loops:
        missing = [robot.coordinates[i] for i in np.flatnonzero(np.isnan(q).any(axis=0))]
        if missing:
            raise StateError(f"{name}: q of {', '.join(map(repr, missing[:5]))} is missing")
        return q, v, a
    to_q = dict(zip(robot.layout.plain_v, robot.layout.plain_q, strict=True))
    places = [to_q[j] for j in drives]
    missing = [robot.coordinates[i] for i in places if np.isnan(q[:, i]).any()]
    if missing:
        raise StateError(f"{name}: q of the driven {', '.join(map(repr, missing[:5]))} is missing")
    names = [robot.coordinates[i] for i in places]

    def rows(values: Array, columns: Sequence[int]) -> dict[str, Array]:
        return {key: values[:, c] for key, c in zip(names, columns, strict=True)}

    state = assemble(
        robot, rows(q, places), rows(v, list(drives)), accelerations=rows(a, list(drives))
    )
    return state.q, state.v, state.a


def reduced_rows(robot: Robot, q: Array, columns: Array, rows: Sequence[int]) -> Array:
    """Columns (T, nv, n) as (T, rows, n): those of the rows, or, in loops, N' times them."""
    if not robot.loops:
        return np.ascontiguousarray(columns[:, list(rows)])
    N = drive_rates(robot, q, rows)
    return np.asarray(np.einsum("tjr,tjn->trn", N, columns, optimize=True))


def drive_rates(robot: Robot, q: Array, drives: Sequence[int]) -> Array:
    """N (T, nv, drives): all rates for unit rates of the drives; the identity in the drives."""
    J = constraints(robot, q).J
    others = [j for j in range(robot.nv) if j not in set(drives)]
    N = np.zeros((len(q), robot.nv, len(drives)))
    N[:, list(drives), range(len(drives))] = 1.0
    dependent = -np.linalg.pinv(J[:, :, others], rcond=1e-9) @ J[:, :, list(drives)]
    N[:, others] = dependent
    left = np.abs(J @ N).max(initial=0.0) / max(float(np.abs(J).max(initial=0.0)), 1e-300)
    if left > 1e-6:
        raise LoopError(
            f"{robot.name}: the drives do not determine the motion of all loops, or there are more "
            "of them than degrees of freedom; mark joints without a motor as actuated: false"
        )
    return N


def consistent_states(
    robot: Robot, drives: Sequence[int], count: int, seed: int = 0
) -> tuple[Array, Array, Array]:
    """Random states of a robot with closed loops: q, v, a (count, …), the drives within a part of
    their range around the guess.
    """
    rng = np.random.default_rng(seed)
    to_q = dict(zip(robot.layout.plain_v, robot.layout.plain_q, strict=True))
    places = [to_q[j] for j in drives]
    names = [robot.coordinates[i] for i in places]
    start = assemble(robot).q
    low, high = robot.lower[places], robot.upper[places]
    room = np.minimum(high - start[places], start[places] - low)
    span = np.where(np.isfinite(room), np.clip(0.9 * room, 0.0, None), np.pi)
    # a smooth path through the range, which assembly follows
    phase = np.linspace(0.0, 2.0 * np.pi, count, endpoint=False)
    for _ in range(8):
        orders = 1 + rng.permutation(len(drives))
        values = start[places] + span * np.sin(np.outer(phase, orders))
        rates, second = rng.normal(size=(2, count, len(drives)))
        try:
            state = assemble(
                robot,
                dict(zip(names, values.T, strict=True)),
                dict(zip(names, rates.T, strict=True)),
                accelerations=dict(zip(names, second.T, strict=True)),
            )
        except LoopError:
            span = 0.6 * span
            continue
        return state.q, state.v, state.a
    raise LoopError(
        f"{robot.name}: no motion of the drives around its guess keeps the loops closed"
    )
