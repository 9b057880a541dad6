"""HTML tables; every name and number is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape


def text(cell: object) -> str:
    """A cell: numbers to four digits."""
    return f"{cell + 0.0:.4g}" if isinstance(cell, float) else str(cell)


def html_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[int] = ()
) -> str:
    """A table; the columns ``right`` are set flush right."""
    kind = [' class="number"' if k in right else "" for k in range(len(columns))]
    heads = zip(kind, columns, strict=True)
    head = "".join(f'<th scope="col"{k}>{escape(column)}</th>' for k, column in heads)
    lines = (
        "".join(f"<td{k}>{_cell(c)}</td>" for k, c in zip(kind, row, strict=True)) for row in rows
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
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


def sparkline(*curves: Sequence[float], size: tuple[int, int] = (140, 28)) -> Markup:
    """A small picture of curves over one axis; the numbers must be finite."""
    wide, high = size
    flat = [x for curve in curves for x in curve]
    low, most = min(flat), max(flat)
    scale = (high - 4) / (most - low) if most > low else 0.0
    lines = []
    for curve in curves:
        pace = (wide - 4) / max(len(curve) - 1, 1)
        points = " ".join(
            f"{2 + i * pace:.1f},{high - 2 - (x - low) * scale:.1f}" for i, x in enumerate(curve)
        )
        lines.append(f'<polyline points="{points}" fill="none" stroke="currentColor"/>')
    return Markup(f'<svg width="{wide}" height="{high}" role="img">{"".join(lines)}</svg>')
