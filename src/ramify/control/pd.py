"""PD and PID: springs, dampers and integrals of the error at the driven joints (eq. 9.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ramify.control.controller import (
    CONTROLLERS,
    DAMPING,
    GAINS,
    STIFFNESS,
    ControlForces,
    Controller,
    gains,
)
from ramify.control.follow import FOLLOWED, Follower, desired, errors, following, sums, times_gain
from ramify.control.robot_text import RobotText
from ramify.core.records import settle
from ramify.core.scalar import Scalar, Scalars
from ramify.documents.kinds import key
from ramify.model.driven import Driven
from ramify.motion.trajectory import Trajectory


@CONTROLLERS.add("pd")
@dataclass(frozen=True)
class PD(Follower):
    """tau = kp e + kd de/dt, with e = q_des - q: ReDySim's own controller, of 49 and 14.

    motion: of the driven coordinates, or of all. kp in N m/rad or N/m, kd in N m s/rad or N s/m,
    each a number or one per driven coordinate; kd is 2 sqrt(kp) by default.

    Raises StateError where motion or gains do not fit.
    """

    def law(
        self, robot: RobotText, driven: Driven, t: Scalar, q: Scalars, v: Scalars, z: Scalars
    ) -> ControlForces:
        want = desired(self.motion, robot, driven, t, q, v)
        return self.corrected(want, robot, driven, q, v), []


@CONTROLLERS.add("pid")
@dataclass(frozen=True)
class PID(Controller):
    """tau = kp e + ki z + kd de/dt with dz/dt = e, the error's integral, zero at the start (eq.
    9.2).

    Gains as for PD; ki in N m/(rad s) or N/(m s). It has a state z for each coordinate of the
    motion.

    Raises StateError where motion or gains do not fit.
    """

    motion: Trajectory = field(metadata=FOLLOWED)
    kp: Any = field(default=49.0, metadata=key(GAINS, unit=STIFFNESS))
    ki: Any = field(default=49.0, metadata=key(GAINS, unit="N m/(rad s) or N/(m s)"))
    kd: Any = field(default=None, metadata=key(GAINS, unit=DAMPING))

    def __post_init__(self) -> None:
        super().__post_init__()
        kp, kd = following(self.motion, self.kp, self.kd, 2.0)
        settle(self, kp=kp, ki=gains("ki", self.ki), kd=kd)

    @property
    def traceable(self) -> bool:
        return self.motion.traceable

    @property
    def states(self) -> int:
        return self.motion.n

    def law(
        self, robot: RobotText, driven: Driven, t: Scalar, q: Scalars, v: Scalars, z: Scalars
    ) -> ControlForces:
        e, de = errors(desired(self.motion, robot, driven, t, q, v), driven, q, v)
        # a motion of all coordinates has states for all
        places = range(len(driven)) if len(z) == len(driven) else driven.v
        rates: list[Scalar] = [0.0] * len(z)
        for i, x in zip(places, e, strict=True):
            rates[i] = x
        integral = [z[i] for i in places]
        terms = (("kp", self.kp, e), ("ki", self.ki, integral), ("kd", self.kd, de))
        return sums(*(times_gain(name, gain, x, driven, robot) for name, gain, x in terms)), rates
