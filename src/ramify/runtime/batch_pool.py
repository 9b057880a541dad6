"""The one pool of compiled batches: workers wait in compiled code (``batch_pool_code``) and share a
kernel's batch without Python, which saves some 15 us a call against ``piece_workers``.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any, Final
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from ramify.emit.cpu_target import CpuTarget
from ramify.runtime.batch_pool_code import JOB, NOT_READY, POOL, SYSTEM, pool_ir
from ramify.runtime.compile import FunctionPointer, aligned_address, compiled
from ramify.runtime.target import host
from ramify.runtime.threads import Cost
from ramify.trace.program import Port


def can_share_batches() -> bool:
    """Whether this system has the threads that the compiled code waits with."""
    return sys.platform != "win32" and hasattr(_library(), "pthread_cond_wait")


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _address(name: str) -> int:
    return int(ctypes.cast(getattr(_library(), name), ctypes.c_void_p).value or 0)


class BatchPool:
    """Workers of one process; they wait for jobs as long as it lives."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._code = compiled(pool_ir, "run_batch", host().with_width(1), "pool", 1)
        self._code.fill("system", [_address(name) for name in SYSTEM])
        self._memory = (ctypes.c_int64 * (len(POOL) + 32))()
        self._code.fill("pool", [ctypes.addressof(self._memory)])
        self.run_batch_address = self._code.address
        number, pointer = ctypes.c_int64, ctypes.c_void_p
        shared = ctypes.CFUNCTYPE(number, number, *[pointer] * 3, number)
        self.run_parallel = shared(self._code.function("run_parallel"))
        self._serve = ctypes.CFUNCTYPE(None, pointer, number)(self._code.function("serve"))
        self._scratch: list[NDArray[np.float64]] = []
        self.start_again()
        # kept for good: workers wait in its memory and code, also while the interpreter ends
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    def start_again(self) -> None:
        """Reset the pool: threads do not survive a fork."""
        ctypes.memset(self._memory, 0, ctypes.sizeof(self._memory))
        start = ctypes.addressof(self._memory) + 8 * len(POOL)
        self._set(mutex=start, condition=start + 128)
        _library().pthread_mutex_init(ctypes.c_void_p(start), None)
        _library().pthread_cond_init(ctypes.c_void_p(start + 128), None)
        self._lock = threading.Lock()

    def _set(self, **values: int) -> None:
        for word, value in values.items():
            self._memory[POOL.index(word)] = value

    def _get(self, word: str) -> int:
        return int(self._memory[POOL.index(word)])

    def prepare(self, count: int, room: int) -> None:
        """Start workers so that ``count`` threads, with the caller, can share a batch, each with
        ``room`` doubles of scratch memory.
        """
        with self._lock:
            had, crew = self._get("reserved"), max(count, self._get("workers") + 1)
            size = max((room + 7) // 8 * 8, had)
            if size > had or count == crew:
                memory = np.empty(size * crew + 8)
                self._scratch.append(memory)  # the old one may still be in use
                mutex = ctypes.c_void_p(self._get("mutex"))
                _library().pthread_mutex_lock(mutex)
                self._set(reserve=aligned_address(memory), reserved=size)
                _library().pthread_mutex_unlock(mutex)
            for who in range(self._get("workers") + 1, count):
                arguments = ctypes.addressof(self._memory), who
                name = f"ramify-worker-{who}"
                threading.Thread(target=self._serve, args=arguments, name=name, daemon=True).start()
                self._set(workers=who)


_current: BatchPool | None = None
_functions: Final[WeakSet[SharedFunction]] = WeakSet()


def pool() -> BatchPool:
    """The pool of this process."""
    global _current
    if _current is None:
        _current = BatchPool()
    return _current


def _forked() -> None:
    if _current is not None:
        _current.start_again()
    for function in _functions:
        function.unlock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class SharedFunction:
    """A kernel's function for batches, of numbers and lanes of a target, that threads share where
    that is worth it: it measures what a state costs, and how sharing did.
    """

    def __init__(
        self,
        function: FunctionPointer,
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        cost: Cost,
        target: CpuTarget,
        workers: BatchPool | None = None,
    ) -> None:
        self._pool, self._function, self._cost = workers or pool(), function, cost
        self._memory = np.empty(function.doubles + 8)
        memory = aligned_address(self._memory)
        steps = [target.bits // 8 * port.size for port in (*inputs, *outputs)]
        self._job = np.array(
            [
                function.address, function.robot, function.doubles, memory, 0, len(inputs),
                len(outputs), target.width, cost.address, *steps,
            ],
            dtype=np.int64,
        )  # fmt: skip

        _functions.add(self)

    def unlock(self) -> None:
        """In a child process: the thread that was at work in its memory is gone."""
        self._job[JOB.index("lock")] = 0

    @property
    def compute(self) -> FunctionPointer:
        """The function that an entry calls."""
        return FunctionPointer(self._pool.run_batch_address, int(self._job.ctypes.data), keep=self)

    def run(self, inputs: Any, outputs: Any, states: int, count: int) -> int:
        """Compute a batch, from tables of the arrays' addresses, by up to ``count`` threads;
        returns its flags, ``BUSY`` if another thread uses the memory of this function.
        """
        arguments = states, inputs, outputs, int(self._job.ctypes.data), count
        flags = int(self._pool.run_parallel(*arguments))
        if flags & NOT_READY:
            self._pool.prepare(count, self._function.doubles)
            flags = int(self._pool.run_parallel(*arguments))
        return flags
