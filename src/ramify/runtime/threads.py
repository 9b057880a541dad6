"""How many threads batches use, and which batches are worth sharing.

Kernels run outside Python's lock, so that plain threads share the work: compiled batches in
``batch_pool``, work that Python hands out in ``piece_workers``.
"""

from __future__ import annotations

import ctypes
import math
import os
from typing import Final
from weakref import WeakSet

import numpy as np

from ramify.core.errors import RamifyError

WORTH_NS: Final = 200_000.0
"""Work that is worth waking another thread for: less is done by the caller alone."""
_PIECE_NS: Final = 100_000.0
"""Work of a piece, at least: handing one over takes some microseconds."""
FEWEST: Final = 16
"""States of a piece, at least."""
COST: Final = ("max_solo_states", "threads", "ns", "solo_batches_left", "backoff")
"""What compiled code knows of a cost, 8 bytes each: the largest batch for one thread, the number of
threads, the time of a state (a double); batches still to do alone after sharing in vain, and how
many they were last time (-1 before the first measurement).
"""

MOST_THREADS: Final = 1024

_chosen: int | None = None


def checked_thread_count(value: object, where: str) -> int:
    """A number of threads."""
    try:
        count = 0 if isinstance(value, np.ndarray) else int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        count = 0
    if count < 1 or isinstance(value, bool) or (isinstance(value, float) and count != value):
        raise RamifyError(
            f"{where}: {value!r} is not a number of threads; give a whole number of at least 1"
        )
    if count > MOST_THREADS:
        raise RamifyError(
            f"{where}: {value!r} is more than {MOST_THREADS} threads; more than the machine has "
            f"cores ({cores()}) make nothing faster"
        )
    return int(count)


def threads(count: int | None = None) -> int:
    """Set the count of threads that batches use, or ask for it without an argument. RAMIFY_THREADS
    sets the default; else all cores. RamifyError for more than 1024.
    """
    global _chosen
    if count is not None:
        _chosen = checked_thread_count(count, "rf.threads")
        for cost in _costs:
            cost.update()
    if _chosen is not None:
        return _chosen
    setting = os.environ.get("RAMIFY_THREADS")
    return checked_thread_count(setting, "RAMIFY_THREADS") if setting else cores()


def thread_count(setting: int | None) -> int:
    """How many threads a call may use."""
    return threads() if setting is None else checked_thread_count(setting, "threads=")


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Cost:
    """What a state costs on this machine, in ns: a guess that becomes a measurement, and from it
    the largest batch that one thread should do alone. Compiled code reads and writes the same
    numbers (``COST``, at ``address``).
    """

    def __init__(self, guess: float) -> None:
        self._words = (ctypes.c_int64 * len(COST))()
        self.address = ctypes.addressof(self._words)
        self._ns = ctypes.c_double.from_address(self.address + 8 * COST.index("ns"))
        self._words[COST.index("backoff")] = -1
        self.ns = guess
        _costs.add(self)

    @property
    def ns(self) -> float:
        """Time of one state, ns."""
        return self._ns.value

    @ns.setter
    def ns(self, value: float) -> None:
        self._ns.value = value
        self.update()

    @property
    def max_solo_states(self) -> int:
        """The largest batch that one thread should compute alone."""
        return int(self._words[0])

    def measured(self, ns: float) -> None:
        """Take over a measurement; after the first one, those on a busy machine or with a compiler
        at work count little, and infinity, where other threads did all the work, not at all.
        """
        if math.isinf(ns):
            return
        backoff = COST.index("backoff")
        self.ns = max(1.0, min(ns, 1.1 * self.ns) if self._words[backoff] >= 0 else ns)
        self._words[backoff] = max(0, self._words[backoff])

    def update(self) -> None:
        """Adapt to the number of threads."""
        count = threads()
        self._words[0] = 1 << 62 if count == 1 else max(FEWEST, int(WORTH_NS / self.ns))
        self._words[1] = count

    def pieces(self, states: int, count: int) -> int:
        """How many pieces ``count`` threads should make of a batch; 1: the caller works alone."""
        work = states * self.ns
        if count == 1 or work < WORTH_NS:
            return 1
        return max(1, min(int(work / _PIECE_NS), 3 * count, states // FEWEST))


_costs: WeakSet[Cost] = WeakSet()
