"""The bound of numbers, for robots that are read or written."""

from __future__ import annotations

from dataclasses import fields

from ramify.core.bounds import TOO_LARGE, out_of_bounds
from ramify.core.errors import ModelError
from ramify.model.robot import Robot


def refuse_out_of_bounds(robot: Robot, file: str) -> None:
    """Refuse a robot with a number that no robot file may have, so that whatever loads also saves,
    and loads again.
    """
    parts = {f.name: getattr(robot, f.name) for f in fields(robot) if f.name != "metadata"}
    for where, value in out_of_bounds(parts):
        raise ModelError(f"{file}: {where}: {value:g} {TOO_LARGE}")
