"""What a run asks of each drive: the figures by which motors and gears are chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ramify.core.arrays import Array
from ramify.core.html import table
from ramify.sim.run_record import Run


class Drive(NamedTuple):
    """One drive, at the joint: N m or N, rad/s or m/s, W, J.

    ``force_peak`` and ``force_rms`` of the joint force, ``speed_peak``, ``speed_mean`` of |v|,
    ``power_peak`` and ``power_mean`` of the power given, ``energy`` given and ``regenerated`` taken
    back, ``gear_load``: the cubic mean of the force weighted by the speed, by which gears are
    chosen; ``force_share``, ``speed_share``: peaks by the rated effort and velocity, NaN where not
    given.
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


_HEADS = (
    "drive", "unit", "peak force", "RMS force", "peak speed", "mean speed", "peak power",
    "mean power", "energy", "regenerated", "gear load", "of effort", "of speed",
)  # fmt: skip


@dataclass(frozen=True)
class Drives:
    """A row per drive; print it to read it. Forces in N m or N, speeds in rad/s or m/s."""

    rows: tuple[Drive, ...]

    def __getitem__(self, name: str) -> Drive:
        return next(row for row in self.rows if row.name == name)

    def __len__(self) -> int:
        return len(self.rows)

    def to_dict(self) -> dict[str, dict[str, float | str | None]]:
        """Plain data for JSON: a mapping per drive, None where a rating is not given."""
        return {
            row.name: {
                key: None if isinstance(x, float) and math.isnan(x) else x
                for key, x in row._asdict().items()
            }
            for row in self.rows
        }

    @property
    def _cells(self) -> list[list[str]]:
        return [
            [x if isinstance(x, str) else "–" if math.isnan(x) else f"{x:.4g}" for x in row]
            for row in self.rows
        ]

    def __str__(self) -> str:
        lines = [list(_HEADS), *self._cells]
        widths = [max(len(line[i]) for line in lines) for i in range(len(_HEADS))]
        return "\n".join(
            "  ".join(
                cell.ljust(w) if i < 2 else cell.rjust(w)
                for i, (cell, w) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )

    def _repr_html_(self) -> str:
        return str(table(list(_HEADS), self._cells))


def drives(run: Run) -> Drives:
    """The drives of a run: every coordinate of an actuated joint. Means and energies are integrals
    over the rows by the trapezoidal rule: choose ``dt_out`` accordingly.
    """
    rows = []
    for joint in run.model.joints:
        if not joint.actuated or joint.kind in ("free", "free_euler"):
            continue
        start = run.model.joint_slice(joint.name).start
        for k, (name, element) in enumerate(zip(joint.velocities, joint.machine, strict=True)):
            tau, v = run.tau[:, start + k], run.v[:, start + k]
            ratings = element.effort, element.velocity
            rows.append(_drive(name, joint.steps[k].unit, run.t, tau, v, *ratings))
    return Drives(tuple(rows))


def _drive(
    name: str, unit: str, t: Array, tau: Array, v: Array, effort: float, velocity: float
) -> Drive:
    span = float(t[-1] - t[0]) or 1.0
    power = tau * v

    def mean(x: Array) -> float:
        return float(np.trapezoid(x, t)) / span if len(t) > 1 else float(x[0])

    travel = mean(np.abs(v))
    load = (mean(np.abs(v) * np.abs(tau) ** 3) / travel) ** (1.0 / 3.0) if travel else 0.0
    peak, speed = float(np.abs(tau).max()), float(np.abs(v).max())
    return Drive(
        name, "N m" if unit == "rad" else "N", peak, math.sqrt(mean(tau * tau)), speed, travel,
        float(power.max()), mean(power), mean(np.maximum(power, 0.0)) * span,
        mean(np.maximum(-power, 0.0)) * span, load,
        peak / effort if math.isfinite(effort) else math.nan,
        speed / velocity if math.isfinite(velocity) else math.nan,
    )  # fmt: skip
