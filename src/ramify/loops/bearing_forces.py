"""The wrenches in all joints of a robot, those of its tree and those that close its loops, each at
the joint's own point.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array
from ramify.kernels.queries import kinematics
from ramify.kernels.queries import reactions as tree_reactions
from ramify.loops.closed_dynamics import Wrenches, inverse_dynamics, loop_forces, reactions
from ramify.model.robot import Robot


def bearing_forces(
    model: Robot,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    wrenches: Wrenches,
    multipliers: ArrayLike | None,
) -> dict[str, Array]:
    """See Model.bearing_forces."""
    closing: Iterable[Array] = ()
    if model.loops:
        lam = inverse_dynamics(model, q, v, a, wrenches)[1] if multipliers is None else multipliers
        on_bodies = reactions(model, q, v, a, wrenches, lam)
        closing = np.moveaxis(loop_forces(model, q, lam), -2, 0)
    else:
        on_bodies = tree_reactions(model, q, v, a, wrenches)
    rotation, position = kinematics(model.tree, q)
    found: dict[str, Array] = {}
    for b, (body, joint) in enumerate(zip(model.bodies, model.joints, strict=True)):
        on_body = on_bodies[..., b, :]
        k, point = b, joint.outlet.inverse().position
        if joint.backwards:  # on the parent, at its end of the joint
            k, point = body.parent, joint.placement.position
        if k >= 0:
            point = rotation[..., k, :, :] @ point + position[..., k, :]
        moment = np.cross(position[..., b, :] - point, on_body[..., 3:])
        wrench = np.concatenate([on_body[..., :3] + moment, on_body[..., 3:]], axis=-1)
        found[joint.name] = -wrench if joint.backwards else wrench
    for loop, wrench in zip(model.loops, closing, strict=True):
        if not loop.joints:
            found[loop.name if loop.name not in found else f"loop {loop.name}"] = wrench
    return found
