"""Names of robots, links, joints, points and loops: which there are, and how a message shows a text
that is none.
"""

from __future__ import annotations

from collections.abc import Container
from itertools import count
from typing import Final

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


def fresh(name: str, taken: Container[str]) -> str:
    """A name that is not taken: the given one, or with a number behind it."""
    return next(word for i in count(1) if (word := name if i == 1 else f"{name}_{i}") not in taken)
