"""Workers for work that Python hands out: the steps of a batch in time, derivatives of them, and
kernels where the compiled workers of ``batch_pool`` cannot be had.

A batch is cut into pieces that the caller and the workers take one by one. The caller never waits
for a worker that has not begun: on a busy machine it does the work itself. Handing over takes some
15 us, which a kernel of a few hundred states would notice; those have ``batch_pool``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import perf_counter_ns
from typing import NamedTuple


class _Pieces(NamedTuple):
    """``work(start, stop)`` over the pieces of a batch that are left; what it gives goes to
    ``done``, an exception too.
    """

    work: Callable[[int, int], int]
    pieces: SimpleQueue[tuple[int, int]]
    done: SimpleQueue[int | BaseException]

    def left(self) -> Iterator[tuple[int, int]]:
        """Pieces, until none is left; whoever asks first gets the next."""
        with suppress(Empty):
            while True:
                yield self.pieces.get_nowait()


class _Workers:
    """Threads that wait for jobs, each at a queue of its own."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._queues: list[SimpleQueue[_Pieces]] = []

    def call(self, job: _Pieces, count: int) -> None:
        while len(self._queues) < count:
            queue: SimpleQueue[_Pieces] = SimpleQueue()
            name = f"ramify-{len(self._queues) + 1}"
            threading.Thread(target=_serve, args=(queue,), name=name, daemon=True).start()
            self._queues.append(queue)
        for queue in self._queues[:count]:
            queue.put(job)


_workers = _Workers()


def _serve(queue: SimpleQueue[_Pieces]) -> None:
    while True:
        job = queue.get()
        for start, stop in job.left():
            try:
                job.done.put(job.work(start, stop))
            except BaseException as error:  # the caller raises it
                job.done.put(error)
        del job  # and its arrays, while nothing is to do


def in_parallel(
    work: Callable[[int, int], int], states: int, pieces: int, count: int | None = None
) -> tuple[int, float]:
    """``work(start, stop)`` over the pieces of a batch by ``count`` threads, by default one a
    piece. Gives its results or-ed together, and the least time that a state took the caller, ns:
    infinity where the others were faster with every piece.
    """
    global _workers
    if pieces == 1:
        begin = perf_counter_ns()
        flags = work(0, states)
        return flags, (perf_counter_ns() - begin) / states
    job = _Pieces(work, SimpleQueue(), SimpleQueue())
    for i in range(pieces):
        job.pieces.put((states * i // pieces, states * (i + 1) // pieces))
    others = min(pieces if count is None else count, pieces) - 1
    if others:
        if _workers.process != os.getpid():  # threads do not survive a fork
            _workers = _Workers()
        _workers.call(job, others)
    flags, done_by_caller, least = 0, 0, float("inf")
    for start, stop in job.left():
        begin = perf_counter_ns()
        flags |= work(start, stop)
        least = min(least, (perf_counter_ns() - begin) / (stop - start))
        done_by_caller += 1
    for _ in range(pieces - done_by_caller):
        outcome = job.done.get()
        if isinstance(outcome, BaseException):
            raise outcome
        flags |= outcome
    return flags, least
