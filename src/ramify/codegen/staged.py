"""Derivatives of forward dynamics in stages, one block of states at a time, without Python in
between.

M and the bias h; M = L' D L and a = M^-1 (tau - h); derivatives of inverse dynamics there; their
product with -M^-1. The first and the third are kernels of their own, called by address. Matrices
stay in scratch memory, lane by lane, until the last stage writes the results.

``int64 staged(int64 states, double **inputs, double **outputs, Stages *stages, double *scratch)``
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ramify.codegen import backend
from ramify.codegen.backend import Rolled, aligned, function_of, pointers
from ramify.codegen.compile import Compiled, compiled
from ramify.codegen.entry import Compute
from ramify.codegen.row_blocks import begin_blocks, end_blocks
from ramify.codegen.rows import row_pointers, write_lanes
from ramify.codegen.target import CpuTarget, host
from ramify.codegen.tree_solve import ColumnGroups, Family, solve_ir
from ramify.codegen.vector import Writer
from ramify.core.arrays import Array

_STAGES: Final = ("nq", "inertia", "inertia_robot", "slopes", "slopes_robot", "family")
"""What the function finds in the table of stages, 8 bytes each."""


_RESULTS: Final = ("by_q", "by_v", "by_tau")


def _columns(n: int, width: int) -> ColumnGroups:
    return ColumnGroups(n, host().width, width > 1)


def _memory(n: int, width: int) -> tuple[dict[str, int], int]:
    """Where each part of the scratch memory begins, and where that of the kernels does. Results
    take the latter's place, before they are written: it is in the cache, and no longer needed.
    """
    sizes = dict.fromkeys("NMAB", n * n * width) | dict.fromkeys("ha", n * width)
    sizes["z"] = _columns(n, width).doubles
    places, end = {}, 0
    for name, size in sizes.items():
        places[name], end = end, end + (size + 7) // 8 * 8
    return places | {name: end + i * n * n * width for i, name in enumerate(_RESULTS)}, end


def staged_ir(target: CpuTarget, n: int, width: int) -> str:
    """LLVM text of all functions, for n velocities and so many states at a time."""
    w = Writer(target.with_width(width))
    for i, name in enumerate(_STAGES):
        place = w.put(f"getelementptr ptr, ptr %stages, i64 {i}")
        w.do(f"%{name} = load {'i64' if name == 'nq' else 'ptr'}, ptr {place}")
    q, v, tau = (_pointer(w, "%inputs", i) for i in range(3))
    results = [_pointer(w, "%outputs", i) for i in range(3)]
    w.do("%in = alloca [3 x ptr]")
    w.do("%out = alloca [2 x ptr]")
    places, kernels = _memory(n, width)
    for name, at in (*places.items(), ("kernels", kernels)):
        w.do(f"%{name} = getelementptr double, ptr %scratch, i64 {at}")
    cleared = 8 * places["h" if width > 1 else "M"]  # kernels of one state clear their results
    w.intrinsics.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    w.do(f"call void @llvm.memset.p0.i64(ptr %scratch, i8 0, i64 {cleared}, i1 false)")

    def run(stage: str, inputs: Sequence[str], outputs: Sequence[str]) -> str:
        for name, addresses in (("%in", inputs), ("%out", outputs)):
            for i, address in enumerate(addresses):
                place = w.put(f"getelementptr ptr, ptr {name}, i64 {i}")
                w.do(f"store ptr {address}, ptr {place}")
        return w.put(
            f"call i64 %{stage}(i64 {width}, ptr %in, ptr %out, ptr %{stage}_robot, ptr %kernels)"
        )

    def here(base: str, size: int | str) -> str:
        return w.put(f"getelementptr double, ptr {base}, i64 {w.put(f'mul i64 %row, {size}')}")

    begin_blocks(w)
    q, v, tau = here(q, "%nq"), here(v, n), here(tau, n)
    found = run("inertia", [q, v], ["%M", "%h"])
    w.put(f"call i64 @factor(ptr %M, ptr %N, ptr %h, ptr {tau}, ptr %a, ptr %family, ptr %z)")
    more = run("slopes", [q, v, "%a"], ["%A", "%B"])
    out = [here(base, n * n) for base in results]
    taken = ", ".join(f"ptr {x}" for x in (out if width == 1 else [f"%{x}" for x in _RESULTS]))
    w.put(f"call i64 @solve(ptr %A, ptr %B, ptr %M, ptr %N, {taken}, ptr %family, ptr %z)")
    if width > 1:
        for name, base in zip(_RESULTS, results, strict=True):
            write_lanes(w, f"%{name}", row_pointers(w, base, n * n), n * n)
    end_blocks(w, w.put(f"or i64 {found}, {more}"))
    head = "define i64 @staged(i64 %states, ptr %inputs, ptr %outputs, ptr %stages, ptr %scratch)"
    solve = solve_ir(target, _columns(n, width))
    return "\n".join([*sorted(w.intrinsics), solve, f"{head} {{", "entry:", *w.lines, "}", ""])


def _pointer(w: Writer, table: str, i: int) -> str:
    return w.put(f"load ptr, ptr {w.put(f'getelementptr ptr, ptr {table}, i64 {i}')}")


@cache
def _function(n: int, width: int) -> Compiled:
    return compiled(lambda: staged_ir(host(), n, width), "staged", host(), f"staged {n} by {width}")


class Staged:
    """The backend: kernels for M and h, and for the derivatives of inverse dynamics by q and v."""

    tier = "rolled"

    def __init__(self, inertia: Rolled, slopes: Rolled, parents: Sequence[int], nq: int) -> None:
        self._inertia, self._slopes = inertia, slopes
        self._parents = parents
        self._nq = inertia.spread([np.zeros((1, nq)), np.zeros((1, len(parents)))])[0].shape[1]
        self._tables: dict[int, tuple[NDArray[np.int64], Family]] = {}
        self._local = threading.local()

    def llvm_ir(self, width: int) -> str:
        """LLVM text of the stages between the kernels."""
        return staged_ir(host(), len(self._parents), width)

    def _stages(self, width: int) -> tuple[int, int, int]:
        """The function's address, that of its table of stages, and the doubles of scratch memory
        it needs.
        """
        n, kernels = len(self._parents), (self._inertia, self._slopes)
        if width not in self._tables:
            family = Family(self._parents, _columns(n, width))
            addresses = [x for k in kernels for x in (k.lanes_address(width), k.table)]
            table = np.array([self._nq, *addresses, family.table.ctypes.data], dtype=np.int64)
            self._tables.setdefault(width, (table, family))
        room = max(3 * n * n * width, *(k.scratch(width) for k in kernels))
        size = _memory(n, width)[1] + room
        return _function(n, width).address, int(self._tables[width][0].ctypes.data), size

    def compute(self) -> Compute | None:
        """The function for one state, with its own memory; none where inputs are spread first."""
        if self._inertia.spreads:
            return None
        address, table, size = self._stages(1)
        memory = np.empty(size + 8)
        return Compute(address, (table, aligned(memory)), (self, memory))

    def function(self, width: int) -> tuple[int, int, int] | None:
        """What threads share (see ``Unrolled.function``); None where inputs are spread first."""
        return None if self._inertia.spreads else self._stages(width)

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int) -> int:
        address, table, size = self._stages(backend.width_for(stop - start))
        held = getattr(self._local, "memory", None)
        if held is None or held.size < size + 8:
            held = self._local.memory = np.empty(size + 8)
        q, v, tau = (a[start:stop] for a in inputs)
        rows = [*self._inertia.spread([q, v]), tau]
        given = pointers(rows, 0), pointers(outputs, start)
        return int(function_of(address, 4)(stop - start, *given, table, aligned(held)))
