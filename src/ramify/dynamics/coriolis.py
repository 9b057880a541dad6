"""The Coriolis matrix C of the Christoffel symbols, composite by composite; dI/dt - 2 C is
skew-symmetric.

A particle dm at x(q) with J = dx/dq has the Christoffel symbols dm dx/dq_i . d2x/dq_j dq_k, so that
C = integral of J' dJ/dt dm. Over a link whose twist is t = N v this is N' (M dN/dt + B N) with B in
blocks [[X, 0], [-(y x), 0]]: y = w x h is the rate of the first moment and X = (w x)(I - tr(I)/2),
where the tensor in brackets is minus the second moment. B t is Omega M E t of eq. (5.5). Composites
keep that shape, so that the recursion costs little more than that of M~ (eq. 5.19). Rates are seen
from axes at rest, written in the link's frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ramify.core.scalar import Scalar
from ramify.core.spatial import NO_INERTIA, ZERO, Mat3, RigidInertia, Vec3, Wrench
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import Column, Matrix, Tree
from ramify.model.link import Displacement, Link


@dataclass(slots=True)
class Turning:
    """Angular velocity w of a link in its frame, and the rate dr of its origin seen from the
    parent's, in the parent's frame.
    """

    w: Vec3
    dr: Vec3


@dataclass(slots=True)
class Composite:
    """M~ and B~ = [[X, 0], [-(y x), 0]] of the links that a link carries, itself included."""

    M: RigidInertia
    X: Mat3
    y: Vec3


@dataclass(slots=True)
class Carried:
    """What a link's column and row of C need on the way to the base."""

    column: Wrench  # M~ dp/dt + B~ p
    psi: Wrench  # M~ p
    row: Vec3  # angular part of B~' p; the linear part is zero


def outward(link: Link, parent: Turning, x: Displacement, v: Scalar) -> Turning:
    """Eq. (4.2), the parts that B needs."""
    A, p = link.propagation(x), link.p
    w = A.outward(parent.w) + Vec3(0.0, 0.0, p.rho * v)
    return Turning(w, parent.w.cross(A.r) + A.inward(Vec3(0.0, 0.0, p.eta * v)))


def whole_spins(tree: Tree, x: Column, moving: Column, v: Column) -> Column:
    """The motion by which a link's axis turns: a ball joint's three axes turn with all of its
    angular velocity.
    """
    if not tree.balls:
        return moving

    def inward(link: Link, ahead: Vec3, x: Displacement, v: Scalar) -> tuple[Vec3, Vec3]:
        return ahead, link.spin_handed(link.propagation(x), ahead + Vec3(0.0, 0.0, link.p.rho * v))

    ahead = tree.inward(inward, ZERO, x, v)
    return tree.each(lambda link, motion, more: Turning(motion.w + more, motion.dr), moving, ahead)


def inward(
    link: Link, children: Composite, x: Displacement, motion: Turning
) -> tuple[Carried, Composite]:
    """B~ = B + sum of A' (B~ + M~ dA/dt) over the children, A' B~ A being A' B~; M~ as in eq.
    (5.19).
    """
    w, p = motion.w, link.p
    M = link.M + children.M
    X = link.M.I.less_half_trace().crossed_by(w) + children.X
    y = w.cross(link.M.h) + children.y

    B_p = Wrench(X.columns[2] * p.rho, Vec3(-y.y, y.x, 0.0) * p.rho)
    B_transposed_p = X.rows[2] * p.rho + Vec3(y.y, -y.x, 0.0) * p.eta
    carried = Carried(M @ p.rate(w) + B_p, M @ p.column, B_transposed_p)

    A, dr = link.propagation(x), motion.dr
    M_handed, y_inward = A.congruence(M), A.inward(y)
    X_handed = A.inward(X) + Mat3.steiner(A.r, y_inward) + Mat3.steiner(M_handed.h, dr)
    return carried, Composite(M_handed, X_handed, y_inward + dr * M.m)


def climb(below: Carried, child: Any, above: Any) -> tuple[tuple[Scalar, Scalar], Carried]:
    """C(j, k) = p_j' A' column; C(k, j) = psi' (A dp_j/dt + dA/dt p_j) + row' A p_j."""
    link, x, motion = child
    carrier, _, over = above
    A, p = link.propagation(x), carrier.p
    column, psi = A.transposed(below.column), A.transposed(below.psi)
    row = A.inward(below.row) + motion.dr.cross(psi.f)
    return (p.rate(over.w).dot(psi) + p.rho * row.z, p.dot(column)), Carried(column, psi, row)


def coriolis_matrix(tree: Tree, q: Column, v: Column) -> Matrix:
    """C (nv, nv) with bias = C v + gravity forces; zero between links of different branches."""
    x = displacements(tree, q)
    moving = whole_spins(tree, x, tree.outward(outward, Turning(ZERO, ZERO), x, v), v)
    nothing = Composite(NO_INERTIA, Mat3.cross_tensor(ZERO), ZERO)
    carried = tree.inward(inward, nothing, x, moving)
    diagonal = tree.each(lambda link, c: link.p.dot(c.column), carried)
    return tree.climb(climb, carried, x, moving).with_diagonal(diagonal)
