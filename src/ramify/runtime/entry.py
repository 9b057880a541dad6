"""LLVM text of a kernel's CPython entry: METH_FASTCALL | METH_KEYWORDS, plain float64 arrays in,
fresh arrays (or those given as ``out``) out; and of a second one for calls of an object.

All inputs are vectors (one state), or all are matrices with as many rows (a batch, computed outside
Python's lock). Several results make a tuple, or the named tuple of the signature. Whatever else
arrives, and whatever the kernel flags, is handed to the Python path: ``self``, called with the same
arguments.

Addresses are not part of the text: it finds them in the global ``@addresses``, which is filled when
the entry is loaded. So one compiled text, kept in the cache, serves all kernels of a signature.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Final, NamedTuple

from ramify.emit.values import LlvmValue
from ramify.emit.writer import Lines
from ramify.runtime.compile import FunctionPointer

PLAIN: Final = 0x0001 | 0x0100  # NumPy's flags: C-contiguous, aligned
_WRITABLE: Final = PLAIN | 0x0400
LOCK_TOLERANCE: Final = 4e-5  # half turns from a lock; within it the Python path looks closer
_ROUND: Final = 1.5 * 2.0**52  # added and taken away again, it rounds to a whole number
_TYPE, _SIZE = 8, 16  # offsets in any object, in a tuple
_NUMBER: Final = 16  # in a float
_DATA, _ND, _DIMS, _DESCR, _FLAGS = 16, 24, 32, 56, 64  # offsets in NumPy's array object


Locks = Sequence[tuple[int, float]]
"""Angles of a kernel's first input that lock: (place, half turns from zero)."""


class Signature(NamedTuple):
    """Numbers per state of each input; the shape of each result; the tuple that several results
    make.
    """

    sizes: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    answer: type[tuple] = tuple  # type: ignore[type-arg]


Python = Mapping[str, int]
"""Addresses in the running interpreter, by name; ``items`` is where a tuple's items begin."""


class EntryWriter(Lines):
    """Writes ``@entry``, and notes what its ``@addresses`` must hold. Fewer states than ``lanes``
    do not count as a batch.
    """

    def __init__(self, signature: Signature, python: Python, lanes: int) -> None:
        super().__init__()
        self.sizes, self.shapes, self.answer = signature
        self.python, self.lanes = python, lanes
        self.addresses: dict[str, int] = {}

    # ---- writing ----

    def field(self, pointer: str, offset: int, kind: str = "ptr") -> LlvmValue:
        return self.typed(kind, f"load {kind}, ptr {self.at(pointer, offset, 'i8')}")

    def keep(self, table: str, index: int, value: str, kind: str = "ptr") -> None:
        self.do(f"store {kind} {value}, ptr {self.at(table, 8 * index, 'i8')}")

    def constant(self, name: str, address: int | None = None) -> str:
        """An address, by default one of the interpreter's."""
        self.addresses[name] = self.python[name] if address is None else address
        return self.field("@addresses", 8 * list(self.addresses).index(name))

    def call(self, kind: str, name: str, arguments: str, address: int | None = None) -> str:
        call = f"call {kind} {self.constant(name, address)}({arguments})"
        if kind == "void":
            self.do(call)
            return ""
        return self.put(call)

    def is_type(self, thing: str, name: str, address: int | None = None) -> LlvmValue:
        kind = self.constant(name, address)
        return self.equal(self.field(thing, _TYPE), kind, "ptr")

    def need(self, *conditions: LlvmValue) -> None:
        """Continue if all conditions hold, else take the Python path."""
        self.leave_unless(reduce(and_, conditions), "fallback")

    # ---- the entry ----

    def text(
        self, single: FunctionPointer | None, batch: FunctionPointer | None, locks: Locks
    ) -> str:
        """LLVM text."""
        n, m = len(self.sizes), len(self.shapes)
        few = None if locks else single  # takes a few states as well; locks are looked at in one
        self.lines.append("define ptr @entry(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) {")
        self.label("start")
        for name in ("inputs", "outputs", "made"):
            self.do(f"%{name} = alloca [{max(n, m)} x ptr]")
        self.do(f"%shape = alloca [{1 + max(map(len, self.shapes))} x i64]")
        self.do(f"%numbers = alloca [{m} x double]")
        self.need(self.equal("%nargs", n))
        self.enter("named")
        self.fork(self.equal("%kwnames", "null", "ptr"), "look", "options")
        self.label("options")
        only = self.equal(self.field("%kwnames", _SIZE, "i64"), 1)
        word = self.equal(self.field("%kwnames", self.python["items"]), self.constant("out"), "ptr")
        out = self.field("%args", 8 * n)  # there, as the names are not empty
        self.fork(only & word, "look", "fallback")
        self.label("look")
        self.do(f"%given = phi ptr [null, %named], [{out}, %options]")
        looked = [self._input(i) for i in range(n)]
        rank, dims = looked[0][0], [d for _, d in looked]
        self.need(*(self.equal(r, rank, "i32") for r, _ in looked))
        cases = [
            f"i32 {i}, label %{name}"
            for i, name, there in ((1, "one", single), (2, "many", batch or few))
            if there is not None
        ]
        self.do(f"switch i32 {rank}, label %fallback [{' '.join(cases)}]")
        if single is not None:
            self.label("one")
            self.need(*(self._is(d, 0, size) for d, size in zip(dims, self.sizes, strict=True)))
            self._watch(locks)
            self._answer(single, "1", [], "one")
        if batch is not None or few is not None:
            self.label("many")
            self._many(few, batch, dims)
        self.label("fallback")
        arguments = "ptr %self, ptr %args, i64 %nargs, ptr %kwnames"
        self.do(f"ret ptr {self.call('ptr', 'vectorcall', arguments)}")
        self.lines.append("}")
        self._object(n)
        head = f"@addresses = global [{len(self.addresses)} x i64] zeroinitializer"
        return "\n".join([head, "@one = constant i64 1", *self.lines])

    def _object(self, n: int) -> None:
        """``@object(self, args, kwargs)``: the entry for calls of an object, which pass a tuple and
        a dictionary; a single ``out`` is read without unpacking.
        """
        self.lines.append("define ptr @object(ptr %self, ptr %args, ptr %kwargs) {")
        self.label("start")
        self.do(f"%all = alloca [{n + 1} x ptr]")
        count, items = (
            self.field("%args", _SIZE, "i64"),
            self.at("%args", self.python["items"], "i8"),
        )
        self.leave_if(self.equal("%kwargs", "null", "ptr"), "plain")
        options = self.field("%kwargs", _SIZE, "i64")
        self.fork(self.equal(options, 0), "plain", "named")
        self.label("plain")
        arguments = f"ptr %self, ptr {items}, i64 {count}, ptr null"
        self.do(f"ret ptr {self.put(f'call ptr @entry({arguments})')}")
        self.label("named")
        only, full = self.equal(options, 1), self.equal(count, n)
        self.leave_unless(only & full, "other")
        out = self.call("ptr", "dict_item", f"ptr %kwargs, ptr {self.constant('out')}")
        self.leave_if(self.equal(out, "null", "ptr"), "other")
        for i in range(n):
            self.keep("%all", i, self.field(items, 8 * i))
        self.keep("%all", n, out)
        arguments = f"ptr %self, ptr %all, i64 {n}, ptr {self.constant('names')}"
        self.do(f"ret ptr {self.put(f'call ptr @entry({arguments})')}")
        self.label("other")
        self.do(f"ret ptr {self.call('ptr', 'call', 'ptr %self, ptr %args, ptr %kwargs')}")
        self.lines.append("}")

    def _array(self, array: str, flags: int) -> str:
        """The data of a plain float64 array; anything else goes to the Python path."""
        self.need(self.is_type(array, "array_type"))
        masked = self.field(array, _FLAGS, "i32") & flags
        float64 = self.equal(self.field(array, _DESCR), self.constant("float64"), "ptr")
        self.need(masked.equals(flags), float64)
        return self.field(array, _DATA)

    def _input(self, i: int) -> tuple[str, str]:
        """Rank and extents of argument i, whose data go into the table of inputs; a float stands
        for an array of one number.
        """
        thing = self.field("%args", 8 * i)
        if self.sizes[i] != 1:
            self.keep("%inputs", i, self._array(thing, PLAIN))
            return self.field(thing, _ND, "i32"), self.field(thing, _DIMS)
        self.fork(self.is_type(thing, "float_type"), f"float{i}", f"array{i}")
        self.label(f"float{i}")
        number = self.at(thing, _NUMBER, "i8")
        self.go(f"input{i}")
        self.label(f"array{i}")
        data = self._array(thing, PLAIN)
        rank, dims = self.field(thing, _ND, "i32"), self.field(thing, _DIMS)
        self.enter(f"last{i}")
        self.enter(f"input{i}")
        kinds = ("ptr", number, data), ("i32", "1", rank), ("ptr", "@one", dims)
        data, rank, dims = (
            self.typed(kind, f"phi {kind} [{one}, %float{i}], [{other}, %last{i}]")
            for kind, one, other in kinds
        )
        self.keep("%inputs", i, data)
        return rank, dims

    def _is(self, dims: str, axis: int, extent: int | str) -> LlvmValue:
        return self.field(dims, 8 * axis, "i64").equals(extent)

    def _many(
        self, few: FunctionPointer | None, batch: FunctionPointer | None, dims: list[str]
    ) -> None:
        """Rows: fewer than a batch has are left to the function for one state."""
        states = self.field(dims[0], 0, "i64")
        conditions = [self._is(d, 1, size) for d, size in zip(dims, self.sizes, strict=True)]
        conditions += [self._is(d, 0, states) for d in dims[1:]]
        least = 1 if few is not None else self.lanes
        self.need(*conditions, states >= least)
        if few is not None:
            self.fork(states < self.lanes, "few", "lot")
            self.label("few")
            self._answer(few, states, [states], "few", inside=True)
            self.label("lot")
            if batch is None:
                self.go("fallback")
        if batch is not None:
            self._answer(batch, states, [states], "many")

    def _watch(self, locks: Locks) -> None:
        """No angle at a lock."""
        first = self.field("%inputs", 0)
        for place, half_turns in locks:
            angle = self.field(first, 8 * place, "double")
            turns = angle * (1.0 / math.pi) - half_turns
            left = turns - (turns + _ROUND - _ROUND)  # to the nearest whole number
            self.need((left > LOCK_TOLERANCE) | (left < -LOCK_TOLERANCE))

    # ---- results ----

    def _answer(
        self,
        compute: FunctionPointer,
        states: str,
        lead: list[str],
        stem: str,
        inside: bool = False,
    ) -> None:
        """Allocate the results, run the kernel and return; a batch runs outside Python's lock,
        unless it must stay ``inside``.
        """
        m = len(self.shapes)
        for k in range(m):
            self.keep("%made", k, "null")
        self.fork(self.equal("%given", "null", "ptr"), f"{stem}.make", f"{stem}.take")
        self.label(f"{stem}.make")
        for k, shape in enumerate(self.shapes):
            self._make(k, [*lead, *map(str, shape)], f"{stem}.fail")
        self.go(f"{stem}.run")
        self.label(f"{stem}.take")
        self._take(states, lead)
        self.enter(f"{stem}.run")
        outside = bool(lead) and not inside
        state = self.call("ptr", "release", "") if outside else ""
        further = [self.constant(f"{stem} {i}", x) for i, x in enumerate(compute.arguments)]
        arguments = ", ptr ".join([f"i64 {states}", "%inputs", "%outputs", *further])
        flags = self.call("i64", stem, arguments, compute.address)
        if outside:
            self.call("void", "acquire", f"ptr {state}")
        self.fork(self.equal(flags, 0), f"{stem}.give", f"{stem}.drop")
        for name, then in (("drop", "br label %fallback"), ("fail", "ret ptr null")):
            self.label(f"{stem}.{name}")
            for k in range(m):
                self.call("void", "decref", f"ptr {self.field('%made', 8 * k)}")
            self.do(then)
        self.label(f"{stem}.give")
        self.fork(self.equal("%given", "null", "ptr"), f"{stem}.new", f"{stem}.back")
        self.label(f"{stem}.back")
        self.call("void", "incref", "ptr %given")
        self.do("ret ptr %given")
        self.label(f"{stem}.new")
        self._give(bool(lead), f"{stem}.fail")

    def _store_result(self, k: int, thing: str, fail: str) -> None:
        """Store a new object; null means that there was no memory for it."""
        self.keep("%made", k, thing)
        self.leave_if(self.equal(thing, "null", "ptr"), fail)

    def _make(self, k: int, extents: list[str], fail: str) -> None:
        """A fresh array for result k; a single number has its place in the frame."""
        if not extents:
            self.keep("%outputs", k, self.at("%numbers", 8 * k, "i8"))
            return
        for i, extent in enumerate(extents):
            self.keep("%shape", i, extent, "i64")
        descr = self.constant("float64")
        self.call("void", "incref", f"ptr {descr}")  # which the new array takes
        kind = f"ptr {self.constant('array_type')}, ptr {descr}, i32 {len(extents)}, ptr %shape"
        rest = "ptr null, ptr null, i32 0, ptr null"
        array = self.call("ptr", "array_new", f"{kind}, {rest}")
        self._store_result(k, array, fail)
        self.keep("%outputs", k, self.field(array, _DATA))

    def _take(self, states: str, lead: list[str]) -> None:
        """The arrays that were given for the results: of the right shapes, and apart from each
        other and from the inputs.
        """
        m, arrays = len(self.shapes), ["%given"]
        if m > 1:
            named = self.is_type("%given", "answer", id(self.answer))
            self.need(named | self.is_type("%given", "tuple_type"))
            self.need(self.equal(self.field("%given", _SIZE, "i64"), m))
            arrays = [self.field("%given", self.python["items"] + 8 * k) for k in range(m)]
        used = [
            self._span(self.field("%inputs", 8 * i), size, states)
            for i, size in enumerate(self.sizes)
        ]
        for k, (array, shape) in enumerate(zip(arrays, self.shapes, strict=True)):
            data = self._array(array, _WRITABLE)
            extents = [*lead, *map(str, shape)]
            self.need(self.equal(self.field(array, _ND, "i32"), len(extents), "i32"))
            dims = self.field(array, _DIMS)
            if extents:
                self.need(*(self._is(dims, i, extent) for i, extent in enumerate(extents)))
            start, end = self._span(data, math.prod(shape), states)
            for first, last in used:
                before = self.test("ule", end, first, "ptr")
                behind = self.test("uge", start, last, "ptr")
                self.need(before | behind)
            used.append((start, end))
            self.keep("%outputs", k, data)

    def _span(self, data: str, size: int, states: str) -> tuple[str, str]:
        return data, self.at(data, self.mul(states, 8 * size), "i8")

    def _give(self, batch: bool, fail: str) -> None:
        """Return the one result, or the tuple of all; an array without axes is a number."""
        items, m = self.python["items"], len(self.shapes)
        for k, shape in enumerate(self.shapes):
            if not batch and not shape:
                where = self.at("%numbers", 8 * k, "i8")
                kind = f"ptr {self.constant('float64')}"
                self._store_result(
                    k, self.call("ptr", "scalar", f"ptr {where}, {kind}, ptr null"), fail
                )
        if m == 1:
            self.do(f"ret ptr {self.field('%made', 0)}")
            return
        kind = f"ptr {self.constant('answer', id(self.answer))}, i64 {m}"
        answer = self.call("ptr", "allocate", kind)
        self.leave_if(self.equal(answer, "null", "ptr"), fail)
        if items > _SIZE + 8:  # since Python 3.14: the hash, not yet known
            self.do(f"store i64 -1, ptr {self.at(answer, _SIZE + 8, 'i8')}")
        for k in range(m):
            item = self.field("%made", 8 * k)
            self.do(f"store ptr {item}, ptr {self.at(answer, items + 8 * k, 'i8')}")
        self.do(f"ret ptr {answer}")
