"""When and where a run reached the limits of its machine: stops, efforts, rated speeds."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from ramify.control.commands import Commands
from ramify.control.sum import parts_of
from ramify.core.arrays import Array
from ramify.core.warning import warn
from ramify.drives.machine_forces import passive_text
from ramify.model.machine import ANY
from ramify.model.robot import Robot, once
from ramify.plant.field import Field

MOVING: Final = 0.02
"""rad or m beyond its stop at which a rollout may start: joints on their way into it, where another
rollout ended.
"""
_FEW_JUMPS, _MANY_JUMPS = 8, 0.1
"""A drive that jumps between both ends more often, and in more than this share of the rows,
chatters.
"""
SOFT: Final = 0.2
"""The share of a joint's range by which its stop should not give way."""
_HELD: Final = ("effort", "force range")
"""Limits that nothing exceeds."""


class Reached(NamedTuple):
    """A limit of a coordinate or actuator that was reached: ``what`` ("lower stop", "upper stop",
    or "lower limit", "upper limit" where stops are off; "cone", "effort", "velocity", "force
    range"), ``since`` (s), the share of the rows at it, and the ``most``: how far beyond it.
    """

    name: str
    what: str
    since: float
    share: float
    most: float

    def __str__(self) -> str:
        beyond = f", at most {self.most:.3g} beyond" if self.what not in _HELD else ""
        rows = f"{100.0 * self.share:.3g} % of the rows"
        at = "beyond" if self.what.endswith("limit") else "at"
        return f"{self.name!r} {at} its {self.what} from t = {self.since:.6g} s, {rows}{beyond}"


def limits_reached(
    robot: Robot, t: Array, q: Array, v: Array, tau: Array, stops: bool = True
) -> list[Reached]:
    """All limits that a run of rows t (T), q, v, tau reached; ``stops``: joints stop there."""
    reached: list[Reached] = []
    end = "stop" if stops else "limit"
    plain = dict(zip(robot.layout.plain_q, robot.layout.plain_v, strict=True))
    start = 0
    for joint in robot.joints:
        for i, (low, high) in enumerate(joint.limits):
            if start + i in plain and low < high:
                name, x = robot.coordinates[start + i], q[:, start + i]
                reached += _beyond(name, f"lower {end}", t, low - x)
                reached += _beyond(name, f"upper {end}", t, x - high)
        if joint.kind == "ball" and joint.machine[0].cone < np.inf:
            w, *turn = np.abs(q[:, start : start + 4]).T
            angle = 2.0 * np.arctan2(np.linalg.norm(turn, axis=0), w)
            reached += _beyond(joint.name, "cone", t, angle - joint.machine[0].cone)
        start += joint.nq
    elements = [element for joint in robot.joints for element in joint.machine]
    for j, (name, element) in enumerate(zip(robot.velocities, elements, strict=True)):
        low, high = element.efforts
        force = tau[:, j]
        if np.isfinite(high):
            reached += _beyond(name, "effort", t, np.maximum(force - high, low - force), True)
        if np.isfinite(element.velocity):
            reached += _beyond(name, "velocity", t, np.abs(v[:, j]) - element.velocity)
    return reached


def machine_stats(field: Field, t: Array, y: Array) -> dict[str, Any]:
    """What a run of rows t (T), y keeps of its machine: ``machine_losses`` by part, J, and the
    actuators that were ``saturated``, as rows of ``Reached``.
    """
    stats: dict[str, Any] = {}
    if field.counted and (names := field.passive_forces.losses):
        losses = y[-1, field.of_heat][-len(names) :].tolist()
        stats["machine_losses"] = dict(zip(names, losses, strict=True))
    if saturated := forces_at_limits(field, t, y):
        stats["saturated"] = [list(reached) for reached in saturated]
    return stats


def forces_at_limits(field: Field, t: Array, y: Array) -> list[Reached]:
    """Actuators under commands that gave all that their force ranges allow at rows t (T), y."""
    limits: list[Reached] = []
    of_q, of_v, of_z, _ = field.state_slices
    q, v, z = (list(y[:, part].T) for part in (of_q, of_v, of_z))
    for part in parts_of(field.control):
        count = part.state_count(field.robot_text)
        states, z = z[:count], z[count:]
        if isinstance(part, Commands) and any(a.force != ANY for a in field.model.actuators):
            forces = part.driving(field.model, t, q, v, states).force
            for a, force in zip(field.model.actuators, forces, strict=True):
                low, high = a.force
                if low < high:
                    force = np.broadcast_to(np.asarray(force, dtype=np.float64), t.shape)
                    excess = np.maximum(force - high, low - force)
                    limits += _beyond(a.name, "force range", t, excess, True)
    return limits


def warn_beyond_stops(robot: Robot, q: Array, slack: float) -> None:
    """Warn, once for each joint of a robot, of a start q (..., nq) that is further than ``slack``
    beyond a stop, which throws the joint back; of several joints the one that is furthest out.
    """
    low, high = _start_limits(robot)
    if not (np.count_nonzero(q < low - slack) or np.count_nonzero(q > high + slack)):
        return
    warned: set[int] = robot.memo.remember("warned of start", set)
    depth = np.maximum(q - high, low - q).reshape(-1, robot.nq)
    depth[:, list(warned)] = -np.inf
    row, i = np.unravel_index(int(np.argmax(depth)), depth.shape)
    warned.update(np.flatnonzero((depth > slack).any(axis=0)).tolist())
    if depth[row, i] <= slack:
        return
    warn(
        f"{robot.coordinates[i]!r} starts at {q.reshape(-1, robot.nq)[row, i]:.4g}, outside its "
        f"limits ({low[i]:.4g}, {high[i]:.4g}): its stop throws it back; start "
        "within them, or use stops=False",
        RuntimeWarning,
    )


def warn_of_soft_stops(robot: Robot, q: Array) -> None:
    """Warn of stops that gave way, over rows q (T, nq), by a large share of their joint's range."""
    text = passive_text(robot)
    for i, j, low, high in text.limits:
        depth = max(low - float(q[:, i].min()), float(q[:, i].max()) - high)
        if depth > SOFT * (high - low):
            stiffness = text.law_of_stop(j)[0]
            warn(
                f"the stop of {robot.coordinates[i]!r} gave way by {depth:.3g}, its range is "
                f"{high - low:.3g}: its stiffness, {stiffness:.3g}, is too small for this drive or "
                "load; give the joint a stop of its own, as in stop={'stiffness': …}",
                RuntimeWarning,
            )


def warn_of_degrees(robot: Robot, q: Array) -> None:
    """Warn of a start q (nq) with an angle of more than two turns that is a whole number."""
    steps = [step for joint in robot.joints for step in joint.steps]
    for i, j in zip(robot.layout.plain_q, robot.layout.plain_v, strict=True):
        if steps[j].unit == "rad" and 4.0 * np.pi < abs(q[i]) <= 720.0 and q[i] == round(q[i]):
            warn(
                f"q0: {robot.coordinates[i]!r} = {q[i]:g} looks like degrees; in rad it would be "
                f"{np.deg2rad(q[i]):.4g} (np.deg2rad)",
                RuntimeWarning,
            )
            return


def warn_of_chatter(robot: Robot, tau: Array) -> None:
    """Warn of drives that jump between both ends of their effort, tau (T, nv)."""
    elements = [element for joint in robot.joints for element in joint.machine]
    for name, element, force in zip(robot.velocities, elements, tau.T, strict=True):
        low, high = element.efforts
        end = np.where(force >= high, 1, np.where(force <= low, -1, 0))
        jumps = np.count_nonzero(end[1:] * end[:-1] < 0)
        if low < high and jumps > max(_FEW_JUMPS, _MANY_JUMPS * len(end)):
            warn(
                f"the drive of {name!r} jumps between both ends of its effort ({low:.4g}, "
                f"{high:.4g}): reduce the gains of its controller; where forces are held, keep "
                "the damping below inertia / dt",
                RuntimeWarning,
            )


@once
def _start_limits(robot: Robot) -> tuple[Array, Array]:
    """The limits of stops (nq) each, infinite where there is none."""
    low, high = np.full(robot.nq, -np.inf), np.full(robot.nq, np.inf)
    for i, _, lower, upper in passive_text(robot).limits:
        low[i], high[i] = lower, upper
    return low, high


def _beyond(name: str, what: str, t: Array, excess: Array, at: bool = False) -> list[Reached]:
    rows = np.flatnonzero(excess >= 0.0 if at else excess > 0.0)
    if not rows.size:
        return []
    return [Reached(name, what, float(t[rows[0]]), rows.size / len(t), float(excess[rows].max()))]
