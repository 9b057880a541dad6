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
    row_strides: Sequence[int] | None = None,
    skip_zero_blocks: bool = False,
    segment: int = SEGMENT,
) -> str:
    """LLVM text of one function. ``quaternions`` are positions in the first input.

    ``row_strides``: the distance between the states of each output, in numbers; by default as many
    as they have. ``skip_zero_blocks``: blocks of zeros are not written. ``segment``: operations
    beyond which code is cut.
    """
    strides = row_strides or [port.size for port in program.outputs]
    if target.width > 1 and worth_segments(program, segment):
        return InOrder(
            segmented_ir(program, target, name, quaternions, strides, skip_zero_blocks, segment)
        )
    w = Writer(target)
    bases_in = [w.item("%inputs", i, "ptr") for i in range(len(program.inputs))]
    bases_out = [w.item("%outputs", i, "ptr") for i in range(len(program.outputs))]
    w.do("%some = icmp sgt i64 %states, 0")
    w.begin_blocks()
    guard = Guard(w)
    symbols = _load_inputs(w, guard, program, bases_in)
    for i in quaternions:
        guard.quaternion([symbols[0, i + j] for j in range(4)])
    _write_results(w, guard, program, symbols, bases_out, strides, skip_zero_blocks)
    w.end_blocks(guard.flags())
    w.label("never")
    w.do("ret i64 0")
    return w.module(w.function(name, "inputs outputs"))


def _load_inputs(
    w: Writer, guard: Guard, program: Program, bases: Sequence[str]
) -> dict[tuple[int, int], str]:
    """All inputs of a block of states, checked to be finite."""
    symbols: dict[tuple[int, int], str] = {}
    for i, port in enumerate(program.inputs):
        for j, value in enumerate(load_rows(w, bases[i], port.size)):
            symbols[i, j] = value
            guard.finite(value)
    return symbols


def _write_results(
    w: Writer,
    guard: Guard,
    program: Program,
    symbols: dict[tuple[int, int], str],
    bases: Sequence[str],
    strides: Sequence[int],
    skip_zero_blocks: bool,
) -> None:
    """Compute the results and store them block by block; much code is cut into parts."""
    roots = [node for port in program.results for node in port]
    emission = Emission(w, Fusion(program.graph, roots), symbols.__getitem__, guard.angle)
    many = len(roots) > _AT_ONCE
    if not many:
        emission.need(roots)
    blocks = result_blocks(program, w.width, skip_zero_blocks)
    rows = [row_pointers(w, *place) for place in zip(bases, strides, strict=True)]
    begun = len(w.lines)
    for node, complete in _in_order(program, blocks):
        values = emission.need([node])
        if program.graph.ops[node] != "const":
            guard.finite(values[node])
        for block in complete:
            store_block(w, rows[block.port], block.start, [values[x] for x in block.nodes])
        if many and len(w.lines) - begun > _PART:
            begun = len(w.lines)  # a branch that is always taken keeps the parts apart
            w.fork("%some", f"part{begun}", "never")
            w.label(f"part{begun}")


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
            priority = 0, -max(row, column), -min(row, column), node
            when[node] = min(priority, when.get(node, priority))
    order = sorted(when, key=when.__getitem__)
    rank = {node: i for i, node in enumerate(order)}
    complete: dict[int, list[ResultBlock]] = {}
    for block in blocks:
        complete.setdefault(max(block.nodes, key=rank.__getitem__), []).append(block)
    for node in order:
        yield node, complete.get(node, [])
