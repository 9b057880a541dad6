"""From bodies and joints to links in Denavit-Hartenberg frames.

The user's body frames are free; the links' frames are ours to choose, and a good choice makes every
recursion cheaper. A link's z axis is its joint axis. Turning its frame about z and sliding it along
z, we put x on the common normal to the joint axis of its first child, so that along a serial run
only one constant rotation (alpha) and few offsets remain: the modified DH frames of the book, found
automatically for any robot. Axes that are nearly parallel have their common normal far away; there
the offsets stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ramify.core.records import flatten
from ramify.core.spatial import Mat3, RigidInertia, Sym3, Vec3
from ramify.model.body import Body
from ramify.model.frame import Frame, align_z
from ramify.model.joint import Step
from ramify.model.link import BallLink, Link, Pose, Screw, Turn

_PARALLEL: Final = 1e-14
_ILL_CONDITIONED: Final = 1e-2
_TINY: Final = 1e-15
_DUST: Final = 1e-16

Wide = NDArray[np.longdouble]
"""Numbers in the widest format of the machine: 80 bits on x86, doubles where there is no wider."""

_ONE_ZERO: Final = (np.longdouble(1.0), np.longdouble(0.0))


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
        return path_to_base(self.parents, self.last[body])[::-1]

    def seat(self, k: int) -> Frame:
        """The user's body frame in link k, as arrays."""
        R, r = (np.array(flatten(part)) for part in (self.links[k].seat.R, self.links[k].seat.r))
        return Frame(R.reshape(3, 3), r)


def path_to_base(parents: Sequence[int], k: int) -> list[int]:
    """A link or body and those that carry it, nearest first; [] for the base, -1."""
    path = []
    while k >= 0:
        path.append(k)
        k = parents[k]
    return path


class _Place(NamedTuple):
    """A frame in another in extended precision: rotation and origin.

    Constants are computed so and rounded once: the frames of a robot are composed, inverted and
    taken apart again, and each step in doubles would cost half a digit of every answer.
    """

    R: Wide
    p: Wide

    def __matmul__(self, other: _Place) -> _Place:
        return _Place(self.R @ other.R, self.R @ other.p + self.p)

    def inverse(self) -> _Place:
        return _Place(self.R.T, -(self.R.T @ self.p))

    def rounded(self) -> Frame:
        return Frame(self.R.astype(np.float64), self.p.astype(np.float64))


def _wide(frame: Frame) -> _Place:
    return _Place(frame.rotation.astype(np.longdouble), frame.position.astype(np.longdouble))


class _ExactTurn(NamedTuple):
    """Cosine and sine of a constant angle in extended precision."""

    c: Any
    s: Any

    def minus(self, other: _ExactTurn) -> _ExactTurn:
        return _turn(self.c * other.c + self.s * other.s, self.s * other.c - self.c * other.s)

    def rounded(self) -> Turn:
        return Turn(float(self.c), float(self.s))


def _turn(c: Any, s: Any) -> _ExactTurn:
    """The angle of the point (c, s); those of right angles come out exact, and none where it is the
    origin.
    """
    size = np.hypot(c, s)
    if not size > 0.0:
        return _ExactTurn(*_ONE_ZERO)
    c, s = c / size, s / size
    if abs(s) < _TINY:
        return _ExactTurn(np.copysign(_ONE_ZERO[0], c), _ONE_ZERO[1])
    if abs(c) < _TINY:
        return _ExactTurn(_ONE_ZERO[1], np.copysign(_ONE_ZERO[0], s))
    return _ExactTurn(c, s)


def _about_z(turn: _ExactTurn) -> Wide:
    one, zero = _ONE_ZERO
    return np.array([[turn.c, -turn.s, zero], [turn.s, turn.c, zero], [zero, zero, one]])


@dataclass
class _Axis:
    """A link under construction: its z-aligned frame is ``from_parent`` in the parent's z-aligned
    frame at q = 0.
    """

    parent: int
    from_parent: _Place
    aligned: _Place
    step: Step
    rotor: float


def _split_bodies(bodies: tuple[Body, ...]) -> tuple[list[_Axis], list[int], list[_Place]]:
    """One z-aligned frame per degree of freedom; for each body its last link and its frame in that
    link's z-aligned frame.
    """
    axes: list[_Axis] = []
    last: list[int] = []
    seat: list[_Place] = []
    for body in bodies:
        parent, base = -1, _wide(Frame())
        if body.parent >= 0:
            parent, base = last[body.parent], seat[body.parent]
        frame = base @ _wide(body.joint.placement)
        for step, rotor in zip(body.joint.steps, body.joint.armature, strict=True):
            aligned = _aligned(step.axis)
            axes.append(_Axis(parent, _clean(frame @ aligned), aligned, step, rotor))
            parent, frame = len(axes) - 1, aligned.inverse()
        last.append(parent)
        seat.append(frame @ _wide(body.joint.outlet))
    return axes, last, seat


def _clean(place: _Place) -> _Place:
    """Rounding errors removed, so that right angles fold."""
    R, p = place.R.copy(), place.p.copy()
    R[np.abs(R) < _TINY] = 0.0
    for row in R:
        if np.count_nonzero(row) == 1:
            row[:] = np.sign(row)
    p[np.abs(p) < _TINY * max(1.0, float(np.abs(p).max()))] = 0.0
    return _Place(R, p)


def _normal(place: _Place) -> tuple[_ExactTurn, Any]:
    """The common normal of a link's axis (z) and the parent's: its angle about the parent's axis,
    and how far along it.
    """
    e, o = place.R[:, 2], place.p
    sine = np.hypot(e[0], e[1])
    if sine < _PARALLEL:
        return _turn(o[0], o[1]), _ONE_ZERO[1]
    gamma = _turn(-e[1], e[0])
    if sine < _ILL_CONDITIONED:
        return gamma, _ONE_ZERO[1]
    below = -(o[0] * e[0] + o[1] * e[1]) / sine**2
    return gamma, o[2] + below * e[2]


def _vec(u: Any) -> Vec3:
    return Vec3(*(float(x) for x in u))


def rigid_inertia(mass: float, com: Any, tensor: Any) -> RigidInertia:
    """Mass matrix about the origin from mass, mass centre and inertia tensor about it."""
    shifted = _swept(tensor + mass * (com @ com * np.eye(3) - np.outer(com, com)))
    moments = [float(shifted[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    return RigidInertia(float(mass), _vec(_swept(mass * com)), Sym3(*moments))


def _swept(numbers: Any) -> Any:
    """Numbers far below the rounding of the largest set to zero: they are dust of products that
    should cancel, and would cost operations and a structure of their own.
    """
    return np.where(np.abs(numbers) < _DUST * np.abs(numbers).max(), 0.0, numbers)


def build_skeleton(bodies: tuple[Body, ...]) -> Skeleton:
    """Links of a tree of bodies (fixed joints already merged)."""
    axes, last, seat = _split_bodies(bodies)
    first: dict[int, int] = {}
    for k, axis in enumerate(axes):
        first.setdefault(axis.parent, k)
    normal = [_normal(axis.from_parent) for axis in axes]
    # The links' frames: z-aligned frames turned and slid onto the common normal of the first child.
    # A ball joint's frames all stay at its centre: its axes turn with the body, not with the links
    # between them.
    one, zero = _ONE_ZERO
    exact = dict.fromkeys(range(-1, len(axes)), (_ExactTurn(one, zero), zero))
    for k, child in first.items():
        turn, slide = normal[child]
        exact[k] = turn, zero if k >= 0 and axes[k].step.ball else slide
    chosen = {k: _Place(_about_z(t), np.array([zero, zero, z])) for k, (t, z) in exact.items()}
    body_of = {link: b for b, link in enumerate(last)}
    links = []
    for k, axis in enumerate(axes):
        frame = _clean(chosen[axis.parent].inverse() @ axis.from_parent @ chosen[k])
        gamma = normal[k][0].minus(exact[axis.parent][0])
        R = _about_z(gamma).T @ frame.R  # Rx(alpha) Rz(theta0)
        alpha = _turn(R[2, 2], -R[1, 2])
        theta0 = _turn(R[0, 0], -R[0, 1])
        if k in body_of:
            place = _clean(chosen[k].inverse() @ seat[body_of[k]])
            inertia = _seated(bodies[body_of[k]], place)
        else:
            place, inertia = _wide(Frame()), rigid_inertia(0.0, np.zeros(3), np.zeros((3, 3)))
        turns = gamma.rounded(), alpha.rounded(), theta0.rounded()
        screw, seated = Screw(axis.step.rho, axis.step.eta), as_pose(place.rounded())
        link = Link(*turns, _vec(frame.p), screw, inertia, seated, axis.rotor)
        if axis.step.ball:
            joint = _clean(axis.aligned @ chosen[k]).rounded()
            link = as_ball(link, float(axis.step.ball > 1), joint)
        links.append(link)
    parents, balls = tuple(a.parent for a in axes), tuple(a.step.ball for a in axes)
    return Skeleton(tuple(links), parents, chosen[-1].rounded(), tuple(last), balls)


def as_ball(link: Link, coupled: float, frame: Frame) -> BallLink:
    """A link of a ball joint, ``frame`` being its own in the joint's; or, uncoupled, an ordinary
    link that runs with such.
    """
    parts = {f.name: getattr(link, f.name) for f in fields(Link)}
    return BallLink(**parts, coupled=coupled, K=as_pose(frame.inverse()).R)


def as_pose(frame: Frame) -> Pose:
    """A frame as scalars."""
    return Pose(Mat3(*(float(x) for x in frame.rotation.ravel())), _vec(frame.position))


def _seated(body: Body, seat: _Place) -> RigidInertia:
    com = seat.R @ body.com + seat.p
    tensor = seat.R @ body.inertia @ seat.R.T
    return rigid_inertia(body.mass, com, tensor)


def _aligned(axis: tuple[float, float, float]) -> _Place:
    """A rotation that takes z to a unit axis."""
    u = np.array(axis, dtype=np.longdouble)
    return _Place(np.asarray(align_z(u / np.sqrt(u @ u)), dtype=np.longdouble), 0 * u)
