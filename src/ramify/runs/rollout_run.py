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
from ramify.integrate.batch_steps import Batch, BatchSteps
from ramify.integrate.driver import Observer, drive
from ramify.integrate.hard_starts import hard_stats
from ramify.integrate.machine_steps import MARGIN, fastest_joint
from ramify.integrate.rollout_states import RolloutStates
from ramify.model.robot import known_answer
from ramify.plant.changed_robot import robot_with_numbers
from ramify.plant.field import Field
from ramify.plant.rates import apply_prescribed_motion
from ramify.plant.varied_field import VariedField, with_numbers
from ramify.runs.recorder import record_run
from ramify.runs.run_record import Run

_MOST_PUSHES: Final = 100


def run_of_state(states: RolloutStates, index: tuple[int, ...], method: str) -> Run:
    """The run of the state with this index in the batch, from its start on."""
    batch, i, field = states.batch, _place(states.lead, index), states.field
    every, dt = batch.every, batch.dt
    u = _forces(states, i, index)
    rows = np.concatenate([batch.y[i : i + 1], states.history[i]])
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    rows = rows[: bad[0]] if bad.size else rows
    t = batch.t0 + dt * every * np.arange(float(len(rows)))
    counting = replace(field, counted=True, drives=_drives(field, u))
    moving, losses = field.state_slices[2].stop, counting.passive_forces.losses
    counters = _counters(batch, counting, rows, u, t)
    observer = _observing(field, rows[0], counting.drives)
    first = counting.of_heat.stop - len(losses) - moving
    heat = [first + losses.index(part) for part in observer.passive_forces.losses]
    works = range(first + len(losses), counters.shape[1])
    y = np.concatenate([rows[:, :moving], counters[:, [*range(first), *heat, *works]]], axis=1)
    inputs = np.concatenate([u[:1], u[every - 1 :: every]])[: len(rows)]
    steps = (len(rows) - 1) * every
    actual: dict[str, Any] = {
        "method": method, "step": dt, "dt_out": dt * every, "t_end": t[0] + dt * batch.steps,
        "wrenches": _wrenches(field, u, batch.t0, dt) if field.pushed else None,
    }  # fmt: skip
    if states.policy:
        actual["control"] = {"type": PYTHON, "object": states.policy}
    elif u[:, : field.model.nv].any() and not field.sampled:
        actual["tau"] = f"given, {len(u)} rows of {dt:g} s"
    stats: dict[str, Any] = {
        "steps": steps, "evaluations": steps * batch.scheme.stages,
        "wall_time": states.wall_time / max(1, len(batch.y)),
    }  # fmt: skip
    if states.watch is not None:
        actual |= {"at_singularity": "pass", "start": "as given"}
        met_at = float(states.watch.times[i])
        stats["singular_postures"] = [] if np.isnan(met_at) else [met_at]
        stats["thrown_by_loops"] = None  # compiled steps do not count it
    if field.hard is not None:
        stats |= hard_stats(observer, y)
    failed = states.failures.reasons
    status = f"failed: {failed[i][1]}" if i in failed else "finished"
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
    batch, n, (by_state, by_step) = states.batch, states.field.input_size, states.batch.strides
    flat = batch.table.reshape(-1)[i * by_state :]
    if not by_step:
        return np.broadcast_to(flat[:n], (batch.steps, n))
    return flat[: batch.steps * n].reshape(batch.steps, n)


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


class _Counting(Observer):
    """Counts work and losses from one recorded row to the next: each interval starts from its row,
    with the counters at zero. ``counters``: since the first row.
    """

    def __init__(self, field: Field, rows: Array, t: Array) -> None:
        self.rows, self.t = rows, t
        self.place = slice(field.state_slices[3].start, field.of_step.stop)
        self.last = slice(field.of_step.start + 1, field.of_step.stop)  # they do not add up
        self.counters = np.zeros((len(rows), self.place.stop - self.place.start))

    def before(self, steps: BatchSteps) -> None:
        k, within = divmod(steps.done, steps.batch.every)
        if not within:
            row, a, none = self.rows[k], self.place.start, np.zeros(self.counters.shape[1])
            steps.y, steps.t = np.concatenate([row[:a], none, row[a:]])[None], float(self.t[k])
        steps.limit(steps.batch.every - within)

    def after(self, steps: BatchSteps, count: int) -> None:
        k, within = divmod(steps.done, steps.batch.every)
        if not within:
            self.counters[k] = self.counters[k - 1] + steps.y[0, self.place]
            a = self.place.start
            self.counters[k, self.last.start - a : self.last.stop - a] = steps.y[0, self.last]


def _counters(batch: Batch, field: Field, rows: Array, u: Array, t: Array) -> Array:
    """Work and losses (T, counters) since the first row, by the steps between the rows."""
    counting = _Counting(field, rows, t)
    count = (len(rows) - 1) * batch.every
    table = np.ascontiguousarray(u[:count])
    again = batch._replace(
        field=field, y=np.zeros((1, field.size)), table=table, strides=(0, field.input_size),
        steps=count,
    )  # fmt: skip
    drive(BatchSteps(again), [counting])
    return counting.counters


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
    checked: dict[tuple[str, float], tuple[Array, Array]]
    checked = field.memo.remember("ranges checked", dict)
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
        options["model"] = robot_with_numbers(field.model, values)
        for ask in (joint_inertia, joint_load):  # stops and slip speeds as in the rollout
            known_answer(options["model"], ask, ask(field.model))
        options["control"] = with_numbers(field.control, "control", values)
        if field.contact is not None:
            options["ground"] = with_numbers(field.contact.ground, "ground", values)
    return Field(**options)
