"""What a solver has computed: a trajectory with its gains, costs, and the reason why it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import StateError
from ramify.optimal.pass_writer import HISTORY
from ramify.optimal.problem import Problem
from ramify.optimal.tracking import Tracking

REASONS = {
    "converged": "the first-order conditions hold",
    "iterations": "the most iterations are done",
    "no descent": "no step reduces the cost, and the first-order conditions do not hold",
    "singular": "the quadratic of the controls is not positive definite, however regularised",
    "not finite": "costs or dynamics are not finite on the trajectory",
    "infeasible": "the constraints cannot be met, as far as the solver can see",
    "interrupted": "Ctrl-C; this is the best so far",
}
"""Why a solver ends."""


@dataclass(frozen=True)
class Solution:
    """The trajectory of a problem. Arrays of a batch have its leading axes first.

    q (knots, nq), v (knots, nv): states, one more than controls; u (steps, drives): forces, N m or
    N; dt (steps): lengths of the steps, s. K (steps, drives, 2 nv): the gains of
    ``u + K [difference(q, ·), · - v]``. cost: the sum; costs: by term. gap: the largest gap between
    a knot and the step that leads to it. violation: the largest value of a constraint above 0.
    gradient: the largest of the cost by a control inside its bounds, as a share of its parts.
    reason: one of ``REASONS``. history: of each iteration cost, gap, slope, curvature, step length,
    regularisation.
    """

    problem: Problem
    q: Array
    v: Array
    u: Array
    dt: Array
    K: Array
    cost: Any
    costs: dict[str, Any]
    iterations: Any
    reason: Any
    gap: Any
    violation: Any
    gradient: Any
    multipliers: Array
    history: Any
    parameters: Mapping[str, Any]
    guess: Any = None

    @property
    def converged(self) -> Any:
        """Whether the first-order conditions hold."""
        return self.reason == "converged"

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes."""
        return self.q.shape[:-2]

    @property
    def t(self) -> Array:
        """Times of the knots (..., knots), s."""
        times = np.zeros((*self.batch, self.dt.shape[-1] + 1))
        times[..., 1:] = np.cumsum(self.dt, axis=-1)
        return times

    def __repr__(self) -> str:
        if self.batch:
            share = np.mean(self.reason == "converged")
            return f"Solution(batch {self.batch}, {100.0 * share:.0f} % converged)"
        return (
            f"Solution({self.reason} after {self.iterations} iterations, cost {self.cost:.6g}, gap "
            f"{self.gap:.2g}, violation {self.violation:.2g})"
        )

    def __getitem__(self, index: Any) -> Solution:
        """A part of a batch."""
        if not self.batch:
            raise StateError("this solution is not a batch; use it as it is")
        return self.one(index)

    def one(self, index: Any) -> Solution:
        """The entries at an index of the leading axes; a single one as plain numbers."""
        arrays = {
            name: getattr(self, name)[index]
            for name in ("q", "v", "u", "dt", "K", "cost", "iterations", "reason", "gap",
                         "violation", "gradient", "multipliers", "history")
        }  # fmt: skip
        costs = {name: values[index] for name, values in self.costs.items()}
        if np.ndim(arrays["cost"]) == 0:
            for name in ("cost", "gap", "violation", "gradient"):
                arrays[name] = float(arrays[name])
            arrays |= {"iterations": int(arrays["iterations"]), "reason": str(arrays["reason"])}
            if isinstance(arrays["history"], np.ndarray) and arrays["history"].dtype == object:
                arrays["history"] = arrays["history"].item()
            costs = {name: float(value) for name, value in costs.items()}
        return replace(self, **arrays, costs=costs)

    def controller(self, **options: Any) -> Tracking:
        """The controller that follows the trajectory: u of the knot plus K times the deviation of
        the state, sampled once a step. A step of free length cannot be followed so.
        """
        self._must_be_single("controller")
        if self.problem.dt is None:
            raise StateError("steps of free length have no common rate; simulate with u instead")
        names = self.problem.step.driven.names
        options = {"actuated": names, "rate_hz": 1.0 / self.problem.dt} | options
        return Tracking.of(self.q, self.v, self.u, self.K, self.problem.dt, **options)

    def report(self, path: str | Path, title: str = "") -> Path:
        """Write a page with the trajectory, the costs and the progress of the solver."""
        from ramify.optimal.solution_report import write_solution_report

        self._must_be_single("report")
        return write_solution_report(self, Path(path), title)

    def _must_be_single(self, what: str) -> None:
        if self.batch:
            raise StateError(f"{what}: this is a batch {self.batch}; take one, as solution[0]")

    @property
    def progress(self) -> dict[str, Array]:
        """The columns of ``history`` by name."""
        return {name: self.history[..., i] for i, name in enumerate(HISTORY)}
