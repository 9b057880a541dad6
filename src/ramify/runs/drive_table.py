"""The load of each drive in a run: the figures by which motors and gears are chosen."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import RamifyError
from ramify.core.html import html_table
from ramify.core.messages import near, shown
from ramify.documents.writing import whole_file
from ramify.model.driven import driven
from ramify.model.elements import Element
from ramify.model.machine import Actuator
from ramify.model.robot import Robot
from ramify.runs.run_record import Run


class Drive(NamedTuple):
    """One drive: N m or N, rad/s or m/s, W, J at the joint; N m, rad/s, A, V at the motor.

    ``force_peak`` and ``force_rms`` of the joint force, ``speed_peak``, ``speed_mean`` of |v|;
    ``power_peak``: the most that it gives, ``braking_peak``: the most that it takes back, both ≥ 0;
    ``power_mean`` of what it gives less what it takes back; ``energy`` given and ``regenerated``
    taken back, whose difference is its work as integrated with the run; ``gear_load``: the cubic
    mean of the force behind the rotor weighted by the speed, by which gears are chosen;
    ``force_share``, ``speed_share``: peaks by the rated effort and velocity, NaN where not given.

    ``output_peak``: of the force that the gear transmits to the joint, without what accelerates the
    rotor; ``motor_peak``, ``motor_rms`` of the motor's torque and ``motor_speed``: through the
    ``gear``. Of a joint with a DC motor ``current_peak`` (A), ``voltage_peak`` (V) and
    ``copper_loss`` (J), else NaN.
    """

    name: str
    unit: str
    force_peak: float
    force_rms: float
    speed_peak: float
    speed_mean: float
    power_peak: float
    braking_peak: float
    power_mean: float
    energy: float
    regenerated: float
    gear_load: float
    force_share: float
    speed_share: float
    gear: float = 1.0
    output_peak: float = math.nan
    motor_peak: float = math.nan
    motor_rms: float = math.nan
    motor_speed: float = math.nan
    current_peak: float = math.nan
    voltage_peak: float = math.nan
    copper_loss: float = math.nan


AT_JOINT: Final = (
    "drive", "units", "peak force", "RMS force", "peak speed", "mean speed", "peak driving, W",
    "peak braking, W", "mean power, W", "energy, J", "regenerated, J", "gear load", "of effort",
    "of rated speed",
)  # fmt: skip
AT_MOTOR: Final = (
    "motor", "gear", "gear output", "peak torque, N m", "RMS torque, N m", "peak speed, rad/s",
    "peak current, A", "peak voltage, V", "copper loss, J",
)  # fmt: skip


@dataclass(frozen=True)
class Drives:
    """A row per drive; print it to read it. Forces in N m or N, speeds in rad/s or m/s."""

    rows: tuple[Drive, ...]

    def __getitem__(self, name: str) -> Drive:
        for row in self.rows:
            if row.name == name:
                return row
        names = [row.name for row in self.rows]
        raise RamifyError(f"there is no drive {name!r}{near(name, names)}")

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Drive]:
        return iter(self.rows)

    def to_dict(self) -> dict[str, dict[str, float | str | None]]:
        """Plain data for JSON: a mapping per drive, None for a figure that does not apply."""
        return {
            row.name: {
                key: None if isinstance(x, float) and math.isnan(x) else x
                for key, x in row._asdict().items()
            }
            for row in self.rows
        }

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a row per drive, headed by the names of the figures as in ``Drive``; a figure that
        does not apply is empty. Numbers read back to the last bit.
        """
        with whole_file(path, RamifyError) as file:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            written = csv.writer(text, lineterminator="\n")
            written.writerow(Drive._fields)
            written.writerows(self.to_dict()[row.name].values() for row in self.rows)
            text.flush()
            text.detach()

    @property
    def tables(self) -> list[tuple[Sequence[str], list[list[str]]]]:
        """(heads, cells) at the joints, and at the motors where one has a gear; empty columns are
        left out.
        """
        split = len(AT_JOINT)
        rows = [row._replace(unit=_UNITS[row.unit]) for row in self.rows]
        tables = [_filled(AT_JOINT, [_cells(_without_rounding(row)[:split]) for row in rows])]
        geared = [row for row in self.rows if row.gear != 1.0 or not math.isnan(row.current_peak)]
        if geared:
            cells = [_cells((row.name, *row[split:])) for row in geared]
            tables.append(_filled(AT_MOTOR, cells))
        return tables

    def __str__(self) -> str:
        return "\n\n".join(_plain(heads, cells) for heads, cells in self.tables)

    def _repr_html_(self) -> str:
        return "".join(
            html_table(heads, cells, [i for i in range(1, len(heads)) if heads[i] != "units"])
            for heads, cells in self.tables
        )


_UNITS: Final = {"N m": "N m, rad/s", "N": "N, m/s"}
_ROUNDING: Final = 1e-6  # of all energy that passes a drive: less in one direction is none


def _without_rounding(row: Drive) -> Drive:
    """A row without the energy and power of rounding."""
    largest = max(row.power_peak, row.braking_peak)
    most, least, mean = (
        x if abs(x) > _ROUNDING * largest else 0.0
        for x in (row.power_peak, row.braking_peak, row.power_mean)
    )
    passed = _ROUNDING * (row.energy + row.regenerated)
    energy, back = (x if x > passed else 0.0 for x in (row.energy, row.regenerated))
    return row._replace(
        power_peak=most, braking_peak=least, power_mean=mean, energy=energy, regenerated=back
    )


def _filled(heads: Sequence[str], cells: list[list[str]]) -> tuple[Sequence[str], list[list[str]]]:
    columns = [i for i in range(len(heads)) if not cells or any(row[i] != _NONE for row in cells)]
    return [heads[i] for i in columns], [[row[i] for i in columns] for row in cells]


_NONE: Final = "–"


def _cells(row: Sequence[str | float]) -> list[str]:
    return [x if isinstance(x, str) else _NONE if math.isnan(x) else f"{x:.4g}" for x in row]


def _plain(heads: Sequence[str], cells: list[list[str]]) -> str:
    lines = [list(heads), *cells]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    return "\n".join(
        "  ".join(
            cell.rjust(w) if i and heads[i] != "units" else cell.ljust(w)
            for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def works(run: Run) -> Array:
    """J (T, nv): the work of each joint force since the first row, as integrated with the run; of a
    run that does not have it, by the trapezoidal rule over its rows.
    """
    if run.drive_work is not None:
        return run.drive_work
    power = run.tau * run.v
    pieces = 0.5 * (power[1:] + power[:-1]) * np.diff(run.t)[:, None]
    return np.concatenate([np.zeros((1, run.model.nv)), np.cumsum(pieces, axis=0)])


def driven_rates(run: Run) -> Iterator[tuple[int, str, str, Element]]:
    """(place in v, name, "rad" or "m", element) of every coordinate of an actuated joint, and of
    any other on which a joint force acted.
    """
    chosen = {*driven(run.model).v, *np.flatnonzero(run.tau.any(axis=0)).tolist()}
    for joint in run.model.joints:
        start = run.model.joint_slice(joint.name).start
        for k, (name, element) in enumerate(zip(joint.velocities, joint.machine, strict=True)):
            if start + k in chosen:
                yield start + k, name, joint.steps[k].unit, element


def dc_motor_of(robot: Robot, joint: str) -> tuple[float, float, Actuator] | None:
    """(K in N m/A, R in ohm, the actuator) of the DC motor that drives a joint, if one does."""
    for a in robot.actuators:
        (g, *more), (b, c, back) = a.gain, a.bias
        plain = not (any(more) or b or c) and g > 0.0 and back < 0.0 and back != -g
        if a.joint == joint and plain and not a.activation:
            return -back / g, -back / (g * g), a
    return None


def drives(run: Run, *others: Run) -> Drives:
    """The drives of a run, or of several one after the other: see Result.drives."""
    for other in others:
        if not isinstance(other, Run):
            raise RamifyError(f"drives takes runs (results of simulate); got {shown(other)}")
        if (other.model.velocities, other.units) != (run.model.velocities, run.units):
            raise RamifyError(
                f"a table over several runs needs the same joints in each: {run.model.name!r} and "
                f"{other.model.name!r} differ"
            )
    runs = (run, *others)
    rows = {row[0]: row for one in runs[::-1] for row in driven_rates(one)}
    return Drives(tuple(_drive(runs, *rows[j]) for j in sorted(rows)))


def _drive(runs: Sequence[Run], j: int, name: str, unit: str, element: Element) -> Drive:
    span = sum(float(run.t[-1] - run.t[0]) for run in runs)
    rest = 1.0 / sum(len(run) for run in runs)  # runs of one row: means over the rows

    def joined(column: Callable[[Run], Array]) -> Array:
        return np.concatenate([column(run) for run in runs])

    def mean(x: Array) -> float:
        if not span:
            return float(x.sum()) * rest
        ends = np.cumsum([len(run) for run in runs])[:-1]
        pairs = zip(np.split(x, ends), runs, strict=True)
        return float(sum(np.trapezoid(part, run.t) for part, run in pairs)) / span

    tau, v, a = (
        joined(lambda r: r.tau[:, j]),
        joined(lambda r: r.v[:, j]),
        joined(lambda r: r.a[:, j]),
    )
    power, output = tau * v, tau - element.armature * a
    flows = np.array([_flows(run.t, works(run)[:, j], run.tau[:, j] * run.v[:, j]) for run in runs])
    energy, regenerated = flows.sum(axis=0).tolist()
    travel = mean(np.abs(v))
    load = (mean(np.abs(v) * np.abs(output) ** 3) / travel) ** (1.0 / 3.0) if travel else 0.0
    peak, speed, rms = float(np.abs(tau).max()), float(np.abs(v).max()), math.sqrt(mean(tau * tau))
    motor = dc_motor_of(runs[0].model, name)
    gear = element.gear if motor is None else motor[2].gear[0]
    electric = (math.nan, math.nan, math.nan)
    if motor is not None:
        K, R, _ = motor
        current = tau / (gear * K)
        voltage = R * current + K * gear * v
        peaks = float(np.abs(current).max()), float(np.abs(voltage).max())
        electric = (*peaks, R * mean(current * current) * span)
    return Drive(
        name, "N m" if unit == "rad" else "N", peak, rms, speed, travel,
        float(np.maximum(power, 0.0).max()), float(np.maximum(-power, 0.0).max()),
        (energy - regenerated) / span if span else mean(power), energy, regenerated, load,
        peak / element.effort if math.isfinite(element.effort) else math.nan,
        speed / element.velocity if math.isfinite(element.velocity) else math.nan,
        gear, float(np.abs(output).max()), peak / abs(gear), rms / abs(gear), speed * abs(gear),
        *electric,
    )  # fmt: skip


_SMOOTH: Final = 0.03
"""Where power that changes sign linearly between two rows misses their work by less of all the
energy that passes, it tells the energy in each direction in between.
"""


def _flows(t: Array, work: Array, power: Array) -> tuple[float, float]:
    """(driving, regenerated), J, from work (T,) and power (T,) at times t: from row to row, whose
    work is exact. Where the power changes sign between two rows, it is a line; where it jumps forth
    and back within them, only the difference of both can be computed, and that is counted.
    """
    gained, dt, (before, after) = np.diff(work), np.diff(t), (power[:-1], power[1:])
    turns = before * after < 0.0
    size = np.where(turns, np.abs(before) + np.abs(after), 1.0)
    passed = 0.5 * dt * (before**2 + after**2) / size
    smooth = turns & (np.abs(gained - 0.5 * dt * (before + after)) <= _SMOOTH * passed)
    halved = np.where(smooth, 0.5 * (passed + gained), gained)
    positive = np.maximum(halved, np.maximum(gained, 0.0))
    return float(positive.sum()), float((positive - gained).sum())
