"""LLVM text: lines with fresh names, and vectors of numbers with their mathematical functions.

Every vector has ``width`` lanes, one state per lane.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from ramify.core.lookup import LookupTable
from ramify.emit.cpu_target import CpuTarget
from ramify.emit.values import LlvmValue, double_literal, where

ANGLE_LIMIT: Final = 1.0e6
"""Largest angle (rad) the kernels' own sine and cosine take; beyond it the caller reduces the angle
first.
"""
_SINGLE_LIMIT: Final = 1.0e3
"""``ANGLE_LIMIT`` in single precision."""

# pi/2 in three parts of 33 bits (the products with a whole number below 2^20 are exact), and the
# minimax polynomials of sine and cosine on [-pi/4, pi/4], and of (x - arctangent of x) / x^3 up to
# 7/16: the constants of Sun's fdlibm.
_PI_2 = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
_SIN = (
    -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
    2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
)  # fmt: skip
_COS = (
    4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
    -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
)  # fmt: skip
_ATAN = (
    3.33333333333329318027e-01, -1.99999999998764832476e-01, 1.42857142725034663711e-01,
    -1.11111104054623557880e-01,
    9.09088713343650656196e-02, -7.69187620504482999495e-02, 6.66107313738753120669e-02,
    -5.83357013379057348645e-02,
    4.97687799461593236017e-02, -3.65315727442169155270e-02, 1.62858201153657823623e-02,
)  # fmt: skip
# The same in single precision: parts of 8 and 11 bits, polynomials of Moshier's Cephes.
_SINGLE_PI_2 = (1.5703125, 4.837512969970703125e-4, 7.54978995489188216e-8)
_SINGLE_SIN = (-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4)
_SINGLE_COS = (4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5)
_TAN_22 = 0.41421356237309503
# 1.5 * 2^52 and 1.5 * 2^23: adding it leaves the nearest whole number in the low bits
_ROUND, _SINGLE_ROUND = 6755399441055744.0, 12582912.0


class InOrder(str):
    """LLVM text whose instructions are faster in the order in which they are written: long code
    that the compiler's scheduler would only give more values to keep at once.
    """


class Lines:
    """Lines of one function, with fresh names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def name(self) -> str:
        self._count += 1
        return f"%t{self._count}"

    def put(self, text: str) -> str:
        """Append a line that gives a value; returns its name."""
        out = self.name()
        self.lines.append(f"  {out} = {text}")
        return out

    def value(self, name: str, kind: str) -> LlvmValue:
        """A value that has a name already, with its type."""
        return LlvmValue(name, kind, self)

    def typed(self, kind: str, text: str) -> LlvmValue:
        """Append a line that gives a value of a type."""
        return LlvmValue(self.put(text), kind, self)

    def literal(self, x: float, kind: str) -> str:
        """A number as a literal of a type."""
        return double_literal(x) if kind == "double" else f"{x:d}"

    def do(self, text: str) -> None:
        """Append a line without a value."""
        self.lines.append(f"  {text}")

    def label(self, text: str) -> None:
        self.lines.append(f"{text}:")

    def go(self, label: str) -> None:
        self.do(f"br label %{label}")

    def enter(self, label: str) -> None:
        """Jump to a label and begin it."""
        self.go(label)
        self.label(label)

    def fork(self, condition: str, yes: str, no: str) -> None:
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")

    def leave_if(self, condition: str, label: str) -> None:
        """Jump to a label if a condition holds."""
        here = f"l{self.name()[1:]}"
        self.fork(condition, label, here)
        self.label(here)

    def leave_unless(self, condition: str, label: str) -> None:
        """Jump to a label unless a condition holds."""
        here = f"l{self.name()[1:]}"
        self.fork(condition, here, label)
        self.label(here)

    def equal(self, a: str, b: int | str, kind: str = "i64") -> LlvmValue:
        return self.test("eq", a, b, kind)

    def test(self, how: str, a: str, b: int | str, kind: str = "i64") -> LlvmValue:
        return self.typed("i1", f"icmp {how} {kind} {a}, {b}")

    def choose(self, condition: str, a: int | str, b: int | str, kind: str = "i64") -> LlvmValue:
        return self.typed(kind, f"select i1 {condition}, {kind} {a}, {kind} {b}")

    def add(self, a: str, b: int | str) -> LlvmValue:
        return self.typed("i64", f"add i64 {a}, {b}")

    def sub(self, a: int | str, b: int | str) -> LlvmValue:
        return self.typed("i64", f"sub i64 {a}, {b}")

    def mul(self, a: str, b: int | str) -> LlvmValue:
        return self.typed("i64", f"mul i64 {a}, {b}")

    def at(self, base: str, index: int | str, kind: str = "double") -> str:
        """The address of an entry of a table."""
        return self.put(f"getelementptr {kind}, ptr {base}, i64 {index}")

    def item(self, base: str, index: int | str, kind: str = "double") -> LlvmValue:
        """An entry of a table."""
        return self.typed(kind, f"load {kind}, ptr {self.at(base, index, kind)}")

    def unpack(self, table: str, kinds: Mapping[str, str]) -> None:
        """The entries of a table, 8 bytes each, under their names."""
        for i, (name, kind) in enumerate(kinds.items()):
            self.do(f"%{name} = load {kind}, ptr {self.at(table, i, 'i64')}")

    def when(self, condition: str, body: Callable[[], None]) -> None:
        """``body()`` if a condition holds."""
        label = self.name()[1:]
        self.fork(condition, f"{label}.then", f"{label}.done")
        self.label(f"{label}.then")
        body()
        self.enter(f"{label}.done")

    def count(
        self, body: Callable[[str], None], start: str, stop: int | str, step: int = 1
    ) -> None:
        """``body(i)`` for i = start, start + step … while i < stop; downwards, while i >= stop."""
        label = self.name()[1:]
        self.enter(f"{label}.enter")
        self.enter(f"{label}.test")
        self.do(f"%{label}.i = phi i64 [{start}, %{label}.enter], [%{label}.next, %{label}.end]")
        more = self.test("slt" if step > 0 else "sge", f"%{label}.i", stop)
        self.fork(more, f"{label}.body", f"{label}.exit")
        self.label(f"{label}.body")
        body(f"%{label}.i")
        self.enter(f"{label}.end")
        self.do(f"%{label}.next = add i64 %{label}.i, {step}")
        self.go(f"{label}.test")
        self.label(f"{label}.exit")

    def function(self, name: str, arguments: str, first: str = "i64 %states, ") -> str:
        """The text of the function: it takes the number of rows, then pointers that do not overlap.
        Spilled vectors stay within cache lines.
        """
        pointers = ", ".join(f"ptr noalias %{argument}" for argument in arguments.split())
        head = f'define i64 @{name}({first}{pointers}) "stackrealign" {{'
        return "\n".join([head, "entry:", *self.lines, "}"])


class Writer(Lines):
    """Lines of a function on vectors, for a target."""

    def __init__(self, target: CpuTarget) -> None:
        super().__init__()
        self.target = target
        self.width = target.width
        self.intrinsics: set[str] = set()
        self._tables: set[str] = set()
        bits = target.bits
        self.single = bits == 32
        self.number = "float" if self.single else "double"
        self.bytes = bits // 8
        self.angle_limit = _SINGLE_LIMIT if self.single else ANGLE_LIMIT
        self.align = self.bytes * self.width
        self.vector = self.number if self.width == 1 else f"<{self.width} x {self.number}>"
        self.integer = f"i{bits}" if self.width == 1 else f"<{self.width} x i{bits}>"
        self.truth = "i1" if self.width == 1 else f"<{self.width} x i1>"
        self.suffix = f"f{bits}" if self.width == 1 else f"v{self.width}f{bits}"

    def module(self, *texts: str) -> str:
        """The text of a module, declarations first."""
        return "\n".join([*sorted(self.intrinsics), *texts, ""])

    def clear(self, start: str, count: int | str) -> None:
        """Set ``count`` bytes of memory to zero."""
        self.intrinsics.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        self.do(f"call void @llvm.memset.p0.i64(ptr {start}, i8 0, i64 {count}, i1 false)")

    def begin_blocks(self) -> None:
        """The loop that every kernel has around it, over ``%states`` rows: in what follows,
        ``%row`` is the first row of a block of ``width``.
        """
        self.do(f"%last = sub i64 %states, {self.width}")
        self.enter("block")
        self.do("%row = phi i64 [0, %entry], [%next, %finish]")
        self.do("%flags = phi i64 [0, %entry], [%flags.next, %finish]")

    def end_blocks(self, flags: str) -> None:
        """Collect a block's flags and go on: one width further, but no later than the last full
        block, which overlaps the one before; then return all flags.
        """
        self.enter("finish")
        self.do(f"%flags.next = or i64 %flags, {flags}")
        following = self.add("%row", self.width)
        beyond = self.test("sgt", following, "%last")
        self.do(f"%next = select i1 {beyond}, i64 %last, i64 {following}")
        self.fork(self.test("sge", "%row", "%last"), "exit", "block")
        self.label("exit")
        self.do("ret i64 %flags.next")

    def repeat(
        self,
        body: Callable[..., Sequence[str] | None],
        start: str,
        stop: int | str,
        step: int = 1,
        until: str = "",
        carried: Sequence[str] = (),
    ) -> list[str]:
        """``body(i, *values)`` for i = start, start + step … while i < stop; or, at least once,
        ``until`` a test of i and stop holds. The body gives the values that the next round gets,
        beginning with those ``carried``; gives the last.
        """
        label = self.name()[1:]
        names = [f"%{label}.i", *(f"%{label}.{k}" for k in range(len(carried)))]
        self.enter(f"{label}.enter")
        ways = f"{label}.body", f"{label}.exit"
        if until:
            self.go(ways[0])
        else:
            self.fork(self.test("slt", start, stop), *ways)
        self.label(f"{label}.body")
        at = len(self.lines)
        results = body(*names) or ()
        self.enter(f"{label}.end")
        ends = [self.add(names[0], step), *results]
        self.fork(self.test(until or "slt", ends[0], stop), *(ways[::-1] if until else ways))
        self.label(f"{label}.exit")
        kinds = ["i64", *[self.vector] * len(carried)]
        pairs = [
            f"phi {kind} [{first}, %{label}.enter], [{last}, %{label}.end]"
            for kind, first, last in zip(kinds, (start, *carried), ends, strict=True)
        ]
        self.lines[at:at] = [f"  {x} = {pair}" for x, pair in zip(names, pairs, strict=True)]
        return [self.put(pair) for pair in pairs[1:]]

    def literal(self, x: float, kind: str) -> str:
        return self.const(x) if kind == self.vector else super().literal(x, kind)

    def const(self, x: float) -> str:
        """A known number in all lanes."""
        text = double_literal(float(np.float32(x)) if self.single else x)
        if self.width == 1:
            return text
        return f"<{', '.join([f'{self.number} {text}'] * self.width)}>"

    def whole(self, x: int) -> str:
        one = f"i{8 * self.bytes} {x}"
        return str(x) if self.width == 1 else f"<{', '.join([one] * self.width)}>"

    def binary(self, op: str, a: str, b: str) -> LlvmValue:
        return self.typed(self.vector, f"{op} {self.vector} {a}, {b}")

    def call(self, intrinsic: str, *args: str) -> LlvmValue:
        """A call of an LLVM intrinsic on vectors."""
        name = f"{self.vector} @llvm.{intrinsic}.{self.suffix}"
        self.intrinsics.add(f"declare {name}({', '.join([self.vector] * len(args))})")
        text = f"call {name}({', '.join(f'{self.vector} {a}' for a in args)})"
        return self.typed(self.vector, text)

    def compare(self, test: str, a: str, b: str) -> LlvmValue:
        return self.typed(self.truth, f"fcmp {test} {self.vector} {a}, {b}")

    def to_bits(self, x: str) -> str:
        return self.put(f"bitcast {self.vector} {x} to {self.integer}")

    def from_bits(self, x: str) -> str:
        return self.put(f"bitcast {self.integer} {x} to {self.vector}")

    def load(self, address: str, align: int = 0) -> LlvmValue:
        """A vector in memory, by default on a boundary of its own size."""
        return self.typed(
            self.vector, f"load {self.vector}, ptr {address}, align {align or self.align}"
        )

    def store(self, value: str, address: str, align: int = 0) -> None:
        self.do(f"store {self.vector} {value}, ptr {address}, align {align or self.align}")

    def joined(self, lanes: Iterable[str]) -> str:
        """A vector of some numbers."""
        value = "poison"
        for i, x in enumerate(lanes):
            if self.width == 1:
                return x
            value = self.put(f"insertelement {self.vector} {value}, {self.number} {x}, i64 {i}")
        return value

    def lane(self, value: str, i: int) -> LlvmValue:
        """A number of a vector."""
        if self.width == 1:
            return self.value(value, self.number)
        return self.typed(self.number, f"extractelement {self.vector} {value}, i64 {i}")

    def gathered(self, places: str, mask: str = "") -> str:
        """The numbers at the addresses of a vector, where a mask is set; by default everywhere."""
        pointers, gather = f"<{self.width} x ptr>", f"llvm.masked.gather.{self.suffix}"
        gather = f"{self.vector} @{gather}.v{self.width}p0"
        self.intrinsics.add(f"declare {gather}({pointers}, i32, {self.truth}, {self.vector})")
        mask = mask or f"<{', '.join(['i1 true'] * self.width)}>"
        return self.put(
            f"call {gather}({pointers} {places}, i32 {self.bytes}, {self.truth} {mask}, "
            f"{self.vector} zeroinitializer)"
        )

    def multiply_add(self, a: str, b: str, c: str) -> LlvmValue:
        """a * b + c."""
        if self.target.fma:
            return self.call("fma", a, b, c)
        return self.binary("fadd", self.binary("fmul", a, b), c)

    def negated(self, a: str) -> LlvmValue:
        return self.typed(self.vector, f"fneg {self.vector} {a}")

    def splat(self, scalar: str) -> LlvmValue:
        """A number in all lanes."""
        if self.width == 1:
            return self.value(scalar, self.vector)
        first = self.put(f"insertelement {self.vector} poison, {self.number} {scalar}, i64 0")
        return self.shuffled(first, "poison", "zeroinitializer")

    def shuffled(self, a: str, b: str, order: str) -> LlvmValue:
        text = f"shufflevector {self.vector} {a}, {self.vector} {b}, <{self.width} x i32> {order}"
        return self.typed(self.vector, text)

    def sine_cosine(self, x: str) -> tuple[str, str]:
        """Sine and cosine of |x| < angle_limit: reduced by multiples of pi/2, two polynomials."""
        parts, of_sine, of_cosine, up = (
            (_SINGLE_PI_2, _SINGLE_SIN, _SINGLE_COS, _SINGLE_ROUND)
            if self.single
            else (_PI_2, _SIN, _COS, _ROUND)
        )
        shifted = self.multiply_add(x, self.const(0.63661977236758134308), self.const(up))
        k = shifted - up
        bits = self.to_bits(shifted)
        minus_k = self.negated(k)
        r = self.value(x, self.vector)
        for part in parts:
            r = self.multiply_add(minus_k, self.const(part), r)
        z = r * r
        s = self._polynomial(z, of_sine)
        s = self.multiply_add(z * r, s, r)
        c = self.multiply_add(z, self._polynomial(z, of_cosine), self.const(-0.5))
        c = self.multiply_add(z, c, self.const(1.0))
        odd = self.put(f"trunc {self.integer} {bits} to {self.truth}")
        sine, cosine = self.pick(odd, c, s), self.pick(odd, s, c)
        return self._signed(sine, bits, 0), self._signed(cosine, bits, 1)

    def angle_of(self, y: str, x: str) -> str:
        """The angle of the point (x, y): arctangent of a quotient below tan(pi/8), then what its
        octant adds.
        """
        width, height = self.call("fabs", x), self.call("fabs", y)
        steep = height > width
        small, large = self.pick(steep, width, height), self.pick(steep, height, width)
        one = self.const(1.0)
        origin = large.equals(0.0)
        t = small / self.pick(origin, one, large)
        wide = t > _TAN_22
        r = where(wide, (t - one) / (t + one), t)
        z = r * r
        minus = self.negated(r * z)
        bent = self.multiply_add(minus, self._polynomial(z, _ATAN), r)
        eighth = self.pick(wide, self.const(0.25 * math.pi), self.const(0.0))
        angle = bent + eighth
        angle = where(steep, 0.5 * math.pi - angle, angle)
        behind = self.put(f"icmp slt {self.integer} {self.to_bits(x)}, {self.whole(0)}")
        angle = where(self.value(behind, self.truth), math.pi - angle, angle)
        return self.call("copysign", angle, y)

    def _polynomial(self, z: str, coefficients: tuple[float, ...]) -> str:
        value = self.const(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            value = self.multiply_add(value, z, self.const(c))
        return value

    def _signed(self, x: str, quadrant: str, ahead: int) -> str:
        """x, negated where bit 1 of quadrant + ahead is set."""
        if ahead:
            quadrant = self.put(f"add {self.integer} {quadrant}, {self.whole(ahead)}")
        bit = self.put(f"and {self.integer} {quadrant}, {self.whole(2)}")
        sign = self.put(f"shl {self.integer} {bit}, {self.whole(8 * self.bytes - 2)}")
        return self.from_bits(self.put(f"xor {self.integer} {self.to_bits(x)}, {sign}"))

    def pick(self, condition: str, a: str, b: str) -> LlvmValue:
        """a where the condition holds, else b."""
        text = f"select {self.truth} {condition}, {self.vector} {a}, {self.vector} {b}"
        return self.typed(self.vector, text)

    def any(self, condition: str) -> str:
        """Whether a condition holds in some lane."""
        if self.width == 1:
            return condition
        bits = self.put(f"bitcast <{self.width} x i1> {condition} to i{self.width}")
        return self.put(f"icmp ne i{self.width} {bits}, 0")

    def lookup(self, table: LookupTable, place: str) -> str:
        """The entries of a table, which is part of the code's own memory, at whole numbers; what is
        beyond its ends, or no number, takes the end.
        """
        assert not self.single, "tables are made of doubles"
        name, size = f"@table.{table.digest}", len(table)
        if name not in self._tables:
            self._tables.add(name)
            data = f'[{8 * size} x i8] c"{_bytes(table)}"'
            self.intrinsics.add(f"{name} = private unnamed_addr constant {data}, align 64")
        zero, last = self.const(0.0), self.const(size - 1.0)
        place = self.pick(self.compare("ogt", place, zero), place, zero)
        place = self.pick(self.compare("olt", place, last), place, last)
        index = self.put(f"fptosi {self.vector} {place} to {self.integer}")
        at = self.put(f"getelementptr double, ptr {name}, {self.integer} {index}")
        return self.put(f"load double, ptr {at}") if self.width == 1 else self.gathered(at)


def _bytes(table: LookupTable) -> str:
    """A table as LLVM writes a string: every byte as a backslash and two digits."""
    digits = np.frombuffer(table.values.tobytes().hex().encode(), dtype="S1").reshape(-1, 2)
    text = np.full((len(digits), 3), b"\\", dtype="S1")
    text[:, 1:] = digits
    return text.tobytes().decode()
