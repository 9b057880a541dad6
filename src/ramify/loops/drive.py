"""Driving a closed system: the forces that give its actuated coordinates the accelerations that a controller asks for.

The accelerations of the other coordinates follow from the loops, J a = -J' v (second row of eq. 8.5), block by block in the reverse
order of the multipliers; then the inverse dynamics by subsystems gives the forces. This is to closed systems what the hybrid
recursion (table 7.1) is to floating bases.
"""

from __future__ import annotations

from collections.abc import Sequence

from ramify.dynamics.inverse import joint_wrenches
from ramify.dynamics.motion import displacements, motions
from ramify.dynamics.tree import Column, Tree
from ramify.loops.closure import Closure
from ramify.loops.constraints import Constraint, constraints
from ramify.loops.elimination import eliminate
from ramify.loops.subsystems import Plan, solve_blocks
from ramify.scalar import Scalar


def driving_forces(tree: Tree, loops: Sequence[Closure], work: Plan, q: Column, v: Column, x: Column, applied: Column) -> list[Scalar]:
    """y (nv): forces at the driven coordinates whose accelerations x are given, and the accelerations of the others."""
    at = displacements(tree, q)
    rows = constraints(tree, loops, q, at, motions(tree, at, v, tree.each(lambda link: 0.0)))
    a = dependent(work, rows, x)
    phi = [force for force, _ in joint_wrenches(tree, at, v, a, applied)]
    tau, _ = solve_blocks(work, rows, phi)
    return [tau[i] if i in work.driven else a[i] for i in range(len(a))]


def dependent(work: Plan, rows: Sequence[Constraint], x: Sequence[Scalar]) -> list[Scalar]:
    """a (nv) with J a = -J' v and the given accelerations x of the driven coordinates."""
    a: list[Scalar] = [0.0] * len(x)
    for i in work.driven:
        a[i] = x[i]
    known = set(work.driven)
    for block in reversed(work.blocks):
        A = [[rows[k].entries[i] if i in work.pattern[k] else 0.0 for i in block.equations] for k in block.unknowns]
        b = [-_rate(work, rows, k, a, known) for k in block.unknowns]
        for i, value in zip(block.equations, eliminate(A, b, None, work.floor), strict=True):
            a[i] = value
        known.update(block.equations)
    return a


def _rate(work: Plan, rows: Sequence[Constraint], k: int, a: Sequence[Scalar], known: set[int]) -> Scalar:
    """What the accelerations known so far make of row k."""
    total = rows[k].bias
    for i in sorted(known & work.pattern[k]):
        total = total + rows[k].entries[i] * a[i]
    return total
