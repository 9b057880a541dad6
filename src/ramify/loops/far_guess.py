"""Assembly from far away: least squares of the pose errors of the loops.

Near a closed posture the rows of the loops are as good as any; far from it a sine is small at half
a turn as well. The errors here grow with the angle all the way: of a rotation its vector (angle
times axis), of a tilted axis the angle times its direction, of a length the length.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ramify.core.arrays import Array
from ramify.dynamics.closure import closures
from ramify.kernels.make import kernel
from ramify.kernels.queries import kinematics
from ramify.loops.constraints import column_sizes, row_sizes
from ramify.model.frame import Frame
from ramify.model.robot import Robot

_MOST = 200
_NUDGE = 1e-7


def nearer(model: Robot, q: Array, free: Sequence[int]) -> Array:
    """A posture with smaller pose errors, from q by Levenberg and Marquardt's steps in the free
    velocities; the rest of the way is Newton's.
    """
    scale = column_sizes(model)[list(free)]
    error = pose_errors(model, q)
    damping = 1e-3
    for _ in range(_MOST):
        J = _slopes(model, q, free, error) / scale
        gradient, square = J.T @ error, J.T @ J
        size = float(np.trace(square)) / len(scale)
        if size == 0.0:  # these coordinates move no loop
            return q
        while True:
            step = np.zeros(model.nv)
            push = np.linalg.solve(square + damping * size * np.eye(len(scale)), -gradient)
            step[list(free)] = push / scale
            moved = model.integrate(q, step, 1.0)
            error_there = pose_errors(model, moved)
            if error_there @ error_there < error @ error:
                break
            damping *= 10.0
            if damping > 1e6:
                return q
        gained = 1.0 - float(error_there @ error_there) / float(error @ error)
        q, error, damping = moved, error_there, max(damping * 0.2, 1e-9)
        if np.abs(error).max() < 1e-6 * float(row_sizes(model).max()) or gained < 1e-6:
            break
    return q


def _slopes(model: Robot, q: Array, free: Sequence[int], error: Array) -> Array:
    """Derivatives (rows, free) of the errors by differences."""
    columns = []
    for k in free:
        step = np.zeros(model.nv)
        step[k] = _NUDGE
        columns.append((pose_errors(model, model.integrate(q, step, 1.0)) - error) / _NUDGE)
    return np.stack(columns, axis=1)


def pose_errors(model: Robot, q: Array) -> Array:
    """The errors (nc) of the closing joints, in m, angles times the robot's size."""
    value = np.array(kernel(model, "constraints")(q, np.zeros(model.nv))[0])
    at = kinematics(model.tree, q)
    start = 0
    for closure in closures(model):
        loop = closure.loop
        rows = {name: start + i for i, name in enumerate(loop.rows)}
        start += len(rows)
        if not ({"turn_z", "tilt_x"} & set(rows)):
            continue
        R = [
            _rotation(model, end.link, frame, at.rotation)
            for end, frame in zip((loop.first, loop.second), loop.frames, strict=True)
        ]
        turn = R[0].T @ R[1]
        if "turn_z" in rows:
            for axis, angle in zip("xyz", rotation_vector(turn), strict=True):
                if f"turn_{axis}" in rows:
                    value[rows[f"turn_{axis}"]] = angle
        else:
            x, y, z = turn[:, 2]
            side = float(np.hypot(x, y))
            angle = float(np.arctan2(side, z))
            along = (x / side, y / side) if side > 1e-12 else (1.0, 0.0)
            value[rows["tilt_x"]], value[rows["tilt_y"]] = -angle * along[1], angle * along[0]
    return value * row_sizes(model)


def _rotation(model: Robot, link: str | None, frame: Frame, bodies: Array) -> Array:
    """Axes of an end of a loop in the world."""
    if link is None:
        return frame.rotation
    body, place = model.attachment(link)
    own: Array = place.rotation @ frame.rotation
    return own if body < 0 else bodies[body] @ own


def rotation_vector(R: Array) -> Array:
    """Angle times axis (3) of a rotation matrix, of at most half a turn."""
    s = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    sine, cosine = float(np.linalg.norm(s)), 0.5 * (float(np.trace(R)) - 1.0)
    angle = float(np.arctan2(sine, cosine))
    if sine > 1e-6:
        return s * (angle / sine)
    if cosine > 0.0:
        return s
    outer = 0.5 * (R + np.eye(3))  # axis times axis', at half a turn
    k = int(np.argmax(np.diag(outer)))
    axis: Array = outer[k] / np.linalg.norm(outer[k])
    return axis * (angle if axis @ s >= 0.0 else -angle)
