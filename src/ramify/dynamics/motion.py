"""Twists and twist-rates of the links: the forward recursion of eqs. (4.2) and (6.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ramify.core.scalar import Scalar
from ramify.core.spatial import NO_TWIST, ZERO, Twist, Vec3
from ramify.dynamics.tree import Column, Tree
from ramify.model.link import Displacement, Link


@dataclass(slots=True)
class LinkMotion:
    """Twist t of a link and its rate dt, in the link's frame; gravity appears as an acceleration -g
    of the base.

    ``spin`` is the angular velocity of the link's own joint: a ball joint's rates belong to axes
    that turn with all of it.
    """

    t: Twist
    dt: Twist
    spin: Vec3


def at_rest(acceleration: Vec3) -> LinkMotion:
    """The base: at rest but for a linear acceleration."""
    return LinkMotion(NO_TWIST, Twist(ZERO, acceleration), ZERO)


def displacements(tree: Tree, q: Column) -> Column:
    """Where each joint stands."""
    return tree.each(lambda link, qk: link.displacement(qk), q)


def outward(link: Link, parent: LinkMotion, x: Displacement, v: Scalar, a: Scalar) -> LinkMotion:
    """Eqs. (4.2), (6.3): t = A t_parent + p v and its rate."""
    A, p = link.propagation(x), link.p
    t = A @ parent.t + p * v
    spin = link.spin(A, parent.spin, v)
    turned = p.rate(t.w - spin)
    dt = A.rate(parent.t, parent.dt) + Twist(turned.w * v, turned.v * (v + v)) + p * a
    return LinkMotion(t, dt, spin)


def motions(tree: Tree, x: Column, v: Column, a: Column, base: LinkMotion | None = None) -> Column:
    """Motion of every link under gravity, on a base at rest or one that moves."""
    return tree.outward(outward, base or at_rest(-tree.gravity), x, v, a)


class Drift(NamedTuple):
    """Rates of the joints, and the motions of the links under gravity at zero joint
    accelerations.
    """

    v: Column
    links: Column


def drift(tree: Tree, x: Column, v: Column) -> Drift:
    """How the links move at the rates v when no joint accelerates."""
    return Drift(v, motions(tree, x, v, tree.each(lambda link: 0.0)))
