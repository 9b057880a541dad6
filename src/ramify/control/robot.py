"""A robot's own algorithms as texts, for controllers that need its dynamics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ramify.compute import algorithm_of, plain_text
from ramify.motion.driven import Actuated, Driven, driven
from ramify.scalar import Scalar

if TYPE_CHECKING:
    from ramify.model.model import Model

Scalars = Sequence[Scalar]
Text = Callable[..., list[list[Any]]]


class RobotText:
    """The algorithms of a model over lists of scalars of any kind: floats, arrays (a batch per scalar), traced expressions.

    q has ``nq`` entries; v, a and the forces have ``nv``. Units and conventions are those of the model's methods of the same names.
    Loops are honoured: forces act at the driven coordinates alone.
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
        """h: the forces that hold the accelerations at zero; with loops, those of the driven coordinates."""
        if self.model.loops:
            return self._held(q, v)
        return self._bias(list(q), list(v))[0]

    def gravity_forces(self, q: Scalars) -> list[Scalar]:
        """The forces that hold the robot at rest."""
        if self.model.loops:
            return self._held(q, [0.0] * self.nv)
        return self._gravity(list(q))[0]

    def hybrid(self, q: Scalars, v: Scalars, a_joints: Scalars, joints: Driven | None = None) -> list[Scalar]:
        """(nv): the forces that give the coordinates ``joints`` the accelerations a_joints; the others' accelerations (table 7.1).

        joints: the driven coordinates unless told; no force acts on the others. This is eqs. (9.8), (9.9) solved by recursion.
        """
        given = self.driven() if joints is None else joints
        x: list[Scalar] = [0.0] * self.nv
        for j, a in zip(given.v, a_joints, strict=True):
            x[j] = a
        if given.v not in self._hybrids:
            prescribed = [float(k in given.v) for k in range(self.nv)]
            self._hybrids[given.v] = plain_text(algorithm_of(self.model, "hybrid_dynamics"), self.model, [prescribed])
        return self._hybrids[given.v](list(q), list(v), x)[0]

    def _held(self, q: Scalars, v: Scalars) -> list[Scalar]:
        """Forces at the driven coordinates, under which these do not accelerate."""
        driven = self.driven()
        found = self.hybrid(q, v, [0.0] * len(driven), driven)
        return [f if k in driven.v else 0.0 for k, f in enumerate(found)]

    @cached_property
    def _inverse(self) -> Text:
        return plain_text(algorithm_of(self.model, "inverse_dynamics"), self.model, ())

    @cached_property
    def _forward(self) -> Text:
        return plain_text(algorithm_of(self.model, "forward_dynamics"), self.model, ())

    @cached_property
    def _bias(self) -> Text:
        return plain_text(algorithm_of(self.model, "bias"), self.model, ())

    @cached_property
    def _gravity(self) -> Text:
        return plain_text(algorithm_of(self.model, "gravity_forces"), self.model, ())


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
