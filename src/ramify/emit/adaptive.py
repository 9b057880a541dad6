"""An embedded Runge-Kutta method with step control as compiled code around any one-state kernel.

``int64 NAME(Job *job)`` advances one state until the end, or until it has something to say. It is
one function for all robots: the right-hand side is called through its address, vectors are rows of
memory, padded with zeros to whole registers. The steps, the error estimate and the interpolation
are those of ``ramify.integrate.dop853``, which describes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from ramify.emit.cpu_target import CpuTarget
from ramify.emit.values import LlvmValue, double_literal, where
from ramify.emit.writer import Writer

FINISHED, STIFF, RUNAWAY, STUCK, FLAGGED, MORE, UNSEEN = range(7)
"""Why the function returned: the end is reached; many steps at the boundary of stability; a
velocity beyond the limit; the step vanishes; the kernel refused a state (nothing has changed since
the last step); the most steps are done; the kernel refused a state that an output needs.
"""

INTEGERS: Final = (
    "kernel", "size", "padded", "inputs", "outputs", "memory", "grid", "rows", "next", "count",
    "most", "steps", "evaluations", "boundary", "within", "stiff", "first", "last",
    "watched", "places", "low", "high",
)  # fmt: skip
NUMBERS: Final = ("t", "t_end", "h", "rtol", "atol", "max_step", "runaway", "t_old")
"""Entries of a Job, eight bytes each: integers and addresses first, then doubles.

``kernel`` is the address of ``int64(int64 states, double **inputs, double **outputs)`` with inputs
t, y, u; ``inputs`` and ``outputs`` are its tables of addresses. ``memory`` has rows of ``padded``
numbers (see ``ROWS``). ``grid`` (count) are times of output, ``next`` the first that is still to
come, ``rows`` (count, padded) where they go. ``first`` to ``last`` are the entries of y that must
stay below ``runaway``. ``places``, ``low``, ``high`` (watched): entries of y and their bounds.
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


class AdaptiveWriter(Writer):
    """Writes the function."""

    def __init__(self, tables: Tables, target: CpuTarget) -> None:
        super().__init__(target)
        self.m = tables

    def text(self, name: str) -> str:
        """LLVM text."""
        for i, what in enumerate((*INTEGERS, *NUMBERS)):
            self.do(f"%{what}.at = getelementptr i64, ptr %job, i64 {i}")
        for kind, words in (
            ("ptr", "kernel inputs outputs memory grid rows places low high"),
            ("i64", "size padded count most stiff first last watched"),
            ("double", "t_end rtol atol max_step runaway"),
        ):
            for what in words.split():
                self.do(f"%{what} = load {kind}, ptr %{what}.at")
        for slot in ("trial", "end"):
            self.do(f"%{slot}.at = alloca double")
        for slot in ("rejected", "switched"):
            self.do(f"%{slot}.at = alloca i1")
        for slot in ("sum0", "sum1"):
            self.do(f"%{slot} = alloca {self.vector}, align 64")
        self.do("%now = load ptr, ptr %inputs")
        self.do(f"store ptr {self.row('stage')}, ptr {self.at('%inputs', 1, 'ptr')}")
        self.enter("step")
        self._step()
        head = f'define i64 @{name}(ptr %job) "stackrealign" {{'
        return self.module(head, "entry:", *self.lines, "}")

    # ---- small pieces ----

    def row(self, what: str, index: int = 0) -> str:
        """Address of a row of the memory."""
        place = (DENSE if what == "F" else ROWS[what]) + index
        return self.at("%memory", self.mul("%padded", place))

    def get(self, slot: str, kind: str = "double") -> LlvmValue:
        return self.typed(kind, f"load {kind}, ptr %{slot}.at")

    def set(self, slot: str, value: LlvmValue) -> None:
        self.do(f"store {value.kind} {value}, ptr %{slot}.at")

    def reset(self, slot: str, literal: str, kind: str) -> None:
        self.set(slot, self.value(literal, kind))

    def scalar(self, intrinsic: str, *args: str | float) -> LlvmValue:
        """A call of an LLVM intrinsic on doubles."""
        name = f"double @llvm.{intrinsic}.f64"
        self.intrinsics.add(f"declare {name}({', '.join(['double'] * len(args))})")
        texts = [x if isinstance(x, str) else double_literal(x) for x in args]
        return self.typed("double", f"call {name}({', '.join(f'double {a}' for a in texts)})")

    def add_to(self, counter: str, amount: int) -> None:
        self.set(counter, self.get(counter, "i64") + amount)

    def each(self, body: Callable[[str], None]) -> None:
        """``body(i)`` for the first entry of every register of a row."""
        self.repeat(body, "0", "%padded", self.width, until="sge")

    def part(self, row: str, i: str) -> LlvmValue:
        """A register of a row, from its entry i on."""
        return self.load(self.at(row, i), 8)

    def keep(self, row: str, i: str, value: str) -> None:
        self.store(value, self.at(row, i), 8)

    def copy(self, source: str, target: str) -> None:
        self.each(lambda i: self.keep(target, i, self.part(source, i)))

    def combined(self, weights: Sequence[float], rates: Sequence[str], i: str) -> LlvmValue:
        """The sum of weights times rates at entry i."""
        total: LlvmValue | None = None
        for weight, rate in zip(weights, rates, strict=False):
            if weight:
                k, x = self.const(weight), self.part(rate, i)
                total = weight * x if total is None else self.multiply_add(k, x, total)
        return self.value(self.const(0.0), self.vector) if total is None else total

    def squares(self, terms: Callable[[str], Iterable[str]]) -> list[LlvmValue]:
        """The sums of the squares of two terms over all entries."""
        for slot in ("sum0", "sum1"):
            self.store(self.const(0.0), f"%{slot}", 64)

        def gather(i: str) -> None:
            for k, x in enumerate(terms(i)):
                old = self.load(f"%sum{k}", 64)
                self.store(self.multiply_add(x, x, old), f"%sum{k}", 64)

        self.each(gather)
        return [self._total(slot) for slot in ("sum0", "sum1")]

    def _total(self, slot: str) -> LlvmValue:
        value = self.load(f"%{slot}", 64)
        lanes = [self.lane(value, k) for k in range(self.width)]
        return reduce(lambda a, b: a + b, lanes)

    def rates(self, time: str, target: str, refused: str) -> None:
        """Evaluate the right-hand side at the stage's y; go elsewhere where it is refused."""
        self.do(f"store double {time}, ptr %now")
        self.do(f"store ptr {target}, ptr %outputs")
        flags = self.put("call i64 %kernel(i64 1, ptr %inputs, ptr %outputs)")
        self.add_to("evaluations", 1)
        self.leave_unless(self.equal(flags, 0), refused)

    def stage(
        self, s: int, K: Sequence[str], origin: str, start: LlvmValue, h: LlvmValue, refused: str
    ) -> None:
        """Rate s of a step from ``start`` at the state in row ``origin``."""
        target, steps = self.row("stage"), self.splat(h)

        def fill(i: str) -> None:
            moved = self.combined(self.m.A[s][:s], K, i)
            self.keep(target, i, self.multiply_add(steps, moved, self.part(origin, i)))

        self.each(fill)
        if s == self.m.stages - 1:
            self.copy(target, self.row("late"))
        time = start + float(self.m.C[s]) * h
        self.rates(self.scalar("minnum", time, self.get("end")), K[s], refused)

    def leave(self, label: str, why: int) -> None:
        self.label(label)
        self.do(f"ret i64 {why}")

    # ---- one step ----

    def _step(self) -> None:
        t = self.get("t")
        size = self.scalar("fabs", t)
        spacing = (size.bits_as("i64") + 1).bits_as("double") - size
        smallest = 10.0 * spacing
        wished = self.scalar("maxnum", self.get("h"), smallest)
        self.set("trial", self.scalar("minnum", wished, "%max_step"))
        self.reset("rejected", "false", "i1")
        K = [self.row("K", s) for s in range(16)]
        y, f, new = self.row("y"), self.row("f"), self.row("new")
        self.copy(f, K[0])
        self.enter("try")
        h = self.get("trial")
        self.fork(h < smallest, "stuck", "long")
        self.leave("stuck", STUCK)
        self.leave("refused", FLAGGED)
        self.label("long")
        end = self.scalar("minnum", t + h, "%t_end")
        self.set("end", end)
        h = end - t
        self.set("trial", h)
        self.reset("switched", "false", "i1")
        for s in range(1, self.m.stages):
            self.stage(s, K, y, t, h, "refused")
            self._watch()
        steps, stage = self.splat(h), self.row("stage")

        def advance(i: str) -> None:
            moved = self.multiply_add(steps, self.combined(self.m.B, K, i), self.part(y, i))
            self.keep(new, i, moved)
            self.keep(stage, i, moved)

        self.each(advance)
        self.rates(end, K[self.m.stages], "refused")
        self._watch()
        error = self._error(K, y, new, h)
        self.fork(error < 1.0, "accept", "reject")
        self.label("reject")
        scaled = self._factor(error)
        finite = error < math.inf
        slower = self.scalar("maxnum", where(finite, scaled, 0.2), 0.2)
        self.set("trial", h * slower)
        self.reset("rejected", "true", "i1")
        self.go("try")
        self._accept(K, error, h, end)

    def _watch(self) -> None:
        """Note whether an entry of the stage's y is not on that side of its bounds on which it is
        at the beginning of the step.
        """
        rows = self.row("stage"), self.row("y")

        def look(i: str) -> None:
            place = self.item("%places", i, "i64")
            now, begun = (self.item(row, place) for row in rows)
            for bound in ("%low", "%high"):
                at = self.item(bound, i)
                passed = (now < at) ^ (begun < at)
                self.set("switched", self.get("switched", "i1") | passed)

        self.count(look, "0", "%watched")

    def _error(self, K: Sequence[str], y: str, new: str, h: LlvmValue) -> LlvmValue:
        """The estimated error by the tolerance."""
        rtol, atol = self.splat("%rtol"), self.splat("%atol")

        def terms(i: str) -> Iterator[str]:
            sizes = [self.call("fabs", self.part(row, i)) for row in (y, new)]
            scale = self.multiply_add(self.call("maxnum", *sizes), rtol, atol)
            for weights in self.m.errors:
                yield self.combined(weights, K, i) / scale

        five, three = self.squares(terms)
        both = five + 0.01 * three
        count = self.value("%size", "i64").to_real()
        root = self.scalar("sqrt", both * count)
        error = h * five / root
        plain = h * self.scalar("sqrt", five / count)
        error = where(self.get("switched", "i1"), plain, error)
        return where(both.equals(0.0), 0.0, error)

    def _factor(self, error: LlvmValue) -> LlvmValue:
        """0.9 / error^(1/8)."""
        for _ in range(3):
            error = self.scalar("sqrt", error)
        return 0.9 / error

    def _accept(self, K: Sequence[str], error: LlvmValue, h: LlvmValue, end: LlvmValue) -> None:
        self.label("accept")
        factor = self.scalar("minnum", 10.0, self._factor(error))
        limited = self.scalar("minnum", 1.0, factor)
        self.set("h", h * where(self.get("rejected", "i1"), limited, factor))
        self._stability(K, h)
        for source, target in (("y", "y_old"), ("f", "f_old"), ("new", "y")):
            self.copy(self.row(source), self.row(target))
        self.copy(K[self.m.stages], self.row("f"))
        self.set("t_old", self.get("t"))
        self.set("t", end)
        self.add_to("steps", 1)
        self.enter("output")
        self._output(K, h, end)
        self.label("after")
        self._refuse_runaway()
        self.fork(end >= "%t_end", "finished", "unfinished")
        self.leave("finished", FINISHED)
        self.label("unfinished")
        self.fork(self.get("boundary", "i64") >= "%stiff", "stiffness", "supple")
        self.leave("stiffness", STIFF)
        self.label("supple")
        self.fork(self.get("steps", "i64") >= "%most", "full", "step")
        self.leave("full", MORE)

    def _stability(self, K: Sequence[str], h: LlvmValue) -> None:
        """Count steps at the boundary of stability; six in a row within it reset the count."""
        pairs = (self.row("new"), self.row("late")), (K[self.m.stages], K[self.m.stages - 1])
        sums = self.squares(lambda i: (self.part(a, i) - self.part(b, i) for a, b in pairs))
        apart, change = (self.scalar("sqrt", total) for total in sums)
        moved = apart > 0.0
        limit = self.m.stable * apart
        fast = h * change > limit
        self.fork(moved & fast, "limited", "accurate")
        self.label("limited")
        self.add_to("boundary", 1)
        self.reset("within", "0", "i64")
        self.go("judged")
        self.label("accurate")
        self.add_to("within", 1)
        self.fork(self.get("within", "i64").equals(6), "reset", "judged")
        self.label("reset")
        self.reset("boundary", "0", "i64")
        self.enter("judged")

    def _refuse_runaway(self) -> None:
        y = self.row("y")

        def look(i: str) -> None:
            speed = self.scalar("fabs", self.item(y, i))
            self.fork(speed < "%runaway", "slow", "fast")
            self.leave("fast", RUNAWAY)
            self.label("slow")

        self.count(look, "%first", "%last")

    # ---- output between the ends ----

    def _output(self, K: Sequence[str], h: LlvmValue, end: LlvmValue) -> None:
        """States at the times of output that this step has reached."""
        old = self.row("y_old")
        reached = end + 1e-9 * h
        start = self.get("t_old")
        self._when_due(reached, "prepare", "after")
        self.label("prepare")
        for s in range(self.m.stages + 1, 16):
            self.stage(s, K, old, start, h, "unseen")
        self._coefficients(K, h)
        self.go("more")
        self.leave("unseen", UNSEEN)
        self.label("more")
        due = self._when_due(reached, "interpolate", "after")
        self.label("interpolate")
        inside = self.scalar("minnum", due, end)
        x = self.scalar("minnum", (inside - start) / h, 1.0)
        share, rest = self.splat(x), self.splat(1.0 - x)
        place = self.get("next", "i64") * "%padded"
        target, F = self.at("%rows", place), [self.row("F", k) for k in range(7)]

        def polynomial(i: str) -> None:
            value: LlvmValue | None = None
            for k, row in enumerate(reversed(F)):
                term = self.part(row, i)
                value = (term if value is None else value + term) * (rest if k % 2 else share)
            assert value is not None
            self.keep(target, i, self.part(old, i) + value)

        self.each(polynomial)
        self.add_to("next", 1)
        self.go("more")

    def _when_due(self, reached: LlvmValue, then: str, otherwise: str) -> LlvmValue:
        """Branch on whether the next time of output is reached; gives that time."""
        following = self.get("next", "i64")
        self.leave_unless(following < "%count", otherwise)
        due = self.item("%grid", following)
        self.fork(due <= reached, then, otherwise)
        return due

    def _coefficients(self, K: Sequence[str], h: LlvmValue) -> None:
        F, steps = [self.row("F", k) for k in range(7)], self.splat(h)
        y, old, f, before = (self.row(x) for x in ("y", "y_old", "f", "f_old"))

        def fill(i: str) -> None:
            way = self.part(y, i) - self.part(old, i)
            first, last = self.part(before, i), self.part(f, i)
            self.keep(F[0], i, way)
            self.keep(F[1], i, steps * first - way)
            both = steps * (first + last)
            self.keep(F[2], i, way + way - both)
            for k, weights in enumerate(self.m.D):
                self.keep(F[3 + k], i, steps * self.combined(weights, K, i))

        self.each(fill)
