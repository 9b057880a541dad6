"""One problem in work: its memory, its iterations, the multipliers of its constraints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import SimulationError
from ramify.optimal import iteration
from ramify.optimal.multipliers import Multipliers
from ramify.optimal.problem import Problem
from ramify.optimal.problem_code import KnotWorkspace

_WORDS: Final = {
    iteration.CONVERGED: "converged",
    iteration.MORE: "iterations",
    iteration.NO_DESCENT: "no descent",
    iteration.NOT_FINITE: "not finite",
    iteration.SINGULAR: "singular",
}
_CHUNK: Final = 20
"""Iterations between two looks at Ctrl-C and the progress."""
_FINEST: Final = 1e-15
"""The least tolerance of a solution."""
_OUTER: Final = 40
"""Updates of the multipliers."""
_LOOSE: Final = 1e-4
"""The tolerance of the first solutions, whose multipliers change anyway."""
FREE, BOXED = 1e-9, 0.1
"""Regularisation at the start, without and with limits of the controls."""

ProgressCall = Callable[[int, float, float], None]
"""Called with the number of iterations, the cost and the largest gap."""


@dataclass(frozen=True)
class SolverSettings:
    """How far to go: the relative cost that a further step may win, the gradient by the controls
    relative to its parts, how much constraints may be violated, iterations; and the regularisation
    at the start (None: by the limits).
    """

    tolerance: float = 1e-9
    iterations: int = 1000
    regularisation: float | None = None
    violation: float = 1e-6
    gradient: float = 1e-4


class Guess(NamedTuple):
    """A trajectory to start from, and multipliers (knots + 1, constraints) of the constraints."""

    x: Array
    u: Array
    multipliers: Array | None = None


class SolverOutcome(NamedTuple):
    """A trajectory, and how it came about."""

    x: Array
    u: Array
    K: Array
    parameters: Array
    reason: str
    iterations: int
    gap: float
    violation: float
    gradient: float
    multipliers: Array
    history: Array


class KnotSolver:
    """Solves problems of one kind, one after the other, in the same memory."""

    def __init__(self, problem: Problem, settings: SolverSettings) -> None:
        self.problem, self.settings = problem, settings
        self.workspace = KnotWorkspace(problem.code, problem.horizon, settings.iterations)
        arrays = self.workspace.arrays
        arrays["low"][:], arrays["high"][:] = problem.low, problem.high
        texts = problem.texts
        self._active = np.ones((problem.horizon + 1, texts.constraints))
        for i in texts.final_constraints:  # of the state alone: the first is not to be changed
            self._active[0, i] = 0.0
        for i in set(range(texts.constraints)) - set(texts.final_constraints):
            self._active[-1, i] = 0.0

    def load(self, start: Array, parameters: Array, guess: Guess | None) -> None:
        """A new problem: where it starts, its parameters (knots + 1, size) and a guess."""
        arrays, problem = self.workspace.arrays, self.problem
        arrays["x"][:] = start if guess is None else guess.x
        arrays["x"][0] = start
        u = np.zeros(problem.nu) if guess is None else guess.u
        if guess is None and problem.dt is None:
            u[-1] = 0.5 * (problem.low[-1] + problem.high[-1])
        arrays["u"][:] = np.clip(u, problem.low, problem.high)
        arrays["p"][:] = parameters
        self._multipliers = Multipliers(self._active)
        if guess is not None and guess.multipliers is not None:
            self._multipliers.multiplier[:] = guess.multipliers * self._active
        self.workspace["count"] = 0
        self._restart()

    def _restart(self) -> None:
        first = self.settings.regularisation
        if first is None:
            first = BOXED if self.problem.boxed else FREE
        self.workspace["reg"] = first

    def run(self, progress: ProgressCall | None = None) -> SolverOutcome:
        """Iterate until the end."""
        try:
            if self.problem.texts.constraints:
                reason = self._with_constraints(progress)
            else:
                reason = self._until_stationary(progress)
        except KeyboardInterrupt:
            reason = "interrupted"
        return self._outcome(reason)

    def _until_stationary(self, progress: ProgressCall | None) -> str:
        """Iterations with smaller and smaller tolerances, until the gradient is small."""
        tolerance = self.settings.tolerance
        while True:
            reason = self._iterate(tolerance, progress)
            if reason not in ("converged", "no descent"):
                return reason
            if self.gradient() <= self.settings.gradient:
                return "converged"
            if reason != "converged" or tolerance <= _FINEST:
                return "no descent"
            tolerance = max(0.01 * tolerance, _FINEST)

    def _iterate(self, tolerance: float, progress: ProgressCall | None) -> str:
        """Compiled iterations, some at a time."""
        space, most = self.workspace, self.settings.iterations
        space["tolerance"] = tolerance
        while True:
            if space["count"] >= most:
                return _WORDS[iteration.MORE]
            space["most"] = min(most, space["count"] + _CHUNK)
            reason = self.problem.code.iterate(space.pointer)
            if progress is not None:
                progress(int(space["count"]), space["J"], space["gap_size"])
            if reason == iteration.NOT_FINITE:
                self._explain()
            if reason != iteration.MORE:
                return _WORDS[reason]

    def _with_constraints(self, progress: ProgressCall | None) -> str:
        """Solutions with better and better multipliers."""
        settings, multipliers = self.settings, self._multipliers
        rows = self.workspace.arrays["p"][:, self.problem.texts.user_size :]
        if not multipliers.multiplier.any():  # first without constraints
            reason = self._iterate(_LOOSE, progress)
        multipliers.begin(self.workspace["J"], self._constraints())
        tolerance, best, stalled = _LOOSE, np.inf, 0
        for _ in range(_OUTER):
            multipliers.write(rows)
            self._restart()
            reason = self._iterate(tolerance, progress)
            if reason in ("iterations", "not finite"):
                return reason
            values = self._constraints()
            left = float(multipliers.residual(values).max(initial=0.0))
            met = left <= settings.violation
            if met and tolerance <= settings.tolerance and self.gradient() <= settings.gradient:
                return "converged"
            stalled = 0 if left < 0.9 * best else stalled + 1
            best = min(best, left)
            if stalled > 8:
                return "infeasible" if left > settings.violation else "no descent"
            multipliers.update(values)
            tolerance = max(_FINEST, (1e-3 if met else 0.1) * tolerance)
        return "infeasible" if best > settings.violation else "iterations"

    def shift_multipliers(self, by_a_knot: bool) -> None:
        """Write the multipliers of the constraints into the parameters, one knot earlier if the
        trajectory has moved so.
        """
        if self.problem.texts.constraints:
            if by_a_knot:
                self._multipliers.shift()
            self._multipliers.write(self.workspace.arrays["p"][:, self.problem.texts.user_size :])

    def update_multipliers(self) -> None:
        """New multipliers from the constraints of the trajectory; penalties stay."""
        if self.problem.texts.constraints:
            self._multipliers.follow(self._constraints())

    def gradient(self) -> float:
        """The largest gradient by a control that does not push into a bound, as a share of the
        largest part of one.
        """
        self.problem.code.adjoint(self.workspace.pointer)
        scale = self.workspace["gradient_scale"]
        return self.workspace["gradient"] / scale if scale > 0.0 else 0.0

    def _constraints(self) -> Array:
        """The values (knots + 1, constraints) of all constraints, zero where there are none."""
        arrays, code = self.workspace.arrays, self.problem.code
        values = np.zeros(self._active.shape)
        values[:-1] = code.terms.rows([arrays["x"][:-1], arrays["u"], arrays["p"][:-1]])[1]
        which = list(self.problem.texts.final_constraints)
        values[-1, which] = code.final_terms.rows([arrays["x"][-1:], arrays["p"][-1:]])[1][0]
        return values * self._active

    def _explain(self) -> None:
        """Raise SimulationError for the first term or step that is not finite, if the trajectory
        has one.
        """
        arrays, code = self.workspace.arrays, self.problem.code
        x, u, p = (np.ascontiguousarray(arrays[name]) for name in ("x", "u", "p"))
        names, final_names = self.problem.programs.names
        running, constraints = code.terms.rows([x[:-1], u, p[:-1]])
        last, _ = code.final_terms.rows([x[-1:], p[-1:]])
        for listed, values in ((names, running), (final_names, last)):
            bad = np.argwhere(~np.isfinite(values))
            if bad.size:
                k, i = bad[0]
                where = "the last knot" if listed is final_names else f"knot {k}"
                raise SimulationError(
                    f"the cost term {listed[i]!r} is {values[k, i]} at {where}: it must be finite "
                    "wherever the solver looks"
                )
        bad = np.argwhere(~np.isfinite(constraints))
        if bad.size:
            raise SimulationError(f"keep[{bad[0, 1]}] is not finite at knot {bad[0, 0]}")

    def _outcome(self, reason: str) -> SolverOutcome:
        space, arrays = self.workspace, self.workspace.arrays
        if reason in ("iterations", "interrupted"):
            self.problem.code.evaluate(space.pointer)  # after the last step
        violation, multipliers = 0.0, np.zeros(self._active.shape)
        if self.problem.texts.constraints:
            values = self._constraints()
            violation = float(np.maximum(values, 0.0).max(initial=0.0))
            step = self._multipliers.penalty * values
            multipliers = np.maximum(0.0, self._multipliers.multiplier + step) * self._active
        return SolverOutcome(
            arrays["x"].copy(), arrays["u"].copy(), space.gains()[1], arrays["p"].copy(),
            reason, int(space["count"]), space["gap_size"], violation, self.gradient(), multipliers,
            arrays["history"][: int(space["count"])].copy(),
        )  # fmt: skip


def costs_of(problem: Problem, x: Array, u: Array, p: Array) -> dict[str, Array]:
    """The cost (...) of each term of trajectories x (..., knots + 1, size), u and p."""
    names, final_names = problem.programs.names

    def rows(a: Array) -> Array:
        return np.ascontiguousarray(a.reshape(int(np.prod(a.shape[:-1])), a.shape[-1]))

    lead = x.shape[:-2]
    running = problem.code.terms.rows([rows(x[..., :-1, :]), rows(u), rows(p[..., :-1, :])])[0]
    last = problem.code.final_terms.rows([rows(x[..., -1, :]), rows(p[..., -1, :])])[0]
    sums = running.reshape((*lead, u.shape[-2], len(names))).sum(axis=-2)
    out = {name: sums[..., i] for i, name in enumerate(names)}
    for i, name in enumerate(final_names):
        whole = name if name.startswith("final") else f"final {name}"
        out[whole] = last.reshape((*lead, len(final_names)))[..., i]
    return out
