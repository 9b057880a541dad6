"""LLVM text of a pool of threads: what its workers do, and what callers do to share a batch.

A job is a kernel's function, the addresses of its arrays and a count of pieces; the caller takes
pieces from the front and the workers from the back until none is left, so that a batch that comes
again finds its numbers in the same caches. The caller closes the gate when it finds none, and waits
only for workers that are inside: one that has not woken up yet is not waited for. A worker looks
out for the next job for a moment before it sleeps.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from ramify.codegen.threads import COST, FEWEST, WORTH_NS

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


def _places(table: str, words: Sequence[str]) -> str:
    """The addresses of a table's words."""
    return "\n".join(
        f"  %{word}.at = getelementptr i64, ptr %{table}, i64 {i}" for i, word in enumerate(words)
    )


def _loads(*words: str) -> str:
    return "\n".join(f"  %{word} = load i64, ptr %{word}.at" for word in words)


def _pointers(*words: str) -> str:
    return "\n".join(f"  %{word} = load ptr, ptr %{word}.at" for word in words)


def _known(*names: str) -> str:
    """The functions of the system that one of ours calls."""
    return "\n".join(
        f"  %{name}.at = getelementptr i64, ptr @system, i64 {SYSTEM.index(name)}\n"
        f"  %{name} = load ptr, ptr %{name}.at"
        for name in names
    )


def _call(name: str, *arguments: str) -> str:
    return f"call i32 %{name}({', '.join(f'ptr {a}' for a in arguments)})"


def _moved(table: str, count: str, first: str) -> str:
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
  %{table}.step.at = getelementptr i64, ptr %steps.at, i64 %{table}.k
  %{table}.step = load i64, ptr %{table}.step.at
  %{table}.off = mul i64 %{table}.step, %start
  %{table}.here = getelementptr i8, ptr %{table}.base, i64 %{table}.off
  %{table}.to = getelementptr ptr, ptr %{table}.own, i64 %{table}.i
  store ptr %{table}.here, ptr %{table}.to
  %{table}.j = add i64 %{table}.i, 1
  br label %{table}.test
{table}.end:"""


def _worker_ir() -> str:
    """``work(pool, who)``: pieces until none is left, gives the states done; ``serve(pool, who)``:
    a worker's life; ``now()``: ns.
    """
    arguments = "i64 %count, ptr %inputs.own, ptr %outputs.own, ptr %robot, ptr %memory"
    return f"""
define i64 @now() {{
{_known("clock_gettime")}
  %time = alloca [2 x i64]
  %asked = call i32 %clock_gettime(i32 {time.CLOCK_MONOTONIC}, ptr %time)
  %s = load i64, ptr %time
  %ns.at = getelementptr i64, ptr %time, i64 1
  %ns = load i64, ptr %ns.at
  %whole = mul i64 %s, 1000000000
  %all = add i64 %whole, %ns
  ret i64 %all
}}

define i64 @work(ptr %pool, i64 %who) {{
entry:
{_places("pool", POOL)}
{_loads("pieces", "chunk", "states", "size")}
{_pointers("inputs", "outputs", "scratch", "job")}
{_places("job", JOB)}
{_pointers("function", "robot")}
{_loads("takes", "gives")}
  %inputs.own = alloca ptr, i64 %takes
  %outputs.own = alloca ptr, i64 %gives
  %apart = mul i64 %size, %who
  %memory = getelementptr double, ptr %scratch, i64 %apart
  %last = sub i64 %pieces, 1
  %caller = icmp eq i64 %who, 0
  %end.at = select i1 %caller, ptr %front.at, ptr %back.at
  br label %piece
piece:
  %done = phi i64 [0, %entry], [%so.far, %outputs.end]
  %before = atomicrmw sub ptr %left.at, i64 1 acq_rel
  %mine = icmp sgt i64 %before, 0
  br i1 %mine, label %take, label %exit
take:
  %k = atomicrmw add ptr %end.at, i64 1 acq_rel
  %mirrored = sub i64 %last, %k
  %p = select i1 %caller, i64 %k, i64 %mirrored
  %start = mul i64 %p, %chunk
  %is.last = icmp eq i64 %p, %last
  %full = add i64 %start, %chunk
  %stop = select i1 %is.last, i64 %states, i64 %full
  %count = sub i64 %stop, %start
{_moved("inputs", "takes", "take")}
{_moved("outputs", "gives", "inputs.end")}
  %found = call i64 %function({arguments})
  %old.flags = atomicrmw or ptr %flags.at, i64 %found acq_rel
  %so.far = add i64 %done, %count
  br label %piece
exit:
  ret i64 %done
}}

define void @serve(ptr %pool, i64 %who) {{
entry:
{_places("pool", POOL)}
{_known("pthread_mutex_lock", "pthread_mutex_unlock", "pthread_cond_wait")}
{_pointers("mutex", "condition")}
  br label %rest
rest:
  %seen = phi i64 [0, %entry], [%calls, %enter], [%calls, %leave]
  %since = call i64 @now()
  br label %lookout
lookout:
  %next = load atomic i64, ptr %calls.at acquire, align 8
  %none = icmp eq i64 %next, %seen
  %time = call i64 @now()
  %waited = sub i64 %time, %since
  %short = icmp slt i64 %waited, {_LOOKOUT_NS}
  %on = and i1 %none, %short
  br i1 %on, label %lookout, label %lock
lock:
  %locked = {_call("pthread_mutex_lock", "%mutex")}
  br label %look
look:
  %calls = load i64, ptr %calls.at
  %same = icmp eq i64 %calls, %seen
  br i1 %same, label %wait, label %called
wait:
  %woken = {_call("pthread_cond_wait", "%condition", "%mutex")}
  br label %look
called:
  %unlocked = {_call("pthread_mutex_unlock", "%mutex")}
  br label %enter
enter:
  %gate = load atomic i64, ptr %gate.at acquire, align 8
  %open = icmp sge i64 %gate, {_OPEN}
{_loads("count")}
  %wanted = icmp slt i64 %who, %count
  %may = and i1 %open, %wanted
  br i1 %may, label %try, label %rest
try:
  %more = add i64 %gate, 1
  %swap = cmpxchg ptr %gate.at, i64 %gate, i64 %more acq_rel monotonic
  %in = extractvalue {{i64, i1}} %swap, 1
  br i1 %in, label %inside, label %enter
inside:
  %done = call i64 @work(ptr %pool, i64 %who)
  br label %leave
leave:
  %gone = atomicrmw sub ptr %gate.at, i64 1 acq_rel
  br label %rest
}}
"""


def _caller_ir() -> str:
    """``alone``: a batch by the caller; ``shared``: by ``count`` threads where that is worth it;
    ``offer``: what kernels' entries call, by as many threads as ``rf.threads`` says.
    """
    given = "i64 %states, ptr %inputs, ptr %outputs"
    return f"""
define i64 @alone({given}, ptr %job) {{
{_places("job", JOB)}
{_pointers("function", "robot", "memory")}
{_loads("room")}
  %simple = icmp eq i64 %room, 0
  br i1 %simple, label %plain, label %guarded
plain:
  %flags = call i64 %function({given}, ptr %robot, ptr %memory)
  ret i64 %flags
guarded:
  %swap = cmpxchg ptr %lock.at, i64 0, i64 1 acquire monotonic
  %free = extractvalue {{i64, i1}} %swap, 1
  br i1 %free, label %run, label %busy
run:
  %found = call i64 %function({given}, ptr %robot, ptr %memory)
  store atomic i64 0, ptr %lock.at release, align 8
  ret i64 %found
busy:
  ret i64 {BUSY}
}}

define void @note(ptr %cost, i64 %took, i64 %states) {{
{_places("cost", COST)}
  %t = sitofp i64 %took to double
  %n = sitofp i64 %states to double
  %x = fdiv double %t, %n
  %ns = load double, ptr %ns.at
  %more = fmul double %ns, 1.1
  %late = fcmp ogt double %x, %more
{_loads("tries")}
  %known = icmp sge i64 %tries, 0
  %capped = and i1 %late, %known
  %least = select i1 %capped, double %more, double %x
  %now.known = select i1 %known, i64 %tries, i64 0
  store i64 %now.known, ptr %tries.at
  %quick = fcmp olt double %least, 1.0
  %new = select i1 %quick, double 1.0, double %least
  store double %new, ptr %ns.at
{_loads("threads")}
  %worth = fdiv double {WORTH_NS}, %new
  %limit = fptosi double %worth to i64
  %few = icmp slt i64 %limit, {FEWEST}
  %some = select i1 %few, i64 {FEWEST}, i64 %limit
  %single = icmp sle i64 %threads, 1
  %most = select i1 %single, i64 {1 << 62}, i64 %some
  store i64 %most, ptr %most.at
  ret void
}}

define i64 @shared({given}, ptr %job, i64 %count) {{
entry:
  %pool = load ptr, ptr @pool
{_places("pool", [f"p.{word}" for word in POOL])}
{_places("job", JOB)}
{_pointers("cost")}
{_places("cost", COST)}
{_loads("room", "lanes", "rest", "tries")}
  %ns = load double, ptr %ns.at
  %n = sitofp i64 %states to double
  %expected = fmul double %ns, %n
  %little = fcmp olt double %expected, {WORTH_NS}
  %single = icmp sle i64 %count, 1
  %guessed = icmp slt i64 %tries, 0
  %no.use = or i1 %little, %single
  %not.now = or i1 %no.use, %guessed
  br i1 %not.now, label %timed, label %tired
tired:
  %resting = icmp sgt i64 %rest, 0
  br i1 %resting, label %less, label %ready
less:
  %rest.left = sub i64 %rest, 1
  store i64 %rest.left, ptr %rest.at
  br label %timed
timed:
  %begin = call i64 @now()
  %flags.alone = call i64 @alone({given}, ptr %job)
  %end = call i64 @now()
  %took.alone = sub i64 %end, %begin
  %refused = and i64 %flags.alone, {BUSY}
  %ran = icmp eq i64 %refused, 0
  br i1 %ran, label %noted, label %timed.exit
noted:
  call void @note(ptr %cost, i64 %took.alone, i64 %states)
  br label %timed.exit
timed.exit:
  ret i64 %flags.alone

ready:
{_known("pthread_mutex_lock", "pthread_mutex_unlock", "pthread_cond_broadcast", "sched_yield")}
  %workers = load atomic i64, ptr %p.workers.at acquire, align 8
  %size = load i64, ptr %p.reserved.at
  %enough = icmp sge i64 %size, %room
  %more.crew = add i64 %workers, 1
  %staffed = icmp sge i64 %more.crew, %count
  %set = and i1 %enough, %staffed
  br i1 %set, label %grab, label %not.ready
not.ready:
  ret i64 {NOT_READY}
grab:
  %swap = cmpxchg ptr %p.busy.at, i64 0, i64 1 acquire monotonic
  %free = extractvalue {{i64, i1}} %swap, 1
  br i1 %free, label %share, label %timed

share:
  %since = call i64 @now()
  %parts = mul i64 %count, 8
  %rough = sdiv i64 %states, %parts
  %large = icmp sgt i64 %rough, {_MOST_STATES}
  %some = select i1 %large, i64 {_MOST_STATES}, i64 %rough
  %rows = sdiv i64 %some, %lanes
  %thin = icmp slt i64 %rows, 2
  %least = select i1 %thin, i64 2, i64 %rows
  %chunk = mul i64 %least, %lanes
  %whole = sdiv i64 %states, %chunk
  %nothing = icmp slt i64 %whole, 1
  %pieces = select i1 %nothing, i64 1, i64 %whole
  store i64 %chunk, ptr %p.chunk.at
  store i64 %pieces, ptr %p.pieces.at
  store i64 %pieces, ptr %p.left.at
  store i64 0, ptr %p.front.at
  store i64 0, ptr %p.back.at
  store i64 %states, ptr %p.states.at
  store ptr %inputs, ptr %p.inputs.at
  store ptr %outputs, ptr %p.outputs.at
  store ptr %job, ptr %p.job.at
  store i64 0, ptr %p.flags.at
  store i64 %count, ptr %p.count.at
  %mutex = load ptr, ptr %p.mutex.at
  %condition = load ptr, ptr %p.condition.at
  %locked = {_call("pthread_mutex_lock", "%mutex")}
  %reserve = load ptr, ptr %p.reserve.at
  store ptr %reserve, ptr %p.scratch.at
  %reserved = load i64, ptr %p.reserved.at
  store i64 %reserved, ptr %p.size.at
  store atomic i64 {_OPEN}, ptr %p.gate.at release, align 8
  %calls = load i64, ptr %p.calls.at
  %call = add i64 %calls, 1
  store atomic i64 %call, ptr %p.calls.at release, align 8
  %woken = {_call("pthread_cond_broadcast", "%condition")}
  %unlocked = {_call("pthread_mutex_unlock", "%mutex")}
  %own = call i64 @work(ptr %pool, i64 0)
  %ready.at = call i64 @now()
  %shut = atomicrmw and ptr %p.gate.at, i64 {~_OPEN} acq_rel
  br label %wait
wait:
  %spins = phi i64 [0, %share], [%spun, %spin], [0, %yield]
  %inside = load atomic i64, ptr %p.gate.at acquire, align 8
  %empty = icmp eq i64 %inside, 0
  br i1 %empty, label %finished, label %spin
spin:
  %spun = add i64 %spins, 1
  %long = icmp sgt i64 %spun, 2000
  br i1 %long, label %yield, label %wait
yield:
  %yielded = {_call("sched_yield")}
  br label %wait
finished:
  %flags = load atomic i64, ptr %p.flags.at acquire, align 8
  store atomic i64 0, ptr %p.busy.at release, align 8
  %until = call i64 @now()
  %took = sub i64 %until, %since
  %took.float = sitofp i64 %took to double
  %hoped = fmul double %expected, {_GAIN}
  %in.vain = fcmp ogt double %took.float, %hoped
  %twice = shl i64 %tries, 1
  %further = or i64 %twice, 1
  %too.many = icmp sgt i64 %further, {_MOST_ALONE}
  %limited = select i1 %too.many, i64 {_MOST_ALONE}, i64 %further
  %alone.next = select i1 %in.vain, i64 %limited, i64 0
  store i64 %alone.next, ptr %tries.at
  store i64 %alone.next, ptr %rest.at
  %worked = icmp sgt i64 %own, 0
  br i1 %worked, label %measured, label %exit
measured:
  %took.own = sub i64 %ready.at, %since
  call void @note(ptr %cost, i64 %took.own, i64 %own)
  br label %exit
exit:
  ret i64 %flags
}}

define i64 @offer({given}, ptr %job) {{
{_places("job", JOB)}
{_pointers("cost")}
{_places("cost", COST)}
{_loads("most", "threads")}
  %quarter = lshr i64 %most, 2
  %small = icmp sle i64 %states, %quarter
  br i1 %small, label %simply, label %weigh
simply:
  %flags = call i64 @alone({given}, ptr %job)
  ret i64 %flags
weigh:
  %found = call i64 @shared({given}, ptr %job, i64 %threads)
  ret i64 %found
}}
"""


def pool_ir() -> str:
    """LLVM text of a pool."""
    head = f"@system = global [{len(SYSTEM)} x i64] zeroinitializer\n@pool = global i64 0\n"
    return head + _worker_ir() + _caller_ir()
