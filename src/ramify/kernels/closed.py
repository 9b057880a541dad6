"""The algorithms of closed systems by name, as ``ramify.kernels.algorithms`` has those of trees:
the same arrays, loops honoured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ramify.core.errors import LoopError
from ramify.core.scalar import select
from ramify.dynamics import closed_forward as forward
from ramify.dynamics import closed_inverse as inverse
from ramify.dynamics.closure import closures, constraint_count, reach
from ramify.dynamics.constraint_kinematics import loop_constraints, loop_wrenches
from ramify.dynamics.independent_rows import LoopTerms
from ramify.dynamics.linear import largest, size_of
from ramify.dynamics.motion import displacements, drift
from ramify.dynamics.redundancy import redundancy
from ramify.dynamics.subsystems import SolutionOrder, plan
from ramify.dynamics.tree import tree_of
from ramify.dynamics.wrenches import applied
from ramify.kernels.algorithms import ALGORITHMS, Algorithm, arguments, as_wrenches, no_wrenches
from ramify.kernels.text import plain_text
from ramify.model.driven import driven
from ramify.model.robot import Robot, once
from ramify.trace.rolled_program import Argument

_SINGULAR = 1e-10
OPEN, UNMET = 1e-3, 1e-7
"""Shares of the robot's size at which q is open, and of the largest force that may be missing."""


def slip_share(model: Robot) -> float:
    """Share of the accelerations by which they may open the loops: of rows that hold nothing
    because data are rounded.
    """
    return redundancy(model).tolerance


@once
def closed_algorithms(model: Robot) -> Mapping[str, Algorithm]:
    """The algorithms that honour the loops of a robot, by name; none for a tree."""
    return _ClosedTable(model).rows() if model.loops else {}


def stabilised_forward_dynamics(model: Robot, rate: float, wrenches: bool = False) -> Algorithm:
    """Forward dynamics with Baumgarte's stabilisation at a rate in 1/s; 0: none."""
    return _ClosedTable(model).forward("forward_dynamics", rate, wrenches, multipliers=False)


class _ClosedTable:
    def __init__(self, model: Robot) -> None:
        self.model, self.loops, self.nc = model, closures(model), constraint_count(model)

    def terms(self, rate: float = 0.0, weight: float = 0.0) -> LoopTerms:
        return LoopTerms(self.loops, rate, weight, redundancy(self.model))

    def rows(self) -> dict[str, Algorithm]:
        order = plan(self.model)
        work = None if order.refused or redundancy(self.model).redundant else order
        rows = [self.constraints(), self.gaps(), self.wrenches()]
        rows += [self.checked_forward(), self.checked_inverse(work)]
        rows.append(self.inverse("inverse_dynamics_whole", False, None))
        for ending, pushed in (("", False), ("_wrenches", True)):
            name = f"forward_dynamics{ending}"
            rows.append(self.forward(name, 0.0, pushed, False))
            rows.append(self.forward(f"{name}_multipliers", 0.0, pushed, True))
            name = f"inverse_dynamics{ending}"
            rows.append(self.inverse(name, pushed, work))
            rows.append(self.inverse(f"{name}_beside", pushed, work, beside=True))
            rows.append(self.hybrid(f"hybrid_dynamics{ending}", pushed))
        return {row.name: row for row in rows}

    def constraints(self) -> Algorithm:
        n = self.model.nv

        def text(tree: Any, q: Any, v: Any) -> tuple[Any, ...]:
            x = displacements(tree, q)
            rows = loop_constraints(tree, self.loops, q, x, drift(tree, x, v), facing=True)
            J = [row.entries.get(k, 0.0) for row in rows for k in range(n)]
            return [row.value for row in rows], J, [row.bias for row in rows]

        counts = {"residual": self.nc, "J": self.nc * n, "Jdot_v": self.nc}
        return _algorithm("constraints", "q v", counts, text)

    def gaps(self) -> Algorithm:
        """The residuals in m, for the check that precedes other computations."""

        def text(tree: Any, q: Any) -> tuple[Any, ...]:
            rows = loop_constraints(tree, self.loops, q, displacements(tree, q), None)
            return ([row.gap * row.size for row in rows],)

        return _algorithm("loop_gaps", "q", {"gap": self.nc}, text)

    def forward(self, name: str, rate: float, wrenches: bool, multipliers: bool) -> Algorithm:
        def text(tree: Any, q: Any, v: Any, tau: Any, *further: Any) -> tuple[Any, ...]:
            a, lam = forward.closed_forward_dynamics(
                tree, self.terms(rate, inertia_weight(self.model)), q, v, tau,
                _applied(tree, q, further),
            )  # fmt: skip
            return (a, lam) if multipliers else (a,)

        counts = {"a": -1, **({"multipliers": self.nc} if multipliers else {})}
        takes = "q v tau wrenches" if wrenches else "q v tau"
        return _algorithm(name, takes, counts, text, divides=True)

    def inverse(
        self, name: str, wrenches: bool, work: SolutionOrder | None, beside: bool = False
    ) -> Algorithm:
        """By subsystems where these are determinate, as a whole where there is no such order; with
        joint forces that act ``beside`` the drives as a further input.
        """
        chosen = driven(self.model).v

        def text(tree: Any, q: Any, v: Any, a: Any, *further: Any) -> tuple[Any, ...]:
            forces = further[-1] if beside else None
            applied_wrenches = _applied(tree, q, further[: int(wrenches)])
            return inverse.closed_inverse_dynamics(
                tree, self.terms(), chosen, q, v, a, applied_wrenches, work, forces
            )

        counts = {"tau": -1, "multipliers": self.nc, "wanted": -1, "unmet": -1}
        counts |= {"gap": self.nc, "slip": self.nc}
        takes = f"q v a{' wrenches' * wrenches}{' forces' * beside}"
        return _algorithm(name, takes, counts, text)

    # ---- the same with the posture looked at: NaN where the loops are open ----

    def checked_forward(self) -> Algorithm:
        def text(tree: Any, q: Any, v: Any, tau: Any) -> tuple[Any, ...]:
            (a,) = self.forward("", 0.0, False, False).text(tree, q, v, tau)
            rows = loop_constraints(tree, self.loops, q, displacements(tree, q), None)
            gap = largest([size_of(row.gap * row.size) for row in rows])
            return (_where(gap < OPEN * reach(self.model), a),)

        return _algorithm("forward_dynamics_if_closed", "q v tau", {"a": -1}, text, divides=True)

    def checked_inverse(self, work: SolutionOrder | None) -> Algorithm:
        """Also NaN where the accelerations would open the loops, or no actuator gives what they
        need; ``ramify.loops.closed_dynamics`` says which.
        """
        size, share = reach(self.model), slip_share(self.model)
        rows = [x for closure in self.loops for x in closure.sizes]

        def text(tree: Any, q: Any, v: Any, a: Any) -> tuple[Any, ...]:
            tau, _, wanted, unmet, gap, slip = self.inverse("", False, work).text(tree, q, v, a)
            speed, moved = (_fastest(self.model, x) for x in (v, a))
            open_by, slips = (_fastest_row(rows, x) for x in (gap, slip))
            missing, most = (largest([size_of(x) for x in part]) for part in (unmet, wanted))
            closed_still = slips <= share * (moved + speed * speed * (1.0 / size)) + 1e-9 * size
            torques = _where(open_by < OPEN * size, tau)
            return (_where(missing <= UNMET * most, _where(closed_still, torques)),)

        return _algorithm("inverse_dynamics_if_closed", "q v a", {"tau": -1}, text)

    def hybrid(self, name: str, wrenches: bool) -> Algorithm:
        def text(tree: Any, q: Any, v: Any, x: Any, *rest: Any) -> tuple[Any, ...]:
            *further, prescribed = rest
            loops = self.terms(weight=dense_weight(self.model))
            applied_wrenches = _applied(tree, q, tuple(further))
            y = forward.closed_hybrid_dynamics(tree, loops, q, v, x, prescribed, applied_wrenches)
            return (y,)

        takes = "q v x wrenches" if wrenches else "q v x"
        row = _algorithm(name, takes, {"y": -1}, text, divides=True)
        return replace(row, extras=("prescribed",))

    def wrenches(self) -> Algorithm:
        def text(tree: Any, q: Any, lam: Any) -> tuple[Any, ...]:
            return loop_wrenches(tree, self.loops, q, lam)

        inputs = *arguments("q"), Argument("multipliers", "row", self.nc)
        outputs = *arguments("wrenches"), Argument("forces", "row", 6 * len(self.loops))
        return Algorithm("loop_wrenches", inputs, outputs, text, rolled_as="none", needs_mass=False)


def _algorithm(
    name: str,
    takes: str,
    counts: Mapping[str, int],
    text: Callable[..., Any],
    divides: bool = False,
) -> Algorithm:
    """``counts``: numbers per output, -1 for one per velocity."""
    outputs = tuple(
        Argument(key, "link", 1) if n < 0 else Argument(key, "row", n) for key, n in counts.items()
    )
    return Algorithm(
        name, arguments(takes), outputs, text, rolled_as="none", divides=divides, needs_mass=False
    )


def _where(condition: Any, numbers: Any) -> list[Any]:
    return [select(condition, x, math.nan) for x in numbers]


def _fastest(model: Robot, rates: Any) -> Any:
    """m/s, or m/s^2: the largest rate, angles times the robot's size."""
    sizes = [reach(model) if step.rho else 1.0 for joint in model.joints for step in joint.steps]
    return _fastest_row(sizes, rates)


def _fastest_row(sizes: Sequence[float], values: Any) -> Any:
    return largest([size_of(x * size) for x, size in zip(values, sizes, strict=True)])


def _applied(tree: Any, q: Any, further: tuple[Any, ...]) -> Any:
    if not further:
        return no_wrenches(tree)
    return applied(tree, displacements(tree, q), as_wrenches(tree, further[0]))


@once
def inertia_weight(model: Robot) -> float:
    """0 where the tree's own inertia matrix is regular, else a mass (kg) with which the loops make
    it so.

    Raises LoopError where something without mass moves that no loop holds.
    """
    weight = dense_weight(model)
    if not weight:
        return 0.0
    tree, loops = tree_of(model), closures(model)
    matrix = plain_text(ALGORITHMS["mass_matrix"], model, ())
    n = model.nv
    for seed in range(3):
        posture = model.tree.random(seed)[0].tolist()
        q = model.skeleton.coordinates(posture, (1.0, 0.0, 0.0, 0.0))
        rows = loop_constraints(tree, loops, q, displacements(tree, q), None)
        J = np.array([[row.entries.get(k, 0.0) * row.size for k in range(n)] for row in rows])
        A = np.array(matrix(posture)[0]).reshape(n, n) + weight * J.T @ J
        size = np.sqrt(np.maximum(np.diag(A), 1e-300))
        scaled = A / np.outer(size, size)
        if not np.isfinite(scaled).all():
            raise LoopError(
                f"{model.name}: its inertia matrix is not finite; its masses are too large"
            )
        values, vectors = np.linalg.eigh(scaled)
        if values[0] < _SINGULAR:
            joint = model.velocities[int(np.argmax(np.abs(vectors[:, 0])))]
            raise LoopError(
                f"{model.name}: {joint!r} moves no mass, and no loop holds it: its acceleration is "
                "not determined; give it a mass"
            )
    return weight


@once
def dense_weight(model: Robot) -> float:
    """As ``inertia_weight``, without regard to what the loops hold."""
    return 0.0 if _smallest_pivot(model) > _SINGULAR else model.mass or 1.0


def _smallest_pivot(model: Robot) -> float:
    """The smallest pivot of I = U D U' at some postures, as a share of the diagonal of I."""
    least = np.inf
    text = plain_text(ALGORITHMS["udu"], model, ())
    matrix = plain_text(ALGORITHMS["mass_matrix"], model, ())
    for seed in range(3):
        q = model.tree.random(seed)[0].tolist()
        try:
            D = np.array(text(q)[1])
        except ZeroDivisionError:
            return 0.0
        diagonal = np.diag(np.array(matrix(q)[0]).reshape(model.nv, model.nv))
        if not np.isfinite(D).all() or (diagonal <= 0.0).any():
            return 0.0
        least = min(least, float((D / diagonal).min()))
    return least
