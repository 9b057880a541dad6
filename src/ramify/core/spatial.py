"""Vectors, tensors, twists, wrenches and inertias over any scalar.

Six-vectors are angular first, as in the book: a twist is ``[w; v]`` (angular velocity, velocity of
the frame's origin), a wrench is ``[n; f]`` (moment about the origin, force). Nothing here branches
on a number, so every operation can be traced; a zero or a one known beforehand folds away by
itself.

Rotations are about one axis at a time, because the Denavit-Hartenberg frames of
:mod:`ramify.model.skeleton` need no other (but for quaternions). A symmetric tensor is rotated with
``c*c + s*s = 1`` built in (four products for the 2 x 2 block): an isotropic one does not change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ramify.core.scalar import Scalar


@dataclass(slots=True)
class Vec3:
    """A vector of three scalars."""

    x: Scalar
    y: Scalar
    z: Scalar

    def __add__(self, o: Vec3) -> Vec3:
        return Vec3(self.x + o.x, self.y + o.y, self.z + o.z)

    def __sub__(self, o: Vec3) -> Vec3:
        return Vec3(self.x - o.x, self.y - o.y, self.z - o.z)

    def __neg__(self) -> Vec3:
        return Vec3(-self.x, -self.y, -self.z)

    def __mul__(self, k: Scalar) -> Vec3:
        return Vec3(self.x * k, self.y * k, self.z * k)

    def dot(self, o: Vec3) -> Scalar:
        return self.x * o.x + self.y * o.y + self.z * o.z

    def cross(self, o: Vec3) -> Vec3:
        return Vec3(
            self.y * o.z - self.z * o.y, self.z * o.x - self.x * o.z, self.x * o.y - self.y * o.x
        )

    def rotate_x(self, c: Scalar, s: Scalar, fixed: bool = False) -> Vec3:
        """``Rx @ self`` for the rotation with cosine c and sine s."""
        return Vec3(self.x, c * self.y - s * self.z, s * self.y + c * self.z)

    def rotate_z(self, c: Scalar, s: Scalar, fixed: bool = False) -> Vec3:
        """``Rz @ self``."""
        return Vec3(c * self.x - s * self.y, s * self.x + c * self.y, self.z)

    def rotate(self, R: Mat3) -> Vec3:
        """``R @ self``."""
        return R @ self


def _turn_block(
    c: Scalar, s: Scalar, fixed: bool, aa: Scalar, ab: Scalar, ba: Scalar, bb: Scalar
) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """R B R' of a 2 x 2 block B = [[aa, ab], [ba, bb]] for R = [[c, -s], [s, c]]; quarter turns
    only permute. ``fixed``: so do those of constants that are not known yet (of a loop over
    robots), where the shorter form would round a small entry to the digits of a large one.
    """
    if isinstance(s, float) and s == 0.0:
        return aa, ab, ba, bb
    if isinstance(c, float) and c == 0.0:
        return bb, -ba, -ab, aa
    if fixed and not isinstance(c, float):
        cc, cs, ss = c * c, c * s, s * s
        t, d = cs * (ab + ba), cs * (aa - bb)
        return (
            cc * aa + (ss * bb - t), cc * ab + (d - ss * ba),
            cc * ba + (d - ss * ab), ss * aa + (cc * bb + t),
        )  # fmt: skip
    u = c * (aa - bb) - s * (ab + ba)
    cu, su = c * u, s * u
    return bb + cu, ab + su, ba + su, aa - cu


@dataclass(slots=True)
class Sym3:
    """A symmetric 3 x 3 tensor."""

    xx: Scalar
    yy: Scalar
    zz: Scalar
    xy: Scalar
    xz: Scalar
    yz: Scalar

    def __add__(self, o: Sym3) -> Sym3:
        return Sym3(
            self.xx + o.xx, self.yy + o.yy, self.zz + o.zz,
            self.xy + o.xy, self.xz + o.xz, self.yz + o.yz,
        )  # fmt: skip

    @property
    def full(self) -> Mat3:
        """All nine entries."""
        xy, xz, yz = self.xy, self.xz, self.yz
        return Mat3(self.xx, xy, xz, xy, self.yy, yz, xz, yz, self.zz)

    def __matmul__(self, u: Vec3) -> Vec3:
        return self.full @ u

    def less_half_trace(self) -> Mat3:
        """``self - tr(self)/2``: of an inertia tensor, minus the second moment of its mass."""
        half = 0.5 * (self.xx + self.yy + self.zz)
        return replace(self, xx=self.xx - half, yy=self.yy - half, zz=self.zz - half).full

    def rotate_z(self, c: Scalar, s: Scalar, fixed: bool = False) -> Sym3:
        """``Rz @ self @ Rz.T``."""
        xx, xy, _, yy = _turn_block(c, s, fixed, self.xx, self.xy, self.xy, self.yy)
        return Sym3(xx, yy, self.zz, xy, c * self.xz - s * self.yz, s * self.xz + c * self.yz)

    def rotate_x(self, c: Scalar, s: Scalar, fixed: bool = False) -> Sym3:
        """``Rx @ self @ Rx.T``."""
        yy, yz, _, zz = _turn_block(c, s, fixed, self.yy, self.yz, self.yz, self.zz)
        return Sym3(self.xx, yy, zz, c * self.xy - s * self.xz, s * self.xy + c * self.xz, yz)

    def rotate(self, R: Mat3) -> Sym3:
        """``R @ self @ R.T``."""
        a, b, c = R.rows
        u, v, w = self @ a, self @ b, self @ c
        return Sym3(a.dot(u), b.dot(v), c.dot(w), a.dot(v), a.dot(w), b.dot(w))


@dataclass(slots=True)
class Mat3:
    """A general 3 x 3 tensor, row by row."""

    xx: Scalar
    xy: Scalar
    xz: Scalar
    yx: Scalar
    yy: Scalar
    yz: Scalar
    zx: Scalar
    zy: Scalar
    zz: Scalar

    @staticmethod
    def cross_tensor(u: Vec3) -> Mat3:
        """The tensor that maps a to u x a."""
        return Mat3(0.0, -u.z, u.y, u.z, 0.0, -u.x, -u.y, u.x, 0.0)

    @property
    def rows(self) -> tuple[Vec3, Vec3, Vec3]:
        return (
            Vec3(self.xx, self.xy, self.xz),
            Vec3(self.yx, self.yy, self.yz),
            Vec3(self.zx, self.zy, self.zz),
        )

    @property
    def columns(self) -> tuple[Vec3, Vec3, Vec3]:
        return (
            Vec3(self.xx, self.yx, self.zx),
            Vec3(self.xy, self.yy, self.zy),
            Vec3(self.xz, self.yz, self.zz),
        )

    @staticmethod
    def from_columns(a: Vec3, b: Vec3, c: Vec3) -> Mat3:
        return Mat3(a.x, b.x, c.x, a.y, b.y, c.y, a.z, b.z, c.z)

    @staticmethod
    def from_rows(a: Vec3, b: Vec3, c: Vec3) -> Mat3:
        return Mat3(a.x, a.y, a.z, b.x, b.y, b.z, c.x, c.y, c.z)

    @staticmethod
    def steiner(a: Vec3, b: Vec3) -> Mat3:
        """``-(a x)(b x) = (a . b) 1 - b a'``: the tensor of the parallel-axis theorem, for a pair
        of vectors.
        """
        x, y, z = a.x * b.x, a.y * b.y, a.z * b.z
        return Mat3(
            y + z, -(b.x * a.y), -(b.x * a.z),
            -(b.y * a.x), x + z, -(b.y * a.z),
            -(b.z * a.x), -(b.z * a.y), x + y,
        )  # fmt: skip

    def __add__(self, o: Mat3) -> Mat3:
        return Mat3(
            self.xx + o.xx, self.xy + o.xy, self.xz + o.xz,
            self.yx + o.yx, self.yy + o.yy, self.yz + o.yz,
            self.zx + o.zx, self.zy + o.zy, self.zz + o.zz,
        )  # fmt: skip

    def __matmul__(self, u: Vec3) -> Vec3:
        return Vec3(*(row.dot(u) for row in self.rows))

    def transposed_times(self, u: Vec3) -> Vec3:
        return Vec3(*(column.dot(u) for column in self.columns))

    def crossed_by(self, r: Vec3) -> Mat3:
        """``(r x) @ self``."""
        return Mat3.from_columns(*(r.cross(column) for column in self.columns))

    def rotate_z(self, c: Scalar, s: Scalar, fixed: bool = False) -> Mat3:
        """``Rz @ self @ Rz.T``."""
        xx, xy, yx, yy = _turn_block(c, s, fixed, self.xx, self.xy, self.yx, self.yy)
        return Mat3(
            xx, xy, c * self.xz - s * self.yz,
            yx, yy, s * self.xz + c * self.yz,
            c * self.zx - s * self.zy, s * self.zx + c * self.zy, self.zz,
        )  # fmt: skip

    def rotate_x(self, c: Scalar, s: Scalar, fixed: bool = False) -> Mat3:
        """``Rx @ self @ Rx.T``."""
        yy, yz, zy, zz = _turn_block(c, s, fixed, self.yy, self.yz, self.zy, self.zz)
        return Mat3(
            self.xx, c * self.xy - s * self.xz, s * self.xy + c * self.xz,
            c * self.yx - s * self.zx, yy, yz,
            s * self.yx + c * self.zx, zy, zz,
        )  # fmt: skip

    def rotate(self, R: Mat3) -> Mat3:
        """``R @ self @ R.T``."""
        turned = [self @ row for row in R.rows]  # columns of self @ R.T
        return Mat3.from_columns(*(R @ column for column in turned))


@dataclass(slots=True)
class Twist:
    """``[w; v]``: angular velocity and velocity of the origin; with its rate, ``[dw; dv]``."""

    w: Vec3
    v: Vec3

    def __add__(self, o: Twist) -> Twist:
        return Twist(self.w + o.w, self.v + o.v)

    def __mul__(self, k: Scalar) -> Twist:
        return Twist(self.w * k, self.v * k)

    def dot(self, wrench: Wrench) -> Scalar:
        """Power."""
        return self.w.dot(wrench.n) + self.v.dot(wrench.f)


@dataclass(slots=True)
class Wrench:
    """``[n; f]``: moment about the origin and force."""

    n: Vec3
    f: Vec3

    def __add__(self, o: Wrench) -> Wrench:
        return Wrench(self.n + o.n, self.f + o.f)

    def __sub__(self, o: Wrench) -> Wrench:
        return Wrench(self.n - o.n, self.f - o.f)

    def __mul__(self, k: Scalar) -> Wrench:
        return Wrench(self.n * k, self.f * k)


def acceleration_field(w: Vec3, dw: Vec3) -> Mat3:
    """The tensor G that gives the acceleration of a point r of a body relative to its origin: G r =
    dw x r + w x (w x r).
    """
    xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
    xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
    return Mat3(
        -(yy + zz), xy - dw.z, xz + dw.y,
        xy + dw.z, -(xx + zz), yz - dw.x,
        xz - dw.y, yz + dw.x, -(xx + yy),
    )  # fmt: skip


@dataclass(slots=True)
class RigidInertia:
    """Mass matrix M of a rigid body about its origin (eq. 5.6): mass m, first moment h = m d,
    inertia tensor I.
    """

    m: Scalar
    h: Vec3
    I: Sym3  # noqa: E741 - the field's symbol

    def __add__(self, o: RigidInertia) -> RigidInertia:
        return RigidInertia(self.m + o.m, self.h + o.h, self.I + o.I)

    def __matmul__(self, t: Twist) -> Wrench:
        return Wrench(self.I @ t.w + self.h.cross(t.v), t.v * self.m - self.h.cross(t.w))

    def wrench(self, t: Twist, dt: Twist) -> Wrench:
        """``M dt + Omega M E t`` (eq. 5.5): what must act on the body for it to move so."""
        n = self.I @ dt.w + t.w.cross(self.I @ t.w) + self.h.cross(dt.v)
        f = dt.v * self.m + acceleration_field(t.w, dt.w) @ self.h
        return Wrench(n, f)

    def rotate_z(self, c: Scalar, s: Scalar, fixed: bool = False) -> RigidInertia:
        return RigidInertia(self.m, self.h.rotate_z(c, s, fixed), self.I.rotate_z(c, s, fixed))

    def rotate_x(self, c: Scalar, s: Scalar, fixed: bool = False) -> RigidInertia:
        return RigidInertia(self.m, self.h.rotate_x(c, s, fixed), self.I.rotate_x(c, s, fixed))

    def rotate(self, R: Mat3) -> RigidInertia:
        return RigidInertia(self.m, self.h.rotate(R), self.I.rotate(R))

    def shift(self, r: Vec3) -> RigidInertia:
        """The inertia of the body about a point at -r, from which its old origin is at r."""
        u = self.h + r * (0.5 * self.m)
        a, b, c = r.x * u.x, r.y * u.y, r.z * u.z
        tensor = Sym3(
            2.0 * (b + c), 2.0 * (a + c), 2.0 * (a + b),
            -(r.x * u.y + r.y * u.x), -(r.x * u.z + r.z * u.x), -(r.y * u.z + r.z * u.y),
        )  # fmt: skip
        return RigidInertia(self.m, self.h + r * self.m, self.I + tensor)

    def articulated(self) -> ArticulatedInertia:
        return ArticulatedInertia(
            self.I, Mat3.cross_tensor(self.h), Sym3(self.m, self.m, self.m, 0.0, 0.0, 0.0)
        )


@dataclass(slots=True)
class ArticulatedInertia:
    """A general symmetric 6 x 6 inertia [[A, B], [B', C]], angular first."""

    A: Sym3
    B: Mat3
    C: Sym3

    def __add__(self, o: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia(self.A + o.A, self.B + o.B, self.C + o.C)

    def __matmul__(self, t: Twist) -> Wrench:
        return Wrench(self.A @ t.w + self.B @ t.v, self.B.transposed_times(t.w) + self.C @ t.v)

    def minus_outer(self, a: Wrench, b: Wrench) -> ArticulatedInertia:
        """``self - a b'`` for a parallel to b."""
        A, B, C, n, f = self.A, self.B, self.C, a.n, a.f
        p, q = b.n, b.f
        return ArticulatedInertia(
            Sym3(
                A.xx - n.x * p.x, A.yy - n.y * p.y, A.zz - n.z * p.z,
                A.xy - n.x * p.y, A.xz - n.x * p.z, A.yz - n.y * p.z,
            ),
            Mat3(
                B.xx - n.x * q.x, B.xy - n.x * q.y, B.xz - n.x * q.z,
                B.yx - n.y * q.x, B.yy - n.y * q.y, B.yz - n.y * q.z,
                B.zx - n.z * q.x, B.zy - n.z * q.y, B.zz - n.z * q.z,
            ),
            Sym3(
                C.xx - f.x * q.x, C.yy - f.y * q.y, C.zz - f.z * q.z,
                C.xy - f.x * q.y, C.xz - f.x * q.z, C.yz - f.y * q.z,
            ),
        )  # fmt: skip

    def rotate_z(self, c: Scalar, s: Scalar, fixed: bool = False) -> ArticulatedInertia:
        return ArticulatedInertia(
            self.A.rotate_z(c, s, fixed), self.B.rotate_z(c, s, fixed), self.C.rotate_z(c, s, fixed)
        )

    def rotate_x(self, c: Scalar, s: Scalar, fixed: bool = False) -> ArticulatedInertia:
        return ArticulatedInertia(
            self.A.rotate_x(c, s, fixed), self.B.rotate_x(c, s, fixed), self.C.rotate_x(c, s, fixed)
        )

    def rotate(self, R: Mat3) -> ArticulatedInertia:
        return ArticulatedInertia(self.A.rotate(R), self.B.rotate(R), self.C.rotate(R))

    def shift(self, r: Vec3) -> ArticulatedInertia:
        """Seen from a point that lies at -r: B' = B + (r x) C, A' = A + (r x) B^T - B' (r x)."""
        A, B = self.A, self.B + self.C.full.crossed_by(r)
        a, b, c = (r.cross(row) for row in self.B.rows)  # columns of (r x) B^T
        u, v, w = (r.cross(row) for row in B.rows)  # rows of -B' (r x)
        tensor = Sym3(
            A.xx + (a.x + u.x), A.yy + (b.y + v.y), A.zz + (c.z + w.z),
            A.xy + (b.x + u.y), A.xz + (c.x + u.z), A.yz + (c.y + v.z),
        )  # fmt: skip
        return ArticulatedInertia(tensor, B, self.C)


ZERO: Final = Vec3(0.0, 0.0, 0.0)
NO_TWIST: Final = Twist(ZERO, ZERO)
NO_WRENCH: Final = Wrench(ZERO, ZERO)
NO_TENSOR: Final = Sym3(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
NO_INERTIA: Final = RigidInertia(0.0, ZERO, NO_TENSOR)
NO_ARTICULATED: Final = ArticulatedInertia(NO_TENSOR, Mat3(*[0.0] * 9), NO_TENSOR)
