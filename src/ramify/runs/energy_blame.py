"""Which body an error of the energy balance comes from: whose energy changes by more than the
work of the forces on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.kernels.make import kernel
from ramify.kernels.queries import inverse_dynamics, jacobian, kinematics, reactions
from ramify.loops.closed_dynamics import closed_reactions
from ramify.loops.constraints import constraints
from ramify.runs.run_loads import wrenches_on_bodies
from ramify.runs.run_record import Run

COARSE: Final = 2.0
"""Shares that exceed the error by this factor say nothing about it: stops and impacts act between
the rows.
"""


def blame(result: Run, error: Array, row: int) -> tuple[str | None, str]:
    """(body, reason): whose energy, up to a row, has changed by something else than the forces on
    it, where the balance of all bodies has an error (T).
    """
    for quantity in ("tau", "a"):
        values: Array = getattr(result, quantity)[: row + 1]
        if not np.isfinite(values).all():
            column = int(np.argwhere(~np.isfinite(values))[0][1])
            owners = [body.name for body in result.model.bodies for _ in range(body.joint.dof)]
            what = f"{quantity} of {result.columns[quantity][column]!r}"
            return owners[column], f"{what} is not finite"
    if not np.isfinite(error[row]):
        return None, "the work recorded is not finite"
    if row == 0:
        return None, "the work recorded does not start at zero"
    shares, doubt = shares_of(result, row)
    rest = float(error[row]) - float(shares.sum())
    worst = int(np.argmax(np.abs(shares)))
    share, name = float(shares[worst]), result.model.bodies[worst].name
    if max(abs(share), abs(rest)) > COARSE * abs(float(error[row])):
        advice = "; shorten the step" if result.options.get("step") else ""
        said = f"no body stands out: the rows are too far apart to tell {error[row]:.3g} J"
        return None, said + advice
    if abs(rest) - (0.0 if result.contacts is None else float(doubt.sum())) > abs(
        share
    ):  # impacts fall between rows
        return (
            None,
            f"the work and losses recorded differ by {abs(rest):.3g} J from what the joint forces "
            "did; no body is to blame",
        )
    if abs(share) <= doubt[worst]:
        return (
            None,
            f"no body stands out; {name!r} is off by {share:.3g} J, no more than rows so far apart "
            "can tell",
        )
    did = "gained" if share > 0.0 else "lost"
    what = f"{did} {abs(share):.3g} J that no force on it accounts for"
    return name, f"body {name!r} has {what}, of an energy error of {error[row]:.3g} J"


def shares_of(result: Run, row: int) -> tuple[Array, Array]:
    """(shares, doubt), each (nb,), in J: what each body's energy has gained up to a row beyond the
    work of the wrenches on it.

    A body takes power through its joint and passes some on to those it carries; where the forces of
    its joint are not those that acted (the accelerations do not fit tau), the body is blamed. The
    work is integrated by splines through the rows; its change when every second row is left out is
    the doubt.
    """
    model, rows = result.model, slice(0, row + 1)
    t, q, v, a = result.t[rows], result.q[rows], result.v[rows], result.a[rows]
    R, r = kinematics(model, q)
    twists = np.stack(
        [np.einsum("tij,tj->ti", jacobian(model, q, body.name), v) for body in model.bodies], axis=1
    )
    applied = {name: w[rows] for name, w in wrenches_on_bodies(result).items()}
    wrenches, of_loops, by_loops = _transmitted(result, rows, applied)
    power = ((wrenches + of_loops) * twists).sum(axis=2)
    for name, wrench in applied.items():
        b = next(k for k, body in enumerate(model.bodies) if body.name == name)
        power[:, b] += (wrench * twists[:, b]).sum(axis=1)
    energy = np.empty_like(power)
    damping = damping_of(result)
    misfit = np.zeros_like(v)
    if damping is not None:
        needed = inverse_dynamics(model.tree, q, v, a, applied) - by_loops
        misfit = (needed - result.tau[rows] + damping * v - result.passive.total[rows]) * v
    for b, body in enumerate(model.bodies):
        w, u = twists[:, b, :3], twists[:, b, 3:]
        c = np.einsum("tij,j->ti", R[:, b], body.com)
        uc = u + np.cross(w, c)
        spin = np.einsum("tij,ti->tj", R[:, b], w)
        weight = body.mass * ((r[:, b] + c) @ np.array(model.gravity))
        turning = np.einsum("ti,ij,tj->t", spin, body.inertia, spin)
        energy[:, b] = 0.5 * (body.mass * (uc * uc).sum(axis=1) + turning) - weight
        power[:, b] -= misfit[:, model.joint_slice(body.joint.name)].sum(axis=1)
        if body.parent >= 0:
            wp, up = twists[:, body.parent, :3], twists[:, body.parent, 3:]
            at = np.concatenate([wp, up + np.cross(wp, r[:, b] - r[:, body.parent])], axis=1)
            power[:, body.parent] -= (wrenches[:, b] * at).sum(axis=1)
    work = _integral(t, power)
    thin = np.unique([*range(0, row, 2), row])
    return energy[-1] - energy[0] - work, np.abs(work - _integral(t[thin], power[thin]))


def _transmitted(
    result: Run, rows: slice, applied: Mapping[str, Array]
) -> tuple[Array, Array, Array]:
    """(joints (T, nb, 6), loops (T, nb, 6), joint forces (T, nv)): wrenches of the joints and of
    the loops on the bodies, and the loops' share of the joint forces.
    """
    model, q, v, a = result.model, result.q[rows], result.v[rows], result.a[rows]
    if result.loops is None:
        wrenches = reactions(model.tree, q, v, a, applied)
        return wrenches, np.zeros_like(wrenches), np.zeros_like(v)
    lam = result.loops.multipliers[rows]
    of_loops = kernel(model, "loop_wrenches")(q, lam)[0][:, list(model.skeleton.last)]
    joint_forces = np.einsum("tk,tki->ti", lam, constraints(model, q).J)
    return closed_reactions(model, q, v, a, applied, lam), of_loops, joint_forces


def _integral(t: Array, rate: Array) -> Array:
    from scipy.interpolate import CubicSpline

    return CubicSpline(t, rate).integrate(t[0], t[-1])


def damping_of(result: Run) -> Array | None:
    """Viscous friction of the joints (nv) from the options, zeros where nothing was lost; None
    where losses are unexplained.
    """
    damping = result.options.get("damping")
    if damping is not None:
        try:
            return np.broadcast_to(np.asarray(damping, dtype=np.float64), (result.model.nv,))
        except (TypeError, ValueError):
            return None
    return None if result.work.dissipated.any() else np.zeros(result.model.nv)
