"""The shape of the ground: how deep a point of the world is in it, and along which direction the
ground pushes.

A terrain gives for a place p the depth d(p), negative above the ground, and the normal N = -grad d.
On planes d is the distance and N a unit vector. A height field measures d vertically, and N is as
long as its slope makes it; because N stays the gradient of the depth, a spring in the ground gives
back exactly what it took, on any terrain.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final, Literal, Self

import numpy as np

from ramify.core.arrays import real, refuse_masks
from ramify.core.cached import cached_property
from ramify.core.errors import StateError
from ramify.core.lookup import LookupTable, repr_with_digests
from ramify.core.names import one_of
from ramify.core.records import settle
from ramify.core.scalar import Scalar, floor, lookup, select, sqrt
from ramify.core.spatial import Vec3
from ramify.documents.forms import Choice, Number, Numbers, Rows
from ramify.documents.kinds import Registry, check_numbers, key

TERRAINS: Final[Registry[Terrain]] = Registry("terrain", key="kind", guessed=True)
"""Terrains by their words; where a file gives no kind, the keys say which is meant."""
_LEAST_RISE: Final = 1e-6
"""Cosine between a normal and the upward direction, at least: a steeper plane is a wall."""
Triple = tuple[float, float, float]
ROUNDING: Final = 0.02
"""Part of the spacing, to either side of a grid line, over which the crease of a linear height
field is rounded. On a sharp one a foot would chatter: the direction of the force would jump from
step to step.
"""


@dataclass(frozen=True, kw_only=True)
class Terrain(ABC):
    """A surface. A kind of terrain is a frozen dataclass that writes ``under``.

    up: the upward direction (3,) in the world; None: against gravity. Ahead is along the world's x
    (along y where x points up), left completes a right-handed set.

    The fields that a kind adds are its keys in files. Its repr must say all that the surface
    depends on: compiled code is kept under it.
    """

    up: Any = field(default=None, metadata=key(Numbers(3)))

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.up is not None:
            settle(self, up=_direction(type(self).__name__, "up", self.up))

    @abstractmethod
    def under(self, place: Vec3) -> tuple[Scalar, Vec3]:
        """(depth, normal) at a place (m) of the world, over any scalar."""

    def unit_normal(self, place: Vec3) -> Vec3:
        """The normal at a place as a unit vector."""
        _, normal = self.under(place)
        return normal * (1.0 / sqrt(normal.dot(normal)))

    def fitted(self, up: Sequence[float]) -> Self:
        """The terrain with its upward direction fixed; ``up`` is that against gravity. Raises
        StateError for a ceiling.
        """
        if self.up is not None and float(np.dot(self.up, up)) < _LEAST_RISE:
            raise StateError(
                f"{type(self).__name__}: up {list(self.up)} does not point up: gravity pulls "
                f"against {list(up)}"
            )
        return self if self.up is not None else replace(self, up=tuple(up))

    @property
    def axes(self) -> tuple[Triple, Triple, Triple]:
        """(ahead, left, up), unit vectors of the world."""
        return level_axes((0.0, 0.0, 1.0) if self.up is None else self.up)

    def described(self) -> Mapping[str, Any]:
        """The mapping that gives this terrain again."""
        document: Mapping[str, Any] = TERRAINS.write(self)
        return document


@TERRAINS.add("flat")
@dataclass(frozen=True, kw_only=True)
class Flat(Terrain):
    """A level plane, ``height`` (m) above the world's origin."""

    height: float = field(default=0.0, metadata=key(Number(), unit="m"))

    def under(self, place: Vec3) -> tuple[Scalar, Vec3]:
        up = Vec3(*self.axes[2])
        return self.height - up.dot(place), up


@TERRAINS.add("slope")
@dataclass(frozen=True, kw_only=True)
class Slope(Terrain):
    """A plane that rises by ``angle`` (rad) towards ``heading`` (rad from ahead, turning left), or
    the one with a ``normal`` (3,).

    It passes ``height`` (m) above the world's origin.
    """

    angle: float = field(default=0.0, metadata=key(Number(degrees=True), unit="rad", name="slope"))
    heading: float = field(default=0.0, metadata=key(Number(degrees=True), unit="rad"))
    height: float = field(default=0.0, metadata=key(Number(), unit="m"))
    normal: Any = field(default=None, metadata=key(Numbers(3)))

    def __post_init__(self) -> None:
        super().__post_init__()
        if abs(self.angle) >= 0.5 * math.pi:
            raise StateError(f"Slope: angle is {self.angle} rad; it must be within a quarter turn")
        if self.normal is not None:
            if self.angle or self.heading:
                raise StateError(
                    "Slope: angle and heading say the same as normal; give one of both"
                )
            settle(self, normal=_direction("Slope", "normal", self.normal))

    @property
    def direction(self) -> Triple:
        """The unit normal, in the world."""
        if self.normal is not None:
            return _triple(self.normal)
        ahead, left, up = (np.array(x) for x in self.axes)
        uphill = math.cos(self.heading) * ahead + math.sin(self.heading) * left
        return _triple(math.cos(self.angle) * up - math.sin(self.angle) * uphill)

    def fitted(self, up: Sequence[float]) -> Self:
        slope = super().fitted(up)
        rises = float(np.dot(slope.direction, slope.axes[2]))
        if rises < _LEAST_RISE:
            raise StateError(
                f"Slope: normal {list(slope.direction)} does not point up, along "
                f"{list(slope.axes[2])}: a wall or a ceiling is not a "
                f"ground{'; turn its sign' if rises < -_LEAST_RISE else ''}"
            )
        return slope

    def under(self, place: Vec3) -> tuple[Scalar, Vec3]:
        n, up = Vec3(*self.direction), Vec3(*self.axes[2])
        return self.height * up.dot(n) - n.dot(place), n


@TERRAINS.add("height_field")
@dataclass(frozen=True, kw_only=True, repr=False)
class HeightField(Terrain):
    """Heights (nx, ny) in m over a grid, ``spacing`` (m) apart (one number, or ahead and left), the
    first at ``origin`` (2,).

    kind: "linear" between the nodes, or "cubic" (Catmull-Rom through the nodes, level at the
    edges). Beyond its edges the ground goes on level with them. Slopes are continuous: the creases
    of a linear field are rounded by parabolas over ``ROUNDING`` of the spacing to either side,
    which moves a node by a quarter of that part of its second difference.
    """

    heights: Any = field(metadata=key(Rows(), unit="m"))
    spacing: Any = field(metadata=key(Numbers(single=True), unit="m"))
    origin: Any = field(default=(0.0, 0.0), metadata=key(Numbers(2), unit="m"))
    kind: Literal["linear", "cubic"] = field(
        default="linear", metadata=key(Choice(("linear", "cubic")), name="interpolate")
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("heights", "spacing", "origin"):
            refuse_masks(f"HeightField: {name}", getattr(self, name))
        try:
            grid = np.array(real("heights", self.heights))
            step = np.broadcast_to(real("spacing", self.spacing), (2,))
            origin = np.array(real("origin", self.origin))
        except ValueError:
            raise StateError(f"HeightField: {_amiss(self.heights)}") from None
        if grid.ndim != 2 or min(grid.shape) < 2:
            raise StateError(
                "HeightField: heights must be (nx, ny) with at least 2 each way; the shape is "
                f"{grid.shape}"
            )
        if not np.isfinite(grid).all():
            i, j = np.argwhere(~np.isfinite(grid))[0].tolist()
            raise StateError(
                f"HeightField: heights[{i}][{j}] is {grid[i, j]}; it must be finite, in m"
            )
        if not (np.isfinite(step).all() and (step > 0.0).all()):
            raise StateError(
                f"HeightField: spacing {self.spacing} must be finite and positive, in m"
            )
        if origin.shape != (2,) or not np.isfinite(origin).all():
            raise StateError(f"HeightField: origin {self.origin} must be two finite numbers, in m")
        one_of("HeightField: kind", self.kind, ("linear", "cubic"), StateError)
        settle(
            self,
            heights=tuple(map(tuple, grid.tolist())),
            spacing=(float(step[0]), float(step[1])),
            origin=(float(origin[0]), float(origin[1])),
        )

    def __repr__(self) -> str:
        return self._shown

    @cached_property
    def _shown(self) -> str:
        return repr_with_digests(self, "heights")

    @cached_property
    def _table(self) -> LookupTable:
        return LookupTable(self.heights)

    def under(self, place: Vec3) -> tuple[Scalar, Vec3]:
        ahead, left, up = (Vec3(*axis) for axis in self.axes)
        counts = len(self.heights), len(self.heights[0])
        weights = _linear if self.kind == "linear" else _cubic
        along = [
            weights(axis.dot(place), start, step, n)
            for axis, start, step, n in zip(
                (ahead, left), self.origin, self.spacing, counts, strict=True
            )
        ]
        (ix, wx, dx), (iy, wy, dy) = along
        near = [[lookup(self._table, i * float(counts[1]) + j) for j in iy] for i in ix]
        rows = [_sum(wy, row) for row in near]
        height, by_x = _sum(wx, rows), _sum(dx, rows)
        by_y = _sum(wx, [_sum(dy, row) for row in near])
        return height - up.dot(place), up - ahead * by_x - left * by_y


# ---- interpolation: the four nodes about a place, a weight for each, and its derivative ----

Nodes = tuple[list[Scalar], list[Scalar], list[Scalar]]
"""Places of nodes along an axis, their weights, and the derivatives of the weights."""


def _linear(x: Scalar, start: float, step: float, n: int) -> Nodes:
    """Straight between the nodes, level beyond the edges, creases rounded.

    Between node i and i + 1 a ramp r_i climbs from zero to one; node i weighs r_(i-1) - r_i. A node
    beyond an edge is as high as the edge.
    """
    u = _clipped((x - start) / step, -1.0, float(n))
    i = floor(u)
    bends = [_bend(u - i + (1.0 - k)) for k in range(4)]
    ramps = [(a - b, (da - db) / step) for (a, da), (b, db) in pairwise(bends)]
    ends = list(pairwise([(1.0, 0.0), *ramps, (0.0, 0.0)]))
    return (
        [_clipped(i + (k - 1.0), 0.0, n - 1.0) for k in range(4)],
        [a - b for (a, _), (b, _) in ends],
        [da - db for (_, da), (_, db) in ends],
    )


def _bend(u: Scalar) -> tuple[Scalar, Scalar]:
    """max(u, 0) and its derivative, with a parabola for |u| < ROUNDING."""
    h = u + ROUNDING
    left, right = u > -ROUNDING, u < ROUNDING
    curved = h * (0.5 / ROUNDING)
    return select(left, select(right, 0.5 * h * curved, u), 0.0), select(
        left, select(right, curved, 1.0), 0.0
    )


def _cubic(x: Scalar, start: float, step: float, n: int) -> Nodes:
    """Catmull and Rom's cubics. A node beyond an edge is the mirror image of the one within: the
    slope is zero at the edge, and the level ground there joins without a crease.
    """
    u = (x - start) / step
    inside = select(u > 0.0, select(u < n - 1.0, 1.0, 0.0), 0.0)
    u = _clipped(u, 0.0, n - 1.0)
    i = _clipped(floor(u), 0.0, n - 2.0)
    found = [_catmull_rom(u - i + (1.0 - k)) for k in range(4)]
    nodes = [i + (k - 1.0) for k in range(4)]
    nodes = [select(j < 0.0, -j, j) for j in nodes]
    nodes = [select(j > n - 1.0, 2.0 * (n - 1.0) - j, j) for j in nodes]
    return nodes, [w for w, _ in found], [d * (inside / step) for _, d in found]


def _catmull_rom(u: Scalar) -> tuple[Scalar, Scalar]:
    """1.5 |u|^3 - 2.5 u^2 + 1 near, -0.5 |u|^3 + 2.5 u^2 - 4 |u| + 2 up to |u| = 2; and its
    derivative.
    """
    sign = select(u < 0.0, -1.0, 1.0)
    a = u * sign
    near, far = a < 1.0, a < 2.0
    w = select(
        near,
        (1.5 * a - 2.5) * a * a + 1.0,
        select(far, ((-0.5 * a + 2.5) * a - 4.0) * a + 2.0, 0.0),
    )
    d = select(near, (4.5 * a - 5.0) * a, select(far, (-1.5 * a + 5.0) * a - 4.0, 0.0))
    return w, d * sign


def _clipped(u: Scalar, low: float, high: float) -> Scalar:
    return select(u > low, select(u < high, u, high), low)


def _sum(weights: Sequence[Scalar], values: Sequence[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for w, x in zip(weights, values, strict=True):
        total = total + w * x
    return total


# ---- directions ----


def level_axes(up: Sequence[float]) -> tuple[Triple, Triple, Triple]:
    """(ahead, left, up), unit vectors: ahead is along the world's x as far as that is level, along
    y where x points up; left completes a right-handed set.
    """
    u = np.array(_direction("level_axes", "up", up))
    x = np.array((0.0, 1.0, 0.0) if abs(u[0]) > 0.9 else (1.0, 0.0, 0.0))
    ahead = x - (x @ u) * u
    ahead = ahead / np.linalg.norm(ahead)
    return _triple(ahead), _triple(np.cross(u, ahead)), _triple(u)


# ---- numbers ----


def _amiss(heights: Any) -> str:
    """Why the numbers of a height field make no arrays."""
    try:
        lengths = [len(row) for row in heights]
    except TypeError:
        lengths = []
    odd = next((i for i, n in enumerate(lengths) if n != lengths[0]), None)
    if odd is not None:
        return (
            f"heights[{odd}] has {lengths[odd]} entries, heights[0] has {lengths[0]}; all rows "
            "must be of one length"
        )
    return "heights (nx, ny), spacing (one or two) and origin (2,) must be numbers"


def _triple(value: Any) -> Triple:
    x, y, z = (0.0 if abs(float(c)) < 1e-15 else float(c) for c in value)
    return x, y, z


def _direction(what: str, name: str, value: Any) -> Triple:
    refuse_masks(f"{what}: {name}", value)
    try:
        found = real(name, value)
    except StateError:
        found = np.zeros(3)
    if found.shape != (3,) or not np.isfinite(found).all() or not found.any():
        raise StateError(f"{what}: {name} {value!r} must be three finite numbers, not all zero")
    return _triple(found / np.linalg.norm(found))
