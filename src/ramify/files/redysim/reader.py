"""ReDySim's models: ``inputs.mat`` and ``inputs.m`` as robots.

Only the variables are taken; what a user wrote as MATLAB functions beside them (torques,
trajectories, Jacobians of loops, initial states) is named in the import report, with what to write
instead.
"""

from __future__ import annotations

import os
from pathlib import Path

from ramify.core.errors import ModelError
from ramify.documents.reading import read_bytes
from ramify.files.import_report import ImportReport
from ramify.files.redysim.mat_file import MAX_BYTES, read_mat
from ramify.files.redysim.matlab_text import parse
from ramify.files.redysim.matlab_values import run
from ramify.files.redysim.robot import from_variables
from ramify.model.robot import Robot


def read_redysim(
    path: str | os.PathLike[str], base: str | None = None, *, merge: bool = True
) -> Robot:
    """A robot from ReDySim's ``inputs.mat`` or ``inputs.m``, with the import report in
    ``model.metadata["report"]``.

    base, merge: see :func:`ramify.files.redysim.robot.from_variables`. Raises ModelError with file
    and line for any other file.
    """
    where = Path(path)
    report = ImportReport(str(path))
    data = read_bytes(where, MAX_BYTES)
    if where.suffix.lower() == ".mat":
        return from_variables(
            read_mat(data, str(path)), _name(where), report, base=base, merge=merge
        )
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ModelError(f"{path}: this is UTF-16 text; save the file as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")  # comments in older files; anything else will not parse
    return read_m(text, str(path), name=_name(where), base=base, merge=merge)


def read_m(
    text: str,
    file: str = "inputs.m",
    *,
    name: str = "redysim",
    base: str | None = None,
    merge: bool = True,
) -> Robot:
    """A robot from the text of an ``inputs.m``; ``file`` is its name in messages."""
    program = parse(text, file)
    values = run(program, file)
    missing = [
        output for output in program.outputs if output not in values and output not in ("angs",)
    ]
    if missing:
        raise ModelError(
            f"{file}: {', '.join(missing[:8])} should come out of it, but is never assigned"
        )
    outputs = program.outputs or tuple(values)
    taken = {key: values[key] for key in (*outputs, "n_l") if key in values}
    return from_variables(taken, name, ImportReport(file), base=base, merge=merge)


def _name(path: Path) -> str:
    """A robot's name: that of the file, or of its folder where the file is just called inputs."""
    stem = path.stem
    if stem.lower().startswith("inputs") and path.resolve().parent.name:
        stem = path.resolve().parent.name
    printable = "".join(c if c.isprintable() else "_" for c in stem).strip()
    return printable[:100] or "redysim"
