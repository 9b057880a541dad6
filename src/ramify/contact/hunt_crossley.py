"""Hunt and Crossley's contact: a stiffening spring whose damping grows with the depth, so that the
force starts from zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

from ramify.contact.ground import LAWS, TINY, Ground, Normal, positive_part, regularised_coulomb
from ramify.core.errors import StateError
from ramify.core.scalar import Scalar, select, sqrt
from ramify.documents.forms import Number
from ramify.documents.kinds import key

SAG = 0.005
"""m: how deep the whole robot would stand on one point, where no stiffness is given."""


@LAWS.add("hunt_crossley")
@dataclass(frozen=True, kw_only=True)
class HuntCrossley(Ground):
    """F = k d^n (1 + lambda d'), never negative, at the depth d.

    stiffness k (N/m^n); exponent n: 1, 1.5 (Hertz), 2, 2.5 or 3; dissipation lambda (s/m): a point
    that lands at a speed u bounces with about 1 - 2/3 lambda u of it; friction mu; slip_speed (m/s)
    below which friction is rounded off: a body that rests on a slope creeps at a part of it.
    """

    stiffness: Any = field(default=None, metadata=key(Number(above=0.0), unit="N/m^n"))
    exponent: Any = field(default=1.5, metadata=key(Number(above=0.0)))
    dissipation: Any = field(default=2.0, metadata=key(Number(least=0.0), unit="s/m"))
    friction: Any = field(default=0.7, metadata=key(Number(least=0.0)))
    slip_speed: Any = field(default=0.01, metadata=key(Number(above=0.0), unit="m/s"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.exponent not in (1.0, 1.5, 2.0, 2.5, 3.0):
            raise StateError(
                f"HuntCrossley: exponent is {self.exponent}; choose 1, 1.5, 2, 2.5 or 3"
            )

    def normal(self, depth: Scalar, rate: Scalar) -> Normal:
        d = positive_part(depth)
        power = d
        for _ in range(int(self.exponent) - 1):
            power = power * d
        if self.exponent != int(self.exponent):
            power = power * sqrt(d + TINY)
        elastic = self.stiffness * power
        force = select(depth > 0.0, elastic * positive_part(1.0 + self.dissipation * rate), 0.0)
        return Normal(force, elastic, elastic * d / (self.exponent + 1.0))

    def grip(self, load: Scalar, slip_squared: Scalar) -> Scalar:
        return regularised_coulomb(self.friction, self.slip_speed, load, slip_squared)

    def scaled(self, mass: float, weight: float) -> Self:
        if self.stiffness is not None:
            return self
        return replace(self, stiffness=weight / SAG**self.exponent)
