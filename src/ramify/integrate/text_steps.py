"""Fixed steps with Python between them: for functions of the user, and for very large robots."""

from __future__ import annotations

import numpy as np

from ramify.core.arrays import Array
from ramify.emit.stepper import Scheme
from ramify.integrate.integrator import RatesLike, runge_kutta_step
from ramify.integrate.stepping import stepper
from ramify.model.configuration import coordinate_rates
from ramify.plant.field import Field
from ramify.plant.hard_step import HardStep
from ramify.plant.kernel_parts import columns, controller_output, rows, unit


def text_step(
    field: Field, scheme: Scheme, rates: RatesLike, t: float, y: Array, u: Array, dt: float
) -> Array:
    """y (..., size) after one step under forces and wrenches u (..., input_size) from outside;
    rates: y' of explicit schemes.
    """
    of_q, of_v, _, _ = field.state_slices
    with np.errstate(all="ignore"):
        if scheme.implicit:
            end = _implicit(field, scheme, t, y, u, dt)
            return unit(field.model, _rising(field, scheme, y, end))
        moved = _rising(field, scheme, y, runge_kutta_step(rates, scheme, t, y, dt))
        if scheme.kick:
            ends = columns(y[..., of_q]), columns(moved[..., of_v])
            turning = rows(coordinate_rates(field.model, *ends), y.shape[:-1])
            moved[..., of_q] = y[..., of_q] + dt * turning
        return unit(field.model, moved)


def _rising(field: Field, scheme: Scheme, y: Array, moved: Array) -> Array:
    """A state after a step in which nothing that only rises has fallen."""
    rising = list(field.rising)
    if rising and scheme.may_fall:
        moved[..., rising] = np.maximum(moved[..., rising], y[..., rising])
    return moved


def _implicit(field: Field, scheme: Scheme, t: float, y: Array, u: Array, dt: float) -> Array:
    field = field if field.implicit else field.implicitly
    of_q, of_v, of_z, _ = field.state_slices
    if not field.traceable and field.bare.compiles and not field.controlled:
        forces = np.array(u)  # all but the user's function is compiled
        if not field.sampled:
            tau = controller_output(field, t, y[..., of_q], y[..., of_v], y[..., of_z])[0]
            forces[..., : field.model.nv] += tau
        states, inputs = (np.atleast_2d(np.ascontiguousarray(x)) for x in (y, forces))
        steps = stepper(field.bare, scheme)
        end, _ = steps.run(states, inputs, 1, dt, t, strides=(field.input_size, 0))
        return end.reshape(y.shape)

    if field.hard is not None:
        return rows(HardStep(field).text(t, columns(y), columns(u), dt), y.shape[:-1])

    def rates(now: float, at: Array, h: float) -> Array:
        return rows(field.text(now, columns(at), columns(u), h), at.shape[:-1])

    return runge_kutta_step(rates, scheme, t, y, dt)
