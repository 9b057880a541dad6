"""Legs of two links whose joints are found in closed form (appendix B.1.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Final, NoReturn

import numpy as np

from ramify.contact.terrain import level_axes
from ramify.core.arrays import Array
from ramify.core.errors import ModelError, StateError
from ramify.core.records import settle
from ramify.core.scalar import Scalar, atan2, cos, sin, sqrt
from ramify.documents.forms import Choice, Numbers
from ramify.model.body import Body
from ramify.model.build import point_of
from ramify.model.frame import rotation_about
from ramify.model.joint import AXES
from ramify.model.robot import Robot, the_robot

HIPS: Final = ("Y", "XY", "ZXY", "YX")
ANKLES: Final = ("", "Y", "YX")
CLEARANCE: Final = 0.01
"""Part of its length by which an ankle stays below its hip: level with the hip, the angles of the
leg jump by half a turn.
"""


@dataclass(frozen=True)
class Leg:
    """A thigh, a shank, and perhaps a foot that is kept level.

    Axes are X ahead, Y to the left, Z up. hip: the hip's place in the trunk, (x, y, z) in m. hips,
    ankle: the axes about which hip and ankle turn, in order; a hip turns about Y, about X and Y,
    about Z, X and Y, or about Y and X, a knee about Y, an ankle about Y, about Y and X, or there is
    none. thigh, shank: m. sole: height of the ankle above the ground when the foot stands, m.
    signs, zeros: where given, a coordinate is sign (angle - zero), the angles being zero where the
    leg hangs straight down with a level foot; down: that direction in the frame of the last body.
    """

    name: str
    hip: Annotated[tuple[float, float, float], Numbers(3)]
    thigh: float
    shank: float
    hips: Annotated[str, Choice(HIPS)] = "Y"
    ankle: Annotated[str, Choice(ANKLES)] = ""
    sole: float = 0.0
    signs: tuple[float, ...] = ()
    zeros: tuple[float, ...] = ()
    down: Annotated[tuple[float, float, float], Numbers(3)] = (0.0, 0.0, -1.0)

    def __post_init__(self) -> None:
        settle(self, signs=tuple(self.signs), zeros=tuple(self.zeros))

    @property
    def dof(self) -> int:
        return len(self.hips) + 1 + len(self.ankle)

    @property
    def reach(self) -> float:
        return self.thigh + self.shank

    def angles(self, x: Scalar, y: Scalar, z: Scalar) -> list[Scalar]:
        """The joint angles that bring the ankle to (x, y, z), m, seen from the hip of an upright
        trunk (B.11), over any scalar.

        The foot stays level, the knee bends backwards, the leg does not turn about Z. A hip about Y
        alone, or about Y before X, has y = 0.
        """
        sideways = "XY" in self.hips
        aside = atan2(y, -z) if sideways else 0.0
        down = sqrt(y * y + z * z) if sideways else -z
        squares = x * x + down * down - (self.thigh**2 + self.shank**2)
        bend = squares * (0.5 / (self.thigh * self.shank))
        knee = atan2(sqrt(1.0 - bend * bend), bend)
        swing = atan2(-x, down) - atan2(self.shank * sin(knee), self.thigh + self.shank * cos(knee))
        hip = {"Z": 0.0, "X": aside, "Y": swing}
        ankle = {"Y": -(swing + knee), "X": -aside}
        found = [*(hip[axis] for axis in self.hips), knee, *(ankle[axis] for axis in self.ankle)]
        if not self.signs:
            return found
        shifts = zip(found, self.signs, self.zeros, strict=True)
        return [sign * (angle - zero) for angle, sign, zero in shifts]


def level_frames(model: Robot) -> tuple[Array, Array]:
    """Two frames (3, 3) with the columns ahead, left and up in the world: up is against gravity,
    ahead along x (y where x points up), or along the other level axis. Raises StateError for a
    robot without gravity.
    """
    the_robot(model)
    size = float(np.linalg.norm(model.gravity))
    if size == 0.0:
        raise StateError(f"{model.name} has no gravity; a gait needs one to know what is up")
    ahead, left, up = (np.array(x) for x in level_axes(tuple(-np.array(model.gravity) / size)))
    other = left * (1.0 if left.sum() > 0.0 else -1.0)
    return np.column_stack([ahead, left, up]), np.column_stack([other, np.cross(up, other), up])


def walking_legs(model: Robot, attitude: Sequence[float] = ()) -> tuple[tuple[Leg, ...], Array]:
    """The legs of a robot and the frame in which they are: that of the first level axis along
    which its knees bend. attitude: angles, rad, at which its free_euler base walks; none: all zero.
    """
    first, other = level_frames(model)
    turn = np.eye(3)
    for letter, angle in zip(model.joints[0].sequence, attitude, strict=False):
        turn = turn @ rotation_about(AXES[letter], angle)
    try:
        return _legs(model, turn.T @ first), first
    except ModelError:
        with suppress(ModelError):
            return _legs(model, turn.T @ other), other
        raise


def legs(model: Robot) -> tuple[Leg, ...]:
    """The legs on the first body of a robot, in order, each called after its hip.

    Raises ModelError, naming the body, where a chain on the first body is not such a leg.
    """
    return walking_legs(model)[0]


def _legs(model: Robot, frame: Array) -> tuple[Leg, ...]:
    parents = model.parents
    children = [[i for i, j in enumerate(parents) if j == k] for k in range(len(parents))]
    if parents.count(-1) != 1 or not children[0]:
        raise ModelError(
            f"{model.name} is not a trunk with legs; a gait needs one first body and chains that "
            "hang on it"
        )
    legs: list[Leg] = []
    expected = 1
    for first in children[0]:
        chain = [first]
        while len(children[chain[-1]]) == 1:
            chain += children[chain[-1]]
        if children[chain[-1]] or len(chain) not in (2, 3):
            why = f"has {len(chain)} links before it ends or forks"
            _refuse(model.bodies[first], f"{why}; it needs thigh and shank, perhaps a foot")
        if chain != list(range(expected, expected + len(chain))):
            why = "is numbered among other legs; number the links leg by leg"
            _refuse(model.bodies[first], why)
        expected += len(chain)
        legs.append(_leg([model.bodies[i] for i in chain], frame))
    return tuple(legs)


def _leg(chain: list[Body], level: Array) -> Leg:
    """The leg that a chain forms, from its joints at zero, in the level axes of the trunk."""
    R, r = level.T, np.zeros(3)
    places, turned, axes = [], [], []
    for body in chain:
        joint = body.joint
        if np.abs(joint.outlet.position).max() > 1e-12:
            _refuse(body, "has its frame beside its joint; it must lie on it")
        r = r + R @ joint.placement.position
        R = R @ joint.placement.rotation
        axes.append([(R @ step.axis, step.rho) for step in joint.steps])
        R = R @ joint.outlet.rotation
        places.append(r)
        turned.append(R)
    foot = len(chain) == 3
    end = places[2] if foot else places[1] + turned[1] @ _farthest(chain[1])
    roll, (first, rho) = 0.0, axes[0][0]
    aside = places[1][1] - places[0][1]
    if abs(aside) > 1e-9 and rho and abs(abs(first[0]) - 1.0) < 1e-9:
        roll = float(np.arctan2(aside, places[0][2] - places[1][2]))  # about X, from down
        back = _about(0, -roll)
        end = places[0] + back @ (end - places[0])
        places = [places[0] + back @ (place - places[0]) for place in places]
        turned = [back @ one for one in turned]
        axes = [[(back @ axis, rho) for axis, rho in joint_axes] for joint_axes in axes]
    thigh, shank = places[1] - places[0], end - places[1]
    for body, way in zip(chain, (thigh, shank), strict=False):
        if abs(way[1]) > 1e-9 or np.hypot(way[0], way[2]) < 1e-9:
            shown = [round(float(x), 6) for x in way]
            _refuse(body, f"leads along {shown} at zero; it must lie in the plane of its swing")
    turn = [float(np.arctan2(-way[0], -way[2])) for way in (thigh, shank)]  # about Y, from down
    last = _tilt(chain[2], turned[2]) if foot else turn[1]
    letters, signs, zeros = _turns(chain, axes, (0.0, turn[0], turn[1], last), roll)
    hips, knee, *ankle = letters
    if roll and (foot or hips[0] != "X"):
        _refuse(chain[0], "lies beside the plane of its swing at zero, which a foot does not allow")
    if hips not in HIPS or knee != "Y" or (ankle and ankle[0] not in ANKLES[1:]):
        words, hips = ", ".join(word or "nothing" for word in letters), " or ".join(HIPS)
        right = f"hips turn about {hips}, knees about Y, ankles about Y or YX"
        _refuse(chain[0], f"turns about {words}; {right}")
    down = turned[-1].T @ _about(1, last) @ np.array([0.0, 0.0, -1.0])
    down = np.round(down, 15) + 0.0
    sole = max(0.0, _depth(chain[2], down)) if foot else 0.0
    plain = all(sign == 1.0 for sign in signs) and not any(abs(zero) > 1e-12 for zero in zeros)
    signs, zeros = ([], []) if plain else (signs, zeros)
    long, lower = (float(np.hypot(way[0], way[2])) for way in (thigh, shank))
    name, hip, turns = chain[0].joint.name, point_of(places[0]), (tuple(signs), tuple(zeros))
    return Leg(name, hip, long, lower, hips, "".join(ankle), sole, *turns, point_of(down))


def _turns(
    chain: list[Body], axes: list[list[tuple[Array, float]]], turns: Sequence[float], roll: float
) -> tuple[list[str], list[float], list[float]]:
    """(letters by joint, signs and zeros by coordinate) of the joints of a leg. ``turns``: angles
    about Y, rad, at zero of what carries each joint and of the last link; ``roll``: zero of a first
    turn about X.
    """
    letters: list[str] = []
    signs: list[float] = []
    zeros: list[float] = []
    for body, joint_axes, before, after in zip(chain, axes, turns, turns[1:], strict=False):
        through = before
        word = ""
        for axis, rho in joint_axes:
            letter, sign = _letter(body, _about(1, -through) @ axis, rho)
            zeros.append(after - before if letter == "Y" else roll if not zeros else 0.0)
            through = after if letter == "Y" else through
            word += letter
            signs.append(sign)
        letters.append(word)
    return letters, signs, zeros


def _about(axis: int, angle: float) -> Array:
    return rotation_about(np.eye(3)[axis].tolist(), angle)


def _points(body: Body) -> Array:
    """(n, 3): the points of contact of a body, in its frame."""
    if not body.points:
        _refuse(body, "has no points of contact; give it the points that touch the ground")
    return np.array([point for _, point in body.points])


def _farthest(body: Body) -> Array:
    points = _points(body)
    found: Array = points[np.linalg.norm(points, axis=1).argmax()]
    return found


def _tilt(foot: Body, R: Array) -> float:
    """The turn about Y of a foot at zero, from level, by the longest way between its points."""
    points = _points(foot) @ R.T
    ways = (points[:, None] - points[None])[..., (0, 2)].reshape(-1, 2)
    x, z = ways[np.linalg.norm(ways, axis=1).argmax()]
    return float(np.arctan2(-z, x)) if x > 0.0 else float(np.arctan2(z, -x))


def _depth(body: Body, down: Array) -> float:
    """How far down the points of contact of a body reach."""
    return float((_points(body) @ down).max())


def _letter(body: Body, axis: Array, rho: float) -> tuple[str, float]:
    for letter, x in zip("XYZ", axis, strict=True):
        if rho and abs(abs(x) - 1.0) < 1e-9:
            return letter, float(np.sign(x))
    shown = [round(float(x), 6) for x in axis]
    _refuse(body, f"moves along or about {shown}; the joints of a leg turn about X, Y or Z")


def _refuse(body: Body, why: str) -> NoReturn:
    raise ModelError(
        f"leg at {body.name!r}: it {why}. For other legs use ramify.motion.inverse_kinematics and "
        "a Spline"
    )


def soles(model: Robot, legs: Sequence[Leg]) -> list[tuple[int, int, Array]]:
    """(leg, body, point (3,) in its frame) of every point on which a leg stands: the lowest ones of
    its last body.
    """
    out: list[tuple[int, int, Array]] = []
    hips = [leg.name for leg in legs]
    ends: dict[int, int] = {}
    leg = -1
    for b, body in enumerate(model.bodies):
        leg = hips.index(body.joint.name) if body.joint.name in hips else leg
        if leg >= 0:
            ends[leg] = b
    for leg, b in ends.items():
        down = np.array(legs[leg].down)
        low = _depth(model.bodies[b], down)
        out += [
            (leg, b, np.array(point))
            for _, point in model.bodies[b].points
            if np.dot(point, down) > low - 1e-9
        ]
    return out


def reaches(leg: Leg, x: float, y: float, z: float) -> bool:
    """Whether the ankle can be brought to (x, y, z), below the hip by a hundredth of the leg or
    more, with the knee bent.
    """
    return (
        z <= -CLEARANCE * leg.reach
        and abs(leg.thigh - leg.shank) < math.sqrt(x * x + y * y + z * z) < leg.reach
    )
