"""Straight-line kernels: all links written out, the robot's numbers folded in.

``int64 NAME(int64 states, double **inputs, double **outputs)`` works on row-major arrays (states,
size). Lanes are states: blocks of ``width`` rows are transposed in registers on the way in and out,
the last block overlaps the one before. The result is a set of flags: see ``ramify.emit.guards``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ramify.emit.cpu_target import CpuTarget
from ramify.emit.fusion import Fusion
from ramify.emit.guards import Guard
from ramify.emit.rows import load_rows, row_pointers, store_block
from ramify.emit.segments import SEGMENT, ResultBlock, result_blocks, segmented_ir, worth_segments
from ramify.emit.vector import Emission
from ramify.emit.writer import InOrder, Writer
from ramify.trace.program import Program

_AT_ONCE: Final = 64
"""Results up to which all are computed before any is stored; more are computed block by block."""
_PART: Final = 1500
"""Lines of a part of such code: the compiler's time grows with the square of a part's length."""


def unrolled_ir(
    program: Program,
    target: CpuTarget,
    name: str,
    quaternions: Sequence[int] = (),
    apart: Sequence[int] | None = None,
    preset: bool = False,
    segment: int = SEGMENT,
) -> str:
    """LLVM text of one function. ``quaternions`` are places in the
    first input. ``apart``: how many numbers the states of each output stand apart, by default as
    many as they have; ``preset``: blocks of zeros are not written; ``segment``: operations from
    which code is cut.
    """
    strides = apart or [port.size for port in program.outputs]
    if target.width > 1 and worth_segments(program, segment):
        return InOrder(segmented_ir(program, target, name, quaternions, strides, preset, segment))
    w = Writer(target)
    bases_in = [w.item("%inputs", i, "ptr") for i in range(len(program.inputs))]
    bases_out = [w.item("%outputs", i, "ptr") for i in range(len(program.outputs))]
    w.do("%some = icmp sgt i64 %states, 0")
    w.begin_blocks()
    audit = Guard(w)
    symbols: dict[tuple[int, int], str] = {}
    for i, port in enumerate(program.inputs):
        for j, value in enumerate(load_rows(w, bases_in[i], port.size)):
            symbols[i, j] = value
            audit.finite(value)
    for i in quaternions:
        audit.quaternion([symbols[0, i + j] for j in range(4)])
    roots = [node for port in program.results for node in port]
    emission = Emission(w, Fusion(program.graph, roots), symbols.__getitem__, audit.angle)
    if len(roots) <= _AT_ONCE:
        emission.need(roots)
    blocks = result_blocks(program, w.width, preset)
    rows = [row_pointers(w, *place) for place in zip(bases_out, strides, strict=True)]
    begun = len(w.lines)
    for node, complete in _in_order(program, blocks):
        values = emission.need([node])
        if program.graph.ops[node] != "const":
            audit.finite(values[node])
        for block in complete:
            store_block(w, rows[block.port], block.start, [values[x] for x in block.nodes])
        if len(roots) > _AT_ONCE and len(w.lines) - begun > _PART:
            begun = len(w.lines)  # a branch that is always taken keeps the parts apart
            w.fork("%some", f"part{begun}", "never")
            w.label(f"part{begun}")
    w.end_blocks(audit.flags())
    w.label("never")
    w.do("ret i64 0")
    return w.module(w.function(name, "inputs outputs"))


def _in_order(
    program: Program, blocks: Sequence[ResultBlock]
) -> Iterator[tuple[int, list[ResultBlock]]]:
    """Every node that is stored, and the blocks that are complete with it. Of a matrix over the
    links, the last row and column come first: they need what belongs to the last link alone.
    """
    when: dict[int, tuple[int, ...]] = {}
    for block in blocks:
        shape = program.outputs[block.port].shape
        matrix = len(shape) == 2 and 1 < shape[0] <= shape[1]
        for place, node in enumerate(block.nodes, block.start):
            if not matrix:
                when.setdefault(node, (1, node))
                continue
            row, column = divmod(place, shape[1])
            column = column * shape[0] // shape[1]
            found = 0, -max(row, column), -min(row, column), node
            when[node] = min(found, when.get(node, found))
    order = sorted(when, key=when.__getitem__)
    rank = {node: i for i, node in enumerate(order)}
    complete: dict[int, list[ResultBlock]] = {}
    for block in blocks:
        complete.setdefault(max(block.nodes, key=rank.__getitem__), []).append(block)
    for node in order:
        yield node, complete.get(node, [])
