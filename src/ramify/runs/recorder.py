"""The recorder: a run from the rows of its states, whoever computed them; what is observed at each
of them, and what is kept of its options.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ramify.contact.contact_record import Contacts
from ramify.control.controller import CONTROLLERS
from ramify.core.arrays import Array
from ramify.loops.closed_dynamics import multipliers
from ramify.loops.constraints import constraints
from ramify.loops.loop_record import Loops
from ramify.model.robot import Robot
from ramify.plant.field import Field
from ramify.plant.kernel_parts import KernelParts
from ramify.plant.pushes import AppliedWrenches
from ramify.plant.rates import bristles_of, contacts_at_samples, desired_motion, evaluate_samples
from ramify.plant.right_hand_side import net_force
from ramify.runs.limits_reached import machine_stats
from ramify.runs.run_options import recorded_options
from ramify.runs.run_record import Run, Work


def record_run(
    field: Field, t: Array, y: Array, u: Array, *, options: Mapping[str, Any],
    actual: Mapping[str, Any], stats: Mapping[str, Any], status: str = "finished",
    forces: tuple[Array, Array] | None = None,
) -> Run:  # fmt: skip
    """The run of rows y (T, size) at times t (T) under forces and wrenches u (T, input_size) from
    outside.

    options: those of the run by name, as they were set; what the field holds need not be there.
    actual: what was used in their place, such as the method that was chosen, and notes beside
    them. stats: what was counted besides the machine's. forces: accelerations and joint forces,
    each (T, nv), where they are known better than from the field. Work is NaN where it was not
    counted.
    """
    of_q, of_v, _, _ = field.state_slices
    a, tau = evaluate_samples(field, t, y, u) if forces is None else forces
    contacts = contacts_at_samples(field, y)
    acted = {
        "q0": _start(options.get("q0"), y[0, of_q]), "v0": _start(options.get("v0"), y[0, of_v]),
        "control": CONTROLLERS.write(field.control),
        "ground": None if field.contact is None or field.ground is None
        else field.contact.ground.described(field.ground),
        "contact": None if field.hard_slots is None else field.hard_slots.contact.law.described(),
        "damping": list(field.damping), "passive": field.passive, "stops": field.stops,
        "efforts": field.efforts,
    }  # fmt: skip
    return Run(
        field.model, t, y[:, of_q], y[:, of_v], a, tau, _work(field, y),
        recorded_options({**options, **acted, **actual}), {**stats, **machine_stats(field, t, y)},
        status, desired_motion(field.model, field.control, None, t), contacts,
        _loops(field, y, tau, contacts, u), bristles=bristles_of(field, y),
        wrenches=_wrenches(field, y, u), drive_work=_drive_work(field, y),
        scheme_work=_scheme_work(field, y),
    )  # fmt: skip


def _start(chosen: ArrayLike | None, first: Array) -> list[float]:
    """The start to the last bit, so that the run can be repeated: that of the first row may be
    rounded anew, as quaternions are.
    """
    numbers: list[float] = (first if chosen is None else np.asarray(chosen, np.float64)).tolist()
    return numbers


def drawn_run(model: Robot, t: Array, q: Array, v: Array | None = None) -> Run:
    """A run to be drawn: states q (T, nq), v (T, nv; zeros by default) at times t (T); forces and
    work are not known.
    """
    unknown = np.full((len(t), model.nv), np.nan)
    v = np.zeros_like(unknown) if v is None else v
    nowhere = np.full(len(t), np.nan)
    return Run(model, t, q, v, unknown, unknown, Work(nowhere, nowhere))


def _work(field: Field, y: Array) -> Work:
    if not field.counted:
        unknown = np.full(len(y), np.nan)
        return Work(unknown, unknown)
    work, loss = y[:, field.state_slices[3]].T
    return Work(work, loss + y[:, field.of_heat].sum(axis=1))


def _drive_work(field: Field, y: Array) -> Array | None:
    """J (T, nv) that each joint force has given since the first row; None where none acts."""
    if not field.drives:
        return None
    work = np.zeros((len(y), field.model.nv))
    *others, last = field.drives
    work[:, others] = y[:, field.of_drives]
    work[:, last] = y[:, field.state_slices[3].start] - work[:, others].sum(axis=1)
    return work


def _scheme_work(field: Field, y: Array) -> Array | None:
    """J (T,) that hard steps have added since the first row."""
    if field.hard is None:
        return None
    return y[:, field.of_step.start] if field.counted else np.full(len(y), np.nan)


def _wrenches(field: Field, y: Array, u: Array) -> AppliedWrenches | None:
    if not field.pushed:
        return None
    values = u[:, field.model.nv :].reshape(len(y), len(field.pushed), 6)
    work = y[:, field.of_pushes][:, 0] if field.counted else np.full(len(y), np.nan)
    return AppliedWrenches(field.pushed, values, work)


def _loops(field: Field, y: Array, tau: Array, contacts: Contacts | None, u: Array) -> Loops | None:
    """The loops at the rows; NaN where the forces are not known."""
    if not field.model.loops:
        return None
    model = field.model
    q, v, z = (y[:, part] for part in field.state_slices[:3])
    net = net_force(KernelParts(field), tau, q, v, field.bristles(z), u).net
    c = constraints(model, q, v)
    lam = np.full(c.residual.shape, np.nan)
    known = np.isfinite(net).all(axis=1)
    if known.any():
        felt = None
        if contacts is not None:
            felt = {name: w[known] for name, w in contacts.wrenches(model, q).items()}
        lam[known] = multipliers(model, q[known], v[known], net[known], felt)[1]
    power = np.einsum("tk,tki,ti->t", np.nan_to_num(lam), c.J, v)
    return Loops(c.names, c.units, c.residual, lam, power)
