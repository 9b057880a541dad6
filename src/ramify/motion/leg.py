"""Legs of two links whose joints are found in closed form (appendix B.1.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.core.scalar import Scalar, atan2, cos, sin, sqrt
from ramify.model.body import Body
from ramify.model.robot import Robot

HIPS: Final = ("Y", "XY", "ZXY")
ANKLES: Final = ("", "Y", "YX")
CLEARANCE: Final = 0.01
"""Part of its length by which an ankle stays below its hip: level with the hip, the angles of the
leg jump by half a turn.
"""


@dataclass(frozen=True)
class Leg:
    """A thigh and a shank that hang straight down at zero, and perhaps a foot that is kept level.

    hip: the hip's place in the trunk, (x, y, z) in m. hips, ankle: the axes about which hip and
    ankle turn, in order; a hip turns about Y, about X and Y, or about Z, X and Y, a knee about Y,
    an ankle about Y, about Y and X, or there is none. thigh, shank: m. sole: height of the ankle
    above the ground when the foot stands, m.
    """

    name: str
    hip: tuple[float, float, float]
    thigh: float
    shank: float
    hips: str = "Y"
    ankle: str = ""
    sole: float = 0.0

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
        alone has y = 0.
        """
        aside = atan2(y, -z) if "X" in self.hips else 0.0
        down = sqrt(y * y + z * z) if "X" in self.hips else -z
        bend = (x * x + down * down - (self.thigh**2 + self.shank**2)) * (
            0.5 / (self.thigh * self.shank)
        )
        knee = atan2(sqrt(1.0 - bend * bend), bend)
        swing = atan2(-x, down) - atan2(self.shank * sin(knee), self.thigh + self.shank * cos(knee))
        hip = {"Z": 0.0, "X": aside, "Y": swing}
        ankle = {"Y": -(swing + knee), "X": -aside}
        return [*(hip[axis] for axis in self.hips), knee, *(ankle[axis] for axis in self.ankle)]


def legs(model: Robot) -> tuple[Leg, ...]:
    """The legs on the first body of a robot, in order, each called after its hip.

    Raises ModelError, naming the body, where a chain on the first body is no such leg.
    """
    children = [
        [i for i, body in enumerate(model.bodies) if body.parent == j]
        for j in range(len(model.bodies))
    ]
    roots = [i for i, body in enumerate(model.bodies) if body.parent < 0]
    if len(roots) != 1 or not children[0]:
        raise ModelError(
            f"{model.name} is no trunk with legs; a gait needs one first body and chains that hang "
            "on it"
        )
    found: list[Leg] = []
    expected = 1
    for first in children[0]:
        chain = [first]
        while len(children[chain[-1]]) == 1:
            chain += children[chain[-1]]
        if children[chain[-1]] or len(chain) not in (2, 3):
            _refuse(
                model.bodies[first],
                f"has {len(chain)} links before it ends or forks; it needs thigh and shank, "
                "perhaps a foot",
            )
        if chain != list(range(expected, expected + len(chain))):
            _refuse(
                model.bodies[first], "is numbered among other legs; number the links leg by leg"
            )
        expected += len(chain)
        found.append(_leg([model.bodies[i] for i in chain]))
    return tuple(found)


def _leg(chain: list[Body]) -> Leg:
    turns = []
    for body in chain:
        joint = body.joint
        frames = (joint.placement.rotation, joint.outlet.rotation)
        if (
            any(np.abs(R - np.eye(3)).max() > 1e-12 for R in frames)
            or np.abs(joint.outlet.position).max() > 1e-12
        ):
            _refuse(body, "has a frame that is turned at zero; its axes must be the trunk's")
        turns.append("".join(_letter(body, step.axis, step.rho) for step in joint.steps))
    hips, knee, *ankle = turns
    if hips not in HIPS or knee != "Y" or (ankle and ankle[0] not in ANKLES[1:]):
        axes = ", ".join(axes or "nothing" for axes in turns)
        _refuse(
            chain[0],
            f"turns about {axes}; hips turn about {' or '.join(HIPS)}, knees about Y, ankles about "
            "Y or YX",
        )
    knee_at = chain[1].joint.placement.position
    end = chain[2].joint.placement.position if ankle else _lowest(chain[1])
    for body, place in zip(chain, (knee_at, end), strict=False):
        if abs(place[0]) > 1e-12 or abs(place[1]) > 1e-12 or place[2] >= 0.0:
            _refuse(
                body, f"ends at {[float(x) for x in place]}; it must hang straight down at zero"
            )
    hip = chain[0].joint.placement.position
    sole = max(0.0, -float(_lowest(chain[2])[2])) if ankle else 0.0
    at = float(hip[0]), float(hip[1]), float(hip[2])
    return Leg(
        chain[0].joint.name, at, -float(knee_at[2]), -float(end[2]), hips, "".join(ankle), sole
    )


def _lowest(body: Body) -> Array:
    """The lowest point of contact of a body, in its frame."""
    if not body.points:
        _refuse(body, "has no points of contact; give it the points that touch the ground")
    return np.array(min((point for _, point in body.points), key=lambda p: p[2]))


def _letter(body: Body, axis: tuple[float, float, float], rho: float) -> str:
    found = (
        "".join(letter for letter, x in zip("XYZ", axis, strict=True) if abs(x - 1.0) < 1e-12)
        if rho
        else ""
    )
    if not found:
        _refuse(
            body, f"moves along or about {list(axis)}; the joints of a leg turn about X, Y or Z"
        )
    return found


def _refuse(body: Body, why: str) -> None:
    raise ModelError(
        f"leg at {body.name!r}: it {why}. For other legs use ramify.motion.inverse_kinematics and "
        "a Spline"
    )


def soles(model: Robot, found: Sequence[Leg]) -> list[tuple[int, int, Array]]:
    """(leg, body, point (3,) in its frame) of every point on which a leg stands: the lowest ones of
    its last body.
    """
    out: list[tuple[int, int, Array]] = []
    hips = [leg.name for leg in found]
    ends: dict[int, int] = {}
    leg = -1
    for b, body in enumerate(model.bodies):
        leg = hips.index(body.joint.name) if body.joint.name in hips else leg
        if leg >= 0:
            ends[leg] = b
    for leg, b in ends.items():
        low = _lowest(model.bodies[b])[2]
        out += [
            (leg, b, np.array(point))
            for _, point in model.bodies[b].points
            if point[2] < low + 1e-9
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
