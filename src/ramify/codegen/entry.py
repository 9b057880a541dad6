"""LLVM text of a kernel's CPython entry: METH_FASTCALL | METH_KEYWORDS, plain float64 arrays in, a fresh array out.

All inputs are vectors (one state), or all are matrices with as many rows (a batch, computed outside
Python's lock). Whatever else arrives, and whatever the kernel flags, is handed to the Python path:
``self``, called with the same arguments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ramify.codegen.vector import number

PLAIN: Final = 0x0001 | 0x0100  # NumPy's flags: C-contiguous, aligned
LOCK_TOLERANCE: Final = 1e-9  # half turns from a lock; within it the Python path looks closer
_DOUBLE: Final = 12  # NumPy's number for float64
_ROUND: Final = 1.5 * 2.0**52  # added and taken away again, it rounds to a whole number
_DATA, _ND, _DIMS, _DESCR, _FLAGS = 16, 24, 32, 56, 64  # offsets in NumPy's array object


@dataclass(frozen=True)
class Compute:
    """A kernel's function: its address, what it takes after inputs and outputs, and what keeps
    these alive.
    """

    address: int
    arguments: tuple[int, ...]
    keep: Any


Locks = Sequence[tuple[int, float]]
"""Angles of a kernel's first input that lock: (place, half turns from zero)."""


class Batch(NamedTuple):
    """The function for batches; the fewest states it takes; the cell with the most that one thread
    should do alone.
    """

    compute: Compute
    fewest: int
    most: int


class Python(NamedTuple):
    """Addresses in the running interpreter."""

    array_type: int
    float64: int
    array_new: int
    vectorcall: int
    decref: int
    release: int
    acquire: int


def entry_ir(
    single: Compute | None,
    batch: Batch | None,
    sizes: Sequence[int],
    shape: Sequence[int],
    locks: Locks,
    python: Python,
) -> str:
    """LLVM text of ``@entry`` for a kernel with inputs of these sizes and one output of this shape."""
    return _Entry(sizes, shape, python).text(single, batch, locks)


class _Entry:
    def __init__(self, sizes: Sequence[int], shape: Sequence[int], python: Python) -> None:
        self.sizes, self.shape, self.python = sizes, shape, python
        self.lines: list[str] = []
        self._count = 0

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def put(self, text: str) -> str:
        self._count += 1
        self.do(f"%t{self._count} = {text}")
        return f"%t{self._count}"

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def field(self, pointer: str, offset: int, kind: str) -> str:
        return self.put(
            f"load {kind}, ptr {self.put(f'getelementptr i8, ptr {pointer}, i64 {offset}')}"
        )

    def need(self, *conditions: str, then: str) -> None:
        """Go on where all conditions hold, else to the Python path."""
        both = conditions[0]
        for condition in conditions[1:]:
            both = self.put(f"and i1 {both}, {condition}")
        self.do(f"br i1 {both}, label %{then}, label %fallback")
        self.label(then)

    def text(self, single: Compute | None, batch: Batch | None, locks: Locks) -> str:
        n = len(self.sizes)
        self.lines.append("define ptr @entry(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) {")
        self.label("start")
        self.do(f"%inputs = alloca [{n} x ptr]")
        self.do("%outputs = alloca [1 x ptr]")
        self.do(f"%shape = alloca [{1 + len(self.shape)} x i64]")
        self.need(
            self.put("icmp eq ptr %kwnames, null"),
            self.put(f"icmp eq i64 %nargs, {n}"),
            then="look",
        )
        arrays = [self._array(i) for i in range(n)]
        rank = self.field(arrays[0], _ND, "i32")
        dims = [self.field(array, _DIMS, "ptr") for array in arrays]
        alike = [
            self.put(f"icmp eq i32 {self.field(array, _ND, 'i32')}, {rank}") for array in arrays
        ]
        self.need(*alike, then="ranks")
        cases = [
            f"i32 {i}, label %{name}"
            for i, name, there in ((1, "one", single), (2, "many", batch))
            if there is not None
        ]
        self.do(f"switch i32 {rank}, label %fallback [{' '.join(cases)}]")
        if single is not None:
            self.label("one")
            self.need(
                *(self._is(d, 0, size) for d, size in zip(dims, self.sizes, strict=True)),
                then="fits",
            )
            self._watch(locks)
            self._answer(single, "1", [], "one")
        if batch is not None:
            self.label("many")
            self._many(batch, dims)
        self.label("fallback")
        p = self.python
        call = f"call ptr inttoptr (i64 {p.vectorcall} to ptr)(ptr %self, ptr %args, i64 %nargs, ptr %kwnames)"
        self.do(f"ret ptr {self.put(call)}")
        self.lines.append("}")
        return "\n".join(self.lines)

    def _array(self, i: int) -> str:
        """Argument i, a plain float64 array; its data go into the table of inputs."""
        array = self.put(f"load ptr, ptr {self.put(f'getelementptr ptr, ptr %args, i64 {i}')}")
        self.need(
            self.put(f"icmp eq i64 {self.field(array, 8, 'i64')}, {self.python.array_type}"),
            then=f"array{i}",
        )
        masked = self.put(f"and i32 {self.field(array, _FLAGS, 'i32')}, {PLAIN}")
        float64 = self.put(f"icmp eq i64 {self.field(array, _DESCR, 'i64')}, {self.python.float64}")
        self.need(self.put(f"icmp eq i32 {masked}, {PLAIN}"), float64, then=f"plain{i}")
        data = self.field(array, _DATA, "ptr")
        self.do(f"store ptr {data}, ptr {self.put(f'getelementptr ptr, ptr %inputs, i64 {i}')}")
        return array

    def _is(self, dims: str, axis: int, extent: int | str) -> str:
        return self.put(f"icmp eq i64 {self.field(dims, 8 * axis, 'i64')}, {extent}")

    def _many(self, batch: Batch, dims: list[str]) -> None:
        states = self.field(dims[0], 0, "i64")
        conditions = [self._is(d, 1, size) for d, size in zip(dims, self.sizes, strict=True)]
        conditions += [self._is(d, 0, states) for d in dims[1:]]
        most = self.put(f"load i64, ptr inttoptr (i64 {batch.most} to ptr)")
        conditions += [
            self.put(f"icmp sge i64 {states}, {batch.fewest}"),
            self.put(f"icmp sle i64 {states}, {most}"),
        ]
        self.need(*conditions, then="rows")
        self._answer(batch.compute, states, [states], "many")

    def _watch(self, locks: Locks) -> None:
        """No angle at a lock."""
        first = self.put("load ptr, ptr %inputs")
        for i, (place, half_turns) in enumerate(locks):
            turned = self.put(
                f"fmul double {self.field(first, 8 * place, 'double')}, {number(1.0 / math.pi)}"
            )
            turns = self.put(f"fsub double {turned}, {number(half_turns)}")
            whole = self.put(
                f"fsub double {self.put(f'fadd double {turns}, {number(_ROUND)}')}, "
                f"{number(_ROUND)}"
            )
            left = self.put(f"fsub double {turns}, {whole}")
            over, under = (
                self.put(f"fcmp {op} double {left}, {number(s * LOCK_TOLERANCE)}")
                for op, s in (("ogt", 1), ("olt", -1))
            )
            self.need(self.put(f"or i1 {over}, {under}"), then=f"apart{i}")

    def _answer(self, compute: Compute, states: str, lead: list[str], stem: str) -> None:
        """A fresh array, the kernel's numbers in it, and its return; a batch runs outside the lock."""
        p = self.python
        extents = [*lead, *map(str, self.shape)]
        for i, extent in enumerate(extents):
            self.do(
                f"store i64 {extent}, ptr {self.put(f'getelementptr i64, ptr %shape, i64 {i}')}"
            )
        kind = f"ptr inttoptr (i64 {p.array_type} to ptr), i32 {len(extents)}, ptr %shape, i32 {_DOUBLE}"
        out = self.put(
            f"call ptr inttoptr (i64 {p.array_new} to ptr)({kind}, ptr null, ptr null, i32 0, i32 "
            "0, ptr null)"
        )
        self.do(
            f"br i1 {self.put(f'icmp eq ptr {out}, null')}, label %{stem}.give, label "
            f"%{stem}.compute"
        )
        self.label(f"{stem}.compute")
        self.do(f"store ptr {self.field(out, _DATA, 'ptr')}, ptr %outputs")
        state = self.put(f"call ptr inttoptr (i64 {p.release} to ptr)()") if lead else ""
        further = "".join(f", ptr inttoptr (i64 {x} to ptr)" for x in compute.arguments)
        found = self.put(
            f"call i64 inttoptr (i64 {compute.address} to ptr)(i64 {states}, ptr %inputs, ptr "
            f"%outputs{further})"
        )
        if lead:
            self.do(f"call void inttoptr (i64 {p.acquire} to ptr)(ptr {state})")
        self.do(
            f"br i1 {self.put(f'icmp eq i64 {found}, 0')}, label %{stem}.give, label %{stem}.drop"
        )
        self.label(f"{stem}.drop")
        self.do(f"call void inttoptr (i64 {p.decref} to ptr)(ptr {out})")
        self.do("br label %fallback")
        self.label(f"{stem}.give")
        self.do(f"ret ptr {out}")
