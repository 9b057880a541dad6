"""What this machine allows: fused multiply adds a second of one core, and the time to write.

A kernel can be no faster than its operations, all lanes at work in all units, or than the memory
takes its results, whichever is longer.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Sequence
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from ramify.emit.writer import Writer
from ramify.runtime.compile import compile_text
from ramify.runtime.target import host
from ramify.trace.program import Program

_CHAINS = 12  # independent sums: more than latency times units, fewer than registers
_STEPS = 20_000


@cache
def multiply_adds() -> float:
    """Fused multiply-adds a nanosecond, over all lanes: the most of many short windows."""
    w = Writer(host())
    w.do("br label %again")
    w.label("again")
    w.do("%i = phi i64 [0, %entry], [%next, %again]")
    sums = [f"%sum{i}" for i in range(_CHAINS)]
    for name in sums:
        w.do(f"{name} = phi {w.vector} [{w.const(0.0)}, %entry], [{name}.new, %again]")
    for name in sums:
        value = w.multiply_add(name, w.const(0.5), w.const(1.0))
        w.do(f"{name}.new = select i1 true, {w.vector} {value}, {w.vector} {value}")
    w.do("%next = add i64 %i, 1")
    w.do(f"br i1 {w.put(f'icmp slt i64 %next, {_STEPS}')}, label %again, label %exit")
    w.label("exit")
    total = f"{sums[0]}.new"
    for name in sums[1:]:
        total = w.binary("fadd", total, f"{name}.new")
    w.do(f"store {w.vector} {total}, ptr %out, align 8")
    w.do("ret i64 0")
    lines = [*sorted(w.intrinsics), "define i64 @peak(ptr %out) {", "entry:", *w.lines, "}", ""]
    made = compile_text("\n".join(lines), "peak", host())
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(made.address)
    out = np.zeros(w.width)
    best = min(_seconds(lambda: run(out.ctypes.data)) for _ in range(3000))
    return _STEPS * _CHAINS * w.width / best * 1e-9


def _seconds(run: Any) -> float:
    start = perf_counter()
    run()
    return perf_counter() - start


def operations(program: Program) -> int:
    """Instructions of a straight-line program on the machine's arithmetic units: a product that one
    sum alone takes is part of it.
    """
    graph, order = program.graph, program.order
    uses = Counter(arg for node in order for arg in graph.args[node])
    uses.update(node for port in program.results for node in port)
    ops = Counter(graph.ops[node] for node in order)
    fused = sum(
        graph.ops[node] in ("add", "sub")
        and any(graph.ops[arg] == "mul" and uses[arg] == 1 for arg in graph.args[node])
        for node in order
    )
    angles = {graph.args[node] for node in order if graph.ops[node] in ("sin", "cos")}
    plain = sum(ops[op] for op in ("add", "sub", "mul"))
    return plain - fused + 22 * len(angles) + 5 * (ops["recip"] + ops["sqrt"])


def writing(outputs: Sequence[np.ndarray]) -> float:
    """Seconds to fill arrays with a number: the least of many windows."""

    def fill() -> None:
        for out in outputs:
            out.fill(0.0)

    fill()
    return min(_seconds(fill) for _ in range(400))
