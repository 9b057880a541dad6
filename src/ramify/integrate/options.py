"""The options of an integration, checked; and whether it pays to compile a large robot for it.

The right-hand side of a small robot is always compiled. That of a large one goes through Python and
the robot's rolled kernels, which begin at once and take a millisecond per evaluation, implicit
steps even a tenth of a second; straight-line code takes a minute to compile, and runs in
microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ramify.core.arrays import Array, flag
from ramify.core.cached import cached_property
from ramify.core.errors import SimulationError
from ramify.emit.stepper import Scheme
from ramify.integrate.integrator import Adaptive, Integrator
from ramify.plant.field import Field
from ramify.runtime.target import llvm_available

Event = Callable[[float, Array, Array], float]
"""(t, q, v) -> a number whose change of sign ends the run."""

RUNAWAY = 1e5
"""rad/s or m/s: faster than any joint."""
SMALLEST_RTOL = 100.0 * float(np.finfo(np.float64).eps)
_MOST_ROWS, _MOST_STEPS = 5e7, 1e9
_MOST_LINKS: Final = 256
"""Links up to which compiling is considered."""
_PER_SECOND: Final = 4000.0
"""Evaluations of an adaptive method in a second of motion, as measured on falling arms."""
_EXPLICIT: Final = 1e-3
"""s: an evaluation through kernels and Python."""
_IMPLICIT: Final = 1.4e-3
"""s for each link: an evaluation of an implicit step in Python."""
_COMPILING: Final = 2e-3
"""s for each pair of links; implicit steps take three times that."""


@dataclass(frozen=True)
class Options:
    """How a run is integrated: options that belong together. ``run_options`` checks each
    of them separately. Times in s. ``may_switch``: a stiff motion goes on with another method.
    """

    integrator: Integrator
    t_end: float
    dt_out: float
    rtol: float
    atol: float
    step: float | None
    max_step: float
    events: Mapping[str, Event]
    progress: bool
    may_switch: bool

    def __post_init__(self) -> None:
        name, step = self.integrator.name, self.step
        flag("progress", self.progress, SimulationError)
        if self.rtol < SMALLEST_RTOL:
            raise SimulationError(
                f"rtol {self.rtol!r} is below what 64-bit numbers can do; give {SMALLEST_RTOL:g} "
                "or more"
            )
        if self.integrator.fixed and step is None:
            raise SimulationError(f"method {name!r} needs a fixed step: give step= in seconds")
        if not self.integrator.fixed and step is not None:
            raise SimulationError(
                f"method {name!r} chooses its own steps: leave out step=, or give max_step= to "
                "limit them"
            )
        if self.t_end / self.dt_out > _MOST_ROWS:
            raise SimulationError(
                f"{self.t_end / self.dt_out:.3g} rows of output are too many to hold; give a "
                "larger dt_out"
            )
        if step is not None and self.t_end / step > _MOST_STEPS:
            raise SimulationError(f"{self.t_end / step:.3g} steps are too many; give a larger step")
        if not isinstance(self.events, Mapping):
            raise SimulationError(
                "events must map names to functions (t, q, v) -> number; it is a "
                f"{type(self.events).__name__}"
            )

    @cached_property
    def dividing_step(self) -> float:
        """The longest step, not above that of the user, of which whole numbers fill the time
        between two rows: rows of hard contact are ends of steps, because states in between, where
        velocities jump, do not keep the balance of energy.
        """
        assert self.step is not None
        span = min(self.dt_out, self.t_end)
        return span / max(1, int(np.ceil(span / self.step - 1e-9)))

    @cached_property
    def grid(self) -> Array:
        """The times of output, from 0 to t_end."""
        count = int(np.floor(self.t_end / self.dt_out + 1e-9))
        grid: Array = np.arange(count + 1.0) * self.dt_out
        if self.t_end - grid[-1] < 1e-9 * min(self.dt_out, self.t_end):
            grid[-1] = self.t_end  # not an ulp beyond it
            return grid
        return np.append(grid, self.t_end)


def worth_compiling(field: Field, options: Options) -> bool:
    """Whether compiling is expected to take less time than the run without it."""
    links = len(field.model.skeleton.links)
    if field.model.loops or not field.traceable or links > _MOST_LINKS or not llvm_available():
        return False
    method = options.integrator.method
    implicit = isinstance(method, Scheme) and method.implicit
    if isinstance(method, Adaptive) or options.step is None:
        evaluations = _PER_SECOND * options.t_end
    else:
        evaluations = options.t_end / options.step * method.stages
    slow = evaluations * (_IMPLICIT * links if implicit else _EXPLICIT)
    return slow > _COMPILING * links * links * (3 if implicit else 1)
