"""Runs from files that ``store`` wrote. A file is data that somebody may have damaged or crafted:
it gives the run that was written, or SimulationError with the reason; nothing that is missing
becomes a number.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from typing import IO, Any, Final

import numpy as np

from ramify.contact.contact_record import Contacts
from ramify.core.arrays import Array
from ramify.core.errors import ModelError, RamifyError, SimulationError
from ramify.core.file_path import path_of
from ramify.documents.forms import Choice, Flag, Form, Name, Number, Numbers
from ramify.documents.json_text import (
    Kind,
    is_flag,
    is_number,
    is_text,
    is_whole,
    list_of,
    mapping_to,
    optional,
    read_json,
)
from ramify.drives.machine_forces import passive_text
from ramify.files.load import read_yaml
from ramify.files.robot_writer import to_yaml
from ramify.loops.constraints import row_units
from ramify.loops.loop_record import Loops
from ramify.model.robot import Robot, the_robot
from ramify.motion import Motion
from ramify.plant.pushes import AppliedWrenches
from ramify.runs.netcdf import NetCDF, file_digest, read_netcdf
from ramify.runs.recorder import drawn_run
from ramify.runs.run_options import OPTIONS, WordOrNumber
from ramify.runs.run_record import Run, Work
from ramify.runs.store import DIMENSIONS, FORMAT, VERSION, first_digest

_ALWAYS: Final = ("time", "q", "v", "a", "tau", "actuator_work", "dissipated")
_CONTACTS: Final = tuple(name for name in DIMENSIONS if name.startswith(("contact_", "ground_")))
_LOOPS: Final = ("loop_gap", "multipliers", "constraint_power")
_WRENCHES: Final = ("wrenches", "wrench_work")
_DESIRED: Final = ("q_desired", "v_desired", "a_desired")
_LATER: Final = (
    "contact_normal_load", "contact_mode", "contact_impulse", "contact_iterations",
    "contact_residual",
)  # fmt: skip
"""Variables that files of the first releases do not have, and those of hard contact."""


def open_result(path: str | os.PathLike[str], model: Robot | None = None) -> Run:
    """See Result.open."""
    name = str(path_of(path, SimulationError))
    contents = _read(name)
    text, meta = contents.texts["robot"], _metadata(name, contents.texts["metadata"])
    if model is not None:
        the_robot(model)
    robot = model if model is not None else _robot(text, name)
    if model is not None and to_yaml(robot) != text:
        raise SimulationError(
            f"{name}: was made with another robot than {robot.name!r}; their robot files differ"
        )
    try:
        return _run(robot, meta, _whole(robot, meta, contents))
    except (RamifyError, ValueError) as error:
        raise SimulationError(f"{name}: the run in it is incomplete: {error}") from None


def _run(robot: Robot, meta: dict[str, Any], arrays: Mapping[str, Array]) -> Run:
    t = arrays["time"]
    desired = Motion(t, *(arrays[n] for n in _DESIRED)) if _DESIRED[0] in arrays else None
    return replace(
        drawn_run(robot, t, arrays["q"], arrays["v"]), a=arrays["a"], tau=arrays["tau"],
        work=Work(arrays["actuator_work"], arrays["dissipated"]), options=meta["options"],
        stats=meta["stats"], status=meta["status"], desired=desired,
        contacts=_contacts(meta, arrays), loops=_loops(robot, arrays), recorded=meta,
        bristles=arrays.get("bristles"), wrenches=_wrenches(meta, arrays),
        drive_work=arrays.get("drive_work"),
        scheme_work=arrays.get("scheme_work"),
    )  # fmt: skip


def _contacts(meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> Contacts | None:
    """The contacts of a run, where the file has them."""
    who = meta.get("contacts")
    if who is None:
        return None
    fields = {name.split("_", 1)[1]: arrays[name] for name in _CONTACTS if name in arrays}
    # files of the first releases do not have it, nor the normals to compute it from
    fields.setdefault("normal_load", np.full(fields["penetration"].shape, np.nan))
    if not _list(_text)(who.get("others", [])):
        raise SimulationError("the entry 'contacts.others' of its metadata has the wrong kind")
    of_pairs: dict[str, Any] = {**fields, "others": tuple(who.get("others", ()))}
    return Contacts(tuple(who["names"]), tuple(who["bodies"]), up=tuple(who["up"]), **of_pairs)


def _wrenches(meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> AppliedWrenches | None:
    if "wrenches" not in meta:
        return None
    return AppliedWrenches(tuple(meta["wrenches"]["names"]), *(arrays[n] for n in _WRENCHES))


def _loops(model: Robot, arrays: Mapping[str, Array]) -> Loops | None:
    if _LOOPS[0] not in arrays:
        return None
    names = tuple(name for loop in model.loops for name in loop.names)
    return Loops(names, row_units(model), *(arrays[name] for name in _LOOPS))


def _robot(text: str, file: str) -> Robot:
    try:
        return read_yaml(text, f"{file} (the robot in it)")
    except ModelError as error:
        raise SimulationError(
            f"{error}\nThis version cannot build the robot of this run; give it as "
            "Result.open(path, model=…)"
        ) from None


# ---- the file ----


def _read(file: str) -> NetCDF:
    """Texts and arrays of a file, after checking that it is unchanged since it was written."""
    try:
        info = os.stat(file)
        if not stat.S_ISREG(info.st_mode):
            kind = "a directory" if stat.S_ISDIR(info.st_mode) else "not a regular file"
            raise SimulationError(f"{file} is {kind}; give a file that r.save wrote")
        with open(file, "rb") as stream:
            _check_kind(file, stream.read(8))
            contents = read_netcdf(stream, info.st_size)
            _check_format(file, contents)
            right = _digest(stream, info.st_size, contents)
    except SimulationError:  # a ValueError too, which says what is wrong already
        raise
    except FileNotFoundError:
        raise SimulationError(f"{file}: there is no such file") from None
    except (OSError, ValueError, MemoryError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"it is damaged: {error}"
        if isinstance(error, MemoryError):
            reason = "it does not fit into memory"
        raise SimulationError(f"{file}: cannot be read as a result: {reason}") from None
    if contents.texts["sha256"] != right:
        raise SimulationError(f"{file}: it is not as it was written (the digest differs)")
    return contents


def _check_format(file: str, contents: NetCDF) -> None:
    if contents.texts.get("format") != FORMAT:
        raise SimulationError(f"{file}: a NetCDF file, but not one that r.save wrote")
    if not 1 <= (version := contents.wholes.get("format_version", 0)) <= VERSION:
        newer = " of a newer ramify" if version > VERSION else ""
        raise SimulationError(
            f"{file}: format {version}{newer}; this version reads formats up to {VERSION}"
        )
    for key in ("robot", "metadata", "sha256"):
        if key not in contents.texts:
            raise SimulationError(f"{file}: the attribute {key!r} is missing")


def _digest(stream: IO[bytes], size: int, contents: NetCDF) -> str:
    """The digest that a file should have."""
    if contents.wholes["format_version"] > 1:
        return file_digest(stream, size, "sha256")[0]
    return first_digest(contents.texts["robot"], contents.texts["metadata"], contents.arrays)


def _check_kind(file: str, start: bytes) -> None:
    if start.startswith(b"\x89HDF\r\n"):
        raise SimulationError(
            f"{file}: a NetCDF-4 or HDF5 file; results are NetCDF-3 files that r.save wrote"
        )
    if not start.startswith((b"CDF\x01", b"CDF\x02")):
        kind = "is empty" if not start else "is not a NetCDF-3 file"
        raise SimulationError(f"{file} {kind}; give a file that r.save wrote")


def _whole(robot: Robot, meta: Mapping[str, Any], contents: NetCDF) -> dict[str, Array]:
    """The arrays of a run, each with the shape that the robot and the record require. An array
    without entries is not in the file; any other must be.
    """
    arrays = dict(contents.arrays)
    expected = [*_ALWAYS]
    for part, names in (("contacts", _CONTACTS), ("wrenches", _WRENCHES)):
        if meta.get(part) is not None:
            expected += [name for name in names if name in arrays or name not in _LATER]
    for names in (_DESIRED, _LOOPS, ("bristles",), ("drive_work",), ("scheme_work",)):
        expected += names if any(name in arrays for name in names) else ()
    if extra := sorted(set(arrays) - set(expected)):
        raise SimulationError(f"the variable {extra[0]!r} does not belong to this run")
    who, pushed = (meta.get(part) or {"names": ()} for part in ("contacts", "wrenches"))
    sizes = {
        "time": len(arrays["time"]) if arrays.get("time", np.zeros(())).ndim else 0,
        "coordinate": robot.nq, "velocity": robot.nv, "axis": 3, "six": 6,
        "bristle": len(passive_text(robot).bristles), "contact": len(who["names"]),
        "pushed": len(pushed["names"]),
        "constraint": sum(len(loop.names) for loop in robot.loops),
    }  # fmt: skip
    for name in expected:
        shape = tuple(sizes[dimension] for dimension in DIMENSIONS[name])
        if name not in arrays and (name == "time" or 0 not in shape):
            raise SimulationError(f"the variable {name!r} is missing")
        values = arrays.setdefault(name, np.zeros(shape))
        if values.shape != shape:
            raise SimulationError(f"{name} has shape {values.shape}; this run needs {shape}")
    return arrays


# ---- the record ----


def _metadata(file: str, text: str) -> dict[str, Any]:
    """The metadata of a run: JSON with the entries that a run has, each of its kind."""
    try:
        meta = read_json(text)
    except ValueError as error:
        raise SimulationError(f"{file}: its metadata are not JSON: {error}") from None
    for where, kinds in _KINDS.items():
        inner = meta if not where else meta.get(where)
        if where and inner is None and where in _OPTIONAL:
            continue
        if not isinstance(inner, dict):
            name = f"the entry {where!r} of its metadata" if where else "its metadata"
            raise SimulationError(f"{file}: {name} must be a mapping")
        for key, right in kinds.items():
            must = not where or where in _OPTIONAL
            if (must or key in inner) and not right(inner.get(key)):
                path = f"{where}.{key}" if where else key
                said = "has the wrong kind" if key in inner else "is missing"
                raise SimulationError(f"{file}: the entry {path!r} of its metadata {said}")
    return dict(meta)


_text, _number, _flag, _list = is_text, is_number, is_flag, list_of
_mapping = mapping_to(lambda x: True)
_count = optional(is_whole(0))


def _numbers(x: object) -> bool:
    return x is None or _number(x) or _list(_number)(x)


def _saturated(x: object) -> bool:
    return isinstance(x, list) and all(
        isinstance(row, list)
        and len(row) == 5
        and all(map(_text, row[:2]))
        and all(map(_number, row[2:]))
        for row in x
    )


def _losses(x: object) -> bool:
    return isinstance(x, dict) and all(map(_number, x.values()))


def _scenario(x: object) -> bool:
    return (
        isinstance(x, dict)
        and all(_text(x.get(key)) for key in ("name", "text"))
        and _mapping(x.get("overrides"))
    )


def _word_or_number(x: object) -> bool:
    return _text(x) or _number(x)


def _text_or_mapping(x: object) -> bool:
    return _text(x) or _mapping(x)  # a text: "none", or the controller of the first format


def _anything(x: object) -> bool:
    return True


_BY_FORM: Final[Mapping[type[Form], Kind]] = {
    Number: _numbers, Numbers: _numbers, Flag: _flag, Name: _text, Choice: _text,
    WordOrNumber: _word_or_number,
}  # fmt: skip
_OPTION_KINDS: Final[Mapping[str, Kind]] = {
    name: _BY_FORM.get(type(row.form), _anything) for name, row in OPTIONS.items()
} | {
    "control": _text_or_mapping, "events": _list(_text), "q0": _numbers, "v0": _numbers,
    "scenario": _scenario,
}  # fmt: skip

_OPTIONAL: Final = ("contacts", "wrenches")
_KINDS: Final[Mapping[str, Mapping[str, Kind]]] = {
    "": {"status": _text, "options": _mapping, "stats": _mapping},
    "options": _OPTION_KINDS,
    "stats": {
        "steps": _count, "evaluations": _count, "wall_time": _numbers, "saturated": _saturated,
        "machine_losses": _losses, "singular_postures": _list(_number), "thrown_by_loops": _count,
        "unconverged_steps": _count, "hard_losses": _losses, "scheme_work": _numbers,
    },
    "contacts": {"names": _list(_text), "bodies": _list(_text), "up": _list(_number, 3)},
    "wrenches": {"names": _list(_text)},
}  # fmt: skip
"""The kinds of the entries of the metadata. Those of the first and of the last two are required.
"""
