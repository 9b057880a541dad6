"""Fixed-step schemes by name. An explicit Runge-Kutta scheme is its table; a new one is one more
row.
"""

from __future__ import annotations

from typing import Final

from ramify.codegen.stepper import Scheme, explicit

SCHEMES: Final = {
    scheme.name: scheme
    for scheme in (
        Scheme("semi_implicit_euler", ((),), (1.0,), (0.0,), kick=True),
        explicit("euler", [[]], [1.0]),
        explicit("rk4", [[], [0.5], [0.0, 0.5], [0.0, 0.0, 1.0]], [1 / 6, 1 / 3, 1 / 3, 1 / 6]),
        explicit(  # the fifth-order half of Dormand and Prince's pair, as MATLAB's ode5
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
        ),
    )
}
