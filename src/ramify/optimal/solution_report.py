"""The page of a solution: its motion beside the guess, costs by term, limits, gains, and the
progress of the solver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any, Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import RamifyError
from ramify.core.html import facts, html_table
from ramify.documents.writing import write_whole
from ramify.runs.recorder import drawn_run
from ramify.runs.run_record import Run
from ramify.view.folders import must_have_folder
from ramify.view.html_tables import card
from ramify.view.report import report_page

_SIZE: Final = (520, 200)
_MARGIN: Final = (56, 12, 14, 30)  # left, right, top, bottom
_FEW: Final = 40
"""Points that are marked."""
_COLOURS: Final = ("#1f77b4", "#d95f02", "#2a9d5c")


def write_solution_report(solution: Any, path: Path, title: str) -> Path:
    """Write the page of a solution."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise RamifyError(f"{path}: a report is an HTML file; let its name end in .html")
    must_have_folder(path)
    write_whole(path, solution_page(solution, title))
    return path


def solution_page(solution: Any, title: str = "") -> str:
    """The page as a text."""
    run = as_run(solution)
    robot = solution.problem.robot
    start = solution.q[:1] if solution.guess is None else solution.guess
    ghost = drawn_run(robot, solution.t, np.broadcast_to(start, solution.q.shape).copy())
    name = title or f"optimal motion of {robot.name}"
    kind = "good" if solution.converged else "bad"
    badge = f'<span class="badge {kind}">{escape(solution.reason)}</span>'
    return report_page(run, name, ghost, lead=_cards(solution), badges=badge)


def as_run(solution: Any) -> Run:
    """The trajectory as a run: forces are those of the step that begins at a row."""
    robot, drives = solution.problem.robot, list(solution.problem.step.driven.v)
    run = drawn_run(robot, solution.t, solution.q, solution.v)
    tau = np.zeros((len(solution.t), robot.nv))
    tau[:-1, drives], tau[-1, drives] = solution.u, solution.u[-1]
    rates = np.diff(solution.v, axis=0) / solution.dt[:, None]
    return replace(run, tau=tau, a=np.concatenate([rates, rates[-1:]]))


def _cards(solution: Any) -> list[str]:
    history = solution.progress
    cost, gap = history["cost"], history["gap"]
    outcome = facts(
        {
            "reason": solution.reason, "iterations": solution.iterations,
            "cost": f"{solution.cost:.6g}", "largest gap": f"{solution.gap:.2g}",
            "violation of constraints": f"{solution.violation:.2g}",
            "gradient by the controls, relative": f"{solution.gradient:.2g}",
            "duration": f"{solution.t[-1]:.4g} s",
        }
    )  # fmt: skip
    total = max(abs(solution.cost), 1e-300)
    terms = html_table(
        ("term", "cost", "share"),
        [(name, f"{x:.5g}", f"{100.0 * x / total:.1f} %") for name, x in solution.costs.items()],
        right=(1, 2),
    )
    out = [card("Outcome", outcome), card("Cost by term", terms), card("Limits", _limits(solution))]
    if len(cost):
        last = np.append(cost, solution.cost) if not solution.multipliers.size else cost
        charts = [
            chart("cost", [last], log=True),
            chart("largest gap", [gap], log=True),
            chart("step length", [history["length"]]),
            chart("regularisation", [history["regularisation"]], log=True),
        ]
        out.append(card("Progress over the iterations", "".join(charts), wide=True))
    sizes = np.sqrt((solution.K**2).sum(axis=(1, 2)))
    out.append(card("Size of the gains over the steps", chart("|K|", [sizes]), wide=True))
    return out


def _limits(solution: Any) -> str:
    """The range of every coordinate, velocity and force beside its limits."""
    problem, rows = solution.problem, []
    robot = problem.robot
    limits = [pair for joint in robot.joints for pair in joint.limits]
    for i, name in enumerate(robot.coordinates):
        bounds = limits[i] if len(limits) == robot.nq else (-np.inf, np.inf)
        rows.append(_range(f"q {name}", solution.q[:, i], bounds))
    for i, name in enumerate(robot.velocities):
        rows.append(_range(f"v {name}", solution.v[:, i], (-np.inf, np.inf)))
    for i, name in enumerate(problem.step.driven.names):
        rows.append(_range(f"u {name}", solution.u[:, i], (problem.low[i], problem.high[i])))
    return html_table(("quantity", "least", "largest", "limits"), rows, right=(1, 2, 3))


def _range(name: str, values: Array, bounds: tuple[float, float]) -> tuple[str, ...]:
    bounded = np.isfinite(bounds).any()
    words = f"{bounds[0]:.4g} … {bounds[1]:.4g}" if bounded else ""
    return name, f"{values.min():.4g}", f"{values.max():.4g}", words


def chart(title: str, curves: Sequence[Array], log: bool = False) -> str:
    """Curves over their places, as an SVG picture."""
    width, height = _SIZE
    left, right, top, bottom = _MARGIN
    shown = [np.where(y > 0.0, y, np.nan) if log else np.asarray(y) for y in curves]
    shown = [np.log10(y) for y in shown] if log else shown
    flat = np.concatenate(shown)
    if not np.isfinite(flat).any():
        return f'<p class="soft">{escape(title)}: zero throughout</p>'
    low, high = float(np.nanmin(flat)), float(np.nanmax(flat))
    if high - low < 1e-12 * (1.0 + abs(high)):
        low, high = low - 0.5, high + 0.5
    most = max(len(y) for y in shown) - 1
    parts = []
    for y, colour in zip(shown, _COLOURS, strict=False):
        points = [
            f"{left + (width - left - right) * i / max(most, 1):.1f},"
            f"{top + (height - top - bottom) * (high - value) / (high - low):.1f}"
            for i, value in enumerate(y)
            if np.isfinite(value)
        ]
        line = f'fill="none" stroke="{colour}" stroke-width="1.6"'
        parts.append(f'<polyline {line} points="{" ".join(points)}"/>')
        if len(points) < _FEW:
            places = (point.split(",") for point in points)
            parts += [f'<circle cx="{x}" cy="{y}" r="2.5" fill="{colour}"/>' for x, y in places]
    for value, place in ((high, top + 4), (low, height - bottom)):
        label = f"{10.0**value:.2g}" if log else f"{value:.3g}"
        parts.append(f'<text x="{left - 6}" y="{place}" text-anchor="end">{label}</text>')
    parts.append(f'<text x="{left}" y="{height - 8}">0</text>')
    parts.append(f'<text x="{width - right}" y="{height - 8}" text-anchor="end">{most}</text>')
    middle = f'x="{(left + width) / 2}" y="{height - 8}" text-anchor="middle"'
    parts.append(f"<text {middle}>{escape(title)}</text>")
    style = "font:11px system-ui;fill:currentColor;max-width:100%"
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" style="{style}" role="img" '
        f'aria-label="{escape(title)}">{"".join(parts)}</svg>'
    )
