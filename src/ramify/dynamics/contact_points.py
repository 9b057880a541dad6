"""Points of the links that touch the ground: how they move, and what the forces on them do to the
links (section 5.1.4, D.2).

A ground is a function of one point: ``ground(place, velocity)``, both in the world, gives a record
with its ``force``. Places and velocities come from the recursions that forward dynamics needs
anyway, so a traced algorithm computes them once; no Jacobian is formed. ``points`` is a column: for
every link a tuple of points in its frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ramify.core.scalar import Scalar
from ramify.core.spatial import ArticulatedInertia, Mat3, Sym3, Twist, Vec3, Wrench
from ramify.dynamics.forward import Articulated, Pivot, accelerations, freed, outward
from ramify.dynamics.inverse import no_wrench
from ramify.dynamics.kinematics import poses, twists
from ramify.dynamics.motion import displacements, motions
from ramify.dynamics.tree import Column, Tree
from ramify.dynamics.wrenches import to_world
from ramify.model.link import Displacement, Link, Pose

GroundText = Callable[[Vec3, Vec3], Any]


def at_points(link: Link, at: Pose, t: Twist, points: Sequence[Vec3]) -> list[tuple[Vec3, Vec3]]:
    """Place and velocity in the world of points s of a link: r + R s and R (v + w x s)."""
    return [(at.point(s), at.R @ (t.v + t.w.cross(s))) for s in points]


def gathered(link: Link, at: Pose, points: Sequence[Vec3], forces: Sequence[Vec3]) -> Wrench:
    """w^F of eq. (5.15): the forces on a link's points, in the axes of the world, felt at its
    origin in its frame.
    """
    total = no_wrench()
    for s, force in zip(points, forces, strict=True):
        f = at.R.transposed_times(force)
        total = total + Wrench(s.cross(f), f)
    return total


def touches(
    tree: Tree, x: Column, v: Column, points: Column, ground: GroundText
) -> tuple[Column, Column, Column]:
    """(moving, felt, applied): places and velocities of the points, the ground's answers, and the
    links' wrenches w^F.
    """
    at = poses(tree, x)
    moving = tree.each(at_points, at, twists(tree, x, v), points)
    felt = tree.each(lambda link, items: [ground(*item) for item in items], moving)
    applied = tree.each(
        lambda link, pose, own, rs: gathered(link, pose, own, [r.force for r in rs]),
        at,
        points,
        felt,
    )
    return moving, felt, applied


def contact_wrenches(
    tree: Tree, q: Column, v: Column, points: Column, ground: GroundText
) -> tuple[Column, Column, Column]:
    """(moving, felt, wrenches): the same, the wrenches as a user gives them: at the bodies'
    origins, in the axes of the world.
    """
    x = displacements(tree, q)
    moving, felt, applied = touches(tree, x, v, points, ground)
    return moving, felt, tree.each(to_world, poses(tree, x), applied)


# ---- taken implicitly ----


class Resistance(NamedTuple):
    """What a ground opposes to a small motion of a point: along its ``normal`` (in the world)
    ``stiffness`` (N/m) and ``damping``, across it ``grip`` (N s/m).
    """

    normal: Vec3
    stiffness: Scalar
    damping: Scalar
    grip: Scalar


def yielding(
    link: Link, children: Articulated, x: Displacement, bias: Wrench, tau: Scalar,
    more: tuple[ArticulatedInertia, Scalar],
) -> tuple[Pivot, Articulated]:  # fmt: skip
    """The backward recursion of forward dynamics with inertia that the step adds to the link and to
    its joint.
    """
    own, rotor = more
    M = link.M.articulated() + own + children.M
    w = bias + children.w
    psi_hat = M @ link.p.column
    rotor = link.rotor + rotor
    inverse = 1.0 / (link.p.dot(psi_hat) + rotor)
    psi, phi_hat = psi_hat * inverse, tau - link.p.dot(w)
    A = link.propagation(x)
    felt = freed(M, link.p, psi_hat, psi, psi * rotor)
    handed = Articulated(A.congruence(felt), A.transposed(w + psi * phi_hat))
    return Pivot(psi, phi_hat * inverse), handed


def grounded(
    link: Link, at: Pose, items: Sequence[tuple[Vec3, Vec3]], points: Sequence[Vec3],
    found: Sequence[Resistance], h: float,
) -> tuple[ArticulatedInertia, Wrench]:  # fmt: skip
    """Over a step h a point with stiffness K and damping D acts like inertia, W = h^2 K + h D at
    its place s, and the force -h K u of its velocity u.
    """
    total, wrench = ArticulatedInertia.zero(), no_wrench()
    for (_, u), s, r in zip(items, points, found, strict=True):
        n = at.R.transposed_times(r.normal)
        across = h * r.grip
        along = h * (h * r.stiffness + r.damping)
        k = along - across / n.dot(n)
        C = Sym3(
            across + k * n.x * n.x, across + k * n.y * n.y, across + k * n.z * n.z,
            k * n.x * n.y, k * n.x * n.z, k * n.y * n.z,
        )  # fmt: skip
        columns = [
            s.cross(Vec3(*row))
            for row in ((C.xx, C.xy, C.xz), (C.xy, C.yy, C.yz), (C.xz, C.yz, C.zz))
        ]
        B = Mat3.from_columns(*columns)
        rows = [s.cross(Vec3(*row)) for row in
                ((B.xx, B.xy, B.xz), (B.yx, B.yy, B.yz), (B.zx, B.zy, B.zz))]  # fmt: skip
        A = Sym3(rows[0].x, rows[1].y, rows[2].z, rows[0].y, rows[0].z, rows[1].z)
        total = total + ArticulatedInertia(A, B, C)
        pull = n * (-h * r.stiffness * r.normal.dot(u))
        wrench = wrench + Wrench(s.cross(pull), pull)
    return total, wrench


def implicit_dynamics(
    tree: Tree, q: Column, v: Column, tau: Column, points: Column, ground: GroundText,
    resistance: Callable[[Vec3, Vec3], Resistance], rotors: Column, h: float,
) -> tuple[Column, Column]:  # fmt: skip
    """(a, felt): the accelerations of a linearly implicit step of h seconds. The ground's stiffness
    and damping at the points act at the end of the step, to first order; O(n), for they enter the
    articulated inertias. ``rotors``: inertia that the step adds to the joints likewise.
    """
    x = displacements(tree, q)
    moving, felt, applied = touches(tree, x, v, points, ground)
    at = poses(tree, x)
    found = tree.each(lambda link, items: [resistance(*item) for item in items], moving)
    more = tree.each(
        lambda link, pose, items, own, rs: grounded(link, pose, items, own, rs, h),
        at,
        moving,
        points,
        found,
    )
    motion = motions(tree, x, v, tree.each(lambda link: 0.0))
    bias = tree.each(
        lambda link, m, w, extra: link.M.wrench(m.t, m.dt) - w - extra[1], motion, applied, more
    )
    inertia = tree.each(lambda link, extra, rotor: (extra[0], rotor), more, rotors)
    nothing = Articulated(ArticulatedInertia.zero(), no_wrench())
    rows = tree.inward(yielding, nothing, x, bias, tau, inertia)
    o = Vec3(0.0, 0.0, 0.0)
    pairs = tree.outward(outward, (0.0, Twist(o, o)), x, rows)
    return tree.each(lambda link, pair: pair[0], pairs), felt


def contact_dynamics(
    tree: Tree, q: Column, v: Column, tau: Column, points: Column, ground: GroundText
) -> tuple[Column, Column]:
    """(a, felt): accelerations (nv) under joint forces tau and the ground; the ground's answers, a
    list for every link.
    """
    x = displacements(tree, q)
    _, felt, applied = touches(tree, x, v, points, ground)
    return accelerations(tree, x, v, tau, applied), felt
