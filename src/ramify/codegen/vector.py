"""LLVM text for straight-line code on vectors of doubles: one table from operations to
instructions.

Every value has ``width`` lanes, one state per lane. Products that only feed one sum are fused with
it (where the machine can), by our own rule and not the compiler's, so that every width gives the
same bits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from ramify.codegen.fusion import Fusion, is_size, together
from ramify.codegen.target import CpuTarget
from ramify.core.lookup import LookupTable
from ramify.trace.graph import Graph

ANGLE_LIMIT: Final = 1.0e6
"""Largest angle (rad) the kernels' own sine and cosine take; beyond it the caller reduces the angle
first.
"""
_SINGLE_LIMIT: Final = 1.0e3
"""The same in single precision."""

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


def number(x: float) -> str:
    """A double as LLVM writes it, to the bit."""
    return f"0x{struct.unpack('>Q', struct.pack('>d', x))[0]:016X}"


class Writer:
    """Lines of one function, with fresh names."""

    def __init__(self, target: CpuTarget) -> None:
        self.target = target
        self.width = target.width
        self.lines: list[str] = []
        self._count = 0
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

    def name(self) -> str:
        self._count += 1
        return f"%t{self._count}"

    def put(self, text: str) -> str:
        """A line that gives a value."""
        out = self.name()
        self.lines.append(f"  {out} = {text}")
        return out

    def do(self, text: str) -> None:
        """A line that gives none."""
        self.lines.append(f"  {text}")

    def label(self, text: str) -> None:
        self.lines.append(f"{text}:")

    def const(self, x: float) -> str:
        """A known number in all lanes."""
        text = number(float(np.float32(x)) if self.single else x)
        if self.width == 1:
            return text
        return f"<{', '.join([f'{self.number} {text}'] * self.width)}>"

    def whole(self, x: int) -> str:
        one = f"i{8 * self.bytes} {x}"
        return str(x) if self.width == 1 else f"<{', '.join([one] * self.width)}>"

    def binary(self, op: str, a: str, b: str) -> str:
        return self.put(f"{op} {self.vector} {a}, {b}")

    def call(self, intrinsic: str, *args: str) -> str:
        """A call of an LLVM intrinsic on vectors."""
        kinds = ", ".join([self.vector] * len(args))
        self.intrinsics.add(f"declare {self.vector} @llvm.{intrinsic}.{self.suffix}({kinds})")
        return self.put(
            f"call {self.vector} "
            f"@llvm.{intrinsic}.{self.suffix}({', '.join(f'{self.vector} {a}' for a in args)})"
        )

    def multiply_add(self, a: str, b: str, c: str) -> str:
        """a * b + c."""
        if self.target.fma:
            return self.call("fma", a, b, c)
        return self.binary("fadd", self.binary("fmul", a, b), c)

    def negated(self, a: str) -> str:
        return self.put(f"fneg {self.vector} {a}")

    def splat(self, scalar: str) -> str:
        """A number in all lanes."""
        if self.width == 1:
            return scalar
        first = self.put(f"insertelement {self.vector} poison, {self.number} {scalar}, i64 0")
        return self.put(
            f"shufflevector {self.vector} {first}, {self.vector} poison, <{self.width} x i32> "
            "zeroinitializer"
        )

    def sine_cosine(self, x: str) -> tuple[str, str]:
        """Sine and cosine of |x| < angle_limit: reduced by multiples of pi/2, two polynomials."""
        parts, of_sine, of_cosine, up = (
            (_SINGLE_PI_2, _SINGLE_SIN, _SINGLE_COS, _SINGLE_ROUND)
            if self.single
            else (_PI_2, _SIN, _COS, _ROUND)
        )
        shifted = self.multiply_add(x, self.const(0.63661977236758134308), self.const(up))
        k = self.binary("fsub", shifted, self.const(up))
        bits = self.put(f"bitcast {self.vector} {shifted} to {self.integer}")
        minus_k = self.negated(k)
        r = x
        for part in parts:
            r = self.multiply_add(minus_k, self.const(part), r)
        z = self.binary("fmul", r, r)
        s = self._polynomial(z, of_sine)
        s = self.multiply_add(self.binary("fmul", z, r), s, r)
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
        steep = self.put(f"fcmp ogt {self.vector} {height}, {width}")
        small, large = self.pick(steep, width, height), self.pick(steep, height, width)
        origin = self.put(f"fcmp oeq {self.vector} {large}, {self.const(0.0)}")
        t = self.binary("fdiv", small, self.pick(origin, self.const(1.0), large))
        wide = self.put(f"fcmp ogt {self.vector} {t}, {self.const(_TAN_22)}")
        turned = self.binary(
            "fdiv", self.binary("fsub", t, self.const(1.0)), self.binary("fadd", t, self.const(1.0))
        )
        r = self.pick(wide, turned, t)
        z = self.binary("fmul", r, r)
        bent = self.multiply_add(
            self.negated(self.binary("fmul", r, z)), self._polynomial(z, _ATAN), r
        )
        angle = self.binary(
            "fadd", bent, self.pick(wide, self.const(0.25 * math.pi), self.const(0.0))
        )
        angle = self.pick(steep, self.binary("fsub", self.const(0.5 * math.pi), angle), angle)
        behind = self.put(
            f"icmp slt {self.integer} {self.put(f'bitcast {self.vector} {x} to {self.integer}')}, "
            f"{self.whole(0)}"
        )
        angle = self.pick(behind, self.binary("fsub", self.const(math.pi), angle), angle)
        return self.call("copysign", angle, y)

    def _polynomial(self, z: str, coefficients: tuple[float, ...]) -> str:
        value = self.const(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            value = self.multiply_add(value, z, self.const(c))
        return value

    def _signed(self, x: str, quadrant: str, ahead: int) -> str:
        """x with its sign turned where bit 1 of quadrant + ahead is set."""
        if ahead:
            quadrant = self.put(f"add {self.integer} {quadrant}, {self.whole(ahead)}")
        bit = self.put(f"and {self.integer} {quadrant}, {self.whole(2)}")
        sign = self.put(f"shl {self.integer} {bit}, {self.whole(8 * self.bytes - 2)}")
        bits = self.put(f"bitcast {self.vector} {x} to {self.integer}")
        turned = self.put(f"xor {self.integer} {bits}, {sign}")
        return self.put(f"bitcast {self.integer} {turned} to {self.vector}")

    def pick(self, condition: str, a: str, b: str) -> str:
        """a where the condition holds, else b."""
        return self.put(f"select {self.truth} {condition}, {self.vector} {a}, {self.vector} {b}")

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
        place = self.pick(self.put(f"fcmp ogt {self.vector} {place}, {zero}"), place, zero)
        place = self.pick(self.put(f"fcmp olt {self.vector} {place}, {last}"), place, last)
        index = self.put(f"fptosi {self.vector} {place} to {self.integer}")
        at = self.put(f"getelementptr double, ptr {name}, {self.integer} {index}")
        if self.width == 1:
            return self.put(f"load double, ptr {at}")
        pointers, lanes = f"<{self.width} x ptr>", f"<{self.width} x i1>"
        gather = f"@llvm.masked.gather.{self.suffix}.v{self.width}p0"
        self.intrinsics.add(
            f"declare {self.vector} {gather}({pointers}, i32, {lanes}, {self.vector})"
        )
        every = f"<{', '.join(['i1 true'] * self.width)}>"
        return self.put(
            f"call {self.vector} {gather}({pointers} {at}, i32 8, {lanes} {every}, "
            f"{self.vector} zeroinitializer)"
        )


def _bytes(table: LookupTable) -> str:
    """A table as LLVM writes a string: every byte as a backslash and two digits."""
    digits = np.frombuffer(table.values.tobytes().hex().encode(), dtype="S1").reshape(-1, 2)
    text = np.full((len(digits), 3), b"\\", dtype="S1")
    text[:, 1:] = digits
    return text.tobytes().decode()


_INSTRUCTION: Final[dict[str, Callable[[Writer, list[str]], str]]] = {
    "add": lambda w, a: w.binary("fadd", *a),
    "sub": lambda w, a: w.binary("fsub", *a),
    "mul": lambda w, a: w.binary("fmul", *a),
    "neg": lambda w, a: w.negated(*a),
    "recip": lambda w, a: w.binary("fdiv", w.const(1.0), *a),
    "sqrt": lambda w, a: w.call("sqrt", *a),
    "floor": lambda w, a: w.call("floor", *a),
    "atan2": lambda w, a: w.angle_of(*a),
    "lt": lambda w, a: w.put(f"fcmp olt {w.vector} {a[0]}, {a[1]}"),
    "le": lambda w, a: w.put(f"fcmp ole {w.vector} {a[0]}, {a[1]}"),
    "select": lambda w, a: w.pick(*a),
}


class Emission:
    """Writes nodes of a graph, each once. ``values`` may know some of them, or where to find them;
    ``on_angle`` sees each angle a sine is taken of.
    """

    def __init__(
        self,
        writer: Writer,
        fusion: Fusion,
        symbol: Callable[[Any], str],
        on_angle: Callable[[str], None],
        values: dict[int, str] | None = None,
    ) -> None:
        self._writer, self._graph, self._fusion = writer, fusion.graph, fusion
        self._symbol, self._on_angle = symbol, on_angle
        self._groups = {} if values is not None else together(fusion)
        self._angles: dict[int, tuple[str, str]] = {}
        self._seen: set[int] = set()
        self.values: dict[int, str] = {} if values is None else values

    def need(self, roots: Iterable[int]) -> dict[int, str]:
        """Write what these roots need and is not there yet; gives every value so far."""
        args = self._graph.args
        stack, fresh = [r for r in roots if r not in self._seen], []
        while stack:
            node = stack.pop()
            if node not in self._seen:
                self._seen.add(node)
                fresh.append(node)
                stack.extend(arg for arg in args[node] if arg not in self._seen)
        for node in sorted(fresh):
            if node not in self._fusion.waiting and node not in self.values:
                self.write(node)
        return self.values

    def _branch(self, nodes: Sequence[int]) -> None:
        """Selects of which one arm is computed only where some lane takes one of them."""
        writer, args, values = self._writer, self._graph.args, self.values
        for operand in sorted({x for node in nodes for x in self._fusion.operands(node)}):
            _ = values[operand]
        some = ""
        for condition in dict.fromkeys(args[node][0] for node in nodes):
            one = values[condition]
            some = writer.put(f"or {writer.truth} {some}, {one}") if some else one
        some = writer.any(some)
        at = len(writer.lines)
        writer.do(f"br label %before{at}")
        writer.label(f"before{at}")
        writer.do(f"br i1 {some}, label %rare{at}, label %after{at}")
        writer.label(f"rare{at}")
        taken = {}
        for node in nodes:
            for inner in self._fusion.arms[node]:
                self.write(inner)
            taken[node] = writer.pick(*(values[x] for x in args[node]))
        writer.do(f"br label %after{at}")
        writer.label(f"after{at}")
        for node, value in taken.items():
            other = values[args[node][2]]
            values[node] = writer.put(
                f"phi {writer.vector} [ {other}, %before{at} ], [ {value}, %rare{at} ]"
            )

    def write(self, node: int) -> None:
        """Write a node whose operands are there."""
        graph, writer, values, fused = self._graph, self._writer, self.values, self._fusion.products
        op, args = graph.ops[node], graph.args[node]
        if op == "const":
            values[node] = writer.const(graph.payload[node])
        elif op == "symbol":
            values[node] = self._symbol(graph.payload[node])
        elif op in ("sin", "cos"):
            if args[0] not in self._angles:
                self._on_angle(values[args[0]])
                self._angles[args[0]] = writer.sine_cosine(values[args[0]])
            values[node] = self._angles[args[0]][op == "cos"]
        elif op == "lookup":
            values[node] = writer.lookup(graph.payload[node], values[args[0]])
        elif node in self._fusion.arms:
            nodes, needed = self._groups.get(node, ([node], set()))
            for early in sorted(needed - values.keys() - fused):
                self.write(early)
            self._branch(nodes)
        elif node in fused:
            return
        elif op in ("add", "sub") and (args[0] in fused or args[1] in fused):
            values[node] = _multiply_add(writer, graph, values, op, args, fused)
        elif op == "select" and is_size(graph, args):
            values[node] = writer.call("fabs", values[args[1]])
        else:
            values[node] = _INSTRUCTION[op](writer, [values[arg] for arg in args])


def emit(
    writer: Writer,
    graph: Graph,
    roots: Iterable[int],
    symbol: Callable[[Any], str],
    on_angle: Callable[[str], None],
) -> dict[int, str]:
    """Write the nodes that the roots need; gives the value of every node."""
    roots = list(roots)
    return Emission(writer, Fusion(graph, roots), symbol, on_angle).need(roots)


def _multiply_add(
    writer: Writer,
    graph: Graph,
    values: dict[int, str],
    op: str,
    args: tuple[int, ...],
    fused: set[int],
) -> str:
    a, b = args
    if b in fused:  # a +- x y
        x, y = (values[arg] for arg in graph.args[b])
        return writer.multiply_add(writer.negated(x) if op == "sub" else x, y, values[a])
    x, y = (values[arg] for arg in graph.args[a])  # x y +- b
    return writer.multiply_add(x, y, writer.negated(values[b]) if op == "sub" else values[b])
