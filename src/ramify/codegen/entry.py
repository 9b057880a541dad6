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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ramify.codegen.vector import number

PLAIN: Final = 0x0001 | 0x0100  # NumPy's flags: C-contiguous, aligned
_WRITABLE: Final = PLAIN | 0x0400
LOCK_TOLERANCE: Final = 4e-5  # half turns from a lock; within it the Python path looks closer
_ROUND: Final = 1.5 * 2.0**52  # added and taken away again, it rounds to a whole number
_TYPE, _SIZE = 8, 16  # offsets in any object, in a tuple
_NUMBER: Final = 16  # in a float
_DATA, _ND, _DIMS, _DESCR, _FLAGS = 16, 24, 32, 56, 64  # offsets in NumPy's array object


@dataclass(frozen=True)
class Compute:
    """A kernel's function: its address, what it takes after inputs and outputs, and what keeps
    these alive.
    """

    address: int
    arguments: tuple[int, ...]
    keep: object


Locks = Sequence[tuple[int, float]]
"""Angles of a kernel's first input that lock: (place, half turns from zero)."""


class Batch(NamedTuple):
    """The function for batches; the fewest states it takes."""

    compute: Compute
    fewest: int


class Signature(NamedTuple):
    """Numbers per state of each input; the shape of each result; the tuple that several results
    make.
    """

    sizes: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    answer: type[tuple] = tuple  # type: ignore[type-arg]


class Python(NamedTuple):
    """Addresses in the running interpreter; ``items`` is where a tuple's items begin."""

    array_type: int
    float64: int
    array_new: int
    scalar: int
    vectorcall: int
    decref: int
    incref: int
    release: int
    acquire: int
    allocate: int
    tuple_type: int
    items: int
    out: int
    names: int
    float_type: int
    dict_item: int
    call: int


def entry_ir(
    single: Compute | None,
    batch: Batch | None,
    signature: Signature,
    locks: Locks,
    python: Python,
    lanes: int,
) -> tuple[str, list[int]]:
    """LLVM text of ``@entry``, and what its ``@addresses`` must hold. Fewer states than ``lanes``
    are no batch.
    """
    entry = _EntryWriter(signature, python, lanes)
    text = entry.text(single, batch, locks)
    return text, list(entry.addresses.values())


class _EntryWriter:
    def __init__(self, signature: Signature, python: Python, lanes: int) -> None:
        self.sizes, self.shapes, self.answer = signature
        self.python, self.lanes = python, lanes
        self.lines: list[str] = []
        self.addresses: dict[str, int] = {}
        self._count = 0

    # ---- writing ----

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def fresh(self) -> str:
        self._count += 1
        return f"%t{self._count}"

    def put(self, text: str) -> str:
        name = self.fresh()
        self.do(f"{name} = {text}")
        return name

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def at(self, pointer: str, offset: int | str) -> str:
        return self.put(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def field(self, pointer: str, offset: int, kind: str) -> str:
        return self.put(f"load {kind}, ptr {self.at(pointer, offset)}")

    def keep(self, table: str, index: int, kind: str, value: str) -> None:
        self.do(f"store {kind} {value}, ptr {self.at(table, 8 * index)}")

    def known(self, name: str, address: int | None = None, kind: str = "ptr") -> str:
        """An address, by default one of the interpreter's."""
        value = int(getattr(self.python, name)) if address is None else address
        place = list(self.addresses).index(name) if name in self.addresses else len(self.addresses)
        self.addresses[name] = value
        return self.field("@addresses", 8 * place, kind)

    def call(self, kind: str, name: str, arguments: str, address: int | None = None) -> str:
        call = f"call {kind} {self.known(name, address)}({arguments})"
        if kind == "void":
            self.do(call)
            return ""
        return self.put(call)

    def is_type(self, thing: str, name: str, address: int | None = None) -> str:
        kind = self.known(name, address)
        return self.put(f"icmp eq ptr {self.field(thing, _TYPE, 'ptr')}, {kind}")

    def fork(self, condition: str, yes: str, no: str) -> None:
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")

    def need(self, *conditions: str) -> None:
        """Go on where all conditions hold, else to the Python path."""
        both = conditions[0]
        for condition in conditions[1:]:
            both = self.put(f"and i1 {both}, {condition}")
        then = self.fresh()[1:]
        self.fork(both, f"l{then}", "fallback")
        self.label(f"l{then}")

    # ---- the entry ----

    def text(self, single: Compute | None, batch: Batch | None, locks: Locks) -> str:
        n, m = len(self.sizes), len(self.shapes)
        few = None if locks else single  # takes a few states as well; locks are looked at in one
        self.lines.append("define ptr @entry(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) {")
        self.label("start")
        for name, kind in (("inputs", "ptr"), ("outputs", "ptr"), ("made", "ptr")):
            self.do(f"%{name} = alloca [{max(n, m)} x {kind}]")
        self.do(f"%shape = alloca [{1 + max(map(len, self.shapes))} x i64]")
        self.do(f"%numbers = alloca [{m} x double]")
        self.need(self.put(f"icmp eq i64 %nargs, {n}"))
        self.do("br label %named")
        self.label("named")
        self.fork(self.put("icmp eq ptr %kwnames, null"), "look", "options")
        self.label("options")
        only = self.put(f"icmp eq i64 {self.field('%kwnames', _SIZE, 'i64')}, 1")
        word = self.put(
            f"icmp eq ptr {self.field('%kwnames', self.python.items, 'ptr')}, {self.known('out')}"
        )
        given = self.field("%args", 8 * n, "ptr")  # there, as the names are not empty
        self.fork(self.put(f"and i1 {only}, {word}"), "look", "fallback")
        self.label("look")
        self.do(f"%given = phi ptr [null, %named], [{given}, %options]")
        looked = [self._input(i) for i in range(n)]
        rank, dims = looked[0][0], [d for _, d in looked]
        self.need(*(self.put(f"icmp eq i32 {r}, {rank}") for r, _ in looked))
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
        """``@object(self, args, kwargs)``: the same for a call that arrives with a tuple and a
        dictionary, as calls of objects do; an ``out`` alone is found without unpacking.
        """
        self.lines.append("define ptr @object(ptr %self, ptr %args, ptr %kwargs) {")
        self.label("start")
        self.do(f"%all = alloca [{n + 1} x ptr]")
        count, items = self.field("%args", _SIZE, "i64"), self.at("%args", self.python.items)
        self.fork(self.put("icmp eq ptr %kwargs, null"), "plain", "counted")
        self.label("counted")
        options = self.field("%kwargs", _SIZE, "i64")
        self.fork(self.put(f"icmp eq i64 {options}, 0"), "plain", "named")
        self.label("plain")
        given = f"ptr %self, ptr {items}, i64 {count}, ptr null"
        self.do(f"ret ptr {self.put(f'call ptr @entry({given})')}")
        self.label("named")
        only = self.put(f"icmp eq i64 {options}, 1")
        full = self.put(f"icmp eq i64 {count}, {n}")
        self.fork(self.put(f"and i1 {only}, {full}"), "find", "other")
        self.label("find")
        out = self.call("ptr", "dict_item", f"ptr %kwargs, ptr {self.known('out')}")
        self.fork(self.put(f"icmp eq ptr {out}, null"), "other", "found")
        self.label("found")
        for i in range(n):
            self.keep("%all", i, "ptr", self.field(items, 8 * i, "ptr"))
        self.keep("%all", n, "ptr", out)
        given = f"ptr %self, ptr %all, i64 {n}, ptr {self.known('names')}"
        self.do(f"ret ptr {self.put(f'call ptr @entry({given})')}")
        self.label("other")
        self.do(f"ret ptr {self.call('ptr', 'call', 'ptr %self, ptr %args, ptr %kwargs')}")
        self.lines.append("}")

    def _array(self, array: str, flags: int) -> str:
        """The data of a plain float64 array; anything else goes to the Python path."""
        self.need(self.is_type(array, "array_type"))
        masked = self.put(f"and i32 {self.field(array, _FLAGS, 'i32')}, {flags}")
        descr = self.field(array, _DESCR, "ptr")
        float64 = self.put(f"icmp eq ptr {descr}, {self.known('float64')}")
        self.need(self.put(f"icmp eq i32 {masked}, {flags}"), float64)
        return self.field(array, _DATA, "ptr")

    def _input(self, i: int) -> tuple[str, str]:
        """Rank and extents of argument i, whose data go into the table of inputs; a float stands
        for an array of one number.
        """
        thing = self.field("%args", 8 * i, "ptr")
        if self.sizes[i] != 1:
            self.keep("%inputs", i, "ptr", self._array(thing, PLAIN))
            return self.field(thing, _ND, "i32"), self.field(thing, _DIMS, "ptr")
        self.fork(self.is_type(thing, "float_type"), f"float{i}", f"array{i}")
        self.label(f"float{i}")
        number = self.at(thing, _NUMBER)
        self.do(f"br label %input{i}")
        self.label(f"array{i}")
        data = self._array(thing, PLAIN)
        rank, dims = self.field(thing, _ND, "i32"), self.field(thing, _DIMS, "ptr")
        self.do(f"br label %last{i}")
        self.label(f"last{i}")
        self.do(f"br label %input{i}")
        self.label(f"input{i}")
        joined = [
            self.put(f"phi {kind} [{one}, %float{i}], [{other}, %last{i}]")
            for kind, one, other in (
                ("ptr", number, data),
                ("i32", "1", rank),
                ("ptr", "@one", dims),
            )
        ]
        self.keep("%inputs", i, "ptr", joined[0])
        return joined[1], joined[2]

    def _is(self, dims: str, axis: int, extent: int | str) -> str:
        return self.put(f"icmp eq i64 {self.field(dims, 8 * axis, 'i64')}, {extent}")

    def _many(self, few: Compute | None, batch: Batch | None, dims: list[str]) -> None:
        """Rows: fewer than a batch has are left to the function for one state."""
        states = self.field(dims[0], 0, "i64")
        conditions = [self._is(d, 1, size) for d, size in zip(dims, self.sizes, strict=True)]
        conditions += [self._is(d, 0, states) for d in dims[1:]]
        fewest = self.lanes if batch is None else batch.fewest
        least = 1 if few is not None else fewest
        self.need(*conditions, self.put(f"icmp sge i64 {states}, {least}"))
        if few is not None:
            self.fork(self.put(f"icmp slt i64 {states}, {fewest}"), "few", "lot")
            self.label("few")
            self._answer(few, states, [states], "few", inside=True)
            self.label("lot")
            if batch is None:
                self.do("br label %fallback")
        if batch is not None:
            self._answer(batch.compute, states, [states], "many")

    def _watch(self, locks: Locks) -> None:
        """No angle at a lock."""
        first = self.field("%inputs", 0, "ptr")
        for place, half_turns in locks:
            turned = self.put(
                f"fmul double {self.field(first, 8 * place, 'double')}, {number(1.0 / math.pi)}"
            )
            turns = self.put(f"fsub double {turned}, {number(half_turns)}")
            up = self.put(f"fadd double {turns}, {number(_ROUND)}")
            whole = self.put(f"fsub double {up}, {number(_ROUND)}")
            left = self.put(f"fsub double {turns}, {whole}")
            over, under = (
                self.put(f"fcmp {op} double {left}, {number(s * LOCK_TOLERANCE)}")
                for op, s in (("ogt", 1), ("olt", -1))
            )
            self.need(self.put(f"or i1 {over}, {under}"))

    # ---- results ----

    def _answer(
        self, compute: Compute, states: str, lead: list[str], stem: str, inside: bool = False
    ) -> None:
        """Places for the results, the kernel's numbers in them, and the return; a batch runs
        outside Python's lock, unless it is to stay ``inside``.
        """
        m = len(self.shapes)
        for k in range(m):
            self.keep("%made", k, "ptr", "null")
        self.fork(self.put("icmp eq ptr %given, null"), f"{stem}.make", f"{stem}.take")
        self.label(f"{stem}.make")
        for k, shape in enumerate(self.shapes):
            self._make(k, [*lead, *map(str, shape)], f"{stem}.fail")
        self.do(f"br label %{stem}.run")
        self.label(f"{stem}.take")
        self._take(states, lead)
        self.do(f"br label %{stem}.run")
        self.label(f"{stem}.run")
        outside = bool(lead) and not inside
        state = self.call("ptr", "release", "") if outside else ""
        further = [self.known(f"{stem} {i}", x) for i, x in enumerate(compute.arguments)]
        arguments = ", ptr ".join([f"i64 {states}", "%inputs", "%outputs", *further])
        flags = self.call("i64", stem, arguments, compute.address)
        if outside:
            self.call("void", "acquire", f"ptr {state}")
        self.fork(self.put(f"icmp eq i64 {flags}, 0"), f"{stem}.give", f"{stem}.drop")
        for name, then in (("drop", "br label %fallback"), ("fail", "ret ptr null")):
            self.label(f"{stem}.{name}")
            for k in range(m):
                self.call("void", "decref", f"ptr {self.field('%made', 8 * k, 'ptr')}")
            self.do(then)
        self.label(f"{stem}.give")
        self.fork(self.put("icmp eq ptr %given, null"), f"{stem}.new", f"{stem}.back")
        self.label(f"{stem}.back")
        self.call("void", "incref", "ptr %given")
        self.do("ret ptr %given")
        self.label(f"{stem}.new")
        self._give(bool(lead), f"{stem}.fail")

    def _made(self, k: int, thing: str, fail: str) -> None:
        """Note a new object; null means that there was no memory for it."""
        self.keep("%made", k, "ptr", thing)
        then = self.fresh()[1:]
        self.fork(self.put(f"icmp eq ptr {thing}, null"), fail, f"l{then}")
        self.label(f"l{then}")

    def _make(self, k: int, extents: list[str], fail: str) -> None:
        """A fresh array for result k; a single number has its place in the frame."""
        if not extents:
            self.keep("%outputs", k, "ptr", self.at("%numbers", 8 * k))
            return
        for i, extent in enumerate(extents):
            self.keep("%shape", i, "i64", extent)
        descr = self.known("float64")
        self.call("void", "incref", f"ptr {descr}")  # which the new array takes
        kind = f"ptr {self.known('array_type')}, ptr {descr}, i32 {len(extents)}, ptr %shape"
        rest = "ptr null, ptr null, i32 0, ptr null"
        array = self.call("ptr", "array_new", f"{kind}, {rest}")
        self._made(k, array, fail)
        self.keep("%outputs", k, "ptr", self.field(array, _DATA, "ptr"))

    def _take(self, states: str, lead: list[str]) -> None:
        """The arrays that were given for the results: of the right shapes, and apart from each
        other and from the inputs.
        """
        p, m = self.python, len(self.shapes)
        arrays = ["%given"]
        if m > 1:
            named = self.is_type("%given", "answer", id(self.answer))
            self.need(self.put(f"or i1 {named}, {self.is_type('%given', 'tuple_type')}"))
            self.need(self.put(f"icmp eq i64 {self.field('%given', _SIZE, 'i64')}, {m}"))
            arrays = [self.field("%given", p.items + 8 * k, "ptr") for k in range(m)]
        used = [
            self._span(self.field("%inputs", 8 * i, "ptr"), size, states)
            for i, size in enumerate(self.sizes)
        ]
        for k, (array, shape) in enumerate(zip(arrays, self.shapes, strict=True)):
            data = self._array(array, _WRITABLE)
            extents = [*lead, *map(str, shape)]
            self.need(self.put(f"icmp eq i32 {self.field(array, _ND, 'i32')}, {len(extents)}"))
            dims = self.field(array, _DIMS, "ptr")
            if extents:
                self.need(*(self._is(dims, i, extent) for i, extent in enumerate(extents)))
            start, end = self._span(data, math.prod(shape), states)
            for first, last in used:
                before = self.put(f"icmp ule ptr {end}, {first}")
                behind = self.put(f"icmp uge ptr {start}, {last}")
                self.need(self.put(f"or i1 {before}, {behind}"))
            used.append((start, end))
            self.keep("%outputs", k, "ptr", data)

    def _span(self, data: str, size: int, states: str) -> tuple[str, str]:
        return data, self.at(data, self.put(f"mul i64 {states}, {8 * size}"))

    def _give(self, batch: bool, fail: str) -> None:
        """Return the one result, or the tuple of all; an array without axes is a number."""
        p, m = self.python, len(self.shapes)
        for k, shape in enumerate(self.shapes):
            if not batch and not shape:
                where = self.at("%numbers", 8 * k)
                kind = f"ptr {self.known('float64')}"
                self._made(k, self.call("ptr", "scalar", f"ptr {where}, {kind}, ptr null"), fail)
        if m == 1:
            self.do(f"ret ptr {self.field('%made', 0, 'ptr')}")
            return
        kind = f"ptr {self.known('answer', id(self.answer))}, i64 {m}"
        found = self.call("ptr", "allocate", kind)
        then = self.fresh()[1:]
        self.fork(self.put(f"icmp eq ptr {found}, null"), fail, f"l{then}")
        self.label(f"l{then}")
        if p.items > _SIZE + 8:  # since Python 3.14: the hash, not yet known
            self.do(f"store i64 -1, ptr {self.at(found, _SIZE + 8)}")
        for k in range(m):
            item = self.field("%made", 8 * k, "ptr")
            self.do(f"store ptr {item}, ptr {self.at(found, p.items + 8 * k)}")
        self.do(f"ret ptr {found}")
