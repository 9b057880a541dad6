"""Simulation of one robot over time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ramify.contact.hard import as_contact
from ramify.contact.step_limits import warn_of_long_steps, warn_of_start_in_ground
from ramify.core.arrays import Array
from ramify.core.errors import RamifyError, SimulationError
from ramify.core.memory import refuse_too_large
from ramify.emit.stepper import Scheme
from ramify.integrate.closed_run import LoopMonitor, SingularPostureError, driven_velocities
from ramify.integrate.closed_start import (
    closed_start,
    refuse_contradiction,
    start_on_prescribed_motion,
)
from ramify.integrate.driver import OBSERVERS, Observer, drive, new_observers
from ramify.integrate.hard_starts import hard_stats, refuse_deep_start, warn_of_open_steps
from ramify.integrate.integrator import Adaptive, Integrator
from ramify.integrate.integrators import AUTO, find_integrator
from ramify.integrate.machine_steps import (
    fixed_method,
    hard_method,
    refuse_implicit,
    warn_of_stiff_joints,
)
from ramify.integrate.options import Event, Options, worth_compiling
from ramify.integrate.run_observers import (
    Events,
    LoopWatch,
    Runaway,
    SampledControl,
    ScheduledPushes,
    StiffSwitch,
)
from ramify.integrate.run_steps import RunSteps
from ramify.model.configuration import check_quaternions, checked
from ramify.model.robot import Robot, the_robot
from ramify.plant.field import Field
from ramify.plant.kernel_parts import unit
from ramify.plant.make_field import (
    ContactLike,
    ControlLike,
    GroundLike,
    PlantOptions,
    make_field,
)
from ramify.plant.pressed_stops import PRESSED
from ramify.plant.pushes import Pushes, WrenchesLike, pushes_of
from ramify.plant.rates import Rates, apply_prescribed_motion
from ramify.plant.shared_code import shared
from ramify.runs.limits_reached import (
    warn_beyond_stops,
    warn_of_chatter,
    warn_of_degrees,
    warn_of_soft_stops,
)
from ramify.runs.recorder import record_run
from ramify.runs.run_options import checked_options
from ramify.runs.run_record import Run
from ramify.runs.run_recording import ProgressBar, Recording
from ramify.runs.starts import warn_of_replaced_start

CONTACT_STEP = 0.01
"""s: the longest step over a ground, and under wrenches that are a function of time, by default, so
that a short touch or push is not stepped over.
"""
_VAST = 1e100  # a last state with larger numbers is left out: its energy overflows


def simulate(
    model: Robot,
    t_end: float,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    control: ControlLike = None,
    ground: GroundLike = None,
    method: str = "auto",
    rtol: float = 1e-8,
    atol: float = 1e-10,
    dt_out: float = 0.01,
    *,
    step: float | None = None,
    max_step: float = np.inf,
    damping: ArrayLike = 0.0,
    events: Mapping[str, Event] | None = None,
    progress: bool = False,
    stabilisation: str | float = "projection",
    at_singularity: str = "stop",
    passive: bool = True,
    stops: bool = True,
    efforts: bool = True,
    wrenches: WrenchesLike = None,
    contact: ContactLike = None,
) -> Run:
    """Simulate from t = 0 to t_end seconds.

    - q0 (nq), v0 (nv): the start; neutral, or with loops as m.assemble() gives it, and at rest.
    - control: a controller of rf.control, a function (t, q, v) -> tau, or None.
    - ground: a law of rf.contact such as Firm(), a word ("firm", "dusty", "hunt_crossley"), a
      mapping as in scenario files, or None.
    - method: "auto" (dop853, and lsoda from where the motion proves stiff); adaptive ("dop853",
      "rk45" = "ode45", "radau", "bdf" = "ode15s", "lsoda", …) with tolerances rtol and atol; or
      with a fixed ``step`` in s ("rk4", "rk5" = "ode5", "ab4", "semi_implicit_euler", "energy",
      "implicit_euler", "implicit_extrapolation"; "auto" takes an implicit one on a ground and where
      stiff joints make rk4 unstable, else rk4).
    - dt_out: seconds between rows of output.
    - max_step: the longest step of an adaptive method, s; over a ground, and where wrenches are a
      function, 0.01 by default.
    - damping: viscous friction (nv) in the joints, or a number for all but floating bases.
    - events: {name: function of (t, q, v)}; the run ends where one changes its sign.
    - progress: show a bar. Ctrl-C ends the run and keeps what was computed.
    - stabilisation of loops: "projection" (after each step, in position and velocity), a rate in
      1/s (Baumgarte's), or "none".
    - at_singularity: "stop" where loops pass a singular posture (a dead centre), or "pass": go on
      with the velocity there, and note the time in ``stats``.
    - passive: springs, damping, friction, tendons and gravity compensation of the machine act;
      stops: joints stop at their limits; efforts: drives give no more than they can. Each is
      switched off by False, and the result says so.
    - wrenches: external wrenches {link: [moment; force]} as in ``Model.inverse_dynamics``; a
      function of time that gives such; or pushes [(start, end, {link: …}), …], at whose ends (s)
      the integration starts anew.
    - contact: "hard" or rf.contact.Hard(…), in place of a ground: with a fixed step (2 to 5 ms;
      shortened so that it divides dt_out), points do not enter the ground and friction sticks;
      stops, dry friction and loops are solved in the same step. See docs/hard_contact.md.

    Raises SimulationError where the run cannot go on; its ``result`` holds what was computed until
    then, the last state reached included.
    """
    arguments = checked_options(locals())  # all but the model, by name
    the_robot(model)
    hard = as_contact(contact) is not None
    auto = str(method).lower() == AUTO and not hard
    integrator = hard_method(method, step) if hard else _integrator(method, step)
    if step is None and max_step == np.inf and (ground is not None or callable(wrenches)):
        max_step = CONTACT_STEP
    options = Options(
        integrator, t_end, dt_out, rtol, atol, step, max_step, {} if events is None else events,
        progress, auto and step is None,
    )  # fmt: skip
    rows = int(t_end / dt_out) + 1, model.nq + 3 * model.nv
    refuse_too_large("the rows of output", rows, "give a larger dt_out")
    q, v = _state(model, q0, v0)
    pushes = None if wrenches is None else pushes_of(model, wrenches, options.grid)
    machine = PlantOptions(
        damping, ground, stabilisation, passive, stops, efforts,
        pushed=() if pushes is None else pushes.names, contact=contact,
    )  # fmt: skip
    field = shared(make_field(model, control, machine))
    if auto and step is not None:
        integrator = fixed_method(field, q, step)
        options = replace(options, integrator=integrator)
    elif isinstance(integrator.method, Scheme) and integrator.method.implicit:
        refuse_implicit(field)
    run, start = _Simulation(field, options, arguments, pushes), field.start(q, v)
    if model.loops:
        q, v, run.start_note = closed_start(model, q0, q, v)
        refuse_contradiction(field, q, t_end)
        q, v, note = start_on_prescribed_motion(field, q, v)
        run.start_note = note or run.start_note
        project = stabilisation == "projection" and not hard  # hard steps close loops
        driven = driven_velocities(field, q)
        run.loop_monitor = LoopMonitor(model, project, at_singularity, driven, rtol)
    warn_of_replaced_start(field, 0.0, start[None], q0 is not None, v0 is not None)
    if field.stops and not hard:
        warn_beyond_stops(model, q, PRESSED)
    if hard:
        refuse_deep_start(field, q[None], options.dividing_step)
    if field.contact is not None:
        warn_of_start_in_ground(field.contact, q[None])
    stability = None if isinstance(integrator.method, Adaptive) else integrator.method.stability
    if field.contact is not None and stability is not None and step is not None:
        warn_of_long_steps(field.contact, q[None], integrator.name, step, stability)
    if step is not None:
        warn_of_stiff_joints(field, q, integrator.name, step, stability)
    result = run.result(q, v)
    if run.loop_monitor is not None:
        run.loop_monitor.warn()
    if field.stops and not hard:
        warn_of_soft_stops(model, result.q)
    warn_of_open_steps(result.stats.get("unconverged_steps", 0), result.stats["steps"])
    if field.efforts and control is not None:
        warn_of_chatter(model, result.tau)
    return result


def _integrator(method: str, step: float | None) -> Integrator:
    """The method of a run without hard contact, before its stiffness is known."""
    auto = str(method).lower() == AUTO
    return find_integrator(("dop853" if step is None else "rk4") if auto else method)


def _state(model: Robot, q0: ArrayLike | None, v0: ArrayLike | None) -> tuple[Array, Array]:
    q = model.neutral() if q0 is None else checked(model, "q0", q0, model.nq)
    v = np.zeros(model.nv) if v0 is None else checked(model, "v0", v0, model.nv)
    if q.ndim != 1 or v.ndim != 1:
        raise SimulationError("simulate runs one state; for many use rf.rollout")
    check_quaternions([i for i, _ in model.layout.balls], model.coordinates, q[None])
    warn_of_degrees(model, q)
    return q, v


class _Simulation:
    """One run: its steps, what acts on it and watches over it, and its samples so far."""

    def __init__(
        self, field: Field, options: Options, arguments: Mapping[str, Any], pushes: Pushes | None
    ) -> None:
        self.field, self.options, self.arguments, self.pushes = field, options, arguments, pushes
        self.loop_monitor: LoopMonitor | None = None
        self.start_note = ""
        self.switch = StiffSwitch()

    def result(self, q: Array, v: Array) -> Run:
        """The run from (q, v); an error carries what was computed until then."""
        started = time.perf_counter()
        self.steps, failure = self._begin(q, v), None
        self.recording = Recording(self.steps)
        bar = ProgressBar(self.field, self.recording, self.arguments)
        try:
            drive(self.steps, [*self._observers(), *([bar] if self.options.progress else [])])
        except KeyboardInterrupt:
            self.steps.status = "interrupted"
        except Exception as error:
            failure = self._failure(error)
            self.steps.status = f"failed: {failure}"
        finally:
            bar.close()
        wall = time.perf_counter() - started
        whole = self.steps.status == "finished"
        run = self._collect(wall) if whole else self._stopped(wall)
        if failure is not None:
            failure.result = run
            raise failure from failure.__cause__
        return run

    def _begin(self, q: Array, v: Array) -> RunSteps:
        field, options, pushes, monitor = self.field, self.options, self.pushes, self.loop_monitor
        rates = Rates(field, worth_compiling(field, options))
        rates.timed = pushes.at if pushes is not None and pushes.follows else None
        closing = monitor.closing if monitor is not None else None
        one_by_one = bool(options.events) or monitor is not None or bool(OBSERVERS)
        return RunSteps(rates, options, field.start(q, v), one_by_one, closing)

    def _observers(self) -> list[Observer]:
        """In their order: what acts, what may end the run, what is recorded."""
        field, rate = self.field, None if self.field.control is None else self.field.control.rate_hz
        observers: list[Observer] = []
        if rate is not None:
            observers.append(SampledControl(field, rate))
        if self.pushes is not None:
            observers.append(ScheduledPushes(self.pushes))
        if self.loop_monitor is not None:
            observers.append(LoopWatch(self.loop_monitor))
        if self.options.events:
            observers.append(Events(field, self.options.events))
        return [*observers, self.recording, Runaway(), self.switch, *new_observers(field)]

    def _failure(self, error: Exception) -> SimulationError:
        """The error that ended the run, as a SimulationError with its cause."""
        if not isinstance(error, RamifyError):
            t = self.recording.reached[0]
            failure = SimulationError(f"the run stopped at t = {t:g} s: {error!r}")
            failure.__cause__ = error
            return failure
        hint = ""
        if self.loop_monitor is not None and not isinstance(error, SingularPostureError):
            hint = self.loop_monitor.suspicion
        if isinstance(error, SimulationError) and not hint:
            return error
        failure = SimulationError(f"{error}{hint}")
        failure.__cause__ = error.__cause__
        return failure

    # ---- results ----

    def _stopped(self, wall: float) -> Run:
        """What was computed until the run ended early, with the last state that it reached where
        that has accelerations.
        """
        recording, (t, y) = self.recording, self.recording.reached
        last = recording.times[-1][-1]
        if t > last + 1e-9 * self.options.dt_out and np.abs(y).max() < _VAST:
            recording.keep(self.steps, np.array([t]), y[None])
            try:
                return self._collect(wall)
            except RamifyError:  # as in gimbal lock; what ended the run is reported instead
                recording.drop()
        return self._collect(wall)

    def _collect(self, wall: float) -> Run:
        field, kept, counters = self.field, self.recording, self.steps.counters
        t, inputs = np.concatenate(kept.times), np.concatenate(kept.inputs)
        if self.pushes is not None and self.pushes.follows:
            inputs[:, field.model.nv :] = [self.pushes.at(x) for x in t.tolist()]
        y = apply_prescribed_motion(field, t, unit(field.model, np.concatenate(kept.rows)))
        actual: dict[str, Any] = {
            "method": self.switch.switched or self.steps.integrator.name,
            "max_step": self.options.max_step,
            "wrenches": None if self.pushes is None else self.pushes.described,
        }  # fmt: skip
        stats: dict[str, Any] = {
            "steps": counters.steps, "evaluations": counters.evaluations,
            "wall_time": wall,
        }  # fmt: skip
        if field.hard is not None:
            stats |= hard_stats(field, y)
            actual["step"] = self.options.dividing_step
        if self.loop_monitor is not None:
            actual["start"] = self.start_note or "as given"
            if self.arguments["q0"] is None:  # to be assembled once more
                actual["q0"] = None
            stats["singular_postures"] = list(self.loop_monitor.passed)
            stats["thrown_by_loops"] = self.loop_monitor.thrown
        return record_run(
            field,
            t,
            y,
            inputs,
            options=self.arguments,
            actual=actual,
            stats=stats,
            status=self.steps.status,
        )
