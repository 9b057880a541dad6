"""What holds in robot files of every kind: how small a negative moment of inertia is rounding."""

from __future__ import annotations

import numpy as np

from ramify.model.frame import Array


def dust(mass: float, inertia: Array) -> float:
    """A moment of inertia above minus this counts as rounded zero, in kg m^2."""
    return 1e-12 * mass + 1e-9 * float(np.abs(inertia).max())
