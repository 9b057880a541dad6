"""The points of a robot that can touch a ground: the contact points of its links, or those of their
shapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from ramify.contact.closest import ground_points
from ramify.contact.collision_pairs import surface_pairs
from ramify.core.errors import ModelError
from ramify.core.messages import near
from ramify.core.warning import LeftOutWarning, warn
from ramify.model.collisions import ShapePlace
from ramify.model.robot import Robot
from ramify.model.shape import Shape

MOST_POINTS: Final = 512
"""Points of shapes that a ground may have to follow."""


class TouchingPoint(NamedTuple):
    """A point of a body that touches: ``place`` in the body's frame (m), the centre of a ball of
    this ``radius`` (m; 0 for a point). ``shape``: that which has it, None for a declared one.
    """

    name: str
    body: int
    place: tuple[float, float, float]
    radius: float = 0.0
    shape: Shape | None = None


def touching_points(model: Robot, selected: Sequence[str] | None) -> list[TouchingPoint]:
    """The points that touch, all or those with the selected names: of a link with contact points
    these, of any other the points of its shapes that collide with the ground. A name that two
    bodies share is preceded by its body; that of a shape stands for all its points.

    Raises ModelError where there are none, for an unknown name, and for too many.
    """
    bodies = enumerate(model.bodies)
    points = [(name, b, place) for b, body in bodies for name, place in body.points]
    counts = Counter(name for name, _, _ in points)
    named = [
        TouchingPoint(name if counts[name] == 1 else f"{model.bodies[b].name}.{name}", b, place)
        for name, b, place in points
    ]
    groups = {point.name: [point] for point in named}
    for name, group in points_of_shapes(model).items():
        prefix = ""
        if groups.keys() & {name, *(point.name for point in group)}:  # a shape called like a point
            prefix = f"{model.bodies[group[0].body].name}."
        groups[prefix + name] = [point._replace(name=prefix + point.name) for point in group]
    if not groups:
        raise ModelError(
            f"{model.name} has no contact points, and no sphere, capsule or box that collides; "
            "give its links some: rf.with_contact_points, or points: or shapes: with collides: "
            "true in its file"
        )
    if selected is None:
        return [point for group in groups.values() for point in group]
    if not selected:
        raise ModelError("points is empty; name some, or leave it out for all")
    single = {point.name: [point] for group in groups.values() for point in group}
    wanted: dict[str, TouchingPoint] = {}
    for name in selected:
        if name not in groups and name not in single:
            known = sorted({*groups, *single})
            raise ModelError(f"{model.name} has no contact point {name!r}{near(str(name), known)}")
        wanted |= {point.name: point for point in groups.get(name) or single[name]}
    return [point for group in groups.values() for point in group if point.name in wanted]


def points_of_shapes(model: Robot) -> dict[str, list[TouchingPoint]]:
    """The points of every shape by which a link touches the ground, by the names of the shapes."""
    groups: dict[str, list[TouchingPoint]] = {}
    for shape in touching_shapes(model):
        places = ground_points(shape.shape)
        if not places:
            continue
        names = [shape.name] if len(places) == 1 else [f"{shape.name}.{i}" for i in range(8)]
        groups[shape.name] = [
            TouchingPoint(name, shape.body, place, radius, shape.shape)
            for name, (place, radius) in zip(names, places, strict=False)
        ]
    number = sum(map(len, groups.values()))
    if number > MOST_POINTS:
        raise ModelError(
            f"{model.name}: its shapes have {number} points that may touch the ground, more than "
            f"{MOST_POINTS}; let fewer shapes collide, or declare contact points"
        )
    return groups


def ground_shapes(model: Robot) -> list[ShapePlace]:
    """The shapes of bodies that collide with the planes and height fields of the robot's world;
    where it has none, all that collide.
    """
    surfaces = surface_pairs(model)
    if surfaces is None:
        return [place for place in model.shapes if place.body >= 0 and place.shape.collides]
    touching = {(pair.body, id(pair.shape)) for pair in surfaces}
    return [place for place in model.shapes if (place.body, id(place.shape)) in touching]


def touching_shapes(model: Robot) -> list[ShapePlace]:
    """Those of the ``ground_shapes`` whose links have no contact points, and so touch with them."""
    return [place for place in ground_shapes(model) if not model.bodies[place.body].points]


def can_touch(model: Robot) -> bool:
    """Whether a robot has contact points, or shapes that serve as such."""
    return any(body.points for body in model.bodies) or any(
        ground_points(place.shape) for place in touching_shapes(model)
    )


def warn_of_passing_shapes(model: Robot) -> None:
    """Warn of shapes by which a link would touch the ground, but that have no points."""
    passing = [place for place in touching_shapes(model) if not ground_points(place.shape)]
    if passing:
        names = ", ".join(f"{p.name} ({p.shape.kind})" for p in passing[:4])
        more = f" and {len(passing) - 4} more" if len(passing) > 4 else ""
        warn(
            f"{model.name}: these shapes pass through the ground: {names}{more}; give their links "
            "contact points, spheres, capsules or boxes",
            LeftOutWarning,
        )
