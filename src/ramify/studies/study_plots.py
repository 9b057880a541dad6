"""Plots of a study: the distribution of each kept number and its dependence on each parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ramify.core.errors import SimulationError
from ramify.core.messages import near
from ramify.studies.ledger import Ledger
from ramify.studies.study_export import StudyTable, table
from ramify.view.figures import blank

MOST_COLUMNS: Final = 12
MOST_PARAMETERS: Final = 6
MANY: Final = 300
"""More points than this are drawn as one bitmap."""


def drawn_columns(path: Path, found: StudyTable, columns: Sequence[str] | None) -> list[str]:
    """The columns to draw: the given ones, else the metrics, else the last state. Raises
    SimulationError for unknown ones.
    """
    with Ledger(path) as ledger:
        kept = ledger.fact("columns")
    for name in columns or ():
        if name not in kept:
            raise SimulationError(f"the study has no column {name!r}{near(name, kept)}")
    metrics = [name for name in kept if not name.startswith("final.")]
    return list(columns or metrics or kept)[:MOST_COLUMNS]


def plot(path: Path, columns: Sequence[str] | None = None) -> Any:
    """A Matplotlib figure, a row per number: its histogram, then one panel per parameter. Raises
    SimulationError if no run is done yet or Matplotlib is missing.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        raise SimulationError(
            "plots need Matplotlib; install it with: pip install 'ramify[plot]'"
        ) from None
    found = table(path)
    done = found["status"] == "done"
    if not done.any():
        raise SimulationError(f"{path}: no run is done yet")
    with Ledger(path) as ledger:
        parameters = [
            name for name in ledger.fact("parameters") if np.ptp(found[name][done]) > 0.0
        ][:MOST_PARAMETERS]
        title, units = ledger.fact("study")["name"], ledger.fact("units", {})
    names = drawn_columns(path, found, columns)
    if not names:
        raise SimulationError(f"{path}: the study keeps no numbers to draw; add metrics under keep")
    plain: dict[Any, Any] = {
        "text.parse_math": False,
        "font.family": ["DejaVu Sans"],
        "axes.spines.right": False,
        "axes.spines.top": False,
    }
    with mpl.rc_context(plain):  # a link may be named $x$
        return _figure(found, done, names, parameters, title, units)


def with_unit(name: str, units: Mapping[str, str]) -> str:
    """A name with its unit in brackets, where it has one."""
    return f"{name} [{units[name]}]" if units.get(name) else name


def _figure(
    found: StudyTable,
    done: Any,
    names: Sequence[str],
    parameters: Sequence[str],
    title: str,
    units: Mapping[str, str],
) -> Any:
    shape = (len(names), 1 + len(parameters))
    figure = blank(3.0 * shape[1] + 0.4, 2.1 * shape[0] + 0.6)
    panels = figure.subplots(*shape, squeeze=False)
    for row, name in zip(panels, names, strict=True):
        values = found[name][done]
        finite = np.isfinite(values)
        _histogram(row[0], values[finite], with_unit(name, units))
        for panel, parameter in zip(row[1:], parameters, strict=True):
            _dependence(panel, found[parameter][done][finite], values[finite])
    for panel, parameter in zip(panels[-1][1:], parameters, strict=True):
        panel.set_xlabel(with_unit(parameter, units), fontsize=8)
    figure.suptitle(f"{title}: {int(done.sum())} runs")
    return figure


_BLUE: Final = "#2f7fd1"


def _histogram(panel: Any, values: np.ndarray[Any, Any], title: str) -> None:
    panel.set_title(title, fontsize=8, loc="left")
    panel.tick_params(labelsize=7)
    panel.set_ylabel("runs", fontsize=7)
    if values.size and np.ptp(values) > 1e-12 * np.abs(values).max():
        panel.hist(values, bins=min(40, max(5, int(np.sqrt(values.size)))), color=_BLUE)
    elif values.size:
        panel.text(
            0.5,
            0.5,
            f"{values[0]:.6g} in all runs",
            ha="center",
            va="center",
            transform=panel.transAxes,
            fontsize=8,
        )


def _dependence(panel: Any, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> None:
    """All runs, and the median in tenths of the parameter."""
    panel.tick_params(labelsize=7)
    panel.ticklabel_format(useOffset=False)
    panel.locator_params(axis="x", nbins=5)  # long numbers must not touch
    many = x.size >= MANY
    panel.plot(
        x, y, ".", ms=2 if many else 3, alpha=0.25 if many else 0.6, color=_BLUE, rasterized=many
    )
    different = np.unique(x)
    if different.size <= 20:
        panel.plot(
            different, [np.median(y[x == one]) for one in different], "-", lw=1.2, color="#c2571a"
        )
    elif x.size >= 50:
        edges = np.quantile(x, np.linspace(0.0, 1.0, 11))
        part = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, 9)
        middle = [
            (np.median(x[part == i]), np.median(y[part == i]))
            for i in range(10)
            if (part == i).any()
        ]
        panel.plot(*zip(*middle, strict=True), "-", lw=1.2, color="#c2571a")
