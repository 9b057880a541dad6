"""Plots of a study: the distribution of each kept number and its dependence on each parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ramify.core.errors import SimulationError
from ramify.core.messages import near
from ramify.studies.ledger import Ledger
from ramify.studies.sensitivity_indices import pareto
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


@dataclass(frozen=True, eq=False)
class _Drawn:
    """What a figure of a study shows."""

    found: StudyTable
    done: Any
    names: list[str]
    parameters: list[str]
    title: str
    units: Mapping[str, str]


def _drawn(path: Path, columns: Sequence[str] | None) -> _Drawn:
    found = table(path)
    done = found["status"] == "done"
    if not done.any():
        raise SimulationError(f"{path}: no run is done yet")
    with Ledger(path) as ledger:
        varied = [name for name in ledger.fact("parameters") if np.ptp(found[name][done]) > 0.0]
        title, units = ledger.fact("study")["name"], ledger.fact("units", {})
    names = drawn_columns(path, found, columns)
    if not names:
        raise SimulationError(f"{path}: the study keeps no numbers to draw; add metrics under keep")
    return _Drawn(found, done, names, varied[:MOST_PARAMETERS], title, units)


_PLAIN: Final[dict[Any, Any]] = {
    "text.parse_math": False,  # a link may be named $x$
    "font.family": ["DejaVu Sans"],
    "axes.spines.right": False,
    "axes.spines.top": False,
}


def trade_offs(path: Path) -> Any:
    """A Matplotlib figure: every run as a line over its parameters and metrics (parallel
    coordinates), and the first two metrics over one another with the Pareto front, both the
    smaller the better. None where fewer than two axes or runs are there to show.
    """
    import matplotlib as mpl

    shown = _drawn(path, None)
    axes = [*shown.parameters, *shown.names[:6]]
    rows = np.stack([shown.found[name][shown.done] for name in axes], axis=1)
    rows = rows[np.isfinite(rows).all(axis=1)]
    axes = [name for name, spread in zip(axes, np.ptp(rows, axis=0), strict=True) if spread > 0.0]
    if len(rows) < 2 or len(axes) < 2:
        return None
    with mpl.rc_context(_PLAIN):
        return _trade_off_figure(shown, axes)


def _trade_off_figure(shown: _Drawn, axes: list[str]) -> Any:
    from matplotlib import colormaps

    numbers = {name: shown.found[name][shown.done] for name in axes}
    rows = np.stack(list(numbers.values()), axis=1)
    rows = rows[np.isfinite(rows).all(axis=1)]
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
        [f"{with_unit(name, shown.units)}\n{a:.3g} … {b:.3g}"
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
        panels[1].plot(a[front], b[front], "o-", ms=4, lw=1.2, color="#c2571a")
        panels[1].set_xlabel(with_unit(metrics[0], shown.units), fontsize=8)
        panels[1].set_ylabel(with_unit(metrics[1], shown.units), fontsize=8)
        _small_numbers(panels[1])
        panels[1].set_title("Pareto front, smaller is better", fontsize=8, loc="left", pad=12)
    return figure


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
    shown = _drawn(path, columns)
    with mpl.rc_context(_PLAIN):
        return _figure(shown)


def with_unit(name: str, units: Mapping[str, str]) -> str:
    """A name with its unit in brackets, where it has one."""
    return f"{name} [{units[name]}]" if units.get(name) else name


def _figure(shown: _Drawn) -> Any:
    found, done, names, units = shown.found, shown.done, shown.names, shown.units
    parameters = shown.parameters
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
    figure.suptitle(f"{shown.title}: {int(done.sum())} runs")
    return figure


_BLUE: Final = "#2f7fd1"


def _small_numbers(panel: Any) -> None:
    """Numbers at the axes, and the powers of ten beside them, in small letters."""
    panel.tick_params(labelsize=7)
    for axis in (panel.xaxis, panel.yaxis):
        axis.get_offset_text().set_fontsize(7)


def _dot(count: int) -> float:
    """The size of one of so many dots."""
    return 2.0 if count >= MANY else 3.0 if count >= 60 else 6.0


def _histogram(panel: Any, values: np.ndarray[Any, Any], title: str) -> None:
    panel.set_title(title, fontsize=8, loc="left")
    _small_numbers(panel)
    panel.set_ylabel("runs", fontsize=7)
    panel.yaxis.get_major_locator().set_params(integer=True)
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
    _small_numbers(panel)
    panel.ticklabel_format(useOffset=False)
    panel.locator_params(axis="x", nbins=5)  # long numbers must not touch
    many = x.size >= MANY
    panel.plot(
        x, y, ".", ms=_dot(x.size), alpha=0.25 if many else 0.6, color=_BLUE, rasterized=many
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
