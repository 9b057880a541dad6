"""Derivatives of forward dynamics in stages, some states at a time, without Python in between.

M and the bias h; M = L' D L and a = M^-1 (tau - h); derivatives of inverse dynamics there; their
product with -M^-1. The first and the third are kernels of their own, called by address.

``int64 staged(int64 states, double **inputs, double **outputs, Stages *stages, double *scratch)``
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from ramify.codegen import backend, tree_solve
from ramify.codegen.backend import Rolled, aligned, pointers
from ramify.codegen.compile import Compiled, compiled
from ramify.codegen.entry import Compute
from ramify.codegen.guarded import guarded
from ramify.codegen.row_blocks import count
from ramify.codegen.target import CpuTarget, host
from ramify.codegen.vector import Writer
from ramify.core.arrays import Array

_CHUNK: Final = 16
_STAGES: Final = (
    "n", "nq", "inertia", "inertia_robot", "slopes", "slopes_robot",
    "factor", "solve", "family", "room_kernels", "room_solve",
)  # fmt: skip
"""What the function finds in the table of stages, 8 bytes each."""


def staged_ir(target: CpuTarget, n: int) -> str:
    """LLVM text of all three functions, for n velocities."""
    w = Writer(target.with_width(1))
    for i, name in enumerate(_STAGES):
        place = w.put(f"getelementptr i64, ptr %stages, i64 {i}")
        w.do(f"%{name} = load i64, ptr {place}")
    for name in ("inertia", "slopes", "factor", "solve", "inertia_robot", "slopes_robot", "family"):
        w.do(f"%{name}.p = inttoptr i64 %{name} to ptr")
    w.do("%size = mul i64 %n, %n")
    q, v, tau = (_pointer(w, "%inputs", i) for i in range(3))
    by_q, by_v, by_tau = (_pointer(w, "%outputs", i) for i in range(3))
    few = w.put(f"icmp slt i64 %states, {_CHUNK}")
    w.do(f"%chunk = select i1 {few}, i64 %states, i64 {_CHUNK}")
    w.do("%last = sub i64 %states, %chunk")
    w.do("%in = alloca [3 x ptr]")
    w.do("%out = alloca [2 x ptr]")
    w.do("%flags = alloca i64")
    w.do("store i64 0, ptr %flags")
    kernels = w.put("getelementptr double, ptr %scratch, i64 %room_kernels")
    room = w.put("getelementptr double, ptr %scratch, i64 %room_solve")

    def table(name: str, addresses: Sequence[str]) -> None:
        for i, address in enumerate(addresses):
            w.do(f"store ptr {address}, ptr {w.put(f'getelementptr ptr, ptr {name}, i64 {i}')}")

    def run(stage: str) -> None:
        found = w.put(
            f"call i64 %{stage}.p(i64 %chunk, ptr %in, ptr %out, ptr %{stage}_robot.p, "
            f"ptr {kernels})"
        )
        before = w.put("load i64, ptr %flags")
        w.do(f"store i64 {w.put(f'or i64 {before}, {found}')}, ptr %flags")

    def chunk(at: str) -> None:
        late = w.put(f"icmp sgt i64 {at}, %last")
        start = w.put(f"select i1 {late}, i64 %last, i64 {at}")

        def moved(base: str, size: str) -> str:
            return w.put(
                f"getelementptr double, ptr {base}, i64 {w.put(f'mul i64 {start}, {size}')}"
            )

        here_q, here_v, here_tau = moved(q, "%nq"), moved(v, "%n"), moved(tau, "%n")
        A, B, M = (moved(base, "%size") for base in (by_q, by_v, by_tau))
        table("%in", [here_q, here_v])
        table("%out", [M, "%scratch"])
        run("inertia")

        def less_bias(i: str) -> None:
            place = w.put(f"getelementptr double, ptr %scratch, i64 {i}")
            given = w.put(f"getelementptr double, ptr {here_tau}, i64 {i}")
            x, h = (w.put(f"load double, ptr {address}") for address in (given, place))
            w.do(f"store double {w.put(f'fsub double {x}, {h}')}, ptr {place}")

        count(w, less_bias, "0", w.put("mul i64 %chunk, %n"))
        w.put(f"call i64 %factor.p(i64 %chunk, ptr {M}, ptr %scratch, ptr %family.p)")
        table("%in", [here_q, here_v, "%scratch"])
        table("%out", [A, B])
        run("slopes")
        w.put(
            f"call i64 %solve.p(i64 %chunk, ptr {M}, ptr {A}, ptr {B}, ptr %family.p, ptr {room})"
        )

    _chunks(w, chunk)
    w.do(f"ret i64 {w.put('load i64, ptr %flags')}")
    head = "define i64 @staged(i64 %states, ptr %inputs, ptr %outputs, ptr %stages, ptr %scratch)"
    return "\n".join([tree_solve.solve_ir(target, n), f"{head} {{", "entry:", *w.lines, "}", ""])


def _chunks(w: Writer, body: Any) -> None:
    """``body(start)`` for every chunk of states."""
    many = w.put("add i64 %states, %chunk")
    chunks = w.put(f"udiv i64 {w.put(f'sub i64 {many}, 1')}, %chunk")
    count(w, lambda i: body(w.put(f"mul i64 {i}, %chunk")), "0", chunks)


def _pointer(w: Writer, table: str, i: int) -> str:
    return w.put(f"load ptr, ptr {w.put(f'getelementptr ptr, ptr {table}, i64 {i}')}")


@cache
def _functions(n: int) -> Compiled:
    return compiled(lambda: staged_ir(host(), n), "staged", host(), f"staged {n}")


class Staged:
    """The backend: kernels for M and h, and for the derivatives of inverse dynamics by q and v."""

    tier = "rolled"

    def __init__(self, inertia: Rolled, slopes: Rolled, parents: Sequence[int], nq: int) -> None:
        self._inertia, self._slopes = inertia, slopes
        self._family, self._nq = tree_solve.Family(parents), nq
        self._tables: dict[int, Array] = {}
        self._local = threading.local()

    def llvm_ir(self, width: int) -> str:
        """LLVM text of the stages between the kernels."""
        return staged_ir(host(), self._family.n)

    def _table(self, width: int) -> tuple[Array, int]:
        """The table of stages, and the doubles of scratch memory it speaks of."""
        n, made = self._family.n, _functions(self._family.n)
        kernels = (n * _CHUNK + 7) // 8 * 8
        room = kernels + (max(k.scratch(width) for k in (self._inertia, self._slopes)) + 7) // 8 * 8
        size = room + tree_solve.scratch_doubles(n, host().width)
        if width not in self._tables:
            addresses = [
                x for k in (self._inertia, self._slopes) for x in (k.address(width), k.table)
            ]
            own = [made.function("factor"), made.function("solve"), self._family.table.ctypes.data]
            self._tables[width] = np.array(
                [n, self._nq, *addresses, *own, kernels, room], dtype=np.int64
            )
        return self._tables[width], size

    def compute(self, width: int) -> Compute | None:
        """The function for one state or for batches, with memory of its own; none where inputs are
        spread first.
        """
        if self._inertia.spreads:
            return None
        table, size = self._table(width)
        memory = np.zeros(size + 8)
        made = _functions(self._family.n)
        keep = (made, self._inertia, self._slopes, self._family, table, memory)
        found = Compute(made.address, (table.ctypes.data, aligned(memory)), keep)
        return found if width == 1 else guarded(found)

    def function(self, width: int) -> tuple[int, int, int] | None:
        """What threads share (see ``Unrolled.function``); None where inputs are spread first."""
        if self._inertia.spreads:
            return None
        table, size = self._table(width)
        return _functions(self._family.n).address, int(table.ctypes.data), size

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int) -> int:
        states = stop - start
        table, size = self._table(backend.width_for(min(states, _CHUNK)))
        held = getattr(self._local, "memory", None)
        if held is None or held.size < size + 8:
            held = self._local.memory = np.zeros(size + 8)
        if self._inertia.spreads:
            return self._in_stages(inputs, outputs, start, stop)
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p] * 4)
        function = kind(_functions(self._family.n).address)
        rows = pointers(inputs, start), pointers(outputs, start)
        return int(function(states, *rows, table.ctypes.data, aligned(held)))

    def _in_stages(
        self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int
    ) -> int:
        """The same, stage by stage from here, for kernels whose inputs are spread first."""
        q, v, tau = (a[start:stop] for a in inputs)
        A, B, M = (a[start:stop] for a in outputs)
        states, n = stop - start, self._family.n
        rhs = np.empty((states, n))
        flags = self._inertia.run([q, v], [M, rhs], 0, states)
        np.subtract(tau, rhs, out=rhs)
        family = self._family.table.ctypes.data
        made = _functions(n)
        kinds = [ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * k) for k in (4, 6)]
        kinds[0](made.function("factor"))(states, M.ctypes.data, rhs.ctypes.data, family)
        flags |= self._slopes.run([q, v, rhs], [A, B], 0, states)
        room = np.zeros(tree_solve.scratch_doubles(n, host().width) + 8)
        addresses = (M.ctypes.data, A.ctypes.data, B.ctypes.data, family, aligned(room))
        kinds[1](made.function("solve"))(states, *addresses)
        return flags
