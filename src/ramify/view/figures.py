"""What the Matplotlib figures share: colours, style, panels, names and dashes of curves."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from ramify.core.arrays import Array
from ramify.core.errors import RamifyError
from ramify.documents.writing import whole_path


@dataclass(frozen=True)
class Theme:
    """Colours of the paper, of everything drawn in ink, of the curves in order, and of what is
    wrong.
    """

    paper: str
    ink: str
    lines: tuple[str, ...]
    alarm: str
    map: str


THEMES: Final = {
    "light": Theme(
        "#ffffff", "#1a2b3c", ("#2f7fd1", "#c2571a", "#3a8f4d", "#7a4fb5", "#8a6d1d"),
        "#c62828", "viridis",
    ),
    "dark": Theme(
        "#14191f", "#dfe6ee", ("#6cb2f5", "#f0a064", "#7ecb8f", "#b99cf0", "#d9c06a"),
        "#ff6b6b", "plasma",
    ),
}  # fmt: skip


def style(theme: Theme = THEMES["light"], more: Mapping[str, str] | None = None) -> Any:
    """The look of all figures, as a context; RamifyError where Matplotlib is missing."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise RamifyError(
            "plots need Matplotlib; install it with: pip install 'ramify[plot]'"
        ) from None
    inked = [f"axes.{part}color" for part in ("label", "edge", "title")]
    inked += ["text.color", "xtick.color", "ytick.color", "grid.color"]
    papers = ("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor")
    settings: dict[Any, Any] = {
        **dict.fromkeys(inked, theme.ink),
        **dict.fromkeys(papers, theme.paper),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlesize": "medium",
        "figure.titlesize": "medium",
        "font.family": ["DejaVu Sans"],
        "grid.alpha": 0.2,
        "legend.frameon": False,
        "legend.fontsize": "small",
        "text.parse_math": False,  # a joint may be named $x$
        **(more or {}),
    }
    return mpl.rc_context(settings)


def picture_kind(figure: Any, path: str | Path) -> str:
    """The format that a file's suffix names; RamifyError where it names none."""
    kind, known = Path(path).suffix.lstrip(".").lower(), figure.canvas.get_supported_filetypes()
    if kind not in known:
        raise RamifyError(
            f"{path}: the suffix names no kind of picture; choose one of {', '.join(sorted(known))}"
        )
    return kind


SVG: Final[dict[Any, Any]] = {"svg.fonttype": "none", "svg.hashsalt": "ramify"}
PLAIN: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))
"""Text as text, and no metadata: equal numbers give equal files."""


def save_picture(figure: Any, path: str | Path, dpi: int = 100) -> None:
    """Write a figure whole or not at all, in the format that the suffix names; RamifyError where
    that cannot be done.
    """
    kind = picture_kind(figure, path)
    from matplotlib import rc_context

    with rc_context(SVG), whole_path(path) as passing:
        figure.savefig(passing, metadata=PLAIN if kind == "svg" else None, dpi=dpi)


@cache
def _figure_class() -> Any:
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        """A figure that a notebook shows, also where pyplot is not in use."""

        def _repr_png_(self) -> bytes:
            file = io.BytesIO()
            self.savefig(file, format="png", dpi=100)
            return file.getvalue()

    return NotebookFigure


def blank(width: float, height: float) -> Any:
    """An empty figure, in inches."""
    return _figure_class()(figsize=(width, height), layout="constrained")


def panels(count: int, across: int = 3) -> tuple[Any, list[Any]]:
    """A figure of ``count`` panels with a grid, ``across`` in a row."""
    across = min(across, count)
    rows = math.ceil(count / across)
    figure = blank(3.6 * across + (1.4 if across < 3 else 0.0), 2.3 * rows + 0.5)
    axes = list(figure.subplots(rows, across, squeeze=False).ravel())
    for spare in axes[count:]:
        spare.set_visible(False)
    for panel in axes[:count]:
        panel.grid(True)
    return figure, axes[:count]


PANELS: Final = 12
"""Up to this number of coordinates, each has its own panel."""


def refuse_many(count: int, what: str, plot: str) -> None:
    """Raise RamifyError where there are more panels than a figure holds."""
    if count > PANELS:
        raise RamifyError(
            f"{count} {what} are too many for a figure; name up to {PANELS} joints: "
            f"plot({plot!r}, joints=[…])"
        )


LONGEST: Final = 28
"""Characters of a name that a figure has room for."""


def short(name: str) -> str:
    """A name as a figure shows it: of a long one the beginning and the end."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}…{name[-(LONGEST // 2 - 1) :]}"


def stroke(theme: Theme, k: int) -> dict[str, Any]:
    """Colour and dashes of curve k: where the colours are used up they come again with other
    dashes.
    """
    more, k = divmod(k, len(theme.lines))
    dashes = ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))[more % 4]
    return {"color": theme.lines[k], "linestyle": dashes, "linewidth": 1.2}


DASHED: Final[dict[str, Any]] = {"linestyle": (0, (3, 2))}
"""The look of what was desired, and of limits."""


def unit_text(text: str) -> str:
    """A unit as a figure shows it."""
    return text.replace("^2", "²")


def legend(axes: Any) -> None:
    """A legend where it covers least."""
    axes.legend(loc="best")


def over_time(panel: Any, t: Array, what: str, title: str = "") -> None:
    """Labels of a panel whose curves run over the times t."""
    panel.set_xlabel("t, s")
    panel.set_ylabel(what)
    first, last = float(t[0]), float(t[-1])
    panel.set_xlim(*((first, last) if last > first else (first - 0.5, first + 0.5)))
    panel.set_title(title, loc="left")


def logarithmic(panel: Any) -> None:
    """Decades upwards, with plain labels: those of Matplotlib are formulas, which these figures do
    not set.
    """
    from matplotlib.ticker import LogFormatter

    panel.set_yscale("log")
    panel.yaxis.set_major_formatter(LogFormatter())
    panel.yaxis.set_minor_formatter(LogFormatter())
