"""The derivatives of a rollout, in the arrays of the user interface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, numbers, real, whole
from ramify.core.errors import SimulationError, StateError
from ramify.core.names import mapping_of
from ramify.dynamics.parameters import Parameter
from ramify.plant.varied_field import VariedField
from ramify.sensitivity.sensitivity import StepSequence


class Gradient(NamedTuple):
    """Derivatives of a number: by q0 (..., nv), in the tangent space; by v0 (..., nv); by tau, of
    the shape of tau, (..., nv) where none was given; by the parameters, each (...) or (..., size).
    """

    q0: Array
    v0: Array
    tau: Array
    parameters: Mapping[str, Array]


class RolloutTangent(NamedTuple):
    """Rates of the samples along a direction: of q, in the tangent space, and of v, each (...,
    samples, nv).
    """

    q: Array
    v: Array


class Sensitivity(NamedTuple):
    """Derivatives of the last state x = [q, v]: by the first one (..., 2 nv, 2 nv), by joint forces
    that are constant during the whole run (..., 2 nv, nv), by each parameter (..., 2 nv, size).
    """

    x0: Array
    tau: Array
    parameters: Mapping[str, Array]


class DifferentiableSteps(NamedTuple):
    """A rollout to be differentiated: its steps, the shapes of its batch and of its tau."""

    steps: StepSequence
    lead: tuple[int, ...]
    tau: tuple[int, ...] | None

    @property
    def _varied(self) -> tuple[Parameter, ...]:
        field = self.steps.field
        return field.varied if isinstance(field, VariedField) else ()

    def _by_parameter(self, columns: Array, shape: tuple[int, ...]) -> dict[str, Array]:
        """Columns (..., p) of all parameters by name, the batch in its own shape; a parameter of
        one number has no axis.
        """
        out = {}
        for p, place in self._places():
            part = columns[..., place].reshape(*shape, p.size)
            out[p.name] = part[..., 0] if p.size == 1 else part
        return out

    def _places(self, start: int = 0) -> Iterator[tuple[Parameter, slice]]:
        """Each parameter and its columns, from ``start`` on."""
        for p in self._varied:
            yield p, slice(start, start + p.size)
            start += p.size

    def _weights(self, name: str, value: ArrayLike | None) -> Array:
        """Derivatives by every sample as (states, samples, nv); zeros for None."""
        nv, samples = self.steps.field.model.nv, self.steps.samples
        states = len(self.steps.y)
        if value is None:
            return np.zeros((states, samples, nv))
        a = numbers(name, value, nv, self.steps.field.model.name)
        of_samples = (samples,) if self.steps.every else ()
        if of_samples and a.shape[-2:-1] != of_samples:
            raise StateError(
                f"{name} has shape {a.shape}; it must be (..., {samples}, {nv}), a row for every "
                "sample: zeros where L does not depend on it"
            )
        return _spread(name, a, (*self.lead, *of_samples, nv)).reshape(states, samples, nv)

    def gradient(
        self, q: Array, by_q: ArrayLike | None, by_v: ArrayLike | None, memory: int
    ) -> Gradient:
        """See Rollout.gradient; q (..., samples, nq): of the samples."""
        steps = self.steps
        model, (of_q, of_v, _, _) = steps.field.model, steps.field.state_slices
        weights_q, weights_v = self._weights("q", by_q), self._weights("v", by_v)
        memory = whole("memory", memory, 1)
        weights = np.zeros((*weights_q.shape[:2], steps.sensitivities.size))
        rows = q.reshape(*weights_q.shape[:2], model.nq)
        _refuse_failed(rows)
        _, dual = steps.units(rows)
        weights[..., of_q] = np.einsum("nsk,nski->nsi", weights_q, dual)
        weights[..., of_v] = weights_v
        apart = self.tau is not None and len(self.tau) > 1
        first, total, by_step = steps.adjoint(weights, apart, memory)
        total, by_step = total[:, : model.nv], by_step[..., : model.nv]
        first = steps.against_start(first)
        units, _ = steps.units(steps.start[:, of_q])
        q0 = np.einsum("ni,nki->nk", first[:, of_q], units).reshape(*self.lead, model.nv)
        if self.tau is None:
            tau = total.reshape(*self.lead, model.nv)
        elif not apart:
            tau = total.sum(axis=0)
        else:
            lead = self.lead if steps.strides[0] else (1,) * len(self.lead)
            full = by_step.reshape(*lead, *by_step.shape[1:])
            tau = _summed_to(full, self.tau).reshape(self.tau)
        p = first[:, len(steps.field.model.coordinates) + model.nv + steps.field.states :]
        return Gradient(
            q0, first[:, of_v].reshape(*self.lead, model.nv), tau, self._by_parameter(p, self.lead)
        )

    def tangent(
        self,
        q0: ArrayLike | None,
        v0: ArrayLike | None,
        tau: ArrayLike | None,
        parameters: Mapping[str, ArrayLike] | None,
    ) -> tuple[Array, Array]:
        """See Rollout.tangent."""
        steps = self.steps
        model, (of_q, of_v, _, _) = steps.field.model, steps.field.state_slices
        states = len(steps.y)
        dx = np.zeros((states, steps.sensitivities.size))
        units, _ = steps.units(steps.start[:, of_q])
        moved, faster = (
            _spread(
                name,
                np.zeros(model.nv) if x is None else numbers(name, x, model.nv, model.name),
                (*self.lead, model.nv),
            ).reshape(states, model.nv)
            for name, x in (("q0", q0), ("v0", v0))
        )
        dx[:, of_q] = np.einsum("nk,nki->ni", moved, units)
        dx[:, of_v] = faster
        start = dx.shape[1] - sum(p.size for p in self._varied)
        names = {p.name for p in self._varied}
        if parameters is not None:
            parameters = mapping_of("parameters", parameters)
        for name in parameters or {}:
            if name not in names:
                raise StateError(f"{name!r} is not a parameter of this rollout")
        for p, place in self._places(start):
            if parameters is not None and p.name in parameters:
                a = real(p.name, parameters[p.name])
                a = numbers(p.name, a[..., None] if p.size == 1 else a, p.size, model.name)
                a = _spread(p.name, a, (*self.lead, p.size))
                dx[:, place] = a.reshape(states, p.size)
        du, strides = np.zeros(steps.field.input_size), (0, 0)
        if tau is not None:
            direction = numbers("tau", tau, model.nv, model.name)
            wrenches = np.zeros((*direction.shape[:-1], steps.field.input_size - model.nv))
            du, strides = self._table(np.concatenate([direction, wrenches], axis=-1))
        x, rates = steps.tangent(steps.along_start(dx), du, strides)
        _, dual = steps.units(x[..., of_q])
        dq = np.einsum("nsi,nski->nsk", rates[..., of_q], dual)
        shape = (*self.lead, *((steps.samples,) if steps.every else ()), model.nv)
        return dq.reshape(shape), rates[..., of_v].reshape(shape)

    def _table(self, tau: Array) -> tuple[Array, tuple[int, int]]:
        """A direction of tau with its strides: of all steps, of each, or of each state and step."""
        n, steps = self.steps.field.input_size, self.steps.steps
        if tau.ndim == 1:
            return tau, (0, 0)
        if tau.shape == (steps, n):
            return np.ascontiguousarray(tau), (0, n)
        rows = 1 if tau.shape[-2] == 1 else steps  # one row holds for the whole run
        full = _spread("tau", tau, (*self.lead, rows, n)).reshape(len(self.steps.y), rows, n)
        return np.ascontiguousarray(full), (rows * n, n if rows > 1 else 0)

    def sensitivity(self) -> Sensitivity:
        """See Rollout.sensitivity."""
        steps, model = self.steps, self.steps.field.model
        n, states = model.nv, len(steps.y)
        many = 3 * n + sum(p.size for p in self._varied)
        table = np.repeat(steps.table, many, axis=0) if steps.strides[0] else steps.table
        wide = type(steps)(
            steps.field, steps.scheme, steps.project, np.repeat(steps.y, many, axis=0), table,
            steps.strides, steps.steps, steps.dt, steps.t0, 0,
        )  # fmt: skip
        eye = np.eye(many)
        whole = DifferentiableSteps(wide, (states, many), None)
        directions = self._by_parameter(eye[None, :, 3 * n :], (1, many))
        tau = eye[:, None, 2 * n : 3 * n]
        dq, dv = whole.tangent(eye[:, :n], eye[:, n : 2 * n], tau, directions or None)
        derivatives = np.swapaxes(np.concatenate([dq, dv], axis=-1), -1, -2)
        derivatives = derivatives.reshape(*self.lead, 2 * n, many)
        parts = {p.name: derivatives[..., place] for p, place in self._places(3 * n)}
        return Sensitivity(derivatives[..., : 2 * n], derivatives[..., 2 * n : 3 * n], parts)


def _spread(name: str, a: Array, shape: tuple[int, ...]) -> Array:
    """Broadcast to a shape; StateError where it does not fit."""
    try:
        return np.broadcast_to(a, shape)
    except ValueError:
        raise StateError(f"{name} has shape {a.shape}; it must be {shape}") from None


def _summed_to(a: Array, shape: tuple[int, ...]) -> Array:
    """Summed over the axes that a broadcast from ``shape`` has added or widened."""
    a = a.sum(axis=tuple(range(a.ndim - len(shape))))
    wide = tuple(i for i, n in enumerate(shape) if n == 1 and a.shape[i] > 1)
    return a.sum(axis=wide, keepdims=True) if wide else a


def _refuse_failed(rows: Array) -> None:
    if not np.isfinite(rows).all():
        bad = int(np.argwhere(~np.isfinite(rows))[0][0])
        raise SimulationError(f"state {bad} of the rollout failed, so it has no derivative")
