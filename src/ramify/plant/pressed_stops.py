"""Postures beyond a stop: a warning where forces are computed for them."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array
from ramify.core.warning import warn
from ramify.drives.machine_forces import passive_forces, passive_text
from ramify.model.robot import Robot
from ramify.model.units import force_unit

PRESSED: Final = 2.5e-3
"""rad or m: a joint at rest on its stop is pressed in by less; a start further out is a mistake."""


class _StoppedRange(NamedTuple):
    """A stop: of which coordinate or joint, in which unit, its place in q, the rates on which it
    acts, and the range that it leaves; ``cone``: of the angle of the quaternion at that place.
    """

    name: str
    unit: str
    place: int
    rates: slice
    low: float
    high: float
    cone: bool = False

    def depth(self, q: Array) -> Array:
        """How far states q (..., nq) are beyond it; negative within the range."""
        x = q[..., self.place]
        if self.cone:
            turn = np.linalg.norm(q[..., self.place + 1 : self.place + 4], axis=-1)
            x = 2.0 * np.arctan2(turn, np.abs(x))
        return np.asarray(np.maximum(x - self.high, self.low - x))


class _StopsLeft:
    """The stops of a robot without a warning so far; ``bounds`` are (place in q, least, most) of
    each, with an empty range for a cone, which is always checked.
    """

    def __init__(self, ranges: list[_StoppedRange]) -> None:
        self.keep_only(ranges)

    def keep_only(self, ranges: list[_StoppedRange]) -> None:
        self.ranges = ranges
        self.bounds = [
            (s.place, np.inf, -np.inf) if s.cone else (s.place, s.low - PRESSED, s.high + PRESSED)
            for s in ranges
        ]


def _stops(robot: Robot) -> list[_StoppedRange]:
    steps = [step for joint in robot.joints for step in joint.steps]
    elements = [element for joint in robot.joints for element in joint.machine]
    ranges = [
        _StoppedRange(robot.coordinates[i], steps[j].unit, i, slice(j, j + 1), low, high)
        for i, j, low, high in passive_text(robot).limits
    ]
    for i, j in robot.layout.balls:
        if elements[j].cone < np.inf:
            joint = robot.coordinates[i].rpartition(".")[0]
            ranges.append(
                _StoppedRange(joint, "rad", i, slice(j, j + 3), -np.inf, elements[j].cone, True)
            )
    return ranges


def warn_of_stop_forces(robot: Robot, q: ArrayLike, v: ArrayLike) -> None:
    """Warn, once for each stop, of states q (..., nq), v (..., nv) that are further out than a
    joint that rests on its stop: its force is rarely meant where forces are computed for a posture.
    """
    stops = robot.memo.remember(__name__, lambda: _StopsLeft(_stops(robot)))
    at = np.asarray(q, dtype=np.float64)
    if at.ndim == 1:  # the usual case without an array for each stop
        values = at.tolist()
        for place, low, high in stops.bounds:
            if not low <= values[place] <= high:
                break
        else:
            return
    left = stops.ranges
    depths = [np.fmax.reduce(s.depth(at), axis=None, initial=-np.inf) for s in left]
    pressed = [(float(d), s) for d, s in zip(depths, left, strict=True) if d > PRESSED]
    if not pressed:
        return
    stops.keep_only([s for d, s in zip(depths, left, strict=True) if not d > PRESSED])
    deepest, stop = max(pressed, key=lambda pair: pair[0])
    index = np.unravel_index(int(np.nanargmax(stop.depth(at))), at.shape[:-1])
    _warn(robot, at, np.asarray(v, dtype=np.float64), index, stop, deepest, len(pressed) - 1)


def _warn(
    robot: Robot, q: Array, v: Array, index: tuple[np.intp, ...], stop: _StoppedRange, depth: float,
    others: int,
) -> None:  # fmt: skip
    rates = np.broadcast_to(v, (*np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), v.shape[-1]))
    rates = rates[index] if rates.ndim == q.ndim else v.reshape(-1, v.shape[-1])[0]
    force = passive_forces(robot, q[index], rates, stops=True, rest=False).total[stop.rates]
    state = tuple(int(i) for i in index)
    of = f" in state {state[0] if len(state) == 1 else state}" if state else ""
    more = f" (and {others} more)" if others else ""
    warn(
        f"{stop.name!r}{more} of {robot.name!r} is {depth:.3g} {stop.unit} beyond its limit{of}, "
        f"where its stop presses with {np.linalg.norm(force):.4g} {force_unit(stop.unit)}; that "
        "force is part of the answer. stops=False leaves stops out",
        RuntimeWarning,
    )
