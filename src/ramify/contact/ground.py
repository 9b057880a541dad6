"""The base of grounds: a law for the force on one point, over a terrain.

The law is split as energy is: a normal force that depends on the depth of the point and its rate,
and a grip that resists its slip. Both are texts over any scalar, so the ground runs on floats, on
batches and inside compiled code; neither ever pulls.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, NamedTuple, Self

import numpy as np

from ramify.contact.terrain import TERRAINS, Flat, Terrain
from ramify.core.errors import StateError
from ramify.core.jet import Jet, rate
from ramify.core.records import settle
from ramify.core.scalar import Scalar, atan2, select, sqrt
from ramify.core.spatial import Vec3
from ramify.documents.forms import NameList
from ramify.documents.kinds import OneOf, Registry, check_numbers, key
from ramify.dynamics.implicit import Resistance
from ramify.model.robot import Robot, the_robot

LAWS: Final[Registry[Ground]] = Registry("ground", key="law", optional=True, besides=("chosen",))
"""Ground laws by their words: ``@LAWS.add("spring")`` above a dataclass adds one."""


class Normal(NamedTuple):
    """Along the normal, at a depth: the ``force`` (N), the part of it that is ``elastic``, and the
    energy ``stored`` (J).
    """

    force: Scalar
    elastic: Scalar
    stored: Scalar


class Reaction(NamedTuple):
    """The reaction of the ground to a point: ``force`` (N) on it in the world, ``depth`` (m,
    negative above the ground), ``slip``: its velocity along the surface (m/s), the energy
    ``stored`` in the ground (J) and the power ``loss`` (W) that it dissipates.
    """

    force: Vec3
    depth: Scalar
    slip: Vec3
    stored: Scalar
    loss: Scalar


@dataclass(frozen=True, kw_only=True)
class Ground(ABC):
    """A law and a terrain. A law is a frozen dataclass that writes ``normal``, ``grip`` and
    ``scaled``.

    terrain: the surface; points: names of the contact points that may touch it, None for all of the
    model's. The fields that a law adds are its keys in files; their forms in the metadata
    (``ramify.documents.kinds.key``) are checked in Python and in files alike.

    Its repr must say all that the law depends on: compiled code is kept under it.
    """

    terrain: Terrain = field(default_factory=Flat, metadata=key(OneOf(TERRAINS)))
    points: Any = field(default=None, metadata=key(NameList()))

    def __post_init__(self) -> None:
        """Check all fields by their forms; a law that checks more calls this first."""
        check_numbers(self)
        if not isinstance(self.terrain, Terrain):
            raise StateError(
                "terrain must be a terrain of rf.contact such as Flat() or Slope(); it is "
                f"{self.terrain!r}"
            )
        if self.points is not None:
            listed = [self.points] if isinstance(self.points, str) else self.points
            if not isinstance(listed, Sequence) or not all(
                isinstance(name, str) for name in listed
            ):
                raise StateError(
                    f"points must be a list of names, or None for all; it is {self.points!r}"
                )
            settle(self, points=tuple(listed))

    @abstractmethod
    def normal(self, depth: Scalar, rate: Scalar) -> Normal:
        """The normal force at a depth (m) that grows at a rate (m/s). Zero above the ground, never
        negative.
        """

    @abstractmethod
    def grip(self, load: Scalar, slip_squared: Scalar) -> Scalar:
        """k >= 0 (N s/m) of the friction -k slip under a normal load (N), from the square of the
        slip (m^2/s^2).
        """

    @abstractmethod
    def scaled(self, mass: float, weight: float) -> Self:
        """This law with a number for everything left open, for a robot of a mass (kg) and a
        weight (N).
        """

    @property
    def constant_damping(self) -> float:
        """N s/m along the normal that a sinking point feels at any depth; it limits the step of
        explicit methods.
        """
        return 0.0

    def reaction(self, place: Vec3, velocity: Vec3, load: Scalar | None = None) -> Reaction:
        """The reaction to a point at a place (m) with a velocity (m/s), both in the world;
        load: the normal force (N) that friction acts under, by default that of the law.

        What enters the ground is stored or lost: the power -f . v on the point is d(stored)/dt +
        loss, with loss >= 0.
        """
        depth, normal = self.terrain.under(place)
        steep = normal.dot(normal)  # one on planes
        sinking = -normal.dot(velocity)
        force, elastic, stored = self.normal(depth, sinking)
        slip = velocity + normal * (sinking / steep)
        rubbed = self.friction_force((force if load is None else load) * sqrt(steep), slip)
        loss = (force - elastic) * sinking - rubbed.dot(slip)
        return Reaction(normal * force + rubbed, depth, slip, stored, loss)

    def friction_force(self, load: Scalar, slip: Vec3) -> Vec3:
        """The friction (N) under a normal load (N) against a slip (m/s); it never helps it."""
        return slip * -self.grip(load, slip.dot(slip))

    def resistance(self, place: Vec3, velocity: Vec3, load: Scalar | None = None) -> Resistance:
        """What it opposes to a small motion of a point: the derivatives of the normal force by the
        depth and its rate, none of them negative, the grip, under ``load`` (N) if given, and the
        normal force.
        """
        depth, normal = self.terrain.under(place)
        steep = normal.dot(normal)
        sinking = -normal.dot(velocity)
        force = self.normal(depth, sinking).force
        slip = velocity + normal * (sinking / steep)
        by_depth, by_rate = (
            rate(self.normal(Jet(depth, deeper, None), Jet(sinking, faster, None)).force)
            for deeper, faster in ((1.0, 0.0), (0.0, 1.0))
        )
        grip = self.grip((force if load is None else load) * sqrt(steep), slip.dot(slip))
        return Resistance(normal, positive_part(by_depth), positive_part(by_rate), grip, force)

    def fitted(self, model: Robot) -> Self:
        """The ground for one robot: open numbers scaled by its mass, the terrain's upward direction
        against its gravity.
        """
        up = upward(model, self.terrain)
        size = float(np.linalg.norm(model.gravity))
        law = self.scaled(model.mass, model.mass * (size if size > 0.0 else 9.81))
        return replace(law, terrain=self.terrain.fitted(up))

    def described(self, asked: Ground) -> Mapping[str, Any]:
        """The mapping that gives this ground again; ``chosen`` names the numbers that ``asked`` had
        left to the robot's mass.
        """
        names = [f.name for f in fields(self) if getattr(self, f.name) is not None]
        chosen = [name for name in names if getattr(asked, name) is None]
        return {**LAWS.write(self), "chosen": chosen}


# ---- what laws share ----


def upward(model: Robot, terrain: Terrain) -> tuple[float, float, float]:
    """The direction against the robot's gravity, or that of the terrain where there is none."""
    the_robot(model)
    g = np.array(model.gravity)
    size = float(np.linalg.norm(g))
    if not size > 0.0:
        return terrain.axes[2]
    x, y, z = (float(x) for x in -g / size)
    return x, y, z


TINY = 1e-300
"""Under a root, so that its derivative at zero is finite."""
STILL = 1e-9
"""m/s: slower than any slip that matters; keeps the direction of friction defined at rest."""


def positive_part(x: Scalar) -> Scalar:
    """x where it is positive, else zero."""
    return select(x > 0.0, x, 0.0)


def pseudo_coulomb(friction: float, damping: float, load: Scalar, slip_squared: Scalar) -> Scalar:
    """The grip of eq. (D.5): viscous with ``damping`` (N s/m) at slow slip, Coulomb's mu N at fast
    slip.

    The book treats each horizontal direction separately, which makes friction stronger along a
    diagonal; here it acts against the slip, whatever its direction.
    """
    limit = friction * load
    slip = sqrt(slip_squared + STILL * STILL)
    return limit * (2.0 / math.pi) * atan2((0.5 * math.pi * damping) * slip, limit) / slip


def regularised_coulomb(
    friction: float, slip_speed: float, load: Scalar, slip_squared: Scalar
) -> Scalar:
    """mu N slip / sqrt(slip^2 + slip_speed^2): Coulomb's friction, rounded off below slip_speed
    (m/s).
    """
    return friction * load / sqrt(slip_squared + slip_speed * slip_speed)
