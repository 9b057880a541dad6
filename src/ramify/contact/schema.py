"""What a file may say of a ground and its terrain: the keys of each kind and their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from ramify.documents.schema import (
    Late,
    Name,
    Names,
    NotNegative,
    Number,
    Pair,
    Positive,
    Row,
    Table,
    Vector,
)


class GroundPart(Late):
    """What all grounds take."""

    law: Name
    terrain: Any = None
    points: Names | None = None
    friction: NotNegative | None = None
    chosen: list[Name] | None = None  # in the record of a run: what had been left open


class BookGroundPart(GroundPart):
    stiffness: Positive | None = None
    damping: NotNegative | None = None
    overdamping: NotNegative | None = None
    horizontal_damping: Positive | None = None


class FirmPart(BookGroundPart):
    top_speed: Positive | None = None
    full_depth: Positive | None = None


class DustyPart(BookGroundPart):
    dust: NotNegative | None = None


class HuntCrossleyPart(GroundPart):
    stiffness: Positive | None = None
    exponent: Positive | None = None
    dissipation: NotNegative | None = None
    slip_speed: Positive | None = None


GROUNDS: Final[Mapping[str, type[GroundPart]]] = {
    "firm": FirmPart,
    "dusty": DustyPart,
    "hunt_crossley": HuntCrossleyPart,
}
"""Grounds by the word after ``law``."""


class TerrainPart(Late):
    kind: Name | None = None
    up: Vector | None = None


class FlatPart(TerrainPart):
    height: Number | None = None


class SlopePart(FlatPart):
    slope: Number | None = None
    slope_deg: Number | None = None
    heading: Number | None = None
    heading_deg: Number | None = None
    normal: Vector | None = None


class HeightFieldPart(TerrainPart):
    heights: Table
    spacing: Row
    origin: Pair | None = None
    interpolate: Literal["linear", "cubic"] | None = None


TERRAIN_PARTS: Final[Mapping[str, type[TerrainPart]]] = {
    "flat": FlatPart,
    "slope": SlopePart,
    "height_field": HeightFieldPart,
}
"""Terrains by the word after ``kind``; without it the keys tell."""
