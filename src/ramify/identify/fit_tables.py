"""A fit as text and as HTML."""

from __future__ import annotations

from typing import Any

from ramify.core.html import html_table
from ramify.core.messages import pretty


def fit_text(fit: Any) -> str:
    """The verdicts and the parameters of a fit."""
    state = "passed" if fit.passed else "NOT to be trusted"
    names = ", ".join(part.parts[0].name for part in fit.logs) or "no log"
    lines = [
        f"Identification of {fit.nominal.name} from {names}: {state}",
        f"{len(fit.base)} base parameters ({fit.base.rigid} of bodies), band {fit.band:g} Hz, "
        f"delay {1e3 * fit.problem.delay:.3g} ms",
        *(f"  {verdict}" for verdict in fit.verdicts),
        f"{'parameter':32} {'value':>12} {'error':>10} {'nominal':>12} {'change':>8}  unit",
    ]
    for x in fit.parameters:
        change = f"{x.change:+.1f} σ" if abs(x.change) < 1e4 else "–"
        numbers = f"{x.value:12.5g} {x.error:10.2g} {x.nominal:12.5g} {change:>8}"
        lines.append(f"{x.name[:32]:32} {numbers}  {x.unit}")
    for name, speed in fit.stribeck_speeds.items():
        lines.append(f"{f'Stribeck speed[{name}]'[:32]:32} {speed:12.5g}")
    noise = ", ".join(f"{name} {x:.3g}" for name, x in fit.noise.items())
    return "\n".join([*lines, f"noise of the filtered torques: {noise}"])


def parameter_table(fit: Any) -> str:
    rows = [
        (
            x.group, x.value, f"± {x.error:.2g}", x.nominal,
            f"{x.change:+.1f}" if abs(x.change) < 1e4 else "–", pretty(x.unit),
        )
        for x in fit.parameters
    ]  # fmt: skip
    columns = ("base parameter", "value", "standard error", "nominal", "change, σ", "unit")
    return html_table(columns, rows, right=(1, 2, 3, 4))


def verdict_table(fit: Any) -> str:
    rows = [(v.level, v.code, v.where, v.message) for v in fit.verdicts]
    return html_table(("level", "verdict", "where", "what it means"), rows)


def validation_table(validation: Any) -> str:
    rows = [(x.joint, x.rmse, x.near_reversals, x.torque, x.ratio) for x in validation]
    columns = ("joint", "RMSE", "RMSE near reversals", "RMS torque", "RMSE / noise of the fit")
    return html_table(columns, rows, right=(1, 2, 3, 4))


def fit_html(fit: Any) -> str:
    return verdict_table(fit) + parameter_table(fit)
