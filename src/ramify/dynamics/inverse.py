"""Recursive inverse dynamics (table 6.1): joint forces from joint motion."""

from __future__ import annotations

from ramify.core.scalar import Scalar, Scalars
from ramify.core.spatial import NO_WRENCH, Wrench
from ramify.dynamics.motion import LinkMotion, displacements, motions
from ramify.dynamics.tree import Column, Tree
from ramify.dynamics.trunk import Trunk, axes
from ramify.model.link import Displacement, Link


def inward(
    link: Link, children: Wrench, x: Displacement, motion: LinkMotion, applied: Wrench, a: Scalar
) -> tuple[tuple[Scalar, Wrench], Wrench]:
    """Eqs. (5.5), (6.6): w~ = w* - w^F + sum of A' w~ over the children; tau = p' w~ + J a,
    J being the rotor's inertia.
    """
    w = link.M.wrench(motion.t, motion.dt) - applied + children
    return (link.p.dot(w) + link.rotor * a, w), link.propagation(x).transposed(w)


def joint_wrenches(tree: Tree, x: Column, v: Column, a: Column, applied: Column) -> Column:
    """(tau, w~) of every link: the generalized force and the whole wrench its joint transmits."""
    return tree.inward(inward, NO_WRENCH, x, motions(tree, x, v, a), applied, a)


def inverse_dynamics(tree: Tree, q: Column, v: Column, a: Column, applied: Column) -> Column:
    """tau (nv): generalized forces that give the accelerations a. ``applied``: external wrenches in
    the links' frames.
    """
    return tree.each(
        lambda link, pair: pair[0], joint_wrenches(tree, displacements(tree, q), v, a, applied)
    )


def trunk_inverse_dynamics(
    limbs: Tree, trunk: Trunk, q0: Scalars, v0: Scalars, a0: Scalars,
    q: Column, v: Column, a: Column,
) -> Column:  # fmt: skip
    """Joint forces of a trunk with the coordinates q0 (7), v0, a0 (6) that carries limbs: the
    limbs' wrenches and its own, along the axes of its joint.
    """
    slides, flow, _ = limbs.hoisted(trunk.motion(limbs.gravity, q0, v0, a0))
    x = displacements(limbs, q)
    moving = motions(limbs, x, v, a, trunk.carrying(flow))
    none = limbs.each(lambda link: NO_WRENCH)
    found, handed = limbs.inward_to_base(inward, NO_WRENCH, x, moving, none, a)
    w = trunk.M.wrench(flow.t, flow.dt) + trunk.inward(handed)
    tau = limbs.each(lambda link, pair: pair[0], found)
    return limbs.preceded([s.dot(w) for s in axes(slides)], tau)


def bias(tree: Tree, q: Column, v: Column) -> Column:
    """h (nv): the forces that hold the accelerations at zero: Coriolis, centrifugal and gravity."""
    return inverse_dynamics(
        tree, q, v, tree.each(lambda link: 0.0), tree.each(lambda link: NO_WRENCH)
    )
