"""Functions in pieces: which piece holds at a time, decided by ``select`` so that it can be traced.

Pieces of known numbers are rows of a table, memory that compiled code reads; the search for the row
takes a step for each doubling of their number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.lookup import LookupTable
from ramify.core.scalar import Scalar, lookup, select


class Knots:
    """Rising numbers (m,): ``below(t)`` is how many of them are not above t."""

    def __init__(self, knots: ArrayLike) -> None:
        given = np.atleast_1d(np.asarray(knots, dtype=np.float64))
        self._largest = 1 << (max(1, len(given)).bit_length() - 1)
        padded = np.full(2 * self._largest - 1, np.inf)
        padded[: len(given)] = given
        self._table = LookupTable(padded)

    def below(self, t: Scalar) -> Scalar:
        count: Scalar = 0.0
        step = self._largest
        while step:
            further = count + float(step)
            count = select(lookup(self._table, further - 1.0) <= t, further, count)
            step //= 2
        return count


class Columns:
    """Rows of known numbers (n, k): ``row(i)`` are those of one."""

    def __init__(self, rows: ArrayLike) -> None:
        array = np.asarray(rows, dtype=np.float64)
        self._tables = [LookupTable(column) for column in array.T]

    def row(self, i: Scalar) -> list[Scalar]:
        return [lookup(table, i) for table in self._tables]


def pick(t: Scalar, knots: Sequence[float], rows: Sequence[Sequence[Scalar]]) -> Sequence[Scalar]:
    """The row that holds at t: ``rows[k]`` for knots[k - 1] <= t < knots[k]; one row more than
    knots, all equally long.

    The knots are halved again and again: a known time looks at few of them, a traced one costs a
    selection per knot and number.
    """
    if not knots:
        return rows[0]
    middle = len(knots) // 2
    below = t < knots[middle]
    left = knots[:middle], rows[: middle + 1]
    right = knots[middle + 1 :], rows[middle + 1 :]
    if isinstance(below, bool):
        return pick(t, *(left if below else right))
    low, high = pick(t, *left), pick(t, *right)
    return [select(below, a, b) for a, b in zip(low, high, strict=True)]
