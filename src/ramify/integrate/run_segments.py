"""Segments of a run: between two boundaries, where forces from outside may change, an integrator
makes the steps of a segment, a chunk at a time. ``RunSteps`` makes one segment after the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import nan
from typing import Any

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import SimulationError
from ramify.emit.stepper import Scheme
from ramify.integrate.compiled_dop853 import CompiledDop853
from ramify.integrate.dop853 import Dop853
from ramify.integrate.integrator import Adaptive, Correction, Integrator, Marching
from ramify.integrate.options import RUNAWAY, Options
from ramify.integrate.stepping import stepper
from ramify.integrate.text_steps import text_step
from ramify.plant.kernel_parts import unit
from ramify.plant.rates import Rates

_STIFF_STEPS = 15
"""Steps limited by stability, not by accuracy, after which a motion counts as stiff."""
_CHUNK = 4096
"""Compiled steps between two checks in Python."""
_WINDOW, _HOPELESS = 10_000, 20_000_000
"""Steps after which the pace of a run is checked; remaining steps at which it is hopeless."""
_TINY_STEP, _SLOW, _SLOW_CHECKS = 1e-5, 500_000, 3
"""s, remaining steps, checks in a row: a run whose method was chosen automatically ends with an
error when its steps are shorter and more remain, several checks in a row.
"""


@dataclass
class Progress:
    """What an integrator has done so far. ``boundary`` counts steps limited by stability,
    ``within`` the steps since the last of them: see ``Dop853``.
    """

    steps: int = 0
    evaluations: int = 0
    boundary: int = 0
    within: int = 0
    last_check: tuple[int, float] = (0, 0.0)  # steps and time at the last check of the pace
    slow: int = 0  # checks in a row at which the pace was slow

    @property
    def stiff(self) -> bool:
        return self.boundary >= _STIFF_STEPS


@dataclass
class StepChunk:
    """Steps from ``start`` to ``end`` that have been made together. ``y(t)`` is the state within
    them; but where compiled adaptive steps have computed the outputs (``rows``), y is the state at
    ``end`` whatever t. ``rows``: the states at the next times of output. ``reached``: the time to
    which the run accepts them, their end or that of an event.
    """

    start: float
    end: float
    y: Callable[[float], Array]
    rows: Callable[[Array], Array] | None = None
    reached: float = nan

    def __post_init__(self) -> None:
        self.reached = self.end

    def at(self, times: Array) -> Array:
        """The states (T, size) at increasing times."""
        if self.rows is not None:
            return self.rows(times)
        return np.stack([self.y(min(float(t), self.end)) for t in times])


@dataclass(frozen=True)
class LoopClosing:
    """Functions that close the loops of a state. ``step``: for the state after a step; it also
    notes how much the velocities change. ``state``: for a state within a step. ``compare``: notes
    that change from the velocities before and after, where compiled steps close the loops
    themselves.
    """

    step: Correction
    state: Correction
    compare: Callable[[Array, Array], None]


@dataclass
class RunState:
    """A run at the time t (s) in the state y. Within a segment the forces from outside are
    constant; the next segment ends at ``until``. ``one_by_one``: a chunk is one step, because
    something is checked after each. ``next_row``: the row of the next output; row 0 is the start.
    """

    rates: Rates
    options: Options
    integrator: Integrator
    y: Array
    until: float
    one_by_one: bool = False
    closing: LoopClosing | None = None
    t: float = 0.0
    next_row: int = 1
    counters: Progress = field(default_factory=Progress)

    @property
    def correct(self) -> Correction | None:
        """Applied to the state after each step."""
        return None if self.closing is None else self.closing.step

    @property
    def multistep(self) -> bool:
        """Whether it is a multistep method, whose state cannot be corrected between steps."""
        method = self.integrator.method
        return isinstance(method, Adaptive) and not method.one_step


class AdaptiveSegment:
    """Steps that the method chooses."""

    def __init__(self, run: RunState) -> None:
        assert isinstance(run.integrator.method, Adaptive)
        o, counters, self.run, self.method = run.options, run.counters, run, run.integrator.method
        self.solver: Any = self.method.start(
            run.rates, run.t, run.y, run.until, rtol=o.rtol, atol=o.atol, max_step=o.max_step
        )
        self.outputs = o.grid[run.next_row :]
        self.failure = ""
        if isinstance(self.solver, Dop853):
            self.solver.boundary, self.solver.within = counters.boundary, counters.within
        self.evaluations, self.taken = counters.evaluations, 0

    @property
    def finished(self) -> bool:
        return self.solver.status != "running"

    def advance(self) -> StepChunk:
        solver, counters = self.solver, self.run.counters
        before = float(solver.t)
        if isinstance(solver, CompiledDop853) and not self.run.one_by_one:
            states, steps, message = solver.advance(
                self.outputs[self.taken :],
                RUNAWAY,
                _STIFF_STEPS if self.run.options.may_switch else 1 << 62,
            )
            self.taken += len(states)
            chunk = StepChunk(before, float(solver.t), _constant(solver.y), _first_of(states))
        else:
            steps, message = 1, solver.step()
            chunk = StepChunk(before, float(solver.t), solver.dense_output())
        if solver.status == "failed":
            self.failure = (
                f"{self.run.integrator.name} cannot go on at t = {solver.t:g} s: {message}"
            )
            if not float(solver.t) > before:
                raise SimulationError(self.failure)
            return chunk
        counters.steps += steps
        counters.evaluations = self.evaluations + int(solver.nfev)
        if isinstance(solver, Dop853):
            counters.boundary, counters.within = solver.boundary, solver.within
        return chunk

    def settle(self) -> None:
        """Correct the state; refuse to go on where no step is possible, or hardly any progress."""
        if self.failure:
            raise SimulationError(self.failure)
        solver, correct = self.solver, self.run.correct
        if correct is not None and self.method.one_step:
            solver.y = correct(solver.y)
            solver.f = self.run.rates(float(solver.t), solver.y)
        self._refuse_crawl(float(solver.t))

    def _refuse_crawl(self, t: float) -> None:
        """End a run that makes no progress."""
        steps, then = self.run.counters.last_check
        taken = self.run.counters.steps - steps
        if taken < _WINDOW:
            return
        self.run.counters.last_check = self.run.counters.steps, t
        pace = max(t - then, 1e-300) / taken
        left = (self.run.options.t_end - t) / pace
        slow = self.run.options.may_switch and pace < _TINY_STEP and left > _SLOW
        self.run.counters.slow = self.run.counters.slow + 1 if slow else 0
        if left > _HOPELESS or self.run.counters.slow >= _SLOW_CHECKS:
            name = self.run.integrator.name
            anyway = f"; method={name!r} goes on regardless" if left <= _HOPELESS else ""
            raise SimulationError(
                f"the run makes no progress: its last {taken} steps led from t = {then:.6g} s to "
                f"{t:.6g} s, and the rest would take {left:.2g} more; some stiffness or damping is "
                "out of proportion, or rtol and atol are too small; a stiff method (radau, lsoda) "
                f"or a fixed step may help{anyway}"
            )


class FixedSegment:
    """Fixed steps: many compiled ones at a time, or one by one with Python between them."""

    finished = False

    def __init__(self, run: RunState) -> None:
        step = run.options.step
        assert step is not None
        self.run, self.t, self.y, self.until = run, run.t, run.y, run.until
        if run.rates.field.hard is not None:
            step = run.options.dividing_step
            self.until = _aligned_end(run.t, run.until, run.options)
        self.count = max(1, int(np.ceil((self.until - run.t) / step - 1e-9)))
        self.dt, self.done = (self.until - run.t) / self.count, 0
        self.ready: deque[StepChunk] = deque()
        self._next: Callable[[], Array] | None = None  # a step in Python

    def settle(self) -> None:
        """The segment ends after its last step."""
        self.finished = self.done == self.count and not self.ready

    def advance(self) -> StepChunk:
        method, states = self.run.integrator.method, None
        if self.ready:
            return self.ready.popleft()
        many = min(_CHUNK, self.count - self.done)
        if isinstance(method, Scheme) and self.run.rates.compiled and self._next is None:
            states = self._compiled(method, self.y, self.t + self.done * self.dt, self.dt, many)
        if states is None:
            return self._in_python()
        times: Array = self.t + self.dt * np.arange(float(self.done), self.done + many + 1.0)
        if self.done + many == self.count:
            times[-1] = self.until
        speeds = np.abs(states[:, self.run.rates.field.state_slices[1]])
        bad = np.flatnonzero(~(speeds < RUNAWAY).all(1))
        if bad.size:  # the run ends with the first step beyond all bounds
            many = int(bad[0]) + 1
            states, times = states[:many], times[: many + 1]
        rows = np.concatenate([self.y[None], states])
        self._count(many)
        self.y, self.done = rows[-1], self.done + many
        if not self.run.one_by_one:
            return self._one_chunk(times, rows)
        for i in range(many):
            ends = float(times[i]), rows[i], float(times[i + 1]), rows[i + 1]
            self.ready.append(StepChunk(ends[0], ends[2], self._between(*ends)))
        return self.ready.popleft()

    def _compiled(self, scheme: Scheme, y: Array, t: float, dt: float, many: int) -> Array | None:
        """The states after each of ``many`` steps; None where the kernel refuses one of them."""
        run = self.run
        field = run.rates.field.implicitly if scheme.implicit else run.rates.field
        recorded = 0 if run.closing is None else scheme.stages
        history = np.empty((1, many, field.size * (1 + recorded)))
        steps = stepper(field, scheme, run.closing is not None, recorded)
        start = np.ascontiguousarray(y).reshape(1, -1)
        inputs = np.concatenate([self.run.rates.u, field.numbers])
        _, flags = steps.run(start, inputs, many, dt, t, history=history, every=1)
        if flags:
            return None
        rows, closed = history[0], history[0, :, : field.size]
        if run.closing is not None:
            before = np.concatenate([start, closed[:-1]])
            of_v = field.state_slices[1]
            run.closing.compare(steps.rates_before_closing(before, rows, dt), closed[:, of_v])
        return np.ascontiguousarray(closed)

    def _in_python(self) -> StepChunk:
        """A chunk of one step that is called from Python."""
        if self._next is None:
            self._next = self._steps_in_python()
        row = self._next()
        self.done += 1
        before, now = self.t + (self.done - 1) * self.dt, self.t + self.done * self.dt
        if not np.isfinite(row).all():
            raise SimulationError(
                f"the state grows beyond all bounds at t = {now:g} s; take a step below "
                f"{self.dt:g} s"
            )
        row, now = (
            unit(self.run.rates.field.model, row),
            self.until if self.done == self.count else now,
        )
        self._count(1)
        chunk = StepChunk(before, now, self._between(before, self.y, now, row))
        self.y = row
        return chunk

    def _steps_in_python(self) -> Callable[[], Array]:
        """A function that makes the next step each time it is called."""
        run, start = self.run, self.t + self.done * self.dt
        method, correct = run.integrator.method, run.correct
        assert not isinstance(method, Adaptive)
        if isinstance(method, Marching):
            begin = start, self.y, self.dt, correct or (lambda y: y)
            return method.march(run.rates.field, run.rates, *begin)
        y, taken, scheme = self.y, 0, method

        def step() -> Array:
            nonlocal y, taken
            y, taken = self._scheme_step(scheme, start + taken * self.dt, y), taken + 1
            return y

        return step

    def _scheme_step(self, scheme: Scheme, now: float, y: Array) -> Array:
        """The state after one step of an explicit or implicit scheme, with its loops closed."""
        rates, dt, compiled = self.run.rates, self.dt, None
        if scheme.implicit and rates.timed is not None:  # constant during a step
            rates.push(rates.timed(now + 0.5 * dt))
            if rates.entry is not None:
                compiled = self._compiled(scheme, y, now, dt, 1)
        if compiled is None:
            y = text_step(rates.field, scheme, rates, now, y, rates.u, dt)
        else:
            y = compiled[0]
        if self.run.correct is not None and np.isfinite(y).all():
            y = self.run.correct(y)
        return y

    def _count(self, steps: int) -> None:
        method = self.run.integrator.method
        assert not isinstance(method, Adaptive)
        self.run.counters.steps += steps
        self.run.counters.evaluations += steps * method.stages

    def _one_chunk(self, times: Array, rows: Array) -> StepChunk:
        """One chunk of all steps between the ``times``, whose states are ``rows``."""

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
            if self.run.rates.field.hard is not None:  # velocities jump: straight in between
                return (1.0 - x) * y + x * row
            f0, f1 = self.run.rates(t, y), self.run.rates(now, row)
            return (
                (1 + 2 * x) * (1 - x) ** 2 * y
                + x**2 * (3 - 2 * x) * row
                + h * x * (1 - x) * ((1 - x) * f0 - x * f1)
            )

        return at


def _aligned_end(t: float, until: float, options: Options) -> float:
    """The latest time up to ``until`` such that equal steps from t meet every time of output up to
    it.
    """
    grid, off = options.grid, 1e-9 * options.dt_out
    inside = grid[(grid > t + off) & (grid < until - off)]
    if not inside.size:
        return until
    first = float(inside[0])
    if abs(first - t - options.dt_out) > off:  # t is between two rows
        return first
    whole = abs(until - float(inside[-1]) - options.dt_out) <= off
    return until if whole else float(inside[-1])


def _constant(y: Array) -> Callable[[float], Array]:
    return lambda t: y


def _first_of(states: Array) -> Callable[[Array], Array]:
    return lambda times: states[: len(times)]
