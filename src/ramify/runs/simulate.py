"""Simulation of one robot over time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ramify.contact.hard import as_contact
from ramify.contact.step_limits import warn_of_buried_start, warn_of_long_steps
from ramify.core.arrays import Array
from ramify.core.bar import Bar
from ramify.core.cached import cached_property
from ramify.core.errors import RamifyError, SimulationError
from ramify.core.memory import refuse_too_large
from ramify.drives.machine_forces import passive_forces
from ramify.emit.stepper import Scheme
from ramify.integrate.closed_run import LoopMonitor, SingularPostureError, driven_velocities
from ramify.integrate.closed_start import (
    closed_start,
    refuse_contradiction,
    start_on_prescribed_motion,
)
from ramify.integrate.hard_starts import hard_stats, refuse_deep_start, warn_of_open_steps
from ramify.integrate.integrator import Adaptive, Correction, Integrator
from ramify.integrate.integrators import AUTO, find
from ramify.integrate.machine_steps import (
    fixed_method,
    hard_method,
    refuse_implicit,
    warn_of_stiff_joints,
)
from ramify.integrate.options import RUNAWAY, Event, Options, worth_compiling
from ramify.integrate.run_segments import Progress, RunSegment, StepChunk, first_event
from ramify.kernels.queries import energy
from ramify.model.configuration import check_quaternions, checked
from ramify.model.robot import Robot, the_robot
from ramify.plant.field import Field
from ramify.plant.make_field import ContactLike, ControlLike, GroundLike, make_field
from ramify.plant.pressed_stops import PRESSED
from ramify.plant.pushes import Pushes, WrenchesLike, pushes_of
from ramify.plant.rates import Rates, apply_prescribed_motion, bristles_of, sample, unit
from ramify.plant.shared_code import shared
from ramify.runs.energy_balance import EnergyBalance
from ramify.runs.limits_reached import (
    warn_beyond_stops,
    warn_of_chatter,
    warn_of_degrees,
    warn_of_soft_stops,
)
from ramify.runs.recorder import record_run
from ramify.runs.run_options import checked_options
from ramify.runs.run_record import Run

CONTACT_STEP = 0.01
"""s: the longest step over a ground, and under wrenches that are a function of time, by default, so
that a short touch or push is not stepped over.
"""
_VAST = 1e100  # a last state with larger numbers is left out: its energy overflows
_DRIFT = 200  # steps of a method of several steps before loops are closed again


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
    - contact: "hard" or rf.contact.Hard(…), in place of a ground: with a fixed step (2 to 5 ms),
      points do not enter the ground and friction sticks; stops, dry friction and loops are solved
      in the same step. See docs/hard_contact.md.

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
    field = shared(
        make_field(
            model, control, damping, ground, stabilisation, passive, stops, efforts,
            pushed=() if pushes is None else pushes.names, contact=contact,
        )
    )  # fmt: skip
    if auto and step is not None:
        integrator = fixed_method(field, q, step)
        options = replace(options, integrator=integrator)
    elif isinstance(integrator.method, Scheme) and integrator.method.implicit:
        refuse_implicit(field)
    run = _Simulation(field, options, arguments, pushes)
    if model.loops:
        q, v, run.start_note = closed_start(model, q0, q, v)
        refuse_contradiction(field, q, t_end)
        q, v, note = start_on_prescribed_motion(field, q, v)
        run.start_note = note or run.start_note
        project = stabilisation == "projection" and not hard  # hard steps close loops
        driven = driven_velocities(field, q)
        run.loop_monitor = LoopMonitor(model, project, at_singularity, driven, rtol)
    if field.stops and not hard:
        warn_beyond_stops(model, q, PRESSED)
    refuse_deep_start(field, q[None])
    if field.contact is not None:
        warn_of_buried_start(field.contact, q[None])
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
    return find(("dop853" if step is None else "rk4") if auto else method)


def _state(model: Robot, q0: ArrayLike | None, v0: ArrayLike | None) -> tuple[Array, Array]:
    q = model.neutral() if q0 is None else checked(model, "q0", q0, model.nq)
    v = np.zeros(model.nv) if v0 is None else checked(model, "v0", v0, model.nv)
    if q.ndim != 1 or v.ndim != 1:
        raise SimulationError("simulate runs one state; for many use rf.rollout")
    check_quaternions([i for i, _ in model.layout.balls], model.coordinates, q[None])
    warn_of_degrees(model, q)
    return q, v


class _Simulation:
    """One run with its samples so far, so that these survive an error or an interrupt."""

    def __init__(
        self, field: Field, options: Options, arguments: Mapping[str, Any], pushes: Pushes | None
    ) -> None:
        self.field, self.options, self.arguments, self.pushes = field, options, arguments, pushes
        self.integrator: Integrator = options.integrator
        self.rates = Rates(field, worth_compiling(field, options))
        self.rates.timed = pushes.at if pushes is not None and pushes.follows else None
        self.loop_monitor: LoopMonitor | None = None
        self.start_note, self.switched, self.since = "", "", 0
        self.times: list[Array] = []
        self.rows: list[Array] = []
        self.inputs: list[Array] = []
        self.next = 1  # row of the grid that comes next; the first is the start
        self.reached: tuple[float, Array] = 0.0, np.zeros(0)
        self.counters = Progress()
        self.status, self.ended = "finished", False
        self._bar: Bar | None = None
        self._shown = 0.0  # s: when the bar was drawn

    # ---- driving ----

    def result(self, q: Array, v: Array) -> Run:
        """The run from (q, v); an error carries what was computed until then."""
        started = time.perf_counter()
        y = self.field.start(q, v)
        self.reached = 0.0, y
        failure: SimulationError | None = None
        self._keep(np.zeros(1), y[None])
        try:
            for t in self._advance(y):
                if self.options.progress and time.perf_counter() - self._shown > 0.1:
                    self._show(t)
        except KeyboardInterrupt:
            self.status = "interrupted"
        except Exception as error:
            failure = self._failure(error)
            self.status = f"failed: {failure}"
        finally:
            if self._bar is not None:
                self._bar.close()
        wall = time.perf_counter() - started
        run = self._collect(wall) if self.status == "finished" else self._stopped(wall)
        if failure is not None:
            failure.result = run
            raise failure from failure.__cause__
        return run

    def _show(self, t: float) -> None:
        if self._bar is None:
            self._bar = Bar(self.field.model.name, self.options.t_end, transient=True)
        self._shown = time.perf_counter()
        self._bar.update(t, f"t = {t:.3f} s, energy error {self._energy_error():.1e} J")

    def _failure(self, error: Exception) -> SimulationError:
        """The error that ended the run, as a SimulationError with its cause."""
        if not isinstance(error, RamifyError):
            failure = SimulationError(f"the run stopped at t = {self.reached[0]:g} s: {error!r}")
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

    def _keep(self, times: Array, rows: Array) -> None:
        self.times.append(times)
        self.rows.append(np.array(rows))
        self.inputs.append(np.broadcast_to(self.rates.u.copy(), (len(times), len(self.rates.u))))

    def _advance(self, y: Array) -> Iterator[float]:
        """Run to the end and record samples; yields the time after each chunk of steps."""
        t, t_end = 0.0, self.options.t_end
        rate = self.field.control.rate_hz if self.field.control is not None else None
        nv = self.field.model.nv
        while t < t_end * (1.0 - 1e-12):
            until = t_end if rate is None else min(t_end, (math.floor(t * rate + 1e-6) + 1) / rate)
            if t_end - until < 1e-12 * t_end:
                until = t_end
            if rate is not None and abs(t * rate - round(t * rate)) < 1e-6:
                y = y.copy()  # the controller's states advance
                self.rates.u[:nv] = sample(self.field, t, y)
            if self.pushes is not None:
                self.rates.push(self.pushes.at(t))
                until = min(until, self.pushes.until(t, t_end))
            if t == 0.0:
                self.inputs[0] = self.rates.u.copy()[None]
            for chunk in self._segment(t, y, until).chunks():
                chunk = self._closed(chunk)
                if self.loop_monitor is not None:
                    self.loop_monitor.watch_step(chunk, y)
                self.reached = t, y = self._take(chunk)
                self._refuse_runaway(t, y)
                yield t
                if self.ended:
                    return
                if self._opened() or self._switch(t):
                    break

    def _segment(self, t: float, y: Array, until: float) -> RunSegment:
        one_by_one = bool(self.options.events) or self.loop_monitor is not None
        grid = self.options.grid[self.next :]
        return RunSegment(
            self.integrator, self.rates, self.options, t, y, until, grid, one_by_one,
            self._correction, self.counters,
        )  # fmt: skip

    @property
    def _correction(self) -> Correction | None:
        """The projection onto the closed loops, where the run uses it."""
        monitor = self.loop_monitor
        return monitor.project_state if monitor is not None and monitor.project else None

    def _closed(self, chunk: StepChunk) -> StepChunk:
        """A chunk whose states are projected onto the closed loops."""
        correct, y = self._correction, chunk.y
        if correct is None:
            return chunk
        return StepChunk(chunk.start, chunk.end, lambda t: correct(y(t)))

    def _opened(self) -> bool:
        """Whether a method of several steps, which cannot be corrected between steps, has gone
        far enough to be restarted.
        """
        method = self.integrator.method
        several = isinstance(method, Adaptive) and not method.one_step
        if self._correction is None or not several or self.counters.steps < self.since + _DRIFT:
            return False
        self.since = self.counters.steps
        return True

    def _switch(self, t: float) -> bool:
        """Whether the motion proves stiff, so that another method continues."""
        if self.switched or not (self.options.may_switch and self.counters.stiff):
            return False
        self.integrator = find("lsoda")
        self.switched = f"dop853 until t = {t:.6g} s, then lsoda: the motion is stiff"
        return True

    def _refuse_runaway(self, t: float, y: Array) -> None:
        """End a run whose velocities no machine could have, before its steps get ever smaller."""
        v = np.abs(y[self.field.state_slices[1]])
        if not v.max(initial=0.0) < RUNAWAY:
            joint = self.field.model.velocities[int(np.argmax(v))]
            raise SimulationError(
                f"the motion runs away: the rate of {joint!r} exceeds {RUNAWAY:g} at t = {t:g} s"
            )

    def _take(self, chunk: StepChunk) -> tuple[float, Array]:
        """Record the output times of a chunk and look for events; returns the time and the state
        from which to go on.
        """
        hit = first_event(chunk, self._watched) if self.options.events else None
        end = chunk.end if hit is None else hit[0]
        grid, first = self.options.grid, self.next
        reached = end + 1e-9 * min(chunk.end - chunk.start, self.options.dt_out)
        self.next = max(first, int(np.searchsorted(grid, reached, side="right")))
        if self.next > first:
            self._keep(grid[first : self.next], chunk.at(grid[first : self.next]))
        last = chunk.y(end)
        if hit is not None:
            self.status, self.ended = f"event: {list(self.options.events)[hit[1]]}", True
            if self.times[-1][-1] < end:
                self._keep(np.array([end]), last[None])
        return end, last

    @cached_property
    def _watched(self) -> list[Any]:
        return [partial(_event, self.field, name, f) for name, f in self.options.events.items()]

    # ---- results ----

    def _stopped(self, wall: float) -> Run:
        """What was computed until the run ended early, with the last state that it reached where
        that has accelerations.
        """
        t, y = self.reached
        if t > self.times[-1][-1] + 1e-9 * self.options.dt_out and np.abs(y).max() < _VAST:
            self._keep(np.array([t]), y[None])
            try:
                return self._collect(wall)
            except RamifyError:  # as in gimbal lock; what ended the run is reported instead
                self.times.pop(), self.rows.pop(), self.inputs.pop()
        return self._collect(wall)

    def _collect(self, wall: float) -> Run:
        field, o = self.field, self.options
        t, inputs = np.concatenate(self.times), np.concatenate(self.inputs)
        if self.pushes is not None and self.pushes.follows:
            inputs[:, field.model.nv :] = [self.pushes.at(x) for x in t.tolist()]
        y = apply_prescribed_motion(field, t, unit(field.model, np.concatenate(self.rows)))
        actual: dict[str, Any] = {
            "method": self.switched or self.integrator.name, "max_step": o.max_step,
            "wrenches": None if self.pushes is None else self.pushes.described,
        }  # fmt: skip
        stats: dict[str, Any] = {
            "steps": self.counters.steps, "evaluations": self.counters.evaluations,
            "wall_time": wall,
        }  # fmt: skip
        if field.hard is not None:
            stats |= hard_stats(field, y)
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
            status=self.status,
        )

    def _energy_error(self) -> float:
        """J, from the first recorded row to the last."""
        field, (of_q, of_v, _, of_work) = self.field, self.field.state_slices
        rows = unit(field.model, np.stack([self.rows[0][0], self.rows[-1][-1]]))
        q, v = rows[:, of_q], rows[:, of_v]
        kinetic, potential = energy(field.model, q, v)
        stops = field.stops and field.hard is None
        passive = passive_forces(field.model, q, v, stops, field.passive, bristles_of(field, rows))
        ground = np.zeros(2)
        if field.contact is not None:
            ground = field.contact.forces(q, v)[4].sum(axis=-1)
        work, loss = rows[:, of_work].T
        balance = EnergyBalance(
            kinetic, potential + sum(passive.stored.values()), ground, work,
            rows[:, field.of_pushes].sum(axis=1), loss + rows[:, field.of_heat].sum(axis=1),
            rows[:, field.of_step][:, :1].sum(axis=1),
        )  # fmt: skip
        return abs(float(balance.error[1]))


def _event(field: Field, name: str, f: Event, t: float, y: Array) -> float:
    """The value of an event's function; errors and NaN are reported with name and time."""
    of_q, of_v, _, _ = field.state_slices
    try:
        value = float(f(t, unit(field.model, y)[of_q], y[of_v]))
    except Exception as error:
        raise SimulationError(f"the event {name!r} raised {error!r} at t = {t:g} s") from error
    if np.isnan(value):
        raise SimulationError(f"the event {name!r} gave {value} at t = {t:g} s")
    return value
