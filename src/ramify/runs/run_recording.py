"""The rows of a run as it goes on, and its progress bar."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from ramify.core.arrays import Array
from ramify.core.bar import Bar
from ramify.integrate.driver import Observer
from ramify.integrate.run_segments import StepChunk
from ramify.integrate.run_steps import RunSteps
from ramify.plant.field import Field
from ramify.plant.kernel_parts import unit
from ramify.runs.recorder import record_run


class Recording(Observer):
    """The samples so far, so that these survive an error or an interrupt; ``reached``: the last
    time and state that count.
    """

    def __init__(self, steps: RunSteps) -> None:
        self.times: list[Array] = []
        self.rows: list[Array] = []
        self.inputs: list[Array] = []
        self.reached = 0.0, steps.y
        self.keep(steps, np.zeros(1), steps.y[None])

    def keep(self, steps: RunSteps, times: Array, rows: Array) -> None:
        """Add rows."""
        u = steps.rates.u
        self.times.append(times)
        self.rows.append(np.array(rows))
        self.inputs.append(np.broadcast_to(u.copy(), (len(times), len(u))))

    def drop(self) -> None:
        """Take back the last rows."""
        for parts in (self.times, self.rows, self.inputs):
            parts.pop()

    def before(self, steps: RunSteps) -> None:
        if steps.t == 0.0:
            self.inputs[0] = steps.rates.u.copy()[None]

    def after(self, steps: RunSteps, chunk: StepChunk) -> None:
        self.reached = steps.t, steps.y
        grid, first = steps.options.grid, steps.next_row
        reached = chunk.reached + 1e-9 * min(chunk.end - chunk.start, steps.options.dt_out)
        steps.next_row = max(first, int(np.searchsorted(grid, reached, side="right")))
        if steps.next_row > first:
            rows = grid[first : steps.next_row]
            self.keep(steps, rows, chunk.at(rows))
        if steps.ended and self.times[-1][-1] < steps.t:
            self.keep(steps, np.array([steps.t]), steps.y[None])


class ProgressBar(Observer):
    """Shows the time that a run has reached and the error of its energy balance."""

    def __init__(self, field: Field, recording: Recording, arguments: Mapping[str, Any]) -> None:
        self.field, self.recording, self.arguments = field, recording, arguments
        self.bar: Bar | None = None
        self.shown = 0.0  # s: when the bar was drawn

    def after(self, steps: RunSteps, chunk: StepChunk) -> None:
        if time.perf_counter() - self.shown <= 0.1:
            return
        if self.bar is None:
            self.bar = Bar(self.field.model.name, steps.options.t_end, transient=True)
        self.shown = time.perf_counter()
        error = self.energy_error()
        self.bar.update(steps.t, f"t = {steps.t:.3f} s, energy error {error:.1e} J")

    def close(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.close()

    def energy_error(self) -> float:
        """J, from the first recorded row to the last."""
        kept = self.recording
        t = np.array([kept.times[0][0], kept.times[-1][-1]])
        y, u = (np.stack([x[0][0], x[-1][-1]]) for x in (kept.rows, kept.inputs))
        nothing = np.zeros((2, self.field.model.nv))  # the energies do not depend on them
        run = record_run(
            self.field, t, unit(self.field.model, y), u, options=self.arguments, actual={},
            stats={}, forces=(nothing, nothing),
        )  # fmt: skip
        return abs(float(run.energy_balance.error[1]))
