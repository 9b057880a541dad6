"""Adaptive integration: SciPy's solvers stepped one step at a time, so that a run can be watched, stopped and resumed at events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from ramify.errors import SimulationError
from ramify.model.frame import Array

Rates = Callable[[float, Array], Array]

ADAPTIVE: Final = {
    "dop853": "DOP853", "rk45": "RK45", "ode45": "RK45", "rk23": "RK23", "radau": "Radau", "bdf": "BDF", "ode15s": "BDF", "lsoda": "LSODA",
}  # fmt: skip
"""Names of the adaptive methods, and SciPy's solver behind each."""


class Event(Protocol):
    """A function of (t, q, v) that is watched for a change of sign. ``terminal`` ends the run there (True unless said otherwise)."""

    def __call__(self, t: float, q: Array, v: Array) -> float: ...


@dataclass
class Progress:
    """What a solver has done so far."""

    steps: int = 0
    evaluations: int = 0


@dataclass(frozen=True)
class Piece:
    """One step of a solver: ``y(t)`` between two times."""

    start: float
    end: float
    y: Callable[[float], Array]


def pieces(
    rates: Rates, t0: float, y0: Array, t1: float, name: str, rtol: float, atol: float, done: Progress, max_step: float
) -> Iterator[Piece]:
    """The steps from t0 to t1, each with its own interpolation."""
    from scipy import integrate

    solver: Any = getattr(integrate, ADAPTIVE[name])(rates, t0, y0, t1, rtol=rtol, atol=atol, max_step=max_step)
    evaluations = done.evaluations
    while solver.status == "running":
        before = solver.t
        message = solver.step()
        if solver.status == "failed":
            raise SimulationError(f"{ADAPTIVE[name]} cannot go on at t = {solver.t:g} s: {message}")
        done.steps += 1
        done.evaluations = evaluations + int(solver.nfev)
        yield Piece(float(before), float(solver.t), solver.dense_output())


def first_event(piece: Piece, events: Sequence[Callable[[float, Array], float]]) -> tuple[float, int] | None:
    """(time, index) of the first event that changes its sign within a step, by bisection of the interpolation."""
    from scipy.optimize import brentq

    found: list[tuple[float, int]] = []
    for i, event in enumerate(events):
        a, b = event(piece.start, piece.y(piece.start)), event(piece.end, piece.y(piece.end))
        if a == 0.0 or np.sign(a) == np.sign(b):
            continue
        at = brentq(lambda t, event=event: event(t, piece.y(t)), piece.start, piece.end, xtol=1e-13, rtol=1e-14)
        found.append((float(at), i))
    return min(found) if found else None
