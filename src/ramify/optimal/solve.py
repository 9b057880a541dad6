"""Solving problems: one, or a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, numbers, positive, whole
from ramify.core.errors import StateError
from ramify.core.messages import shown
from ramify.model.configuration import configuration
from ramify.optimal.problem import Problem, starts
from ramify.optimal.solution import Solution
from ramify.optimal.solver import (
    Guess,
    KnotSolver,
    ProgressCall,
    SolverOutcome,
    SolverSettings,
    costs_of,
)


def solve(
    problem: Problem,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    guess: Any = None,
    tolerance: float = 1e-9,
    iterations: int = 1000,
    regularisation: float | None = None,
    violation: float = 1e-6,
    gradient: float = 1e-4,
    progress: ProgressCall | None = None,
    **parameters: Any,
) -> Solution:
    """The trajectory of least cost from q (..., nq), v (..., nv; at rest by default).

    Leading axes are a batch of problems; the parameters of the problem, by name, may have them too.
    guess: a Solution of the same problem, or a mapping with some of q (knots, nq), v (knots, nv), u
    (steps, controls); by default the start at every knot, without forces. A guess need not be a
    motion of the machine: the gaps between its knots are closed on the way.

    tolerance: the share of the cost that a further step may still win. gradient: the largest
    gradient of the cost by a control inside its bounds, as a share of its parts. regularisation:
    that of the first iteration, relative to the curvature of the cost by the controls; by default
    1e-9, with limits 0.1. violation: how much a constraint may be violated. progress: called with
    the number of iterations, the cost and the largest gap.

    Ctrl-C ends the iterations; the solution is then the best so far.
    """
    if not isinstance(problem, Problem):
        raise StateError(f"problem must be a Problem; it is {shown(problem)}")
    settings = SolverSettings(
        positive("tolerance", tolerance),
        whole("iterations", iterations, 1),
        None if regularisation is None else positive("regularisation", regularisation),
        positive("violation", violation),
        positive("gradient", gradient, np.inf),
    )
    start = starts(problem, q, v)
    lead = start.shape[:-1]
    rows = problem.parameter_rows(parameters, lead)
    optimiser = KnotSolver(problem, settings)
    outcomes: list[SolverOutcome] = []
    chosen = None
    for i in np.ndindex(*lead):
        chosen = _guess(problem, _part(guess, i))
        optimiser.load(start[i], rows[i], chosen)
        outcomes.append(optimiser.run(progress))
        if lead and outcomes[-1].reason == "interrupted":
            raise KeyboardInterrupt
    solution = _solution(problem, outcomes, lead, parameters)
    if lead:
        return solution
    begun = None if chosen is None else chosen.x[:, : problem.robot.nq]
    return replace(solution.one(()), guess=begun)


def _part(guess: Any, i: tuple[int, ...]) -> Any:
    """The guess of one problem of a batch."""
    if isinstance(guess, Solution) and guess.batch:
        return guess[i]
    return guess


def _guess(problem: Problem, guess: Any) -> Guess | None:
    """The trajectory to start from; StateError for one that does not fit."""
    if guess is None:
        return None
    knots, robot = problem.horizon + 1, problem.robot
    multipliers = None
    if isinstance(guess, Solution):
        multipliers = guess.multipliers
        guess = {"q": guess.q, "v": guess.v, "u": _controls(problem, guess)}
    if not isinstance(guess, Mapping) or not set(guess) <= {"q", "v", "u"}:
        raise StateError(
            f"guess must be a Solution, or a mapping with some of q, v and u; it is {shown(guess)}"
        )
    q = configuration(robot, "guess q", guess["q"] if "q" in guess else robot.neutral())
    v = numbers("guess v", guess.get("v", np.zeros(robot.nv)), robot.nv, robot.name)
    u = numbers("guess u", guess.get("u", np.zeros(problem.nu)), problem.nu, robot.name)
    for name, x, count in (("q", q, knots), ("v", v, knots), ("u", u, knots - 1)):
        if x.shape[:-1] not in ((), (count,)):
            raise StateError(
                f"guess {name} has shape {x.shape}; a horizon of {knots - 1} steps needs "
                f"({count}, {x.shape[-1]})"
            )
    x = np.zeros((knots, problem.step.size))
    x[:, : robot.nq], x[:, robot.nq : robot.nq + robot.nv] = q, v
    return Guess(x, np.broadcast_to(u, (knots - 1, problem.nu)), multipliers)


def _controls(problem: Problem, solution: Solution) -> Array:
    if problem.dt is not None:
        return solution.u
    return np.concatenate([solution.u, solution.dt[..., None]], axis=-1)


def _split(problem: Problem, x: Array, u: Array) -> dict[str, Array]:
    """States and controls by name."""
    robot, drives = problem.robot, len(problem.step.driven)
    steps = u.shape[:-1]
    dt = np.full(steps, problem.dt) if problem.dt is not None else u[..., -1]
    return {
        "q": x[..., : robot.nq], "v": x[..., robot.nq : robot.nq + robot.nv],
        "u": u[..., :drives], "dt": dt,
    }  # fmt: skip


def _solution(
    problem: Problem,
    outcomes: list[SolverOutcome],
    lead: tuple[int, ...],
    parameters: Mapping[str, Any],
) -> Solution:
    """Outcomes as one solution."""

    def stacked(name: str) -> Array:
        values = np.array([getattr(outcome, name) for outcome in outcomes])
        return values.reshape((*lead, *values.shape[1:]))

    drives, history = len(problem.step.driven), np.empty(len(outcomes), dtype=object)
    for i, outcome in enumerate(outcomes):
        history[i] = outcome.history
    x, u = stacked("x"), stacked("u")
    costs = costs_of(problem, x, u, stacked("parameters"))
    return Solution(
        problem, **_split(problem, x, u), K=stacked("K")[..., :drives, :],
        cost=np.sum([*costs.values()], axis=0), costs=costs, iterations=stacked("iterations"),
        reason=stacked("reason"), gap=stacked("gap"), violation=stacked("violation"),
        gradient=stacked("gradient"), multipliers=stacked("multipliers"),
        history=history.reshape(lead), parameters=parameters,
    )  # fmt: skip
