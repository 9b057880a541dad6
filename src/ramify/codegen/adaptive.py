"""An embedded Runge-Kutta method with step control as compiled code around any one-state kernel.

``int64 NAME(Job *job)`` advances one state until the end, or until it has something to say. It is
one function for all robots: the right-hand side is called through its address, vectors are rows of
memory, padded with zeros to whole registers. The steps, the error estimate and the interpolation
are those of ``ramify.sim.dop853``, which describes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ramify.codegen.target import CpuTarget
from ramify.codegen.vector import Writer, number

FINISHED, STIFF, RUNAWAY, STUCK, FLAGGED, MORE, UNSEEN = range(7)
"""Why the function returned: the end is reached; many steps at the boundary of stability; a
velocity beyond the limit; the step vanishes; the kernel refused a state (nothing has changed since
the last step); the most steps are done; the kernel refused a state that an output needs.
"""

INTEGERS: Final = (
    "kernel", "size", "padded", "inputs", "outputs", "memory", "grid", "rows", "next", "count",
    "most", "steps", "evaluations", "boundary", "within", "stiff", "first", "last",
)  # fmt: skip
NUMBERS: Final = ("t", "t_end", "h", "rtol", "atol", "max_step", "runaway", "t_old")
"""Entries of a Job, eight bytes each: integers and addresses first, then doubles.

``kernel`` is the address of ``int64(int64 states, double **inputs, double **outputs)`` with inputs
t, y, u; ``inputs`` and ``outputs`` are its tables of addresses. ``memory`` has rows of ``padded``
numbers (see ``ROWS``). ``grid`` (count) are times of output, ``next`` the first that is still to
come, ``rows`` (count, padded) where they go. ``first`` to ``last`` are the entries of y that must
stay below ``runaway``.
"""

ROWS: Final = {"y": 0, "f": 1, "new": 2, "stage": 3, "late": 4, "y_old": 5, "f_old": 6, "K": 7}
DENSE: Final = 23
COUNT: Final = 30
"""Rows of memory: named ones, 16 rates from K on, 7 coefficients of the interpolation."""


@dataclass(frozen=True)
class Tables:
    """The method: stages A (16 rows, the last three for the interpolation), weights B, nodes C, two
    error estimates, and the interpolation D.
    """

    A: Sequence[Sequence[float]]
    B: Sequence[float]
    C: Sequence[float]
    errors: tuple[Sequence[float], Sequence[float]]
    D: Sequence[Sequence[float]]
    stages: int
    stable: float


def adaptive_ir(tables: Tables, target: CpuTarget, name: str) -> str:
    """LLVM text of the function."""
    return _AdaptiveWriter(tables, target).text(name)


class _AdaptiveWriter:
    def __init__(self, tables: Tables, target: CpuTarget) -> None:
        self.m, self.w = tables, Writer(target)
        self._labels = 0

    def text(self, name: str) -> str:
        w = self.w
        for i, what in enumerate((*INTEGERS, *NUMBERS)):
            w.do(f"%{what}.at = getelementptr i64, ptr %job, i64 {i}")
        for what in ("kernel", "inputs", "outputs", "memory", "grid", "rows"):
            w.do(f"%{what} = load ptr, ptr %{what}.at")
        for what in ("size", "padded", "count", "most", "stiff", "first", "last"):
            w.do(f"%{what} = load i64, ptr %{what}.at")
        for what in ("t_end", "rtol", "atol", "max_step", "runaway"):
            w.do(f"%{what} = load double, ptr %{what}.at")
        for slot in ("trial", "end"):
            w.do(f"%{slot}.at = alloca double")
        w.do("%rejected.at = alloca i1")
        for slot in ("sum0", "sum1"):
            w.do(f"%{slot} = alloca {w.vector}, align 64")
        w.do("%now = load ptr, ptr %inputs")
        w.do(f"store ptr {self.row('stage')}, ptr {self.at('%inputs', 1, 'ptr')}")
        w.do("br label %step")
        self._step()
        return "\n".join(
            [
                *sorted(w.intrinsics),
                f'define i64 @{name}(ptr %job) "stackrealign" {{',
                "entry:",
                *w.lines,
                "}",
                "",
            ]
        )

    # ---- small pieces ----

    def at(self, base: str, index: int | str, kind: str = "double") -> str:
        return self.w.put(f"getelementptr {kind}, ptr {base}, i64 {index}")

    def row(self, what: str, index: int = 0) -> str:
        """Address of a row of the memory."""
        place = (DENSE if what == "F" else ROWS[what]) + index
        return self.at("%memory", self.w.put(f"mul i64 %padded, {place}"))

    def get(self, slot: str, kind: str = "double") -> str:
        return self.w.put(f"load {kind}, ptr %{slot}.at")

    def set(self, slot: str, value: str, kind: str = "double") -> None:
        self.w.do(f"store {kind} {value}, ptr %{slot}.at")

    def scalar(self, op: str, a: str, b: str) -> str:
        return self.w.put(f"{op} double {a}, {b}")

    def function(self, name: str, *args: str) -> str:
        """A call of an LLVM intrinsic on doubles."""
        kinds = ", ".join(["double"] * len(args))
        self.w.intrinsics.add(f"declare double @llvm.{name}.f64({kinds})")
        given = ", ".join(f"double {a}" for a in args)
        return self.w.put(f"call double @llvm.{name}.f64({given})")

    def branch(self, condition: str, then: str, otherwise: str) -> None:
        self.w.do(f"br i1 {condition}, label %{then}, label %{otherwise}")

    def fresh(self, stem: str) -> str:
        self._labels += 1
        return f"{stem}{self._labels}"

    def add_to(self, counter: str, amount: int) -> None:
        self.set(counter, self.w.put(f"add i64 {self.get(counter, 'i64')}, {amount}"), "i64")

    def each(self, body: Callable[[str], None]) -> None:
        """``body(i)`` for the first entry of every register of a row."""
        w, label = self.w, self.fresh("each")
        w.do(f"br label %{label}.enter")
        w.label(f"{label}.enter")
        w.do(f"br label %{label}")
        w.label(label)
        w.do(f"%{label}.i = phi i64 [0, %{label}.enter], [%{label}.next, %{label}]")
        body(f"%{label}.i")
        w.do(f"%{label}.next = add i64 %{label}.i, {w.width}")
        more = w.put(f"icmp slt i64 %{label}.next, %padded")
        self.branch(more, label, f"{label}.done")
        w.label(f"{label}.done")

    def load(self, row: str, i: str) -> str:
        return self.w.put(f"load {self.w.vector}, ptr {self.at(row, i)}, align 8")

    def store(self, row: str, i: str, value: str) -> None:
        self.w.do(f"store {self.w.vector} {value}, ptr {self.at(row, i)}, align 8")

    def copy(self, source: str, target: str) -> None:
        self.each(lambda i: self.store(target, i, self.load(source, i)))

    def combined(self, weights: Sequence[float], rates: Sequence[str], i: str) -> str:
        """The sum of weights times rates at entry i."""
        w, total = self.w, ""
        for weight, rate in zip(weights, rates, strict=False):
            if weight:
                k, x = w.const(weight), self.load(rate, i)
                total = w.multiply_add(k, x, total) if total else w.binary("fmul", k, x)
        return total or w.const(0.0)

    def clear(self, slot: str) -> None:
        self.w.do(f"store {self.w.vector} {self.w.const(0.0)}, ptr %{slot}, align 64")

    def gather(self, slot: str, x: str) -> None:
        """Add x squared to a sum."""
        w = self.w
        old = w.put(f"load {w.vector}, ptr %{slot}, align 64")
        w.do(f"store {w.vector} {w.multiply_add(x, x, old)}, ptr %{slot}, align 64")

    def total(self, slot: str) -> str:
        w = self.w
        vector = w.put(f"load {w.vector}, ptr %{slot}, align 64")
        if w.width == 1:
            return vector
        lanes = [w.put(f"extractelement {w.vector} {vector}, i64 {k}") for k in range(w.width)]
        found = lanes[0]
        for lane in lanes[1:]:
            found = self.scalar("fadd", found, lane)
        return found

    def rates(self, time: str, target: str, refused: str) -> None:
        """Evaluate the right-hand side at the stage's y; go elsewhere where it is refused."""
        w, label = self.w, self.fresh("evaluated")
        w.do(f"store double {time}, ptr %now")
        w.do(f"store ptr {target}, ptr %outputs")
        flags = w.put("call i64 %kernel(i64 1, ptr %inputs, ptr %outputs)")
        self.add_to("evaluations", 1)
        self.branch(w.put(f"icmp eq i64 {flags}, 0"), label, refused)
        w.label(label)

    def stage(
        self, s: int, K: Sequence[str], origin: str, start: str, h: str, refused: str
    ) -> None:
        """Rate s of a step from ``start`` at the state in row ``origin``."""
        w, target, steps = self.w, self.row("stage"), self.w.splat(h)

        def fill(i: str) -> None:
            moved = self.combined(self.m.A[s][:s], K, i)
            self.store(target, i, w.multiply_add(steps, moved, self.load(origin, i)))

        self.each(fill)
        if s == self.m.stages - 1:
            self.copy(target, self.row("late"))
        time = self.scalar("fadd", start, self.scalar("fmul", number(float(self.m.C[s])), h))
        self.rates(self.function("minnum", time, self.get("end")), K[s], refused)

    def leave(self, why: int) -> None:
        self.w.do(f"ret i64 {why}")

    # ---- one step ----

    def _step(self) -> None:
        w = self.w
        w.label("step")
        t = self.get("t")
        size = self.function("fabs", t)
        bits = w.put(f"add i64 {w.put(f'bitcast double {size} to i64')}, 1")
        spacing = self.scalar("fsub", w.put(f"bitcast i64 {bits} to double"), size)
        smallest = self.scalar("fmul", number(10.0), spacing)
        wished = self.function("maxnum", self.get("h"), smallest)
        self.set("trial", self.function("minnum", wished, "%max_step"))
        self.set("rejected", "false", "i1")
        K = [self.row("K", s) for s in range(16)]
        y, f, new = self.row("y"), self.row("f"), self.row("new")
        self.copy(f, K[0])
        w.do("br label %try")
        w.label("try")
        h = self.get("trial")
        self.branch(w.put(f"fcmp olt double {h}, {smallest}"), "stuck", "long")
        w.label("stuck")
        self.leave(STUCK)
        w.label("refused")
        self.leave(FLAGGED)
        w.label("long")
        end = self.function("minnum", self.scalar("fadd", t, h), "%t_end")
        self.set("end", end)
        h = self.scalar("fsub", end, t)
        self.set("trial", h)
        for s in range(1, self.m.stages):
            self.stage(s, K, y, t, h, "refused")
        steps, stage = w.splat(h), self.row("stage")

        def advance(i: str) -> None:
            moved = w.multiply_add(steps, self.combined(self.m.B, K, i), self.load(y, i))
            self.store(new, i, moved)
            self.store(stage, i, moved)

        self.each(advance)
        self.rates(end, K[self.m.stages], "refused")
        error = self._error(K, y, new, h)
        self.branch(w.put(f"fcmp olt double {error}, {number(1.0)}"), "accept", "reject")
        w.label("reject")
        scaled = self._factor(error)
        finite = w.put(f"fcmp olt double {error}, {number(float('inf'))}")
        slower = w.put(f"select i1 {finite}, double {scaled}, double {number(0.2)}")
        slower = self.function("maxnum", slower, number(0.2))
        self.set("trial", self.scalar("fmul", h, slower))
        self.set("rejected", "true", "i1")
        w.do("br label %try")
        self._accept(K, error, h, end)

    def _error(self, K: Sequence[str], y: str, new: str, h: str) -> str:
        """The estimated error by the tolerance."""
        w = self.w
        rtol, atol = w.splat("%rtol"), w.splat("%atol")
        for slot in ("sum0", "sum1"):
            self.clear(slot)

        def compare(i: str) -> None:
            largest = w.call(
                "maxnum", w.call("fabs", self.load(y, i)), w.call("fabs", self.load(new, i))
            )
            scale = w.multiply_add(largest, rtol, atol)
            for slot, weights in zip(("sum0", "sum1"), self.m.errors, strict=True):
                self.gather(slot, w.binary("fdiv", self.combined(weights, K, i), scale))

        self.each(compare)
        five, three = self.total("sum0"), self.total("sum1")
        both = self.scalar("fadd", five, self.scalar("fmul", number(0.01), three))
        count = w.put("sitofp i64 %size to double")
        root = self.function("sqrt", self.scalar("fmul", both, count))
        found = self.scalar("fdiv", self.scalar("fmul", h, five), root)
        none = w.put(f"fcmp oeq double {both}, {number(0.0)}")
        return w.put(f"select i1 {none}, double {number(0.0)}, double {found}")

    def _factor(self, error: str) -> str:
        """0.9 / error^(1/8)."""
        for _ in range(3):
            error = self.function("sqrt", error)
        return self.scalar("fdiv", number(0.9), error)

    def _accept(self, K: Sequence[str], error: str, h: str, end: str) -> None:
        w = self.w
        w.label("accept")
        factor = self.function("minnum", number(10.0), self._factor(error))
        held = self.function("minnum", number(1.0), factor)
        factor = w.put(f"select i1 {self.get('rejected', 'i1')}, double {held}, double {factor}")
        self.set("h", self.scalar("fmul", h, factor))
        self._stability(K, h)
        for source, target in (("y", "y_old"), ("f", "f_old"), ("new", "y")):
            self.copy(self.row(source), self.row(target))
        self.copy(K[self.m.stages], self.row("f"))
        self.set("t_old", self.get("t"))
        self.set("t", end)
        self.add_to("steps", 1)
        w.do("br label %output")
        self._output(K, h, end)
        w.label("after")
        self._refuse_runaway()
        self.branch(w.put(f"fcmp oge double {end}, %t_end"), "finished", "unfinished")
        w.label("finished")
        self.leave(FINISHED)
        w.label("unfinished")
        stiff = w.put(f"icmp sge i64 {self.get('boundary', 'i64')}, %stiff")
        self.branch(stiff, "stiffness", "supple")
        w.label("stiffness")
        self.leave(STIFF)
        w.label("supple")
        self.branch(w.put(f"icmp sge i64 {self.get('steps', 'i64')}, %most"), "full", "step")
        w.label("full")
        self.leave(MORE)

    def _stability(self, K: Sequence[str], h: str) -> None:
        """Count steps at the boundary of stability; six in a row within it reset the count."""
        w, new, late = self.w, self.row("new"), self.row("late")
        for slot in ("sum0", "sum1"):
            self.clear(slot)

        def compare(i: str) -> None:
            self.gather("sum0", w.binary("fsub", self.load(new, i), self.load(late, i)))
            last = self.load(K[self.m.stages], i)
            self.gather("sum1", w.binary("fsub", last, self.load(K[self.m.stages - 1], i)))

        self.each(compare)
        apart, change = (self.function("sqrt", self.total(slot)) for slot in ("sum0", "sum1"))
        moved = w.put(f"fcmp ogt double {apart}, {number(0.0)}")
        limit = self.scalar("fmul", number(self.m.stable), apart)
        fast = w.put(f"fcmp ogt double {self.scalar('fmul', h, change)}, {limit}")
        self.branch(w.put(f"and i1 {moved}, {fast}"), "limited", "accurate")
        w.label("limited")
        self.add_to("boundary", 1)
        self.set("within", "0", "i64")
        w.do("br label %judged")
        w.label("accurate")
        self.add_to("within", 1)
        self.branch(w.put(f"icmp eq i64 {self.get('within', 'i64')}, 6"), "reset", "judged")
        w.label("reset")
        self.set("boundary", "0", "i64")
        w.do("br label %judged")
        w.label("judged")

    def _refuse_runaway(self) -> None:
        w, y = self.w, self.row("y")
        w.do("br label %speeds")
        w.label("speeds")
        w.do("br label %speed")
        w.label("speed")
        w.do("%speed.i = phi i64 [%first, %speeds], [%speed.next, %slow]")
        self.branch(w.put("icmp slt i64 %speed.i, %last"), "look", "bounded")
        w.label("look")
        v = self.function("fabs", w.put(f"load double, ptr {self.at(y, '%speed.i')}"))
        self.branch(w.put(f"fcmp olt double {v}, %runaway"), "slow", "fast")
        w.label("fast")
        self.leave(RUNAWAY)
        w.label("slow")
        w.do("%speed.next = add i64 %speed.i, 1")
        w.do("br label %speed")
        w.label("bounded")

    # ---- output between the ends ----

    def _output(self, K: Sequence[str], h: str, end: str) -> None:
        """States at the times of output that this step has reached."""
        w = self.w
        w.label("output")
        old = self.row("y_old")
        reached = self.scalar("fadd", end, self.scalar("fmul", number(1e-9), h))
        start = self.get("t_old")
        self._while_due("any", reached, "prepare", "after")
        w.label("prepare")
        for s in range(self.m.stages + 1, 16):
            self.stage(s, K, old, start, h, "unseen")
        self._coefficients(K, h)
        w.do("br label %more")
        w.label("unseen")
        self.leave(UNSEEN)
        w.label("more")
        due = self._while_due("each.due", reached, "interpolate", "after")
        w.label("interpolate")
        inside = self.function("minnum", due, end)
        x = self.scalar("fdiv", self.scalar("fsub", inside, start), h)
        x = self.function("minnum", x, number(1.0))
        share, rest = w.splat(x), w.splat(self.scalar("fsub", number(1.0), x))
        place = w.put(f"mul i64 {self.get('next', 'i64')}, %padded")
        target, F = self.at("%rows", place), [self.row("F", k) for k in range(7)]

        def polynomial(i: str) -> None:
            value = ""
            for k, row in enumerate(reversed(F)):
                term = self.load(row, i)
                value = w.binary("fadd", value, term) if value else term
                value = w.binary("fmul", value, share if k % 2 == 0 else rest)
            self.store(target, i, w.binary("fadd", self.load(old, i), value))

        self.each(polynomial)
        self.add_to("next", 1)
        w.do("br label %more")

    def _while_due(self, stem: str, reached: str, then: str, otherwise: str) -> str:
        """Branch on whether the next time of output is reached; gives that time."""
        w = self.w
        following = self.get("next", "i64")
        self.branch(w.put(f"icmp slt i64 {following}, %count"), f"{stem}.left", otherwise)
        w.label(f"{stem}.left")
        due = w.put(f"load double, ptr {self.at('%grid', following)}")
        self.branch(w.put(f"fcmp ole double {due}, {reached}"), then, otherwise)
        return due

    def _coefficients(self, K: Sequence[str], h: str) -> None:
        w, F, steps = self.w, [self.row("F", k) for k in range(7)], self.w.splat(h)
        y, old, f, before = (self.row(x) for x in ("y", "y_old", "f", "f_old"))

        def fill(i: str) -> None:
            way = w.binary("fsub", self.load(y, i), self.load(old, i))
            first, last = self.load(before, i), self.load(f, i)
            self.store(F[0], i, way)
            self.store(F[1], i, w.binary("fsub", w.binary("fmul", steps, first), way))
            both = w.binary("fmul", steps, w.binary("fadd", first, last))
            self.store(F[2], i, w.binary("fsub", w.binary("fadd", way, way), both))
            for k, weights in enumerate(self.m.D):
                self.store(F[3 + k], i, w.binary("fmul", steps, self.combined(weights, K, i)))

        self.each(fill)
