"""The right-hand side as numbers, of one state or of many, and the quantities of a run at its
samples.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ramify.contact.contact_record import Contacts, contacts
from ramify.contact.ground import upward
from ramify.contact.hard_solver import row_rate
from ramify.contact.terrain import Flat
from ramify.control.controller import Controller
from ramify.control.robot_text import RobotText
from ramify.control.sum import Sum
from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.core.errors import SimulationError
from ramify.core.records import flatten
from ramify.model.configuration import coordinate_rates
from ramify.model.robot import Robot
from ramify.motion import Trajectory
from ramify.motion.trajectory import Motion, stacked
from ramify.plant.field import Field
from ramify.plant.hard_slots import HardSlots
from ramify.plant.hard_step import REFERENCE_STEP, HardStep
from ramify.plant.kernel_parts import (
    KernelParts,
    SampleParts,
    columns,
    controller_output,
    refuse_unknown,
    rows,
    unit,
)
from ramify.plant.right_hand_side import counter_rates, observe


class UnboundedError(SimulationError):
    """Rates that are not finite: of a motion without bounds, or of a step that was too long."""


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

    @cached_property
    def parts(self) -> KernelParts:
        """The parts of the machine, where not all of it is compiled."""
        return KernelParts(self.field)

    def __call__(self, t: float, y: Array) -> Array:
        if self.timed is not None:
            self.push(self.timed(t))
        if self.entry is None:
            return rates_of(self.parts, t, y, self.u)
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


def rates_of(parts: KernelParts, t: float, y: Array, u: Array) -> Array:
    """y' (..., size) of states y (..., size) under forces and wrenches u (..., input_size), by
    calling the controller, then the robot's kernels.
    """
    field = parts.field
    if y.ndim == 1 and not np.isfinite(y).all():
        _not_finite(field, t, y)
    model, (of_q, of_v, _, _) = field.model, field.state_slices
    if field.prescribed is not None:
        return rows(field.text(t, columns(unit(model, y)), columns(u)), y.shape[:-1])
    observed, v = observe(parts, t, y, u), y[..., of_v]
    moved = rows(coordinate_rates(model, columns(y[..., of_q]), columns(v)), y.shape[:-1])
    out = [moved, observed.a, observed.state_rates]
    if field.counted:
        powers = observed.tau * v
        out.append(counter_rates(parts, v, powers, observed.forces, observed.loss_powers))
    return np.concatenate(out, axis=-1)


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
        refuse_unknown(field, t, tau)
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
        speeds = [np.asarray(row_rate(touch.row(i), v)) for i in (1, 2)]
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
    if field.prescribed is None:
        observed = observe(SampleParts(field, t, y, outside), t, y, outside)
        if field.hard is not None:
            return _mean_accelerations(field, t, y, outside), observed.tau
        return observed.a, observed.tau
    texts = field.observe(t, list(y.T), list(outside.T))
    return stacked(texts.a, t.shape), stacked(texts.tau, t.shape)


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


def desired_motion(
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
