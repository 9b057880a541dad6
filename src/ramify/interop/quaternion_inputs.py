"""Quaternions of any length as inputs: a function of q/|q| is defined off the unit sphere, so that
optimisers may leave it on their way, and its derivative along the quaternion itself is zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from ramify.core.scalar import Scalar, sqrt
from ramify.model.robot import Robot


def normalised(robot: Robot, q: Sequence[Scalar]) -> list[Scalar]:
    """q with quaternions of unit length."""
    out = list(q)
    for i, _ in robot.layout.balls:
        shorter = 1.0 / sqrt(sum((x * x for x in q[i + 1 : i + 4]), q[i] * q[i]))
        out[i : i + 4] = [x * shorter for x in q[i : i + 4]]
    return out
