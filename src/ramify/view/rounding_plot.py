"""Rounding errors of forward dynamics over the length of a chain, as a figure."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from ramify.formulations.stability import CASES, chain_errors
from ramify.view.figures import (
    SVG,
    THEMES,
    logarithmic,
    panels,
    picture_kind,
    save_picture,
    stroke,
    style,
)

CURVES: Final = {
    "recursion": "recursion, joint origins",
    "mass_centre": "recursion, mass centres",
    "rolled": "rolled kernel",
    "cholesky": "Cholesky of M",
}


def plot_stability(path: str | Path, most: int) -> None:
    """Write the figure for chains of up to so many rods; the suffix names the format."""
    sizes = np.unique(np.geomspace(2, max(most, 2), 8).round().astype(int))
    with style(more=SVG):
        figure, axes = panels(len(CASES), across=2)
        picture_kind(figure, path)
        for axis, (case, words) in zip(axes, CASES.items(), strict=True):
            rows = [chain_errors(case, int(n)) for n in sizes]
            for k, (name, label) in enumerate(CURVES.items()):
                values = [getattr(row, name) or np.nan for row in rows]
                axis.plot(sizes, values, marker=".", label=label, **stroke(THEMES["light"], k))
            logarithmic(axis)
            axis.set_title(words.words, loc="left")
            axis.set_xlabel("rods")
            axis.set_ylabel("error")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncol=4)
        save_picture(figure, path, dpi=120)
