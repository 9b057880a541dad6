"""Joints that move as prescribed: inverse dynamics over time, the base free (section 7.1.1)."""

from __future__ import annotations

from dataclasses import dataclass, field

from ramify.control.controller import CONTROLLERS, ControlForces, Controller
from ramify.control.follow import FOLLOWED, check_motion, desired
from ramify.control.robot_text import RobotText
from ramify.core.errors import StateError
from ramify.core.scalar import Scalar, Scalars
from ramify.model.driven import Driven
from ramify.motion.trajectory import Trajectory


@CONTROLLERS.add("inverse")
@dataclass(frozen=True)
class Prescribed(Controller):
    """The driven coordinates move exactly as ``motion`` says; the others move freely, and the
    forces that this takes are found.

    On a floating base this is the inverse dynamics of the book's chapter 7: the base is integrated
    under gravity and the ground (eq. 7.2), and tau are the torques of the joints. On a fixed base
    it is inverse dynamics over time. A simulation takes q and v of the driven coordinates from the
    motion; a q0 or v0 that differs is reported in a RuntimeWarning.

    motion: of the driven coordinates, or of all.

    Raises StateError where the motion does not fit, and for limits, a sampling rate or a sensor,
    which a prescribed motion cannot keep.
    """

    motion: Trajectory = field(metadata=FOLLOWED)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_motion(self.motion)
        for name in ("limits", "rate_hz", "sensor"):
            if getattr(self, name) is not None:
                raise StateError(
                    f"{name} does not go with a prescribed motion: its forces are whatever it "
                    "takes; leave it out"
                )

    @property
    def traceable(self) -> bool:
        return self.motion.traceable

    @property
    def prescribes(self) -> bool:
        return True

    def apply_prescribed_motion(
        self, robot: RobotText, t: Scalar, q: Scalars, v: Scalars
    ) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        """(q, v, a of the driven ones), the driven coordinates where the motion has them."""
        driven = self.driven(robot)
        want = desired(self.motion, robot, driven, t, q, v)
        q_all, v_all = list(q), list(v)
        for i, (at, j) in enumerate(zip(driven.q, driven.v, strict=True)):
            q_all[at], v_all[j] = want.q[i], want.v[i]
        return q_all, v_all, want.a

    def solve(
        self, robot: RobotText, t: Scalar, q: Scalars, v: Scalars, forces: Scalars | None = None
    ) -> tuple[list[Scalar], list[Scalar]]:
        """(a, tau) of all velocities; ``forces`` (nv) act on the free coordinates."""
        driven = self.driven(robot)
        q_all, v_all, a_driven = self.apply_prescribed_motion(robot, t, q, v)
        answer = robot.hybrid(
            q_all, v_all, a_driven, driven, robot.ground_wrenches(q_all, v_all), forces
        )
        a: list[Scalar] = list(answer)
        tau: list[Scalar] = [0.0] * robot.nv if forces is None else list(forces)
        for j, wanted in zip(driven.v, a_driven, strict=True):
            a[j], tau[j] = wanted, answer[j]
        return a, tau

    def law(
        self, robot: RobotText, driven: Driven, t: Scalar, q: Scalars, v: Scalars, z: Scalars
    ) -> ControlForces:
        _, tau = self.solve(robot, t, q, v)
        return [tau[j] for j in driven.v], []
