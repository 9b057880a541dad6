"""Trajectories one after the other."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

from ramify.core.arrays import finite_number
from ramify.core.errors import StateError
from ramify.core.records import settle
from ramify.core.scalar import Scalar, number
from ramify.documents.forms import Listed
from ramify.documents.kinds import OneOf, key
from ramify.motion.per_joint import trajectories
from ramify.motion.piecewise import pick
from ramify.motion.trajectory import BEGIN, MOTIONS, Row, Texts, Trajectory

MEET = 1e-6
"""How far, in rad or m, one part may begin from where the one before has ended."""


@MOTIONS.add("sequence")
@dataclass(frozen=True)
class Sequence(Trajectory):
    """``parts`` run one after the other from ``begin`` on, each from its own begin for its
    duration.

    Only the last part may be endless. Rates may jump from part to part, positions may not.

    Raises StateError where parts differ in their number of coordinates, do not end, or do not meet.
    """

    parts: Any = field(metadata=key(Listed(OneOf(MOTIONS))))
    begin: float = field(default=0.0, metadata=BEGIN)

    def __post_init__(self) -> None:
        parts = trajectories("Sequence", self.parts)
        settle(self, parts=parts, begin=finite_number("begin", self.begin, "s"))
        for i, (one, other) in enumerate(pairwise(parts)):
            if other.n != one.n:
                raise StateError(
                    f"part {i} of the sequence has {one.n} coordinates, part {i + 1} has {other.n}"
                )
            if not math.isfinite(one.duration):
                raise StateError(f"part {i} of the sequence does not end; give it a duration")
            ends = one.text(one.until)[0], other.text(other.begin)[0]
            for k, (x, y) in enumerate(zip(*ends, strict=True)):
                a, b = number(x), number(y)
                if not abs(a - b) <= MEET * max(1.0, abs(a)):
                    raise StateError(
                        f"the sequence jumps: part {i} leaves coordinate {k} at {a:.9g}, the next "
                        f"starts at {b:.9g}"
                    )

    @property
    def n(self) -> int:
        return int(self.parts[0].n)

    @property
    def duration(self) -> float:  # type: ignore[override]
        return math.fsum(part.duration for part in self.parts)

    @property
    def _starts(self) -> Row:
        """When each part begins, s."""
        return tuple(accumulate((part.duration for part in self.parts[:-1]), initial=self.begin))

    @property
    def traceable(self) -> bool:
        return all(part.traceable for part in self.parts)

    def inside(self, t: Scalar) -> Texts:
        starts, n = self._starts, self.n
        pairs = zip(starts, self.parts, strict=True)
        texts = [part.text(t - start + part.begin) for start, part in pairs]
        rows = [[x for part in text for x in part] for text in texts]
        found = list(pick(t, starts[1:], rows))
        return found[:n], found[n : 2 * n], found[2 * n :]
