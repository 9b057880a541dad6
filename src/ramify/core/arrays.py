"""The arrays of users: their type, and checks of shapes and numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.core.errors import StateError

Array = NDArray[np.float64]
"""Real numbers, ``float64``."""


def numbers(name: str, value: ArrayLike, size: int, whose: str) -> Array:
    """An array (..., size) of finite real numbers; StateError names what is wrong with it."""
    try:
        raw = np.asarray(value)
        if raw.dtype.kind not in "fiub":
            raise TypeError(f"it holds {raw.dtype} entries")
        a = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise StateError(
            f"{name} must be an array of real numbers, (..., {size}); {error}"
        ) from None
    if a.shape[-1:] != (size,):
        raise StateError(f"{name} has shape {a.shape}; {whose!r} needs (..., {size})")
    if not np.isfinite(a).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(a))[0])
        where = f" of state {place[0] if len(place) == 2 else place[:-1]}" if len(place) > 1 else ""
        raise StateError(f"{name}[{place[-1]}]{where} is {a[place]}; it must be finite")
    return a


def together(**leads: tuple[int, ...]) -> tuple[int, ...]:
    """The batch that some arrays' leading shapes make."""
    try:
        return np.broadcast_shapes(*leads.values())
    except ValueError:
        listing = ", ".join(f"{name} {lead}" for name, lead in leads.items())
        raise StateError(f"the batches do not fit together: {listing}") from None
