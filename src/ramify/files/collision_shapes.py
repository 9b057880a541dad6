"""Collision elements of URDF and SDF as shapes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from ramify.core.names import is_name
from ramify.files.shape_schema import EVERYTHING, WITH_WORLD, Groups
from ramify.model.shape import FRICTION, Shape

SELF: Final[dict[bool, Groups]] = {False: WITH_WORLD, True: EVERYTHING}
"""Groups of the shapes of a robot, by whether it collides with itself."""


def add_collision(shapes: list[Shape], shape: Shape) -> None:
    """Add a shape that collides: one of equal kind, size and frame that is drawn already
    collides.
    """
    for i, drawn in enumerate(shapes):
        same = (drawn.kind, drawn.size, drawn.frame) == (shape.kind, shape.size, shape.frame)
        if same and not drawn.collides:
            shapes[i] = replace(shape, colour=drawn.colour, drawn=True)
            return
    shapes.append(shape)


def surface_numbers(friction: float | None, restitution: float | None) -> tuple[float, float]:
    """Friction and restitution as a shape takes them; what is missing or impossible counts as not
    given.
    """
    mu, e = (math.nan if x is None else x for x in (friction, restitution))
    return (
        mu if math.isfinite(mu) and mu >= 0.0 else FRICTION,
        min(e, 1.0) if math.isfinite(e) and e >= 0.0 else 0.0,
    )


def shape_name(name: str | None) -> str:
    """The name of an element, if a shape can have it."""
    return name if name and is_name(name) else ""
