"""Who does the work: this process, local processes, or a cluster that is running.

An engine takes tasks and gives back their outcomes in any order. A task whose worker dies does not
end the others: its runs are tried once more, each by itself, and the one that kills its worker
again is set aside.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, Final, Protocol, cast

from ramify.core.errors import RamifyError, SimulationError
from ramify.studies.recipe import Recipe
from ramify.studies.work import Outcome, Task, live_with, work

ENGINES: Final = ("serial", "processes", "dask", "ray")
PATIENCE: Final = 10.0
"""Seconds that a scheduler has to answer."""
BEREFT: Final = 30.0
"""Seconds that a cluster may be without workers: a nanny starts a new one meanwhile."""
KILLED: Final = (
    "the run ended its worker, twice (killed, out of memory, or a crash); it is set aside"
)


class Engine(Protocol):
    """``lanes``: workers; ``run``: outcomes of tasks as they come; raises WorkerDiedError where
    some worker did.
    """

    lanes: int

    def run(self, recipe: Recipe, tasks: Iterable[Task]) -> Iterator[list[Outcome]]: ...

    def close(self) -> None: ...


class WorkerDiedError(Exception):
    """Some worker has died; which task it had is not known."""


class Serial:
    """Everything in this process."""

    lanes = 1

    def run(self, recipe: Recipe, tasks: Iterable[Task]) -> Iterator[list[Outcome]]:
        for task in tasks:
            yield work(recipe, task)

    def close(self) -> None:
        """Nothing to do."""


class Pool:
    """Workers that take calls one by one and answer with futures: local processes, or those of a
    Dask cluster.

    ``submit``: made anew for each run of the engine, since a broken pool stays broken; ``deaths``:
    names of the exceptions of a future whose worker died; ``check``: called now and then while
    nothing comes back, raises where nothing can come any more.
    """

    def __init__(
        self, lanes: int, submit: Callable[[], Callable[..., Any]], deaths: tuple[str, ...], close: Callable[[], Any],
        check: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self.lanes, self.close, self._submit, self._deaths, self._check = (
            lanes,
            close,
            submit,
            deaths,
            check,
        )

    def run(self, recipe: Recipe, tasks: Iterable[Task]) -> Iterator[list[Outcome]]:
        submit, out, ready = self._submit(), set[Any](), SimpleQueue[Any]()
        calls = iter(tasks)
        try:
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
                    self._check()
                    continue
                try:
                    outcomes = future.result(timeout=PATIENCE)
                except (
                    TimeoutError
                ):  # the worker that held the result is gone: it is being made again
                    future.add_done_callback(ready.put)
                    continue
                out.remove(future)
                yield outcomes
        except (GeneratorExit, RamifyError):
            raise
        except Exception as error:
            if any(kind.__name__ in self._deaths for kind in type(error).__mro__):
                raise WorkerDiedError(str(error)) from error
            raise SimulationError(
                f"a worker could not do its task: {type(error).__name__}: {error}"
            ) from error
        finally:
            for future in out:
                future.cancel()


class Joblib:
    """Workers of a backend of joblib that gives nothing before all is done: so many tasks at a
    time.
    """

    def __init__(
        self,
        lanes: int,
        config: Callable[[], AbstractContextManager[Any]],
        deaths: tuple[str, ...],
        close: Callable[[], Any],
    ) -> None:
        self.lanes, self.close, self._config, self._deaths = lanes, close, config, deaths

    def run(self, recipe: Recipe, tasks: Iterable[Task]) -> Iterator[list[Outcome]]:
        from joblib import Parallel, delayed

        calls = (delayed(work)(recipe, task) for task in tasks)
        try:
            with self._config():
                while wave := list(islice(calls, 2 * self.lanes)):
                    yield from Parallel(n_jobs=self.lanes)(wave)
        except GeneratorExit:
            raise
        except Exception as error:
            if any(kind.__name__ in self._deaths for kind in type(error).__mro__):
                raise WorkerDiedError(str(error)) from error
            raise


def engine(name: str, jobs: int | None = None, scheduler: str | None = None) -> Engine:
    """An engine by name.

    "processes": local ones, ``jobs`` of them (all cores unless told); "dask": the workers of the
    scheduler at an address such as tcp://127.0.0.1:8786; "ray": those of a Ray cluster, this
    machine's unless an address is given; "serial": this process, which a run that crashes takes
    with it. Raises SimulationError for an unknown name, and where a library is missing or the
    cluster cannot be reached.
    """
    if name not in ENGINES:
        raise SimulationError(f"no engine is called {name!r}; choose one of {', '.join(ENGINES)}")
    if jobs is not None and (not isinstance(jobs, int) or jobs < 1):
        raise SimulationError(f"jobs {jobs!r} must be a whole number, 1 or more")
    if scheduler is not None and name not in ("dask", "ray"):
        raise SimulationError(f"a scheduler belongs to the engines dask and ray, not to {name!r}")
    if name == "serial":
        return Serial()
    if name != "dask":
        _need("joblib", "study")
    return {"processes": _processes, "dask": _dask, "ray": _ray}[name](jobs, scheduler)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _need(module: str, extra: str) -> None:
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise SimulationError(
            f"this needs {module}; install it with: pip install 'ramify[{extra}]'"
        )


def _processes(jobs: int | None, _: str | None) -> Engine:
    lanes, made = jobs or _cores(), list[Any]()

    def submit() -> Callable[..., Any]:
        from joblib.externals.loky import get_reusable_executor

        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        pool = get_reusable_executor(
            lanes, timeout=300, initializer=live_with, initargs=(os.getpid(),), env=one
        )
        made[:] = [pool]
        return cast("Callable[..., Any]", pool.submit)

    def close() -> None:
        for pool in made:
            pool.shutdown(wait=True, kill_workers=True)

    return Pool(lanes, submit, ("BrokenProcessPool",), close)


def _dask(jobs: int | None, scheduler: str | None) -> Engine:
    _need("distributed", "cluster")
    if scheduler is None:
        raise SimulationError(
            "the engine dask needs the address of its scheduler, such as tcp://127.0.0.1:8786"
        )
    from distributed import Client

    try:
        client: Any = Client(scheduler, timeout=PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call,unused-ignore]
        threads = sum(client.nthreads().values())
    except (OSError, TimeoutError, ValueError) as error:
        raise SimulationError(f"no Dask scheduler answers at {scheduler}: {error}") from None
    if not threads:
        client.close()
        raise SimulationError(f"the Dask scheduler at {scheduler} has no workers yet")
    seen = [time.monotonic()]

    def check() -> None:
        """Dask itself waits for new workers, and for a scheduler that comes back, without end."""
        try:
            if client.status == "running" and client.nthreads():
                seen[0] = time.monotonic()
        except (OSError, TimeoutError):
            pass
        if time.monotonic() - seen[0] > BEREFT:
            text = f"the Dask cluster at {scheduler} has had no workers for {BEREFT:g} s, or its scheduler is gone"
            raise SimulationError(
                f"{text}; what was made is in the ledger: start workers (with nannies), then "
                "resume the study"
            )

    def submit() -> Callable[..., Any]:
        seen[0] = time.monotonic()
        return lambda *call: client.submit(*call, pure=False)

    return Pool(jobs or threads, submit, ("KilledWorker",), client.close, check)


def _ray(jobs: int | None, scheduler: str | None) -> Engine:
    _need("ray", "ray")
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


# ---- deaths ----


class _Handed:
    """Tasks on their way: those handed out and not yet back. Engines may ask for the next one from
    threads of their own.
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
    """The outcomes of all tasks, whatever workers die on the way.

    When one dies, the runs that were handed out and have not come back are suspects. They are made
    first, in tasks of one run; when that fails as well, one at a time with nothing beside it, and a
    run that dies then is set aside as killed.
    """
    main = _Handed(tasks)
    while True:
        try:
            yield from main.back(by.run(recipe, main))
            return
        except WorkerDiedError:
            lost = list(main.out.values())
            main.out.clear()
        suspects = _Handed(single for task in lost for single in _singles(task))
        try:
            yield from suspects.back(by.run(recipe, suspects))
        except WorkerDiedError:
            yield from _alone(by, recipe, [*suspects.out.values(), *suspects])


def _singles(task: Task) -> Iterator[Task]:
    for i, number in enumerate(task.numbers):
        yield Task(task.token, (number,), task.values[i : i + 1])


def _alone(by: Engine, recipe: Recipe, tasks: Iterable[Task]) -> Iterator[list[Outcome]]:
    """Runs one at a time: who dies here died of itself."""
    for task in tasks:
        try:
            yield from by.run(recipe, iter([task]))
        except WorkerDiedError:
            yield [Outcome(task.numbers[0], "killed", KILLED, b"", b"", 0.0, "")]
