"""Grounds as users name them: None, an object, a word, or a mapping as in a scenario file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ramify.contact.firm import Dusty, Firm
from ramify.contact.ground import Ground
from ramify.contact.hunt_crossley import HuntCrossley
from ramify.contact.terrain import Flat, HeightField, Slope, Terrain
from ramify.core.errors import SimulationError
from ramify.model.robot import Robot

LAWS: Final[Mapping[str, type[Ground]]] = {law.word: law for law in (Firm, Dusty, HuntCrossley)}
"""Laws by their words."""
TERRAINS: Final[Mapping[str, type[Terrain]]] = {
    kind.word: kind for kind in (Flat, Slope, HeightField)
}
"""Terrains by their words."""


def as_ground(ground: Any, model: Robot) -> Ground | None:
    """The ground that a user means. Raises SimulationError, ModelError or StateError naming what is
    wrong.
    """
    if ground is None or isinstance(ground, Ground):
        return ground
    if isinstance(ground, (str, Mapping)):
        from ramify.contact.reader import (
            read_ground,
        )  # pydantic is heavy: only for words and mappings

        return read_ground(ground, model)
    raise SimulationError(
        f"ground {ground!r} will not do; give a law of rf.contact such as Firm(), a word "
        f"({', '.join(LAWS)}) or a mapping"
    )
