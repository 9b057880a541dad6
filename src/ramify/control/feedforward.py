"""Feedforward: the forces of the desired motion, corrected by a PD law (section 9.1.2).

Two laws differ in the desired motion of a robot that is not driven everywhere (a floating base) or
stands on a ground. :class:`Feedforward`, the book's, simulates it in parallel with the robot;
:class:`MeasuredFeedforward` takes it from measurements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ramify.control.computed_torque import driving_forces
from ramify.control.controller import CONTROLLERS, ControlForces
from ramify.control.follow import Desired, Follower, desired
from ramify.control.robot_text import RobotText
from ramify.core.errors import StateError
from ramify.core.scalar import Scalar, Scalars, sqrt
from ramify.model.configuration import coordinate_rates
from ramify.model.driven import Driven


class FreePlaces(NamedTuple):
    """Places in q and v of the coordinates that are not driven."""

    q: tuple[int, ...]
    v: tuple[int, ...]


@CONTROLLERS.add("feedforward")
@dataclass(frozen=True)
class Feedforward(Follower):
    """tau = tau_ID + kp e + kd de/dt, tau_ID being the inverse dynamics of the desired motion (eqs.
    9.12, 9.13).

    The desired motion is that of a robot whose driven coordinates follow ``motion`` exactly, as
    under ``Prescribed``. Coordinates that are not driven (a floating base) then move freely, on a
    ground under the forces that press on the feet of the desired motion: they are states of the
    controller, start where the robot starts and are integrated in parallel with it. So tau_ID
    depends on the motion and the start alone, and could be computed beforehand. Without a ground, a
    motion of all coordinates says where the others are.

    Of a robot with loops the dependent coordinates are taken as measured; one that stands on a
    ground or floats needs :class:`MeasuredFeedforward`.

    motion: of the driven coordinates, or of all. kp in N m/rad or N/m, kd in N m s/rad or N s/m,
    each a number or one per driven coordinate; kd is sqrt(kp) by default: 49 and 7, the book's
    gains.

    Raises StateError where motion or gains do not fit.
    """

    ratio: ClassVar[float] = 1.0

    def state_count(self, robot: RobotText) -> int:
        return sum(map(len, self._free_places(robot, self.driven(robot))))

    def states_at_start(self, robot: RobotText, q: Scalars, v: Scalars) -> list[Scalar]:
        free = self._free_places(robot, self.driven(robot))
        return [*(q[i] for i in free.q), *(v[j] for j in free.v)]

    def law(
        self, robot: RobotText, driven: Driven, t: Scalar, q: Scalars, v: Scalars, z: Scalars
    ) -> ControlForces:
        want, free = desired(self.motion, robot, driven, t, q, v), self._free_places(robot, driven)
        if not free.v:
            forward = driving_forces(robot, driven, want.q_all, want.v_all, want.a)
            return self.corrected(want, robot, driven, q, v, forward), []
        q_des, v_des = _completed(want, free, z, robot)
        answer = robot.hybrid(q_des, v_des, want.a, driven, robot.ground_wrenches(q_des, v_des))
        rates = coordinate_rates(robot.model, q_des, v_des)
        tau = self.corrected(want, robot, driven, q, v, [answer[j] for j in driven.v])
        return tau, [*(rates[i] for i in free.q), *(answer[j] for j in free.v)]

    def _free_places(self, robot: RobotText, driven: Driven) -> FreePlaces:
        """The coordinates that the desired motion leaves to the dynamics."""
        if robot.model.loops:
            _refuse_unmeasured(robot)
            return FreePlaces((), ())
        if robot.contact is None and self.motion.n == robot.nv == robot.nq:
            return FreePlaces((), ())
        q = tuple(i for i in range(robot.nq) if i not in driven.q)
        return FreePlaces(q, tuple(j for j in range(robot.nv) if j not in driven.v))


@CONTROLLERS.add("measured_feedforward")
@dataclass(frozen=True)
class MeasuredFeedforward(Follower):
    """tau = tau_ID + kp e + kd de/dt with tau_ID for the desired joints, but the floating base and
    the forces of the ground as sensors measure them.

    A motion of all coordinates says where the base should be; with one of the driven coordinates
    alone the base is taken where it is. On a ground the forces that act now are fed in. On a fixed
    base without a ground it is :class:`Feedforward`.

    motion, kp, kd: as of :class:`Feedforward`. Raises StateError where motion or gains do not fit.
    """

    ratio: ClassVar[float] = 1.0

    def law(
        self, robot: RobotText, driven: Driven, t: Scalar, q: Scalars, v: Scalars, z: Scalars
    ) -> ControlForces:
        want = desired(self.motion, robot, driven, t, q, v)
        forward = driving_forces(
            robot, driven, want.q_all, want.v_all, want.a, robot.ground_wrenches(q, v)
        )
        return self.corrected(want, robot, driven, q, v, forward), []


def _completed(
    want: Desired, free: FreePlaces, z: Scalars, robot: RobotText
) -> tuple[list[Scalar], list[Scalar]]:
    """(q, v) of the desired motion: driven coordinates as wanted, the others from z."""
    q, v = list(want.q_all), list(want.v_all)
    for i, x in zip(free.q, z, strict=False):
        q[i] = x
    for j, x in zip(free.v, z[len(free.q) :], strict=True):
        v[j] = x
    for i, _ in robot.model.layout.balls:  # of unit length but for the integrator's error
        size = sqrt(sum(x * x for x in q[i : i + 4]))
        q[i : i + 4] = [x / size for x in q[i : i + 4]]
    return q, v


def _refuse_unmeasured(robot: RobotText) -> None:
    """Refuse a robot with loops whose undriven coordinates do not follow from its loops alone."""
    root = robot.model.joints[0]
    floats = not root.actuated and root.kind in ("free", "free_euler", "planar")
    if floats or robot.contact is not None:
        what = "stands on a ground" if robot.contact is not None else "floats"
        raise StateError(
            f"{robot.model.name!r} has loops and {what}: its desired motion does not follow from "
            "that of the driven joints; take rf.control.MeasuredFeedforward or ComputedTorque"
        )
