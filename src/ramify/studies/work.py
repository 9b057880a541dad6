"""The work of a worker: runs of a task, from rows of values to kept numbers or errors."""

from __future__ import annotations

import os
import platform
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np

from ramify.api.result import Result
from ramify.core.arrays import Array
from ramify.core.errors import ModelError, RamifyError
from ramify.plant.shared_code import sharing
from ramify.runtime.threads import threads
from ramify.scenario_files.scenario import Scenario
from ramify.studies.batch import Steps, run_batch, steps_of
from ramify.studies.recipe import Recipe

T = TypeVar("T")
LONGEST_ERROR: Final = 2000
TASK_SECONDS: Final = 0.5
TASK_BYTES: Final = 4 << 20
MOST_IN_TASK: Final = 256
"""Limits of a task: its computing time, the size of what it returns, its number of runs."""
ALIKE: Final = 8
"""Runs that fail alike before any is done, after which a study stops."""
_NUMBER: Final = re.compile(r"[-+]?\d[\d_.]*(?:e[-+]?\d+)?", re.IGNORECASE)


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


class Tasks:
    """Waiting runs as tasks: small ones first, then of half a second, small again at the end."""

    def __init__(
        self, rows: Sequence[tuple[int, bytes, bytes]], parameters: int, token: str
    ) -> None:
        self.total, self.lanes, self._token = len(rows), 1, token
        self._numbers = [number for number, _, _ in rows]
        values = np.frombuffer(b"".join(row for _, _, row in rows), dtype=np.float64)
        self._values = values.reshape(len(rows), parameters)
        self._next, self._lock = 0, threading.Lock()
        self._finished, self._seconds, self._bytes = 0, 0.0, 0

    def __iter__(self) -> Iterator[Task]:
        return self

    def __next__(self) -> Task:
        with self._lock:
            first, left = self._next, self.total - self._next
            if not left:
                raise StopIteration
            size = min(self._size(), max(1, left // (2 * self.lanes)))
            self._next += size
        part = slice(first, first + size)
        return Task(self._token, tuple(self._numbers[part]), self._values[part])

    def _size(self) -> int:
        if not self._finished:
            return max(1, ALIKE // self.lanes)
        seconds, size = (
            max(self._seconds / self._finished, 1e-6),
            max(self._bytes / self._finished, 1.0),
        )
        wanted = max(TASK_SECONDS, 0.02 * self.lanes)
        return int(max(1, min(wanted / seconds, TASK_BYTES / size, MOST_IN_TASK)))

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Learn how long runs take and how much they return."""
        with self._lock:
            self._finished += len(outcomes)
            self._seconds += sum(o.seconds for o in outcomes)
            self._bytes += sum(len(o.numbers) + len(o.history) for o in outcomes)


class CommonFailure:
    """Whether the first runs all fail for one reason: the same message but for its numbers."""

    def __init__(self) -> None:
        self._first, self._count, self._common = "", 0, True

    def reason(self, outcomes: Sequence[Outcome]) -> str:
        """The first message, once ``ALIKE`` runs have failed with it and none has ended
        otherwise; else "".
        """
        for o in outcomes:
            self._first = self._first or o.error
            self._common &= o.status == "failed" and _shape(o.error) == _shape(self._first)
        self._count += len(outcomes)
        return self._first if self._common and self._count >= ALIKE else ""


def _shape(message: str) -> str:
    """A message without its numbers: those of two runs differ."""
    return _NUMBER.sub("#", message)


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


def _tried(call: Callable[..., T], *args: Any) -> tuple[T | None, BaseException | None, float]:
    """What a call returns, or its error; and the seconds it took."""
    started, found, error = time.perf_counter(), None, None
    try:
        found = call(*args)
    except (Exception, SystemExit) as caught:
        error = caught
    return found, error, time.perf_counter() - started


def _outcomes(recipe: Recipe, task: Task) -> list[Outcome]:
    attempts = [_tried(recipe.scenario, values) for values in task.values]
    sound = [scenario for scenario, _, _ in attempts if scenario is not None]
    batched, _, _ = _tried(_batched, sound)  # an error is reported below, run by run
    ready = iter(batched or [None] * len(sound))
    outcomes: list[Outcome] = []
    for number, (scenario, error, seconds) in zip(task.numbers, attempts, strict=True):
        record = None
        if scenario is not None:
            result = next(ready)
            record, error, more = _tried(_record, recipe, scenario, result)
            seconds += more + (0.0 if result is None else float(result.stats["wall_time"]))
        message = _message(error) if error is not None else ""
        status = "done" if error is None else "failed"
        numbers, history = record or (b"", b"")
        outcomes.append(
            Outcome(number, status, message, numbers, history, seconds, platform.node())
        )
    return outcomes


def _record(recipe: Recipe, scenario: Scenario, result: Result | None) -> tuple[bytes, bytes]:
    """Numbers and history of a run, which is computed first where there is no result yet."""
    result = result if result is not None else scenario.run()
    if (result.model.nq, result.model.nv) != (recipe.robot.nq, recipe.robot.nv):
        raise ModelError(
            f"this robot has {result.model.nv} degrees of freedom, that of the files "
            f"{recipe.robot.nv}; the runs of a study have the same columns"
        )
    return recipe.keep.numbers(result).tobytes(), recipe.keep.rows(result).tobytes()


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
