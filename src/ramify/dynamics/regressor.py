"""The regressor: joint forces are linear in the inertial parameters of the links, tau = Y pi."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ramify.core.scalar import Scalar
from ramify.core.spatial import RigidInertia, Sym3, Vec3, Wrench
from ramify.dynamics.motion import displacements, motions
from ramify.dynamics.tree import Column, Matrix, Tree

PARAMETERS: Final = ("m", "hx", "hy", "hz", "Ixx", "Iyy", "Izz", "Ixy", "Iyz", "Ixz")
"""Mass in kg, first moment h = m d in kg m, inertia tensor in kg m^2, both about the frame's
origin.
"""


def rigid(parameters: Sequence[Scalar]) -> RigidInertia:
    """The inertia of ten parameters, in the order of ``PARAMETERS``."""
    m, hx, hy, hz, xx, yy, zz, xy, yz, xz = parameters
    return RigidInertia(m, Vec3(hx, hy, hz), Sym3(xx, yy, zz, xy, xz, yz))


def climb(w: Wrench, child: Any, above: Any) -> tuple[tuple[Scalar, Scalar], Wrench]:
    """A wrench on a link is felt by every joint below it: p' A' w (eq. 5.5)."""
    link, x = child
    w = link.propagation(x).transposed(w)
    return (0.0, above[0].p.dot(w)), w


def regressor(tree: Tree, q: Column, v: Column, a: Column) -> tuple[Matrix, ...]:
    """Ten matrices (nv, links), one a parameter: tau is the sum of each times that parameter of all
    links, in their own frames.
    """
    x = displacements(tree, q)
    moving = motions(tree, x, v, a)

    def of(unit: RigidInertia) -> Matrix:
        w = tree.each(lambda link, motion: unit.wrench(motion.t, motion.dt), moving)
        return tree.climb(climb, w, x).with_diagonal(tree.each(lambda link, wk: link.p.dot(wk), w))

    return tuple(
        of(rigid([float(i == k) for i in range(len(PARAMETERS))])) for k in range(len(PARAMETERS))
    )
