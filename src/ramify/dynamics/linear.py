"""Small linear systems over any scalar, without branches: what depends on what came before is
dropped by ``select``.

A constraint that follows from others adds nothing: its pivot vanishes, and so does its multiplier.
For systems that have a solution this is exact; which one of several is taken depends on the order
of the rows, first come first kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from ramify.core.scalar import Scalar, select, sqrt

Vector = Sequence[Scalar]
RANK = 1e-6
"""Rows within a microradian of their neighbours follow from them, as data are rounded: lengths,
pivots of J and its singular values up to this share of the largest count as zero.
"""
_SQUARE = RANK * RANK
"""``RANK`` for pivots of a Gram matrix and squared lengths."""


def dot(a: Vector, b: Vector) -> Scalar:
    """Sum of products."""
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


def size_of(x: Scalar) -> Scalar:
    """|x|."""
    return select(x > 0.0, x, -x)


def largest(values: Vector) -> Scalar:
    """The largest of some numbers that are not negative."""
    most: Scalar = 0.0
    for x in values:
        most = select(x > most, x, most)
    return most


def scales(squares: Vector, sizes: Sequence[float], groups: Sequence[int]) -> list[Scalar]:
    """What the pivot of each row is compared with: the largest square of its group, rows made
    comparable by their sizes.
    """
    sized = [x * (s * s) for x, s in zip(squares, sizes, strict=True)]
    most = {
        g: largest([x for x, h in zip(sized, groups, strict=True) if h == g]) for g in set(groups)
    }
    return [most[g] * (1.0 / (s * s)) for g, s in zip(groups, sizes, strict=True)]


def _inverse(x: Scalar, floor: Scalar) -> Scalar:
    """1 / x where x exceeds the floor, else 0."""
    keep = x > floor
    return select(keep, 1.0 / select(keep, x, 1.0), 0.0)


class Ldl:
    """A symmetric, positive semi-definite matrix S (its lower triangle) as L D L', ``inverse`` of
    D. Pivots that vanish beside a scale are dropped; without one none may.
    """

    def __init__(self, S: Sequence[Vector], scale: Vector | None = None) -> None:
        self.L: list[list[Scalar]] = []
        self.inverse: list[Scalar] = []
        for j, row in enumerate(S):
            row_of_L: list[Scalar] = []  # row j of L
            scaled: list[Scalar] = []  # row j of L D
            for k in range(j):
                scaled.append(row[k] - dot(scaled, self.L[k]))
                row_of_L.append(scaled[k] * self.inverse[k])
            self.L.append(row_of_L)
            pivot = row[j] - dot(scaled, row_of_L)
            inverse_pivot = 1.0 / pivot if scale is None else _inverse(pivot, scale[j] * _SQUARE)
            self.inverse.append(inverse_pivot)

    def solve(self, b: Vector) -> list[Scalar]:
        """x with S x = b, zero where a pivot was dropped."""
        return self.upper([u * k for u, k in zip(self.lower(b), self.inverse, strict=True)])

    def lower(self, b: Vector) -> list[Scalar]:
        """L^-1 b."""
        y: list[Scalar] = []
        for row, bj in zip(self.L, b, strict=True):
            y.append(bj - dot(row, y))
        return y

    def upper(self, b: Vector) -> list[Scalar]:
        """L^-T b."""
        x = list(b)
        for j in reversed(range(len(x))):
            for k in range(j):
                x[k] = x[k] - self.L[j][k] * x[j]
        return x


def orthogonal(
    columns: Sequence[Vector], scale: Vector
) -> tuple[list[list[Scalar]], list[list[Scalar]], list[Scalar]]:
    """(Q, R, 1 / diagonal of R): columns = Q R by Gram and Schmidt, twice; a column that depends on
    those before it gives none.

    Q is a list of columns, R a full square by rows; ``scale`` are the squared lengths with which to
    compare.
    """
    n = len(columns)
    Q: list[list[Scalar]] = []
    R: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    inverse: list[Scalar] = []
    for j, column in enumerate(columns):
        u = list(column)
        for _ in range(2):
            for i, e in enumerate(Q):
                r = dot(e, u)
                R[i][j] = R[i][j] + r
                u = [x - r * y for x, y in zip(u, e, strict=True)]
        square = dot(u, u)
        keep = square > scale[j] * _SQUARE
        length = sqrt(select(keep, square, 1.0))
        k = select(keep, 1.0 / length, 0.0)
        Q.append([x * k for x in u])
        R[j][j] = select(keep, length, 0.0)
        inverse.append(k)
    return Q, R, inverse


def back_substitute(R: Sequence[Vector], inverse: Vector, c: Vector) -> list[Scalar]:
    """x with R x = c, R upper triangular; entries whose diagonal was dropped are zero."""
    n = len(c)
    x: list[Scalar] = [0.0] * n
    for j in reversed(range(n)):
        x[j] = (c[j] - dot(R[j][j + 1 : n], x[j + 1 :])) * inverse[j]
    return x


def forward_substitute(R: Sequence[Vector], inverse: Vector, c: Vector) -> list[Scalar]:
    """x with R' x = c."""
    x: list[Scalar] = []
    for j in range(len(c)):
        x.append((c[j] - dot([R[i][j] for i in range(j)], x)) * inverse[j])
    return x
