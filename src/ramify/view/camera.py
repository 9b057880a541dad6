"""Where a scene is seen from, and where its floor is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ramify.core.arrays import Array
from ramify.view.robot_solids import floats, rest
from ramify.view.scene import Scene


def floor_height(scene: Scene, low: Array, high: Array, ground: float | None) -> float:
    """Where the floor is drawn, m: on the ground where there is one; at zero for a robot that is
    above it for the most part.

    Else under the robot. low, high (T,): its lowest and highest point over time. A robot that falls
    without a ground has its floor where it started.
    """
    if ground is not None:
        return ground
    flies = floats(scene.model)
    least = float(low[0] if flies else low.min())
    standing = least > -0.03 * scene.size or (not flies and float(np.mean(low + high)) > 0.0)
    return 0.0 if standing else least - 0.02 * scene.size


@dataclass(frozen=True)
class Camera:
    """Where a scene is seen from: ``yaw`` and ``pitch`` (rad) around a ``target`` (m); ``size`` is
    what must be seen, m.

    ``floor`` is the floor's height and ``cell`` the width of its squares, m.
    """

    target: tuple[float, float, float]
    size: float
    yaw: float
    pitch: float
    floor: float
    cell: float


def _hinge_axis(scene: Scene) -> int | None:
    """The level axis (0: x, 1: y) along which all hinges of a robot lie, at rest; None: there is
    none.
    """
    R, _ = scene.poses(rest(scene.model))
    joints = ((b, body.joint) for b, body in enumerate(scene.model.bodies))
    axes = [
        R[b] @ joint.outlet.inverse().rotation @ np.array(joint.axis)
        for b, joint in joints
        if joint.kind == "revolute"
    ]
    sizes = np.abs(axes).min(axis=0) if axes else np.zeros(3)
    best = int(sizes.argmax())
    return best if best < 2 and sizes[best] > 0.99 else None


def camera(scene: Scene, low: Array, high: Array, ground: float | None = None) -> Camera:
    """The camera of a run: around the robot as it starts where it floats, else around all that it
    does.

    low, high (T, 3): the corners around the robot over time; ground: the height of the ground,
    where there is one.
    """
    first, last = (low[0], high[0]) if floats(scene.model) else (low.min(axis=0), high.max(axis=0))
    extent = last - first
    size = max(float(np.linalg.norm(extent)), 0.5 * scene.size)
    yaw, pitch = -1.02, 0.26
    flat = [k for k in (0, 1) if extent[k] < 0.2 * extent.max()]
    across = _hinge_axis(scene)
    if across is not None or flat:
        # a robot that moves in a vertical plane is seen from where z of its file's world comes out
        axis = flat[-1] if across is None else across
        front = np.sign(scene.up[axis, 2]) or (-1.0 if axis else 1.0)
        yaw = 0.22 + (front * np.pi / 2 if axis else (0.0 if front > 0 else np.pi))
        pitch = 0.13
    cells = (k * 10.0**p for p in range(-4, 5) for k in (1, 2, 5))
    cell = min(cells, key=lambda c: abs(math.log(c / (0.12 * size))))
    x, y, z = ((first + last) / 2).tolist()
    floor = floor_height(scene, low[:, 2], high[:, 2], ground)
    return Camera((x, y, z), size, float(yaw), pitch, floor, cell)
