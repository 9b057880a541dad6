"""Robots by name or from a file, and one robot file into another: whatever ``load`` reads, in any
format that has a writer.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ramify.core.errors import ModelError
from ramify.core.messages import near, shown
from ramify.documents.reading import Shipped
from ramify.files.formats import FORMATS, Format, format_of, written_suffixes
from ramify.model.floating_base import with_base
from ramify.model.robot import Robot

_ROBOTS: Final = Shipped("robots")
built_in_text = _ROBOTS.text
"""The file of a built-in robot."""


def robots() -> list[str]:
    """Names of the built-in robots, sorted."""
    return list(_ROBOTS.names)


def load(
    name_or_path: str | os.PathLike[str], *, base: str | None = None, **parameters: float
) -> Robot:
    """A robot: a built-in one by its name, or one from the path of a file, whose suffix gives its
    format: ``.yaml`` (a robot file), ``.urdf``, ``.xacro`` (expanded by the xacro package: only for
    files that you trust), ``.xml`` (MJCF), ``.sdf``, ``.mat`` and ``.m`` (ReDySim).

    base: whether the root link of a URDF file is "fixed" (the default) or moves on a joint that is
    "free", "free_euler" or "planar" (two slides and an angle in the plane in which the robot
    moves). Other files say what their base is; one that moves can be loaded as any of these (an
    MJCF file not as "planar"). What was ignored or assumed in a foreign file is in
    ``model.metadata["report"]``.
    parameters: values for the parameters that the robot's file declares, as in ``rf.load("chain",
    n=1000)``.

    Raises ModelError for unknown names, and for a file that cannot be read or has mistakes: one
    line for each mistake, with file, line, column, key, what is wrong and what would be right.
    """
    name = os.fspath(name_or_path) if isinstance(name_or_path, str | os.PathLike) else None
    if not isinstance(name, str) or not name:
        text = "give the name of a built-in robot or the path of a robot file, as a text"
        raise ModelError(f"{text}; got {shown(name_or_path)}")
    if name in _ROBOTS.names:
        robot = read_yaml(built_in_text(name), f"{name}.yaml", **parameters)
        return robot if base is None else with_base(robot, base)
    entry_of_file = format_of(name)
    if entry_of_file is None:
        raise ModelError(_refusal(name, Path(name)))
    return entry_of_file.read(name, base, parameters)


def load_named(
    name_or_path: str | os.PathLike[str], *, base: str | None = None, **parameters: float
) -> Robot:
    """A robot that a scenario or a study names. These files are data, so that nothing is expanded
    for them: raises ModelError for a ``.xacro`` file, else as ``load``.
    """
    entry = format_of(name_or_path)
    if entry is not None and entry.expands:
        raise ModelError(
            f"{os.fspath(name_or_path)}: a scenario or study does not expand a {entry.name} file, "
            "which can read other files and environment variables; name its expanded .urdf file, "
            'or, if you trust it, pass it yourself: rf.scenario(path, robot="robot.xacro")'
        )
    return load(name_or_path, base=base, **parameters)


def _refusal(name: str, path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix or os.path.lexists(path) or len(path.parts) != 1:
        kind = f"has the suffix {shown(suffix)}" if suffix else "has no suffix"
        kind = "is a directory" if path.is_dir() else kind
        return f"{shown(name, 200)} {kind}; a robot file ends in {', '.join(FORMATS)}"
    return f"no built-in robot is named {shown(name)}{near(name, robots())}"


def read_robot_file(
    path: str | os.PathLike[str], base: str | None = None, **parameters: float
) -> Robot:
    """A robot from a robot file. Raises ModelError as ``load`` does."""
    from ramify.documents.yaml_text import read_text

    robot = read_yaml(read_text(Path(path)), os.fspath(path), **parameters)
    return robot if base is None else with_base(robot, base)


def read_yaml(text: str, file: str = "robot.yaml", /, **parameters: float) -> Robot:
    """A robot from the text of a robot file; ``file`` is its name in messages. Raises ModelError as
    ``load`` does.
    """
    from ramify.documents.mistakes import Mistakes
    from ramify.documents.yaml_text import parse_yaml
    from ramify.files.robot_reader import robot_of_document

    mistakes = Mistakes(file)
    return robot_of_document(parse_yaml(text, mistakes), mistakes, parameters)


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
        listed = ", ".join(written_suffixes())
        raise ModelError(f"{os.fspath(target)}: robots are written as {listed}")
    return entry
