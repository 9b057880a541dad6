"""Hybrid dynamics: some joints' accelerations are prescribed, the forces on the others are known;
found is what is not given.

Table 7.1 is the case of a free base under prescribed joints; table 6.1 (nothing free) and table 6.2
(nothing prescribed) are the ends. A column ``prescribed`` of ones and zeros, s, says which is
which, and both kinds of joints share each equation:

    x   the acceleration a where s = 1, the joint force tau where s = 0
    y   the joint force tau where s = 1, the acceleration a where s = 0

A free joint is eliminated as in forward dynamics. A prescribed one moves as given, so that it hands
down all it carries.
"""

from __future__ import annotations

from dataclasses import dataclass

from ramify.core.scalar import Scalar
from ramify.core.spatial import NO_TWIST, NO_WRENCH, Twist, Wrench
from ramify.dynamics.forward import NOTHING, Articulated, bias_wrenches, through_joint
from ramify.dynamics.motion import displacements, motions
from ramify.dynamics.tree import Column, Tree
from ramify.dynamics.wrenches import applied
from ramify.model.link import Displacement, Link


@dataclass(slots=True)
class HybridRow:
    """One row of the solution y = phi - psi' mu: (psi, phi~) of eqs. (5.35), (6.11) if free,
    (-psi^, p' w) if prescribed.
    """

    psi: Wrench
    phi: Scalar


def inward(
    link: Link, children: Articulated, x: Displacement, bias: Wrench, drive: Scalar, s: Scalar
) -> tuple[HybridRow, Articulated]:
    """Backward recursion, eqs. (5.34)-(5.37), (6.11): with psi = 0 a prescribed joint passes M^ and
    w on whole (table 7.1).
    """
    M = link.M.articulated() + children.M
    w = bias + children.w
    free = 1.0 - s
    psi_hat = M @ link.p.column
    inverse = free * (1.0 / ((link.p.dot(psi_hat) + link.rotor) * free + s))  # 1 / m^, or 0
    psi = psi_hat * inverse
    phi_hat = drive * (free - s * link.rotor) - link.p.dot(w)
    A = link.propagation(x)
    reduced = through_joint(M, link.p, psi_hat, psi, psi * link.rotor + psi_hat * s)
    handed = Articulated(A.congruence(reduced), A.transposed(w + psi * phi_hat))
    return HybridRow(psi_hat * (inverse - s), phi_hat * (inverse - s)), handed


def outward(
    link: Link, parent: tuple[Scalar, Twist], x: Displacement, row: HybridRow, s: Scalar
) -> tuple[Scalar, Twist]:
    """Forward recursion, eq. (6.13): y of the joint, mu of the link. A prescribed acceleration is
    in the bias and not in mu.
    """
    mu = link.propagation(x) @ parent[1]
    y = row.phi - mu.dot(row.psi)
    return y, mu + link.p * (y * (1.0 - s))


def hybrid_dynamics(
    tree: Tree, q: Column, v: Column, knowns: Column, prescribed: Column,
    wrenches: Column | None = None,
) -> Column:  # fmt: skip
    """y (nv): accelerations of the free joints (m/s^2, rad/s^2), forces of the prescribed ones (N,
    N m).

    ``wrenches``: external ones, [n; f] at the bodies' origins, world-aligned.
    """
    x = displacements(tree, q)
    moving = motions(tree, x, v, tree.each(lambda link, y, s: y * s, knowns, prescribed))
    outside = tree.each(lambda link: NO_WRENCH) if wrenches is None else applied(tree, x, wrenches)
    return solve_hybrid(tree, x, bias_wrenches(tree, moving, outside), knowns, prescribed)


def solve_hybrid(tree: Tree, x: Column, bias: Column, knowns: Column, prescribed: Column) -> Column:
    """y while the wrenches ``bias``, prescribed accelerations included, hold the links."""
    rows = tree.inward(inward, NOTHING, x, bias, knowns, prescribed)
    unknowns = tree.outward(outward, (0.0, NO_TWIST), x, rows, prescribed)
    return tree.each(lambda link, pair: pair[0], unknowns)
