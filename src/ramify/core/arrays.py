"""The arrays of users: their type, and checks of shapes and numbers.

**States that are not known.** In a batch, a state with NaN is one that is not known, such as one
that failed in a rollout. Every number of its answer is NaN; the other states are answered as if it
were not there. NaN in a single state, or in an input that all states of a batch share, is an error,
and so is an infinite number anywhere.
"""

from __future__ import annotations

import math
from ctypes import addressof, c_char
from math import isfinite
from numbers import Real
from operator import index

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.core.errors import RamifyError, StateError
from ramify.core.messages import shown

Array = NDArray[np.float64]
"""Real numbers, ``float64``."""
_DOUBLE = np.dtype(np.float64)
_FEW = 8192
"""Threads of BLAS share products of more numbers, and wait for each other on a busy machine."""


def constant(values: ArrayLike) -> Array:
    """A copy of the values that cannot be written to."""
    made: Array = np.array(values, dtype=np.float64)
    made.flags.writeable = False
    return made


def real(name: str, value: object, error: type[RamifyError] = StateError) -> Array:
    """An array of real numbers, not all of which need be finite; ``error`` for any other, such as
    truth values, which are masks by mistake, also amid numbers.
    """
    if type(value) is np.ndarray and value.dtype is _DOUBLE:
        return value
    refuse_masks(name, value, error)
    try:
        raw = np.asarray(value)
        if raw.dtype.kind not in "fiu" and not (
            raw.dtype.kind == "O" and all(map(_is_real, raw.flat))
        ):
            raise TypeError(f"it holds {raw.dtype} entries")
        return raw.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as reason:
        raise error(f"{name} must be an array of real numbers; {reason}") from None


def _is_real(x: object) -> bool:
    return isinstance(x, Real) and not isinstance(x, bool)


def detached(value: object) -> object:
    """A tensor of PyTorch, of any float type and device, as one that NumPy reads; all else as it
    is.
    """
    detach = getattr(value, "detach", None)
    return value if detach is None else detach().double().cpu()


def refuse_masks(name: str, value: object, error: type[RamifyError] = StateError) -> None:
    """Refuse arrays with masked entries, whose hidden numbers NumPy would use, and truth values in
    lists, which it would take for 0 and 1.
    """
    if _masked(value):
        raise error(
            f"{name} has masked entries, whose numbers are hidden; give an array without them, "
            "e.g. a.filled(0.0) or the rows a[~a.mask.any(axis=-1)]"
        )
    at = _truth_value_in(value) if isinstance(value, (list, tuple)) else None
    if at is not None:
        where = "".join(f"[{i}]" for i in at)
        raise error(
            f"{name} must be an array of real numbers; entry {where} is a truth value: write 1.0 "
            "for True and 0.0 for False where numbers are meant"
        )


def _masked(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_masked, value))
    return isinstance(value, np.ma.MaskedArray) and bool(np.ma.is_masked(value))


def _truth_value_in(value: object) -> tuple[int, ...] | None:
    """The indices of the first truth value in nested lists, () for a value that is one."""
    if isinstance(value, (list, tuple)):
        for i, entry in enumerate(value):
            if (at := _truth_value_in(entry)) is not None:
                return (i, *at)
    elif isinstance(value, np.ndarray):
        return (0,) * value.ndim if value.dtype.kind == "b" and value.size else None
    return () if isinstance(value, (bool, np.bool_)) else None


def finite(a: Array) -> bool:
    """Whether all entries are finite numbers."""
    return (a.size <= _FEW and isfinite(np.vdot(a, a))) or bool(np.isfinite(a).all())


def below(a: Array, bound: float) -> bool:
    """Whether the magnitudes of all entries are smaller than a bound; that of NaN is not."""
    if a.size <= _FEW and np.vdot(a, a) < bound * bound:
        return True
    return bool(a.max(initial=0.0) < bound and a.min(initial=0.0) > -bound)


def numbers(
    name: str, value: ArrayLike, size: int, whose: str, unknown: bool = False
) -> Array:  # fmt: skip
    """An array (..., size) of finite real numbers; StateError names what is wrong with it.
    ``unknown``: states of a batch may be NaN.
    """
    a = real(name, value)
    if a.shape[-1:] != (size,):
        raise StateError(f"{name} has shape {a.shape}; {whose!r} needs (..., {size})")
    if (
        not finite(a)
        and (bad := ~(np.isfinite(a) | (np.isnan(a) & (unknown and a.ndim > 1)))).any()
    ):
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        where = f" of state {place[0] if len(place) == 2 else place[:-1]}" if len(place) > 1 else ""
        raise StateError(f"{name}[{place[-1]}]{where} is {a[place]}; it must be finite")
    return a


def unknown_states(*arrays: Array) -> NDArray[np.bool_]:
    """Which states (...) of arrays (..., n) are not known: one of their numbers is NaN."""
    leads = [np.isnan(a).any(axis=-1) for a in arrays]
    return np.logical_or.reduce(np.broadcast_arrays(*leads))


def largest_magnitude(a: ArrayLike) -> float:
    """The largest magnitude over all states that are known; 0 where there is none."""
    return float(np.fmax.reduce(np.abs(a), axis=None, initial=0.0))


def address(a: Array) -> int:
    """Where the numbers of a contiguous array begin; the short way is five times as fast."""
    try:
        return addressof(c_char.from_buffer(a))  # type: ignore[arg-type]
    except (TypeError, ValueError):  # read-only, or empty
        return a.ctypes.data


def one_number(value: object) -> float:
    """The number that a user gave, NaN for anything that is not one: an array, a truth value, a
    text, an integer beyond all floats.
    """
    if isinstance(value, np.ndarray) and value.shape == () and not _masked(value):
        value = value[()]
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def finite_number(
    name: str, value: object, unit: str = "", error: type[RamifyError] = StateError
) -> float:
    """A finite number; ``error`` for anything else."""
    found = one_number(value)
    if not isfinite(found):
        raise error(f"{name} {shown(value)}{unit and ' '}{unit} must be a finite number")
    return found


def positive(name: str, value: object, most: float = 1e15) -> float:
    """A positive number from 1 / ``most`` to ``most``; StateError for any other."""
    found = one_number(value)
    if not 1.0 / most <= found <= most:
        raise StateError(
            f"{name} {shown(value)} must be finite and positive ({1.0 / most:g} to {most:g})"
        )
    return found


def flag(name: str, value: object, error: type[RamifyError] = StateError) -> bool:
    """True or False; ``error`` for any other, as for texts, which would all be true."""
    if not isinstance(value, (bool, np.bool_)):
        raise error(f"{name} must be True or False; got {shown(value)}")
    return bool(value)


def whole(
    name: str,
    value: object,
    least: int,
    error: type[RamifyError] = StateError,
    most: int = 10**12,
) -> int:
    """A whole number from ``least`` to ``most``; ``error`` for any other."""
    try:
        number = least - 1 if _masked(value) else index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if number > most:
        raise error(f"{name} {shown(value)} must be at most {most:g}")
    if number < least or isinstance(value, bool):
        raise error(f"{name} {shown(value)} must be a whole number ≥ {least}")
    return number


def is_index(value: object, start: int, stop: int) -> bool:
    """Whether a user gave a whole number from ``start`` to below ``stop``."""
    number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return number and value in range(start, stop)


MOST_AXES = 28
"""Axes of a batch: NumPy broadcasts up to 32, and results have up to four more."""


def refuse_many_axes(name: str, lead: tuple[int, ...]) -> None:
    """Refuse a batch of more than ``MOST_AXES`` axes."""
    if len(lead) > MOST_AXES:
        raise StateError(
            f"{name} is a batch of {len(lead)} axes; at most {MOST_AXES} are possible: reshape it"
        )


def together(**leads: tuple[int, ...]) -> tuple[int, ...]:
    """The batch that some arrays' leading shapes make."""
    for name, lead in leads.items():
        refuse_many_axes(name, lead)
    try:
        return np.broadcast_shapes(*leads.values())
    except ValueError:
        listing = ", ".join(f"{name} {lead}" for name, lead in leads.items())
        raise StateError(f"the batches do not fit together: {listing}") from None
