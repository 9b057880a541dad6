"""Standing still."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ramify.core.records import settle
from ramify.core.scalar import Scalar
from ramify.motion.trajectory import Texts, Trajectory, row, span


@dataclass(frozen=True)
class Hold(Trajectory):
    """The coordinates stay at ``q`` (n,) or a number, rad or m. A duration matters only as a part
    of a Sequence.

    Raises StateError where a value is not finite or the duration is not positive.
    """

    q: Any
    duration: float = math.inf
    begin: float = 0.0

    def __post_init__(self) -> None:
        begin, duration = span(self.begin, self.duration, endless=True)
        settle(self, q=row("q", self.q), begin=begin, duration=duration)

    @property
    def n(self) -> int:
        return len(self.q)

    def inside(self, t: Scalar) -> Texts:
        return list(self.q), [0.0] * self.n, [0.0] * self.n
