"""Triangles: boxes, cylinders, capsules, spheres and arrows, and fewer triangles where there are
too many.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.model.frame import Frame
from ramify.model.shape import Shape

Indices = NDArray[np.int64]
LARGEST: Final = 1 << 21
"""Three numbers below it fit into one of 64 bits."""


@dataclass(frozen=True, eq=False)
class Triangles:
    """``points`` (n, 3) in m, ``normals`` (n, 3) of unit length and ``faces`` (m, 3),
    counter-clockwise from outside.
    """

    points: Array
    normals: Array
    faces: Indices

    def seen_from(self, frame: Frame) -> Triangles:
        """The triangles, given in a frame, as seen from the one around it."""
        R = frame.rotation
        return Triangles(self.points @ R.T + frame.position, self.normals @ R.T, self.faces)


def join_triangles(parts: Iterable[Triangles]) -> Triangles:
    """All triangles in one."""
    none = Triangles(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int64))
    parts = [none, *parts]
    starts = accumulate((len(part.points) for part in parts), initial=0)
    return Triangles(
        np.concatenate([part.points for part in parts]),
        np.concatenate([part.normals for part in parts]),
        np.concatenate([part.faces + start for part, start in zip(parts, starts, strict=False)]),
    )


def shape_triangles(shape: Shape, around: int = 24) -> Triangles:
    """The triangles of a shape in the body's frame; round ones have ``around`` corners."""
    match shape.kind, tuple(float(x) for x in shape.size):
        case "box", (x, y, z):
            surface = box(x, y, z)
        case "cylinder", (radius, length):
            low, high = -length / 2, length / 2
            surface = solid_of_revolution(
                [(0.0, low), (radius, low), (radius, high), (0.0, high)], around
            )
        case "sphere", (radius,):
            surface = solid_of_revolution(_arc(radius, 0.0, -90, 90, around), around, smooth=True)
        case "capsule", (radius, length):
            low_end = _arc(radius, -length / 2, -90, 0, around)
            high_end = _arc(radius, length / 2, 0, 90, around)
            surface = solid_of_revolution([*low_end, *high_end], around, smooth=True)
        case "height_field", (x, y):
            surface = hills(np.array(shape.heights), x, y)
        case kind, size:
            raise ModelError(
                f"a shape {kind!r} with {len(size)} lengths cannot be drawn; there are box, "
                "cylinder, sphere, capsule"
            )
    return surface.seen_from(shape.frame)


def hills(heights: Array, x: float, y: float) -> Triangles:
    """The surface of heights (nx, ny) over a grid with the spacing x, y about the origin."""
    nx, ny = heights.shape
    along = (np.arange(nx) - 0.5 * (nx - 1)) * x
    across = (np.arange(ny) - 0.5 * (ny - 1)) * y
    grid = np.stack([*np.meshgrid(along, across, indexing="ij"), heights], axis=-1)
    corner = (np.arange(nx - 1)[:, None] * ny + np.arange(ny - 1)).ravel()[:, None]
    faces = np.concatenate([np.add(corner, half) for half in ((0, ny, ny + 1), (0, ny + 1, 1))])
    return smooth_normals(grid.reshape(-1, 3), faces)


def box(x: float, y: float, z: float) -> Triangles:
    """A box about the origin, its edges along the axes."""
    points, normals = np.zeros((2, 6, 4, 3))
    for k, (axis, sign) in enumerate(product(range(3), (-1.0, 1.0))):
        points[k, :, axis] = normals[k, :, axis] = sign
        points[k, :, (axis + 1) % 3] = (-1.0, 1.0, 1.0, -1.0)
        points[k, :, (axis + 2) % 3] = np.multiply(sign, (-1.0, -1.0, 1.0, 1.0))
    faces = (4 * np.arange(6)[:, None] + (0, 1, 2, 0, 2, 3)).reshape(-1, 3)
    return Triangles(points.reshape(-1, 3) * (x / 2, y / 2, z / 2), normals.reshape(-1, 3), faces)


def solid_of_revolution(
    outline: Sequence[tuple[float, float]], around: int, smooth: bool = False
) -> Triangles:
    """The solid that an outline of (radius, z), upwards, makes about z. A smooth outline shares
    normals along its length.
    """
    outline = np.array(outline)  # type: ignore[assignment]
    along = np.diff(outline, axis=0)
    flat = np.stack([along[:, 1], -along[:, 0]], axis=1)
    flat /= np.maximum(np.hypot(*along.T), 1e-300)[:, None]
    angle = np.linspace(0.0, 2.0 * math.pi, around + 1)
    c, s = np.cos(angle), np.sin(angle)
    parts = []
    for k, (low, high) in enumerate(pairwise(outline)):
        if smooth:  # the mean of the two bands that meet in a corner of the outline
            below, above = flat[max(k - 1, 0)] + flat[k], flat[k] + flat[min(k + 1, len(flat) - 1)]
        else:
            below = above = flat[k]
        rings, normals = [], []
        for (radius, z), normal in ((low, below), (high, above)):
            n = normal / np.hypot(*normal)
            rings.append(np.stack([radius * c, radius * s, np.full_like(c, z)], axis=1))
            normals.append(np.stack([n[0] * c, n[0] * s, np.full_like(c, n[1])], axis=1))
        lower = np.arange(around)
        upper = lower + around + 1
        faces = []
        if low[0] > 0.0:  # else a cap at the bottom: the lower ring is one point
            faces.append(np.stack([lower, lower + 1, upper + (high[0] > 0.0)], axis=1))
        if high[0] > 0.0:
            faces.append(np.stack([lower, upper + 1, upper], axis=1))
        if faces:
            parts.append(
                Triangles(np.concatenate(rings), np.concatenate(normals), np.concatenate(faces))
            )
    return join_triangles(parts)


def _arc(
    radius: float, z: float, start: float, end: float, around: int
) -> list[tuple[float, float]]:
    """Corners (radius, z) of a part of a circle about (0, z), between two latitudes in degrees."""
    count = max(2, round(around * abs(end - start) / 360))
    angles = np.radians(np.linspace(start, end, count + 1))
    r = radius * np.cos(angles)
    r[np.abs(r) < 1e-12 * radius] = 0.0
    return [(float(a), float(b)) for a, b in zip(r, z + radius * np.sin(angles), strict=True)]


def arrow(around: int = 16) -> Triangles:
    """An arrow of unit length along z, its tip at z = 1."""
    return solid_of_revolution(
        [(0.0, 0.0), (0.022, 0.0), (0.022, 0.8), (0.06, 0.8), (0.0, 1.0)], around
    )


def smooth_normals(points: Array, faces: Indices, crease_deg: float = 55.0) -> Triangles:
    """Triangles with normals: shared between faces that meet at less than a crease's angle, else a
    face's own.
    """
    corners = points[faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(normal, axis=1)
    keep = length > 0.0
    faces, normal, length = faces[keep], normal[keep], length[keep]
    unit = normal / length[:, None]
    mean = np.zeros_like(points)
    for k in range(3):
        np.add.at(mean, faces[:, k], normal)
    mean /= np.maximum(np.linalg.norm(mean, axis=1), 1e-300)[:, None]
    soft = np.einsum("fkj,fj->fk", mean[faces], unit) > math.cos(math.radians(crease_deg))
    own = np.where(soft[..., None], mean[faces], unit[:, None, :]).reshape(-1, 3)
    corner_points = points[faces].reshape(-1, 3)
    rows = np.concatenate([np.round(corner_points, 9), np.round(own, 2)], axis=1)
    _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return Triangles(corner_points[first], own[first], inverse.reshape(-1, 3).astype(np.int64))


def merge_near_points(points: Array, faces: Indices, cell: float) -> tuple[Array, Indices]:
    """Points that share a cell of a grid become their mean; faces that collapse are left out."""
    keys = np.floor((points - points.min(axis=0)) / cell).astype(np.int64)
    _, inverse = np.unique(_single(keys), return_inverse=True)
    count = np.bincount(inverse)
    merged = np.stack([np.bincount(inverse, points[:, k]) / count for k in range(3)], axis=1)
    corners = inverse[faces]
    corners = corners[(corners != np.roll(corners, -1, axis=1)).all(axis=1)]
    turned = (corners.argmin(axis=1)[:, None] + np.arange(3)) % 3
    corners = np.take_along_axis(corners, turned, axis=1)
    if len(merged) >= LARGEST:
        return merged, corners
    _, first = np.unique(_single(corners), return_index=True)
    return merged, corners[first]


def _single(rows: Indices) -> Indices:
    """One number per row of three, in the same order; each entry must be below LARGEST."""
    return (rows[:, 0] << 42) | (rows[:, 1] << 21) | rows[:, 2]


def thinned(points: Array, faces: Indices, most: int) -> tuple[Array, Indices]:
    """The surface with ``most`` triangles at most: points welded on a grid as fine as that
    allows.
    """
    size = float(np.ptp(points, axis=0).max()) if len(points) else 0.0
    if size == 0.0:
        return points, faces[:0]
    points, faces = merge_near_points(points, faces, 1e-6 * size)
    fine, coarse = 1e-6, 1.0
    if len(faces) <= most:
        return points, faces
    for _ in range(9):  # bisection of the size of a cell, on a logarithmic scale
        middle = math.sqrt(fine * coarse)
        if len(merge_near_points(points, faces, middle * size)[1]) > most:
            fine = middle
        else:
            coarse = middle
    return merge_near_points(points, faces, coarse * size)


def direction_by_angles(yaw: float, pitch: float) -> Array:
    """A unit vector by its angles about z and above the level, rad."""
    flat = math.cos(pitch)
    return np.array([flat * math.cos(yaw), flat * math.sin(yaw), math.sin(pitch)])


def unit_quaternions(R: Array) -> Array:
    """The unit quaternions (..., 4), w first, of rotations (..., 3, 3)."""
    from scipy.spatial.transform import Rotation

    found: Array = Rotation.from_matrix(R).as_quat()[..., [3, 0, 1, 2]]
    return found
