"""A run in chunks of steps: some steps of an integrator and the states within them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import SimulationError
from ramify.emit.stepper import Scheme
from ramify.integrate.compiled_dop853 import CompiledDop853
from ramify.integrate.dop853 import Dop853
from ramify.integrate.integrator import Adaptive, Correction, Integrator
from ramify.integrate.options import RUNAWAY, Options
from ramify.integrate.stepping import stepper
from ramify.integrate.text_steps import text_step
from ramify.plant.rates import Rates, unit

_SURE = 15
"""Steps in a row at the boundary of stability after which a motion is called stiff."""
_CHUNK = 4096
"""Compiled steps between two checks in Python."""
_WINDOW, _HOPELESS = 10_000, 20_000_000
"""Steps after which the pace of a run is checked; remaining steps at which it is hopeless."""
_TINY, _SLOW, _PATIENCE = 1e-5, 500_000, 3
"""s, remaining steps, checks in a row: a run whose method was chosen automatically ends with an
error when its steps are shorter and more remain, several checks in a row.
"""


@dataclass
class Progress:
    """The counters of an integrator; see ``Dop853`` for ``boundary`` and ``within``."""

    steps: int = 0
    evaluations: int = 0
    boundary: int = 0
    within: int = 0
    last_check: tuple[int, float] = (0, 0.0)  # steps and time at the last check of the pace
    slow: int = 0  # checks in a row at which the pace was slow

    @property
    def stiff(self) -> bool:
        return self.boundary >= _SURE


@dataclass(frozen=True)
class StepChunk:
    """Some steps: ``y(t)`` between two times; ``rows``: the states at times of output, where these
    have been computed already.
    """

    start: float
    end: float
    y: Callable[[float], Array]
    rows: Callable[[Array], Array] | None = None

    def at(self, times: Array) -> Array:
        """The states (T, size) at increasing times."""
        if self.rows is not None:
            return self.rows(times)
        return np.stack([self.y(min(float(t), self.end)) for t in times])


@dataclass(frozen=True)
class RunSegment:
    """The task of an integrator: from (t, y) ``until`` a time. ``outputs`` are the times of output
    to come. ``one_step_per_chunk``: because something is checked after each step. ``correct``:
    applied to the state after each step.
    """

    integrator: Integrator
    rates: Rates
    options: Options
    t: float
    y: Array
    until: float
    outputs: Array
    one_step_per_chunk: bool
    correct: Correction | None
    counters: Progress

    def chunks(self) -> Iterator[StepChunk]:
        """The chunks of steps, in their order."""
        if isinstance(self.integrator.method, Adaptive):
            return self._adaptive(self.integrator.method)
        return self._fixed()

    # ---- steps that the method chooses ----

    def _adaptive(self, method: Adaptive) -> Iterator[StepChunk]:
        o, counters = self.options, self.counters
        solver: Any = method.start(
            self.rates, self.t, self.y, self.until, rtol=o.rtol, atol=o.atol, max_step=o.max_step
        )
        counts = isinstance(solver, Dop853)
        if counts:
            solver.boundary, solver.within = counters.boundary, counters.within
        evaluations, taken = counters.evaluations, 0
        while solver.status == "running":
            before = float(solver.t)
            if isinstance(solver, CompiledDop853) and not self.one_step_per_chunk:
                states, steps, message = solver.advance(
                    self.outputs[taken:], RUNAWAY, _SURE if o.may_switch else 1 << 62
                )
                taken += len(states)
                chunk = StepChunk(before, float(solver.t), _always(solver.y), _first_of(states))
            else:
                steps, message = 1, solver.step()
                chunk = StepChunk(before, float(solver.t), solver.dense_output())
            if solver.status == "failed":
                if float(solver.t) > before:
                    yield chunk
                raise SimulationError(
                    f"{self.integrator.name} cannot go on at t = {solver.t:g} s: {message}"
                )
            counters.steps += steps
            counters.evaluations = evaluations + int(solver.nfev)
            if counts:
                counters.boundary, counters.within = solver.boundary, solver.within
            yield chunk
            if self.correct is not None and method.one_step:
                solver.y = self.correct(solver.y)
                solver.f = self.rates(float(solver.t), solver.y)
            self._refuse_crawl(float(solver.t))

    def _refuse_crawl(self, t: float) -> None:
        """End a run that makes no progress."""
        steps, then = self.counters.last_check
        taken = self.counters.steps - steps
        if taken < _WINDOW:
            return
        self.counters.last_check = self.counters.steps, t
        pace = max(t - then, 1e-300) / taken
        left = (self.options.t_end - t) / pace
        slow = self.options.may_switch and pace < _TINY and left > _SLOW
        self.counters.slow = self.counters.slow + 1 if slow else 0
        if left > _HOPELESS or self.counters.slow >= _PATIENCE:
            name = self.integrator.name
            anyway = f"; method={name!r} goes on regardless" if left <= _HOPELESS else ""
            raise SimulationError(
                f"the run makes no progress: its last {taken} steps led from t = {then:.6g} s to "
                f"{t:.6g} s, and the rest would take {left:.2g} more; some stiffness or damping is "
                "out of proportion, or rtol and atol are too small; a stiff method (radau, lsoda) "
                f"or a fixed step may help{anyway}"
            )

    # ---- fixed steps ----

    def _fixed(self) -> Iterator[StepChunk]:
        step = self.options.step
        assert step is not None
        count = max(1, int(np.ceil((self.until - self.t) / step - 1e-9)))
        dt = (self.until - self.t) / count
        method = self.integrator.method
        y, first = self.y, 0
        while first < count:
            many = min(_CHUNK, count - first)
            states = None
            if isinstance(method, Scheme) and self.rates.compiled:
                states = self._compiled(method, y, self.t + first * dt, dt, many)
            if states is None:
                yield from self._one_by_one(y, first, count, dt)
                return
            times: Array = self.t + dt * np.arange(float(first), first + many + 1.0)
            if first + many == count:
                times[-1] = self.until
            bad = np.flatnonzero(
                ~(np.abs(states[:, self.rates.field.state_slices[1]]) < RUNAWAY).all(1)
            )
            if bad.size:  # the run ends with the first step beyond all bounds
                many = int(bad[0]) + 1
                states, times = states[:many], times[: many + 1]
            rows = np.concatenate([y[None], states])
            self._count(many)
            if self.one_step_per_chunk:
                for i in range(many):
                    ends = float(times[i]), rows[i], float(times[i + 1]), rows[i + 1]
                    yield StepChunk(ends[0], ends[2], self._between(*ends))
            else:
                yield self._many(times, rows)
            y, first = rows[-1], first + many

    def _compiled(self, scheme: Scheme, y: Array, t: float, dt: float, many: int) -> Array | None:
        """The states after each of ``many`` steps; None where the kernel refuses one of them."""
        field = self.rates.field.implicitly if scheme.implicit else self.rates.field
        history = np.empty((1, many, field.size))
        steps = stepper(field, scheme, self.correct is not None)
        start = np.ascontiguousarray(y).reshape(1, -1)
        inputs = np.concatenate([self.rates.u, field.numbers])
        _, flags = steps.run(start, inputs, many, dt, t, history=history, every=1)
        return None if flags else history[0]

    def _one_by_one(self, y: Array, first: int, count: int, dt: float) -> Iterator[StepChunk]:
        """Steps with Python between them."""
        method, model = self.integrator.method, self.rates.field.model
        start = self.t + first * dt
        if isinstance(method, Scheme):
            rows = self._explicit(method, start, y, dt, count - first)
        else:
            assert not isinstance(method, Adaptive)
            correct = self.correct or (lambda y: y)
            rows = method.march(self.rates.field, self.rates, start, y, dt, count - first, correct)
        for i, row in enumerate(rows, start=first + 1):
            if not np.isfinite(row).all():
                raise SimulationError(
                    f"the state grows beyond all bounds at t = {self.t + i * dt:g} s; take a step "
                    f"below {dt:g} s"
                )
            row = unit(model, row)
            before, now = self.t + (i - 1) * dt, self.until if i == count else self.t + i * dt
            self._count(1)
            yield StepChunk(before, now, self._between(before, y, now, row))
            y = row

    def _explicit(
        self, scheme: Scheme, t: float, y: Array, dt: float, count: int
    ) -> Iterator[Array]:
        field, u, timed = self.rates.field, self.rates.u, self.rates.timed
        for i in range(count):
            now, compiled = t + i * dt, None
            if scheme.implicit and timed is not None:  # constant during a step
                self.rates.push(timed(now + 0.5 * dt))
                if self.rates.entry is not None:
                    compiled = self._compiled(scheme, y, now, dt, 1)
            if compiled is None:
                y = text_step(field, scheme, self.rates, now, y, u, dt)
            else:
                y = compiled[0]
            if self.correct is not None and np.isfinite(y).all():
                y = self.correct(y)
            yield y

    def _count(self, steps: int) -> None:
        method = self.integrator.method
        assert not isinstance(method, Adaptive)
        self.counters.steps += steps
        self.counters.evaluations += steps * method.stages

    def _many(self, times: Array, rows: Array) -> StepChunk:
        """Many steps as one chunk."""

        def y(t: float) -> Array:
            i = min(int(np.searchsorted(times, t, side="right")) - 1, len(times) - 2)
            i = max(i, 0)
            return self._between(float(times[i]), rows[i], float(times[i + 1]), rows[i + 1])(t)

        def at_outputs(wanted: Array) -> Array:
            nearest = np.minimum(np.searchsorted(times, wanted), len(times) - 1)
            nearest -= (nearest > 0) & (wanted - times[nearest - 1] < times[nearest] - wanted)
            out = rows[nearest]
            apart = np.abs(wanted - times[nearest]) > 1e-9 * (times[1] - times[0])
            for k in np.flatnonzero(apart).tolist():
                out[k] = y(float(wanted[k]))
            return out

        return StepChunk(float(times[0]), float(times[-1]), y, at_outputs)

    def _between(self, t: float, y: Array, now: float, row: Array) -> Callable[[float], Array]:
        """The state within a fixed step: its ends as they are, else the cubic through both ends and
        their slopes (fourth order).
        """
        h = now - t

        def at(s: float) -> Array:
            x = (s - t) / h
            if x <= 1e-9 or x >= 1.0 - 1e-9:
                return y if x < 0.5 else row
            if self.rates.field.hard is not None:  # velocities jump: straight in between
                return (1.0 - x) * y + x * row
            f0, f1 = self.rates(t, y), self.rates(now, row)
            return (
                (1 + 2 * x) * (1 - x) ** 2 * y
                + x**2 * (3 - 2 * x) * row
                + h * x * (1 - x) * ((1 - x) * f0 - x * f1)
            )

        return at


def _always(y: Array) -> Callable[[float], Array]:
    return lambda t: y


def _first_of(states: Array) -> Callable[[Array], Array]:
    return lambda times: states[: len(times)]


def first_event(
    chunk: StepChunk, events: Sequence[Callable[[float, Array], float]]
) -> tuple[float, int] | None:
    """(time, index) of the first event that changes its sign within a step: by sampling eighths
    of it, then by bisection. An event that is zero where the step begins has not changed its sign.
    """
    from scipy.optimize import brentq

    times = np.linspace(chunk.start, chunk.end, 9)
    states = [chunk.y(float(t)) for t in times]
    crossings: list[tuple[float, int]] = []
    for i, event in enumerate(events):
        values = [event(float(t), y) for t, y in zip(times, states, strict=True)]
        for k, (a, b) in enumerate(pairwise(values)):
            if a != 0.0 and np.sign(a) != np.sign(b):
                ends = float(times[k]), float(times[k + 1])
                at = brentq(
                    lambda t, event=event: event(t, chunk.y(t)), *ends, xtol=1e-13, rtol=1e-14
                )
                crossings.append((float(at), i))
                break
    return min(crossings) if crossings else None
