"""The contacts of a robot with the ground as rows of a step: gaps, normals, tangents, over any
scalar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ramify.contact.hard import CONTACTS, Hard
from ramify.contact.hard_system import ContactRows, Sparse
from ramify.contact.robot_on_ground import chosen_points
from ramify.core.cached import cached_property
from ramify.core.errors import RamifyError
from ramify.core.scalar import Scalar, Scalars, select, sqrt
from ramify.core.spatial import Vec3
from ramify.documents.forms import NotedError, Reading
from ramify.documents.mistakes import Path
from ramify.dynamics.kinematics import poses
from ramify.dynamics.loop_ends import unit_twist
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import Column, Tree, tree_of
from ramify.model.robot import Robot
from ramify.model.skeleton import path_to_base
from ramify.runtime.cache_keys import digest

RECOVERY: Final = 0.5
"""m/s (rad/s of a stop): the fastest way out for what starts too deep."""
BOUNCE: Final = 3.0
"""Restitution acts beyond the speed that a free fall of so many steps gives."""


@dataclass(frozen=True)
class GroundSlot:
    """A ball around a point of a link (in its frame) that may touch the ground."""

    link: int
    point: Vec3
    radius: float = 0.0


@dataclass(frozen=True)
class Touch:
    """A contact at a posture: its ``gap`` (m), where the surfaces meet, the normal and both
    tangents, unit vectors of the world, and the columns of the velocity there, by link.
    """

    gap: Scalar
    place: Vec3
    axes: tuple[Vec3, Vec3, Vec3]
    columns: dict[int, Vec3]

    def row(self, axis: int) -> Sparse:
        """The row of the velocity along an axis."""
        return {k: self.axes[axis].dot(column) for k, column in self.columns.items()}


class HardContact:
    """The contacts of a model under a ``law`` that is fitted to it. A robot on a fixed base needs
    none: its stops, dry friction and loops are hard as well.
    """

    def __init__(self, model: Robot, law: Hard) -> None:
        self.model, self.law = model, law.fitted(model)
        floats = any(joint.floating for joint in model.joints)
        bare = law.points is None and not floats and not any(body.points for body in model.bodies)
        points = [] if bare else chosen_points(model, law.points)
        self.names = tuple(name for name, _, _ in points)
        self.bodies = tuple(model.bodies[b].name for _, b, _ in points)
        slots = []
        for _, b, place in points:
            k = model.skeleton.last[b]
            slots.append(GroundSlot(k, model.skeleton.links[k].seat.point(Vec3(*place))))
        self.slots = tuple(slots)
        self._tree = tree_of(model)

    @property
    def size(self) -> int:
        """The number of contacts."""
        return len(self.slots)

    @property
    def frictions(self) -> list[float]:
        """Coulomb's coefficient of each."""
        return [self.law.friction] * self.size

    @cached_property
    def fingerprint(self) -> str:
        return digest(repr(self.law), repr(self.slots), repr(self.names))

    def touches(self, q: Scalars, tree: Tree | None = None) -> list[Touch]:
        """All contacts at the coordinates q (nq)."""
        tree = tree or self._tree
        own = self.model.skeleton.coordinates(list(q), (1.0, 0.0, 0.0, 0.0))
        at = poses(tree, displacements(tree, own))
        return [self._touch(tree, at, slot) for slot in self.slots]

    def _touch(self, tree: Tree, at: Column, slot: GroundSlot) -> Touch:
        center = at[slot.link].point(slot.point)
        depth, steep = self.law.terrain.under(center)
        scale = _inverse_length(steep)
        n = steep * scale
        place = center - n * slot.radius
        columns = {
            k: unit_twist(tree, at[k], k, place).v for k in path_to_base(tree.parents, slot.link)
        }
        return Touch(-depth * scale - slot.radius, place, frame_about(n), columns)

    def rows(
        self, touches: Sequence[Touch], v: Scalars, h: Scalar, gravity: float
    ) -> tuple[ContactRows, ...]:
        """The rows of a step of h seconds from the velocities v (nv)."""
        return tuple(self._rows(touch, v, h, gravity) for touch in touches)

    def _rows(self, touch: Touch, v: Scalars, h: Scalar, gravity: float) -> ContactRows:
        normal = touch.row(0)
        least = least_speed(touch.gap, h)
        if self.law.restitution:
            before: Scalar = 0.0
            for k, x in normal.items():
                before = before + x * v[k]
            touched = touch.gap + h * before < 0.0
            back = select(before < -(BOUNCE * gravity) * h, -self.law.restitution * before, least)
            least = select(touched, select(back > least, back, least), least)
        return ContactRows(normal, (touch.row(1), touch.row(2)), least, self.law.friction)


def least_speed(gap: Scalar, h: Scalar) -> Scalar:
    """The velocity that closes a gap in a step and, where it is negative, opens it again, at most
    at ``RECOVERY``.
    """
    speed = -gap / h
    return select(speed < RECOVERY, speed, RECOVERY)


def _inverse_length(n: Vec3) -> Scalar:
    square: Any = n.dot(n)
    if isinstance(square, (float, int)) and abs(square - 1.0) < 1e-14:
        return 1.0
    return 1.0 / sqrt(square)


def frame_about(n: Vec3) -> tuple[Vec3, Vec3, Vec3]:
    """(n, s, t): a unit vector and two more, at right angles, without branches: continuous but at
    n = -z (Duff and others 2017).
    """
    x, y, z = n.x, n.y, n.z
    sign = select(z < 0.0, -1.0, 1.0)
    a = -1.0 / (sign + z)
    b = x * y * a
    s = Vec3(1.0 + sign * x * x * a, sign * b, -sign * x)
    t = Vec3(b, sign + y * y * a, -y)
    return n, s, t


def contact_of(raw: object, path: Path, reading: Reading, model: Robot) -> Hard | None:
    """The contact that a part of a file describes, None for none; None too where there are
    mistakes, which are noted.
    """
    try:
        law: Hard | None = None if raw is None else CONTACTS.read(raw, path, reading)
    except NotedError:
        return None
    if law is None:
        return None
    try:
        HardContact(model, law)
    except RamifyError as error:
        reading.mistakes.add(path, str(error))
    return law
