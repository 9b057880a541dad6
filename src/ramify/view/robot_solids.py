"""What stands for a robot where its file has no shapes: rods from joint to joint, drums, slides and
balls for joints, a foot at the base; and its size and pose at rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import RamifyError
from ramify.kernels.queries import kinematics
from ramify.loops.assemble import assemble
from ramify.model.body import Body
from ramify.model.frame import Frame, align_z, point_seen
from ramify.model.loop import Loop
from ramify.model.robot import Robot
from ramify.model.shape import Shape
from ramify.view.geometry import Triangles, join_triangles, shape_triangles

AROUND: Final = 24
"""Corners of round shapes."""


def upright(model: Robot) -> Array:
    """The rotation (3, 3) that takes the opposite of gravity to z; none without gravity."""
    g = np.array(model.gravity)
    strength = float(np.linalg.norm(g))
    return align_z(-g / strength).T if strength > 0.0 else np.eye(3)


def is_unattached(model: Robot) -> bool:
    """Whether nothing holds the robot to the world."""
    return all(body.joint.moves_base for body in model.bodies if body.parent < 0)


def extent(model: Robot) -> float:
    """The size of the robot at rest: the largest distance between its points, at least a
    centimetre.
    """
    R, r = kinematics(model, rest(model))
    points = [r]
    for b, body in enumerate(model.bodies):
        corners = [body.com, *(np.array(at) for _, at in body.points)]
        corners += [
            point_seen(shape.frame, s * _half(shape))
            for shape in body.drawn_shapes
            for s in (-1.0, 1.0)
        ]
        points.append(np.array(corners) @ R[b].T + r[b])
    every = np.concatenate([np.zeros((1, 3)) if not is_unattached(model) else r[:1], *points])
    return max(float(np.linalg.norm(np.ptp(every, axis=0))), 0.01)


def rest(model: Robot) -> Array:
    """q (nq): every joint at zero; loops closed, where they can be."""
    if not model.loops:
        return model.neutral()
    try:
        return np.asarray(assemble(model).q, dtype=np.float64)
    except RamifyError:
        return model.neutral()


def _ends(model: Robot, b: int) -> list[Array]:
    """Where other bodies hang on a body, in its frame: their joints, and the joints that close
    loops.
    """
    found = [other.joint.placement.position for other in model.bodies if other.parent == b]
    for loop in model.loops:
        for end in (loop.first, loop.second):
            if not loop.couples and end.link is not None and model.attached[end.link].body == b:
                found.append((model.attached[end.link].frame @ end.frame).position)
    return found


def _repeats(model: Robot, loop: Loop) -> bool:
    """Whether a loop joins a part of a body to the body, which is drawn: at the joint of the part,
    the frames of both one upon the other.
    """
    part = next((body for body in model.bodies if body.name == loop.second.link), None)
    if part is None or loop.kind != "fixed":
        return False
    return all(
        np.allclose(frame.rotation, loop.second.frame.rotation)
        and np.allclose(frame.position, loop.second.frame.position)
        for frame in (loop.first.frame, part.joint.outlet.inverse())
    )


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


def closing(model: Robot, size: float) -> Iterator[tuple[int, Triangles]]:
    """The joints that close loops, each with its body: drums on their axes, balls where they have
    none.
    """
    for loop in model.loops:
        if loop.couples or loop.kind == "distance" or _repeats(model, loop):
            continue
        body, frame = (
            model.attached[loop.first.link] if loop.first.link is not None else (-1, Frame())
        )
        place = frame @ loop.first.frame
        turn = place.rotation @ align_z(np.array(loop.axis))
        drum = Shape("cylinder", (0.014 * size, 0.03 * size), Frame(turn, place.position))
        ball = Shape("sphere", (0.016 * size,), Frame(position=place.position))
        hinged = loop.kind in ("revolute", "cylindrical")
        yield body, shape_triangles(drum if hinged else ball)


def ties(model: Robot, b: int, size: float, around: int) -> Iterator[Triangles]:
    """Thin rods from the joints of a body to its shapes, where these leave a gap."""
    body = model.bodies[b]
    own = [] if body.joint.moves_base else [body.joint.outlet.inverse().position]
    for end in [*own, *_ends(model, b)]:
        near = [_nearest(shape, end) for shape in body.drawn_shapes]
        at = min(near, key=lambda point, end=end: float(np.linalg.norm(point - end)))  # type: ignore[misc]
        if np.linalg.norm(at - end) > 0.015 * size:
            yield rod(end, at, 0.008 * size, around)


def _nearest(shape: Shape, point: Array) -> Array:
    """The point of the box around a shape that is nearest to another."""
    frame, half = shape.frame, _half(shape)
    return point_seen(frame, np.clip(frame.rotation.T @ (point - frame.position), -half, half))


def rod(start: Array, end: Array, radius: float, around: int = AROUND) -> Triangles:
    """A capsule from one point to another."""
    length = float(np.linalg.norm(end - start))
    frame = Frame(align_z((end - start) / length), (start + end) / 2)
    return shape_triangles(Shape("capsule", (min(radius, 0.2 * length), length), frame), around)


def plain_body(
    model: Robot, b: int, size: float, around: int
) -> tuple[list[Triangles], Triangles | None]:
    """A body without shapes: rods from its joint to those it carries; where there are none, or all
    at its own joint, to its points of contact or its far end; and the joint itself, with the rails
    of bodies that slide along it. Of a part of a body that was split, the joint alone.
    """
    body = model.bodies[b]
    inlet = body.joint.outlet.inverse()
    start = inlet.position
    radius = 0.012 * size
    rods: list[Triangles] = []
    if any(loop.second.link == body.name and _repeats(model, loop) for loop in model.loops):
        return rods, _hinge(body, inlet, radius)
    for ends in (
        _ends(model, b),
        [np.array(at) for _, at in body.points],
        [start + 2.0 * (body.com - start)] if body.mass > 0.0 else [],
    ):
        far = [end for end in ends if np.linalg.norm(end - start) > 1e-3 * size]
        rods = rods or [rod(start, end, radius, around) for end in far]
    if not rods and body.mass > 0.0:
        ball = Shape("sphere", (1.8 * radius,), Frame(position=body.com))
        rods.append(shape_triangles(ball, around))
    rails = [rod(*ends, 0.4 * radius, around) for ends in _rails(model, b, 0.5 * size)]
    hinge = _hinge(body, inlet, radius)
    return rods, join_triangles([*rails, *([] if hinge is None else [hinge])]) if rails else hinge


def _rails(model: Robot, b: int, length: float) -> Iterator[tuple[Array, Array]]:
    """The ends of the rails on which other bodies slide along a body: as long as their limits
    allow, or of a length.
    """
    for other in model.bodies:
        joint = other.joint
        if other.parent == b and joint.kind == "prismatic" and not other.shapes:
            low, high = joint.limits[0] if joint.limits else (0.0, length)
            if not -np.inf < low < high < np.inf:
                low, high = 0.0, length
            start, way = joint.placement.position, joint.placement.rotation @ joint.axis
            yield start + low * way, start + high * way


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


def foot(body: Body, size: float, up: Array) -> Triangles:
    """Where a robot is fixed to the world: a drum on its first joint's axis, or a disc under the
    joint.
    """
    place, hinged = body.joint.placement, body.joint.kind in ("revolute", "helical", "cylindrical")
    turn = place.rotation @ align_z(np.array(body.joint.axis)) if hinged else up.T
    drum = Frame(turn, place.position)
    return shape_triangles(Shape("cylinder", (0.026 * size, 0.022 * size), drum))
