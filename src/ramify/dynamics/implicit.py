"""Accelerations of a step that takes stiff forces at its end: stiffness and damping act over the
step like inertia.

A force with stiffness K and damping D that acts at the end of a step of h seconds is, to first
order, f(x + h u, u) - W a with W = h^2 K + h D. At a joint W is rotor inertia, at a point of a link
it is inertia of that link, so the recursions of forward dynamics solve for the step in O(n).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ramify.core.scalar import Scalar, select
from ramify.core.spatial import (
    NO_ARTICULATED,
    NO_WRENCH,
    ArticulatedInertia,
    Mat3,
    RigidInertia,
    Sym3,
    Vec3,
    Wrench,
    acceleration_field,
)
from ramify.dynamics import hybrid
from ramify.dynamics.closed_forward import closed_forward_dynamics
from ramify.dynamics.contact_points import NormalText, at_points, gathered, lowest_points
from ramify.dynamics.forward import bias_wrenches
from ramify.dynamics.independent_rows import LoopTerms
from ramify.dynamics.kinematics import poses, twists
from ramify.dynamics.motion import LinkMotion, displacements, motions
from ramify.dynamics.tree import Column, Tree
from ramify.model.link import Link, Pose


class Resistance(NamedTuple):
    """What a ground opposes to a small motion of a point: along its ``normal`` (in the world)
    ``stiffness`` (N/m) and ``damping``, across it ``grip`` (N s/m).
    """

    normal: Vec3
    stiffness: Scalar
    damping: Scalar
    grip: Scalar
    force: Scalar
    """N along the normal."""


class PointContact(NamedTuple):
    """The ``points`` of each link that may touch the ground, and the ground: its force and its
    resistance for a place, a velocity and the normal load (N) of the friction, None for that of
    the law there; and its unit normal at a place.
    """

    points: Column
    force: Callable[..., Any]
    resistance: Callable[..., Resistance]
    normal: NormalText


@dataclass(slots=True)
class Laden(RigidInertia):
    """A rigid inertia and what a step adds to it."""

    more: ArticulatedInertia

    def articulated(self) -> ArticulatedInertia:
        return RigidInertia.articulated(self) + self.more


def laden(link: Link, more: ArticulatedInertia | None, rotor: Scalar) -> Link:
    """A link with what a step adds to it and to its joint."""
    M = link.M if more is None else Laden(link.M.m, link.M.h, link.M.I, more)
    return replace(link, M=M, rotor=link.rotor + rotor)


def point_inertia(s: Vec3, n: Vec3, along: Scalar, across: Scalar) -> ArticulatedInertia:
    """J' W J of a point s with W = across 1 + along n n', J = [-s x, 1], in the link's axes: with
    m = s x n the sum of along [m; n] [m; n]' and of a point mass.
    """
    m = s.cross(n)
    km, kn = m * along, n * along
    x, y, z = s.x, s.y, s.z
    return ArticulatedInertia(
        Sym3(
            km.x * m.x + across * (y * y + z * z), km.y * m.y + across * (x * x + z * z),
            km.z * m.z + across * (x * x + y * y), km.x * m.y - across * (x * y),
            km.x * m.z - across * (x * z), km.y * m.z - across * (y * z),
        ),
        Mat3(
            km.x * n.x, km.x * n.y - across * z, km.x * n.z + across * y,
            km.y * n.x + across * z, km.y * n.y, km.y * n.z - across * x,
            km.z * n.x - across * y, km.z * n.y + across * x, km.z * n.z,
        ),
        Sym3(
            kn.x * n.x + across, kn.y * n.y + across, kn.z * n.z + across,
            kn.x * n.y, kn.x * n.z, kn.y * n.z,
        ),
    )  # fmt: skip


def resisted(
    link: Link, at: Pose, motion: LinkMotion, points: Sequence[Vec3],
    resistances: Sequence[Resistance], h: Scalar, gravity: Vec3,
) -> tuple[ArticulatedInertia, Wrench] | None:  # fmt: skip
    """What the points of a link add to its inertia, and the wrench of W on the accelerations they
    have without those of the joints.
    """
    if not points:
        return None
    total, wrench = NO_ARTICULATED, NO_WRENCH
    field = acceleration_field(motion.t.w, motion.dt.w)
    origin = motion.dt.v + at.R.transposed_times(gravity)
    for s, r in zip(points, resistances, strict=True):
        n, across = at.R.transposed_times(r.normal), h * r.grip
        along = h * (h * r.stiffness + r.damping) - across / r.normal.dot(r.normal)
        total = total + point_inertia(s, n, along, across)
        a = origin + field @ s
        f = n * (along * n.dot(a)) + a * across
        wrench = wrench + Wrench(s.cross(f), f)
    return total, wrench


def normal_loads(
    at: Pose, motion: LinkMotion, points: Sequence[Vec3], resistances: Sequence[Resistance],
    h: Scalar, gravity: Vec3,
) -> list[Scalar]:  # fmt: skip
    """The normal forces (N) that a step of h seconds ends with, under these accelerations."""
    field = acceleration_field(motion.t.w, motion.dt.w)
    origin = motion.dt.v + at.R.transposed_times(gravity)
    out: list[Scalar] = []
    for s, r in zip(points, resistances, strict=True):
        n = at.R.transposed_times(r.normal)
        load = r.force - h * (h * r.stiffness + r.damping) * n.dot(origin + field @ s)
        out.append(select(load > 0.0, load, 0.0))
    return out


def implicit_dynamics(
    tree: Tree, q: Column, v: Column, tau: Column, rotors: Column, h: Scalar, contact: PointContact,
    driven: Mapping[int, Scalar], loops: LoopTerms | None = None,
) -> tuple[list[Scalar], dict[int, Scalar], Callable[[], list[Any]]]:  # fmt: skip
    """(a, forces, contact_forces): accelerations (nv) of a linearly implicit step of h seconds, the
    forces of the driven joints, and the ground's answers at the end of the step, as a function.

    tau: joint forces; rotors: inertia W that the step adds to the joints; driven: joints whose
    accelerations are prescribed. The ground acts on the points of contact where they would be at
    the end of the step.

    A point that lands is stopped within a small part of the step, and the force of its damper at
    the start of the step is many times the mean. So the step is solved twice: the normal forces
    that the first solution ends with are the loads of friction in the second, whose impulse is then
    at most friction times that of the normal force.
    """
    points, ground, resistance, normal = contact
    x = displacements(tree, q)
    at, t = poses(tree, x), twists(tree, x, v)
    points = lowest_points(tree, at, points, normal)
    moving = tree.each(at_points, at, t, points)
    ahead = tree.each(lambda link, items: [(p + u * h, u) for p, u in items], moving)
    prescribed = range(0) if loops else driven  # loops take driven joints as constraints
    motion = motions(tree, x, v, [driven[k] if k in prescribed else 0.0 for k in range(len(tau))])
    g = tree.root.R @ tree.gravity

    def solved(loads: Column) -> tuple[list[Scalar], dict[int, Scalar], Column]:
        """Accelerations with friction under these normal loads, None for those of the law."""
        paired = tree.each(
            lambda link, items, ns: [(*item, n) for item, n in zip(items, ns, strict=True)],
            ahead, loads,
        )  # fmt: skip
        pushed = tree.each(lambda link, items: [ground(*item).force for item in items], paired)
        resistances = tree.each(lambda link, items: [resistance(*item) for item in items], paired)
        extra = tree.each(
            lambda link, pose, m, of_link, rs: resisted(link, pose, m, of_link, rs, h, g),
            at, motion, points, resistances,
        )  # fmt: skip
        applied = tree.each(
            lambda link, pose, of_link, forces, more: gathered(link, pose, of_link, forces)
            - (NO_WRENCH if more is None else more[1]),
            at, points, pushed, extra,
        )  # fmt: skip
        links = tree.each(
            lambda link, more, rotor: laden(link, more and more[0], rotor), extra, rotors
        )
        stiff = replace(tree, links=links)
        if loops:
            free = [0.0 if k in driven else f for k, f in enumerate(tau)]
            a, lam = closed_forward_dynamics(tree, loops, q, v, free, applied, driven, stiff)
            return a, dict(zip(driven, lam[len(lam) - len(driven) :], strict=True)), resistances
        bias = bias_wrenches(tree, motion, applied)
        knowns = [driven.get(k, f) for k, f in enumerate(tau)]
        y = hybrid.solve_hybrid(
            stiff, x, bias, knowns, [float(k in driven) for k in range(len(tau))]
        )
        return [driven.get(k, b) for k, b in enumerate(y)], {k: y[k] for k in driven}, resistances

    a, forces, resistances = solved(tree.each(lambda link, of_link: [None] * len(of_link), points))
    if any(len(of_link) for of_link in points):
        loads = tree.each(
            lambda link, pose, m, of_link, rs: normal_loads(pose, m, of_link, rs, h, g),
            at, motions(tree, x, v, a), points, resistances,
        )  # fmt: skip
        a, forces, _ = solved(loads)

    def contact_forces() -> list[Any]:
        ends = twists(tree, x, [w + h * b for w, b in zip(v, a, strict=True)])
        return [
            ground(place + u * h, u)
            for items in tree.each(at_points, at, ends, points)
            for place, u in items
        ]

    return a, forces, contact_forces
