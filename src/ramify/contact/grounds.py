"""Grounds as users give them: None, an object, a word, a mapping as in a scenario file, or its
text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ramify.contact.ground import LAWS, Ground
from ramify.contact.robot_on_ground import ContactText
from ramify.core.errors import RamifyError, SimulationError
from ramify.documents.forms import NotedError, Reading
from ramify.documents.mistakes import Mistakes, Path
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
    mistakes = Mistakes("ground")
    raw: object = ground
    if isinstance(ground, str) and (ground.lstrip().startswith("{") or ":" in ground):
        from ramify.documents.yaml_text import parse_yaml  # the YAML library is heavy

        raw = parse_yaml(ground, mistakes, "a ground is a word or a mapping such as {law: firm}")
    else:
        mistakes.with_positions = False
    mistakes.root = raw
    found = ground_of(raw, (), Reading(mistakes), model)
    mistakes.raise_if_any()
    return found


def ground_of(raw: object, path: Path, reading: Reading, model: Robot) -> Ground | None:
    """The ground that a part of a file describes, None for none; None too where there are
    mistakes, which are noted.
    """
    try:
        ground: Ground | None = None if raw is None else LAWS.read(raw, path, reading)
    except NotedError:
        return None
    if ground is None:
        return None
    try:
        ContactText(model, ground)
    except RamifyError as error:
        reading.mistakes.add(path, str(error))
    return ground
