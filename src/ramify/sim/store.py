"""Runs in files: NetCDF-3 (classic, 64-bit offsets), which any NetCDF reader opens, written whole
or not at all.

A file stands alone. Dimensions ``time``, ``coordinate`` and ``velocity``, on a ground also
``contact`` and ``axis``; variables with ``units``, ``long_name`` and, where columns differ,
``column_units``; the names of the columns as text along their dimension; as global attributes the
robot (its robot file's text), the metadata (JSON) and a digest over all of it. Nothing in it is
code.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from typing import IO, Any, Final, NamedTuple

import numpy as np

from ramify.contact.contact_record import Contacts
from ramify.core.arrays import Array
from ramify.core.errors import ModelError, SimulationError
from ramify.documents.writing import whole_file
from ramify.files.load import read_yaml
from ramify.files.robot_writer import to_yaml
from ramify.loops.constraints import row_units
from ramify.loops.loop_record import Loops
from ramify.model.robot import Robot
from ramify.motion import Motion
from ramify.sim.pushes import AppliedWrenches
from ramify.sim.run_record import Run, Work

FORMAT: Final = "ramify result"
VERSION: Final = 1
MOST_BYTES: Final = 2**31 - 4
"""The largest array that the format holds."""


_ABOUT: Final = {
    "time": "time",
    "q": "joint coordinates",
    "v": "joint velocities",
    "a": "joint accelerations",
    "tau": "joint forces that acted",
    "actuator_work": "work of the joint forces since the first row",
    "dissipated": "energy lost since the first row",
    "bristles": "deflection of the bristles of LuGre friction",
    "contact_force": "force of the ground on each contact point, world axes",
    "contact_position": "place of each contact point in the world",
    "contact_penetration": "depth of each contact point in the ground",
    "contact_slip": "velocity of each contact point along the ground",
    "ground_stored": "elastic energy in the ground",
    "ground_dissipated": "energy lost in the ground since the first row",
    "wrenches": "external wrench [moment; force] on each pushed link, world axes",
    "wrench_work": "work of the external wrenches since the first row",
    "q_desired": "joint coordinates asked for",
    "v_desired": "joint velocities asked for",
    "a_desired": "joint accelerations asked for",
    "loop_gap": "what the loops are open by",
    "multipliers": "constraint forces of the loops",
    "constraint_power": "power of the constraint forces",
    "kinetic": "kinetic energy",
    "potential": "potential energy, zero at the world's origin",
    "total": "kinetic and potential energy",
}
"""What each variable of a file or table is."""


class Variable(NamedTuple):
    """An array of a run: name, dimensions, values, and a unit per column (or one)."""

    name: str
    dimensions: tuple[str, ...]
    values: Array
    units: tuple[str, ...]

    @property
    def attributes(self) -> dict[str, str]:
        """Units and meaning, as files and datasets have them."""
        if len(set(self.units)) == 1:
            return {"units": self.units[0], "long_name": _ABOUT[self.name]}
        several = {"units": "see column_units", "column_units": ", ".join(self.units)}
        return several | {"long_name": _ABOUT[self.name]}


def variables(result: Run) -> list[Variable]:
    """What a run consists of."""
    time, q, v = ("time",), ("time", "coordinate"), ("time", "velocity")
    units = result.units
    found = [
        Variable("time", time, result.t, ("s",)),
        Variable("q", q, result.q, units["q"]),
        Variable("v", v, result.v, units["v"]),
        Variable("a", v, result.a, units["a"]),
        Variable("tau", v, result.tau, units["tau"]),
        Variable("actuator_work", time, result.work.actuator, ("J",)),
        Variable("dissipated", time, result.work.dissipated, ("J",)),
    ]
    if result.bristles is not None:
        unit = dict(zip(result.columns["v"], units["v"], strict=True))
        own = tuple(unit[name].removesuffix("/s") for name in result.columns["bristles"])
        found.append(Variable("bristles", ("time", "bristle"), result.bristles, own))
    if (contacts := result.contacts) is not None:
        points, vectors, n = ("time", "contact"), ("time", "contact", "axis"), len(contacts)
        found += [
            Variable("contact_force", vectors, contacts.force, ("N",) * 3 * n),
            Variable("contact_position", vectors, contacts.position, ("m",) * 3 * n),
            Variable("contact_penetration", points, contacts.penetration, ("m",) * n),
            Variable("contact_slip", vectors, contacts.slip, ("m/s",) * 3 * n),
            Variable("ground_stored", time, contacts.stored, ("J",)),
            Variable("ground_dissipated", time, contacts.dissipated, ("J",)),
        ]
    if (wrenches := result.wrenches) is not None:
        six = ("N m",) * 3 + ("N",) * 3
        pushed, n = ("time", "pushed", "six"), len(wrenches.names)
        found.append(Variable("wrenches", pushed, wrenches.values, six * n))
        found.append(Variable("wrench_work", time, wrenches.work, ("J",)))
    if result.desired is not None:
        a = np.asarray(result.desired.a, dtype=np.float64)
        a = a if a.shape == result.v.shape else np.full(result.v.shape, np.nan)
        found += [
            Variable("q_desired", q, result.desired.q, units["q"]),
            Variable("v_desired", v, result.desired.v, units["v"]),
            Variable("a_desired", v, a, units["a"]),
        ]
    if (loops := result.loops) is not None:
        of = ("time", "constraint")
        found += [
            Variable("loop_gap", of, loops.gap, loops.units),
            Variable("multipliers", of, loops.multipliers, loops.forces),
            Variable("constraint_power", time, loops.power, ("W",)),
        ]
    return found


def labels(result: Run) -> dict[str, tuple[str, ...]]:
    """The names along each dimension but time."""
    found = {"coordinate": result.columns["q"], "velocity": result.columns["v"]}
    if result.bristles is not None:
        found["bristle"] = result.columns["bristles"]
    if result.contacts is not None:
        found |= {"contact": result.contacts.names, "axis": ("x", "y", "z")}
    if result.wrenches is not None:
        found |= {"pushed": result.wrenches.names, "six": ("nx", "ny", "nz", "fx", "fy", "fz")}
    if result.loops is not None:
        found["constraint"] = result.loops.names
    return found


# ---- writing ----


def save(result: Run, path: str | os.PathLike[str]) -> None:
    """See Result.save."""
    from scipy.io import netcdf_file

    found = variables(result)
    for variable in found:
        if variable.values.nbytes > MOST_BYTES:
            size = f"{variable.name} has {variable.values.nbytes / 1e9:.1f} GB"
            raise SimulationError(
                f"{os.fspath(path)}: {size}; NetCDF-3 holds arrays up to 2.1 GB. Choose a larger "
                "dt_out"
            )
    robot = to_yaml(result.model)
    metadata = json.dumps(dict(result.metadata), ensure_ascii=False, allow_nan=False)
    texts = {
        "format": FORMAT,
        "title": f"simulation of {result.model.name}",
        "robot": robot,
        "metadata": metadata,
        "sha256": _digest(robot, metadata, {one.name: one.values for one in found}),
    }
    with whole_file(path, SimulationError) as file:
        data = netcdf_file(file, "w", version=2)
        _attributes(data, texts)
        data.format_version = np.int32(VERSION)
        data.createDimension("time", len(result))
        for dimension, names in labels(result).items():
            if names:
                data.createDimension(dimension, len(names))
                _labels(data, dimension, names)
        for variable in found:
            if variable.values.size:
                _variable(data, variable)
        data.flush()


def _variable(data: Any, variable: Variable) -> None:
    written = data.createVariable(variable.name, "d", variable.dimensions)
    written[:] = variable.values
    _attributes(written, variable.attributes)


def _labels(data: Any, dimension: str, names: tuple[str, ...]) -> None:
    """The names along a dimension, as UTF-8 text padded with zeros."""
    texts = [name.encode("utf-8", "replace") for name in names]
    length = max(1, *map(len, texts))
    size = f"{dimension}_name_length"
    data.createDimension(size, length)
    written = data.createVariable(dimension, "c", (dimension, size))
    written[:] = np.frombuffer(
        b"".join(text.ljust(length, b"\0") for text in texts), dtype="S1"
    ).reshape(len(texts), length)
    _attributes(written, {"long_name": f"name of each {dimension}", "_Encoding": "utf-8"})


def _attributes(thing: Any, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        setattr(thing, name, text.encode("utf-8"))


def _digest(robot: str, metadata: str, arrays: Mapping[str, Array]) -> str:
    """SHA-256 over the robot, the metadata and every array, in the byte order of the file."""
    digest = hashlib.sha256()
    for text in (robot, metadata):
        digest.update(hashlib.sha256(text.encode("utf-8")).digest())
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name], dtype=">f8")
        digest.update(f"{name} {values.shape}".encode())
        digest.update(values.data if values.size else b"")
    return digest.hexdigest()


# ---- reading ----


def open_result(path: str | os.PathLike[str], model: Robot | None = None) -> Run:
    """See Result.open."""
    given = os.fspath(path)
    text, meta, arrays = _read(given)
    robot = model if model is not None else _robot(text, given)
    if model is not None and to_yaml(model) != text:
        raise SimulationError(
            f"{given}: was made with another robot than {model.name!r}; their robot files differ"
        )
    t = arrays["time"]
    sizes = {"q": robot.nq, "v": robot.nv, "a": robot.nv, "tau": robot.nv}
    wide = {name: arrays.get(name, np.zeros((len(t), size))) for name, size in sizes.items()}
    desired = None
    if any(name.endswith("_desired") for name in arrays):
        desired = Motion(
            t, *(arrays.get(f"{n}_desired", np.zeros_like(wide[n])) for n in ("q", "v", "a"))
        )
    try:
        return Run(
            robot, t, wide["q"], wide["v"], wide["a"], wide["tau"],
            Work(arrays["actuator_work"], arrays["dissipated"]), meta["options"], meta["stats"],
            meta["status"], desired, _contacts(meta, arrays), _loops(robot, arrays), meta,
            arrays.get("bristles"), _wrenches(meta, arrays),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise SimulationError(f"{given}: the run in it is not whole: {error}") from None


def _contacts(meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> Contacts | None:
    """What the contact points felt, where the file has it."""
    who = meta.get("contacts")
    if who is None:
        return None
    points = ("force", "position", "penetration", "slip")
    found = {name: arrays[f"contact_{name}"] for name in points}
    found |= {name: arrays[f"ground_{name}"] for name in ("stored", "dissipated")}
    return Contacts(tuple(who["names"]), tuple(who["bodies"]), up=tuple(who["up"]), **found)


def _wrenches(meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> AppliedWrenches | None:
    if "wrenches" not in meta:
        return None
    names = tuple(meta["wrenches"]["names"])
    return AppliedWrenches(names, arrays["wrenches"], arrays["wrench_work"])


def _loops(model: Robot, arrays: Mapping[str, Array]) -> Loops | None:
    if "loop_gap" not in arrays:
        return None
    names = tuple(name for loop in model.loops for name in loop.names)
    own = (arrays[name] for name in ("loop_gap", "multipliers", "constraint_power"))
    return Loops(names, row_units(model), *own)


def _robot(text: str, file: str) -> Robot:
    try:
        return read_yaml(text, f"{file} (the robot in it)")
    except ModelError as error:
        raise SimulationError(
            f"{error}\nThis version cannot build the robot of this run; give it as "
            "Result.open(path, model=…)"
        ) from None


def _read(file: str) -> tuple[str, dict[str, Any], dict[str, Array]]:
    """Robot, metadata and arrays of a file, once it is known to be what was written."""
    try:
        info = os.stat(file)
        if not stat.S_ISREG(info.st_mode):
            raise SimulationError(
                f"{file} is {'a directory' if stat.S_ISDIR(info.st_mode) else 'no regular file'}; "
                "give a file that r.save wrote"
            )
        with open(file, "rb") as stream:
            _check_kind(file, stream.read(8))
            stream.seek(0)
            texts, version, arrays = _parse(stream)
    except FileNotFoundError:
        raise SimulationError(f"{file}: there is no such file") from None
    except SimulationError:
        raise
    except Exception as error:  # the reader raises whatever a broken header leads it to
        reason = (isinstance(error, OSError) and error.strerror) or "it is damaged or cut off"
        raise SimulationError(f"{file}: cannot be read as a result: {reason}") from None
    if texts.get("format") != FORMAT:
        raise SimulationError(f"{file}: a NetCDF file, but not one that r.save wrote")
    if version != VERSION:
        raise SimulationError(
            f"{file}: format {version} of a newer ramify; this version reads format {VERSION}"
        )
    try:
        robot, text, digest = (texts[key] for key in ("robot", "metadata", "sha256"))
    except KeyError as error:
        raise SimulationError(f"{file}: the attribute {error} is missing") from None
    if _digest(robot, text, arrays) != digest:
        raise SimulationError(
            f"{file}: its numbers or its texts are not those that were written (the digest differs)"
        )
    return robot, json.loads(text), arrays


def _check_kind(file: str, start: bytes) -> None:
    if start.startswith(b"\x89HDF\r\n"):
        raise SimulationError(
            f"{file}: a NetCDF-4 or HDF5 file; results are NetCDF-3 files that r.save wrote"
        )
    if not start.startswith((b"CDF\x01", b"CDF\x02")):
        kind = "is empty" if not start else "is not a NetCDF-3 file"
        raise SimulationError(f"{file} {kind}; give a file that r.save wrote")


def _parse(stream: IO[bytes]) -> tuple[dict[str, str], int, dict[str, Array]]:
    from scipy.io import netcdf_file

    data = netcdf_file(stream, "r", mmap=False)
    texts = {
        name: value.decode("utf-8")
        for name, value in data._attributes.items()
        if isinstance(value, bytes)
    }
    version = int(getattr(data, "format_version", 0))
    arrays = {
        name: np.array(v[:], dtype=np.float64)
        for name, v in data.variables.items()
        if v.typecode() == "d"
    }
    return texts, version, arrays
