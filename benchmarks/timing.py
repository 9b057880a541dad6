"""Timing of statements: the minimum of many short samples, taken in turn so that a noisy moment
hits every program alike.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SAMPLE = 3e-3  # seconds; a sample repeats its statement to last this long
_FEWEST = 5


@dataclass(frozen=True)
class Call:
    """A Python statement as a user would write it, the names in it, where its answer is found
    afterwards, and what is done before each sample.
    """

    text: str
    names: Mapping[str, Any]
    answer: Callable[[], Array]
    before: str = "pass"

    def run(self) -> Array:
        """Run the statement once; a copy of its answer."""
        exec(self.text, dict(self.names))
        return np.array(self.answer())


def fastest(calls: Mapping[str, Call], seconds: float) -> dict[str, float]:
    """Seconds per run of each statement; all together are given about ``seconds``.

    Samples of all statements last equally long: on a busy machine a short sample finds a quiet
    moment more often than a long one.
    """
    timers = {
        name: timeit.Timer(call.text, call.before, globals=dict(call.names))
        for name, call in calls.items()
    }
    rough = {name: _rough(timer) for name, timer in timers.items()}
    sample = max(_SAMPLE, *rough.values())
    numbers = {name: max(1, round(sample / rough[name])) for name in timers}
    best = dict.fromkeys(timers, float("inf"))
    start, rounds = perf_counter(), 0
    while rounds < _FEWEST or perf_counter() - start < seconds:
        for name, timer in timers.items():
            best[name] = min(best[name], timer.timeit(numbers[name]) / numbers[name])
        rounds += 1
    return best


def _rough(timer: timeit.Timer) -> float:
    """Seconds per run, roughly."""
    timer.timeit(1)
    number = 1
    while (took := timer.timeit(number)) < _SAMPLE / 4:
        number *= 4
    return took / number


def relative_error(found: Array, expected: Array) -> float:
    """Largest difference of a state in units of that state's largest number, over all states."""
    found, expected = np.atleast_2d(found), np.atleast_2d(expected)
    return float((np.abs(found - expected).max(axis=1) / np.abs(expected).max(axis=1)).max())


def fma_lanes() -> float:
    """Fused multiply-adds per ns and core, lanes counted: independent ones in a compiled loop."""
    return 1.0 / lane_time("fma")


def lane_time(op: str) -> float:
    """ns of one of many independent operations, lanes counted: fma, sqrt or fdiv."""
    import ctypes

    from ramify.runtime.compile import compiled
    from ramify.runtime.target import host

    width, chains, turns = host().width, 12, 20_000 if op == "fma" else 2_000
    kind = f"<{width} x double>" if width > 1 else "double"
    half = f"<{', '.join(['double 0.5'] * width)}>" if width > 1 else "0.5"
    name = f"@llvm.{op}.{f'v{width}f64' if width > 1 else 'f64'}"
    more = [f"{kind} {half}"] * (2 if op == "fma" else 0)
    if op == "fdiv":
        lines = []
        does = [f"fdiv {kind} {half}, %x{k}" for k in range(chains)]
    else:
        lines = [f"declare {kind} {name}({', '.join([kind] * (1 + len(more)))})"]
        does = [f"call {kind} {name}({', '.join([f'{kind} %x{k}', *more])})" for k in range(chains)]
    lines += ["define i64 @spin(ptr %out) {", "entry:", "  br label %loop", "loop:"]
    lines += ["  %i = phi i64 [0, %entry], [%j, %loop]"]
    lines += [f"  %x{k} = phi {kind} [{half}, %entry], [%y{k}, %loop]" for k in range(chains)]
    lines += [f"  %y{k} = {text}" for k, text in enumerate(does)]
    lines += ["  %j = add i64 %i, 1", f"  %more = icmp slt i64 %j, {turns}"]
    lines += ["  br i1 %more, label %loop, label %exit", "exit:"]
    lines += [
        f"  %p{k} = getelementptr {kind}, ptr %out, i64 {k}\n"
        f"  store {kind} %y{k}, ptr %p{k}, align 8"
        for k in range(chains)
    ]
    text = "\n".join([*lines, "  ret i64 0", "}", ""])
    made = compiled(lambda: text, "spin", host(), f"{op} of a benchmark")
    spin = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(made.address)
    room, best = np.zeros(chains * width), float("inf")
    for _ in range(200):
        start = perf_counter()
        spin(room.ctypes.data)
        best = min(best, perf_counter() - start)
    return best * 1e9 / (chains * width * turns)
