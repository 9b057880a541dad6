"""What is drawn of a robot, and where it is over time: the one description behind the report, the
films and the live viewer.

Scenes have z up: ``up`` turns the robot's world so that gravity points down, whatever axis its file
chose.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.kernels.queries import kinematics
from ramify.model.build import point_of
from ramify.model.robot import Robot, module_of
from ramify.model.shape import rgb
from ramify.view.geometry import Triangles, join_triangles, shape_triangles
from ramify.view.meshes import robot_meshes
from ramify.view.robot_solids import (
    AROUND,
    closing,
    extent,
    foot,
    plain_body,
    ties,
    upright,
)

MODULES: Final = (
    "#3d7fe3", "#df8a47", "#4da16c", "#b85b97", "#5f4fae", "#d9bc3d", "#59bcc8", "#a83c38",
)  # fmt: skip
"""Colours of the modules, in order and over again; they differ for colour-blind readers too."""
JOINT: Final = "#39424e"
BASE: Final = "#7b8794"
PLAIN: Final = "#8fa3b8"
GROUND: Final = "#b4bec9"


@dataclass(frozen=True, eq=False)
class ScenePart:
    """Triangles in the frame of a body (-1: the world), what they stand for ("link", "joint",
    "base", "ground" or "collision"), and the colour of their material; empty: they have none.
    """

    body: int
    kind: str
    triangles: Triangles
    paint: str = ""


@dataclass(frozen=True)
class Point:
    """A named point of a body, in its frame, whose trail may be drawn."""

    name: str
    body: int
    at: tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Scene:
    """The parts of a robot to draw. ``size`` is its extent at rest in m; ``notes`` say what is not
    drawn.
    """

    model: Robot
    parts: tuple[ScenePart, ...]
    points: tuple[Point, ...]
    up: Array
    size: float
    notes: tuple[str, ...]

    def poses(self, q: ArrayLike) -> tuple[Array, Array]:
        """Rotations (..., nb, 3, 3) and positions (..., nb, 3) of the bodies, z up."""
        R, r = kinematics(self.model, q)
        return self.up @ R, r @ self.up.T

    def part_pose(self, part: ScenePart, R: Array, r: Array) -> tuple[Array, Array]:
        """The pose of a part, given those of all bodies at one time."""
        return (R[part.body], r[part.body]) if part.body >= 0 else (self.up, np.zeros(3))

    @cached_property
    def painted(self) -> bool:
        """Whether most of the robot's links have colours of their own."""
        links = [part for part in self.parts if part.kind == "link"]
        faces = [(len(part.triangles.faces), bool(part.paint)) for part in links]
        return 2 * sum(n for n, painted in faces if painted) > sum(n for n, _ in faces)

    def colour(self, part: ScenePart) -> str:
        """Its colour: that of its material; in a robot without any, links by their module, every
        second one paler, so that one sees where it ends.
        """
        plain = PLAIN if self.painted and part.kind == "link" else self.module_colour(part)
        return part.paint or plain

    def module_colour(self, part: ScenePart) -> str:
        """Its colour by module, whatever its material."""
        if part.kind == "link" and part.body >= 0:
            hue = MODULES[self.module_of[part.body] % len(MODULES)]
            return hue if self.depth[part.body] % 2 == 0 else _paler(hue)
        return {"joint": JOINT, "ground": GROUND}.get(part.kind, BASE)

    @cached_property
    def module_of(self) -> list[int]:
        """The module of every body."""
        return module_of(self.model)

    @cached_property
    def depth(self) -> list[int]:
        """How many bodies carry a body."""
        found: list[int] = []
        for parent in self.model.parents:
            found.append(found[parent] + 1 if parent >= 0 else 0)
        return found

    def corners(self, R: Array, r: Array) -> tuple[Array, Array]:
        """The least and the largest corner (..., 3) around all parts at poses (..., nb, 3, 3) and
        (..., nb, 3).
        """
        lows, highs = [], []
        for part in self.parts:
            if not len(part.triangles.points):
                continue
            low, high = part.triangles.points.min(axis=0), part.triangles.points.max(axis=0)
            box = np.array(list(product(*zip(low, high, strict=True))))
            turn, shift = self.up, np.zeros(3)
            if part.body >= 0:
                turn, shift = R[..., part.body, :, :], r[..., part.body, :]
            placed = np.einsum("...ij,kj->...ki", turn, box) + shift[..., None, :]
            lows.append(np.broadcast_to(placed.min(axis=-2), (*r.shape[:-2], 3)))
            highs.append(np.broadcast_to(placed.max(axis=-2), (*r.shape[:-2], 3)))
        if not lows:
            return r.min(axis=-2), r.max(axis=-2)
        return np.min(lows, axis=0), np.max(highs, axis=0)


def _paler(colour: str) -> str:
    return "#" + "".join(f"{round(0.62 * x + 0.38 * 255):02x}" for x in rgb(colour))


def make_scene(model: Robot, around: int = AROUND) -> Scene:
    """The scene of a robot: its shapes and meshes; a link that has neither is a rod from joint to
    joint. Round shapes of links have ``around`` corners.
    """
    notes: list[str] = []
    meshes: dict[int, list[tuple[Triangles, str]]] = {}
    for owner, triangles, paint in robot_meshes(model, notes):
        meshes.setdefault(owner, []).append((triangles, paint))
    size = extent(model)
    parts: list[ScenePart] = []
    for b, body in enumerate(model.bodies):
        drawn = meshes.get(b) or [
            (shape_triangles(shape, around), shape.colour) for shape in body.drawn_shapes
        ]
        if drawn:
            parts += _by_paint(b, "link", drawn)
            rods = [] if b in meshes else list(ties(model, b, size, around))
            parts += [ScenePart(b, "joint", join_triangles(rods))] if rods else []
        else:
            rods, hinge = plain_body(model, b, size, around)
            parts += [ScenePart(b, "link", join_triangles(rods))] if rods else []
            parts += [ScenePart(b, "joint", hinge)] if hinge is not None else []
    base = meshes.get(-1) or [
        (foot(body, size, upright(model)), "")
        for body in model.bodies
        if body.parent < 0 and not body.joint.moves_base
    ]
    parts += _by_paint(-1, "base", base)
    parts += [ScenePart(b, "joint", found) for b, found in closing(model, size)]
    standing = [shape for shape in model.collisions.world if shape.drawn and shape.kind != "plane"]
    parts += _by_paint(-1, "ground", [(shape_triangles(x, around), x.colour) for x in standing])
    return Scene(model, tuple(parts), _points(model), upright(model), size, tuple(notes))


def collision_parts(model: Robot, around: int = AROUND) -> list[ScenePart]:
    """The shapes of the bodies that collide, also those that pictures do not show."""
    return [
        ScenePart(place.body, "collision", shape_triangles(place.shape, around))
        for place in model.shapes
        if place.body >= 0 and place.shape.collides
    ]


def _by_paint(body: int, kind: str, drawn: list[tuple[Triangles, str]]) -> Iterator[ScenePart]:
    """One part for each colour."""
    for paint in dict.fromkeys(paint for _, paint in drawn):
        own = join_triangles(triangles for triangles, other in drawn if other == paint)
        yield ScenePart(body, kind, own, paint)


def _points(model: Robot) -> tuple[Point, ...]:
    points = []
    for b, body in enumerate(model.bodies):
        points += [Point(f"{name} of {body.name}", b, at) for name, at in body.points]
    for b, body in enumerate(model.bodies):
        if b not in model.parents and not body.points:
            start = body.joint.outlet.inverse().position
            far = point_of(start + 2.0 * (body.com - start))
            points.append(Point(f"end of {body.name}", b, far))
    points += [Point(body.name, b, (0.0, 0.0, 0.0)) for b, body in enumerate(model.bodies)]
    return tuple(points)
