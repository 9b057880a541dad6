"""The operations of the book's appendix A, each written so that it takes the multiplications (M)
and additions (A) printed there.

A frame lies in its parent's by two planar screws, one about x (twist angle alpha, length a) and one
about z (joint angle theta, offset b): A.18, A.44. Each planar screw costs half of what a general
transformation would; what is known to be zero folds. Those about x are those about z with the axes
renamed (``wrench_x`` and its like, at the end).

S. V. Shah, S. K. Saha, J. K. Dutt, Dynamics of Tree-Type Robotic Systems, Springer 2013; equation
numbers are its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar

from ramify.core.scalar import Scalar
from ramify.core.spatial import Mat3, RigidInertia, Sym3, Twist, Vec3, Wrench
from ramify.model.link import Turn

Record = TypeVar("Record")
PlanarScrew = Callable[[Record, Turn, Scalar], Record]


@dataclass(frozen=True)
class Products:
    """s s, c s, 2 c s and 2 s s - 1 of an angle: 4M 1A (A.11), nothing for a constant one."""

    ss: Scalar
    cs: Scalar
    twice_cs: Scalar
    minus_cos: Scalar

    @staticmethod
    def of(angle: Turn) -> Products:
        ss, cs = angle.s * angle.s, angle.c * angle.s
        return Products(ss, cs, 2.0 * cs, 2.0 * ss - 1.0)


@dataclass(frozen=True)
class Hat:
    """An articulated mass matrix [[I, F'], [F, G]] (A.42): f = F w + G v, n = I w + F' v."""

    I: Sym3  # noqa: E741 - the book's symbol
    F: Mat3
    G: Sym3

    @staticmethod
    def of(M: RigidInertia) -> Hat:
        """The mass matrix of a rigid link (A.30)."""
        return Hat(M.I, Mat3.cross_tensor(-M.h), Sym3(M.m, M.m, M.m, 0.0, 0.0, 0.0))

    def __add__(self, o: Hat) -> Hat:
        """A constant mass matrix of a link and what a child hands over: 15A."""
        return Hat(self.I + o.I, self.F + o.F, self.G + o.G)

    def rows(self) -> list[list[Scalar]]:
        """All six rows."""
        I, F, G = self.I, self.F, self.G  # noqa: E741
        return [
            [I.xx, I.xy, I.xz, F.xx, F.yx, F.zx],
            [I.xy, I.yy, I.yz, F.xy, F.yy, F.zy],
            [I.xz, I.yz, I.zz, F.xz, F.yz, F.zz],
            [F.xx, F.xy, F.xz, G.xx, G.xy, G.xz],
            [F.yx, F.yy, F.yz, G.xy, G.yy, G.yz],
            [F.zx, F.zy, F.zz, G.xz, G.yz, G.zz],
        ]


# ---- A.3: tensors in a different frame ----


def _turn_symmetric(
    aa: Scalar, bb: Scalar, ab: Scalar, t: Products
) -> tuple[Scalar, Scalar, Scalar]:
    """The 2 x 2 block of a symmetric tensor: 4M 5A (A.11, A.12)."""
    difference = aa - bb
    d1 = difference * t.ss + ab * t.twice_cs
    return aa - d1, bb + d1, difference * t.cs - ab * t.minus_cos


def _turn_block(
    aa: Scalar, ab: Scalar, ba: Scalar, bb: Scalar, t: Products
) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """The 2 x 2 block of a general tensor: 4M 8A (A.8, A.9)."""
    b1, b2 = aa - bb, ab + ba
    d1, d2 = b1 * t.ss + b2 * t.cs, b1 * t.cs - b2 * t.ss
    return aa - d1, ab + d2, ba + d2, bb + d1


def _pair(a: Scalar, b: Scalar, angle: Turn) -> tuple[Scalar, Scalar]:
    """4M 2A."""
    return a * angle.c - b * angle.s, a * angle.s + b * angle.c


def symmetric_z(J: Sym3, angle: Turn, t: Products) -> Sym3:
    """Rz J Rz': 8M 7A beside the products (A.11)."""
    xx, yy, xy = _turn_symmetric(J.xx, J.yy, J.xy, t)
    xz, yz = _pair(J.xz, J.yz, angle)
    return Sym3(xx, yy, J.zz, xy, xz, yz)


def general_z(F: Mat3, angle: Turn, t: Products) -> Mat3:
    """Rz F Rz': 12M 12A beside the products (A.8)."""
    xx, xy, yx, yy = _turn_block(F.xx, F.xy, F.yx, F.yy, t)
    xz, yz = _pair(F.xz, F.yz, angle)
    zx, zy = _pair(F.zx, F.zy, angle)
    return Mat3(xx, xy, xz, yx, yy, yz, zx, zy, F.zz)


# ---- A.4: twists and wrenches through a planar screw, 10M 6A each ----


def wrench_z(w: Wrench, angle: Turn, b: Scalar) -> Wrench:
    """A wrench of the outer frame, in the inner one and at its origin (A.21)."""
    f = w.f.rotate_z(angle.c, angle.s)
    n = w.n.rotate_z(angle.c, angle.s)
    return Wrench(Vec3(n.x - b * f.y, n.y + b * f.x, n.z), f)


def twist_z(t: Twist, angle: Turn, b: Scalar) -> Twist:
    """A twist of the inner frame, in the outer one and at its origin."""
    w, v = t.w.rotate_z(angle.c, -angle.s), t.v.rotate_z(angle.c, -angle.s)
    return Twist(w, Vec3(v.x + b * w.y, v.y - b * w.x, v.z))


# ---- A.5: special computations ----


def rate_products(w: Vec3) -> tuple[Scalar, Scalar, Scalar, Scalar, Scalar, Scalar]:
    """w11, w22, w33, w12, w13, w23: 6M (A.26)."""
    return w.x * w.x, w.y * w.y, w.z * w.z, w.x * w.y, w.x * w.z, w.y * w.z


def varpi(p: tuple[Scalar, ...], dw: Vec3) -> Mat3:
    """The tensor of the acceleration field, (dw x 1) + (w x 1)(w x 1): 9A (A.26)."""
    xx, yy, zz, xy, xz, yz = p
    return Mat3(
        -zz - yy, xy - dw.z, xz + dw.y,
        xy + dw.z, -zz - xx, yz - dw.x,
        xz - dw.y, yz + dw.x, -yy - xx,
    )  # fmt: skip


def euler_moment(I: Sym3, p: tuple[Scalar, ...], field: Mat3, dw: Vec3) -> Vec3:  # noqa: E741
    """n' = I dw + w x I w: 15M 15A (A.28; its second line needs varpi_12, not varpi_21)."""
    xx, yy, zz, xy, xz, yz = p
    return Vec3(
        dw.x * I.xx - field.zx * I.xy + field.yx * I.xz + I.yz * (yy - zz) - (I.yy - I.zz) * yz,
        dw.y * I.yy - field.xy * I.yz + field.zy * I.xy + I.xz * (zz - xx) - (I.zz - I.xx) * xz,
        dw.z * I.zz - field.yz * I.xz + field.xz * I.yz + I.xy * (xx - yy) - (I.xx - I.yy) * xy,
    )


# ---- A.6: a composite body, 34M 31A; and 9A to add it ----


def composite_z(M: RigidInertia, angle: Turn, b: Scalar) -> RigidInertia:
    """Step 1: 19M 16A (A.35)-(A.37), m b being known beforehand."""
    I, h = symmetric_z(M.I, angle, Products.of(angle)), M.h.rotate_z(angle.c, angle.s)  # noqa: E741
    z = h.z + M.m * b
    c2 = (z + h.z) * b
    moved = Sym3(I.xx + c2, I.yy + c2, I.zz, I.xy, I.xz - h.x * b, I.yz - h.y * b)
    return RigidInertia(M.m, Vec3(h.x, h.y, z), moved)


# ---- A.7: an articulated body whose joint is free, 64M 63A; and 15A to add it ----


def articulated_turn_z(M: Hat, angle: Turn) -> Hat:
    """The turn about z alone: 24M 23A where row, column 3 of I and column 3 of F vanish (A.48)."""
    t = Products.of(angle)
    return Hat(symmetric_z(M.I, angle, t), general_z(M.F, angle, t), symmetric_z(M.G, angle, t))


def articulated_z(M: Hat, angle: Turn, b: Scalar) -> Hat:
    """Step 1: 32M 35A (A.46)-(A.49)."""
    M = articulated_turn_z(M, angle)
    I, F, G = M.I, M.F, M.G  # noqa: E741
    c1 = b * G.xy
    c2, c3, c4 = F.xx - c1, F.xy + b * G.xx, F.yx - b * G.yy
    return Hat(
        Sym3(
            I.xx - (c4 + F.yx) * b, I.yy + (c3 + F.xy) * b, I.zz,
            I.xy + (c2 - F.yy) * b, I.xz - b * F.yz, I.yz + b * F.xz,
        ),
        Mat3(c2, c3, F.xz, c4, F.yy + c1, F.yz, F.zx - b * G.yz, F.zy + b * G.xz, F.zz),
        G,
    )  # fmt: skip


# ---- the same about x ----


def _renamed(x: Any) -> Any:
    """A record with its axes y, z, x called x, y, z; three times over it is as it was."""
    if isinstance(x, Vec3):
        return Vec3(x.y, x.z, x.x)
    if isinstance(x, Sym3):
        return Sym3(x.yy, x.zz, x.xx, x.yz, x.xy, x.xz)
    if isinstance(x, Mat3):
        a, b, c = map(_renamed, x.rows)
        return Mat3.from_rows(b, c, a)
    kind: Any = type(x)
    return kind(*(_renamed(getattr(x, f.name)) for f in fields(x))) if is_dataclass(x) else x


def _about_x(about_z: PlanarScrew[Record]) -> PlanarScrew[Record]:
    def screw(x: Record, angle: Turn, a: Scalar) -> Record:
        out: Record = _renamed(_renamed(about_z(_renamed(x), angle, a)))
        return out

    return screw


wrench_x, twist_x = _about_x(wrench_z), _about_x(twist_z)  # (A.23)
composite_x = _about_x(composite_z)  # step 2: 15M 15A (A.38)-(A.40)
articulated_x = _about_x(articulated_z)  # step 2: 32M 28A (A.50)-(A.52)


# ---- a symmetric system, for the floating base ----


def solve_symmetric(rows: list[list[Scalar]], right: list[Scalar]) -> list[Scalar]:
    """x of M x = right by M = U D U', reverse Gaussian elimination: 86M 65A for six unknowns."""
    n = len(right)
    M = [list(row) for row in rows]
    x = list(right)
    U: dict[tuple[int, int], Scalar] = {}
    for k in range(n - 1, 0, -1):
        for i in range(k):
            U[i, k] = M[i][k] / M[k][k]
            for j in range(i + 1):
                M[i][j] = M[j][i] = M[i][j] - U[i, k] * M[j][k]
            x[i] = x[i] - U[i, k] * x[k]
    x = [x[k] / M[k][k] for k in range(n)]
    for k in range(1, n):
        for i in range(k):
            x[k] = x[k] - U[i, k] * x[i]
    return x
