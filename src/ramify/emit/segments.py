"""Cuts long straight-line code into segments that fit the cache of decoded instructions.

A processor executes instructions faster than it decodes them, and remembers a few thousand that it
has decoded. So longer code is cut into segments, and each runs over a strip of several blocks of
rows before the next one follows. Values that a later segment reads wait in memory; they are read
again rather than kept in a register for long, as the compiler would only store them a second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ramify.emit.cpu_target import CpuTarget
from ramify.emit.fusion import Fusion
from ramify.emit.guards import Guard
from ramify.emit.rows import load_block, row_pointers, store_block
from ramify.emit.values import where
from ramify.emit.vector import Emission
from ramify.emit.writer import Writer
from ramify.trace.program import Program

SEGMENT: Final = 1000
"""Operations of a segment; with their moves and addresses a processor remembers twice as many."""
_STRIP: Final = 32  # rows that a segment runs over; at least two blocks
_REREAD_AFTER: Final = 12  # items after which a value of an earlier segment is loaded again
_SINE_COST: Final = 30  # operations of a sine with its cosine
_PER_RESULT: Final = 8  # operations per result, at least: below, writing takes most time
_MOST_RESULTS: Final = 1000  # results: those of a strip must stay in the cache


@dataclass(frozen=True)
class ResultBlock:
    """Results that are stored together: ``width`` columns of an output, or what is left of it."""

    port: int
    start: int
    nodes: tuple[int, ...]


def result_blocks(program: Program, width: int, skip_zero_blocks: bool) -> list[ResultBlock]:
    """All results in blocks; ``skip_zero_blocks``: without blocks of zeros."""
    blocks = [
        ResultBlock(i, start, nodes[start : start + width])
        for i, nodes in enumerate(program.results)
        for start in range(0, len(nodes), width)
    ]
    payload = program.graph.payload
    return [
        b for b in blocks if not skip_zero_blocks or any(payload.get(x) != 0.0 for x in b.nodes)
    ]


Item = int | ResultBlock
"""A node to be computed, or results to be stored."""


def worth_segments(program: Program, segment: int) -> bool:
    """Whether a program is long enough to be cut, and computes more than it writes."""
    results = sum(port.size for port in program.outputs)
    length = len(program.order)
    return length > 1.5 * segment and length > _PER_RESULT * results and results <= _MOST_RESULTS


class SegmentPlan:
    """The items in order, cut into segments; the slots of values that a later segment reads."""

    def __init__(self, program: Program, width: int, skip_zero_blocks: bool, segment: int) -> None:
        graph = program.graph
        self.program = program
        self.fusion = Fusion(graph, [node for nodes in program.results for node in nodes])
        self.leaves = {x for x in self.fusion.order if graph.op(x).is_leaf}
        self.segments = self._cut(
            self._items(result_blocks(program, width, skip_zero_blocks)), segment
        )
        self.slots, self.size = self._slots()

    def _items(self, blocks: Sequence[ResultBlock]) -> list[Item]:
        """Nodes as they were traced, sine and cosine of an angle side by side; results when they
        are complete.
        """
        graph, fusion = self.program.graph, self.fusion
        skipped = self.leaves | fusion.deferred | fusion.products
        turned: dict[int, list[int]] = {}
        for x in fusion.order:
            if graph.op(x).turn is not None:
                turned.setdefault(graph.args[x][0], []).append(x)
        nodes = dict.fromkeys(
            twin
            for x in fusion.order
            if x not in skipped
            for twin in (turned[graph.args[x][0]] if graph.op(x).turn is not None else (x,))
        )
        place = {node: i for i, node in enumerate(nodes)}
        complete: dict[int, list[ResultBlock]] = {}
        for block in blocks:
            last = max((place[x] for x in block.nodes if x in place), default=-1)
            complete.setdefault(last, []).append(block)
        items: list[Item] = [*complete.get(-1, ())]
        for i, node in enumerate(nodes):
            items += [node, *complete.get(i, ())]
        return items

    def reads(self, item: Item) -> set[int]:
        """The computed values that an item needs."""
        read = set(item.nodes) if isinstance(item, ResultBlock) else self.fusion.operands(item)
        return read - self.leaves

    def _cost(self, item: Item) -> int:
        if isinstance(item, ResultBlock):
            return 4 * len(item.nodes)
        if self.program.graph.op(item).turn is not None:
            return _SINE_COST // 2
        return 1 + len(self.fusion.lazy_branches.get(item, ()))

    def _cut(self, items: list[Item], segment: int) -> list[list[Item]]:
        """Segments of about equal cost, cut where few values are alive."""
        last = {x: i for i, item in enumerate(items) for x in self.reads(item)}
        ends: dict[int, list[int]] = {}
        for x, i in last.items():
            ends.setdefault(i, []).append(x)
        alive, now, cost = [0], set[int](), [0]
        for i, item in enumerate(items):
            if item in last:
                now.add(item)
            now.difference_update(ends.get(i, ()))
            alive.append(len(now))
            cost.append(cost[-1] + self._cost(item))
        parts = -(-cost[-1] // segment)
        cuts = [0]
        for k in range(1, parts):
            aim, slack = cost[-1] * k / parts, 0.25 * cost[-1] / parts
            near = [i for i in range(cuts[-1] + 1, len(items)) if abs(cost[i] - aim) <= slack]
            if near:
                cuts.append(min(near, key=alive.__getitem__))
        return [items[a:b] for a, b in zip(cuts, [*cuts[1:], len(items)], strict=True)]

    def _slots(self) -> tuple[dict[int, int], int]:
        """A slot for every value that a later segment reads, and the number of slots; values that
        are never alive at once may share one.
        """
        segment_of: dict[Item, int] = {x: k for k, part in enumerate(self.segments) for x in part}
        until = {
            x: k
            for k, part in enumerate(self.segments)
            for item in part
            for x in self.reads(item)
            if segment_of[x] < k
        }
        slots: dict[int, int] = {}
        free: list[int] = []
        size = 0
        for k, part in enumerate(self.segments):
            for x in part:
                if isinstance(x, int) and x in until:
                    slots[x] = free.pop() if free else size
                    size = max(size, slots[x] + 1)
            free += [slots[x] for x, end in until.items() if end == k]
        return slots, size


class _Fetched(dict[int, str]):
    """The values of a segment by node. Constants, inputs and values of earlier segments are loaded
    at their first use.
    """

    def __init__(self, segment: SegmentWriter) -> None:
        super().__init__()
        self._segment = segment

    def __missing__(self, node: int) -> str:
        self[node] = value = self._segment.fetch(node)
        return value


class SegmentWriter:
    """Writes the function of one segment. ``checked``: the inputs (port, column) and results (node)
    for which a segment has already written a check that they are finite; it grows.
    """

    def __init__(
        self,
        plan: SegmentPlan,
        target: CpuTarget,
        strides: Sequence[int],
        checked: set[int | tuple[int, int]],
    ) -> None:
        self.plan, self.strides, self.checked = plan, strides, checked
        self.w = Writer(target)
        self.guard = Guard(self.w)
        self.values = _Fetched(self)
        self._emission = Emission(self.w, plan.fusion, str, self.guard.angle, self.values)
        self._columns: dict[tuple[int, int], str] = {}  # of inputs, by port and column
        self._pointers: dict[tuple[str, int], list[str]] = {}
        self._used: dict[int, int] = {}  # when a value that waits in memory was last used
        self._clock = 0

    def fetch(self, node: int) -> str:
        """A number, an entry of an input or a value of an earlier segment."""
        graph, w = self.plan.program.graph, self.w
        if graph.ops[node] == "const":
            return w.const(graph.payload[node])
        if graph.ops[node] == "symbol":
            return self.column(*graph.payload[node])
        return w.put(f"load {self._kind(node)}, ptr {self._slot(node)}, align {w.align}")

    def column(self, port: int, column: int) -> str:
        """A column of an input, which is loaded with its neighbours."""
        if (port, column) not in self._columns:
            size, start = self.plan.program.inputs[port].size, column - column % self.w.width
            rows = self._rows("%inputs", port, size)
            block = load_block(self.w, rows, start, min(self.w.width, size - start))
            for i, value in enumerate(block, start):
                self._columns[port, i] = value
                self._check((port, i), value)
        return self._columns[port, column]

    def write(self, item: Item) -> None:
        """Compute a node, and store it if it has a slot; or store results in their rows."""
        w, slots = self.w, self.plan.slots
        self._clock += 1
        for node in self.plan.reads(item) & slots.keys():
            if self._clock - self._used.get(node, self._clock) > _REREAD_AFTER:
                self.values.pop(node, None)
            self._used[node] = self._clock
        if isinstance(item, ResultBlock):
            values = [self.values[node] for node in item.nodes]
            for node, value in zip(item.nodes, values, strict=True):
                if self.plan.program.graph.ops[node] != "const":
                    self._check(node, value)
            self.store(item, values)
            return
        self._emission.write(item)
        if item in slots:
            self._used[item] = self._clock
            kind, value = self._kind(item), self.values[item]
            w.do(f"store {kind} {value}, ptr {self._slot(item)}, align {w.align}")

    def store(self, item: ResultBlock, values: list[str]) -> None:
        """Write results into their rows."""
        rows = self._rows("%outputs", item.port, self.strides[item.port])
        store_block(self.w, rows, item.start, values)

    def _check(self, what: int | tuple[int, int], value: str) -> None:
        if what not in self.checked:
            self.checked.add(what)
            self.guard.finite(value)

    def _kind(self, node: int) -> str:
        """The LLVM type of a value: numbers or truth values; both fit in a slot."""
        compared = self.plan.program.graph.op(node).is_truth
        return self.w.truth if compared else self.w.vector

    def _slot(self, node: int) -> str:
        return self.w.at("%live", self.plan.slots[node], self.w.vector)

    def _rows(self, table: str, index: int, stride: int) -> list[str]:
        key = table, index
        if key not in self._pointers:
            self._pointers[key] = row_pointers(self.w, self.w.item(table, index, "ptr"), stride)
        return self._pointers[key]

    def function(self, name: str) -> str:
        """Its text: ``int64 NAME(int64 row, double **inputs, double **outputs, double *live)``."""
        self.w.do(f"ret i64 {self.guard.flags()}")
        pointers = ", ".join(f"ptr noalias %{x}" for x in ("inputs", "outputs", "live"))
        head = f'define internal i64 @{name}(i64 %row, {pointers}) "stackrealign" {{'
        return "\n".join([head, "entry:", *self.w.lines, "}"])


def segmented_ir(
    program: Program,
    target: CpuTarget,
    name: str,
    quaternions: Sequence[int],
    strides: Sequence[int],
    skip_zero_blocks: bool,
    segment: int,
) -> str:
    """See ``unrolled_ir``: a function that runs the segments, and one function per segment."""
    plan = SegmentPlan(program, target.width, skip_zero_blocks, segment)
    caller, checked = Writer(target), set[int | tuple[int, int]]()
    functions: list[str] = []
    for k, items in enumerate(plan.segments):
        part = SegmentWriter(plan, target, strides, checked)
        if k == 0:
            for i in quaternions:
                part.guard.quaternion([part.column(0, i + j) for j in range(4)])
        for item in items:
            part.write(item)
        if k == len(plan.segments) - 1:  # inputs that no one has needed are checked as well
            for i, port in enumerate(program.inputs):
                unseen = {j - j % target.width for j in range(port.size) if (i, j) not in checked}
                for start in sorted(unseen):
                    part.column(i, start)
        functions.append(part.function(f"{name}.{k}"))
        caller.intrinsics |= part.w.intrinsics
    _write_strip_loop(caller, name, plan)
    return caller.module(*functions, caller.function(name, "inputs outputs"))


def _write_strip_loop(w: Writer, name: str, plan: SegmentPlan) -> None:
    """Write the loop over strips of blocks, in which each segment runs over the whole strip before
    the next segment.
    """
    strip = max(2, _STRIP // w.width)
    w.do(f"%live = alloca {w.vector}, i64 {max(1, strip * plan.size)}, align 64")
    w.do("%flags = alloca i64")
    w.do("store i64 0, ptr %flags")
    w.do(f"%last = sub i64 %states, {w.width}")
    blocks = w.add("%states", w.width - 1) // w.width

    def run(first: str) -> None:
        left = w.sub(blocks, first)
        many = where(left < strip, left, strip)
        for k in range(len(plan.segments)):
            w.count(lambda i, k=k: block(k, first, i), "0", many)  # type: ignore[misc]

    def block(k: int, first: str, i: str) -> None:
        row = w.add(first, i) * w.width
        row = where(row > "%last", "%last", row)
        live = w.at("%live", w.mul(i, plan.size), w.vector)
        flags_of_block = w.put(
            f"call i64 @{name}.{k}(i64 {row}, ptr %inputs, ptr %outputs, ptr {live})"
        )
        flags_before = w.put("load i64, ptr %flags")
        w.do(f"store i64 {w.put(f'or i64 {flags_before}, {flags_of_block}')}, ptr %flags")

    w.count(run, "0", blocks, strip)
    w.do(f"ret i64 {w.put('load i64, ptr %flags')}")
