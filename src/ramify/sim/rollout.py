"""Many states at once through compiled fixed steps."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from operator import index
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.codegen.guards import HUGE_ANGLE
from ramify.codegen.stepper import Scheme
from ramify.codegen.vector import ANGLE_LIMIT
from ramify.contact.step_limits import warn_of_long_steps
from ramify.control.controller import Controller
from ramify.control.function_controller import refuse_undriven
from ramify.control.robot_text import RobotText
from ramify.core.arrays import Array, real, together
from ramify.core.errors import RamifyError, SimulationError, StateError
from ramify.dynamics.parameters import packed
from ramify.loops.stabilise import project_rows
from ramify.model.configuration import check_quaternions, checked
from ramify.model.robot import Robot
from ramify.sim.closed_run import decided, refuse_contradiction, refuse_open, refuse_torn
from ramify.sim.field import Field
from ramify.sim.gradient import DifferentiableSteps, Gradient, Sensitivity
from ramify.sim.integrators import AUTO, scheme_of
from ramify.sim.limits_reached import warn_beyond_stops
from ramify.sim.machine_steps import batch_method, refuse_implicit, warn_of_stiff_joints
from ramify.sim.make_field import ControlLike, GroundLike, make_field
from ramify.sim.options import RUNAWAY
from ramify.sim.rates import entry_name, placed, rates_of, sample
from ramify.sim.sensitivity import MEMORY, StepSequence
from ramify.sim.singular_postures import Watch
from ramify.sim.stepping import Stepper, stepper
from ramify.sim.text_steps import text_step
from ramify.sim.varied_field import known_parameters, varied_start

Policy = Callable[[float, Array, Array], ArrayLike]


@dataclass(frozen=True)
class Failure:
    """A state that could not go on: its ``index`` in the batch, the time ``t`` in s at which it was
    found, and the reason.
    """

    index: tuple[int, ...]
    t: float
    reason: str


@dataclass(frozen=True)
class Status:
    """Which states of a rollout went on to the end: ``failed`` (...) is True for the others, which
    ``failures`` lists.
    """

    failed: NDArray[np.bool_]
    failures: tuple[Failure, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all states went on to the end."""
        return not self.failures

    def __str__(self) -> str:
        if self.ok:
            return "finished"
        first = self.failures[0]
        where = first.index[0] if len(first.index) == 1 else first.index
        return (
            f"{len(self.failures)} of {self.failed.size} states failed; state {where} at "
            f"t = {first.t:g} s: {first.reason}"
        )


@dataclass(frozen=True)
class Rollout:
    """Where the states went: ``t`` (samples,) in s; ``q`` (..., samples, nq), ``v`` (..., samples,
    nv). Without a history: the last state only. ``status`` says which states failed; their rows are
    NaN from there on. ``singular`` (...): of a robot with loops, which states have met a singular
    posture on their way.
    """

    t: Array
    q: Array
    v: Array
    singular: NDArray[np.bool_] | None = None
    status: Status = field(default_factory=lambda: Status(np.zeros((), dtype=bool)))
    steps: DifferentiableSteps | None = field(default=None, repr=False, compare=False)

    def gradient(
        self, q: ArrayLike | None = None, v: ArrayLike | None = None, memory: int = MEMORY
    ) -> Gradient:
        """Gradient(q0, v0, tau, parameters): derivatives of a number L from its derivatives by q
        and v of the samples, each (..., samples, nv), without a history (..., nv).

        Derivatives by coordinates are along velocities: see ``Model.integrate``. They are those of
        the discrete steps, exactly; on a ground, of the contacts as they are. The run is computed
        again, in stretches if its states take more than ``memory`` bytes, and then backward.
        """
        return self._steps.gradient(self.q, q, v, memory)

    def tangent(
        self,
        q0: ArrayLike | None = None,
        v0: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        parameters: Mapping[str, ArrayLike] | None = None,
    ) -> tuple[Array, Array]:
        """(dq, dv) of the samples, each (..., samples, nv), along directions of the start, q0 and
        v0 (..., nv), of tau, (nv,), (steps, nv) or (..., steps, nv), and of the parameters.
        """
        return self._steps.tangent(q0, v0, tau, parameters)

    def sensitivity(self) -> Sensitivity:
        """Sensitivity(x0, tau, parameters): derivatives of the last state [q, v] by the first one,
        by held joint forces and by the parameters, a direction beside the other.
        """
        return self._steps.sensitivity()

    @property
    def _steps(self) -> DifferentiableSteps:
        if self.steps is None:
            raise SimulationError(
                "a rollout with a function of Python between its steps has no derivatives; give a "
                "controller of rf.control, or tau"
            )
        return self.steps


def rollout(
    model: Robot,
    q0: ArrayLike,
    v0: ArrayLike,
    *,
    steps: int,
    dt: float,
    tau: ArrayLike | None = None,
    control: ControlLike = None,
    ground: GroundLike = None,
    method: str = "auto",
    damping: ArrayLike = 0.0,
    every: int | None = None,
    t0: float = 0.0,
    stabilisation: str | float = "projection",
    on_failure: Literal["warn", "raise"] = "warn",
    passive: bool = True,
    stops: bool = True,
    efforts: bool = True,
    parameters: Mapping[str, ArrayLike] | None = None,
) -> Rollout:
    """Advance a batch of states by fixed steps.

    q0 (..., nq), v0 (..., nv); tau: joint forces, constant (nv,), per step (steps, nv), or per
    state and step (..., steps, nv), held during a step; control: a controller of rf.control, or a
    function (t, q, v) -> tau, called once a step with the whole batch, q (..., nq) and v (..., nv),
    whose forces (..., nv) are held during the step; ground: a law of rf.contact, a word such as
    "firm", or a mapping; method: a fixed-step scheme ("rk4", "rk5", "euler", "semi_implicit_euler",
    "implicit_euler", "implicit_extrapolation", …) or "auto": rk4, but an implicit scheme on a
    ground and where stiff joints make rk4 unstable; damping as in ``simulate``; every: keep every
    so many steps (by default only the last state); stabilisation of loops, passive, stops and
    efforts as in ``simulate``; parameters: constants of the machine by name
    (``rf.parameters``) with a value for every state, e.g. {"link3.mass": (N,)}: each state then has
    a robot of its own, which its controller knows.

    A state that diverges is marked in ``status``, with its index, time and reason, and reported in
    a RuntimeWarning; the others go on. on_failure="raise" makes it an error, as it is where all
    states fail. States of a robot with loops that meet a singular posture go on; they are reported
    in a RuntimeWarning and marked in ``singular``. They are looked at about every tenth of a radian
    (or metre) of the fastest joint; the way in between is taken as straight.

    Raises StateError or SimulationError naming what is wrong.
    """
    auto = str(method).lower() == AUTO
    scheme = scheme_of("rk4" if auto else method)
    steps = _whole("steps", steps, 0)
    every = 0 if every is None else _whole("every", every, 1)
    _check_time("dt", dt, positive=True)
    _check_time("t0", t0, positive=False)
    if on_failure not in ("warn", "raise"):
        raise SimulationError(f"on_failure {on_failure!r} must be 'warn' or 'raise'")
    q, v = checked(model, "q0", q0, model.nq), checked(model, "v0", v0, model.nv)
    if model.layout.balls:
        starts = [i for i, _ in model.layout.balls]
        check_quaternions(starts, model.coordinates, q.reshape(-1, model.nq))
    policy = control if callable(control) and not isinstance(control, Controller) else None
    law = None if policy else control
    equation = make_field(
        model, law, damping, ground, stabilisation, passive, stops, efforts, counted=False
    )
    if auto:
        method = batch_method(equation, float(dt)).name
        scheme = scheme_of(method)
    if scheme.implicit:
        refuse_implicit(equation)
        equation = equation.implicitly
    project = bool(model.loops) and stabilisation == "projection"
    lead = q.shape[:-1]
    if v.shape[:-1] != lead:
        lead = together(q0=lead, v0=v.shape[:-1])
    if parameters is None:
        y = equation.start(q, v)
    else:
        names, values = packed(known_parameters(equation), parameters, model.name)
        lead = together(q0=lead, parameters=values.shape[:-1])
        equation, y = varied_start(equation, names, q, v, values)
    y = y.reshape(-1, equation.size)
    if equation.contact is not None:
        _check_step(equation, y[:, : model.nq], method, scheme, dt)
    if equation.stops and not model.loops:
        warn_beyond_stops(model, q)
    if len(y):
        warn_of_stiff_joints(equation, y[0, : model.nq], method, float(dt), scheme.stability)
    if model.loops:
        refuse_open(model, y[:, : model.nq], y[:, model.nq : model.nq + model.nv])
        refuse_contradiction(equation, y[:1, : model.nq], t0 + steps * dt)
    table, strides = _table(model, tau, lead, len(y), steps)
    work = _RolloutStates(equation, scheme, project, lead, steps, float(dt), float(t0), every)
    work.advance(y, table, strides, policy)
    back = None
    if policy is None:
        shape = None if tau is None else np.shape(tau)
        back = DifferentiableSteps(
            StepSequence(
                equation, scheme, project, y, table, strides, steps, float(dt), float(t0),
                every,
            ),
            lead, shape,
        )  # fmt: skip
    return replace(work.result(on_failure), steps=back)


def _whole(name: str, value: object, least: int) -> int:
    try:
        number = index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise SimulationError(f"{name} {value!r} must be a whole number of at least {least}")
    return number


def _check_time(name: str, value: object, positive: bool) -> None:
    real = isinstance(value, (Real, np.number)) and not isinstance(value, bool)
    if not (real and np.isfinite(value) and (not positive or value > 0.0)):  # type: ignore[call-overload, operator]
        raise SimulationError(
            f"{name} {value!r} must be a finite{' and positive' if positive else ''} number, in s"
        )


def _check_step(equation: Field, q: Array, method: str, scheme: Scheme, dt: float) -> None:
    """Warn, once for a robot, of a step that is too long for the ground."""
    assert equation.contact is not None
    warned: set[Any] = equation.model.memo.setdefault("warned of long steps", set())
    key = (equation.contact.fingerprint, method, float(dt))
    if key not in warned:
        warned.add(key)
        warn_of_long_steps(equation.contact, q, method, dt, scheme.stability)


def _table(
    model: Robot, tau: ArrayLike | None, lead: tuple[int, ...], states: int, steps: int
) -> tuple[Array, tuple[int, int]]:
    """The table of joint forces and its strides (per state, per step), in numbers."""
    if tau is None:
        return np.zeros(model.nv), (0, 0)
    a = checked(model, "tau", tau, model.nv)
    if a.ndim == 1:
        return np.ascontiguousarray(a), (0, 0)
    if a.shape == (steps, model.nv):
        return np.ascontiguousarray(a), (0, model.nv)
    try:
        full = np.broadcast_to(a, (*lead, steps, model.nv))
    except ValueError:
        own = ", ".join(map(str, (*lead, steps, model.nv)))
        want = f"({model.nv},), ({steps}, {model.nv}) or ({own})"
        raise StateError(f"tau has shape {a.shape}; it must be {want}") from None
    flat = np.ascontiguousarray(full).reshape(states, steps, model.nv)
    return flat, (steps * model.nv, model.nv)


class _RolloutStates:
    """States on their way, and those that failed."""

    def __init__(
        self, equation: Field, scheme: Scheme, project: bool, lead: tuple[int, ...], steps: int,
        dt: float, t0: float, every: int,
    ) -> None:  # fmt: skip
        self.field, self.scheme, self.project, self.lead = equation, scheme, project, lead
        self.steps, self.dt, self.t0, self.every = steps, dt, t0, every
        self.watch: Watch | None = None
        self.failures: dict[int, tuple[float, str]] = {}

    def advance(
        self, y: Array, table: Array, strides: tuple[int, int], policy: Policy | None
    ) -> None:
        model = self.field.model
        self.y, self.begin, self.strides = y, y, strides
        self.table = table
        samples = self.steps // self.every if self.every else 0
        self.history = np.empty((len(y), samples, self.field.size))
        if not (len(y) and self.steps):
            return
        if model.loops:
            q = y[:, : model.nq]
            self.watch = Watch(model, q, decided(self.field, q[0]), self.dt)
        compiles = self.field.compiles and not self.field.sampled
        steps = stepper(self.field, self.scheme, self.project) if compiles else None
        if steps is None or policy is not None:
            self._step_by_step(steps, policy)
        elif self.watch is not None:
            self._watched(steps, self.watch)
        else:
            self.y, flags = steps.run(
                y, table, self.steps, self.dt, self.t0, strides=strides,
                history=self.history, every=self.every,
            )  # fmt: skip
            if flags or self._runs_away(self.y):
                self._mark(flags, steps)

    # ---- ways to step ----

    def _watched(self, steps: Stepper, watch: Watch) -> None:
        """In stretches, with a look at the loops after each."""
        of_q, of_v, _, _ = self.field.parts
        done = 0
        while done < self.steps:
            count = min(watch.steps(self.y[:, of_v]), self.steps - done)
            if self.every:
                count = min(count, self.every - done % self.every)
            forces = self.table[..., done:, :] if self.strides[1] else self.table
            time = self.t0 + done * self.dt
            self.y, flags = steps.run(self.y, forces, count, self.dt, time, strides=self.strides)
            done += count
            if flags or self._runs_away(self.y):
                self._note(self.t0 + done * self.dt, flags)
            watch.look(self.y[:, of_q])
            self._record(done)

    def _step_by_step(self, steps: Stepper | None, policy: Policy | None) -> None:
        """With Python between the steps: for functions, sampled controllers, very large robots."""
        field, model = self.field, self.field.model
        of_q, of_v, _, _ = field.parts
        rate = field.control.rate_hz if field.control is not None else None
        held, due = np.zeros((len(self.y), model.nv)), self.t0
        table, (by_state, by_step) = self.table.reshape(-1), self.strides
        look = 0 if self.watch is None else self.watch.steps(self.y[:, of_v])
        driven = RobotText(model).driven().v if policy is not None else ()
        for step in range(self.steps):
            t = self.t0 + step * self.dt
            begin = np.arange(len(self.y)) * by_state + step * by_step
            u = table[begin[:, None] + np.arange(model.nv)]
            if policy is not None:
                u = u + self._asked(policy, t, driven)
            if rate is not None and t >= due - 1e-9 / rate:
                held, due = sample(field, t, self.y), due + 1.0 / rate
                u = u + held
            elif rate is not None:
                u = u + held
            flags = 0
            if steps is not None:
                self.y, flags = steps.run(self.y, u, 1, self.dt, t, strides=(model.nv, 0))
            else:
                self.y = self._in_python(t, u)
            if flags or self._runs_away(self.y):
                self._note(t + self.dt, flags)
            if self.watch is not None and step + 1 in (look, self.steps):
                self.watch.look(self.y[:, of_q])
                look = step + 1 + self.watch.steps(self.y[:, of_v])
            self._record(step + 1)

    def _asked(self, policy: Policy, t: float, driven: tuple[int, ...]) -> Array:
        """The forces (states, nv) of a function of the whole batch."""
        field, model = self.field, self.field.model
        of_q, of_v, _, _ = field.parts
        q, v = (
            self.y[:, part].reshape(*self.lead, part.stop - part.start) for part in (of_q, of_v)
        )
        name = getattr(policy, "__qualname__", type(policy).__qualname__)
        try:
            found = real(f"what {name} gives", policy(t, q, v))
        except RamifyError as error:
            raise SimulationError(f"{error} (at t = {t:g} s)") from error
        except Exception as error:
            raise SimulationError(
                f"the controller raised {error!r} at t = {t:g} s; it is called with the whole "
                f"batch, q {q.shape} and v {v.shape}; rf.control.Function({name}) calls it state "
                "by state"
            ) from error
        if found.shape in ((*self.lead, model.nv), (model.nv,)):
            refuse_undriven(name, found, model, driven)
            tau = np.broadcast_to(found, (*self.lead, model.nv)).reshape(-1, model.nv)
        elif found.shape in ((*self.lead, len(driven)), (len(driven),)):
            tau = np.zeros((len(self.y), model.nv))
            tau[:, list(driven)] = found.reshape(-1, len(driven))
        else:
            sizes = dict.fromkeys((model.nv, len(driven)))
            wanted = " or ".join(str((*self.lead, n)) for n in sizes)
            raise SimulationError(
                f"{name} gives forces of shape {found.shape} at t = {t:g} s; it must give {wanted}"
            )
        bad = np.argwhere(~np.isfinite(tau))
        alive = [(i, j) for i, j in bad.tolist() if i not in self.failures]
        if alive:
            i, j = alive[0]
            raise SimulationError(
                f"the controller gave {tau[i, j]} for {model.velocities[j]!r} at t = {t:g} s "
                f"(state {i})"
            )
        return tau

    def _in_python(self, t: float, u: Array) -> Array:
        field, model = self.field, self.field.model
        of_q, of_v, _, _ = field.parts
        moved = text_step(
            field, self.scheme, lambda now, at: rates_of(field, now, at, u), t, self.y, u, self.dt
        )
        if self.project:
            moved[:, of_q], moved[:, of_v] = project_rows(model, moved[:, of_q], moved[:, of_v])
        return moved

    def _record(self, done: int) -> None:
        if self.every and done % self.every == 0:
            self.history[:, done // self.every - 1] = self.y

    # ---- states that fail ----

    def _runs_away(self, y: Array) -> bool:
        """Whether some state is not finite, or moves faster than any machine."""
        if np.abs(y).max(initial=0.0) < RUNAWAY:  # False for NaN
            return False
        fast = np.abs(y[:, self.field.parts[1]]) < RUNAWAY
        return not (fast.all() and np.isfinite(y[:, self.field.parts[0]]).all())

    def _failing(self, y: Array) -> dict[int, str]:
        """Rows that are not finite or run away, or have an angle beyond the range of the kernels,
        and why.
        """
        out: dict[int, str] = {}
        for i in np.flatnonzero(~np.isfinite(y).all(axis=1)).tolist():
            place = int(np.flatnonzero(~np.isfinite(y[i]))[0])
            out[i] = f"{entry_name(self.field, place)!r} grows beyond all bounds"
        model, v = self.field.model, np.abs(y[:, self.field.parts[1]])
        for i in np.flatnonzero((v >= RUNAWAY).any(axis=1)).tolist():
            name = model.velocities[int(np.argmax(v[i]))]
            out.setdefault(i, f"the motion runs away: the rate of {name!r} exceeds {RUNAWAY:g}")
        steps = [step for joint in model.joints for step in joint.steps]
        where = zip(model.layout.plain_q, model.layout.plain_v, strict=True)
        angles = [i for i, j in where if steps[j].rho]
        q = np.abs(y[:, angles])
        for i in np.flatnonzero((q > ANGLE_LIMIT * (1.0 - 1e-6)).any(axis=1)).tolist():
            name = model.coordinates[angles[int(np.argmax(q[i]))]]
            out.setdefault(i, f"{name!r} leaves the range of a million radians")
        return out

    def _note(self, t: float, flags: int) -> None:
        """Mark the states that fail now; they stay NaN."""
        found = self._failing(self.y)
        self._refuse_unknown(found, flags)
        for i, reason in found.items():
            self.failures.setdefault(i, (t, reason))
        self.y[list(self.failures)] = np.nan

    @staticmethod
    def _refuse_unknown(found: Mapping[int, str], flags: int) -> None:
        if flags & HUGE_ANGLE and not found:
            raise SimulationError(
                "an angle of the controller or its motion leaves the range of a million radians: "
                "take it modulo 2 pi, or give a smaller dt"
            )

    def _mark(self, flags: int, steps: Stepper) -> None:
        """After all steps: find when each failing state failed, by going its way again."""
        found = self._failing(self.y)
        self._refuse_unknown(found, flags)
        for i in found:
            done, reason = self._first_bad(i, steps)
            self.failures[i] = self.t0 + done * self.dt, reason
            self.y[i] = np.nan
            if self.every:
                self.history[i, max(done - 1, 0) // self.every :] = np.nan

    def _first_bad(self, i: int, steps: Stepper) -> tuple[int, str]:
        """The step after which state i fails, and why, in stretches of ever fewer steps."""
        y, done, left = self.begin[i : i + 1], 0, self.steps
        table, (by_state, by_step) = self.table.reshape(-1), self.strides
        while left > 0:
            stride = max(1, left // 64)
            history = np.empty((1, left // stride, self.field.size))
            steps.run(
                y, table[i * by_state + done * by_step :], left // stride * stride, self.dt,
                self.t0 + done * self.dt, strides=(0, by_step), history=history, every=stride,
            )  # fmt: skip
            rows = history[0]
            found = self._failing(rows)
            first = min(found, default=len(rows))
            if found and stride == 1:
                return done + first + 1, found[first]
            if first:
                y = rows[first - 1 : first].copy()
            done += first * stride
            left = stride if found else left - len(rows) * stride
        return self.steps, "it grows beyond all bounds"

    # ---- result ----

    def result(self, on_failure: str) -> Rollout:
        model, field = self.field.model, self.field
        status = self._status(on_failure)
        if model.loops:
            fine = ~status.failed.reshape(-1)
            y = self.y[fine]
            refuse_torn(model, y[:, : model.nq], y[:, model.nq : model.nq + model.nv])
        singular = None if self.watch is None else self.watch.met.reshape(self.lead)
        if self.watch is not None:
            self.watch.warn()
        of_q, of_v, _, _ = field.parts
        rows, t = self.y, np.array([self.t0 + self.steps * self.dt])
        if self.every:
            rows = self.history
            t = self.t0 + self.dt * self.every * np.arange(1.0, rows.shape[1] + 1.0)
            rows = placed(field, t, rows.reshape(*self.lead, *rows.shape[1:]))
        else:
            rows = placed(field, t[0], rows.reshape(*self.lead, field.size))
        return Rollout(t, rows[..., of_q], rows[..., of_v], singular, status)

    def _status(self, on_failure: str) -> Status:
        failed = np.zeros(len(self.y), dtype=bool)
        failed[list(self.failures)] = True
        if not self.failures:
            return Status(failed.reshape(self.lead))
        status = Status(
            failed.reshape(self.lead),
            tuple(
                Failure(tuple(int(k) for k in np.unravel_index(i, self.lead or (1,)))
                        if self.lead else (), t, reason)
                for i, (t, reason) in sorted(self.failures.items())
            ),
        )  # fmt: skip
        if failed.all() or on_failure == "raise":
            raise SimulationError(f"{status}; a smaller dt may help")
        warnings.warn(
            f"{status}; their rows are NaN from there on, see Rollout.status; a smaller dt may "
            "help",
            RuntimeWarning,
            stacklevel=4,
        )
        return status
