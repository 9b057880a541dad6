"""The errors ramify raises. Each message names the culprit and what would be right."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

LONGEST_WORD: Final = 300
"""Characters of a word that a message quotes whole: more than any valid name has."""
LONGEST_LINE: Final = 2000
"""Characters of a line of a message."""


def shortened(text: str) -> str:
    """A message without the middles of words and lines that are too long to read."""
    if len(text) <= LONGEST_WORD:
        return text
    text = re.sub(rf"\S{{{LONGEST_WORD + 1},}}", lambda word: _ends(word[0], 48, 12, "…"), text)
    lines = text.split("\n")
    return "\n".join(_ends(line, LONGEST_LINE - 400, 300, " … ", LONGEST_LINE) for line in lines)


def _ends(text: str, first: int, last: int, gap: str, most: int = 0) -> str:
    left_out = f"{gap}({len(text) - first - last} characters left out){gap}"
    return text if len(text) <= most else f"{text[:first]}{left_out}{text[-last:]}"


class RamifyError(ValueError):
    """Anything ramify refuses to do. Long words and lines of a message are shortened."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(shortened(x) if isinstance(x, str) else x for x in args))


class ModelError(RamifyError):
    """A robot that cannot be built: a bad file, an impossible inertia, a cycle, an unknown name.
    ``key``: the part of the robot that it is about, as far as that is known, such as ("limits",) of
    a joint.
    """

    def __init__(self, *args: object, key: tuple[str | int, ...] = ()) -> None:
        super().__init__(*args)
        self.key = key


@contextmanager
def about(*key: str | int) -> Iterator[None]:
    """What raises a ModelError inside is about this part of the robot."""
    try:
        yield
    except ModelError as error:
        error.key = (*key, *error.key)
        raise


class StateError(RamifyError):
    """Coordinates, rates, accelerations or torques that a model cannot take: wrong shape, NaN,
    infinity.
    """


class LoopError(RamifyError):
    """A closed loop that cannot be assembled or moved."""


class SimulationError(RamifyError):
    """A simulation that cannot go on. ``result`` holds what was computed until then, where there is
    something.
    """

    result: object | None = None
