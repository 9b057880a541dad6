"""The gradient of the cost by the controls, compiled: how far the first-order conditions hold.

With p the gradient of all that follows by the deviations of the next knot, that of a knot over [dx,
du] is h + [1; dq; F]' T' p, where T substitutes dq+ = A dq + B ds+. At a bound of a control only a
gradient that points inside counts.
"""

from __future__ import annotations

from ramify.emit.values import double_literal
from ramify.optimal.pass_writer import PassWriter


class AdjointWriter(PassWriter):
    """Writes the pass: the largest gradient that counts, and the largest part of one."""

    dt: float = 0.0

    @property
    def scratch_size(self) -> int:
        return 2 * self.layout.stride + 8

    def adjoint(self) -> str:
        """LLVM text."""
        self.begin()
        layout, w = self.layout, self.width
        self.p, self.moved = (self.at("%scratch", i * layout.stride) for i in (0, 1))
        for name in ("worst", "scale"):
            self.do(f"%{name} = alloca double")
            self.do(f"store double {double_literal(0.0)}, ptr %{name}")
        for b in range(layout.state_blocks):
            self.store(self.row("%final_value", b * w), self.at(self.p, b * w))
        first = self.sub("%knots", 1)
        self.count(self._knot, first, 0, -1)
        for name, entry in (("worst", "gradient"), ("scale", "gradient_scale")):
            self.write(entry, self.put(f"load double, ptr %{name}"))
        self.do("ret i64 0")
        return self.text("adjoint")

    def _knot(self, k: str) -> None:
        layout, w = self.layout, self.width
        F = self.knot("%slopes", k, layout.rows * layout.stride)
        H = self.knot("%hessian", k, self.hessian.size)
        if layout.moved:
            self._substitute(k)
        p = [self.item(self.p, 1 + layout.moved + i) for i in range(layout.rows)]
        factors = [self.splat(x) for x in p]
        totals: list[str] = []
        for b in range(layout.blocks):
            columns = range(b * w, (b + 1) * w)
            carried = [0 < j <= layout.moved for j in columns]
            total = self.const(0.0)
            if any(carried):
                total = self.chosen(carried, self.row(self.p, b * w), total)
            for i, factor in enumerate(factors):
                total = self.multiply_add(factor, self.row(F, i * layout.stride + b * w), total)
            totals.append(total)
        for b, total in enumerate(totals):
            own = self.hessian_block(H, 0, b)
            self.store(total, self.at(self.moved, b * w))
            if own is not None:
                total = self.binary("fadd", total, own)
            self.store(total, self.at(self.p, b * w))
        for a in range(layout.m):
            self._judge(k, a)

    def _judge(self, k: str, a: int) -> None:
        """The gradient by a control; and its part from all that follows."""
        place = 1 + self.layout.n + a
        slope: str = self.item(self.p, place)
        later = self.item(self.moved, place)
        self._widen("scale", self.size_of(later))
        u = self.item(self.knot("%u", k, self.layout.m), a)
        zero = double_literal(0.0)
        for limit, how, beyond in (("%low", "ole", "ogt"), ("%high", "oge", "olt")):
            at_bound = self.less(how, u, self.item(limit, a))
            outwards = self.less(beyond, slope, zero)
            slope = self.either(self.put(f"and i1 {at_bound}, {outwards}"), zero, slope)
        self._widen("worst", self.size_of(slope))

    def _widen(self, name: str, size: str) -> None:
        old = self.put(f"load double, ptr %{name}")
        larger = self.less("ugt", size, old)
        self.do(f"store double {self.either(larger, size, old)}, ptr %{name}")

    def _substitute(self, k: str) -> None:
        """p over [dq, ds+]: T' p."""
        layout, n, w = self.layout, self.layout.moved, self.width
        turns = self.knot("%turns", k, layout.turn_size)
        old = [self.item(self.p, 1 + j) for j in range(n)]
        balls = {j + i for j in layout.balls for i in range(3)}
        for j in range(n):
            if j not in balls:
                place = self.at(self.p, 1 + n + j)
                new = self.scalar("fmul", double_literal(self.dt), old[j])
                new = self.scalar("fadd", self.put(f"load double, ptr {place}"), new)
                self.do(f"store double {new}, ptr {place}")
        start = 0
        for ball, blocks in layout.turn_blocks.items():
            for column in (*range(1 + ball, 4 + ball), *range(1 + n + ball, 4 + n + ball)):
                place = self.at(self.p, column)
                new = self.put(f"load double, ptr {place}")
                for i in range(3):
                    entry = start + (i * len(blocks) + blocks.index(column // w)) * w + column % w
                    part = self.scalar("fmul", self.item(turns, entry), old[ball + i])
                    new = self.scalar("fadd", new, part)
                self.do(f"store double {new}, ptr {place}")
            start += 3 * len(blocks) * w
