"""Computed torque: the robot's dynamics make the error obey a linear equation (section 9.1.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ramify.control.controller import CONTROLLERS, GAINS, ControlForces
from ramify.control.follow import Follower, desired
from ramify.control.robot_text import RobotText
from ramify.core.arrays import flag
from ramify.core.scalar import Scalar, Scalars
from ramify.documents.kinds import key
from ramify.model.driven import Driven


@CONTROLLERS.add("computed_torque")
@dataclass(frozen=True)
class ComputedTorque(Follower):
    """tau = I alpha + h with alpha = a_des + kp e + kd de/dt (eqs. 9.3, 9.4): then dde + kd de + kp
    e = 0 (eq. 9.5).

    Where some coordinates are not driven (a floating base), alpha holds for the driven ones; the
    accelerations of the others follow from the condition that no force acts there (eqs. 9.8-9.11),
    by one hybrid recursion. On a ground its forces are part of h, as in eq. (7.1): the controller
    takes the contact forces into account.

    motion: of the driven coordinates, or of all. kp in 1/s^2, kd in 1/s, each a number or one per
    driven coordinate; kd is critical, 2 sqrt(kp), by default: 49 and 14, the book's gains.

    passive: h includes springs, damping, friction, tendons and gravity compensation of the joints,
    at the measured state; by default they are left out, as in ``inverse_dynamics``.

    Raises StateError where motion or gains do not fit.
    """

    kp: Any = field(default=49.0, metadata=key(GAINS, unit="1/s^2"))
    kd: Any = field(default=None, metadata=key(GAINS, unit="1/s"))
    passive: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        flag("passive", self.passive)

    def law(
        self, robot: RobotText, driven: Driven, t: Scalar, q: Scalars, v: Scalars, z: Scalars
    ) -> ControlForces:
        want = desired(self.motion, robot, driven, t, q, v)
        alpha = self.corrected(want, robot, driven, q, v, want.a)
        own = robot.passive_forces(q, v) if self.passive else None
        return driving_forces(robot, driven, q, v, alpha, robot.ground_wrenches(q, v), own), []


def driving_forces(
    robot: RobotText, driven: Driven, q: Scalars, v: Scalars, a: Scalars,
    wrenches: Scalars | None = None, passive: Scalars | None = None,
) -> list[Scalar]:  # fmt: skip
    """The forces that give the driven coordinates the accelerations a while none act on the others
    but their ``own`` (nv), which the drives overcome; ``felt``: from the ground.
    """
    if len(driven) == robot.nv and not robot.model.loops:
        tau = robot.inverse_dynamics(q, v, a, wrenches)
    else:
        tau = robot.hybrid(q, v, a, driven, wrenches, passive)
    return [tau[j] - (0.0 if passive is None else passive[j]) for j in driven.v]
