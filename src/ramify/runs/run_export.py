"""Runs for other programs: CSV, ReDySim's text files, pandas and xarray."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ramify.control.controller import CONTROLLERS
from ramify.control.prescribed import Prescribed
from ramify.core.arrays import Array
from ramify.core.errors import RamifyError, SimulationError
from ramify.core.file_path import path_of
from ramify.documents.writing import whole_file, write_together
from ramify.kernels.make import kernel
from ramify.model.frame import align_z, rotation_about
from ramify.model.joint import AXES, Joint
from ramify.model.quaternions import rotation
from ramify.runs.run_record import Run
from ramify.runs.store import Variable, labels, variables


def _columns(result: Run) -> list[Variable]:
    """The run's arrays and the energies that follow from them."""
    energies = result.energy._asdict().items()
    return [*variables(result), *(Variable(name, x, ("J",)) for name, x in energies)]


def _names(result: Run, variable: Variable) -> tuple[str, ...]:
    if len(variable.dimensions) == 1:
        return ("",)
    along = [labels(result)[dimension] for dimension in variable.dimensions[1:]]
    return tuple(" ".join(names) for names in product(*along))


# ---- tables ----


def to_csv(result: Run, path: str | os.PathLike[str]) -> None:
    """See Result.to_csv. A column is headed by its quantity, its name and its unit: ``q hip.y1
    [rad]``.
    """
    header: list[str] = []
    blocks: list[Array] = []
    for variable in _columns(result):
        for name, unit in zip(_names(result, variable), variable.units, strict=True):
            header.append(f"{' '.join(filter(None, (variable.name, name)))} [{unit}]")
        blocks.append(variable.values.reshape(len(result), -1))
    with whole_file(path, SimulationError) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        table = csv.writer(text, lineterminator="\n")
        table.writerow(header)
        table.writerows(np.concatenate(blocks, axis=1).tolist())
        text.flush()
        text.detach()


def _extra(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise RamifyError(
            f"{package} is not installed; install it with: pip install 'ramify[data]'"
        ) from None


def to_pandas(result: Run) -> Any:
    """See Result.to_pandas. Units and metadata are in ``attrs``."""
    pandas = _extra("pandas")
    keys, columns, units = [], [], {}
    for variable in _columns(result)[1:]:
        values = variable.values.reshape(len(result), -1)
        for i, (name, unit) in enumerate(
            zip(_names(result, variable), variable.units, strict=True)
        ):
            keys.append((variable.name, name))
            columns.append(values[:, i])
            units[f"{variable.name} {name}".rstrip()] = unit
    index = pandas.Index(result.t, name="time")
    header = pandas.MultiIndex.from_tuples(keys, names=("quantity", "name"))
    frame = pandas.DataFrame(np.stack(columns, axis=1), index=index, columns=header)
    frame.attrs = {"units": units, "metadata": dict(result.metadata)}
    return frame


def run_dataset(result: Run) -> Any:
    """See Result.to_xarray. Each variable has units and a long name; the metadata are JSON in the
    attributes.
    """
    xarray = _extra("xarray")
    data: dict[str, Any] = {}
    coordinates: dict[str, Any] = {}
    for variable in _columns(result):
        where = coordinates if variable.name == "time" else data
        values = np.array(variable.values)
        where[variable.name] = (variable.dimensions, values, variable.attributes)
    named = {dimension: list(names) for dimension, names in labels(result).items()}
    texts = {
        "title": f"simulation of {result.model.name}",
        "metadata": json.dumps(dict(result.metadata), ensure_ascii=False),
    }
    return xarray.Dataset(data, coords={**coordinates, **named}, attrs=texts)


# ---- ReDySim ----


def to_redysim(result: Run, directory: str | os.PathLike[str]) -> list[Path]:
    """See Result.to_redysim. Numbers as C's %e writes them, a row per time:

    statevar: q, v and the energy of the actuators, AE = -W_act, with a ground GE, its energy, and
    then AE; of a prescribed motion on a fixed base, which is ReDySim's runinv, q, v and a;
    timevar: t; tor: tau of the joints, without that of a floating base, and for closed robots tau
    of the actuated joints followed by the multipliers λ (8.4); envar: PE, KE, AE and TE = PE + KE +
    AE plus losses, with a ground PE, KE, AE, TE and GE, GE, which TE includes, being what the
    ground has stored and dissipated; mtvar: linear momentum, and angular momentum about the world's
    origin; base, of a prescribed motion on a floating base: t and the base's six variables and
    their rates. A floating base, also one in a plane, is written as ReDySim's: place and the angles
    of Rz Rx Ry, and their rates.

    Raises SimulationError for ball joints, which ReDySim does not have, and where the angles of a
    base are at their gimbal lock.
    """
    base = [joint for joint in result.model.joints if _floats(result, joint)]
    q, v = _with_angles(result)
    written = np.ones(result.model.nv, dtype=bool)
    for joint in result.model.joints:
        passive = result.loops is not None and not joint.actuated
        written[result.model.joint_slice(joint.name)] = joint not in base and not passive
    forces = [result.tau[:, written], *([] if result.loops is None else [result.loops.multipliers])]
    energy, actuators = result.energy, -result.work.actuator
    total, ground = result.energy_balance.conserved, []
    if result.contacts is not None:
        ground.append(result.contacts.stored + result.contacts.dissipated)
    linear, angular = result.momentum
    about_origin = angular + np.cross(kernel(result.model, "center_of_mass")(result.q), linear)
    prescribed = _is_prescribed(result)
    runinv = prescribed and not base and result.contacts is None
    files = {
        "statevar.dat": np.column_stack([q, v, *([result.a] if runinv else [*ground, actuators])]),
        "timevar.dat": result.t[:, None],
        "tor.dat": np.concatenate(forces, axis=1),
        "envar.dat": np.column_stack([energy.potential, energy.kinetic, actuators, total, *ground]),
        "mtvar.dat": np.concatenate([linear, about_origin], axis=1),
    }
    if prescribed and base:
        files["base.dat"] = _of_base(result, q, v)
    folder = path_of(directory, SimulationError)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SimulationError(f"{folder}: cannot be made: {error.strerror}") from None
    parts = {
        folder / name: _text(rows, "" if name == "timevar.dat" else " ")
        for name, rows in files.items()
    }
    write_together(parts, SimulationError)
    return list(parts)


def _is_prescribed(result: Run) -> bool:
    """Whether the controller of a run moved its joints; results of the first format have it as a
    text.
    """
    control = result.options.get("control")
    if isinstance(control, Mapping):
        return bool(control.get(CONTROLLERS.key) == CONTROLLERS.word_of(Prescribed))
    return str(control).startswith("Prescribed(")


def _text(rows: Array, last: str) -> Iterable[bytes]:
    """Lines; ``last``: what follows the last number of each."""
    return (
        (" ".join(f"{x:e}" for x in row) + f"{last}\n").encode("ascii") for row in rows.tolist()
    )


def _of_base(result: Run, q: Array, v: Array) -> Array:
    """t, place and angles of the first floating base, and their rates; q, v: of all joints."""
    at = 0
    for joint in result.model.joints:
        if _floats(result, joint):
            break
        at += joint.dof
    return np.column_stack([result.t, q[:, at : at + 6], v[:, at : at + 6]])


def _floats(result: Run, joint: Joint) -> bool:
    """Whether a joint is a floating base: free, or in a plane and not driven."""
    plane = joint is result.model.bodies[0].joint and joint.kind == "planar" and not joint.actuated
    return plane or joint.floating


def _with_angles(result: Run) -> tuple[Array, Array]:
    """q and v (T, nv) with angles of Rz Rx Ry, and their rates, for every floating base."""
    q, v = [], []
    for joint in result.model.joints:
        of_q, of_v = (result.model.joint_slice(joint.name, of=of) for of in ("q", "v"))
        q_joint, v_joint = result.q[:, of_q], result.v[:, of_v]
        if joint.kind == "ball":
            raise SimulationError(
                f"joint {joint.name!r} is a ball joint; ReDySim has none, model it as three "
                "revolute joints"
            )
        if joint.kind == "planar" and _floats(result, joint):
            q_joint, v_joint = _in_space(joint, q_joint, v_joint, result.t)
        elif joint.kind == "free" or (joint.kind == "free_euler" and joint.sequence != "ZXY"):
            turned = _angles(joint, q_joint[:, 3:], v_joint[:, 3:], result.t)
            places = q_joint[:, :3], v_joint[:, :3]
            q_joint, v_joint = (np.hstack(pair) for pair in zip(places, turned, strict=True))
        q.append(q_joint)
        v.append(v_joint)
    return np.concatenate(q, axis=1), np.concatenate(v, axis=1)


def _in_space(joint: Joint, q: Array, v: Array, t: Array) -> tuple[Array, Array]:
    """Place and angles of Rz Rx Ry, and their rates, of a base in a plane."""
    axis = np.array(joint.axis)
    plane, turns = align_z(axis)[:, :2].T, axis[[2, 0, 1]]
    angles = [x[:, 2:] * turns for x in (q, v)]
    if np.count_nonzero(axis) > 1:  # no plane of two world axes
        angles = list(_angles(joint, q[:, 2:], v[:, 2:], t))
    return np.hstack([q[:, :2] @ plane, angles[0]]), np.hstack([v[:, :2] @ plane, angles[1]])


def _angles(joint: Joint, turn: Array, rate: Array, t: Array) -> tuple[Array, Array]:
    """(phi, theta, psi) of R = Rz(phi) Rx(theta) Ry(psi), continuous in time, and their rates."""
    R, w = _attitude(joint, turn, rate)
    theta = np.arcsin(np.clip(R[:, 2, 1], -1.0, 1.0))
    phi, psi = np.arctan2(-R[:, 0, 1], R[:, 1, 1]), np.arctan2(-R[:, 2, 0], R[:, 2, 2])
    cosine = np.cos(theta)
    locked = np.flatnonzero(cosine < 1e-6)
    if locked.size:
        at = f"t = {t[locked[0]]:.6g} s"
        raise SimulationError(
            f"joint {joint.name!r}: at {at} ReDySim's angles Rz Rx Ry are at their gimbal lock, "
            "the second is 90 degrees"
        )
    s, c = np.sin(psi), np.cos(psi)
    # w in the body's frame: R_y' (z of phi seen through Rx, x of theta), and y of psi
    phi_rate = (w[:, 2] * c - w[:, 0] * s) / cosine
    theta_rate = w[:, 0] * c + w[:, 2] * s
    rates = np.stack([phi_rate, theta_rate, w[:, 1] - np.sin(theta) * phi_rate], axis=1)
    return np.stack([np.unwrap(phi), theta, np.unwrap(psi)], axis=1), rates


def _attitude(joint: Joint, turn: Array, rate: Array) -> tuple[Array, Array]:
    """R (T, 3, 3) and the angular velocity in the body's frame (T, 3) of a floating base."""
    if joint.kind == "free":
        return rotation(turn), rate
    if joint.kind == "planar":
        R = np.stack([rotation_about(joint.axis, float(angle)) for angle in turn[:, 0]])
        return R, rate * joint.axis
    R = np.tile(np.eye(3), (len(turn), 1, 1))
    spin = np.zeros((len(turn), 3))
    for i, letter in enumerate(joint.sequence):
        step = np.stack([rotation_about(AXES[letter], float(angle)) for angle in turn[:, i]])
        R = R @ step
        spin = np.einsum("tij,ti->tj", step, spin) + np.outer(rate[:, i], AXES[letter])
    return R, spin
