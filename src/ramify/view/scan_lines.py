"""LLVM text that draws triangles: which of them is nearest at every sample of a picture, and the
colour of every pixel, from traced texts in single precision, one pixel per lane.

A picture has four samples per pixel, each in a plane of its own (height, stride) of 1 / depth and
of the triangle's number plus one; nothing is 0. ``SAMPLES`` are their places within a pixel.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from ramify.emit.cpu_target import CpuTarget
from ramify.emit.vector import emit
from ramify.emit.writer import Writer
from ramify.runtime.backend import function_of
from ramify.runtime.compile import Compiled, compiled
from ramify.runtime.target import host
from ramify.trace.program import Program

SAMPLES: Final = ((0.375, 0.125), (0.875, 0.375), (0.625, 0.875), (0.125, 0.625))
EDGES: Final = 15
"""Numbers of a triangle: a, b, c of a x + b y + c for its three edges, not negative inside, and for
1 / depth; then -1 / a of the edges, 0 for those along x.
"""


class _Scan(Writer):
    """What both functions share: vectors of whole numbers, the pixels of a block."""

    def sizes(self, last: str) -> None:
        self.unpack("%sizes", dict.fromkeys(("height", "stride", last), "i64"))

    def block(self, base: str, index: str, kind: str) -> tuple[str, str]:
        """(address, value) of a vector whose first lane is an entry of 4 bytes."""
        place = self.at(base, index, "i32")
        return place, self.put(f"load {kind}, ptr {place}, align 4")

    def keep(self, value: str, place: str) -> None:
        """A vector of whole numbers."""
        self.do(f"store {self.integer} {value}, ptr {place}, align 4")

    def pixel(self, i: str) -> str:
        """A whole number as a vector of floats."""
        return self.splat(self.put(f"sitofp i64 {i} to float"))

    def beside(self) -> str:
        """The numbers of the lanes."""
        if self.width == 1:
            return self.const(0.0)
        return f"<{', '.join(f'float {float(i)}' for i in range(self.width))}>"

    def between(self, numbers: Sequence[str], y: str, down: float) -> tuple[str, str]:
        """The pixels from and up to which a row may meet the inside of a triangle."""
        at = self.put(f"fadd float {self.put(f'sitofp i64 {y} to float')}, {down}")
        ends = ["-1.0", "1.0e6"]
        for k in range(3):
            b, c, slope = numbers[3 * k + 1], numbers[3 * k + 2], numbers[12 + k]
            start = self.put(f"fadd float {self.put(f'fmul float {b}, {at}')}, {c}")
            x = self.put(f"fmul float {start}, {slope}")
            for i, (sign, choice) in enumerate((("olt", "maxnum"), ("ogt", "minnum"))):
                bounds = self.put(f"fcmp {sign} float {slope}, 0.0")
                bound = self.put(f"select i1 {bounds}, float {x}, float {ends[i]}")
                self.intrinsics.add(f"declare float @llvm.{choice}.f32(float, float)")
                ends[i] = self.put(f"call float @llvm.{choice}.f32(float {bound}, float {ends[i]})")
        for i, choice in enumerate(("minnum", "maxnum")):  # far ends are whole numbers too
            limit = ("1.0e6", "-1.0")[i]
            ends[i] = self.put(f"call float @llvm.{choice}.f32(float {ends[i]}, float {limit})")
        first = self.put(f"fptosi float {self.put(f'fadd float {ends[0]}, -1.0')} to i64")
        last = self.put(f"fptosi float {self.put(f'fadd float {ends[1]}, 1.0')} to i64")
        self.intrinsics |= {f"declare i64 @llvm.{c}.i64(i64, i64)" for c in ("smin", "smax")}
        return first, last

    def plane(self, sample: int, y: str) -> str:
        """The index of the first pixel of a row in the plane of a sample."""
        height = self.mul("%height", sample)
        return self.mul(self.add(y, height), "%stride")


def cover_ir(target: CpuTarget) -> str:
    """``cover(n, sizes, edges, boxes, near, which)``: triangles [0, n) into the planes. sizes:
    height, stride and the number of the first triangle; boxes: first and last pixel along x, along
    y, of each triangle.
    """
    w = _Scan(target)
    w.sizes("first")

    def triangle(t: str) -> None:
        start = w.mul(t, EDGES)
        numbers = [w.item("%edges", w.add(start, k), "float") for k in range(EDGES)]
        planes = [w.splat(value) for value in numbers[:12]]
        ends = w.mul(t, 4)
        low_x, high_x, low_y, high_y = (w.item("%boxes", w.add(ends, k), "i64") for k in range(4))
        named = w.put(f"trunc i64 {w.add(t, '%first')} to i32")
        if w.width > 1:
            one = w.put(f"insertelement {w.integer} poison, i32 {named}, i64 0")
            same = f"{w.integer} poison, <{w.width} x i32> zeroinitializer"
            named = w.put(f"shufflevector {w.integer} {one}, {same}")

        def row(y: str, sample: int, right: float, down: float) -> None:
            at_y = w.binary("fadd", w.pixel(y), w.const(down))
            offsets = w.binary("fadd", w.beside(), w.const(right))
            base = w.plane(sample, y)
            starts = [w.multiply_add(planes[k + 1], at_y, planes[k + 2]) for k in (0, 3, 6, 9)]

            def pixels(x: str) -> None:
                at_x = w.binary("fadd", w.pixel(x), offsets)
                sides = [
                    w.multiply_add(planes[3 * k], at_x, start) for k, start in enumerate(starts)
                ]  # edges of two triangles in one place differ in their signs alone
                here = w.add(base, x)
                near_at, old = w.block("%near", here, w.vector)
                which_at, before = w.block("%which", here, w.integer)
                shown = w.compare("ogt", sides[3], old)
                for side in sides[:3]:
                    inside = w.compare("oge", side, w.const(0.0))
                    shown = shown & inside
                w.store(w.pick(shown, sides[3], old), near_at, 4)
                both = f"{w.integer} {named}, {w.integer} {before}"
                w.keep(w.put(f"select {w.truth} {shown}, {both}"), which_at)

            ends = w.between(numbers, y, down)
            first = w.put(f"call i64 @llvm.smax.i64(i64 {ends[0]}, i64 {low_x})")
            last = w.put(f"call i64 @llvm.smin.i64(i64 {ends[1]}, i64 {high_x})")
            w.count(pixels, first, last, w.width)

        for k, (right, down) in enumerate(SAMPLES):
            w.count(lambda y, k=k, r=right, d=down: row(y, k, r, d), low_y, high_y)  # type: ignore[misc]

    w.count(triangle, "0", "%states")
    w.do("ret i64 0")
    return w.module(w.function("cover", "sizes edges boxes near which"))


def paint_ir(background: Program, surface: Program, target: CpuTarget) -> str:
    """``paint(rows, sizes, settings, records, near, which, picture)``: the colours of all pixels, 4
    bytes each (red, green, blue, 255), and empty planes. sizes: height, stride and width.

    background: (x, y), settings → red, green, blue; surface: (x, y), settings, the triangle's
    record → red, green, blue, what is left of the background.
    """
    w = _Scan(target)
    w.sizes("width")
    settings = [w.splat(w.item("%settings", i, "float")) for i in range(background.inputs[1].size)]
    head = len(w.lines)

    def run(program: Program, inputs: Sequence[Sequence[str]]) -> list[str]:
        nodes = [node for port in program.results for node in port]
        values = emit(w, program.graph, nodes, lambda key: inputs[key[0]][key[1]], lambda _: None)
        return [values[node] for node in nodes]

    def pixels(y: str, x: str) -> None:
        at_x, at_y = w.binary("fadd", w.pixel(x), w.beside()), w.pixel(y)
        middle = [w.binary("fadd", at, w.const(0.5)) for at in (at_x, at_y)]
        behind = run(background, (middle, settings))
        sums = [w.put(f"alloca {w.vector}") for _ in range(4)]
        for place in sums:
            w.store(w.const(0.0), place)
        for k, (right, down) in enumerate(SAMPLES):
            index = w.add(w.plane(k, y), x)
            which_at, which = w.block("%which", index, w.integer)
            drawn = w.put(f"icmp ne {w.integer} {which}, {w.whole(0)}")
            label = w.name()[1:]
            w.fork(w.any(drawn), f"{label}.some", f"{label}.none")
            w.label(f"{label}.some")
            record = _gathered(w, surface.inputs[2].size, which, drawn)
            here = [w.binary("fadd", a, w.const(d)) for a, d in ((at_x, right), (at_y, down))]
            for total, value in zip(sums, run(surface, (here, settings, record)), strict=True):
                shown = w.pick(drawn, value, w.const(1.0 if total == sums[3] else 0.0))
                w.store(w.binary("fadd", w.load(total), shown), total)
            w.keep(w.whole(0), which_at)
            w.store(w.const(0.0), w.at("%near", index, "i32"), 4)
            w.go(f"{label}.end")
            w.label(f"{label}.none")
            w.store(w.binary("fadd", w.load(sums[3]), w.const(1.0)), sums[3])
            w.enter(f"{label}.end")
        packed = _packed(w, sums, behind)
        at = w.add(w.mul(y, "%stride"), x)
        w.keep(packed, w.at("%picture", at, "i32"))

    w.count(lambda y: w.count(lambda x: pixels(y, x), "0", "%width", w.width), "0", "%states")
    w.do("ret i64 0")
    taken = [line for line in w.lines[head:] if " = alloca " in line]  # memory is taken once
    w.lines[head:] = taken + [line for line in w.lines[head:] if line not in taken]
    return w.module(w.function("paint", "sizes settings records near which picture"))


def _gathered(w: _Scan, size: int, which: str, drawn: str) -> list[str]:
    """The records of the triangles, ``size`` numbers each, one number after the other."""
    kind = w.integer
    first = w.put(f"sub {kind} {which}, {w.whole(1)}")
    index = w.put(f"mul {kind} {first}, {w.whole(size)}")
    numbers: list[str] = []
    for i in range(size):
        at = w.put(f"add {kind} {index}, {w.whole(i)}")
        if w.width == 1:
            numbers.append(w.item("%records", w.put(f"sext i32 {at} to i64"), "float"))
        else:
            places = w.put(f"getelementptr float, ptr %records, {kind} {at}")
            numbers.append(w.gathered(places, drawn))
    return numbers


def _packed(w: _Scan, sums: Sequence[str], behind: Sequence[str]) -> str:
    """The colours of pixels, 4 bytes each, from the sums over their samples of the colours and of
    what is left of the background ``behind``.
    """
    packed = w.whole(-(1 << 24))
    left = w.load(sums[3])
    for i in range(3):
        mixed = w.multiply_add(left, behind[i], w.load(sums[i]))
        level = w.multiply_add(mixed, w.const(255.0 / len(SAMPLES)), w.const(0.5))
        level = w.call("minnum", w.call("maxnum", level, w.const(0.0)), w.const(255.0))
        byte = w.put(f"fptosi {w.vector} {level} to {w.integer}")
        moved = w.put(f"shl {w.integer} {byte}, {w.whole(8 * i)}")
        packed = w.put(f"or {w.integer} {packed}, {moved}")
    return packed


@cache
def _cover() -> Compiled:
    target = host().in_single()
    return compiled(lambda: cover_ir(target), "cover", target, "cover")


class ScanLines:
    """Both functions, compiled; ``lanes``: pixels that rows must have beyond the picture."""

    def __init__(self, background: Program, surface: Program) -> None:
        target = host().in_single()
        self.lanes = target.width
        self._functions = (
            _cover(),
            compiled(
                lambda: paint_ir(background, surface, target),
                "paint",
                target,
                f"paint {background.digest} {surface.digest}",
            ),
        )
        kinds = zip(self._functions, (5, 6), strict=True)
        self._call = [function_of(made.address, takes) for made, takes in kinds]

    def cover(self, triangles: int, *arrays: Any) -> None:
        """See ``cover_ir``."""
        self._call[0](triangles, *(array.ctypes.data for array in arrays))

    def paint(self, rows: int, *arrays: Any) -> None:
        """See ``paint_ir``."""
        self._call[1](rows, *(array.ctypes.data for array in arrays))
