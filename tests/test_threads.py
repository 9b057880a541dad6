"""Threads that share a batch: every state once, errors raised, nobody waited for in vain."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import ramify as rf
from ramify.codegen import threads
from ramify.codegen.target import host
from ramify.codegen.thread_pool import ThreadPool, available, pool
from ramify.codegen.threads import WORTH_NS, Cost, in_parallel


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize(("states", "pieces"), [(1, 1), (5, 5), (1000, 7), (1003, 12)])
def test_every_state_is_done_once(states: int, pieces: int, count: int) -> None:
    done = np.zeros(states, dtype=int)
    seen = []

    def work(start: int, stop: int) -> int:
        done[start:stop] += 1
        seen.append(threading.current_thread().name)
        return 1 << (start % 8)

    flags, ns = in_parallel(work, states, pieces, count)
    assert (done == 1).all()
    assert len(seen) == pieces
    assert flags == np.bitwise_or.reduce([1 << (states * i // pieces % 8) for i in range(pieces)])
    assert ns > 0.0
    assert len(set(seen)) <= count


def test_pieces_are_shared_with_other_threads() -> None:
    """Two pieces that wait for each other can only be done at the same time."""
    both = threading.Barrier(2, timeout=30)

    def work(start: int, stop: int) -> int:
        both.wait()
        return 0

    in_parallel(work, 2, 2)


def test_the_caller_does_not_wait_for_a_worker_that_has_not_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While the worker is held up by another job, the caller does all pieces itself."""
    held, begun = threading.Event(), threading.Event()

    def hold(start: int, stop: int) -> int:
        begun.set()
        held.wait(30)
        return 0

    workers = threads._Workers()
    job = threads._Pieces(hold, threads.SimpleQueue(), threads.SimpleQueue())
    job.pieces.put((0, 1))
    workers.call(job, 1)
    assert begun.wait(30)
    monkeypatch.setattr(threads, "_workers", workers)
    mine = []

    def work(start: int, stop: int) -> int:
        mine.append((start, stop))
        return 0

    try:
        in_parallel(work, 10, 5, 2)
        assert mine == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]
    finally:
        held.set()


@pytest.mark.parametrize("where", ["caller", "worker"])
def test_an_error_in_any_thread_is_raised(where: str) -> None:
    both = threading.Barrier(2, timeout=30)

    def work(start: int, stop: int) -> int:
        both.wait()
        if (threading.current_thread() is threading.main_thread()) == (where == "caller"):
            raise rf.StateError(f"in the {where}")
        return 0

    with pytest.raises(rf.StateError, match=where):
        in_parallel(work, 2, 2)
    assert in_parallel(lambda a, b: 4, 10, 3, 2)[0] == 4  # and the next job is done


def test_a_job_is_forgotten_when_it_is_done() -> None:
    """Idle workers hold no arrays."""
    array = np.zeros(8)
    gone = weakref.ref(array)
    both = threading.Barrier(2, timeout=30)

    def work(start: int, stop: int, array: np.ndarray = array) -> int:
        both.wait()
        return int(array.any())

    in_parallel(work, 2, 2)
    del array, work
    in_parallel(lambda a, b: 0, 2, 2)
    for _ in range(100):
        gc.collect()
        if gone() is None:
            break
        threading.Event().wait(0.02)
    assert gone() is None


def test_small_batches_are_done_alone_and_large_ones_shared() -> None:
    cost = Cost(100.0)
    before = rf.threads()
    try:
        rf.threads(2)
        alone = threads.ctypes.c_int64.from_address(cost.address)
        assert alone.value == int(WORTH_NS / 100.0)
        assert cost.pieces(alone.value - 1, 2) == 1
        assert cost.pieces(10 * alone.value, 2) == 6
        assert cost.pieces(10 * alone.value, 1) == 1
        cost.measured(50.0)
        assert alone.value == int(WORTH_NS / 50.0)
        cost.measured(5000.0)  # a busy moment
        assert cost.ns == pytest.approx(55.0)
        rf.threads(1)
        assert alone.value > 1 << 60
    finally:
        rf.threads(before)


def test_sharing_that_gains_nothing_is_tried_less_and_less() -> None:
    cost = Cost(100.0)
    pieces = []
    for _ in range(30):
        pieces.append(cost.pieces(100_000, 2))
        if pieces[-1] > 1:
            cost.shared(100_000, 1.1e7)  # as long as one thread takes
    assert [i for i, n in enumerate(pieces) if n > 1] == [0, 2, 6, 14]
    cost = Cost(100.0)
    for _ in range(10):
        assert cost.pieces(100_000, 2) > 1
        cost.shared(100_000, 6e6)


def test_a_child_has_workers_of_its_own() -> None:
    code = """
import os, threading
import numpy as np
import ramify as rf
from ramify.codegen.threads import in_parallel

def together():
    both = threading.Barrier(2, timeout=20)
    in_parallel(lambda a, b: both.wait() and 0, 2, 2)

together()
model = rf.load("kuka_kr5")
given = [np.ones((2000, 6))] * 3
kernel = model.kernel("forward_dynamics", "unrolled")
def shared():
    kernel._cost.ns, kernel._cost._left = 1000.0, 0
    assert (kernel(*given, threads=2) == kernel(*given, threads=1)).all()
shared()
pid = os.fork()
if pid == 0:
    together()
    shared()
    os._exit(0)
print("child", os.waitpid(pid, 0)[1])
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert done.stdout.split() == ["child", "0"]


# ---- the pool without Python ----


@pytest.mark.parametrize(
    ("name", "tier"),
    [
        ("inverse_dynamics", "unrolled"),
        ("forward_dynamics", "rolled"),
        ("forward_dynamics_derivatives", "rolled"),
    ],
)
@pytest.mark.parametrize("chunk", [40, 1000])
def test_a_pool_gives_the_bits_of_one_thread(name: str, tier: str, chunk: int) -> None:
    """Each thread has its own scratch memory, every state is done, the last piece is longer."""
    model = rf.load("kuka_kr5")
    kernel = model.kernel(name, tier)  # type: ignore[arg-type]
    given = list(np.random.default_rng(0).normal(size=(3, 1003, model.nv)))
    wanted = kernel(*given, threads=1)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    rows = [np.full((1003, x[0].size), np.nan) for x in wanted]
    workers, function = ThreadPool(), kernel._backend.function(host().width)  # type: ignore[attr-defined]
    for _ in range(3):
        found = workers.share(given, rows, chunk, 3, *function)
        assert found is not None
        assert found[0] == 0
        assert 0 <= found[1] <= 1003
        for x, y in zip(rows, wanted, strict=True):
            assert np.array_equal(x.reshape(y.shape), y)
            x.fill(np.nan)


def test_a_pool_collects_the_flags_of_all_pieces() -> None:
    model = rf.load("kuka_kr5")
    q, v, a = np.random.default_rng(0).normal(size=(3, 1000, model.nv))
    kernel = model.kernel("inverse_dynamics", "unrolled")
    kernel(q, v, a)
    a[777, 3] = np.inf
    out = np.empty_like(a)
    function = kernel._backend.function(host().width)  # type: ignore[attr-defined]
    assert pool().share([q, v, a], [out], 20, 2, *function)[0] == 1  # type: ignore[index]
    with pytest.raises(rf.StateError, match=r"a\[3\] of state 777"):
        kernel(q, v, a, threads=2)


def test_a_pool_that_is_taken_is_not_waited_for() -> None:
    workers = ThreadPool()
    q = np.zeros((10, 1))
    with workers._lock:
        assert workers.share([q], [q.copy()], 4, 1, 0) is None


def test_a_large_batch_goes_to_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    assert available()
    model = rf.load("kuka_kr5")
    given = np.random.default_rng(0).normal(size=(3, 2000, model.nv))
    kernel = model.kernel("forward_dynamics", "unrolled")
    wanted, shared = kernel(*given, threads=1), ThreadPool.share
    seen = []
    monkeypatch.setattr(ThreadPool, "share", lambda *a: seen.append(a[3:5]) or shared(*a))
    kernel._cost.ns = 1000.0
    assert np.array_equal(kernel(*given, threads=2), wanted)
    assert seen == [(124, 1)] or host().width != 4
