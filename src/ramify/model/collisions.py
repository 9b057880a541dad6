"""Which shapes of a robot collide: those of the world, declared pairs, and what is excluded.

Shapes collide by their groups and masks (``Shape.meets``) unless they are on one body, on a body
and the one that carries it, or excluded; declared pairs always do.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from ramify.core.errors import ModelError
from ramify.core.messages import near
from ramify.model.shape import SURFACES, Shape

WORLD: Final = "world"
"""The name of all that stands still, in pairs and excludes."""


class ShapePlace(NamedTuple):
    """A shape with the ``body`` that carries it, -1 for the world, and a ``name`` that no other
    shape of the robot has.
    """

    name: str
    body: int
    shape: Shape


@dataclass(frozen=True)
class DeclaredPair:
    """Two shapes, or all shapes of two links, that collide whatever their groups. ``friction`` and
    ``restitution``: None for those of the shapes.
    """

    first: str
    second: str
    friction: float | None = None
    restitution: float | None = None

    def __post_init__(self) -> None:
        who = f"pair of {self.first!r} and {self.second!r}"
        if self.friction is not None and not (
            math.isfinite(self.friction) and self.friction >= 0.0
        ):
            raise ModelError(f"{who}: friction {self.friction} must be finite and ≥ 0")
        if self.restitution is not None and not 0.0 <= self.restitution <= 1.0:
            raise ModelError(f"{who}: restitution {self.restitution} must be from 0 to 1")


@dataclass(frozen=True)
class Collisions:
    """``world``: shapes that stand still; ``pairs``: declared; ``excludes``: names of links or
    shapes that never collide, in twos; ``neighbours``: whether a body collides with the one that
    carries it.
    """

    world: tuple[Shape, ...] = ()
    pairs: tuple[DeclaredPair, ...] = ()
    excludes: tuple[tuple[str, str], ...] = ()
    neighbours: bool = False

    def check(self, names: Collection[str]) -> None:
        """Raise ModelError for the first of ``mistakes``."""
        for key, _, text in self.mistakes(names):
            raise ModelError(text, key=(key,))

    def mistakes(self, names: Collection[str]) -> Iterator[tuple[str, int, str]]:
        """(list, index, text) of every name that is neither a link, a shape nor the world."""
        twos = {"pairs": [(p.first, p.second) for p in self.pairs], "excludes": self.excludes}
        for key, entries in twos.items():
            for i, entry in enumerate(entries):
                for name in entry:
                    if name not in names:
                        text = f"there is no link or shape {name!r}{near(name, list(names))}"
                        yield key, i, text

    def __bool__(self) -> bool:
        return self != Collisions()


def shape_places(
    links: Iterable[tuple[str, tuple[Shape, ...]]], world: Iterable[Shape]
) -> tuple[ShapePlace, ...]:
    """The shapes of links, by their names, and those of the world, last. A shape without a name, or
    with that of another one, is numbered among those of its link.
    """
    carriers = [*enumerate(links), (-1, (WORLD, tuple(world)))]
    entries = [(b, link, i, x) for b, (link, shapes) in carriers for i, x in enumerate(shapes)]
    counts = Counter(shape.name for _, _, _, shape in entries)
    return tuple(
        ShapePlace(
            shape.name if counts[shape.name] == 1 and shape.name else f"{link}.{i}", b, shape
        )
        for b, link, i, shape in entries
    )


def refuse_upside_down(world: Iterable[Shape], gravity: Sequence[float]) -> None:
    """Raise ModelError for a height field whose z axis does not point up."""
    for shape in world:
        rise = -float(np.dot(shape.frame.rotation[:, 2], gravity))
        if shape.kind == "height_field" and any(gravity) and rise <= 0.0:
            text = f"height field {shape.name!r}: its z axis points down, or along the ground"
            raise ModelError(f"{text}; turn it so that its heights are against gravity")


def refuse_surfaces(link: str, shapes: Collection[Shape]) -> None:
    """Raise ModelError for a plane or a height field on a link that moves."""
    for shape in shapes:
        if shape.kind in SURFACES:
            text = f"a {shape.kind} can only stand in the world; give it under world:"
            raise ModelError(f"link {link!r}: {text}")
