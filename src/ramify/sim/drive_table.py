"""What a run asks of each drive: the figures by which motors and gears are chosen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import RamifyError
from ramify.core.html import table
from ramify.core.messages import near
from ramify.model.elements import Element
from ramify.model.machine import Actuator
from ramify.model.robot import Robot
from ramify.sim.run_record import Run


class Drive(NamedTuple):
    """One drive: N m or N, rad/s or m/s, W, J at the joint; N m, rad/s, A, V at the motor.

    ``force_peak`` and ``force_rms`` of the joint force, ``speed_peak``, ``speed_mean`` of |v|,
    ``power_peak`` and ``power_mean`` of the power given, ``energy`` given and ``regenerated`` taken
    back, ``gear_load``: the cubic mean of the force behind the rotor weighted by the speed, by
    which gears are chosen; ``force_share``, ``speed_share``: peaks by the rated effort and
    velocity, NaN where not given.

    ``output_peak``: of the force that the gear hands to the joint, without what accelerates the
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
    "drive", "units", "peak force", "RMS force", "peak speed", "mean speed", "peak power, W",
    "mean power, W", "energy, J", "regenerated, J", "gear load", "of effort", "of rated speed",
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
        known = [row.name for row in self.rows]
        raise RamifyError(f"there is no drive {name!r}{near(name, known)}")

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Drive]:
        return iter(self.rows)

    def to_dict(self) -> dict[str, dict[str, float | str | None]]:
        """Plain data for JSON: a mapping per drive, None where a figure is not known."""
        return {
            row.name: {
                key: None if isinstance(x, float) and math.isnan(x) else x
                for key, x in row._asdict().items()
            }
            for row in self.rows
        }

    @property
    def tables(self) -> list[tuple[Sequence[str], list[list[str]]]]:
        """(heads, cells) at the joints, and at the motors where one has a gear; columns of which
        nothing is known are left out.
        """
        split = len(AT_JOINT)
        rows = [row._replace(unit=_UNITS[row.unit]) for row in self.rows]
        found = [_known(AT_JOINT, [_cells(_settled(row)[:split]) for row in rows])]
        geared = [row for row in self.rows if row.gear != 1.0 or not math.isnan(row.current_peak)]
        if geared:
            found.append(_known(AT_MOTOR, [_cells((row.name, *row[split:])) for row in geared]))
        return found

    def __str__(self) -> str:
        return "\n\n".join(_plain(heads, cells) for heads, cells in self.tables)

    def _repr_html_(self) -> str:
        return "".join(
            table(heads, cells, [i for i in range(1, len(heads)) if heads[i] != "units"])
            for heads, cells in self.tables
        )


_UNITS: Final = {"N m": "N m, rad/s", "N": "N, m/s"}
_ROUNDING: Final = 1e-6  # of all energy that passes a drive: less in one direction is none


def _settled(row: Drive) -> Drive:
    """A row without the energy and power of rounding."""
    mean = row.power_mean if abs(row.power_mean) > _ROUNDING * row.power_peak else 0.0
    least = _ROUNDING * (row.energy + row.regenerated)
    given, back = (x if x > least else 0.0 for x in (row.energy, row.regenerated))
    return row._replace(energy=given, regenerated=back, power_mean=mean)


def _known(heads: Sequence[str], cells: list[list[str]]) -> tuple[Sequence[str], list[list[str]]]:
    kept = [i for i in range(len(heads)) if not cells or any(row[i] != _NONE for row in cells)]
    return [heads[i] for i in kept], [[row[i] for i in kept] for row in cells]


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


def driven_rates(robot: Robot) -> Iterator[tuple[int, str, str, Element]]:
    """(place in v, name, "rad" or "m", element) of every coordinate of an actuated joint."""
    for joint in robot.joints:
        if not joint.actuated or joint.floating:
            continue
        start = robot.joint_slice(joint.name).start
        for k, (name, element) in enumerate(zip(joint.velocities, joint.machine, strict=True)):
            yield start + k, name, joint.steps[k].unit, element


def dc_motor_of(robot: Robot, joint: str) -> tuple[float, float, Actuator] | None:
    """(K in N m/A, R in ohm, the actuator) of the DC motor that drives a joint, if one does."""
    for a in robot.actuators:
        (g, *more), (b, c, back) = a.gain, a.bias
        plain = not (any(more) or b or c) and g > 0.0 and back < 0.0 and back != -g
        if a.joint == joint and plain and not a.activation:
            return -back / g, -back / (g * g), a
    return None


def drives(run: Run) -> Drives:
    """The drives of a run: every coordinate of an actuated joint. Means and energies are integrals
    over the rows by the trapezoidal rule: choose ``dt_out`` accordingly.
    """
    return Drives(tuple(_drive(run, *row) for row in driven_rates(run.model)))


def _drive(run: Run, j: int, name: str, unit: str, element: Element) -> Drive:
    t, tau, v = run.t, run.tau[:, j], run.v[:, j]
    span = float(t[-1] - t[0]) or 1.0
    power, output = tau * v, tau - element.armature * run.a[:, j]

    def mean(x: Array) -> float:
        return float(np.trapezoid(x, t)) / span if len(t) > 1 else float(x[0])

    travel = mean(np.abs(v))
    load = (mean(np.abs(v) * np.abs(output) ** 3) / travel) ** (1.0 / 3.0) if travel else 0.0
    peak, speed, rms = float(np.abs(tau).max()), float(np.abs(v).max()), math.sqrt(mean(tau * tau))
    motor = dc_motor_of(run.model, name)
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
        float(power.max()), mean(power), mean(np.maximum(power, 0.0)) * span,
        mean(np.maximum(-power, 0.0)) * span, load,
        peak / element.effort if math.isfinite(element.effort) else math.nan,
        speed / element.velocity if math.isfinite(element.velocity) else math.nan,
        gear, float(np.abs(output).max()), peak / abs(gear), rms / abs(gear), speed * abs(gear),
        *electric,
    )  # fmt: skip
