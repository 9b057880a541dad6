"""The page of a fit: verdicts, torques, residuals, parameters, validation."""

from __future__ import annotations

import base64
import io
from html import escape
from pathlib import Path
from typing import Any, Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import RamifyError
from ramify.core.html import facts, html_table
from ramify.core.messages import pretty
from ramify.core.version import __version__
from ramify.documents.writing import write_whole
from ramify.identify.fit_tables import parameter_table, validation_table, verdict_table
from ramify.identify.fit_validation import validation
from ramify.identify.fit_verdicts import torque_unit
from ramify.identify.log_checks import segments
from ramify.identify.log_reader import read_log
from ramify.identify.regression import Regression, regression
from ramify.view.figures import THEMES, panels, short, style
from ramify.view.folders import must_have_folder

_LONGEST: Final = 20.0  # s of torques that a panel shows
_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;"
    "color:#1a2b3c;background:#fff}h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}"
    "table{border-collapse:collapse;font-size:.85rem}th,td{padding:.15rem .6rem;text-align:left;"
    "border-bottom:1px solid #dfe6ee}.number{text-align:right;white-space:nowrap}"
    "th{vertical-align:bottom}.wide{overflow-x:auto}img{max-width:100%;min-width:40rem}"
    ".good{color:#1f6b33}.bad{color:#b3261e}.badge{font-weight:600}"
    "@media(prefers-color-scheme:dark){body{background:#14191f;color:#dfe6ee}"
    "img{filter:invert(.91) hue-rotate(180deg);background:#fff;border-radius:6px}"
    "th,td{border-color:#333d48}.good{color:#7ecb8f}.bad{color:#ff8a80}}"
    "@media print{body{max-width:none;margin:0;font-size:10pt}td,th{font-size:8pt}img{min-width:0}}"
)


def write_fit_report(fit: Any, path: str | Path, validate: object = None) -> Path:
    """See Fit.report."""
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise RamifyError(f"{path}: a report is an HTML file; let its name end in .html")
    must_have_folder(path)
    write_whole(path, fit_page(fit, validate))
    return path


def fit_page(fit: Any, validate: object = None) -> str:
    """The page as a text."""
    name = fit.nominal.name
    badge = ("good", "passed") if fit.passed else ("bad", "not to be trusted")
    parts = [
        f"<h1>Identification of {escape(name)}</h1>",
        f"<p class='badge {badge[0]}'>{badge[1]}</p>",
        _section("Verdicts", verdict_table(fit)) if fit.verdicts else "",
        _section("The fit", facts(_facts(fit))),
        _picture("Torques", _torques(fit.problem, fit.problem.solution.beta), _TORQUES),
    ]
    if validate is not None:
        log = segments(fit.nominal, read_log(fit.nominal, validate))
        other = regression(fit.base, [log], fit.band, fit.problem.delay)
        checked = fit.validate(validate)
        parts += [
            _section("Validation on another log", validation_table(checked)),
            _picture(
                "Torques of the other log", _torques(other, fit.problem.solution.beta), _TORQUES
            ),
        ]
    parts += [
        _section("Noise of each joint", _noise_table(fit)),
        _picture("Spectra of residuals", _spectra(fit), _SPECTRA),
        _section("Base parameters", parameter_table(fit)),
        _section("Links", _links_table(fit)) if fit.passed else "",
    ]
    body = "\n".join(part for part in parts if part)
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>Identification of {escape(name)}</title><style>{_STYLE}</style></head>\n"
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


_TORQUES: Final = (
    "Measured (line) and predicted (dashes) torque after the filter; rows that are left out, near "
    "reversals and where torques are clipped, are shaded."
)
_SPECTRA: Final = (
    "Amplitude of what the fit leaves, over frequency, against the noise (dashes) that the "
    "standard errors assume: a residual above it follows the motion."
)


def _facts(fit: Any) -> dict[str, object]:
    problem, base = fit.problem, fit.base
    used, rows = int(problem.keep.sum()), len(problem.keep)
    delay = f"{1e3 * fit.delay.value:.3g} ± {1e3 * fit.delay.error:.2g} ms"
    applied = (
        "corrected"
        if problem.delay
        else "not distinguishable from zero"
        if fit.delay.error
        else "not fitted"
    )
    gap = base.least_independent / max(base.largest_dependent, 1e-300)
    out: dict[str, object] = {
        "robot": f"{fit.nominal.name}, {fit.nominal.nv} coordinates",
        "logs": ", ".join(log.parts[0].name for log in fit.logs),
        "filter": f"-6 dB at {fit.band:g} Hz, the same for coordinates, torques and friction",
        "rows": f"{used} of {rows}, {100 * used / rows:.0f} %",
        "unknowns": f"{base.unknowns.size}, friction {base.unknowns.friction}",
        "base parameters": f"{len(base)}, of bodies {base.rigid}; rank gap {gap:.1g}",
        "delay of torques": f"{delay}, {applied}",
    }
    if fit.dropped:
        out["eliminated"] = ", ".join(fit.dropped)
    if fit.torque_constants is not None:
        out["torque constants"] = ", ".join(
            f"{k} {x:.4g} N m/A" for k, x in fit.torque_constants.values.items()
        )
    out["made with"] = f"ramify {__version__}"
    return out


def _noise_table(fit: Any) -> str:
    white = fit.problem.autocorrelation
    rows = []
    for x in validation(fit.problem, fit.problem.solution.beta, fit.noise):
        unit = pretty(torque_unit(fit.problem, x.joint))
        rows.append((x.joint, x.torque, x.rmse, x.near_reversals, white[x.joint], unit))
    columns = ("joint", "RMS torque", "RMSE", "RMSE near reversals", "autocorrelation", "unit")
    return html_table(columns, rows, right=(1, 2, 3, 4))


def _links_table(fit: Any) -> str:
    links, robot = fit.links, fit.robot
    rows = [
        (
            body.name, old.mass, body.mass, ", ".join(f"{x:.4g}" for x in body.com),
            ", ".join(f"{x:.3g}" for x in np.linalg.eigvalsh(body.inertia)), float(least),
        )
        for old, body, least in zip(fit.nominal.bodies, robot.bodies, links.smallest, strict=True)
    ]  # fmt: skip
    text = (
        f"<p>Links that matter could have, nearest the nominal robot; χ² grows by "
        f"{links.chi2_increase:.3g} for {len(fit.base)} base parameters. Only the base parameters "
        "above are measured: how they are shared among links is the nominal robot's.</p>"
    )
    columns = (
        "link",
        "nominal mass, kg",
        "mass, kg",
        "mass centre, m",
        "principal moments, kg m²",
        "smallest eigenvalue",
    )
    return text + html_table(columns, rows, right=(1, 2, 5))


def _section(title: str, content: str) -> str:
    region = f"class='wide' tabindex='0' role='region' aria-label='{escape(title)}'"
    return f"<h2>{escape(title)}</h2><div {region}>{content}</div>"


def _picture(title: str, figure: Any, caption: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", dpi=100)
    data = base64.b64encode(buffer.getvalue()).decode()
    image = f"<img alt='{escape(title)}' src='data:image/svg+xml;base64,{data}'>"
    return _section(title, f"<p>{escape(caption)}</p>{image}")


def _torques(problem: Regression, beta: Array) -> Any:
    """Measured and predicted torques of the first part of the first log."""
    theme, part = THEMES["light"], problem.parts[0]
    measured, predicted = problem.per_part(problem.y)[0], problem.per_part(problem.X @ beta)[0]
    shown = part.t <= part.t[0] + _LONGEST
    with style(theme):
        figure, axes = panels(len(part.names), 2)
        for r, (name, panel) in enumerate(zip(part.names, axes, strict=True)):
            t = part.t[shown]
            panel.plot(t, measured[shown, r], color=theme.lines[0], linewidth=1.2)
            panel.plot(
                t, predicted[shown, r], color=theme.lines[1], linewidth=1.0, linestyle=(0, (3, 2))
            )
            low, high = panel.get_ylim()
            panel.fill_between(
                t, low, high, where=~part.keep[shown, r], color=theme.ink, alpha=0.08, linewidth=0
            )
            panel.set_ylim(low, high)
            panel.set_title(short(name), loc="left")
            panel.set_ylabel(torque_unit(problem, name))
            panel.set_xlabel("t, s")
        return figure


def _spectra(fit: Any) -> Any:
    problem, theme = fit.problem, THEMES["light"]
    part = problem.parts[0]
    residuals = problem.per_part(problem.residuals(problem.solution.beta))[0]
    step = part.filter.stride * part.filter.dt
    f = np.fft.rfftfreq(len(part.t), step)[1:]
    with style(theme):
        figure, axes = panels(len(part.names), 3)
        for r, (name, panel) in enumerate(zip(part.names, axes, strict=True)):
            used = np.where(part.keep[:, r], residuals[:, r], 0.0)
            share = max(float(part.keep[:, r].mean()), 1e-9)
            amplitude = np.abs(np.fft.rfft(used))[1:] / np.sqrt(len(used) * share)
            panel.plot(f, _smoothed(amplitude), color=theme.lines[0], linewidth=1.0)
            panel.axhline(fit.noise[name], color=theme.alarm, linewidth=1.0, linestyle=(0, (3, 2)))
            panel.set_ylim(bottom=0.0)
            panel.set_title(short(name), loc="left")
            panel.set_xlabel("f, Hz")
            panel.set_ylabel(torque_unit(problem, name))
        return figure


def _smoothed(x: Array, by: int = 7) -> Array:
    """The root mean square over neighbours."""
    if len(x) < by:
        return x
    return np.sqrt(np.convolve(np.pad(x**2, by // 2, mode="edge"), np.ones(by) / by, mode="valid"))
