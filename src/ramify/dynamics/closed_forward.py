"""Forward dynamics of closed systems (eqs. 8.5-8.7) by the recursions of the tree.

With I = U D U' the accelerations follow from (8.1) and J a = -c, where c = J' v and what stabilises
the loops:

    Z = U^-1 J',   phi^ = U^-1 phi,
    (Z' D^-1 Z) lambda = -(Z' D^-1 phi^ + c),   a = U^-T D^-1 (phi^ + Z lambda).

A column of Z is a wrench on its way to the base through joints that give way; the last step is one
forward recursion. No inertia matrix is formed. Where the inertia matrix itself is singular, because
some massless link moves only as its loop lets it, I is replaced by I + J' W J, which gives the same
answer, and U by its triangular factor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ramify.core.scalar import Scalar
from ramify.core.spatial import NO_TWIST, NO_WRENCH, Wrench
from ramify.dynamics.constraint_kinematics import Constraint, loop_constraints
from ramify.dynamics.factor import Elimination, eliminations
from ramify.dynamics.forward import Pivot, bias_wrenches
from ramify.dynamics.forward import outward as acceleration_step
from ramify.dynamics.independent_rows import LoopTerms, row_basis
from ramify.dynamics.inertia_matrix import mass_matrix
from ramify.dynamics.linear import Ldl, scales
from ramify.dynamics.motion import displacements, drift
from ramify.dynamics.tree import Column, Tree
from ramify.model.link import Displacement, Link
from ramify.model.skeleton import path_to_base

Sparse = dict[int, Scalar]


@dataclass
class ClosedFactors:
    """I = U D U': ``inverse`` of D; ``reduce`` gives U^-1 J' of a constraint, ``finish`` U^-T x."""

    inverse: list[Scalar]
    reduce: Callable[[Constraint], Sparse]
    finish: Callable[[Sequence[Scalar]], list[Scalar]]


# ---- the recursions ----


def inward(
    link: Link, children: Wrench, x: Displacement, row: Elimination, bias: Wrench, tau: Scalar
) -> tuple[Scalar, Wrench]:
    """Backward recursion, eq. (6.11): phi^ = phi - p' w, the wrench w passed on through a joint
    that gives way.
    """
    w = bias + children
    phi_hat = tau - link.p.dot(w)
    return phi_hat, link.propagation(x).transposed(w + row.psi * phi_hat)


def tree_factors(tree: Tree, x: Column) -> tuple[ClosedFactors, Column]:
    """The factors by recursion, and the eliminations they are made of."""
    rows = eliminations(tree, x)

    def reduce(constraint: Constraint) -> Sparse:
        return reduced(tree, x, rows, constraint)

    def finish(phi: Sequence[Scalar]) -> list[Scalar]:
        pivots = [Pivot(row.psi, p) for row, p in zip(rows, phi, strict=True)]
        return [a for a, _ in tree.outward(acceleration_step, (0.0, NO_TWIST), x, pivots)]

    return ClosedFactors([row.inverse for row in rows], reduce, finish), rows


def reduced(tree: Tree, x: Column, rows: Column, constraint: Constraint) -> Sparse:
    """A column of Z by link: the constraint's wrenches on their way to the base."""
    carried, out = dict(constraint.wrenches), Sparse()
    ends = [*carried, *constraint.forces]
    todo = {j for k in ends for j in path_to_base(tree.parents, k)}
    for k in sorted(todo, reverse=True):
        link, parent, W = tree.links[k], tree.parents[k], carried.get(k, NO_WRENCH)
        out[k] = constraint.forces.get(k, 0.0) + link.p.dot(W)
        if parent >= 0:
            handed = link.propagation(x[k]).transposed(W - rows[k].psi * out[k])
            carried[parent] = carried[parent] + handed if parent in carried else handed
    return out


# ---- the dense way, for singular inertia matrices ----


def dense_factors(
    tree: Tree, q: Column, rows: Sequence[Constraint], weight: float
) -> tuple[ClosedFactors, Callable[[Sequence[Scalar]], list[Scalar]]]:
    """Factors of I + J' W J = L D L', W being ``weight`` (kg) times the squared size of each row;
    and L^-1 b as a function.
    """
    n = len(tree.links)
    I = mass_matrix(tree, q)  # noqa: E741

    def entry(i: int, j: int) -> Scalar:
        total = I.entries.get((i, j), 0.0)
        for row in rows:
            if i in row.entries and j in row.entries:
                total = total + row.entries[i] * row.entries[j] * (weight * row.size * row.size)
        return total

    factors = Ldl([[entry(i, j) for j in range(i + 1)] for i in range(n)])

    def reduce(constraint: Constraint) -> Sparse:
        return dict(enumerate(factors.lower([constraint.entries.get(i, 0.0) for i in range(n)])))

    return ClosedFactors(factors.inverse, reduce, factors.upper), factors.lower


# ---- the small system ----


def compliance(factors: ClosedFactors, Z: Sequence[Sparse], rows: Sequence[Constraint]) -> Ldl:
    """Z' D^-1 Z = J I^-1 J', factored; rows that follow from earlier ones drop out."""
    d = factors.inverse
    S: list[list[Scalar]] = []
    for i, zi in enumerate(Z):
        weighted = {k: z * d[k] for k, z in zi.items()}
        S.append([_sum(weighted, zj) for zj in Z[: i + 1]])
    diagonal = [S[i][i] for i in range(len(S))]
    return Ldl(S, scales(diagonal, [row.size for row in rows], [row.loop for row in rows]))


def _sum(a: Sparse, b: Sparse) -> Scalar:
    total: Scalar = 0.0
    for k, x in a.items():
        if k in b:
            total = total + x * b[k]
    return total


def with_multipliers(
    factors: ClosedFactors, Z: Sequence[Sparse], phi: Sequence[Scalar], lam: Sequence[Scalar]
) -> list[Scalar]:
    """D^-1 Z lambda added to phi."""
    out = list(phi)
    for z, x in zip(Z, lam, strict=True):
        for k, value in z.items():
            out[k] = out[k] + factors.inverse[k] * (value * x)
    return out


def closed_forward_dynamics(
    tree: Tree, loops: LoopTerms, q: Column, v: Column, tau: Column, applied: Column,
    drives: Mapping[int, Scalar] | None = None, laden: Tree | None = None,
) -> tuple[list[Scalar], list[Scalar]]:  # fmt: skip
    """(a, lambda): accelerations under joint forces tau and external wrenches in the links' frames,
    and the multipliers.

    drives: links whose accelerations are given; each is one more constraint, whose multiplier is
    the force that drives it. laden: the tree with inertia that a step adds.
    """
    closures, rate, weight, redundancy = loops
    x = displacements(tree, q)
    moving = drift(tree, x, v)
    bias = bias_wrenches(tree, moving.links, applied)
    basis = row_basis(tree, loop_constraints(tree, closures, q, x, moving), redundancy)
    rows = list(basis.rows)
    groups = len(closures) if basis.C is None else len(rows)
    for i, (k, a) in enumerate((drives or {}).items()):
        rows.append(Constraint(0.0, 0.0, {k: 1.0}, -a, 1.0, groups + i, forces={k: 1.0}))
    c = [row.bias + _stabilised(row, v, rate) for row in rows]
    if weight:
        factors, lower = dense_factors(laden or tree, q, rows, weight)
        free = _joint_forces(tree, x, bias, tau)
        for row, ck in zip(rows, c, strict=True):
            for k, entry in row.entries.items():
                free[k] = free[k] - entry * ck * (weight * row.size * row.size)
        phi_hat = lower(free)
    else:
        factors, eliminated = tree_factors(laden or tree, x)
        phi_hat = list(tree.inward(inward, NO_WRENCH, x, eliminated, bias, tau))
    phi = [p * d for p, d in zip(phi_hat, factors.inverse, strict=True)]
    Z = [factors.reduce(row) for row in rows]
    rhs = [-(_sum(z, dict(enumerate(phi))) + ck) for z, ck in zip(Z, c, strict=True)]
    lam = compliance(factors, Z, rows).solve(rhs)
    return factors.finish(with_multipliers(factors, Z, phi, lam)), basis.spread(lam)


def closed_hybrid_dynamics(
    tree: Tree, loops: LoopTerms, q: Column, v: Column, x: Column, prescribed: Sequence[float],
    applied: Column,
) -> list[Scalar]:  # fmt: skip
    """y (nv): where accelerations are prescribed (one in that column) the forces that give them,
    else the accelerations.

    x: accelerations where prescribed, else joint forces. Drives that depend on earlier ones (more
    than degrees of freedom) do nothing.
    """
    drives = {k: a for k, (a, one) in enumerate(zip(x, prescribed, strict=True)) if one}
    tau = [0.0 if k in drives else force for k, force in enumerate(x)]
    a, lam = closed_forward_dynamics(tree, loops, q, v, tau, applied, drives)
    for force, k in zip(lam[len(lam) - len(drives) :], drives, strict=True):
        a[k] = force
    return a


def _stabilised(row: Constraint, v: Column, rate: float) -> Scalar:
    if not rate:
        return 0.0
    return row.rate(v) * (2.0 * rate) + row.value * (rate * rate)


def _joint_forces(tree: Tree, x: Column, bias: Column, tau: Column) -> list[Scalar]:
    """phi = tau - h by the backward recursion of inverse dynamics."""

    def step(
        link: Link, children: Wrench, at: Displacement, w: Wrench, force: Scalar
    ) -> tuple[Scalar, Wrench]:
        total = w + children
        return force - link.p.dot(total), link.propagation(at).transposed(total)

    return list(tree.inward(step, NO_WRENCH, x, bias, tau))
