"""One state of a rollout as a run: its samples, and the quantities at them.

The work of the forces is not counted during a rollout. It is integrated here, from sample to
sample, by the same steps.
"""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import SimulationError
from ramify.core.warning import warn
from ramify.documents.forms import PYTHON
from ramify.drives.passive import joint_inertia, joint_load
from ramify.dynamics.parameters import by_name
from ramify.integrate.hard_starts import hard_stats
from ramify.integrate.machine_steps import MARGIN, fastest_joint
from ramify.integrate.rollout_states import RolloutStates
from ramify.model.robot import known_answer
from ramify.plant.changed_robot import robot_of
from ramify.plant.field import Field
from ramify.plant.rates import apply_prescribed_motion
from ramify.plant.varied_field import VariedField, with_numbers
from ramify.runs.recorder import record_run
from ramify.runs.run_record import Run

_MOST_PUSHES: Final = 100


def run_of_state(states: RolloutStates, index: tuple[int, ...], method: str) -> Run:
    """The run of the state with this index in the batch, from its start on."""
    i, every, dt, field = _place(states.lead, index), states.every, states.dt, states.field
    u = _forces(states, i, index)
    rows = np.concatenate([states.begin[i : i + 1], states.history[i]])
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    rows = rows[: bad[0]] if bad.size else rows
    t = states.t0 + dt * every * np.arange(float(len(rows)))
    counting = replace(field, counted=True, drives=_drives(field, u))
    moving, losses = field.state_slices[2].stop, counting.passive_forces.losses
    counters = _counters(states, counting, rows, u, t)
    observer = _observing(field, rows[0], counting.drives)
    first = counting.of_heat.stop - len(losses) - moving
    heat = [first + losses.index(part) for part in observer.passive_forces.losses]
    works = range(first + len(losses), counters.shape[1])
    y = np.concatenate([rows[:, :moving], counters[:, [*range(first), *heat, *works]]], axis=1)
    inputs = np.concatenate([u[:1], u[every - 1 :: every]])[: len(rows)]
    steps = (len(rows) - 1) * every
    actual: dict[str, Any] = {
        "method": method, "step": dt, "dt_out": dt * every, "t_end": t[0] + dt * states.steps,
        "wrenches": _wrenches(field, u, states.t0, dt) if field.pushed else None,
    }  # fmt: skip
    if states.policy:
        actual["control"] = {"type": PYTHON, "object": states.policy}
    elif u[:, : field.model.nv].any() and not field.sampled:
        actual["tau"] = f"given, {len(u)} rows of {dt:g} s"
    stats: dict[str, Any] = {
        "steps": steps, "evaluations": steps * states.scheme.stages,
        "wall_time": states.wall_time / max(1, len(states.begin)),
    }  # fmt: skip
    if states.watch is not None:
        actual |= {"at_singularity": "pass", "start": "as given"}
        met_at = float(states.watch.times[i])
        stats["singular_postures"] = [] if np.isnan(met_at) else [met_at]
        stats["thrown_by_loops"] = None  # compiled steps do not count it
    if field.hard is not None:
        stats |= hard_stats(observer, y)
    status = f"failed: {states.failures[i][1]}" if i in states.failures else "finished"
    return record_run(
        observer, t, apply_prescribed_motion(observer, t, y), inputs, options=states.options,
        actual=actual, stats=stats, status=status,
    )  # fmt: skip


def _place(lead: tuple[int, ...], index: tuple[int, ...]) -> int:
    """The row of a state."""
    try:
        whole = tuple(map(operator.index, index))
        if len(whole) == len(lead):
            ends = [k + n if k < 0 else k for k, n in zip(whole, lead, strict=True)]
            return int(np.ravel_multi_index(ends, lead)) if lead else 0
    except (TypeError, ValueError):
        pass
    at = ", ".join(map(str, index))
    raise SimulationError(
        f"result({at}) names no state of this rollout, whose batch is {lead}: give "
        + ("one whole number per axis" if lead else "nothing, for there is one state")
    )


def _forces(states: RolloutStates, i: int, index: tuple[int, ...]) -> Array:
    """u (steps, input_size) of a state."""
    if states.forces is not None:
        return states.forces[:, i]
    if states.policy or states.field.sampled:
        raise SimulationError(
            "the forces between the samples of this rollout were not recorded, and its controller "
            f"is called once a step; rollout(…, every=1) records them{_alone(states, index)}"
        )
    n, (by_state, by_step) = states.field.input_size, states.strides
    flat = states.table.reshape(-1)[i * by_state :]
    if not by_step:
        return np.broadcast_to(flat[:n], (states.steps, n))
    return flat[: states.steps * n].reshape(states.steps, n)


def _wrenches(field: Field, u: Array, t0: float, dt: float) -> Any:
    """The wrenches in u (steps, input_size), constant during steps of dt from t0 on, in a form that
    ``simulate`` takes: a mapping where they are constant, else pushes; a text where these are many.
    """
    values = u[:, field.model.nv :]
    starts = np.flatnonzero(np.r_[True, (values[1:] != values[:-1]).any(axis=1)]).tolist()
    if len(starts) > _MOST_PUSHES:
        return f"on {', '.join(field.pushed)}, {len(starts)} values over time"
    maps = [
        {name: values[k, 6 * i : 6 * i + 6].tolist() for i, name in enumerate(field.pushed)}
        for k in starts
    ]
    if len(maps) == 1:
        return maps[0]
    ends = [*starts[1:], len(values)]
    return [[t0 + dt * a, t0 + dt * b, one] for a, b, one in zip(starts, ends, maps, strict=True)]


def _drives(field: Field, u: Array) -> tuple[int, ...]:
    """The rates on which forces act: those of the controller, and of u (steps, input_size)."""
    acting = set(np.flatnonzero(u[:, : field.model.nv].any(axis=0)).tolist())
    if field.control is not None:
        acting |= {*field.control.driven(field.robot_text).v}
    return tuple(sorted(acting))


def _alone(states: RolloutStates, index: tuple[int, ...]) -> str:
    """How to repeat one state of a batch, which takes less memory than recording all of them."""
    if not index:
        return ""
    at = ", ".join(map(str, index))
    varied = isinstance(states.field, VariedField)
    parameters = f"parameters={{k: x[{at}] for k, x in parameters.items()}}, " if varied else ""
    return (
        f". Run state {at} alone: rf.rollout(m, q0[{at}], v0[{at}], …, {parameters}every=1)"
        ".result(), with the control of that state"
    )


def _counters(states: RolloutStates, field: Field, rows: Array, u: Array, t: Array) -> Array:
    """Work and losses (T, counters) since the first row, by the steps between the rows."""
    every, (a, b) = states.every, (field.state_slices[3].start, field.of_step.stop)
    last = slice(field.of_step.start + 1 - a, b - a)  # accelerations, which do not add up
    out = np.zeros((len(rows), b - a))
    again = RolloutStates(
        field, states.scheme, states.project, (), every, states.dt, states.t0, 0
    )  # fmt: skip
    for k in range(len(rows) - 1):
        y = np.concatenate([rows[k, :a], np.zeros(b - a), rows[k, a:]])[None]
        again.t0 = float(t[k])
        again.replay(y, np.ascontiguousarray(u[k * every : (k + 1) * every]))
        out[k + 1] = out[k] + again.y[0, a:b]
        out[k + 1, last] = again.y[0, a:b][last]
    return out


def warn_of_stiff_states(
    field: VariedField, y: Array, method: str, dt: float, limit: float | None
) -> None:
    """Warn of states y (N, size) whose constants make steps of a method unstable. Checked are the
    states with the least and the largest value of each constant, where these exceed all earlier
    ones by a quarter of their range: draws of one distribution are checked once.
    """
    values = y[:, field.state_size :]
    if not limit or not len(y):
        return
    low, high = values.min(axis=0), values.max(axis=0)
    checked: dict[tuple[str, float], tuple[Array, Array]] = field.__dict__.setdefault(
        "looked at", {}
    )
    ranges = checked.get((method, dt), (np.full_like(low, np.inf), np.full_like(low, -np.inf)))
    if (low >= ranges[0]).all() and (high <= ranges[1]).all():
        return
    slack = 0.25 * (high - low)
    checked[method, dt] = np.minimum(low - slack, ranges[0]), np.maximum(high + slack, ranges[1])
    for i in sorted({*values.argmin(axis=0).tolist(), *values.argmax(axis=0).tolist()}):
        rate, j = fastest_joint(_observing(field, y[i]), y[i, : field.model.nq])
        if dt * rate > MARGIN * limit:
            warn(
                f"a step of {dt:g} s is too long for {method} in state {i}: with its parameters, "
                f"{field.model.velocities[j]!r} acts at up to {rate:.3g} 1/s; take at most "
                f"{MARGIN * limit / rate:.2g} s, or method='implicit_extrapolation'",
                RuntimeWarning,
            )
            return


def _observing(field: Field, row: Array, drives: tuple[int, ...] = ()) -> Field:
    """The right-hand side of one state, whose robot, controller and ground have its parameters."""
    options = field.options | {"implicit": False, "counted": True, "drives": drives}
    if isinstance(field, VariedField):
        values = by_name(field.varied, row[field.state_size :].tolist())
        options["model"] = robot_of(field.model, values)
        for ask in (joint_inertia, joint_load):  # stops and slip speeds as in the rollout
            known_answer(options["model"], ask, ask(field.model))
        options["control"] = with_numbers(field.control, "control", values)
        if field.contact is not None:
            options["ground"] = with_numbers(field.contact.ground, "ground", values)
    return Field(**options)
