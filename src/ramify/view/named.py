"""Arrays with the names of a robot's coordinates on their rows and columns, to print or to show in
a notebook.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, real
from ramify.core.errors import StateError
from ramify.core.html import Markup, scrolled, table
from ramify.loops.mobility import freedom_text
from ramify.model.robot import Robot

SIX = ("angular x", "angular y", "angular z", "linear x", "linear y", "linear z")


@dataclass(frozen=True, eq=False)
class NamedArray:
    """A matrix, a name for each row and each column, and a title."""

    values: Array
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    title: str = ""

    def __str__(self) -> str:
        heads = ("", *self.columns)
        body = [
            (name, *(f"{x + 0.0:.5g}" for x in row))
            for name, row in zip(self.rows, self.values, strict=True)
        ]
        return aligned([heads, *body], self.title)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return matrix_html(self.values, self.rows, self.columns, self.title)


def aligned(rows: Sequence[Sequence[str]], title: str = "") -> str:
    """Rows of text in columns: the first flush left, the others flush right."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = [
        "  ".join(
            c.ljust(w) if not k else c.rjust(w)
            for k, (c, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join([*([title] if title else []), *(line.rstrip() for line in lines)])


def named(model: Robot, values: ArrayLike, title: str = "") -> NamedArray:
    """See Model.named."""
    a = real("the array", values)
    of = {model.nv: model.velocities, model.nq: model.coordinates}
    if a.ndim == 1 and len(a) in of:
        return NamedArray(
            a[:, None], of[len(a)] if len(a) != model.nv else model.velocities, ("value",), title
        )
    if a.ndim == 2 and a.shape[1] == model.nv and a.shape[0] in (model.nv, 6):
        return NamedArray(
            a, model.velocities if a.shape[0] == model.nv else SIX, model.velocities, title
        )
    sizes = f"({model.nv},), ({model.nq},), ({model.nv}, {model.nv}) or (6, {model.nv})"
    raise StateError(
        f"an array of shape {a.shape} has no names here; for {model.name} give one of {sizes}"
    )


def model_text(model: Robot) -> str:
    """A robot as a table of its bodies."""
    rows: list[tuple[str, ...]] = [("body", "on", "module", "joint", "type", "DOF", "mass, kg")]
    for body, module in zip(model.bodies, model.module_numbers, strict=True):
        parent = model.bodies[body.parent].name if body.parent >= 0 else "(base)"
        kind = f"{body.joint.kind} {body.joint.sequence}".strip()
        first = (body.name, parent, str(module), body.joint.name, kind)
        rows.append((*first, str(body.joint.dof), f"{body.mass:.5g}"))
    shown = rows if len(rows) <= 61 else [*rows[:60], ("…",) * len(rows[0])]
    facts = f"{len(model.bodies)} bodies, {freedom_text(model)}, {model.mass:.6g} kg"
    head = f"{model.name}: {facts}"
    return "".join(
        c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}"
        for c in aligned(shown, head)
    )


def model_table(model: Robot, colours: Sequence[str] = ()) -> str:
    """The bodies of a robot with their joints; ``colours`` of the modules put a dot before each
    name.
    """
    module_of = {b: module.index for module in model.modules for b in module.bodies}
    rows = []
    for b, body in enumerate(model.bodies):
        joint = body.joint
        colour = colours[module_of[b] % len(colours)] if colours else ""
        dot = f'<span class="dot" style="background:{colour}"></span>' if colours else ""
        limits = ", ".join(f"{low:.4g} … {high:.4g}" for low, high in joint.limits) or "–"
        kind = f"{joint.kind} {joint.sequence}".strip()
        parent = model.bodies[body.parent].name if body.parent >= 0 else "(base)"
        own, carrier, name = (
            Markup(f'<span class="name">{escape(x)}</span>')
            for x in (body.name, parent, joint.name)
        )
        first = (Markup(dot + own), carrier, module_of[b] + 1, name, kind, joint.dof)
        rows.append((*first, limits, float(body.mass)))
    columns = ("body", "on", "module", "joint", "type", "DOF", "limits, rad or m", "mass, kg")
    return table(columns, rows, right=(2, 5, 7))


def model_html(model: Robot) -> str:
    """How a notebook shows a robot."""
    g = ", ".join(f"{x + 0.0:.4g}" for x in model.gravity)
    facts = f"{len(model.bodies)} bodies, {freedom_text(model)}, {model.mass:.6g} kg"
    head = f"<b>{escape(model.name)}</b>: {facts}, gravity ({g}) m/s²"
    if len(model.bodies) > 60:
        return f"<div>{head}</div>"
    return f"<div>{head}{scrolled(model_table(model))}</div>"


def matrix_html(values: Any, rows: Sequence[str], columns: Sequence[str], title: str = "") -> str:
    """A matrix with names on its rows and columns."""
    head = f"<b>{escape(title)}</b>" if title else ""
    body = [
        (name, *(float(x) for x in row)) for name, row in zip(rows, np.asarray(values), strict=True)
    ]
    return head + scrolled(table(("", *columns), body, right=range(1, len(columns) + 1)))
