"""Robots as the book's recursions see them: links in a tree, each on a joint of one, two or three
revolute axes.

Frame and parent are two planar screws apart (A.2, A.18). The axes of a joint with more than one
degree of freedom meet at a point, each at a right angle to the next, so that nothing but a quarter
turn about x lies between their frames (chapter 3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ramify.core.errors import ModelError, RamifyError
from ramify.core.scalar import Scalar, cos, number, sin
from ramify.core.spatial import RigidInertia, Sym3, Twist, Vec3, Wrench
from ramify.formulations.chain import ORIGIN, check_column, refuse_machines
from ramify.formulations.counting.appendix import (
    Hat,
    articulated_turn_z,
    articulated_x,
    articulated_z,
    composite_x,
    composite_z,
    symmetric_z,
    twist_x,
    twist_z,
    wrench_x,
    wrench_z,
)
from ramify.formulations.counting.appendix import Products as _Products
from ramify.model.link import Link, Turn
from ramify.model.robot import Robot

NO_TURN = Turn(1.0, 0.0)


@dataclass(frozen=True)
class BookAxis:
    """Constants of one joint axis: alpha and a about x, offset b along z, angle at q = 0.

    ``side`` is a turn and a slide along the parent's z axis that come first: frames are made to fit
    a link's first child, and further children of a real robot need it. The book leaves it out, and
    so do general robots.
    """

    alpha: Turn
    a: float
    b: float
    theta0: Turn = field(default_factory=lambda: NO_TURN)
    side: tuple[Turn, float] | None = None

    def at(self, q: Scalar) -> PlacedAxis:
        """The axis with its joint at angle q."""
        c, s, o = cos(q), sin(q), self.theta0
        return PlacedAxis(self, Turn(c * o.c - s * o.s, s * o.c + c * o.s))

    @property
    def r(self) -> Vec3:
        """Origin of the frame in the parent's: a_(beta, k) of the book."""
        turn, h = self.side or (NO_TURN, 0.0)
        u = Vec3(self.a, -self.b * self.alpha.s, self.b * self.alpha.c)
        return u.rotate_z(turn.c, turn.s) + Vec3(0.0, 0.0, h)


@dataclass(frozen=True)
class PlacedAxis:
    """A joint axis at an angle: how vectors and bodies look from the frame on its other side."""

    axis: BookAxis
    theta: Turn

    def outward(self, u: Vec3) -> Vec3:
        """Q' u, 8M 4A; 4M 2A within a joint (A.6)."""
        if self.axis.side:
            u = u.rotate_z(self.axis.side[0].c, -self.axis.side[0].s)
        u = u.rotate_x(self.axis.alpha.c, -self.axis.alpha.s)
        return u.rotate_z(self.theta.c, -self.theta.s)

    def inward(self, u: Vec3) -> Vec3:
        """Q u (A.4)."""
        u = u.rotate_z(self.theta.c, self.theta.s).rotate_x(self.axis.alpha.c, self.axis.alpha.s)
        return u.rotate_z(self.axis.side[0].c, self.axis.side[0].s) if self.axis.side else u

    def wrench(self, w: Wrench) -> Wrench:
        """A' w, 20M 12A (A.16)-(A.23)."""
        w = wrench_x(wrench_z(w, self.theta, self.axis.b), self.axis.alpha, self.axis.a)
        return wrench_z(w, *self.axis.side) if self.axis.side else w

    def twist(self, t: Twist) -> Twist:
        """A t, 20M 12A."""
        if self.axis.side:
            t = twist_z(t, *self.axis.side)
        return twist_z(twist_x(t, self.axis.alpha, self.axis.a), self.theta, self.axis.b)

    def composite(self, M: RigidInertia) -> RigidInertia:
        """A' M~ A, 34M 31A (A.29)-(A.40)."""
        M = composite_x(composite_z(M, self.theta, self.axis.b), self.axis.alpha, self.axis.a)
        return composite_z(M, *self.axis.side) if self.axis.side else M

    def articulated(self, M: Hat) -> Hat:
        """A' M^ A, 64M 63A (A.41)-(A.52)."""
        M = articulated_x(articulated_z(M, self.theta, self.axis.b), self.axis.alpha, self.axis.a)
        return articulated_z(M, *self.axis.side) if self.axis.side else M

    # ---- within a joint: a turn, and a quarter turn that costs nothing ----

    def turned_wrench(self, w: Wrench) -> Wrench:
        """8M 4A."""
        return Wrench(self.inward(w.n), self.inward(w.f))

    def turned_twist(self, t: Twist) -> Twist:
        """8M 4A."""
        return Twist(self.outward(t.w), self.outward(t.v))

    def turned_composite(self, M: RigidInertia) -> RigidInertia:
        """16M 10A: the moments of inertia 12M 8A (A.11), the first moment 4M 2A (A.36)."""
        I = symmetric_z(M.I, self.theta, _Products.of(self.theta))  # noqa: E741
        alpha = self.axis.alpha
        return RigidInertia(M.m, self.inward(M.h), I.rotate_x(alpha.c, alpha.s))

    def turned_articulated(self, M: Hat) -> Hat:
        """24M 23A (A.48), (A.10), (A.13)."""
        M, alpha = articulated_turn_z(M, self.theta), self.axis.alpha
        return Hat(
            M.I.rotate_x(alpha.c, alpha.s),
            M.F.rotate_x(alpha.c, alpha.s),
            M.G.rotate_x(alpha.c, alpha.s),
        )


@dataclass(frozen=True)
class BookLink:
    """A link: parent (-1: the base), axes of its joint, base side first, M about its origin."""

    parent: int
    axes: tuple[BookAxis, ...]
    M: RigidInertia


@dataclass(frozen=True)
class BookTree:
    """Links, parents first; ``base`` is the mass matrix of a floating base, None where the base is
    fixed.

    ``gravity`` is an acceleration in the base's frame; a floating base gets it at each state.
    """

    links: tuple[BookLink, ...]
    gravity: Vec3
    base: RigidInertia | None = None

    @property
    def n(self) -> int:
        """Joint variables."""
        return sum(len(link.axes) for link in self.links)

    @property
    def bodies(self) -> list[RigidInertia]:
        """Mass matrices of the links, and of a floating base last."""
        return [link.M for link in self.links] + ([self.base] if self.base else [])

    @property
    def bears(self) -> tuple[bool, ...]:
        """For each link, whether it carries others."""
        return tuple(any(other.parent == k for other in self.links) for k in range(len(self.links)))

    def by_link(self, column: Sequence[Scalar], name: str = "q") -> list[list[Scalar]]:
        """The entries of a column by link; StateError where it is not n scalars."""
        check_column(name, column, self.n, "the robot")
        rest = iter(column)
        return [[next(rest) for _ in link.axes] for link in self.links]

    def axes_at(self, q: Sequence[Scalar]) -> list[list[PlacedAxis]]:
        """All axes at the joint angles q."""
        return [
            [axis.at(x) for axis, x in zip(link.axes, own, strict=True)]
            for link, own in zip(self.links, self.by_link(q), strict=True)
        ]


def tree_of(model: Robot) -> BookTree:
    """A model of revolute, universal and spherical (Euler-angle) joints, on a fixed base or a
    floating one.

    ModelError for any other joint, and for a robot with closed loops.
    """
    refuse_machines(model)
    skeleton = model.skeleton
    floating = model.bodies[0].joint.floating
    links: list[BookLink] = []
    slides: list[float] = [0.0] * len(model.bodies)
    k = first = 0
    for b, body in enumerate(model.bodies):
        steps = skeleton.links[k : k + body.joint.dof]
        k += body.joint.dof
        if b == 0 and floating:
            first = 1
            continue
        name = f"{model.name}: {body.joint.name!r}"
        if not 1 <= len(steps) <= 3 or any(skeleton.ball[i] for i in range(k - len(steps), k)):
            raise ModelError(f"{name} is a {body.joint.kind} joint; {_KINDS}")
        above = slides[body.parent] if body.parent >= 0 else 0.0
        axes = [_axis(steps[0], above, name), *(_axis(link, 0.0, name) for link in steps[1:])]
        M = steps[-1].M
        if len(axes) > 1:  # its frames stay where the axes meet; what lies beyond is farther away
            slides[b], axes[-1] = axes[-1].b, replace(axes[-1], b=0.0)
            M = M.shift(Vec3(0.0, 0.0, slides[b]))
        if any(x.alpha.c or x.side or x.a or x.b for x in axes[1:]):
            raise ModelError(f"{name} has axes that do not meet at right angles; {_KINDS}")
        links.append(BookLink(body.parent - first, tuple(axes), M))
    base = skeleton.links[model.bodies[0].joint.dof - 1].M if floating else None
    g = skeleton.root.rotation.T @ model.gravity
    return BookTree(tuple(links), Vec3(*(float(x) for x in g)), base)


_KINDS = (
    "the book's counted recursions are for revolute joints of one, two or three axes that meet at "
    "right angles"
)


def _axis(link: Link, above: float, name: str) -> BookAxis:
    """The axis of a link whose parent's frame lies ``above`` lower on z than the skeleton's."""
    if (link.p.rho, link.p.eta) != (1.0, 0.0):
        raise ModelError(f"{name} does not turn about its axis only; {_KINDS}")
    u = link.r0.rotate_z(link.gamma.c, -link.gamma.s)
    b = u.z * link.alpha.c if abs(number(link.alpha.s)) < 1e-12 else -u.y / link.alpha.s
    h = u.z - b * link.alpha.c + above
    plain = link.gamma.s == 0.0 and link.gamma.c == 1.0 and abs(number(h)) < 1e-14
    side = None if plain else (link.gamma, number(h))
    return BookAxis(link.alpha, number(u.x), number(b), link.theta0, side)


def general_tree(
    axes: Sequence[int], parents: Sequence[int] | None = None, floating: bool = False
) -> BookTree:
    """A robot whose constants are neither 0 nor 1; ``axes[k]`` degrees of freedom at joint k, a
    serial chain by default.

    RamifyError where a joint has not one to three axes.
    """
    if not all(1 <= count <= 3 for count in axes):
        numbers = ", ".join(map(str, axes))
        raise RamifyError(f"joints of {numbers} axes; a joint has one, two or three")
    links = []
    for k, count in enumerate(axes):
        x = 0.1 * (k + 1)
        first = BookAxis(Turn(math.cos(0.7 + x), math.sin(0.7 + x)), 0.35 + x, 0.15 + x)
        inner = BookAxis(Turn(0.0, 1.0), 0.0, 0.0)
        parent = k - 1 if parents is None else parents[k]
        links.append(BookLink(parent, (first, *[inner] * (count - 1)), _general_body(x)))
    return BookTree(tuple(links), Vec3(1.7, 2.9, -9.2), _general_body(0.0) if floating else None)


def _general_body(x: float) -> RigidInertia:
    # none of them comes to 0 or 1, however long the chain
    c, m = Vec3(0.11 + x, 0.07 + 0.021 * x, 0.05 + 0.011 * x), 1.5 + x
    return RigidInertia(m, c * m, Sym3(2.31 + x, 2.42 + x, 2.53 + x, 0.011, 0.012, 0.013))


def general_tree_like(model: Robot) -> BookTree:
    """A general robot with the joints and the branches of a model."""
    tree = tree_of(model)
    axes, parents = [len(x.axes) for x in tree.links], [x.parent for x in tree.links]
    return general_tree(axes, parents, tree.base is not None)


NO_WRENCH = Wrench(ORIGIN, ORIGIN)
