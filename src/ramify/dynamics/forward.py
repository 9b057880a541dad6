"""Recursive forward dynamics (table 6.2): joint accelerations from joint forces, by I = U D U'.

The wrench that the book carries in two parts (w~ of the inverse dynamics at zero acceleration, and
eta) is carried as one sum: both obey the same backward recursion, and only their sum is used.
"""

from __future__ import annotations

from dataclasses import dataclass

from ramify.core.scalar import Scalar
from ramify.core.spatial import ArticulatedInertia, Twist, Vec3, Wrench
from ramify.dynamics.inverse import no_wrench
from ramify.dynamics.motion import displacements, motions
from ramify.dynamics.tree import Column, Tree
from ramify.model.link import Displacement, Link


@dataclass(slots=True)
class Articulated:
    """What a subtree, its joints free, hands down: articulated inertia M^ and the wrench that holds
    it.
    """

    M: ArticulatedInertia
    w: Wrench


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


def inward(
    link: Link, children: Articulated, x: Displacement, bias: Wrench, tau: Scalar
) -> tuple[Pivot, Articulated]:
    """Backward recursion, eqs. (5.34)-(5.37), (6.11)."""
    M = link.M.articulated() + children.M
    w = bias + children.w
    psi_hat, psi, _, inverse = pivot(M, link)
    phi_hat = tau - link.p.dot(w)
    A = link.propagation(x)
    handed = Articulated(A.congruence(M.minus_outer(psi_hat, psi)), A.transposed(w + psi * phi_hat))
    return Pivot(psi, phi_hat * inverse), handed


def outward(
    link: Link, parent: tuple[Scalar, Twist], x: Displacement, row: Pivot
) -> tuple[Scalar, Twist]:
    """Forward recursion, eq. (6.13): acceleration a of the joint, mu of the link."""
    mu = link.propagation(x) @ parent[1]
    a = row.phi - mu.dot(row.psi)
    return a, mu + link.p * a


def solve(tree: Tree, x: Column, bias: Column, tau: Column) -> Column:
    """Accelerations under joint forces tau while the wrenches ``bias`` hold the links."""
    nothing = Articulated(ArticulatedInertia.zero(), no_wrench())
    rows = tree.inward(inward, nothing, x, bias, tau)
    o = Vec3(0.0, 0.0, 0.0)
    found = tree.outward(outward, (0.0, Twist(o, o)), x, rows)
    return tree.each(lambda link, pair: pair[0], found)


def accelerations(tree: Tree, x: Column, v: Column, tau: Column, applied: Column) -> Column:
    """Forward dynamics at the displacements x."""
    moving = motions(tree, x, v, tree.each(lambda link: 0.0))
    bias = tree.each(
        lambda link, motion, w: link.M.wrench(motion.t, motion.dt) - w, moving, applied
    )
    return solve(tree, x, bias, tau)


def forward_dynamics(tree: Tree, q: Column, v: Column, tau: Column, applied: Column) -> Column:
    """a (nv): accelerations under joint forces tau and external wrenches in the links' frames."""
    return accelerations(tree, displacements(tree, q), v, tau, applied)
