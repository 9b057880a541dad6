"""Tables of numbers that a text looks up: memory of the compiled code, whatever their size."""

from __future__ import annotations

import hashlib
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array


class Table:
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
        return isinstance(other, Table) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)
