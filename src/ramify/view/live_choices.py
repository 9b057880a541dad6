"""What the live viewer offers for a robot: sliders, a first pose, grounds and controllers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ramify.contact import LAWS
from ramify.control.computed_torque import ComputedTorque
from ramify.control.controller import Controller
from ramify.control.gravity_compensation import GravityCompensation
from ramify.control.pd import PD
from ramify.core.arrays import Array
from ramify.kernels.queries import kinematics
from ramify.model.robot import Robot, joint_entries
from ramify.motion.hold import Hold
from ramify.view.robot_solids import FLOATING, floats, rest

GROUNDS: Final = ("none", *LAWS)


def hold(kind: Any) -> Callable[[Robot, Array], Controller]:
    """A controller that keeps the driven joints where they are."""

    def held(model: Robot, q: Array) -> Controller:
        driven = [joint.name for joint in model.joints if joint.actuated and joint.dof]
        found: Controller = kind(
            Hold([q[i] for name in driven for i in joint_entries(model, name, "q")])
        )
        return found

    return held


CONTROLS: Final[dict[str, Callable[[Any, Array], Any]]] = {
    "none": lambda model, q: None,
    "gravity compensation": lambda model, q: GravityCompensation(kd=0.0),
    "hold this pose: PD": hold(PD),
    "hold this pose: computed torque": hold(ComputedTorque),
}
"""Controllers on offer, by name: from the robot and the pose at which the run starts."""


def standing(model: Robot) -> Array:
    """q (nq): every joint at zero, loops closed; a floating robot with contact points stands on the
    lowest of them.
    """
    q = rest(model)
    root = model.bodies[0].joint
    points = [(b, at) for b, body in enumerate(model.bodies) for _, at in body.points]
    if points and any(model.gravity) and floats(model) and root.kind != "planar":
        R, r = kinematics(model, q)
        up = -np.array(model.gravity) / np.linalg.norm(model.gravity)
        least = min(float((R[b] @ np.array(at) + r[b]) @ up) for b, at in points)
        q[:3] += root.placement.rotation.T @ (-least * up)
    return q


def dials(model: Robot) -> list[tuple[str, float, float]]:
    """(name, least, largest) of a slider per degree of freedom: the joint's limits, else half a
    turn or a size of the robot.
    """
    found = []
    for joint in model.joints:
        plain = len(joint.limits) == joint.dof == joint.nq
        for k, (name, step) in enumerate(zip(joint.velocities, joint.steps, strict=True)):
            low, high = joint.limits[k] if plain else (-math.inf, math.inf)
            slide = 2.0 if joint.kind in FLOATING else 1.0
            reach = round(math.pi, 4) if step.rho else slide
            least = low if math.isfinite(low) else min(-reach, high - reach)
            high = high if math.isfinite(high) else max(reach, low + reach)
            low = least
            found.append((name, low, high if high > low else low + 1e-3))
    return found
