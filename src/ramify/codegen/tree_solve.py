"""Linear equations with inertia matrices of a tree: -M^-1 A, -M^-1 B and M^-1.

M = L' D L has entries only between a link and those that carry it, and so has K = L^-1
(``dynamics.derivatives`` writes the same out for one robot). With N = D^-1 K', column j of A, which
has entries only for links related to j, first gives z = -N A_j, which has no others, then
K z = -M^-1 A_j; and M^-1 = K N. Products take the columns of all three in groups, so that their
sums stay in registers, and read from tables which terms they have: see ``Family``.

Two functions, for matrices of n rows. Of many states, lanes are states (``lanes``): an entry of a
matrix is a vector. Of one, an entry is a number, and vectors hold columns.

``int64 factor(M, N, h, tau, a, Family *family, double *z)``: M becomes K below its diagonal and 1/D
on it, N as above; a = M^-1 (tau - h), all three (states, n).

``int64 solve(A, B, M, N, by_q, by_v, by_tau, Family *family, double *z)``: the results, row-major
as all matrices. All arrays are of doubles; z is memory that both functions use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ramify.codegen.row_blocks import count
from ramify.codegen.target import CpuTarget
from ramify.codegen.vector import Writer

_PIECES: Final = 3  # vectors of one state's row in a group of columns
_TABLES: Final = ("first", "above", "phases", "rows", "terms")


class ColumnGroups:
    """How n columns are taken: ``many`` groups of ``size`` columns, the last one reaching back, on
    ``pieces`` vectors of ``width`` numbers.
    """

    def __init__(self, n: int, width: int, lanes: bool) -> None:
        self.n, self.lanes = n, lanes
        self.width = width if lanes else min(width, 1 << (n.bit_length() - 1))
        self.pieces = min(width, n) if lanes else min(_PIECES, n // self.width)
        self.size = self.pieces * (1 if lanes else self.width)
        self.many = -(-n // self.size)

    @property
    def starts(self) -> list[int]:
        """The first column of every group."""
        return [min(g * self.size, self.n - self.size) for g in range(self.many)]

    @property
    def doubles(self) -> int:
        """Size of z: a row for every link, and one of zeros."""
        return (self.n + 1) * 3 * self.pieces * self.width


class Family:
    """Who carries whom, as the functions read it: ``above[first[k]:first[k + 1]]`` are the links
    that carry link k, nearest first; ``rows[phases[2 g + i]:phases[2 g + i + 1]]`` the rows that
    product i of group g computes, each as (row, row with which its sums begin, first and last of
    its terms), a term as (coefficient, row it multiplies).
    """

    def __init__(self, parents: Sequence[int], columns: ColumnGroups) -> None:
        n, size = len(parents), 3 * columns.pieces
        above: list[list[int]] = []
        below: list[list[int]] = [[k] for k in range(n)]
        for k, parent in enumerate(parents):
            above.append([] if parent < 0 else [parent, *above[parent]])
            for i in above[k]:
                below[i].append(k)
        phases, rows, terms = [0], list[tuple[int, ...]](), list[tuple[int, int]]()

        def row(k: int, begin: int, found: list[tuple[int, int]]) -> None:
            rows.append((k, begin, len(terms), len(terms) + len(found)))
            terms.extend(found)

        for start in columns.starts:
            group = range(start, start + columns.size)
            related = {i for c in group for i in (*above[c], *below[c])}
            for k in sorted(related):
                row(k, k * n, [(k * n + i, i * n) for i in below[k] if i in related])
            phases.append(len(rows))
            for k in range(n):
                begin = k if k in related else n
                row(k, begin * size, [(k * n + i, i * size) for i in above[k] if i in related])
            phases.append(len(rows))
        first = np.cumsum([0, *map(len, above)])
        lists: list[Any] = [first, [i for one in above for i in one], phases, rows, terms]
        self.n = n
        self._keep: list[NDArray[np.int32]] = [
            np.ascontiguousarray(x if len(x) else [0], dtype=np.int32) for x in lists
        ]
        self.table = np.array([a.ctypes.data for a in self._keep], np.int64)


def solve_ir(target: CpuTarget, columns: ColumnGroups) -> str:
    """LLVM text of both functions."""
    factor, solve = _Factor(target, columns), _Solve(target, columns)
    texts = [factor.function(), solve.function()]
    return "\n".join([*sorted(factor.w.intrinsics | solve.w.intrinsics), *texts, ""])


class _Text:
    def __init__(self, target: CpuTarget, columns: ColumnGroups, width: int) -> None:
        self.w, self.columns, self.n = Writer(target.with_width(width)), columns, columns.n
        self.entry = self.w.vector if columns.lanes else "double"

    def at(self, base: str, index: str | int, kind: str = "") -> str:
        return self.w.put(f"getelementptr {kind or self.entry}, ptr {base}, i64 {index}")

    def load(self, address: str, kind: str = "") -> str:
        return self.w.put(f"load {kind or self.entry}, ptr {address}, align 8")

    def store(self, value: str, address: str) -> None:
        self.w.do(f"store {self.w.vector} {value}, ptr {address}, align 8")

    def add(self, a: str, b: str | int) -> str:
        return self.w.put(f"add i64 {a}, {b}")

    def mul(self, a: str, b: str | int) -> str:
        return self.w.put(f"mul i64 {a}, {b}")

    def row(self, matrix: str, k: str) -> str:
        return self.at(matrix, self.mul(k, self.n))

    def listed(self, table: str, index: str | int) -> str:
        """A whole number of a table."""
        place = self.w.put(f"getelementptr i32, ptr %{table}, i64 {index}")
        return self.w.put(f"sext i32 {self.w.put(f'load i32, ptr {place}')} to i64")

    def summed(
        self,
        start: Sequence[str],
        span: tuple[str, str],
        body: Callable[[str, list[str]], list[str]],
    ) -> list[str]:
        """Values that ``body(p, values)`` changes for every p of a span; they stay in registers."""
        w = self.w
        label = w.name()[1:]
        w.do(f"br label %{label}.enter")
        w.label(f"{label}.enter")
        some = w.put(f"icmp slt i64 {span[0]}, {span[1]}")
        w.do(f"br i1 {some}, label %{label}.body, label %{label}.exit")
        w.label(f"{label}.body")
        w.do(f"%{label}.p = phi i64 [{span[0]}, %{label}.enter], [%{label}.next, %{label}.body]")
        names = [f"%{label}.value{i}" for i in range(len(start))]
        for name, value in zip(names, start, strict=True):
            w.do(f"{name} = phi {w.vector} [{value}, %{label}.enter], [{name}.new, %{label}.body]")
        found = body(f"%{label}.p", names)
        for name, new in zip(names, found, strict=True):
            w.do(f"{name}.new = select i1 true, {w.vector} {new}, {w.vector} {new}")
        w.do(f"%{label}.next = add i64 %{label}.p, 1")
        more = w.put(f"icmp slt i64 %{label}.next, {span[1]}")
        w.do(f"br i1 {more}, label %{label}.body, label %{label}.exit")
        w.label(f"{label}.exit")
        return [
            w.put(f"phi {w.vector} [{value}, %{label}.enter], [{name}.new, %{label}.body]")
            for name, value in zip(names, start, strict=True)
        ]

    def text(self, name: str, pointers: str, body: Callable[[], None]) -> str:
        w = self.w
        for i, table in enumerate(_TABLES):
            place = w.put(f"getelementptr ptr, ptr %family, i64 {i}")
            w.do(f"%{table} = load ptr, ptr {place}")
        body()
        w.do("ret i64 0")
        takes = ", ".join(f"ptr noalias %{one}" for one in (*pointers.split(), "family", "z"))
        return "\n".join(
            [f'define i64 @{name}({takes}) "stackrealign" {{', "entry:", *w.lines, "}"]
        )


class _Factor(_Text):
    def __init__(self, target: CpuTarget, columns: ColumnGroups) -> None:
        super().__init__(target, columns, columns.width if columns.lanes else 1)

    def function(self) -> str:
        return self.text("factor", "M N h tau a", self.body)

    def body(self) -> None:
        n = str(self.n)
        count(self.w, self.eliminate, str(self.n - 1), "0", -1)
        count(self.w, self.invert, "0", n)
        count(self.w, self.force, "0", n)
        count(self.w, self.down, "0", n)
        count(self.w, self.up, "0", n)

    def above(self, k: str) -> tuple[str, str]:
        return self.listed("first", k), self.listed("first", self.add(k, 1))

    def eliminate(self, k: str) -> None:
        """Take row k, a share of it, from the rows of the links that carry k."""
        w, row, (begin, end) = self.w, self.row("%M", k), self.above(k)
        pivot = self.at(row, k)
        inverse = w.binary("fdiv", w.const(1.0), self.load(pivot))

        def take(p: str) -> None:
            i = self.listed("above", p)
            place, other = self.at(row, i), self.row("%M", i)
            share = w.binary("fmul", self.load(place), inverse)
            minus = w.negated(share)

            def each(r: str, _: list[str]) -> list[str]:
                j = self.listed("above", r)
                to = self.at(other, j)
                self.store(w.multiply_add(minus, self.load(self.at(row, j)), self.load(to)), to)
                return []

            self.summed([], (p, end), each)
            self.store(share, place)

        count(w, take, begin, end)
        self.store(inverse, pivot)

    def invert(self, k: str) -> None:
        """Row k of K from row k of L and the rows of K above, the farthest entry first."""
        w, row, (begin, end) = self.w, self.row("%M", k), self.above(k)

        def entry(p: str) -> None:
            i = self.listed("above", p)
            place = self.at(row, i)

            def more(r: str, total: list[str]) -> list[str]:
                j = self.listed("above", r)
                known = self.load(self.at(self.row("%M", j), i))
                return [w.multiply_add(self.load(self.at(row, j)), known, total[0])]

            (total,) = self.summed([self.load(place)], (begin, p), more)
            found = w.negated(total)
            self.store(found, place)
            pivot = self.load(self.at(self.row("%M", i), i))
            self.store(w.binary("fmul", found, pivot), self.at(self.row("%N", i), k))

        count(w, entry, self.add(end, -1), begin, -1)
        self.store(self.load(self.at(row, k)), self.at(self.row("%N", k), k))

    def places(self, base: str, k: str) -> list[str]:
        """Where number k of every state stands."""
        return [self.at(base, self.add(k, lane * self.n), "double") for lane in range(self.w.width)]

    def force(self, k: str) -> None:
        """z = tau - h."""
        w, lanes = self.w, []
        for given, bias in zip(self.places("%tau", k), self.places("%h", k), strict=True):
            lanes.append(
                w.put(f"fsub double {self.load(given, 'double')}, {self.load(bias, 'double')}")
            )
        value = lanes[0]
        if w.width > 1:
            value = "poison"
            for i, lane in enumerate(lanes):
                value = w.put(f"insertelement {w.vector} {value}, double {lane}, i64 {i}")
        self.store(value, self.at("%z", k))

    def down(self, k: str) -> None:
        """z = N z: what the links that carry k get of it, then its own."""
        w, (begin, end) = self.w, self.above(k)
        own = self.at("%z", k)
        value = self.load(own)

        def give(p: str, _: list[str]) -> list[str]:
            i = self.listed("above", p)
            to = self.at("%z", i)
            share = self.load(self.at(self.row("%N", i), k))
            self.store(w.multiply_add(share, value, self.load(to)), to)
            return []

        self.summed([], (begin, end), give)
        self.store(w.binary("fmul", value, self.load(self.at(self.row("%N", k), k))), own)

    def up(self, k: str) -> None:
        """a = K z."""
        w, row = self.w, self.row("%M", k)

        def more(p: str, total: list[str]) -> list[str]:
            i = self.listed("above", p)
            return [
                w.multiply_add(self.load(self.at(row, i)), self.load(self.at("%z", i)), total[0])
            ]

        (found,) = self.summed([self.load(self.at("%z", k))], self.above(k), more)
        for lane, place in enumerate(self.places("%a", k)):
            one = found if w.width == 1 else w.put(f"extractelement {w.vector} {found}, i64 {lane}")
            w.do(f"store double {one}, ptr {place}")


class _Solve(_Text):
    def __init__(self, target: CpuTarget, columns: ColumnGroups) -> None:
        super().__init__(target, columns, columns.width)

    def function(self) -> str:
        return self.text("solve", "A B M N by_q by_v by_tau", self.body)

    def body(self) -> None:
        w, size = self.w, 3 * self.columns.pieces
        for i in range(size):
            self.store(w.const(0.0), self.at("%z", size * self.n + i, w.vector))
        count(w, self.group, "0", str(self.columns.many))

    def group(self, g: str) -> None:
        w, size, pieces = self.w, self.columns.size, self.columns.pieces
        usual = self.mul(g, size)
        late = w.put(f"icmp sgt i64 {usual}, {self.n - size}")
        start = w.put(f"select i1 {late}, i64 {self.n - size}, i64 {usual}")
        step = 1 if self.columns.lanes else self.columns.width

        def down(r: str) -> None:
            """A row of z: of -N A, -N B and N."""
            k, own, *span = self.numbers(r)
            places = [[self.at(f"%{x}", start)] * pieces for x in "ABN"]
            right = [self.at(base, p * step) for one in places for p, base in enumerate(one)]
            sums = self.multiplied("%N", right[: 2 * pieces], self.entry, span)
            found = [*map(w.negated, sums), *self.values(right[2 * pieces :], own, self.entry)]
            first = self.mul(k, 3 * pieces)
            for i, value in enumerate(found):
                self.store(value, self.at("%z", self.add(first, i), w.vector))

        def up(r: str) -> None:
            k, own, *span = self.numbers(r)
            right = [self.at("%z", i, w.vector) for i in range(3 * pieces)]
            sums = self.multiplied("%M", right, w.vector, span, self.values(right, own, w.vector))
            place = self.add(self.mul(k, self.n), start)
            for i, total in enumerate(sums):
                base = ("%by_q", "%by_v", "%by_tau")[i // pieces]
                self.store(total, self.at(base, self.add(place, i % pieces * step)))

        for product, row in enumerate((down, up)):
            index = self.add(self.mul(g, 2), product)
            count(w, row, self.listed("phases", index), self.listed("phases", self.add(index, 1)))

    def numbers(self, r: str) -> list[str]:
        """What the tables say of a row."""
        first = self.mul(r, 4)
        return [self.listed("rows", self.add(first, i)) for i in range(4)]

    def values(self, right: list[str], row: str, unit: str) -> list[str]:
        """A row of matrices whose columns begin at ``right``; rows are placed in such units."""
        return [self.load(self.at(place, row, unit), self.w.vector) for place in right]

    def multiplied(
        self,
        coefficients: str,
        right: list[str],
        unit: str,
        span: Sequence[str],
        start: Sequence[str] = (),
    ) -> list[str]:
        """The sum of some terms: a coefficient times a row, each."""
        w = self.w

        def more(p: str, sums: list[str]) -> list[str]:
            term = self.mul(p, 2)
            factor = self.load(self.at(coefficients, self.listed("terms", term)))
            wide = factor if self.columns.lanes else w.splat(factor)
            others = self.values(right, self.listed("terms", self.add(term, 1)), unit)
            return [w.multiply_add(wide, x, total) for x, total in zip(others, sums, strict=True)]

        begin, end = span
        return self.summed(start or [w.const(0.0)] * len(right), (begin, end), more)
