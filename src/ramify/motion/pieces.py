"""Functions in pieces: which piece holds at a time, decided by ``select`` so that it can be traced."""

from __future__ import annotations

from collections.abc import Sequence

from ramify.core.scalar import Scalar, select


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
    if isinstance(below, bool):
        return (
            pick(t, knots[:middle], rows[: middle + 1])
            if below
            else pick(t, knots[middle + 1 :], rows[middle + 1 :])
        )
    low, high = (
        pick(t, knots[:middle], rows[: middle + 1]),
        pick(t, knots[middle + 1 :], rows[middle + 1 :]),
    )
    return [select(below, a, b) for a, b in zip(low, high, strict=True)]
