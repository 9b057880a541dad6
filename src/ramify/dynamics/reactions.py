"""Joint reactions: the whole wrench that a joint transmits, not only its share along the joint
axis.
"""

from __future__ import annotations

from ramify.dynamics.inverse import joint_wrenches
from ramify.dynamics.kinematics import poses
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import Column, Tree
from ramify.dynamics.wrenches import to_link, to_world


def reactions(tree: Tree, q: Column, v: Column, a: Column, wrenches: Column) -> Column:
    """w~ (eq. 6.6) on each link from its joint: [n; f] at the body's origin, world-aligned, in N m
    and N.

    ``wrenches`` are external ones in the same terms. For a joint of several degrees of freedom its
    last link tells.
    """
    x = displacements(tree, q)
    pose = poses(tree, x)
    pairs = joint_wrenches(tree, x, v, a, tree.each(to_link, pose, wrenches))
    return tree.each(lambda link, at, pair: to_world(link, at, pair[1]), pose, pairs)
