"""The cycloidal motion of eq. (6.14): from rest to rest, with zero acceleration at both ends."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.core.scalar import Scalar, cos, sin
from ramify.documents.kinds import key
from ramify.model.robot import Robot, the_robot
from ramify.motion.coordinate_reader import CoordinateReader
from ramify.motion.trajectory import (
    BEGIN,
    DURATION,
    MOTIONS,
    Motion,
    Texts,
    Trajectory,
    settle_rows,
)


@MOTIONS.add("cycloid")
@dataclass(frozen=True)
class Cycloid(Trajectory):
    """From ``start`` to ``end``, each (n,) or a number, in rad or m, within ``duration`` s (eq.
    6.14).

    With s = (t - begin) / T, the share of the way that lies behind is s - sin(2 pi s) / (2 pi).
    Rates and accelerations are zero at both ends.

    Raises StateError where a value is not finite, shapes do not fit, or the duration is not
    positive.
    """

    start: Any = field(metadata=key(CoordinateReader("rest"), unit="rad or m"))
    end: Any = field(metadata=key(CoordinateReader("start", needed=True), unit="rad or m"))
    duration: float = field(default=1.0, metadata=DURATION)
    begin: float = field(default=0.0, metadata=BEGIN)

    def __post_init__(self) -> None:
        settle_rows(self, "start", "end")

    def inside(self, t: Scalar) -> Texts:
        T = self.duration
        s = (t - self.begin) / T
        turn = 2.0 * math.pi * s
        sine, cosine = sin(turn), cos(turn)
        share = s - sine * (0.5 / math.pi)
        rate, acceleration = (1.0 - cosine) / T, sine * (2.0 * math.pi / T**2)
        ways = [b - a for a, b in zip(self.start, self.end, strict=True)]
        q = [a + share * way for a, way in zip(self.start, ways, strict=True)]
        return q, [rate * way for way in ways], [acceleration * way for way in ways]


def cycloid(start: ArrayLike, end: ArrayLike, duration: float = 1.0, rows: int = 1001) -> Motion:
    """``Cycloid(start, end, duration)`` at ``rows`` times spread evenly from 0 to the duration,
    both included.

    Raises StateError as Cycloid does, and where there are fewer than two rows.
    """
    return Cycloid(start, end, duration).samples(rows)


_TABLE_6_5 = {"gripper": ((0.0, 0.0, 0.0, 90.0), (60.0, 80.0, 80.0, 120.0))}


def example_ends(model: Robot) -> tuple[Array, Array]:
    """(start, end), each (nv,): where the book's examples move a robot.

    The built-in gripper moves as in table 6.5; any other robot goes from zero to 60
    degrees, slides to 0.1 m.

    Raises ModelError for a robot with quaternions, whose coordinates cannot move one by one.
    """
    the_robot(model)
    if model.nq != model.nv:
        raise ModelError(
            f"{model.name} has quaternions among its coordinates; a cycloid moves angles and "
            "slides, one by one"
        )
    if model.name in _TABLE_6_5 and model.nv == 4:
        start, end = _TABLE_6_5[model.name]
        return np.deg2rad(start), np.deg2rad(end)
    reach = [np.pi / 3 if step.rho else 0.1 for joint in model.joints for step in joint.steps]
    return np.zeros(model.nv), np.array(reach)
