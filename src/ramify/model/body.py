"""A rigid body and the joint that carries it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, constant
from ramify.model.frame import Frame
from ramify.model.joint import Joint


def _frozen(a: ArrayLike, shape: tuple[int, ...]) -> Array:
    return constant(a).reshape(shape)


@dataclass(frozen=True)
class Shape:
    """Something to draw: ``box`` (size x y z), ``cylinder`` (radius, length), ``sphere`` (radius),
    ``capsule`` (radius, length).

    Lengths in metres; ``frame`` is the shape's centre in the body's frame; cylinders and capsules
    lie along their z axis. ``colour``: "#rrggbb", empty where the file gives none.
    """

    kind: str
    size: tuple[float, ...]
    frame: Frame = field(default_factory=Frame)
    colour: str = ""


def hex_colour(parts: Sequence[float]) -> str:
    """ "#rrggbb" of red, green and blue from 0 to 1; empty where these are not three numbers."""
    if len(parts) < 3 or not all(math.isfinite(x) for x in parts):
        return ""
    return "#" + "".join(f"{round(255 * min(max(x, 0.0), 1.0)):02x}" for x in parts[:3])


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green and blue, 0 to 255, of "#rrggbb"."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body: ``mass`` in kg, ``com`` (3,) in m and ``inertia`` (3, 3) in kg m^2 about it,
    both in the body's frame.

    ``parent`` is the index of the body that carries it, -1 for the base. ``points`` are named
    points (3,) of contact. ``lift``: the mass (kg) that gravity compensation carries, and its
    mass centre (3,) in m.
    """

    name: str
    parent: int
    joint: Joint
    mass: float = 0.0
    com: Array = field(default_factory=lambda: np.zeros(3))
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))
    shapes: tuple[Shape, ...] = ()
    points: tuple[tuple[str, tuple[float, float, float]], ...] = ()
    lift: tuple[float, tuple[float, float, float]] = (0.0, (0.0, 0.0, 0.0))

    def __post_init__(self) -> None:
        object.__setattr__(self, "mass", float(self.mass))
        object.__setattr__(self, "com", _frozen(self.com, (3,)))
        object.__setattr__(self, "inertia", _frozen(self.inertia, (3, 3)))
