"""Fixed-step integration as compiled loops: many states advance side by side, one per lane.

``int64 NAME(int64 states, double **inputs, double **outputs, Run *run, double *scratch)``. Inputs:
y0 (states, size) and the table u; outputs: the last y (states, size) and the history (states,
samples, size). A Run is ``{int64 steps; int64 every; int64 samples; int64 table_state; int64
table_step; double t0; double dt; double slack}``: after every ``every`` steps y is written to the
history (0: never); the table is read at ``state * table_state + step * table_step`` (strides in
numbers; zeros repeat a row). Stages are evaluated within a step, ``slack`` seconds away from its
ends: a motion that ends with the step is not asked for what follows. The right-hand side is written
once in the code, whatever the number of stages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ramify.codegen.guards import MemoryGuard
from ramify.codegen.row_blocks import begin_blocks, end_blocks, function
from ramify.codegen.rows import load_rows, store_rows
from ramify.codegen.target import CpuTarget
from ramify.codegen.vector import Writer, emit, number
from ramify.trace.program import Program


@dataclass(frozen=True)
class Scheme:
    """An explicit Runge-Kutta scheme (rows of a, weights b, nodes c), or with ``kick``
    semi-implicit Euler: velocities first. ``lengths``: of an implicit scheme, whose rates are those
    of a linearly implicit step, the length of the step of each stage, as a share of the whole.
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
    """Of y: its size, where quaternions begin, and which entries are coordinates (moved last by
    semi-implicit Euler).
    """

    size: int
    quaternions: tuple[int, ...]
    coordinates: tuple[int, ...]


_RUN = ("steps", "every", "samples", "table_state", "table_step")


def stepper_ir(
    program: Program,
    position: Program | None,
    layout: StateLayout,
    scheme: Scheme,
    target: CpuTarget,
    name: str,
    closing: Program | None = None,
    recorded: int = 0,
) -> tuple[str, set[str]]:
    """LLVM text. ``program``: (t, y, u) -> y', t being [t, h] for an implicit scheme; ``position``
    (for semi-implicit Euler): y with new velocities -> rates of the coordinates; ``closing``:
    (t, y) -> y, done after each step; ``recorded``: of how many stages the rates of a step follow
    y in the history.
    """
    return StepWriter(program, position, layout, scheme, target, closing, recorded).function(name)


def scratch_doubles(layout: StateLayout, scheme: Scheme, width: int) -> int:
    """Size of the scratch memory of one thread: y, the stage's y, and a rate per stage."""
    return (2 + scheme.stages) * layout.size * width


class StepWriter:
    """Writes the steps of a scheme."""

    def __init__(
        self,
        program: Program,
        position: Program | None,
        layout: StateLayout,
        scheme: Scheme,
        target: CpuTarget,
        closing: Program | None,
        recorded: int = 0,
    ) -> None:
        self.recorded = recorded
        self.program, self.position, self.layout, self.scheme, self.closing = (
            program,
            position,
            layout,
            scheme,
            closing,
        )
        self.w = Writer(target)
        self._labels = 0

    def function(self, name: str) -> tuple[str, set[str]]:
        w = self.w
        for i, what in enumerate(_RUN):
            w.do(f"%{what} = load i64, ptr {w.put(f'getelementptr i64, ptr %run, i64 {i}')}")
        for i, what in enumerate(("t0", "dt", "slack")):
            w.do(
                f"%{what} = load double, ptr "
                f"{w.put(f'getelementptr i64, ptr %run, i64 {len(_RUN) + i}')}"
            )
        self.dt = w.splat("%dt")
        pointers = [
            ("y0", "%inputs", 0),
            ("table", "%inputs", 1),
            ("final", "%outputs", 0),
            ("history", "%outputs", 1),
        ]
        for what, table, i in pointers:
            w.do(f"%{what} = load ptr, ptr {w.put(f'getelementptr ptr, ptr {table}, i64 {i}')}")
        self.audit = MemoryGuard(w)
        begin_blocks(w)
        self.audit.start()
        for i, value in enumerate(load_rows(w, "%y0", self.layout.size)):
            self._store("y", str(i), value)
        cleared = str(
            self.scheme.stages * self.layout.size
        )  # a stage reads all rates, with zeros for those still to come
        self._loop("clear", cleared, lambda i: self._store("rate", i, w.const(0.0)))
        self._loop("step", "%steps", self._step)
        values = [self._load("y", str(i)) for i in range(self.layout.size)]
        for value in values:
            self.audit.finite(value)
        store_rows(w, "%final", self.layout.size, values)
        end_blocks(w, self.audit.flags())
        return "\n".join(
            [*self._tables(), function(name, "inputs outputs run scratch", w)]
        ), w.intrinsics

    def _tables(self) -> list[str]:
        """The scheme's numbers: a as a full square, b, c."""
        n = self.scheme.stages
        rows = [list(row) + [0.0] * (n - len(row)) for row in self.scheme.a]
        flat = {
            "a": [x for row in rows for x in row],
            "b": list(self.scheme.b),
            "c": list(self.scheme.c),
            "lengths": list(self.scheme.lengths),
        }
        return [
            f"@scheme.{key} = private constant [{len(xs)} x double] "
            f"[{', '.join(f'double {number(x)}' for x in xs)}]"
            for key, xs in flat.items()
            if xs
        ]

    # ---- memory ----

    def _address(self, what: str, index: str, stage: str = "0") -> str:
        """Where entry ``index`` of y, of the stage's y or of a stage's rate stands."""
        w, size = self.w, self.layout.size
        start = {"y": 0, "stage": size, "rate": 2 * size}[what]
        if index.isdigit() and stage == "0":
            return w.put(
                f"getelementptr double, ptr %scratch, i64 {(start + int(index)) * w.width}"
            )
        place = w.put(
            f"add i64 {w.put(f'mul i64 {stage}, {size}')}, {w.put(f'add i64 {index}, {start}')}"
        )
        return w.put(
            f"getelementptr double, ptr %scratch, i64 {w.put(f'mul i64 {place}, {w.width}')}"
        )

    def _load(self, what: str, index: str, stage: str = "0") -> str:
        return self.w.put(
            f"load {self.w.vector}, ptr {self._address(what, index, stage)}, align "
            f"{8 * self.w.width}"
        )

    def _store(self, what: str, index: str, value: str, stage: str = "0") -> None:
        self.w.do(
            f"store {self.w.vector} {value}, ptr {self._address(what, index, stage)}, align "
            f"{8 * self.w.width}"
        )

    def _coefficient(self, table: str, index: str) -> str:
        w = self.w
        return w.put(
            f"load double, ptr {w.put(f'getelementptr double, ptr @scheme.{table}, i64 {index}')}"
        )

    def _loop(self, stem: str, bound: str, body: Callable[[str], None]) -> None:
        """``body(i)`` for i from 0 to bound - 1; the bound may be zero."""
        w = self.w
        self._labels += 1
        label = f"{stem}{self._labels}"
        w.do(f"br label %{label}.enter")
        w.label(f"{label}.enter")
        empty = w.put(f"icmp sle i64 {bound}, 0")
        w.do(f"br i1 {empty}, label %{label}.exit, label %{label}")
        w.label(label)
        w.do(f"%{label}.i = phi i64 [0, %{label}.enter], [%{label}.next, %{label}.end]")
        body(f"%{label}.i")
        w.do(f"br label %{label}.end")
        w.label(f"{label}.end")
        w.do(f"%{label}.next = add i64 %{label}.i, 1")
        more = w.put(f"icmp slt i64 %{label}.next, {bound}")
        w.do(f"br i1 {more}, label %{label}, label %{label}.exit")
        w.label(f"{label}.exit")

    # ---- one step ----

    def _step(self, step: str) -> None:
        w = self.w
        count = w.put(f"sitofp i64 {step} to double")
        time = w.put(f"fadd double %t0, {w.put(f'fmul double {count}, %dt')}")
        self._loop("stage", str(self.scheme.stages), lambda stage: self._stage(step, stage, time))
        if self.scheme.kick:
            self._kick()
        else:
            self._loop(
                "sum",
                str(self.layout.size),
                lambda i: self._combine("y", i, "b", "0", self.scheme.stages),
            )
        for start in self.layout.quaternions:
            self._normalise(start)
        if self.closing is not None:
            self._close(self.closing)
        self._record(step)

    def _combine(self, target: str, i: str, table: str, row: str, count: int) -> None:
        """y + dt * sum of coefficient * rate, into y or the stage's y; the coefficients stand in a
        row of a table.
        """
        w = self.w
        total = self._load("y", i)
        for j in range(count):
            place = w.put(f"add i64 {w.put(f'mul i64 {row}, {self.scheme.stages}')}, {j}")
            k = w.splat(w.put(f"fmul double %dt, {self._coefficient(table, place)}"))
            total = w.multiply_add(k, self._load("rate", i, str(j)), total)
        self._store(target, i, total)

    def _stage(self, step: str, stage: str, time: str) -> None:
        w = self.w
        if self.scheme.stages > 1:
            earlier = self.scheme.stages - 1
            self._loop(
                "prepare",
                str(self.layout.size),
                lambda i: self._combine("stage", i, "a", stage, earlier),
            )
        what = "stage" if self.scheme.stages > 1 else "y"
        now = w.splat(self._within(time, self._coefficient("c", stage)))
        length = self._length(stage)

        def symbol(name: tuple[int, int]) -> str:
            port, position = name
            if port == 0:
                return length if position else now
            return self._load(what, str(position)) if port == 1 else self._table(step, position)

        values = emit(w, self.program.graph, self.program.results[0], symbol, self.audit.angle)
        for i, node in enumerate(self.program.results[0]):
            self._store("rate", str(i), values[node], stage)

    def _length(self, stage: str) -> str:
        """The length of the step that a stage of an implicit scheme takes."""
        if not self.scheme.implicit:
            return ""
        w = self.w
        return w.splat(w.put(f"fmul double %dt, {self._coefficient('lengths', stage)}"))

    def _within(self, time: str, node: str) -> str:
        """The time of a stage that is ``node`` steps after the step's start, inside the step."""
        w = self.w
        now = w.put(f"fadd double {time}, {w.put(f'fmul double {node}, %dt')}")
        first = w.put(f"fadd double {time}, %slack")
        end = w.put(f"fadd double {time}, %dt")
        last = w.put(f"fsub double {end}, %slack")
        early, late = (
            w.put(f"fcmp {op} double {now}, {x}") for op, x in (("olt", first), ("ogt", last))
        )
        now = w.put(f"select i1 {late}, double {last}, double {now}")
        return w.put(f"select i1 {early}, double {first}, double {now}")

    def _table(self, step: str, position: int) -> str:
        """Entry ``position`` of the table's row at this step, for every lane."""
        w = self.w
        along = w.put(f"add i64 {w.put(f'mul i64 {step}, %table_step')}, {position}")
        value = "poison"
        for lane in range(w.width):
            row = w.put(f"mul i64 {w.put(f'add i64 %row, {lane}')}, %table_state")
            place = w.put(
                f"getelementptr double, ptr %table, i64 {w.put(f'add i64 {row}, {along}')}"
            )
            x = w.put(f"load double, ptr {place}")
            value = (
                x
                if w.width == 1
                else w.put(f"insertelement {w.vector} {value}, double {x}, i64 {lane}")
            )
        return value

    def _kick(self) -> None:
        """Semi-implicit Euler: everything but the coordinates first, then the coordinates with the
        new velocities.
        """
        w = self.w
        moved = set(self.layout.coordinates)
        for i in range(self.layout.size):
            if i not in moved:
                self._store(
                    "y",
                    str(i),
                    w.multiply_add(self.dt, self._load("rate", str(i)), self._load("y", str(i))),
                )
        assert self.position is not None
        symbols = {node: self._load("y", str(node)) for node in range(self.layout.size)}
        values = emit(
            w,
            self.position.graph,
            self.position.results[0],
            lambda name: symbols[name[1]],
            self.audit.angle,
        )
        for i, node in zip(self.layout.coordinates, self.position.results[0], strict=True):
            self._store("y", str(i), w.multiply_add(self.dt, values[node], symbols[i]))

    def _close(self, closing: Program) -> None:
        """The state as another program corrects it."""
        symbols = [self._load("y", str(i)) for i in range(self.layout.size)]
        values = emit(
            self.w,
            closing.graph,
            closing.results[0],
            lambda name: symbols[name[1]],
            self.audit.angle,
        )
        for i, node in enumerate(closing.results[0]):
            self._store("y", str(i), values[node])

    def _normalise(self, start: int) -> None:
        w = self.w
        parts = [self._load("y", str(start + i)) for i in range(4)]
        square = w.binary("fmul", parts[0], parts[0])
        for x in parts[1:]:
            square = w.multiply_add(x, x, square)
        scale = w.binary("fdiv", w.const(1.0), w.call("sqrt", square))
        for i, x in enumerate(parts):
            self._store("y", str(start + i), w.binary("fmul", x, scale))

    def _record(self, step: str) -> None:
        """Write y to the history after every ``every`` steps."""
        w = self.w
        self._labels += 1
        label = f"record{self._labels}"
        safe = w.put(
            f"select i1 {w.put('icmp eq i64 %every, 0')}, i64 9223372036854775807, i64 %every"
        )
        count = w.put(f"add i64 {step}, 1")
        due = w.put(f"icmp eq i64 {w.put(f'srem i64 {count}, {safe}')}, 0")
        w.do(f"br i1 {due}, label %{label}, label %{label}.done")
        w.label(label)
        sample = w.put(f"sub i64 {w.put(f'sdiv i64 {count}, {safe}')}, 1")
        size = self.layout.size * (1 + self.recorded)
        base = w.put(
            f"getelementptr double, ptr %history, i64 {w.put(f'mul i64 {sample}, {size}')}"
        )
        values = [self._load("y", str(i)) for i in range(self.layout.size)]
        values += [self._load("rate", str(i)) for i in range(size - self.layout.size)]
        store_rows(w, base, size, values, w.put(f"mul i64 %samples, {size}"))
        w.do(f"br label %{label}.done")
        w.label(f"{label}.done")


def explicit(name: str, a: Sequence[Sequence[float]], b: Sequence[float]) -> Scheme:
    """A scheme whose nodes are the sums of its rows."""
    return Scheme(name, tuple(tuple(row) for row in a), tuple(b), tuple(sum(row) for row in a))
