"""Comparisons whose failures say which quantity differs, where, by how much, and most of all where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def close(
    actual: Any,
    expected: Any,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    of: str = "the value",
    equal_nan: bool = False,
) -> None:
    """|actual - expected| <= atol + rtol |expected|, entry by entry after broadcasting: the bounds
    of ``np.allclose``. Fails with the quantity ``of``, the index and both numbers of the entry that
    is furthest off.
    """
    a, b = np.broadcast_arrays(np.asarray(actual), np.asarray(expected))
    bad = ~np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if not bad.any():
        return
    with np.errstate(all="ignore"):
        error = np.where(bad, np.abs(a.astype(complex) - b.astype(complex)), 0.0)
    error = np.where(bad & ~np.isfinite(error), np.inf, error)
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))
    index = f"[{', '.join(map(str, at))}]" if at else ""
    raise AssertionError(
        f"{of}{index} is {a[at]!r}, expected {b[at]!r}: off by {error[at]:.3g} where "
        f"{atol:.3g} + {rtol:.3g} |expected| is allowed; {int(bad.sum())} of {bad.size} entries differ"
    )


def same(actual: Any, expected: Any, of: str = "the record") -> None:
    """Equal to the last bit, through dataclasses, mappings, sequences and arrays; NaN equals NaN.
    Fails with the path to the first difference.
    """
    if is_dataclass(expected) and not isinstance(expected, type):
        assert is_dataclass(actual), f"{of} is {actual!r}, expected {expected!r}"
        for f in fields(expected):
            same(getattr(actual, f.name), getattr(expected, f.name), f"{of}.{f.name}")
    elif isinstance(expected, Mapping):
        assert dict(actual).keys() == expected.keys(), (
            f"{of} has the keys {list(actual)}, expected {list(expected)}"
        )
        for key in expected:
            same(actual[key], expected[key], f"{of}[{key!r}]")
    elif isinstance(expected, np.ndarray):
        assert np.shape(actual) == expected.shape, (
            f"{of} has shape {np.shape(actual)}, expected {expected.shape}"
        )
        assert np.array_equal(actual, expected, equal_nan=expected.dtype.kind == "f"), (
            f"{of} is {actual!r}, expected {expected!r}"
        )
    elif isinstance(expected, (list, tuple)):
        assert len(actual) == len(expected), f"{of} is {actual!r}, expected {expected!r}"
        for i, (a, b) in enumerate(zip(actual, expected, strict=True)):
            same(a, b, f"{of}[{i}]")
    else:
        assert actual == expected, f"{of} is {actual!r}, expected {expected!r}"
