"""Standing still."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ramify.core.records import settle
from ramify.core.scalar import Scalar
from ramify.documents.kinds import key
from ramify.motion.coordinate_reader import CoordinateReader
from ramify.motion.trajectory import BEGIN, ENDLESS, MOTIONS, Texts, Trajectory, row, span


@MOTIONS.add("hold")
@dataclass(frozen=True)
class Hold(Trajectory):
    """The coordinates stay at ``q`` (n,) or a number, rad or m. A duration matters only as a part
    of a Sequence.

    Raises StateError where a value is not finite or the duration is not positive.
    """

    q: Any = field(metadata=key(CoordinateReader("rest"), unit="rad or m"))
    duration: float = field(default=math.inf, metadata=ENDLESS)
    begin: float = field(default=0.0, metadata=BEGIN)

    def __post_init__(self) -> None:
        begin, duration = span(self.begin, self.duration, endless=True)
        settle(self, q=row("q", self.q), begin=begin, duration=duration)

    def inside(self, t: Scalar) -> Texts:
        return list(self.q), [0.0] * len(self.q), [0.0] * len(self.q)
