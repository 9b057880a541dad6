"""What a model says about its inertial parameters: their values, and the regressor by which joint
forces depend on them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array
from ramify.kernels.make import kernel
from ramify.model.body import Body
from ramify.model.configuration import checked
from ramify.model.robot import Robot


def inertial_parameters(model: Robot) -> Array:
    """See Model.inertial_parameters."""
    rotors = [link.rotor for link in model.skeleton.links]
    out = np.concatenate(
        [*(_parameters(body) for body in model.bodies), rotors if any(rotors) else []]
    )
    out.flags.writeable = False
    return out


def _parameters(body: Body) -> Array:
    m, c = body.mass, body.com
    tensor = body.inertia + m * (c @ c * np.eye(3) - np.outer(c, c))
    return np.array([m, *(m * c), *np.diag(tensor), tensor[0, 1], tensor[1, 2], tensor[0, 2]])


def regressor(model: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """See Model.regressor."""
    Y: Array = kernel(model, "regressor")(q, v, a)
    if not any(link.rotor for link in model.skeleton.links):
        return Y
    rotors = np.broadcast_to(checked(model, "a", a, model.nv), Y.shape[:-1])
    return np.concatenate([Y, rotors[..., None] * np.eye(model.nv)], axis=-1)
