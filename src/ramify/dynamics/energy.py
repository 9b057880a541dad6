"""Energy, centre of mass and momentum of the whole robot: sums over its links."""

from __future__ import annotations

from ramify.core.scalar import Scalar
from ramify.core.spatial import NO_WRENCH, Twist, Vec3, Wrench
from ramify.dynamics.gravity import NO_LOAD, Depth, Load, depths, potential
from ramify.dynamics.kinematics import poses, twists
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import Column, Tree
from ramify.model.link import Link, Pose


def kinetic(link: Link, t: Twist) -> Scalar:
    """t' M t / 2 of one link, the two equal halves of its coupling taken together."""
    M = link.M
    return 0.5 * (t.w.dot(M.I @ t.w) + M.m * t.v.dot(t.v)) + t.w.dot(M.h.cross(t.v))


def mass_moment(link: Link, at: Pose) -> Load:
    """m and R h + m r: about the world's origin."""
    return Load(link.M.m, at.R @ link.M.h + at.r * link.M.m)


def whole_load(tree: Tree, pose: Column) -> Load:
    """The load of all links about the world's origin."""
    found: Load = tree.total(mass_moment, NO_LOAD, pose)
    return found


def center(whole: Load) -> Vec3:
    """The mass centre of a load."""
    return whole.h * (1.0 / whole.m)


def momentum_step(link: Link, at: Pose, t: Twist) -> Wrench:
    """M t, moved to the world's origin and axes."""
    own = link.M @ t
    f = at.R @ own.f
    return Wrench(at.R @ own.n + at.r.cross(f), f)


def energy(tree: Tree, q: Column, v: Column) -> tuple[Scalar, Scalar]:
    """Kinetic energy, of the rotors too, and potential energy, in J; the potential is zero at the
    world's origin.
    """
    x = displacements(tree, q)

    def of_link(link: Link, vk: Scalar, t: Twist, at: Depth) -> tuple[Scalar, Scalar]:
        return kinetic(link, t) + 0.5 * (link.rotor * (vk * vk)), potential(link, at)

    moving, deep = twists(tree, x, v), depths(tree, x)
    both: tuple[Scalar, Scalar] = tree.total(of_link, (0.0, 0.0), v, moving, deep)
    return both


def center_of_mass(tree: Tree, q: Column) -> Vec3:
    """Centre of mass of all links (3), world frame, in m."""
    return center(whole_load(tree, poses(tree, displacements(tree, q))))


def momentum(tree: Tree, q: Column, v: Column) -> tuple[Vec3, Vec3]:
    """Linear momentum (kg m/s) and angular momentum about the centre of mass (kg m^2/s), world
    axes.
    """
    x = displacements(tree, q)

    def of_link(link: Link, at: Pose, t: Twist) -> tuple[Load, Wrench]:
        return mass_moment(link, at), momentum_step(link, at, t)

    nothing, moving = (NO_LOAD, NO_WRENCH), (poses(tree, x), twists(tree, x, v))
    whole, at_origin = tree.total(of_link, nothing, *moving)
    return at_origin.f, at_origin.n - whole.h.cross(at_origin.f) * (1.0 / whole.m)
