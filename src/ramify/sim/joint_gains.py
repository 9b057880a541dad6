"""How the joints resist small motions: stiffness and damping of servos and of the machine, joint by
joint, for steps that take them implicitly.
"""

from __future__ import annotations

from collections.abc import Sequence

from ramify.contact.ground import positive
from ramify.control.controller import Controller, spread
from ramify.control.feedforward import Feedforward
from ramify.control.pd import PD, PID
from ramify.control.robot_text import RobotText
from ramify.control.sum import Sum
from ramify.core.jet import Jet, rate
from ramify.core.scalar import Scalar
from ramify.drives.passive import PassiveText
from ramify.model.robot import Robot

Gains = tuple[list[Scalar], list[Scalar]]
"""Stiffness, N m/rad or N/m, and damping, N m s/rad or N s/m, of each velocity (nv)."""


def servo_gains(control: Controller | None, robot: RobotText) -> Gains:
    """kp and kd of the controllers that are springs and dampers at their joints."""
    stiffness: list[Scalar] = [0.0] * robot.nv
    damping: list[Scalar] = [0.0] * robot.nv
    for part in control.parts if isinstance(control, Sum) else (control,):
        if not isinstance(part, (PD, PID, Feedforward)):
            continue
        driven = part.driven(robot)
        for name, gains, out in (("kp", part.kp, stiffness), ("kd", part.kd, damping)):
            for j, gain in zip(driven.v, spread(name, gains, driven, robot), strict=True):
                out[j] = out[j] + gain
    return stiffness, damping


def machine_gains(
    machine: PassiveText,
    model: Robot,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    z: Sequence[Scalar] | None = None,
) -> Gains:
    """Derivatives of the machine's passive forces by the joint's own coordinate and velocity, where
    they resist; forces between joints (tendons) count as if all moved alike.
    """
    plain = set(model.layout.plain_q)
    out: list[list[Scalar]] = []
    for moved, faster in ((1.0, 0.0), (0.0, 1.0)):
        at = [Jet(x, moved if i in plain else 0.0, None) for i, x in enumerate(q)]
        found = machine(at, [Jet(x, faster, None) for x in v], z).total
        out.append([positive(-rate(force)) for force in found])
    return out[0], out[1]
