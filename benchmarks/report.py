"""Tables for the terminal (rich) and for the documentation (Markdown) from the same rows."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import rich.table
from rich.console import Console


@dataclass
class Table:
    """Rows of text under a title; the first column is left-aligned, the others right-aligned."""

    title: str
    columns: Sequence[str]
    note: str = ""
    rows: list[list[str]] = field(default_factory=list)

    def add(self, *cells: object) -> None:
        self.rows.append([str(cell) for cell in cells])

    def show(self, console: Console) -> None:
        """Print it."""
        shown = rich.table.Table(
            title=self.title,
            title_justify="left",
            caption=self.note or None,
            caption_justify="left",
        )
        for i, column in enumerate(self.columns):
            shown.add_column(column, justify="right" if i else "left", no_wrap=i == 0)
        for row in self.rows:
            shown.add_row(
                *(
                    f"[bold red]{cell}[/]" if cell.endswith(("below", "WRONG")) else cell
                    for cell in row
                )
            )
        console.print(shown)

    def markdown(self) -> str:
        """The same as a section."""
        lines = [f"## {self.title}", ""]
        if self.note:
            lines += [self.note, ""]
        lines += [
            "| " + " | ".join(self.columns) + " |",
            "| :-- |" + " --: |" * (len(self.columns) - 1),
        ]
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join([*lines, ""])


def duration(seconds: float | None) -> str:
    """A time with three digits and a unit."""
    if seconds is None:
        return "–"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{digits(seconds / size)} {unit}"
    return f"{digits(seconds * 1e9)} ns"


def digits(x: float) -> str:
    """About three digits, never an exponent."""
    return f"{x:.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}"


def ratio(x: float | None) -> str:
    return "–" if x is None else f"{digits(x)}×"


def machine() -> dict[str, str]:
    """What the figures belong to."""
    packages = {
        "ramify": "ramify",
        "NumPy": "numpy",
        "llvmlite": "llvmlite",
        "Pinocchio": "pin",
        "MuJoCo": "mujoco",
    }
    return {
        "CPU": _cpu(),
        "Python": platform.python_version(),
        **{name: _version(package) for name, package in packages.items()},
    }


def _cpu() -> str:
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str:
    if package == "ramify":
        from ramify import __version__

        return __version__
    return version(package)
