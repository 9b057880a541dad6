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

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ramify.codegen.guards import MemoryGuard
from ramify.codegen.row_blocks import begin_blocks, end_blocks, function
from ramify.codegen.rows import load_rows, store_rows
from ramify.codegen.stepper import Scheme, StateLayout, StepWriter
from ramify.codegen.target import CpuTarget
from ramify.codegen.vector import emit
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


def backward_ir(
    programs: StepPrograms,
    layout: StateLayout,
    scheme: Scheme,
    target: CpuTarget,
    name: str,
    recorded: bool,
) -> tuple[str, set[str]]:
    """LLVM text of the adjoint of a scheme's steps."""
    return _Backward(programs, layout, scheme, target, recorded).function(name)


def scratch_doubles(layout: StateLayout, scheme: Scheme, width: int, inputs: int) -> int:
    """Size of the scratch memory of one thread."""
    return ((4 + 2 * scheme.stages) * layout.size + inputs) * width


class _Backward(StepWriter):
    def __init__(
        self,
        programs: StepPrograms,
        layout: StateLayout,
        scheme: Scheme,
        target: CpuTarget,
        recorded: bool,
    ) -> None:
        self.needed = stages_needed(scheme, programs.finish_adjoint is not None)
        kept = self.needed if recorded else 0
        super().__init__(programs.field, programs.position, layout, scheme, target, None, kept)
        self.programs = programs
        self.inputs = programs.field.inputs[2].size
        n, s = layout.size, scheme.stages
        areas = (
            ("y", n),
            ("stage", n),
            ("rate", s * n),
            ("bar", n),
            ("slope", n),
            ("rates", s * n),
        )
        self._starts: dict[str, int] = {}
        start = 0
        for area, size in (*areas, ("u", self.inputs)):
            self._starts[area], start = start, start + size

    def function(self, name: str) -> tuple[str, set[str]]:
        w, n = self.w, self.layout.size
        for i, what in enumerate(RUN):
            w.do(f"%{what} = load i64, ptr {w.put(f'getelementptr i64, ptr %run, i64 {i}')}")
        for i, what in enumerate(("t0", "dt", "slack")):
            place = w.put(f"getelementptr i64, ptr %run, i64 {len(RUN) + i}")
            w.do(f"%{what} = load double, ptr {place}")
        self.dt = w.splat("%dt")
        pointers = (
            *(
                (what, "%inputs", i)
                for i, what in enumerate(("states_at", "table", "seeds", "end"))
            ),
            *((what, "%outputs", i) for i, what in enumerate(("start", "by_u", "by_step"))),
        )
        for what, table, i in pointers:
            w.do(f"%{what} = load ptr, ptr {w.put(f'getelementptr ptr, ptr {table}, i64 {i}')}")
        w.do(f"%rows_apart = mul i64 %rows, {n * (1 + self.recorded)}")
        w.do(f"%seeds_apart = mul i64 %samples, {n}")
        w.do(f"%kept_apart = mul i64 %kept, {self.inputs}")
        self.audit = MemoryGuard(w)
        begin_blocks(w)
        self.audit.start()
        for i, value in enumerate(load_rows(w, "%end", n)):
            self._store("bar", str(i), value)
        self._clear("rate", self.scheme.stages * n)
        self._clear("u", self.inputs)
        self._loop("step", "%steps", self._back)
        values = [self._load("bar", str(i)) for i in range(n)]
        for value in values:
            self.audit.finite(value)
        self.audit.collect()
        store_rows(w, "%start", n, values)
        self._write_inputs("%by_u", None)
        end_blocks(w, self.audit.flags())
        head = function(name, "inputs outputs run scratch", w)
        return "\n".join([*self._tables(), head]), w.intrinsics

    # ---- memory ----

    def _address(self, what: str, index: str, stage: str = "0") -> str:
        w, start = self.w, self._starts[what]
        if index.isdigit() and stage == "0":
            place = str((start + int(index)) * w.width)
        else:
            row = w.put(f"mul i64 {stage}, {self.layout.size}")
            place = w.put(f"add i64 {row}, {w.put(f'add i64 {index}, {start}')}")
            place = w.put(f"mul i64 {place}, {w.width}")
        return w.put(f"getelementptr double, ptr %scratch, i64 {place}")

    def _clear(self, what: str, size: int) -> None:
        if size:
            self._loop("clear", str(size), lambda i: self._store(what, i, self.w.const(0.0)))

    def _write_inputs(self, base: str, stride: str | None) -> None:
        if self.inputs:
            values = [self._load("u", str(i)) for i in range(self.inputs)]
            store_rows(self.w, base, self.inputs, values, stride)

    def _when(self, condition: str, body: Callable[[], None]) -> None:
        self._labels += 1
        label = f"when{self._labels}"
        self.w.do(f"br i1 {condition}, label %{label}, label %{label}.done")
        self.w.label(label)
        body()
        self.w.do(f"br label %{label}.done")
        self.w.label(f"{label}.done")

    # ---- one step ----

    def _back(self, count: str) -> None:
        """Step number steps - 1 - count, backward."""
        w, n = self.w, self.layout.size
        step = w.put(f"sub i64 {w.put('sub i64 %steps, 1')}, {count}")
        self._add_sample(step)
        row = n * (1 + self.recorded)
        base = w.put(f"getelementptr double, ptr %states_at, i64 {w.put(f'mul i64 {step}, {row}')}")
        for i, value in enumerate(load_rows(w, base, n, "%rows_apart")):
            self._store("y", str(i), value)
        done = w.put(f"sitofp i64 {step} to double")
        time = w.put(f"fadd double %t0, {w.put(f'fmul double {done}, %dt')}")
        finish, stages = self.programs.finish_adjoint, self.scheme.stages
        if self.recorded:
            after = w.put(f"getelementptr double, ptr {base}, i64 {row + n}")
            for i, value in enumerate(load_rows(w, after, row - n, "%rows_apart")):
                self._store("rate", str(i), value)
        else:
            self._loop("stage", str(self.needed), lambda stage: self._stage(step, stage, time))
        if self.scheme.kick:
            self._kick_back(finish)
        else:
            if finish is not None:
                self._sum("stage", "b", "0", stages)
                self._through(finish, "stage", self._load_all("bar"), "bar")
            parts = [
                w.splat(w.put(f"fmul double %dt, {self._coefficient('b', str(j))}"))
                for j in range(stages)
            ]
            for i in range(n):
                bar = self._load("bar", str(i))
                for j, k in enumerate(parts):
                    self._store("rates", str(i + j * n), w.binary("fmul", k, bar))
        self._loop("back", str(stages), lambda j: self._stage_back(step, j, time))
        self._when(w.put("icmp ne i64 %apart, 0"), lambda: self._keep_step(step))

    def _load_all(self, what: str) -> list[str]:
        return [self._load(what, str(i)) for i in range(self.layout.size)]

    def _sum(self, target: str, table: str, row: str, count: int) -> None:
        """y + dt * sum of coefficient * rate into ``target``; the coefficients stand in a row of a
        table.
        """
        w, factors = self.w, []
        for j in range(count):
            place = w.put(f"add i64 {w.put(f'mul i64 {row}, {self.scheme.stages}')}, {j}")
            factors.append(w.splat(w.put(f"fmul double %dt, {self._coefficient(table, place)}")))
        for i in range(self.layout.size):
            total = self._load("y", str(i))
            for j, k in enumerate(factors):
                rate = self._load("rate", str(i + j * self.layout.size))
                total = w.multiply_add(k, rate, total)
            self._store(target, str(i), total)

    def _add_sample(self, step: str) -> None:
        """What the number depends on the state after this step, where it is a sample."""
        w, n = self.w, self.layout.size
        none = w.put("icmp eq i64 %every, 0")
        safe = w.put(f"select i1 {none}, i64 9223372036854775807, i64 %every")
        done = w.put(f"add i64 {w.put(f'add i64 {step}, %first')}, 1")
        due = w.put(f"icmp eq i64 {w.put(f'srem i64 {done}, {safe}')}, 0")

        def add() -> None:
            sample = w.put(f"sub i64 {w.put(f'sdiv i64 {done}, {safe}')}, 1")
            place = w.put(f"mul i64 {sample}, {n}")
            base = w.put(f"getelementptr double, ptr %seeds, i64 {place}")
            for i, seed in enumerate(load_rows(w, base, n, "%seeds_apart")):
                total = w.binary("fadd", self._load("bar", str(i)), seed)
                self._store("bar", str(i), total)

        self._when(due, add)

    def _through(self, program: Program, at: str, weights: Sequence[str], target: str) -> None:
        """An adjoint program (t, x, w) -> by x, into ``target``."""
        values = self._run(program, lambda _: self.w.const(0.0), at, weights)
        for i, value in enumerate(values):
            self._store(target, str(i), value)

    def _run(
        self, program: Program, other: Callable[[int], str], at: str, weights: Sequence[str]
    ) -> list[str]:
        last = len(program.inputs) - 1
        nodes = [node for port in program.results for node in port]

        def symbol(name: tuple[int, int]) -> str:
            port, position = name
            if port == 1:
                return self._load(at, str(position))
            return (
                weights[position] if port == last else other(position if port == 2 else ~position)
            )

        values = emit(self.w, program.graph, nodes, symbol, self.audit.angle)
        return [values[node] for node in nodes]

    def _stage_back(self, step: str, count: str, time: str) -> None:
        """Stage number stages - 1 - count, backward."""
        w, n, stages = self.w, self.layout.size, self.scheme.stages
        stage = w.put(f"sub i64 {stages - 1}, {count}")
        what = "y"
        if stages > 1:
            what = "stage"
            self._sum("stage", "a", stage, stages - 1)
        now = w.splat(self._within(time, self._coefficient("c", stage)))
        weights = [self._load("rates", str(i), stage) for i in range(n)]

        length = self._length(stage)

        def other(position: int) -> str:
            """An entry of u, or of the times: ~0 now, ~1 the length of an implicit step."""
            if position >= 0:
                return self._table(step, position)
            return now if position == ~0 else length

        found = self._run(self.programs.field_adjoint, other, what, weights)
        for i, value in enumerate(found[:n]):
            self._store("slope", str(i), value)
            self._store("bar", str(i), w.binary("fadd", self._load("bar", str(i)), value))
        for i, value in enumerate(found[n:]):
            self._store("u", str(i), w.binary("fadd", self._load("u", str(i)), value))
        if stages > 1:
            self._loop("earlier", str(stages - 1), lambda j: self._hand_on(stage, j))

    def _hand_on(self, stage: str, j: str) -> None:
        """What stage j's rate gets through the place of a later stage."""
        w = self.w
        place = w.put(f"add i64 {w.put(f'mul i64 {stage}, {self.scheme.stages}')}, {j}")
        factor = self._coefficient("a", place)

        def hand() -> None:
            k = w.splat(w.put(f"fmul double %dt, {factor}"))
            for i in map(str, range(self.layout.size)):
                total = w.multiply_add(k, self._load("slope", i), self._load("rates", i, j))
                self._store("rates", i, total, j)

        self._when(w.put(f"fcmp one double {factor}, 0.0"), hand)

    def _kick_back(self, finish: Program | None) -> None:
        """Semi-implicit Euler: the coordinates, moved last, come first."""
        w, n = self.w, self.layout.size
        moved = set(self.layout.coordinates)
        for i in range(n):
            ahead = self._load("y", str(i))
            if i not in moved:
                ahead = w.multiply_add(self.dt, self._load("rate", str(i)), ahead)
            self._store("stage", str(i), ahead)
        position, back = self.position, self.programs.position_adjoint
        assert position is not None
        assert back is not None
        if finish is not None:
            at = self._load_all("stage")
            values = emit(
                w, position.graph, position.results[0], lambda name: at[name[1]], self.audit.angle
            )
            for i in range(n):
                self._store("slope", str(i), at[i])
            for i, node in zip(self.layout.coordinates, position.results[0], strict=True):
                self._store("slope", str(i), w.multiply_add(self.dt, values[node], at[i]))
            self._through(finish, "slope", self._load_all("bar"), "bar")
        bars = self._load_all("bar")
        weights = [w.binary("fmul", self.dt, bars[i]) for i in self.layout.coordinates]
        found = self._run(back, lambda _: w.const(0.0), "stage", weights)
        for i, (bar, slope) in enumerate(zip(bars, found, strict=True)):
            total = w.binary("fadd", bar, slope)
            self._store("bar", str(i), total)
            rate = w.const(0.0) if i in moved else w.binary("fmul", self.dt, total)
            self._store("rates", str(i), rate)

    def _keep_step(self, step: str) -> None:
        """Write the derivatives by u of this step, and begin anew."""
        w = self.w
        if self.inputs:
            place = w.put(f"mul i64 {step}, {self.inputs}")
            base = w.put(f"getelementptr double, ptr %by_step, i64 {place}")
            self._write_inputs(base, "%kept_apart")
            self._clear("u", self.inputs)
