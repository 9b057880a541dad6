"""Tables of numbers that a text looks up: memory of the compiled code, whatever their size."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array
from ramify.core.cached import cached_property

SHOWN: Final = 64
"""Rows that a repr writes out."""


class LookupTable:
    """Numbers (n,), looked up by their place. Equal tables are equal, and their repr says what they
    hold by a digest.
    """

    def __init__(self, values: ArrayLike) -> None:
        self.values: Array = np.array(values, dtype=np.float64).ravel()
        self.values.flags.writeable = False

    @cached_property
    def digest(self) -> str:
        """A name for the numbers."""
        return hashlib.sha256(self.values.tobytes()).hexdigest()[:32]

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Table({len(self)} numbers, {self.digest})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LookupTable) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def repr_with_digests(record: Any, *long: str) -> str:
    """The repr of a dataclass; the fields ``long`` by a digest where they have many rows."""
    values = {f.name: getattr(record, f.name) for f in fields(record) if f.repr}
    for name in long:
        values[name] = LookupTable(values[name]) if len(values[name]) > SHOWN else values[name]
    parts = [f"{name}={value!r}" for name, value in values.items()]
    return f"{type(record).__qualname__}({', '.join(parts)})"
