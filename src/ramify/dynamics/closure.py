"""The ends of the loops on the links of the tree: what the texts of this folder know of a robot
besides its tree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ramify.model.frame import Frame
from ramify.model.link import Pose
from ramify.model.loop import LENGTHS, Loop
from ramify.model.robot import Robot, once
from ramify.model.skeleton import as_pose, path_to_base


@dataclass(frozen=True)
class End:
    """One side of a closing joint: a link (-1: the base) and the joint's frame in it; of the base
    in the world.
    """

    link: int
    frame: Pose


@dataclass(frozen=True)
class Closure:
    """A loop on the tree. ``moves`` are the links between its ends: +1 those that carry the second
    end alone, -1 the first.

    ``sizes`` (m per unit) make its rows comparable: 1 for lengths, the robot's size for angles. A
    gear has no ends but the links of its two coordinates.
    """

    loop: Loop
    first: End
    second: End
    moves: tuple[tuple[int, float], ...]
    sizes: tuple[float, ...]
    geared: tuple[int, ...] = ()


@once
def closures(model: Robot) -> tuple[Closure, ...]:
    """The loops of a model, each on the links of its skeleton."""
    size = reach(model)
    return tuple(
        _gear(model, loop, size) if loop.joints else _closure(model, loop, size)
        for loop in model.loops
    )


@once
def reach(model: Robot) -> float:
    """A length of the robot, m: the mean distance between a joint and what hangs on it; 1 where all
    is in one point.
    """
    spans = [float(np.linalg.norm(body.joint.placement.position)) for body in model.bodies]
    spans += [
        float(np.linalg.norm(end.frame.position))
        for loop in model.loops
        for end in (loop.first, loop.second)
    ]
    spans += [float(np.linalg.norm(body.com)) for body in model.bodies]
    lengths = [x for x in spans if x > 0.0]
    return sum(lengths) / len(lengths) if lengths else 1.0


def names(model: Robot) -> tuple[str, ...]:
    """A name per constraint."""
    return tuple(name for loop in model.loops for name in loop.names)


def count(model: Robot) -> int:
    """Number of constraints."""
    return sum(len(loop.rows) for loop in model.loops)


def _closure(model: Robot, loop: Loop, size: float) -> Closure:
    ends = [
        _end(model, link, frame)
        for link, frame in zip((loop.first.link, loop.second.link), loop.frames, strict=True)
    ]
    carried = [set(path_to_base(model.skeleton.parents, end.link)) for end in ends]
    moves = [(k, -1.0) for k in sorted(carried[0] - carried[1])] + [
        (k, 1.0) for k in sorted(carried[1] - carried[0])
    ]
    sizes = tuple(1.0 if row in LENGTHS else size for row in loop.rows)
    return Closure(loop, ends[0], ends[1], tuple(moves), sizes)


def _gear(model: Robot, loop: Loop, size: float) -> Closure:
    places = [model.coordinates.index(name) for name in loop.joints]
    base = End(-1, as_pose(Frame()))
    geared = tuple(model.layout.to_v[i] for i in places)
    turning = model.skeleton.links[geared[1]].p.rho != 0.0
    moves = ((geared[0], -loop.ratio), (geared[1], 1.0))
    return Closure(loop, base, base, moves, (size if turning else 1.0,), geared)


def _end(model: Robot, link: str | None, frame: Frame) -> End:
    if link is None:
        return End(-1, as_pose(frame))
    body, place = model.attachment(link)
    if body < 0:
        return End(-1, as_pose(place @ frame))
    k = model.skeleton.last[body]
    return End(k, as_pose(model.skeleton.seat(k) @ place @ frame))
