"""Tables: positions that were measured, planned or computed elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ramify.core.cached import cached_property
from ramify.core.records import settle
from ramify.core.scalar import Scalar
from ramify.documents.forms import Numbers, Rows
from ramify.documents.kinds import key
from ramify.motion.spline import Spline
from ramify.motion.trajectory import MOTIONS, Sampled, Texts, timed_rows


@MOTIONS.add("table")
@dataclass(frozen=True, repr=False)
class Table(Sampled):
    """Positions ``values`` (T, n), rad or m, at the rising ``times`` (T,), s.

    Between the rows runs the cubic spline with "not_a_knot" ends: rates and accelerations are its
    exact derivatives, continuous, and a motion that is a cubic is met exactly. A table may be long.

    Raises StateError where times do not rise, shapes do not fit or a value is not finite.
    """

    ROWS = "values"
    times: Any = field(metadata=key(Numbers(), unit="s"))
    values: Any = field(metadata=key(Rows(degrees=True, per="times"), unit="rad or m"))

    def __post_init__(self) -> None:
        times, values = timed_rows("values", self.times, self.values, least=2)
        settle(self, times=times, values=values)

    @cached_property
    def _spline(self) -> Spline:
        return Spline(self.times, self.values, "not_a_knot")

    def inside(self, t: Scalar) -> Texts:
        return self._spline.inside(t)
