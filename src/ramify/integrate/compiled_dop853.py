"""DOP853 in compiled code around a compiled right-hand side: no Python between its steps.

One function serves every robot (``ramify.emit.adaptive``). A step that the kernel refuses, as
where an angle leaves the range of its sine, is done by ``Dop853`` itself.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ramify.core.arrays import Array
from ramify.emit.adaptive import (
    COUNT,
    FLAGGED,
    INTEGERS,
    NUMBERS,
    ROWS,
    STUCK,
    UNSEEN,
    AdaptiveWriter,
    Tables,
)
from ramify.integrate.dop853 import NOWHERE, STABLE, STUCK_MESSAGE, Dop853, Ranges
from ramify.integrate.dop853_table import E3, E5, STAGES, A, B, C, D
from ramify.integrate.integrator import Adaptive, Integrator, RatesLike, Solver
from ramify.plant.field import Field
from ramify.plant.rates import Rates
from ramify.runtime.compile import Compiled, compiled
from ramify.runtime.target import host

MOST = 2000
"""Steps between two returns to Python, for Ctrl-C and the progress bar."""


class _Job(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in INTEGERS),
        *((name, ctypes.c_double) for name in NUMBERS),
    )


@cache
def _function() -> tuple[Compiled, Callable[[int], int]]:
    tables = Tables(
        A.tolist(), B.tolist(), C.tolist(), (E5.tolist(), E3.tolist()), D.tolist(), STAGES, STABLE
    )
    code = compiled(
        lambda: AdaptiveWriter(tables, host()).text("dop853"), "dop853", host(), "dop853"
    )
    return code, ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(code.address)


class CompiledDop853(Dop853):
    """``Dop853`` for compiled rates; ``advance`` makes many steps at once."""

    rates: Rates

    def __init__(
        self, rates: Rates, t0: float, y0: Array, t_end: float, *, rtol: float, atol: float,
        max_step: float, ranges: Ranges = NOWHERE,
    ) -> None:  # fmt: skip
        super().__init__(
            rates, t0, y0, t_end, rtol=rtol, atol=atol, max_step=max_step, ranges=ranges
        )
        assert rates.entry is not None
        n, width = len(self.y), host().width
        padded = -(-n // width) * width
        self._memory = np.zeros((COUNT, padded))
        self._rows = self._memory[:, :n]
        _, of_v, _, _ = rates.field.state_slices
        self._inputs = np.array([rates.now.ctypes.data, 0, rates.inputs.ctypes.data])
        self._outputs = np.zeros(1, dtype=np.int64)
        self._job = job = _Job()
        job.kernel, job.size, job.padded = rates.entry.compute.address, n, padded
        job.inputs, job.outputs = self._inputs.ctypes.data, self._outputs.ctypes.data
        job.memory = self._memory.ctypes.data
        job.first, job.last = of_v.start, of_v.stop
        job.watched = len(ranges.places)
        job.places, job.low, job.high = (x.ctypes.data for x in ranges)
        job.t_end, job.rtol, job.atol, job.max_step = self.t_end, rtol, atol, max_step

    def _run(self, most: int, runaway: float, stiff: int) -> int:
        """Up to ``most`` compiled steps; returns why they ended."""
        job, rows = self._job, self._rows
        rows[ROWS["y"]], rows[ROWS["f"]] = self.y, self.f
        job.t, job.h, job.steps, job.evaluations, job.most = self.t, self.h, 0, 0, most
        job.runaway, job.stiff = runaway, stiff
        job.boundary, job.within = self.boundary, self.within
        why = _function()[1](ctypes.addressof(job))
        self.nfev += job.evaluations
        if job.steps:
            self.t_old, self.t, self.h = job.t_old, job.t, job.h
            self.y, self.f, self.y_old, self.f_old = (
                rows[ROWS[name]].copy() for name in ("y", "f", "y_old", "f_old")
            )
            self.K = rows[ROWS["K"] : ROWS["K"] + 16].copy()
            self.boundary, self.within = job.boundary, job.within
        if self.t >= self.t_end:
            self.status = "finished"
        return why

    def step(self) -> str | None:
        self._job.next = self._job.count = 0
        why = self._run(1, np.inf, 1 << 62)
        if why == FLAGGED:
            return super().step()
        return self._stuck() if why == STUCK else None

    def _stuck(self) -> str:
        self.status = "failed"
        return STUCK_MESSAGE

    def advance(self, times: Array, runaway: float, stiff: int) -> tuple[Array, int, str | None]:
        """Many steps, until the end, until a velocity exceeds ``runaway``, after ``stiff`` steps at
        the boundary of stability, or MOST of them. Returns the states at those of the ``times``
        that were reached, the number of steps, and a message where no step is possible.
        """
        n, job = len(self.y), self._job
        rows = np.empty((len(times), job.padded))
        job.grid, job.rows = times.ctypes.data, rows.ctypes.data
        job.next, job.count = 0, len(times)
        why = self._run(MOST, runaway, stiff)
        steps, message = int(job.steps), None
        if why == FLAGGED:
            message = super().step()
            steps += self.status != "failed"
        elif why == STUCK:
            message = self._stuck()
        done = int(job.next)
        if why in (FLAGGED, UNSEEN):
            at, slack = self.dense_output(), 1e-9 * (self.t - self.t_old)
            while done < len(times) and times[done] <= self.t + slack:
                rows[done, :n] = at(min(float(times[done]), self.t))
                done += 1
        return rows[:done, :n], steps, message


def _start(rates: RatesLike, t0: float, y0: Array, t_end: float, **options: Any) -> Solver:
    options["ranges"] = ranges_of(rates.field) if isinstance(rates, Rates) else NOWHERE
    if isinstance(rates, Rates) and rates.compiled:
        return CompiledDop853(rates, t0, y0, t_end, **options)
    return Dop853(rates, t0, y0, t_end, **options)


def ranges_of(field: Field) -> Ranges:
    """The coordinates that have stops, and their limits."""
    limits = field.passive_forces.limits if field.stops else ()
    if not limits:
        return NOWHERE
    places, _, low, high = zip(*limits, strict=True)
    return Ranges(
        np.array(places, dtype=np.int64), *(np.array(x, dtype=np.float64) for x in (low, high))
    )


DOP853 = Integrator("dop853", "Dormand and Prince's method of order 8", 8, Adaptive(_start))
