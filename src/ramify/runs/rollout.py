"""Many states at once through compiled fixed steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.contact.step_limits import warn_of_long_steps, warn_of_start_in_ground
from ramify.core.arrays import Array, together
from ramify.core.errors import SimulationError, StateError
from ramify.core.memory import refuse_too_large
from ramify.dynamics.parameters import Parameter, packed
from ramify.emit.stepper import Scheme
from ramify.integrate.closed_start import (
    refuse_contradiction,
    refuse_open_states,
    warn_of_changed_rates,
    warn_of_lost_freedoms,
)
from ramify.integrate.hard_starts import refuse_deep_start, warn_of_open_steps
from ramify.integrate.machine_steps import warn_of_stiff_joints
from ramify.integrate.rollout_states import RolloutStates, Status
from ramify.model.configuration import checked
from ramify.model.locks import check_locks, locks
from ramify.model.robot import Robot, the_robot
from ramify.plant.field import Field
from ramify.plant.make_field import ContactLike, ControlLike, GroundLike
from ramify.plant.pushes import WrenchesLike, wrench_table
from ramify.plant.rates import apply_prescribed_motion
from ramify.plant.varied_field import known_parameters, varied_start
from ramify.runs.limits_reached import MOVING, warn_beyond_stops
from ramify.runs.rollout_plan import RolloutOptions, RolloutPlan, plan_of
from ramify.runs.rollout_run import run_of_state, warn_of_stiff_states
from ramify.runs.run_record import Run
from ramify.runs.starts import checked_starts, warn_of_replaced_start
from ramify.sensitivity.gradient import DifferentiableSteps, Gradient, RolloutTangent, Sensitivity
from ramify.sensitivity.hard_sequence import HardStepSequence
from ramify.sensitivity.sensitivity import MEMORY, StepSequence


@dataclass(frozen=True, repr=False)
class RolloutRecord:
    """Where the states went: ``t`` (samples,) in s; ``q`` (..., samples, nq), ``v`` (..., samples,
    nv). Without a history: the last state only. ``status`` says which states failed; their rows are
    NaN from there on. ``method``: the scheme of its steps. ``singular`` (...): of a robot with
    loops, which states have met a singular posture.
    """

    t: Array
    q: Array
    v: Array
    singular: NDArray[np.bool_] | None = None
    status: Status = field(default_factory=lambda: Status(np.zeros((), dtype=bool)))
    steps: DifferentiableSteps | None = field(default=None, repr=False, compare=False)
    method: str = ""
    recorded_states: RolloutStates | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        lead = self.status.failed.shape
        states = " × ".join(map(str, lead)) if lead else "1"
        by = f", by {self.method}" if self.method else ""
        return f"<ramify.Rollout: {states} states, {self.t.size} samples, {self.status}{by}>"

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles contain the samples, not the steps behind them."""
        return {**self.__dict__, "recorded_states": None}

    def _run(self, index: tuple[int, ...]) -> Run:
        """See Rollout.result."""
        if self.recorded_states is None:
            raise SimulationError(
                "this rollout has recorded its last states alone (or is a copy, which contains no "
                "more than its samples); rollout(…, every=1) records every step, every=10 each "
                "tenth, which is enough unless a Python function or a sampled controller "
                "gives the forces"
            )
        return run_of_state(self.recorded_states, index, self.method)

    def gradient(
        self, q: ArrayLike | None = None, v: ArrayLike | None = None, memory: int = MEMORY
    ) -> Gradient:
        """Gradient(q0, v0, tau, parameters): derivatives of a number L from its derivatives by q
        and v of the samples, each (..., samples, nv), without a history (..., nv).

        Derivatives by coordinates are along velocities: see ``Model.integrate``. They are those of
        the discrete steps, exactly; on a ground, of the contacts as they are. The run is computed
        again, in segments if its states take more than ``memory`` bytes, and then backward.
        """
        return self._steps.gradient(self.q, q, v, memory)

    def tangent(
        self,
        q0: ArrayLike | None = None,
        v0: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        parameters: Mapping[str, ArrayLike] | None = None,
    ) -> RolloutTangent:
        """RolloutTangent(q, v): rates of the samples, each (..., samples, nv), along directions of
        the start, q0 and v0 (..., nv), of tau, (nv,), (steps, nv) or (..., steps, nv), and of the
        parameters.
        """
        return RolloutTangent(*self._steps.tangent(q0, v0, tau, parameters))

    def sensitivity(self) -> Sensitivity:
        """Sensitivity(x0, tau, parameters): derivatives of the last state [q, v] by the first one,
        by constant joint forces and by the parameters, all directions at once.
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
    wrenches: WrenchesLike = None,
    contact: ContactLike = None,
) -> RolloutRecord:
    """Advance a batch of states by fixed steps of dt (s), from the time t0 (s).

    - q0 (..., nq), v0 (..., nv): the start.
    - tau: joint forces, constant (nv,), per step (steps, nv), or per state and step (..., steps,
      nv), each constant during a step. Constant per state: (..., 1, nv); an array (steps, nv) is
      read as per step, also where there are as many states. They act on every coordinate, also
      where no motor is (passive joints, a floating base): leave zeros there.
    - control: a controller of rf.control, or a function (t, q, v) -> tau, called once a step with
      the whole batch, q (..., nq) and v (..., nv); its forces (..., nv) are constant during the
      step (at a lower rate: rf.control.Function(f, vectorized=True, rate_hz=50)).
    - ground: a law of rf.contact, a word such as "firm", or a mapping.
    - method: a fixed-step scheme ("rk4", "rk5", "euler", "semi_implicit_euler", "implicit_euler",
      "implicit_extrapolation", …) or "auto": rk4, but an implicit scheme on a ground and where
      stiff joints make rk4 unstable.
    - every: record the states after every multiple of this number of steps, without the start, and
      without the end where steps is not a multiple of it; by default only the last state.
    - damping, stabilisation of loops, passive, stops, efforts: as in ``simulate``.
    - parameters: constants of the machine by name (``rf.parameters``) with a value for every state,
      e.g. {"link3.mass": (N,)}: each state then has its own robot, which its controller knows.
    - wrenches: external wrenches {link: [moment; force]} as in ``Model.inverse_dynamics``, constant
      (6,), per state (..., 6), per step (steps, 6), or per state and step (..., steps, 6), each
      constant during a step; or, as in ``simulate``, a function of time (called for the middle of
      each step) or pushes [(start, end, {link: …}), …].
    - contact: "hard" or rf.contact.Hard(…), in place of a ground, as in ``simulate``.

    A state that diverges is marked in ``status``, with its index, time and reason, and reported in
    a RuntimeWarning; the others go on. on_failure="raise" makes it an error, as it is where all
    states fail and ``every`` keeps no samples. Its rows are NaN, which the next rollout treats as
    already failed. States of a robot with loops that meet a singular posture go on; they are
    reported in a RuntimeWarning and marked in ``singular``. They are checked about every tenth of
    a radian (or metre) of the fastest joint; in between the motion is taken as straight.

    Raises StateError or SimulationError naming what is wrong, such as a start in gimbal lock.
    """
    the_robot(model)
    options = RolloutOptions(
        control, ground, steps, dt, method, damping, every, t0, stabilisation, on_failure, passive,
        stops, efforts, contact=contact,
    )  # fmt: skip
    plan = plan_of(model, options)
    q, v, tau, unknown = checked_starts(model, q0, v0, tau)
    equation = plan.equation
    if locks(model):
        _check_locks(equation, q.reshape(-1, model.nq))
    lead = q.shape[:-1]
    if v.shape[:-1] != lead:
        lead = together(q0=lead, v0=v.shape[:-1])
    varied: Sequence[str] = ()
    if parameters is not None:
        varied, values, lead = _parameter_values(equation, parameters, lead)
    pushed: tuple[str, ...] = ()
    if wrenches is not None:
        pushed, outside = wrench_table(model, wrenches, lead, plan.steps, plan.dt, plan.t0)
        equation = plan_of(model, options._replace(pushed=pushed)).equation if pushed else equation
    if parameters is None:
        y = equation.start(q, v).reshape(-1, equation.size)
    else:
        equation, y = varied_start(equation, varied, q, v, values)
        y = y.reshape(-1, equation.size)
        warn_of_stiff_states(equation, y, plan.method, plan.dt, plan.scheme.stability)
    _check_start(equation, plan, q, y)
    refuse_deep_start(equation, y[:, : model.nq], plan.dt)
    warn_of_replaced_start(equation, plan.t0, y)
    table, strides = _table(model, tau, lead, len(y), plan.steps)
    if pushed:
        table, strides = _with_wrenches(table, strides, outside)
    kind = StepSequence if equation.hard is None else HardStepSequence
    batch = kind(
        equation, plan.scheme, plan.project, y, table, strides, plan.steps, plan.dt, plan.t0,
        plan.every,
    )  # fmt: skip
    already_failed = np.flatnonzero(np.broadcast_to(unknown, lead)) if unknown.any() else ()
    work = RolloutStates(batch, lead, tuple(map(int, already_failed)))
    work.options = {"stabilisation": stabilisation}
    work.advance(plan.policy)
    back = None
    if plan.policy is None:
        shape = None if tau is None else np.shape(tau)
        back = DifferentiableSteps(batch, lead, shape)
    recorded = work if plan.every else None
    answer = work.answer(on_failure)
    if equation.hard is not None and len(work.y):
        open_steps = np.nan_to_num(work.y[:, equation.of_hard][:, -1])
        warn_of_open_steps(int(open_steps.sum()), plan.steps * len(work.y))
    return RolloutRecord(*answer, steps=back, method=plan.method, recorded_states=recorded)


def _parameter_values(
    equation: Field, parameters: Mapping[str, ArrayLike], lead: tuple[int, ...]
) -> tuple[Sequence[str], Array, tuple[int, ...]]:
    """(names, values (..., size in all), shape of the batch) of the constants that vary."""
    table = known_parameters(equation)
    names, values = packed(table, parameters, equation.model.name)
    if 0 < len(lead) < values.ndim - 1:
        _refuse_grid(table, parameters, lead)
    return names, values, together(q0=lead, parameters=values.shape[:-1])


def _check_start(equation: Field, plan: RolloutPlan, q: Array, y: Array) -> None:
    """Refuse loops that are open at the start; warn of steps that are too long and of starts in
    the ground or beyond a stop. y (states, size).
    """
    model, n = equation.model, equation.model.nq
    if equation.contact is not None:
        _check_ground(equation, y[:, :n], plan.method, plan.scheme, plan.dt)
    if equation.stops and equation.hard is None:
        warn_beyond_stops(model, q, MOVING)
    if len(y):
        warn_of_stiff_joints(equation, y[0, :n], plan.method, plan.dt, plan.scheme.stability)
    if model.loops:
        start = apply_prescribed_motion(equation, np.full(len(y), plan.t0), y)
        state = start[:, :n], start[:, n : n + model.nv]
        refuse_open_states(model, *state)
        if plan.project and len(y):
            warn_of_changed_rates(model, *state)
        if len(y):
            warn_of_lost_freedoms(model, state[0][0])
        refuse_contradiction(equation, y[:1, :n], plan.t0 + plan.steps * plan.dt)


def _refuse_grid(
    table: Mapping[str, Parameter], parameters: Mapping[str, ArrayLike], lead: tuple[int, ...]
) -> None:
    """Refuse values that would make a grid of states and robots out of a batch of states."""
    for name, value in parameters.items():
        size, shape = table[name].size, np.shape(value)
        want = lead if size == 1 else (*lead, size)
        if len(shape) > len(want):
            of_controller = name.startswith("control.") and size == 1
            hint = (
                "; it is one number for all joints: give the controller one each"
                if of_controller
                else ""
            )
            raise StateError(
                f"{name} has shape {shape}, but the states are a batch {lead}: it must be {want}"
                f"{hint}; for a grid give q0 and v0 an axis of their own, such as q0[:, None]"
            )


def _check_locks(equation: Field, q: Array) -> None:
    """Refuse starts in gimbal lock and warn of those near one, but for prescribed joints."""
    model, motion = equation.model, equation.prescribed
    watched = locks(model)
    if watched and motion is not None:
        driven = motion.driven(equation.robot_text).v
        watched = tuple(k for k in watched if model.joint_slice(k.joint).start not in driven)
    check_locks(watched, model.coordinates, q)


def _check_ground(equation: Field, q: Array, method: str, scheme: Scheme, dt: float) -> None:
    """Warn, once for a robot, of a step that is too long for the ground, and of a start in it."""
    assert equation.contact is not None
    warned: set[Any] = equation.model.memo.remember("warned of long steps", set)
    key = (equation.contact.fingerprint, method, float(dt))
    if key not in warned:
        warned.add(key)
        warn_of_long_steps(equation.contact, q, method, dt, scheme.stability)
        warn_of_start_in_ground(equation.contact, q)


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
        shape = ", ".join(map(str, (*lead, steps, model.nv)))
        want = f"({model.nv},), ({steps}, {model.nv}) or ({shape})"
        raise StateError(f"tau has shape {a.shape}; it must be {want}") from None
    refuse_too_large("tau of all states and steps", full.shape, "roll out fewer states at once")
    flat = np.ascontiguousarray(full).reshape(states, steps, model.nv)
    return flat, (steps * model.nv, model.nv)


def _with_wrenches(
    table: Array, strides: tuple[int, int], more: Array
) -> tuple[Array, tuple[int, int]]:
    """A table of joint forces with columns of wrenches, (states or 1, steps or 1, n), appended."""
    if not strides[0]:
        table = table[None]
    if not strides[1]:
        table = table[..., None, :]
    lead = np.broadcast_shapes(table.shape[:-1], more.shape[:-1])
    both = np.concatenate(
        [np.broadcast_to(x, (*lead, x.shape[-1])) for x in (table, more)], axis=-1
    )
    states, steps, n = both.shape
    both = both[:, 0] if steps == 1 else both
    both = both[0] if states == 1 else both
    return np.ascontiguousarray(both), (steps * n * (states > 1), n * (steps > 1))
