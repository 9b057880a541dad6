"""How long a robot's kernels take on this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

import numpy as np

from ramify.core.scalar import Scalar
from ramify.kernels.algorithms import ALGORITHMS
from ramify.kernels.make import kernel
from ramify.model.robot import Robot
from ramify.runtime.backend import PlainNumpy, Unrolled
from ramify.runtime.kernel import Kernel, KernelPlan
from ramify.runtime.target import llvm_available
from ramify.trace.program import Port, Program, trace

MEASURED: Final = (
    "inverse_dynamics",
    "forward_dynamics",
    "mass_matrix",
    "bias",
    "mass_matrix_inverse",
    "coriolis_matrix",
)
"""Algorithms that are measured by default."""


@dataclass(frozen=True)
class Timing:
    """Seconds: ``prepare`` until the code is there, ``single`` for a call of one state, ``batch``
    for each state of a batch.
    """

    algorithm: str
    tier: str
    prepare: float
    single: float
    batch: float


def measure(
    model: Robot, algorithms: Sequence[str] = MEASURED, states: int = 4096, seconds: float = 0.1
) -> list[Timing]:
    """A Timing per algorithm: the least of as many repeats as fit into ``seconds`` each; batches
    use ``rf.threads()`` threads.
    """
    rng = np.random.default_rng(0)
    q = np.stack([model.random(seed)[0] for seed in range(16)])[rng.integers(0, 16, states)]
    given = {"q": q} | {name: rng.normal(size=(states, model.nv)) for name in ("v", "a", "tau")}
    found = []
    for name in algorithms:
        start = perf_counter()
        made = kernel(model, name, "unrolled" if model.nv <= 40 else None)
        columns = [given[port.name] for port in ALGORITHMS[name].inputs]
        one = [np.ascontiguousarray(column[0]) for column in columns]
        made(*one)
        prepared = perf_counter() - start
        single, batch = _least(made, one, seconds), _least(made, columns, seconds)
        found.append(Timing(name, made.tier, prepared, single, batch / states))
    return found


def _least(call: Callable[..., Any], arguments: Sequence[Any], seconds: float) -> float:
    """The shortest time of a call, the clock being read once for about a millisecond of calls."""
    start = perf_counter()
    call(*arguments)
    calls = max(1, int(1e-3 / (perf_counter() - start)))
    least, end = np.inf, perf_counter() + seconds
    while perf_counter() < end:
        start = perf_counter()
        for _ in range(calls):
            call(*arguments)
        least = min(least, (perf_counter() - start) / calls)
    return float(least)


def arithmetic_rate(seconds: float = 0.1) -> float:
    """Additions and multiplications a second that this machine does in a batch, on as many threads
    as batches use, where nothing else is to be done: a limit for every kernel.
    """
    chains, length, states = 24, 40, 4096
    inputs = (Port("x", (chains,)), Port("c", (2,)))

    def text(x: list[Scalar], c: list[Scalar]) -> list[list[Scalar]]:
        for _ in range(length):
            x = [c[0] * each + c[1] for each in x]
        return [x]

    outputs = (Port("y", (chains,)),)
    plain = PlainNumpy(text)

    def program() -> Program:
        return trace("arithmetic", text, inputs, outputs)

    first = Unrolled(program, lambda: "arithmetic", "arithmetic") if llvm_available() else plain
    name = "arithmetic"
    made = Kernel(
        KernelPlan(
            name, name, inputs, outputs, program, plain, first, None, lambda port, i: name, 500.0
        )
    )
    x, c = np.ones((states, chains)), np.tile([0.5, 0.5], (states, 1))
    made(x, c)
    return 2.0 * chains * length * states / _least(made, (x, c), seconds)
