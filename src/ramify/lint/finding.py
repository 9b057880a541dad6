"""What a check of a robot found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from ramify.core.arrays import Array

Level = Literal["error", "warning", "note"]
LEVELS: Final[tuple[Level, ...]] = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """What a check found: how bad (``level``), at which body, joint or model (``where``), its kind
    (``code``) and a sentence for people (``message``).
    """

    level: Level
    where: str
    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.level}: {self.where}: {self.message} [{self.code}]"

    def __repr__(self) -> str:
        return f"<{self}>"


def vector_to_four_digits(u: Array) -> str:
    """A vector as messages show it."""
    return f"({', '.join(f'{x + 0.0:.4g}' for x in u)})"
