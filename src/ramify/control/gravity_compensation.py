"""Gravity compensation: the robot becomes weightless, and damped on request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ramify.control.controller import (
    CONTROLLERS,
    DAMPING,
    GAINS,
    ControlForces,
    Controller,
    gains,
    spread,
)
from ramify.control.robot_text import RobotText
from ramify.core.records import settle
from ramify.core.scalar import Scalar, Scalars
from ramify.documents.kinds import key
from ramify.model.driven import Driven


@CONTROLLERS.add("gravity_compensation")
@dataclass(frozen=True)
class GravityCompensation(Controller):
    """tau = g(q) - kd v: the driven coordinates' share of the forces that hold the robot at rest,
    and damping.

    kd in N m s/rad or N s/m, a number or one per driven coordinate. Raises StateError where kd is
    negative or does not fit.
    """

    kd: Any = field(default=0.0, metadata=key(GAINS, unit=DAMPING))

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, kd=gains("kd", self.kd))

    def law(
        self, robot: RobotText, driven: Driven, t: Scalar, q: Scalars, v: Scalars, z: Scalars
    ) -> ControlForces:
        g = robot.gravity_forces(q)
        return [
            g[j] - k * v[j]
            for j, k in zip(driven.v, spread("kd", self.kd, driven, robot), strict=True)
        ], []
