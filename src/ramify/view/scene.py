"""What of a robot is drawn, and where it is over time: the one description behind the report, the
films and the live viewer.

Scenes have z up: ``up`` turns the robot's world so that gravity points down, whatever axis its file
chose.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array
from ramify.core.errors import RamifyError
from ramify.kernels.queries import kinematics
from ramify.loops.assemble import assemble
from ramify.model.body import Body, Shape
from ramify.model.frame import Frame, align_z
from ramify.model.robot import Robot
from ramify.sim.run_record import Run
from ramify.view.geometry import Triangles, joined, shape_triangles
from ramify.view.meshes import robot_meshes

MODULES: Final = (
    "#3d7fe3",
    "#df8a47",
    "#4da16c",
    "#b85b97",
    "#5f4fae",
    "#d9bc3d",
    "#59bcc8",
    "#a83c38",
)
"""Colours of the modules, in order and over again; they differ for colour-blind readers too."""
JOINT: Final = "#39424e"
BASE: Final = "#7b8794"
PLAIN: Final = "#8fa3b8"
GROUND: Final = "#b4bec9"
AROUND: Final = 24
LONGEST: Final = 0.9
"""The longest arrow of a force, in sizes of the robot."""


@dataclass(frozen=True, eq=False)
class ScenePart:
    """Triangles in the frame of a body (-1: the world), what they stand for ("link", "joint",
    "base" or "ground"), and the colour of their material; empty: they have none.
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
        count = sum(len(part.triangles.faces) for part in links)
        return 2 * sum(len(part.triangles.faces) for part in links if part.paint) > count

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
        found = {b: module.index for module in self.model.modules for b in module.bodies}
        return [found[b] for b in range(len(self.model.bodies))]

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
            box = np.array(
                [
                    [a, b, c]
                    for a in (low[0], high[0])
                    for b in (low[1], high[1])
                    for c in (low[2], high[2])
                ]
            )
            turn, shift = (
                (R[..., part.body, :, :], r[..., part.body, :])
                if part.body >= 0
                else (self.up, np.zeros(3))
            )
            placed = np.einsum("...ij,kj->...ki", turn, box) + shift[..., None, :]
            lows.append(np.broadcast_to(placed.min(axis=-2), (*r.shape[:-2], 3)))
            highs.append(np.broadcast_to(placed.max(axis=-2), (*r.shape[:-2], 3)))
        if not lows:
            return r.min(axis=-2), r.max(axis=-2)
        return np.min(lows, axis=0), np.max(highs, axis=0)


def _paler(colour: str) -> str:
    return "#" + "".join(
        f"{round(0.62 * int(colour[i : i + 2], 16) + 0.38 * 255):02x}" for i in (1, 3, 5)
    )


def make_scene(model: Robot, around: int = AROUND) -> Scene:
    """The scene of a robot: its shapes and meshes; a link that has neither is a rod from joint to
    joint. Round shapes of links have so many corners around.
    """
    notes: list[str] = []
    meshes: dict[int, list[tuple[Triangles, str]]] = {}
    for owner, triangles, paint in robot_meshes(model, notes):
        meshes.setdefault(owner, []).append((triangles, paint))
    size = _extent(model)
    parts: list[ScenePart] = []
    for b, body in enumerate(model.bodies):
        drawn = meshes.get(b) or [
            (shape_triangles(shape, around), shape.colour) for shape in body.shapes
        ]
        if drawn:
            parts += _by_paint(b, "link", drawn)
            ties = [] if b in meshes else list(_ties(model, b, size, around))
            parts += [ScenePart(b, "joint", joined(ties))] if ties else []
        else:
            rods, hinge = _plain(model, b, size, around)
            parts += [ScenePart(b, "link", joined(rods))] if rods else []
            parts += [ScenePart(b, "joint", hinge)] if hinge is not None else []
    base = meshes.get(-1) or [
        (_foot(body, size, upright(model)), "")
        for body in model.bodies
        if body.parent < 0 and body.joint.kind not in ("free", "free_euler", "planar")
    ]
    parts += _by_paint(-1, "base", base)
    parts += _closing(model, size)
    return Scene(model, tuple(parts), _points(model), upright(model), size, tuple(notes))


def _by_paint(body: int, kind: str, drawn: list[tuple[Triangles, str]]) -> Iterator[ScenePart]:
    """One part for each colour."""
    for paint in dict.fromkeys(paint for _, paint in drawn):
        own = joined(triangles for triangles, other in drawn if other == paint)
        yield ScenePart(body, kind, own, paint)


def upright(model: Robot) -> Array:
    """The rotation (3, 3) that takes the opposite of gravity to z; none without gravity."""
    g = np.array(model.gravity)
    strength = float(np.linalg.norm(g))
    return align_z(-g / strength).T if strength > 0.0 else np.eye(3)


def _extent(model: Robot) -> float:
    """The size of the robot at rest: the largest distance between its points, at least a
    centimetre.
    """
    R, r = kinematics(model, rest(model))
    points = [r]
    for b, body in enumerate(model.bodies):
        own = [body.com, *(np.array(at) for _, at in body.points)]
        own += [
            shape.frame.position + s * shape.frame.rotation @ _half(shape)
            for shape in body.shapes
            for s in (-1.0, 1.0)
        ]
        points.append(np.array(own) @ R[b].T + r[b])
    every = np.concatenate([np.zeros((1, 3)) if not floats(model) else r[:1], *points])
    return max(float(np.linalg.norm(np.ptp(every, axis=0))), 0.01)


def rest(model: Robot) -> Array:
    """q (nq): every joint at zero; loops closed, where they can be."""
    if not model.loops:
        return model.neutral()
    try:
        return np.asarray(assemble(model).q, dtype=np.float64)
    except RamifyError:
        return model.neutral()


def _closing(model: Robot, size: float) -> Iterator[ScenePart]:
    """The joints that close loops: drums on their axes, balls where they have none."""
    for loop in model.loops:
        if loop.kind in ("gear", "distance"):
            continue
        body, frame = (
            model.attached[loop.first.link] if loop.first.link is not None else (-1, Frame())
        )
        place = frame @ loop.first.frame
        turn = place.rotation @ align_z(np.array(loop.axis))
        drum = Shape("cylinder", (0.014 * size, 0.03 * size), Frame(turn, place.position))
        ball = Shape("sphere", (0.016 * size,), Frame(position=place.position))
        yield ScenePart(
            body,
            "joint",
            shape_triangles(drum if loop.kind in ("revolute", "cylindrical") else ball),
        )


def _ends(model: Robot, b: int) -> list[Array]:
    """Where other bodies hang on a body, in its frame: their joints, and the joints that close
    loops.
    """
    found = [other.joint.placement.position for other in model.bodies if other.parent == b]
    for loop in model.loops:
        for end in (loop.first, loop.second):
            if loop.kind != "gear" and end.link is not None and model.attached[end.link].body == b:
                found.append((model.attached[end.link].frame @ end.frame).position)
    return found


def _half(shape: Shape) -> Array:
    """Half the edges of the box around a shape, in its own frame."""
    match shape.kind, shape.size:
        case "box", (x, y, z):
            return np.array([x, y, z]) / 2
        case "sphere", (radius, *_):
            return np.full(3, radius)
        case kind, (radius, length, *_):
            return np.array([radius, radius, length / 2 + (radius if kind == "capsule" else 0.0)])
    raise AssertionError(shape)


def _ties(model: Robot, b: int, size: float, around: int) -> Iterator[Triangles]:
    """Thin rods from the joints of a body to its shapes, where these leave a gap."""
    body = model.bodies[b]
    ends = (
        []
        if body.joint.kind in ("free", "free_euler", "planar")
        else [body.joint.outlet.inverse().position]
    )
    for end in [*ends, *_ends(model, b)]:
        near = [_nearest(shape, end) for shape in body.shapes]
        at = min(near, key=lambda point, end=end: float(np.linalg.norm(point - end)))  # type: ignore[misc]
        if np.linalg.norm(at - end) > 0.015 * size:
            yield rod(end, at, 0.008 * size, around)


def _nearest(shape: Shape, point: Array) -> Array:
    """The point of the box around a shape that is nearest to another."""
    frame, half = shape.frame, _half(shape)
    found: Array = (
        frame.rotation @ np.clip(frame.rotation.T @ (point - frame.position), -half, half)
        + frame.position
    )
    return found


def rod(start: Array, end: Array, radius: float, around: int = AROUND) -> Triangles:
    """A capsule from one point to another."""
    length = float(np.linalg.norm(end - start))
    frame = Frame(align_z((end - start) / length), (start + end) / 2)
    return shape_triangles(Shape("capsule", (min(radius, 0.2 * length), length), frame), around)


def floats(model: Robot) -> bool:
    """Whether nothing holds the robot to the world."""
    return all(
        body.joint.kind in ("free", "free_euler", "planar")
        for body in model.bodies
        if body.parent < 0
    )


def _plain(
    model: Robot, b: int, size: float, around: int
) -> tuple[list[Triangles], Triangles | None]:
    """A body without shapes: rods from its joint to those it carries, or to its far end, and the
    joint itself.
    """
    body = model.bodies[b]
    inlet = body.joint.outlet.inverse()
    start = inlet.position
    ends = _ends(model, b)
    ends += [np.array(at) for _, at in body.points] if not ends else []
    if not ends and body.mass > 0.0:
        ends = [start + 2.0 * (body.com - start)]
    radius = 0.012 * size
    rods = []
    for end in ends:
        if np.linalg.norm(end - start) > 1e-3 * size:
            rods.append(rod(start, end, radius, around))
    if not rods and body.mass > 0.0:
        ball = Shape("sphere", (1.8 * radius,), Frame(position=body.com))
        rods.append(shape_triangles(ball, around))
    return rods, _hinge(body, inlet, radius)


def _hinge(body: Body, inlet: Frame, radius: float) -> Triangles | None:
    """The joint of a body: a drum about its axis, a slide along it, or a ball."""
    along = Frame(inlet.rotation @ align_z(np.array(body.joint.axis)), inlet.position)
    match body.joint.kind:
        case "revolute" | "helical" | "cylindrical":
            return shape_triangles(Shape("cylinder", (1.7 * radius, 4.0 * radius), along))
        case "prismatic":
            return shape_triangles(Shape("box", (3.2 * radius, 3.2 * radius, 6.0 * radius), along))
        case "universal" | "spherical" | "ball":
            return shape_triangles(Shape("sphere", (1.9 * radius,), inlet))
    return None


def _foot(body: Body, size: float, up: Array) -> Triangles:
    """Where a robot is fixed to the world: a drum on its first joint's axis, or a disc under the
    joint.
    """
    place = body.joint.placement
    if body.joint.kind in ("revolute", "helical", "cylindrical"):
        turn = place.rotation @ align_z(np.array(body.joint.axis))
    else:
        turn = up.T
    return shape_triangles(
        Shape("cylinder", (0.026 * size, 0.022 * size), Frame(turn, place.position))
    )


def _points(model: Robot) -> tuple[Point, ...]:
    found = [
        Point(f"{name} of {body.name}", b, at)
        for b, body in enumerate(model.bodies)
        for name, at in body.points
    ]
    carried = {body.parent for body in model.bodies}
    for b, body in enumerate(model.bodies):
        if b not in carried and not body.points:
            start = body.joint.outlet.inverse().position
            far = start + 2.0 * (body.com - start)
            found.append(
                Point(f"end of {body.name}", b, (float(far[0]), float(far[1]), float(far[2])))
            )
    found += [Point(body.name, b, (0.0, 0.0, 0.0)) for b, body in enumerate(model.bodies)]
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Arrows:
    """Forces to draw, z up: names (n), positions (T, n, 3) in m and forces (T, n, 3) in N."""

    names: tuple[str, ...]
    position: Array
    force: Array

    def drawn(self, scene: Scene) -> Array:
        """The forces as arrows (T, n, 3) in m: none where they are tiny, shorter where they would
        leave the picture.
        """
        arrows = arrow_scale(scene, self.force) * np.nan_to_num(self.force)
        length = np.linalg.norm(arrows, axis=-1, keepdims=True)
        longest = LONGEST * scene.size
        fit = np.minimum(1.0, longest / np.maximum(length, 1e-300))
        found: Array = np.where(length > 1e-3 * scene.size, fit * arrows, 0.0)
        return found


def arrow_scale(scene: Scene, force: Array) -> float:
    """Metres per newton: the robot's weight is an arrow of a third of its size; without gravity the
    largest force a half.
    """
    weight = scene.model.mass * float(np.linalg.norm(scene.model.gravity))
    largest = float(np.linalg.norm(np.nan_to_num(force), axis=-1).max(initial=0.0))
    return scene.size / (3.0 * weight) if weight > 0.0 else 0.5 * scene.size / max(largest, 1e-9)


def contact_arrows(result: Run, up: Array) -> Arrows | None:
    """The contact forces of a run, where it has any."""
    contacts = result.contacts
    if contacts is None or not len(contacts):
        return None
    return Arrows(contacts.names, contacts.position @ up.T, contacts.force @ up.T)


def floor_height(scene: Scene, low: Array, high: Array, ground: float | None) -> float:
    """Where the floor is drawn, m: on the ground where there is one; at zero for a robot that is
    above it for the most part.

    Else under the robot. low, high (T,): its lowest and highest point over time. A robot that falls
    without a ground has its floor where it started.
    """
    if ground is not None:
        return ground
    least = float(low[0]) if floats(scene.model) else float(low.min())
    standing = least > -0.03 * scene.size or (
        not floats(scene.model) and float(np.mean(low + high)) > 0.0
    )
    return 0.0 if standing else least - 0.02 * scene.size


@dataclass(frozen=True)
class Camera:
    """Where a scene is seen from: ``yaw`` and ``pitch`` (rad) around a ``target`` (m); ``size`` is
    what must be seen, m.

    ``floor`` is the floor's height and ``cell`` the width of its squares, m.
    """

    target: tuple[float, float, float]
    size: float
    yaw: float
    pitch: float
    floor: float
    cell: float


def _hinge_axis(scene: Scene) -> int | None:
    """The level axis (0: x, 1: y) along which all hinges of a robot lie, at rest; None: there is
    none.
    """
    R, _ = scene.poses(rest(scene.model))
    joints = ((b, body.joint) for b, body in enumerate(scene.model.bodies))
    axes = [
        R[b] @ joint.outlet.inverse().rotation @ np.array(joint.axis)
        for b, joint in joints
        if joint.kind == "revolute"
    ]
    sizes = np.abs(axes).min(axis=0) if axes else np.zeros(3)
    best = int(sizes.argmax())
    return best if best < 2 and sizes[best] > 0.99 else None


def camera(scene: Scene, low: Array, high: Array, ground: float | None = None) -> Camera:
    """The camera of a run: around the robot as it starts where it floats, else around all that it
    does.

    low, high (T, 3): the corners around the robot over time; ground: the height of the ground,
    where there is one.
    """
    first, last = (low[0], high[0]) if floats(scene.model) else (low.min(axis=0), high.max(axis=0))
    extent = last - first
    size = max(float(np.linalg.norm(extent)), 0.5 * scene.size)
    yaw, pitch = -1.02, 0.26
    flat = [k for k in (0, 1) if extent[k] < 0.2 * extent.max()]
    across = _hinge_axis(scene)
    if across is not None or flat:
        # a robot that moves in a vertical plane is seen from where z of its file's world comes out
        axis = flat[-1] if across is None else across
        front = np.sign(scene.up[axis, 2]) or (-1.0 if axis else 1.0)
        yaw = 0.22 + (front * np.pi / 2 if axis else (0.0 if front > 0 else np.pi))
        pitch = 0.13
    cell = float(
        min(
            (k * 10.0**p for p in range(-4, 5) for k in (1, 2, 5)),
            key=lambda c: abs(np.log(c / (0.12 * size))),
        )
    )
    x, y, z = ((first + last) / 2).tolist()
    return Camera(
        (x, y, z), size, float(yaw), pitch, floor_height(scene, low[:, 2], high[:, 2], ground), cell
    )
