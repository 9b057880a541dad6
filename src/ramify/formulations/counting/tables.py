"""The tables of the documentation that come out of the code.

A page marks a table's place with ``<!-- table: name -->`` and ``<!-- end of table -->``. The
command ``python -m ramify.formulations.counting.tables PAGE …`` writes the tables into pages anew;
a test sees to it that they are in step.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from ramify.files.load import load
from ramify.formulations.chain import Chain, general_chain
from ramify.formulations.counting.book import MulAdd, Recursion, book_step_table, book_total, run
from ramify.formulations.counting.book_tree import general_tree
from ramify.formulations.counting.general import (
    FORMULATIONS,
    general_count,
    rfdsim_steps,
    ridim_steps,
)
from ramify.formulations.counting.literature import (
    BOOK,
    PUBLISHED,
    SEED_ROBOTS,
    Joints,
    compare,
    markdown,
    pair_text,
)
from ramify.formulations.counting.tally import OperationLedger
from ramify.trace.op_count import OpCount


def _cells(rows: Iterable[Sequence[object]]) -> str:
    return "".join(f"| {' | '.join(str(cell) for cell in row)} |\n" for row in rows)


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    return _cells([columns, ["---"] * len(columns)]) + _cells(rows)


def _pair(pair: MulAdd | None) -> str:
    return "" if pair is None else pair_text(pair)


def _polynomial(square: float, linear: float, constant: float) -> str:
    text = " + ".join(f"{k:g}{name}" for k, name in ((square, "n²"), (linear, "n")) if k)
    if constant:
        text += f" {'−' if constant < 0.0 else '+'} {abs(constant):g}"
    return re.sub(r"\b1n", "n", text)


def _fitted(name: str, part: str) -> str:
    """Our count as a polynomial of n, checked on a fourth robot; else its value at six joints."""
    y = [getattr(general_count(name, n), part) for n in (3, 4, 5, 7)]
    a = (y[2] - 2 * y[1] + y[0]) / 2
    b = y[1] - y[0] - 7 * a
    c = y[0] - 9 * a - 3 * b
    if 49 * a + 7 * b + c != y[3]:
        return f"{getattr(general_count(name, 6), part)} for n = 6"
    return _polynomial(a, b, c)


def general() -> str:
    """Every formulation on general robots of n revolute joints, n >= 3: published and counted."""
    rows = []
    for name, x in FORMULATIONS.items():
        ours = [_fitted(name, part) for part in ("mul", "add")]
        paper = [_polynomial(*factors) if factors else "" for factors in (x.mul, x.add)]
        met = [part for part, a, b in zip("MA", ours, paper, strict=True) if a == b]
        rows.append((f"`{name}`", x.what, *paper, *ours, ", ".join(met)))
    columns = ("name", "what is counted", "published M", "A", "counted M", "A", "met exactly")
    return _table(columns, rows)


def recursion_table(recursion: Recursion) -> str:
    """A recursion of the book, step by step."""

    rows = []
    for x in book_step_table(recursion):
        why = x.why if x.published not in (None, x.counted) else ""
        rows.append((x.step, _pair(x.published), _pair(x.counted), why))
    return _table(("step", "published", "counted", "why they differ"), rows)


_BOOK_ROBOTS: Final = (
    ("gripper", [1, 1, 1, 1], [-1, 0, 1, 0], False),
    ("industrial robot", [1] * 6, None, False),
    ("biped on a foot", [2, 1, 3, 3, 1, 2], None, False),
    ("biped", [3, 1, 2] * 2, [-1, 0, 1, -1, 3, 4], True),
    ("quadruped", [2, 1] * 4, [-1, 0, -1, 2, -1, 4, -1, 6], True),
    ("hexapod", [1, 1] * 6, [-1, 0, -1, 2, -1, 4, -1, 6, -1, 8, -1, 10], True),
)
"""Robots of tables 6.11, 6.12, 7.6, 7.7: axes of joints, parents, whether the base floats."""


def totals() -> str:
    """The book's robots: its totals, mended, and ours on general robots of the same make."""
    rows = []
    for robot, axes, parents, floating in _BOOK_ROBOTS:
        joints: Joints = (axes.count(1), 2 * axes.count(2), 3 * axes.count(3))
        tree = general_tree(axes, parents, floating)
        pairs = []
        for task in ("inverse", "forward"):
            recursion: Recursion = f"denoc_{'floating_' if floating else ''}{task}"  # type: ignore[assignment]
            wanted = (BOOK, f"floating {task}" if floating else task)
            (paper,) = (x for x in PUBLISHED if (x.who, x.task) == wanted)
            count = run(tree, recursion)[0]
            pairs += [_pair(paper.at(joints)), _pair((count.mul, count.add))]
        rows.append((robot, ", ".join(map(str, joints)), *pairs))
    return _table(
        ("robot", "n₁, n₂, n₃", "inverse, published", "counted", "forward, published", "counted"),
        rows,
    )


def _per_link(text: Callable[[Chain], tuple[OpCount, OperationLedger]]) -> str:
    """Steps of a serial recursion: for a link in the middle, and for both ends together."""
    five, six = text(general_chain(5))[1], text(general_chain(6))[1]
    rows: list[tuple[str, MulAdd, MulAdd]] = []
    for step, row in six.rows.items():
        link = row[0] - five.rows[step][0], row[1] - five.rows[step][1]
        rows.append((step, link, (row[0] - 6 * link[0], row[1] - 6 * link[1])))
    rows.append(
        (
            "**sum**",
            book_total(link for _, link, _ in rows),
            book_total(ends for _, _, ends in rows),
        )
    )
    cells = [(name, _pair(link), _pair(ends).replace("-", "−")) for name, link, ends in rows]
    return _table(("step", "a link", "at the ends"), cells)


def compiled_table() -> str:
    """The robots of the source documents: published, and compiled for the robot at hand."""
    return markdown(
        [row for robot, joints in SEED_ROBOTS for row in compare(load(robot), joints=joints)]
    )


def literature() -> str:
    """All published formulas."""
    rows = [(x.task, x.who, x.mul, x.add) for x in PUBLISHED]
    return _table(
        ("task", "published by", "multiplications and divisions", "additions and subtractions"),
        rows,
    )


TABLES: Final[dict[str, Callable[[], str]]] = {
    "general": general,
    "denoc_inverse": lambda: recursion_table("denoc_inverse"),
    "denoc_forward": lambda: recursion_table("denoc_forward"),
    "denoc_floating_inverse": lambda: recursion_table("denoc_floating_inverse"),
    "denoc_floating_forward": lambda: recursion_table("denoc_floating_forward"),
    "totals": totals,
    "ridim": lambda: _per_link(ridim_steps),
    "rfdsim": lambda: _per_link(rfdsim_steps),
    "compiled": compiled_table,
    "literature": literature,
}

_PLACE = re.compile(r"<!-- table: (\w+) -->\n.*?<!-- end of table -->", re.DOTALL)


def filled(page: str) -> str:
    """The text of a page with its tables as the code gives them now."""
    return _PLACE.sub(
        lambda found: f"<!-- table: {found[1]} -->\n\n{TABLES[found[1]]()}\n<!-- end of table -->",
        page,
    )


def write_tables(pages: Sequence[str]) -> None:
    """Write the tables of pages anew."""
    for page in map(Path, pages):
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write_tables(sys.argv[1:])
