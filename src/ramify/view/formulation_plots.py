"""Figures about the formulations: how the operations grow with the number of joint variables
(figures 6.15, 6.16, 7.30 and 7.31 of the book in one), and how rounding errors grow with the
length of a chain.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from ramify.formulations.counting.book import Recursion, is_floating_recursion, run
from ramify.formulations.counting.book_tree import general_tree
from ramify.formulations.counting.literature import BOOK, PUBLISHED, CountedTask, Joints
from ramify.formulations.stability import CASES, chain_errors
from ramify.view.figures import (
    SVG,
    THEMES,
    blank,
    logarithmic,
    panels,
    picture_kind,
    save_picture,
    stroke,
    style,
)
from ramify.view.folders import must_have_folder

MOST = 30
LINE: Final = THEMES["light"].lines[0]
COLOURS: Final = (
    "#c75146", "#3a9a5b", "#8a63b8", "#b8862f", "#777777", "#c2549a", "#4fa3a5", "#6b4f3a",
)  # fmt: skip
FIGURES: Final[tuple[tuple[str, CountedTask, Recursion], ...]] = (
    ("6.15 inverse, fixed base", "inverse", "denoc_inverse"),
    ("6.16 forward, fixed base", "forward", "denoc_forward"),
    ("7.30 inverse, floating base", "floating inverse", "denoc_floating_inverse"),
    ("7.31 forward, floating base", "floating forward", "denoc_floating_forward"),
)
PANELS: Final[tuple[tuple[str, tuple[int, ...]], ...]] = (
    ("(a) joints of one axis", (1,)),
    ("(b) two axes", (2,)),
    ("(c) three axes", (3,)),
    ("(d) one, two and three in turn", (1, 2, 3)),
)


def chains(pattern: tuple[int, ...]) -> list[Joints]:
    """Joint variables (n1, n2, n3) of chains made of ever more joints of that pattern."""
    found: list[Joints] = []
    for k in range(1, MOST // sum(pattern) + 1):
        n1, n2, n3 = (k * sum(size for size in pattern if size == axes) for axes in (1, 2, 3))
        found.append((n1, n2, n3))
    return found


def growth(recursion: Recursion, pattern: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Numbers n of joint variables, every sixth, and M + A of a recursion as written on chains of
    that pattern.
    """
    sizes = [n for n in range(6, MOST + 1, 6) if n % sum(pattern) == 0]
    floating = is_floating_recursion(recursion)
    trees = (general_tree(pattern * (n // sum(pattern)), floating=floating) for n in sizes)
    counts = [run(tree, recursion)[0] for tree in trees]
    return sizes, [count.mul + count.add for count in counts]


def plot_growth(path: str | Path) -> None:
    """Write the figure: published formulas as lines, the book's own dashed, counted here as dots.
    The suffix names the format.
    """
    with style(more=SVG):
        figure = blank(13.0, 12.0)
        picture_kind(figure, path)
        must_have_folder(Path(path).absolute())
        grid: Any = figure.subplots(len(FIGURES), len(PANELS), sharex=True, sharey="row")
        for row, (title, task, recursion) in zip(grid, FIGURES, strict=True):
            for axes, (panel, pattern) in zip(row, PANELS, strict=True):
                _draw(axes, task, recursion, pattern)
                axes.set_title(f"{title}\n{panel}", fontsize="small")
            row[0].set_ylabel("M + A")
            row[0].legend(fontsize="xx-small")
        for axes in grid[-1]:
            axes.set_xlabel("joint variables n")
        save_picture(figure, path)


def _draw(axes: Any, task: CountedTask, recursion: Recursion, pattern: tuple[int, ...]) -> None:
    joints = chains(pattern)
    n = [sum(x) for x in joints]
    axes.set_prop_cycle(color=COLOURS)
    for x in PUBLISHED:
        if x.task == task and x.who != "Hollerbach 1980":  # off the scale of all others
            mine = {"color": LINE, "linestyle": "--", "linewidth": 1.8}
            look = mine if x.who == BOOK else {"linewidth": 0.9, "alpha": 0.8}
            axes.plot(n, [sum(x.at(at)) for at in joints], label=x.who, **look)
    dots = {"color": LINE, "markersize": 4, "label": "counted here, as written"}
    axes.plot(*growth(recursion, pattern), "o", **dots)
    axes.grid(True)
    axes.set_ylim(bottom=0)


CURVES: Final = {
    "recursion": "recursion, joint origins",
    "mass_centre": "recursion, mass centres",
    "rolled": "rolled kernel",
    "cholesky": "Cholesky of M",
}


def plot_stability(path: str | Path, most: int) -> None:
    """Write the figure for chains of up to ``most`` rods; the suffix names the format."""
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
