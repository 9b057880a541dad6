"""A function with memory of its own, for batches: a second thread that meets it at work is sent to
the Python path, which has memory for every thread.
"""

from __future__ import annotations

from ramify.codegen.compile import compiled
from ramify.codegen.entry import Compute
from ramify.codegen.target import host

_BUSY = 1 << 16  # a flag of no other meaning: what is flagged goes to the Python path


def guarded(compute: Compute) -> Compute:
    """The same function, which refuses to run twice at a time."""
    names = [f"%a{i}" for i in range(len(compute.arguments))]
    takes = ", ".join(["i64 %states", "ptr %inputs", "ptr %outputs", *(f"ptr {a}" for a in names)])
    text = "\n".join(
        [
            "@lock = global i64 0",
            "@function = global i64 0",
            f"define i64 @guarded({takes}) {{",
            "  %old = cmpxchg ptr @lock, i64 0, i64 1 acquire monotonic",
            "  %free = extractvalue {i64, i1} %old, 1",
            "  br i1 %free, label %run, label %busy",
            "run:",
            "  %function = load ptr, ptr @function",
            f"  %flags = call i64 %function({takes})",
            "  store atomic i64 0, ptr @lock release, align 8",
            "  ret i64 %flags",
            "busy:",
            f"  ret i64 {_BUSY}",
            "}",
            "",
        ]
    )
    made = compiled(lambda: text, "guarded", host().with_width(1), f"guarded {len(names)}", 1)
    made.fill("function", [compute.address])
    return Compute(made.address, compute.arguments, (compute, made))
