"""Many states at once through compiled fixed-step loops."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ramify.codegen.compile import Compiled, compiled
from ramify.codegen.guards import HUGE_ANGLE
from ramify.codegen.stepper import Layout, Scheme, scratch_doubles, stepper_ir
from ramify.codegen.target import LOCK, host, llvm_available
from ramify.codegen.threads import in_parallel, threads
from ramify.contact.laws import as_ground
from ramify.contact.stability import warn_of_long_steps
from ramify.control.base import as_controller
from ramify.core.arrays import Array
from ramify.core.errors import RamifyError, SimulationError, StateError
from ramify.loops.stabilise import project_rows
from ramify.model.configuration import check_quaternions, checked
from ramify.model.robot import Robot
from ramify.sim.closed_run import (
    decided,
    refuse_contradiction,
    refuse_open,
    refuse_torn,
    stabilisation_rate,
)
from ramify.sim.field import Field, coordinate_rates
from ramify.sim.rates import accelerations, placed, unit
from ramify.sim.schemes import SCHEMES
from ramify.sim.singular_postures import Watch
from ramify.trace.program import Port, Program, trace

_MOST_LINKS = (
    80  # beyond it the right-hand side is called batch by batch instead of being written out
)


@dataclass(frozen=True)
class Rollout:
    """Where the states went: ``t`` (samples,) in s; ``q`` (..., samples, nq), ``v`` (..., samples,
    nv). Without a history: the last state only. ``singular`` (...): of a robot with loops, which
    states have met a singular posture on their way.
    """

    t: Array
    q: Array
    v: Array
    singular: Array | None = None


class _Run(ctypes.Structure):
    _fields_ = (
        *(
            (name, ctypes.c_int64)
            for name in ("steps", "every", "samples", "table_state", "table_step")
        ),
        ("t0", ctypes.c_double),
        ("dt", ctypes.c_double),
    )


class Stepper:
    """The compiled steps of a field under a scheme."""

    def __init__(self, field: Field, scheme: Scheme, project: bool = False) -> None:
        self.field, self.scheme, self.project = field, scheme, project
        self._functions: dict[int, tuple[Compiled, Any]] = {}
        self._local = threading.local()

    @cached_property
    def layout(self) -> Layout:
        model = self.field.model
        return Layout(
            self.field.size, tuple(i for i, _ in model.layout.balls), tuple(range(model.nq))
        )

    @cached_property
    def position(self) -> Program:
        """y -> rates of the coordinates."""
        of_q, of_v, _, _ = self.field.parts
        model = self.field.model
        ports = (Port("t", (1,)), Port("y", (self.field.size,)))
        return trace(
            "position",
            lambda t, y: [coordinate_rates(model, y[of_q], y[of_v])],
            ports,
            (Port("rates", (model.nq,)),),
        )

    def function(self, width: int) -> Any:
        with LOCK:
            if width not in self._functions:
                made = compiled(
                    lambda: self._text(width),
                    "steps",
                    host().with_width(width),
                    f"steps {self.scheme.name} "
                    f"{self.field.fingerprint}{' closed' if self.project else ''}",
                )
                kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p] * 4)
                self._functions[width] = made, kind(made.address)
            return self._functions[width][1]

    def _text(self, width: int) -> str:
        position = self.position if self.scheme.kick else None
        closing = self.field.projection if self.project else None
        target = host().with_width(width)
        body, needed = stepper_ir(
            self.field.program, position, self.layout, self.scheme, target, "steps", closing
        )
        return "\n".join([*sorted(needed), body, ""])

    def run(self, y: Array, table: Array, history: Array, settings: _Run) -> tuple[Array, int]:
        """Advance rows of y (states, size); gives the last rows and the kernel's flags."""
        last = np.empty_like(y)

        def part(start: int, stop: int) -> int:
            width = host().width if stop - start >= host().width else 1
            size = scratch_doubles(self.layout, self.scheme, width) + 8
            if getattr(self._local, "memory", np.empty(0)).size < size:
                self._local.memory = np.empty(size)
            scratch = (self._local.memory.ctypes.data + 63) // 64 * 64
            inputs = (ctypes.c_void_p * 2)(
                y[start:].ctypes.data, table.ctypes.data + 8 * settings.table_state * start
            )
            outputs = (ctypes.c_void_p * 2)(
                last[start:].ctypes.data,
                history.ctypes.data + 8 * settings.samples * y.shape[1] * start,
            )
            return int(
                self.function(width)(
                    stop - start, inputs, outputs, ctypes.addressof(settings), scratch
                )
            )

        parts = min(threads(), max(1, y.shape[0] // 64))
        return last, in_parallel(part, y.shape[0], parts)


def rollout(
    model: Robot,
    q0: ArrayLike,
    v0: ArrayLike,
    *,
    steps: int,
    dt: float,
    tau: ArrayLike | None = None,
    control: Any = None,
    ground: Any = None,
    method: str = "rk4",
    damping: ArrayLike = 0.0,
    every: int | None = None,
    t0: float = 0.0,
    stabilisation: str | float = "projection",
) -> Rollout:
    """Advance a batch of states by fixed steps.

    q0 (..., nq), v0 (..., nv); tau: joint forces, constant (nv,), per step (steps, nv), or per
    state and step (..., steps, nv), held during a step; control: a controller of rf.control, or a
    function (t, q, v) -> tau on batches; ground: a law of rf.contact, a word such as "firm", or a
    mapping; method: "rk4", "rk5", "euler" or "semi_implicit_euler"; damping as in ``simulate``;
    every: keep every so many steps (None: only the last state); stabilisation of loops as in
    ``simulate``.

    States of a robot with loops that meet a singular posture go on; they are named in a
    RuntimeWarning and told in ``singular``. They are looked at about every tenth of a radian (or
    metre) of the fastest joint; the way in between is taken as straight.

    Raises StateError or SimulationError naming what is wrong; a state that grows beyond all bounds
    is named with its index.
    """
    if method not in SCHEMES:
        raise SimulationError(
            f"method {method!r} is not a fixed-step scheme; choose one of {', '.join(SCHEMES)}"
        )
    steps = _whole("steps", steps, 0)
    every = None if every is None else _whole("every", every, 1)
    for name, value, least in (("dt", dt, 0.0), ("t0", t0, -np.inf)):
        if (
            isinstance(value, bool)
            or not isinstance(value, (Real, np.number))
            or not (np.isfinite(value) and value > least)
        ):
            raise SimulationError(
                f"{name} {value!r} must be a finite{' and positive' if name == 'dt' else ''} "
                "number, in s"
            )
    q, v = checked(model, "q0", q0, model.nq), checked(model, "v0", v0, model.nv)
    check_quaternions(
        [i for i, _ in model.layout.balls], model.coordinates, q.reshape(-1, model.nq)
    )
    field = make_field(model, control, damping, ground, stabilisation)
    project = bool(model.loops) and stabilisation == "projection"
    if field.contact is not None:
        _check_step(field, q.reshape(-1, model.nq), method, dt)
    lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    y = np.ascontiguousarray(field.start(q, v)).reshape(-1, field.size)
    if model.loops:
        refuse_open(model, y[:, : model.nq], y[:, model.nq : model.nq + model.nv])
        refuse_contradiction(field, y[:1, : model.nq], t0 + steps * dt)
    states = y.shape[0]
    table, per_state, per_step = _table(model, tau, lead, states, steps)
    samples = steps // every if every else 0
    history = np.empty((states, samples, field.size))
    watch = (
        Watch(model, y[:, : model.nq], decided(field, y[0, : model.nq]), dt)
        if model.loops and states and steps
        else None
    )
    if states and steps:
        if field.traceable and not field.sampled and llvm_available() and model.nv <= _MOST_LINKS:
            stepper = _stepper(model, field, SCHEMES[method], project)
            if watch is None:
                y, flags = stepper.run(
                    y, table, history, _Run(steps, every or 0, samples, per_state, per_step, t0, dt)
                )
            else:
                y, flags = _watched(
                    stepper,
                    watch,
                    y,
                    table,
                    history,
                    _Run(steps, every or 0, samples, per_state, per_step, t0, dt),
                )
            if flags & HUGE_ANGLE:
                raise SimulationError(
                    "an angle has left the range of a million radians: take it modulo 2 pi, or "
                    "give a smaller dt"
                )
        else:
            y = _in_python(
                field,
                SCHEMES[method],
                y,
                table.reshape(-1),
                (per_state, per_step),
                history,
                (steps, every or 0, t0, dt),
                project,
                watch,
            )
    _refuse_divergence(y, history, t0, dt, every)
    if model.loops:
        refuse_torn(model, y[:, : model.nq], y[:, model.nq : model.nq + model.nv])
    singular = None if watch is None else watch.met.reshape(lead)
    if watch is not None:
        watch.warn()
    of_q, of_v, _, _ = field.parts
    if every:
        t = np.asarray(t0 + dt * every * np.arange(1, samples + 1), dtype=np.float64)
        rows = placed(field, t, history.reshape(*lead, samples, field.size))
        return Rollout(t, rows[..., of_q], rows[..., of_v], singular)
    t = np.array([t0 + steps * dt])
    rows = placed(field, t[0], y.reshape(*lead, field.size))
    return Rollout(t, rows[..., of_q], rows[..., of_v], singular)


def _whole(name: str, value: Any, least: int) -> int:
    try:
        number = index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise SimulationError(f"{name} {value!r} must be a whole number of at least {least}")
    return number


def make_field(
    model: Robot,
    control: Any,
    damping: ArrayLike,
    ground: Any = None,
    stabilisation: str | float = "projection",
) -> Field:
    """A field, with what the user gave checked. damping: (nv) as it stands, or one number for all
    joints but floating bases.
    """
    try:
        given = np.asarray(damping, dtype=np.float64)
        friction = np.broadcast_to(given, (model.nv,)).copy()
    except (TypeError, ValueError):
        given = np.empty(model.nv)
        friction = np.full(model.nv, np.nan)
    if not np.isfinite(friction).all() or (friction < 0.0).any():
        raise StateError(
            f"damping must be a number or ({model.nv},), finite and not negative; got {damping!r}"
        )
    if (
        given.size < model.nv
    ):  # one number: friction in joints, not between a floating base and the air
        for joint in model.joints:
            if joint.kind in ("free", "free_euler"):
                friction[model.joint_slice(joint.name)] = 0.0
    rate = stabilisation_rate(stabilisation) if model.loops else 0.0
    made = Field(
        model,
        _controller(control, model),
        tuple(float(d) for d in friction),
        _ground(ground, model),
        rate,
    )
    _ = made.contact  # says what does not fit
    return made


_checked: dict[tuple[str, str, float], None] = {}


def _check_step(field: Field, q: Array, method: str, dt: float) -> None:
    """Warn, once, of a step that is too long for the ground."""
    assert field.contact is not None
    key = (field.contact.fingerprint, method, float(dt))
    if key not in _checked:
        _checked[key] = None
        warn_of_long_steps(field.contact, q, method, dt)


def _ground(ground: Any, model: Robot) -> Any:
    if ground is None:
        return None

    return as_ground(ground, model)


def _controller(control: Any, model: Robot) -> Any:
    if control is None:
        return None

    return as_controller(control, model)


_known: dict[tuple[str, str], Stepper] = {}


def _stepper(model: Robot, field: Field, scheme: Scheme, project: bool) -> Stepper:
    """Steppers of earlier calls are used again."""
    key = (field.fingerprint, f"{scheme.name} {project}")
    if key not in _known:
        if len(_known) >= 64:
            _known.pop(next(iter(_known)))
        _known[key] = Stepper(field, scheme, project)
    return _known[key]


def _table(
    model: Robot, tau: ArrayLike | None, lead: tuple[int, ...], states: int, steps: int
) -> tuple[Array, int, int]:
    """The table of joint forces and its strides (per state, per step), in numbers."""
    if tau is None:
        return np.zeros(model.nv), 0, 0
    a = checked(model, "tau", tau, model.nv)
    if a.ndim == 1:
        return np.ascontiguousarray(a), 0, 0
    if a.shape == (steps, model.nv):
        return np.ascontiguousarray(a), 0, model.nv
    try:
        full = np.broadcast_to(a, (*lead, steps, model.nv))
    except ValueError:
        want = f"({model.nv},), ({steps}, {model.nv}) or ({', '.join(map(str, (*lead, steps, model.nv)))})"
        raise StateError(f"tau has shape {a.shape}; it must be {want}") from None
    return np.ascontiguousarray(full).reshape(states, steps, model.nv), steps * model.nv, model.nv


def _watched(
    stepper: Stepper, watch: Watch, y: Array, table: Array, history: Array, run: _Run
) -> tuple[Array, int]:
    """The steps of a stepper in stretches, with a look at the loops after each."""
    of_q, of_v, _, _ = stepper.field.parts
    done, flags, none = 0, 0, np.empty((len(y), 0, y.shape[1]))
    while done < run.steps:
        count = min(watch.steps(y[:, of_v]), run.steps - done)
        if run.every:
            count = min(count, run.every - done % run.every)
        part = _Run(count, 0, 0, run.table_state, run.table_step, run.t0 + done * run.dt, run.dt)
        forces = table[..., done:, :] if run.table_step else table
        y, now = stepper.run(y, forces, none, part)
        done, flags = done + count, flags | now
        watch.look(y[:, of_q])
        if run.every and done % run.every == 0:
            history[:, done // run.every - 1] = y
    return y, flags


def _refuse_divergence(y: Array, history: Array, t0: float, dt: float, every: int | None) -> None:
    bad = np.flatnonzero(~np.isfinite(y).all(axis=1))
    if bad.size:
        state = int(bad[0])
        when = ""
        if every:
            fine = np.isfinite(history[state]).all(axis=1)
            when = (
                f" before t = {t0 + dt * every * (int(np.argmin(fine)) + 1):g} s"
                if not fine.all()
                else " after the last sample"
            )
        raise SimulationError(
            f"state {state} ({bad.size} of {y.shape[0]} in all) grows beyond all bounds{when}; a "
            "smaller dt may help"
        )


def _in_python(
    field: Field, scheme: Scheme, y: Array, table: Array, strides: tuple[int, int], history: Array,
    run: tuple[int, int, float, float], project: bool = False, watch: Watch | None = None,
) -> Array:  # fmt: skip
    """The same steps with Python between them: for user functions, sampled controllers and very
    large robots.
    """
    steps, every, t0, dt = run
    of_q, of_v, _, _ = field.parts

    model, nv = field.model, field.model.nv
    rates = _batch_rates(field)
    hold = (
        None
        if field.control is None or field.control.rate_hz is None
        else 1.0 / field.control.rate_hz
    )
    held, due = np.zeros((y.shape[0], nv)), t0
    look = 0 if watch is None else watch.steps(y[:, of_v])
    for step in range(steps):
        t = t0 + step * dt
        start = np.arange(y.shape[0]) * strides[0] + step * strides[1]
        u = table[start[:, None] + np.arange(nv)]
        if hold is not None and t >= due - 1e-9 * hold:
            held, due = np.asarray(_torque(field, t, y)), due + hold
        u = u + held
        stages: list[Array] = []
        for row, c in zip(scheme.a, scheme.c, strict=True):
            at = y + dt * sum(
                (k * a for k, a in zip(stages, row, strict=False)), start=np.zeros_like(y)
            )
            stages.append(rates(t + c * dt, at, u))
        moved = y + dt * sum(
            (k * b for k, b in zip(stages, scheme.b, strict=True)), start=np.zeros_like(y)
        )
        if scheme.kick:
            moved[:, of_q] = y[:, of_q] + dt * _coordinate_rates(model, y[:, of_q], moved[:, of_v])
        for i, _ in model.layout.balls:
            moved[:, i : i + 4] /= np.linalg.norm(moved[:, i : i + 4], axis=1, keepdims=True)
        if project:
            moved[:, of_q], moved[:, of_v] = project_rows(model, moved[:, of_q], moved[:, of_v])
        y = moved
        if watch is not None and step + 1 in (look, steps):
            watch.look(y[:, of_q])
            look = step + 1 + watch.steps(y[:, of_v])
        if every and (step + 1) % every == 0:
            history[:, (step + 1) // every - 1] = y
    return y


def _torque(field: Field, t: float, y: Array) -> Array:
    """The controller's joint forces (states, nv) for a batch; what it raises is told with the time."""
    of_q, of_v, of_z, _ = field.parts
    assert field.control is not None
    y = unit(field.model, y)
    try:
        return np.asarray(
            field.control.torque(field.model, t, y[:, of_q], y[:, of_v], y[:, of_z], field.contact),
            dtype=np.float64,
        )
    except RamifyError:
        raise
    except Exception as error:
        raise SimulationError(f"the controller raised {error!r} at t = {t:g} s") from error


def _coordinate_rates(model: Robot, q: Array, v: Array) -> Array:
    """dq/dt (states, nq) of a batch."""
    return np.stack(
        [np.broadcast_to(x, q.shape[:1]) for x in coordinate_rates(model, list(q.T), list(v.T))],
        axis=1,
    )


def _batch_rates(field: Field) -> Callable[[float, Array, Array], Array]:
    """y' for rows of y by calling the robot's kernels."""
    model = field.model
    of_q, of_v, of_z, _ = field.parts
    damping = np.array(field.damping)

    def rates(t: float, y: Array, u: Array) -> Array:
        if field.prescribed is not None:
            return np.stack(
                np.broadcast_arrays(*field.text(t, list(unit(model, y).T), list(u.T))), axis=1
            )
        q, v = unit(model, y)[:, of_q], y[:, of_v]
        tau = u if field.control is None or field.sampled else u + _torque(field, t, y)
        if not np.isfinite(tau).all():
            state, joint = (int(i) for i in np.argwhere(~np.isfinite(tau))[0])
            raise SimulationError(
                f"the controller gave {tau[state, joint]} for {model.velocities[joint]!r} at t = "
                f"{t:g} s (state {state})"
            )
        a, heat = accelerations(field, q, v, tau - damping * v)
        own = np.zeros((y.shape[0], field.states))
        if field.states and field.control is not None:
            columns = [list(x.T) for x in (q, v, y[:, of_z])]
            own = np.stack(np.broadcast_arrays(*field.torque(t, *columns)[1]), axis=1)
        moved = _coordinate_rates(model, y[:, of_q], v)
        work, loss = (tau * v).sum(axis=1), (damping * v * v).sum(axis=1)
        return np.concatenate([moved, a, own, work[:, None], loss[:, None], heat], axis=1)

    return rates
