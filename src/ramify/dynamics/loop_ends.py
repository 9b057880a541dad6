"""An end of a loop in the world: where it is, how a unit rate of a link moves it, how it moves, and
the wrench that it hands to its link.
"""

from __future__ import annotations

from ramify.core.spatial import ZERO, Twist, Vec3, Wrench, acceleration_field
from ramify.dynamics.closure import End
from ramify.dynamics.motion import LinkMotion
from ramify.dynamics.tree import Column, Tree
from ramify.model.link import Pose


def end_pose(end: End, at: Column) -> Pose:
    """The frame of an end in the world; ``at``: the poses of the links."""
    pose: Pose = end.frame if end.link < 0 else at[end.link] @ end.frame
    return pose


def unit_twist(tree: Tree, at: Pose, k: int, place: Vec3) -> Twist:
    """The twist, at a place and in the axes of the world, that a unit rate of link k gives what it
    carries.
    """
    e, p = at.R.columns[2], tree.links[k].p
    w = e * p.rho
    return Twist(w, e * p.eta + w.cross(place - at.r))


def wrench_on(at: Pose, place: Vec3, n: Vec3, f: Vec3) -> Wrench:
    """A moment n and a force f at a place, in world axes, as a wrench on a link, at its origin and
    in its frame.
    """
    moment = n + (place - at.r).cross(f)
    return Wrench(at.R.transposed_times(moment), at.R.transposed_times(f))


def end_motion(tree: Tree, end: End, at: Column, links: Column) -> tuple[Vec3, Vec3, Vec3, Vec3]:
    """Angular velocity, velocity of the end's origin, and their rates, in world axes; ``links``:
    the motions of the links.
    """
    if end.link < 0:
        return ZERO, ZERO, ZERO, tree.root.R @ -tree.gravity
    m: LinkMotion = links[end.link]
    R, r = at[end.link].R, end.frame.r
    velocity, rate = m.t.v + m.t.w.cross(r), m.dt.v + acceleration_field(m.t.w, m.dt.w) @ r
    return R @ m.t.w, R @ velocity, R @ m.dt.w, R @ rate
