"""Momentum about the centre of mass as a map of the rates, and the wrench that its change asks of
the surroundings.
"""

from __future__ import annotations

from ramify.core.spatial import NO_INERTIA, NO_WRENCH, ZERO, Vec3, Wrench
from ramify.dynamics.energy import center, whole_load
from ramify.dynamics.inertia_matrix import inward
from ramify.dynamics.kinematics import poses
from ramify.dynamics.motion import LinkMotion, displacements, motions
from ramify.dynamics.tree import Column, Tree
from ramify.model.link import Link, Pose


def wrench_about(point: Vec3, at: Pose, w: Wrench) -> Wrench:
    """A wrench (or momentum) of a link's frame, taken about a point of the world, in its axes."""
    f = at.R @ w.f
    return Wrench(at.R @ w.n + (at.r - point).cross(f), f)


def centroidal_momentum_matrix(tree: Tree, q: Column) -> Column:
    """The columns of A (6, nv), each a Wrench [angular; linear]: A v is the momentum about the
    centre of mass, world axes.

    A unit rate of a joint moves its composite body as one: its column is psi~ = M~ p (eq. 5.19),
    moved to the centre of mass.
    """
    x = displacements(tree, q)
    pose = poses(tree, x)
    point = center(whole_load(tree, pose))
    psi = tree.inward(inward, NO_INERTIA, x)
    return tree.each(lambda link, at, w: wrench_about(point, at, w), pose, psi)


def required_wrench(tree: Tree, q: Column, v: Column, a: Column) -> Wrench:
    """[n; f] about the world's origin, world axes: the rate of the robot's momentum less its weight
    (eq. 5.5, summed).

    It is what the surroundings must exert on the robot, wherever they touch it, for it to move so.
    """
    x = displacements(tree, q)

    def share(link: Link, at: Pose, motion: LinkMotion) -> Wrench:
        return wrench_about(ZERO, at, link.M.wrench(motion.t, motion.dt))

    whole: Wrench = tree.total(share, NO_WRENCH, poses(tree, x), motions(tree, x, v, a))
    return whole
