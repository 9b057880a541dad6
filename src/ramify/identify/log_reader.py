"""Logs from files and objects: CSV, NumPy, Parquet, pandas, mappings of arrays, results of runs.

A column is known by what it is (``q``, ``tau``, ``v``, ``a``, ``current``) and whose it is: the
name or the number of a joint. ``q elbow [rad]``, ``tau_elbow``, ``q2``, ``effort.elbow`` are
understood.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import StateError
from ramify.core.messages import near, shown
from ramify.identify.measured_log import Log, checked_log
from ramify.lint.finding import Finding
from ramify.model.robot import Robot
from ramify.runs.run_record import Run

_WORDS: Final = {
    "t": ("t", "time", "stamp", "timestamp", "seconds"),
    "q": ("q", "pos", "position", "positions", "angle", "actual_q", "q_meas"),
    "v": ("v", "qd", "dq", "vel", "velocity", "velocities", "actual_qd"),
    "a": ("a", "qdd", "ddq", "acc", "acceleration", "accelerations"),
    "tau": ("tau", "torque", "torques", "effort", "efforts", "force", "tau_meas"),
    "current": ("i", "current", "currents", "actual_current"),
}
"""By quantity: how headers call it."""
_UNITS: Final = {
    "deg": math.pi / 180.0, "°": math.pi / 180.0, "degree": math.pi / 180.0,
    "degrees": math.pi / 180.0, "deg/s": math.pi / 180.0, "deg/s^2": math.pi / 180.0,
    "mm": 1e-3, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "mNm": 1e-3, "mN m": 1e-3, "Nmm": 1e-3,
    "mA": 1e-3, "kNm": 1e3, "kN m": 1e3,
}  # fmt: skip
_PLAIN_UNITS: Final = (
    "", "s", "rad", "m", "rad/s", "m/s", "rad/s^2", "m/s^2", "N m", "Nm", "N", "A", "N·m", "1",
)  # fmt: skip
_FULL_TURNS: Final = 4.0 * math.pi
_FAST: Final = 15.0
"""rad and rad/s beyond which angles of joints without limits look like degrees."""
_UNIT: Final = re.compile(r"\s*[\[(]([^\])]*)[\])]\s*$")
_WRENCH: Final = re.compile(r"^(?:wrench|contact)[ _.](.+)[ _.](nx|ny|nz|fx|fy|fz)$", re.IGNORECASE)


def read_log(robot: Robot, log: object, units: str | None = None) -> Log:
    """A log of the robot from a path (.csv, .npz, .parquet), a mapping of arrays, a pandas frame, a
    result of ``rf.simulate`` or a ``Log``.

    units: "rad" or "deg" of the angles, where headers do not say; by default radians, and an error
    where the numbers look like degrees. Raises StateError that names the column.
    """
    if units not in (None, "rad", "deg"):
        raise StateError(f"units {shown(units)} must be 'rad' or 'deg'")
    if isinstance(log, Log):
        return _in_radians(robot, checked_log(robot, log), units, False)
    if isinstance(log, Run):
        return checked_log(robot, _of_run(log))
    if isinstance(log, (str, os.PathLike)):
        return _of_file(robot, Path(log), units)
    if isinstance(log, Mapping):
        return _of_arrays(robot, log, "log", units)
    if hasattr(log, "columns") and hasattr(log, "to_numpy"):
        return _of_frame(robot, log, "log", units)
    raise StateError(
        f"a log is a path, a mapping of arrays, a pandas frame or a result; got {shown(log)}"
    )


def _of_run(run: Run) -> Log:
    wrenches = run.wrenches
    if run.contacts is not None or wrenches is not None:
        raise StateError(
            "a result with ground or wrenches does not say their moments at the bodies' origins; "
            "give a mapping with t, q, tau and wrenches={body: (T, 6)}"
        )
    return Log(run.t, run.q, run.tau, run.v, run.a, name="result")


def _of_file(robot: Robot, path: Path, units: str | None) -> Log:
    suffix = path.suffix.lower()
    if not path.exists():
        raise StateError(f"{path}: this file does not exist")
    if suffix == ".npz":
        with np.load(path, allow_pickle=False) as stored:
            return _of_arrays(robot, dict(stored), path.name, units)
    if suffix in (".parquet", ".pq"):
        try:
            import pandas
        except ImportError:
            raise StateError(
                f"{path}: Parquet needs pandas and pyarrow; install them with: "
                "pip install 'ramify[export]'"
            ) from None
        return _of_frame(robot, pandas.read_parquet(path), path.name, units)
    if suffix not in (".csv", ".txt", ".tsv"):
        raise StateError(f"{path}: the suffix must be .csv, .npz or .parquet")
    header, numbers = _csv(path)
    return _of_columns(robot, header, numbers, path.name, units)


def _csv(path: Path) -> tuple[list[str], Array]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        start = file.readline()
        separator = max(",;\t", key=start.count)
        header = [cell.strip() for cell in next(csv.reader([start], delimiter=separator))]
        if all(_is_number(cell) for cell in header):
            raise StateError(
                f"{path}: the first line must name the columns: t, q1 … qn, tau1 … taun"
            )
        try:
            numbers = np.loadtxt(file, delimiter=separator, ndmin=2, dtype=np.float64)
        except ValueError:
            numbers = np.genfromtxt(path, delimiter=separator, skip_header=1, dtype=np.float64)
            numbers = numbers.reshape(-1, len(header)) if numbers.size else numbers
    if numbers.ndim != 2 or numbers.shape[1] != len(header):
        raise StateError(
            f"{path}: {len(header)} columns are named and rows have {numbers.shape[-1]}"
        )
    return header, numbers


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _of_frame(robot: Robot, frame: Any, name: str, units: str | None) -> Log:
    header = [
        " ".join(str(x) for x in c if x) if isinstance(c, tuple) else str(c) for c in frame.columns
    ]
    numbers = frame.to_numpy(dtype=np.float64)
    if not any(_quantity(robot, label)[0] == "t" for label in header):
        header, numbers = ["t", *header], np.column_stack([frame.index.to_numpy(float), numbers])
    return _of_columns(robot, header, numbers, name, units)


def _of_arrays(robot: Robot, arrays: Mapping[str, Any], name: str, units: str | None) -> Log:
    parts = {key: np.asarray(arrays[key], dtype=np.float64) for key in arrays if key != "wrenches"}
    missing = [key for key in ("t", "q") if key not in parts]
    if missing and all(x.ndim == 1 for x in parts.values()):
        lengths = {len(x) for x in parts.values()}
        if len(lengths) == 1:
            return _of_columns(
                robot, list(parts), np.column_stack(list(parts.values())), name, units
            )
    if missing:
        raise StateError(f"{name} has no array {missing[0]!r}; it has {', '.join(parts)}")
    wrenches = dict(arrays.get("wrenches", {})) or {
        key.removeprefix("wrench_"): parts.pop(key)
        for key in list(parts)
        if key.startswith("wrench_")
    }
    t = parts["t"]
    shape = (len(t), robot.nv)
    tau = parts.get("tau", np.full(shape, np.nan))
    by_drive = [robot.velocities[j] for j in range(robot.nv)]
    if "current" not in parts and "tau" not in parts and not wrenches:
        raise StateError(f"{name} has neither tau nor current for {', '.join(by_drive[:6])}")
    found = Log(
        t, parts["q"], tau, parts.get("v"), parts.get("a"), parts.get("current"), wrenches, name
    )
    return _in_radians(robot, checked_log(robot, found), units, False)


def _quantity(robot: Robot, label: str) -> tuple[str, str, str]:
    """What a header is, whose, and in which unit; "" for a column of something else."""
    unit_match = _UNIT.search(label)
    unit = unit_match[1].strip() if unit_match else ""
    text = label[: unit_match.start()] if unit_match else label
    text = text.strip().removeprefix("/")
    if not unit and text.endswith("_deg"):
        unit, text = "deg", text.removesuffix("_deg")
    lower = text.lower()
    for key, words in _WORDS.items():
        for word in sorted(words, key=len, reverse=True):
            if lower == word:
                return key, "", unit
            if not lower.startswith(word) or key == "t":
                continue
            rest = text[len(word) :]
            whose = rest.lstrip(" _.[/").rstrip("]")
            if whose and (whose != rest or whose.isdigit()):
                return key, whose, unit
    for key, words in _WORDS.items():
        for word in words:
            for separator in (" ", "_", ".", "/"):
                if key != "t" and lower.endswith(f"{separator}{word}"):
                    return key, text[: -len(word) - 1], unit
    return "", text, unit


def _of_columns(
    robot: Robot, header: Sequence[str], numbers: Array, name: str, units: str | None
) -> Log:
    """A log from named columns."""
    labels = [_quantity(robot, label) for label in header]
    zero_based = _zero_based(labels)
    times = [i for i, (key, _, _) in enumerate(labels) if key == "t"]
    if not times:
        raise StateError(f"{name}: no column is called t or time; it has {', '.join(header[:12])}")
    t = _scaled(name, header[times[0]], labels[times[0]][2], numbers[:, times[0]], "t")
    rows = len(numbers)
    sizes = {"q": robot.coordinates} | dict.fromkeys(("v", "a", "tau", "current"), robot.velocities)
    arrays = {key: np.full((rows, len(names)), np.nan) for key, names in sizes.items()}
    said_units = False
    for i, (key, whose, unit) in enumerate(labels):
        if key not in arrays:
            continue
        place = _place(robot, name, header[i], sizes[key], whose, zero_based)
        if place is None:
            continue
        if not np.isnan(arrays[key][:, place]).all():
            raise StateError(f"{name}: two columns are {key} of {sizes[key][place]!r}")
        arrays[key][:, place] = _scaled(name, header[i], unit, numbers[:, i], key)
        said_units |= key == "q" and bool(unit)
    needed = ("q",) if np.isfinite(arrays["current"]).any() else ("q", "tau")
    wrenches = _wrenches(robot, header, numbers)
    for key in needed:
        if np.isnan(arrays[key]).all() and not (key == "tau" and wrenches):
            raise StateError(
                f"{name}: no column is {key} of a joint of {robot.name}; call them "
                f"{key}_{sizes[key][0]} … or {key}1 …; there are {', '.join(header[:12])}"
            )
    optional: dict[str, Any] = {
        key: x
        for key, x in arrays.items()
        if key in ("v", "a", "current") and not np.isnan(x).all()
    }
    log = Log(t, arrays["q"], arrays["tau"], **optional, wrenches=wrenches, name=name)
    return _in_radians(robot, checked_log(robot, log), units, said_units)


def _zero_based(labels: Sequence[tuple[str, str, str]]) -> bool:
    return any(whose == "0" for _, whose, _ in labels)


def _place(
    robot: Robot, name: str, label: str, names: Sequence[str], whose: str, zero_based: bool
) -> int | None:
    """The place of a column; None for one of something that the robot does not have."""
    if whose in names:
        return names.index(whose)
    if whose.isdigit():
        place = int(whose) - (not zero_based)
        if not 0 <= place < len(names):
            raise StateError(
                f"{name}: column {label!r} counts beyond the {len(names)} of {robot.name}"
            )
        return place
    if not whose:
        if len(names) == 1:
            return 0
        raise StateError(f"{name}: column {label!r} does not say of which joint it is")
    raise StateError(
        f"{name}: column {label!r}: {robot.name} has no {whose!r}{near(whose, list(names))}"
    )


def _scaled(name: str, label: str, unit: str, values: Array, key: str) -> Array:
    if unit in _PLAIN_UNITS:
        return values
    if unit not in _UNITS:
        raise StateError(
            f"{name}: column {label!r} has the unit {unit!r}; give SI units or degrees"
        )
    return values * _UNITS[unit]


def _wrenches(robot: Robot, header: Sequence[str], numbers: Array) -> dict[str, Array]:
    out: dict[str, Array] = {}
    for i, label in enumerate(header):
        match = _WRENCH.match(_UNIT.sub("", label).strip())
        if match:
            column = ("nx", "ny", "nz", "fx", "fy", "fz").index(match[2].lower())
            out.setdefault(match[1], np.zeros((len(numbers), 6)))[:, column] = numbers[:, i]
    return out


def _in_radians(robot: Robot, log: Log, units: str | None, said: bool) -> Log:
    """The log in radians; an error where its angles look like degrees and nothing says so."""
    turning = [
        i
        for i, j in zip(robot.layout.plain_q, robot.layout.plain_v, strict=True)
        if _turns(robot, j)
    ]
    if said or not turning:
        return log
    if units == "deg":
        from dataclasses import replace

        q = np.array(log.q)
        q[:, turning] = np.radians(q[:, turning])
        text = "the angles were given in degrees and are used in radians"
        return replace(log, q=q, notes=(*log.notes, Finding("note", log.name, "degrees", text)))
    if units is None:
        far = np.nanmax(np.abs(log.q[:, turning]), axis=0, initial=0.0)
        bound = np.maximum(np.abs(robot.lower), np.abs(robot.upper))[turning]
        fast = np.nanmax(np.abs(np.diff(log.q[:, turning], axis=0)), axis=0, initial=0.0) / log.dt
        turns = np.where(fast > _FAST, _FULL_TURNS, np.inf)  # a wheel may turn and turn
        limit = np.where(np.isfinite(bound), np.maximum(2.0 * bound, math.pi), turns)
        if (far > limit).any():
            i = int(np.argmax(far / limit))
            raise StateError(
                f"{log.name}: degrees: {robot.coordinates[turning[i]]!r} reaches {far[i]:.4g}, "
                "which looks like degrees; say units='deg', or units='rad' if these are radians"
            )
    return log


def _turns(robot: Robot, j: int) -> bool:
    steps = [step for joint in robot.joints for step in joint.steps]
    return steps[j].unit == "rad"
