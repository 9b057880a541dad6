"""A straight line of the tip of a planar two-link arm, by inverse kinematics in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ramify.core.arrays import one_number
from ramify.core.errors import StateError
from ramify.core.jet import Jet, parts
from ramify.core.records import settle
from ramify.core.scalar import Scalar, atan2, cos, sin, sqrt
from ramify.documents.forms import Choice, Numbers
from ramify.documents.kinds import key
from ramify.motion.trajectory import BEGIN, DURATION, MOTIONS, Row, Texts, Trajectory, row, span


@MOTIONS.add("planar_line")
@dataclass(frozen=True)
class PlanarLine(Trajectory):
    """The two joint angles that lead the tip of a planar arm from ``start`` to ``end``, points (x,
    y) in m, on a straight line.

    The first joint stands at the origin, the links have the ``lengths`` (l1, l2), m, and lie along
    x at zero. With s = (t - begin) / T the share of the way that lies behind is (1 - cos(pi s)) /
    2: an acceleration that runs like a cosine, from rest to rest. ``elbow``: 1 for a second angle
    above zero, -1 below. Rates and accelerations are exact derivatives.

    Raises StateError where a value is not finite or the line leaves the reach of the arm.
    """

    start: Any = field(metadata=key(Numbers(2), unit="m"))
    end: Any = field(metadata=key(Numbers(2), unit="m"))
    lengths: Any = field(metadata=key(Numbers(2), unit="m"))
    duration: float = field(default=math.pi, metadata=DURATION)
    begin: float = field(default=0.0, metadata=BEGIN)
    elbow: int = field(default=1, metadata=key(Choice((1, -1))))

    def __post_init__(self) -> None:
        begin, duration = span(self.begin, self.duration)
        pairs = {name: row(name, getattr(self, name)) for name in ("start", "end", "lengths")}
        for name, pair in pairs.items():
            if len(pair) != 2:
                raise StateError(f"{name} has {len(pair)} entries; it must have two")
        if min(pairs["lengths"]) <= 0.0:
            raise StateError(f"lengths {pairs['lengths']} must be positive, in m")
        if abs(one_number(self.elbow)) != 1.0:
            raise StateError(f"elbow {self.elbow!r} must be 1 or -1")
        settle(self, begin=begin, duration=duration, **pairs)
        for share in (0.0, 1.0, self._nearest):
            self._check_reach(share)

    @property
    def _nearest(self) -> float:
        """The share of the way at which the line is closest to the first joint."""
        (x, y), (u, w) = self.start, self._way
        length = u * u + w * w
        return min(1.0, max(0.0, -(x * u + y * w) / length)) if length else 0.0

    @property
    def _way(self) -> Row:
        return tuple(b - a for a, b in zip(self.start, self.end, strict=True))

    def _check_reach(self, share: float) -> None:
        x, y = (a + share * d for a, d in zip(self.start, self._way, strict=True))
        l1, l2 = self.lengths
        reach = math.hypot(x, y)
        if not abs(l1 - l2) < reach < l1 + l2:
            limits = f"{abs(l1 - l2):g} to {l1 + l2:g} m"
            raise StateError(
                f"the line passes ({x:g}, {y:g}), {reach:g} m from the first joint; the arm "
                f"reaches from {limits}"
            )

    def inside(self, t: Scalar) -> Texts:
        return parts(self._angles((Jet(t, 1.0) - self.begin) / self.duration))

    def _angles(self, s: Scalar) -> list[Scalar]:
        """(theta1, theta2) at a share s of the duration."""
        share = 0.5 - 0.5 * cos(math.pi * s)
        x, y = (a + share * d for a, d in zip(self.start, self._way, strict=True))
        l1, l2 = self.lengths
        c2 = (x * x + y * y - (l1 * l1 + l2 * l2)) * (0.5 / (l1 * l2))
        theta2 = atan2(float(self.elbow) * sqrt(1.0 - c2 * c2), c2)
        return [atan2(y, x) - atan2(l2 * sin(theta2), l1 + l2 * cos(theta2)), theta2]
