"""From bodies and joints to links in Denavit-Hartenberg frames.

The user's body frames are free; the links' frames are ours to choose, and a good choice makes every
recursion cheaper. A link's z axis is its joint axis. Turning its frame about z and sliding it along
z, we put x on the common normal to the joint axis of its first child, so that along a serial run
only one constant rotation (alpha) and few offsets remain: the modified DH frames of the book, found
automatically for any robot. Axes that are nearly parallel have their common normal far away; there
the offsets stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ramify.core.arrays import Array
from ramify.core.spatial import Mat3, RigidInertia, Sym3, Vec3
from ramify.model.body import Body
from ramify.model.frame import Frame, align_z, cos_sin, rotation_about
from ramify.model.joint import Step
from ramify.model.link import BallLink, Link, Pose, Screw, Turn

_PARALLEL = 1e-14
_ILL_CONDITIONED = 1e-2
_TINY = 1e-15


@dataclass(frozen=True)
class Skeleton:
    """The links of a model, parents first; ``last[b]`` is the link that is body b; ``root`` is
    their base frame in the world.

    ``ball[k]`` is 1, 2, 3 where link k is one of a ball joint's three: the first takes four entries
    of q, the others none.
    """

    links: tuple[Link, ...]
    parents: tuple[int, ...]
    root: Frame
    last: tuple[int, ...]
    ball: tuple[int, ...]

    @property
    def balls(self) -> bool:
        return any(self.ball)

    def coordinates(self, q: Sequence[Any], rest: tuple[float, ...]) -> list[Any]:
        """The entries of q by link: one each, or the tuples that a BallLink takes, ``rest`` where
        it has no quaternion.
        """
        out: list[Any] = []
        i = 0
        for ball in self.ball:
            if ball == 1:
                out.append((0.0, *q[i : i + 4]))
                i += 4
            elif ball:
                out.append((0.0, *rest))
            else:
                out.append(q[i])
                i += 1
        return out

    def support(self, body: int) -> list[int]:
        """The links between the base and a body, base first."""
        path, k = [], self.last[body]
        while k >= 0:
            path.append(k)
            k = self.parents[k]
        return path[::-1]


@dataclass
class _Axis:
    """A link under construction: its z-aligned frame is ``from_parent`` in the parent's z-aligned
    frame at q = 0.
    """

    parent: int
    from_parent: Frame
    aligned: Frame
    step: Step
    rotor: float


def _split_bodies(bodies: tuple[Body, ...]) -> tuple[list[_Axis], list[int], list[Frame]]:
    """One z-aligned frame per degree of freedom; for each body its last link and its frame in that
    link's z-aligned frame.
    """
    axes: list[_Axis] = []
    last: list[int] = []
    seat: list[Frame] = []
    for body in bodies:
        parent, base = (-1, Frame()) if body.parent < 0 else (last[body.parent], seat[body.parent])
        frame = base @ body.joint.placement
        for step, rotor in zip(body.joint.steps, body.joint.armature, strict=True):
            aligned = Frame(align_z(step.axis))
            axes.append(_Axis(parent, _clean(frame @ aligned), aligned, step, rotor))
            parent, frame = len(axes) - 1, aligned.inverse()
        last.append(parent)
        seat.append(frame @ body.joint.outlet)
    return axes, last, seat


def _clean(frame: Frame) -> Frame:
    """Rounding dust swept away, so that right angles fold."""
    rotation, position = np.array(frame.rotation), np.array(frame.position)
    rotation[np.abs(rotation) < _TINY] = 0.0
    rotation[np.abs(np.abs(rotation) - 1.0) < _TINY] = np.sign(
        rotation[np.abs(np.abs(rotation) - 1.0) < _TINY]
    )
    position[np.abs(position) < _TINY * max(1.0, float(np.abs(position).max()))] = 0.0
    return Frame(rotation, position)


def _normal_angles(frame: Frame) -> tuple[float, float, float, float]:
    """(gamma, slide) of the common normal as seen from the parent, and (theta, slide) of it from
    the child.

    The child's z-aligned frame is Rz(gamma) Tz(slide) Rx(alpha) Tx(a) Rz(-theta) Tz(-slide'); alpha
    is recovered by the caller.
    """
    e, o = frame.rotation[:, 2], frame.position
    sin_alpha = math.hypot(e[0], e[1])
    if sin_alpha < _PARALLEL:
        a = math.hypot(o[0], o[1])
        gamma = math.atan2(o[1], o[0]) if a > 0.0 else 0.0
        return gamma, 0.0, _angle_of_x(frame, gamma), 0.0
    gamma = math.atan2(e[0], -e[1])
    theta = _angle_of_x(frame, gamma)
    if sin_alpha < _ILL_CONDITIONED:
        return gamma, 0.0, theta, 0.0
    out_of_axis = o[0] * e[0] + o[1] * e[1]
    below = -out_of_axis / sin_alpha**2
    return gamma, float(o[2] + below * e[2]), theta, below


def _angle_of_x(frame: Frame, gamma: float) -> float:
    """The angle, about the child's z, of the direction (cos gamma, sin gamma, 0) of the parent."""
    c, s = cos_sin(gamma)
    x = frame.rotation.T @ np.array([c, s, 0.0])
    return math.atan2(x[1], x[0])


def _screw_z(angle: float, slide: float) -> Frame:
    return Frame(rotation_about((0.0, 0.0, 1.0), angle), np.array([0.0, 0.0, slide]))


def _turn(angle: float) -> Turn:
    return Turn(*cos_sin(angle))


def _vec(u: Array) -> Vec3:
    return Vec3(*(float(x) for x in u))


def rigid_inertia(mass: float, com: Array, tensor: Array) -> RigidInertia:
    """Mass matrix about the origin from mass, mass centre and inertia tensor about it."""
    shifted = tensor + mass * (com @ com * np.eye(3) - np.outer(com, com))
    moments = [float(shifted[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    return RigidInertia(float(mass), _vec(mass * com), Sym3(*moments))


def build_skeleton(bodies: tuple[Body, ...]) -> Skeleton:
    """Links of a tree of bodies (fixed joints already merged)."""
    axes, last, seat = _split_bodies(bodies)
    first: dict[int, int] = {}
    for k, axis in enumerate(axes):
        first.setdefault(axis.parent, k)
    normal = [_normal_angles(axis.from_parent) for axis in axes]
    # The links' frames: z-aligned frames turned and slid onto the common normal of the first child.
    # A ball joint's frames all stay at its centre: its axes turn with the body, not with the links
    # between them.
    own = {
        k: (normal[child][0], 0.0 if k >= 0 and axes[k].step.ball else normal[child][1])
        for k, child in first.items()
    }
    chosen = {k: _screw_z(*own[k]) if k in own else Frame() for k in range(-1, len(axes))}
    body_of = {link: b for b, link in enumerate(last)}
    links = []
    for k, axis in enumerate(axes):
        gamma, _, theta, _ = normal[k]
        frame = _clean(chosen[axis.parent].inverse() @ axis.from_parent @ chosen[k])
        gamma -= own[axis.parent][0]
        e = rotation_about((0, 0, 1), -gamma) @ frame.rotation[:, 2]
        alpha = math.atan2(-e[1], e[2])
        theta0 = own.get(k, (0.0, 0.0))[0] - theta
        if k in body_of:
            place = _clean(chosen[k].inverse() @ seat[body_of[k]])
            inertia = _seated(bodies[body_of[k]], place)
        else:
            place, inertia = Frame(), rigid_inertia(0.0, np.zeros(3), np.zeros((3, 3)))
        screw = Screw(axis.step.rho, axis.step.eta)
        link = Link(
            _turn(gamma),
            _turn(alpha),
            _turn(theta0),
            _vec(frame.position),
            screw,
            inertia,
            as_pose(place),
            axis.rotor,
        )
        links.append(
            as_ball(link, float(axis.step.ball > 1), _clean(axis.aligned @ chosen[k]))
            if axis.step.ball
            else link
        )
    balls = tuple(axis.step.ball for axis in axes)
    return Skeleton(
        tuple(links), tuple(axis.parent for axis in axes), chosen[-1], tuple(last), balls
    )


def as_ball(link: Link, coupled: float, frame: Frame) -> BallLink:
    """A link of a ball joint, ``frame`` being its own in the joint's; or, uncoupled, an ordinary
    link that runs with such.
    """
    parts = {f.name: getattr(link, f.name) for f in fields(Link)}
    return BallLink(**parts, coupled=coupled, K=as_pose(frame.inverse()).R)


def as_pose(frame: Frame) -> Pose:
    """A frame as scalars."""
    return Pose(Mat3(*(float(x) for x in frame.rotation.ravel())), _vec(frame.position))


def _seated(body: Body, seat: Frame) -> RigidInertia:
    com = seat.rotation @ body.com + seat.position
    tensor = seat.rotation @ body.inertia @ seat.rotation.T
    return rigid_inertia(body.mass, com, tensor)
