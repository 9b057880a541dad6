"""The factors of the generalized inertia matrix, I = U D U' (eqs. 5.22-5.37), and their inverses
(eqs. 5.38-5.46).

U is upper unit triangular: row j, column k is not zero only where link j carries link k. Its
columns follow a wrench on its way to the base: through rigid joints for U, through joints that give
way for the inverse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ramify.core.scalar import Scalar
from ramify.core.spatial import NO_ARTICULATED, ArticulatedInertia, Wrench
from ramify.dynamics.forward import pivot, through_joint
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import Column, Matrix, Tree
from ramify.model.link import Displacement, Link


@dataclass(slots=True)
class Elimination:
    """One column eliminated: psi = M^ p / m^ (eq. 5.35), the pivot m^ = p' M^ p + J, and its
    inverse.
    """

    psi: Wrench
    m: Scalar
    inverse: Scalar


def inward(
    link: Link, children: ArticulatedInertia, x: Displacement
) -> tuple[Elimination, ArticulatedInertia]:
    """Backward recursion, eqs. (5.35)-(5.37): M^ = M + sum of A' (M^ - psi^ psi') A over the
    children.
    """
    M = link.M.articulated() + children
    psi_hat, psi, m, inverse = pivot(M, link)
    felt = through_joint(M, link.p, psi_hat, psi, psi * link.rotor)
    return Elimination(psi, m, inverse), link.propagation(x).congruence(felt)


def climb(w: Wrench, child: Any, above: Any) -> tuple[tuple[Scalar, Scalar], Wrench]:
    """Eq. (5.34): the entry p' A' psi of U, all joints between being rigid."""
    link, x = child
    w = link.propagation(x).transposed(w)
    return (0.0, above[0].p.dot(w)), w


def climb_articulated(w: Wrench, child: Any, above: Any) -> tuple[tuple[Scalar, Scalar], Wrench]:
    """Eqs. (5.44), (5.45): the entry -p' A^' psi of the inverse of U; each joint passed takes its
    share psi p' w away.
    """
    link, x, _ = child
    carrier, _, psi = above
    w = link.propagation(x).transposed(w)
    share = carrier.p.dot(w)
    return (0.0, -share), w - psi * share


def eliminations(tree: Tree, x: Column) -> Column:
    """Block reverse Gaussian elimination (section 5.3), a link at a time."""
    return tree.inward(inward, NO_ARTICULATED, x)


def udu(tree: Tree, q: Column) -> tuple[Matrix, Column]:
    """U (nv, nv) and D (nv), the diagonal, with I = U diag(D) U'."""
    x = displacements(tree, q)
    rows = eliminations(tree, x)
    psi, D = tree.each(lambda link, row: row.psi, rows), tree.each(lambda link, row: row.m, rows)
    return tree.climb(climb, psi, x).with_diagonal(tree.each(lambda link: 1.0)), D


def udu_inverse(tree: Tree, q: Column) -> tuple[Matrix, Column]:
    """The inverses of U (nv, nv) and of D (nv)."""
    x = displacements(tree, q)
    rows = eliminations(tree, x)
    psi = tree.each(lambda link, row: row.psi, rows)
    D = tree.each(lambda link, row: row.inverse, rows)
    ones = tree.each(lambda link: 1.0)
    return tree.climb(climb_articulated, psi, x, psi).with_diagonal(ones), D


def mass_matrix_inverse(tree: Tree, q: Column) -> Matrix:
    """The inverse of I (nv, nv), U^-T D^-1 U^-1 (eq. 5.38): links without a common carrier have no
    entry.
    """
    return congruence(*udu_inverse(tree, q))


def congruence(U: Matrix, d: Column) -> Matrix:
    """U' diag(d) U of an upper triangular U: over each pair of columns, the sum over the rows that
    both have.
    """
    rows = [[k for k in range(j + 1) if (k, j) in U.entries] for j in range(U.n)]
    entries: dict[tuple[int, int], Scalar] = {}
    for j in range(U.n):
        scaled = {k: d[k] * U.entries[k, j] for k in rows[j]}
        for i in range(j + 1):
            terms = [U.entries[k, i] * scaled[k] for k in rows[i] if k in scaled]
            if terms:
                entries[i, j] = entries[j, i] = sum(terms[1:], terms[0])
    return Matrix(U.n, entries)
