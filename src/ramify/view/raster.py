"""A software renderer: triangles with a depth buffer, four samples per pixel and smooth shading,
shadows, trails and a floor. It needs no screen.

What a pixel shows is two texts over any scalar, ``background`` and ``surface``. They are compiled,
or run by NumPy where there is no compiler, which is slower.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ramify.core.arrays import Array
from ramify.core.scalar import Scalar, Scalars, floor, select, sqrt
from ramify.runtime.target import llvm_available
from ramify.trace.program import Port, trace
from ramify.view.geometry import Indices, direction_by_angles
from ramify.view.scan_lines import EDGES, SAMPLES, ScanLines

FIELD_OF_VIEW: Final = 0.6  # rad, of the shorter side
DISTANCE: Final = 1.9  # of the camera, in sizes of what must be seen
LIGHT: Final = np.array([0.45, -0.35, 1.0]) / math.sqrt(0.45**2 + 0.35**2 + 1.0)
RECORD: Final = 14
"""Numbers of a triangle: a, b, c of a x + b y + c for the three components of its normal, its
colour, how much it hides, and whether it is lit.
"""
LENS: Final = 12
"""The first settings are those of the lens: its rotation, its focus and the middle of its picture.
"""

Picture = NDArray[np.uint8]


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
        (0.933, 0.945, 0.961), (0.969, 0.976, 0.984), (0.667, 0.714, 0.765), 0.15,
        (0.11, 0.14, 0.19),
    ),
    "dark": Look(
        (0.086, 0.106, 0.129), (0.110, 0.137, 0.169), (0.275, 0.325, 0.373), 0.38,
        (0.90, 0.92, 0.94),
    ),
}  # fmt: skip


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
        back = direction_by_angles(yaw, pitch)
        right = np.cross([0.0, 0.0, 1.0], back)
        right /= np.linalg.norm(right)
        focus = 0.5 * min(width, height) / math.tan(0.5 * FIELD_OF_VIEW)
        turn = np.stack([right, np.cross(back, right), back])
        return Lens(turn, target + DISTANCE * size * back, focus, width, height)

    def pixels(self, points: Array) -> Array:
        """Points (n, 3) of the world as rows (3, n): x and y in pixels, y downwards, and 1 / depth,
        negative behind the eye.
        """
        x, y, z = self.turn @ (points - self.eye).T
        near = 1.0 / np.where(np.abs(z) < 1e-9, -1e-9, -z)
        right, up = self.focus * x * near, self.focus * y * near
        return np.stack([self.width / 2 + right, self.height / 2 - up, near])


# ---- what a pixel shows ----


def _larger(a: Scalar, b: Scalar) -> Scalar:
    return select(a > b, a, b)


def _within(x: Scalar) -> Scalar:
    """x, cut to 0 … 1."""
    low = select(x < 0.0, 0.0, x)
    return select(low > 1.0, 1.0, low)


def _size(x: Scalar) -> Scalar:
    return select(x < 0.0, -x, x)


def _dot(a: Scalars, b: Scalars) -> Any:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _ray(at: Scalars, settings: Scalars) -> list[Any]:
    """The direction from the eye through a place of the picture."""
    focus, x, y = settings[9:12]
    right, down = (at[0] - x) / focus, (at[1] - y) / focus
    return [
        right * settings[i] - down * settings[3 + i] - settings[6 + i]  # rows of the rotation
        for i in range(3)
    ]


def background(at: Scalars, settings: Scalars) -> list[list[Any]]:
    """(red, green, blue) of sky and floor at a place of the picture: squares whose lines are a
    pixel wide, none where squares are smaller than pixels; all fades with the distance.
    """
    drop, x0, y0, reach, u0, v0, cell = settings[LENS : LENS + 7]
    colours = settings[LENS + 7 :]
    paper, plate, grid = colours[:3], colours[3:6], colours[6:9]
    ray = _ray(at, settings)
    hit = ray[2] * drop > 0.0
    inverse = 1.0 / select(hit, ray[2], 1.0)
    along, focus = drop * inverse, settings[9]
    away = [along * ray[i] for i in (0, 1)]

    def spread(i: int, k: int) -> Scalar:
        return _size((along * settings[k + i] - away[i] * inverse * settings[k + 2]) / focus)

    wide = [sum(spread(i, k) for k in (0, 3)) + 1e-9 for i in (0, 1)]  # of a pixel on the floor
    x, y = away[0] + x0, away[1] + y0
    fade = _within((1.0 - sqrt(x * x + y * y) / reach) / 0.85)
    fade = select(hit, fade * fade * (3.0 - 2.0 * fade), 0.0)

    def lines(width: Scalar) -> Scalar:
        scale, apart = 1.0 / width, []
        for i, start in enumerate((u0, v0)):
            place = (away[i] + start) * scale
            apart.append(_size(place - floor(place + 0.5)) / (wide[i] * scale))
        nearest = select(apart[0] < apart[1], apart[0], apart[1])
        dense = _within((0.5 - scale * _larger(*wide)) / 0.45)
        return (1.0 - select(nearest < 1.0, nearest, 1.0)) * dense

    k = _larger(0.30 * lines(cell), 0.5 * lines(5.0 * cell)) * fade
    cover = _larger(k, 0.85 * fade)
    return [
        [a + cover * ((b - a) + (c - b) * k) for a, b, c in zip(paper, plate, grid, strict=True)]
    ]


def surface(at: Scalars, settings: Scalars, record: Scalars) -> list[list[Any]]:
    """(red, green, blue, what is left of the background) of a triangle at a place of the picture:
    light from the sky and from the sun, gloss, and paler rims.
    """
    n = [record[k] * at[0] + record[k + 1] * at[1] + record[k + 2] for k in (0, 3, 6)]
    ray = _ray(at, settings)
    shrink = -1.0 / sqrt(_dot(ray, ray))
    back = [shrink * x for x in ray]
    facing = _dot(n, back)
    turn = select(facing < 0.0, -1.0, 1.0) / sqrt(_dot(n, n) + 1e-24)  # both sides are drawn
    n, facing = [turn * x for x in n], turn * facing
    sun = [float(x) for x in LIGHT]
    half = [a + b for a, b in zip(sun, back, strict=True)]
    glance = _larger(_dot(n, half) / sqrt(_dot(half, half)), 0.0)
    square = glance * glance
    eighth = square * square * square * square
    gloss = eighth * eighth * eighth * eighth * eighth * square  # glance^42
    light = 0.63 + 0.11 * n[2] + 0.36 * _larger(_dot(n, sun), 0.0)
    rim = 1.0 - facing
    hides, lit = record[12], record[13]
    glints = lit * (0.16 * gloss + 0.10 * rim * rim * rim)
    factor = select(lit > 0.5, light, 1.0)
    return [[_within(record[9 + i] * factor + glints) for i in range(3)] + [1.0 - hides]]


SETTINGS: Final = LENS + 7 + 9


@cache
def _compiled() -> ScanLines:
    place, settings = Port("place", (2,)), Port("settings", (SETTINGS,))
    shown, drawn = Port("colour", (3,)), Port("colour", (4,))
    return ScanLines(
        trace("background", background, (place, settings), (shown,)),
        trace("surface", surface, (place, settings, Port("record", (RECORD,))), (drawn,)),
    )


# ---- triangles ----


@dataclass(frozen=True, eq=False)
class Facets:
    """Triangles before a lens: ``edges`` (n, 12), ``boxes`` (n, 4) and ``records`` (n, 14); see
    ``ramify.view.scan_lines`` and ``RECORD``.
    """

    edges: NDArray[np.float32]
    boxes: Indices
    records: NDArray[np.float32]


def facets(
    lens: Lens, points: Array, faces: Indices, colours: Any, normals: Array | None = None,
    hides: float = 1.0,
) -> Facets:  # fmt: skip
    """Triangles between points (3, m) as ``Lens.pixels`` gives them. With normals (m, 3) they are
    lit; others have their colour, or colours (n, 3), all over.
    """
    points = points[:, faces.T]
    x, y, near = points
    boxes, visible = _boxes(lens, x, y, near)
    x, y, near = x[:, visible], y[:, visible], near[:, visible]
    x1, y1 = x[_NEXT], y[_NEXT]
    sides = y - y1, x1 - x, x * y1 - x1 * y
    area = sides[2][0] + sides[2][1] + sides[2][2]
    sign = np.where(area < 0.0, -1.0, 1.0)
    edges = np.empty((len(visible), EDGES), dtype=np.float32)
    for k, part in enumerate(sides):
        edges[:, k:9:3] = (sign * part).T
    a = edges[:, :9:3]
    edges[:, 12:] = np.divide(-1.0, a, out=np.zeros_like(a), where=np.abs(a) > 1e-6)
    # the share of a corner is that of the edge opposite to it; a sliver is flat
    flat = np.abs(area) < 0.5
    scale = np.where(flat, 0.0, 1.0 / np.where(flat, 1.0, area))
    shares = [scale * part[_NEXT] for part in sides]
    shares[2] += np.where(flat, 1.0 / 3.0, 0.0)
    records = np.zeros((len(visible), RECORD), dtype=np.float32)
    chosen = None if normals is None else normals.T[:, faces[visible].T]
    for k, share in enumerate(shares):
        weight = share * near
        edges[:, 9 + k] = weight[0] + weight[1] + weight[2]
        for i, component in enumerate(() if chosen is None else chosen):
            w = weight * component
            records[:, 3 * i + k] = w[0] + w[1] + w[2]
    records[:, 9:12] = colours[visible] if isinstance(colours, np.ndarray) else colours
    records[:, 12], records[:, 13] = hides, normals is not None
    return Facets(edges, boxes, records)


_NEXT: Final = [1, 2, 0]


def _boxes(lens: Lens, x: Array, y: Array, near: Array) -> tuple[Indices, Indices]:
    """The pixels (first and last in x, in y) around each of the triangles before the eye that touch
    the picture, and which they are.
    """
    ends = []
    for corner, size in ((x, lens.width), (y, lens.height)):
        low = np.minimum(np.minimum(corner[0], corner[1]), corner[2])
        high = np.maximum(np.maximum(corner[0], corner[1]), corner[2])
        ends += [np.ceil(low - 0.875).clip(0, size), np.floor(high + 0.875).clip(0, size)]
    kept = (near[0] > 0.0) & (near[1] > 0.0) & (near[2] > 0.0)
    kept = np.flatnonzero(kept & (ends[0] < ends[1]) & (ends[2] < ends[3]))
    return np.stack([end[kept] for end in ends], axis=1).astype(np.int64), kept


def shadow(lens: Lens, points: Array, faces: Indices, floor_z: float, look: Look) -> Facets:
    """The shadow of triangles on the floor: farther than all that may stand on it."""
    above = points[:, 2] - floor_z
    seen = lens.pixels(points - LIGHT / LIGHT[2] * above[:, None])
    seen[2] = np.where((seen[2] > 0.0) & (above >= 0.0), 1e-30, -1.0)
    return facets(lens, seen, faces, (0.0, 0.0, 0.0), hides=look.shade)


def ribbon(lens: Lens, path: Array, colour: Any, width: float) -> Facets:
    """A path (n, 3) as a line of a width in pixels, before all else."""
    x, y, near = lens.pixels(path)
    at = np.stack([x, y], axis=1)[near > 0.0]
    along = np.diff(at, axis=0)
    along *= 0.5 * width / np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-9)
    out = np.stack([-along[:, 1], along[:, 0]], axis=1)
    start, end = at[:-1] - 0.5 * along, at[1:] + 0.5 * along  # no gaps at corners
    corners = np.concatenate([start - out, start + out, end + out, end - out])
    a, b, c, d = np.arange(len(corners)).reshape(4, -1)
    faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    seen = np.concatenate([corners.T, np.full((1, len(corners)), 1e30)])
    return facets(lens, seen, faces, colour)


class Canvas:
    """Memory for pictures of one size; ``compile``: see the top of this file."""

    def __init__(self, width: int, height: int, compile: bool | None = None) -> None:
        self.width, self.height = width, height
        self._scan = _compiled() if (llvm_available() if compile is None else compile) else None
        lanes = 1 if self._scan is None else self._scan.lanes
        stride = (width + lanes - 1) // lanes * lanes + lanes
        self._near = np.zeros((len(SAMPLES), height, stride), dtype=np.float32)
        self._which = np.zeros((len(SAMPLES), height, stride), dtype=np.int32)

    def picture(self, settings: Array, drawn: Sequence[Facets]) -> Picture:
        """The picture (h, w, 4), red, green, blue and 255, of triangles before a background; see
        ``shading_settings``.
        """
        settings = settings.astype(np.float32)
        records = np.concatenate([np.zeros((0, RECORD), np.float32), *(f.records for f in drawn)])
        first = 1
        for item in drawn:
            self._cover(item, first)
            first += len(item.edges)
        if self._scan is None:
            return self._painted(settings, records)
        picture = np.empty((self.height, self._near.shape[2]), dtype=np.int32)
        sizes = np.array([self.height, self._near.shape[2], self.width], dtype=np.int64)
        self._scan.paint(self.height, sizes, settings, records, self._near, self._which, picture)
        return picture.view(np.uint8).reshape(self.height, -1, 4)[:, : self.width]

    def _cover(self, drawn: Facets, first: int) -> None:
        if self._scan is not None:
            sizes = np.array([self.height, self._near.shape[2], first], dtype=np.int64)
            planes = self._near, self._which
            self._scan.cover(len(drawn.edges), sizes, drawn.edges, drawn.boxes, *planes)
            return
        for k, (box, planes) in enumerate(zip(drawn.boxes, drawn.edges, strict=True)):
            columns, rows = slice(*box[:2]), slice(*box[2:])
            for sample, (right, down) in enumerate(SAMPLES):
                x = (np.arange(*box[:2]) + right).astype(np.float32)
                y = (np.arange(*box[2:]) + down).astype(np.float32)[:, None]
                sides = [planes[i] * x + (planes[i + 1] * y + planes[i + 2]) for i in (0, 3, 6, 9)]
                near = self._near[sample, rows, columns]
                inside = (sides[0] >= 0.0) & (sides[1] >= 0.0) & (sides[2] >= 0.0)
                shown = inside & (sides[3] > near)
                near[shown] = sides[3][shown]
                self._which[sample, rows, columns][shown] = first + k

    def _painted(self, settings: Any, records: Any) -> Picture:
        """What the compiled code does."""
        size = self.height, self.width
        middle = [i + np.float32(0.5) for i in np.indices(size, dtype=np.float32)[::-1]]
        behind = np.stack(np.broadcast_arrays(*background(middle, settings)[0]))
        total = np.zeros((3, *size))
        for which, (right, down) in zip(self._which[:, :, : self.width], SAMPLES, strict=True):
            y, x = np.nonzero(which)
            one = surface([x + right, y + down], settings, records[which[y, x] - 1].T)[0]
            left = np.ones(size)
            left[y, x] = one[3]
            total += left * behind
            total[:, y, x] += one[:3]
        self._near[:], self._which[:] = 0.0, 0
        picture = np.full((*size, 4), 255, dtype=np.uint8)
        levels = np.clip(255.0 / len(SAMPLES) * total + 0.5, 0, 255)
        picture[..., :3] = np.moveaxis(levels, 0, -1).astype(np.uint8)
        return picture


def shading_settings(
    lens: Lens, look: Look, centre: Array, size: float, floor_z: float, cell: float
) -> Array:
    """What ``background`` and ``surface`` need to know. The floor fades with the distance from the
    centre.
    """
    start = lens.eye[:2] % (5.0 * cell)  # far from the origin single precision is coarse
    return np.array(
        [
            *lens.turn.ravel(), lens.focus, lens.width / 2, lens.height / 2,
            floor_z - lens.eye[2], *(lens.eye[:2] - centre[:2]), 8.0 * size, *start, cell,
            *look.paper, *look.plate, *look.grid,
        ]
    )  # fmt: skip
