"""Feedforward: the forces of the desired motion, corrected by a PD law (section 9.1.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ramify.control.computed_torque import driving_forces
from ramify.control.controller import CONTROLLERS, ControlForces
from ramify.control.follow import Follower, desired
from ramify.control.robot_text import RobotText
from ramify.core.scalar import Scalar, Scalars
from ramify.model.driven import Driven


@CONTROLLERS.add("feedforward")
@dataclass(frozen=True)
class Feedforward(Follower):
    """tau = tau_ID + kp e + kd de/dt, tau_ID being the inverse dynamics of the desired motion (eqs.
    9.12, 9.13).

    On a floating base tau_ID comes from the hybrid recursion, the base being free. A motion of all
    coordinates says where the base should be; with one of the driven coordinates alone the base is
    taken where it is. On a ground the forces that act are fed in.

    motion: of the driven coordinates, or of all. kp in N m/rad or N/m, kd in N m s/rad or N s/m,
    each a number or one per driven coordinate; kd is sqrt(kp) by default: 49 and 7, the book's
    gains.

    Raises StateError where motion or gains do not fit.
    """

    ratio: ClassVar[float] = 1.0

    def law(
        self, robot: RobotText, driven: Driven, t: Scalar, q: Scalars, v: Scalars, z: Scalars
    ) -> ControlForces:
        want = desired(self.motion, robot, driven, t, q, v)
        forward = driving_forces(robot, driven, want.q_all, want.v_all, want.a, robot.felt(q, v))
        return self.corrected(want, robot, driven, q, v, forward), []
