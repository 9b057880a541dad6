"""The ends of the loops on the links of the tree: what the texts of this folder know of a robot
besides its tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ramify.core.arrays import Array
from ramify.model.frame import Frame
from ramify.model.link import Pose
from ramify.model.loop import LENGTHS, Loop
from ramify.model.machine import Tendon
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
class TendonPiece:
    """A straight piece of a tendon between two ends, whose length counts ``factor`` times.
    ``moves``: see Closure.
    """

    first: End
    second: End
    moves: tuple[tuple[int, float], ...]
    factor: float


@dataclass(frozen=True)
class CoupledLength:
    """What a gear or coupling relates: the sum of coordinates, ``terms`` (link, factor), or of
    pieces of a tendon.
    """

    terms: tuple[tuple[int, float], ...] = ()
    pieces: tuple[TendonPiece, ...] = ()


@dataclass(frozen=True)
class Closure:
    """A loop on the tree. ``moves`` are the links between its ends: +1 those that carry the second
    end alone, -1 the first.

    ``sizes`` (m per unit) make its rows comparable: 1 for lengths, the robot's size for angles. A
    gear or coupling has no ends but the ``lengths`` (first, second) that it relates, or one alone.
    """

    loop: Loop
    first: End
    second: End
    moves: tuple[tuple[int, float], ...]
    sizes: tuple[float, ...]
    lengths: tuple[CoupledLength, ...] = ()


@once
def closures(model: Robot) -> tuple[Closure, ...]:
    """The loops of a model, each on the links of its skeleton."""
    size = reach(model)
    return tuple(
        _coupling(model, loop, size) if loop.couples else _closure(model, loop, size)
        for loop in model.loops
    )


@once
def reach(model: Robot) -> float:
    """A length of the robot's loops, m: the mean distance between a joint and what hangs on it; 1
    where all is in one point. Places on the base are measured from the first of them, wherever it
    stands; bodies outside the loops take no part, unless there are only gears.
    """
    inside = {b for loop in model.loops for b in _moving(model, loop)} or range(len(model.bodies))
    bodies = [body for b, body in enumerate(model.bodies) if b in inside]
    base: list[Array] = []
    places: list[Array] = []
    for body in bodies:
        if body.parent >= 0:
            places.append(body.joint.placement.position)
        elif not body.joint.kind.startswith("free"):  # which has no place
            base.append(body.joint.placement.position)
    for end in (end for loop in model.loops for end in (loop.first, loop.second)):
        (base if end.link is None else places).append(end.frame.position)
    places += [place - base[0] for place in base]
    spans = [float(np.linalg.norm(place)) for place in places]
    spans += [float(np.linalg.norm(body.com)) for body in bodies]
    lengths = [x for x in spans if x > 0.0]
    return sum(lengths) / len(lengths) if lengths else 1.0


def _moving(model: Robot, loop: Loop) -> set[int]:
    """The bodies between the ends of a loop, without the one from which both branch."""
    ways: list[set[int]] = []
    for end in (loop.first, loop.second):
        body = -1 if end.link is None else model.attachment(end.link).body
        ways.append(set(path_to_base([body.parent for body in model.bodies], body)))
    return ways[0] ^ ways[1]


ROUNDED = 1e-4
"""Share of a loop's size, or rad, by which rows that follow from others may miss: data are rounded.
"""


@once
def loop_sizes(model: Robot) -> tuple[float, ...]:
    """The size of each loop, m: the largest distance between two of its joints on one of its
    bodies; the robot's where all joints of a loop are in one point, and of a gear.
    """
    return tuple(_size(model, loop) or reach(model) for loop in model.loops)


def _size(model: Robot, loop: Loop) -> float:
    if loop.joints:
        return 0.0
    joints: dict[int, list[Array]] = {}  # places of the loop's joints by body, -1: the base
    for end in (loop.first, loop.second):
        body, place = (-1, Frame()) if end.link is None else model.attachment(end.link)
        joints.setdefault(body, []).append((place @ end.frame).position)
    for body in _moving(model, loop):
        joint = model.bodies[body].joint
        joints.setdefault(body, []).append(joint.outlet.inverse().position)
        joints.setdefault(model.bodies[body].parent, []).append(joint.placement.position)
    return max(
        float(np.linalg.norm(a - b)) for places in joints.values() for a in places for b in places
    )


@once
def rounding(model: Robot) -> Array:
    """(nc,), m: how far each row may miss because data are rounded, angles times the robot's
    size.
    """
    return np.array(
        [
            ROUNDED * (size if row in LENGTHS else unit)
            for closure, size in zip(closures(model), loop_sizes(model), strict=True)
            for row, unit in zip(closure.loop.rows, closure.sizes, strict=True)
        ]
    )


def constraint_names(model: Robot) -> tuple[str, ...]:
    """A name per constraint."""
    return tuple(name for loop in model.loops for name in loop.names)


def constraint_count(model: Robot) -> int:
    """Number of constraints."""
    return sum(len(loop.rows) for loop in model.loops)


def _closure(model: Robot, loop: Loop, size: float) -> Closure:
    ends = [
        _end(model, link, frame)
        for link, frame in zip((loop.first.link, loop.second.link), loop.frames, strict=True)
    ]
    sizes = tuple(1.0 if row in LENGTHS else size for row in loop.rows)
    return Closure(loop, ends[0], ends[1], _between(model, *ends), sizes)


def _between(model: Robot, first: End, second: End) -> tuple[tuple[int, float], ...]:
    """The links that carry one end alone: -1 the first, +1 the second."""
    one, other = (set(path_to_base(model.skeleton.parents, end.link)) for end in (first, second))
    return (*((k, -1.0) for k in sorted(one - other)), *((k, 1.0) for k in sorted(other - one)))


def _coupling(model: Robot, loop: Loop, size: float) -> Closure:
    base = End(-1, as_pose(Frame()))
    tendons = {tendon.name: tendon for tendon in model.tendons}
    lengths = [CoupledLength(((_link(model, name), 1.0),)) for name in loop.joints]
    lengths += [_length(model, tendons[name]) for name in loop.tendons]
    links = [model.skeleton.links[k] for k, _ in lengths[-1].terms]
    turning = bool(links) and all(link.p.rho != 0.0 for link in links)
    return Closure(loop, base, base, (), (size if turning else 1.0,), tuple(lengths))


def _link(model: Robot, coordinate: str) -> int:
    """The link of a coordinate."""
    return model.layout.to_v[model.coordinates.index(coordinate)]


def _length(model: Robot, tendon: Tendon) -> CoupledLength:
    terms = tuple((_link(model, name), factor) for name, factor in tendon.joints)
    pieces = []
    for divisor, names in tendon.branches:
        for pair in pairwise(_frame_end(model, name) for name in names):
            pieces.append(TendonPiece(*pair, _between(model, *pair), 1.0 / divisor))
    return CoupledLength(terms, tuple(pieces))


def _frame_end(model: Robot, name: str) -> End:
    """A frame of the robot as an end."""
    body, frame = model.frames[name]
    if body < 0:
        return End(-1, as_pose(frame))
    k = model.skeleton.last[body]
    return End(k, as_pose(model.skeleton.seat(k) @ frame))


def _end(model: Robot, link: str | None, frame: Frame) -> End:
    if link is None:
        return End(-1, as_pose(frame))
    body, place = model.attachment(link)
    if body < 0:
        return End(-1, as_pose(place @ frame))
    k = model.skeleton.last[body]
    return End(k, as_pose(model.skeleton.seat(k) @ place @ frame))
