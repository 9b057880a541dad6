"""Arrays that this computer cannot hold are refused before they are made."""

from __future__ import annotations

import math
import os
from functools import cache
from typing import Final

from ramify.core.errors import SimulationError

_BYTES: Final = 8
_UNKNOWN: Final = 64 * 2**30
"""Bytes where the system does not say how much memory it has."""


@cache
def memory() -> int:
    """Bytes of this computer's memory."""
    try:
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # Windows
        return _UNKNOWN


def refuse_too_large(what: str, shape: tuple[int, ...], remedy: str) -> None:
    """Refuse numbers of a shape that take more memory than there is; ``remedy``: what to do."""
    wanted = _BYTES * math.prod(shape)
    if wanted > memory():
        sizes = " × ".join(f"{n:,}" for n in shape)
        raise SimulationError(
            f"{what} ({sizes} numbers) would take {wanted / 2**30:,.0f} GiB; this computer has "
            f"{memory() / 2**30:,.0f} GiB; {remedy}"
        )
