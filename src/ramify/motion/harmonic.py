"""Harmonic motion: every coordinate swings like a sine."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ramify.core.scalar import Scalar, cos, sin
from ramify.documents.kinds import key
from ramify.motion.coordinate_reader import CoordinateReader
from ramify.motion.trajectory import (
    BEGIN,
    ENDLESS,
    MOTIONS,
    Texts,
    Trajectory,
    settle_rows,
    transposed,
)


@MOTIONS.add("harmonic")
@dataclass(frozen=True)
class Harmonic(Trajectory):
    """q = offset + amplitude sin(2 pi frequency (t - begin) + phase), without end unless a
    duration is given.

    offset and amplitude in rad or m, frequency in Hz, phase in rad; each (n,) or a number.

    Raises StateError where a value is not finite, shapes do not fit, or the duration is not
    positive.
    """

    offset: Any = field(metadata=key(CoordinateReader("rest"), unit="rad or m"))
    amplitude: Any = field(metadata=key(CoordinateReader(), unit="rad or m"))
    frequency: Any = field(metadata=key(CoordinateReader(needed=True, degrees=False), unit="Hz"))
    phase: Any = field(default=0.0, metadata=key(CoordinateReader(), unit="rad"))
    duration: float = field(default=math.inf, metadata=ENDLESS)
    begin: float = field(default=0.0, metadata=BEGIN)

    def __post_init__(self) -> None:
        settle_rows(self, "offset", "amplitude", "frequency", "phase", endless=True)

    def inside(self, t: Scalar) -> Texts:
        since = t - self.begin

        def one(
            offset: float, amplitude: float, frequency: float, phase: float
        ) -> tuple[Scalar, Scalar, Scalar]:
            w = 2.0 * math.pi * frequency
            angle = since * w + phase
            swing = amplitude * sin(angle)
            return offset + swing, amplitude * w * cos(angle), -(w * w) * swing

        return transposed(map(one, self.offset, self.amplitude, self.frequency, self.phase))
