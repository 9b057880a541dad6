"""The adjoint of fixed steps as compiled loops: from the derivatives of a number by the states
along a run to those by its start, its inputs and its constants.

``int64 NAME(int64 states, double **inputs, double **outputs, Run *run, double *scratch)``. Inputs:
the states before every step (states, rows, size), the table u, the derivatives by the states after
some steps (states, samples, size), those by the last state (states, size). Outputs: the derivatives
by the first state (states, size), by u of all steps together (states, inputs), by u of each step
(states, steps, inputs). A Run is ``{int64 steps; int64 rows; int64 first; int64 every; int64
samples; int64 table_state; int64 table_step; int64 apart; int64 kept; double t0; double dt; double
slack}``: the first step is number ``first`` of the run, after every ``every`` of whose steps there
is a sample; with ``apart``, u of each step is written, ``kept`` steps apart from state to state.

A step is taken forward again for its stages, then backward, stage by stage. Where the rates of its
stages are ``recorded``, they stand in the row of the state after the step, behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ramify.emit.cpu_target import CpuTarget
from ramify.emit.rows import load_rows, store_rows
from ramify.emit.stepper import Scheme, StateLayout, StepWriter
from ramify.emit.values import LlvmValue
from ramify.trace.program import Program

RUN = ("steps", "rows", "first", "every", "samples", "table_state", "table_step", "apart", "kept")


@dataclass(frozen=True)
class StepPrograms:
    """What a step is made of and the adjoints: ``field`` (t, x, u) -> x', ``field_adjoint``
    (t, x, u, w) -> by x, by u; ``position`` and its adjoint (t, x, w) -> by x for semi-implicit
    Euler; ``finish`` (t, x) -> x, done after a step, and its adjoint, or none.
    """

    field: Program
    field_adjoint: Program
    position: Program | None = None
    position_adjoint: Program | None = None
    finish_adjoint: Program | None = None


def stages_needed(scheme: Scheme, finishes: bool) -> int:
    """Of how many stages a step backward needs the rates; ``finishes``: something is done after
    each step.
    """
    return scheme.stages if finishes or scheme.kick else scheme.stages - 1


def backward_scratch_doubles(layout: StateLayout, scheme: Scheme, width: int, inputs: int) -> int:
    """Size of the scratch memory of one thread."""
    return ((4 + 2 * scheme.stages) * layout.size + inputs) * width


class BackwardWriter(StepWriter):
    """Writes the adjoint of a scheme's steps."""

    def __init__(
        self,
        programs: StepPrograms,
        layout: StateLayout,
        scheme: Scheme,
        target: CpuTarget,
        recorded: bool,
    ) -> None:
        self.needed = stages_needed(scheme, programs.finish_adjoint is not None)
        recorded_inputs = self.needed if recorded else 0
        super().__init__(
            programs.field, programs.position, layout, scheme, target, None, recorded_inputs
        )
        self.programs, self.inputs = programs, programs.field.inputs[2].size
        n, s = self.size, scheme.stages
        bar = (2 + s) * n
        self.starts |= {"bar": bar, "slope": bar + n, "rates": bar + 2 * n, "u": bar + (2 + s) * n}

    def text(self, name: str) -> str:
        w, n = self.w, self.size
        self.begin(RUN, ("states_at", "table", "seeds", "end"), ("start", "by_u", "by_step"))
        w.do(f"%rows_apart = mul i64 %rows, {n * (1 + self.recorded)}")
        w.do(f"%seeds_apart = mul i64 %samples, {n}")
        w.do(f"%kept_apart = mul i64 %kept, {self.inputs}")
        w.begin_blocks()
        self.guard.start()
        self.store_all("bar", load_rows(w, "%end", n))
        self.clear("rate", self.scheme.stages * n)
        self.clear("u", self.inputs)
        w.repeat(self._back, "0", "%steps")
        values = self.load_all("bar")
        for value in values:
            self.guard.finite(value)
        self.guard.collect()
        store_rows(w, "%start", n, values)
        self._write_inputs("%by_u", None)
        return self.end(name)

    def _write_inputs(self, base: str, stride: str | None) -> None:
        if self.inputs:
            values = [self.load("u", i) for i in range(self.inputs)]
            store_rows(self.w, base, self.inputs, values, stride)

    # ---- one step ----

    def _back(self, count: str) -> None:
        """Step number steps - 1 - count, backward."""
        w, n = self.w, self.size
        step = w.sub(w.sub("%steps", 1), count)
        self._add_sample(step)
        row = n * (1 + self.recorded)
        base = w.at("%states_at", w.mul(step, row))
        self.store_all("y", load_rows(w, base, n, "%rows_apart"))
        time = self.time(step)
        finish, stages = self.programs.finish_adjoint, self.scheme.stages
        if self.recorded:
            self.store_all("rate", load_rows(w, w.at(base, row + n), row - n, "%rows_apart"))
        else:
            w.repeat(lambda stage: self.stage(step, stage, time), "0", self.needed)
        if self.scheme.kick:
            self._kick_back(finish)
        else:
            if finish is not None:
                self._sum("stage", "b", "0", stages)
                self._through(finish, "stage")
            parts = [self.dt_times("b", j) for j in range(stages)]
            for i in range(n):
                bar = self.load("bar", i)
                for j, k in enumerate(parts):
                    self.store("rates", i + j * n, w.binary("fmul", k, bar))
        w.repeat(lambda j: self._stage_back(step, j, time), "0", stages)
        w.when(w.value("%apart", "i64").differs(0), lambda: self._keep_step(step))

    def _sum(self, target: str, table: str, row: str, count: int) -> None:
        """y + dt * sum of coefficient * rate into ``target``; the coefficients stand in a row of a
        table.
        """
        w, first = self.w, self.w.mul(row, self.scheme.stages)
        factors = [self.dt_times(table, w.add(first, j)) for j in range(count)]
        for i in range(self.size):
            total = self.load("y", i)
            for j, k in enumerate(factors):
                total = w.multiply_add(k, self.load("rate", i + j * self.size), total)
            self.store(target, i, total)

    def _add_sample(self, step: str) -> None:
        """Add the derivative of the number by the state after this step, if that is a sample."""
        w = self.w

        def add(sample: str) -> None:
            base = w.at("%seeds", w.mul(sample, self.size))
            for i, seed in enumerate(load_rows(w, base, self.size, "%seeds_apart")):
                self._add("bar", i, seed)

        self.when_due(w.add(w.add(step, "%first"), 1), add)

    def _add(self, what: str, i: int, value: str) -> None:
        self.store(what, i, self.w.binary("fadd", self.load(what, i), value))

    def _through(self, finish: Program, at: str) -> None:
        """The adjoints before the finish of a step; the state before it is at ``at``."""
        bars = self.load_all("bar")
        self.store_all("bar", self._adjoint(finish, at, bars))

    def _adjoint(self, program: Program, at: str, weights: Sequence[str]) -> list[str]:
        """An adjoint (t, x, w) -> by x that does not depend on the time."""
        others = lambda _: self.w.const(0.0), weights.__getitem__
        return self.evaluate(program, lambda i: self.load(at, i), others)

    def _stage_back(self, step: str, count: str, time: LlvmValue) -> None:
        """Stage number stages - 1 - count, backward."""
        w, n, stages = self.w, self.size, self.scheme.stages
        stage = w.sub(stages - 1, count)
        what = "y"
        if stages > 1:
            what = "stage"
            self._sum("stage", "a", stage, stages - 1)
        now = self.times(stage, time)
        weights = [self.load("rates", i, stage) for i in range(n)]
        others = now, lambda position: self.table(step, position), weights.__getitem__
        slopes = self.evaluate(self.programs.field_adjoint, lambda i: self.load(what, i), others)
        for i, value in enumerate(slopes[:n]):
            self.store("slope", i, value)
            self._add("bar", i, value)
        for i, value in enumerate(slopes[n:]):
            self._add("u", i, value)
        if stages > 1:
            w.repeat(lambda j: self._hand_on(stage, j), "0", stages - 1)

    def _hand_on(self, stage: str, j: str) -> None:
        """What a later stage's state contributes to the adjoint of stage j's rate."""
        w = self.w
        factor = self.coefficient("a", w.mul(stage, self.scheme.stages) + j)

        def hand() -> None:
            k = w.splat(self.length * factor)
            for i in range(self.size):
                total = w.multiply_add(k, self.load("slope", i), self.load("rates", i, j))
                self.store("rates", i, total, j)

        w.when(w.put(f"fcmp one double {factor}, 0.0"), hand)

    def _kick_back(self, finish: Program | None) -> None:
        """Semi-implicit Euler: the coordinates, moved last, come first."""
        w, moved = self.w, self.layout.coordinates
        for i in range(self.size):
            ahead = self.load("y", i)
            if i not in moved:
                ahead = w.multiply_add(self.dt, self.load("rate", i), ahead)
            self.store("stage", i, ahead)
        position, back = self.coordinate_program, self.programs.position_adjoint
        assert position is not None
        assert back is not None
        if finish is not None:
            at = self.load_all("stage")
            rates = self.evaluate(position, at.__getitem__)
            self.store_all("slope", at)
            for i, rate in zip(moved, rates, strict=True):
                self.store("slope", i, w.multiply_add(self.dt, rate, at[i]))
            self._through(finish, "slope")
        bars = self.load_all("bar")
        weights = [w.binary("fmul", self.dt, bars[i]) for i in moved]
        slopes = self._adjoint(back, "stage", weights)
        for i, (bar, slope) in enumerate(zip(bars, slopes, strict=True)):
            total = w.binary("fadd", bar, slope)
            self.store("bar", i, total)
            rate = w.const(0.0) if i in moved else w.binary("fmul", self.dt, total)
            self.store("rates", i, rate)

    def _keep_step(self, step: str) -> None:
        """Write the derivatives by u of this step, and begin anew."""
        if self.inputs:
            base = self.w.at("%by_step", self.w.mul(step, self.inputs))
            self._write_inputs(base, "%kept_apart")
            self.clear("u", self.inputs)
