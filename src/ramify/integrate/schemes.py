"""Explicit Runge-Kutta schemes: an integrator is a row of this table."""

from __future__ import annotations

from typing import Final

from ramify.emit.stepper import Scheme, explicit
from ramify.integrate.integrator import Integrator, tableau

RK4: Final = explicit("rk4", [[], [0.5], [0.0, 0.5], [0.0, 0.0, 1.0]], [1 / 6, 1 / 3, 1 / 3, 1 / 6])

SCHEMES: Final = (
    Integrator(
        "semi_implicit_euler",
        "velocities first, then coordinates with the new velocities",
        1,
        Scheme("semi_implicit_euler", ((),), (1.0,), (0.0,), kick=True),
    ),
    Integrator(
        "implicit_euler",
        "stiff ground, joints and servos act at the end of a step: for steps of milliseconds",
        1,
        Scheme("implicit_euler", ((),), (1.0,), (0.0,), lengths=(1.0,)),
    ),
    Integrator(
        "implicit_extrapolation",
        "a whole and two half steps of implicit_euler, extrapolated to second order",
        2,
        Scheme(
            "implicit_extrapolation",
            ((), (0.0,), (0.0, 0.5)),
            (-1.0, 1.0, 1.0),
            (0.0, 0.0, 0.5),
            lengths=(1.0, 0.5, 0.5),
        ),
    ),
    tableau("euler", [[]], [1.0], order=1, doc="Euler's explicit steps"),
    Integrator("rk4", "the classical Runge-Kutta scheme", 4, RK4),
    tableau(
        "rk5",
        [
            [],
            [1 / 5],
            [3 / 40, 9 / 40],
            [44 / 45, -56 / 15, 32 / 9],
            [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
            [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
        ],
        [35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
        order=5,
        doc="the fifth-order half of Dormand and Prince's pair, as MATLAB's ode5",
        aliases=("ode5",),
    ),
)
IMPLICIT: Final = frozenset(
    i.name for i in SCHEMES if isinstance(i.method, Scheme) and i.method.implicit
)
"""The names of those that are linearly implicit."""
