"""Shapes of bodies and of the world: what is drawn, and what collides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ramify.core.errors import ModelError
from ramify.model.frame import Frame, is_rigid

SIZES: Final[Mapping[str, tuple[str, ...]]] = {
    "sphere": ("radius",),
    "capsule": ("radius", "length"),
    "box": ("x", "y", "z"),
    "cylinder": ("radius", "length"),
    "plane": (),
    "height_field": ("spacing x", "spacing y"),
}
"""The kinds of shapes, and what their sizes are."""
SURFACES: Final = ("plane", "height_field")
"""Kinds that have an inside without end: only the world has them."""
FRICTION: Final = 0.7
"""Coulomb's coefficient where none is given, as in the grounds of ``rf.contact``."""
ALL_GROUPS: Final = 2**32 - 1


@dataclass(frozen=True)
class Shape:
    """A solid on a body or in the world, in metres: ``box`` (edges x y z), ``cylinder`` (radius,
    length), ``sphere`` (radius), ``capsule`` (radius, length between the centres of its ends); in
    the world also ``plane`` (no size) and ``height_field`` (spacing of its ``heights`` (nx, ny)
    along x and y).

    ``frame`` is the shape's centre in the body's frame; cylinders and capsules lie along their z
    axis, planes and height fields push along it. ``colour``: "#rrggbb", empty where the file gives
    none. ``drawn``: whether pictures show it.

    Two shapes collide where a bit of the ``group`` of one is among those of the ``mask`` of the
    other: see ``ramify.model.collisions``. A shape with neither is for drawing alone. Of two that
    touch, ``friction`` (Coulomb's coefficient) and ``restitution`` (0 to 1) are the larger ones, or
    those of the one with the higher ``priority``; between two ``slippery`` shapes there is no
    friction.
    """

    kind: str
    size: tuple[float, ...]
    frame: Frame = field(default_factory=Frame)
    colour: str = ""
    name: str = ""
    drawn: bool = True
    group: int = 0
    mask: int = 0
    friction: float = FRICTION
    restitution: float = 0.0
    priority: int = 0
    slippery: bool = False
    heights: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        who = f"shape {self.name!r}" if self.name else f"a {self.kind}"
        if self.kind not in SIZES:
            raise ModelError(f"a shape is a {self.kind!r}; choose among {', '.join(SIZES)}")
        names = SIZES[self.kind]
        if len(self.size) != len(names):
            expected = ", ".join(names) or "nothing"
            raise ModelError(f"{who}: size {list(self.size)} must be [{expected}]")
        for name, x in zip(names, self.size, strict=True):
            if not (math.isfinite(x) and x > 0.0):
                raise ModelError(f"{who}: {name} {x} m must be finite and above 0")
        if not is_rigid(self.frame):
            raise ModelError(f"{who}: its frame is not a finite position and a rotation matrix")
        if not (math.isfinite(self.friction) and self.friction >= 0.0):
            raise ModelError(f"{who}: friction {self.friction} must be finite and ≥ 0")
        if not 0.0 <= self.restitution <= 1.0:
            raise ModelError(f"{who}: restitution {self.restitution} must be from 0 to 1")
        for name, bits in (("group", self.group), ("mask", self.mask)):
            if not 0 <= bits <= ALL_GROUPS:
                raise ModelError(f"{who}: {name} {bits} must be from 0 to {ALL_GROUPS} (32 bits)")
        self._check_heights(who)

    def _check_heights(self, who: str) -> None:
        if (self.kind == "height_field") != bool(self.heights):
            raise ModelError(f"{who}: heights belong to a height_field, which must have some")
        if not self.heights:
            return
        lengths = {len(row) for row in self.heights}
        if len(lengths) > 1 or min(lengths) < 2 or len(self.heights) < 2:
            raise ModelError(f"{who}: heights must be (nx, ny), at least 2 each way")
        if not all(math.isfinite(h) for row in self.heights for h in row):
            raise ModelError(f"{who}: heights must be finite, in m")

    @property
    def collides(self) -> bool:
        """Whether it collides with anything, apart from declared pairs."""
        return bool(self.group or self.mask)

    def meets(self, other: Shape) -> bool:
        """Whether it collides with another shape by their groups and masks."""
        return bool(self.group & other.mask or other.group & self.mask)


def hex_colour(parts: Sequence[float]) -> str:
    """ "#rrggbb" of red, green and blue from 0 to 1; empty where these are not three numbers."""
    if len(parts) < 3 or not all(math.isfinite(x) for x in parts):
        return ""
    return "#" + "".join(f"{round(255 * min(max(x, 0.0), 1.0)):02x}" for x in parts[:3])


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green and blue, 0 to 255, of "#rrggbb"."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
