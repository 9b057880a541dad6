"""Iterations of the solver, compiled: derivatives, backward pass, trial steps, and which of them is
taken.

A step of length a is expected to change the cost by e(a) = a DJ + a^2 z'Hz / 2. While gaps are open
it is accepted where the change is at most e / 10, or 2 e where the cost is expected to rise; with
all gaps closed where it falls by at least 1e-4 of its slope. The regularisation falls after long
steps and rises after short or failed ones.
"""

from __future__ import annotations

from typing import Final

from ramify.emit.values import double_literal
from ramify.optimal.forward_pass import LENGTHS
from ramify.optimal.pass_writer import HISTORY, PassWriter

CONVERGED, MORE, NO_DESCENT, NOT_FINITE, SINGULAR = range(5)
"""Why the function returned."""

LEAST: Final = 1e-9
MOST: Final = 1e10
"""Bounds of the regularisation."""
TRUSTED: Final = 1e-6
"""The largest regularisation with which a small step proves convergence."""
_ROUNDING: Final = 1e-14
"""The share of a cost that may be lost in its sum."""
_PASSES: Final = 60
"""Backward passes without an accepted step."""


class IterationWriter(PassWriter):
    """Writes ``iterate``, ``evaluate``, ``accept`` and ``take``."""

    x_size: int = 0

    def iterate(self) -> str:
        """LLVM text: iterations until something is to be reported."""
        self.begin()
        self.enter("derive")
        self.write("rounds", "0", "i64")
        flags = self.put("call i64 @evaluate(ptr %job)")
        self.leave_unless(self.equal(flags, 0), "undefined")
        self.enter("solve")
        rounds = self.read("rounds", "i64")
        self.leave_if(self.test("sgt", rounds, _PASSES), "stuck")
        self.write("rounds", self.add(rounds, 1), "i64")
        failed = self.put("call i64 @backward(ptr %job)")
        self.fork(self.equal(failed, 0), "solved", "raise.singular")
        self.label("raise.singular")
        self._raise_regularisation("singular", "solve")
        self.label("solved")
        self.do("call i64 @linear(ptr %job)")
        slope, curve = self.read("DJ"), self.read("zHz")
        expected = self.scalar("fadd", slope, self.scalar("fmul", double_literal(0.5), curve))
        cost, gap = self.read("J"), self.read("gap_size")
        scale = self.scalar("fadd", double_literal(1.0), self.size_of(cost))
        least = self.scalar("fmul", self.read("tolerance"), scale)
        small = self.less("ole", self.put(f"fneg double {expected}"), least)
        closed = self.less("ole", gap, double_literal(0.0))
        self.fork(self.put(f"and i1 {small}, {closed}"), "near", "far")
        self.label("near")
        reg = self.read("reg")
        self.leave_if(self.less("ole", reg, double_literal(TRUSTED)), "converged")
        self.write("reg", self.scalar("fmul", reg, double_literal(0.1)))
        self.go("solve")
        self.label("far")
        self.do("call i64 @forward(ptr %job)")
        lane = self.put("call i64 @accept(ptr %job)")
        self.leave_if(self.test("sge", lane, 0), "accepted")
        self._raise_regularisation("stuck", "solve")
        self.label("accepted")
        self.write_history(lane)
        self.do(f"call i64 @take(ptr %job, i64 {lane})")
        self._adapt_regularisation(lane)
        done = self.add(self.read("count", "i64"), 1)
        self.write("count", done, "i64")
        self.fork(self.test("sge", done, self.read("most", "i64")), "more", "derive")
        for label, reason in (
            ("converged", CONVERGED), ("more", MORE), ("stuck", NO_DESCENT),
            ("undefined", NOT_FINITE), ("singular", SINGULAR),
        ):  # fmt: skip
            self.label(label)
            self.do(f"ret i64 {reason}")
        return self.text("iterate")

    def evaluate(self) -> str:
        """LLVM text: derivatives, cost and largest gap of the trajectory; gives flags of what is
        not finite.
        """
        self.begin()
        for name in ("sum", "gaps"):
            self.do(f"%{name} = alloca double")
        flags = self.put("call i64 %kernel(i64 %knots, ptr %kernel_in, ptr %kernel_out)")
        more = self.put("call i64 %final(i64 1, ptr %final_in, ptr %final_out)")
        self._measure()
        flags = self.put(f"or i64 {flags}, {more}")
        self.do(f"ret i64 {self.put(f'and i64 {flags}, 3')}")
        return self.text("evaluate")

    def _measure(self) -> None:
        """The cost of the trajectory, and its largest gap."""
        self.do(f"store double {self.item('%final_cost', 0)}, ptr %sum")
        self.do(f"store double {double_literal(0.0)}, ptr %gaps")

        def add(k: str) -> None:
            total = self.scalar("fadd", self.put("load double, ptr %sum"), self.item("%cost", k))
            self.do(f"store double {total}, ptr %sum")

        def widen(i: str) -> None:
            size, old = self.size_of(self.item("%gap", i)), self.put("load double, ptr %gaps")
            self.do(
                f"store double {self.either(self.less('ogt', size, old), size, old)}, ptr %gaps"
            )

        self.count(add, "0", "%knots")
        self.count(widen, "0", self.mul("%knots", self.layout.n))
        self.write("J", self.put("load double, ptr %sum"))
        self.write("gap_size", self.put("load double, ptr %gaps"))

    def _raise_regularisation(self, give_up: str, again: str) -> None:
        raised = self.scalar("fmul", self.read("reg"), double_literal(10.0))
        least = double_literal(LEAST)
        raised = self.either(self.less("olt", raised, least), least, raised)
        self.leave_if(self.less("ogt", raised, double_literal(MOST)), give_up)
        self.write("reg", raised)
        self.go(again)

    def _adapt_regularisation(self, lane: str) -> None:
        """Down by ten where the step was at least 1/2, up by ten where it was at most 1/32."""
        reg, least = self.read("reg"), double_literal(LEAST)
        lower, higher = (self.scalar("fmul", reg, double_literal(k)) for k in (0.1, 10.0))
        lower = self.either(self.less("olt", lower, least), least, lower)
        lower = self.either(self.less("olt", reg, least), reg, lower)
        new = self.either(self.test("sle", lane, 1), lower, reg)
        self.write("reg", self.either(self.test("sge", lane, 5), higher, new))

    def write_history(self, lane: str) -> None:
        row = self.knot("%history", self.read("count", "i64"), len(HISTORY))
        values = [
            self.read("J"), self.read("gap_size"), self.read("DJ"), self.read("zHz"),
            self.item("%lengths", lane), self.read("reg"),
        ]  # fmt: skip
        for i, value in enumerate(values):
            self.do(f"store double {value}, ptr {self.at(row, i)}")

    def accept(self) -> str:
        """LLVM text: the place of the first step length that is accepted, -1 for none."""
        self.begin()
        J, slope, curve = self.read("J"), self.read("DJ"), self.read("zHz")
        closed = self.less("ole", self.read("gap_size"), double_literal(0.0))
        slack = self.scalar("fmul", double_literal(_ROUNDING), self.size_of(J))
        for i in range(LENGTHS):
            a = double_literal(2.0**-i)
            first = self.scalar("fmul", a, slope)
            second = self.scalar("fmul", double_literal(0.5 * 4.0**-i), curve)
            expected = self.scalar("fadd", first, second)
            rises = self.less("ogt", expected, double_literal(0.0))
            share = self.either(rises, double_literal(2.0), double_literal(0.1))
            bound = self.scalar("fmul", share, expected)
            bound = self.either(closed, self.scalar("fmul", double_literal(1e-4), first), bound)
            change = self.scalar("fsub", self.item("%trial_cost", i), J)
            change = self.scalar("fsub", change, slack)
            self.fork(self.less("ole", change, bound), f"take{i}", f"next{i}")
            self.label(f"take{i}")
            self.do(f"ret i64 {i}")
            self.label(f"next{i}")
        self.do("ret i64 -1")
        return self.text("accept")

    def take(self) -> str:
        """LLVM text: the trajectory of a step length becomes that of the problem."""
        self.begin()
        w, nx, m = self.width, self.x_size, self.layout.m
        group = self.put(f"sdiv i64 %lane, {w}")
        lane = self.put(f"srem i64 %lane, {w}")
        knots = self.add("%knots", 1)
        for name, count, size in (("x", knots, nx), ("u", "%knots", m)):
            rows = self.mul(count, size)
            source = self.at(f"%trial_{name}", self.add(self.mul(self.mul(group, rows), w), lane))

            def copy(i: str, source: str = source, name: str = name) -> None:
                value = self.item(source, self.mul(i, w))
                self.do(f"store double {value}, ptr {self.at(f'%{name}', i)}")

            self.count(copy, "0", rows)
        self.do("ret i64 0")
        lines = self.text("take")
        return lines.replace("(ptr noalias %job)", "(ptr noalias %job, i64 %lane)", 1)
