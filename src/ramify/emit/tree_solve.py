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

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ramify.emit.cpu_target import CpuTarget
from ramify.emit.values import LlvmValue, where
from ramify.emit.writer import Writer

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

        def row(k: int, begin: int, row_terms: list[tuple[int, int]]) -> None:
            rows.append((k, begin, len(terms), len(terms) + len(row_terms)))
            terms.extend(row_terms)

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
    texts = [factor.text("factor", "M N h tau a"), solve.text("solve", "A B M N by_q by_v by_tau")]
    factor.intrinsics |= solve.intrinsics
    return factor.module(*texts)


class _Text(Writer):
    def __init__(self, target: CpuTarget, columns: ColumnGroups, width: int) -> None:
        super().__init__(target.with_width(width))
        self.columns, self.n = columns, columns.n
        self.entry = self.vector if columns.lanes else "double"

    def place(self, base: str, index: str | int) -> str:
        """The address of an entry of a matrix."""
        return self.at(base, index, self.entry)

    def get(self, address: str, kind: str = "") -> LlvmValue:
        kind = kind or self.entry
        return self.typed(kind, f"load {kind}, ptr {address}, align 8")

    def row(self, matrix: str, k: str) -> str:
        return self.place(matrix, self.mul(k, self.n))

    def listed(self, table: str, index: str | int) -> str:
        """A whole number of a table."""
        return self.put(f"sext i32 {self.item(f'%{table}', index, 'i32')} to i64")

    def text(self, name: str, pointers: str) -> str:
        self.unpack("%family", dict.fromkeys(_TABLES, "ptr"))
        self.body()
        self.do("ret i64 0")
        return self.function(name, f"{pointers} family z", first="")

    def body(self) -> None:
        raise NotImplementedError


class _Factor(_Text):
    def __init__(self, target: CpuTarget, columns: ColumnGroups) -> None:
        super().__init__(target, columns, columns.width if columns.lanes else 1)

    def body(self) -> None:
        self.count(self.eliminate, str(self.n - 1), 0, -1)
        for sweep in (self.invert, self.force, self.down, self.up):
            self.count(sweep, "0", self.n)

    def above(self, k: str) -> tuple[str, str]:
        return self.listed("first", k), self.listed("first", self.add(k, 1))

    def eliminate(self, k: str) -> None:
        """Take row k, a share of it, from the rows of the links that carry k."""
        row, (begin, end) = self.row("%M", k), self.above(k)
        pivot = self.place(row, k)
        inverse = self.binary("fdiv", self.const(1.0), self.get(pivot))

        def take(p: str) -> None:
            i = self.listed("above", p)
            place, other = self.place(row, i), self.row("%M", i)
            share = self.binary("fmul", self.get(place), inverse)
            minus = self.negated(share)

            def each(r: str) -> None:
                j = self.listed("above", r)
                to = self.place(other, j)
                factor = self.get(self.place(row, j))
                self.store(self.multiply_add(minus, factor, self.get(to)), to, 8)

            self.repeat(each, p, end)
            self.store(share, place, 8)

        self.count(take, begin, end)
        self.store(inverse, pivot, 8)

    def invert(self, k: str) -> None:
        """Row k of K from row k of L and the rows of K above, the farthest entry first."""
        row, (begin, end) = self.row("%M", k), self.above(k)

        def entry(p: str) -> None:
            i = self.listed("above", p)
            place = self.place(row, i)

            def more(r: str, total: str) -> list[str]:
                j = self.listed("above", r)
                factor = self.get(self.place(self.row("%M", j), i))
                return [self.multiply_add(self.get(self.place(row, j)), factor, total)]

            (total,) = self.repeat(more, begin, p, carried=[self.get(place)])
            entry = self.negated(total)
            self.store(entry, place, 8)
            pivot = self.get(self.place(self.row("%M", i), i))
            self.store(self.binary("fmul", entry, pivot), self.place(self.row("%N", i), k), 8)

        self.count(entry, self.add(end, -1), begin, -1)
        self.store(self.get(self.place(row, k)), self.place(self.row("%N", k), k), 8)

    def places(self, base: str, k: str) -> list[str]:
        """The addresses of number k of every state."""
        return [self.at(base, self.add(k, lane * self.n)) for lane in range(self.width)]

    def force(self, k: str) -> None:
        """z = tau - h."""
        pairs = zip(self.places("%tau", k), self.places("%h", k), strict=True)
        lanes = [self.get(force, "double") - self.get(bias, "double") for force, bias in pairs]
        self.store(self.joined(lanes), self.place("%z", k), 8)

    def down(self, k: str) -> None:
        """z = N z: first for the links that carry k, then for k itself."""
        (begin, end), place = self.above(k), self.place("%z", k)
        value = self.get(place)

        def give(p: str) -> None:
            i = self.listed("above", p)
            to = self.place("%z", i)
            share = self.get(self.place(self.row("%N", i), k))
            self.store(self.multiply_add(share, value, self.get(to)), to, 8)

        self.repeat(give, begin, end)
        share = self.get(self.place(self.row("%N", k), k))
        self.store(self.binary("fmul", value, share), place, 8)

    def up(self, k: str) -> None:
        """a = K z."""
        row = self.row("%M", k)

        def more(p: str, total: str) -> list[str]:
            i = self.listed("above", p)
            factor = self.get(self.place(row, i))
            return [self.multiply_add(factor, self.get(self.place("%z", i)), total)]

        start = self.get(self.place("%z", k))
        (total,) = self.repeat(more, *self.above(k), carried=[start])
        for lane, place in enumerate(self.places("%a", k)):
            self.do(f"store double {self.lane(total, lane)}, ptr {place}")


class _Solve(_Text):
    def __init__(self, target: CpuTarget, columns: ColumnGroups) -> None:
        super().__init__(target, columns, columns.width)

    def body(self) -> None:
        size = 3 * self.columns.pieces
        for i in range(size):
            self.store(self.const(0.0), self.at("%z", size * self.n + i, self.vector), 8)
        self.count(self.group, "0", self.columns.many)

    def group(self, g: str) -> None:
        size, pieces, vector = self.columns.size, self.columns.pieces, self.vector
        usual = self.mul(g, size)
        start = where(usual > self.n - size, self.n - size, usual)
        step = 1 if self.columns.lanes else self.columns.width

        def down(r: str) -> None:
            """A row of z: of -N A, -N B and N."""
            k, diagonal, *span = self.numbers(r)
            places = [[self.place(f"%{x}", start)] * pieces for x in "ABN"]
            right = [self.place(base, p * step) for one in places for p, base in enumerate(one)]
            sums = self.multiplied("%N", right[: 2 * pieces], self.entry, span)
            values = [
                *map(self.negated, sums),
                *self.values(right[2 * pieces :], diagonal, self.entry),
            ]
            first = self.mul(k, 3 * pieces)
            for i, value in enumerate(values):
                self.store(value, self.at("%z", self.add(first, i), vector), 8)

        def up(r: str) -> None:
            k, diagonal, *span = self.numbers(r)
            right = [self.at("%z", i, vector) for i in range(3 * pieces)]
            sums = self.multiplied("%M", right, vector, span, self.values(right, diagonal, vector))
            place = self.add(self.mul(k, self.n), start)
            for i, total in enumerate(sums):
                base = ("%by_q", "%by_v", "%by_tau")[i // pieces]
                self.store(total, self.place(base, self.add(place, i % pieces * step)), 8)

        for product, row in enumerate((down, up)):
            index = self.add(self.mul(g, 2), product)
            ends = self.listed("phases", index), self.listed("phases", self.add(index, 1))
            self.count(row, *ends)

    def numbers(self, r: str) -> list[str]:
        """The entries of the tables for a row."""
        first = self.mul(r, 4)
        return [self.listed("rows", self.add(first, i)) for i in range(4)]

    def values(self, right: list[str], row: str, unit: str) -> list[str]:
        """A row of matrices whose columns begin at ``right``; rows are placed in such units."""
        return [self.load(self.at(place, row, unit), 8) for place in right]

    def multiplied(
        self,
        coefficients: str,
        right: list[str],
        unit: str,
        span: Sequence[str],
        start: Sequence[str] = (),
    ) -> list[str]:
        """The sum of some terms: a coefficient times a row, each."""

        def more(p: str, *sums: str) -> list[str]:
            term = self.mul(p, 2)
            factor = self.get(self.place(coefficients, self.listed("terms", term)))
            wide = factor if self.columns.lanes else self.splat(factor)
            others = self.values(right, self.listed("terms", self.add(term, 1)), unit)
            return [self.multiply_add(wide, x, old) for x, old in zip(others, sums, strict=True)]

        begin, end = span
        return self.repeat(more, begin, end, carried=start or [self.const(0.0)] * len(right))
