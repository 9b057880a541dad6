"""The linear system near a state: of the motion, or of one step of an integrator."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.core.arrays import Array, flag, one_number, together, unknown_states
from ramify.core.errors import SimulationError
from ramify.core.messages import shown
from ramify.core.warning import warn
from ramify.dynamics.parameters import rate_unit
from ramify.emit.stepper import Scheme
from ramify.integrate.integrators import scheme_of
from ramify.kernels.make import kernel
from ramify.model.configuration import checked, configuration, unit_rates
from ramify.model.robot import Robot, once, the_robot
from ramify.plant.field import Field
from ramify.plant.make_field import ControlLike, GroundLike, PlantOptions, make_field
from ramify.plant.pressed_stops import warn_of_stop_forces
from ramify.runtime.cache_keys import digest
from ramify.runtime.compiled_program import CompiledProgram
from ramify.sensitivity.sensitivity import StepSequence
from ramify.trace.differentiate import tangent


class Linearization(NamedTuple):
    """A (..., nx, nx) and B (..., nx, nv): dx/dt = A x + B u, or x+ = A x + B u over a step.

    x = [q, v, z] are deviations: q as velocities move it (``difference``; for a quaternion a
    rotation about the axes of the body), v, and the states of the controller; u are deviations of
    the joint forces.
    """

    A: Array
    B: Array


def linearize(
    model: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    dt: float | None = None,
    method: str | None = None,
    ground: GroundLike = None,
    control: ControlLike = None,
    *,
    passive: bool = True,
    stops: bool | None = None,
    efforts: bool = True,
    friction: bool = True,
) -> Linearization:
    """A and B at states q (..., nq), v (..., nv) under joint forces tau (..., nv); NaN for states
    of a batch that are not known.

    dt: a step in s; then A and B take one step to the next, with constant tau: exactly (matrix
    exponential), or as the fixed-step scheme ``method`` does. ground, control as in ``simulate``:
    tau acts in addition to the controller. passive: springs, damping, friction and stops of the
    machine act; stops switches the stops alone on or off (as passive by default; a RuntimeWarning
    names a posture beyond a limit); efforts: drives give no more than they can, and a force at its
    limit does not change. friction=False leaves out dry friction alone, which near rest is a stiff
    damper (force over slip speed; a RuntimeWarning says so). With loops, accelerations are those
    the loops allow; deviations that open them are directions like others. On a ground the
    derivative is that of the mode of each contact at the state; at a kink it is one of the two.
    """
    the_robot(model)
    arguments = {
        "q": configuration(model, "q", q, unknown=True),
        "v": checked(model, "v", v, model.nv, unknown=True),
        "tau": checked(model, "tau", tau, model.nv, unknown=True),
    }
    lead = together(**{name: x.shape[:-1] for name, x in arguments.items()})
    wide = [np.broadcast_to(x, (*lead, x.shape[-1])) for x in arguments.values()]
    complete = ~unknown_states(*wide)
    states = [np.ascontiguousarray(x[complete]).reshape(-1, x.shape[-1]) for x in wide]
    if method is not None and dt is None:
        raise SimulationError(f"method {method!r} needs a step: give dt, in s")
    if dt is not None and not 0.0 < one_number(dt) < np.inf:
        raise SimulationError(f"dt is {shown(dt)}; it must be a finite number of seconds > 0")
    scheme = None if method is None else scheme_of(method)
    implicit = scheme is not None and scheme.implicit
    if not flag("friction", friction, SimulationError):
        model = _without_dry_friction(model)
    options = PlantOptions(
        ground=ground, passive=passive, stops=passive if stops is None else stops,
        efforts=efforts, implicit=implicit,
    )  # fmt: skip
    field = make_field(model, control, options)
    if field.control is not None and (field.sampled or not field.traceable or field.prescribed):
        raise SimulationError(
            f"{type(field.control).__name__} cannot be differentiated: give a controller that is a "
            "continuous law over scalars (PD, ComputedTorque …), or none"
        )
    if field.rounds:
        raise SimulationError(
            "the controller's sensor rounds, and a staircase has no slope: linearize with a sensor "
            "of resolution 0, or none"
        )
    if field.stops:
        warn_of_stop_forces(model, *wide[:2])
    if not states[0].size:
        nx = 2 * model.nv + field.states
        return Linearization(
            np.full((*lead, nx, nx), np.nan), np.full((*lead, nx, model.nv), np.nan)
        )
    _warn_of_friction_at_rest(field, states[1])
    if scheme is None:
        A, B = _continuous(field, *states)
        if dt is not None:
            A, B = _zero_order_hold(A, B, dt)
    else:
        assert dt is not None
        A, B = _step(field, scheme, dt, *states)
    if not (np.isfinite(A).all() and np.isfinite(B).all()):
        step = "" if dt is None else f" over a step dt = {shown(dt)} s; take a shorter step"
        raise SimulationError(f"A or B is beyond all numbers{step}")
    return Linearization(*(_among(complete, x) for x in (A, B)))


def _among(complete: NDArray[np.bool_], rows: Array) -> Array:
    """Answers of the known states of a batch (...), NaN for the others."""
    out = np.full((*complete.shape, *rows.shape[1:]), np.nan)
    out[complete] = rows if complete.ndim else rows[0]
    return out


@once
def _without_dry_friction(model: Robot) -> Robot:
    """The robot with springs, damping and stops alone."""
    if not any(element.friction for joint in model.joints for element in joint.machine):
        return model
    bodies = []
    for body in model.bodies:
        elements = tuple(replace(element, friction=None) for element in body.joint.machine)
        bodies.append(replace(body, joint=replace(body.joint, elements=elements)))
    return replace(model, bodies=tuple(bodies))


def _warn_of_friction_at_rest(field: Field, v: Array) -> None:
    """Warn where dry friction is smoothed: its slope there is that of a stiff damper."""
    if "friction" not in field.passive_forces.parts:
        return
    pairs = [(joint, element) for joint in field.model.joints for element in joint.machine]
    slow = []
    for j, (joint, element) in enumerate(pairs):
        law = element.friction
        if law is None or j in field.passive_forces.bristles or not law.sliding:
            continue
        slip = field.passive_forces.slip(j)
        if (np.abs(v[:, j]) < slip).any():
            speed = f"{slip:.2g} {rate_unit(joint, 'rad/s', 'm/s')}"
            damper = max(law.sliding, law.static) / slip
            unit = rate_unit(joint, "N m s/rad", "N s/m")
            slow.append((repr(field.model.velocities[j]), speed, f"{damper:.3g} {unit}"))
    if slow:
        names, speeds, dampers = (", ".join(column) for column in zip(*slow[:3], strict=True))
        more = f" and {len(slow) - 3} more" if len(slow) > 3 else ""
        are, their = ("is", "its") if len(slow) == 1 else ("are", "their")
        warn(
            f"{names}{more} of {field.model.name!r} {are} slower than the slip speed of {their} "
            f"dry friction, {speeds}; near rest that is linearised as a damper of {dampers}, which "
            "a moving joint does not have: friction=False leaves dry friction out",
            RuntimeWarning,
        )


def _continuous(field: Field, q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
    model, n = field.model, field.model.nv
    nx = 2 * n + field.states
    A, B = np.zeros((len(q), nx, nx)), np.zeros((len(q), nx, n))
    A[:, np.arange(n), n + np.arange(n)] = 1.0
    for _, j in model.layout.balls:  # the deviation of a rotation turns with the body: -w x
        w = v[:, j : j + 3]
        for i in range(3):
            A[:, j + (i + 1) % 3, j + (i + 2) % 3] = w[:, i]
            A[:, j + (i + 2) % 3, j + (i + 1) % 3] = -w[:, i]
    plain = field.control is None and field.contact is None and not field.passive_forces
    if plain and not model.loops and not (field.efforts and np.isfinite(field.effort_ranges).any()):
        by_q, by_v, by_tau = kernel(model, "forward_dynamics_derivatives")(q, v, tau)
        A[:, n:, :n], A[:, n:, n:], B[:, n:] = by_q, by_v, by_tau
        return A, B
    dy, du = _directions(field, q)
    slopes = _along(field, field.start(q, v)[:, None], tau[:, None], dy, du)
    rows = np.swapaxes(
        slopes[..., field.state_slices[1].start : field.state_slices[2].stop], -1, -2
    )
    A[:, n:], B[:, n:] = rows[..., :nx], rows[..., nx:]
    return A, B


def _directions(field: Field, q: Array) -> tuple[Array, Array]:
    """Unit deviations of [x, u], as directions of y (N, nx + nv, size) and of u (nx + nv, nv)."""
    n, (of_q, of_v, of_z, _) = field.model.nv, field.state_slices
    nx = 2 * n + field.states
    dy, du = np.zeros((len(q), nx + n, field.size)), np.zeros((nx + n, n))
    dy[:, :n, of_q] = unit_rates(field.model, q)
    dy[:, n : 2 * n, of_v] = np.eye(n)
    dy[:, 2 * n : nx, of_z] = np.eye(field.states)
    du[nx:] = np.eye(n)
    return dy, du


def _along(field: Field, y: Array, u: Array, dy: Array, du: Array) -> Array:
    """The derivatives of y' along all directions (N, directions, size), one batch."""
    key = digest("tangent", field.fingerprint)
    code = field.model.memo.remember(
        key,
        lambda: CompiledProgram("field_tangent", lambda: tangent(field.program, (1, 2)), key),
    )
    shape = dy.shape[:-1]
    rows = [
        np.ascontiguousarray(np.broadcast_to(x, (*shape, x.shape[-1]))).reshape(-1, x.shape[-1])
        for x in (np.zeros(1), y, u, dy, du)
    ]
    out = np.empty((len(rows[0]), field.size))
    code.run(rows, [out], 0, len(out))
    if not np.isfinite(out).all():
        raise SimulationError(
            "the motion has no derivative at some state: a square root or a quotient is singular "
            "there, as friction exactly at rest may be; move the state a little"
        )
    return out.reshape(dy.shape)


def _zero_order_hold(A: Array, B: Array, dt: float) -> tuple[Array, Array]:
    """A and B over a step with constant u: the exponential of [[A, B], [0, 0]] dt."""
    from scipy.linalg import expm

    nx, n = B.shape[1:]
    whole = np.zeros((len(A), nx + n, nx + n))
    with np.errstate(over="ignore", invalid="ignore"):  # the caller refuses what is not finite
        whole[:, :nx] = np.concatenate([A, B], axis=-1) * dt
        exponential = expm(whole)
    return exponential[:, :nx, :nx], exponential[:, :nx, nx:]


def _step(
    field: Field, scheme: Scheme, dt: float, q: Array, v: Array, tau: Array
) -> tuple[Array, Array]:
    """The derivatives of one step, all directions side by side."""
    of_q, n, states = field.state_slices[0], field.model.nv, len(q)
    dy, du = _directions(field, q)
    many, nx = dy.shape[1], 2 * n + field.states
    y, u = (np.repeat(x, many, axis=0) for x in (field.start(q, v), tau))
    step = StepSequence(field, scheme, bool(field.model.loops), y, u, (n, 0), 1, dt, 0.0, 0)
    places = list(step.sensitivities.motion.places_in_y)
    along = dy[..., places].reshape(-1, len(places))
    x, dx = (
        a.reshape(states, many, len(places))
        for a in step.tangent(along, np.tile(du, (states, 1)), (n, 0))
    )
    _, dual = step.units(x[:, 0, of_q])
    moved = np.einsum("ndi,nki->ndk", dx[..., of_q], dual)
    rows = np.swapaxes(np.concatenate([moved, dx[..., of_q.stop :]], axis=-1), -1, -2)
    return rows[..., :nx], rows[..., nx:]
