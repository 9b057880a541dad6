"""All forces that acted in a run, and what its joints carried under them."""

from __future__ import annotations

import numpy as np

from ramify.core.arrays import Array
from ramify.loops import bearings
from ramify.loops.closed_dynamics import multipliers
from ramify.plant.kernel_parts import KernelParts
from ramify.plant.make_field import PlantOptions, make_field
from ramify.plant.right_hand_side import net_force
from ramify.runs.run_record import Run


def drive_and_passive_forces(run: Run) -> Array:
    """(T, nv): joint forces of drives, friction and everything else passive, N m or N."""
    passive, stops = (bool(run.options.get(key, False)) for key in ("passive", "stops"))
    options = PlantOptions(run.options.get("damping", 0.0), passive=passive, stops=stops)
    field = make_field(run.model, None, options)
    bristles = np.zeros((len(run.t), 0)) if run.bristles is None else run.bristles
    return net_force(KernelParts(field), run.tau, run.q, run.v, bristles, np.zeros(0)).net


def wrenches_on_bodies(run: Run) -> dict[str, Array]:
    """The wrench (T, 6) of the ground and of external loads on each body that has one, at its
    origin, world-aligned.
    """
    wrenches: dict[str, Array] = {}
    if run.contacts is not None:
        wrenches |= run.contacts.wrenches(run.model, run.q)
    if run.wrenches is not None:
        for name, wrench in run.wrenches.on_bodies(run.model, run.q).items():
            wrenches[name] = wrenches[name] + wrench if name in wrenches else wrench
    return wrenches


def bearing_forces_of_run(run: Run) -> dict[str, Array]:
    """See Result.bearing_forces."""
    model, a, lam = run.model, run.a, None
    wrenches = wrenches_on_bodies(run)
    if model.loops:
        a, lam = multipliers(model, run.q, run.v, drive_and_passive_forces(run), wrenches)
    return bearings.bearing_forces(model, run.q, run.v, a, wrenches, lam)
