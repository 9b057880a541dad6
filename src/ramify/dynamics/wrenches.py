"""External wrenches as a user gives them: [n; f] at the body's origin, in the axes of the world, in
N m and N; one per link.
"""

from __future__ import annotations

from ramify.core.spatial import Wrench
from ramify.dynamics.forward import accelerations
from ramify.dynamics.inverse import joint_wrenches
from ramify.dynamics.kinematics import poses
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import Column, Tree
from ramify.model.link import Link, Pose


def to_link(link: Link, at: Pose, w: Wrench) -> Wrench:
    """A user's wrench at the link's own origin, in its frame."""
    n, f = at.R.transposed_times(w.n), at.R.transposed_times(w.f)
    return Wrench(n + link.seat.r.cross(f), f)


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
    return accelerations(tree, x, v, tau, applied(tree, x, wrenches))
