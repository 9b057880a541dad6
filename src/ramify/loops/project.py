"""Exact stabilisation: back onto the loops, in position by Newton's steps and in velocity, each the shortest in kinetic energy.

    dq = -I^-1 J' (J I^-1 J')^-1 phi,    dv = -I^-1 J' (J I^-1 J')^-1 J v,

by the recursions of the forward dynamics. Over any scalar, a fixed number of steps written out.
"""

from __future__ import annotations

from collections.abc import Sequence

from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import Column, Tree
from ramify.loops.closure import Closure
from ramify.loops.constraints import Constraint, constraints
from ramify.loops.forward import dense_factors, multipliers, tree_factors, with_multipliers
from ramify.loops.linear import dot
from ramify.scalar import Scalar


def _towards(
    tree: Tree, q: Column, x: Column, rows: Sequence[Constraint], goal: Sequence[Scalar], weight: float
) -> tuple[list[Scalar], list[Scalar]]:
    """(u, lambda): the smallest u, measured by I, with J u = goal."""
    factors = dense_factors(tree, q, rows, weight)[0] if weight else tree_factors(tree, x)[0]
    Z = [factors.reduce(row) for row in rows]
    lam = multipliers(factors, Z, rows, goal)
    none: list[Scalar] = [0.0] * len(tree.links)
    return factors.finish(with_multipliers(factors, Z, none, lam)), lam


def position_step(tree: Tree, loops: Sequence[Closure], q: Column, weight: float = 0.0) -> list[Scalar]:
    """The change (nv) of the coordinates that closes the loops, to first order."""
    x = displacements(tree, q)
    rows = constraints(tree, loops, q, x, None)
    return _towards(tree, q, x, rows, [-row.value for row in rows], weight)[0]


def velocity_step(tree: Tree, loops: Sequence[Closure], q: Column, v: Column, weight: float = 0.0) -> list[Scalar]:
    """The change (nv) of the velocities that keeps the loops closed."""
    x = displacements(tree, q)
    rows = constraints(tree, loops, q, x, None)
    speeds = [dot([v[k] for k in row.entries], list(row.entries.values())) for row in rows]
    return _towards(tree, q, x, rows, [-s for s in speeds], weight)[0]
