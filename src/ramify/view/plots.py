"""Plots with Matplotlib, an optional dependency that is imported when a plot is made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ramify.view.figures import SVG, THEMES, blank, save_picture, style, together

PANELS = 12
"""Up to so many coordinates each get a panel of their own; more share one."""

LINE, INK = THEMES["light"].lines[0], THEMES["light"].ink
"""The colours of a curve and of everything else, which in a page becomes the page's own text
colour.
"""


def plot_torques(
    t: ArrayLike,
    tau: ArrayLike,
    names: Sequence[str],
    units: Sequence[str],
    path: str | Path,
    *,
    title: str = "",
) -> None:
    """Write a plot of joint torques tau (T, n) over the times t (T,) in s. The file's suffix names
    the format.
    """
    with style(more=SVG):
        save_picture(_torques(t, tau, names, units, title), path, dpi=150)


def _torques(
    t: ArrayLike, tau: ArrayLike, names: Sequence[str], units: Sequence[str], title: str = ""
) -> Any:
    time, values = np.asarray(t), np.asarray(tau)
    n = values.shape[1]
    if n > PANELS:
        figure, panel = together(time, values, "viridis")
        panel.set_ylabel(", ".join(dict.fromkeys(units)))
        panel.set_title(title or f"{n} joints, first (dark) to last (light)", loc="left")
        return figure
    columns = min(3, n)
    rows = math.ceil(n / columns)
    figure = blank(3.4 * columns, 2.2 * rows + 0.3)
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True).ravel()
    for k in range(n):
        axes[k].plot(time, values[:, k], color=LINE, linewidth=1.6)
        axes[k].set_title(names[k], loc="left")
        axes[k].set_ylabel(units[k])
        axes[k].grid(True)
        axes[k].margins(x=0.0)
        _keep_zero(axes[k], values[:, k], float(np.abs(values).max()))
    for k in range(n):
        if k + columns >= n:
            axes[k].set_xlabel("t, s")
            axes[k].tick_params(labelbottom=True)
    for spare in axes[n:]:
        spare.set_visible(False)
    if title:
        figure.suptitle(title)
    return figure


def _keep_zero(axes: Any, values: Any, largest: float) -> None:
    """A torque that is mere rounding error beside the others is drawn as a flat line."""
    if np.abs(values).max(initial=0.0) <= 1e-12 * largest or not np.ptp(values):
        middle = float(values[0]) if largest and abs(values[0]) > 1e-12 * largest else 0.0
        axes.set_ylim(middle - 1.0, middle + 1.0)
