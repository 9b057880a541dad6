"""One robot file into another: whatever ``load`` reads, in any format that has a writer."""

from __future__ import annotations

import os

from ramify.core.errors import ModelError
from ramify.files.formats import Format, format_of, written_suffixes
from ramify.files.load import load
from ramify.model.robot import Robot


def convert(
    source: str | os.PathLike[str], target: str | os.PathLike[str], *, base: str | None = None
) -> Robot:
    """Read a robot (a file or a built-in name) and write it as ``target``, whose suffix gives the
    format: ``.yaml`` or ``.urdf``. Returns the robot.

    Raises ModelError where the source cannot be read, or the target's format cannot say what the
    robot is.
    """
    writer = _writer(target)
    robot = load(source, base=base)
    writer.write(robot, target)
    return robot


def write_robot(robot: Robot, target: str | os.PathLike[str]) -> None:
    """Write a robot as ``target``, in the format of its suffix. Raises ModelError as ``convert``
    does.
    """
    _writer(target).write(robot, target)


def _writer(target: str | os.PathLike[str]) -> Format:
    entry = format_of(target)
    if entry is None or entry.writer is None:
        raise ModelError(
            f"{os.fspath(target)}: robots are written as {', '.join(written_suffixes())}"
        )
    return entry
