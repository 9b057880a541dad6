"""Linear equations with inertia matrices of a tree, a state at a time, lanes along the columns.

M = L' D L has entries only between a link and those that carry it (``dynamics.derivatives``
writes the same out for one robot). Two functions for matrices of n rows, in place on row-major
arrays (states, n, n):

``int64 factor(int64 states, double *M, double *rhs, Family *family)``: M becomes L below its
diagonal and 1/D on it, rhs (states, n) the solution.

``int64 solve(int64 states, double *M, double *A, double *B, Family *family, double *scratch)``:
A and B become -M^-1 A and -M^-1 B, and M, as factor left it, M^-1. Rows of all three stand side by
side in the scratch memory, on whole vectors. A Family is
``{int64 *first_above; int64 *above; int64 *first_below; int64 *below}``: the links that carry link
k are above[first_above[k]] up to above[first_above[k + 1]], those it carries likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from ramify.codegen.row_blocks import count
from ramify.codegen.target import CpuTarget
from ramify.codegen.vector import Writer
from ramify.core.arrays import Array

_MOST: Final = 24  # vectors of a row that are kept in registers
_FAMILY: Final = ("%first_above", "%above", "%first_below", "%below")


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
        self.table = np.array([a.ctypes.data for pair in self._keep for a in pair], np.int64)


def _listed(lists: list[list[int]]) -> tuple[Array, Array]:
    first = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    return first, np.array([i for one in lists for i in one] or [0], dtype=np.int64)  # type: ignore[return-value]


def scratch_doubles(n: int, width: int) -> int:
    """Memory that ``solve`` needs."""
    return n * _stride(n, width)


def _stride(n: int, width: int) -> int:
    return 3 * (-(-n // width) * width)


def solve_ir(target: CpuTarget, n: int) -> str:
    """LLVM text of both functions."""
    factor, solve = _Factor(target, n), _Solve(target, n)
    texts = [factor.function(), solve.function()]
    return "\n".join([*sorted(factor.w.intrinsics | solve.w.intrinsics), *texts, ""])


class _Text:
    def __init__(self, target: CpuTarget, n: int) -> None:
        self.w, self.n = Writer(target), n
        self.pieces = -(-n // self.w.width)  # vectors of a row

    def at(self, base: str, index: str | int) -> str:
        return self.w.put(f"getelementptr double, ptr {base}, i64 {index}")

    def add(self, a: str, b: str | int) -> str:
        return self.w.put(f"add i64 {a}, {b}")

    def mul(self, a: str, b: str | int) -> str:
        return self.w.put(f"mul i64 {a}, {b}")

    def row(self, matrix: str, k: str) -> str:
        return self.at(matrix, self.mul(k, self.n))

    def number(self, address: str) -> str:
        return self.w.put(f"load double, ptr {address}")

    def mask(self, piece: int) -> str:
        """Lanes of a piece of a row that are in the row; none named where all are."""
        lanes = [piece * self.w.width + i < self.n for i in range(self.w.width)]
        return "" if all(lanes) else f"<{', '.join(f'i1 {int(x)}' for x in lanes)}>"

    def load(self, address: str, mask: str = "") -> str:
        w = self.w
        if not mask:
            return w.put(f"load {w.vector}, ptr {address}, align 8")
        kind, name = f"<{w.width} x i1>", f"@llvm.masked.load.{w.suffix}.p0"
        w.intrinsics.add(f"declare {w.vector} {name}(ptr, i32, {kind}, {w.vector})")
        return w.put(
            f"call {w.vector} {name}(ptr {address}, i32 8, {kind} {mask}, "
            f"{w.vector} zeroinitializer)"
        )

    def store(self, value: str, address: str, mask: str = "") -> None:
        w = self.w
        if not mask:
            w.do(f"store {w.vector} {value}, ptr {address}, align 8")
            return
        kind, name = f"<{w.width} x i1>", f"@llvm.masked.store.{w.suffix}.p0"
        w.intrinsics.add(f"declare void {name}({w.vector}, ptr, i32, {kind})")
        w.do(f"call void {name}({w.vector} {value}, ptr {address}, i32 8, {kind} {mask})")

    def less(self, a: str, b: str, c: str) -> str:
        """c - a b of doubles."""
        w, minus = self.w, self.w.put(f"fneg double {a}")
        if not w.target.fma:
            return w.put(f"fadd double {c}, {w.put(f'fmul double {minus}, {b}')}")
        w.intrinsics.add("declare double @llvm.fma.f64(double, double, double)")
        return w.put(f"call double @llvm.fma.f64(double {minus}, double {b}, double {c})")

    def relatives(
        self,
        which: str,
        k: str,
        kind: str,
        values: Sequence[str],
        body: Callable[[str, list[str]], list[str]],
    ) -> list[str]:
        """Values of a kind that ``body(i, values)`` changes for every link i above or below k; they
        stay in registers.
        """
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
        w.do(f"%{label}.p = phi i64 [{begin}, %{label}.enter], [%{label}.next, %{label}.end]")
        names = [f"%{label}.value{i}" for i in range(len(values))]
        for name, value in zip(names, values, strict=True):
            w.do(f"{name} = phi {kind} [{value}, %{label}.enter], [{name}.new, %{label}.end]")
        more = w.put(f"icmp slt i64 %{label}.p, {end}")
        w.do(f"br i1 {more}, label %{label}.body, label %{label}.exit")
        w.label(f"{label}.body")
        i = w.put(f"load i64, ptr {w.put(f'getelementptr i64, ptr %{which}, i64 %{label}.p')}")
        for name, new in zip(names, body(i, names), strict=True):
            w.do(f"{name}.new = select i1 true, {kind} {new}, {kind} {new}")
        w.do(f"%{label}.next = add i64 %{label}.p, 1")
        w.do(f"br label %{label}.end")
        w.label(f"{label}.end")
        w.do(f"br label %{label}.test")
        w.label(f"{label}.exit")
        return names

    def text(self, head: str, body: Callable[[str], None]) -> str:
        w = self.w
        for i, name in enumerate(_FAMILY):
            w.do(f"{name} = load ptr, ptr {w.put(f'getelementptr ptr, ptr %family, i64 {i}')}")
        count(w, body, "0", "%states")
        w.do("ret i64 0")
        return "\n".join([f'define i64 @{head} "stackrealign" {{', "entry:", *w.lines, "}"])


class _Factor(_Text):
    def function(self) -> str:
        return self.text(
            "factor(i64 %states, ptr noalias %M, ptr noalias %rhs, ptr noalias %family)", self.one
        )

    def one(self, state: str) -> None:
        H = self.at("%M", self.mul(state, self.n * self.n))
        x = self.at("%rhs", self.mul(state, self.n))
        count(self.w, lambda k: self.eliminate(H, x, k), str(self.n - 1), "0", -1)
        count(self.w, lambda k: self.substitute(H, x, k), "0", str(self.n))

    def eliminate(self, H: str, x: str, k: str) -> None:
        """Take row k, a share of it, from the rows of the links that carry k."""
        w, row = self.w, self.row(H, k)
        inverse = w.put(f"fdiv double 1.0, {self.number(self.at(row, k))}")
        own = self.number(self.at(x, k))

        def take(i: str, _: list[str]) -> list[str]:
            share = w.put(f"fmul double {self.number(self.at(row, i))}, {inverse}")
            wide = w.negated(w.splat(share))
            other = self.row(H, i)
            to = self.at(x, i)
            w.do(f"store double {self.less(share, own, self.number(to))}, ptr {to}")

            def piece(p: int) -> None:
                start, mask = p * w.width, self.mask(p)
                place = self.at(other, start)
                mine = self.load(self.at(row, start), mask)
                self.store(w.multiply_add(wide, mine, self.load(place, mask)), place, mask)

            self.up_to(i, piece)
            return []

        self.relatives("above", k, "double", [], take)
        wide = w.splat(inverse)

        def scale(p: int) -> None:
            place, mask = self.at(row, p * w.width), self.mask(p)
            self.store(w.binary("fmul", self.load(place, mask), wide), place, mask)

        self.up_to(k, scale)
        w.do(f"store double {inverse}, ptr {self.at(row, k)}")

    def up_to(self, k: str, body: Callable[[int], None]) -> None:
        """``body(p)`` for the pieces of a row up to column k; what is above the diagonal is not
        used.
        """
        w = self.w
        done = w.name()[1:]
        for p in range(self.pieces):
            body(p)
            if p + 1 < self.pieces:
                more = w.put(f"icmp sge i64 {k}, {(p + 1) * w.width}")
                w.do(f"br i1 {more}, label %{done}.piece{p}, label %{done}.done")
                w.label(f"{done}.piece{p}")
        w.do(f"br label %{done}.done")
        w.label(f"{done}.done")

    def substitute(self, H: str, x: str, k: str) -> None:
        w, row, own = self.w, self.row(H, k), self.at(x, k)
        scaled = w.put(f"fmul double {self.number(own)}, {self.number(self.at(row, k))}")

        def take(i: str, values: list[str]) -> list[str]:
            known = self.number(self.at(x, i))
            return [self.less(self.number(self.at(row, i)), known, values[0])]

        (found,) = self.relatives("above", k, "double", [scaled], take)
        w.do(f"store double {found}, ptr {own}")


class _Solve(_Text):
    def function(self) -> str:
        return self.text(
            "solve(i64 %states, ptr noalias %M, ptr noalias %A, ptr noalias %B, "
            "ptr noalias %family, ptr noalias %scratch)",
            self.one,
        )

    def one(self, state: str) -> None:
        """Pieces of rows as many at a time as registers hold: -A, -B and the unit matrix."""
        w, n = self.w, self.n
        start = self.mul(state, n * n)
        H, *right = (self.at(matrix, start) for matrix in ("%M", "%A", "%B"))
        places = [(matrix, p) for matrix in (*right, "") for p in range(self.pieces)]
        for first in range(0, len(places), _MOST):
            group = places[first : first + _MOST]
            numbered = list(enumerate(group, first))

            def down(k: str, numbered: list[tuple[int, tuple[str, int]]] = numbered) -> None:
                values = [self.given(matrix, p, k) for _, (matrix, p) in numbered]
                found = self.swept("below", H, k, values, numbered[0][0])
                for (slot, _), value in zip(numbered, found, strict=True):
                    self.store(value, self.inside(k, slot))

            def up(k: str, numbered: list[tuple[int, tuple[str, int]]] = numbered) -> None:
                pivot = w.splat(self.number(self.at(self.row(H, k), k)))
                values = [self.load(self.inside(k, slot)) for slot, _ in numbered]
                values = [w.binary("fmul", value, pivot) for value in values]
                found = self.swept("above", H, k, values, numbered[0][0])
                for (slot, (matrix, p)), value in zip(numbered, found, strict=True):
                    self.store(value, self.inside(k, slot))
                    if matrix:
                        self.store(value, self.at(self.row(matrix, k), p * w.width), self.mask(p))

            count(w, down, str(n - 1), "0", -1)
            count(w, up, "0", str(n))

        def inverse(k: str) -> None:  # only now that L is no longer needed
            for slot, (matrix, p) in enumerate(places):
                if not matrix:
                    to = self.at(self.row(H, k), p * w.width)
                    self.store(self.load(self.inside(k, slot)), to, self.mask(p))

        count(w, inverse, "0", str(n))

    def inside(self, k: str, slot: int) -> str:
        row = self.at("%scratch", self.mul(k, _stride(self.n, self.w.width)))
        return self.at(row, slot * self.w.width)

    def given(self, matrix: str, p: int, k: str) -> str:
        """A piece of a row of the right-hand side."""
        w, start = self.w, p * self.w.width
        if matrix:
            return w.negated(self.load(self.at(self.row(matrix, k), start), self.mask(p)))
        if w.width == 1:
            same = w.put(f"icmp eq i64 {k}, {start}")
            return w.pick(same, w.const(1.0), w.const(0.0))
        first = w.put(f"insertelement {w.integer} poison, i64 {k}, i64 0")
        many = w.put(
            f"shufflevector {w.integer} {first}, {w.integer} poison, "
            f"<{w.width} x i32> zeroinitializer"
        )
        lanes = f"<{', '.join(f'i64 {start + i}' for i in range(w.width))}>"
        return w.pick(w.put(f"icmp eq {w.integer} {many}, {lanes}"), w.const(1.0), w.const(0.0))

    def swept(self, which: str, H: str, k: str, values: list[str], first: int) -> list[str]:
        """values - sum of the entries of L times the rows of k's relatives."""
        w = self.w

        def take(i: str, sums: list[str]) -> list[str]:
            entry = self.at(self.row(H, k), i) if which == "above" else self.at(self.row(H, i), k)
            minus = w.negated(w.splat(self.number(entry)))
            others = [self.load(self.inside(i, first + s)) for s in range(len(sums))]
            return [w.multiply_add(minus, o, total) for o, total in zip(others, sums, strict=True)]

        return self.relatives(which, k, w.vector, values, take)
