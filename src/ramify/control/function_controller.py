"""Controllers written as ordinary Python functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ramify.control.controller import CONTROLLERS, ControlForces, Controller
from ramify.control.robot_text import RobotText
from ramify.core.arrays import Array, detached, flag, real
from ramify.core.errors import StateError
from ramify.core.scalar import Scalar, Scalars
from ramify.model.driven import Driven
from ramify.model.robot import Robot
from ramify.motion.trajectory import stacked


@dataclass(frozen=True)
class Function(Controller):
    """tau = f(t, q, v): f takes a time (s), q (nq,) and v (nv,) as arrays and gives the forces,
    (nv,) or one per driven coordinate.

    It may compute in any way, so it cannot be compiled (``traceable`` is False). A batch of states
    calls it once per state; with ``vectorized`` it is called once with t, q (N, nq), v (N, nv) and
    must give (N, nv) or (N, driven).

    Raises StateError where f is not callable, or gives another shape.
    """

    f: Callable[[Any, Array, Array], Any]
    vectorized: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.f):
            raise StateError(
                f"f must be a function f(t, q, v) -> tau; it is a {type(self.f).__name__}"
            )
        flag("vectorized", self.vectorized)

    @property
    def traceable(self) -> bool:
        return False

    def law(
        self, robot: RobotText, driven: Driven, t: Scalar, q: Scalars, v: Scalars, z: Scalars
    ) -> ControlForces:
        strange = next(
            (x for x in (t, *q, *v) if not isinstance(x, (float, int, np.ndarray, np.floating))),
            None,
        )
        if strange is not None:
            raise StateError(
                f"{self._name} is a Python function of numbers; it cannot run on a "
                f"{type(strange).__name__}"
            )
        batch = np.broadcast_shapes(*(np.shape(np.asarray(x)) for x in (t, *q, *v)))
        times, qs, vs = np.broadcast_to(np.asarray(t), batch), stacked(q, batch), stacked(v, batch)
        if not batch or self.vectorized:
            tau = self._call(times if np.ndim(np.asarray(t)) else t, qs, vs, batch, robot, driven)
        else:
            tau = np.empty((*batch, len(driven)))
            for i in np.ndindex(*batch):
                tau[i] = self._call(float(times[i]), qs[i], vs[i], (), robot, driven)
        return [tau[..., i] if batch else float(tau[i]) for i in range(len(driven))], []

    def check(self, model: Robot) -> None:
        """Only the names of the joints and the limits: the function is not called beforehand."""
        robot = RobotText(model)
        self.limits_of(robot, self.driven(robot))

    @property
    def _name(self) -> str:
        return getattr(self.f, "__qualname__", type(self.f).__qualname__)

    def _call(
        self, t: Any, q: Array, v: Array, batch: tuple[int, ...], robot: RobotText, driven: Driven
    ) -> Array:
        """The forces (*batch, driven)."""
        tau = real(f"what {self._name} gives", detached(self.f(t, q, v)))
        if tau.shape == (*batch, len(driven)):
            return tau
        if tau.shape == (*batch, robot.nv):
            refuse_undriven(self._name, tau, robot.model, driven.v)
            return tau[..., list(driven.v)]
        wanted = " or ".join(str((*batch, n)) for n in dict.fromkeys((robot.nv, len(driven))))
        raise StateError(f"{self._name} gives forces of shape {tau.shape}; it must give {wanted}")


def refuse_undriven(name: str, tau: Array, model: Robot, driven: Sequence[int]) -> None:
    """Refuse forces (..., nv) of a function where nothing drives, because they would have no
    effect.
    """
    free = [j for j in range(model.nv) if j not in driven]
    j = next((j for j in free if np.any(np.abs(tau[..., j]) > 0.0)), None)
    if j is not None:
        raise StateError(
            f"{name} gives a force for {model.velocities[j]!r}, which has no drive; name its "
            "joint in the controller's actuated= (for a function, rf.control.Function(f, "
            "actuated=…)), or give the joint a spring or damping"
        )


def as_controller(control: Any, model: Robot) -> Controller | None:
    """A controller that fits the model: None and controllers as they are, a function f(t, q, v) ->
    tau as a ``Function``, a mapping such as results record as the controller that it describes.

    Raises StateError for anything else, and where it does not fit; ModelError for a mapping with
    mistakes.
    """
    if isinstance(control, Mapping):
        control = CONTROLLERS.from_document(control)
    if control is None:
        return None
    if not isinstance(control, Controller):
        if not callable(control):
            raise StateError(
                "control must be a controller, a mapping that describes one, or a function "
                f"f(t, q, v) -> tau; it is a {type(control).__name__}"
            )
        control = Function(control)
    control.check(model)
    return control
