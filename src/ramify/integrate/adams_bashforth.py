"""Adams and Bashforth's method of fourth order: one new evaluation per step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ramify.core.arrays import Array
from ramify.integrate.integrator import (
    Correction,
    Integrator,
    Marching,
    RatesLike,
    runge_kutta_step,
)
from ramify.integrate.schemes import RK4
from ramify.plant.field import Field

_WEIGHTS = (55.0 / 24.0, -59.0 / 24.0, 37.0 / 24.0, -9.0 / 24.0)


def _march(
    field: Field, rates: RatesLike, t: float, y: Array, dt: float, correct: Correction
) -> Callable[[], Array]:
    """The first three steps are Runge and Kutta's."""
    past: list[Array] = []
    taken = 0

    def step() -> Array:
        nonlocal y, taken
        now, taken = t + taken * dt, taken + 1
        past.insert(0, rates(now, y))
        if len(past) < 4:
            y = runge_kutta_step(rates, RK4, now, y, dt)
        else:
            del past[4:]
            y = y + dt * sum(
                (b * f for b, f in zip(_WEIGHTS, past, strict=True)), start=np.zeros_like(y)
            )
        y = correct(y)
        return y

    return step


AB4 = Integrator("ab4", "Adams-Bashforth, one evaluation a step", 4, Marching(_march, 0.3))
