"""The registry of robot file formats: one entry for each, found by the suffix of a file.

``load``, ``convert`` and the command line read it. To add a format, write a module with a reader
(and a writer, if you have one) and add its entry:

    FORMATS.add(Format("mine", (".mine",), "My robots", reader=read_mine))
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from ramify.core.errors import ModelError
from ramify.core.file_path import path_of
from ramify.core.registry import NamedEntries
from ramify.files.number_bounds import refuse_out_of_bounds
from ramify.model.robot import Robot

Reader = Callable[..., Robot]
"""``read(path, base)``: the robot in a file. ``base`` is None where the caller names none."""
RobotWriter = Callable[[Robot, str | os.PathLike[str]], None]
"""``write(robot, path)``: writes the file whole, or raises ModelError and writes nothing."""


@dataclass(frozen=True)
class Format:
    """A kind of robot file: its ``name``, the ``suffixes`` of its files, and ``about``, what it is.

    A reader or writer is a function, or a text ``"module:function"`` that is imported at first use.
    A reader with ``parameters`` also takes values for the parameters that a file declares. A format
    that ``expands`` evaluates expressions and reads what they name: scenarios do not load it.
    """

    name: str
    suffixes: tuple[str, ...]
    about: str
    reader: Reader | str
    writer: RobotWriter | str | None = None
    parameters: bool = False
    expands: bool = False

    def read(self, path: str, base: str | None, parameters: dict[str, float]) -> Robot:
        """The robot in a file. Raises ModelError for parameters that the format does not have."""
        if parameters and not self.parameters:
            raise ModelError(
                f"{path}: a {self.name} file has no parameters to set; got {', '.join(parameters)}"
            )
        robot: Robot = imported_function(self.reader)(path, base, **parameters)
        refuse_out_of_bounds(robot, path)
        return robot

    def write(self, robot: Robot, path: str | os.PathLike[str]) -> None:
        """Write a robot, whole or not at all. Raises ModelError where the format has no writer."""
        refuse_out_of_bounds(robot, os.fspath(path))
        if self.writer is None:
            raise ModelError(
                f"{path}: {self.name} files are read, not written; robots are written as "
                f"{', '.join(written_suffixes())}"
            )
        imported_function(self.writer)(robot, path)


def imported_function(function: Callable[..., Any] | str) -> Callable[..., Any]:
    """A function, or one by "module:name": modules that read files need heavy libraries."""
    if not isinstance(function, str):
        return function
    module, _, name = function.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


def _suffixes_of(entry: Format) -> tuple[str, ...]:
    for suffix in entry.suffixes:
        if not (suffix.startswith(".") and suffix == suffix.lower() and Path(f"a{suffix}").suffix):
            raise ModelError(f"suffix {suffix!r} must be in lower case and start with a dot")
    return entry.suffixes


def format_of(path: str | os.PathLike[str]) -> Format | None:
    """The format of a file by its suffix; None where no format has it."""
    return FORMATS.get(path_of(path, ModelError).suffix.lower())


def written_suffixes() -> list[str]:
    """Suffixes of the formats that have a writer."""
    return [suffix for suffix, entry in FORMATS.items() if entry.writer is not None]


_ROWS: Final = (
    Format("YAML", (".yaml", ".yml"), "ramify's own robot files",
           "ramify.files.load:read_robot_file", "ramify.files.robot_writer:save", parameters=True),
    Format("URDF", (".urdf",), "the Unified Robot Description Format of ROS",
           "ramify.files.urdf:read_urdf", "ramify.files.urdf_writer:save"),
    Format("xacro", (".xacro",), "URDF with macros (extra ramify[xacro])",
           "ramify.files.urdf:read_urdf", expands=True),
    Format("MJCF", (".xml",), "MuJoCo's models (extra ramify[mjcf])",
           "ramify.files.mjcf:read_mjcf"),
    Format("SDF", (".sdf",), "Gazebo's Simulation Description Format",
           "ramify.files.sdf:read_sdf"),
    Format("ReDySim", (".mat", ".m"), "ReDySim's inputs.mat and inputs.m",
           "ramify.files.redysim.reader:read_redysim"),
)  # fmt: skip
FORMATS: Final = NamedEntries("suffix", _ROWS, _suffixes_of, ModelError)
"""The format of each suffix, in lower case and with its dot."""
register: Final = FORMATS.add
YAML: Final = FORMATS[".yaml"]
