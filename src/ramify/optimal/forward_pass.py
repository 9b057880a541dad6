"""The passes from the first knot to the last, compiled: the step that the gains predict, and trial
trajectories with several step lengths, one a lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ramify.emit.values import double_literal
from ramify.emit.vector import emit
from ramify.optimal.pass_writer import PassWriter
from ramify.trace.program import Program

LENGTHS: Final = 8
"""Step lengths that a pass tries: 1, 1/2, 1/4 …"""


class LinearWriter(PassWriter):
    """Writes the pass of the linear model: DJ, the slope of the cost along its step z, and z'Hz."""

    dt: float = 0.0
    scratch_size = 0

    def linear(self) -> str:
        """LLVM text. z = [1, dx, du] stays in registers, two sums with it."""
        self.begin()
        layout, w = self.layout, self.width
        first = self.numbers([1.0, *[0.0] * (w - 1)])
        none = self.const(0.0)
        carried = [first, *[none] * (layout.blocks - 1), none, none]
        *z, slope, curve = self.repeat(self._knot, "0", "%knots", carried=carried)
        states, last = layout.state_stride, 1 + layout.n
        blocks = {
            (i, b): self.row("%final_value", i * states + b * w)
            for i in range(last)
            for b in range(layout.state_blocks)
        }
        z = z[: layout.state_blocks]
        slope = self._added(slope, [(blocks[0, b], z[b]) for b in range(len(z))])
        curve = self._quadratic(curve, blocks, z, lambda i, j: float(0 < j < last))
        for name, value in (("DJ", slope), ("zHz", curve)):
            self.write(name, self.total(value))
        self.do("ret i64 0")
        return self.text("linear")

    def _added(self, total: str, pairs: Sequence[tuple[str, str]]) -> str:
        for a, b in pairs:
            total = self.multiply_add(a, b, total)
        return total

    def _dot(self, pairs: Sequence[tuple[str, str]]) -> str:
        return self.total(self._added(self.const(0.0), pairs))

    def _entry(self, z: Sequence[str], i: int) -> str:
        """A number of z."""
        return self.put(f"extractelement {self.vector} {z[i // self.width]}, i64 {i % self.width}")

    def _set(self, z: list[str], i: int, value: str) -> None:
        b, lane = divmod(i, self.width)
        z[b] = self.put(f"insertelement {self.vector} {z[b]}, double {value}, i64 {lane}")

    def _quadratic(
        self,
        total: str,
        blocks: dict[tuple[int, int], str],
        z: Sequence[str],
        weight: Callable[[int, int], float],
    ) -> str:
        """total + z' H z over some blocks of rows i > 0, each entry with its weight."""
        sums: dict[int, str] = {}
        for (i, b), block in blocks.items():
            weights = [weight(i, b * self.width + lane) for lane in range(self.width)]
            if i == 0 or not any(weights):
                continue
            if any(x != 1.0 for x in weights):
                block = self.binary("fmul", block, self.numbers(weights))
            factor = self.lane_of(z[i // self.width], i % self.width)
            sums[b] = self.multiply_add(factor, block, sums.get(b, self.const(0.0)))
        return self._added(total, [(x, z[b]) for b, x in sums.items()])

    def _knot(self, k: str, *values: str) -> list[str]:
        layout, w = self.layout, self.width
        n, m, states = layout.n, layout.m, layout.state_stride
        *before, slope, curve = values
        gains = self.knot("%gains", k, m * states)
        H = self.knot("%hessian", k, self.hessian.size)
        F = self.knot("%slopes", k, layout.rows * layout.stride)
        z = list(before)
        for a in range(m):
            rows = [self.row(gains, a * states + b * w) for b in range(layout.state_blocks)]
            self._set(z, 1 + n + a, self._dot(list(zip(rows, before, strict=False))))
        present = {
            key: block
            for key in self.hessian.blocks
            if (block := self.hessian_block(H, *key)) is not None
        }
        lead = [(present[0, b], z[b]) for b in range(layout.blocks) if (0, b) in present]
        slope = self._added(slope, lead)
        curve = self._quadratic(curve, present, z, self._weight)
        after = [self.numbers([1.0, *[0.0] * (w - 1)]), *[self.const(0.0)] * (layout.blocks - 1)]
        changes = []
        for i in range(layout.rows):
            row = [self.row(F, i * layout.stride + b * w) for b in range(layout.blocks)]
            changes.append(self._dot(list(zip(row, z, strict=True))))
        if layout.moved:
            self._moved(k, z, changes, after)
        for i, change in enumerate(changes):
            self._set(after, 1 + layout.moved + i, change)
        return [*after, slope, curve]

    def _weight(self, i: int, j: int) -> float:
        """How often an entry of the stored blocks counts: off the diagonal tiles, twice."""
        n, w = self.layout.n, self.width
        if j == 0 or j > n + self.layout.m:
            return 0.0
        if i > n:
            return 2.0 if j <= n else 1.0
        return (1.0 if j // w == i // w else 2.0) if j <= n else 0.0

    def _moved(self, k: str, z: Sequence[str], changes: Sequence[str], after: list[str]) -> None:
        """dq+ = c + A dq + B ds+."""
        layout, n, w = self.layout, self.layout.moved, self.width
        c, turns = self.knot("%carried", k, n), self.knot("%turns", k, layout.turn_size)
        balls = {j + i: (j, i) for j in layout.balls for i in range(3)}
        starts, start = {}, 0
        for ball, blocks in layout.turn_blocks.items():
            starts[ball] = start
            start += 3 * len(blocks) * w
        for j in range(n):
            total = self.scalar("fadd", self.item(c, j), self._entry(z, 1 + j))
            if j not in balls:
                parts = [(double_literal(self.dt), changes[j])]
            else:
                ball, i = balls[j]
                blocks = layout.turn_blocks[ball]
                sources = {1 + ball + r: self._entry(z, 1 + ball + r) for r in range(3)}
                sources |= {1 + n + ball + r: changes[ball + r] for r in range(3)}
                parts = []
                for column, source in sources.items():
                    place = starts[ball] + (i * len(blocks) + blocks.index(column // w)) * w
                    parts.append((self.item(turns, place + column % w), source))
            for factor, source in parts:
                total = self.scalar("fadd", total, self.scalar("fmul", factor, source))
            self._set(after, 1 + j, total)


class ForwardWriter(PassWriter):
    """Writes the pass of the machine itself, from the programs of a knot and of the last one."""

    def forward(self, knot: Program, last: Program) -> str:
        """LLVM text."""
        self.begin()
        self.program, self.last = knot, last
        self.sizes = {port.name: port.size for port in knot.inputs}
        self.do(f"%largest = alloca {self.vector}, align 64")
        self.do(f"%sum = alloca {self.vector}, align 64")
        self.count(self._lanes, "0", LENGTHS // self.width)
        self.do("ret i64 0")
        return self.text("forward")

    def _lanes(self, group: str) -> None:
        """A group of as many step lengths as there are lanes."""
        w, nx, m = self.width, self.sizes["x"], self.sizes["u"]
        knots = self.add("%knots", 1)
        self.trial_x = self.at("%trial_x", self.mul(self.mul(group, knots), nx * w))
        self.trial_u = self.at("%trial_u", self.mul(self.mul(group, "%knots"), m * w))
        self.length = self.row_at("%lengths", self.mul(group, w))
        for slot in ("%largest", "%sum"):
            self.store(self.const(0.0), slot, 64)
        for i in range(nx):
            self.store(self.broadcast("%x", i), self.at(self.trial_x, i * w))
        self.count(self._knot, "0", "%knots")
        self.new = self.at(self.trial_x, self.mul("%knots", nx * w))
        self.parameters = self.knot("%p", "%knots", self.sizes["p"])
        (cost,) = self._run(
            self.last, [lambda i: self.row(self.new, i * w), self._splat(self.parameters)]
        )[0]
        total = self.binary("fadd", self.load("%sum", 64), cost)
        huge = self.compare("uge", self.load("%largest", 64), self.const(self.angle_limit))
        total = self.pick(huge, self.const(float("nan")), total)
        self.store(total, self.at("%trial_cost", self.mul(group, w)))

    def row_at(self, base: str, index: str) -> str:
        return self.load(self.at(base, index))

    def _splat(self, base: str) -> Callable[[int], str]:
        return lambda i: self.broadcast(base, i)

    def _knot(self, k: str) -> None:
        layout, w, sizes = self.layout, self.width, self.sizes
        nx, m, n = sizes["x"], sizes["u"], layout.n
        new = self.at(self.trial_x, self.mul(k, nx * w))
        gains = self.knot("%gains", k, m * layout.state_stride)

        def gain(i: int) -> str:
            a, j = divmod(i, 1 + n)
            return self.broadcast(gains, a * layout.state_stride + j)

        symbols: list[Callable[[int], str]] = [
            lambda i: self.row(new, i * w),
            self._splat(self.knot("%x", k, nx)),
            self._splat(self.knot("%u", k, m)),
            gain,
            self._splat(self.knot("%gap", k, n)),
            lambda _: self.length,
            self._splat(self.knot("%p", k, sizes["p"])),
            self._splat("%low"),
            self._splat("%high"),
        ]
        after, controls, (cost,) = self._run(self.program, symbols)
        following = self.at(new, nx * w)
        for i, value in enumerate(after):
            self.store(value, self.at(following, i * w))
        trial_u = self.at(self.trial_u, self.mul(k, m * w))
        for i, value in enumerate(controls):
            self.store(value, self.at(trial_u, i * w))
        self.store(self.binary("fadd", self.load("%sum", 64), cost), "%sum", 64)

    def _run(self, program: Program, symbols: list[Callable[[int], str]]) -> list[list[str]]:
        """The results of a program, port by port; angles are watched."""
        nodes = [node for port in program.results for node in port]
        values = emit(
            self, program.graph, nodes, lambda name: symbols[name[0]](name[1]), self._watch
        )
        return [[values[node] for node in port] for port in program.results]

    def _watch(self, angle: str) -> None:
        old = self.load("%largest", 64)
        self.store(self.call("maximum", old, self.call("fabs", angle)), "%largest", 64)
