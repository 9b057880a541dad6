"""Compiled fixed steps of a right-hand side: one text for rollouts, runs and studies."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from struct import Struct
from typing import Any, Final

import numpy as np

from ramify.core.arrays import Array, address
from ramify.core.cached import Memo, cached_property
from ramify.core.forks import LOCK
from ramify.emit.hard_stepper import SolvedStepWriter
from ramify.emit.stepper import Scheme, StateLayout, StepWriter, step_scratch_doubles
from ramify.integrate.integrator import slack
from ramify.model.configuration import coordinate_rates
from ramify.plant.field import Stepped
from ramify.plant.hard_step import HardStep
from ramify.plant.plant import Plant
from ramify.runtime.compile import Compiled, compiled
from ramify.runtime.piece_workers import in_parallel
from ramify.runtime.target import host
from ramify.runtime.threads import threads
from ramify.trace.program import Port, Program, trace

_RUN: Final = Struct("5q3d")
"""steps, every, samples, strides of the table by state and by step; t0, dt, slack."""


def step_function(
    name: str, key: str, width: int, text: Callable[[], str]
) -> tuple[Compiled, Callable[..., int]]:
    """A compiled (states, inputs, outputs, settings, scratch) -> flags, and what keeps it alive."""
    code = compiled(text, name, host().with_width(width), key)
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p] * 4)
    return code, kind(code.address)


class _Memory:
    """The arguments of a thread for the steps: addresses, and scratch memory aligned to
    64 bytes.
    """

    def __init__(self, doubles: int) -> None:
        self.inputs, self.outputs = (ctypes.c_void_p * 2)(), (ctypes.c_void_p * 2)()
        self._memory = np.empty(doubles + 8)
        self.scratch = (self._memory.ctypes.data + 63) // 64 * 64


class Stepper:
    """The compiled steps of a right-hand side under a scheme; ``project``: loops are closed after
    each; ``recorded``: the number of stages whose rates follow the state of a step in a history.
    """

    def __init__(
        self, field: Stepped, scheme: Scheme, project: bool = False, recorded: int = 0
    ) -> None:
        self.field, self.scheme, self.project, self.recorded = field, scheme, project, recorded
        self._functions: dict[int, tuple[Compiled, Any]] = {}
        self._local = threading.local()

    @cached_property
    def layout(self) -> StateLayout:
        model = self.field.model
        balls, coordinates = tuple(i for i, _ in model.layout.balls), tuple(range(model.nq))
        return StateLayout(self.field.size, balls, coordinates, self.field.rising)

    @cached_property
    def position(self) -> Program:
        """y -> rates of the coordinates."""
        of_q, of_v, _, _ = self.field.state_slices
        model = self.field.model
        ports = (Port("t", (1,)), Port("y", (self.field.size,)))
        return trace(
            "position",
            lambda t, y: [coordinate_rates(model, y[of_q], y[of_v])],
            ports,
            (Port("rates", (model.nq,)),),
        )

    def _function(self, width: int) -> Any:
        function = self._functions.get(width)
        if function is None:
            with LOCK:
                function = self._functions.get(width)
                if function is not None:  # compiled by another thread; replacing frees it
                    return function[1]
                how = f"{self.field.fingerprint} {self.project} {self.recorded}"
                key = f"steps {self.scheme!r} {how}"
                function = step_function("steps", key, width, lambda: self._text(width))
                self._functions[width] = function
        return function[1]

    def _doubles(self, width: int) -> int:
        """The size of the scratch memory."""
        return step_scratch_doubles(self.layout, self.scheme, width)

    def _text(self, width: int) -> str:
        position = self.position if self.scheme.kick else None
        closing = self.field.projection if self.project else None
        target = host().with_width(width)
        return StepWriter(
            self.field.program, position, self.layout, self.scheme, target, closing, self.recorded
        ).text("steps")

    def _memory(self, width: int) -> _Memory:
        """Memory of this thread."""
        memories: dict[int, _Memory] | None = getattr(self._local, "memory", None)
        if memories is None:
            memories = self._local.memory = {}
        memory = memories.get(width)
        if memory is None:
            memory = memories[width] = _Memory(self._doubles(width))
        return memory

    def run(
        self,
        y: Array,
        table: Array,
        steps: int,
        dt: float,
        t0: float = 0.0,
        *,
        strides: tuple[int, int] = (0, 0),
        history: Array | None = None,
        every: int = 0,
    ) -> tuple[Array, int]:
        """Advance rows of y (states, size); returns the last rows and the kernel's flags.

        table: forces u from outside, read at state * strides[0] + step * strides[1]; history
        (states, samples, size) takes a row after every ``every`` steps, with the rates of recorded
        stages behind it. All arrays are C-contiguous.
        """
        states, size = y.shape
        assert size == self.field.size  # the code writes this many numbers
        if not (states and steps):
            return y.copy(), 0
        last = np.empty_like(y)
        samples = 0 if history is None else history.shape[1]
        assert history is None or history.shape[2] == size * (1 + self.recorded)
        times = t0, dt, slack(t0, t0 + steps * dt)
        settings = _RUN.pack(steps, every, samples, *strides, *times)
        begin, forces, end = address(y), address(table), address(last)
        rows = address(history) if history is not None and samples else 0
        wide = host().width

        def part(start: int, stop: int) -> int:
            width = wide if stop - start >= wide else 1
            memory = self._memory(width)
            memory.inputs[0] = begin + 8 * size * start
            memory.inputs[1] = forces + 8 * strides[0] * start
            memory.outputs[0] = end + 8 * size * start
            memory.outputs[1] = rows + 8 * samples * size * (1 + self.recorded) * start
            function = self._function(width)
            pointers = memory.inputs, memory.outputs, settings, memory.scratch
            return int(function(stop - start, *pointers))

        parts = 1 if states < 128 else min(threads(), states // 64)
        if parts == 1:
            return last, part(0, states)
        return last, in_parallel(part, states, parts)[0]

    def rates_before_closing(self, y: Array, rows: Array, dt: float) -> Array:
        """The velocities (N, nv) after a step from each of y (N, size), before its loops were
        closed; ``rows`` (N, …) of a history in which all stages are recorded.
        """
        of_v, size, stages = self.field.state_slices[1], self.field.size, self.scheme.stages
        slopes = rows[:, size:].reshape(len(rows), stages, size)[..., of_v]
        after: Array = y[:, of_v] + dt * np.einsum("s,nsv->nv", np.array(self.scheme.b), slopes)
        return after


class HardStepper(Stepper):
    """The compiled steps of a right-hand side with hard contact."""

    def _text(self, width: int) -> str:
        assert isinstance(self.field, Plant)
        statements = HardStep(self.field).statements()
        return SolvedStepWriter(statements, self.layout, host().with_width(width)).text("steps")

    def _doubles(self, width: int) -> int:
        self._function(width)
        place = self._functions[width][0].function("steps_doubles")
        return int(ctypes.c_int64.from_address(place).value)


_steppers: Final = Memo(64)


def stepper(field: Stepped, scheme: Scheme, project: bool = False, recorded: int = 0) -> Stepper:
    """The stepper of a field and a scheme; those of earlier calls are reused."""
    key = (field.fingerprint, id(scheme), project, recorded)  # the stepper keeps its scheme alive
    kind = HardStepper if isinstance(field, Plant) and field.hard is not None else Stepper
    return _steppers.remember(key, lambda: kind(field, scheme, project, recorded))
