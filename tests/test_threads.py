"""Threads that share a batch: every state once, errors raised, nobody waited for in vain."""

from __future__ import annotations

import gc
import math
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.runtime import piece_workers
from ramify.runtime.backend import pointers
from ramify.runtime.batch_pool import BatchPool, SharedFunction, can_share_batches, pool
from ramify.runtime.piece_workers import in_parallel
from ramify.runtime.target import host
from ramify.runtime.threads import COST, WORTH_NS, Cost


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

    workers = piece_workers._Workers()
    job = piece_workers._Pieces(hold, piece_workers.SimpleQueue(), piece_workers.SimpleQueue())
    job.pieces.put((0, 1))
    workers.call(job, 1)
    assert begun.wait(30)
    monkeypatch.setattr(piece_workers, "_workers", workers)
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
        assert cost.max_solo_states == int(WORTH_NS / 100.0)
        assert cost.pieces(cost.max_solo_states - 1, 2) == 1
        assert cost.pieces(10 * cost.max_solo_states, 2) == 6
        assert cost.pieces(10 * cost.max_solo_states, 1) == 1
        cost.measured(400.0)  # the first measurement counts, whatever the guess was
        assert cost.ns == 400.0
        cost.measured(50.0)
        assert cost.max_solo_states == int(WORTH_NS / 50.0)
        cost.measured(5000.0)  # a busy moment
        assert cost.ns == pytest.approx(55.0)
        rf.threads(1)
        assert cost.max_solo_states > 1 << 60
    finally:
        rf.threads(before)


def test_a_child_has_workers_of_its_own() -> None:
    code = """
import os, threading
import numpy as np
import ramify as rf
from ramify.runtime.batch_pool import pool
from ramify.runtime.piece_workers import in_parallel

def together():
    both = threading.Barrier(2, timeout=20)
    in_parallel(lambda a, b: both.wait() and 0, 2, 2)

together()
model = rf.load("kuka_kr5")
given = [np.ones((2000, 6))] * 3
kernel = model.kernel("forward_dynamics", "unrolled")
alone = kernel(*given, threads=1)
def shared():
    kernel._cost.ns = 1e6
    calls = pool()._get("calls")
    assert (kernel(*given, threads=2) == alone).all()
    assert pool()._get("calls") == calls + 1
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


def believe(cost: Cost, ns: float) -> None:
    """A state costs so much, and no sharing has been in vain yet."""
    cost._words[COST.index("solo_batches_left")] = cost._words[COST.index("backoff")] = 0
    cost.ns = ns


def counted(workers: BatchPool, run: Callable[[], Any]) -> tuple[Any, int]:
    """What a call gives, and how many batches were shared meanwhile."""
    before = workers._get("calls")
    return run(), workers._get("calls") - before


@pytest.mark.parametrize(
    ("name", "tier"),
    [
        ("inverse_dynamics", "unrolled"),
        ("forward_dynamics", "rolled"),
        ("forward_dynamics_derivatives", "rolled"),
    ],
)
@pytest.mark.parametrize("states", [67, 1003])
def test_a_pool_gives_the_bits_of_one_thread(name: str, tier: str, states: int) -> None:
    """Each thread has its own scratch memory, every state is done, the last piece is longer."""
    model = rf.load("kuka_kr5")
    kernel = model.kernel(name, tier)  # type: ignore[arg-type]
    given = list(np.random.default_rng(0).normal(size=(3, states, model.nv)))
    wanted = kernel(*given, threads=1)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    rows = [np.full((states, x[0].size), np.nan) for x in wanted]
    workers, cost = BatchPool(), Cost(1e6)
    function = kernel._backend.function(host().width)
    assert function is not None
    shared = SharedFunction(function, kernel.inputs, kernel.outputs, cost, host(), workers)
    for count in (4, 2, 4):
        believe(cost, 1e6)
        addresses = pointers(given, 0), pointers(rows, 0)
        run = partial(shared.run, *addresses, states, count)
        assert counted(workers, run) == (0, 1)
        assert workers._get("front") + workers._get("back") == workers._get("pieces")
        for x, y in zip(rows, wanted, strict=True):
            assert np.array_equal(x.reshape(y.shape), y)
            x.fill(np.nan)


def test_a_pool_collects_the_flags_of_all_pieces() -> None:
    model = rf.load("kuka_kr5")
    q, v, a = np.random.default_rng(0).normal(size=(3, 1000, model.nv))
    kernel = model.kernel("inverse_dynamics", "unrolled")
    kernel(q, v, a)
    for state in (0, 500, 999):
        bad = a.copy()
        bad[state, 3] = np.inf
        believe(kernel._cost, 1e6)
        with pytest.raises(rf.StateError, match=rf"a\[3\] of state {state}"):
            kernel(q, v, bad, threads=3)


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = rf.threads()
    rf.threads(2)
    yield
    rf.threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("tier", ["unrolled", "rolled"])
def test_a_large_batch_is_shared_without_python(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the workers are there; a pool that is taken is not waited for."""
    assert can_share_batches()
    model = rf.load("kuka_kr5")
    given = np.random.default_rng(0).normal(size=(3, 2000, model.nv))
    kernel = model.kernel("forward_dynamics", tier)  # type: ignore[arg-type]
    wanted = kernel(*given, threads=1)
    believe(kernel._cost, 1000.0)
    kernel(*given)
    monkeypatch.setattr(kernel, "_general", None)
    monkeypatch.setattr(SharedFunction, "run", None)
    for _ in range(3):
        believe(kernel._cost, 1000.0)
        found, shared = counted(pool(), lambda: kernel(*given))
        assert np.array_equal(found, wanted)
        assert shared == 1
    believe(kernel._cost, 1000.0)
    pool()._set(busy=1)
    try:
        found, shared = counted(pool(), lambda: kernel(*given))
    finally:
        pool()._set(busy=0)
    assert np.array_equal(found, wanted)
    assert shared == 0
    believe(kernel._cost, 10.0)  # little work
    assert counted(pool(), lambda: kernel(*given))[1] == 0


@pytest.mark.usefixtures("two_threads")
def test_sharing_that_gains_nothing_is_tried_less_and_less() -> None:
    model = rf.load("kuka_kr5")
    given = np.zeros((3, 50_000, model.nv))
    kernel = model.kernel("inverse_dynamics", "rolled")
    out = kernel(*given)
    kernel(*given, out=out)
    believe(kernel._cost, 4.0)
    seen = []
    for _ in range(16):
        kernel._cost.ns = WORTH_NS / 50_000 + 1e-9  # no machine is as fast
        seen.append(counted(pool(), lambda: kernel(*given, out=out))[1])
    assert [i for i, n in enumerate(seen) if n] == [0, 2, 6, 14]
    believe(kernel._cost, 1e6)
    for _ in range(4):
        kernel._cost.ns = 1e6  # any sharing is faster than that
        assert counted(pool(), lambda: kernel(*given, out=out))[1] == 1


def test_a_batch_that_other_threads_did_alone_measures_nothing() -> None:
    from ramify.runtime.threads import Cost

    cost = Cost(250.0)
    cost.measured(math.inf)
    assert cost.ns == 250.0
    cost.measured(400.0)
    assert cost.ns == 400.0  # the first measurement replaces the guess
    cost.measured(math.inf)
    assert cost.ns == 400.0
    assert cost.pieces(10**6, 2) > 1
