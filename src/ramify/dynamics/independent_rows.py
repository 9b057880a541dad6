"""Rows of constraints that depend on each other, as in overconstrained linkages: which directions
they hold, and how much of each a posture's rows say.

Rows of one loop may be written in any axes, and any of them may vanish at a posture where others
do not. So the rows are orthogonalised in the order of what is left of them, the longest first; what
remains below a share of the longest follows from the others. With E (r, nv) the orthonormal rows
found and L = J E', the combinations

    C = (L' L)^-1 L',    C J = E,

are the least-squares reading of all rows: they depend neither on the axes in which the rows are
written nor on which rows were the longest. Multipliers C' lambda are the smallest that give the
same forces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ramify.core.scalar import Scalar, select, sqrt
from ramify.core.spatial import Wrench
from ramify.dynamics.closure import Closure
from ramify.dynamics.constraint_kinematics import Constraint
from ramify.dynamics.linear import RANK, Ldl, Vector, dot, largest
from ramify.dynamics.tree import Tree


@dataclass(frozen=True)
class Redundancy:
    """Whether rows of the loops follow from others at closed postures, ``tolerance``, the share of
    the longest row below which one does, and the robot's ``size`` (m).
    """

    redundant: bool
    tolerance: float
    size: float


INDEPENDENT = Redundancy(False, RANK, 1.0)
"""Of rows none of which follows from others."""


class LoopTerms(NamedTuple):
    """The loops of a robot, and how its dynamics takes them.

    rate (1/s): Baumgarte's stabilisation, c = J' v + 2 rate J v + rate^2 phi. weight (kg): not zero
    where I is singular. redundancy: whether rows may follow from others, see ``row_basis``.
    """

    closures: Sequence[Closure]
    rate: float = 0.0
    weight: float = 0.0
    redundancy: Redundancy = INDEPENDENT


@dataclass(frozen=True)
class RowBasis:
    """The rows that count: ``rows`` are combinations C of the original ones, which are kept as
    they are where none follows from others (``C`` None).
    """

    rows: list[Constraint]
    C: list[list[Scalar]] | None

    def combined(self, values: Vector) -> list[Scalar]:
        """C y: what the original rows' values y say along the rows that count."""
        return list(values) if self.C is None else [dot(c, values) for c in self.C]

    def spread(self, lam: Vector) -> list[Scalar]:
        """C' lambda: multipliers of the original rows; those of further rows follow."""
        if self.C is None:
            return list(lam)
        count = len(self.C)
        return [dot(column, lam[:count]) for column in zip(*self.C, strict=True)] + list(
            lam[count:]
        )


def row_basis(tree: Tree, rows: Sequence[Constraint], redundancy: Redundancy) -> RowBasis:
    """The rows that count, over any scalar."""
    if not redundancy.redundant:
        return RowBasis(list(rows), None)
    links = sorted({k for row in rows for k in row.entries})
    scale = [1.0 / redundancy.size if tree.links[k].p.rho else 1.0 for k in links]
    J = [
        [row.entries.get(k, 0.0) * (s * row.size) for k, s in zip(links, scale, strict=True)]
        for row in rows
    ]
    E = longest_first(J, redundancy.tolerance)
    C = [[x * row.size for x, row in zip(c, rows, strict=True)] for c in least_squares(J, E)]
    return RowBasis([_combined(c, rows, i) for i, c in enumerate(C)], C)


def longest_first(rows: Sequence[Vector], tolerance: float) -> list[list[Scalar]]:
    """Orthonormal rows that span those given, by Gram and Schmidt, the longest remainder first;
    zeros where none above a share of the longest is left.
    """
    left = [list(row) for row in rows]
    squares = [dot(u, u) for u in left]
    floor = largest(squares) * (tolerance * tolerance)
    E: list[list[Scalar]] = []
    for _ in range(min(len(rows), len(rows[0]))):
        most, u = squares[0], left[0]
        for square, other in zip(squares[1:], left[1:], strict=True):
            longer = square > most
            most = select(longer, square, most)
            u = [select(longer, y, x) for x, y in zip(u, other, strict=True)]
        keep = most > floor
        k = select(keep, 1.0 / sqrt(select(keep, most, 1.0)), 0.0)
        e = [x * k for x in u]
        for other in E:  # once more, as the remainder may be short
            r = dot(other, e)
            e = [x - r * y for x, y in zip(e, other, strict=True)]
        E.append(e)
        left = [_without(u, e) for u in left]
        squares = [dot(u, u) for u in left]
    return E


def _without(u: Vector, e: Vector) -> list[Scalar]:
    r = dot(e, u)
    return [x - r * y for x, y in zip(u, e, strict=True)]


def least_squares(J: Sequence[Vector], E: Sequence[Vector]) -> list[list[Scalar]]:
    """C (r, nc) = (L' L)^-1 L' with L = J E'; zero where a row of E is."""
    L = [[dot(row, e) for e in E] for row in J]
    columns = list(zip(*L, strict=True))
    gram = [[dot(a, b) for b in columns[: i + 1]] for i, a in enumerate(columns)]
    factors = Ldl(gram, [0.0] * len(gram))
    by_row = [factors.solve(row) for row in L]
    return [list(c) for c in zip(*by_row, strict=True)]


def _combined(c: Vector, rows: Sequence[Constraint], index: int) -> Constraint:
    """The combination of rows with the coefficients c, a group of its own."""
    entries: dict[int, Scalar] = {}
    forces: dict[int, Scalar] = {}
    wrenches: dict[int, Wrench] = {}
    for x, row in zip(c, rows, strict=True):
        for k, y in row.entries.items():
            entries[k] = entries[k] + x * y if k in entries else x * y
        for k, y in row.forces.items():
            forces[k] = forces[k] + x * y if k in forces else x * y
        for k, w in row.wrenches.items():
            wrenches[k] = wrenches[k] + w * x if k in wrenches else w * x
    value, gap, bias = (
        dot(c, part) for part in zip(*((row.value, row.gap, row.bias) for row in rows), strict=True)
    )
    return Constraint(value, gap, entries, bias, 1.0, index, wrenches, forces)
