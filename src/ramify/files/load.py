"""Robots by name or from a file."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module, resources
from pathlib import Path
from typing import Final

from ramify.core.errors import ModelError
from ramify.core.messages import near
from ramify.model.robot import Robot

YAML_SUFFIXES: Final = (".yaml", ".yml")
READERS: Final = {
    ".urdf": ("ramify.files.urdf", "read_urdf"),
    ".xml": ("ramify.files.mjcf", "read_mjcf"),
    ".mat": ("ramify.files.redysim.reader", "read_redysim"),
    ".m": ("ramify.files.redysim.reader", "read_redysim"),
}
"""Modules and functions ``read(path, base)`` of foreign files, imported when needed. One row per
suffix.
"""


def robots() -> list[str]:
    """Names of the built-in robots, sorted."""
    return list(_built_in())


@cache
def _built_in() -> tuple[str, ...]:
    folder = resources.files("ramify") / "robots"
    return tuple(
        sorted(
            entry.name.removesuffix(".yaml")
            for entry in folder.iterdir()
            if entry.name.endswith(".yaml")
        )
    )


def load(
    name_or_path: str | os.PathLike[str], *, base: str | None = None, **parameters: float
) -> Robot:
    """A robot: a built-in one by its name, or one from the path of a ``.yaml``, ``.urdf`` or
    ReDySim (``.mat``, ``.m``) file.

    base: whether the root link of a URDF file stands ("fixed", unless told) or moves on a "free" or
    "free_euler" joint. A robot file or a ReDySim file says itself what its base is; one that moves
    may be given as "free", "free_euler", "planar" (x, y and the angle about z) or "fixed". What was
    ignored or assumed in a foreign file is in ``model.metadata["report"]``. parameters: values for
    the parameters that the robot's file declares, as in ``rf.load("chain", n=1000)``.

    Raises ModelError for unknown names, and for a file that cannot be read or has mistakes: one
    line for each mistake, with file, line, column, key, what is wrong and what would be right.
    """
    if (
        not isinstance(name_or_path, str | os.PathLike)
        or not isinstance(given := os.fspath(name_or_path), str)
        or not given
    ):
        raise ModelError(
            f"a robot is loaded by its name or the path of its file, a text; got {name_or_path!r}"
        )
    suffix = Path(given).suffix.lower()
    if suffix in READERS and given not in _built_in():
        if parameters:
            raise ModelError(
                f"{given}: a {suffix} file has no parameters to set; got {', '.join(parameters)}"
            )
        module, read = READERS[suffix]
        reader = getattr(import_module(module), read)
        found: Robot = reader(given) if base is None else reader(given, base)
        return found
    if base is not None:
        from ramify.model.base import with_base

        return with_base(load(given, base=None, **parameters), base)
    if given in _built_in():
        entry = resources.files("ramify") / "robots" / f"{given}.yaml"
        return read_yaml(entry.read_text(encoding="utf-8"), entry.name, **parameters)
    path = Path(given)
    if suffix in YAML_SUFFIXES:
        from ramify.documents.yaml_text import read_text

        return read_yaml(read_text(path), given, **parameters)
    raise ModelError(_refusal(given, path))


def _refusal(given: str, path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix or os.path.lexists(path) or len(path.parts) != 1:
        if suffix == ".xacro":
            return f"{given} is a xacro file; expand it first (xacro robot.xacro > robot.urdf) and load the .urdf file"
        kind = (
            "is a directory"
            if path.is_dir()
            else f"has the suffix {suffix!r}"
            if suffix
            else "has no suffix"
        )
        return f"{given} {kind}; a robot file ends in .yaml, .yml, {', '.join(READERS)}"
    return f"no built-in robot is named {given!r}{near(given, robots())}"


def read_yaml(text: str, file: str = "robot.yaml", /, **parameters: float) -> Robot:
    """A robot from the text of a robot file; ``file`` is its name in messages. Raises ModelError as
    ``load`` does.
    """
    from ramify.documents.mistakes import Mistakes
    from ramify.documents.yaml_text import parse
    from ramify.files.robot_reader import assemble

    mistakes = Mistakes(file)
    return assemble(parse(text, mistakes), mistakes, parameters)
