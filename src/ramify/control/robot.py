"""A robot's own algorithms as texts, for controllers that need its dynamics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ramify.algorithms import ALGORITHMS
from ramify.compute import algorithm_of, plain_text
from ramify.errors import LoopError
from ramify.motion.driven import Actuated, Driven, driven
from ramify.scalar import Scalar

if TYPE_CHECKING:
    from ramify.model.model import Model

Scalars = Sequence[Scalar]
Text = Callable[..., list[list[Any]]]


class RobotText:
    """The algorithms of a model over lists of scalars of any kind: floats, arrays (a batch per scalar), traced expressions.

    q has ``nq`` entries; v, a and the forces have ``nv``. Units and conventions are those of the model's methods of the same names.
    Of a robot with loops they honour these: forces act at its actuated joints alone.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.nq, self.nv = model.nq, model.nv
        self._driven: dict[Any, Driven] = {}
        self._hybrids: dict[tuple[int, ...], Text] = {}

    def driven(self, actuated: Actuated = None) -> Driven:
        """The driven coordinates: see ramify.motion.driven."""
        key = tuple(actuated) if isinstance(actuated, (list, tuple)) else actuated
        if key not in self._driven:
            self._driven[key] = driven(self.model, actuated)
        return self._driven[key]

    def inverse_dynamics(self, q: Scalars, v: Scalars, a: Scalars) -> list[Scalar]:
        """tau = I a + h (table 6.1)."""
        return self._inverse(list(q), list(v), list(a))[0]

    def forward_dynamics(self, q: Scalars, v: Scalars, tau: Scalars) -> list[Scalar]:
        """a = I^-1 (tau - h) (table 6.2)."""
        return self._forward(list(q), list(v), list(tau))[0]

    def bias(self, q: Scalars, v: Scalars) -> list[Scalar]:
        """h: the forces that hold the accelerations at zero; of a robot with loops, those of its driven joints."""
        if self.model.loops:
            return self._forces(q, v, self.driven())
        return self._bias(list(q), list(v))[0]

    def gravity_forces(self, q: Scalars) -> list[Scalar]:
        """The forces that hold the robot at rest."""
        if self.model.loops:
            return self._forces(q, [0.0] * self.nv, self.driven())
        return self._gravity(list(q))[0]

    def hybrid(self, q: Scalars, v: Scalars, a_joints: Scalars, joints: Driven | None = None) -> list[Scalar]:
        """(nv): the forces that give the coordinates ``joints`` the accelerations a_joints; the others' accelerations (table 7.1).

        joints: the driven coordinates unless told; no force acts on the others. This is eqs. (9.8), (9.9) solved by recursion. The
        loops of a robot that has some are kept closed.
        """
        given = self.driven() if joints is None else joints
        x: list[Scalar] = [0.0] * self.nv
        for j, a in zip(given.v, a_joints, strict=True):
            x[j] = a
        if self.model.loops:
            return self._driving(given)(list(q), list(v), x)[0]
        if given.v not in self._hybrids:
            prescribed = [float(k in given.v) for k in range(self.nv)]
            self._hybrids[given.v] = plain_text(ALGORITHMS["hybrid_dynamics"], self.model, [prescribed])
        return self._hybrids[given.v](list(q), list(v), x)[0]

    def _forces(self, q: Scalars, v: Scalars, joints: Driven) -> list[Scalar]:
        """Forces that give the driven coordinates no acceleration; zero elsewhere."""
        found = self._driving(joints)(list(q), list(v), [0.0] * self.nv)[0]
        return [x if i in joints.v else 0.0 for i, x in enumerate(found)]

    def _driving(self, joints: Driven) -> Text:
        """Forces and accelerations of a closed system: see ``ramify.loops.drive``."""
        if joints.v != self.driven().v or "driving_forces" not in self.model.closed_algorithms:
            raise LoopError(
                f"{self.model.name} has loops: a law that needs its dynamics drives all of its actuated joints, as many as it has degrees "
                f"of freedom; {', '.join(joints.names) or 'none'} will not do; mark the right joints actuated in the model, or use PD"
            )
        if joints.v not in self._hybrids:
            self._hybrids[joints.v] = plain_text(self.model.closed_algorithms["driving_forces"], self.model, ())
        return self._hybrids[joints.v]

    @cached_property
    def _inverse(self) -> Text:
        return plain_text(algorithm_of(self.model, "inverse_dynamics"), self.model, ())

    @cached_property
    def _forward(self) -> Text:
        return plain_text(algorithm_of(self.model, "forward_dynamics"), self.model, ())

    @cached_property
    def _bias(self) -> Text:
        return plain_text(ALGORITHMS["bias"], self.model, ())

    @cached_property
    def _gravity(self) -> Text:
        return plain_text(ALGORITHMS["gravity_forces"], self.model, ())


class StillRobot(RobotText):
    """A robot whose algorithms all answer zero: enough to see whether a controller's shapes fit, whatever the posture."""

    def inverse_dynamics(self, q: Scalars, v: Scalars, a: Scalars) -> list[Scalar]:
        return [0.0] * self.nv

    def forward_dynamics(self, q: Scalars, v: Scalars, tau: Scalars) -> list[Scalar]:
        return [0.0] * self.nv

    def bias(self, q: Scalars, v: Scalars) -> list[Scalar]:
        return [0.0] * self.nv

    def gravity_forces(self, q: Scalars) -> list[Scalar]:
        return [0.0] * self.nv

    def hybrid(self, q: Scalars, v: Scalars, a_joints: Scalars, joints: Driven | None = None) -> list[Scalar]:
        return [0.0] * self.nv
