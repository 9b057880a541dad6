"""The pairs of shapes of a robot that collide, a constant list: those declared, and those that
groups and masks name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ramify.contact.closest import contact_count
from ramify.core.errors import ModelError
from ramify.core.warning import LeftOutWarning, warn
from ramify.model.collisions import WORLD, DeclaredPair, ShapePlace
from ramify.model.robot import Robot, once, the_robot
from ramify.model.shape import SURFACES, Shape

Mask = np.ndarray[Any, np.dtype[np.bool_]]
MANY_PAIRS: Final = 16
"""Pairs of bodies' shapes beyond which a step takes noticeably longer."""
MOST_PAIRS: Final = 4096
"""The largest number of pairs that a robot may have."""


class CollisionPair(NamedTuple):
    """Two shapes that collide, with the index of the body of each; -1 is the world, which is never
    first. ``contacts``: how many contacts ``closest`` gives for them.
    """

    body: int
    shape: Shape
    other: int
    other_shape: Shape
    friction: float
    restitution: float
    name: str
    contacts: int

    @property
    def on_surface(self) -> bool:
        """Whether the other shape is a plane or a height field of the world."""
        return self.other_shape.kind in SURFACES


def collision_pairs(model: Robot) -> tuple[CollisionPair, ...]:
    """All pairs that collide, in the order of the shapes: see ``ramify.model.collisions``. Warns of
    pairs of kinds that have no contact text, which pass through each other, and where there are
    more than ``MANY_PAIRS``. Raises ModelError beyond ``MOST_PAIRS``.
    """
    the_robot(model)
    pairs = all_pairs(model)
    missing = [pair for pair in pairs if not pair.contacts]
    if missing:
        kinds = sorted({f"{p.shape.kind} and {p.other_shape.kind}" for p in missing})
        warn(
            f"{model.name}: {passing_pairs(missing)} through each other, for there is "
            f"no contact of {', '.join(kinds)}: {some_pairs(missing)}; use spheres and capsules, "
            "or exclude them",
            LeftOutWarning,
        )
    pairs = tuple(pair for pair in pairs if pair.contacts)
    between = [pair for pair in pairs if not pair.on_surface]
    if len(between) > MANY_PAIRS:
        warn(
            f"{model.name}: {len(between)} pairs of shapes collide: {some_pairs(between)}; beyond "
            f"about {MANY_PAIRS} every step takes noticeably longer. Declare the pairs that matter",
            RuntimeWarning,
        )
    return pairs


def passing_pairs(pairs: list[CollisionPair]) -> str:
    """ "1 pair of shapes passes" or "3 pairs of shapes pass"."""
    several = len(pairs) != 1
    return f"{len(pairs)} pair{'s' * several} of shapes {'pass' if several else 'passes'}"


def some_pairs(pairs: list[CollisionPair]) -> str:
    """The names of the first few pairs."""
    return ", ".join(pair.name for pair in pairs[:3]) + (", …" if len(pairs) > 3 else "")


@once
def all_pairs(model: Robot) -> tuple[CollisionPair, ...]:
    """The pairs that collide, those of kinds without a contact text too (no ``contacts``). Raises
    ModelError beyond ``MOST_PAIRS``.
    """
    return _pairs(model, range(len(model.shapes)))


@once
def surface_pairs(model: Robot) -> tuple[CollisionPair, ...] | None:
    """The pairs with planes and height fields of the world; None where it has none."""
    surfaces = [i for i, place in enumerate(model.shapes) if place.shape.kind in SURFACES]
    return _pairs(model, surfaces) if surfaces else None


def _pairs(model: Robot, seconds: Sequence[int]) -> tuple[CollisionPair, ...]:
    """The pairs whose second shape is one of these."""
    places, among = model.shapes, np.zeros(len(model.shapes), dtype=bool)
    among[list(seconds)] = True
    twos: dict[tuple[int, int], tuple[float | None, float | None]] = {}
    for declared in model.collisions.pairs:
        for i in _shapes_of_pair(model, declared, declared.first):
            for j in _shapes_of_pair(model, declared, declared.second):
                if places[i].body != places[j].body and among[max(i, j)]:
                    twos[min(i, j), max(i, j)] = declared.friction, declared.restitution
                    _check_number(model, len(twos))
    for i, others in _by_groups(model, among):
        for j in others:
            twos.setdefault((i, j), (None, None))
        _check_number(model, len(twos))
    return tuple(shape_pair(places[i], places[j], *twos[i, j]) for i, j in sorted(twos))


def _shapes_of_pair(model: Robot, pair: DeclaredPair, name: str) -> list[int]:
    shapes = _named(model, name)
    if not shapes:
        raise ModelError(
            f"{model.name}: pair of {pair.first!r} and {pair.second!r}: {name!r} has no shape that "
            "collides; give one collides: true, or name the shape"
        )
    return shapes


def _check_number(model: Robot, number: int) -> None:
    if number > MOST_PAIRS:
        raise ModelError(
            f"{model.name}: more than {MOST_PAIRS} pairs of shapes would collide, which is the "
            "limit; let fewer shapes collide (collides: world, or groups), or declare pairs"
        )


def shape_pair(
    first: ShapePlace,
    second: ShapePlace,
    friction: float | None = None,
    restitution: float | None = None,
) -> CollisionPair:
    """The pair of two shapes, where not declared with the friction and restitution of theirs."""
    a, b = first.shape, second.shape
    ruling = (a, b) if a.priority == b.priority else (max(a, b, key=lambda x: x.priority),)
    rough = [x.friction for x in ruling] if not all(x.slippery for x in ruling) else [0.0]
    return CollisionPair(
        first.body, a, second.body, b,
        max(rough) if friction is None else friction,
        max(x.restitution for x in ruling) if restitution is None else restitution,
        f"{first.name}–{second.name}",
        contact_count(a, b),
    )  # fmt: skip


def _by_groups(model: Robot, among: Mask) -> Iterator[tuple[int, list[int]]]:
    """(i, those after it among some that it collides with) of every shape on a body, by groups and
    masks.
    """
    places, collisions = model.shapes, model.collisions
    group, mask, body = (
        np.array(column, dtype=np.int64).reshape(-1)
        for column in (
            [place.shape.group for place in places],
            [place.shape.mask for place in places],
            [place.body for place in places],
        )
    )
    above = np.array([*carriers(model), -1])[body]
    excluded: dict[int, set[int]] = {}
    for first, second in collisions.excludes:
        for i in _named(model, first):
            for j in _named(model, second):
                excluded.setdefault(min(i, j), set()).add(max(i, j))
    for i in np.flatnonzero(((group | mask) != 0) & (body >= 0)).tolist():
        meets = ((group[i] & mask) | (group & mask[i]) != 0) & (body != body[i]) & among
        if not collisions.neighbours:
            meets &= (body != above[i]) | (body < 0)
            meets &= above != body[i]
        meets[: i + 1] = False
        meets[list(excluded.get(i, ()))] = False
        yield i, np.flatnonzero(meets).tolist()


@once
def carriers(model: Robot) -> tuple[int, ...]:
    """For every body the one that carries it: its nearest ancestor that is not a massless part of a
    joint; -1: the base.
    """
    out: list[int] = []
    for body in model.bodies:
        parent = body.parent
        while parent >= 0:
            up = model.bodies[parent]
            if up.mass or up.inertia.any() or up.shapes or up.points:
                break
            parent = up.parent
        out.append(parent)
    return tuple(out)


def _named(model: Robot, name: str) -> list[int]:
    """The shapes that a name means: those of that name, else all of a body or of the world that
    collide.
    """
    places = list(enumerate(model.shapes))
    named = [i for i, place in places if name in (place.name, place.shape.name)]
    if named:
        return named
    b = model.attached[name].body if name in model.attached else -1
    carries = name == WORLD or b >= 0
    return [i for i, place in places if carries and place.body == b and place.shape.collides]
