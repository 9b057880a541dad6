"""What each entry of q and v means, in words: for reading, for labels of plots, for checking a
convention.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.html import html_table
from ramify.model.configuration import checked
from ramify.model.joint import Joint, Step
from ramify.model.robot import Robot

_ORDER: Final = ("first", "second", "third")
_HEADS: Final = ("", "joint", "type", "meaning", "frame", "unit", "value")


@dataclass(frozen=True)
class Entry:
    """One entry of ``array`` ("q" or "v"): place, its joint and type, meaning, frame and unit; the
    value where it was given.
    """

    array: str
    index: int
    name: str
    joint: str
    kind: str
    meaning: str
    frame: str
    unit: str
    value: float | None

    def cells(self) -> tuple[str, ...]:
        value = "" if self.value is None else f"{self.value:.6g}"
        place = f"{self.array}[{self.index}]"
        return place, self.joint, self.kind, self.meaning, self.frame, self.unit, value


class Explanation(tuple[Entry, ...]):
    """Entries of q, then of v; prints as a table."""

    def __str__(self) -> str:
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = (zip(row, widths, strict=True) for row in rows)
        return "\n".join("  ".join(c.ljust(w) for c, w in line).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        heads, *rows = self._rows()
        return html_table(heads, rows)

    def _rows(self) -> list[tuple[str, ...]]:
        """Heads and cells, without the values where none are given."""
        kept = None if any(entry.value is not None for entry in self) else -1
        return [row[:kept] for row in (_HEADS, *(entry.cells() for entry in self))]

    def __repr__(self) -> str:
        return f"<Explanation of {len(self)} entries; print it>"


def explain(model: Robot, q: ArrayLike | None = None, v: ArrayLike | None = None) -> Explanation:
    """See Model.explain."""
    values = [
        None if x is None else checked(model, name, x, size, True)
        for name, x, size in (("q", q, model.nq), ("v", v, model.nv))
    ]
    entries: list[Entry] = []
    for array, given in zip("qv", values, strict=True):
        numbers = None if given is None or given.ndim > 1 else given
        if array == "v" and q is not None and v is None:
            continue
        for body in model.bodies:
            joint = body.joint
            carrier = "the base" if body.parent < 0 else model.bodies[body.parent].name
            still = body.parent < 0 and joint.placement.is_identity
            where = "world" if still else f"joint frame on {carrier}"
            plain = joint.outlet.is_identity
            moved = f"body {body.name}" if plain else f"moved frame of {joint.name}"
            names = joint.coordinates if array == "q" else joint.velocities
            texts = _of_q(joint, where) if array == "q" else _of_v(joint, where, moved)
            for name, (meaning, frame, unit) in zip(names, texts, strict=True):
                index = sum(1 for e in entries if e.array == array)
                value = None if numbers is None else float(numbers[index])
                what = (joint.name, joint.kind, meaning, frame, unit)
                entries.append(Entry(array, index, name, *what, value))
    return Explanation(entries)


def _of_q(joint: Joint, where: str) -> Iterator[tuple[str, str, str]]:
    angle = 0
    for step in joint.steps:
        if step.ball:
            if step.ball == 1:
                yield "unit quaternion, scalar part w (w first)", f"body -> {where}", "1"
                for axis in "xyz":
                    yield f"unit quaternion, vector part {axis}", f"body -> {where}", "1"
        elif step.rho and joint.sequence:
            which = f"{_ORDER[angle]} Euler angle of {joint.sequence}"
            yield f"{which}, about {step.name[0]} as moved so far", where, "rad"
            angle += 1
        else:
            yield _position(joint, step), where, step.unit


def _position(joint: Joint, step: Step) -> str:
    along = _axis(step)
    if step.rho and step.eta:
        return f"angle about {along}, sliding {joint.pitch:g} m per rad"
    if step.rho:
        return f"angle about {along}"
    whole = joint.moves_base
    return f"position of the body along {along}" if whole else f"slide along {along}"


def _of_v(joint: Joint, where: str, moved: str) -> Iterator[tuple[str, str, str]]:
    for step, name in zip(joint.steps, joint.velocities, strict=True):
        if step.ball:
            yield f"angular velocity about {step.name[-1]}", moved, "rad/s"
        elif joint.kind == "free":
            yield f"velocity of the body's origin along {step.name}", where, "m/s"
        else:
            yield f"rate of {name}", where, f"{step.unit}/s"


def _axis(step: Step) -> str:
    for name, unit in zip("xyz", np.eye(3), strict=True):
        if tuple(unit) == step.axis:
            return name
        if tuple(-unit) == step.axis:
            return f"-{name}"
    return f"({', '.join(f'{x:.4g}' for x in step.axis)})"
