"""ReDySim's models: ``inputs.mat`` and ``inputs.m`` as robots.

The variables are taken, and from files beside them the initial state (``initials.m``) and the loops
of closed models. What else a user wrote as MATLAB functions (torques, trajectories) is named in the
import report, with what to write instead.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.documents.reading import read_bytes
from ramify.files.import_report import ImportReport
from ramify.files.redysim.mat_file import MAX_BYTES, read_mat
from ramify.files.redysim.matlab_text import parse_matlab
from ramify.files.redysim.matlab_values import run_matlab
from ramify.files.redysim.redysim_robot import BESIDE, from_variables
from ramify.files.redysim.redysim_variables import VARIABLES
from ramify.model.robot import Robot


def read_redysim(
    path: str | os.PathLike[str], base: str | None = None, *, merge: bool = True
) -> Robot:
    """A robot from ReDySim's ``inputs.mat`` or ``inputs.m``, with the import report in
    ``model.metadata["report"]``.

    base, merge: see :func:`ramify.files.redysim.redysim_robot.from_variables`. Raises ModelError
    with file and line for any other file.
    """
    where = Path(path)
    report = ImportReport(str(path))
    data = read_bytes(where, MAX_BYTES)
    if where.suffix.lower() == ".mat":
        values: Mapping[str, Any] = read_mat(data, str(path))
        outputs: tuple[str, ...] = ()
    else:
        values, outputs = values_of(_decoded(data, where), str(path), where.parent, report)
    closed = np.ravel(values.get("type", 0.0)).tolist() == [1.0]
    beside = {
        name: _text(where.parent / name) if closed or name == "initials.m" else ""
        for name in BESIDE
        if (where.parent / name).is_file()
    }
    robot = from_variables(
        values, _name(where), report, base=base, merge=merge, beside=beside, outputs=outputs
    )
    report.warn()
    return robot


def values_of(
    text: str, file: str, folder: Path, report: ImportReport
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The variables that come out of an ``inputs.m``, and the names it returns in their order. What
    its ``type`` says counts even where it is not returned.
    """

    def load(name: str) -> Mapping[str, Array]:
        name = name if Path(name).suffix else f"{name}.mat"
        if Path(name).name != name or not name.lower().endswith(".mat"):
            raise ValueError(f"load takes a .mat file of the same folder, not {name!r}")
        if not (folder / name).exists():
            raise ValueError(f"{folder / name} is missing; put it beside {Path(file).name}")
        report.note("load", f"the numbers are those of {name}")
        return read_mat(read_bytes(folder / name, MAX_BYTES), str(folder / name))

    program = parse_matlab(text, file)
    values = run_matlab(program, file, load)
    if program.skipped:
        commands = ", ".join(program.skipped[:8])
        report.ignored("commands", f"{commands}: nothing is executed, printed or drawn")
    missing = [name for name in program.outputs if name not in values]
    if needed := [name for name in missing if name in VARIABLES]:
        listed = ", ".join(needed[:8])
        raise ModelError(f"{file}: {listed} should come out of it, but is never assigned")
    if missing:
        report.ignored("outputs", f"{', '.join(missing[:8])}: never assigned, and not needed")
    outputs = program.outputs or tuple(values)
    kept = {key: values[key] for key in (*outputs, "n_l", "n_j", "type") if key in values}
    return kept, program.outputs


def _text(path: Path) -> str:
    return _decoded(read_bytes(path, MAX_BYTES), path)


def _decoded(data: bytes, path: Path) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ModelError(f"{path}: this is UTF-16 text; save the file as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")  # comments in older files; anything else will not parse


def _name(path: Path) -> str:
    """A robot's name: that of the file, or of its folder where the file is just called inputs."""
    stem = path.stem
    if stem.lower().startswith("inputs") and path.resolve().parent.name:
        stem = path.resolve().parent.name
    printable = "".join(c if c.isprintable() else "_" for c in stem).strip()
    return printable[:100] or "redysim"
