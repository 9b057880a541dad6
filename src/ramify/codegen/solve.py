"""Linear equations with inertia matrices of a tree, a state at a time, lanes along the columns.

M = L' D L has entries only between a link and those that carry it (``dynamics.derivatives``
writes the same out for one robot). Two functions, in place on row-major arrays (states, n, n):

``int64 factor(int64 states, double *M, double *rhs, Family *family)``: M becomes L below its
diagonal and 1/D on it, rhs (states, n) the solution.

``int64 solve(int64 states, double *M, double *A, double *B, Family *family, double *scratch)``:
A and B become -M^-1 A and -M^-1 B, and M, as factor left it, M^-1. A Family is
``{int64 n; int64 *first_above; int64 *above; int64 *first_below; int64 *below}``: the links that
carry link k are above[first_above[k]] up to above[first_above[k + 1]], those it carries likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from ramify.codegen.blocks import count
from ramify.codegen.target import Target
from ramify.codegen.vector import Writer

_GROUP: Final = 7  # vectors of a row that are kept in registers
_FAMILY: Final = ("%n", "%first_above", "%above", "%first_below", "%below")


class Family:
    """Who carries whom, as the functions read it."""

    def __init__(self, parents: Sequence[int]) -> None:
        above: list[list[int]] = []
        below: list[list[int]] = [[] for _ in parents]
        for k, parent in enumerate(parents):
            above.append([] if parent < 0 else [parent, *above[parent]])
            for i in above[k]:
                below[i].append(k)
        self.n = len(parents)
        self._keep = [_listed(lists) for lists in (above, below)]
        tables = [a.ctypes.data for pair in self._keep for a in pair]
        self.table = np.array([self.n, *tables], dtype=np.int64)


def _listed(lists: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    first = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    return first, np.array([i for one in lists for i in one] or [0], dtype=np.int64)


def scratch_doubles(n: int, width: int) -> int:
    """Memory that ``solve`` needs."""
    return n * _stride(n, width)


def _stride(n: int, width: int) -> int:
    group = _GROUP * width
    return (3 * n + group - 1) // group * group + width


def solve_ir(target: Target) -> str:
    """LLVM text of both functions."""
    factor, solve = _Factor(target), _Solve(target)
    texts = [factor.function(), solve.function()]
    return "\n".join([*sorted(factor.w.intrinsics | solve.w.intrinsics), *texts, ""])


class _Text:
    def __init__(self, target: Target) -> None:
        self.w = Writer(target)

    def family(self) -> None:
        w = self.w
        for i, name in enumerate(_FAMILY):
            place = w.put(f"getelementptr i64, ptr %family, i64 {i}")
            w.do(f"{name} = load {'ptr' if i else 'i64'}, ptr {place}")

    def at(self, base: str, index: str) -> str:
        return self.w.put(f"getelementptr double, ptr {base}, i64 {index}")

    def add(self, a: str, b: str | int) -> str:
        return self.w.put(f"add i64 {a}, {b}")

    def mul(self, a: str, b: str | int) -> str:
        return self.w.put(f"mul i64 {a}, {b}")

    def entry(self, matrix: str, row: str, column: str, stride: str = "%n") -> str:
        return self.at(matrix, self.add(self.mul(row, stride), column))

    def load(self, address: str) -> str:
        return self.w.put(f"load double, ptr {address}")

    def store(self, value: str, address: str) -> None:
        self.w.do(f"store double {value}, ptr {address}")

    def relatives(self, which: str, k: str, body: Callable[[str], None]) -> None:
        """``body(i)`` for the links above or below link k."""
        w = self.w
        start, stop = (
            w.put(f"load i64, ptr {w.put(f'getelementptr i64, ptr %first_{which}, i64 {at}')}")
            for at in (k, self.add(k, 1))
        )

        def each(place: str) -> None:
            address = w.put(f"getelementptr i64, ptr %{which}, i64 {place}")
            body(w.put(f"load i64, ptr {address}"))

        count(w, each, start, stop)

    def minus(self, a: str, b: str, c: str) -> str:
        """c - a b, of doubles."""
        w = self.w
        minus = w.put(f"fneg double {a}")
        if w.target.fma:
            w.intrinsics.add("declare double @llvm.fma.f64(double, double, double)")
            call = f"call double @llvm.fma.f64(double {minus}, double {b}, double {c})"
            return w.put(call)
        return w.put(f"fadd double {c}, {w.put(f'fmul double {minus}, {b}')}")

    def pieces(self, length: str, body: Callable[[str, str], None]) -> None:
        """``body(offset, mask)`` over ``length`` numbers, a vector at a time."""
        w = self.w
        if w.width == 1:
            count(w, lambda i: body(i, ""), "0", length)
            return
        lanes = f"<{', '.join(f'i64 {i}' for i in range(w.width))}>"

        def masked(offset: str) -> None:
            left = self.w.put(f"sub i64 {length}, {offset}")
            first = w.put(f"insertelement {w.integer} poison, i64 {left}, i64 0")
            many = w.put(
                f"shufflevector {w.integer} {first}, {w.integer} poison, "
                f"<{w.width} x i32> zeroinitializer"
            )
            body(offset, w.put(f"icmp slt {w.integer} {lanes}, {many}"))

        count(w, masked, "0", length, w.width)

    def load_piece(self, address: str, mask: str) -> str:
        w = self.w
        if w.width == 1:
            return self.load(address)
        kind = f"<{w.width} x i1>"
        name = f"@llvm.masked.load.{w.suffix}.p0"
        w.intrinsics.add(f"declare {w.vector} {name}(ptr, i32, {kind}, {w.vector})")
        return w.put(
            f"call {w.vector} {name}(ptr {address}, i32 8, {kind} {mask}, "
            f"{w.vector} zeroinitializer)"
        )

    def store_piece(self, value: str, address: str, mask: str) -> None:
        w = self.w
        if w.width == 1:
            self.store(value, address)
            return
        kind = f"<{w.width} x i1>"
        name = f"@llvm.masked.store.{w.suffix}.p0"
        w.intrinsics.add(f"declare void {name}({w.vector}, ptr, i32, {kind})")
        w.do(f"call void {name}({w.vector} {value}, ptr {address}, i32 8, {kind} {mask})")

    def text(self, head: str, body: Callable[[str], None]) -> str:
        w = self.w
        self.family()
        group = _GROUP * w.width
        w.do("%size = mul i64 %n, %n")
        w.do("%top = sub i64 %n, 1")
        w.do("%columns = mul i64 %n, 3")
        groups = w.put(f"udiv i64 {self.add('%columns', group - 1)}, {group}")
        w.do(f"%stride = add i64 {self.mul(groups, group)}, {w.width}")
        count(w, body, "0", "%states")
        w.do("ret i64 0")
        return "\n".join([f'define i64 @{head} "stackrealign" {{', "entry:", *w.lines, "}"])


class _Factor(_Text):
    def function(self) -> str:
        return self.text(
            "factor(i64 %states, ptr noalias %M, ptr noalias %rhs, ptr noalias %family)", self.one
        )

    def one(self, state: str) -> None:
        w = self.w
        H, x = self.at("%M", self.mul(state, "%size")), self.at("%rhs", self.mul(state, "%n"))

        def eliminate(k: str) -> None:
            row = self.at(H, self.mul(k, "%n"))
            pivot = self.at(row, k)
            inverse = w.put(f"fdiv double 1.0, {self.load(pivot)}")

            def from_row(i: str) -> None:
                share = w.put(f"fmul double {self.load(self.at(row, i))}, {inverse}")
                minus = w.splat(w.put(f"fneg double {share}"))
                other = self.at(H, self.mul(i, "%n"))

                def piece(offset: str, mask: str) -> None:
                    to = self.at(other, offset)
                    own = self.load_piece(self.at(row, offset), mask)
                    self.store_piece(
                        w.multiply_add(minus, own, self.load_piece(to, mask)), to, mask
                    )

                self.pieces(self.add(i, 1), piece)
                to = self.at(x, i)
                self.store(self.minus(share, self.load(self.at(x, k)), self.load(to)), to)

            self.relatives("above", k, from_row)
            wide = w.splat(inverse)

            def scale(offset: str, mask: str) -> None:
                to = self.at(row, offset)
                self.store_piece(w.binary("fmul", self.load_piece(to, mask), wide), to, mask)

            self.pieces(k, scale)
            self.store(inverse, pivot)

        count(w, eliminate, "%top", "0", -1)

        def substitute(k: str) -> None:
            row, own = self.at(H, self.mul(k, "%n")), self.at(x, k)
            scaled = w.put(f"fmul double {self.load(own)}, {self.load(self.at(row, k))}")
            self.store(scaled, own)

            def take(i: str) -> None:
                known = self.load(self.at(x, i))
                self.store(self.minus(self.load(self.at(row, i)), known, self.load(own)), own)

            self.relatives("above", k, take)

        count(w, substitute, "0", "%n")


class _Solve(_Text):
    def function(self) -> str:
        return self.text(
            "solve(i64 %states, ptr noalias %M, ptr noalias %A, ptr noalias %B, "
            "ptr noalias %family, ptr noalias %scratch)",
            self.one,
        )

    def one(self, state: str) -> None:
        w = self.w
        start = self.mul(state, "%size")
        H, A, B = (self.at(matrix, start) for matrix in ("%M", "%A", "%B"))
        self._fill(H, A, B)
        count(w, lambda group: self._group(H, group), "0", "%columns", _GROUP * w.width)
        self._empty(H, A, B)

    def _parts(self, H: str, A: str, B: str, row: str) -> list[tuple[str, str]]:
        """Where the rows of the three matrices are, outside and in the scratch memory."""
        inside = self.at("%scratch", self.mul(row, "%stride"))
        offset = self.mul(row, "%n")
        return [
            (self.at(matrix, offset), self.at(inside, self.mul("%n", i)))
            for i, matrix in enumerate((A, B, H))
        ]

    def _fill(self, H: str, A: str, B: str) -> None:
        """Rows [-A -B 1]; beyond them zeros."""
        w = self.w

        def row(k: str) -> None:
            parts = self._parts(H, A, B, k)
            for outside, inside in parts[:2]:

                def copy(at: str, mask: str, outside: str = outside, inside: str = inside) -> None:
                    value = w.negated(self.load_piece(self.at(outside, at), mask))
                    w.do(f"store {w.vector} {value}, ptr {self.at(inside, at)}, align 8")

                self.pieces("%n", copy)
            unit = parts[2][1]
            left = w.put(f"sub i64 %stride, {self.mul('%n', 2)}")
            w.intrinsics.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
            w.do(
                f"call void @llvm.memset.p0.i64(ptr {unit}, i8 0, i64 {self.mul(left, 8)}, "
                "i1 false)"
            )
            self.store("1.0", self.at(unit, k))

        count(w, row, "0", "%n")

    def _group(self, H: str, first: str) -> None:
        """Both substitutions for as many columns as registers hold."""
        w = self.w

        def places(row: str) -> list[str]:
            start = self.at("%scratch", self.add(self.mul(row, "%stride"), first))
            return [self.at(start, str(i * w.width)) for i in range(_GROUP)]

        def load(address: str) -> str:
            return w.put(f"load {w.vector}, ptr {address}, align 8")

        def sweep(which: str, k: str, scaled: bool) -> None:
            row = places(k)
            values = [load(address) for address in row]
            if scaled:
                pivot = w.splat(self.load(self.entry(H, k, k)))
                values = [w.binary("fmul", value, pivot) for value in values]
            found = self._accumulate(which, H, k, values, lambda i: [load(a) for a in places(i)])
            for address, value in zip(row, found, strict=True):
                w.do(f"store {w.vector} {value}, ptr {address}, align 8")

        count(w, lambda k: sweep("below", k, False), "%top", "0", -1)
        count(w, lambda k: sweep("above", k, True), "0", "%n")

    def _accumulate(
        self, which: str, H: str, k: str, values: list[str], row: Callable[[str], list[str]]
    ) -> list[str]:
        """values - sum of the entries of L times the rows of k's relatives, in registers."""
        w = self.w
        label = w.name()[1:]
        begin, end = (
            w.put(f"load i64, ptr {w.put(f'getelementptr i64, ptr %first_{which}, i64 {at}')}")
            for at in (k, self.add(k, 1))
        )
        w.do(f"br label %{label}.enter")
        w.label(f"{label}.enter")
        w.do(f"br label %{label}.test")
        w.label(f"{label}.test")
        w.do(f"%{label}.p = phi i64 [{begin}, %{label}.enter], [%{label}.next, %{label}.body]")
        sums = [f"%{label}.sum{i}" for i in range(len(values))]
        for name, value in zip(sums, values, strict=True):
            w.do(f"{name} = phi {w.vector} [{value}, %{label}.enter], [{name}.n, %{label}.body]")
        more = w.put(f"icmp slt i64 %{label}.p, {end}")
        w.do(f"br i1 {more}, label %{label}.body, label %{label}.exit")
        w.label(f"{label}.body")
        i = w.put(f"load i64, ptr {w.put(f'getelementptr i64, ptr %{which}, i64 %{label}.p')}")
        entry = self.entry(H, k, i) if which == "above" else self.entry(H, i, k)
        minus = w.splat(w.put(f"fneg double {self.load(entry)}"))
        for name, other in zip(sums, row(i), strict=True):
            new = w.multiply_add(minus, other, name)
            w.do(f"{name}.n = select i1 true, {w.vector} {new}, {w.vector} {new}")
        w.do(f"%{label}.next = add i64 %{label}.p, 1")
        w.do(f"br label %{label}.test")
        w.label(f"{label}.exit")
        return sums

    def _empty(self, H: str, A: str, B: str) -> None:
        w = self.w

        def row(k: str) -> None:
            for outside, inside in self._parts(H, A, B, k):

                def copy(at: str, mask: str, outside: str = outside, inside: str = inside) -> None:
                    address = self.at(inside, at)
                    value = w.put(f"load {w.vector}, ptr {address}, align 8")
                    self.store_piece(value, self.at(outside, at), mask)

                self.pieces("%n", copy)

        count(w, row, "0", "%n")
