"""Points of the links that touch the ground: how they move, and what the forces on them do to the
links (section 5.1.4, D.2).

A point may be the centre of a ball: what touches is then the lowest point of the ball, seen along
the ground's normal at its centre. A ground is a function of one point: ``ground(place,
velocity)``, both in the world, gives a record with its ``force``. Places and velocities come from
the recursions that forward dynamics needs anyway, so a traced algorithm computes them once; no
Jacobian is formed. ``points`` is a column: for every link a tuple of points and balls in its frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ramify.core.spatial import NO_WRENCH, Twist, Vec3, Wrench
from ramify.dynamics.forward import accelerations_at
from ramify.dynamics.kinematics import poses, twists
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import Column, Tree
from ramify.dynamics.wrenches import to_world
from ramify.model.link import Link, Pose

GroundText = Callable[[Vec3, Vec3], Any]
NormalText = Callable[[Vec3], Vec3]
"""The unit normal of the ground at a place of the world."""


class RoundPoint(NamedTuple):
    """A ball of a link: its centre in the link's frame, and its radius, m."""

    centre: Vec3
    radius: float


def lowest_points(tree: Tree, at: Column, points: Column, normal: NormalText) -> Column:
    """The points of every link that touch, in its frame: of a ball the lowest one."""
    if not any(isinstance(point, RoundPoint) for items in points for point in items):
        return points
    return tree.each(
        lambda link, pose, items: tuple(_lowest(pose, point, normal) for point in items), at, points
    )


def _lowest(at: Pose, point: Vec3 | RoundPoint, normal: NormalText) -> Vec3:
    if not isinstance(point, RoundPoint):
        return point
    n = normal(at.point(point.centre))
    return point.centre - at.R.transposed_times(n) * point.radius


def at_points(link: Link, at: Pose, t: Twist, points: Sequence[Vec3]) -> list[tuple[Vec3, Vec3]]:
    """Place and velocity in the world of points s of a link: r + R s and R (v + w x s)."""
    return [(at.point(s), at.R @ (t.v + t.w.cross(s))) for s in points]


def gathered(link: Link, at: Pose, points: Sequence[Vec3], forces: Sequence[Vec3]) -> Wrench:
    """w^F of eq. (5.15): the forces on a link's points, in the axes of the world, felt at its
    origin in its frame.
    """
    total = NO_WRENCH
    for s, force in zip(points, forces, strict=True):
        f = at.R.transposed_times(force)
        total = total + Wrench(s.cross(f), f)
    return total


def touches(
    tree: Tree, x: Column, v: Column, points: Column, ground: GroundText, normal: NormalText
) -> tuple[Column, Column, Column]:
    """(moving, felt, applied): places and velocities of the points, the ground's answers, and the
    links' wrenches w^F.
    """
    at = poses(tree, x)
    points = lowest_points(tree, at, points, normal)
    moving = tree.each(at_points, at, twists(tree, x, v), points)
    felt = tree.each(lambda link, items: [ground(*item) for item in items], moving)
    applied = tree.each(
        lambda link, pose, own, rs: gathered(link, pose, own, [r.force for r in rs]),
        at, points, felt,
    )  # fmt: skip
    return moving, felt, applied


def contact_wrenches(
    tree: Tree, q: Column, v: Column, points: Column, ground: GroundText, normal: NormalText
) -> tuple[Column, Column, Column]:
    """(moving, felt, wrenches): the same, the wrenches as a user gives them: at the bodies'
    origins, in the axes of the world.
    """
    x = displacements(tree, q)
    moving, felt, applied = touches(tree, x, v, points, ground, normal)
    return moving, felt, tree.each(to_world, poses(tree, x), applied)


def contact_dynamics(
    tree: Tree, q: Column, v: Column, tau: Column, points: Column, ground: GroundText,
    normal: NormalText,
) -> tuple[Column, Column]:  # fmt: skip
    """(a, felt): accelerations (nv) under joint forces tau and the ground; the ground's answers, a
    list for every link.
    """
    x = displacements(tree, q)
    _, felt, applied = touches(tree, x, v, points, ground, normal)
    return accelerations_at(tree, x, v, tau, applied), felt
