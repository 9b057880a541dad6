"""Inverse dynamics of closed systems (eq. 8.4): driving forces at the actuated joints, and the
multipliers.

J_a' tau_a + J' lambda = tau^phi is solved by orthogonalising the columns of J' and then those of
J_a' against them: what is left of the latter moves the mechanism, and has to do what is left of
tau^phi. Of several possible tau_a the shortest is taken, of several possible lambda the smallest.
What no actuator can give is reported: ``unmet``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ramify.core.scalar import Scalar
from ramify.dynamics.constraint_kinematics import Constraint, loop_constraints
from ramify.dynamics.independent_rows import LoopTerms, row_basis
from ramify.dynamics.inverse import joint_wrenches
from ramify.dynamics.linear import back_substitute, dot, forward_substitute, orthogonal, scales
from ramify.dynamics.motion import displacements, drift
from ramify.dynamics.subsystems import SolutionOrder, solve_blocks
from ramify.dynamics.tree import Column, Tree


def closed_inverse_dynamics(
    tree: Tree, loops: LoopTerms, actuated: Sequence[int], q: Column, v: Column, a: Column,
    applied: Column, work: SolutionOrder | None = None, beside: Column | None = None,
) -> tuple[list[Scalar], ...]:  # fmt: skip
    """(tau, lambda, wanted, unmet, gap, slip): joint forces, zero where nothing drives;
    multipliers; tau^phi, and the part of it that neither gives (nv); the residual (nc), and
    J a + J' v (nc), which vanishes where the accelerations keep the loops closed.

    work: the order in which the subsystems are solved, where they are determinate; None solves
    (8.4) as a whole. beside: joint forces that act beside the drives, as those of friction.
    """
    x = displacements(tree, q)
    rows = loop_constraints(tree, loops.closures, q, x, drift(tree, x, v))
    wanted = [force for force, _ in joint_wrenches(tree, x, v, a, applied)]
    if beside is not None:
        wanted = [force - beside[k] for k, force in enumerate(wanted)]
    slip = [row.rate(a) + row.bias for row in rows]
    if work is None:
        basis = row_basis(tree, rows, loops.redundancy)
        tau, lam = closed_driving_forces(basis.rows, actuated, wanted)
        lam = basis.spread(lam)
    else:
        tau, lam = solve_blocks(work, rows, wanted)
    unmet = [w - t for w, t in zip(wanted, tau, strict=True)]
    for row, x_k in zip(rows, lam, strict=True):
        for k, entry in row.entries.items():
            unmet[k] = unmet[k] - entry * x_k
    return tau, lam, wanted, unmet, [row.gap for row in rows], slip


def closed_driving_forces(
    rows: Sequence[Constraint], actuated: Sequence[int], wanted: Sequence[Scalar]
) -> tuple[list[Scalar], list[Scalar]]:
    """(tau, lambda) of eq. (8.4) for the generalized forces that the motion wants."""
    n, nc = len(wanted), len(rows)
    J = [[row.entries.get(k, 0.0) for k in range(n)] for row in rows]
    squares = scales([dot(r, r) for r in J], [row.size for row in rows], [row.loop for row in rows])
    E = [[float(k == i) for k in range(n)] for i in actuated]
    Q, R, inverse = orthogonal([*J, *E], [*squares, *([1.0] * len(E))])
    # what is left of the driving columns: R_E tau_a = Q_E' tau^phi, of full rank but for zero rows;
    # the shortest tau_a lies in them
    R_E = [R[nc + i][nc:] for i in range(len(E))]
    P, T, t_inverse = orthogonal(R_E, [1.0] * len(E))
    y = forward_substitute(T, t_inverse, [dot(e, wanted) for e in Q[nc:]])
    driving = [dot([p[i] for p in P], y) for i in range(len(E))]
    tau: list[Scalar] = [0.0] * n
    for i, k in enumerate(actuated):
        tau[k] = driving[i]
    left = [w - t for w, t in zip(wanted, tau, strict=True)]
    lam = back_substitute(
        [R[i][:nc] for i in range(nc)], inverse[:nc], [dot(e, left) for e in Q[:nc]]
    )
    return tau, lam
