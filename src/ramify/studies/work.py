"""The work of a worker: the runs of a task, each from its row of values to its kept numbers or its
error.
"""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np

from ramify.api.result import Result
from ramify.codegen.threads import threads
from ramify.core.arrays import Array
from ramify.core.errors import ModelError, RamifyError
from ramify.scenario_files.scenario import Scenario
from ramify.sim.shared_code import sharing
from ramify.studies.batch import Steps, run_batch, steps_of
from ramify.studies.recipe import Recipe

LONGEST_ERROR: Final = 2000


@dataclass(frozen=True)
class Task:
    """Some runs: their numbers in the plan and their values, (runs, parameters). ``token`` names
    the recipe; it is a new one each time a study is run, since custom metrics may have changed.
    """

    token: str
    numbers: tuple[int, ...]
    values: Array


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run: ``status`` "done" or "failed"; its kept numbers and history as bytes of
    float64; the seconds it took.
    """

    number: int
    status: str
    error: str
    numbers: bytes
    history: bytes
    seconds: float
    host: str


_recipes: dict[str, Recipe] = {}
_one_recipe: Final = threading.Lock()


def work(recipe: Recipe, task: Task) -> list[Outcome]:
    """All runs of a task. The outcome of a run that fails is its error; the other runs go on."""
    with _one_recipe:
        if task.token not in _recipes:
            _recipes.clear()
            _recipes[task.token] = recipe
        known = _recipes[task.token]
    with _one_thread(), sharing(), np.errstate(all="ignore"):
        return _outcomes(known, task)


@contextmanager
def _one_thread() -> Iterator[None]:
    """One worker per core: a worker itself computes in one thread."""
    before = threads()
    threads(1)
    try:
        yield
    finally:
        threads(before)


def live_with(parent: int) -> None:
    """In a worker process: end when the process that started it has ended, for whatever reason."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def run_row(recipe: Recipe, values: Sequence[float]) -> Result:
    """The result of a row, bit for bit as in the study. Raises what the run raises."""
    with _one_thread(), sharing():
        scenario = recipe.scenario(values)
        return _batched([scenario])[0] or scenario.run()


def _outcomes(recipe: Recipe, task: Task) -> list[Outcome]:
    scenarios: list[Scenario | Exception] = []
    spent: list[float] = []
    for values in task.values:
        started = time.perf_counter()
        try:
            scenarios.append(recipe.scenario(values))
        except Exception as error:
            scenarios.append(error)
        spent.append(time.perf_counter() - started)
    sound = [s for s in scenarios if not isinstance(s, Exception)]
    try:
        batched = iter(_batched(sound))
    except Exception:  # reported below, run by run
        batched = iter([None] * len(sound))
    found: list[Outcome] = []
    for number, scenario, seconds in zip(task.numbers, scenarios, spent, strict=True):
        started = time.perf_counter()
        ready = None if isinstance(scenario, Exception) else next(batched)
        try:
            if isinstance(scenario, Exception):
                raise scenario
            result = ready if ready is not None else scenario.run()
            if (result.model.nq, result.model.nv) != (recipe.robot.nq, recipe.robot.nv):
                raise ModelError(
                    f"this robot has {result.model.nv} degrees of freedom, that of the files "
                    f"{recipe.robot.nv}; the runs of a study have the same columns"
                )
            kept = recipe.keep.numbers(result).tobytes(), recipe.keep.rows(result).tobytes()
            status = ("done", "")
        except (Exception, SystemExit) as error:
            kept, status = (b"", b""), ("failed", _message(error))
        seconds += (
            time.perf_counter()
            - started
            + (float(ready.stats["wall_time"]) if ready is not None else 0.0)
        )
        found.append(Outcome(number, *status, *kept, seconds, platform.node()))
    return found


def _message(error: BaseException) -> str:
    text = str(error) if isinstance(error, RamifyError) else f"{type(error).__name__}: {error}"
    return text[:LONGEST_ERROR]


def _batched(scenarios: Sequence[Scenario]) -> list[Result | None]:
    """Results of the runs with fixed steps; None for the others."""
    out: list[Result | None] = [None] * len(scenarios)
    groups: dict[Steps, list[int]] = {}
    for i, scenario in enumerate(scenarios):
        steps = steps_of(scenario)
        if steps is not None:
            groups.setdefault(steps, []).append(i)
    for steps, group in groups.items():
        for i, result in zip(group, run_batch([scenarios[i] for i in group], steps), strict=True):
            out[i] = result
    return out
