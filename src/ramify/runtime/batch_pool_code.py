"""LLVM text of a pool of threads: what its workers do, and what callers do to share a batch.

A job is a kernel's function, the addresses of its arrays and a count of pieces; the caller takes
pieces from the front and the workers from the back until none is left, so that a batch that comes
again finds its numbers in the same caches. The caller closes the gate when it finds none, and waits
only for workers that are inside: one that has not woken up yet is not waited for. A worker looks
out for the next job for a moment before it sleeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from time import CLOCK_MONOTONIC
from typing import Final

from ramify.emit.values import LlvmValue, where
from ramify.emit.writer import Lines
from ramify.runtime.threads import COST, FEWEST, WORTH_NS

BUSY: Final = 1 << 16
"""Flag: another thread computes in the function's own memory; use other memory."""
NOT_READY: Final = 1 << 17  # flag: too few workers, or too little memory for them
POOL: Final = (
    "mutex", "condition", "calls", "gate", "left", "front", "back", "pieces", "chunk", "states",
    "inputs", "outputs", "job", "flags", "count", "busy", "workers", "scratch", "size", "reserve",
    "reserved",
)  # fmt: skip
"""What a pool's memory holds, 8 bytes each. ``left``: pieces that nobody has taken; ``front`` and
``back``: how many were taken there; ``count``: threads of the job; ``scratch``: its memory,
``size`` doubles for each thread, from the ``reserve`` with ``reserved`` doubles for each."""
JOB: Final = (
    "function", "robot", "room", "memory", "lock", "takes", "gives", "lanes", "cost", "steps",
)  # fmt: skip
"""What a shared function's memory holds: ``room`` doubles of scratch memory for each thread, the
caller's own ``memory``, locked while it is in use; numbers of inputs and outputs, and their
``steps``, bytes per state, from there on."""
SYSTEM: Final = (
    "pthread_mutex_lock", "pthread_mutex_unlock", "pthread_cond_wait", "pthread_cond_broadcast",
    "sched_yield", "clock_gettime",
)  # fmt: skip
_OPEN: Final = 1 << 40  # of the gate, whose other bits count the workers inside
_LOOKOUT_NS: Final = 50_000  # how long a worker looks out for the next job before it sleeps
_MOST_STATES: Final = 256  # of a piece
_GAIN: Final = 0.95  # of one thread's time; sharing that takes longer was in vain
_MOST_ALONE: Final = 63  # batches in a row that the caller does alone after that


class _PoolWriter(Lines):
    def function(self, name: str, arguments: str, kind: str = "i64") -> str:
        head = f"define {kind} @{name}({arguments}) {{"
        return "\n".join([head, "entry:", *self.lines, "}"])

    def literal(self, x: float, kind: str) -> str:
        return repr(x)  # decimals, for readers: none of these numbers needs its last bit

    def system(self, name: str, *arguments: str) -> None:
        """A system call; its status is ignored."""
        function = self.item("@system", SYSTEM.index(name), "ptr")
        self.put(f"call i32 {function}({', '.join(arguments)})")

    def now(self) -> LlvmValue:
        return self.typed("i64", "call i64 @now()")

    def watched(self, place: str) -> LlvmValue:
        """A number that other threads write."""
        return self.typed("i64", f"load atomic i64, ptr {place} acquire, align 8")

    def show(self, value: int | str, place: str) -> None:
        """Write a number that other threads watch."""
        self.do(f"store atomic i64 {value}, ptr {place} release, align 8")

    def swap(self, place: str, old: int | str, new: int | str, order: str) -> str:
        """Whether a number was the old one, and became the new one."""
        pair = self.put(f"cmpxchg ptr {place}, i64 {old}, i64 {new} {order} monotonic")
        return self.put(f"extractvalue {{i64, i1}} {pair}, 1")

    def change(self, how: str, place: str, by: int | str) -> str:
        """The number that was there before it was changed."""
        return self.put(f"atomicrmw {how} ptr {place}, i64 {by} acq_rel")


class _PoolTable:
    """The words of a table in memory, by name."""

    def __init__(self, w: _PoolWriter, table: str, words: Sequence[str]) -> None:
        self._w, self.base = w, table
        self._at = {x: w.at(table, i, "i64") for i, x in enumerate(words)}

    def at(self, word: str) -> str:
        return self._at[word]

    def get(self, word: str, kind: str = "i64") -> LlvmValue:
        return self._w.typed(kind, f"load {kind}, ptr {self._at[word]}")

    def set(self, word: str, value: int | str, kind: str = "i64") -> None:
        self._w.do(f"store {kind} {value}, ptr {self._at[word]}")


def _now() -> str:
    """``now()``: ns."""
    w = _PoolWriter()
    time = w.put("alloca [2 x i64]")
    w.system("clock_gettime", f"i32 {CLOCK_MONOTONIC}", f"ptr {time}")
    s, ns = (w.item(time, i, "i64") for i in range(2))
    w.do(f"ret i64 {s * 1_000_000_000 + ns}")
    return w.function("now", "")


def _work() -> str:
    """``work(pool, who)``: pieces until none is left; gives the states done."""
    w = _PoolWriter()
    pool = _PoolTable(w, "%pool", POOL)
    pieces, chunk, states, size = map(pool.get, ("pieces", "chunk", "states", "size"))
    tables = [pool.get(x, "ptr") for x in ("inputs", "outputs")]
    scratch, job = pool.get("scratch", "ptr"), _PoolTable(w, pool.get("job", "ptr"), JOB)
    function, robot = (job.get(x, "ptr") for x in ("function", "robot"))
    takes, gives = job.get("takes"), job.get("gives")
    moved_tables = [w.put(f"alloca ptr, i64 {many}") for many in (takes, gives)]
    memory = w.at(scratch, w.mul(size, "%who"))
    last, caller = w.sub(pieces, 1), w.equal("%who", 0)
    end = w.choose(caller, pool.at("front"), pool.at("back"), "ptr")
    w.enter("piece")
    w.do("%done = phi i64 [0, %entry], [%so.far, %computed]")
    w.leave_unless(w.test("sgt", w.change("sub", pool.at("left"), 1), 0), "exit")
    k = w.change("add", end, 1)
    p = w.choose(caller, k, w.sub(last, k))
    start = w.mul(p, chunk)
    stop = w.choose(w.equal(p, last), states, w.add(start, chunk))
    count = w.sub(stop, start)

    def moved(i: str, table: str, moved_table: str, first: str) -> None:
        """An address of a table, moved to the piece's first state."""
        step = w.item(job.at("steps"), w.add(i, first), "i64")
        here = w.at(w.item(table, i, "ptr"), w.mul(step, start), "i8")
        w.do(f"store ptr {here}, ptr {w.at(moved_table, i, 'ptr')}")

    for table, room, many, first in zip(
        tables, moved_tables, (takes, gives), ("0", takes), strict=True
    ):
        w.count(partial(moved, table=table, moved_table=room, first=first), "0", many)
    arguments = ", ptr ".join([f"i64 {count}", *moved_tables, robot, memory])
    w.change("or", pool.at("flags"), w.put(f"call i64 {function}({arguments})"))
    w.do(f"%so.far = add i64 %done, {count}")
    w.enter("computed")
    w.go("piece")
    w.label("exit")
    w.do("ret i64 %done")
    return w.function("work", "ptr %pool, i64 %who")


def _serve() -> str:
    """``serve(pool, who)``: a worker's life."""
    w = _PoolWriter()
    pool = _PoolTable(w, "%pool", POOL)
    gate, mutex, condition = pool.at("gate"), pool.get("mutex", "ptr"), pool.get("condition", "ptr")
    w.enter("rest")
    w.do("%seen = phi i64 [0, %entry], [%calls, %enter], [%calls, %leave]")
    since = w.now()
    w.enter("lookout")
    none = w.equal(w.watched(pool.at("calls")), "%seen")
    short = w.now() - since < _LOOKOUT_NS
    w.leave_if(none & short, "lookout")
    w.system("pthread_mutex_lock", f"ptr {mutex}")
    w.enter("look")
    w.do(f"%calls = load i64, ptr {pool.at('calls')}")
    w.fork(w.equal("%calls", "%seen"), "wait", "called")
    w.label("wait")
    w.system("pthread_cond_wait", f"ptr {condition}", f"ptr {mutex}")
    w.go("look")
    w.label("called")
    w.system("pthread_mutex_unlock", f"ptr {mutex}")
    w.enter("enter")
    inside = w.watched(gate)
    is_open, wanted = inside >= _OPEN, w.test("slt", "%who", pool.get("count"))
    w.leave_unless(is_open & wanted, "rest")
    w.leave_unless(w.swap(gate, inside, inside + 1, "acq_rel"), "enter")
    w.put("call i64 @work(ptr %pool, i64 %who)")
    w.enter("leave")
    w.change("sub", gate, 1)
    w.go("rest")
    return w.function("serve", "ptr %pool, i64 %who", "void")


_ARGUMENTS: Final = "i64 %states, ptr %inputs, ptr %outputs"


def _run_serial() -> str:
    """``run_serial``: a batch by the caller."""
    w = _PoolWriter()
    job = _PoolTable(w, "%job", JOB)
    function, robot, memory = (job.get(x, "ptr") for x in ("function", "robot", "memory"))
    call = f"call i64 {function}({_ARGUMENTS}, ptr {robot}, ptr {memory})"
    w.fork(w.equal(job.get("room"), 0), "plain", "guarded")
    w.label("plain")
    w.do(f"ret i64 {w.put(call)}")
    w.label("guarded")
    w.leave_unless(w.swap(job.at("lock"), 0, 1, "acquire"), "busy")
    flags = w.put(call)
    w.show(0, job.at("lock"))
    w.do(f"ret i64 {flags}")
    w.label("busy")
    w.do(f"ret i64 {BUSY}")
    return w.function("run_serial", f"{_ARGUMENTS}, ptr %job")


def _record_cost() -> str:
    """``record_cost``: take over a measured time, as ``Cost.measured`` does."""
    w = _PoolWriter()
    cost = _PoolTable(w, "%cost", COST)
    x = w.value("%took", "i64").to_real() / w.value("%states", "i64").to_real()
    more = cost.get("ns", "double") * 1.1
    late = x > more
    backoff = cost.get("backoff")
    measured = backoff >= 0
    least = where(late & measured, more, x)
    cost.set("backoff", where(measured, backoff, 0))
    new = where(least < 1.0, 1.0, least)
    cost.set("ns", new, "double")
    limit = (WORTH_NS / new).to_whole()
    some = where(limit < FEWEST, FEWEST, limit)
    cost.set("max_solo_states", where(cost.get("threads") <= 1, 1 << 62, some))
    w.do("ret void")
    return w.function("record_cost", "ptr %cost, i64 %took, i64 %states", "void")


class _ParallelRun:
    """``run_parallel``: a batch by ``count`` threads where that is worth it."""

    def __init__(self) -> None:
        w = self.w = _PoolWriter()
        self.pool = _PoolTable(w, w.put("load ptr, ptr @pool"), POOL)
        self.job = _PoolTable(w, "%job", JOB)
        self.cost_address = self.job.get("cost", "ptr")
        self.cost = _PoolTable(w, self.cost_address, COST)

    def text(self) -> str:
        """LLVM text of the function."""
        w, job, cost = self.w, self.job, self.cost
        room, lanes = job.get("room"), job.get("lanes")
        solo_batches, backoff = cost.get("solo_batches_left"), cost.get("backoff")
        expected = cost.get("ns", "double") * w.value("%states", "i64").to_real()
        self._run_serially_unless_worth_it(expected, solo_batches, backoff)
        self._leave_unless_ready(room)
        w.label("share")
        since = w.now()
        self._open_job(lanes)
        states_done = w.typed("i64", f"call i64 @work(ptr {self.pool.base}, i64 0)")
        ready = w.now()
        self._close_gate_and_wait()
        flags = w.watched(self.pool.at("flags"))
        w.show(0, self.pool.at("busy"))
        self._judge(expected, backoff, since)
        took = ready - since
        self._record_cost_if(states_done > 0, took, states_done)
        w.do(f"ret i64 {flags}")
        return w.function("run_parallel", f"{_ARGUMENTS}, ptr %job, i64 %count")

    def _run_serially_unless_worth_it(
        self, expected: LlvmValue, solo_batches: LlvmValue, backoff: LlvmValue
    ) -> None:
        """Little work, one thread, no measurement yet, or the pause after sharing in vain."""
        w = self.w
        little = expected < WORTH_NS
        useless = little | w.test("sle", "%count", 1)
        w.leave_if(useless | (backoff < 0), "timed")
        w.leave_unless(solo_batches > 0, "ready")
        self.cost.set("solo_batches_left", solo_batches - 1)
        w.enter("timed")
        begin = w.now()
        flags = w.typed("i64", f"call i64 @run_serial({_ARGUMENTS}, ptr %job)")
        took = w.now() - begin
        self._record_cost_if((flags & BUSY).equals(0), took, "%states")
        w.do(f"ret i64 {flags}")

    def _record_cost_if(self, condition: str, took: str, states: str) -> None:
        w = self.w
        call = f"call void @record_cost(ptr {self.cost_address}, i64 {took}, i64 {states})"
        w.when(condition, lambda: w.do(call))

    def _leave_unless_ready(self, room: str) -> None:
        """Not ready without enough workers or memory; serially where the pool is in use."""
        w, pool = self.w, self.pool
        w.label("ready")
        workers = w.watched(pool.at("workers"))
        enough = pool.get("reserved") >= room
        staffed = workers + 1 >= "%count"
        w.fork(enough & staffed, "grab", "not.ready")
        w.label("not.ready")
        w.do(f"ret i64 {NOT_READY}")
        w.label("grab")
        w.fork(w.swap(pool.at("busy"), 0, 1, "acquire"), "share", "timed")

    def _open_job(self, lanes: str) -> None:
        """Cut the batch into pieces, open the gate and wake the workers."""
        w, pool = self.w, self.pool
        states, count = w.value("%states", "i64"), w.value("%count", "i64")
        rough = states // (count * 8)
        some = where(rough > _MOST_STATES, _MOST_STATES, rough)
        rows = some // lanes
        chunk = where(rows < 2, 2, rows) * lanes
        whole = states // chunk
        pieces = where(whole < 1, 1, whole)
        values: dict[str, str] = {"chunk": chunk, "pieces": pieces, "left": pieces}
        values["states"] = "%states"
        values |= {"count": "%count", **dict.fromkeys(("front", "back", "flags"), "0")}
        for word, value in values.items():
            pool.set(word, value)
        for word in ("inputs", "outputs", "job"):
            pool.set(word, f"%{word}", "ptr")
        mutex, condition = (pool.get(x, "ptr") for x in ("mutex", "condition"))
        w.system("pthread_mutex_lock", f"ptr {mutex}")
        pool.set("scratch", pool.get("reserve", "ptr"), "ptr")
        pool.set("size", pool.get("reserved"))
        w.show(_OPEN, pool.at("gate"))
        w.show(pool.get("calls") + 1, pool.at("calls"))
        w.system("pthread_cond_broadcast", f"ptr {condition}")
        w.system("pthread_mutex_unlock", f"ptr {mutex}")

    def _close_gate_and_wait(self) -> None:
        """Wait for the workers that are inside: spin, then yield."""
        w, pool = self.w, self.pool
        w.change("and", pool.at("gate"), ~_OPEN)
        w.enter("wait")
        w.do("%spins = phi i64 [0, %share], [%spun, %spin], [0, %yield]")
        w.fork(w.equal(w.watched(pool.at("gate")), 0), "finished", "spin")
        w.label("spin")
        w.do("%spun = add i64 %spins, 1")
        w.fork(w.test("sgt", "%spun", 2000), "yield", "wait")
        w.label("yield")
        w.system("sched_yield")
        w.go("wait")
        w.label("finished")

    def _judge(self, expected: LlvmValue, backoff: LlvmValue, since: LlvmValue) -> None:
        """Pause sharing, longer each time, where it took longer than one thread would have."""
        w = self.w
        took = (w.now() - since).to_real()
        in_vain = took > expected * _GAIN
        further = w.typed("i64", f"shl i64 {backoff}, 1") | 1
        limited = where(further > _MOST_ALONE, _MOST_ALONE, further)
        for word in ("backoff", "solo_batches_left"):
            self.cost.set(word, where(in_vain, limited, 0))


def _run_batch() -> str:
    """``run_batch``: called by the entries of kernels; uses ``rf.threads()`` threads."""
    w = _PoolWriter()
    cost = _PoolTable(w, _PoolTable(w, "%job", JOB).get("cost", "ptr"), COST)
    quarter = w.put(f"lshr i64 {cost.get('max_solo_states')}, 2")
    threads = cost.get("threads")
    w.fork(w.test("sle", "%states", quarter), "simply", "weigh")
    for label, call in (
        ("simply", f"call i64 @run_serial({_ARGUMENTS}, ptr %job)"),
        ("weigh", f"call i64 @run_parallel({_ARGUMENTS}, ptr %job, i64 {threads})"),
    ):
        w.label(label)
        w.do(f"ret i64 {w.put(call)}")
    return w.function("run_batch", f"{_ARGUMENTS}, ptr %job")


def pool_ir() -> str:
    """LLVM text of a pool."""
    head = f"@system = global [{len(SYSTEM)} x i64] zeroinitializer\n@pool = global i64 0"
    parts = (_now, _work, _serve, _run_serial, _record_cost, _ParallelRun().text, _run_batch)
    return "\n\n".join([head, *(part() for part in parts), ""])
