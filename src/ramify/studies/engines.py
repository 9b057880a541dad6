"""Engines compute the runs: this process, local processes, or a cluster.

An engine takes tasks and returns their outcomes in any order. If a worker dies, the other tasks
continue: its runs are tried once more, one by one, and a run that kills its worker again is
recorded as killed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, Final, Protocol, cast

from ramify.core.arrays import whole
from ramify.core.errors import RamifyError, SimulationError
from ramify.core.messages import shown
from ramify.studies.recipe import Recipe
from ramify.studies.work import Outcome, Task, live_with, work

PATIENCE: Final = 10.0
"""Seconds to wait for an answer of a scheduler."""
BEREFT: Final = 30.0
"""Seconds that a cluster may have no workers, while a nanny starts a new one."""
KILLED: Final = "the worker died twice during this run (killed, out of memory, or a crash)"


class Engine(Protocol):
    """``lanes``: workers; ``run``: yields outcomes, raises WorkerDiedError if a worker dies."""

    lanes: int

    def run(self, recipe: Recipe, tasks: Iterable[Task]) -> Iterator[list[Outcome]]: ...

    def close(self) -> None: ...


class WorkerDiedError(Exception):
    """A worker has died; its task is not known."""


@contextmanager
def _deaths(names: tuple[str, ...]) -> Iterator[None]:
    """WorkerDiedError for exceptions of these names, SimulationError for others."""
    try:
        yield
    except RamifyError:
        raise
    except Exception as error:
        if any(kind.__name__ in names for kind in type(error).__mro__):
            raise WorkerDiedError(str(error)) from error
        raise SimulationError(
            f"a worker could not compute its task: {type(error).__name__}: {error}"
        ) from error


class Serial:
    """Everything in this process."""

    lanes = 1

    def run(self, recipe: Recipe, tasks: Iterable[Task]) -> Iterator[list[Outcome]]:
        for task in tasks:
            yield work(recipe, task)

    def close(self) -> None:
        """Nothing to do."""


@dataclass
class Pool:
    """Workers that answer calls with futures: local processes, or those of a Dask cluster.

    ``submit``: made anew for each run of the engine, since a broken pool stays broken; ``deaths``:
    names of the exceptions of a future whose worker died; ``check``: called from time to time while
    no result arrives, raises if none can arrive any more.
    """

    lanes: int
    submit: Callable[[], Callable[..., Any]]
    deaths: tuple[str, ...]
    close: Callable[[], Any]
    check: Callable[[], None] = lambda: None

    def run(self, recipe: Recipe, tasks: Iterable[Task]) -> Iterator[list[Outcome]]:
        submit, out, ready = self.submit(), set[Any](), SimpleQueue[Any]()
        calls = iter(tasks)
        try:
            with _deaths(self.deaths):
                while True:
                    for task in islice(calls, 2 * self.lanes - len(out)):
                        future = submit(work, recipe, task)
                        out.add(future)
                        future.add_done_callback(ready.put)
                    if not out:
                        return
                    try:
                        future = ready.get(timeout=1.0)
                    except Empty:
                        self.check()
                        continue
                    try:
                        outcomes = future.result(timeout=PATIENCE)
                    except TimeoutError:  # its worker is gone, Dask computes the result again
                        future.add_done_callback(ready.put)
                        continue
                    out.remove(future)
                    yield outcomes
        finally:
            for future in out:
                future.cancel()


@dataclass
class Joblib:
    """Workers of a joblib backend that returns all results at once: tasks go out in waves."""

    lanes: int
    config: Callable[[], AbstractContextManager[Any]]
    deaths: tuple[str, ...]
    close: Callable[[], Any]

    def run(self, recipe: Recipe, tasks: Iterable[Task]) -> Iterator[list[Outcome]]:
        from joblib import Parallel, delayed

        calls = (delayed(work)(recipe, task) for task in tasks)
        with _deaths(self.deaths), self.config(), Parallel(n_jobs=self.lanes) as workers:
            while wave := list(islice(calls, 2 * self.lanes)):
                yield from workers(wave)


MOST_JOBS: Final = 10_000
"""Processes or workers."""


def check_engine(name: str, jobs: int | None = None, scheduler: str | None = None) -> None:
    """Raise SimulationError for an unknown engine, a missing library, or unsuitable options."""
    if not isinstance(name, str) or name not in ENGINES:
        raise SimulationError(
            f"there is no engine {shown(name)}; choose one of {', '.join(ENGINES)}"
        )
    if jobs is not None:
        whole("jobs", jobs, 1, SimulationError, MOST_JOBS)
    if scheduler is not None and name not in ("dask", "ray"):
        raise SimulationError(f"scheduler is an option of the engines dask and ray, not of {name}")
    if name == "dask" and scheduler is None:
        raise SimulationError(
            "the engine dask needs the address of its scheduler, such as tcp://127.0.0.1:8786"
        )
    for module, extra in ENGINES[name][1].items():
        if find_spec(module) is None:
            raise SimulationError(
                f"the engine {name} needs {module}; install it with: pip install 'ramify[{extra}]'"
            )


def engine(name: str, jobs: int | None = None, scheduler: str | None = None) -> Engine:
    """An engine by name.

    "processes": ``jobs`` local processes, by default one per core; "dask": the workers of the
    scheduler at an address such as tcp://127.0.0.1:8786; "ray": those of a Ray cluster, by default
    on this machine; "serial": this process, which a crash ends. Raises SimulationError as
    ``check_engine`` does, and if the cluster cannot be reached.
    """
    check_engine(name, jobs, scheduler)
    return ENGINES[name][0](jobs, scheduler)


def _processes(jobs: int | None, _: str | None) -> Engine:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    lanes, pools = jobs or cores or 1, list[Any]()

    def submit() -> Callable[..., Any]:
        from joblib.externals.loky import get_reusable_executor

        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        pool = get_reusable_executor(
            lanes, timeout=300, initializer=live_with, initargs=(os.getpid(),), env=one
        )
        pools[:] = [pool]
        return cast("Callable[..., Any]", pool.submit)

    def close() -> None:
        for pool in pools:
            pool.shutdown(wait=True, kill_workers=True)

    return Pool(lanes, submit, ("BrokenProcessPool",), close)


def _dask(jobs: int | None, scheduler: str | None) -> Engine:
    from distributed import Client

    try:
        client: Any = Client(scheduler, timeout=PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call,unused-ignore]
        threads = sum(client.nthreads().values())
    except (OSError, TimeoutError, ValueError) as error:
        raise SimulationError(f"no Dask scheduler answers at {scheduler}: {error}") from None
    if not threads:
        client.close()
        raise SimulationError(f"the Dask scheduler at {scheduler} has no workers yet")
    last_sign = [time.monotonic()]

    def check() -> None:
        """Dask itself would wait forever for new workers or for a lost scheduler."""
        try:
            if client.status == "running" and client.nthreads():
                last_sign[0] = time.monotonic()
        except (OSError, TimeoutError):
            pass
        if time.monotonic() - last_sign[0] > BEREFT:
            raise SimulationError(
                f"the Dask cluster at {scheduler} has had no workers for {BEREFT:g} s, or its "
                "scheduler is gone; finished runs are in the ledger: start workers (with nannies), "
                "then resume the study"
            )

    def submit() -> Callable[..., Any]:
        last_sign[0] = time.monotonic()
        return lambda *call: client.submit(*call, pure=False)

    return Pool(jobs or threads, submit, ("KilledWorker",), client.close, check)


def _ray(jobs: int | None, scheduler: str | None) -> Engine:
    import ray
    from joblib import parallel_config
    from ray.util.joblib import register_ray

    if not ray.is_initialized():
        ray.init(address=scheduler, log_to_driver=False, configure_logging=False)
    register_ray()  # type: ignore[no-untyped-call,unused-ignore]
    resources = ray.cluster_resources()  # type: ignore[no-untyped-call,unused-ignore]
    lanes = jobs or int(resources.get("CPU", 1))
    deaths = ("WorkerCrashedError", "RayActorError")
    return Joblib(lanes, lambda: parallel_config(backend="ray", n_jobs=lanes), deaths, ray.shutdown)


ENGINES: Final[
    Mapping[str, tuple[Callable[[int | None, str | None], Engine], Mapping[str, str]]]
] = {
    "serial": (lambda jobs, scheduler: Serial(), {}),
    "processes": (_processes, {"joblib": "study"}),
    "dask": (_dask, {"distributed": "cluster"}),
    "ray": (_ray, {"joblib": "ray", "ray": "ray"}),
}
"""What makes each engine; the libraries it needs, with the extra that installs them."""


# ---- deaths ----


class _Handed:
    """Tasks, and those of them that were handed out and have not come back. Engines may ask for the
    next one from other threads.
    """

    def __init__(self, tasks: Iterator[Task]) -> None:
        self._tasks, self._lock = tasks, threading.Lock()
        self.out: dict[tuple[int, ...], Task] = {}

    def __iter__(self) -> Iterator[Task]:
        return self

    def __next__(self) -> Task:
        with self._lock:
            task = next(self._tasks)
            self.out[task.numbers] = task
            return task

    def back(self, source: Iterator[list[Outcome]]) -> Iterator[list[Outcome]]:
        for outcomes in source:
            del self.out[tuple(o.number for o in outcomes)]
            yield outcomes


def survivors(by: Engine, recipe: Recipe, tasks: Iterator[Task]) -> Iterator[list[Outcome]]:
    """The outcomes of all tasks, even if workers die.

    When a worker dies, the runs that were handed out and have not come back are suspects. They are
    computed first, in tasks of one run; if a worker dies again, one at a time with nothing beside
    it, and a run whose worker dies then is recorded as killed.
    """
    main = _Handed(tasks)
    while True:
        try:
            yield from main.back(by.run(recipe, main))
            return
        except WorkerDiedError:
            lost = list(main.out.values())
            main.out.clear()
        suspects = _Handed(
            Task(task.token, (number,), task.values[i : i + 1])
            for task in lost
            for i, number in enumerate(task.numbers)
        )
        try:
            yield from suspects.back(by.run(recipe, suspects))
        except WorkerDiedError:
            for task in [*suspects.out.values(), *suspects]:
                try:
                    yield from by.run(recipe, iter([task]))
                except WorkerDiedError:  # of this run
                    yield [Outcome(task.numbers[0], "killed", KILLED, b"", b"", 0.0, "")]
