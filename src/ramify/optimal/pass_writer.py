"""What the compiled passes over the knots share: the table of a job, rows of memory, sums of
products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ramify.emit.cpu_target import CpuTarget
from ramify.emit.values import double_literal
from ramify.emit.writer import Writer
from ramify.optimal.knot_layout import HessianBlocks, KnotLayout

POINTERS: Final = (
    "x", "u", "p", "low", "high", "slopes", "hessian", "cost", "gap", "carried", "turns",
    "final_value", "final_cost", "gains", "scratch", "trial_x", "trial_u", "trial_cost",
    "lengths", "history", "kernel", "kernel_in", "kernel_out", "final", "final_in", "final_out",
)  # fmt: skip
INTEGERS: Final = ("knots", "most", "count", "rounds")
NUMBERS: Final = ("reg", "tolerance", "J", "DJ", "zHz", "gap_size", "gradient", "gradient_scale")
JOB: Final = (*POINTERS, *INTEGERS, *NUMBERS)
"""Entries of a job, eight bytes each.

``kernel`` and ``final`` are the programs of the derivatives, with their tables of arrays. Arrays
have a row for each knot. ``lengths`` are the step lengths that a forward pass tries; ``trial_x``,
``trial_u`` and ``trial_cost`` its trajectories, lane by lane. ``count`` iterations are done, and
may become ``most``; ``history`` has a row of ``HISTORY`` numbers for each.
"""
HISTORY: Final = ("cost", "gap", "slope", "curvature", "length", "regularisation")
_LOADED: Final = 20
"""Vectors that a loop sums up at once."""
_UNROLLED: Final = 8
"""Terms of a sum that are written out; more are a loop."""


class MemoryFactor(NamedTuple):
    """Memory that the terms of a sum read: an address, and the distance from term to term."""

    base: str
    step: int


class PassWriter(Writer):
    """Writes a function ``int64 NAME(ptr job)``."""

    def __init__(
        self, target: CpuTarget, layout: KnotLayout, hessian: HessianBlocks, boxed: bool
    ) -> None:
        super().__init__(target)
        self.layout, self.hessian, self.boxed = layout, hessian, boxed

    # ---- the job ----

    def begin(self) -> None:
        """Read the addresses of a job."""
        for i, name in enumerate(POINTERS):
            self.do(f"%{name} = load ptr, ptr {self.at('%job', i, 'i64')}")
        self.do(f"%knots = load i64, ptr {self.entry('knots')}")

    def entry(self, name: str) -> str:
        """The address of an entry of the job."""
        return self.at("%job", JOB.index(name), "i64")

    def read(self, name: str, kind: str = "double") -> str:
        return self.put(f"load {kind}, ptr {self.entry(name)}")

    def write(self, name: str, value: str, kind: str = "double") -> None:
        self.do(f"store {kind} {value}, ptr {self.entry(name)}")

    def knot(self, base: str, k: str, size: int) -> str:
        """The row of a knot."""
        return self.at(base, self.mul(k, size))

    # ---- numbers ----

    def scalar(self, op: str, a: str, b: str) -> str:
        return self.put(f"{op} double {a}, {b}")

    def less(self, how: str, a: str, b: str) -> str:
        return self.put(f"fcmp {how} double {a}, {b}")

    def either(self, condition: str, a: str, b: str) -> str:
        return self.put(f"select i1 {condition}, double {a}, double {b}")

    def size_of(self, x: str) -> str:
        self.intrinsics.add("declare double @llvm.fabs.f64(double)")
        return self.put(f"call double @llvm.fabs.f64(double {x})")

    def total(self, vector: str) -> str:
        """The sum of the lanes."""
        name = f"@llvm.vector.reduce.fadd.{self.suffix}"
        self.intrinsics.add(f"declare double {name}(double, {self.vector})")
        return self.put(f"call reassoc double {name}(double 0.0, {self.vector} {vector})")

    # ---- vectors ----

    def broadcast(self, base: str, index: int | str) -> str:
        return self.splat(self.item(base, index))

    def row(self, base: str, index: int) -> str:
        """A block of numbers."""
        return self.load(self.at(base, index))

    def lane_of(self, vector: str, lane: int) -> str:
        """A lane in all lanes."""
        return self.shuffled(vector, "poison", self.order([lane] * self.width))

    def order(self, lanes: Sequence[int]) -> str:
        return f"<{', '.join(f'i32 {i}' for i in lanes)}>"

    def numbers(self, values: Sequence[float]) -> str:
        return f"<{', '.join(f'double {double_literal(x)}' for x in values)}>"

    def chosen(self, lanes: Sequence[bool], a: str, b: str) -> str:
        """a in some lanes, b in the others."""
        mask = f"<{', '.join(f'i1 {int(x)}' for x in lanes)}>"
        return self.put(f"select {self.truth} {mask}, {self.vector} {a}, {self.vector} {b}")

    def hessian_block(self, base: str, i: int, b: int) -> str | None:
        """A block of the running cost's Hessian; None for zeros."""
        block = self.hessian.blocks[i, b]
        if block is None:
            return None
        return self.row(base, block) if isinstance(block, int) else self.numbers(block)

    def sums(
        self,
        totals: dict[tuple[int, int], str],
        count: int,
        coefficient: Callable[[int], MemoryFactor],
        vector: MemoryFactor,
    ) -> dict[tuple[int, int], str]:
        """totals[i, b] + sum over k < count of coefficient(i)[k] times block b of vector row k."""
        out: dict[tuple[int, int], str] = {}
        keys, group = list(totals), list[tuple[int, int]]()
        for i in dict.fromkeys(key[0] for key in keys):
            row = [key for key in keys if key[0] == i]
            if group and len(group) + len(row) > _LOADED:
                out |= self._group(group, totals, count, coefficient, vector)
                group = []
            group += row
        return out | self._group(group, totals, count, coefficient, vector)

    def _group(
        self,
        keys: Sequence[tuple[int, int]],
        totals: dict[tuple[int, int], str],
        count: int,
        coefficient: Callable[[int], MemoryFactor],
        vector: MemoryFactor,
    ) -> dict[tuple[int, int], str]:
        rows = {i: coefficient(i) for i in dict.fromkeys(i for i, _ in keys)}
        blocks = dict.fromkeys(b for _, b in keys)

        def add(k: str | int, *values: str) -> list[str]:
            def place(step: int) -> str | int:
                return k * step if isinstance(k, int) else self.mul(k, step)

            start = self.at(vector.base, place(vector.step))
            loaded = {b: self.row(start, b * self.width) for b in blocks}
            factors = {i: self.broadcast(f.base, place(f.step)) for i, f in rows.items()}
            return [
                self.multiply_add(factors[i], loaded[b], value)
                for (i, b), value in zip(keys, values, strict=True)
            ]

        values = [totals[key] for key in keys]
        if count <= _UNROLLED:
            for k in range(count):
                values = add(k, *values)
        else:
            values = self.repeat(add, "0", count, carried=values)
        return dict(zip(keys, values, strict=True))

    def text(self, name: str) -> str:
        """The function, without the declarations it needs."""
        return self.function(name, "job", first="")
