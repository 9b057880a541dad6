"""The contacts of a robot as rows of a step: gaps, normals, tangents, over any scalar.

Contact points and shapes touch the terrain of the law; shapes touch each other and those of the
world, pair by pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ramify.contact.closest import closest
from ramify.contact.collision_pairs import (
    CollisionPair,
    collision_pairs,
    shape_pair,
    surface_pairs,
)
from ramify.contact.ground import upward
from ramify.contact.hard import CONTACTS, Hard
from ramify.contact.hard_system import ContactRows, Sparse
from ramify.contact.law_reader import law_of_part
from ramify.contact.terrain import Flat, Terrain
from ramify.contact.touching_points import TouchingPoint, can_touch, touching_points
from ramify.core.cached import cached_property
from ramify.core.errors import ModelError
from ramify.core.scalar import Scalar, Scalars, select, sqrt
from ramify.core.spatial import ZERO, Mat3, Vec3
from ramify.documents.forms import Reading
from ramify.documents.mistakes import Path
from ramify.dynamics.kinematics import poses, seat
from ramify.dynamics.loop_ends import unit_twist
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import Column, Tree, tree_of
from ramify.model.collisions import ShapePlace
from ramify.model.frame import Frame
from ramify.model.link import Pose
from ramify.model.robot import Robot
from ramify.model.shape import FRICTION, SURFACES, Shape
from ramify.model.skeleton import path_to_base
from ramify.runtime.cache_keys import digest

RECOVERY: Final = 0.5
"""m/s (rad/s of a stop): the fastest way out for what starts too deep."""
BOUNCE: Final = 3.0
"""Steps: restitution acts beyond the speed that a free fall of this length gives."""
GROUND: Final = ""
"""The name of what is touched that is not a body."""
_POINT_RADIUS: Final = 1e-12
"""m: of a contact point as a ball."""
_WORLD: Final = Pose(Mat3(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), ZERO)


@dataclass(frozen=True)
class Slot:
    """A contact that may close: its name, the bodies on both sides (-1: the ground or the world),
    Coulomb's coefficient and restitution.
    """

    name: str
    body: int
    other: int
    friction: float
    restitution: float


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


@dataclass(frozen=True)
class _TerrainBall:
    """A ball about a point of a body (in its frame) that may touch the terrain."""

    slot: Slot
    place: tuple[float, float, float]
    radius: float


class HardContact:
    """The contacts of a model under a ``law`` that is fitted to it. A robot on a fixed base needs
    none: its stops, dry friction and loops are hard as well.
    """

    def __init__(self, model: Robot, law: Hard) -> None:
        self.model, self.law = model, law.fitted(model)
        pairs = collision_pairs(model) if law.pairs else ()
        surfaces = any(p.shape.kind in SURFACES for p in model.shapes if p.body < 0)
        self.terrain: Terrain | None = self.law.terrain
        if self.terrain is None and not surfaces:
            self.terrain = Flat().fitted(upward(model, Flat()))
        points = self._touching_points()
        self._balls = self._terrain_balls(points) if self.terrain is not None else ()
        self._pairs = tuple(pair for pair in pairs if not pair.on_surface)
        if self.terrain is None:
            self._pairs += self._on_surfaces(points)
        self.slots = tuple(
            [ball.slot for ball in self._balls]
            + [slot for pair in self._pairs for slot in self._slots(pair)]
        )
        floats = any(joint.floating for joint in model.joints)
        if not self.slots and floats and law.points is None:
            raise ModelError(
                f"{model.name} has neither contact points nor shapes that collide, so that it "
                "would fall through any ground; give its links some: rf.with_contact_points, "
                "points: or collides: true of a shape in its file"
            )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(slot.name for slot in self.slots)

    @property
    def bodies(self) -> tuple[str, ...]:
        """The bodies on the first side."""
        return tuple(self.model.bodies[slot.body].name for slot in self.slots)

    @property
    def others(self) -> tuple[str, ...]:
        """The bodies on the second side, "" for the ground and the world."""
        return tuple(
            self.model.bodies[slot.other].name if slot.other >= 0 else GROUND for slot in self.slots
        )

    @property
    def size(self) -> int:
        """The number of contacts."""
        return len(self.slots)

    @property
    def frictions(self) -> list[float]:
        """Coulomb's coefficient of each."""
        return [slot.friction for slot in self.slots]

    @cached_property
    def fingerprint(self) -> str:
        return digest(repr(self.law), repr(self.terrain), repr(self._balls), repr(self._pairs))

    def _touching_points(self) -> list[TouchingPoint]:
        """The points that may touch terrain or surfaces, none where the law says so."""
        selected = self.law.points
        if selected == () or (selected is None and not can_touch(self.model)):
            return []
        return touching_points(self.model, selected)

    def _on_surfaces(self, points: Sequence[TouchingPoint]) -> tuple[CollisionPair, ...]:
        """The pairs with planes and height fields of the world: of shapes by which links touch, and
        of contact points, as balls without size.
        """
        shapes = {id(point.shape) for point in points}
        chosen = [pair for pair in surface_pairs(self.model) or () if id(pair.shape) in shapes]
        surfaces = [p for p in self.model.shapes if p.body < 0 and p.shape.kind in SURFACES]
        for point in points:
            if point.shape is None:
                at = Frame(position=np.array(point.place))
                ball = Shape("sphere", (_POINT_RADIUS,), at, name=point.name)
                whole = ShapePlace(point.name, point.body, ball)
                chosen += [shape_pair(whole, surface) for surface in surfaces]
        return tuple(chosen)

    def _terrain_balls(self, points: Sequence[TouchingPoint]) -> tuple[_TerrainBall, ...]:
        """The balls by which links touch the terrain: of their contact points, or where a link has
        none of its shapes that collide.
        """
        law, balls = self.law, []
        for point in points:
            mu = FRICTION if point.shape is None else point.shape.friction
            e = 0.0 if point.shape is None else point.shape.restitution
            mu = mu if law.friction is None else law.friction
            e = e if law.restitution is None else law.restitution
            balls.append(
                _TerrainBall(Slot(point.name, point.body, -1, mu, e), point.place, point.radius)
            )
        return tuple(balls)

    def _slots(self, pair: CollisionPair) -> list[Slot]:
        mu = pair.friction if self.law.friction is None else self.law.friction
        e = pair.restitution if self.law.restitution is None else self.law.restitution
        names = [pair.name]
        if pair.contacts > 1:
            names = [f"{pair.name}.{i + 1}" for i in range(pair.contacts)]
        return [Slot(name, pair.body, pair.other, mu, e) for name in names]

    # ---- texts ----

    def touches(self, q: Scalars) -> list[Touch]:
        """All contacts at the coordinates q (nq)."""
        tree = tree_of(self.model)
        at = poses(
            tree,
            displacements(tree, self.model.skeleton.coordinates(list(q), (1.0, 0.0, 0.0, 0.0))),
        )
        frames: dict[int, Pose] = {-1: _WORLD}
        for slot in self.slots:
            for b in (slot.body, slot.other):
                if b not in frames:
                    k = self.model.skeleton.last[b]
                    frames[b] = seat(tree.links[k], at[k])
        out = [self._on_terrain(tree, at, frames, ball) for ball in self._balls]
        for pair in self._pairs:
            sides = pair.shape, frames[pair.body], pair.other_shape, frames[pair.other]
            for near_point in closest(*sides):
                place = (near_point.on_first + near_point.on_second) * 0.5
                columns = self._columns(tree, at, place, pair.body, pair.other)
                axes = frame_about(near_point.normal)
                out.append(Touch(near_point.gap, place, axes, columns))
        return out

    def _on_terrain(
        self, tree: Tree, at: Column, frames: dict[int, Pose], ball: _TerrainBall
    ) -> Touch:
        assert self.terrain is not None
        center = frames[ball.slot.body].point(Vec3(*ball.place))
        depth, steep = self.terrain.under(center)
        scale = _inverse_length(steep)
        n = steep * scale
        place = center - n * ball.radius
        columns = self._columns(tree, at, place, ball.slot.body, -1)
        return Touch(-depth * scale - ball.radius, place, frame_about(n), columns)

    def _columns(
        self, tree: Tree, at: Column, place: Vec3, body: int, other: int
    ) -> dict[int, Vec3]:
        """The velocity at a place of a body as seen from another one; what carries both moves them
        alike.
        """
        last = self.model.skeleton.last
        first, second = (
            path_to_base(tree.parents, last[b] if b >= 0 else -1) for b in (body, other)
        )
        columns = {k: unit_twist(tree, at[k], k, place).v for k in first if k not in second}
        return columns | {k: -unit_twist(tree, at[k], k, place).v for k in second if k not in first}

    def rows(
        self, touches: Sequence[Touch], v: Scalars, h: Scalar, gravity: float
    ) -> tuple[ContactRows, ...]:
        """The rows of a step of h seconds from the velocities v (nv)."""
        pairs = zip(self.slots, touches, strict=True)
        return tuple(_rows(slot, touch, v, h, gravity) for slot, touch in pairs)


def _rows(slot: Slot, touch: Touch, v: Scalars, h: Scalar, gravity: float) -> ContactRows:
    normal = touch.row(0)
    least = least_speed(touch.gap, h)
    if slot.restitution:
        before: Scalar = 0.0
        for k, x in normal.items():
            before = before + x * v[k]
        touched = touch.gap + h * before < 0.0
        back = select(before < -(BOUNCE * gravity) * h, -slot.restitution * before, least)
        least = select(touched, select(back > least, back, least), least)
    return ContactRows(normal, (touch.row(1), touch.row(2)), least, slot.friction)


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
    return law_of_part(CONTACTS, raw, path, reading, lambda law: HardContact(model, law))
