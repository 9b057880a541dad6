"""Symmetric equations with the pattern of a tree: H = L' D L, eliminated from the leaves.

An inertia matrix has entries only between a link and those that carry it; eliminating the last link
first adds none. What couples two branches (a loop, a contact between two bodies) fills in between
them, and no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ramify.core.scalar import Scalar

Entries = dict[tuple[int, int], Scalar]
"""Entries (i, j), i >= j, of a symmetric matrix; those that are not stored are zero."""


class TreeFactors:
    """The factors of a positive definite matrix of n rows."""

    def __init__(self, n: int, H: Mapping[tuple[int, int], Scalar]) -> None:
        left = dict(H)
        columns: list[set[int]] = [set() for _ in range(n)]  # of each row, before the diagonal
        for i, j in left:
            if i != j:
                columns[i].add(j)
        self.inverse: list[Scalar] = [0.0] * n
        self.rows: list[dict[int, Scalar]] = [{} for _ in range(n)]
        for k in reversed(range(n)):
            inverse = self.inverse[k] = 1.0 / left[k, k]
            before = sorted(columns[k], reverse=True)
            for i in before:
                share = self.rows[k][i] = left[k, i] * inverse
                for j in before:
                    if j <= i:
                        left[i, j] = left.get((i, j), 0.0) - share * left[k, j]
                        if j < i:
                            columns[i].add(j)

    def solve(self, b: Sequence[Scalar]) -> list[Scalar]:
        """x with H x = b."""
        x = list(b)
        for k in reversed(range(len(x))):
            for i, share in self.rows[k].items():
                x[i] = x[i] - share * x[k]
        x = [y * inverse for y, inverse in zip(x, self.inverse, strict=True)]
        for k, row in enumerate(self.rows):
            for i, share in row.items():
                x[k] = x[k] - share * x[i]
        return x


def symmetric_times(H: Mapping[tuple[int, int], Scalar], x: Sequence[Scalar]) -> list[Scalar]:
    """H x."""
    out: list[Scalar] = [0.0] * len(x)
    for (i, j), h in H.items():
        out[i] = out[i] + h * x[j]
        if i != j:
            out[j] = out[j] + h * x[i]
    return out


class TreeLu:
    """The factors of a matrix that is not symmetric: entries (i, j) on both sides of the diagonal.
    Nothing is exchanged, so its diagonal must dominate.
    """

    def __init__(self, n: int, H: Mapping[tuple[int, int], Scalar]) -> None:
        left = dict(H)
        rows: list[set[int]] = [set() for _ in range(n)]
        columns: list[set[int]] = [set() for _ in range(n)]
        for i, j in left:
            if i > j:
                rows[i].add(j)
            elif j > i:
                columns[j].add(i)
        self.inverse: list[Scalar] = [0.0] * n
        self.rows: list[dict[int, Scalar]] = [{} for _ in range(n)]
        self.shares: list[dict[int, Scalar]] = [{} for _ in range(n)]
        for k in reversed(range(n)):
            inverse = self.inverse[k] = 1.0 / left[k, k]
            self.rows[k] = {j: left[k, j] for j in sorted(rows[k])}
            for i in sorted(columns[k], reverse=True):
                share = self.shares[k][i] = left[i, k] * inverse
                for j, x in self.rows[k].items():
                    left[i, j] = left.get((i, j), 0.0) - share * x
                    if i > j:
                        rows[i].add(j)
                    elif j > i:
                        columns[j].add(i)

    def solve(self, b: Sequence[Scalar]) -> list[Scalar]:
        """x with H x = b."""
        x = list(b)
        for k in reversed(range(len(x))):
            for i, share in self.shares[k].items():
                x[i] = x[i] - share * x[k]
        for k in range(len(x)):
            for j, entry in self.rows[k].items():
                x[k] = x[k] - entry * x[j]
            x[k] = x[k] * self.inverse[k]
        return x
