"""Plots of a study: the distribution of each kept number and its dependence on each parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import SimulationError
from ramify.core.messages import near
from ramify.core.names import names_of
from ramify.studies.ledger import Ledger
from ramify.studies.sensitivity_indices import pareto
from ramify.studies.study_export import StudyTable, study_columns
from ramify.view.figures import blank

MOST_COLUMNS: Final = 12
MOST_PARAMETERS: Final = 6
MANY: Final = 300
"""More points than this are drawn as one bitmap."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """What figures show: the table, which runs are done, numbers drawn, parameters, units."""

    table: StudyTable
    done: Any
    names: list[str]
    parameters: list[str]
    title: str
    units: Mapping[str, str]

    @property
    def varied(self) -> list[str]:
        """The parameters that differ among the runs that are done."""
        return [name for name in self.parameters if np.ptp(self.table[name][self.done]) > 0.0]

    def label(self, name: str) -> str:
        """A name with its unit in brackets, where it has one."""
        return f"{name} [{self.units[name]}]" if self.units.get(name) else name


def drawn(path: Path, columns: Sequence[str] | None = None) -> Drawn:
    """The columns to draw: the given ones, else the metrics, else the last state. Raises
    SimulationError for unknown ones.
    """
    values = study_columns(path)
    with Ledger(path) as ledger:
        recorded, parameters = ledger.fact("columns"), ledger.fact("parameters")
        title, units = ledger.fact("study")["name"], ledger.fact("units")
    columns = None if columns is None else names_of("columns", columns)
    for name in columns or ():
        if name not in recorded:
            raise SimulationError(f"the study has no column {name!r}{near(name, recorded)}")
    metrics = [name for name in recorded if not name.startswith("final.")]
    names = list(columns or metrics or recorded)[:MOST_COLUMNS]
    return Drawn(values, values["status"] == "done", names, parameters, title, units)


_PLAIN: Final[dict[Any, Any]] = {
    "text.parse_math": False,  # a link may be named $x$
    "font.family": ["DejaVu Sans"],
    "axes.spines.right": False,
    "axes.spines.top": False,
}


def trade_offs(shown: Drawn) -> Any:
    """A Matplotlib figure: every run as a line over its parameters and metrics (parallel
    coordinates), and the first two metrics over one another with the Pareto front, both the
    smaller the better. None where fewer than two axes or runs are there to show.
    """
    import matplotlib as mpl

    axes = [*shown.varied[:MOST_PARAMETERS], *shown.names[:6]]
    rows = np.stack([shown.table[name][shown.done] for name in axes], axis=1)
    rows = rows[np.isfinite(rows).all(axis=1)]
    spread = np.ptp(rows, axis=0) > 0.0
    axes, rows = (
        [name for name, varies in zip(axes, spread, strict=True) if varies],
        rows[:, spread],
    )
    if len(rows) < 2 or len(axes) < 2:
        return None
    with mpl.rc_context(_PLAIN):
        return _trade_off_figure(shown, axes, rows)


def _trade_off_figure(shown: Drawn, axes: list[str], rows: Array) -> Any:
    from matplotlib import colormaps

    metrics = [name for name in shown.names if name in axes][:2]
    wide = 1.25 * len(axes) + 1.0
    two = len(metrics) == 2
    figure = blank(wide + (3.6 if two else 0.0), 3.2)
    panels = figure.subplots(
        1, 1 + two, squeeze=False, width_ratios=[wide, 3.6] if two else [wide]
    )[0]
    low, high = rows.min(axis=0), rows.max(axis=0)
    share = (rows - low) / (high - low)
    leading = axes.index(metrics[0]) if metrics else len(axes) - 1
    colours = colormaps["viridis"](0.05 + 0.8 * share[:, leading])
    for line, colour in zip(share, colours, strict=True):
        panels[0].plot(
            range(len(axes)), line, lw=0.8, alpha=0.7, color=colour, rasterized=len(rows) > MANY
        )
    panels[0].set_xticks(
        range(len(axes)),
        [f"{shown.label(name)}\n{a:.3g} … {b:.3g}"
         for name, a, b in zip(axes, low, high, strict=True)],
        fontsize=7, **({} if len(axes) <= 6 else {"rotation": 20, "ha": "right"}),
    )  # fmt: skip
    for k in range(len(axes)):
        panels[0].axvline(k, color="#b9c2cc", lw=0.8, zorder=0)
    panels[0].spines["left"].set_visible(False)
    panels[0].set_yticks([])
    panels[0].set_title(f"all runs; colour: {axes[leading]}", fontsize=8, loc="left")
    if two:
        a, b = (rows[:, axes.index(name)] for name in metrics)
        front = pareto(np.stack([a, b], axis=1))
        panels[1].plot(
            a, b, ".", ms=_dot(len(a)), alpha=0.6, color=_BLUE, rasterized=len(rows) > MANY
        )
        panels[1].plot(a[front], b[front], "o-", ms=4, lw=1.2, color=_ORANGE)
        panels[1].set_xlabel(shown.label(metrics[0]), fontsize=8)
        panels[1].set_ylabel(shown.label(metrics[1]), fontsize=8)
        _small_numbers(panels[1])
        panels[1].set_title("Pareto front, smaller is better", fontsize=8, loc="left", pad=12)
    return figure


def plot_study(path: Path, columns: Sequence[str] | None = None) -> Any:
    """A Matplotlib figure, a row per number: its histogram, then one panel per parameter. Raises
    SimulationError if no run is done yet or Matplotlib is missing.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        raise SimulationError(
            "plots need Matplotlib; install it with: pip install 'ramify[plot]'"
        ) from None
    shown = drawn(path, columns)
    if not shown.done.any():
        raise SimulationError(f"{path}: no run is done yet")
    if not shown.names:
        raise SimulationError(f"{path}: the study keeps no numbers to draw; add metrics under keep")
    with mpl.rc_context(_PLAIN):
        return _figure(shown)


def _figure(shown: Drawn) -> Any:
    table, done, parameters = shown.table, shown.done, shown.varied[:MOST_PARAMETERS]
    shape = (len(shown.names), 1 + len(parameters))
    figure = blank(3.0 * shape[1] + 0.4, 2.1 * shape[0] + 0.6)
    panels = figure.subplots(*shape, squeeze=False)
    for row, name in zip(panels, shown.names, strict=True):
        values = table[name][done]
        finite = np.isfinite(values)
        _histogram(row[0], values[finite], shown.label(name))
        for panel, parameter in zip(row[1:], parameters, strict=True):
            _dependence(panel, table[parameter][done][finite], values[finite])
    for panel, parameter in zip(panels[-1][1:], parameters, strict=True):
        panel.set_xlabel(shown.label(parameter), fontsize=8)
    figure.suptitle(f"{shown.title}: {int(done.sum())} runs")
    return figure


_BLUE: Final = "#2f7fd1"
_ORANGE: Final = "#c2571a"


def _small_numbers(panel: Any) -> None:
    """Numbers at the axes, and the powers of ten beside them, in small letters."""
    panel.tick_params(labelsize=7)
    for axis in (panel.xaxis, panel.yaxis):
        axis.get_offset_text().set_fontsize(7)


def _dot(count: int) -> float:
    """The size of a dot among ``count`` dots."""
    return 2.0 if count >= MANY else 3.0 if count >= 60 else 6.0


def _histogram(panel: Any, values: np.ndarray[Any, Any], title: str) -> None:
    panel.set_title(title, fontsize=8, loc="left")
    _small_numbers(panel)
    panel.set_ylabel("runs", fontsize=7)
    panel.yaxis.get_major_locator().set_params(integer=True)
    if values.size and np.ptp(values) > 1e-12 * np.abs(values).max():
        panel.hist(values, bins=min(40, max(5, int(np.sqrt(values.size)))), color=_BLUE)
    elif values.size:
        middle = {"ha": "center", "va": "center", "transform": panel.transAxes}
        panel.text(0.5, 0.5, f"{values[0]:.6g} in all runs", fontsize=8, **middle)


def _dependence(panel: Any, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> None:
    """All runs, and the median in tenths of the parameter."""
    _small_numbers(panel)
    panel.ticklabel_format(useOffset=False)
    panel.locator_params(axis="x", nbins=5)  # long numbers must not touch
    many = x.size >= MANY
    panel.plot(
        x, y, ".", ms=_dot(x.size), alpha=0.25 if many else 0.6, color=_BLUE, rasterized=many
    )
    groups, part = np.unique(x, return_inverse=True)
    if groups.size > 20:
        if x.size < 50:
            return
        edges = np.quantile(x, np.linspace(0.0, 1.0, 11))
        part = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, 9)
    middle = [(np.median(x[part == i]), np.median(y[part == i])) for i in np.unique(part)]
    if middle:
        panel.plot(*zip(*middle, strict=True), "-", lw=1.2, color=_ORANGE)
