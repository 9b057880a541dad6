"""The right-hand side as numbers, of one state or of many, and the quantities of a run at its
samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ramify.contact.contact_record import Contacts, contacts
from ramify.contact.hard import upward
from ramify.contact.hard_solver import rate
from ramify.contact.terrain import Flat
from ramify.control.controller import Controller
from ramify.control.robot_text import RobotText
from ramify.control.sum import Sum
from ramify.core.arrays import Array
from ramify.core.errors import RamifyError, SimulationError
from ramify.core.records import flatten
from ramify.core.scalar import Scalar
from ramify.drives.actuators import effort_ranges
from ramify.drives.machine_forces import passive_forces
from ramify.kernels.make import kernel
from ramify.model.configuration import coordinate_rates
from ramify.model.robot import Robot
from ramify.motion import Trajectory
from ramify.motion.trajectory import Motion, stacked
from ramify.plant.field import Field
from ramify.plant.hard_slots import HardSlots
from ramify.plant.hard_step import REFERENCE_STEP, HardStep
from ramify.plant.pushes import joint_forces


class UnboundedError(SimulationError):
    """Rates that are not finite: of a motion without bounds, or of a step that was too long."""


def unit(model: Robot, y: Array) -> Array:
    """Rows (..., size) with their quaternions of length one."""
    if not model.layout.balls:
        return y
    y = np.array(y)
    for i, _ in model.layout.balls:
        y[..., i : i + 4] /= np.linalg.norm(y[..., i : i + 4], axis=-1, keepdims=True)
    return y


def apply_prescribed_motion(field: Field, t: Array, y: Array) -> Array:
    """Rows (..., size) at times t (...) with prescribed coordinates set to their motion at that
    time.
    """
    if field.prescribed is None:
        return y
    of_q, of_v, _, _ = field.state_slices
    parts = [[y[..., i] for i in range(part.start, part.stop)] for part in (of_q, of_v)]
    q, v = field.apply_prescribed_motion(np.broadcast_to(t, y.shape[:-1]), *parts)
    y = np.array(y)
    y[..., of_q], y[..., of_v] = stacked(q, y.shape[:-1]), stacked(v, y.shape[:-1])
    return y


def bristles_of(field: Field, y: Array) -> Array | None:
    """The deflections (..., bristles) of LuGre friction in rows of y; None without such."""
    return field.bristles(y[..., field.state_slices[2]]) if field.passive_forces.bristles else None


class Rates:
    """y' of one state, (t, y) -> y', under forces and wrenches ``u`` from outside: compiled where
    all of it can be, else through the robot's kernels and the user's function. ``compiled``: also
    where the robot is large. ``timed``: the wrenches of u at a time, where they follow a function.
    """

    def __init__(self, field: Field, compiled: bool = False) -> None:
        self.field = field
        self.timed: Callable[[float], Array] | None = None
        hard = field.hard is not None  # steps are compiled, rates are not needed
        self.entry = field.entry if not hard and (compiled or field.compiles) else None
        numbers = [] if self.entry is None else [field.numbers]
        self.inputs = np.concatenate([np.zeros(field.input_size), *numbers])
        self.u = self.inputs[: field.input_size]
        self.now = np.empty(1)

    def __call__(self, t: float, y: Array) -> Array:
        if self.timed is not None:
            self.push(self.timed(t))
        if self.entry is None:
            return rates_of(self.field, t, y, self.u)
        self.now[0] = t
        rates = self.entry.call(self.now, y, self.inputs)
        return _refused(self.field, t, y, self.u) if rates is None else rates

    @property
    def compiled(self) -> bool:
        """Whether compiled code may take many steps at once."""
        hard = self.field.hard is not None and self.field.compiles
        return (self.entry is not None or hard) and self.timed is None

    def push(self, wrenches: Array) -> None:
        """Let external wrenches (6 k) act from now on."""
        self.u[self.field.model.nv :] = wrenches


def rates_of(field: Field, t: float, y: Array, u: Array) -> Array:
    """y' (..., size) of states y (..., size) under forces and wrenches u (..., input_size), by
    calling the controller, then the robot's kernels.
    """
    model = field.model
    of_q, of_v, of_z, _ = field.state_slices
    if y.ndim == 1 and not np.isfinite(y).all():
        _not_finite(field, t, y)
    if field.prescribed is not None:
        return rows(field.text(t, columns(unit(model, y)), columns(u)), y.shape[:-1])
    q, v = np.ascontiguousarray(unit(model, y)[..., of_q]), np.ascontiguousarray(y[..., of_v])
    controller_rates: Sequence[Scalar] = [0.0] * field.controlled
    z = field.bristles(y[..., of_z])
    tau = u[..., : model.nv]
    if field.control is not None and not field.sampled:
        tau_of_control, controller_rates = controller_output(field, t, q, v, y[..., of_z])
        tau = tau + tau_of_control
    _refuse_unknown(field, t, tau)
    tau = within_efforts(field, tau)
    friction = np.array(field.damping) * v
    net, acted = tau - friction, [tau, friction]
    if field.pushed:
        acted.append(joint_forces(model, field.pushed, q, u[..., model.nv :]))
        net = net + acted[-1]
    a, heat, bristle_rates = accelerations(field, q, v, net, z)
    lead = y.shape[:-1]
    moved = rows(coordinate_rates(model, columns(y[..., of_q]), columns(v)), lead)
    counted = [(f * v).sum(axis=-1, keepdims=True) for f in acted]
    drives = (tau * v)[..., list(field.drives[:-1])]
    rates = np.concatenate(
        [moved, a, rows(controller_rates, lead), bristle_rates, *counted, heat, drives], axis=-1
    )
    return rates[..., : field.size]


def rows(entries: Sequence[Scalar], lead: tuple[int, ...]) -> Array:
    """The reverse of ``columns``."""
    return stacked(entries, lead) if lead else np.array(entries, dtype=np.float64)


def columns(y: Array) -> list[Any]:
    """An entry per column: numbers for one state, arrays for a batch."""
    return y.tolist() if y.ndim == 1 else list(np.moveaxis(y, -1, 0))


def _refuse_unknown(field: Field, t: float, tau: Array) -> None:
    """Refuse forces (..., nv) that are not finite."""
    bad = np.argwhere(~np.isfinite(tau))
    if bad.size:
        *state, joint = (int(i) for i in bad[0])
        which = f" (state {state[0] if len(state) == 1 else tuple(state)})" if state else ""
        raise SimulationError(
            f"the controller gave {tau[tuple(bad[0])]} for {field.model.velocities[joint]!r} at "
            f"t = {t:g} s{which}"
        )


def accelerations(
    field: Field, q: Array, v: Array, net: Array, z: Array
) -> tuple[Array, Array, Array]:
    """(a, heat', z'): accelerations (..., nv) under net joint forces and the machine's passive
    ones; the power (..., 1) lost in the ground, if there is one, and that of the machine's losses;
    the rates of the bristles z (..., bristles).
    """
    if field.baumgarte:
        with np.errstate(all="ignore"):
            parts = field.accelerations(*([*np.moveaxis(x, -1, 0)] for x in (q, v, net, z)))
        a, heat, bristle_rates = (stacked(part, q.shape[:-1]) for part in parts)
        return a, heat, bristle_rates
    losses = bristle_rates = np.zeros((*q.shape[:-1], 0))
    if field.passive_forces:
        passive = passive_forces(field.model, q, v, field.stops, field.passive, z)
        bristle_rates = bristle_rates if passive.bristle_rate is None else passive.bristle_rate
        net = net + passive.total
        if field.passive_forces.losses:
            losses = np.stack([passive.loss[part] for part in field.passive_forces.losses], axis=-1)
    if field.contact is None:
        return kernel(field.model, "forward_dynamics")(q, v, net), losses, bristle_rates
    *_, loss, wrenches = field.contact.forces(q, v)
    a = kernel(field.model, "forward_dynamics_wrenches")(q, v, net, wrenches)
    return a, np.concatenate([loss.sum(axis=-1, keepdims=True), losses], axis=-1), bristle_rates


def within_efforts(field: Field, tau: Array) -> Array:
    """Joint forces (..., nv) within what the drives can give."""
    if not field.efforts:
        return tau
    return np.clip(tau, *effort_ranges(field.model))


def controller_output(
    field: Field, t: float, q: Array, v: Array, z: Array
) -> tuple[Array, Sequence[Scalar]]:
    """The controller's joint forces (..., nv) and the rates of its states; errors name the time."""
    try:
        tau, rates = field.torque(t, columns(q), columns(v), columns(z))
    except SimulationError:
        raise
    except RamifyError as error:
        raise SimulationError(f"{error} (at t = {t:g} s)") from error
    except Exception as error:
        raise SimulationError(f"the controller raised {error!r} at t = {t:g} s") from error
    return rows(tau, q.shape[:-1]), rates


def _refused(field: Field, t: float, y: Array, u: Array) -> Array:
    """The rates of a state that compiled code refuses: huge angles go through the text, the rest is
    an error.
    """
    if not np.isfinite(y).all():
        _not_finite(field, t, y)
    with np.errstate(all="ignore"):
        rates = np.array(field.text(t, y.tolist(), u.tolist()), dtype=np.float64)
    if np.isfinite(rates).all():
        return rates
    bad = int(np.flatnonzero(~np.isfinite(rates))[0])
    raise UnboundedError(
        f"the motion is not finite at t = {t:g} s: the rate of {entry_name(field, bad)!r} is "
        f"{rates[bad]}"
    )


def _not_finite(field: Field, t: float, y: Array) -> None:
    bad = int(np.flatnonzero(~np.isfinite(y))[0])
    raise UnboundedError(
        f"the state grows beyond all bounds at t = {t:g} s: {entry_name(field, bad)!r} is {y[bad]}"
    )


def entry_name(field: Field, place: int) -> str:
    """What an entry of y is, for messages."""
    names = [*field.model.coordinates, *field.model.velocities]
    if place < len(names):
        return names[place]
    if place < field.state_slices[2].start + field.controlled:
        return "the controller"
    if place < field.of_hard.start:
        return "the bristles"
    return "the contact impulses" if place < field.state_slices[3].start else "the work"


def sample(field: Field, t: float, y: Array) -> Array:
    """The output (..., nv) of a sampled controller at a sampling instant, of states (..., size);
    for a batch it need not be finite. The controller's states in y advance by a period.
    """
    of_q, of_v, of_z, _ = field.state_slices
    states = y[..., of_z]
    y = unit(field.model, y)
    q, v, z, control = y[..., of_q], y[..., of_v], y[..., of_z], field.control
    assert control is not None
    alone = y.ndim == 1 and field.contact is None and not field.controlled
    if alone and control.traceable:
        return control.torque(field.model, t, q, v)  # compiled
    tau, rates = controller_output(field.with_parameters_of(y), t, q, v, z)
    if y.ndim == 1:
        _refuse_unknown(field, t, tau)
    if field.controlled and control.rate_hz is not None:
        states[..., : field.controlled] += rows(rates, y.shape[:-1]) / control.rate_hz
    return tau


# ---- quantities at samples ----


def contacts_at_samples(field: Field, y: Array) -> Contacts | None:
    """Depths, velocities and forces of the contact points at the samples."""
    if field.hard_slots is not None:
        return hard_contacts(field, field.hard_slots, y)
    if field.contact is None:
        return None
    of_q, of_v, _, _ = field.state_slices
    forces = field.contact.forces(y[:, of_q], y[:, of_v])
    heat = y[:, field.of_heat][:, 0] if field.counted else np.full(len(y), np.nan)
    return contacts(field.contact, forces, heat)


def hard_contacts(field: Field, slots: HardSlots, y: Array) -> Contacts | None:
    """What the last step before each sample left in y: impulses, modes and forces."""
    contact, of_v = slots.contact, field.state_slices[1]
    if not contact.size:
        return None
    n, recorded = contact.size, y[:, field.of_hard]
    impulses = recorded[:, : 3 * n].reshape(len(y), n, 3)
    modes = recorded[:, slots.rows : slots.rows + n]
    passes, missed, step, _ = recorded[:, slots.rows + n :].T
    v = columns(y[:, of_v])
    force, place, gap, slip = [], [], [], []
    per_second = np.where(step > 0.0, 1.0 / np.where(step > 0.0, step, 1.0), 0.0)
    for c, touch in enumerate(contact.touches(columns(y[:, field.state_slices[0]]))):
        axes = [rows(flatten(axis), (len(y),)) for axis in touch.axes]
        force.append(sum(impulses[:, c, i, None] * axis for i, axis in enumerate(axes)))
        place.append(rows(flatten(touch.place), (len(y),)))
        gap.append(np.broadcast_to(np.asarray(touch.gap, dtype=np.float64), len(y)))
        speeds = [np.asarray(rate(touch.row(i), v)) for i in (1, 2)]
        slip.append(sum(x[..., None] * axis for x, axis in zip(speeds, axes[1:], strict=True)))
    heat = np.full(len(y), np.nan)
    if field.counted:
        heat = y[:, field.of_heat][:, :2].sum(axis=1)
    return Contacts(
        contact.names, contact.bodies, np.stack(force, 1) * per_second[:, None, None],
        impulses[:, :, 0] * per_second[:, None], np.stack(place, 1), -np.stack(gap, 1),
        np.stack(slip, 1), np.zeros(len(y)), heat, upward(field.model, Flat()),
        mode=modes, impulse=impulses, iterations=passes, residual=missed, others=contact.others,
    )  # fmt: skip


def evaluate_samples(field: Field, t: Array, y: Array, outside: Array) -> tuple[Array, Array]:
    """Accelerations and joint forces at the samples; NaN where the controller gives none."""
    of_q, of_v, of_z, _ = field.state_slices
    if field.prescribed is not None:
        a_and_tau = field.observe(t, list(y.T), list(outside.T))[:2]
        return stacked(a_and_tau[0], t.shape), stacked(a_and_tau[1], t.shape)
    tau = np.array(outside[:, : field.model.nv])
    if field.control is not None and not field.sampled:
        tau = tau + _forces(field, field.control, t, y)
    tau = within_efforts(field, tau)
    if field.hard is not None:
        return _mean_accelerations(field, t, y, outside), tau
    net = tau - np.array(field.damping) * y[:, of_v]
    if field.pushed:
        net = net + joint_forces(
            field.model, field.pushed, y[:, of_q], outside[:, field.model.nv :]
        )
    finite = np.isfinite(net).all(axis=1)
    all_finite = bool(finite.all())
    if not all_finite:
        t, y, outside, net = t[finite], y[finite], outside[finite], net[finite]
    accelerated = field.accelerated(t, y, outside)
    if accelerated is None:
        q, v, z = (np.ascontiguousarray(y[:, part]) for part in (of_q, of_v, of_z))
        accelerated = accelerations(field, q, v, net, field.bristles(z))[0]
    if all_finite:
        return accelerated, tau
    a = np.full_like(tau, np.nan)
    a[finite] = accelerated
    return a, tau


def _mean_accelerations(field: Field, t: Array, y: Array, u: Array) -> Array:
    """Those of the last hard step before each sample, at the start those of a short step from it;
    NaN where they were not counted.
    """
    if not field.counted:
        return np.full((len(y), field.model.nv), np.nan)
    a, stepped = np.array(y[:, field.of_step][:, 1:]), y[:, field.of_hard][:, -2] > 0.0
    step, first = HardStep(field), field.of_step.start + 1
    for i in np.flatnonzero(~stepped).tolist():
        end = step.text(float(t[i]), y[i].tolist(), u[i].tolist(), REFERENCE_STEP)
        a[i] = np.array(end, dtype=np.float64)[first:]
    return a


def _forces(field: Field, control: Controller, t: Array, y: Array) -> Array:
    """The controller's joint forces (T, nv): all rows at once where that works, else one by one."""
    of_q, of_v, of_z, _ = field.state_slices
    states = y[:, of_q], y[:, of_v], y[:, of_z][:, : field.controlled]
    if control.traceable:
        try:
            return control.torque(field.model, t, *states, ground=field.contact)
        except RamifyError:
            pass
    out = np.full((len(t), field.model.nv), np.nan)
    for i, (q, v, z) in enumerate(zip(*states, strict=True)):
        try:
            out[i] = control.torque(field.model, float(t[i]), q, v, z, field.contact)
        except Exception:  # the controller may end this as it ended the run
            continue
    return out


def desired(
    model: Robot, control: Controller | None, motion: Trajectory | None, t: Array
) -> Motion | None:
    """The desired motion over all coordinates, NaN in those it does not move; None where there is
    none.
    """
    control = _follower(control)
    motion = getattr(control, "motion", None) if motion is None else motion
    if motion is None:
        return None
    m = motion.at(t)
    if motion.n == model.nv == model.nq:
        return m
    robot = RobotText(model)
    chosen = control.driven(robot) if control is not None else robot.driven()
    if len(chosen) != motion.n or -1 in chosen.q:
        return None
    q, v, a = (np.full((len(t), n), np.nan) for n in (model.nq, model.nv, model.nv))
    q[:, list(chosen.q)], v[:, list(chosen.v)], a[:, list(chosen.v)] = m.q, m.v, m.a
    return Motion(t, q, v, a)


def _follower(control: Controller | None) -> Controller | None:
    """The controller that follows a motion: of a sum the one part that does."""
    if not isinstance(control, Sum):
        return control
    followers = [x for x in map(_follower, control.parts) if getattr(x, "motion", None) is not None]
    return followers[0] if len(followers) == 1 else control
