"""What a model says about its inertial parameters: their values, and the regressor by which joint
forces depend on them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array
from ramify.core.spatial import RigidInertia
from ramify.dynamics.regressor import PARAMETERS, rigid
from ramify.kernels.make import kernel
from ramify.model.body import Body
from ramify.model.configuration import checked
from ramify.model.link import Pose
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
    """See Model.regressor: the links' regressor, each body's parameters being carried into the
    frame of its link.
    """
    of_links = np.stack(kernel(model, "regressor")(q, v, a), axis=-1)  # (..., nv, links, 10)
    of_bodies = of_links[..., list(model.skeleton.last), :]
    seats = np.stack([_carried(model.skeleton.links[k].seat) for k in model.skeleton.last])
    Y = np.einsum("...vbi,bij->...vbj", of_bodies, seats)
    Y = Y.reshape(*Y.shape[:-2], len(model.bodies) * len(PARAMETERS))
    if not any(link.rotor for link in model.skeleton.links):
        return Y
    rotors = np.broadcast_to(checked(model, "a", a, model.nv), Y.shape[:-1])
    return np.concatenate([Y, rotors[..., None] * np.eye(model.nv)], axis=-1)


def _carried(seat: Pose) -> Array:
    """(10, 10): parameters of a body, in its own frame, to those in the frame of the link that it
    sits on.
    """
    return np.stack(
        [
            _listed(rigid(row.tolist()).rotate(seat.R).shift(seat.r))
            for row in np.eye(len(PARAMETERS))
        ],
        axis=1,
    )


def _listed(M: RigidInertia) -> Array:
    I = M.I  # noqa: E741 - the field's symbol
    return np.array(
        [M.m, M.h.x, M.h.y, M.h.z, I.xx, I.yy, I.zz, I.xy, I.yz, I.xz], dtype=np.float64
    )
