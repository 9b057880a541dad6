"""Exact stabilisation: back onto the loops, in position by Newton's steps and in velocity, each the
shortest in kinetic energy.

    dq = -I^-1 J' (J I^-1 J')^-1 phi,    dv = -I^-1 J' (J I^-1 J')^-1 J v,

by the recursions of the forward dynamics. Over any scalar: two steps in position, the second with
the factors of the first, and one in velocity are written out, enough for the drift of a step of
integration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ramify.core.scalar import Scalar
from ramify.dynamics.closed_forward import compliance, dense_factors, tree_factors, with_multipliers
from ramify.dynamics.closure import Closure
from ramify.dynamics.constraint_kinematics import Constraint, loop_constraints
from ramify.dynamics.independent_rows import INDEPENDENT, Redundancy, row_basis
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import Column, Tree

Shift = Callable[[Sequence[Scalar]], list[Scalar]]
"""From wanted rates of the rows (nc) to the smallest u, measured by I, with J u = those."""


class Projection:
    """The projections of one tree with loops. ``weight``: see ``closed_forward_dynamics``."""

    def __init__(
        self, tree: Tree, loops: Sequence[Closure], weight: float,
        redundancy: Redundancy = INDEPENDENT,
    ) -> None:  # fmt: skip
        self.tree, self.loops, self.weight = tree, loops, weight
        self.redundancy = redundancy

    def rows(self, q: Column) -> tuple[list[Constraint], Shift]:
        """The constraints at the links' coordinates q, and the way to change their rates."""
        tree, x = self.tree, displacements(self.tree, q)
        rows = loop_constraints(tree, self.loops, q, x, None)
        basis = row_basis(tree, rows, self.redundancy)
        dense = dense_factors(tree, q, basis.rows, self.weight) if self.weight else None
        factors = (dense or tree_factors(tree, x))[0]
        Z = [factors.reduce(row) for row in basis.rows]
        S = compliance(factors, Z, basis.rows)
        none: list[Scalar] = [0.0] * len(tree.links)

        def shift(goal: Sequence[Scalar]) -> list[Scalar]:
            lam = S.solve(basis.combined(goal))
            return factors.finish(with_multipliers(factors, Z, none, lam))

        return rows, shift

    def residual(self, q: Column) -> list[Scalar]:
        """phi (nc)."""
        return [
            row.value
            for row in loop_constraints(self.tree, self.loops, q, displacements(self.tree, q), None)
        ]

    def velocity(self, q: Column, v: Column) -> list[Scalar]:
        """v (nv) without what would open the loops."""
        rows, shift = self.rows(q)
        speeds = [row.rate(v) for row in rows]
        return [a + b for a, b in zip(v, shift([-s for s in speeds]), strict=True)]

    def state(
        self, q: Sequence[Scalar], v: Column, by_link: Callable[[Sequence[Scalar]], Column],
        moved: Callable[[Sequence[Scalar], Sequence[Scalar]], list[Scalar]],
    ) -> tuple[list[Scalar], list[Scalar]]:  # fmt: skip
        """(q (nq), v): closed, and kept so. ``by_link`` gives the links' coordinates, ``moved`` q
        after a small motion.
        """
        rows, shift = self.rows(by_link(q))
        q = moved(q, shift([-row.value for row in rows]))
        q = moved(q, shift([-r for r in self.residual(by_link(q))]))
        return list(q), self.velocity(by_link(q), v)
