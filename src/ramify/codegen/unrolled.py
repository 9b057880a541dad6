"""Straight-line kernels: all links written out, the robot's numbers folded in.

``int64 NAME(int64 states, double **inputs, double **outputs)`` works on row-major arrays (states,
size). Lanes are states: blocks of ``width`` rows are transposed in registers on the way in and out,
the last block overlaps the one before. The result is a set of flags: see ``ramify.codegen.guards``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ramify.codegen.guards import Guard
from ramify.codegen.row_blocks import begin_blocks, end_blocks, function
from ramify.codegen.target import CpuTarget
from ramify.codegen.vector import Emission, Writer
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
) -> tuple[str, set[str]]:
    """LLVM text of one function, and the declarations it needs. ``quaternions`` are places in the
    first input. ``apart``: how many numbers the states of each output stand apart, by default as
    many as they have; ``preset``: blocks of zeros are not written.
    """
    w = Writer(target)
    bases_in = [_load_pointer(w, "%inputs", i) for i in range(len(program.inputs))]
    bases_out = [_load_pointer(w, "%outputs", i) for i in range(len(program.outputs))]
    strides = apart or [port.size for port in program.outputs]
    w.do("%some = icmp sgt i64 %states, 0")
    begin_blocks(w)
    audit = Guard(w)
    symbols: dict[tuple[int, int], str] = {}
    for i, port in enumerate(program.inputs):
        for j, value in enumerate(load_rows(w, bases_in[i], port.size)):
            symbols[i, j] = value
            audit.finite(value)
    for i in quaternions:
        audit.quaternion([symbols[0, i + j] for j in range(4)])
    roots = [node for port in program.results for node in port]
    emission = Emission(w, program.graph, roots, symbols.__getitem__, audit.angle)
    if len(roots) <= _AT_ONCE:
        emission.need(roots)
    checked: set[int] = set()
    begun = len(w.lines)
    for port, base, nodes, stride in zip(
        program.outputs, bases_out, program.results, strides, strict=True
    ):
        rows = row_pointers(w, base, stride)
        for start in range(0, port.size, w.width):
            block = nodes[start : start + w.width]
            if preset and all(program.graph.payload.get(node) == 0.0 for node in block):
                continue
            values = emission.need(block)
            for node in dict.fromkeys(block):
                if program.graph.ops[node] != "const" and node not in checked:
                    checked.add(node)
                    audit.finite(values[node])
            store_block(w, rows, start, [values[node] for node in block])
            if len(roots) > _AT_ONCE and len(w.lines) - begun > _PART:
                begun = len(w.lines)  # a branch that is always taken keeps the parts apart
                w.do(f"br i1 %some, label %part{begun}, label %never")
                w.label(f"part{begun}")
    end_blocks(w, audit.flags())
    w.label("never")
    w.do("ret i64 0")
    return function(name, "inputs outputs", w), w.intrinsics


def _load_pointer(w: Writer, table: str, index: int) -> str:
    return w.put(f"load ptr, ptr {w.put(f'getelementptr ptr, ptr {table}, i64 {index}')}")


def load_number(w: Writer, table: str, index: int) -> str:
    """A whole number of a table of addresses and numbers."""
    return w.put(f"load i64, ptr {w.put(f'getelementptr i64, ptr {table}, i64 {index}')}")


# ---- rows of memory to lanes and back ----


def load_rows(w: Writer, base: str, size: int, stride: int | str | None = None) -> list[str]:
    """``size`` values, one per column of ``width`` rows that start at row %row; rows may stand
    further apart than their size.
    """
    columns: list[str] = []
    rows = row_pointers(w, base, size if stride is None else stride)
    for start in range(0, size, w.width):
        take = min(w.width, size - start)
        pieces = [_load_piece(w, row, start, take) for row in rows]
        columns.extend(transpose(w, pieces)[:take])
    return columns


def store_rows(
    w: Writer, base: str, size: int, columns: list[str], stride: int | str | None = None
) -> None:
    """The reverse of ``load_rows``; rows may stand further apart than their size."""
    rows = row_pointers(w, base, size if stride is None else stride)
    for start in range(0, size, w.width):
        store_block(w, rows, start, columns[start : start + w.width])


def store_block(w: Writer, rows: list[str], start: int, block: list[str]) -> None:
    """Up to ``width`` columns from ``start`` on, into rows that begin at these addresses."""
    take = len(block)
    for row, piece in zip(rows, transpose(w, block + ["poison"] * (w.width - take)), strict=True):
        _store_piece(w, row, start, take, piece)


def row_pointers(w: Writer, base: str, stride: int | str) -> list[str]:
    """Where each lane's row begins, from row %row on."""
    rows = [w.put(f"getelementptr {w.number}, ptr {base}, i64 {w.put(f'mul i64 %row, {stride}')}")]
    for _ in range(1, w.width):
        rows.append(w.put(f"getelementptr {w.number}, ptr {rows[-1]}, i64 {stride}"))
    return rows


def _mask(width: int, take: int) -> str:
    return f"<{', '.join(f'i1 {int(i < take)}' for i in range(width))}>"


def _load_piece(w: Writer, row: str, start: int, take: int) -> str:
    address = w.put(f"getelementptr {w.number}, ptr {row}, i64 {start}") if start else row
    if take == w.width:
        return w.put(f"load {w.vector}, ptr {address}, align {w.bytes}")
    kind = f"<{w.width} x i1>"
    w.intrinsics.add(
        f"declare {w.vector} @llvm.masked.load.{w.suffix}.p0(ptr, i32, {kind}, {w.vector})"
    )
    call = f"call {w.vector} @llvm.masked.load.{w.suffix}.p0(ptr {address}, i32 {w.bytes}, {kind}"
    return w.put(f"{call} {_mask(w.width, take)}, {w.vector} zeroinitializer)")


def _store_piece(w: Writer, row: str, start: int, take: int, value: str) -> None:
    address = w.put(f"getelementptr {w.number}, ptr {row}, i64 {start}") if start else row
    if take == w.width:
        w.do(f"store {w.vector} {value}, ptr {address}, align {w.bytes}")
        return
    kind = f"<{w.width} x i1>"
    w.intrinsics.add(f"declare void @llvm.masked.store.{w.suffix}.p0({w.vector}, ptr, i32, {kind})")
    w.do(
        f"call void @llvm.masked.store.{w.suffix}.p0({w.vector} {value}, ptr {address}, "
        f"i32 {w.bytes}, {kind} {_mask(w.width, take)})"
    )


def transpose(w: Writer, rows: list[str]) -> list[str]:
    """A width x width block transposed by exchanging halves, quarters, …"""
    rows = list(rows)
    step = 1
    while step < w.width:
        low = [i if not i & step else i - step + w.width for i in range(w.width)]
        high = [i + step if not i & step else i + w.width for i in range(w.width)]
        for i in range(w.width):
            if not i & step:
                a, b = rows[i], rows[i + step]
                rows[i], rows[i + step] = (
                    w.put(
                        f"shufflevector {w.vector} {a}, {w.vector} {b}, "
                        f"<{w.width} x i32> <{', '.join(f'i32 {e}' for e in order)}>"
                    )
                    for order in (low, high)
                )  # fmt: skip
        step *= 2
    return rows
