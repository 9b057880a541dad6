"""Runs in files: NetCDF-3 (classic, 64-bit offsets), which any NetCDF reader opens, written whole
or not at all.

A file stands alone. Dimensions ``time``, ``coordinate`` and ``velocity``, on a ground also
``contact`` and ``axis``; variables with ``units``, ``long_name`` and, where columns differ,
``column_units``; the names of the columns as text along their dimension; as global attributes the
robot (its robot file's text), the metadata (JSON) and a digest of all other bytes. Nothing in it
is code.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import SimulationError
from ramify.documents.writing import whole_path
from ramify.files.robot_writer import refuse_large, to_yaml
from ramify.runs.netcdf import file_digest
from ramify.runs.run_record import Run

FORMAT: Final = "ramify result"
VERSION: Final = 2
"""Since format 2 the controller of a run is a document, where it was a text, its repr, and the
digest is that of the whole file, where it was ``first_digest``.
"""
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
    "drive_work": "work of each joint force since the first row",
    "bristles": "deflection of the bristles of LuGre friction",
    "contact_force": "force of the ground on each contact point, world axes",
    "contact_normal_load": "force of the ground on each contact point along the ground's normal",
    "contact_position": "place of each contact point in the world",
    "contact_penetration": "depth of each contact point in the ground",
    "contact_slip": "velocity of each contact point along the ground",
    "contact_mode": "mode of each contact: 0 open, 1 sticking, 2 sliding",
    "contact_impulse": "impulse of each contact in the last step: normal and two tangents",
    "contact_iterations": "iterations of the last step",
    "contact_residual": "largest velocity by which the last step misses a row",
    "scheme_work": "energy that the steps of hard contact have added since the first row",
    "ground_stored": "elastic energy in the ground",
    "ground_dissipated": "energy lost in the ground since the first row",
    "wrenches": "external wrench [moment; force] on each pushed link, world axes",
    "wrench_work": "work of the external wrenches since the first row",
    "q_desired": "desired joint coordinates",
    "v_desired": "desired joint velocities",
    "a_desired": "desired joint accelerations",
    "loop_gap": "gaps of the loops",
    "multipliers": "constraint forces of the loops",
    "constraint_power": "power of the constraint forces",
    "kinetic": "kinetic energy",
    "potential": "potential energy, zero at the world's origin",
    "total": "kinetic and potential energy",
}
"""What each variable of a file or table is."""


DIMENSIONS: Final[Mapping[str, tuple[str, ...]]] = (
    dict.fromkeys(
        ("time", "actuator_work", "dissipated", "ground_stored", "ground_dissipated",
         "contact_iterations", "contact_residual", "scheme_work", "wrench_work",
         "constraint_power", "kinetic", "potential", "total"), ("time",),
    )
    | dict.fromkeys(("q", "q_desired"), ("time", "coordinate"))
    | dict.fromkeys(
        ("v", "a", "tau", "drive_work", "v_desired", "a_desired"), ("time", "velocity")
    )
    | dict.fromkeys(
        ("contact_normal_load", "contact_penetration", "contact_mode"), ("time", "contact")
    )
    | dict.fromkeys(
        ("contact_force", "contact_position", "contact_slip", "contact_impulse"),
        ("time", "contact", "axis"),
    )
    | dict.fromkeys(("loop_gap", "multipliers"), ("time", "constraint"))
    | {"bristles": ("time", "bristle"), "wrenches": ("time", "pushed", "six")}
)  # fmt: skip
"""The dimensions of each variable of a file."""


class Variable(NamedTuple):
    """An array of a run: name, values, and a unit per column (or one)."""

    name: str
    values: Array
    units: tuple[str, ...]

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The names of the axes of its values."""
        return DIMENSIONS[self.name]

    @property
    def attributes(self) -> dict[str, str]:
        """Units and meaning, as files and datasets have them."""
        if len(set(self.units)) == 1:
            return {"units": self.units[0], "long_name": _ABOUT[self.name]}
        several = {"units": "see column_units", "column_units": ", ".join(self.units)}
        return several | {"long_name": _ABOUT[self.name]}


def variables(result: Run) -> list[Variable]:
    """The arrays of a run."""
    units = result.units
    out = [
        Variable("time", result.t, ("s",)),
        Variable("q", result.q, units["q"]),
        Variable("v", result.v, units["v"]),
        Variable("a", result.a, units["a"]),
        Variable("tau", result.tau, units["tau"]),
        Variable("actuator_work", result.work.actuator, ("J",)),
        Variable("dissipated", result.work.dissipated, ("J",)),
    ]
    if result.drive_work is not None:
        out.append(Variable("drive_work", result.drive_work, ("J",) * result.model.nv))
    if result.bristles is not None:
        unit = dict(zip(result.columns["v"], units["v"], strict=True))
        of_bristles = tuple(unit[name].removesuffix("/s") for name in result.columns["bristles"])
        out.append(Variable("bristles", result.bristles, of_bristles))
    if (contacts := result.contacts) is not None:
        n = len(contacts)
        out += [
            Variable("contact_force", contacts.force, ("N",) * 3 * n),
            Variable("contact_normal_load", contacts.normal_load, ("N",) * n),
            Variable("contact_position", contacts.position, ("m",) * 3 * n),
            Variable("contact_penetration", contacts.penetration, ("m",) * n),
            Variable("contact_slip", contacts.slip, ("m/s",) * 3 * n),
            Variable("ground_stored", contacts.stored, ("J",)),
            Variable("ground_dissipated", contacts.dissipated, ("J",)),
        ]
        units_of_steps = {
            "mode": ("1",) * n, "impulse": ("N s",) * 3 * n, "iterations": ("1",),
            "residual": ("m/s",),
        }  # fmt: skip
        for name, units_of in units_of_steps.items():
            values: Array | None = getattr(contacts, name)
            if values is not None:
                out.append(Variable(f"contact_{name}", values, units_of))
    if result.scheme_work is not None:
        out.append(Variable("scheme_work", result.scheme_work, ("J",)))
    if (wrenches := result.wrenches) is not None:
        six = ("N m",) * 3 + ("N",) * 3
        n = len(wrenches.names)
        out.append(Variable("wrenches", wrenches.values, six * n))
        out.append(Variable("wrench_work", wrenches.work, ("J",)))
    if result.desired is not None:
        a = np.asarray(result.desired.a, dtype=np.float64)
        a = a if a.shape == result.v.shape else np.full(result.v.shape, np.nan)
        out += [
            Variable("q_desired", result.desired.q, units["q"]),
            Variable("v_desired", result.desired.v, units["v"]),
            Variable("a_desired", a, units["a"]),
        ]
    if (loops := result.loops) is not None:
        out += [
            Variable("loop_gap", loops.gap, loops.units),
            Variable("multipliers", loops.multipliers, loops.forces),
            Variable("constraint_power", loops.power, ("W",)),
        ]
    return out


def labels(result: Run) -> dict[str, tuple[str, ...]]:
    """The names along each dimension but time."""
    out = {"coordinate": result.columns["q"], "velocity": result.columns["v"]}
    if result.bristles is not None:
        out["bristle"] = result.columns["bristles"]
    if result.contacts is not None:
        out |= {"contact": result.contacts.names, "axis": ("x", "y", "z")}
    if result.wrenches is not None:
        out |= {"pushed": result.wrenches.names, "six": ("nx", "ny", "nz", "fx", "fy", "fz")}
    if result.loops is not None:
        out["constraint"] = result.loops.names
    return out


# ---- writing ----


def save_run(result: Run, path: str | os.PathLike[str]) -> None:
    """See Result.save."""
    from scipy.io import netcdf_file

    arrays = variables(result)
    for variable in arrays:
        if variable.values.nbytes > MOST_BYTES:
            size = f"{variable.name} has {variable.values.nbytes / 1e9:.1f} GB"
            raise SimulationError(
                f"{os.fspath(path)}: {size}; NetCDF-3 holds arrays up to 2.1 GB. Choose a larger "
                "dt_out"
            )
    remedy = "Save its table with to_csv, or simulate the robot of"
    robot = to_yaml(result.model)
    refuse_large(robot, result.model, path, remedy, SimulationError)
    metadata = json.dumps(dict(result.metadata), ensure_ascii=False, allow_nan=False)
    texts = {
        "format": FORMAT,
        "title": f"simulation of {result.model.name}",
        "robot": robot,
        "metadata": metadata,
        "sha256": "0" * 64,
    }
    with whole_path(path, SimulationError) as passing, open(passing, "w+b") as file:
        data = netcdf_file(file, "w", version=2)
        _attributes(data, texts)
        data.format_version = np.int32(VERSION)
        data.createDimension("time", len(result))
        for dimension, names in labels(result).items():
            if names:
                data.createDimension(dimension, len(names))
                _labels(data, dimension, names)
        for variable in arrays:
            if variable.values.size:
                _variable(data, variable)
        data.flush()
        digest, place = file_digest(file, file.seek(0, os.SEEK_END), "sha256")
        file.seek(place)
        file.write(digest.encode())


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


def first_digest(robot: str, metadata: str, arrays: Mapping[str, Array]) -> str:
    """The digest of format 1: SHA-256 over the robot, the metadata and every array, in the byte
    order of the file.
    """
    digest = hashlib.sha256()
    for text in (robot, metadata):
        digest.update(hashlib.sha256(text.encode("utf-8")).digest())
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name], dtype=">f8")
        digest.update(f"{name} {values.shape}".encode())
        digest.update(values.data if values.size else b"")
    return digest.hexdigest()
