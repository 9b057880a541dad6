"""Fifth-degree polynomials: any positions, rates and accelerations at both ends."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final

from ramify.core.cached import cached_property
from ramify.core.errors import StateError
from ramify.core.scalar import Scalar
from ramify.documents.kinds import key
from ramify.motion.coordinate_reader import CoordinateReader
from ramify.motion.trajectory import (
    BEGIN,
    DURATION,
    MOTIONS,
    Texts,
    Trajectory,
    settle_rows,
    transposed,
)

_ENDS: Final = (
    "start", "end", "start_rate", "end_rate", "start_acceleration", "end_acceleration"
)  # fmt: skip
_RATE: Final = key(CoordinateReader(), unit="rad/s or m/s")
_ACCELERATION: Final = key(CoordinateReader(degrees=False), unit="rad/s^2 or m/s^2")


@MOTIONS.add("quintic")
@dataclass(frozen=True)
class Quintic(Trajectory):
    """From ``start`` to ``end`` within ``duration`` s along q = sum of c_k s^k, k = 0 … 5, with s =
    (t - begin) / T.

    start, end (n,) or a number, rad or m; rates (rad/s, m/s) and accelerations (rad/s^2, m/s^2) at
    the ends likewise, zero by default. With rest at both ends the share of the way is 10 s^3 - 15
    s^4 + 6 s^5.

    Raises StateError where a value is not finite, shapes do not fit, or the duration is not
    positive.
    """

    start: Any = field(metadata=key(CoordinateReader("rest"), unit="rad or m"))
    end: Any = field(metadata=key(CoordinateReader("start", needed=True), unit="rad or m"))
    duration: float = field(default=1.0, metadata=DURATION)
    begin: float = field(default=0.0, metadata=BEGIN)
    start_rate: Any = field(default=0.0, metadata=_RATE)
    end_rate: Any = field(default=0.0, metadata=_RATE)
    start_acceleration: Any = field(default=0.0, metadata=_ACCELERATION)
    end_acceleration: Any = field(default=0.0, metadata=_ACCELERATION)

    def __post_init__(self) -> None:
        settle_rows(self, *_ENDS)
        for i, coefficients in enumerate(self._coefficients):
            if not all(map(math.isfinite, coefficients)):
                raise StateError(
                    f"coordinate {i} of the quintic moves beyond all numbers: its ends, rates and "
                    f"accelerations do not fit the duration {self.duration:g} s"
                )

    @cached_property
    def _coefficients(self) -> list[tuple[float, ...]]:
        """c_0 … c_5 of each coordinate."""
        T = self.duration
        rows: list[tuple[float, ...]] = []
        ends = (getattr(self, name) for name in _ENDS)
        for q0, q1, v0, v1, a0, a1 in zip(*ends, strict=True):
            way, u0, u1, b0, b1 = q1 - q0, v0 * T, v1 * T, 0.5 * a0 * T**2, 0.5 * a1 * T**2
            rows.append((
                q0, u0, b0,
                10.0 * way - 6.0 * u0 - 4.0 * u1 - 3.0 * b0 + b1,
                -15.0 * way + 8.0 * u0 + 7.0 * u1 + 3.0 * b0 - 2.0 * b1,
                6.0 * way - 3.0 * u0 - 3.0 * u1 - b0 + b1,
            ))  # fmt: skip
        return rows

    def inside(self, t: Scalar) -> Texts:
        T = self.duration
        s = (t - self.begin) / T
        return transposed(
            (
                c0 + s * (c1 + s * (c2 + s * (c3 + s * (c4 + s * c5)))),
                (c1 + s * (2.0 * c2 + s * (3.0 * c3 + s * (4.0 * c4 + s * (5.0 * c5))))) / T,
                (2.0 * c2 + s * (6.0 * c3 + s * (12.0 * c4 + s * (20.0 * c5)))) / T**2,
            )
            for c0, c1, c2, c3, c4, c5 in self._coefficients
        )
