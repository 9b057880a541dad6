"""Rows of memory to lanes and back."""

from __future__ import annotations

from typing import Final

from ramify.codegen.row_blocks import count
from ramify.codegen.vector import Writer

_AHEAD: Final = 32  # numbers of a row by which its memory is fetched before it is written


def load_pointer(w: Writer, table: str, index: int) -> str:
    """An address of a table."""
    return w.put(f"load ptr, ptr {w.put(f'getelementptr ptr, ptr {table}, i64 {index}')}")


def load_number(w: Writer, table: str, index: int) -> str:
    """A whole number of a table of addresses and numbers."""
    return w.put(f"load i64, ptr {w.put(f'getelementptr i64, ptr {table}, i64 {index}')}")


def load_rows(w: Writer, base: str, size: int, stride: int | str | None = None) -> list[str]:
    """``size`` values, one per column of ``width`` rows that start at row %row; rows may stand
    further apart than their size.
    """
    rows = row_pointers(w, base, size if stride is None else stride)
    starts = range(0, size, w.width)
    return [x for i in starts for x in load_block(w, rows, i, min(w.width, size - i))]


def load_block(w: Writer, rows: list[str], start: int, take: int) -> list[str]:
    """Up to ``width`` columns from ``start`` on, of rows that begin at these addresses."""
    return transpose(w, [_load_piece(w, row, start, take) for row in rows])[:take]


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


def write_lanes(w: Writer, base: str, rows: list[str], size: int | str) -> None:
    """``size`` numbers, whose lanes stand side by side in memory, into their rows."""
    whole = w.put(f"sub i64 {size}, {w.width - 1}")
    count(w, lambda at: write_block(w, base, rows, at), "0", whole, w.width)
    write_rest(w, base, rows, size)


def write_block(w: Writer, base: str, rows: list[str], at: str) -> None:
    """A square block of such numbers. Writing is the limit: the rows' memory is fetched some blocks
    ahead.
    """
    w.intrinsics.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    start = w.put(f"mul i64 {at}, {w.width}")
    lanes = []
    for i in range(w.width):
        place = w.put(f"add i64 {start}, {i * w.width}")
        address = w.put(f"getelementptr double, ptr {base}, i64 {place}")
        lanes.append(w.put(f"load {w.vector}, ptr {address}, align {8 * w.width}"))
    ahead = w.put(f"add i64 {at}, {_AHEAD}")
    for row, piece in zip(rows, transpose(w, lanes), strict=True):
        address = w.put(f"getelementptr double, ptr {row}, i64 {at}")
        later = w.put(f"getelementptr double, ptr {row}, i64 {ahead}")
        w.do(f"call void @llvm.prefetch.p0(ptr {later}, i32 1, i32 3, i32 1)")
        w.do(f"store {w.vector} {piece}, ptr {address}, align 8")


def write_rest(w: Writer, base: str, rows: list[str], size: int | str) -> None:
    """The numbers behind the last whole block."""

    def single(at: str) -> None:
        place = w.put(f"mul i64 {at}, {w.width}")
        address = w.put(f"getelementptr double, ptr {base}, i64 {place}")
        value = w.put(f"load {w.vector}, ptr {address}, align {8 * w.width}")
        for lane, row in enumerate(rows):
            to = w.put(f"getelementptr double, ptr {row}, i64 {at}")
            one = w.put(f"extractelement {w.vector} {value}, i64 {lane}")
            w.do(f"store double {one}, ptr {to}")

    odd = w.put(f"urem i64 {size}, {w.width}")
    count(w, single, w.put(f"sub i64 {size}, {odd}"), str(size), 1)


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
