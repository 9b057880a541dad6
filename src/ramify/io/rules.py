"""What holds in robot files of every kind: which names there are, and how small a negative moment of inertia is rounding."""

from __future__ import annotations

from typing import Final

import numpy as np

from ramify.model.frame import Array

MAX_NAME: Final = 200
"""Characters in a name."""

NAME: Final = f"a name has 1 to {MAX_NAME} printable characters"


def is_name(text: str) -> bool:
    """Whether a text may be the name of a robot, link or joint."""
    return bool(text.strip()) and len(text) <= MAX_NAME and text.isprintable()


def dust(mass: float, inertia: Array) -> float:
    """A moment of inertia above minus this counts as rounded zero, in kg m^2."""
    return 1e-12 * mass + 1e-9 * float(np.abs(inertia).max())
