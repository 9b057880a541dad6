"""Force over speed of every drive of a run, against what the drive can give: the Drives tab of a
report, and ``r.plot("drives")``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import RamifyError
from ramify.core.messages import pretty
from ramify.model.elements import Element
from ramify.model.units import force_unit
from ramify.runs.drive_table import dc_motor_of, driven_rates
from ramify.runs.run_record import Run
from ramify.view.curves import Chart, Curve
from ramify.view.figures import DASHED, PANELS, Theme, panels, refuse_many, short, unit_text


def envelope(run: Run, j: int, name: str, element: Element) -> Array | None:
    """(corners, 2), speed and force: the border of what a drive can give, by effort and rated speed
    or by the voltage of its DC motor; NaN between two lines where no speed is rated; None where
    neither is known.
    """
    back, effort = element.efforts
    motor = dc_motor_of(run.model, name)
    reached = float(np.abs(run.v[:, j]).max())
    if motor is not None and math.isfinite(motor[2].command[1]):
        K, R, a = motor
        gear, volts = abs(a.gear[0]), a.command[1]
        fastest = min(max(volts / (K * gear), reached), element.velocity)
        speed = np.linspace(-fastest, fastest, 41)
        upper = np.minimum(gear * K * (volts - K * gear * speed) / R, effort)
        lower = np.maximum(gear * K * (-volts - K * gear * speed) / R, back)
        border = np.concatenate([np.c_[speed, upper], np.c_[speed, lower][::-1]])
        return np.concatenate([border, border[:1]])
    if not math.isfinite(effort):
        return None
    most = element.velocity
    if not math.isfinite(most):
        most, gap = 1.1 * reached or 1.0, (math.nan, math.nan)
        return np.array([(-most, back), (most, back), gap, (-most, effort), (most, effort)])
    return np.array([(-most, back), (most, back), (most, effort), (-most, effort), (-most, back)])


def drive_charts(run: Run) -> list[Chart]:
    """The charts of the Drives tab: force over speed, and power over time."""
    if not np.any(run.tau):
        return []
    charts, power = [], []
    together: dict[str, list[Curve]] = {}
    rates = list(driven_rates(run))
    for j, name, unit, element in rates:
        tau, v = run.tau[:, j], run.v[:, j]
        power.append(Curve(name, tau * v))
        curve = Curve(name, tau, x=v)
        if len(rates) > PANELS:  # these share a chart per unit, without limits
            together.setdefault(unit, []).append(curve)
            continue
        border = envelope(run, j, name, element)
        curves = [curve]
        if border is not None:
            rows = np.minimum(np.arange(len(run)) * len(border) // len(run), len(border) - 1)
            rows[-1] = len(border) - 1
            limits = border[rows]
            curves.append(Curve("what it can give", limits[:, 1], x=limits[:, 0], dashed=True))
        charts.append(_chart(f"{name}: force over speed", unit, curves))
    charts += [_chart("Force over speed", unit, curves) for unit, curves in together.items()]
    return [*charts, Chart("Power of the drives", "W", ("Drives",), tuple(power))]


def _chart(title: str, unit: str, curves: list[Curve]) -> Chart:
    force = pretty(force_unit(unit))
    return Chart(title, force, ("Drives",), tuple(curves), across=("v", f"{unit}/s"))


def torque_speed(run: Run, chosen: list[int], theme: Theme) -> Any:
    """A panel per drive: its force over its speed, and dashed what it can give."""
    own = [row for row in driven_rates(run) if row[0] in chosen]
    if not own:
        raise RamifyError("no drive is chosen: none of these joints is actuated")
    refuse_many(len(own), "drives", "drives")
    figure, axes = panels(len(own))
    for panel, (j, name, unit, element) in zip(axes, own, strict=True):
        border = envelope(run, j, name, element)
        if border is not None:
            panel.plot(*border.T, color=theme.lines[1], label="limits", **DASHED)
        panel.plot(run.v[:, j], run.tau[:, j], color=theme.lines[0], linewidth=1.3, label="run")
        panel.set_title(short(name), loc="left")
        panel.set_xlabel(f"speed, {unit_text(f'{unit}/s')}")
        panel.set_ylabel(f"force, {unit_text(run.units['tau'][j])}")
        panel.locator_params(axis="x", nbins=5)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper")
    return figure
