"""Square linear systems over any scalar: Gaussian elimination, its pivots chosen by ``select``
instead of branches.

The equations come in groups. A group eliminates as many of its unknowns as it has equations, the
largest of each row first, and hands the others on; unknowns that a group does not know stay out of
its way. So a system that couples many small groups through a few unknowns, as the legs of a
parallel robot through its platform, costs little more than the groups by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from ramify.core.scalar import Scalar, select
from ramify.dynamics.linear import size_of


def eliminate(
    A: Sequence[Sequence[Scalar]],
    b: Sequence[Scalar],
    groups: Sequence[Sequence[int]] | None = None,
    floor: float = 0.0,
) -> list[Scalar]:
    """x (n) with A x = b, A by rows; a float 0.0 in A stands for an entry that is always zero.

    Where a pivot is no larger than the floor, A counts as singular: that unknown is zero, and its
    equation need not hold. groups: the places of the equations in groups, in the order of
    elimination; by default one group of all. Pivots are chosen within the row (partial pivoting
    of A'), among the unknowns of the group: what these cannot give, no other row could.
    """
    n = len(b)
    rows = [[*row, y] for row, y in zip(A, b, strict=True)]
    slots = list(range(n))  # of the unknowns; ``swaps`` keeps those that depend on the state
    waiting, done, swaps = list(range(n)), [], []
    pivots: list[tuple[int, int, Scalar]] = []
    for group in groups or [range(n)]:
        for i in group:
            candidates = [k for k in slots if k not in done and not _zero(rows[i][k])]
            assert candidates, "an equation without unknowns"
            j = candidates[0]
            for k in candidates[1:]:
                swaps.append((j, k, _swapped(rows, i, j, k)))
            keep = size_of(rows[i][j]) > floor
            inverse = select(keep, 1.0 / select(keep, rows[i][j], 1.0), 0.0)
            pivots.append((i, j, inverse))
            done.append(j)
            waiting.remove(i)
            for r in waiting:
                if not _zero(rows[r][j]):
                    factor = rows[r][j] * inverse
                    for k in [k for k in (*slots, n) if k not in done and not _zero(rows[i][k])]:
                        rows[r][k] = rows[r][k] - factor * rows[i][k]
    x: list[Scalar] = [0.0] * n
    solved: list[int] = []
    for i, j, inverse in reversed(pivots):
        total = rows[i][n]
        for k in solved:
            if not _zero(rows[i][k]):
                total = total - rows[i][k] * x[k]
        x[j] = total * inverse
        solved.append(j)
    for j, k, larger in reversed(swaps):
        x[j], x[k] = select(larger, x[k], x[j]), select(larger, x[j], x[k])
    return x


def _swapped(rows: list[list[Scalar]], i: int, j: int, k: int) -> Scalar:
    """Swap the unknowns j and k in all rows where k is the larger one in row i; whether that was
    so.
    """
    larger = size_of(rows[i][k]) > size_of(rows[i][j])
    for row in rows:
        a, b = row[j], row[k]
        if not (_zero(a) and _zero(b)):
            row[j], row[k] = select(larger, b, a), select(larger, a, b)
    return larger


def _zero(x: Scalar) -> bool:
    """Zero whatever the state."""
    return type(x) is float and x == 0.0
