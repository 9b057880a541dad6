"""How long a robot's kernels take on this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

import numpy as np

from ramify.kernels.algorithms import ALGORITHMS
from ramify.kernels.make import kernel
from ramify.model.robot import Robot

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
