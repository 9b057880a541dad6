"""Writes compiled loops of fixed integration steps, in which each vector lane advances one state.

``integrate.stepping`` compiles and calls the function that is written here:
``int64 NAME(int64 states, double **inputs, double **outputs, Run *run, double *scratch)``. Inputs:
y0 (states, size) and the table u; outputs: the last y (states, size) and the history (states,
samples, size). A Run is ``{int64 steps; int64 every; int64 samples; int64 table_state; int64
table_step; double t0; double dt; double slack}``: after every ``every`` steps y is written to the
history (0: never); the table is read at ``state * table_state + step * table_step`` (strides in
numbers; zeros repeat a row). Stages are evaluated at least
``slack`` seconds inside the step, so that a motion that ends with the step is not evaluated after
its end. The function returns the flags of ``emit.guards``. Its code contains the right-hand side
once: the stages are a loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ramify.core.cached import cached_property
from ramify.emit.cpu_target import CpuTarget
from ramify.emit.guards import MemoryGuard, square
from ramify.emit.rows import load_rows, store_rows
from ramify.emit.values import LlvmValue, double_literal, where
from ramify.emit.vector import emit
from ramify.emit.writer import Writer
from ramify.trace.program import Program


@dataclass(frozen=True)
class Scheme:
    """A Runge-Kutta scheme: rows of a, weights b, nodes c.

    ``kick``: semi-implicit Euler, which advances the velocities first and then the coordinates with
    the new velocities. ``lengths``: only for implicit schemes, whose stages are linearly implicit
    Euler steps (``plant.implicit_rates``); the length of each as a fraction of the whole step.
    """

    name: str
    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    c: tuple[float, ...]
    kick: bool = False
    lengths: tuple[float, ...] = ()

    @property
    def implicit(self) -> bool:
        return bool(self.lengths)

    @property
    def stages(self) -> int:
        return len(self.b)

    @property
    def may_fall(self) -> bool:
        """Whether an entry of y whose rate is never negative can decrease in a step: it can where a
        weight is negative, as in an extrapolation.
        """
        return min(self.b) < 0.0

    @cached_property
    def stability(self) -> float:
        """The largest step times rate of decay at which the scheme damps (along the negative real
        axis): where |R(-x)| = 1, R(z) = 1 + z b'(1 - z A)^-1 1.
        """
        if self.implicit:
            return math.inf
        if self.kick:
            return 2.0

        def grows(x: float) -> bool:
            k: list[float] = []
            for row in self.a:
                k.append(-x * (1.0 + sum(a * f for a, f in zip(row, k, strict=False))))
            return abs(1.0 + sum(b * f for b, f in zip(self.b, k, strict=True))) > 1.0

        low = 0.0
        while low < 100.0 and not grows(low + 0.01):
            low += 0.01
        high = low + 0.01
        for _ in range(40):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if grows(middle) else (middle, high)
        return low


@dataclass(frozen=True)
class StateLayout:
    """The layout of y: its size, the first entry of each quaternion, the entries that are
    coordinates (semi-implicit Euler advances them last), and those that never decrease
    (``rising``), such as dissipated energy.
    """

    size: int
    quaternions: tuple[int, ...]
    coordinates: tuple[int, ...]
    rising: tuple[int, ...] = ()


_NEVER = 2**63 - 1
_RUN = ("steps", "every", "samples", "table_state", "table_step")


def step_scratch_doubles(layout: StateLayout, scheme: Scheme, width: int) -> int:
    """Size of the scratch memory of one thread: y, the stage's y, and a rate per stage."""
    return (2 + scheme.stages) * layout.size * width


class StepWriter:
    """Writes the LLVM code of the steps of a scheme.

    ``program``: (t, y, u) -> y'; for an implicit scheme its first input is [t, h].
    ``coordinate_program`` (semi-implicit Euler only): (t, y with the new velocities) -> rates of
    the coordinates. ``closing``: (t, y) -> y with its loops closed, after each step. ``recorded``:
    the number of stages whose rates are written to the history, after y.
    """

    def __init__(
        self,
        program: Program,
        coordinate_program: Program | None,
        layout: StateLayout,
        scheme: Scheme,
        target: CpuTarget,
        closing: Program | None = None,
        recorded: int = 0,
    ) -> None:
        self.program, self.coordinate_program, self.closing = program, coordinate_program, closing
        self.layout, self.scheme, self.recorded = layout, scheme, recorded
        self.size, self.w = layout.size, Writer(target)
        self.starts = {"y": 0, "stage": self.size, "rate": 2 * self.size}

    def text(self, name: str) -> str:
        """The LLVM code of the function ``name``."""
        w = self.w
        self.begin(_RUN, ("y0", "table"), ("final", "history"))
        w.begin_blocks()
        self.guard.start()
        self.store_all("y", load_rows(w, "%y0", self.size))
        self.clear("rate", self.scheme.stages * self.size)  # stages read later rates too, times 0
        w.repeat(self._step, "0", "%steps")
        values = self.load_all("y")
        for value in values:
            self.guard.finite(value)
        store_rows(w, "%final", self.size, values)
        return self.end(name)

    def begin(self, run: Sequence[str], inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Write the code that reads the arguments: the fields of a Run, inputs and outputs."""
        w, times = self.w, dict.fromkeys(("t0", "dt", "slack"), "double")
        w.unpack("%run", dict.fromkeys(run, "i64") | times)
        self.t0, self.length, self.slack = (w.value(f"%{name}", "double") for name in times)
        self.dt = w.splat(self.length)
        w.unpack("%inputs", dict.fromkeys(inputs, "ptr"))
        w.unpack("%outputs", dict.fromkeys(outputs, "ptr"))
        self.guard = MemoryGuard(w)

    def end(self, name: str) -> str:
        self.w.end_blocks(self.guard.flags())
        function = self.w.function(name, "inputs outputs run scratch")
        return self.w.module(*self._tables(), function)

    def _tables(self) -> list[str]:
        """The scheme's numbers: a as a full square, b, c."""
        s = self.scheme
        square = [x for row in s.a for x in (*row, *[0.0] * (s.stages - len(row)))]
        flat = {"a": square, "b": s.b, "c": s.c, "lengths": s.lengths}
        return [
            f"@scheme.{key} = private constant [{len(xs)} x double] "
            f"[{', '.join(f'double {double_literal(x)}' for x in xs)}]"
            for key, xs in flat.items()
            if xs
        ]

    # ---- memory ----

    def address(self, what: str, index: int | str, stage: str = "0") -> str:
        """The address of entry ``index`` of y, of the stage's y or of a stage's rate."""
        w, start = self.w, self.starts[what]
        if isinstance(index, int) and stage == "0":
            return w.at("%scratch", (start + index) * w.width)
        place = w.mul(stage, self.size) + w.add(str(index), start)
        return w.at("%scratch", place * w.width)

    def load(self, what: str, index: int | str, stage: str = "0") -> LlvmValue:
        return self.w.load(self.address(what, index, stage))

    def store(self, what: str, index: int | str, value: str, stage: str = "0") -> None:
        self.w.store(value, self.address(what, index, stage))

    def load_all(self, what: str) -> list[LlvmValue]:
        return [self.load(what, i) for i in range(self.size)]

    def store_all(self, what: str, values: Iterable[str]) -> None:
        for i, value in enumerate(values):
            self.store(what, i, value)

    def clear(self, what: str, size: int) -> None:
        if size:
            self.w.repeat(lambda i: self.store(what, i, self.w.const(0.0)), "0", size)

    def coefficient(self, table: str, index: int | str) -> LlvmValue:
        return self.w.item(f"@scheme.{table}", index)

    def dt_times(self, table: str, index: int | str) -> LlvmValue:
        """dt times a coefficient."""
        return self.w.splat(self.length * self.coefficient(table, index))

    # ---- one step ----

    def _step(self, step: str) -> None:
        w, time = self.w, self.time(step)
        w.repeat(lambda stage: self.stage(step, stage, time), "0", self.scheme.stages)
        rising = self.layout.rising if self.scheme.may_fall else ()
        before = [self.load("y", i) for i in rising]
        if self.scheme.kick:
            self._kick()
        else:
            w.repeat(lambda i: self._combine("y", i, "b", "0", self.scheme.stages), "0", self.size)
        for i, least in zip(rising, before, strict=True):
            value = self.load("y", i)
            self.store("y", i, w.pick(w.compare("olt", value, least), least, value))
        for start in self.layout.quaternions:
            self._normalise(start)
        if self.closing is not None:
            self.store_all("y", self.evaluate(self.closing, self.load_all("y").__getitem__))
        self._record(step)

    def time(self, step: str) -> LlvmValue:
        """t0 + step * dt."""
        return self.t0 + self.w.value(step, "i64").to_real() * self.length

    def evaluate(
        self, program: Program, y: Callable[[int], str], others: Sequence[Callable[[int], str]] = ()
    ) -> list[str]:
        """Write the code of a program (t, y, …) and return its results. ``y`` and ``others`` (t
        first) give the entries of its inputs.
        """
        nodes = [node for port in program.results for node in port]

        def symbol(name: tuple[int, int]) -> str:
            port, position = name
            return y(position) if port == 1 else others[port - (port > 1)](position)

        values = emit(self.w, program.graph, nodes, symbol, self.guard.angle)
        return [values[node] for node in nodes]

    def _combine(self, target: str, i: str, table: str, row: str, count: int) -> None:
        """Store y + dt * sum of coefficient * rate in y or in the stage's y; the coefficients are
        the first ``count`` of a row of a table of the scheme.
        """
        w, total, first = self.w, self.load("y", i), self.w.mul(row, self.scheme.stages)
        for j in range(count):
            k = self.dt_times(table, first + j)
            total = w.multiply_add(k, self.load("rate", i, str(j)), total)
        self.store(target, i, total)

    def stage(self, step: str, stage: str, time: LlvmValue) -> None:
        what, earlier = "y", self.scheme.stages - 1
        if earlier:
            what = "stage"
            self.w.repeat(lambda i: self._combine(what, i, "a", stage, earlier), "0", self.size)
        others = self.times(stage, time), lambda position: self.table(step, position)
        derivatives = self.evaluate(self.program, lambda i: self.load(what, i), others)
        for i, value in enumerate(derivatives):
            self.store("rate", i, value, stage)

    def times(self, stage: str, time: LlvmValue) -> Callable[[int], str]:
        """The time of a stage and, of an implicit scheme, the length of the step that it takes."""
        now = self.w.splat(self._within(time, self.coefficient("c", stage)))
        scalars = [now, *([self.dt_times("lengths", stage)] if self.scheme.implicit else [])]
        return scalars.__getitem__

    def _within(self, time: LlvmValue, node: str) -> LlvmValue:
        """The time of a stage that is ``node`` steps after the step's start, inside the step."""
        now = time + node * self.length
        first = time + self.slack
        last = time + self.length - self.slack
        early, late = now < first, now > last
        return where(early, first, where(late, last, now))

    def table(self, step: str, position: int) -> str:
        """Entry ``position`` of the table's row at this step, for every lane."""
        w = self.w
        along = w.mul(step, "%table_step") + position
        rows = (w.add("%row", lane) * "%table_state" for lane in range(w.width))
        return w.joined(w.item("%table", row + along) for row in rows)

    def _kick(self) -> None:
        """Semi-implicit Euler: everything but the coordinates first, then the coordinates with the
        new velocities.
        """
        w, moved = self.w, self.layout.coordinates
        for i in range(self.size):
            if i not in moved:
                old_rate = self.load("rate", i)
                self.store("y", i, w.multiply_add(self.dt, old_rate, self.load("y", i)))
        assert self.coordinate_program is not None
        y = self.load_all("y")
        rates = self.evaluate(self.coordinate_program, y.__getitem__)
        for i, rate in zip(moved, rates, strict=True):
            self.store("y", i, w.multiply_add(self.dt, rate, y[i]))

    def _normalise(self, start: int) -> None:
        w = self.w
        parts = [self.load("y", start + i) for i in range(4)]
        scale = 1.0 / w.call("sqrt", square(w, parts))
        for i, x in enumerate(parts):
            self.store("y", start + i, x * scale)

    def when_due(self, count: str, body: Callable[[str], None]) -> None:
        """``body(sample)`` if a sample is taken after this number of steps."""
        w = self.w
        every, done = w.value("%every", "i64"), w.value(count, "i64")
        safe = where(every.equals(0), _NEVER, every)
        due = (done % safe).equals(0)
        w.when(due, lambda: body(done // safe - 1))

    def _record(self, step: str) -> None:
        """Write y, and the rates of some stages, to the history."""
        w, size = self.w, self.size * (1 + self.recorded)

        def record(sample: str) -> None:
            base = w.at("%history", w.mul(sample, size))
            values = self.load_all("y")
            values += [self.load("rate", i) for i in range(size - self.size)]
            store_rows(w, base, size, values, w.mul("%samples", size))

        self.when_due(w.add(step, 1), record)


def explicit(name: str, a: Sequence[Sequence[float]], b: Sequence[float]) -> Scheme:
    """A scheme whose nodes are the sums of its rows."""
    return Scheme(name, tuple(tuple(row) for row in a), tuple(b), tuple(sum(row) for row in a))
