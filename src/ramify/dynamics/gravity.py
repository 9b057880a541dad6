"""Gravity: the joint forces that hold it, and its potential.

Gravity needs less than the inverse dynamics at rest: its acceleration g seen from each link, going
outward, and the mass and first moment of what each link carries, coming inward. In an unrolled text
the masses are numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from ramify.core.scalar import Scalar
from ramify.core.spatial import ZERO, Vec3
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import Column, Tree
from ramify.model.link import Displacement, Link


@dataclass(slots=True)
class Load:
    """Mass m and first moment h = m d, about the link's origin, of a link and all it carries."""

    m: Scalar
    h: Vec3


NO_LOAD = Load(0.0, ZERO)


@dataclass(slots=True)
class Depth:
    """Gravity g in the link's frame, and how deep the link's origin lies below the world's: g . r,
    in m^2/s^2.
    """

    g: Vec3
    u: Scalar


def outward(link: Link, parent: Vec3, x: Displacement) -> Vec3:
    """g of the parent's frame, in the link's."""
    return link.propagation(x).outward(parent)


def inward(link: Link, children: Load, x: Displacement) -> tuple[Load, Load]:
    """The first two parts of M~ (eq. 5.19)."""
    own = Load(link.M.m + children.m, link.M.h + children.h)
    A = link.propagation(x)
    return own, Load(own.m, A.inward(own.h) + A.r * own.m)


def gravity_forces(tree: Tree, q: Column) -> Column:
    """(nv): tau = -p' [h~ x g; m~ g], the joint forces that hold the robot at rest, in N m or N."""
    x = displacements(tree, q)
    g = tree.outward(outward, tree.gravity, x)
    loads = tree.inward(inward, NO_LOAD, x)

    def force(link: Link, g: Vec3, load: Load) -> Scalar:
        h, p = load.h, link.p
        return p.rho * (h.y * g.x - h.x * g.y) - p.eta * (load.m * g.z)

    return tree.each(force, g, loads)


def sink(link: Link, parent: Depth, x: Displacement) -> Depth:
    """One row of the forward recursion of the poses: the one along g."""
    A = link.propagation(x)
    return Depth(A.outward(parent.g), parent.u + parent.g.dot(A.r))


def depths(tree: Tree, x: Column) -> Column:
    """Depth of every link, measured from the world's origin."""
    g, root = tree.gravity, tree.root
    return tree.outward(sink, Depth(g, g.dot(root.R.transposed_times(root.r))), x)


def potential(link: Link, at: Depth) -> Scalar:
    """-m g . r of a link's mass centre, in J."""
    return -(link.M.m * at.u + link.M.h.dot(at.g))
