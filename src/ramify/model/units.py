"""Units of a robot's arrays, one per column."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ramify.model.robot import Robot, once


@once
def robot_units(robot: Robot) -> Mapping[str, tuple[str, ...]]:
    """A unit per column of ``t``, ``q``, ``v``, ``a`` and ``tau``; entries of quaternions have the
    unit 1.
    """
    steps = [step for joint in robot.joints for step in joint.steps]
    return MappingProxyType(
        {
            "t": ("s",),
            "q": tuple("1" if step.ball else step.unit for step in steps for _ in step.positions),
            "v": tuple(f"{step.unit}/s" for step in steps),
            "a": tuple(f"{step.unit}/s^2" for step in steps),
            "tau": tuple(force_unit(step.unit) for step in steps),
        }
    )


def force_unit(unit: str) -> str:
    """The unit of the force that works along a coordinate in rad or m."""
    return "N m" if unit == "rad" else "N"
