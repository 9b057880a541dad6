"""Fixed steps that survive stiff joints: damping, springs, friction and stops act over a step like
extra rotor inertia.

A Rosenbrock-W method of second order: with A = I + diag(g h d + (g h)^2 k), d and k the slopes of
the joint's own forces now and g = 1 - 1/sqrt 2, two stages of accelerations are found from A
instead of I, so that a step is stable however stiff d and k are. Slopes that are only near enough
cost no order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import SimulationError
from ramify.drives.machine_slopes import slopes
from ramify.kernels.make import kernel
from ramify.model.configuration import integrate
from ramify.sim.field import Field
from ramify.sim.integrator import Integrator, Marching, RatesLike, Settle

_G: Final = 1.0 - 1.0 / math.sqrt(2.0)


def implicit_joints(
    field: Field, rates: RatesLike, t: float, y: Array, dt: float, count: int, settle: Settle
) -> Iterator[Array]:
    """The states after each of ``count`` steps of ``dt`` seconds."""
    model = field.model
    if model.loops or field.prescribed is not None:
        raise SimulationError(
            "implicit_joints steps trees under forces; for loops and prescribed motions use dop853"
        )
    of_q, of_v, _, _ = field.parts
    mass, h, g = kernel(model, "mass_matrix"), dt, _G * dt
    viscous = np.array(field.damping)
    for i in range(count):
        now = t + i * dt
        q, v = y[of_q], y[of_v]
        first = rates(now, y)
        d, k = slopes(field.machine, q, v)
        M = mass(q)
        A = M + np.diag(g * (d + viscous) + g * g * k)
        k1 = np.linalg.solve(A, M @ first[of_v] - g * k * v)
        p1 = v + g * k1
        ahead = y + h * first
        ahead[of_q], ahead[of_v] = integrate(model, q, p1, h), v + h * k1
        second = rates(now + h, ahead)
        rq, rv = ahead[of_v] - 2.0 * p1, second[of_v] - 2.0 * k1
        k2 = np.linalg.solve(A, M @ rv - g * k * rq)
        p2 = rq + g * k2
        y = y + 0.5 * h * (first + second)
        y[of_q] = integrate(model, q, 1.5 * p1 + 0.5 * p2, h)
        y[of_v] = v + h * (1.5 * k1 + 0.5 * k2)
        y = settle(y)
        yield y


IMPLICIT_JOINTS: Final = Integrator(
    "implicit_joints",
    "second order, stable however stiff the joints' damping, springs, friction and stops are",
    2,
    Marching(implicit_joints, None, 2),
)
