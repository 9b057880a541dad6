"""The Jacobian of a point of a body, and its rate times v.

Two columns of ones and zeros say which body is meant: ``target`` is one for the body's (last) link,
``support`` for every link that moves it. The point is given in the body's frame, in m; answers are
angular first, in the axes of the world.
"""

from __future__ import annotations

from ramify.core.scalar import Scalar
from ramify.core.spatial import NO_TWIST, ZERO, Twist, Vec3, acceleration_field
from ramify.dynamics.kinematics import poses
from ramify.dynamics.motion import LinkMotion, at_rest, displacements
from ramify.dynamics.motion import outward as motion_step
from ramify.dynamics.tree import Column, Tree
from ramify.model.link import Link, Pose


def jacobian(tree: Tree, q: Column, target: Column, support: Column, point: Vec3) -> Column:
    """The columns of J (6, nv), each a Twist: J v is the twist [w; v] of the body at the point (eq.
    4.3, seen from the world).
    """
    pose = poses(tree, displacements(tree, q))
    place = tree.total(
        lambda link, at, here: at.point(link.seat.point(point)) * here, ZERO, pose, target
    )

    def column(link: Link, at: Pose, moves: Scalar) -> Twist:
        e, p = at.R.columns[2], link.p
        w = e * (p.rho * moves)
        return Twist(w, e * (p.eta * moves) + w.cross(place - at.r))

    return tree.each(column, pose, support)


def jacobian_rate(tree: Tree, q: Column, v: Column, target: Column, point: Vec3) -> Twist:
    """dJ/dt v (6): the acceleration [dw; dv] of the body at the point while all joint accelerations
    are zero.
    """
    return point_motion(tree, q, v, tree.each(lambda link: 0.0), target, point)[1]


def point_motion(
    tree: Tree, q: Column, v: Column, a: Column, target: Column, point: Vec3
) -> tuple[Twist, Twist]:
    """(J v, J a + dJ/dt v): the twist [w; v] of the body at the point, and its rate [dw; dv]."""
    x = displacements(tree, q)
    moving = tree.outward(motion_step, at_rest(ZERO), x, v, a)

    def world_twists(link: Link, at: Pose, motion: LinkMotion, here: Scalar) -> tuple[Twist, Twist]:
        w, dw, r = motion.t.w, motion.dt.w, link.seat.point(point)
        u = motion.t.v + w.cross(r)
        du = motion.dt.v + acceleration_field(w, dw) @ r
        return (
            Twist(at.R @ w * here, at.R @ u * here),
            Twist(at.R @ dw * here, at.R @ du * here),
        )

    zero = (NO_TWIST, NO_TWIST)
    found: tuple[Twist, Twist] = tree.total(world_twists, zero, poses(tree, x), moving, target)
    return found
