"""What the loops of a robot did over a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import StateError


@dataclass(frozen=True, eq=False, repr=False)
class Loops:
    """The loops over a run: ``gap`` (T, nc) the residuals, in ``units``; ``multipliers`` (T, nc), N
    or N m; ``power`` (T,), W, of the constraint forces, which do no work as long as the loops stay
    closed. ``names`` a name per constraint.

    Raises StateError where an array has the wrong shape.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    gap: Array
    multipliers: Array
    power: Array

    def __post_init__(self) -> None:
        rows, n = len(self.power), len(self.names)
        for name, shape in (("gap", (rows, n)), ("multipliers", (rows, n)), ("power", (rows,))):
            values = np.array(getattr(self, name), dtype=np.float64)
            if values.shape != shape:
                raise StateError(f"loops.{name} has shape {values.shape}; it must be {shape}")
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    def __repr__(self) -> str:
        return (
            f"<loops over {len(self.power)} times: gap and multipliers of "
            f"{', '.join(self.names)}; largest gap {self.largest_gap:.2g}>"
        )

    @property
    def largest_gap(self) -> float:
        """The largest residual of the run."""
        return float(np.abs(self.gap).max(initial=0.0))

    @property
    def forces(self) -> tuple[str, ...]:
        """A unit per multiplier."""
        return tuple("N" if unit == "m" else "N m" for unit in self.units)
