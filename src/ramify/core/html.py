"""HTML tables; every name and number is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape


def text(cell: object) -> str:
    """A cell: numbers to four digits."""
    return f"{cell + 0.0:.4g}" if isinstance(cell, float) else str(cell)


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[int] = ()
) -> str:
    """A table; the columns ``right`` are set flush right."""
    kind = [' class="number"' if k in right else "" for k in range(len(columns))]
    head = "".join(f"<th{k}>{escape(column)}</th>" for k, column in zip(kind, columns, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td{k}>{_cell(c)}</td>" for k, c in zip(kind, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def _cell(cell: object) -> str:
    return cell if isinstance(cell, Markup) else escape(text(cell))


def facts(rows: Mapping[str, object]) -> str:
    """A table of two columns: what, and what it is."""
    body = "".join(
        f'<tr><th>{escape(k)}</th><td class="long">{_cell(v)}</td></tr>' for k, v in rows.items()
    )
    return f"<table><tbody>{body}</tbody></table>"


def scrolled(content: str) -> str:
    """A box that scrolls sideways where its content is wider than the page."""
    return f'<div style="overflow-x:auto">{content}</div>'
