"""Whether loops that are called planar are: all that moves between their ends moves in the plane of
the closing joint.
"""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakSet

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import LoopError
from ramify.dynamics.closure import constraint_names
from ramify.kernels.make import algorithm_of
from ramify.kernels.text import plain_text
from ramify.loops.constraints import scaled_jacobian
from ramify.model.robot import Robot, once

_ALONG = 1e-6
_LEFT_OUT = ("z", "tilt_x", "tilt_y", "turn_x", "turn_y")
_sound: WeakSet[Robot] = WeakSet()


@once
def as_spatial(model: Robot) -> Robot:
    """The robot with all rows of its planar loops; itself where it has none."""
    if not any(loop.planar for loop in model.loops):
        return model
    return replace(model, loops=tuple(replace(loop, planar=False) for loop in model.loops))


def refuse_crooked(model: Robot, q: Array) -> None:
    """Refuse a planar loop that is none at q: the rows that it leaves out, z, tilts and turns
    about x and y, would not stay as they are.

    Asked once for each model that passes.
    """
    if model in _sound:
        return
    if any(loop.planar for loop in model.loops):
        whole = as_spatial(model)
        text = plain_text(algorithm_of(whole, "constraints"), whole, ())
        residual, flat, _ = text([float(x) for x in q], [0.0] * model.nv)
        J = np.abs(scaled_jacobian(whole, np.array(flat, dtype=np.float64).reshape(-1, model.nv)))
        planar = {loop.name for loop in model.loops if loop.planar}
        for i, name in enumerate(constraint_names(whole)):
            loop, row = name.rsplit(".", 1)
            if loop not in planar or row not in _LEFT_OUT:
                continue
            if J[i].max() > _ALONG or (row != "z" and abs(float(residual[i])) > _ALONG):
                k = int(np.argmax(J[i]))
                what = (
                    f"{model.velocities[k]!r} moves it out of its plane"
                    if J[i, k] > _ALONG
                    else "its two axes are not parallel"
                )
                raise LoopError(
                    f"loop {loop!r} of {model.name!r} is called planar, but {what} ({row}); leave "
                    "out planar"
                )
    _sound.add(model)
