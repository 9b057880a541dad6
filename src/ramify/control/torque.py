"""Forces known beforehand: constant, or from a table over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from ramify.control.controller import CONTROLLERS, ControlForces, Controller, spread
from ramify.control.function_controller import refuse_undriven
from ramify.control.robot_text import RobotText
from ramify.core.cached import cached_property
from ramify.core.errors import StateError
from ramify.core.lookup import repr_with_digests
from ramify.core.names import one_of
from ramify.core.records import settle
from ramify.core.scalar import Scalar, Scalars, select
from ramify.documents.forms import Choice, Numbers, Rows
from ramify.documents.kinds import key
from ramify.model.driven import Driven
from ramify.model.robot import Robot
from ramify.motion.coordinate_reader import CoordinateReader
from ramify.motion.piecewise import Columns, Knots
from ramify.motion.spline import Spline
from ramify.motion.trajectory import row, timed_rows

INTERPOLATE: Final = Choice(("linear", "hold", "cubic"))


@CONTROLLERS.add("torque")
@dataclass(frozen=True)
class Torque(Controller):
    """Constant forces ``tau``, N m or N: a number, one per driven coordinate, or (nv,).

    Raises StateError where a force is not finite or the shape does not fit.
    """

    tau: Any = field(metadata=key(CoordinateReader(needed=True, degrees=False), unit="N m or N"))

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, tau=row("tau", self.tau))

    def check(self, model: Robot) -> None:
        super().check(model)
        _refuse_undriven_forces(self, [self.tau], model)

    def law(
        self, robot: RobotText, driven: Driven, t: Scalar, q: Scalars, v: Scalars, z: Scalars
    ) -> ControlForces:
        return list(spread("tau", self.tau, driven, robot)), []


@CONTROLLERS.add("torque_table")
@dataclass(frozen=True, repr=False)
class TorqueTable(Controller):
    """Forces ``values`` (T, k) or (T, nv), N m or N, at the rising ``times`` (T,), s; k the number
    of driven coordinates.

    interpolate: "linear" between the rows, "hold", each row until the next, or "cubic", the spline
    through them ("not_a_knot"), for forces that were sampled from a smooth motion. The first row
    holds before its time, the last after. Rows are memory of the compiled code: a table may be
    long.

    Raises StateError where times do not rise, shapes do not fit, a value is not finite or
    ``interpolate`` is unknown.
    """

    times: Any = field(metadata=key(Numbers(), unit="s"))
    values: Any = field(metadata=key(Rows(per="times"), unit="N m or N"))
    interpolate: str = field(default="linear", metadata=key(INTERPOLATE))

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("interpolate", self.interpolate, [str(x) for x in INTERPOLATE.values], StateError)
        times, values = timed_rows("values", self.times, self.values, least=1)
        settle(self, times=times, values=values)

    def check(self, model: Robot) -> None:
        super().check(model)
        _refuse_undriven_forces(self, self.values, model)

    def __repr__(self) -> str:
        return self._shown

    @cached_property
    def _shown(self) -> str:
        return repr_with_digests(self, "times", "values")

    @cached_property
    def _knots(self) -> Knots:
        return Knots(self.times[1:] if self.interpolate == "hold" else self.times[1:-1])

    @cached_property
    def _rows(self) -> Columns:
        """Times and forces."""
        return Columns(np.column_stack([self.times, self.values]))

    @cached_property
    def _spline(self) -> Spline:
        return Spline(self.times, self.values, "not_a_knot")

    def law(
        self, robot: RobotText, driven: Driven, t: Scalar, q: Scalars, v: Scalars, z: Scalars
    ) -> ControlForces:
        if len(self.times) == 1:
            return list(spread("values", self.values[0], driven, robot)), []
        first, last = self.times[0], self.times[-1]
        s = select(t < first, first, select(t > last, last, t))
        if self.interpolate == "cubic":
            return list(spread("values", self._spline.inside(s)[0], driven, robot)), []
        at = self._knots.below(s)
        t0, *tau = self._rows.row(at)
        if self.interpolate == "linear":
            t1, *other = self._rows.row(at + 1.0)
            u = (s - t0) / (t1 - t0)
            tau = [a + u * (b - a) for a, b in zip(tau, other, strict=True)]
        return list(spread("values", tau, driven, robot)), []


def _refuse_undriven_forces(
    control: Controller, rows: Sequence[Sequence[float]], model: Robot
) -> None:
    """Refuse forces, given for every velocity, where nothing drives; rounding errors are
    ignored.
    """
    tau = np.array(rows)
    if tau.shape[-1] == model.nv:
        tau[np.abs(tau) < 1e-9 * np.abs(tau).max(initial=0.0)] = 0.0
        refuse_undriven(type(control).__name__, tau, model, control.driven(RobotText(model)).v)
