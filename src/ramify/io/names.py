"""Names that do not clash."""

from __future__ import annotations

from collections.abc import Container
from itertools import count


def fresh(name: str, taken: Container[str]) -> str:
    """A name that is not taken: the given one, or with a number behind it."""
    return next(word for i in count(1) if (word := name if i == 1 else f"{name}_{i}") not in taken)
