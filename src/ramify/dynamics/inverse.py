"""Recursive inverse dynamics (table 6.1): joint forces from joint motion."""

from __future__ import annotations

from ramify.core.scalar import Scalar
from ramify.core.spatial import Vec3, Wrench
from ramify.dynamics.motion import LinkMotion, displacements, motions
from ramify.dynamics.tree import Column, Tree
from ramify.model.link import Displacement, Link


def no_wrench() -> Wrench:
    o = Vec3(0.0, 0.0, 0.0)
    return Wrench(o, o)


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
    return tree.inward(inward, no_wrench(), x, motions(tree, x, v, a), applied, a)


def inverse_dynamics(tree: Tree, q: Column, v: Column, a: Column, applied: Column) -> Column:
    """tau (nv): generalized forces that give the accelerations a. ``applied``: external wrenches in
    the links' frames.
    """
    return tree.each(
        lambda link, pair: pair[0], joint_wrenches(tree, displacements(tree, q), v, a, applied)
    )


def bias(tree: Tree, q: Column, v: Column) -> Column:
    """h (nv): the forces that hold the accelerations at zero: Coriolis, centrifugal and gravity."""
    return inverse_dynamics(
        tree, q, v, tree.each(lambda link: 0.0), tree.each(lambda link: no_wrench())
    )
