"""A trunk on a free joint, and the limbs it carries.

Forces do not depend on where a free robot is nor on how fast it flies: seen from the inertial frame
that its trunk passes through, the trunk turns about its own axes at the origin. Computing there
saves work, and digits when the robot is far away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ramify.core.scalar import Scalars
from ramify.core.spatial import NO_TWIST, ZERO, Mat3, RigidInertia, Twist, Vec3, Wrench
from ramify.dynamics import kinematics
from ramify.dynamics.motion import LinkMotion
from ramify.dynamics.tree import Tree
from ramify.model.link import BallLink, Pose, turned_by

FREE: Final = 6
"""Links of a free joint: three slides, then a ball's three turns."""
_AXES = (Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0))


@dataclass(slots=True)
class Flow:
    """A twist t and its rate dt, seen from an inertial frame."""

    t: Twist
    dt: Twist


@dataclass(slots=True)
class Trunk:
    """Constants of a free joint and its body.

    ``slides``: the directions of the slides, in columns, and ``turned`` the ball's axes before any
    rotation, both in the root's frame; the body's inertia M, its own frame ``seat`` and the frame
    of its last link, ``end``, in the ball's axes.
    """

    slides: Mat3
    turned: Mat3
    M: RigidInertia
    end: Pose
    seat: Pose

    def motion(
        self, gravity: Vec3, q: Scalars, v: Scalars, a: Scalars
    ) -> tuple[list[Vec3], Flow, Flow]:
        """The directions of the slides, the flow of the trunk and of what its ball hangs on, in the
        inertial frame of the trunk's axes. q (7), v (6), a (6).
        """
        Q = turned_by(q[3], Vec3(*q[4:7]))

        def here(u: Vec3) -> Vec3:
            return Q.transposed_times(self.turned.transposed_times(u))

        below = motion_at_rest(here(self.slides @ Vec3(*a[:3]) - gravity))
        flow = Flow(Twist(Vec3(*v[3:6]), ZERO), Twist(Vec3(*a[3:6]), below.dt.v))
        return [here(e) for e in self.slides.columns], flow, below

    def outward(self, t: Twist) -> Twist:
        """A twist of the trunk, seen from the frame its limbs hang on."""
        to_end = self.end.R.transposed_times
        return Twist(to_end(t.w), to_end(t.v))

    def inward(self, w: Wrench) -> Wrench:
        """The wrench that the limbs hand down, in the trunk's axes."""
        return Wrench(self.end.R @ w.n, self.end.R @ w.f)

    def carrying(self, flow: Flow) -> LinkMotion:
        """The trunk's motion as its limbs see it."""
        return LinkMotion(self.outward(flow.t), self.outward(flow.dt), ZERO)


def axes(slides: Sequence[Vec3]) -> list[Twist]:
    """The joint-motion propagation vectors of a free joint: three slides, then a ball's axes."""
    return [*(Twist(ZERO, e) for e in slides), *(Twist(e, ZERO) for e in _AXES)]


def motion_at_rest(acceleration: Vec3) -> Flow:
    """At rest but for a linear acceleration."""
    return Flow(NO_TWIST, Twist(ZERO, acceleration))


def identity() -> Pose:
    return Pose(Mat3.from_rows(*_AXES), ZERO)


def split_trunk(tree: object) -> tuple[Trunk, Tree] | None:
    """The trunk of a robot on a free joint, and its limbs; None where something else hangs on the
    base, and for a tree whose links are not known yet.
    """
    if not isinstance(tree, Tree):
        return None
    links, parents = tree.links[:FREE], tree.parents
    balls = [link for link in links[3:] if isinstance(link, BallLink)]
    mixed = len(balls) < 3 or any(isinstance(link, BallLink) for link in links[:3])
    if mixed or any(link.rotor for link in links):
        return None
    if [ball.coupled for ball in balls] != [0.0, 1.0, 1.0] or any(
        (link.p.rho, link.p.eta) != (0.0, 1.0) for link in links[:3]
    ):
        return None
    if tuple(parents[:FREE]) != tuple(range(-1, FREE - 1)) or any(
        p < FREE - 1 for p in parents[FREE:]
    ):
        return None
    at_axes = [
        ball.K.rows[2] == e and ball.p.rho == 1.0 for ball, e in zip(balls, _AXES, strict=True)
    ]
    if not all(at_axes) or any(ball.r0 != ZERO for ball in balls[1:]):
        return None
    pose, slides = identity(), []
    for link in links[:3]:
        pose = kinematics.outward(link, pose, link.displacement(0.0))
        slides.append(pose.R.columns[2])
    rest = (0.0, 1.0, 0.0, 0.0, 0.0)
    pose = kinematics.outward(balls[0], pose, balls[0].displacement(rest))
    turned = Mat3.from_columns(*(pose.R @ e for e in balls[0].K.columns))
    end = Mat3.from_columns(*balls[2].K.rows)
    last = Pose(end, ZERO)
    M, seat = balls[2].M.rotate(end), last @ balls[2].seat
    trunk = Trunk(Mat3.from_columns(*slides), turned, M, last, seat)
    others = tree.links[FREE:]
    on = [p - FREE if p >= FREE else -1 for p in parents[FREE:]]
    balls_left = any(isinstance(link, BallLink) for link in others)
    return trunk, Tree(others, on, tree.root, tree.gravity, balls_left)
