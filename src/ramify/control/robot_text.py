"""The algorithms of a robot as texts, for controllers that need its dynamics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ramify.contact.robot_on_ground import ContactText
from ramify.core.scalar import Scalar, Scalars
from ramify.drives.machine_forces import passive_text
from ramify.kernels.make import algorithm_of
from ramify.kernels.text import plain_text
from ramify.model.driven import Actuated, Driven, driven
from ramify.model.robot import Robot

RobotFunction = Callable[..., list[list[Any]]]


class RobotText:
    """The algorithms of a model over lists of scalars of any kind: floats, arrays (a batch per
    scalar), traced expressions.

    q has ``nq`` entries; v, a and the forces have ``nv``. Units and conventions are those of the
    model's methods of the same names. Loops are honoured: forces act at the driven coordinates
    alone. ``contact``: the robot's contact with a ground, where it stands on one.
    """

    def __init__(self, model: Robot, contact: ContactText | None = None) -> None:
        self.model, self.contact = model, contact
        self.nq, self.nv = model.nq, model.nv
        self._driven: dict[Any, Driven] = {}
        self._texts: dict[tuple[str, tuple[int, ...] | None], RobotFunction] = {}

    def driven(self, actuated: Actuated = None) -> Driven:
        """The driven coordinates: see ramify.model.driven."""
        key = tuple(actuated) if isinstance(actuated, (list, tuple)) else actuated
        if key not in self._driven:
            self._driven[key] = driven(self.model, actuated)
        return self._driven[key]

    def ground_wrenches(self, q: Scalars, v: Scalars) -> list[Scalar] | None:
        """The ground's wrenches on the links (6 nv), as force sensors measure them; None without a
        ground.
        """
        return None if self.contact is None else self.contact.reactions(q, v)[2]

    def passive_forces(self, q: Scalars, v: Scalars) -> list[Scalar]:
        """The machine's passive forces (nv) but those of stops."""
        text = passive_text(self.model, stops=False)
        return text(list(q), list(v)).total if text else [0.0] * self.nv

    def inverse_dynamics(
        self, q: Scalars, v: Scalars, a: Scalars, wrenches: Scalars | None = None
    ) -> list[Scalar]:
        """tau = I a + h (table 6.1); ``wrenches`` as from ``ground_wrenches``."""
        if wrenches is not None:
            return self._ask("inverse_dynamics_wrenches", q, v, a, wrenches)
        return self._ask("inverse_dynamics", q, v, a)

    def forward_dynamics(self, q: Scalars, v: Scalars, tau: Scalars) -> list[Scalar]:
        """a = I^-1 (tau - h) (table 6.2)."""
        return self._ask("forward_dynamics", q, v, tau)

    def bias(self, q: Scalars, v: Scalars) -> list[Scalar]:
        """h: the forces that hold the accelerations at zero; with loops, those of the driven
        coordinates.
        """
        return self._holding_forces(q, v) if self.model.loops else self._ask("bias", q, v)

    def gravity_forces(self, q: Scalars) -> list[Scalar]:
        """The forces that hold the robot at rest."""
        if self.model.loops:
            return self._holding_forces(q, [0.0] * self.nv)
        return self._ask("gravity_forces", q)

    def hybrid(
        self,
        q: Scalars,
        v: Scalars,
        a_joints: Scalars,
        joints: Driven | None = None,
        wrenches: Scalars | None = None,
        forces: Scalars | None = None,
    ) -> list[Scalar]:
        """(nv): the forces that give the coordinates ``joints`` the accelerations a_joints; the
        others' accelerations (table 7.1).

        joints: by default the driven coordinates. wrenches: as from ``ground_wrenches``. forces
        (nv): on the others, none by default. This is eqs. (9.8), (9.9) solved by recursion.
        """
        prescribed = self.driven() if joints is None else joints
        x: list[Scalar] = [0.0] * self.nv if forces is None else list(forces)
        for j, a in zip(prescribed.v, a_joints, strict=True):
            x[j] = a
        if wrenches is not None:
            return self._ask("hybrid_dynamics_wrenches", q, v, x, wrenches, prescribed=prescribed.v)
        return self._ask("hybrid_dynamics", q, v, x, prescribed=prescribed.v)

    def _holding_forces(self, q: Scalars, v: Scalars) -> list[Scalar]:
        """Forces at the driven coordinates, under which these do not accelerate."""
        driven = self.driven()
        answer = self.hybrid(q, v, [0.0] * len(driven), driven)
        return [f if k in driven.v else 0.0 for k, f in enumerate(answer)]

    def _ask(
        self, name: str, *inputs: Scalars, prescribed: tuple[int, ...] | None = None
    ) -> list[Scalar]:
        """The first result of an algorithm of the robot; ``prescribed``: places of the velocities
        whose accelerations are given.
        """
        key = name, prescribed
        if key not in self._texts:
            extras = (
                () if prescribed is None else ([float(k in prescribed) for k in range(self.nv)],)
            )
            self._texts[key] = plain_text(algorithm_of(self.model, name), self.model, extras)
        return self._texts[key](*map(list, inputs))[0]


class StillRobot(RobotText):
    """A robot whose algorithms all answer zero: enough to see whether a controller's shapes fit,
    whatever the posture.
    """

    def _ask(
        self, name: str, *inputs: Scalars, prescribed: tuple[int, ...] | None = None
    ) -> list[Scalar]:
        return [0.0] * self.nv
