"""Derivatives of rollouts, exact for the discrete steps: along a direction (forward), and of a
number that depends on the states along the run (adjoint).

Both work on x = [q, v, z, p]: coordinates, velocities, states of the controller, and parameters;
the counters of y (work, losses) do not act on the motion.
"""

from __future__ import annotations

import ctypes
import math
import threading
from typing import Any, Final, NamedTuple

import numpy as np

from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.core.errors import SimulationError
from ramify.core.forks import LOCK
from ramify.emit.backward import (
    RUN,
    BackwardWriter,
    StepPrograms,
    backward_scratch_doubles,
    stages_needed,
)
from ramify.emit.stepper import Scheme
from ramify.integrate.batch_steps import Batch
from ramify.integrate.integrator import slack
from ramify.integrate.stepping import Stepper, step_function
from ramify.model.configuration import unit_rates
from ramify.plant.field import Field
from ramify.runtime.compile import Compiled
from ramify.runtime.piece_workers import in_parallel
from ramify.runtime.target import host
from ramify.runtime.threads import threads
from ramify.sensitivity.motion_fields import MotionField, TangentField, TangentStepper
from ramify.trace.differentiate import adjoint, tangent
from ramify.trace.interpret import interpret

MEMORY: Final = 64 << 20
"""Bytes of states that the adjoint stores at a time; others are recomputed."""
_FEWEST: Final = 128
"""States that are processed together, if the batch has as many."""


class StepSpan(NamedTuple):
    """Some steps of a rollout: their number, that of the ``first``, the steps between samples, the
    strides of the table, and the times (t, dt, slack) in s.
    """

    steps: int
    first: int
    every: int
    strides: tuple[int, int]
    times: tuple[float, float, float]


class Sensitivities:
    """The derivatives of the steps of a right-hand side under a scheme."""

    def __init__(self, field: Field, scheme: Scheme, project: bool) -> None:
        self.motion, self.scheme, self.project = MotionField(field), scheme, project
        self.forward = Stepper(self.motion, scheme, project)
        closes = project or bool(field.model.layout.balls)
        self.tangents = TangentStepper(TangentField(self.motion, project), scheme, closes)
        finishes = self.motion.finish(project) is not None
        self.needed = stages_needed(scheme, finishes)
        self.recorder = Stepper(self.motion, scheme, project, self.needed)
        self._functions: dict[tuple[int, bool], tuple[Compiled, Any]] = {}
        self._local = threading.local()

    @property
    def size(self) -> int:
        return self.motion.size

    @cached_property
    def programs(self) -> StepPrograms:
        motion, position = self.motion.program, None
        if self.scheme.kick:
            position = self.forward.position
        finish = self.motion.finish(self.project)
        return StepPrograms(
            motion,
            adjoint(motion, (1, 2)),
            position,
            None if position is None else adjoint(position, (1,)),
            None if finish is None else adjoint(finish, (1,)),
        )

    def _function(self, width: int, recorded: bool) -> Any:
        with LOCK:
            key = width, recorded
            if key not in self._functions:
                how = f"{self.motion.fingerprint} {self.project} {recorded}"
                self._functions[key] = step_function(
                    "backward", f"backward {self.scheme!r} {how}", width,
                    lambda: self._text(width, recorded),
                )  # fmt: skip
            return self._functions[key][1]

    def _text(self, width: int, recorded: bool) -> str:
        target = host().with_width(width)
        layout = self.forward.layout
        return BackwardWriter(self.programs, layout, self.scheme, target, recorded).text("backward")

    def _scratch(self, width: int) -> int:
        inputs = self.motion.field.input_size
        size = backward_scratch_doubles(self.forward.layout, self.scheme, width, inputs) + 8
        memory: Array | None = getattr(self._local, "memory", None)
        if memory is None or memory.size < size:
            memory = self._local.memory = np.empty(size)
        return (memory.ctypes.data + 63) // 64 * 64

    def backward(
        self,
        span: StepSpan,
        before: Array,
        table: Array,
        seeds: Array,
        end: Array,
        by_step: Array | None,
    ) -> tuple[Array, Array, int]:
        """The adjoint of some steps: (by the first states, by u in all, flags). before (states,
        rows, size): the states before each step, or what the recorder has written; seeds (states,
        samples, size); end (states, size); by_step (states, steps, input_size): receives the
        derivatives by u of each step.
        """
        states, n, nu = len(end), self.size, self.motion.field.input_size
        start, by_u = np.empty_like(end), np.empty((states, nu))
        run = np.zeros(len(RUN) + 3, dtype=np.int64)
        apart, rows_by_step = (0, 0) if by_step is None else (1, by_step.shape[1])
        run[: len(RUN)] = (
            span.steps, before.shape[1], span.first, span.every, seeds.shape[1], *span.strides,
            apart, rows_by_step,
        )  # fmt: skip
        run[len(RUN) :] = np.array(span.times).view(np.int64)
        by_step_at = 0 if by_step is None else by_step.ctypes.data
        wide, recorded = host().width, before.shape[2] > n

        def part(a: int, b: int) -> int:
            width = wide if b - a >= wide else 1
            inputs = (ctypes.c_void_p * 4)(
                before.ctypes.data + a * before.strides[0],
                table.ctypes.data + 8 * a * span.strides[0],
                seeds.ctypes.data + a * seeds.strides[0],
                end.ctypes.data + 8 * n * a,
            )
            outputs = (ctypes.c_void_p * 3)(
                start.ctypes.data + 8 * n * a,
                by_u.ctypes.data + 8 * nu * a,
                by_step_at + 8 * nu * rows_by_step * a,
            )
            function, scratch = self._function(width, recorded), self._scratch(width)
            return int(function(b - a, inputs, outputs, run.ctypes.data, scratch))

        parts = 1 if states < _FEWEST else min(threads(), states // 64)
        return start, by_u, in_parallel(part, states, parts)[0]


def sensitivities(field: Field, scheme: Scheme, project: bool) -> Sensitivities:
    """The derivatives of the steps; those of earlier calls are reused."""
    compiled = field.prescribed is None and not field.sampled and field.compiles
    if not compiled or field.rounds:
        raise SimulationError(
            "a rollout has derivatives where all of it is compiled: without functions of Python, "
            "sampled controllers, prescribed motions and sensors that round, of robots that are "
            "not too large"
        )
    key = ("sensitivities", scheme, project)
    return field.memo.remember(key, lambda: Sensitivities(field, scheme, project))


class StepSequence(Batch):
    """A batch whose steps can be differentiated."""

    @property
    def sensitivities(self) -> Sensitivities:
        return sensitivities(self.field, self.scheme, self.project)

    @property
    def samples(self) -> int:
        return self.steps // self.every if self.every else 1

    @property
    def start(self) -> Array:
        return np.ascontiguousarray(self.y[:, self.sensitivities.motion.places_in_y])

    def _forces(self, a: int, done: int) -> Array:
        """The table from state a and a step on."""
        flat = self.table.reshape(-1)
        return flat[a * self.strides[0] + done * self.strides[1] :]

    # ---- against weights ----

    def adjoint(
        self, weights: Array, apart: bool, memory: int = MEMORY
    ) -> tuple[Array, Array, Array]:
        """(by the start (states, size), by u of all steps (states, input_size), by u of each step
        (states or 1, steps, input_size) where ``apart``), for weights (states, samples, size) of
        the samples.

        Where the table is shared by the states, the derivatives by u of each step are summed.
        """
        derivatives = self.sensitivities
        states, n, nu = len(self.y), derivatives.size, self.field.input_size
        first, totals = np.empty((states, n)), np.empty((states, nu))
        shared = self.strides[0] == 0
        by_step = np.zeros((1 if shared else states, self.steps if apart else 0, nu))
        most, recorded = self._batches(memory)
        for a in range(0, states, most):
            b = min(a + most, states)
            of_part = np.empty((b - a, self.steps, nu)) if apart else None
            first[a:b], totals[a:b] = self._adjoint_of(
                a, b, weights[a:b], of_part, memory, recorded
            )
            if of_part is not None:
                if shared:
                    by_step[0] += of_part.sum(axis=0)
                else:
                    by_step[a:b] = of_part
        return first, totals, by_step

    def _batches(self, memory: int) -> tuple[int, bool]:
        """The number of states per batch, and whether the rates of their stages are recorded: if
        whole runs of enough states for all threads then fit into the memory.
        """
        derivatives, states = self.sensitivities, len(self.y)
        row = 8 * derivatives.size * (self.steps + 2)
        parts = max(1, -(-states * row * (1 + derivatives.needed) // memory))
        few = max(1, -(-states // parts))
        if derivatives.needed and few >= min(states, 16 if threads() == 1 else _FEWEST):
            return few, True
        return max(_FEWEST, memory // row), False

    def _adjoint_of(
        self, a: int, b: int, weights: Array, by_step: Array | None, memory: int, recorded: bool
    ) -> tuple[Array, Array]:
        derivatives, states = self.sensitivities, b - a
        n, dt = derivatives.size, self.dt
        size = n * (1 + derivatives.needed) if recorded else n
        stepper = derivatives.recorder if recorded else derivatives.forward
        room = max(1, memory // (8 * size * states))
        length = max(1, self.steps if self.steps <= room else math.isqrt(self.steps))
        marks = [(at, min(length, self.steps - at)) for at in range(0, self.steps, length)]
        x = self.start[a:b]
        saved = [x][: len(marks)]
        for at, count in marks[:-1]:
            x, _ = derivatives.forward.run(
                x, self._forces(a, at), count, dt, self.t0 + at * dt, strides=self.strides
            )
            saved.append(x)
        seeds = np.ascontiguousarray(weights) if self.every else np.zeros((states, 0, n))
        bar = np.zeros((states, n)) if self.every else np.ascontiguousarray(weights[:, 0])
        total = np.zeros((states, self.field.input_size))
        buffer = np.empty((states * (length + 1) + 1, size))
        for (at, count), x in zip(reversed(marks), reversed(saved), strict=True):
            before = buffer[: states * (count + 1)].reshape(states, count + 1, size)
            before[:, 0, :n] = x
            after = buffer[1 : states * (count + 1) + 1].reshape(states, count + 1, size)
            t, forces = self.t0 + at * dt, self._forces(a, at)
            again = count if recorded else count - 1
            if again:
                stepper.run(x, forces, again, dt, t, strides=self.strides, history=after, every=1)
            by_these_steps = None if by_step is None else by_step[:, at : at + count]
            part = (
                None
                if by_these_steps is None
                else np.empty((states, count, by_these_steps.shape[-1]))
            )
            times = t, dt, slack(t, t + count * dt)
            span = StepSpan(count, at, self.every, self.strides, times)
            bar, by_u, flags = derivatives.backward(span, before, forces, seeds, bar, part)
            if by_these_steps is not None:
                by_these_steps[:] = part
            total += by_u
            if flags:
                _refuse(bar)
        return bar, total

    # ---- along directions ----

    def tangent(self, dx: Array, du: Array, strides: tuple[int, int]) -> tuple[Array, Array]:
        """(x, dx), each (states, samples, size): the samples and their rates along directions dx
        (states, size) of the start and du of the table, which has these strides.
        """
        derivatives = self.sensitivities
        n, states = derivatives.size, len(self.y)
        table, both = self._doubled(du, strides)
        x = np.concatenate([self.start, dx], axis=1)
        history = np.empty((states, self.samples if self.every else 0, 2 * n))
        last, flags = derivatives.tangents.run(
            x, table, self.steps, self.dt, self.t0, strides=both, history=history,
            every=self.every,
        )  # fmt: skip
        samples = history if self.every else last[:, None]
        if flags:
            _refuse(samples)
        return samples[..., :n], samples[..., n:]

    def _doubled(self, du: Array, strides: tuple[int, int]) -> tuple[Array, tuple[int, int]]:
        """A table of [u, du] from two with their own strides."""
        n = self.field.input_size
        states = len(self.y) if self.strides[0] or strides[0] else 1
        steps = self.steps if self.strides[1] or strides[1] else 1
        out = np.empty((states, steps, 2 * n))
        for k, (table, (by_state, by_step)) in enumerate(
            ((self.table, self.strides), (du, strides))
        ):
            shape = (states if by_state else 1, steps if by_step else 1, n)
            out[..., k * n : (k + 1) * n] = np.reshape(table, shape)
        return out, (2 * n * steps * (states > 1), 2 * n * (steps > 1))

    # ---- the start ----

    def along_start(self, dx: Array) -> Array:
        """The directions dx (states, size) with those of z that follow."""
        start = self.sensitivities.motion.start
        return dx if start is None else interpret(tangent(start, (0,)), [self.start, dx])[0]

    def against_start(self, bar: Array) -> Array:
        """Derivatives by the start (states, size), with those by z passed on to q, v and p."""
        start = self.sensitivities.motion.start
        return bar if start is None else interpret(adjoint(start, (0,)), [self.start, bar])[0]

    # ---- tangent space ----

    def units(self, q: Array) -> tuple[Array, Array]:
        """dq (..., nv, nq) of each unit velocity at q, and the reverse (…, nv, nq): dq times its
        transpose is the velocity.
        """
        units = unit_rates(self.field.model, q)
        return units, units / (units * units).sum(axis=-1, keepdims=True)


def _refuse(values: Array) -> None:
    if not np.isfinite(values).all():
        bad = int(np.argwhere(~np.isfinite(values))[0][0])
        raise SimulationError(
            f"the rollout has no finite derivative for state {bad}: it failed, grew beyond all "
            "bounds, or a square root is singular there"
        )
