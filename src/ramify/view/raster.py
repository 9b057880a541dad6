"""A software renderer in NumPy: triangles with a depth buffer and smooth shading, shadows and a
floor. It needs no screen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ramify.core.arrays import Array

FIELD_OF_VIEW: Final = 0.6  # rad, of the shorter side
DISTANCE: Final = 1.9  # of the camera, in sizes of what must be seen
LIGHT: Final = np.array([0.45, -0.35, 1.0]) / math.sqrt(0.45**2 + 0.35**2 + 1.0)
FINE: Final = 2  # samples per pixel, along each side

Image = NDArray[np.float32]
Pixels = NDArray[np.int64]


@dataclass(frozen=True)
class Look:
    """Colours of the sky, the floor and its lines, 0 … 1; how dark a shadow is; the colour of words
    and of trails.
    """

    paper: tuple[float, float, float]
    plate: tuple[float, float, float]
    grid: tuple[float, float, float]
    shade: float
    ink: tuple[float, float, float]
    trail: tuple[float, float, float] = (0.88, 0.33, 0.42)


LOOKS: Final = {
    "light": Look(
        (0.933, 0.945, 0.961),
        (0.969, 0.976, 0.984),
        (0.667, 0.714, 0.765),
        0.15,
        (0.11, 0.14, 0.19),
    ),
    "dark": Look(
        (0.086, 0.106, 0.129),
        (0.110, 0.137, 0.169),
        (0.275, 0.325, 0.373),
        0.38,
        (0.90, 0.92, 0.94),
    ),
}


@dataclass(frozen=True, eq=False)
class Lens:
    """A camera: rotation (3, 3) with rows right, up and backwards, the eye (3,), and pixels per
    unit of x / depth.
    """

    turn: Array
    eye: Array
    focus: float
    width: int
    height: int

    @staticmethod
    def around(
        target: Array, size: float, yaw: float, pitch: float, width: int, height: int
    ) -> Lens:
        """A lens that looks at a target so that a thing of some size fills the picture."""
        back = np.array(
            [math.cos(pitch) * math.cos(yaw), math.cos(pitch) * math.sin(yaw), math.sin(pitch)]
        )
        right = np.cross([0.0, 0.0, 1.0], back)
        right /= np.linalg.norm(right)
        focus = 0.5 * min(width, height) / math.tan(0.5 * FIELD_OF_VIEW)
        return Lens(
            np.stack([right, np.cross(back, right), back]),
            target + DISTANCE * size * back,
            focus,
            width,
            height,
        )

    def seen(self, points: Array) -> Array:
        """Points (n, 3) of the world as (x, y) in pixels, y downwards, and 1 / depth, negative
        behind the eye.
        """
        x = (points - self.eye) @ self.turn.T
        near = 1.0 / np.where(np.abs(x[:, 2]) < 1e-9, -1e-9, -x[:, 2])
        out: Array = np.stack(
            [
                self.width / 2 + self.focus * x[:, 0] * near,
                self.height / 2 - self.focus * x[:, 1] * near,
                near,
            ],
            axis=1,
        )
        return out


def covered(corners: Array, width: int, height: int) -> tuple[Pixels, Pixels, Pixels]:
    """(triangle, x, y) of every pixel whose centre lies in one of the triangles (m, 3, 2): rows
    first, then runs along them.
    """
    ys = corners[:, :, 1]
    top = np.clip(np.ceil(ys.min(axis=1) - 0.5), 0, height).astype(np.int64)
    end = np.clip(np.ceil(ys.max(axis=1) - 0.5), 0, height).astype(np.int64)
    which, row = _runs(top, end)
    y = row + 0.5
    low, high = np.full(len(which), -np.inf), np.full(len(which), np.inf)
    for k in range(
        3
    ):  # each edge that the row crosses bounds the run on one side; the row meets two of the three
        a, b = corners[which, k], corners[which, (k + 1) % 3]
        rise = b[:, 1] - a[:, 1]
        meets = (
            (np.minimum(a[:, 1], b[:, 1]) <= y)
            & (y <= np.maximum(a[:, 1], b[:, 1]))
            & (rise != 0.0)
        )
        x = a[:, 0] + (y - a[:, 1]) * (b[:, 0] - a[:, 0]) / np.where(rise == 0.0, 1.0, rise)
        first = meets & ~np.isfinite(low)
        again = meets & ~first
        high = np.where(first, x, np.where(again, np.maximum(high, x), high))
        low = np.where(first, x, np.where(again, np.minimum(low, x), low))
    good = np.isfinite(low)
    which, row, low, high = which[good], row[good], low[good], high[good]
    start = np.clip(np.ceil(low - 0.5), 0, width).astype(np.int64)
    stop = np.clip(np.ceil(high - 0.5), 0, width).astype(np.int64)
    run, column = _runs(start, stop)
    return which[run], column, row[run]


def _runs(start: Pixels, stop: Pixels) -> tuple[Pixels, Pixels]:
    """(i, k) for every k from start[i] up to stop[i]."""
    count = np.maximum(stop - start, 0)
    which = np.repeat(np.arange(len(start)), count)
    first = np.cumsum(count) - count
    return which, np.arange(len(which)) - first[which] + start[which]


def shaded(
    lens: Lens, points: Array, normals: Array, faces: Pixels, colours: Array
) -> tuple[Pixels, Array]:
    """(pixels (n,), colours (n, 3)) of triangles under the light: the nearest at every pixel, its
    normal smooth.
    """
    seen = lens.seen(points)
    faces_kept = np.flatnonzero((seen[faces, 2] > 0.0).all(axis=1))
    corners = seen[faces[faces_kept]]
    which, x, y = covered(corners[:, :, :2], lens.width, lens.height)
    if not len(which):
        return which, np.zeros((0, 3))
    # 1 / depth is linear across the picture: a plane through each triangle's corners
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    area = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (c[:, 0] - a[:, 0]) * (b[:, 1] - a[:, 1])
    area = np.where(area == 0.0, 1e-30, area)
    gx = (
        (b[:, 2] - a[:, 2]) * (c[:, 1] - a[:, 1]) - (c[:, 2] - a[:, 2]) * (b[:, 1] - a[:, 1])
    ) / area
    gy = (
        (b[:, 0] - a[:, 0]) * (c[:, 2] - a[:, 2]) - (c[:, 0] - a[:, 0]) * (b[:, 2] - a[:, 2])
    ) / area
    near = a[which, 2] + gx[which] * (x + 0.5 - a[which, 0]) + gy[which] * (y + 0.5 - a[which, 1])
    at = y * lens.width + x
    scale = (1 << 30) / max(float(corners[:, :, 2].max()), 1e-30)
    key = (
        np.clip(near * scale, 0, 1 << 31).astype(np.int64) << 24
    ) | which  # nearest first; which triangle, below it
    best = np.full(lens.height * lens.width, -1, dtype=np.int64)
    np.maximum.at(best, at, key)
    drawn = np.flatnonzero(best >= 0)
    face = best[drawn] & ((1 << 24) - 1)
    px, py = drawn % lens.width + 0.5, drawn // lens.width + 0.5
    a, b, c = corners[face, 0], corners[face, 1], corners[face, 2]
    v = (
        ((px - a[:, 0]) * (c[:, 1] - a[:, 1]) - (c[:, 0] - a[:, 0]) * (py - a[:, 1]))
        / area[face]
        * b[:, 2]
    )
    w = (
        ((b[:, 0] - a[:, 0]) * (py - a[:, 1]) - (px - a[:, 0]) * (b[:, 1] - a[:, 1]))
        / area[face]
        * c[:, 2]
    )
    u = np.maximum(1.0 - (v / b[:, 2] + w / c[:, 2]), 0.0) * a[:, 2]
    whole = faces[faces_kept[face]]
    n = (
        u[:, None] * normals[whole[:, 0]]
        + v[:, None] * normals[whole[:, 1]]
        + w[:, None] * normals[whole[:, 2]]
    )
    n /= np.maximum(np.linalg.norm(n, axis=1), 1e-12)[:, None]
    back = np.stack(
        [
            -(px - lens.width / 2) / lens.focus,
            (py - lens.height / 2) / lens.focus,
            np.ones_like(px),
        ],
        axis=1,
    )
    back = back / np.linalg.norm(back, axis=1)[:, None] @ lens.turn
    facing = (n * back).sum(axis=1)
    n, facing = np.where(facing[:, None] < 0.0, -n, n), np.abs(facing)
    half = LIGHT + back
    gloss = np.maximum((n * half).sum(axis=1) / np.linalg.norm(half, axis=1), 0.0) ** 42
    light = 0.63 + 0.11 * n[:, 2] + 0.36 * np.maximum(n @ LIGHT, 0.0)
    glints = 0.16 * gloss + 0.10 * (1.0 - facing) ** 3
    return drawn, np.clip(colours[faces_kept[face]] * light[:, None] + glints[:, None], 0.0, 1.0)


def shadow(lens: Lens, points: Array, faces: Pixels, floor: float) -> Pixels:
    """The pixels where the shadow of triangles falls on the floor."""
    mask = np.zeros(lens.height * lens.width, dtype=np.bool_)
    above = points[:, 2] - floor
    flat = points - LIGHT / LIGHT[2] * above[:, None]
    seen = lens.seen(flat)
    good = (seen[faces, 2] > 0.0).all(axis=1) & (above[faces] >= 0.0).all(axis=1)
    _, x, y = covered(seen[faces[good]][:, :, :2], lens.width, lens.height)
    mask[y * lens.width + x] = True
    return np.flatnonzero(mask)


class Floor:
    """Sky and floor before a lens, the floor's squares fading with the distance from a centre below
    what is looked at.

    All that does not change while the lens moves along the floor is computed once: only the squares
    move then.
    """

    def __init__(
        self, lens: Lens, look: Look, centre: Array, size: float, floor: float, cell: float
    ) -> None:
        self.look, self.cell = look, cell
        self.drop = floor - lens.eye[2]
        x, y = np.meshgrid(
            np.arange(lens.width) + 0.5 - lens.width / 2,
            np.arange(lens.height) + 0.5 - lens.height / 2,
        )
        ray = np.stack([x / lens.focus, -y / lens.focus, -np.ones_like(x)], axis=-1) @ lens.turn
        hit = ray[..., 2] * self.drop > 0.0
        along = np.where(hit, self.drop / np.where(ray[..., 2] == 0.0, 1.0, ray[..., 2]), 0.0)
        away = np.where(hit[..., None], along[..., None] * ray[..., :2], 1e6 * size)
        far = np.hypot(*np.moveaxis(away + lens.eye[:2] - centre[:2], -1, 0)) / (8.0 * size)
        fade = np.clip((1.0 - far) / 0.85, 0.0, 1.0)
        self.fade = (fade * fade * (3.0 - 2.0 * fade)).astype(np.float32)
        wide = [
            np.abs(np.gradient(away[..., i], axis=0))
            + np.abs(np.gradient(away[..., i], axis=1))
            + 1e-9
            for i in (0, 1)
        ]
        self.rows = slice(
            int(np.argmax(self.fade.any(axis=1))), lens.height
        )  # above them there is only sky
        self.wide = [wide[i][self.rows].astype(np.float32) for i in (0, 1)]
        self.away = [away[self.rows, :, i].astype(np.float32) for i in (0, 1)]

    def picture(self, eye: Array) -> Image:
        """The picture from an eye at the same height, turned the same way."""
        found = np.empty((*self.fade.shape, 3), dtype=np.float32)
        found[:] = self.look.paper
        rows, fade = self.rows, self.fade[self.rows]
        k = (
            np.maximum(0.30 * self._lines(eye, self.cell), 0.5 * self._lines(eye, 5.0 * self.cell))
            * fade
        )
        cover = np.maximum(k, np.float32(0.85) * fade)
        for i, (paper, plate, grid) in enumerate(
            zip(self.look.paper, self.look.plate, self.look.grid, strict=True)
        ):
            found[rows, :, i] += cover * ((plate - paper) + (grid - plate) * k)
        return found

    def _lines(self, eye: Array, cell: float) -> Image:
        """How much of a pixel the lines of squares cover, each about a pixel wide; none where
        squares are smaller than pixels.
        """
        scale = np.float32(1.0 / cell)
        apart = []
        for i in (0, 1):
            at = self.away[i] * scale + np.float32(eye[i] / cell % 1.0)
            apart.append(np.abs(at - np.round(at)) / (self.wide[i] * scale))
        dense = np.clip((0.5 - scale * np.maximum(*self.wide)) / 0.45, 0.0, 1.0)
        out: Image = (1.0 - np.minimum(np.minimum(*apart), 1.0)) * dense
        return out


def blended(picture: Image, at: Pixels, colours: Array, alpha: float = 1.0) -> Image:
    """A picture (h, w, 3) under samples of one FINE times as wide and high: each covers its share
    of a pixel.
    """
    height, width = picture.shape[:2]
    pixel = at // (FINE * width) // FINE * width + at % (FINE * width) // FINE
    share = alpha / FINE**2
    out = picture.reshape(-1, 3).copy()
    out *= (1.0 - share * np.bincount(pixel, minlength=height * width))[:, None].astype(np.float32)
    for k in range(3):
        out[:, k] += share * np.bincount(pixel, colours[:, k], minlength=height * width).astype(
            np.float32
        )
    return out.reshape(height, width, 3)
