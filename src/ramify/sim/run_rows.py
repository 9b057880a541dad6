"""A run from the rows of its states: what is observed at each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ramify.contact.contact_record import Contacts
from ramify.core.arrays import Array
from ramify.drives.machine_forces import passive_forces
from ramify.loops.closed_dynamics import multipliers
from ramify.loops.constraints import constraints
from ramify.loops.loop_record import Loops
from ramify.sim.field import Field
from ramify.sim.limits_reached import machine_stats
from ramify.sim.pushes import AppliedWrenches, joint_forces
from ramify.sim.rates import bristles_of, desired, felt, observed
from ramify.sim.run_record import Run, Work


def run_of_rows(
    field: Field, t: Array, y: Array, held: Array, options: Mapping[str, Any],
    stats: Mapping[str, Any], status: str = "finished",
) -> Run:  # fmt: skip
    """The run of rows y (T, size) at times t (T) under forces and wrenches ``held`` (T, table) from
    outside; options and stats beside those of the machine.
    """
    of_q, of_v, _, of_work = field.parts
    a, tau = observed(field, t, y, held)
    contacts = felt(field, y)
    work, loss = y[:, of_work].T
    machine = {
        "control": repr(field.control) if field.control is not None else "none",
        "damping": list(field.damping), "passive": field.passive, "stops": field.stops,
        "efforts": field.efforts, "q0": y[0, of_q].tolist(), "v0": y[0, of_v].tolist(),
        "ground": None if field.contact is None or field.ground is None
        else field.contact.ground.described(field.ground),
    }  # fmt: skip
    return Run(
        field.model, t, y[:, of_q], y[:, of_v], a, tau,
        Work(work, loss + y[:, field.of_heat].sum(axis=1)), {**machine, **options},
        {**stats, **machine_stats(field, t, y)}, status,
        desired(field.model, field.control, None, t), contacts,
        _loops(field, y, tau, contacts, held), bristles=bristles_of(field, y),
        wrenches=_wrenches(field, y, held), drive_work=drive_work(field, y),
    )  # fmt: skip


def drive_work(field: Field, y: Array) -> Array | None:
    """J (T, nv) that each joint force has given since the first row; None where none acts."""
    if not field.drives:
        return None
    work = np.zeros((len(y), field.model.nv))
    *others, last = field.drives
    work[:, others] = y[:, field.of_drives]
    work[:, last] = y[:, field.parts[3].start] - work[:, others].sum(axis=1)
    return work


def _wrenches(field: Field, y: Array, held: Array) -> AppliedWrenches | None:
    if not field.pushed:
        return None
    values = held[:, field.model.nv :].reshape(len(y), len(field.pushed), 6)
    return AppliedWrenches(field.pushed, values, y[:, field.of_pushes][:, 0])


def _loops(
    field: Field, y: Array, tau: Array, contacts: Contacts | None, held: Array
) -> Loops | None:
    """The loops at the rows; NaN where the forces are not known."""
    if not field.model.loops:
        return None
    of_q, of_v, _, _ = field.parts
    q, v, model = y[:, of_q], y[:, of_v], field.model
    net = tau - np.array(field.damping) * v
    net = net + passive_forces(model, q, v, field.stops, field.passive, bristles_of(field, y)).total
    if field.pushed:
        net = net + joint_forces(model, field.pushed, q, held[:, model.nv :])
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
