"""Recursive forward dynamics (table 6.2): joint accelerations from joint forces, by I = U D U'.

The wrench that the book carries in two parts (w~ of the inverse dynamics at zero acceleration, and
eta) is carried as one sum: both obey the same backward recursion, and only their sum is used.
"""

from __future__ import annotations

from dataclasses import dataclass

from ramify.core.scalar import Scalar, Scalars, select
from ramify.core.spatial import (
    NO_ARTICULATED,
    NO_TWIST,
    NO_WRENCH,
    ArticulatedInertia,
    Mat3,
    Sym3,
    Twist,
    Wrench,
)
from ramify.dynamics.motion import displacements, motions
from ramify.dynamics.tree import Column, Tree
from ramify.dynamics.trunk import FREE, Trunk, axes
from ramify.model.link import Displacement, Link, Screw


@dataclass(slots=True)
class Articulated:
    """What a subtree, its joints free, hands down: articulated inertia M^ and the wrench that holds
    it.
    """

    M: ArticulatedInertia
    w: Wrench


NOTHING = Articulated(NO_ARTICULATED, NO_WRENCH)


@dataclass(slots=True)
class Pivot:
    """One row of U D U' x = phi: psi = M^ p / m^ (eq. 5.35) and phi~ = phi^ / m^ (eq. 6.11)."""

    psi: Wrench
    phi: Scalar


def pivot(M: ArticulatedInertia, link: Link) -> tuple[Wrench, Wrench, Scalar, Scalar]:
    """psi^ = M^ p, psi = psi^ / m^, m^ and 1 / m^ with m^ = p' psi^ (function_1 of table 6.2), the
    rotor's inertia added to m^.
    """
    psi_hat = M @ link.p.column
    m = link.p.dot(psi_hat) + link.rotor
    inverse = 1.0 / m
    return psi_hat, psi_hat * inverse, m, inverse


def through_joint(
    M: ArticulatedInertia, p: Screw, psi_hat: Wrench, psi: Wrench, column: Wrench
) -> ArticulatedInertia:
    """M^ - psi^ psi' (eq. 5.36): the inertia that is felt through a joint.

    Along a joint that only turns or only slides the result is known, ``column`` (psi times the
    rotor's inertia, zero without one), and is set. Left to the subtraction it would be the rounding
    of M^: an inertia that is not there, large beside a light link that carries heavy ones.
    """
    reduced = M.minus_outer(psi_hat, psi)
    turns, slides = p.eta * p.eta <= 0.0, p.rho * p.rho <= 0.0
    A, B, C, n, f = reduced.A, reduced.B, reduced.C, column.n, column.f
    return ArticulatedInertia(
        Sym3(
            A.xx, A.yy, select(turns, n.z, A.zz),
            A.xy, select(turns, n.x, A.xz), select(turns, n.y, A.yz),
        ),
        Mat3(
            B.xx, B.xy, select(slides, n.x, B.xz),
            B.yx, B.yy, select(slides, n.y, B.yz),
            select(turns, f.x, B.zx), select(turns, f.y, B.zy),
            select(turns, f.z, select(slides, n.z, B.zz)),
        ),
        Sym3(
            C.xx, C.yy, select(slides, f.z, C.zz),
            C.xy, select(slides, f.x, C.xz), select(slides, f.y, C.yz),
        ),
    )  # fmt: skip


def inward(
    link: Link, children: Articulated, x: Displacement, bias: Wrench, tau: Scalar
) -> tuple[Pivot, Articulated]:
    """Backward recursion, eqs. (5.34)-(5.37), (6.11)."""
    M = link.M.articulated() + children.M
    w = bias + children.w
    psi_hat, psi, _, inverse = pivot(M, link)
    phi_hat = tau - link.p.dot(w)
    A = link.propagation(x)
    felt = through_joint(M, link.p, psi_hat, psi, psi * link.rotor)
    handed = Articulated(A.congruence(felt), A.transposed(w + psi * phi_hat))
    return Pivot(psi, phi_hat * inverse), handed


def outward(
    link: Link, parent: tuple[Scalar, Twist], x: Displacement, row: Pivot
) -> tuple[Scalar, Twist]:
    """Forward recursion, eq. (6.13): acceleration a of the joint, mu of the link."""
    mu = link.propagation(x) @ parent[1]
    a = row.phi - mu.dot(row.psi)
    return a, mu + link.p * a


def solve_accelerations(tree: Tree, x: Column, bias: Column, tau: Column) -> Column:
    """Accelerations under joint forces tau while the wrenches ``bias`` hold the links."""
    rows = tree.inward(inward, NOTHING, x, bias, tau)
    found = tree.outward(outward, (0.0, NO_TWIST), x, rows)
    return tree.each(lambda link, pair: pair[0], found)


def accelerations_at(tree: Tree, x: Column, v: Column, tau: Column, applied: Column) -> Column:
    """Forward dynamics at the displacements x."""
    moving = motions(tree, x, v, tree.each(lambda link: 0.0))
    return solve_accelerations(tree, x, bias_wrenches(tree, moving, applied), tau)


def bias_wrenches(tree: Tree, moving: Column, applied: Column) -> Column:
    """The wrenches that hold the links at zero joint accelerations."""
    return tree.each(
        lambda link, motion, w: link.M.wrench(motion.t, motion.dt) - w, moving, applied
    )


def forward_dynamics(tree: Tree, q: Column, v: Column, tau: Column, applied: Column) -> Column:
    """a (nv): accelerations under joint forces tau and external wrenches in the links' frames."""
    return accelerations_at(tree, displacements(tree, q), v, tau, applied)


def trunk_forward_dynamics(
    limbs: Tree, trunk: Trunk, q0: Scalars, v0: Scalars, tau0: Scalars,
    q: Column, v: Column, tau: Column,
) -> Column:  # fmt: skip
    """Accelerations of a trunk with the coordinates q0 (7), v0 and forces tau0 (6) that carries
    limbs: six pivots of the whole robot's articulated inertia, then the limbs on a base that
    accelerates.
    """
    slides, flow, _ = limbs.hoisted(trunk.motion(limbs.gravity, q0, v0, (0.0,) * FREE))
    x = displacements(limbs, q)
    moving = motions(limbs, x, v, limbs.each(lambda link: 0.0), trunk.carrying(flow))
    bias = bias_wrenches(limbs, moving, limbs.each(lambda link: NO_WRENCH))
    rows, handed = limbs.inward_to_base(inward, NOTHING, x, bias, tau)
    M = trunk.M.articulated() + handed.M.rotate(trunk.end.R)
    w = trunk.M.wrench(flow.t, flow.dt) + trunk.inward(handed.w)
    a0, mu = limbs.hoisted(_free_joint(axes(slides), M, w, tau0))
    found = limbs.outward(outward, (0.0, trunk.outward(mu)), x, rows)
    return limbs.preceded(a0, limbs.each(lambda link, pair: pair[0], found))


def _free_joint(
    axes: list[Twist], M: ArticulatedInertia, w: Wrench, tau: Scalars
) -> tuple[list[Scalar], Twist]:
    """Accelerations along axes of one body, and their sum: the recursions of the links without a
    change of frame.
    """
    rows: list[Pivot] = []
    for p, force in reversed(list(zip(axes, tau, strict=True))):
        psi_hat = M @ p
        inverse = 1.0 / p.dot(psi_hat)
        psi, phi_hat = psi_hat * inverse, force - p.dot(w)
        M, w = M.minus_outer(psi_hat, psi), w + psi * phi_hat
        rows.append(Pivot(psi, phi_hat * inverse))
    found, mu = [], NO_TWIST
    for p, row in zip(axes, reversed(rows), strict=True):
        a = row.phi - mu.dot(row.psi)
        found.append(a)
        mu = mu + p * a
    return found, mu
