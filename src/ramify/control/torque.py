"""Forces known beforehand: constant, or from a table over time."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from ramify.control.base import CONTROLLERS, Controller, Forces, spread
from ramify.control.robot import RobotText, Scalars
from ramify.core.errors import StateError
from ramify.core.records import settle
from ramify.core.scalar import Scalar, select
from ramify.documents.forms import Choice, Numbers, Rows
from ramify.documents.kinds import key
from ramify.model.drives import Driven
from ramify.motion.pieces import pick
from ramify.motion.reading import Coordinates
from ramify.motion.trajectory import row, table

INTERPOLATE: Final = Choice(("linear", "hold"))


@CONTROLLERS.add("torque")
@dataclass(frozen=True)
class Torque(Controller):
    """Constant forces ``tau``, N m or N: a number, one per driven coordinate, or (nv,).

    Raises StateError where a force is not finite or the shape does not fit.
    """

    tau: Any = field(metadata=key(Coordinates(needed=True, degrees=False), unit="N m or N"))

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, tau=row("tau", self.tau))

    def law(
        self, robot: RobotText, driven: Driven, t: Scalar, q: Scalars, v: Scalars, z: Scalars
    ) -> Forces:
        return list(spread("tau", self.tau, driven, robot)), []


@CONTROLLERS.add("torque_table")
@dataclass(frozen=True)
class TorqueTable(Controller):
    """Forces ``values`` (T, k) or (T, nv), N m or N, at the rising ``times`` (T,), s; k the number
    of driven coordinates.

    interpolate: "linear" between the rows, or "hold", each row until the next. The first row holds
    before its time, the last after. The text costs some selections per row when it is compiled: for
    tables of thousands of rows use the ``tau`` of ``rf.rollout``.

    Raises StateError where times do not rise, shapes do not fit, a value is not finite or
    ``interpolate`` is unknown.
    """

    times: Any = field(metadata=key(Numbers(), unit="s"))
    values: Any = field(metadata=key(Rows(per="times"), unit="N m or N"))
    interpolate: str = field(default="linear", metadata=key(INTERPOLATE))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.interpolate not in INTERPOLATE.values:
            raise StateError(f"interpolate {self.interpolate!r} must be {INTERPOLATE.wanted}")
        times, values = table("values", self.times, self.values, least=1)
        settle(self, times=times, values=values)

    @cached_property
    def _lines(self) -> list[list[float]]:
        """For every interval: its first time, the forces there, and their slopes."""
        ends = zip(self.times, self.times[1:], self.values, self.values[1:], strict=False)
        return [
            [t0, *one, *((b - a) / (t1 - t0) for a, b in zip(one, other, strict=True))]
            for t0, t1, one, other in ends
        ]

    def law(
        self, robot: RobotText, driven: Driven, t: Scalar, q: Scalars, v: Scalars, z: Scalars
    ) -> Forces:
        if self.interpolate == "hold" or len(self.times) == 1:
            return list(spread("values", pick(t, self.times[1:], self.values), driven, robot)), []
        s = select(t < self.times[0], self.times[0], select(t > self.times[-1], self.times[-1], t))
        first, *numbers = pick(s, self.times[1:-1], self._lines)
        u, n = s - first, len(self.values[0])
        tau = [a + u * slope for a, slope in zip(numbers[:n], numbers[n:], strict=True)]
        return list(spread("values", tau, driven, robot)), []
