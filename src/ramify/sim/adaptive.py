"""Adaptive integration: our DOP853 and SciPy's solvers, one step at a time, so that a run can be
watched, stopped and resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import SimulationError
from ramify.sim.cvode import Cvode
from ramify.sim.dop853 import Dop853

Rates = Callable[[float, Array], Array]

ADAPTIVE: Final = {
    "dop853": "DOP853", "rk45": "RK45", "ode45": "RK45", "rk23": "RK23", "radau": "Radau", "bdf": "BDF", "ode15s": "BDF",
    "lsoda": "LSODA", "cvode": "CVODE",
}  # fmt: skip
"""Names of the adaptive methods, and the solver behind each."""

ONE_STEP: Final = ("dop853", "rk45", "ode45", "rk23", "radau")
"""Methods that remember nothing but the last state: it may be corrected between their steps."""

_DIFFERENCE = float(np.sqrt(np.finfo(np.float64).eps))
_SURE = 15
"""Steps in a row at that boundary after which a motion is called stiff."""


@dataclass
class Progress:
    """What a solver has done so far; ``at_boundary`` counts the steps whose size its stability set,
    not its accuracy.
    """

    steps: int = 0
    evaluations: int = 0
    at_boundary: int = 0
    within: int = 0

    @property
    def stiff(self) -> bool:
        return self.at_boundary >= _SURE


@dataclass(frozen=True)
class Piece:
    """One step of a solver: ``y(t)`` between two times."""

    start: float
    end: float
    y: Callable[[float], Array]


def pieces(
    rates: Rates, t0: float, y0: Array, t1: float, name: str, rtol: float, atol: float, done: Progress, max_step: float,
    settle: Callable[[Array], Array] | None = None,
) -> Iterator[Piece]:  # fmt: skip
    """The steps from t0 to t1, each with its own interpolation. ``settle`` corrects the state after
    a step of a one-step method.
    """
    own = {"jac": lambda t, y: jacobian(rates, t, y)} if name in ("radau", "bdf", "ode15s") else {}
    solver = _solver(name)(rates, t0, y0, t1, rtol=rtol, atol=atol, max_step=max_step, **own)
    evaluations = done.evaluations
    while solver.status == "running":
        before = solver.t
        message = solver.step()
        if solver.status == "failed":
            raise SimulationError(f"{ADAPTIVE[name]} cannot go on at t = {solver.t:g} s: {message}")
        done.steps += 1
        if name == "dop853":
            _watch_stability(solver, done)
        yield Piece(float(before), float(solver.t), solver.dense_output())
        if settle is not None and name in ONE_STEP:
            solver.y = settle(solver.y)
            solver.f = rates(float(solver.t), solver.y)
        done.evaluations = evaluations + int(solver.nfev)


def jacobian(rates: Rates, t: float, y: Array) -> Array:
    """df/dy (size, size) by differences; SciPy's own lengthen their step without bound along
    coordinates that nothing needs.
    """
    f = np.array(rates(t, y))
    columns = np.empty((len(y), len(y)))
    for i, x in enumerate(y):
        ahead = y.copy()
        ahead[i] = x + _DIFFERENCE * max(abs(x), 0.1)
        columns[:, i] = (rates(t, ahead) - f) / (ahead[i] - x)
    return columns


def _solver(name: str) -> Any:
    """The class behind a name; SciPy's are imported only where one of them is chosen."""
    if name == "dop853":
        return Dop853
    if name == "cvode":
        return Cvode
    from scipy import integrate

    return getattr(integrate, ADAPTIVE[name])


def _watch_stability(solver: Any, done: Progress) -> None:
    """Hairer and Wanner's test for stiffness: many steps at the boundary of stability; six in a row
    within it reset the count.
    """
    if solver.at_stability:
        done.at_boundary, done.within = done.at_boundary + 1, 0
    else:
        done.within += 1
        if done.within == 6:
            done.at_boundary = 0


def first_event(
    piece: Piece, events: Sequence[Callable[[float, Array], float]]
) -> tuple[float, int] | None:
    """(time, index) of the first event that changes its sign within a step, looked at in eighths
    and then by bisection.
    """
    from scipy.optimize import brentq

    times = np.linspace(piece.start, piece.end, 9)
    states = [piece.y(float(t)) for t in times]
    found: list[tuple[float, int]] = []
    for i, event in enumerate(events):
        values = [event(float(t), y) for t, y in zip(times, states, strict=True)]
        for k, (a, b) in enumerate(pairwise(values)):
            if a != 0.0 and np.sign(a) != np.sign(b):
                ends = float(times[k]), float(times[k + 1])
                at = brentq(
                    lambda t, event=event: event(t, piece.y(t)), *ends, xtol=1e-13, rtol=1e-14
                )
                found.append((float(at), i))
                break
    return min(found) if found else None
