"""A kernel: an algorithm made ready for one robot, called with arrays.

Two tiers, as in a modern JIT. A robot answers at once through the loops that serve every robot
(rolled); a kernel that is used again gets straight-line code of its own (unrolled), compiled in the
background, and is switched over between two calls. A call never mixes tiers, and within a tier a
state gives the same bits alone, in a batch of any size, and with any number of threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.core.errors import RamifyError, StateError
from ramify.core.forks import LOCK
from ramify.emit.c99 import c_library, identifier
from ramify.emit.guards import HUGE_ANGLE, NOT_FINITE, NOT_UNIT
from ramify.emit.writer import ANGLE_LIMIT
from ramify.runtime.backend import Backend, PlainNumpy, pointers
from ramify.runtime.batch_pool import SharedFunction, can_share_batches
from ramify.runtime.batch_pool_code import BUSY
from ramify.runtime.compiled_program import CompiledProgram
from ramify.runtime.kernel_arrays import KernelArrays, Out, list_of_outputs
from ramify.runtime.native import Calls, builtin_calls
from ramify.runtime.piece_workers import in_parallel
from ramify.runtime.straight_python import StraightPython
from ramify.runtime.target import host
from ramify.runtime.threads import Cost, thread_count
from ramify.trace.op_count import OpCount, op_count
from ramify.trace.program import Port, Program

_CALL: Final = "__call__"


@dataclass(frozen=True)
class Diagnosis:
    """What is checked of the first input, and the words for errors.

    - ``quaternions``: positions of unit quaternions in the first input.
    - ``locks``: angles there that must stay away from a value, (position, half turns).
    - ``check``: raises StateError where a row of the first input violates one of both.
    - ``explain_position``: what a position in a port is.
    - ``explain_singularity``: what in a first input may make a result infinite; "" if nothing.
    """

    explain_position: Callable[[Port, int], str]
    quaternions: tuple[int, ...] = ()
    locks: tuple[tuple[int, float], ...] = ()
    check: Callable[[Array], None] = lambda q: None
    explain_singularity: Callable[[Array], str] = lambda q: ""


@dataclass(frozen=True)
class Tiers:
    """What a kernel runs on: ``initial`` answers at once; ``upgrade`` (if any) is compiled in the
    background when the kernel is in demand, and then takes over.
    """

    initial: Backend
    upgrade: CompiledProgram | None = None


@dataclass(frozen=True)
class KernelPlan:
    """What a kernel is made from.

    ``plain`` runs the text by NumPy: it computes what compiled code does not take. ``cost_ns`` is a
    first guess for one state. ``answer`` is the tuple that several results make. ``pattern`` gives
    for each output which numbers are not zero whatever the state.
    """

    robot: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    compiled: CompiledProgram
    plain: PlainNumpy
    tiers: Tiers
    diagnosis: Diagnosis
    cost_ns: float
    answer: type[tuple[Any, ...]] = tuple
    pattern: Callable[[], list[NDArray[np.bool_]]] = lambda: []

    @property
    def name(self) -> str:
        return self.compiled.name


class Kernel:
    """``k(*inputs, out=None, threads=None)``: inputs (..., size) broadcast against each other; one
    result per output port.

    ``k.call`` is the same without the detour through the object: a builtin function once single
    states have been asked for.
    """

    def __init__(self, plan: KernelPlan) -> None:
        self._plan = plan
        self.name = plan.name
        self._arrays = KernelArrays(plan.name, plan.robot, plan.inputs, plan.outputs, plan.answer)
        self._backend = plan.tiers.initial
        self._cost = Cost(plan.cost_ns)
        self._calls = 0
        self._states = 0
        self._compiling = False
        self._answer_by(Calls(self._general, self._general))
        self._native_of: tuple[Backend | None, frozenset[int]] = (None, frozenset())
        self._shared_of: tuple[Backend | None, SharedFunction | None] = (None, None)

    if TYPE_CHECKING:
        call: Callable[..., Any]

        def __call__(
            self, *inputs: ArrayLike, out: Out = None, threads: int | None = None
        ) -> Any: ...
    else:
        # without Python in between; a slot is also the fastest attribute
        __slots__ = ("__call__", "__dict__", "__weakref__", "call")

    def _answer_by(self, calls: Calls) -> None:
        self.call = calls.call
        setattr(self, _CALL, calls.as_object)

    def __repr__(self) -> str:
        ports = ", ".join(f"{p.name}{list(p.shape)}" for p in self._plan.inputs)
        return f"<ramify kernel {self.name}({ports}) of {self._plan.robot!r}, {self.tier}>"

    @property
    def tier(self) -> str:
        """How it runs now: "unrolled", "rolled" or "numpy"."""
        return self._backend.tier

    @property
    def program(self) -> Program:
        """The traced algorithm for this robot, unrolled."""
        return self._plan.compiled.program

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Its input arrays."""
        return self._plan.inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        """Its output arrays."""
        return self._plan.outputs

    @property
    def text(self) -> Callable[..., list[list[Any]]]:
        """The algorithm over scalars of any kind: a flat list for each input, a flat list for each
        result. It raises StateError for lists of other lengths.
        """
        ports, run = self._plan.inputs, self._plan.plain.text

        def text(*inputs: Any) -> list[list[Any]]:
            sizes = [len(x) if hasattr(x, "__len__") else "no list" for x in inputs]
            if sizes != [port.size for port in ports]:
                wanted = ", ".join(f"{port.name} {port.size}" for port in ports)
                raise StateError(
                    f"{self.name}.text takes lists of these numbers of scalars: {wanted}; it was "
                    f"given {', '.join(map(str, sizes)) or 'none'}"
                )
            return run(*inputs)

        return text

    @property
    def op_count(self) -> OpCount:
        """Operations of the unrolled kernel, after folding and sharing."""
        return op_count(self.program)

    @property
    def llvm_ir(self) -> str:
        """LLVM text of the tier in use, for this machine's vector width."""
        return self._backend.llvm_ir(host().width)

    def c_source(self) -> tuple[str, str]:
        """(header, source) in C99: one function, no dependency but math.h."""
        return c_library(
            [self.program], self._plan.robot, f"{identifier(self._plan.robot)}_{self.name}"
        )

    # ---- calls ----

    def _general(self, *inputs: ArrayLike, out: Out = None, threads: int | None = None) -> Any:
        arrays, batch = self._arrays.checked_inputs(inputs)
        rows = self._arrays.rows(arrays, batch)
        results = self._arrays.buffers(out, batch, rows)
        states = len(rows[0])
        if states:
            flat = self._arrays.flat(results, states)
            if self._run(rows, flat, threads) & NOT_FINITE:
                unknown = self._arrays.unknown(arrays, batch)
                for result in flat:
                    result[unknown] = np.nan
                self._diagnose(rows, flat, ~unknown)
        if len(batch) < 2 and states:
            self._native(1 if states < host().width or not batch else 2)
        return self._arrays.answered(results) if out is None else out

    def fill(
        self,
        *inputs: ArrayLike,
        out: Array | Sequence[Array],
        preset: bool = False,
        threads: int | None = None,
    ) -> Array | Sequence[Array]:
        """As a call, for a batch (N,) and arrays ``out`` whose states may stand further apart than
        they are long: rows that begin on cache lines are written faster. ``preset``: entries that
        are zero whatever the state hold zeros already, as after an earlier call, and are not
        written again.
        """
        backend, results = self._backend, self._arrays.apart(out)
        states = len(results[0])
        arrays, batch = self._arrays.checked_inputs(inputs)
        if batch not in ((), (1,), (states,)):
            raise StateError(f"{self.name}: out is for {states} states, the inputs for {batch}")
        self._arrays.refuse_shared(results, arrays, np.shares_memory)
        if backend.fills(states):
            rows = self._arrays.rows(arrays, (states,))
            blocks = self._blocks if preset else None
            pieces = self._cost.pieces(states, thread_count(threads))
            self._count_use(states)
            if not self._code_validates_state(backend):
                self._check(rows[0])
            if not in_parallel(
                lambda a, b: backend.fill(rows, results, a, b, blocks), states, pieces
            )[0]:
                return out
        answer = self._general(*inputs, threads=threads)  # it says what is wrong
        for a, x in zip(
            list_of_outputs(out), answer if len(results) > 1 else (answer,), strict=True
        ):
            a[...] = x
        return out

    @cached_property
    def _blocks(self) -> list[NDArray[np.int64]]:
        """For each output the number of blocks that are not zero whatever the state, and their
        beginnings.
        """
        width, out = host().width, []
        for port, pattern in zip(self._plan.outputs, self._plan.pattern(), strict=True):
            whole = port.size // width * width
            filled = pattern.reshape(-1)[:whole].reshape(-1, width).any(axis=1)
            starts = np.flatnonzero(filled) * width
            out.append(np.array([len(starts), *starts], dtype=np.int64))
        return out

    def _code_validates_state(self, backend: Backend) -> bool:
        """Whether the code itself checks quaternions, and no angle locks."""
        diagnosis = self._plan.diagnosis
        checks_quaternions = isinstance(backend, CompiledProgram) or not diagnosis.quaternions
        return not diagnosis.locks and checks_quaternions

    def _check(self, q: Array) -> None:
        """Check the states (N, nq) that are finite; the others are diagnosed separately."""
        finite = np.isfinite(q)
        if finite.all():  # a test of all numbers at once takes a fraction of one by row
            self._plan.diagnosis.check(q)
            return
        rows = np.asarray(finite.all(axis=1))
        if rows.any():
            self._plan.diagnosis.check(np.where(rows[:, None], q, q[rows][0]))

    def _run(self, rows: list[Array], results: list[Array], count: int | None) -> int:
        """Fill the results; returns the flags that remain."""
        backend, states = self._backend, rows[0].shape[0]
        if not self._code_validates_state(backend):
            self._check(rows[0])
        self._count_use(states)
        count = thread_count(count)
        shared, flags = self._shared(backend) if states >= host().width else None, BUSY
        if shared is not None:
            flags = shared.run(pointers(rows, 0), pointers(results, 0), states, count)
        if flags & BUSY:
            pieces = self._cost.pieces(states, count)
            flags, ns = in_parallel(
                lambda a, b: backend.run(rows, results, a, b), states, pieces, count
            )
            if states >= host().width:
                self._cost.measured(ns)
        if flags & NOT_UNIT:
            self._check(rows[0])
        return self._with_huge_angles(rows, results) if flags & HUGE_ANGLE else flags

    def _shared(self, backend: Backend) -> SharedFunction | None:
        """The function for batches that threads share without Python; None where there is none."""
        if self._shared_of[0] is not backend:
            function = backend.function(host().width) if can_share_batches() else None
            shared = None
            if function is not None:
                shared = SharedFunction(function, self.inputs, self.outputs, self._cost, host())
            self._shared_of = backend, shared
        return self._shared_of[1]

    def _with_huge_angles(self, rows: list[Array], results: list[Array]) -> int:
        """Compute states with angles beyond the range of the compiled sine by NumPy."""
        huge = (np.abs(rows[0]) > ANGLE_LIMIT).any(axis=1)
        huge |= not huge.any()  # an angle that is computed, from a time perhaps: take all states
        few = [np.ascontiguousarray(r[huge]) for r in rows]
        exact = [np.empty((few[0].shape[0], r.shape[1])) for r in results]
        self._plan.plain.run(few, exact, 0, few[0].shape[0])
        for r, f in zip(results, exact, strict=True):
            r[huge] = f
        return 0 if all(np.isfinite(a).all() for a in (*rows, *results)) else NOT_FINITE

    def _diagnose(
        self, rows: list[Array], results: list[Array], checked: NDArray[np.bool_]
    ) -> None:  # fmt: skip
        """Raise StateError for the first number of the ``checked`` states that is not finite."""
        plan = self._plan
        for port, a in zip((*plan.inputs, *plan.outputs), (*rows, *results), strict=True):
            bad = np.argwhere(~np.isfinite(a) & checked[:, None])
            if not bad.size:
                continue
            state, position = (int(i) for i in bad[0])
            largest = max(float(np.abs(row[state]).max(initial=0.0)) for row in rows)
            if any(a is row for row in rows):
                why = "; it must be finite"
            elif largest > 1e100:
                why = f": the inputs are as large as {largest:.3g} and overflow"
            else:
                why = f": {plan.diagnosis.explain_singularity(rows[0][state]) or _SINGULAR}"
            where = f" of state {state}" if a.shape[0] > 1 else ""
            what = plan.diagnosis.explain_position(port, position)
            raise StateError(
                f"{self.name}: {port.name}[{position}]{where} ({what}) is {a[state, position]}{why}"
            )

    # ---- tiers ----

    def _count_use(self, states: int) -> None:
        """Count use; a kernel in demand gets straight-line code."""
        self._calls += 1
        self._states += states
        if (
            self._plan.tiers.upgrade is not None
            and not self._compiling
            and (self._calls >= 8 or self._states >= 512)
        ):
            self._compiling = True
            _promote_later(self)

    def _start_again(self) -> None:
        """Reset the counts of use."""
        self._calls = self._states = 0
        self._compiling = False
        self._answer_by(Calls(self._general, self._general))
        self._native_of = (None, frozenset())

    def promote(self) -> None:
        """Compile the upgrade and switch over to it."""
        upgrade = self._plan.tiers.upgrade
        assert upgrade is not None
        try:
            upgrade.ready()
        except RamifyError:  # the initial tier goes on answering, and reports what matters
            return
        self._backend = upgrade
        self._native(1)
        self._native(2)

    def _native(self, rank: int) -> None:
        """Call the compiled function directly for plain arrays, unless use must still be counted.
        Rank 1: one state, 2: a batch.
        """
        backend, plan = self._backend, self._plan
        if isinstance(backend, StraightPython):
            if rank == 1 and not (plan.diagnosis.quaternions or plan.diagnosis.locks):
                self.call = backend.entry(plan.inputs, plan.outputs, self._general, plan.answer)
            return
        if plan.tiers.upgrade is not None and not self._compiling:
            return
        ranks = self._native_of[1] | {rank} if self._native_of[0] is backend else frozenset({rank})
        if (backend, ranks) == self._native_of:
            return
        self._native_of = backend, ranks
        single = backend.function(1) if 1 in ranks else None
        shared = self._shared(backend) if 2 in ranks else None
        batch = None if shared is None else shared.compute
        if single is not None or batch is not None:
            self._answer_by(
                builtin_calls(
                    single,
                    plan.inputs,
                    plan.outputs,
                    self._general,
                    batch,
                    plan.diagnosis.locks,
                    plan.answer,
                )
            )


_SINGULAR: Final = (
    "the inertia matrix is singular there: some joint moves no mass or is in gimbal lock; see "
    "model.check()"
)
_queue: list[Kernel] = []
"""Kernels that wait for straight-line code; the first is in work."""
_worker: threading.Thread | None = None


def _promote_later(kernel: Kernel) -> None:
    """Hand a kernel to the one background thread, which ends when nothing is left to do."""
    global _worker
    with LOCK:
        _queue.append(kernel)
        if _worker is None:
            _worker = threading.Thread(target=_drain, name="ramify-compiler")
            _worker.start()


def _drain() -> None:
    global _worker
    while True:
        with LOCK:
            if not _queue or not threading.main_thread().is_alive():
                _worker = None
                return
            kernel = _queue[0]
        kernel.promote()
        with LOCK:
            _queue.pop(0)


def _forked() -> None:
    """A child process has no background thread: kernels that waited count their use again."""
    global _worker
    _worker = None
    for kernel in _queue:
        kernel._start_again()
    _queue.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
