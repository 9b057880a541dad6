"""How the commands print and write."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ramify.documents.writing import write_whole


def write_csv(path: Path, header: Sequence[str], columns: Iterable[Any]) -> None:
    """Columns of numbers as a file, written whole or not at all."""
    from csv import writer
    from io import StringIO

    text = StringIO()
    out = writer(text, lineterminator="\n")
    out.writerow(header)
    out.writerows(zip(*(column.tolist() for column in columns), strict=True))
    write_whole(path, text.getvalue())


def vector_to_six_digits(values: Iterable[float]) -> str:
    return "(" + ", ".join(f"{x + 0.0:.6g}" for x in values) + ")"


def several(n: int, one: str, many: str = "") -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"


def print_json(data: Any) -> None:
    from json import dumps

    print(dumps(_finite(data), indent=1, allow_nan=False))


def _finite(data: Any) -> Any:
    """The data with null in place of numbers that JSON does not have."""
    if isinstance(data, Mapping):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and data - data != 0.0 else data


def print_line(text: str) -> None:
    print(printable(text))


def printable(text: str) -> str:
    """Text from a robot file may hold anything; a terminal must not obey it."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def print_error(text: str) -> None:
    """A line on stderr."""
    print(f"ramify: {printable(text)}", file=sys.stderr)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    filled = [tuple(row) for row in rows]
    numeric = [
        all(isinstance(x, (int, float)) for x in column) for column in zip(*filled, strict=True)
    ]
    heading = Text(printable(title)) if title else None
    table = Table(title=heading, title_justify="left", box=SIMPLE_HEAD)
    for column, right in zip(columns, numeric or [False] * len(columns), strict=True):
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    for row in filled:
        cells = (f"{x + 0.0:.6g}" if isinstance(x, float) else printable(str(x)) for x in row)
        table.add_row(*map(Text, cells))
    Console(width=None if sys.stdout.isatty() else 200).print(table)
