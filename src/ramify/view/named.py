"""Arrays with the names of a robot's coordinates on their rows and columns, to print or to show in
a notebook.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from numpy.typing import ArrayLike

from ramify.core.arrays import Array, real
from ramify.core.errors import StateError
from ramify.core.html import Markup, html_table, scrolled
from ramify.core.names import a_text
from ramify.loops.mobility import freedom_text
from ramify.model.body import Body
from ramify.model.joint import Joint
from ramify.model.robot import Robot, module_of

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
        return aligned_columns([heads, *body], self.title)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = f"<b>{escape(self.title)}</b>" if self.title else ""
        body = [(name, *row) for name, row in zip(self.rows, self.values.tolist(), strict=True)]
        numbers = range(1, len(self.columns) + 1)
        return head + scrolled(html_table(("", *self.columns), body, right=numbers))


def aligned_columns(rows: Sequence[Sequence[str]], title: str = "") -> str:
    """Rows of text in columns: the first flush left, the others flush right."""
    first, *others = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [title] if title else []
    for head, *cells in rows:
        right = (c.rjust(w) for c, w in zip(cells, others, strict=True))
        lines.append("  ".join([head.ljust(first), *right]).rstrip())
    return "\n".join(lines)


def named(model: Robot, values: ArrayLike, title: str = "") -> NamedArray:
    """See Model.named."""
    a_text("title", title)
    a = real("the array", values)
    one = {model.nq: model.coordinates, model.nv: model.velocities}
    two = {6: SIX, model.nv: model.velocities}
    if a.ndim == 1 and len(a) in one:
        return NamedArray(a[:, None], one[len(a)], ("value",), title)
    if a.ndim == 2 and a.shape[1] == model.nv and len(a) in two:
        return NamedArray(a, two[len(a)], model.velocities, title)
    sizes = f"({model.nv},), ({model.nq},), ({model.nv}, {model.nv}) or (6, {model.nv})"
    raise StateError(
        f"an array of shape {a.shape} has no names here; for {model.name} give one of {sizes}"
    )


def model_text(model: Robot) -> str:
    """A robot as a table of its bodies."""
    rows: list[tuple[str, ...]] = [("body", "on", "module", "joint", "type", "DOF", "mass, kg")]
    for body, module in zip(model.bodies, model.module_numbers, strict=True):
        first = (body.name, _carrier(model, body), str(module), body.joint.name, _kind(body.joint))
        rows.append((*first, str(body.joint.dof), f"{body.mass:.5g}"))
    shown = rows if len(rows) <= 61 else [*rows[:60], ("…",) * len(rows[0])]
    text = aligned_columns(shown, f"{model.name}: {_facts(model)}")
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _facts(model: Robot) -> str:
    return f"{len(model.bodies)} bodies, {freedom_text(model)}, {model.mass:.6g} kg"


def _kind(joint: Joint) -> str:
    return f"{joint.kind} {joint.sequence}".strip()


def _carrier(model: Robot, body: Body) -> str:
    return model.bodies[body.parent].name if body.parent >= 0 else "(base)"


def model_table(model: Robot, colours: Sequence[str] = ()) -> str:
    """The bodies of a robot with their joints; ``colours`` of the modules put a dot before each
    name.
    """
    rows = []
    modules = zip(module_of(model), model.module_numbers, strict=True)
    for body, (module, module_number) in zip(model.bodies, modules, strict=True):
        joint = body.joint
        colour = colours[module % len(colours)] if colours else ""
        dot = f'<span class="dot" style="background:{colour}"></span>' if colours else ""
        limits = ", ".join(f"{low:.4g} … {high:.4g}" for low, high in joint.limits) or "–"
        own, carrier, name = (
            Markup(f'<span class="name">{escape(x)}</span>')
            for x in (body.name, _carrier(model, body), joint.name)
        )
        first = (Markup(dot + own), carrier, module_number, name, _kind(joint), joint.dof)
        rows.append((*first, limits, float(body.mass)))
    columns = ("body", "on", "module", "joint", "type", "DOF", "limits, rad or m", "mass, kg")
    return html_table(columns, rows, right=(2, 5, 7))


def model_html(model: Robot) -> str:
    """How a notebook shows a robot."""
    g = ", ".join(f"{x + 0.0:.4g}" for x in model.gravity)
    head = f"<b>{escape(model.name)}</b>: {_facts(model)}, gravity ({g}) m/s²"
    bodies = "" if len(model.bodies) > 60 else scrolled(model_table(model))
    return f"<div>{head}{bodies}</div>"
