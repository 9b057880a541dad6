"""Threads for batches. The kernels run outside Python's lock, so plain threads do."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Final

from ramify.core.errors import RamifyError

PART_NS: Final = 60_000.0
"""A thread is worth waking for this much work."""

_chosen: int | None = None
_cells: list[tuple[ctypes.c_int64, float]] = []
_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_pool_pid = 0


def whole(value: Any, where: str) -> int:
    """A number of threads."""
    try:
        count = int(value)
    except (TypeError, ValueError, OverflowError):
        count = 0
    if count < 1 or isinstance(value, bool) or (isinstance(value, float) and count != value):
        raise RamifyError(
            f"{where}: {value!r} is not a number of threads; give a whole number of at least 1"
        )
    return count


def threads(count: int | None = None) -> int:
    """Set (or, without an argument, ask for) the number of threads that batches use. RAMIFY_THREADS
    sets the default; else all cores.
    """
    global _chosen
    if count is not None:
        _chosen = whole(count, "rf.threads")
        for cell, cost_ns in _cells:
            cell.value = _alone(cost_ns)
    if _chosen is not None:
        return _chosen
    given = os.environ.get("RAMIFY_THREADS")
    return whole(given, "RAMIFY_THREADS") if given else cores()


def largest_alone(cost_ns: float) -> int:
    """Address of a number that stays up to date: the most states, of a cost in ns each, that one
    thread should do alone.
    """
    cell = ctypes.c_int64(_alone(cost_ns))
    _cells.append((cell, cost_ns))
    return ctypes.addressof(cell)


def _alone(cost_ns: float) -> int:
    return 1 << 62 if threads() == 1 else max(16, int(2.0 * PART_NS / cost_ns))


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_parallel(work: Callable[[int, int], int], states: int, parts: int) -> int:
    """``work(start, stop)`` over parts of a batch at once; the results are or-ed together."""
    bounds = [states * i // parts for i in range(parts + 1)]
    if parts == 1:
        return work(0, states)
    pool = _executor(parts - 1)
    futures = [pool.submit(work, a, b) for a, b in pairwise(bounds[1:])]
    found = work(bounds[0], bounds[1])
    for future in futures:
        found |= future.result()
    return found


def _executor(size: int) -> ThreadPoolExecutor:
    global _pool, _pool_size, _pool_pid
    if _pool is None or _pool_size < size or _pool_pid != os.getpid():
        _pool, _pool_size, _pool_pid = (
            ThreadPoolExecutor(size, thread_name_prefix="ramify"),
            size,
            os.getpid(),
        )
    return _pool
