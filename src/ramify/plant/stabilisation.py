"""Ways to keep loops closed."""

from __future__ import annotations

from math import inf
from typing import Final

from ramify.core.errors import SimulationError
from ramify.core.messages import shown

STABILISATIONS: Final = ("projection", "none")
"""The ways that have a name; a number is Baumgarte's rate in 1/s."""


def stabilisation_rate(stabilisation: object) -> float:
    """Baumgarte's rate, 1/s; 0 for the ways by name. SimulationError for anything else."""
    from ramify.core.arrays import one_number  # the command line starts without NumPy

    if isinstance(stabilisation, str) and stabilisation in STABILISATIONS:
        return 0.0
    rate = one_number(stabilisation)
    if 0.0 < rate < inf:
        return rate
    raise SimulationError(
        f"stabilisation {shown(stabilisation)} must be 'projection', 'none', or a rate in 1/s "
        "above 0 (Baumgarte's)"
    )
