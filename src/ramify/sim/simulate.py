"""Simulation of one robot over time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ramify.codegen.entry import Watched
from ramify.codegen.native import builtin_entry
from ramify.codegen.target import llvm_available
from ramify.errors import RamifyError, SimulationError
from ramify.model.configuration import check_quaternions, checked
from ramify.model.frame import Array
from ramify.sim.adaptive import ADAPTIVE, Progress, first_event, pieces
from ramify.sim.field import Field, coordinate_rates
from ramify.sim.fixed import adams_bashforth, energy_preserving, runge_kutta_step
from ramify.sim.result import Result, Work
from ramify.sim.rollout import make_field
from ramify.sim.schemes import SCHEMES

if TYPE_CHECKING:
    from ramify.model.model import Model

FIXED = {
    "rk4": "rk4",
    "rk5": "rk5",
    "ode5": "rk5",
    "euler": "euler",
    "semi_implicit_euler": "semi_implicit_euler",
    "ab4": "ab4",
    "energy": "energy",
}
METHODS = ("auto", *ADAPTIVE, *FIXED)
_MOST_LINKS = 80
_MOST_STEPS = 40_000


def simulate(
    model: Model,
    t_end: float,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    control: Any = None,
    ground: None = None,
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
) -> Result:
    """Simulate from t = 0 to t_end seconds.

    q0 (nq), v0 (nv): the start (neutral, at rest). control: a controller of rf.control, a function (t, q, v) -> tau, or None.
    method: "auto" (dop853, and lsoda from where the motion proves stiff), adaptive ("dop853", "rk45" = "ode45", "radau", "bdf" =
    "ode15s", "lsoda", …; rtol, atol) or with a fixed ``step`` ("rk4", "rk5" = "ode5", "ab4", "semi_implicit_euler", "energy").
    Output every ``dt_out`` seconds. damping (nv) acts in the joints. events: {name: function of (t, q, v)}; the run ends where
    one changes its sign. Ctrl-C ends the run and keeps what was computed.

    Raises SimulationError where the run cannot go on; its ``result`` holds what was computed until then.
    """
    if ground is not None:
        raise SimulationError("ground contact is not part of this version; leave out ground=")
    name = _method(method, control, step)
    _check_times(t_end, dt_out, rtol, atol, step, name)
    q, v = _state(model, q0, v0)
    field = make_field(model, control, damping)
    run = _Run(field, name, t_end, dt_out, rtol, atol, step, max_step, dict(events or {}), progress)
    return run.result(q, v)


def _method(method: str, control: Any, step: float | None) -> str:
    name = str(method).lower()
    if name not in METHODS:
        raise SimulationError(f"method {method!r} is unknown; choose one of {', '.join(METHODS)}")
    if name == "auto" and step is not None:
        return "rk4"
    return FIXED.get(name, name)


def _check_times(t_end: float, dt_out: float, rtol: float, atol: float, step: float | None, name: str) -> None:
    for what, value in (
        ("t_end", t_end),
        ("dt_out", dt_out),
        ("rtol", rtol),
        ("atol", atol),
        ("step", 1.0 if step is None else step),
    ):
        if not (np.isfinite(value) and value > 0.0):
            raise SimulationError(f"{what} {value!r} must be finite and positive")
    if name in FIXED.values() and step is None:
        raise SimulationError(f"method {name!r} needs a fixed step: give step= in seconds")
    if t_end / dt_out > 5e7:
        raise SimulationError(f"{t_end / dt_out:.3g} rows of output are too many to hold; give a larger dt_out")


def _state(model: Model, q0: ArrayLike | None, v0: ArrayLike | None) -> tuple[Array, Array]:
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
        self.field, self.method, self.t_end, self.dt_out = field, "dop853" if method == "auto" else method, t_end, dt_out
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
        self.rates = _rates(field, lambda: self.u)
        count = int(np.floor(t_end / dt_out + 1e-9))
        grid = np.arange(count + 1) * dt_out
        self.grid = grid if t_end - grid[-1] < 1e-9 * dt_out else np.append(grid, t_end)

    # ---- driving ----

    def result(self, q: Array, v: Array) -> Result:
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
            self.status, failure = f"failed: {error}", error
        except Exception as error:
            self.status = f"failed: {error!r}"
            failure = SimulationError(f"the run stopped at t = {self.times[-1]:g} s: {error!r}")
            failure.__cause__ = error
        finally:
            self._show(None)
        found = self._collect(time.perf_counter() - started)
        if failure is not None:
            stopped = failure if isinstance(failure, SimulationError) else SimulationError(str(failure))
            stopped.result = found
            raise stopped from failure.__cause__
        return found

    def _keep(self, t: float, y: Array) -> None:
        self.times.append(float(t))
        self.rows.append(np.array(y))
        self.held.append(self.u.copy())

    def _advance(self, y: Array) -> Iterator[float]:
        """Run to the end, keeping samples; gives the time now and then."""
        if self.method == "energy":
            yield from self._with_energy(y)
            return
        hold = None if not self.field.sampled else 1.0 / float(self.field.control.rate_hz)  # type: ignore[union-attr,arg-type]
        t = 0.0
        while t < self.t_end * (1.0 - 1e-12):
            until = self.t_end if hold is None else min(self.t_end, (round(t / hold) + 1) * hold)
            if hold is not None:
                self.u = _sample(self.field, t, y)
                if t == 0.0:
                    self.held[0] = self.u.copy()
            if self.method in ADAPTIVE:
                steps = self._adaptive(t, y, until)
            else:
                steps = self._fixed(t, y, until)
            for now, last in steps:
                yield now
                t, y = now, last
            if self.status.startswith("event"):
                return

    def _too_stiff(self, t: float) -> bool:
        """Whether an explicit method creeps: at this pace the run would take very many steps."""
        return self.may_switch and self.done.steps >= 2000 and self.done.steps * self.t_end > _MOST_STEPS * t

    def _adaptive(self, t: float, y: Array, until: float) -> Iterator[tuple[float, Array]]:
        of_q, of_v, _, _ = self.field.parts
        watched = [lambda t, y, f=f: float(f(t, self._unit(y)[of_q], y[of_v])) for f in self.events.values()]
        for piece in pieces(self.rates, t, y, until, self.method, self.rtol, self.atol, self.done, self.max_step):
            hit = first_event(piece, watched) if watched else None
            end = piece.end if hit is None else hit[0]
            first = int(np.searchsorted(self.grid, piece.start, side="right"))
            for s in self.grid[first : int(np.searchsorted(self.grid, end, side="right"))]:
                self._keep(s, piece.y(s))
            if hit is not None:
                self.status = f"event: {list(self.events)[hit[1]]}"
                if self.times[-1] < end:
                    self._keep(end, piece.y(end))
                yield end, piece.y(end)
                return
            yield piece.end, piece.y(piece.end)
            if self._too_stiff(piece.end):
                self.may_switch, self.method = False, "lsoda"
                self.switched = f"dop853 until t = {piece.end:.6g} s, then lsoda: the motion is stiff"
                return

    def _fixed(self, t: float, y: Array, until: float) -> Iterator[tuple[float, Array]]:
        assert self.step is not None
        count = max(1, int(np.ceil((until - t) / self.step - 1e-9)))
        dt = (until - t) / count
        if self.method == "ab4":
            rows = adams_bashforth(self.rates, t, y, dt, count)
        else:
            rows = self._explicit(t, y, dt, count)
        for i, row in enumerate(rows, start=1):
            row = self._unit(row)
            now = until if i == count else t + i * dt
            self._interpolate(t + (i - 1) * dt, y, now, row)
            y = row
            self.done.steps += 1
            yield now, y

    def _explicit(self, t: float, y: Array, dt: float, count: int) -> Iterator[Array]:
        of_q, of_v, _, _ = self.field.parts
        for i in range(count):
            now = t + i * dt
            if SCHEMES[self.method].kick:
                moved = y + dt * self.rates(now, y)
                moved[of_q] = self.field.model.integrate(y[of_q], moved[of_v], dt)
                y = moved
            else:
                y = self._unit(runge_kutta_step(self.rates, self.method, now, y, dt))
            if not np.isfinite(y).all():
                raise SimulationError(f"the state grows beyond all bounds at t = {now + dt:g} s; take a step below {dt:g} s")
            yield y

    def _with_energy(self, y: Array) -> Iterator[float]:
        of_q, of_v, _, of_work = self.field.parts
        if self.field.control is not None or any(self.field.damping):
            raise SimulationError("the energy-preserving method is for motion without control and damping; use dop853 or rk4")
        assert self.step is not None
        count = max(1, int(np.ceil(self.t_end / self.step - 1e-9)))
        dt = self.t_end / count
        still = np.zeros(self.field.model.nv)
        for i, (q, v, work) in enumerate(
            energy_preserving(self.field.model, lambda t, q, v: still, 0.0, y[of_q], y[of_v], dt, count), start=1
        ):
            row = y.copy()
            row[of_q], row[of_v], row[of_work] = q, v, (work, 0.0)
            now = self.t_end if i == count else i * dt
            self._interpolate((i - 1) * dt, y, now, row)
            y = row
            self.done.steps += 1
            yield now

    def _interpolate(self, t: float, y: Array, now: float, row: Array) -> None:
        """Output times within a fixed step: the step's ends where they fall on one, else a cubic through both ends and their
        slopes.
        """
        tiny = 1e-9 * (now - t)
        first = int(np.searchsorted(self.grid, t + tiny, side="right"))
        for s in self.grid[first : int(np.searchsorted(self.grid, now + tiny, side="right"))]:
            if abs(s - now) <= tiny:
                self._keep(s, row)
                continue
            h, x = now - t, (s - t) / (now - t)
            f0, f1 = self.rates(t, y), self.rates(now, row)
            between = (1 + 2 * x) * (1 - x) ** 2 * y + x**2 * (3 - 2 * x) * row + h * x * (1 - x) * ((1 - x) * f0 - x * f1)
            self._keep(s, self._unit(between))

    def _unit(self, y: Array) -> Array:
        if not self.field.model.layout.balls:
            return y
        y = np.array(y)
        for i, _ in self.field.model.layout.balls:
            y[i : i + 4] /= np.linalg.norm(y[i : i + 4])
        return y

    # ---- results ----

    def _collect(self, wall: float) -> Result:
        of_q, of_v, _, of_work = self.field.parts
        y = np.stack([self._unit(row) for row in self.rows])
        t, held = np.array(self.times), np.stack(self.held)
        a, tau = _observed(self.field, t, y, held)
        options = {
            "method": self.switched or self.method, "rtol": self.rtol, "atol": self.atol, "dt_out": self.dt_out, "t_end": self.t_end, "step": self.step,
            "control": repr(self.field.control) if self.field.control is not None else "none", "damping": list(self.field.damping),
            "q0": y[0, of_q].tolist(), "v0": y[0, of_v].tolist(), "events": list(self.events),
        }  # fmt: skip
        stats = {"steps": self.done.steps, "evaluations": self.done.evaluations, "wall_time": wall}
        desired = getattr(self.field.control, "motion", None)
        return Result(
            self.field.model, t, y[:, of_q], y[:, of_v], a, tau, Work(y[:, of_work.start], y[:, of_work.start + 1]), options, stats, self.status,
            desired.at(t) if desired is not None else None,
        )  # fmt: skip

    def _show(self, t: float | None) -> None:
        """The progress bar: time and energy error; None ends it."""
        if not self.progress and t is not None:
            return
        if t is None:
            if getattr(self, "_bar", None) is not None:
                self._bar.stop()
            return
        if getattr(self, "_bar", None) is None:
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
            self._bar.update(self._task, completed=t, state=f"t = {t:.3f} s, energy error {self._energy_error():.1e} J")

    def _energy_error(self) -> float:
        of_q, of_v, _, of_work = self.field.parts
        first, last = self._unit(self.rows[0]), self._unit(self.rows[-1])
        total = [sum(self.field.model.energy(y[of_q], y[of_v])) - y[of_work][0] + y[of_work][1] for y in (first, last)]
        return abs(float(total[1] - total[0]))


# ---- right-hand sides ----


def _rates(field: Field, held: Callable[[], Array]) -> Callable[[float, Array], Array]:
    """y' of one state: compiled where all of it can be, else through the robot's kernels and the user's function."""
    if field.traceable and llvm_available() and field.model.nv <= _MOST_LINKS:
        program = field.program
        call = builtin_entry(
            field.compiled("field").compute(1), None, program.inputs, program.outputs[0], _refuse(field), Watched()
        )
        now = np.empty(1)

        def compiled(t: float, y: Array) -> Array:
            now[0] = t
            return call(now, y, held())

        return compiled
    return lambda t, y: _called(field, t, y, held())


def _called(field: Field, t: float, y: Array, u: Array) -> Array:
    """y' of one state by calling the controller, then the robot's kernel."""
    of_q, of_v, of_z, _ = field.parts
    q, v = np.ascontiguousarray(y[of_q]), np.ascontiguousarray(y[of_v])
    tau, own = (np.zeros(len(v)), []) if field.sampled else field.torque(t, q.tolist(), v.tolist(), y[of_z].tolist())
    force = np.asarray(tau) + u
    if not np.isfinite(force).all():
        joint = int(np.flatnonzero(~np.isfinite(force))[0])
        raise SimulationError(f"the controller gave {force[joint]} for {field.model.velocities[joint]!r} at t = {t:g} s")
    friction = np.array(field.damping) * v
    a = field.model.forward_dynamics(q, v, force - friction)
    return np.concatenate([coordinate_rates(field.model, q, v), a, own, [force @ v, friction @ v]])


def _refuse(field: Field) -> Callable[..., Array]:
    """What the compiled right-hand side does not take: huge angles go through the text, the rest is an error."""

    def fallback(t: Array, y: Array, u: Array) -> Array:
        with np.errstate(all="ignore"):
            rates = np.array(field.text(float(t[0]), [float(x) for x in y], [float(x) for x in u]), dtype=np.float64)
        if np.isfinite(rates).all():
            return rates
        of_q, of_v, _, _ = field.parts
        bad = int(np.flatnonzero(~np.isfinite(rates))[0])
        names = [*field.model.coordinates, *field.model.velocities]
        what = names[bad] if bad < len(names) else "the controller"
        raise SimulationError(f"the motion is not finite at t = {float(t[0]):g} s: the rate of {what!r} is {rates[bad]}")

    return fallback


def _sample(field: Field, t: float, y: Array) -> Array:
    """The controller's output at a sampling instant."""
    from ramify.sim.rollout import _torque

    tau = _torque(field, t, y[None])[0]
    if not np.isfinite(tau).all():
        joint = int(np.flatnonzero(~np.isfinite(tau))[0])
        raise SimulationError(f"the controller gave {tau[joint]} for {field.model.velocities[joint]!r} at t = {t:g} s")
    return tau


def _observed(field: Field, t: Array, y: Array, held: Array) -> tuple[Array, Array]:
    """Accelerations and joint forces at the samples."""
    from ramify.sim.rollout import _torque

    of_q, of_v, _, _ = field.parts
    tau = np.array(held)
    if field.control is not None and not field.sampled:
        tau = tau + np.concatenate([_torque(field, float(s), row[None]) for s, row in zip(t, y, strict=True)])
    net = tau - np.array(field.damping) * y[:, of_v]
    finite = np.isfinite(net).all(axis=1)
    a = np.full_like(net, np.nan)
    a[finite] = field.model.forward_dynamics(y[finite][:, of_q], y[finite][:, of_v], net[finite])
    return a, tau
