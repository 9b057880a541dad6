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
from ramify.model.robot import Robot, once

_MOST = 200
_NUDGE = 1e-7


def nearer(model: Robot, q: Array, free: Sequence[int]) -> tuple[Array, int]:
    """A posture with smaller pose errors, from q by Levenberg and Marquardt's steps in the free
    velocities, and how many steps were tried; the rest of the way is Newton's.
    """
    scale = column_sizes(model)[list(free)]
    error = pose_errors(model, q)
    damping, tried = 1e-3, 0
    for _ in range(_MOST):
        J = _slopes(model, q, free, error) / scale
        gradient, square = J.T @ error, J.T @ J
        size = float(np.trace(square)) / len(scale)
        if size == 0.0:  # these coordinates move no loop
            return q, tried
        while True:
            step = np.zeros(model.nv)
            push = np.linalg.solve(square + damping * size * np.eye(len(scale)), -gradient)
            step[list(free)] = push / scale
            moved = model.integrate(q, step, 1.0)
            error_there = pose_errors(model, moved)
            tried += 1
            if error_there @ error_there < error @ error:
                break
            damping *= 10.0
            if damping > 1e6:
                return q, tried
        gained = 1.0 - float(error_there @ error_there) / float(error @ error)
        q, error, damping = moved, error_there, max(damping * 0.2, 1e-9)
        if np.abs(error).max() < 1e-6 * float(row_sizes(model).max()) or gained < 1e-6:
            break
    return q, tried


def _slopes(model: Robot, q: Array, free: Sequence[int], error: Array) -> Array:
    """Derivatives (rows, free) of the errors by differences."""
    steps = np.zeros((len(free), model.nv))
    steps[range(len(free)), list(free)] = _NUDGE
    slopes: Array = (pose_errors(model, model.integrate(q, steps, 1.0)) - error).T / _NUDGE
    return slopes


def pose_errors(model: Robot, q: Array) -> Array:
    """The errors (..., nc) of the closing joints at postures q (..., nq), in m, angles times the
    robot's size.
    """
    value = np.array(kernel(model, "constraints")(q, np.zeros((*q.shape[:-1], model.nv)))[0])
    bodies = kinematics(model.tree, q).rotation
    for rows, ends in _turning_loops(model):
        first, second = (
            axes if body < 0 else bodies[..., body, :, :] @ axes for body, axes in ends
        )
        turn = np.swapaxes(first, -1, -2) @ second
        if "turn_z" in rows:
            angles = rotation_vectors(turn)
            for i, axis in enumerate("xyz"):
                if f"turn_{axis}" in rows:
                    value[..., rows[f"turn_{axis}"]] = angles[..., i]
        else:
            x, y, z = np.moveaxis(turn[..., :, 2], -1, 0)
            side = np.hypot(x, y)
            angle, some = np.arctan2(side, z), side > 1e-12
            along = np.where(some, side, 1.0)
            value[..., rows["tilt_x"]] = -angle * np.where(some, y, 0.0) / along
            value[..., rows["tilt_y"]] = angle * np.where(some, x, 1.0) / along
    return value * row_sizes(model)


@once
def _turning_loops(model: Robot) -> list[tuple[dict[str, int], list[tuple[int, Array]]]]:
    """Of the loops that hold a direction: places of their rows by name, and of both ends the body,
    -1 for the base, and the axes on it.
    """
    turning, start = [], 0
    for loop in (closure.loop for closure in closures(model)):
        rows = {name: start + i for i, name in enumerate(loop.rows)}
        start += len(rows)
        if {"turn_z", "tilt_x"} & set(rows):
            ends = zip((loop.first, loop.second), loop.frames, strict=True)
            turning.append((rows, [_axes(model, end.link, frame) for end, frame in ends]))
    return turning


def _axes(model: Robot, link: str | None, frame: Frame) -> tuple[int, Array]:
    """The body of an end of a loop, -1 for the base, and the end's axes on it."""
    if link is None:
        return -1, frame.rotation
    body, place = model.attachment(link)
    return body, place.rotation @ frame.rotation


def rotation_vectors(R: Array) -> Array:
    """Angle times axis (..., 3) of rotation matrices (..., 3, 3), of at most half a turn."""
    crossed = [R[..., i, j] - R[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0))]
    s: Array = 0.5 * np.stack(crossed, axis=-1)
    sine = np.linalg.norm(s, axis=-1)
    cosine = 0.5 * (np.trace(R, axis1=-2, axis2=-1) - 1.0)
    angle = np.arctan2(sine, cosine)
    plain = sine > 1e-6
    by_sine = s * np.where(plain, angle / np.where(plain, sine, 1.0), 1.0)[..., None]
    outer = 0.5 * (R + np.eye(3))  # axis times axis', at half a turn
    largest = np.argmax(np.diagonal(outer, axis1=-2, axis2=-1), axis=-1)
    axis = np.take_along_axis(outer, largest[..., None, None], axis=-2)[..., 0, :]
    axis = axis / np.linalg.norm(axis, axis=-1, keepdims=True)
    side = np.where((axis * s).sum(axis=-1) >= 0.0, angle, -angle)
    return np.where((plain | (cosine > 0.0))[..., None], by_sine, axis * side[..., None])
