"""Names of robots, links, joints, points and loops: which there are, and how a message shows a text
that is none.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import count
from typing import Final

from ramify.core.errors import RamifyError
from ramify.core.messages import shown

MAX_NAME: Final = 200
"""Characters in a name."""

NAME: Final = f"a name has 1 to {MAX_NAME} printable characters"


def is_name(text: str) -> bool:
    """Whether a text may be the name of a robot, link or joint."""
    return bool(text.strip()) and len(text) <= MAX_NAME and text.isprintable()


def escaped(text: str, keep: str = "") -> str:
    """A text with control characters, and those that turn the direction of writing, as escapes;
    ``keep`` are let pass.
    """
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text
    )


def one_of(
    name: str, value: object, choices: Sequence[str], error: type[RamifyError] = RamifyError
) -> None:
    """Refuse a value that is none of the words; an array is none either."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(map(repr, choices[:-1])) + " or " if choices[1:] else ""
        raise error(f"{name} must be {listed}{choices[-1]!r}; got {shown(value)}")


def names_of(name: str, value: object) -> list[str]:
    """Names: several, or one. Raises RamifyError for what holds others than texts."""
    try:
        found = [value] if isinstance(value, str) else list(value)  # type: ignore[call-overload]
    except TypeError:
        found = [None]
    if not all(isinstance(x, str) for x in found):
        raise RamifyError(f"{name} must be names, as a list of texts; got {shown(value)}")
    return found


def fresh(name: str, taken: Container[str]) -> str:
    """A name that is not taken: the given one, or with a number behind it."""
    return next(word for i in count(1) if (word := name if i == 1 else f"{name}_{i}") not in taken)
