"""Many states at once through compiled fixed steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.contact.step_limits import warn_of_buried_start, warn_of_long_steps
from ramify.control.controller import Controller
from ramify.core.arrays import Array, one_number, real, together, whole
from ramify.core.errors import SimulationError, StateError
from ramify.core.memory import refuse_too_large
from ramify.core.names import one_of
from ramify.dynamics.parameters import Parameter, packed
from ramify.emit.stepper import Scheme
from ramify.integrate.closed_start import refuse_contradiction, refuse_open, warn_of_changed_rates
from ramify.integrate.integrators import AUTO, scheme_of
from ramify.integrate.machine_steps import batch_method, refuse_implicit, warn_of_stiff_joints
from ramify.integrate.rollout_states import Policy, RolloutStates, Status
from ramify.model.configuration import check_quaternions, checked
from ramify.model.locks import check_locks, locks
from ramify.model.robot import Robot, the_robot
from ramify.plant.field import Field
from ramify.plant.make_field import ControlLike, GroundLike, make_field
from ramify.plant.pushes import WrenchesLike, wrench_table
from ramify.plant.rates import apply_prescribed_motion
from ramify.plant.varied_field import known_parameters, varied_start
from ramify.runs.limits_reached import MOVING, warn_beyond_stops
from ramify.runs.rollout_run import run_of_state, warn_of_stiff_states
from ramify.runs.run_record import Run
from ramify.sensitivity.gradient import DifferentiableSteps, Gradient, RolloutTangent, Sensitivity
from ramify.sensitivity.sensitivity import MEMORY, StepSequence


@dataclass(frozen=True, repr=False)
class RolloutRecord:
    """Where the states went: ``t`` (samples,) in s; ``q`` (..., samples, nq), ``v`` (..., samples,
    nv). Without a history: the last state only. ``status`` says which states failed; their rows are
    NaN from there on. ``method``: the scheme of its steps. ``singular`` (...): of a robot with
    loops, which states have met a singular posture on their way.
    """

    t: Array
    q: Array
    v: Array
    singular: NDArray[np.bool_] | None = None
    status: Status = field(default_factory=lambda: Status(np.zeros((), dtype=bool)))
    steps: DifferentiableSteps | None = field(default=None, repr=False, compare=False)
    method: str = ""
    kept: RolloutStates | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        lead = self.status.failed.shape
        states = " × ".join(map(str, lead)) if lead else "1"
        by = f", by {self.method}" if self.method else ""
        return f"<ramify.Rollout: {states} states, {self.t.size} samples, {self.status}{by}>"

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles carry the samples, not what made them."""
        return {**self.__dict__, "kept": None}

    def _run(self, index: tuple[int, ...]) -> Run:
        """See Rollout.result."""
        if self.kept is None:
            raise SimulationError(
                "this rollout has kept its last states alone (or is a copy, which carries no more "
                "than its samples); rollout(…, every=1) keeps the way there, every=10 each tenth "
                "step of it, which is enough unless a Python function or a sampled controller "
                "gives the forces"
            )
        return run_of_state(self.kept, index, self.method)

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
    ) -> RolloutTangent:
        """RolloutTangent(q, v): rates of the samples, each (..., samples, nv), along directions of
        the start, q0 and v0 (..., nv), of tau, (nv,), (steps, nv) or (..., steps, nv), and of the
        parameters.
        """
        return RolloutTangent(*self._steps.tangent(q0, v0, tau, parameters))

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
    wrenches: WrenchesLike = None,
) -> RolloutRecord:
    """Advance a batch of states by fixed steps of dt (s), from the time t0 (s).

    q0 (..., nq), v0 (..., nv); tau: joint forces, constant (nv,), per step (steps, nv), or per
    state and step (..., steps, nv), held during a step (constant per state: (..., 1, nv); an array
    (steps, nv) is read as per step, also where there are as many states); they act on every
    coordinate, also where no motor is (passive joints, a floating base): leave zeros there;
    control: a controller of rf.control, or a function (t, q, v) -> tau, called once a step with the
    whole batch, q (..., nq) and v (..., nv), whose forces (..., nv) are held during the step (at a
    lower rate: rf.control.Function(f, vectorized=True, rate_hz=50)); ground: a law of rf.contact, a
    word such as "firm", or a mapping; method: a fixed-step scheme ("rk4", "rk5", "euler",
    "semi_implicit_euler", "implicit_euler", "implicit_extrapolation", …) or "auto": rk4, but an
    implicit scheme on a ground and where stiff joints make rk4 unstable; damping as in
    ``simulate``; every: keep the states after every so many steps, without the start, and without
    the end where steps is no multiple of it (by default only the last state); stabilisation of
    loops, passive, stops and efforts as in ``simulate``; parameters: constants of the machine by
    name (``rf.parameters``) with a value for every state, e.g. {"link3.mass": (N,)}: each state
    then has a robot of its own, which its controller knows; wrenches: external wrenches {link:
    [moment; force]} as in ``Model.inverse_dynamics``, held during a step: constant (6,), per state
    (..., 6), per step (steps, 6), or per state and step (..., steps, 6); or, as in ``simulate``, a
    function of time (asked in the middle of each step) or pushes [(start, end, {link: …}), …].

    A state that diverges is marked in ``status``, with its index, time and reason, and reported in
    a RuntimeWarning; the others go on. on_failure="raise" makes it an error, as it is where all
    states fail and ``every`` keeps no samples. Its rows are NaN, which the next rollout takes as
    failed before. States of a robot with loops that meet a singular posture go on; they are
    reported in a RuntimeWarning and marked in ``singular``. They are looked at about every tenth of
    a radian (or metre) of the fastest joint; the way in between is taken as straight.

    Raises StateError or SimulationError naming what is wrong, such as a start in gimbal lock.
    """
    the_robot(model)
    options = (
        model, steps, dt, control, ground, method, damping, every, t0, stabilisation, on_failure,
        passive, stops, efforts,
    )  # fmt: skip
    plan = _plan(*options)
    lost: tuple[int, ...] = ()
    try:
        q, v = checked(model, "q0", q0, model.nq), checked(model, "v0", v0, model.nv)
    except StateError as error:
        q, v, tau, lost = _without_lost(model, q0, v0, tau, error)
    rows = q.reshape(-1, model.nq)
    if model.layout.balls:
        check_quaternions([i for i, _ in model.layout.balls], model.coordinates, rows)
    _, equation, scheme, method, policy, project, steps, every, dt, t0 = plan
    if locks(model):
        _check_locks(equation, rows)
    lead = q.shape[:-1]
    if v.shape[:-1] != lead:
        lead = together(q0=lead, v0=v.shape[:-1])
    if parameters is not None:
        known = known_parameters(equation)
        varied, values = packed(known, parameters, model.name)
        if 0 < len(lead) < values.ndim - 1:
            _refuse_grid(known, parameters, lead)
        lead = together(q0=lead, parameters=values.shape[:-1])
    pushed: tuple[str, ...] = ()
    if wrenches is not None:
        pushed, outside = wrench_table(model, wrenches, lead, steps, dt, t0)
        equation = _plan(*options, pushed).equation if pushed else equation
    if parameters is None:
        y = equation.start(q, v)
    else:
        equation, y = varied_start(equation, varied, q, v, values)
        states = y.reshape(-1, equation.size)
        warn_of_stiff_states(equation, states, method, dt, scheme.stability)
    y = y.reshape(-1, equation.size)
    if equation.contact is not None:
        _check_ground(equation, y[:, : model.nq], method, scheme, dt)
    if equation.stops:
        warn_beyond_stops(model, q, MOVING)
    if len(y):
        warn_of_stiff_joints(equation, y[0, : model.nq], method, dt, scheme.stability)
    if model.loops:
        begun = apply_prescribed_motion(equation, np.full(len(y), t0), y)
        given = begun[:, : model.nq], begun[:, model.nq : model.nq + model.nv]
        refuse_open(model, *given)
        if project and len(y):
            warn_of_changed_rates(model, *given)
        refuse_contradiction(equation, y[:1, : model.nq], t0 + steps * dt)
    table, strides = _table(model, tau, lead, len(y), steps)
    if pushed:
        table, strides = _beside(table, strides, outside)
    work = RolloutStates(equation, scheme, project, lead, steps, dt, t0, every, lost)
    work.options = {"stabilisation": stabilisation}
    work.advance(y, table, strides, policy)
    back = None
    if policy is None:
        shape = None if tau is None else np.shape(tau)
        back = DifferentiableSteps(
            StepSequence(equation, scheme, project, y, table, strides, steps, dt, t0, every),
            lead, shape,
        )  # fmt: skip
    kept = work if every else None
    return RolloutRecord(*work.answer(on_failure), steps=back, method=method, kept=kept)


def _without_lost(
    model: Robot, q0: ArrayLike, v0: ArrayLike, tau: ArrayLike | None, error: StateError
) -> tuple[Array, Array, ArrayLike | None, tuple[int, ...]]:
    """(q, v, tau, lost): the states of a batch, those that an earlier rollout has left as NaN in
    the place of the first good one, without forces; and which these are. The error, where that is
    not what is wrong.
    """
    q, v = real("q0", q0), real("v0", v0)
    gone = np.asarray(np.isnan(q).all(axis=-1))
    if q.ndim < 2 or gone.shape != v.shape[:-1] or gone.all() or not gone.any():
        raise error
    good = tuple(int(i) for i in np.argwhere(~gone)[0])
    q, v = np.where(gone[..., None], q[good], q), np.where(gone[..., None], v[good], v)
    q, v = checked(model, "q0", q, model.nq), checked(model, "v0", v, model.nv)
    if tau is not None and np.shape(tau)[: gone.ndim] == gone.shape and np.ndim(tau) > q.ndim:
        tau = np.array(real("tau", tau))
        tau[gone] = 0.0
    return q, v, tau, tuple(np.flatnonzero(gone).tolist())


def _refuse_grid(
    known: Mapping[str, Parameter], given: Mapping[str, ArrayLike], lead: tuple[int, ...]
) -> None:
    """Refuse values that would make a grid of states and robots out of a batch of states."""
    for name, value in given.items():
        size, shape = known[name].size, np.shape(value)
        want = lead if size == 1 else (*lead, size)
        if len(shape) > len(want):
            own = name.startswith("control.") and size == 1
            hint = "; it is one number for all joints: give the controller one each" if own else ""
            raise StateError(
                f"{name} has shape {shape}, but the states are a batch {lead}: it must be {want}"
                f"{hint}; for a grid give q0 and v0 an axis of their own, such as q0[:, None]"
            )


class _RolloutPlan(NamedTuple):
    """What a rollout does whatever its states: options that were checked, and the right-hand side.
    ``given``: the objects it was made from, whose ids stay theirs.
    """

    given: tuple[object, ...]
    equation: Field
    scheme: Scheme
    method: str
    policy: Policy | None
    project: bool
    steps: int
    every: int
    dt: float
    t0: float


def _plan(
    model: Robot, steps: int, dt: float, control: ControlLike, ground: GroundLike, method: str,
    damping: ArrayLike, every: int | None, t0: float, stabilisation: str | float, on_failure: str,
    passive: bool, stops: bool, efforts: bool, pushed: tuple[str, ...] = (),
) -> _RolloutPlan:  # fmt: skip
    """The plan of these options; that of an earlier call where they are the same."""
    options = (steps, dt, method, damping, every, t0, stabilisation, on_failure, passive, stops,
               efforts, pushed)  # fmt: skip
    key: object = (
        *map(type, options),
        id(control),
        ground if isinstance(ground, str) else id(ground),
        *options,
    )
    known: dict[object, _RolloutPlan] = model.memo.setdefault("rollouts", {})
    try:
        found = known.get(key)
    except TypeError:  # an array
        found = key = None
    if found is not None:
        return found
    auto = method is AUTO or str(method).lower() == AUTO
    scheme = scheme_of("rk4" if auto else method)
    steps = whole("steps", steps, 0, SimulationError)
    every = 0 if every is None else whole("every", every, 1, SimulationError)
    if every > steps > 0:
        raise SimulationError(
            f"every={every} is more than steps={steps}, so that no state would be kept; leave "
            "every out to get the last one"
        )
    _check_time("dt", dt, positive=True)
    _check_time("t0", t0, positive=False)
    one_of("on_failure", on_failure, ("warn", "raise"), SimulationError)
    policy = control if callable(control) and not isinstance(control, Controller) else None
    equation = make_field(
        model, None if policy else control, damping, ground, stabilisation, passive, stops,
        efforts, counted=False, pushed=pushed,
    )  # fmt: skip
    keeps = key is not None and any(equation is f for f in model.memo["fields"].values())
    if auto:
        method = batch_method(equation, float(dt)).name
        scheme = scheme_of(method)
    if scheme.implicit:
        refuse_implicit(equation)
        equation = equation.implicitly
    project = bool(model.loops) and stabilisation == "projection"
    plan = _RolloutPlan(
        (control, ground), equation, scheme, method, policy, project, steps, every, float(dt),
        float(t0),
    )  # fmt: skip
    if keeps:  # parts that may change between calls are looked at again
        while len(known) >= 16:
            known.pop(next(iter(known)))
        known[key] = plan
    return plan


def _check_time(name: str, value: object, positive: bool) -> None:
    if type(value) is float and (0.0 if positive else -inf) < value < inf:
        return
    number = one_number(value)
    if not isfinite(number) or (positive and number <= 0.0):
        raise SimulationError(
            f"{name} {value!r} must be a finite{' and positive' if positive else ''} number, in s"
        )


def _check_locks(equation: Field, q: Array) -> None:
    """Refuse starts in gimbal lock and warn of those near one, but for prescribed joints."""
    model, motion = equation.model, equation.prescribed
    watched = locks(model)
    if watched and motion is not None:
        held = motion.driven(equation.robot_text).v
        watched = tuple(k for k in watched if model.joint_slice(k.joint).start not in held)
    check_locks(watched, model.coordinates, q)


def _check_ground(equation: Field, q: Array, method: str, scheme: Scheme, dt: float) -> None:
    """Warn, once for a robot, of a step that is too long for the ground, and of a start in it."""
    assert equation.contact is not None
    warned: set[Any] = equation.model.memo.setdefault("warned of long steps", set())
    key = (equation.contact.fingerprint, method, float(dt))
    if key not in warned:
        warned.add(key)
        warn_of_long_steps(equation.contact, q, method, dt, scheme.stability)
        warn_of_buried_start(equation.contact, q)


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
    refuse_too_large("tau of all states and steps", full.shape, "roll out fewer states at once")
    flat = np.ascontiguousarray(full).reshape(states, steps, model.nv)
    return flat, (steps * model.nv, model.nv)


def _beside(table: Array, strides: tuple[int, int], more: Array) -> tuple[Array, tuple[int, int]]:
    """A table of joint forces with others beside it, (states or 1, steps or 1, n)."""
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
