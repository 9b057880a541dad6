"""Frames: constant rotations and positions, and the ways to give them (Denavit-Hartenberg rows,
roll-pitch-yaw).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, real
from ramify.core.errors import ModelError

_SNAP = 1e-15


def cos_sin(angle: float) -> tuple[float, float]:
    """Cosine and sine; those of a multiple of 90 degrees are exactly 0 and +-1."""
    c, s = math.cos(angle), math.sin(angle)
    if abs(c) < _SNAP:
        return 0.0, math.copysign(1.0, s)
    if abs(s) < _SNAP:
        return math.copysign(1.0, c), 0.0
    return c, s


def _frozen(a: ArrayLike, shape: tuple[int, ...]) -> Array:
    given = real("a frame", a, ModelError)
    if given.size != math.prod(shape):
        raise ModelError(f"a frame has a rotation (3, 3) and a position (3,); got {given.shape}")
    out = given.reshape(shape).copy()
    out.flags.writeable = False
    return out


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame in another: ``rotation`` (3, 3) maps its vectors to the other's, ``position`` (3,) is
    its origin there, in metres. ``angle``: the largest angle that it was given by, rad, where one
    was given; it is not part of the frame, only for checks.
    """

    rotation: Array = field(default_factory=lambda: np.eye(3))
    position: Array = field(default_factory=lambda: np.zeros(3))
    angle: float = field(default=0.0, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rotation", _frozen(self.rotation, (3, 3)))
        object.__setattr__(self, "position", _frozen(self.position, (3,)))

    def __matmul__(self, other: Frame) -> Frame:
        return Frame(self.rotation @ other.rotation, point_seen(self, other.position))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frame):
            return NotImplemented
        return bool(
            (self.rotation == other.rotation).all() and (self.position == other.position).all()
        )

    def __hash__(self) -> int:
        return hash((self.rotation.tobytes(), self.position.tobytes()))

    def inverse(self) -> Frame:
        """The other frame seen from this one."""
        return Frame(self.rotation.T, -self.rotation.T @ self.position)

    @property
    def is_identity(self) -> bool:
        return self == Frame()


def point_seen(frame: Frame, point: ArrayLike) -> Array:
    """A point of a frame, seen from the one around it."""
    found: Array = frame.rotation @ np.asarray(point) + frame.position
    return found


def is_rigid(frame: Frame) -> bool:
    """Whether a frame is a finite position and a rotation matrix."""
    R = frame.rotation
    turned = np.abs(R @ R.T - np.eye(3)).max() < 1e-6 and np.linalg.det(R) > 0.0
    return bool(turned and np.isfinite(frame.position).all())


def beyond_a_turn(angle: float) -> bool:
    """Whether an angle in rad is more than a turn, as degrees are; quarter turns are left alone."""
    return abs(angle) > 2.0 * math.pi and abs(math.remainder(angle, 0.5 * math.pi)) > 1e-3


def rotation_about(axis: ArrayLike, angle: float) -> Array:
    """Rotation matrix about a unit axis; coordinate axes and quarter turns come out exact."""
    u = np.asarray(axis, dtype=np.float64)
    c, s = cos_sin(angle)
    cross = np.array([[0.0, -u[2], u[1]], [u[2], 0.0, -u[0]], [-u[1], u[0], 0.0]])
    return c * np.eye(3) + s * cross + (1.0 - c) * np.outer(u, u)


def from_rpy(roll: float, pitch: float, yaw: float) -> Array:
    """Rz(yaw) Ry(pitch) Rx(roll), as in URDF."""
    turned = rotation_about((0, 0, 1), yaw) @ rotation_about((0, 1, 0), pitch)
    return turned @ rotation_about((1, 0, 0), roll)


def quaternion_rows(w: Any, x: Any, y: Any, z: Any) -> list[list[Any]]:
    """The rotation matrix of a unit quaternion, of numbers or of arrays."""
    return [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
    ]


def from_quaternion(w: float, x: float, y: float, z: float) -> Array:
    """Rotation matrix of a quaternion of any length but zero."""
    size = math.sqrt(w * w + x * x + y * y + z * z)
    w, x, y, z = w / size, x / size, y / size, z / size
    return np.array(quaternion_rows(w, x, y, z))


def modified_dh(alpha: float, a: float, b: float, theta: float) -> Frame:
    """The book's row (section 3.2): Rx(alpha) Rz(theta), origin at [a, -b sin(alpha), b cos(alpha)]
    in the parent's frame.
    """
    c, s = cos_sin(alpha)
    turn = rotation_about((1, 0, 0), alpha) @ rotation_about((0, 0, 1), theta)
    return Frame(turn, np.array([a, -b * s, b * c]), max(alpha, theta, key=abs))


def classical_dh(theta: float, b: float, a: float, alpha: float) -> Frame:
    """The textbook's row: turn theta about z and b along it, then a along x and turn alpha about
    it.
    """
    c, s = cos_sin(theta)
    turn = rotation_about((0, 0, 1), theta) @ rotation_about((1, 0, 0), alpha)
    return Frame(turn, np.array([a * c, a * s, b]), max(alpha, theta, key=abs))


def align_z(axis: ArrayLike) -> Array:
    """A rotation that takes z to a unit axis: the shortest one, about x where the axis is -z; exact
    for the coordinate axes, and as precise as the axis is given.
    """
    given = np.asarray(axis)
    kind = given.dtype if given.dtype == np.longdouble else np.float64
    x, y, z = given.astype(kind)
    flat = np.hypot(x, y)
    if z >= 0.0:
        k, u, v = 1.0 / (1.0 + z), x, y
    else:  # 1 + z = flat^2 / (1 - z), without cancellation
        k = 1.0 - z
        u, v = (x / flat, y / flat) if flat > _SNAP else (0.0, 1.0)
    return np.array(
        [[1.0 - k * u * u, -k * u * v, x], [-k * u * v, 1.0 - k * v * v, y], [-x, -y, z]],
        dtype=kind,
    )


def as_frame(value: Any) -> Frame:
    """A frame from a Frame, a (4, 4) matrix, or an offset (3,); ModelError for anything else."""
    if isinstance(value, Frame):
        return value
    a = real("a frame (a Frame, a 4 x 4 matrix or an offset of three numbers)", value, ModelError)
    if a.shape == (4, 4) and (a[3] == (0.0, 0.0, 0.0, 1.0)).all():
        return Frame(a[:3, :3], a[:3, 3])
    if a.shape == (3,):
        return Frame(position=a)
    raise ModelError(
        f"{a.tolist()} is not a frame; give a Frame, a 4 x 4 matrix (last row 0 0 0 1) or an "
        "offset of three numbers"
    )
