"""An embedded Runge-Kutta method with step control as compiled code around any one-state kernel.

``int64 NAME(Job *job)`` advances one state until the end, or until it has something to say. It is
one function for all robots: the right-hand side is called through its address, vectors are rows of
memory, padded with zeros to whole registers. The steps, the error estimate and the interpolation
are those of ``ramify.integrate.dop853``, which describes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from ramify.emit.cpu_target import CpuTarget
from ramify.emit.writer import Writer, double_literal

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

    def get(self, slot: str, kind: str = "double") -> str:
        return self.put(f"load {kind}, ptr %{slot}.at")

    def set(self, slot: str, value: str, kind: str = "double") -> None:
        self.do(f"store {kind} {value}, ptr %{slot}.at")

    def scalar(self, op: str, a: str, b: str) -> str:
        return self.put(f"{op} double {a}, {b}")

    def real(self, intrinsic: str, *args: str) -> str:
        """A call of an LLVM intrinsic on doubles."""
        name = f"double @llvm.{intrinsic}.f64"
        self.intrinsics.add(f"declare {name}({', '.join(['double'] * len(args))})")
        return self.put(f"call {name}({', '.join(f'double {a}' for a in args)})")

    def add_to(self, counter: str, amount: int) -> None:
        self.set(counter, self.add(self.get(counter, "i64"), amount), "i64")

    def each(self, body: Callable[[str], None]) -> None:
        """``body(i)`` for the first entry of every register of a row."""
        self.repeat(body, "0", "%padded", self.width, until="sge")

    def part(self, row: str, i: str) -> str:
        """A register of a row, from its entry i on."""
        return self.load(self.at(row, i), 8)

    def keep(self, row: str, i: str, value: str) -> None:
        self.store(value, self.at(row, i), 8)

    def copy(self, source: str, target: str) -> None:
        self.each(lambda i: self.keep(target, i, self.part(source, i)))

    def combined(self, weights: Sequence[float], rates: Sequence[str], i: str) -> str:
        """The sum of weights times rates at entry i."""
        total = ""
        for weight, rate in zip(weights, rates, strict=False):
            if weight:
                k, x = self.const(weight), self.part(rate, i)
                total = self.multiply_add(k, x, total) if total else self.binary("fmul", k, x)
        return total or self.const(0.0)

    def squares(self, terms: Callable[[str], Iterable[str]]) -> list[str]:
        """The sums of the squares of two terms over all entries."""
        for slot in ("sum0", "sum1"):
            self.store(self.const(0.0), f"%{slot}", 64)

        def gather(i: str) -> None:
            for k, x in enumerate(terms(i)):
                old = self.load(f"%sum{k}", 64)
                self.store(self.multiply_add(x, x, old), f"%sum{k}", 64)

        self.each(gather)
        return [self._total(slot) for slot in ("sum0", "sum1")]

    def _total(self, slot: str) -> str:
        value = self.load(f"%{slot}", 64)
        lanes = [self.lane(value, k) for k in range(self.width)]
        return reduce(lambda a, b: self.scalar("fadd", a, b), lanes)

    def rates(self, time: str, target: str, refused: str) -> None:
        """Evaluate the right-hand side at the stage's y; go elsewhere where it is refused."""
        self.do(f"store double {time}, ptr %now")
        self.do(f"store ptr {target}, ptr %outputs")
        flags = self.put("call i64 %kernel(i64 1, ptr %inputs, ptr %outputs)")
        self.add_to("evaluations", 1)
        self.leave_unless(self.equal(flags, 0), refused)

    def stage(
        self, s: int, K: Sequence[str], origin: str, start: str, h: str, refused: str
    ) -> None:
        """Rate s of a step from ``start`` at the state in row ``origin``."""
        target, steps = self.row("stage"), self.splat(h)

        def fill(i: str) -> None:
            moved = self.combined(self.m.A[s][:s], K, i)
            self.keep(target, i, self.multiply_add(steps, moved, self.part(origin, i)))

        self.each(fill)
        if s == self.m.stages - 1:
            self.copy(target, self.row("late"))
        time = self.scalar(
            "fadd", start, self.scalar("fmul", double_literal(float(self.m.C[s])), h)
        )
        self.rates(self.real("minnum", time, self.get("end")), K[s], refused)

    def leave(self, label: str, why: int) -> None:
        self.label(label)
        self.do(f"ret i64 {why}")

    # ---- one step ----

    def _step(self) -> None:
        t = self.get("t")
        size = self.real("fabs", t)
        bits = self.add(self.put(f"bitcast double {size} to i64"), 1)
        spacing = self.scalar("fsub", self.put(f"bitcast i64 {bits} to double"), size)
        smallest = self.scalar("fmul", double_literal(10.0), spacing)
        wished = self.real("maxnum", self.get("h"), smallest)
        self.set("trial", self.real("minnum", wished, "%max_step"))
        self.set("rejected", "false", "i1")
        K = [self.row("K", s) for s in range(16)]
        y, f, new = self.row("y"), self.row("f"), self.row("new")
        self.copy(f, K[0])
        self.enter("try")
        h = self.get("trial")
        self.fork(self.put(f"fcmp olt double {h}, {smallest}"), "stuck", "long")
        self.leave("stuck", STUCK)
        self.leave("refused", FLAGGED)
        self.label("long")
        end = self.real("minnum", self.scalar("fadd", t, h), "%t_end")
        self.set("end", end)
        h = self.scalar("fsub", end, t)
        self.set("trial", h)
        self.set("switched", "false", "i1")
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
        self.fork(self.put(f"fcmp olt double {error}, {double_literal(1.0)}"), "accept", "reject")
        self.label("reject")
        scaled = self._factor(error)
        finite = self.put(f"fcmp olt double {error}, {double_literal(float('inf'))}")
        slower = self.put(f"select i1 {finite}, double {scaled}, double {double_literal(0.2)}")
        slower = self.real("maxnum", slower, double_literal(0.2))
        self.set("trial", self.scalar("fmul", h, slower))
        self.set("rejected", "true", "i1")
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
                sides = [self.put(f"fcmp olt double {x}, {at}") for x in (now, begun)]
                passed = self.put(f"xor i1 {sides[0]}, {sides[1]}")
                switched_before = self.get("switched", "i1")
                self.set("switched", self.put(f"or i1 {switched_before}, {passed}"), "i1")

        self.count(look, "0", "%watched")

    def _error(self, K: Sequence[str], y: str, new: str, h: str) -> str:
        """The estimated error by the tolerance."""
        rtol, atol = self.splat("%rtol"), self.splat("%atol")

        def terms(i: str) -> Iterator[str]:
            sizes = [self.call("fabs", self.part(row, i)) for row in (y, new)]
            scale = self.multiply_add(self.call("maxnum", *sizes), rtol, atol)
            for weights in self.m.errors:
                yield self.binary("fdiv", self.combined(weights, K, i), scale)

        five, three = self.squares(terms)
        both = self.scalar("fadd", five, self.scalar("fmul", double_literal(0.01), three))
        count = self.put("sitofp i64 %size to double")
        root = self.real("sqrt", self.scalar("fmul", both, count))
        error = self.scalar("fdiv", self.scalar("fmul", h, five), root)
        plain = self.scalar("fmul", h, self.real("sqrt", self.scalar("fdiv", five, count)))
        switched = self.get("switched", "i1")
        error = self.put(f"select i1 {switched}, double {plain}, double {error}")
        none = self.put(f"fcmp oeq double {both}, {double_literal(0.0)}")
        return self.put(f"select i1 {none}, double {double_literal(0.0)}, double {error}")

    def _factor(self, error: str) -> str:
        """0.9 / error^(1/8)."""
        for _ in range(3):
            error = self.real("sqrt", error)
        return self.scalar("fdiv", double_literal(0.9), error)

    def _accept(self, K: Sequence[str], error: str, h: str, end: str) -> None:
        self.label("accept")
        factor = self.real("minnum", double_literal(10.0), self._factor(error))
        limited = self.real("minnum", double_literal(1.0), factor)
        factor = self.put(
            f"select i1 {self.get('rejected', 'i1')}, double {limited}, double {factor}"
        )
        self.set("h", self.scalar("fmul", h, factor))
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
        self.fork(self.put(f"fcmp oge double {end}, %t_end"), "finished", "unfinished")
        self.leave("finished", FINISHED)
        self.label("unfinished")
        stiff = self.put(f"icmp sge i64 {self.get('boundary', 'i64')}, %stiff")
        self.fork(stiff, "stiffness", "supple")
        self.leave("stiffness", STIFF)
        self.label("supple")
        self.fork(self.put(f"icmp sge i64 {self.get('steps', 'i64')}, %most"), "full", "step")
        self.leave("full", MORE)

    def _stability(self, K: Sequence[str], h: str) -> None:
        """Count steps at the boundary of stability; six in a row within it reset the count."""
        pairs = (self.row("new"), self.row("late")), (K[self.m.stages], K[self.m.stages - 1])
        sums = self.squares(
            lambda i: (self.binary("fsub", self.part(a, i), self.part(b, i)) for a, b in pairs)
        )
        apart, change = (self.real("sqrt", total) for total in sums)
        moved = self.put(f"fcmp ogt double {apart}, {double_literal(0.0)}")
        limit = self.scalar("fmul", double_literal(self.m.stable), apart)
        fast = self.put(f"fcmp ogt double {self.scalar('fmul', h, change)}, {limit}")
        self.fork(self.put(f"and i1 {moved}, {fast}"), "limited", "accurate")
        self.label("limited")
        self.add_to("boundary", 1)
        self.set("within", "0", "i64")
        self.go("judged")
        self.label("accurate")
        self.add_to("within", 1)
        self.fork(self.equal(self.get("within", "i64"), 6), "reset", "judged")
        self.label("reset")
        self.set("boundary", "0", "i64")
        self.enter("judged")

    def _refuse_runaway(self) -> None:
        y = self.row("y")

        def look(i: str) -> None:
            speed = self.real("fabs", self.item(y, i))
            self.fork(self.put(f"fcmp olt double {speed}, %runaway"), "slow", "fast")
            self.leave("fast", RUNAWAY)
            self.label("slow")

        self.count(look, "%first", "%last")

    # ---- output between the ends ----

    def _output(self, K: Sequence[str], h: str, end: str) -> None:
        """States at the times of output that this step has reached."""
        old = self.row("y_old")
        reached = self.scalar("fadd", end, self.scalar("fmul", double_literal(1e-9), h))
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
        inside = self.real("minnum", due, end)
        x = self.scalar("fdiv", self.scalar("fsub", inside, start), h)
        x = self.real("minnum", x, double_literal(1.0))
        share, rest = self.splat(x), self.splat(self.scalar("fsub", double_literal(1.0), x))
        place = self.mul(self.get("next", "i64"), "%padded")
        target, F = self.at("%rows", place), [self.row("F", k) for k in range(7)]

        def polynomial(i: str) -> None:
            value = ""
            for k, row in enumerate(reversed(F)):
                term = self.part(row, i)
                value = self.binary("fadd", value, term) if value else term
                value = self.binary("fmul", value, share if k % 2 == 0 else rest)
            self.keep(target, i, self.binary("fadd", self.part(old, i), value))

        self.each(polynomial)
        self.add_to("next", 1)
        self.go("more")

    def _when_due(self, reached: str, then: str, otherwise: str) -> str:
        """Branch on whether the next time of output is reached; gives that time."""
        following = self.get("next", "i64")
        self.leave_unless(self.put(f"icmp slt i64 {following}, %count"), otherwise)
        due = self.item("%grid", following)
        self.fork(self.put(f"fcmp ole double {due}, {reached}"), then, otherwise)
        return due

    def _coefficients(self, K: Sequence[str], h: str) -> None:
        F, steps = [self.row("F", k) for k in range(7)], self.splat(h)
        y, old, f, before = (self.row(x) for x in ("y", "y_old", "f", "f_old"))

        def fill(i: str) -> None:
            way = self.binary("fsub", self.part(y, i), self.part(old, i))
            first, last = self.part(before, i), self.part(f, i)
            self.keep(F[0], i, way)
            self.keep(F[1], i, self.binary("fsub", self.binary("fmul", steps, first), way))
            both = self.binary("fmul", steps, self.binary("fadd", first, last))
            self.keep(F[2], i, self.binary("fsub", self.binary("fadd", way, way), both))
            for k, weights in enumerate(self.m.D):
                self.keep(F[3 + k], i, self.binary("fmul", steps, self.combined(weights, K, i)))

        self.each(fill)
