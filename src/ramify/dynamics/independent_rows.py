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

import numpy as np

from ramify.core.arrays import Array
from ramify.core.scalar import Scalar, number, select, sqrt
from ramify.core.spatial import Wrench
from ramify.dynamics.closure import Closure, closures, reach
from ramify.dynamics.constraint_kinematics import Constraint, constraints
from ramify.dynamics.linear import RANK, Ldl, Vector, dot, largest
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import Tree, tree_of
from ramify.model.robot import Robot, once

_ROUNDED = 1e-4
"""Share of the robot's size by which rows that follow from others may miss: data are rounded."""
_MARGIN = 10.0  # how much more than it misses by a rounded row may hold
_CLOSED = 1e-9  # share of the size at which a posture counts as closed here
_STARTS, _STEPS = 5, 60


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
    squares = [dot(u, u) for u in J]
    floor = largest(squares) * (redundancy.tolerance * redundancy.tolerance)
    J = [  # what hardly acts carries nothing
        [select(square > floor, x, 0.0) for x in u] for u, square in zip(J, squares, strict=True)
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


# ---- whether a robot has such rows ----


@once
def redundancy(model: Robot) -> Redundancy:
    """Whether rows of a robot's loops follow from others, judged where the loops are closed: near
    its guess, and from other postures, always the same ones. One closed posture at which all rows
    count is enough to say no. Where none closes but for rounded data, what these miss by decides
    what counts.
    """
    size = reach(model)
    text = _LoopResiduals(model, closures(model))
    best, closed = np.inf, 0
    for q in text.starts():
        gap, A = text.closest(q)
        if gap <= _CLOSED * size:
            closed += 1
            if np.linalg.matrix_rank(A, rtol=RANK) == len(A):
                return Redundancy(False, RANK, size)
        best = min(best, gap)
        if closed == 2:
            break
    tolerance = RANK
    if _CLOSED * size < best <= _ROUNDED * size:
        tolerance = max(RANK, _MARGIN * best / size)
    return Redundancy(True, tolerance, size)


class _LoopResiduals:
    """Residuals and J of a robot's loops in numbers."""

    def __init__(self, model: Robot, loops: Sequence[Closure]) -> None:
        self.model, self.loops, self.tree = model, loops, tree_of(model)
        size = reach(model)
        self.columns = np.array([size if link.p.rho else 1.0 for link in self.tree.links])
        self.size = size

    def starts(self) -> list[Array]:
        """Postures to close the loops from."""
        q = self.model.neutral()
        for name, value in (self.model.guess or {}).items():
            if name in self.model.coordinates:
                q[self.model.coordinates.index(name)] = float(value)
        return [q, *(self.model.tree.random(seed)[0] for seed in range(_STARTS))]

    def at(self, q: Array) -> tuple[Array, Array]:
        """Residual (nc,) in m, J (nc, nv) without units."""
        column = self.model.skeleton.coordinates([float(x) for x in q], (1.0, 0.0, 0.0, 0.0))
        x = displacements(self.tree, column)
        rows = constraints(self.tree, self.loops, column, x, None, facing=True)
        J = np.zeros((len(rows), self.model.nv))
        r = np.array([number(row.value) * row.size for row in rows])
        for i, row in enumerate(rows):
            for k, entry in row.entries.items():
                J[i, k] = number(entry) * row.size
        return r, J / self.columns

    def closest(self, q: Array) -> tuple[float, Array]:
        """(gap, J): the largest residual (m) where Levenberg and Marquardt's steps end."""
        r, A = self.at(q)
        damping = 1e-3
        for _ in range(_STEPS):
            if np.abs(r).max(initial=0.0) <= 1e-13 * self.size:
                break
            u, s, vt = np.linalg.svd(A, full_matrices=False)
            ease = damping * max(float(s[0]), 1e-100) ** 2
            step = -(vt.T @ ((u.T @ r) * s / (s * s + ease))) / self.columns
            longest = float(np.abs(step * self.columns).max(initial=0.0)) / self.size
            moved = self.model.integrate(q, step / max(1.0, longest), 1.0)
            r_new, A_new = self.at(moved)
            if r_new @ r_new < r @ r:
                gained = 1.0 - (r_new @ r_new) / (r @ r)
                q, r, A, damping = moved, r_new, A_new, max(damping * 0.1, 1e-15)
                if gained < 1e-9:
                    break
            else:
                damping *= 10.0
                if damping > 1e3:
                    break
        return float(np.abs(r).max(initial=0.0)), A
