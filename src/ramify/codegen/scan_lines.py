"""LLVM text that draws triangles: which of them is nearest at every sample of a picture, and the
colour of every pixel, from traced texts in single precision, one pixel per lane.

A picture has four samples per pixel, each in a plane of its own (height, stride) of 1 / depth and
of the triangle's number plus one; nothing is 0. ``SAMPLES`` are their places within a pixel.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from ramify.codegen.compile import Compiled, compiled
from ramify.codegen.row_blocks import count, function
from ramify.codegen.target import CpuTarget, host
from ramify.codegen.vector import Writer, emit
from ramify.trace.program import Program

SAMPLES: Final = ((0.375, 0.125), (0.875, 0.375), (0.625, 0.875), (0.125, 0.625))
EDGES: Final = 15
"""Numbers of a triangle: a, b, c of a x + b y + c for its three edges, not negative inside, and for
1 / depth; then -1 / a of the edges, 0 for those along x.
"""


class _Scan:
    """What both functions share: addresses, vectors of whole numbers, the pixels of a block."""

    def __init__(self, target: CpuTarget) -> None:
        self.w = Writer(target)
        self.whole = self.w.integer
        self.some = f"<{self.w.width} x i1>" if self.w.width > 1 else "i1"

    def at(self, base: str, index: str, kind: str) -> str:
        return self.w.put(f"getelementptr {kind}, ptr {base}, i64 {index}")

    def load(self, base: str, index: str, kind: str) -> str:
        return self.w.put(f"load {kind}, ptr {self.at(base, index, kind)}")

    def block(self, base: str, index: str, kind: str) -> tuple[str, str]:
        """(address, value) of a vector whose first lane is an entry of 4 bytes."""
        place = self.at(base, index, "i32")
        return place, self.w.put(f"load {kind}, ptr {place}, align 4")

    def number(self, i: str) -> str:
        """A whole number as a vector of floats."""
        return self.w.splat(self.w.put(f"sitofp i64 {i} to float"))

    def lanes(self) -> str:
        if self.w.width == 1:
            return self.w.const(0.0)
        return f"<{', '.join(f'float {float(i)}' for i in range(self.w.width))}>"

    def between(self, numbers: Sequence[str], y: str, down: float) -> tuple[str, str]:
        """The pixels from and up to which a row may meet the inside of a triangle."""
        w = self.w
        at = w.put(f"fadd float {w.put(f'sitofp i64 {y} to float')}, {down}")
        ends = ["-1.0", "1.0e6"]
        for k in range(3):
            b, c, slope = numbers[3 * k + 1], numbers[3 * k + 2], numbers[12 + k]
            start = w.put(f"fadd float {w.put(f'fmul float {b}, {at}')}, {c}")
            x = w.put(f"fmul float {start}, {slope}")
            for i, (sign, choice) in enumerate((("olt", "maxnum"), ("ogt", "minnum"))):
                bounds = w.put(f"fcmp {sign} float {slope}, 0.0")
                bound = w.put(f"select i1 {bounds}, float {x}, float {ends[i]}")
                w.intrinsics.add(f"declare float @llvm.{choice}.f32(float, float)")
                ends[i] = w.put(f"call float @llvm.{choice}.f32(float {bound}, float {ends[i]})")
        for i, choice in enumerate(("minnum", "maxnum")):  # far ends are whole numbers too
            limit = ("1.0e6", "-1.0")[i]
            ends[i] = w.put(f"call float @llvm.{choice}.f32(float {ends[i]}, float {limit})")
        first = w.put(f"fptosi float {w.put(f'fadd float {ends[0]}, -1.0')} to i64")
        last = w.put(f"fptosi float {w.put(f'fadd float {ends[1]}, 1.0')} to i64")
        w.intrinsics |= {f"declare i64 @llvm.{c}.i64(i64, i64)" for c in ("smin", "smax")}
        return first, last

    def plane(self, sample: int, y: str) -> str:
        """The index of the first pixel of a row in the plane of a sample."""
        row = self.w.put(f"add i64 {y}, {self.w.put(f'mul i64 %height, {sample}')}")
        return self.w.put(f"mul i64 {row}, %stride")


def cover_ir(target: CpuTarget) -> str:
    """``cover(n, sizes, edges, boxes, near, which)``: triangles [0, n) into the planes. sizes:
    height, stride and the number of the first triangle; boxes: first and last pixel along x, along
    y, of each triangle.
    """
    s = _Scan(target)
    w = s.w
    for i, name in enumerate(("height", "stride", "first")):
        w.do(f"%{name} = load i64, ptr {s.at('%sizes', str(i), 'i64')}")

    def triangle(t: str) -> None:
        start = w.put(f"mul i64 {t}, {EDGES}")
        numbers = [s.load("%edges", w.put(f"add i64 {start}, {k}"), "float") for k in range(EDGES)]
        planes = [w.splat(value) for value in numbers[:12]]
        ends = w.put(f"mul i64 {t}, 4")
        low_x, high_x, low_y, high_y = (
            s.load("%boxes", w.put(f"add i64 {ends}, {k}"), "i64") for k in range(4)
        )
        named = w.put(f"trunc i64 {w.put(f'add i64 {t}, %first')} to i32")
        if w.width > 1:
            one = w.put(f"insertelement {s.whole} poison, i32 {named}, i64 0")
            same = f"{s.whole} poison, <{w.width} x i32> zeroinitializer"
            named = w.put(f"shufflevector {s.whole} {one}, {same}")

        def row(y: str, sample: int, right: float, down: float) -> None:
            at_y = w.binary("fadd", s.number(y), w.const(down))
            offsets = w.binary("fadd", s.lanes(), w.const(right))
            base = s.plane(sample, y)
            starts = [w.multiply_add(planes[k + 1], at_y, planes[k + 2]) for k in (0, 3, 6, 9)]

            def pixels(x: str) -> None:
                at_x = w.binary("fadd", s.number(x), offsets)
                sides = [
                    w.multiply_add(planes[3 * k], at_x, start) for k, start in enumerate(starts)
                ]  # edges of two triangles in one place differ in their signs alone
                here = w.put(f"add i64 {base}, {x}")
                near_at, old = s.block("%near", here, w.vector)
                which_at, before = s.block("%which", here, s.whole)
                shown = w.put(f"fcmp ogt {w.vector} {sides[3]}, {old}")
                for side in sides[:3]:
                    inside = w.put(f"fcmp oge {w.vector} {side}, {w.const(0.0)}")
                    shown = w.put(f"and {s.some} {shown}, {inside}")
                w.do(f"store {w.vector} {w.pick(shown, sides[3], old)}, ptr {near_at}, align 4")
                chosen = w.put(f"select {s.some} {shown}, {s.whole} {named}, {s.whole} {before}")
                w.do(f"store {s.whole} {chosen}, ptr {which_at}, align 4")

            ends = s.between(numbers, y, down)
            first = w.put(f"call i64 @llvm.smax.i64(i64 {ends[0]}, i64 {low_x})")
            last = w.put(f"call i64 @llvm.smin.i64(i64 {ends[1]}, i64 {high_x})")
            count(w, pixels, first, last, w.width)

        for k, (right, down) in enumerate(SAMPLES):
            count(w, lambda y, k=k, r=right, d=down: row(y, k, r, d), low_y, high_y)  # type: ignore[misc]

    count(w, triangle, "0", "%states")
    w.do("ret i64 0")
    return "\n".join([function("cover", "sizes edges boxes near which", w), *sorted(w.intrinsics)])


def paint_ir(background: Program, surface: Program, target: CpuTarget) -> str:
    """``paint(rows, sizes, settings, records, near, which, picture)``: the colours of all pixels, 4
    bytes each (red, green, blue, 255), and empty planes. sizes: height, stride and width.

    background: (x, y), settings → red, green, blue; surface: (x, y), settings, the triangle's
    record → red, green, blue, what is left of the background.
    """
    s = _Scan(target)
    w = s.w
    for i, name in enumerate(("height", "stride", "width")):
        w.do(f"%{name} = load i64, ptr {s.at('%sizes', str(i), 'i64')}")
    settings = [
        w.splat(s.load("%settings", str(i), "float")) for i in range(background.inputs[1].size)
    ]

    def run(program: Program, inputs: Sequence[Sequence[str]]) -> list[str]:
        nodes = [node for port in program.results for node in port]
        values = emit(w, program.graph, nodes, lambda key: inputs[key[0]][key[1]], lambda _: None)
        return [values[node] for node in nodes]

    def pixels(y: str, x: str) -> None:
        at_x, at_y = w.binary("fadd", s.number(x), s.lanes()), s.number(y)
        middle = [w.binary("fadd", at, w.const(0.5)) for at in (at_x, at_y)]
        behind = run(background, (middle, settings))
        sums = [w.put(f"alloca {w.vector}") for _ in range(4)]
        for place in sums:
            w.do(f"store {w.vector} {w.const(0.0)}, ptr {place}")
        for k, (right, down) in enumerate(SAMPLES):
            index = w.put(f"add i64 {s.plane(k, y)}, {x}")
            which_at, which = s.block("%which", index, s.whole)
            drawn = w.put(f"icmp ne {s.whole} {which}, {w.whole(0)}")
            bits = w.put(f"bitcast {s.some} {drawn} to i{w.width}") if w.width > 1 else drawn
            label = w.name()[1:]
            some = w.put(f"icmp ne i{w.width} {bits}, 0")
            w.do(f"br i1 {some}, label %{label}.some, label %{label}.none")
            w.label(f"{label}.some")
            record = gathered(which, drawn)
            here = [w.binary("fadd", a, w.const(d)) for a, d in ((at_x, right), (at_y, down))]
            for total, value in zip(sums, run(surface, (here, settings, record)), strict=True):
                shown = w.pick(drawn, value, w.const(1.0 if total == sums[3] else 0.0))
                old = w.put(f"load {w.vector}, ptr {total}")
                w.do(f"store {w.vector} {w.binary('fadd', old, shown)}, ptr {total}")
            w.do(f"store {s.whole} {w.whole(0)}, ptr {which_at}, align 4")
            near_at = s.at("%near", index, "i32")
            w.do(f"store {w.vector} {w.const(0.0)}, ptr {near_at}, align 4")
            w.do(f"br label %{label}.end")
            w.label(f"{label}.none")
            left = w.put(f"load {w.vector}, ptr {sums[3]}")
            w.do(f"store {w.vector} {w.binary('fadd', left, w.const(1.0))}, ptr {sums[3]}")
            w.do(f"br label %{label}.end")
            w.label(f"{label}.end")
        packed = w.whole(-(1 << 24))
        left = w.put(f"load {w.vector}, ptr {sums[3]}")
        for i in range(3):
            mixed = w.multiply_add(left, behind[i], w.put(f"load {w.vector}, ptr {sums[i]}"))
            level = w.multiply_add(mixed, w.const(255.0 / len(SAMPLES)), w.const(0.5))
            level = w.call("minnum", w.call("maxnum", level, w.const(0.0)), w.const(255.0))
            byte = w.put(f"fptosi {w.vector} {level} to {s.whole}")
            packed = w.put(
                f"or {s.whole} {packed}, {w.put(f'shl {s.whole} {byte}, {w.whole(8 * i)}')}"
            )
        at = w.put(f"add i64 {w.put(f'mul i64 {y}, %stride')}, {x}")
        w.do(f"store {s.whole} {packed}, ptr {s.at('%picture', at, 'i32')}, align 4")

    def gathered(which: str, drawn: str) -> list[str]:
        """The records of the triangles, one number after the other."""
        size = surface.inputs[2].size
        index = w.put(
            f"mul {s.whole} {w.put(f'sub {s.whole} {which}, {w.whole(1)}')}, {w.whole(size)}"
        )
        found = []
        for i in range(size):
            at = w.put(f"add {s.whole} {index}, {w.whole(i)}")
            if w.width == 1:
                found.append(s.load("%records", w.put(f"sext i32 {at} to i64"), "float"))
                continue
            places = w.put(f"getelementptr float, ptr %records, {s.whole} {at}")
            gather = f"@llvm.masked.gather.{w.suffix}.v{w.width}p0"
            takes = f"<{w.width} x ptr>"
            w.intrinsics.add(f"declare {w.vector} {gather}({takes}, i32, {s.some}, {w.vector})")
            found.append(
                w.put(
                    f"call {w.vector} {gather}({takes} {places}, i32 4, {s.some} {drawn}, "
                    f"{w.vector} zeroinitializer)"
                )
            )
        return found

    _in_rows(w, pixels)
    arguments = "sizes settings records near which picture"
    return "\n".join([function("paint", arguments, w), *sorted(w.intrinsics)])


def _in_rows(w: Writer, pixels: Callable[[str, str], None]) -> None:
    """``pixels(y, x)`` for every block of the picture; memory for sums is taken once."""
    head = len(w.lines)
    count(w, lambda y: count(w, lambda x: pixels(y, x), "0", "%width", w.width), "0", "%states")
    w.do("ret i64 0")
    taken = [line for line in w.lines[head:] if " = alloca " in line]
    w.lines[head:] = taken + [line for line in w.lines[head:] if line not in taken]


@cache
def _cover() -> Compiled:
    target = host().in_single()
    return compiled(lambda: cover_ir(target), "cover", target, "cover")


class ScanLines:
    """Both functions, compiled; ``lanes``: pixels that rows must have beyond the picture."""

    def __init__(self, background: Program, surface: Program) -> None:
        target = host().in_single()
        self.lanes = target.width
        self._made = (
            _cover(),
            compiled(
                lambda: paint_ir(background, surface, target),
                "paint",
                target,
                f"paint {background.digest} {surface.digest}",
            ),
        )
        pointer = ctypes.c_void_p
        kinds = (ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *[pointer] * n) for n in (5, 6))
        self._call = [kind(made.address) for kind, made in zip(kinds, self._made, strict=True)]

    def cover(self, triangles: int, *arrays: Any) -> None:
        """See ``cover_ir``."""
        self._call[0](triangles, *(array.ctypes.data for array in arrays))

    def paint(self, rows: int, *arrays: Any) -> None:
        """See ``paint_ir``."""
        self._call[1](rows, *(array.ctypes.data for array in arrays))
