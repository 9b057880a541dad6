"""Rotations as quaternions (w first), Euler angles and matrices, in batches, and the map from Euler
rates to angular velocity.

For R = R_a(q1) R_b(q2) R_c(q3) the angular velocity in the moved frame is w = E dq/dt. The columns
of E are the three axes seen from that frame: (R_b R_c)' e_a, R_c' e_b, e_c. E is singular in gimbal
lock.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import StateError
from ramify.model.configuration import multiply
from ramify.model.frame import quaternion_rows
from ramify.model.joint import Joint

_SIGN = {p: float(np.linalg.det(np.eye(3)[list(p)])) for p in permutations(range(3))}


def rotation(q: Array) -> Array:
    """Rotation matrices (..., 3, 3) of quaternions (..., 4) of any length but zero."""
    w, x, y, z = np.moveaxis(q / np.linalg.norm(q, axis=-1, keepdims=True), -1, 0)
    rows = quaternion_rows(w, x, y, z)
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def from_euler(sequence: str, angles: Array) -> Array:
    """Unit quaternions (..., 4) of Euler angles (..., 3)."""
    out: Array | None = None
    for i, letter in enumerate(sequence):
        half = 0.5 * angles[..., i]
        turn = np.zeros((*half.shape, 4))
        turn[..., 0], turn[..., 1 + "XYZ".index(letter)] = np.cos(half), np.sin(half)
        out = turn if out is None else multiply(out, turn)
    assert out is not None
    return out


def to_euler(sequence: str, R: Array) -> Array:
    """Euler angles (..., 3) of rotation matrices: the second in [-pi/2, pi/2], or in [0, pi] for a
    symmetric sequence.
    """
    i, j, k = ("XYZ".index(letter) for letter in sequence)
    if i == k:
        other = 3 - i - j
        sign = _SIGN[i, j, other]
        second = np.arctan2(np.hypot(R[..., i, j], R[..., i, other]), R[..., i, i])
        first = np.arctan2(R[..., j, i], -sign * R[..., other, i])
        third = np.arctan2(R[..., i, j], sign * R[..., i, other])
    else:
        sign = _SIGN[i, j, k]
        second = np.arctan2(sign * R[..., i, k], np.hypot(R[..., i, i], R[..., i, j]))
        first = np.arctan2(-sign * R[..., j, k], R[..., k, k])
        third = np.arctan2(-sign * R[..., i, j], R[..., i, i])
    return np.stack([first, second, third], axis=-1)


def euler_rates(sequence: str, angles: Array) -> Array:
    """E (..., 3, 3) with w = E dq/dt, w in the moved frame."""
    a, b, c = ("XYZ".index(letter) for letter in sequence)
    behind_first = rotation(from_euler(sequence, angles * (0.0, 1.0, 1.0)))
    behind_second = rotation(from_euler(sequence, angles * (0.0, 0.0, 1.0)))
    third = np.broadcast_to(np.eye(3)[c], angles.shape)
    return np.stack([behind_first[..., a, :], behind_second[..., b, :], third], axis=-1)


def euler_bias(E: Array, rates: Array) -> Array:
    """dE/dt dq/dt (..., 3): an axis is seen to turn against the angles that come after it."""
    first, second, third = (E[..., i] * rates[..., i : i + 1] for i in range(3))
    return -np.cross(second + third, first) - np.cross(third, second)


def solve_euler_rates(joint: Joint, angles: Array, E: Array, right: Array) -> Array:
    """E^-1 right; StateError names a joint in gimbal lock."""
    if (np.abs(np.linalg.det(E)) < 1e-9).any():
        angle = angles[..., 1].flat[np.abs(np.linalg.det(E)).argmin()]
        raise StateError(
            f"joint {joint.name!r} is in gimbal lock (middle angle {angle:.9g} rad): its rates are "
            "not determined there"
        )
    found: Array = np.linalg.solve(E, right[..., None])[..., 0].astype(np.float64, copy=False)
    return found
