"""Hunt and Crossley's contact: a stiffening spring whose damping grows with the depth, so that the
force starts from zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from ramify.contact.ground import TINY, Ground, Normal, check_numbers, positive, regularised_coulomb
from ramify.core.errors import StateError
from ramify.core.scalar import Scalar, select, sqrt

SAG = 0.005
"""m: how deep the whole robot would stand on one point, where no stiffness is given."""


@dataclass(frozen=True, kw_only=True)
class HuntCrossley(Ground):
    """F = k d^n (1 + lambda d'), never negative, at the depth d.

    stiffness k (N/m^n); exponent n: 1, 1.5 (Hertz), 2, 2.5 or 3; dissipation lambda (s/m): a point
    that lands at a speed u bounces with about 1 - 2/3 lambda u of it; friction mu; slip_speed (m/s)
    below which friction is rounded off: a body that rests on a slope creeps at a part of it.
    """

    word: ClassVar[str] = "hunt_crossley"
    stiffness: Any = None
    exponent: Any = 1.5
    dissipation: Any = 2.0
    friction: Any = 0.7
    slip_speed: Any = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(
            self,
            positive=("stiffness", "exponent", "slip_speed"),
            not_negative=("dissipation", "friction"),
        )
        if self.exponent not in (1.0, 1.5, 2.0, 2.5, 3.0):
            raise StateError(
                f"HuntCrossley: exponent is {self.exponent}; choose 1, 1.5, 2, 2.5 or 3"
            )

    def normal(self, depth: Scalar, rate: Scalar) -> Normal:
        d = positive(depth)
        power = d
        for _ in range(int(self.exponent) - 1):
            power = power * d
        if self.exponent != int(self.exponent):
            power = power * sqrt(d + TINY)
        elastic = self.stiffness * power
        force = select(depth > 0.0, elastic * positive(1.0 + self.dissipation * rate), 0.0)
        return Normal(force, elastic, elastic * d / (self.exponent + 1.0))

    def grip(self, load: Scalar, slip_squared: Scalar) -> Scalar:
        return regularised_coulomb(self.friction, self.slip_speed, load, slip_squared)

    def scaled(self, mass: float, weight: float) -> Self:
        return (
            self
            if self.stiffness is not None
            else replace(self, stiffness=weight / SAG**self.exponent)
        )
