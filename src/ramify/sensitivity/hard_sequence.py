"""Derivatives of rollouts with hard contact: step by step, with the modes that each step had.

At a switch of modes (a foot that lands, lifts off or begins to slide) a step has two derivatives;
given is that of the modes it ended with.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.core.errors import SimulationError
from ramify.integrate.stepping import stepper
from ramify.plant.field import Field
from ramify.plant.hard_derivative import HardDerivative
from ramify.runtime.compiled_program import CompiledProgram
from ramify.sensitivity.motion_fields import MotionField
from ramify.sensitivity.sensitivity import MEMORY, StepSequence
from ramify.trace.differentiate import adjoint, tangent


class HardSensitivities:
    """The derivatives of the hard steps of a field, compiled."""

    def __init__(self, field: Field) -> None:
        if field.sampled or not field.compiles:
            raise SimulationError(
                "a rollout has derivatives where all of it is compiled: without functions of "
                "Python and sampled controllers, of robots that are not too large"
            )
        self.field, self.motion, self.text = field, MotionField(field), HardDerivative(field)

    @property
    def size(self) -> int:
        return self.text.size

    @cached_property
    def forward(self) -> CompiledProgram:
        key = f"hard tangent {self.field.fingerprint}"
        return CompiledProgram("hard_tangent", lambda: tangent(self.text.program, (1, 2)), key)

    @cached_property
    def backward(self) -> CompiledProgram:
        key = f"hard adjoint {self.field.fingerprint}"
        return CompiledProgram("hard_adjoint", lambda: adjoint(self.text.program, (1, 2)), key)


class HardStepSequence(StepSequence):
    """A rollout with hard contact that can be differentiated."""

    @property
    def sensitivities(self) -> Any:
        return self.field.memo.remember("hard derivatives", lambda: HardSensitivities(self.field))

    def _states(self) -> Array:
        """y (states, steps + 1, size) before the first step and after each."""
        history = np.empty((len(self.y), self.steps, self.field.size))
        steps = stepper(self.field, self.scheme, self.project)
        steps.run(
            np.ascontiguousarray(self.y), np.ascontiguousarray(self.table), self.steps, self.dt,
            self.t0, strides=self.strides, history=history, every=1,
        )  # fmt: skip
        return np.concatenate([self.y[:, None], history], axis=1)

    def _inputs(self, step: int, y: Array) -> list[Array]:
        """The inputs of the differentiable step but the directions, for all states."""
        field, slots = self.field, self.field.hard_slots
        assert slots is not None
        states, n = len(y), self.sensitivities.size
        u = np.broadcast_to(
            _row(self.table, self.strides, step, states), (states, field.input_size)
        )
        times = np.broadcast_to([self.t0 + step * self.dt, self.dt], (states, 2))
        recorded = y[:, step + 1, field.of_hard]
        x = y[:, step, :n]
        return [
            times, x, u, x, u, y[:, step + 1, field.state_slices[1]], recorded[:, : slots.rows],
            recorded[:, slots.rows : slots.rows + slots.contact.size],
        ]  # fmt: skip

    def tangent(self, dx: Array, du: Array, strides: tuple[int, int]) -> tuple[Array, Array]:
        y, n = self._states(), self.sensitivities.size
        samples, rates = [], []
        for k in range(self.steps):
            along = np.broadcast_to(_row(du, strides, k, len(y)), (len(y), self.field.input_size))
            (dx,) = self._rows(self.sensitivities.forward, [*self._inputs(k, y), dx, along])
            if (self.every and (k + 1) % self.every == 0) or (
                not self.every and k + 1 == self.steps
            ):
                samples.append(y[:, k + 1, :n])
                rates.append(dx)
        return np.stack(samples, axis=1), np.stack(rates, axis=1)

    def adjoint(
        self, weights: Array, apart: bool, memory: int = MEMORY
    ) -> tuple[Array, Array, Array]:
        y, n, nu = self._states(), self.sensitivities.size, self.field.input_size
        shared = self.strides[0] == 0
        by_step = np.zeros((1 if shared else len(y), self.steps if apart else 0, nu))
        bar, total = np.zeros((len(y), n)), np.zeros((len(y), nu))
        for k in reversed(range(self.steps)):
            if self.every and (k + 1) % self.every == 0:
                bar = bar + weights[:, (k + 1) // self.every - 1]
            elif not self.every and k + 1 == self.steps:
                bar = bar + weights[:, 0]
            bar, by_u = self._rows(self.sensitivities.backward, [*self._inputs(k, y), bar])
            total += by_u
            if apart:
                by_step[:, k] += by_u.sum(axis=0) if shared else by_u
        return bar, total, by_step

    def _rows(self, code: CompiledProgram, inputs: list[Array]) -> tuple[Array, ...]:
        return tuple(code.rows([np.ascontiguousarray(x) for x in inputs]))


def _row(table: Array, strides: tuple[int, int], step: int, states: int) -> Array:
    """The row of a table at a step, for each state or for all."""
    by_state, by_step = strides
    flat = table.reshape(-1)
    if not by_state:
        n = by_step or flat.size
        return flat[step * by_step : step * by_step + n]
    n = by_step or by_state
    starts = np.arange(states) * by_state + step * by_step
    return flat[starts[:, None] + np.arange(n)]
