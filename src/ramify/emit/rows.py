"""Rows of memory to lanes and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ramify.emit.writer import Writer

_AHEAD: Final = 32  # numbers of a row by which its memory is fetched before it is written


def load_rows(w: Writer, base: str, size: int, stride: int | str | None = None) -> list[str]:
    """``size`` values, one per column of ``width`` rows that start at row %row; rows may stand
    further apart than their size.
    """
    rows = row_pointers(w, base, size if stride is None else stride)
    starts = range(0, size, w.width)
    return [x for i in starts for x in load_block(w, rows, i, min(w.width, size - i))]


def load_block(w: Writer, rows: Sequence[str], start: int, take: int) -> list[str]:
    """Up to ``width`` columns from ``start`` on, of rows that begin at these addresses."""
    return transpose(w, [_load_piece(w, row, start, take) for row in rows])[:take]


def store_rows(
    w: Writer, base: str, size: int, columns: Sequence[str], stride: int | str | None = None
) -> None:
    """The reverse of ``load_rows``; rows may stand further apart than their size."""
    rows = row_pointers(w, base, size if stride is None else stride)
    for start in range(0, size, w.width):
        store_block(w, rows, start, columns[start : start + w.width])


def store_block(w: Writer, rows: Sequence[str], start: int, block: Sequence[str]) -> None:
    """Up to ``width`` columns from ``start`` on, into rows that begin at these addresses."""
    take = len(block)
    for row, piece in zip(
        rows, transpose(w, [*block] + ["poison"] * (w.width - take)), strict=True
    ):
        _store_piece(w, row, start, take, piece)


def write_lanes(w: Writer, base: str, rows: Sequence[str], size: int | str) -> None:
    """``size`` numbers, whose lanes stand side by side in memory, into their rows."""
    whole = w.sub(size, w.width - 1)
    w.count(lambda at: write_block(w, base, rows, at), "0", whole, w.width)
    write_rest(w, base, rows, size)


def write_block(w: Writer, base: str, rows: Sequence[str], at: str) -> None:
    """A square block of such numbers. Writing is the limit: the rows' memory is fetched some blocks
    ahead.
    """
    w.intrinsics.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    start = w.mul(at, w.width)
    lanes = [w.load(w.at(base, w.add(start, i * w.width))) for i in range(w.width)]
    ahead = w.add(at, _AHEAD)
    for row, piece in zip(rows, transpose(w, lanes), strict=True):
        address, later = w.at(row, at), w.at(row, ahead)
        w.do(f"call void @llvm.prefetch.p0(ptr {later}, i32 1, i32 3, i32 1)")
        w.store(piece, address, 8)


def write_rest(w: Writer, base: str, rows: Sequence[str], size: int | str) -> None:
    """The numbers behind the last whole block."""

    def single(at: str) -> None:
        value = w.load(w.at(base, w.mul(at, w.width)))
        for i, row in enumerate(rows):
            to = w.at(row, at)
            w.do(f"store double {w.lane(value, i)}, ptr {to}")

    odd = w.put(f"urem i64 {size}, {w.width}")
    w.count(single, w.sub(size, odd), size)


def row_pointers(w: Writer, base: str, stride: int | str) -> list[str]:
    """Where each lane's row begins, from row %row on."""
    rows = [w.at(base, w.mul("%row", stride), w.number)]
    for _ in range(1, w.width):
        rows.append(w.at(rows[-1], stride, w.number))
    return rows


def _mask(w: Writer, take: int) -> str:
    return f"{w.truth} <{', '.join(f'i1 {int(i < take)}' for i in range(w.width))}>"


def _load_piece(w: Writer, row: str, start: int, take: int) -> str:
    address = w.at(row, start, w.number) if start else row
    if take == w.width:
        return w.load(address, w.bytes)
    load, blank = f"{w.vector} @llvm.masked.load.{w.suffix}.p0", f"{w.vector} zeroinitializer"
    w.intrinsics.add(f"declare {load}(ptr, i32, {w.truth}, {w.vector})")
    return w.put(f"call {load}(ptr {address}, i32 {w.bytes}, {_mask(w, take)}, {blank})")


def _store_piece(w: Writer, row: str, start: int, take: int, value: str) -> None:
    address = w.at(row, start, w.number) if start else row
    if take == w.width:
        w.store(value, address, w.bytes)
        return
    store, what = f"void @llvm.masked.store.{w.suffix}.p0", f"{w.vector} {value}"
    w.intrinsics.add(f"declare {store}({w.vector}, ptr, i32, {w.truth})")
    w.do(f"call {store}({what}, ptr {address}, i32 {w.bytes}, {_mask(w, take)})")


def transpose(w: Writer, square: Sequence[str]) -> list[str]:
    """A width x width block transposed by exchanging halves, quarters, …"""
    rows = list(square)
    step = 1
    while step < w.width:
        low = [i if not i & step else i - step + w.width for i in range(w.width)]
        high = [i + step if not i & step else i + w.width for i in range(w.width)]
        orders = [f"<{', '.join(f'i32 {e}' for e in order)}>" for order in (low, high)]
        for i in range(w.width):
            if not i & step:
                pair = rows[i], rows[i + step]
                rows[i], rows[i + step] = (w.shuffled(*pair, order) for order in orders)
        step *= 2
    return rows
