"""What engines do with tasks, with workers that are written out here: how many tasks are out at a time,
what is asked of a cluster, which failures count as deaths, and what becomes of suspects.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.studies import engines
from ramify.studies.engines import KILLED, Pool, WorkerDiedError, check_engine, survivors
from ramify.studies.work import Outcome, Task, live_with, work

RECIPE: Any = "the recipe"


def tasks(count: int, size: int = 1) -> list[Task]:
    """Tasks whose values are ten times the numbers of their runs."""
    numbers = np.arange(count * size).reshape(count, size)
    return [Task("token", tuple(map(int, row)), 10.0 * row[:, None]) for row in numbers]


def outcomes(task: Task) -> list[Outcome]:
    return [Outcome(n, "done", "", b"", b"", 0.0, "") for n in task.numbers]


class Workers:
    """Futures that answer when they are told to; the newest first."""

    def __init__(self, answer: Callable[[Task], Any] = outcomes) -> None:
        self.answer, self.waiting, self.most, self.calls = answer, list[Any](), 0, list[Any]()
        self.cancelled = 0

    def submit(self, *call: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.calls.append(call)
        self.waiting.append((future, call[2]))
        self.most = max(self.most, len(self.waiting))
        workers = self

        class Noted(Future):  # type: ignore[type-arg]
            def cancel(self) -> bool:
                workers.cancelled += 1
                return True

        future.__class__ = Noted
        return future

    def check(self) -> None:
        """Called while nothing arrives: answer the newest."""
        future, task = self.waiting.pop()
        try:
            future.set_result(self.answer(task))
        except Exception as error:
            future.set_exception(error)


class BrokenPoolError(Exception):
    """What a pool raises when a worker has died."""


class TerminatedError(BrokenPoolError):
    """A kind of it, as that of loky."""


@pytest.fixture
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queues that do not wait."""

    class Queue(engines.SimpleQueue[Any]):
        def get(self, block: bool = True, timeout: float | None = None) -> Any:
            return super().get(block=False)

    monkeypatch.setattr(engines, "SimpleQueue", Queue)


def pool(workers: Workers, lanes: int = 3) -> Pool:
    return Pool(lanes, lambda: workers.submit, ("BrokenPoolError",), lambda: None, workers.check)


def test_a_pool_keeps_twice_its_lanes_busy(no_patience: None) -> None:
    workers = Workers()
    answers = [o.number for some in pool(workers).run(RECIPE, tasks(20)) for o in some]
    assert sorted(answers) == list(range(20))
    assert answers[0] == 5  # six are out, and the newest of them answers first
    assert workers.most == 6
    assert {call[:2] for call in workers.calls} == {(work, RECIPE)}
    assert [call[2].numbers for call in workers.calls] == [(n,) for n in range(20)]
    assert workers.cancelled == 0


def test_what_is_still_out_is_cancelled(no_patience: None) -> None:
    workers = Workers()
    run = pool(workers, 2).run(RECIPE, tasks(9))
    next(run)
    run.close()  # type: ignore[attr-defined]
    assert workers.cancelled == 3  # four were out, one has answered


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (BrokenPoolError("it ended"), WorkerDiedError, "^it ended$"),
        (TerminatedError("killed"), WorkerDiedError, "^killed$"),
        (rf.ModelError("no mass"), rf.ModelError, "^no mass$"),
        (KeyError("x"), rf.SimulationError, "a worker could not compute its task: KeyError: 'x'"),
    ],
)
def test_which_errors_are_deaths(
    no_patience: None, error: Exception, kind: type[Exception], said: str
) -> None:
    def answer(task: Task) -> Any:
        raise error

    with pytest.raises(kind, match=said) as caught:
        list(pool(Workers(answer)).run(RECIPE, tasks(2)))
    assert type(caught.value) is kind


def test_a_result_that_got_lost_is_awaited_again(no_patience: None) -> None:
    """Dask computes a result again whose worker is gone: the first question for it times out."""

    class Twice(Future):  # type: ignore[type-arg]
        asked = 0

        def result(self, timeout: float | None = None) -> Any:
            assert timeout == engines.PATIENCE
            self.asked += 1
            if self.asked == 1:
                raise TimeoutError
            return super().result(timeout)

    made: list[Twice] = []

    def submit(_work: Any, _recipe: Any, task: Task) -> Twice:
        future = Twice()
        future.set_result(outcomes(task))
        made.append(future)
        return future

    def check() -> None:
        pytest.fail("nobody waits for the result any more")

    by = Pool(2, lambda: submit, (), lambda: None, check)
    assert [o.number for some in by.run(RECIPE, tasks(3)) for o in some] == [0, 1, 2]
    assert [future.asked for future in made] == [2, 2, 2]


# ---- suspects ----


class Recorded:
    """An engine that computes its tasks one after the other, and dies of some runs."""

    lanes = 1

    def __init__(self, deadly: dict[int, int]) -> None:
        self.deadly, self.asked = deadly, list[tuple[tuple[int, ...], Any]]()

    def run(self, recipe: Any, some: Iterable[Task]) -> Iterator[list[Outcome]]:
        assert recipe is RECIPE
        ahead = list[Task]()
        for task in some:
            ahead.append(task)
            if len(ahead) == 2:
                yield self.one(ahead.pop(0))
        for task in ahead:
            yield self.one(task)

    def one(self, task: Task) -> list[Outcome]:
        self.asked.append((task.numbers, task.values.ravel().tolist()))
        assert task.token == "token"
        for n in task.numbers:
            if self.deadly.get(n, 0):
                self.deadly[n] -= 1
                raise WorkerDiedError
        return outcomes(task)

    def close(self) -> None: ...


def test_suspects_are_computed_one_by_one_with_their_values() -> None:
    by = Recorded({4: 3})
    found = [o for some in survivors(by, RECIPE, iter(tasks(4, 3))) for o in some]
    assert sorted(o.number for o in found) == list(range(12))
    (killed,) = [o for o in found if o.status != "done"]
    assert (killed.number, killed.status, killed.error) == (4, "killed", KILLED)
    assert (killed.numbers, killed.history, killed.seconds, killed.host) == (b"", b"", 0.0, "")
    whole = [((0, 1, 2), [0.0, 10.0, 20.0]), ((3, 4, 5), [30.0, 40.0, 50.0])]
    single = [((n,), [10.0 * n]) for n in (3, 4)]  # then 4 dies again, while 5 is out
    alone = [((n,), [10.0 * n]) for n in (4, 5, 6, 7, 8)]
    assert by.asked == [*whole, *single, *alone, ((9, 10, 11), [90.0, 100.0, 110.0])]
    assert all(count == 0 for count in by.deadly.values())


def test_a_worker_that_dies_once_costs_no_run() -> None:
    by = Recorded({1: 1, 10: 2})
    found = [o for some in survivors(by, RECIPE, iter(tasks(4, 3))) for o in some]
    assert sorted(o.number for o in found) == list(range(12))
    assert {o.status for o in found} == {"done"}


# ---- by name ----


@pytest.mark.parametrize(
    ("name", "options", "missing", "said"),
    [
        ("ray", {"scheduler": "auto"}, None, None),
        ("dask", {"scheduler": "tcp://x:1", "jobs": 1}, None, None),
        ("serial", {"jobs": 10_000}, None, None),
        ("serial", {"jobs": 10_001}, None, "jobs"),
        ("serial", {"jobs": 0}, None, "jobs"),
        ("serial", {"jobs": 1.5}, None, "jobs"),
        ("processes", {"scheduler": "x"}, None, "option of the engines dask and ray, not of processes"),
        (["serial"], {}, None, "there is no engine"),
        ("dask", {}, None, "needs the address of its scheduler, such as tcp://127.0.0.1:8786"),
        ("dask", {"scheduler": "x"}, "distributed", r"dask needs distributed; .*'ramify\[cluster\]'"),
        ("ray", {}, "joblib", r"the engine ray needs joblib; .*'ramify\[ray\]'"),
        ("ray", {}, "ray", r"the engine ray needs ray; .*'ramify\[ray\]'"),
        ("processes", {}, "joblib", r"processes needs joblib; .*'ramify\[study\]'"),
    ],
)  # fmt: skip
def test_what_an_engine_takes(
    monkeypatch: pytest.MonkeyPatch, name: Any, options: Any, missing: str | None, said: str | None
) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda module: None if module == missing else module)
    if said is None:
        check_engine(name, **options)
    else:
        with pytest.raises(rf.SimulationError, match=said):
            check_engine(name, **options)


@pytest.mark.parametrize(("jobs", "lanes"), [(None, 5), (3, 3)])
def test_local_processes_compute_in_one_thread_each(
    monkeypatch: pytest.MonkeyPatch, jobs: int | None, lanes: int
) -> None:
    asked: list[Any] = []
    ended: list[Any] = []

    def executor(*given: Any, **more: Any) -> Any:
        asked.append((given, more))
        return SimpleNamespace(submit="submit", shutdown=lambda **how: ended.append(how))

    monkeypatch.setattr("joblib.externals.loky.get_reusable_executor", executor)
    monkeypatch.setattr(engines.os, "sched_getaffinity", lambda _: set(range(5)), raising=False)
    monkeypatch.setattr(engines.os, "getpid", lambda: 77)
    by: Any = engines.engine("processes", jobs)
    assert (by.lanes, by.deaths) == (lanes, ("BrokenProcessPool",))
    assert by.submit() == "submit"
    ((given, more),) = asked
    assert given == (lanes,)
    assert (more["initializer"], more["initargs"]) == (live_with, (77,))
    assert more["env"] == {f"{x}_NUM_THREADS": "1" for x in ("OMP", "OPENBLAS", "MKL")}
    by.submit()  # a broken pool stays broken: each run of the engine gets its own
    assert len(asked) == 2
    by.close()
    assert ended == [{"wait": True, "kill_workers": True}]


class FakeClient:
    """A Dask client with some workers."""

    made: Any = None
    workers: Any = {"a": 2, "b": 3}  # noqa: RUF012
    status = "running"

    def __init__(self, address: str, **options: Any) -> None:
        self.address, self.options, self.closed, self.calls = address, options, 0, list[Any]()
        type(self).made = self

    def nthreads(self) -> Any:
        if isinstance(self.workers, Exception):
            raise self.workers
        return self.workers

    def submit(self, *call: Any, **options: Any) -> Any:
        self.calls.append((call, options))
        return "future"

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def dask(monkeypatch: pytest.MonkeyPatch) -> type[FakeClient]:
    class Client(FakeClient): ...

    module = ModuleType("distributed")
    module.Client = Client  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "distributed", module)
    monkeypatch.setattr(engines, "find_spec", lambda name: name)
    return Client


def test_a_dask_cluster_is_asked_for_every_run(dask: type[FakeClient]) -> None:
    by: Any = engines.engine("dask", None, "tcp://here:1")
    client = dask.made
    assert client.address == "tcp://here:1"
    assert client.options == {"timeout": engines.PATIENCE, "set_as_default": False}
    assert (by.lanes, by.deaths) == (5, ("KilledWorker",))
    assert engines.engine("dask", 2, "tcp://here:1").lanes == 2
    assert by.submit()("work", "recipe", "task") == "future"
    assert client.calls == [(("work", "recipe", "task"), {"pure": False})]
    assert client.closed == 0
    by.close()
    assert client.closed == 1


def test_a_dask_cluster_without_workers(
    dask: type[FakeClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(engines, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    by: Any = engines.engine("dask", None, "tcp://here:1")
    for state, workers in (("running", {}), ("closed", {"a": 1}), ("running", OSError())):
        dask.status, dask.workers = "running", {"a": 1}
        by.check()
        dask.status, dask.workers = state, workers
        clock[0] += engines.BEREFT
        by.check()  # not longer than it may be
        clock[0] += 1.0
        with pytest.raises(rf.SimulationError, match="tcp://here:1 has had no workers for 30 s"):
            by.check()
        by.submit()  # a new run waits anew
        by.check()
    dask.workers = {}
    with pytest.raises(
        rf.SimulationError, match="the Dask scheduler at tcp://x has no workers yet"
    ):
        engines.engine("dask", None, "tcp://x")
    assert dask.made.closed == 1
    dask.workers = OSError("refused")
    with pytest.raises(rf.SimulationError, match="no Dask scheduler answers at tcp://x: refused"):
        engines.engine("dask", None, "tcp://x")


@pytest.mark.parametrize(("jobs", "lanes"), [(None, 7), (2, 2)])
def test_a_ray_cluster_gets_its_tasks_in_waves(
    monkeypatch: pytest.MonkeyPatch, jobs: int | None, lanes: int
) -> None:
    pytest.importorskip("joblib")
    started: list[Any] = []
    ended: list[int] = []
    ray, util, inner = ModuleType("ray"), ModuleType("ray.util"), ModuleType("ray.util.joblib")
    ray.is_initialized = lambda: bool(started)  # type: ignore[attr-defined]
    ray.init = lambda **how: started.append(how)  # type: ignore[attr-defined]
    ray.cluster_resources = lambda: {"CPU": 7.0, "GPU": 1.0}  # type: ignore[attr-defined]
    ray.shutdown = lambda: ended.append(1)  # type: ignore[attr-defined]
    registered: list[int] = []
    inner.register_ray = lambda: registered.append(1)  # type: ignore[attr-defined]
    for name, module in (("ray", ray), ("ray.util", util), ("ray.util.joblib", inner)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(engines, "find_spec", lambda name: name)
    configured: list[Any] = []

    @contextmanager
    def config(**how: Any) -> Iterator[None]:
        configured.append(how)
        yield

    monkeypatch.setattr("joblib.parallel_config", config)
    by: Any = engines.engine("ray", jobs, "ray://head:1")
    assert started == [
        {"address": "ray://head:1", "log_to_driver": False, "configure_logging": False}
    ]
    assert (by.lanes, by.deaths, registered) == (
        lanes,
        ("WorkerCrashedError", "RayActorError"),
        [1],
    )
    engines.engine("ray", jobs)
    assert len(started) == 1  # it is joined once
    waves: list[int] = []

    class Parallel:
        def __init__(self, n_jobs: int) -> None:
            assert n_jobs == lanes

        def __enter__(self) -> Any:
            def compute(calls: list[Any]) -> list[Any]:
                waves.append(len(calls))
                return [f(*args) for f, args, _ in calls]

            return compute

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr("joblib.Parallel", Parallel)
    monkeypatch.setattr(engines, "work", lambda recipe, task: outcomes(task))
    answers = [o.number for some in by.run(RECIPE, tasks(2 * lanes + 3)) for o in some]
    assert answers == list(range(2 * lanes + 3))
    assert waves == [2 * lanes, 3]
    assert configured == [{"backend": "ray", "n_jobs": lanes}]
    by.close()
    assert ended == [1]
