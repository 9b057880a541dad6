"""SciPy's solvers as integrators; SciPy is imported where one of them is chosen."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ramify.core.arrays import Array
from ramify.integrate.integrator import Adaptive, Integrator, RatesLike, Solver

_DIFFERENCE = float(np.sqrt(np.finfo(np.float64).eps))


def difference_jacobian(rates: RatesLike, t: float, y: Array) -> Array:
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


def _scipy(
    kind: str, doc: str, order: int, aliases: tuple[str, ...] = (), *,
    one_step: bool = True, implicit: bool = False,
) -> Integrator:  # fmt: skip
    def start(rates: Any, t0: float, y0: Array, t_end: float, **options: float) -> Solver:
        from scipy import integrate

        jac = {"jac": lambda t, y: difference_jacobian(rates, t, y)} if implicit else {}
        return getattr(integrate, kind)(rates, t0, y0, t_end, **options, **jac)

    return Integrator(kind.lower(), doc, order, Adaptive(start, one_step), aliases)


SOLVERS: Final = (
    _scipy("RK45", "Dormand and Prince's pair", 5, ("ode45",)),
    _scipy("RK23", "Bogacki and Shampine's pair", 3),
    _scipy("Radau", "implicit, for stiff motions", 5, implicit=True),
    _scipy("BDF", "backward differences, stiff", 5, ("ode15s",), one_step=False, implicit=True),
    _scipy("LSODA", "switches between Adams and backward differences", 12, one_step=False),
)
