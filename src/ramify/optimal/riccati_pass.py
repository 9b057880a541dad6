"""The backward pass: gains and value functions from the last knot to the first, compiled.

With V the value function of the next knot over [1, dx+], F the slopes of s+ over [1, dx, du] (its
column 0 is the gap) and H the quadratic of the cost,

    dq+ = c + A dq + B ds+     substituted in V gives V' over [1, dq, ds+]
    P = V' [1; dq; F]          Q = H + [1; dq; F]' P
    (Q_uu + R) [k | K] = -[q_u | Q_ux]
    V = Q_xx + (Q_ux - R K)' [k | K].

R is the regularisation times the diagonal of Q_uu. Where k leaves the bounds of the controls, those
at a bound are eliminated and have no feedback: the active set is found by repeated elimination.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ramify.emit.rows import transpose
from ramify.emit.values import double_literal
from ramify.optimal.pass_writer import MemoryFactor, PassWriter

_TRIALS: Final = 40
"""Active sets that are tried at a knot."""


class RiccatiWriter(PassWriter):
    """Writes the backward pass; it returns 1 where Q_uu + R is not positive definite."""

    dt: float = 0.0

    @property
    def _places(self) -> dict[str, int]:
        """Where the parts of the scratch memory begin."""
        layout = self.layout
        states = layout.state_blocks * layout.width
        sizes = {
            "value": states * layout.state_stride,
            "shifted": states * layout.state_stride,
            "products": (1 + layout.n) * layout.stride,
            "controls": layout.m * layout.stride,
            "damped": layout.m * layout.state_stride,
            "step": layout.stride,
            "bounds": 4 * layout.m + 8,
        }
        out, start = {}, 0
        for name, size in sizes.items():
            out[name] = start
            start += -(-size // 8) * 8
        return out | {"end": start}

    @property
    def scratch_size(self) -> int:
        return self._places["end"]

    def backward(self) -> str:
        """LLVM text."""
        self.begin()
        self.memory = {name: self.at("%scratch", place) for name, place in self._places.items()}
        self.do(f"%reg = load double, ptr {self.entry('reg')}")
        layout, value = self.layout, self.memory["value"]
        for i in range((1 + layout.n) * layout.state_blocks):
            self.store(self.row("%final_value", i * self.width), self.at(value, i * self.width))
        first = self.sub("%knots", 1)
        self.count(self._knot, first, 0, -1)
        self.do("ret i64 0")
        self.label("fail")
        self.do("ret i64 1")
        return self.text("backward")

    def _knot(self, k: str) -> None:
        layout = self.layout
        self.F = self.knot("%slopes", k, layout.rows * layout.stride)
        self.H = self.knot("%hessian", k, self.hessian.size)
        self.c = self.knot("%carried", k, layout.moved)
        self.T = self.knot("%turns", k, layout.turn_size)
        self.K = self.knot("%gains", k, layout.m * layout.state_stride)
        self.u = self.knot("%u", k, layout.m)
        self.V = self.memory["value"]
        if layout.moved:
            self._shift_value()
        self._products()
        self._control_rows()
        self._gains()
        self._value()

    # ---- V' ----

    def _state_row(self, base: str, i: int) -> list[str]:
        start = i * self.layout.state_stride
        return [self.row(base, start + b * self.width) for b in range(self.layout.state_blocks)]

    def _added(self, row: list[str], factor: str, other: list[str]) -> list[str]:
        return [self.multiply_add(factor, b, a) for a, b in zip(row, other, strict=True)]

    def _turned(self, ball: int, i: int, column: int) -> str:
        """Entry of [A - 1, B] of a ball, in all lanes."""
        blocks = self.layout.turn_blocks[ball]
        start = self._turn_start(ball, i) + blocks.index(column // self.width) * self.width
        return self.broadcast(self.T, start + column % self.width)

    def _turn_start(self, ball: int, i: int) -> int:
        start = 0
        for j, blocks in self.layout.turn_blocks.items():
            if j == ball:
                return start + i * len(blocks) * self.width
            start += 3 * len(blocks) * self.width
        raise KeyError(ball)

    def _shift_value(self) -> None:
        """V' = T' V T with dq+ = c + A dq + B ds+."""
        layout, n = self.layout, self.layout.moved
        balls = {j + i: j for j in layout.balls for i in range(3)}
        step, shifted = self.const(self.dt), self.memory["shifted"]
        for i in range(1 + layout.n):
            row = self._state_row(self.V, i)
            j = i - 1 if i <= n else i - 1 - n
            if i == 0:
                for r in range(n):
                    row = self._added(
                        row, self.broadcast(self.c, r), self._state_row(self.V, 1 + r)
                    )
            elif j in balls and i <= 2 * n:
                for r in range(3):
                    other = self._state_row(self.V, 1 + balls[j] + r)
                    row = self._added(row, self._turned(balls[j], r, i), other)
            elif n < i <= 2 * n:
                row = self._added(row, step, self._state_row(self.V, 1 + j))
            for b, block in enumerate(self._columns_shifted(row)):
                place = i * layout.state_stride + b * self.width
                self.store(block, self.at(shifted, place))
        self.V = shifted

    def _columns_shifted(self, row: list[str]) -> list[str]:
        """A row of V' from that of T' V: the columns of ds take those of dq times B."""
        layout, n, w = self.layout, self.layout.moved, self.width
        balls = {j + i for j in layout.balls for i in range(3)}
        out = list(row)
        for b in range(layout.state_blocks):
            places = range(b * w - 1 - n, b * w - 1 - n + w)
            factors = [self.dt if 0 <= j < n and j not in balls else 0.0 for j in places]
            if any(factors):
                out[b] = self.multiply_add(
                    self._window(row, b * w - n), self.numbers(factors), out[b]
                )
        for ball, blocks in layout.turn_blocks.items():
            for i in range(3):
                place = 1 + ball + i
                factor = self.lane_of(row[place // w], place % w)
                start = self._turn_start(ball, i)
                for k, b in enumerate(blocks):
                    out[b] = self.multiply_add(factor, self.row(self.T, start + k * w), out[b])
        return out

    def _window(self, row: list[str], start: int) -> str:
        """``width`` columns of a row from any column on; what is outside of it is zero."""
        first, offset = divmod(start, self.width)
        pair = [row[b] if 0 <= b < len(row) else "zeroinitializer" for b in (first, first + 1)]
        if offset == 0:
            return pair[0]
        low, high = pair
        return self.shuffled(low, high, self.order(range(offset, offset + self.width)))

    # ---- P, Q_u ----

    def _products(self) -> None:
        """P: the rows of ds+ over [1, dx, du], those of 1 and dq over [1, dx]."""
        layout, w = self.layout, self.width
        totals: dict[tuple[int, int], str] = {}
        for i in range(1 + layout.n):
            direct = i <= layout.moved
            blocks = range(i // w, layout.state_blocks) if direct else range(layout.blocks)
            for b in blocks:
                totals[i, b] = self._start_of_product(i, b)
        sums = self.sums(
            totals,
            layout.rows,
            lambda i: MemoryFactor(self.at(self.V, i * layout.state_stride + 1 + layout.moved), 1),
            MemoryFactor(self.F, layout.stride),
        )
        for (i, b), value in sums.items():
            self.store(value, self.at(self.memory["products"], i * layout.stride + b * w))

    def _start_of_product(self, i: int, b: int) -> str:
        """V' times [1; dq], a block."""
        layout, w = self.layout, self.width
        kept = [b * w + lane <= layout.moved for lane in range(w)]
        if not any(kept):
            return self.const(0.0)
        block = self.row(self.V, i * layout.state_stride + b * w)
        if not all(kept):
            block = self.chosen(kept, block, self.const(0.0))
        if b == 0 and i and layout.moved:
            gradient = self.item(self.V, i)  # column 0 is that of row 0: c has been added there
            block = self.put(f"insertelement {self.vector} {block}, double {gradient}, i64 0")
        return block

    @property
    def _own_products(self) -> MemoryFactor:
        """The rows of P that belong to ds+."""
        layout = self.layout
        start = (1 + layout.moved) * layout.stride
        return MemoryFactor(self.at(self.memory["products"], start), layout.stride)

    def _control_rows(self) -> None:
        """[q_u, Q_ux, Q_uu]."""
        layout = self.layout
        totals = {
            (a, b): self.hessian_block(self.H, 1 + layout.n + a, b) or self.const(0.0)
            for a in range(layout.m)
            for b in range(layout.blocks)
        }
        sums = self.sums(
            totals,
            layout.rows,
            lambda a: MemoryFactor(self.at(self.F, 1 + layout.n + a), layout.stride),
            self._own_products,
        )
        for (a, b), value in sums.items():
            self.store(value, self.at(self.memory["controls"], a * layout.stride + b * self.width))

    # ---- gains ----

    def _diagonal(self, a: int) -> int:
        return 1 + self.layout.n + a

    def _gains(self) -> None:
        layout, w, base = self.layout, self.width, self.memory["controls"]
        rows = [
            [self.row(base, a * layout.stride + b * w) for b in range(layout.blocks)]
            for a in range(layout.m)
        ]
        regs = []
        for a in range(layout.m):
            diagonal = self.item(base, a * layout.stride + self._diagonal(a))
            regs.append(self.scalar("fmul", "%reg", diagonal))
        solved = self._within_bounds(rows, regs) if self.boxed else self._solved(rows, regs)
        for a in range(layout.m):
            minus = self.splat(self.put(f"fneg double {regs[a]}"))
            for b in range(layout.state_blocks):
                gain = self.negated(solved[a][b])
                place = a * layout.state_stride + b * w
                self.store(gain, self.at(self.K, place))
                self.store(
                    self.multiply_add(minus, gain, rows[a][b]),
                    self.at(self.memory["damped"], place),
                )

    def _solved(self, rows: list[list[str]], regs: list[str]) -> list[list[str]]:
        """(Q_uu + R)^-1 [q_u, Q_ux]."""
        solved, sound = self._eliminated(
            [self._raised(row, regs[a], a) for a, row in enumerate(rows)]
        )
        self.leave_unless(sound, "fail")
        return solved

    def _raised(self, row: list[str], reg: str, a: int) -> list[str]:
        """A row with its diagonal raised."""
        b, lane = divmod(self._diagonal(a), self.width)
        value = self.put(f"extractelement {self.vector} {row[b]}, i64 {lane}")
        value = self.scalar("fadd", value, reg)
        out = list(row)
        out[b] = self.put(f"insertelement {self.vector} {row[b]}, double {value}, i64 {lane}")
        return out

    def _eliminated(self, rows: list[list[str]]) -> tuple[list[list[str]], str]:
        """Gauss-Jordan elimination of the columns of the controls; whether all pivots are
        positive.
        """
        rows, sound = [list(row) for row in rows], "true"
        for a in range(self.layout.m):
            b, lane = divmod(self._diagonal(a), self.width)
            pivot = self.put(f"extractelement {self.vector} {rows[a][b]}, i64 {lane}")
            positive = self.less("ogt", pivot, double_literal(0.0))
            sound = self.put(f"and i1 {sound}, {positive}")
            inverse = self.splat(self.scalar("fdiv", double_literal(1.0), pivot))
            rows[a] = [self.binary("fmul", x, inverse) for x in rows[a]]
            for r in range(self.layout.m):
                if r != a:
                    factor = self.negated(self.lane_of(rows[r][b], lane))
                    rows[r] = self._added(rows[r], factor, rows[a])
        return rows, sound

    # ---- bounds ----

    def _within_bounds(self, rows: list[list[str]], regs: list[str]) -> list[list[str]]:
        """(Q_uu + R)^-1 [q_u, Q_ux] within the bounds of the controls: the row of a control at a
        bound says that it is there.
        """
        m = self.layout.m
        bounds, zero = self.memory["bounds"], double_literal(0.0)
        raised = [self._raised(row, regs[a], a) for a, row in enumerate(rows)]
        for a in range(m):
            now = self.item(self.u, a)
            for start, limit in ((m, "%low"), (2 * m, "%high")):
                room = self.scalar("fsub", self.item(limit, a), now)
                self.do(f"store double {room}, ptr {self.at(bounds, start + a)}")
            self.do(f"store double {zero}, ptr {self.at(bounds, a)}")
        trial = f"trial{self.name()[1:]}"
        rounds = self.at(bounds, 3 * m, "i64")
        self.do(f"store i64 0, ptr {rounds}")
        self.enter(trial)
        states = [self.item(bounds, a) for a in range(m)]
        clamped = [self.less("one", state, zero) for state in states]
        system = []
        for a in range(m):
            below = self.less("olt", states[a], zero)
            bound = self.either(below, self.item(bounds, m + a), self.item(bounds, 2 * m + a))
            system.append(self._clamped_row(raised[a], a, clamped[a], bound))
        solved, sound = self._eliminated(system)
        self.leave_unless(sound, "fail")
        steps = [
            self.put(f"fneg double {self.put(f'extractelement {self.vector} {row[0]}, i64 0')}")
            for row in solved
        ]
        changed = self._new_states(raised, states, clamped, steps)
        done = self.put(f"load i64, ptr {rounds}")
        self.do(f"store i64 {self.add(done, 1)}, ptr {rounds}")
        more = self.put(f"and i1 {changed}, {self.test('slt', done, _TRIALS)}")
        ready = f"{trial}.done"
        self.fork(more, trial, ready)
        self.label(ready)
        return solved

    def _clamped_row(self, row: list[str], a: int, clamped: str, bound: str) -> list[str]:
        """The row of a control, or that of one that is at a bound."""
        out, diagonal = [], self._diagonal(a)
        for b, block in enumerate(row):
            unit = [float(b * self.width + lane == diagonal) for lane in range(self.width)]
            fixed = self.numbers(unit)
            if b == 0:
                minus = self.put(f"fneg double {bound}")
                fixed = self.put(f"insertelement {self.vector} {fixed}, double {minus}, i64 0")
            out.append(
                self.put(f"select i1 {clamped}, {self.vector} {fixed}, {self.vector} {block}")
            )
        return out

    def _new_states(
        self, raised: list[list[str]], states: Sequence[str], clamped: list[str], steps: list[str]
    ) -> str:
        """The next active set: whether it is another one."""
        layout, m, w = self.layout, self.layout.m, self.width
        bounds, step, zero = self.memory["bounds"], self.memory["step"], double_literal(0.0)
        for b in range(layout.blocks):
            self.store(self.const(0.0), self.at(step, b * w))
        self.do(f"store double {double_literal(1.0)}, ptr {step}")
        for a in range(m):
            self.do(f"store double {steps[a]}, ptr {self.at(step, self._diagonal(a))}")
        changed = "false"
        for a in range(m):
            slope = self.const(0.0)
            for b, block in enumerate(raised[a]):
                slope = self.multiply_add(block, self.row(step, b * w), slope)
            slope = self.total(slope)
            pushed = self.scalar("fmul", slope, states[a])  # into the bound while negative
            stays = self.less("olt", pushed, zero)
            outside = self.either(
                self.less("ogt", steps[a], self.item(bounds, 2 * m + a)), double_literal(1.0), zero
            )
            outside = self.either(
                self.less("olt", steps[a], self.item(bounds, m + a)), double_literal(-1.0), outside
            )
            state = self.either(clamped[a], self.either(stays, states[a], zero), outside)
            self.do(f"store double {state}, ptr {self.at(bounds, a)}")
            other = self.less("one", state, states[a])
            changed = self.put(f"or i1 {changed}, {other}")
        return changed

    # ---- V ----

    def _value(self) -> None:
        """V = Q_xx + (Q_ux - R K)' [k | K] in square tiles; those below the diagonal follow."""
        layout, w = self.layout, self.width
        for tile in range(layout.state_blocks):
            rows = range(tile * w, min((tile + 1) * w, 1 + layout.n))
            for b in range(tile, layout.state_blocks):
                self._store_tile(tile, b, self._tile(rows, b))

    def _tile(self, rows: range, b: int) -> list[str]:
        layout, w = self.layout, self.width
        totals: dict[tuple[int, int], str] = {}
        for i in rows:
            total = self.hessian_block(self.H, i, b)
            if i <= layout.moved:
                product = self.row(self.memory["products"], i * layout.stride + b * w)
                total = product if total is None else self.binary("fadd", total, product)
            totals[i, b] = total or self.const(0.0)
        totals = self.sums(
            totals, layout.rows, lambda i: MemoryFactor(self.at(self.F, i), layout.stride),
            self._own_products,
        )  # fmt: skip
        damped, K = self.memory["damped"], self.K
        lead = {key: value for key, value in totals.items() if key[0] == 0}
        rest = {key: value for key, value in totals.items() if key[0]}
        if lead:  # the gradient: k may be at a bound, where K is zero
            totals |= self.sums(
                lead, layout.m, lambda i: MemoryFactor(K, layout.state_stride),
                MemoryFactor(damped, layout.state_stride),
            )  # fmt: skip
        if rest:
            totals |= self.sums(
                rest, layout.m, lambda i: MemoryFactor(self.at(damped, i), layout.state_stride),
                MemoryFactor(K, layout.state_stride),
            )  # fmt: skip
        return [totals[i, b] for i in rows] + ["zeroinitializer"] * (w - len(rows))

    def _store_tile(self, tile: int, b: int, rows: list[str]) -> None:
        """A tile and its mirror image; one on the diagonal is made symmetric."""
        layout, w, value = self.layout, self.width, self.memory["value"]
        mirrored = transpose(self, rows)
        if tile == b:
            half = self.const(0.5)
            both: list[str] = [
                self.binary("fmul", half, self.binary("fadd", x, y))
                for x, y in zip(rows, mirrored, strict=True)
            ]
            if tile == 0:
                first = [lane == 0 for lane in range(w)]
                both = [rows[0], *(
                    self.chosen(first, mirrored[i], both[i]) for i in range(1, w)
                )]  # fmt: skip
            rows = both
        for i, row in enumerate(rows):
            self.store(row, self.at(value, (tile * w + i) * layout.state_stride + b * w))
        if tile != b:
            for i, row in enumerate(mirrored):
                self.store(row, self.at(value, (b * w + i) * layout.state_stride + tile * w))
