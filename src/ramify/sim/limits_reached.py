"""When and where a run reached the limits of its machine: stops, efforts, rated speeds."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from ramify.core.arrays import Array
from ramify.core.warning import warn
from ramify.drives.machine_forces import passive_text
from ramify.model.robot import Robot, once

_FAR: Final = 0.02
"""rad or m: a start this far beyond a stop is no contact but a mistake."""


class Reached(NamedTuple):
    """A limit of a coordinate that was reached: ``what`` ("lower stop", "upper stop", "effort",
    "velocity"), ``since`` (s), the share of the rows at it, and the ``most``: how far beyond it.
    """

    name: str
    what: str
    since: float
    share: float
    most: float

    def __str__(self) -> str:
        beyond = f", at most {self.most:.3g} beyond" if self.what != "effort" else ""
        rows = f"{100.0 * self.share:.3g} % of the rows"
        return f"{self.name!r} at its {self.what} from t = {self.since:.6g} s, {rows}{beyond}"


def limits_reached(robot: Robot, t: Array, q: Array, v: Array, tau: Array) -> list[Reached]:
    """All limits that a run of rows t (T), q, v, tau reached."""
    found: list[Reached] = []
    plain = dict(zip(robot.layout.plain_q, robot.layout.plain_v, strict=True))
    start = 0
    for joint in robot.joints:
        for i, (low, high) in enumerate(joint.limits):
            if start + i in plain and low < high:
                name, x = robot.coordinates[start + i], q[:, start + i]
                found += _beyond(name, "lower stop", t, low - x)
                found += _beyond(name, "upper stop", t, x - high)
        start += joint.nq
    elements = [element for joint in robot.joints for element in joint.machine]
    for j, (name, element) in enumerate(zip(robot.velocities, elements, strict=True)):
        low, high = element.efforts
        force = tau[:, j]
        if np.isfinite(high):
            found += _beyond(name, "effort", t, np.maximum(force - high, low - force), True)
        if np.isfinite(element.velocity):
            found += _beyond(name, "velocity", t, np.abs(v[:, j]) - element.velocity)
    return found


def warn_beyond_stops(robot: Robot, q: Array) -> None:
    """Warn, once for a robot, of a start q (..., nq) beyond a stop, which throws the joint back."""
    if "warned of start" in robot.memo:
        return
    low, high = _start_limits(robot)
    if not (np.count_nonzero(q < low) or np.count_nonzero(q > high)):
        return
    robot.memo["warned of start"] = True
    depth = np.maximum(q - high, low - q).reshape(-1, robot.nq)
    row, i = np.unravel_index(int(np.argmax(depth)), depth.shape)
    warn(
        f"{robot.coordinates[i]!r} starts at {q.reshape(-1, robot.nq)[row, i]:.4g}, outside its "
        f"limits ({low[i] + _FAR:.4g}, {high[i] - _FAR:.4g}): its stop throws it back; start "
        "within them, or use stops=False",
        RuntimeWarning,
    )


@once
def _start_limits(robot: Robot) -> tuple[Array, Array]:
    """Where a run may start without a word: the limits of stops, widened a little."""
    low, high = np.full(robot.nq, -np.inf), np.full(robot.nq, np.inf)
    for i, _, lower, upper in passive_text(robot).limits:
        low[i], high[i] = lower - _FAR, upper + _FAR
    return low, high


def _beyond(name: str, what: str, t: Array, excess: Array, at: bool = False) -> list[Reached]:
    rows = np.flatnonzero(excess >= 0.0 if at else excess > 0.0)
    if not rows.size:
        return []
    return [Reached(name, what, float(t[rows[0]]), rows.size / len(t), float(excess[rows].max()))]
