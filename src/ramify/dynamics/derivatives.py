"""Derivatives of inverse dynamics by q, v and a: one outward sweep, one inward sweep, one climb.

After Singh, Russo and Wensing, "Efficient analytical derivatives of rigid-body dynamics using
spatial vector algebra" (IEEE Robotics and Automation Letters, 2022), in the letters of the book.
All links are seen from one inertial frame and its origin, so that nothing is transformed on the
way to the base: with the joint's screw s, the twist t of a link, its parent p,

    ds = t_p x s,  dds = dt_p x s + t_p x ds,  dt = dt_p + s a + ds v,

a composite body has the plain sums M~, w~ of its links' inertias and wrenches and of
2 B = [[X, 0], [-2 (f x), 0]], where [n; f] = M t and X = S - (n x) with a symmetric S. With
psi = M~ s, rho = X~' s_w + 2 f~ x s_v, c = 2 B~ ds + M~ dds + s x* w~, d = 2 B~ s + 2 M~ ds:

    M_ij = s_j . psi_i,   dtau_i/dq_j = rho_i . ds_j + psi_i . dds_j,   dtau_j/dq_i = s_j . c_i,
                          dtau_i/dv_j = rho_i . s_j + 2 psi_i . ds_j,   dtau_j/dv_i = s_j . d_i.

The three links of a ball joint share their parent p, turn with the whole joint, and differentiate
by the rotation of the body in its own axes. A robot whose first joint is free is computed in the
inertial frame that its trunk passes through: nothing there depends on where the trunk is or how
fast it flies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ramify.core.records import add
from ramify.core.scalar import Scalar, Scalars, may_be_nonzero
from ramify.core.spatial import (
    NO_INERTIA,
    NO_TENSOR,
    NO_TWIST,
    NO_WRENCH,
    ZERO,
    RigidInertia,
    Sym3,
    Twist,
    Vec3,
    Wrench,
)
from ramify.dynamics import kinematics
from ramify.dynamics.factor import congruence
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import Column, Matrix, Tree
from ramify.dynamics.trunk import FREE, Flow, Trunk, identity, motion_at_rest, split_trunk
from ramify.model.link import BallLink, Displacement, Link, Pose
from ramify.model.skeleton import path_to_base


@dataclass(slots=True)
class WorldFrameLink:
    """A link seen from the common frame: its pose, its motion, and the motion of what its joint
    hangs on.
    """

    pose: Pose
    flow: Flow
    below: Flow


@dataclass(slots=True)
class JointAxis:
    """A joint's screw s, its rate and second rate on what it hangs on, and the mean of the rates on
    what it hangs on and on the joint's body: another than ds for a ball.
    """

    s: Twist
    ds: Twist
    dds: Twist
    mean: Twist


@dataclass(slots=True)
class Subtree:
    """Sums over a link and all it carries: M~, the symmetric part S~ of X~, momentum [n~; f~] and
    wrench w~.
    """

    M: RigidInertia
    S: Sym3
    p: Wrench
    w: Wrench


@dataclass(slots=True)
class Climbing:
    """What a link's row and column of the matrices need on the way to the base.

    ``load`` is s x* w~, which the links of one ball joint do not feel from one another; ``same`` is
    one while the climb has not left that joint.
    """

    psi: Wrench
    rho: Vec3
    c: Wrench
    d: Wrench
    load: Wrench
    same: Scalar


@dataclass(frozen=True)
class Derivatives:
    """tau (nv), and its derivatives by q, v and a (nv, nv); the last is the inertia matrix."""

    tau: Column
    by_q: Matrix
    by_v: Matrix
    by_a: Matrix


# ---- spatial products in the common frame ----


def cross(t: Twist, s: Twist) -> Twist:
    """t x s: the rate of a screw s that moves with the twist t."""
    return Twist(t.w.cross(s.w), t.v.cross(s.w) + t.w.cross(s.v))


def cross_dual(t: Twist, w: Wrench) -> Wrench:
    """t x* w: the rate of a wrench that moves with the twist t."""
    return Wrench(t.w.cross(w.n) + t.v.cross(w.f), t.w.cross(w.f))


def _coupled(link: Link) -> Scalar:
    """One where a link goes on with its parent link's joint."""
    return link.coupled if isinstance(link, BallLink) else 0.0


def _hangs_on(link: Link, parent: WorldFrameLink) -> Flow:
    """The motion of what a link's joint hangs on: its parent's, or that of a ball it belongs to."""
    if not isinstance(link, BallLink):
        return parent.flow
    c, o = link.coupled, 1.0 - link.coupled

    def blend(a: Twist, b: Twist) -> Twist:
        return Twist(a.w * c + b.w * o, a.v * c + b.v * o)

    return Flow(blend(parent.below.t, parent.flow.t), blend(parent.below.dt, parent.flow.dt))


# ---- steps ----


def screw(link: Link, pose: Pose) -> Twist:
    """The joint's screw p, seen from the common frame."""
    e = pose.R.columns[2]
    return Twist(e * link.p.rho, e * link.p.eta + pose.r.cross(e * link.p.rho))


def outward(
    link: Link, parent: WorldFrameLink, x: Displacement, v: Scalar, a: Scalar
) -> WorldFrameLink:
    """Eqs. (4.2), (6.3) in the common frame."""
    pose = kinematics.outward(link, parent.pose, x)
    below, s = _hangs_on(link, parent), screw(link, pose)
    t = parent.flow.t + s * v
    dt = parent.flow.dt + s * a + cross(below.t, s) * v
    return WorldFrameLink(pose, Flow(t, dt), below)


def axis(link: Link, at: WorldFrameLink, whole: Twist) -> JointAxis:
    """The screw of a link's joint with its rates; ``whole`` is the twist of the whole joint."""
    below, s = at.below, screw(link, at.pose)
    ds = cross(below.t, s)
    mean = (ds + cross(whole, s)) * 0.5 if isinstance(link, BallLink) else ds
    return JointAxis(s, ds, cross(below.dt, s) + cross(below.t, ds), mean)


def composite(M: RigidInertia, flow: Flow) -> Subtree:
    """A link by itself; M is its inertia in the common frame."""
    p = M @ flow.t
    w = M @ flow.dt + cross_dual(flow.t, p)
    u, v, h = flow.t.w, flow.t.v, M.h
    turned = M.I.full.crossed_by(u)
    xx, yy, zz = v.x * h.x, v.y * h.y, v.z * h.z
    S = Sym3(
        2.0 * (turned.xx + (yy + zz)), 2.0 * (turned.yy + (xx + zz)), 2.0 * (turned.zz + (xx + yy)),
        turned.xy + turned.yx - (v.x * h.y + v.y * h.x),
        turned.xz + turned.zx - (v.x * h.z + v.z * h.x),
        turned.yz + turned.zy - (v.y * h.z + v.z * h.y),
    )  # fmt: skip
    return Subtree(M, S, p, w)


EMPTY = Subtree(NO_INERTIA, NO_TENSOR, NO_WRENCH, NO_WRENCH)


def carried(at: JointAxis, of: Subtree, same: Scalar) -> Climbing:
    """psi, rho, c, d of a joint with the screw ``at`` that carries a composite body."""

    def twice_B(s: Twist) -> Wrench:
        f = of.p.f.cross(s.w)
        return Wrench(of.S @ s.w - of.p.n.cross(s.w), -(f + f))

    f = of.p.f.cross(at.s.v)
    rho = of.S @ at.s.w + of.p.n.cross(at.s.w) + (f + f)
    own = cross_dual(at.s, of.w)
    c = twice_B(at.ds) + of.M @ at.dds + own
    d = twice_B(at.s) + of.M @ (at.mean * 2.0)
    return Climbing(of.M @ at.s, rho, c, d, own, same)


def inward(
    link: Link, children: Subtree, here: WorldFrameLink, at: JointAxis, a: Scalar
) -> tuple[tuple[Scalar, Climbing], Subtree]:
    """The composite body of a link: sums, for all is seen from one point; its torque is
    s . w~ + J a, J being the rotor's inertia.
    """
    M = link.M.rotate(here.pose.R).shift(here.pose.r)
    of = add(composite(M, here.flow), children)
    return (at.s.dot(of.w) + link.rotor * a, carried(at, of, _coupled(link))), of


Pairs = tuple[tuple[Scalar, Scalar], tuple[Scalar, Scalar], tuple[Scalar, Scalar]]


def pairs(below: Climbing, at: JointAxis, same: Scalar) -> Pairs:
    """Entries (i, j) and (j, i) of the derivatives by q, v and a, for a joint i and a joint j that
    carries it.
    """
    inertia = at.s.dot(below.psi)
    own = at.s.dot(below.load * same) if not isinstance(same, float) or same else 0.0
    return (
        (below.rho.dot(at.ds.w) + at.dds.dot(below.psi), at.s.dot(below.c) - own),
        (below.rho.dot(at.s.w) + 2.0 * at.mean.dot(below.psi), at.s.dot(below.d)),
        (inertia, inertia),
    )


def climb(below: Climbing, child: Any, above: Any) -> tuple[Pairs, Climbing]:
    """One joint further down; of what is carried only ``same`` changes."""
    found = pairs(below, above[1], below.same)
    same = below.same * _coupled(above[0])
    return found, Climbing(below.psi, below.rho, below.c, below.d, below.load, same)


# ---- the whole tree ----


def whole_joints(tree: Tree, links: Column, v: Column) -> Column:
    """The twist of every link's whole joint: its own, unless more links of a ball follow."""
    if not tree.balls:
        return tree.each(lambda link, s: s.flow.t, links)

    def ahead(link: Link, more: Twist, s: WorldFrameLink, v: Scalar) -> tuple[Twist, Twist]:
        own, c = screw(link, s.pose) * v, _coupled(link)
        return s.flow.t + more, (own + more) * c

    return tree.inward(ahead, NO_TWIST, links, v)


def sweeps(
    tree: Tree, root: WorldFrameLink, q: Column, v: Column, a: Column
) -> tuple[Column, Column, Subtree]:
    """The axis of every link; its torque and what it carries; what all of them hand to the base."""
    seen = tree.outward(outward, root, displacements(tree, q), v, a)
    axes = tree.each(axis, seen, whole_joints(tree, seen, v))
    return axes, *tree.inward_to_base(inward, EMPTY, seen, axes, a)


def matrices(tree: Tree, axes: Column, torques_and_loads: Column) -> list[Matrix]:
    """By q, v and a: the climb, and the diagonals."""
    loads = tree.each(lambda link, pair: pair[1], torques_and_loads)

    def diagonal(link: Link, load: Climbing, at: JointAxis) -> tuple[Scalar, ...]:
        by_q, by_v, by_a = (entry for entry, _ in pairs(load, at, 0.0))
        return by_q, by_v, by_a + link.rotor

    diagonals = tree.each(diagonal, loads, axes)
    return [
        matrix.with_diagonal(tree.each(lambda link, entries, i=i: entries[i], diagonals))
        for i, matrix in enumerate(tree.climbs(3, climb, loads, axes))
    ]


def inverse_dynamics_derivatives(tree: Tree, q: Column, v: Column, a: Column) -> Derivatives:
    """tau and its derivatives by q, v and a. For a quaternion, a derivative by q is one by the
    rotation of the body about its own axes.
    """
    flying = split_trunk(tree)
    if flying is not None:
        trunk, limbs = flying
        heads = (*q[:3], *q[3][1:]), v[:6], a[:6]
        return trunk_derivatives(limbs, trunk, *heads, q[6:], v[6:], a[6:])
    base = motion_at_rest(-tree.gravity)
    axes, found, _ = sweeps(tree, WorldFrameLink(identity(), base, base), q, v, a)
    tau = tree.each(lambda link, pair: pair[0], found)
    return Derivatives(tau, *matrices(tree, axes, found))


def trunk_derivatives(
    limbs: Tree, trunk: Trunk, q0: Scalars, v0: Scalars, a0: Scalars,
    q: Column, v: Column, a: Column,
) -> Derivatives:  # fmt: skip
    """``inverse_dynamics_derivatives`` of a trunk with the coordinates q0 (7), v0, a0 (6) that
    carries limbs.
    """
    slides, flow, below = limbs.hoisted(trunk.motion(limbs.gravity, q0, v0, a0))
    axes, torques_and_loads, handed = sweeps(limbs, WorldFrameLink(trunk.end, flow, flow), q, v, a)
    z = NO_TWIST
    trunk_axes = [JointAxis(Twist(ZERO, e), z, z, z) for e in slides]
    for e in identity().R.rows:
        s = Twist(e, ZERO)
        trunk_axes.append(JointAxis(s, z, cross(below.dt, s), cross(flow.t, s) * 0.5))
    of = add(composite(trunk.M, flow), handed)
    loads = [carried(at, of, 0.0) for at in trunk_axes]
    # by matrix: entries (row, column) of the trunk, and for every link those beside and above it
    corner = [
        [[_within(loads, trunk_axes, i, j)[m] for j in range(6)] for i in range(6)]
        for m in range(3)
    ]

    def sides(link: Link, pair: tuple[Scalar, Climbing]) -> tuple[Any, ...]:
        entries = [pairs(pair[1], at, 0.0) for at in trunk_axes]
        return tuple(tuple(zip(*(e[m] for e in entries), strict=True)) for m in range(3))

    beside = limbs.each(sides, torques_and_loads)
    whole = [
        limbs.bordered(matrix, limbs.each(lambda link, e, m=m: e[m], beside), corner[m])
        for m, matrix in enumerate(matrices(limbs, axes, torques_and_loads))
    ]
    tau = limbs.each(lambda link, pair: pair[0], torques_and_loads)
    return Derivatives(limbs.preceded([at.s.dot(of.w) for at in trunk_axes], tau), *whole)


def _within(loads: list[Climbing], trunk_axes: list[JointAxis], i: int, j: int) -> list[Scalar]:
    """Entry (i, j) of the trunk's own axes, by q, v and a: three slides, then one ball."""
    low, high = max(i, j), min(i, j)
    return [e[i < j] for e in pairs(loads[low], trunk_axes[high], float(high > 2 and low != high))]


def inertia_and_bias(tree: Tree, q: Column, v: Column) -> Derivatives:
    """``inverse_dynamics_derivatives`` at zero accelerations: tau is the bias, its derivative by a
    the inertia matrix.
    """
    return inverse_dynamics_derivatives(tree, q, v, tree.each(lambda link: 0.0))


def trunk_inertia_and_bias(
    limbs: Tree, trunk: Trunk, q0: Scalars, v0: Scalars, q: Column, v: Column
) -> Derivatives:
    """``inertia_and_bias`` of a trunk that carries limbs."""
    a = limbs.each(lambda link: 0.0)
    return trunk_derivatives(limbs, trunk, q0, v0, [0.0] * FREE, q, v, a)


# ---- forward dynamics ----


def forward_dynamics_derivatives(
    tree: Tree, q: Column, v: Column, tau: Column, slopes: tuple[Matrix, Matrix] | None = None
) -> Derivatives:
    """a and its derivatives by q, v and tau, from those of inverse dynamics there:
    da = I^-1 (dtau - dID). slopes: those of tau by q and v, where it depends on them. The last is
    the inverse of the inertia matrix I = L' D L; the others are multiplied with D^-1 L'^-1, which
    leaves them the entries they have, and then with L^-1.
    """
    at_rest = inertia_and_bias(tree, q, v)
    U, d = inverse_factors(at_rest.by_a, tree.parents)
    K = Matrix(U.n, {(k, i): x for (i, k), x in U.entries.items()})
    minus_N = Matrix(U.n, {(i, k): -(d[i] * x) for (i, k), x in U.entries.items()})
    excess = (h - x for x, h in zip(tau, at_rest.tau, strict=True))
    b = Matrix(U.n, {(k, 0): x for k, x in enumerate(excess)})
    a = [_product(K, _product(minus_N, b)).entries[k, 0] for k in range(U.n)]
    found = inverse_dynamics_derivatives(tree, q, v, a)
    parts = [found.by_q, found.by_v]
    if slopes is not None:
        parts = [_difference(m, less) for m, less in zip(parts, slopes, strict=True)]
    by_q, by_v = (_product(K, _product(minus_N, m)) for m in parts)
    return Derivatives(a, by_q, by_v, congruence(U, d))


def _difference(a: Matrix, b: Matrix) -> Matrix:
    entries = dict(a.entries)
    for place, x in b.entries.items():
        entries[place] = entries[place] - x if place in entries else -x
    return Matrix(a.n, entries)


def inverse_factors(M: Matrix, parents: Sequence[int]) -> tuple[Matrix, Column]:
    """U and d of M^-1 = U' diag(d) U for an inertia matrix M, entries only where its tree has them:
    M = L' D L, each row of L over a link's carriers, U the inverse of L, transposed.
    """
    H = dict(M.entries)
    L: dict[tuple[int, int], Scalar] = {}
    d: list[Scalar] = [0.0] * M.n
    for k in reversed(range(M.n)):
        d[k] = 1.0 / H[k, k]
        path = path_to_base(parents, parents[k])
        for i in path:
            L[k, i] = H[k, i] * d[k]
        for i in path:
            for j in path_to_base(parents, i):
                H[i, j] = H[i, j] - L[k, i] * H[k, j]
    U: dict[tuple[int, int], Scalar] = {}
    for k in range(M.n):
        U[k, k] = 1.0
        path = path_to_base(parents, parents[k])
        for n, i in enumerate(path):
            total = L[k, i]
            for j in path[:n]:
                total = total + U[j, k] * L[j, i]
            U[i, k] = -total
    return Matrix(M.n, U), d


def _product(A: Matrix, B: Matrix) -> Matrix:
    """A B, without terms of entries that are zero."""
    rows: list[list[int]] = [[] for _ in range(A.n)]
    for i, k in sorted(A.entries):
        rows[i].append(k)
    columns = sorted({j for _, j in B.entries})
    entries: dict[tuple[int, int], Scalar] = {}
    for j in columns:
        column = {k for k in range(B.n) if (k, j) in B.entries and may_be_nonzero(B.entries[k, j])}
        for i in range(A.n):
            terms = [A.entries[i, k] * B.entries[k, j] for k in rows[i] if k in column]
            if terms:
                entries[i, j] = sum(terms[1:], terms[0])
    return Matrix(A.n, entries)
