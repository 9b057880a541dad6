"""Fixed-step integration of one run: Adams-Bashforth, and a method that preserves energy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ramify.codegen.backend import Unrolled
from ramify.codegen.keys import digest
from ramify.codegen.native import builtin_entry
from ramify.codegen.target import llvm_available
from ramify.core.arrays import Array
from ramify.core.errors import SimulationError
from ramify.core.scalar import Scalar
from ramify.kernels.algorithms import ALGORITHMS
from ramify.kernels.keys import robot_key
from ramify.kernels.make import kernel
from ramify.kernels.text import plain_text
from ramify.model.robot import Robot
from ramify.sim.schemes import SCHEMES
from ramify.trace.program import Port, trace

Rates = Callable[[float, Array], Array]

_AB4 = (55.0 / 24.0, -59.0 / 24.0, 37.0 / 24.0, -9.0 / 24.0)
_GAUSS = np.polynomial.legendre.leggauss(7)
_MOST_LINKS = 40


def runge_kutta_step(rates: Rates, name: str, t: float, y: Array, dt: float) -> Array:
    """One step of an explicit scheme."""
    scheme = SCHEMES[name]
    stages: list[Array] = []
    for row, c in zip(scheme.a, scheme.c, strict=True):
        at = y.copy()
        for k, a in zip(stages, row, strict=False):
            at += dt * a * k
        stages.append(rates(t + c * dt, at))
    out = y.copy()
    for k, b in zip(stages, scheme.b, strict=True):
        out += dt * b * k
    return out


def adams_bashforth(
    rates: Rates,
    t0: float,
    y: Array,
    dt: float,
    steps: int,
    settle: Callable[[Array], Array] = lambda y: y,
) -> Iterator[Array]:
    """Fourth order, one new evaluation per step; the first three steps are Runge-Kutta's.
    ``settle`` corrects a new state.
    """
    past: list[Array] = []
    for step in range(steps):
        t = t0 + step * dt
        past.insert(0, rates(t, y))
        if len(past) < 4:
            y = runge_kutta_step(rates, "rk4", t, y, dt)
        else:
            del past[4:]
            y = y + dt * sum(
                (b * f for b, f in zip(_AB4, past, strict=True)), start=np.zeros_like(y)
            )
        y = settle(y)
        yield y


def between(rates: Rates, t: float, y: Array, now: float, row: Array) -> Callable[[float], Array]:
    """The state within a fixed step: its ends as they are, else the cubic through both ends and
    their slopes (fourth order).
    """
    h = now - t

    def at(s: float) -> Array:
        x = (s - t) / h
        if x <= 1e-9 or x >= 1.0 - 1e-9:
            return y if x < 0.5 else row
        f0, f1 = rates(t, y), rates(now, row)
        return (
            (1 + 2 * x) * (1 - x) ** 2 * y
            + x**2 * (3 - 2 * x) * row
            + h * x * (1 - x) * ((1 - x) * f0 - x * f1)
        )

    return at


def energy_preserving(
    model: Robot, t0: float, q: Array, v: Array, dt: float, steps: int
) -> Iterator[tuple[Array, Array]]:
    """The average vector field method on (q, p), p = I v: second order, total energy kept to
    rounding. No joint force acts.

    p' = -g + C' v, because dI/dt = C + C'. The field is averaged along the straight line from one
    state to the next (seven Gauss points), the next state found by iteration. Gives (q, v) after
    every step.
    """
    if model.nq != model.nv:
        raise SimulationError(
            "the energy-preserving method moves vectors, not quaternions; load the robot with "
            "base='free_euler' or use rk4"
        )
    nodes, weights = 0.5 * (_GAUSS[0][:, None] + 1.0), 0.5 * _GAUSS[1]
    slope, n = hamiltonian(model), model.nv

    def average(q: Array, p: Array, q1: Array, p1: Array) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):  # an iteration that runs away is told below
            along = zip(q + nodes * (q1 - q), p + nodes * (p1 - p), strict=True)
            mean = weights @ np.array([slope(*state) for state in along])
        return mean[:n], mean[n:]

    p = kernel(model, "mass_matrix")(q) @ v
    dq, dp = average(q, p, q, p)
    for step in range(steps):
        q1, p1 = q + dt * dq, p + dt * dp
        for _ in range(60):
            dq, dp = average(q, p, q1, p1)
            new_q, new_p = q + dt * dq, p + dt * dp
            change = max(
                np.abs(new_q - q1).max() / (1.0 + np.abs(q1).max()),
                np.abs(new_p - p1).max() / (1.0 + np.abs(p1).max()),
            )
            q1, p1 = new_q, new_p
            if change < 1e-15 or not np.isfinite(change):
                break
        if not change < 1e-12:
            raise SimulationError(
                f"the energy-preserving step at t = {t0 + step * dt:g} s does not converge; take a "
                f"step below {dt:g} s"
            )
        q, p = q1, p1
        yield q, slope(q, p)[:n]


def hamiltonian(model: Robot) -> Callable[[Array, Array], Array]:
    """(q, p) -> [dq/dt, dp/dt] of the free robot: I^-1 p and C' v - g, compiled where the robot is
    not too large.
    """
    n = model.nv
    texts = [
        plain_text(ALGORITHMS[name], model, ())
        for name in ("mass_matrix_inverse", "coriolis_matrix", "gravity_forces")
    ]

    def text(q: Sequence[Scalar], p: Sequence[Scalar]) -> list[Scalar]:
        (inverse,) = texts[0](list(q))
        v = [sum((inverse[i * n + j] * p[j] for j in range(n)), start=0.0) for i in range(n)]
        (coriolis,), (gravity,) = texts[1](list(q), v), texts[2](list(q))
        return [
            *v,
            *(
                sum((coriolis[j * n + i] * v[j] for j in range(n)), start=0.0) - gravity[i]
                for i in range(n)
            ),
        ]

    def written_out(q: Array, p: Array) -> Array:
        return np.array(text(q.tolist(), p.tolist()), dtype=np.float64)

    if not llvm_available() or n > _MOST_LINKS:
        return written_out
    inputs, output = (Port("q", (n,)), Port("p", (n,))), Port("rates", (2 * n,))
    program = trace("hamiltonian", lambda q, p: [text(q, p)], inputs, (output,))
    made = Unrolled(lambda: program, lambda: digest(robot_key(model), "hamiltonian"), "hamiltonian")
    return builtin_entry(made.compute(1), None, inputs, output, written_out, ())
