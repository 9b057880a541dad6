"""Inverse and forward dynamics with the machine: passive forces, stops, limits of the drives;
and the derivatives of all that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, flag, real
from ramify.core.errors import LoopError, StateError
from ramify.drives.actuators import effort_ranges
from ramify.drives.machine_forces import machine_derivatives, machine_dynamics, passive_forces
from ramify.kernels import derivative_kernels, queries
from ramify.kernels.make import kernel
from ramify.loops import closed_dynamics as closed
from ramify.model.robot import Robot
from ramify.plant.pressed_stops import warn_of_stop_forces
from ramify.plant.varied_passive import varied_passive_derivatives, varied_passive_forces

Parameters = Mapping[str, ArrayLike] | None
Wrenches = Mapping[str, ArrayLike] | None
INVERSE: Final = "inverse_dynamics"
FORWARD: Final = "forward_dynamics"


class Acting(NamedTuple):
    """Which forces act: ``passive``: all passive forces but those of stops; ``stops``; ``efforts``:
    the limits of the drives hold.
    """

    passive: bool
    stops: bool
    efforts: bool

    @property
    def forces(self) -> bool:
        """Whether passive forces or stops act."""
        return self.passive or self.stops


def acting(passive: object, stops: object, efforts: object) -> Acting:
    """The switches, checked; stops None means the value of passive."""
    beside = flag("passive", passive)
    return Acting(
        beside, beside if stops is None else flag("stops", stops), flag("efforts", efforts)
    )


# ---- forces and accelerations ----


def machine_inverse_dynamics(
    model: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, wrenches: Wrenches,
    multipliers: bool, how: Acting, parameters: Parameters,
) -> Any:  # fmt: skip
    """See Model.inverse_dynamics."""
    multipliers = flag("multipliers", multipliers)
    if multipliers and how.efforts:
        raise StateError(
            f"{INVERSE}: with efforts=True tau is what the drives can give, which need not be what "
            "the motion takes; its multipliers are those of efforts=False"
        )
    answer = _inverse(model, q, v, a, wrenches, multipliers, how, parameters)
    if how.stops:
        warn_of_stop_forces(model, q, v)
    return np.clip(answer, *effort_ranges(model)) if how.efforts else answer


def _inverse(
    model: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, wrenches: Wrenches,
    multipliers: bool, how: Acting, parameters: Parameters,
) -> Any:  # fmt: skip
    if not how.forces:
        return _rigid(model, INVERSE, wrenches, multipliers, parameters, q, v, a)
    if model.loops or multipliers:
        if parameters is not None:
            raise LoopError(
                f"{model.name} has loops: {INVERSE} takes passive=True or parameters, not both; "
                "rf.with_parameters gives a model with other constants"
            )
        beside = passive_forces(model, q, v, how.stops, how.passive).total
        pair = closed.closed_inverse_dynamics(closed.with_loops(model), q, v, a, wrenches, beside)
        return pair if multipliers else pair[0]
    if wrenches is None and parameters is None:
        whole = machine_dynamics(model, INVERSE, None, how.stops, how.passive)
        if whole is not None:
            return whole.call(q, v, a)
    beside, parameters = _beside(model, q, v, how, parameters)
    return _rigid(model, INVERSE, wrenches, False, parameters, q, v, a) - beside


def machine_forward_dynamics(
    model: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike, wrenches: Wrenches,
    multipliers: bool, how: Acting, parameters: Parameters,
) -> Any:  # fmt: skip
    """See Model.forward_dynamics."""
    multipliers = flag("multipliers", multipliers)
    if how.efforts:
        tau = np.clip(real("tau", tau), *effort_ranges(model))
    if not how.forces:
        return _rigid(model, FORWARD, wrenches, multipliers, parameters, q, v, tau)
    whole = None
    if not multipliers and wrenches is None and parameters is None:
        whole = machine_dynamics(model, FORWARD, None, how.stops, how.passive)
    if whole is not None:
        answer = whole.call(q, v, tau)
    else:
        beside, parameters = _beside(model, q, v, how, parameters)
        tau = real("tau", tau) + beside
        answer = _rigid(model, FORWARD, wrenches, multipliers, parameters, q, v, tau)
    if how.stops:
        warn_of_stop_forces(model, q, v)
    return answer


def _beside(
    model: Robot, q: ArrayLike, v: ArrayLike, how: Acting, parameters: Parameters
) -> tuple[Array, Parameters]:
    """Passive forces (..., nv) under parameters, and the parameters of the rigid bodies."""
    if parameters is None:
        return passive_forces(model, q, v, how.stops, how.passive).total, None
    beside, rigid = varied_passive_forces(model, q, v, parameters, how.stops, how.passive)
    return beside, rigid or None


_CLOSED: Final[Mapping[tuple[str, bool], Any]] = {
    (INVERSE, True): closed.closed_inverse_dynamics,
    (INVERSE, False): closed.closed_forces,
    (FORWARD, True): closed.closed_forward_dynamics,
    (FORWARD, False): closed.closed_accelerations,
}
"""By algorithm and whether multipliers are wanted."""


def _rigid(
    model: Robot, name: str, wrenches: Wrenches, multipliers: bool, parameters: Parameters,
    q: ArrayLike, v: ArrayLike, x: ArrayLike,
) -> Any:  # fmt: skip
    """Inverse or forward dynamics of the bodies alone, by accelerations or forces x."""
    if model.loops or multipliers:
        closed.with_loops(model)
        if parameters is None:
            return _CLOSED[name, multipliers](model, q, v, x, wrenches)
        if name == INVERSE:
            closed.closed_inverse_dynamics(model, q, v, x, wrenches)  # the motion is checked
        else:
            closed.refuse_open_postures(model, q)
    inputs = [q, v, x]
    if wrenches is not None:
        name += "_wrenches"
        inputs.append(queries.applied_wrenches(model, wrenches, q))
    if parameters is None:
        return kernel(model, name)(*inputs)
    if not model.loops:
        return queries.varied(model, name, parameters, *inputs)
    name += "_multipliers" if name.startswith(FORWARD) else ""
    answer, lam, *_ = queries.varied(model, name, parameters, *inputs)
    return (answer, lam) if multipliers else answer


# ---- derivatives ----


def dynamics_derivatives(
    model: Robot, name: str, how: Acting, parameters: Parameters, out: Sequence[Array] | None,
    q: ArrayLike, v: ArrayLike, x: ArrayLike,
) -> tuple[Any, ...]:  # fmt: skip
    """The derivatives of inverse or forward dynamics by q, v and x (a or tau), and, with
    parameters, a mapping of those by each of them: see Model.inverse_dynamics_derivatives.
    """
    free: Array | None = None  # 1 where a force is within what its drive can give, else 0
    if how.efforts and name == INVERSE:
        needed = _inverse(model, q, v, x, None, False, how, parameters)
        free = _within(model, needed)[..., None]
    elif how.efforts:
        free = _within(model, real("tau", x))[..., None, :]
        x = np.clip(real("tau", x), *effort_ranges(model))
    derivatives = _derivatives(model, name, how, parameters, q, v, x)
    if how.stops:
        warn_of_stop_forces(model, q, v)
    if free is not None:
        *by, last = derivatives[:3]
        rest = [{key: free * y for key, y in more.items()} for more in derivatives[3:]]
        limited = [free * y for y in by] if name == INVERSE else by
        derivatives = (*limited, free * last, *(rest if name == INVERSE else derivatives[3:]))
    if out is None:
        return derivatives
    for array, values in zip(out, derivatives[:3], strict=True):
        array[...] = values
    return (*out, *derivatives[3:])


def _within(model: Robot, tau: Array) -> Array:
    low, high = effort_ranges(model)
    return ((tau > low) & (tau < high)).astype(np.float64)


def _derivatives(
    model: Robot, name: str, how: Acting, parameters: Parameters,
    q: ArrayLike, v: ArrayLike, x: ArrayLike,
) -> tuple[Any, ...]:  # fmt: skip
    if parameters is not None:
        if model.loops:
            closed.refuse_open_postures(model, q)
        if how.forces:
            switches = how.stops, how.passive
            return varied_passive_derivatives(model, name, parameters, q, v, x, *switches)
        return derivative_kernels.derivatives(model, name, (q, v, x), parameters=parameters)[0]
    if not how.forces:
        return _rigid_derivatives(model, name, q, v, x)
    ((slope_q, slope_v),) = machine_derivatives(
        model, "passive_forces", (q, v), how.stops, how.passive
    )
    if name == INVERSE and not model.loops:
        by_q, by_v, mass_matrix = _rigid_derivatives(model, name, q, v, x)
        return by_q - slope_q, by_v - slope_v, mass_matrix
    beside = passive_forces(model, q, v, how.stops, how.passive).total
    if name == INVERSE:
        derivatives = _rigid_derivatives(model, f"{name}_beside", q, v, x, beside)
        by_q, by_v, by_x, by_force = derivatives
    else:
        by_q, by_v, by_x = _rigid_derivatives(model, name, q, v, real("tau", x) + beside)
        by_force = by_x
    return by_q + by_force @ slope_q, by_v + by_force @ slope_v, by_x


def _rigid_derivatives(model: Robot, name: str, *inputs: ArrayLike) -> tuple[Array, ...]:
    if model.loops:
        closed.refuse_open_postures(model, inputs[0])
        return derivative_kernels.derivatives(model, name, inputs)[0]
    derivatives: tuple[Array, ...] = kernel(model, f"{name}_derivatives")(*inputs)
    return derivatives
