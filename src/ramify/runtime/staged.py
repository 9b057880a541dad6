"""Derivatives of forward dynamics in stages, one block of states at a time, without Python in
between.

M and the bias h; M = L' D L and a = M^-1 (tau - h); derivatives of inverse dynamics there; their
product with -M^-1. The first and the third are kernels of their own, called by address. Matrices
stay in scratch memory, lane by lane, until the last stage writes the results.

``int64 staged(int64 states, double **inputs, double **outputs, Stages *stages, double *scratch)``
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.emit.cpu_target import CpuTarget
from ramify.emit.rows import row_pointers, write_lanes
from ramify.emit.tree_solve import ColumnGroups, Family, solve_ir
from ramify.emit.writer import Writer
from ramify.runtime import backend
from ramify.runtime.backend import Backend, Scratch, function_of, pointers
from ramify.runtime.compile import Compiled, FunctionPointer, compiled
from ramify.runtime.rolled_backend import Rolled
from ramify.runtime.target import host

_STAGES: Final = {"nq": "i64"} | dict.fromkeys(
    ("inertia", "inertia_robot", "slopes", "slopes_robot", "family"), "ptr"
)
"""What the function finds in the table of stages."""
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
    """LLVM text of all functions, for n velocities and ``width`` states at a time."""
    w = Writer(target.with_width(width))
    w.unpack("%stages", _STAGES)
    q, v, tau = (w.item("%inputs", i, "ptr") for i in range(3))
    results = [w.item("%outputs", i, "ptr") for i in range(3)]
    w.do("%in = alloca [3 x ptr]")
    w.do("%out = alloca [2 x ptr]")
    places, kernels = _memory(n, width)
    for name, at in (*places.items(), ("kernels", kernels)):
        w.do(f"%{name} = getelementptr double, ptr %scratch, i64 {at}")
    w.clear("%scratch", 8 * places["h" if width > 1 else "M"])  # kernels of one state clear theirs

    def run(stage: str, inputs: Sequence[str], outputs: Sequence[str]) -> str:
        for name, addresses in (("%in", inputs), ("%out", outputs)):
            for i, address in enumerate(addresses):
                w.do(f"store ptr {address}, ptr {w.at(name, i, 'ptr')}")
        return w.put(
            f"call i64 %{stage}(i64 {width}, ptr %in, ptr %out, ptr %{stage}_robot, ptr %kernels)"
        )

    def here(base: str, size: int | str) -> str:
        return w.at(base, w.mul("%row", size))

    w.begin_blocks()
    q_row, v_row, tau_row = here(q, "%nq"), here(v, n), here(tau, n)
    flags = run("inertia", [q_row, v_row], ["%M", "%h"])
    w.put(f"call i64 @factor(ptr %M, ptr %N, ptr %h, ptr {tau_row}, ptr %a, ptr %family, ptr %z)")
    more_flags = run("slopes", [q_row, v_row, "%a"], ["%A", "%B"])
    out = [here(base, n * n) for base in results]
    taken = ", ".join(f"ptr {x}" for x in (out if width == 1 else [f"%{x}" for x in _RESULTS]))
    w.put(f"call i64 @solve(ptr %A, ptr %B, ptr %M, ptr %N, {taken}, ptr %family, ptr %z)")
    if width > 1:
        for name, base in zip(_RESULTS, results, strict=True):
            write_lanes(w, f"%{name}", row_pointers(w, base, n * n), n * n)
    w.end_blocks(w.put(f"or i64 {flags}, {more_flags}"))
    head = "define i64 @staged(i64 %states, ptr %inputs, ptr %outputs, ptr %stages, ptr %scratch)"
    solve, staged = solve_ir(target, _columns(n, width)), [f"{head} {{", "entry:", *w.lines, "}"]
    return w.module(solve, *staged)


@cache
def _function(n: int, width: int) -> Compiled:
    return compiled(lambda: staged_ir(host(), n, width), "staged", host(), f"staged {n} by {width}")


class Staged(Backend):
    """The backend: kernels for M and h, and for the derivatives of inverse dynamics by q and v."""

    tier = "rolled"

    def __init__(self, inertia: Rolled, slopes: Rolled, parents: Sequence[int], nq: int) -> None:
        self._inertia, self._slopes = inertia, slopes
        self._parents = parents
        self._nq = inertia.arrange([np.zeros((1, nq)), np.zeros((1, len(parents)))])[0].shape[1]
        self._functions: dict[int, FunctionPointer] = {}
        self._scratch = Scratch()

    def llvm_ir(self, width: int) -> str:
        """LLVM text of the stages between the kernels."""
        return staged_ir(host(), len(self._parents), width)

    def _compute(self, width: int) -> FunctionPointer:
        if width not in self._functions:
            n = len(self._parents)
            family = Family(self._parents, _columns(n, width))
            stages = [k.compute(width, in_lanes=True) for k in (self._inertia, self._slopes)]
            addresses = [x for stage in stages for x in (stage.address, stage.robot)]
            table = np.array([self._nq, *addresses, family.table.ctypes.data], dtype=np.int64)
            size = _memory(n, width)[1] + max(3 * n * n * width, *(x.doubles for x in stages))
            address, keep = _function(n, width).address, (stages, family, table)
            self._functions.setdefault(
                width, FunctionPointer(address, int(table.ctypes.data), size, keep)
            )
        return self._functions[width]

    def function(self, width: int) -> FunctionPointer | None:
        return None if self._inertia.arranges else replace(self._compute(width))

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int) -> int:
        code = self._compute(backend.width_for(stop - start))
        q, v, tau = (a[start:stop] for a in inputs)
        rows = [*self._inertia.arrange([q, v]), tau]
        arrays = pointers(rows, 0), pointers(outputs, start)
        scratch = self._scratch.of(code.doubles)
        return int(function_of(code.address, 4)(stop - start, *arrays, code.robot, scratch))
