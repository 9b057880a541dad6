"""Threads that share a batch without Python: workers wait in compiled code for pieces of it.

A job is a kernel's function, the addresses of its arrays and a counter of pieces; the caller and
the workers take pieces until none is left. The caller closes the gate when it finds none, and waits
only for workers that are inside: one that has not woken up yet is not waited for.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ramify.codegen.compile import compiled
from ramify.codegen.target import host

MOST_PORTS: Final = 16
"""Inputs, and outputs, of a function that can be shared."""
_WORDS: Final = (
    "mutex", "condition", "calls", "gate", "next", "pieces", "chunk", "states", "function",
    "inputs", "outputs", "takes", "gives", "steps", "robot", "scratch", "room", "flags",
)  # fmt: skip
"""What a pool's memory holds, 8 bytes each. ``takes`` and ``gives``: numbers of inputs and outputs;
``steps``: their bytes per state; ``room``: bytes of scratch memory per thread."""
_SYSTEM: Final = (
    "pthread_mutex_lock", "pthread_mutex_unlock", "pthread_cond_wait", "pthread_cond_broadcast",
    "sched_yield",
)  # fmt: skip
_OPEN: Final = 1 << 40  # of the gate, whose other bits count the workers inside


def available() -> bool:
    """Whether this system has the threads that the compiled code waits with."""
    return sys.platform != "win32" and hasattr(_library(), "pthread_cond_wait")


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _address(name: str) -> int:
    return int(ctypes.cast(getattr(_library(), name), ctypes.c_void_p).value or 0)


def pool_ir() -> str:
    """LLVM text of ``serve(pool, who)``, a worker's life, and ``share(pool)``, which gives the
    number of states that the caller did itself.
    """

    def call(name: str, *arguments: str) -> str:
        given = ", ".join(f"ptr {a}" for a in arguments)
        return f"call i32 %{name}({given})"

    def known(*names: str) -> str:
        """The functions of the system that one of ours calls."""
        return "\n".join(
            f"  %{name}.at = getelementptr i64, ptr @system, i64 {_SYSTEM.index(name)}\n"
            f"  %{name} = load ptr, ptr %{name}.at"
            for name in names
        )

    places = "\n".join(
        f"  %{word}.at = getelementptr i64, ptr %pool, i64 {i}" for i, word in enumerate(_WORDS)
    )

    def loads(*words: str) -> str:
        kinds = {"takes", "gives", "pieces", "chunk", "states", "room"}
        return "\n".join(
            f"  %{word} = load {'i64' if word in kinds else 'ptr'}, ptr %{word}.at"
            for word in words
        )

    def moved(table: str, count: str, first: str) -> str:
        """The addresses of a table, each moved to the piece's first state."""
        return f"""
  br label %{table}.test
{table}.test:
  %{table}.i = phi i64 [0, %{first}], [%{table}.j, %{table}.body]
  %{table}.more = icmp slt i64 %{table}.i, %{count}
  br i1 %{table}.more, label %{table}.body, label %{table}.end
{table}.body:
  %{table}.from = getelementptr ptr, ptr %{table}, i64 %{table}.i
  %{table}.base = load ptr, ptr %{table}.from
  %{table}.k = add i64 %{table}.i, {"0" if table == "inputs" else "%takes"}
  %{table}.step.at = getelementptr i64, ptr %steps, i64 %{table}.k
  %{table}.step = load i64, ptr %{table}.step.at
  %{table}.off = mul i64 %{table}.step, %start
  %{table}.here = getelementptr i8, ptr %{table}.base, i64 %{table}.off
  %{table}.to = getelementptr ptr, ptr %{table}.own, i64 %{table}.i
  store ptr %{table}.here, ptr %{table}.to
  %{table}.j = add i64 %{table}.i, 1
  br label %{table}.test
{table}.end:"""

    given = "i64 %count, ptr %inputs.own, ptr %outputs.own, ptr %robot, ptr %memory"
    return f"""
@system = global [{len(_SYSTEM)} x i64] zeroinitializer

define i64 @work(ptr %pool, i64 %who) {{
entry:
{places}
  %inputs.own = alloca [{MOST_PORTS} x ptr]
  %outputs.own = alloca [{MOST_PORTS} x ptr]
{loads("pieces", "chunk", "states", "function", "inputs", "outputs", "takes", "gives", "steps")}
{loads("robot", "scratch", "room")}
  %apart = mul i64 %room, %who
  %memory = getelementptr i8, ptr %scratch, i64 %apart
  %last = sub i64 %pieces, 1
  br label %piece
piece:
  %done = phi i64 [0, %entry], [%so.far, %outputs.end]
  %p = atomicrmw add ptr %next.at, i64 1 acq_rel
  %mine = icmp slt i64 %p, %pieces
  br i1 %mine, label %take, label %exit
take:
  %start = mul i64 %p, %chunk
  %is.last = icmp eq i64 %p, %last
  %full = add i64 %start, %chunk
  %stop = select i1 %is.last, i64 %states, i64 %full
  %count = sub i64 %stop, %start
{moved("inputs", "takes", "take")}
{moved("outputs", "gives", "inputs.end")}
  %found = call i64 %function({given})
  %before = atomicrmw or ptr %flags.at, i64 %found acq_rel
  %so.far = add i64 %done, %count
  br label %piece
exit:
  ret i64 %done
}}

define void @serve(ptr %pool, i64 %who) {{
entry:
{places}
{known("pthread_mutex_lock", "pthread_mutex_unlock", "pthread_cond_wait")}
{loads("mutex", "condition")}
  br label %rest
rest:
  %seen = phi i64 [0, %entry], [%calls, %enter], [%calls, %leave]
  %locked = {call("pthread_mutex_lock", "%mutex")}
  br label %look
look:
  %calls = load i64, ptr %calls.at
  %same = icmp eq i64 %calls, %seen
  br i1 %same, label %wait, label %called
wait:
  %woken = {call("pthread_cond_wait", "%condition", "%mutex")}
  br label %look
called:
  %unlocked = {call("pthread_mutex_unlock", "%mutex")}
  br label %enter
enter:
  %gate = load atomic i64, ptr %gate.at acquire, align 8
  %open = icmp sge i64 %gate, {_OPEN}
  br i1 %open, label %try, label %rest
try:
  %more = add i64 %gate, 1
  %swap = cmpxchg ptr %gate.at, i64 %gate, i64 %more acq_rel monotonic
  %in = extractvalue {{i64, i1}} %swap, 1
  br i1 %in, label %inside, label %enter
inside:
  %done = call i64 @work(ptr %pool, i64 %who)
  br label %leave
leave:
  %left = atomicrmw sub ptr %gate.at, i64 1 acq_rel
  br label %rest
}}

define i64 @share(ptr %pool) {{
entry:
{places}
{known("pthread_mutex_lock", "pthread_mutex_unlock", "pthread_cond_broadcast", "sched_yield")}
{loads("mutex", "condition")}
  %locked = {call("pthread_mutex_lock", "%mutex")}
  store atomic i64 {_OPEN}, ptr %gate.at release, align 8
  %calls = load i64, ptr %calls.at
  %call = add i64 %calls, 1
  store i64 %call, ptr %calls.at
  %woken = {call("pthread_cond_broadcast", "%condition")}
  %unlocked = {call("pthread_mutex_unlock", "%mutex")}
  %done = call i64 @work(ptr %pool, i64 0)
  %shut = atomicrmw and ptr %gate.at, i64 {~_OPEN} acq_rel
  br label %wait
wait:
  %spins = phi i64 [0, %entry], [%spun, %spin], [0, %yield]
  %inside = load atomic i64, ptr %gate.at acquire, align 8
  %alone = icmp eq i64 %inside, 0
  br i1 %alone, label %exit, label %spin
spin:
  %spun = add i64 %spins, 1
  %long = icmp sgt i64 %spun, 2000
  br i1 %long, label %yield, label %wait
yield:
  %yielded = {call("sched_yield")}
  br label %wait
exit:
  ret i64 %done
}}
"""


class ThreadPool:
    """Workers of one process; they wait for jobs as long as it lives."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._lock = threading.Lock()
        self._code = compiled(pool_ir, "share", host().with_width(1), "pool", 1)
        self._code.fill("system", [_address(name) for name in _SYSTEM])
        share = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
        self._share = share(self._code.address)
        serve = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
        self._serve = serve(self._code.function("serve"))
        self._memory = (ctypes.c_int64 * (len(_WORDS) + 32))()
        self._words = {word: i for i, word in enumerate(_WORDS)}
        self._scratch = np.zeros(0)
        start = ctypes.addressof(self._memory) + 8 * len(_WORDS)
        self._set(mutex=start, condition=start + 128)
        _library().pthread_mutex_init(ctypes.c_void_p(start), None)
        _library().pthread_cond_init(ctypes.c_void_p(start + 128), None)
        self._workers = 0
        # kept for good: workers wait in its memory and code, also while the interpreter ends
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    def _set(self, **values: int) -> None:
        for word, value in values.items():
            self._memory[self._words[word]] = value

    def _call(self, others: int) -> None:
        """So many workers, at least."""
        while self._workers < others:
            self._workers += 1
            arguments = ctypes.addressof(self._memory), self._workers
            name = f"ramify-worker-{self._workers}"
            threading.Thread(target=self._serve, args=arguments, name=name, daemon=True).start()

    def share(
        self,
        inputs: Sequence[NDArray[Any]],
        outputs: Sequence[NDArray[Any]],
        chunk: int,
        others: int,
        function: int,
        robot: int = 0,
        doubles: int = 0,
    ) -> tuple[int, int] | None:
        """A kernel's function over rows in pieces of ``chunk`` states; ``doubles`` of scratch
        memory for every thread. Gives flags and the states that the caller did, or None where
        another thread has the pool.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            self._call(others)
            room = (doubles + 7) // 8 * 8
            if self._scratch.size < room * (self._workers + 1) + 8:
                self._scratch = np.empty(room * (self._workers + 1) + 8)
            arrays = [*inputs, *outputs]
            addresses = (ctypes.c_int64 * len(arrays))(*(a.ctypes.data for a in arrays))
            steps = (ctypes.c_int64 * len(arrays))(*(a.strides[0] for a in arrays))
            at, states = ctypes.addressof(addresses), inputs[0].shape[0]
            self._set(
                next=0, pieces=max(1, states // chunk), chunk=chunk, states=states, flags=0,
                function=function, inputs=at, outputs=at + 8 * len(inputs), takes=len(inputs),
                gives=len(outputs), steps=ctypes.addressof(steps), robot=robot, room=8 * room,
                scratch=(self._scratch.ctypes.data + 63) // 64 * 64,
            )  # fmt: skip
            own = self._share(ctypes.addressof(self._memory))
            return int(self._memory[self._words["flags"]]), int(own)
        finally:
            self._lock.release()


_current: ThreadPool | None = None


def pool() -> ThreadPool:
    """The pool of this process: threads do not survive a fork."""
    global _current
    if _current is None or _current.process != os.getpid():
        _current = ThreadPool()
    return _current
