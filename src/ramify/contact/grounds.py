"""Grounds as users give them: None, an object, a word, a mapping as in a scenario file, or its
text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ramify.contact.ground import LAWS, Ground
from ramify.contact.law_reader import law_of_argument, law_of_part
from ramify.contact.robot_on_ground import ContactText
from ramify.core.errors import SimulationError
from ramify.documents.forms import Reading
from ramify.documents.mistakes import Path
from ramify.model.robot import Robot


def as_ground(ground: Any, model: Robot) -> Ground | None:
    """The ground that a user means. Raises SimulationError, ModelError or StateError naming what is
    wrong.
    """
    if ground is None or isinstance(ground, Ground):
        return ground
    if not isinstance(ground, (str, Mapping)):
        raise SimulationError(
            f"ground must be a law of rf.contact such as Firm(), a word ({', '.join(LAWS)}) or a "
            f"mapping; it is {ground!r}"
        )
    return law_of_argument(
        "ground", ground, "{law: firm}", lambda raw, reading: ground_of(raw, (), reading, model)
    )


def ground_of(raw: object, path: Path, reading: Reading, model: Robot) -> Ground | None:
    """The ground that a part of a file describes, None for none; None too where there are
    mistakes, which are noted.
    """
    return law_of_part(LAWS, raw, path, reading, lambda ground: ContactText(model, ground))
