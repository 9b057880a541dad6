"""Firm and dusty ground: springs and dampers of appendix D, with pseudo-Coulomb friction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from ramify.contact.ground import LAWS, Ground, Normal, positive_part, pseudo_coulomb
from ramify.contact.terrain import Flat
from ramify.core.errors import ModelError, StateError
from ramify.core.scalar import Scalar, select
from ramify.core.spatial import Vec3
from ramify.documents.forms import Flag, Number
from ramify.documents.kinds import key
from ramify.model.robot import Robot

SAG = 0.05
"""m: how deep the whole robot would stand on one point, where no stiffness is given (ReDySim's
robots: 0.046 to 0.047 m).
"""
OVERDAMPING = 10.0
"""zeta of eq. (D.4) in ReDySim's examples."""
DRAG = 0.5
"""s: horizontal damping by stiffness, where none is given (ReDySim's robots: 0.5 to 0.67 s)."""


@dataclass(frozen=True, kw_only=True)
class _Book(Ground):
    """The base of both grounds of appendix D.

    stiffness k' (N/m); damping c' (N s/m), or overdamping zeta of c' = 2 zeta sqrt(k' m) with m the
    robot's mass (eq. D.4); friction mu; horizontal_damping c_h (N s/m) of eq. (D.5); per_axis:
    friction along each horizontal axis separately, as (D.5) is printed and ReDySim has it, so that
    along a diagonal it reaches sqrt(2) mu N; by default it acts against the slip.
    """

    stiffness: Any = field(default=None, metadata=key(Number(above=0.0), unit="N/m"))
    damping: Any = field(default=None, metadata=key(Number(least=0.0), unit="N s/m"))
    overdamping: Any = field(default=None, metadata=key(Number(least=0.0)))
    friction: Any = field(default=0.7, metadata=key(Number(least=0.0)))
    horizontal_damping: Any = field(default=None, metadata=key(Number(above=0.0), unit="N s/m"))
    per_axis: bool = field(default=False, metadata=key(Flag()))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.damping is not None and self.overdamping is not None:
            raise StateError(
                f"{type(self).__name__}: damping {self.damping:g} N s/m and overdamping "
                f"{self.overdamping:g} say the same; give one"
            )

        if not isinstance(self.per_axis, bool):
            raise StateError(
                f"{type(self).__name__}: per_axis {self.per_axis!r} must be True or False"
            )
        if self.per_axis and not isinstance(self.terrain, Flat):
            raise StateError(
                f"{type(self).__name__}: per_axis is for level ground; on "
                f"{type(self.terrain).__name__} friction acts against the slip: leave it out"
            )

    @property
    def constant_damping(self) -> float:
        return float(self.damping)

    def grip(self, load: Scalar, slip_squared: Scalar) -> Scalar:
        return pseudo_coulomb(self.friction, self.horizontal_damping, load, slip_squared)

    def friction_force(self, load: Scalar, slip: Vec3) -> Vec3:
        if not self.per_axis:
            return super().friction_force(load, slip)
        parts = [(Vec3(*axis), slip.dot(Vec3(*axis))) for axis in self.terrain.axes[:2]]
        first, second = (axis * (-u * self.grip(load, u * u)) for axis, u in parts)
        return first + second

    def scaled(self, mass: float, weight: float) -> Self:
        k = weight / SAG if self.stiffness is None else self.stiffness
        zeta = OVERDAMPING if self.overdamping is None else self.overdamping
        c = 2.0 * zeta * math.sqrt(k * mass) if self.damping is None else self.damping
        ch = DRAG * k if self.horizontal_damping is None else self.horizontal_damping
        return replace(self, stiffness=k, damping=c, overdamping=None, horizontal_damping=ch)


@LAWS.add("firm")
@dataclass(frozen=True, kw_only=True)
class Firm(_Book):
    """Firm ground (eqs. D.1 - D.5): F = k' d + c d', never negative, at the depth d.

    c is c' while the point sinks; while it rises it grows smoothly from zero at the surface to c'
    at the depth ``full_depth`` (m), c = c' (3 s^2 - 2 s^3) with s = d / full_depth. By default
    that is c' ``top_speed`` / k', the depth whose spring carries the damping of a point that rises
    at top_speed (m/s; ReDySim's vz_max). What is left open follows from the robot's mass.
    """

    top_speed: Any = field(default=None, metadata=key(Number(above=0.0), unit="m/s"))
    full_depth: Any = field(default=None, metadata=key(Number(above=0.0), unit="m"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.top_speed is not None and self.full_depth is not None:
            raise StateError(
                f"Firm: top_speed and full_depth ({self.full_depth:g} m) say the same; give one"
            )

    @classmethod
    def of_redysim(cls, model: Robot, **others: Any) -> Self:
        """The ground of a legged robot that was read from ReDySim's files: its ``g_prop``, friction
        along each axis separately, with other fields as given.

        Raises ModelError for a robot that has none.
        """
        ground = model.metadata.get("ground")
        if not isinstance(ground, Mapping):
            raise ModelError(
                f"{model.name} has no ground of its own; ReDySim's legged robots have, in g_prop. "
                'Use ground="firm", whose numbers suit the mass of the robot'
            )
        named = ("stiffness", "damping", "friction", "horizontal_damping")
        numbers = {name: ground[name] for name in named}
        up = [float(i == ground["axes"][0]) for i in (1, 2, 3)]
        book = {"top_speed": ground["speed_limit"], "terrain": Flat(up=up), "per_axis": True}
        return cls(**{**numbers, **book, **others})

    def normal(self, depth: Scalar, rate: Scalar) -> Normal:
        k, c = self.stiffness, self.damping
        d = positive_part(depth)
        s = d / self.full_depth
        s = select(s < 1.0, s, 1.0)
        rising = c * (s * s * (3.0 - 2.0 * s))
        force = k * d + select(rate > 0.0, c, rising) * rate
        force = select(depth > 0.0, positive_part(force), 0.0)
        return Normal(force, k * d, 0.5 * k * (d * d))

    def scaled(self, mass: float, weight: float) -> Self:
        law = super().scaled(mass, weight)
        speed = 4.5 if self.top_speed is None else self.top_speed
        depth = speed * law.damping / law.stiffness if self.full_depth is None else self.full_depth
        return replace(law, top_speed=None, full_depth=depth if depth > 0.0 else 1.0)


@LAWS.add("dusty")
@dataclass(frozen=True, kw_only=True)
class Dusty(_Book):
    """Dusty ground (eq. D.6, corrected): a layer of dust, ``dust`` (m) thick, over a spring.

    A point that sinks feels the damper c' from the surface on and the spring k' (d - dust) below
    the layer; one that rises feels the spring only. The spring starts from zero at the bottom of
    the layer, so that what it gives back is what it took.
    """

    dust: Any = field(default=0.005, metadata=key(Number(least=0.0), unit="m"))

    def normal(self, depth: Scalar, rate: Scalar) -> Normal:
        k = self.stiffness
        d = positive_part(depth - self.dust)
        force = k * d + select(depth > 0.0, self.damping * positive_part(rate), 0.0)
        return Normal(force, k * d, 0.5 * k * (d * d))
