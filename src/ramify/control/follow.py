"""The base of controllers that follow a motion: the desired driven coordinates and their errors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from ramify.control.controller import DAMPING, GAINS, STIFFNESS, Controller, gains, spread
from ramify.control.robot_text import RobotText
from ramify.core.errors import StateError
from ramify.core.records import settle
from ramify.core.scalar import Scalar, Scalars
from ramify.documents.forms import GivenPart, Surrounding
from ramify.documents.kinds import OneOf, key
from ramify.model.driven import Driven
from ramify.motion.coordinate_reader import of_actuated
from ramify.motion.trajectory import MOTIONS, Row, Trajectory


class FollowedMotion(Surrounding):
    """A controller's own motion, of the joints that it drives, or the motion of the file."""

    def take(self, name: str, section: GivenPart) -> Any:
        return super().take(name, replace(section, reading=of_actuated(section)))


FOLLOWED: Final = key(FollowedMotion("motion", "follows a motion", OneOf(MOTIONS)))
"""Metadata of the field with the motion that a controller follows."""


@dataclass(frozen=True)
class Follower(Controller):
    """A controller that follows a motion with the gains kp and kd; kd is ``ratio`` times the root
    of kp by default.

    Raises StateError where motion or gains do not fit.
    """

    ratio: ClassVar[float] = 2.0
    motion: Trajectory = field(metadata=FOLLOWED)
    kp: Any = field(default=49.0, metadata=key(GAINS, unit=STIFFNESS))
    kd: Any = field(default=None, metadata=key(GAINS, unit=DAMPING))

    def __post_init__(self) -> None:
        super().__post_init__()
        kp, kd = following(self.motion, self.kp, self.kd, self.ratio)
        settle(self, kp=kp, kd=kd)

    @property
    def traceable(self) -> bool:
        return self.motion.traceable

    def corrected(
        self, want: Desired, robot: RobotText, driven: Driven, q: Scalars, v: Scalars,
        *forward: Scalars,
    ) -> list[Scalar]:  # fmt: skip
        """``forward`` + kp e + kd de/dt."""
        e, de = errors(want, driven, q, v)
        return sums(
            *forward,
            times_gain("kp", self.kp, e, driven, robot),
            times_gain("kd", self.kd, de, driven, robot),
        )


@dataclass(frozen=True)
class Desired:
    """The desired motion of the driven coordinates, k scalars each; ``q_all``, ``v_all``: of the
    whole robot as far as known.
    """

    q: list[Scalar]
    v: list[Scalar]
    a: list[Scalar]
    q_all: list[Scalar]
    v_all: list[Scalar]


def desired(
    motion: Trajectory, robot: RobotText, driven: Driven, t: Scalar, q: Scalars, v: Scalars
) -> Desired:
    """Where a motion of the driven coordinates, or of all coordinates, wants the robot to be.

    A motion of the driven ones says nothing about the others (a floating base): there the whole
    robot is taken as it is.

    Raises StateError where the motion has neither length, and for driven quaternions, which no
    trajectory moves.
    """
    if -1 in driven.q:
        name = driven.names[driven.q.index(-1)]
        raise StateError(
            f"{name!r} belongs to a quaternion, which a motion cannot move; name the joints to "
            "drive with the controller's actuated="
        )
    qd, vd, ad = motion.text(t)
    if len(qd) == robot.nv == robot.nq:
        pick = driven.v
        return Desired([qd[j] for j in pick], [vd[j] for j in pick], [ad[j] for j in pick], qd, vd)
    if len(qd) != len(driven):
        which = ", ".join(driven.names[:12])
        raise StateError(
            f"the motion has {len(qd)} coordinates; {robot.model.name} has {len(driven)} driven "
            f"ones: {which}"
        )
    q_all, v_all = list(q), list(v)
    for i, (at, j) in enumerate(zip(driven.q, driven.v, strict=True)):
        q_all[at], v_all[j] = qd[i], vd[i]
    return Desired(qd, vd, ad, q_all, v_all)


def errors(
    want: Desired, driven: Driven, q: Scalars, v: Scalars
) -> tuple[list[Scalar], list[Scalar]]:
    """(e, de/dt) of the driven coordinates: e = q_des - q."""
    e = [x - q[i] for x, i in zip(want.q, driven.q, strict=True)]
    return e, [x - v[j] for x, j in zip(want.v, driven.v, strict=True)]


def times_gain(name: str, gain: Any, e: Scalars, driven: Driven, robot: RobotText) -> list[Scalar]:
    """K e with K diagonal."""
    return [k * x for k, x in zip(spread(name, gain, driven, robot), e, strict=True)]


def sums(*columns: Scalars) -> list[Scalar]:
    """Sums, entry by entry."""
    total: list[Scalar] = list(columns[0])
    for column in columns[1:]:
        total = [x + y for x, y in zip(total, column, strict=True)]
    return total


def following(motion: Any, kp: Any, kd: Any, ratio: float) -> tuple[Row, Row]:
    """Checked gains (kp, kd) for a motion; kd is ``ratio`` times the root of kp by default."""
    check_motion(motion)
    stiff = gains("kp", kp)
    return stiff, tuple(ratio * k**0.5 for k in stiff) if kd is None else gains("kd", kd)


def check_motion(motion: object) -> None:
    """Refuse what is not a motion."""
    if not isinstance(motion, Trajectory):
        raise StateError(
            f"motion must be a trajectory of ramify.motion; it is a {type(motion).__name__}. For a "
            "fixed posture q give rf.motion.Hold(q)"
        )
