"""Simulation of one robot over time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ramify.contact.record import Contacts
from ramify.contact.stability import LIMITS, warn_of_long_steps
from ramify.core.arrays import Array
from ramify.core.errors import RamifyError, SimulationError
from ramify.kernels.questions import energy
from ramify.loops.record import Loops
from ramify.model.configuration import check_quaternions, checked
from ramify.model.robot import Robot
from ramify.sim.adaptive import ADAPTIVE, ONE_STEP, Piece, Progress, first_event, pieces
from ramify.sim.closed_run import (
    Closing,
    closed_start,
    decided,
    observed_loops,
    refuse_contradiction,
)
from ramify.sim.field import Field, coordinate_rates
from ramify.sim.fixed import adams_bashforth, between, energy_preserving, runge_kutta_step
from ramify.sim.rates import MOST_LINKS, desired, felt, observed, placed, rates, sample, unit
from ramify.sim.record import Run, Work
from ramify.sim.rollout import make_field
from ramify.sim.schemes import SCHEMES
from ramify.sim.shared_code import shared

FIXED = {
    "rk4": "rk4",
    "rk5": "rk5",
    "ode5": "rk5",
    "euler": "euler",
    "semi_implicit_euler": "semi_implicit_euler",
    "ab4": "ab4",
    "energy": "energy",
}
CONTACT_STEP = 0.01
"""s: the longest step over a ground unless told, so that a short touch is not stepped over."""
_DRIFT = 200  # steps of a method of several steps before loops are closed again
RUNAWAY = 1e5  # rad/s or m/s: faster than any joint
METHODS = ("auto", *ADAPTIVE, *FIXED)
SMALLEST_RTOL = 100.0 * float(np.finfo(np.float64).eps)


def simulate(
    model: Robot,
    t_end: float,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    control: Any = None,
    ground: Any = None,
    method: str = "auto",
    rtol: float = 1e-8,
    atol: float = 1e-10,
    dt_out: float = 0.01,
    *,
    step: float | None = None,
    max_step: float = np.inf,
    damping: ArrayLike = 0.0,
    events: Mapping[str, Callable[[float, Array, Array], float]] | None = None,
    progress: bool = False,
    stabilisation: str | float = "projection",
    at_singularity: str = "stop",
) -> Run:
    """Simulate from t = 0 to t_end seconds.

    q0 (nq), v0 (nv): the start (neutral, at rest). control: a controller of rf.control, a function
    (t, q, v) -> tau, or None. ground: a law of rf.contact such as Firm(), a word ("firm", "dusty",
    "hunt_crossley"), a mapping as in scenario files, or None. method: "auto" (dop853, and lsoda
    from where the motion proves stiff), adaptive ("dop853", "rk45" = "ode45", "radau", "bdf" =
    "ode15s", "lsoda", …; rtol, atol) or with a fixed ``step`` ("rk4", "rk5" = "ode5", "ab4",
    "semi_implicit_euler", "energy"). Output every ``dt_out`` seconds. damping: (nv) in the joints,
    or a number for all of them but floating bases. events: {name: function of (t, q, v)}; the run
    ends where one changes its sign. max_step: the longest step, s; over a ground 0.01 unless told.
    Ctrl-C ends the run and keeps what was computed. stabilisation of loops: "projection" (after
    each step, in position and velocity), a rate in 1/s (Baumgarte's), or "none". at_singularity:
    "stop" where loops pass a singular posture (a dead centre), or "pass": go on with the velocity
    there, and note the time in ``stats``.

    Raises SimulationError where the run cannot go on; its ``result`` holds what was computed until
    then.
    """
    name = _method(method, step)
    if ground is not None and max_step == np.inf:
        max_step = CONTACT_STEP
    _check_times(t_end, dt_out, rtol, atol, step, max_step, name)
    q, v = _state(model, q0, v0)
    field, note = shared(make_field(model, control, damping, ground, stabilisation), MOST_LINKS), ""
    if model.loops:
        q, v, note = closed_start(model, q0, q, v)
        refuse_contradiction(field, q, t_end)
    if field.contact is not None and name in LIMITS and step is not None:
        warn_of_long_steps(field.contact, q[None], name, step)
    if events is not None and not isinstance(events, Mapping):
        raise SimulationError(
            "events must map names to functions (t, q, v) -> number; it is a "
            f"{type(events).__name__}"
        )
    run = _Run(field, name, t_end, dt_out, rtol, atol, step, max_step, dict(events or {}), progress)
    if model.loops:
        run.closing, run.start_note = (
            Closing(model, stabilisation == "projection", at_singularity, decided(field, q)),
            note,
        )
    return run.result(q, v)


def _method(method: str, step: float | None) -> str:
    name = str(method).lower()
    if name not in METHODS:
        raise SimulationError(f"method {method!r} is unknown; choose one of {', '.join(METHODS)}")
    if name == "auto" and step is not None:
        return "rk4"
    return FIXED.get(name, name)


def _check_times(
    t_end: float,
    dt_out: float,
    rtol: float,
    atol: float,
    step: float | None,
    max_step: float,
    name: str,
) -> None:
    given = {
        "t_end": t_end,
        "dt_out": dt_out,
        "rtol": rtol,
        "atol": atol,
        "step": 1.0 if step is None else step,
    }
    for what, value in given.items():
        if not (_is_number(value) and np.isfinite(value) and value > 0.0):
            raise SimulationError(f"{what} {value!r} must be a finite and positive number")
    if not (_is_number(max_step) and max_step > 0.0):
        raise SimulationError(f"max_step {max_step!r} must be a positive number, in s")
    if rtol < SMALLEST_RTOL:
        raise SimulationError(
            f"rtol {rtol!r} is below what 64-bit numbers can do; give {SMALLEST_RTOL:g} or more"
        )
    if name in FIXED.values() and step is None:
        raise SimulationError(f"method {name!r} needs a fixed step: give step= in seconds")
    if name in ADAPTIVE and step is not None:
        raise SimulationError(
            f"method {name!r} chooses its own steps: leave out step=, or give max_step= to limit "
            "them"
        )
    if t_end / dt_out > 5e7:
        raise SimulationError(
            f"{t_end / dt_out:.3g} rows of output are too many to hold; give a larger dt_out"
        )
    if step is not None and name in FIXED.values() and t_end / step > 1e9:
        raise SimulationError(f"{t_end / step:.3g} steps are too many; give a larger step")


def _is_number(value: object) -> bool:
    return isinstance(value, (Real, np.number)) and not isinstance(value, bool)


def _state(model: Robot, q0: ArrayLike | None, v0: ArrayLike | None) -> tuple[Array, Array]:
    q = model.neutral() if q0 is None else checked(model, "q0", q0, model.nq)
    v = np.zeros(model.nv) if v0 is None else checked(model, "v0", v0, model.nv)
    if q.ndim != 1 or v.ndim != 1:
        raise SimulationError("simulate runs one state; for many use rf.rollout")
    check_quaternions([i for i, _ in model.layout.balls], model.coordinates, q[None])
    return q, v


class _Run:
    """One run: its samples so far, so that they survive whatever ends it."""

    def __init__(
        self, field: Field, method: str, t_end: float, dt_out: float, rtol: float, atol: float, step: float | None, max_step: float,
        events: dict[str, Callable[[float, Array, Array], float]], progress: bool,
    ) -> None:  # fmt: skip
        self.field, self.method, self.t_end, self.dt_out = (
            field,
            "dop853" if method == "auto" else method,
            t_end,
            dt_out,
        )
        self.may_switch = method == "auto"
        self.rtol, self.atol, self.step, self.max_step = rtol, atol, step, max_step
        self.events, self.progress = events, progress
        self.switched = ""
        self.times: list[float] = []
        self.rows: list[Array] = []
        self.held: list[Array] = []
        self.u = np.zeros(field.model.nv)
        self.done = Progress()
        self.status = "finished"
        self.closing: Closing | None = None
        self.start_note, self.since = "", 0
        self._bar: Any = None
        self.rates = rates(field, lambda: self.u)
        count = int(np.floor(t_end / dt_out + 1e-9))
        grid = np.arange(count + 1) * dt_out
        self.grid = grid if t_end - grid[-1] < 1e-9 * min(dt_out, t_end) else np.append(grid, t_end)
        self.next = 1  # row of the grid that comes next; the first is the start

    # ---- driving ----

    def result(self, q: Array, v: Array) -> Run:
        started = time.perf_counter()
        y = self.field.start(q, v)
        failure: RamifyError | None = None
        self._keep(0.0, y)
        try:
            for t in self._advance(y):
                if self.progress:
                    self._show(t)
        except KeyboardInterrupt:
            self.status = "interrupted"
        except RamifyError as error:
            hint = (
                ""
                if self.closing is None or "dead centre" in str(error)
                else self.closing.suspicion
            )
            failure = SimulationError(f"{error}{hint}") if hint else error
            failure.__cause__ = error.__cause__
            self.status = f"failed: {failure}"
        except Exception as error:
            self.status = f"failed: {error!r}"
            failure = SimulationError(f"the run stopped at t = {self.times[-1]:g} s: {error!r}")
            failure.__cause__ = error
        finally:
            self._show(None)
        found = self._collect(time.perf_counter() - started)
        if failure is not None:
            stopped = (
                failure if isinstance(failure, SimulationError) else SimulationError(str(failure))
            )
            stopped.result = found
            raise stopped from failure.__cause__
        return found

    def _keep(self, t: float, y: Array) -> None:
        self.times.append(float(t))
        self.rows.append(np.array(y))
        self.held.append(self.u.copy())

    def _advance(self, y: Array) -> Iterator[float]:
        """Run to the end, keeping samples; gives the time now and then."""
        hold = None if not self.field.sampled else 1.0 / float(self.field.control.rate_hz)  # type: ignore[union-attr,arg-type]
        t = 0.0
        while t < self.t_end * (1.0 - 1e-12):
            until = self.t_end if hold is None else min(self.t_end, (round(t / hold) + 1) * hold)
            if self.t_end - until < 1e-12 * self.t_end:
                until = self.t_end
            if hold is not None:
                self.u = sample(self.field, t, y)
                if t == 0.0:
                    self.held[0] = self.u.copy()
            for piece in self._pieces(t, y, until):
                piece = self._closed(piece)
                if self.closing is not None:
                    self.closing.watch_step(piece, y)
                t, y = self._take(piece)
                self._refuse_runaway(t, y)
                yield t
                if self._opened():
                    break
                if self.status.startswith("event"):
                    return
                if self.may_switch and self.done.stiff:
                    self.may_switch, self.method = False, "lsoda"
                    self.switched = f"dop853 until t = {t:.6g} s, then lsoda: the motion is stiff"
                    break

    def _closed(self, piece: Piece) -> Piece:
        """A step whose states all lie on the loops."""
        if self.closing is None or not self.closing.project:
            return piece
        settle, y = self.closing.settle, piece.y
        return Piece(piece.start, piece.end, lambda t: settle(y(t)))

    def _opened(self) -> bool:
        """Whether a method of several steps, which cannot be corrected on its way, has gone far
        enough to begin again.
        """
        if (
            self._settle is None
            or self.method not in ADAPTIVE
            or self.method in ONE_STEP
            or self.done.steps < self.since + _DRIFT
        ):
            return False
        self.since = self.done.steps
        return True

    def _refuse_runaway(self, t: float, y: Array) -> None:
        """End a run whose velocities no machine could have, instead of following it with ever
        smaller steps.
        """
        v = np.abs(y[self.field.parts[1]])
        if not v.max(initial=0.0) < RUNAWAY:
            joint = self.field.model.velocities[int(np.argmax(v))]
            raise SimulationError(
                f"the motion runs away: the rate of {joint!r} exceeds {RUNAWAY:g} at t = {t:g} s"
            )

    def _pieces(self, t: float, y: Array, until: float) -> Iterator[Piece]:
        """The steps of the method from t to until."""
        if self.method in ADAPTIVE:
            return pieces(
                self.rates,
                t,
                y,
                until,
                self.method,
                self.rtol,
                self.atol,
                self.done,
                self.max_step,
                self._settle,
            )
        return self._fixed(t, y, until)

    @property
    def _settle(self) -> Callable[[Array], Array] | None:
        return self.closing.settle if self.closing is not None and self.closing.project else None

    def _take(self, piece: Piece) -> tuple[float, Array]:
        """Keep the output times of a step and look for events; gives the time and the state from
        which to go on.
        """
        hit = first_event(piece, self._watched) if self.events else None
        end = piece.end if hit is None else hit[0]
        slack = 1e-9 * (piece.end - piece.start)
        while self.next < len(self.grid) and self.grid[self.next] <= end + slack:
            self._keep(self.grid[self.next], piece.y(min(float(self.grid[self.next]), piece.end)))
            self.next += 1
        last = piece.y(end)
        if hit is not None:
            self.status = f"event: {list(self.events)[hit[1]]}"
            if self.times[-1] < end:
                self._keep(end, last)
        return end, last

    @cached_property
    def _watched(self) -> list[Callable[[float, Array], float]]:
        return [partial(_event, self.field, name, f) for name, f in self.events.items()]

    def _fixed(self, t: float, y: Array, until: float) -> Iterator[Piece]:
        assert self.step is not None
        count = max(1, int(np.ceil((until - t) / self.step - 1e-9)))
        dt = (until - t) / count
        if self.method == "ab4":
            rows = adams_bashforth(self.rates, t, y, dt, count, self._settle or (lambda y: y))
        elif self.method == "energy":
            rows = self._with_energy(t, y, dt, count)
        else:
            rows = self._explicit(t, y, dt, count)
        for i, row in enumerate(rows, start=1):
            if not np.isfinite(row).all():
                raise SimulationError(
                    f"the state grows beyond all bounds at t = {t + i * dt:g} s; take a step below "
                    f"{dt:g} s"
                )
            row = unit(self.field.model, row)
            start, now = t + (i - 1) * dt, until if i == count else t + i * dt
            self.done.steps += 1
            self.done.evaluations += len(SCHEMES[self.method].c) if self.method in SCHEMES else 1
            yield Piece(start, now, between(self.rates, start, y, now, row))
            y = row

    def _explicit(self, t: float, y: Array, dt: float, count: int) -> Iterator[Array]:
        of_q, of_v, _, _ = self.field.parts
        for i in range(count):
            now = t + i * dt
            if SCHEMES[self.method].kick:
                moved = y + dt * self.rates(now, y)
                moved[of_q] = y[of_q] + dt * np.array(
                    coordinate_rates(self.field.model, y[of_q].tolist(), moved[of_v].tolist())
                )
                y = unit(self.field.model, moved)
            else:
                y = unit(self.field.model, runge_kutta_step(self.rates, self.method, now, y, dt))
            if self._settle is not None and np.isfinite(y).all():
                y = self._settle(y)
            yield y

    def _with_energy(self, t: float, y: Array, dt: float, count: int) -> Iterator[Array]:
        of_q, of_v, _, _ = self.field.parts
        if self.field.model.loops:
            raise SimulationError(
                "the energy-preserving method is for trees; for a robot with loops use dop853 or "
                "rk4"
            )
        if (
            self.field.control is not None
            or any(self.field.damping)
            or self.field.ground is not None
        ):
            raise SimulationError(
                "the energy-preserving method is for motion without control and damping, off the "
                "ground; use dop853 or rk4"
            )
        for q, v in energy_preserving(self.field.model, t, y[of_q], y[of_v], dt, count):
            row = y.copy()
            row[of_q], row[of_v] = q, v
            yield row

    # ---- results ----

    def _collect(self, wall: float) -> Run:
        of_q, of_v, _, of_work = self.field.parts
        t, held = np.array(self.times), np.stack(self.held)
        y = placed(self.field, t, unit(self.field.model, np.stack(self.rows)))
        a, tau = observed(self.field, t, y, held)
        contact, ground = self.field.contact, self.field.ground
        work, loss = y[:, of_work].T
        options = {
            "method": self.switched or self.method, "rtol": self.rtol, "atol": self.atol, "dt_out": self.dt_out,
            "t_end": self.t_end, "step": self.step, "max_step": self.max_step if np.isfinite(self.max_step) else None,
            "control": repr(self.field.control) if self.field.control is not None else "none", "damping": list(self.field.damping),
            "q0": y[0, of_q].tolist(), "v0": y[0, of_v].tolist(), "events": list(self.events),
            "ground": contact.ground.described(ground) if contact is not None and ground is not None else None,
        }  # fmt: skip
        if self.closing is not None:
            how = "projection" if self.closing.project else self.field.baumgarte or "none"
            options |= {"stabilisation": how, "start": self.start_note or "as given"}
        stats: dict[str, Any] = {
            "steps": self.done.steps,
            "evaluations": self.done.evaluations,
            "wall_time": wall,
        }
        if self.closing is not None:
            stats["singular_postures"] = list(self.closing.passed)
        contacts = felt(self.field, y)
        return Run(
            self.field.model, t, y[:, of_q], y[:, of_v], a, tau, Work(work, loss + y[:, self.field.of_heat].sum(axis=1)), options,
            stats, self.status, desired(self.field.model, self.field.control, None, t), contacts,
            self._loops(y, tau, contacts),
        )  # fmt: skip

    def _loops(self, y: Array, tau: Array, contacts: Contacts | None) -> Loops | None:
        if self.closing is None:
            return None
        of_q, of_v, _, _ = self.field.parts
        q, v, model = y[:, of_q], y[:, of_v], self.field.model
        net = tau - np.array(self.field.damping) * v
        return observed_loops(
            model, q, v, net, None if contacts is None else contacts.wrenches(model, q)
        )

    def _show(self, t: float | None) -> None:
        """The progress bar: time and energy error; None ends it."""
        if not self.progress and t is not None:
            return
        if t is None:
            if self._bar is not None:
                self._bar.stop()
            return
        if self._bar is None:
            from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[state]}"),
                TimeRemainingColumn(),
                transient=True,
            )
            self._task = self._bar.add_task(self.field.model.name, total=self.t_end, state="")
            self._bar.start()
            self._shown = 0.0
        if time.perf_counter() - self._shown > 0.1:
            self._shown = time.perf_counter()
            self._bar.update(
                self._task,
                completed=t,
                state=f"t = {t:.3f} s, energy error {self._energy_error():.1e} J",
            )

    def _energy_error(self) -> float:
        of_q, of_v, _, of_work = self.field.parts
        first, last = unit(self.field.model, np.stack([self.rows[0], self.rows[-1]]))
        heat = self.field.of_heat
        total = [
            sum(energy(self.field.model, y[of_q], y[of_v]))
            - y[of_work][0]
            + y[of_work][1]
            + y[heat].sum()
            for y in (first, last)
        ]
        if self.field.contact is not None:
            rows = np.stack([first, last])
            total = total + self.field.contact.forces(rows[:, of_q], rows[:, of_v])[4].sum(axis=-1)
        return abs(float(total[1] - total[0]))


def _event(
    field: Field, name: str, f: Callable[[float, Array, Array], float], t: float, y: Array
) -> float:
    """The value of an event's function; what it raises, and what is no number, is told with its
    name and the time.
    """
    of_q, of_v, _, _ = field.parts
    try:
        value = float(f(t, unit(field.model, y)[of_q], y[of_v]))
    except Exception as error:
        raise SimulationError(f"the event {name!r} raised {error!r} at t = {t:g} s") from error
    if np.isnan(value):
        raise SimulationError(f"the event {name!r} gave {value} at t = {t:g} s")
    return value
