"""A rigid body and the joint that carries it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, constant
from ramify.model.joint import Joint
from ramify.model.shape import Shape


def _frozen(a: ArrayLike, shape: tuple[int, ...]) -> Array:
    return constant(a).reshape(shape)


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

    @property
    def drawn_shapes(self) -> tuple[Shape, ...]:
        """The shapes that pictures show: those that are drawn, or all, where none is."""
        return tuple(shape for shape in self.shapes if shape.drawn) or self.shapes

    def __post_init__(self) -> None:
        object.__setattr__(self, "mass", float(self.mass))
        object.__setattr__(self, "com", _frozen(self.com, (3,)))
        object.__setattr__(self, "inertia", _frozen(self.inertia, (3, 3)))
