"""The generalized inertia matrix by composite bodies (eqs. 5.18-5.21)."""

from __future__ import annotations

from typing import Any

from ramify.core.scalar import Scalar
from ramify.core.spatial import NO_INERTIA, RigidInertia, Wrench
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import Column, Matrix, Tree
from ramify.model.link import Displacement, Link


def inward(link: Link, children: RigidInertia, x: Displacement) -> tuple[Wrench, RigidInertia]:
    """Eq. (5.19): M~ = M + sum of A' M~ A over the children; kept is psi~ = M~ p."""
    M = link.M + children
    return M @ link.p.column, link.propagation(x).congruence(M)


def climb(w: Wrench, child: Any, above: Any) -> tuple[tuple[Scalar, Scalar], Wrench]:
    """Eq. (5.21): the entry p' A' psi~ of an ancestor; the wrench is handed down joint by joint."""
    link, x = child
    w = link.propagation(x).transposed(w)
    entry = above[0].p.dot(w)
    return (entry, entry), w


def mass_matrix(tree: Tree, q: Column) -> Matrix:
    """I (nv, nv), symmetric; zero between different branches. Rotors add to its diagonal."""
    x = displacements(tree, q)
    psi = tree.inward(inward, NO_INERTIA, x)
    diagonal = tree.each(lambda link, w: link.p.dot(w) + link.rotor, psi)
    return tree.climb(climb, psi, x).with_diagonal(diagonal)
