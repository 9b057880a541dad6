"""A function with memory of its own, for batches: a second thread that meets it at work is sent to
the Python path, which has memory for every thread.
"""

from __future__ import annotations

import numpy as np

from ramify.codegen.compile import compile_text
from ramify.codegen.entry import Compute
from ramify.codegen.target import host

_BUSY = 1 << 16  # a flag of no other meaning: what is flagged goes to the Python path


def guarded(compute: Compute) -> Compute:
    """The same function, which refuses to run twice at a time."""
    lock = np.zeros(1, dtype=np.int64)
    at = f"ptr inttoptr (i64 {lock.ctypes.data} to ptr)"
    names = [f"%a{i}" for i in range(len(compute.arguments))]
    takes = ", ".join(["i64 %states", "ptr %inputs", "ptr %outputs", *(f"ptr {a}" for a in names)])
    text = "\n".join(
        [
            f"define i64 @guarded({takes}) {{",
            f"  %old = cmpxchg {at}, i64 0, i64 1 acquire monotonic",
            "  %free = extractvalue {i64, i1} %old, 1",
            "  br i1 %free, label %run, label %busy",
            "run:",
            f"  %flags = call i64 inttoptr (i64 {compute.address} to ptr)({takes})",
            f"  store atomic i64 0, {at} release, align 8",
            "  ret i64 %flags",
            "busy:",
            f"  ret i64 {_BUSY}",
            "}",
            "",
        ]
    )
    made = compile_text(text, "guarded", host().with_width(1))
    return Compute(made.address, compute.arguments, (compute, made, lock))
