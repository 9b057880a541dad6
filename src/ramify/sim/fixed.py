"""Fixed-step integration of one run: Adams-Bashforth, and a method that preserves energy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ramify.codegen.target import llvm_available
from ramify.errors import SimulationError
from ramify.model.frame import Array
from ramify.model.model import Model
from ramify.sim.schemes import SCHEMES

Rates = Callable[[float, Array], Array]

_AB4 = (55.0 / 24.0, -59.0 / 24.0, 37.0 / 24.0, -9.0 / 24.0)
_GAUSS = np.polynomial.legendre.leggauss(5)


_NEEDED = ("mass_matrix", "mass_matrix_inverse", "coriolis_matrix", "gravity_forces")


def _quick(model: Model, name: str, q: Array, v: Array) -> Callable[..., Array]:
    """A kernel's fastest entry for single states."""
    kernel = model.kernel(name, "unrolled") if llvm_available() and model.nv <= 40 else model.kernel(name)
    kernel(*((q, v) if name == "coriolis_matrix" else (q,)))
    return kernel.call


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


def adams_bashforth(rates: Rates, t0: float, y: Array, dt: float, steps: int) -> Iterator[Array]:
    """Fourth order, one new evaluation per step; the first three steps are Runge-Kutta's."""
    past: list[Array] = []
    for step in range(steps):
        t = t0 + step * dt
        past.insert(0, rates(t, y))
        if len(past) < 4:
            y = runge_kutta_step(rates, "rk4", t, y, dt)
        else:
            del past[4:]
            y = y + dt * sum((b * f for b, f in zip(_AB4, past, strict=True)), start=np.zeros_like(y))
        yield y


def energy_preserving(
    model: Model, force: Callable[[float, Array, Array], Array], t0: float, q: Array, v: Array, dt: float, steps: int
) -> Iterator[tuple[Array, Array, float]]:
    """The average vector field method on (q, p), p = I v: second order, total energy kept to rounding where no force acts.

    p' = tau - g + C' v, because dI/dt = C + C'. The field is averaged along the straight line from one state to the next (five
    Gauss points), the next state found by iteration. Gives (q, v, work of tau) after every step.
    """
    if model.nq != model.nv:
        raise SimulationError(
            "the energy-preserving method moves vectors, not quaternions; load the robot with base='free_euler' or use rk4"
        )
    nodes, weights = 0.5 * (_GAUSS[0] + 1.0), 0.5 * _GAUSS[1]
    inertia, inverse, coriolis, gravity = (_quick(model, name, q, v) for name in _NEEDED)

    def slope(t: float, q: Array, p: Array) -> tuple[Array, Array, float]:
        v = inverse(q) @ p
        tau = force(t, q, v)
        return v, tau - gravity(q) + coriolis(q, v).T @ v, float(tau @ v)

    p, work = inertia(q) @ v, 0.0
    dq, dp, power = slope(t0, q, p)
    for step in range(steps):
        t = t0 + step * dt
        q1, p1 = q + dt * dq, p + dt * dp
        for _ in range(60):
            parts = [slope(t + s * dt, q + s * (q1 - q), p + s * (p1 - p)) for s in nodes]
            dq, dp, power = (sum(w * part[i] for w, part in zip(weights, parts, strict=True)) for i in range(3))
            new_q, new_p = q + dt * dq, p + dt * dp
            change = max(np.abs(new_q - q1).max() / (1.0 + np.abs(q1).max()), np.abs(new_p - p1).max() / (1.0 + np.abs(p1).max()))
            q1, p1 = new_q, new_p
            if change < 1e-15:
                break
        else:
            if not change < 1e-12:
                raise SimulationError(f"the energy-preserving step at t = {t:g} s does not converge; take a step below {dt:g} s")
        q, p, work = q1, p1, work + dt * power
        yield q, inverse(q) @ p, work
