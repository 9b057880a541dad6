"""CVODE of SUNDIALS, through scikit-sundae (the extra ``stiff``): variable-order backward
differentiation, one step at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import SimulationError
from ramify.integrate.integrator import Adaptive, Integrator


class Cvode:
    """Steps from t0 to t_end: call ``step`` while ``status`` is "running"."""

    def __init__(
        self, rates: Callable[[float, Array], Array], t0: float, y0: Array, t_end: float, *,
        rtol: float, atol: float, max_step: float,
    ) -> None:  # fmt: skip
        try:
            from sksundae.cvode import CVODE
        except ImportError:
            raise SimulationError(
                "method 'cvode' needs scikit-sundae; install it with: pip install 'ramify[stiff]'"
            ) from None
        self.nfev, self.status = 0, "running"
        self.t, self.y, self.t_end = float(t0), np.array(y0, dtype=np.float64), float(t_end)
        self._error: Exception | None = None

        def fill(t: float, y: Array, out: Array) -> None:
            self.nfev += 1
            try:
                out[:] = rates(float(t), np.array(y))
            except Exception as error:  # SUNDIALS would lose it; it is raised again after the step
                self._error = self._error or error
                out[:] = np.nan

        largest = 0.0 if np.isinf(max_step) else max_step
        self._solver: Any = CVODE(fill, method="BDF", rtol=rtol, atol=atol, max_step=largest)
        self._solver.init_step(self.t, self.y)

    def step(self) -> str | None:
        """One step; gives a message where none is possible, the status being "failed" then."""
        self.t_old, self.y_old = self.t, self.y
        answer = self._solver.step(self.t_end, method="onestep", tstop=self.t_end)
        if self._error is not None:
            raise self._error
        if not answer.success:
            self.status = "failed"
            return str(answer.message)
        self.t, self.y = float(np.ravel(answer.t)[-1]), np.array(np.atleast_2d(answer.y)[-1])
        if self.t >= self.t_end:
            self.status = "finished"
        return None

    def dense_output(self) -> Callable[[float], Array]:
        """y(t) within the last step, from CVODE's own interpolation. Valid until the next step."""
        t0, y0, t1, y1 = self.t_old, self.y_old, self.t, self.y

        def at(t: float) -> Array:
            if t <= t0 or t >= t1:
                return y0 if t <= t0 else y1
            return np.array(np.atleast_2d(self._solver.step(t, method="normal").y)[-1])

        return at


CVODE = Integrator(
    "cvode",
    "SUNDIALS, backward differences (the extra 'stiff')",
    5,
    Adaptive(Cvode, one_step=False),
)
