"""A link: one rigid body (massless or not) on one screw joint, in its Denavit-Hartenberg frame.

Every joint, of however many degrees of freedom, becomes a run of such links; all but the last are
massless (the book's Euler-angle joints, chapter 3). The link's own frame has its z axis on the
joint axis. Seen from the parent's frame it lies at

    Rz(gamma) Rx(alpha) Rz(theta0 + rho q)   and   r = r0 + eta q e,

where e is the joint axis. (rho, eta) = (1, 0) is a revolute joint, (0, 1) a prismatic one, (1, h) a
helical one of pitch h metres per radian. The frames are chosen so that gamma vanishes unless the
tree branches: :mod:`ramify.model.skeleton`.

A ball joint is three such links whose rates are the components of its angular velocity in the body:
the first is turned by the joint's quaternion, the others stand still in it (``BallLink``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

from ramify.core.scalar import Scalar, cos, sin
from ramify.core.spatial import ZERO, Mat3, RigidInertia, Twist, Vec3, Wrench, acceleration_field


class Rotatable(Protocol):
    """What can be seen from a turned frame: a vector, a tensor, an inertia."""

    def rotate_x(self, c: Scalar, s: Scalar, fixed: bool = False) -> Self: ...
    def rotate_z(self, c: Scalar, s: Scalar, fixed: bool = False) -> Self: ...
    def rotate(self, R: Mat3) -> Self: ...


class Shiftable(Rotatable, Protocol):
    """What can also be seen from another point: an inertia."""

    def shift(self, r: Vec3) -> Self: ...


R = TypeVar("R", bound=Rotatable)
S = TypeVar("S", bound=Shiftable)


@dataclass(slots=True)
class Turn:
    """An angle, as its cosine and sine."""

    c: Scalar
    s: Scalar


@dataclass(slots=True)
class Screw:
    """The joint-motion propagation vector p = [rho e; eta e] of eq. (4.3), e being the link's z
    axis.
    """

    rho: Scalar
    eta: Scalar

    def __mul__(self, rate: Scalar) -> Twist:
        return Twist(Vec3(0.0, 0.0, self.rho * rate), Vec3(0.0, 0.0, self.eta * rate))

    def dot(self, w: Wrench) -> Scalar:
        """p' w: the joint's share of a wrench."""
        return self.rho * w.n.z + self.eta * w.f.z

    def rate(self, w: Vec3) -> Twist:
        """dp/dt = w x p for a link that turns with w."""
        turned = Vec3(w.y, -w.x, 0.0)
        return Twist(turned * self.rho, turned * self.eta)

    @property
    def column(self) -> Twist:
        return Twist(Vec3(0.0, 0.0, self.rho), Vec3(0.0, 0.0, self.eta))


@dataclass(slots=True)
class Displacement:
    """Where a joint stands: the cosine and sine of its angle, and its slide along the axis."""

    c: Scalar
    s: Scalar
    slide: Scalar


@dataclass(slots=True)
class BallDisplacement(Displacement):
    """A displacement with the rotation matrix of the joint's quaternion."""

    Q: Mat3


def turned_by(w: Scalar, u: Vec3) -> Mat3:
    """The rotation matrix of a quaternion with scalar part w and vector part u, of any length."""
    k = 2.0 / (w * w + (u.x * u.x + (u.y * u.y + u.z * u.z)))
    ku = u * k
    xx, yy, zz = ku.x * u.x, ku.y * u.y, ku.z * u.z
    xy, xz, yz = ku.x * u.y, ku.x * u.z, ku.y * u.z
    wx, wy, wz = ku.x * w, ku.y * w, ku.z * w
    return Mat3(
        1.0 - (yy + zz), xy - wz, xz + wy,
        xy + wz, 1.0 - (xx + zz), yz - wx,
        xz - wy, yz + wx, 1.0 - (xx + yy),
    )  # fmt: skip


@dataclass(slots=True)
class Propagation:
    """The twist-propagation matrix A of eq. (4.3) from a link's parent to the link, each in its own
    frame.
    """

    gamma: Turn
    alpha: Turn
    theta: Turn
    r: Vec3
    Q: Mat3 | None = None

    def outward(self, u: Vec3) -> Vec3:
        """A vector of the parent's frame, seen from the link's."""
        u = u.rotate_z(self.gamma.c, -self.gamma.s).rotate_x(self.alpha.c, -self.alpha.s)
        u = u.rotate_z(self.theta.c, -self.theta.s)
        return u if self.Q is None else self.Q.transposed_times(u)

    def inward(self, x: R) -> R:
        """A vector, tensor or inertia of the link's frame, seen from the parent's."""
        x = x if self.Q is None else x.rotate(self.Q)
        x = x.rotate_z(self.theta.c, self.theta.s).rotate_x(self.alpha.c, self.alpha.s, True)
        return x.rotate_z(self.gamma.c, self.gamma.s, True)

    def __matmul__(self, t: Twist) -> Twist:
        """A t."""
        return Twist(self.outward(t.w), self.outward(t.v + t.w.cross(self.r)))

    def rate(self, t: Twist, dt: Twist) -> Twist:
        """A dt + dA/dt t for a joint at rest: the link's acceleration as a part of its parent."""
        return Twist(
            self.outward(dt.w), self.outward(dt.v + acceleration_field(t.w, dt.w) @ self.r)
        )

    def transposed(self, w: Wrench) -> Wrench:
        """A' w: the wrench on the link, felt at the parent's origin."""
        n, f = self.inward(w.n), self.inward(w.f)
        return Wrench(n + self.r.cross(f), f)

    def congruence(self, inertia: S) -> S:
        """A' M A: the link's inertia, felt at the parent's origin."""
        return self.inward(inertia).shift(self.r)


@dataclass(slots=True)
class Pose:
    """A frame in another: rotation and origin."""

    R: Mat3
    r: Vec3

    def point(self, u: Vec3) -> Vec3:
        """A point of the frame, seen from the other."""
        return self.r + self.R @ u

    def __matmul__(self, inner: Pose) -> Pose:
        """A frame of the frame, seen from the other."""
        R = Mat3.from_columns(*(self.R @ e for e in inner.R.columns))
        return Pose(R, self.point(inner.r))


@dataclass(slots=True)
class Link:
    """Constants of one link: see the module's text. ``theta0`` is the joint's angle at q = 0;
    ``seat`` is the user's body frame in it, ``rotor`` the reflected inertia of the joint's rotor.
    """

    gamma: Turn
    alpha: Turn
    theta0: Turn
    r0: Vec3
    p: Screw
    M: RigidInertia
    seat: Pose
    rotor: Scalar

    def displacement(self, q: Scalar) -> Displacement:
        """Where the joint stands at coordinate q."""
        c, s, o = cos(self.p.rho * q), sin(self.p.rho * q), self.theta0
        return Displacement(c * o.c - s * o.s, s * o.c + c * o.s, self.p.eta * q)

    def propagation(self, x: Displacement) -> Propagation:
        """A at a displacement of the joint."""
        e = Vec3(0.0, 0.0, 1.0).rotate_x(self.alpha.c, self.alpha.s)
        e = e.rotate_z(self.gamma.c, self.gamma.s)
        return Propagation(self.gamma, self.alpha, Turn(x.c, x.s), self.r0 + e * x.slide)

    def spin(self, A: Propagation, before: Vec3, v: Scalar) -> Vec3:
        """The joint's own angular velocity up to this link, in its frame; ``before`` is the parent
        link's.
        """
        return Vec3(0.0, 0.0, self.p.rho * v)

    def spin_handed(self, A: Propagation, spin: Vec3) -> Vec3:
        """What the parent link adds to its own for the angular velocity of the whole joint."""
        return ZERO


@dataclass(slots=True)
class BallLink(Link):
    """A link that may belong to a ball joint: ``coupled`` is one where it goes on with its parent
    link's joint.

    Its coordinate is a tuple of five: an angle or slide, and a quaternion (w, x, y, z) in the axes
    of the joint; ``K`` turns these into the link's. A link on another joint has the unit
    quaternion.
    """

    coupled: Scalar
    K: Mat3

    def displacement(self, q: Any) -> BallDisplacement:
        """Where the joint stands; a quaternion of any length turns like the unit one."""
        x = Link.displacement(self, q[0])
        w, u = q[1], self.K @ Vec3(*q[2:])
        return BallDisplacement(x.c, x.s, x.slide, turned_by(w, u))

    def propagation(self, x: Displacement) -> Propagation:
        assert isinstance(x, BallDisplacement)
        A = Link.propagation(self, x)
        return Propagation(A.gamma, A.alpha, A.theta, A.r, x.Q)

    def spin(self, A: Propagation, before: Vec3, v: Scalar) -> Vec3:
        return A.outward(before) * self.coupled + Vec3(0.0, 0.0, self.p.rho * v)

    def spin_handed(self, A: Propagation, spin: Vec3) -> Vec3:
        return A.inward(spin) * self.coupled
