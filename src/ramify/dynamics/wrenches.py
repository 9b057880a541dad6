"""Wrenches as a user gives them and gets them: [n; f] at the body's origin, in the axes of the
world, in N m and N; one per link.
"""

from __future__ import annotations

from collections.abc import Sequence

from ramify.core.scalar import Scalar
from ramify.core.spatial import NO_WRENCH, Vec3, Wrench
from ramify.dynamics.forward import accelerations_at
from ramify.dynamics.inverse import joint_wrenches
from ramify.dynamics.kinematics import poses
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import Column, Tree
from ramify.model.link import Displacement, Link, Pose


def to_link(link: Link, at: Pose, w: Wrench) -> Wrench:
    """A user's wrench at the link's own origin, in its frame."""
    return at_point(at, link.seat.r, w)


def at_point(at: Pose, s: Vec3, w: Wrench) -> Wrench:
    """A wrench in the axes of the world at a point s of a link, felt at its origin in its frame."""
    n, f = at.R.transposed_times(w.n), at.R.transposed_times(w.f)
    return Wrench(n + s.cross(f), f)


def to_world(link: Link, at: Pose, w: Wrench) -> Wrench:
    """The reverse of ``to_link``."""
    return Wrench(at.R @ (w.n - link.seat.r.cross(w.f)), at.R @ w.f)


def applied(tree: Tree, x: Column, wrenches: Column) -> Column:
    """w^F of eq. (6.6): a user's wrenches as inverse and forward dynamics take them."""
    return tree.each(to_link, poses(tree, x), wrenches)


def inverse_dynamics_wrenches(
    tree: Tree, q: Column, v: Column, a: Column, wrenches: Column
) -> Column:
    """tau (nv): generalized forces that give the accelerations a while the wrenches act."""
    x = displacements(tree, q)
    return tree.each(
        lambda link, pair: pair[0], joint_wrenches(tree, x, v, a, applied(tree, x, wrenches))
    )


def forward_dynamics_wrenches(
    tree: Tree, q: Column, v: Column, tau: Column, wrenches: Column
) -> Column:
    """a (nv): accelerations under joint forces tau while the wrenches act."""
    x = displacements(tree, q)
    return accelerations_at(tree, x, v, tau, applied(tree, x, wrenches))


def joint_forces(tree: Tree, q: Column, pushes: Column) -> Column:
    """tau (nv): the sum of J' w over wrenches in the axes of the world; pushes: for every link a
    sequence of (point in its frame, wrench there).
    """
    x = displacements(tree, q)

    def inward(
        link: Link,
        children: Wrench,
        x: Displacement,
        at: Pose,
        forces: Sequence[tuple[Vec3, Wrench]],
    ) -> tuple[Scalar, Wrench]:
        w = sum((at_point(at, s, one) for s, one in forces), start=children)
        return link.p.dot(w), link.propagation(x).transposed(w)

    return tree.inward(inward, NO_WRENCH, x, poses(tree, x), pushes)


def reactions(tree: Tree, q: Column, v: Column, a: Column, wrenches: Column) -> Column:
    """w~ (eq. 6.6) on each link from its joint: the whole wrench that it transmits, not only its
    share along the joint axis, while external wrenches act.

    For a joint of several degrees of freedom its last link tells.
    """
    x = displacements(tree, q)
    pose = poses(tree, x)
    pairs = joint_wrenches(tree, x, v, a, tree.each(to_link, pose, wrenches))
    return tree.each(lambda link, at, pair: to_world(link, at, pair[1]), pose, pairs)
