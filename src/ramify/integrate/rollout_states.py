"""The states of a rollout from step to step, and those that fail."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.control.function_controller import refuse_undriven
from ramify.control.robot_text import RobotText
from ramify.core.arrays import Array, below, detached, finite, real
from ramify.core.errors import RamifyError, SimulationError
from ramify.core.memory import refuse_too_large
from ramify.core.warning import warn
from ramify.emit.guards import HUGE_ANGLE
from ramify.emit.stepper import Scheme
from ramify.emit.writer import ANGLE_LIMIT
from ramify.integrate.closed_run import driven_velocities
from ramify.integrate.closed_start import refuse_torn
from ramify.integrate.options import RUNAWAY
from ramify.integrate.singular_postures import Watch
from ramify.integrate.stepping import Stepper, stepper
from ramify.integrate.text_steps import text_step
from ramify.loops.stabilise import project_rows
from ramify.plant.field import Field
from ramify.plant.rates import apply_prescribed_motion, entry_name, rates_of, sample

Policy = Callable[[float, Array, Array], ArrayLike]
_FEWER: Final = (
    "keep fewer samples by a larger every, leave every out to keep the last states alone, or roll "
    "out fewer states at once"
)


@dataclass(frozen=True)
class Failure:
    """A state that could not go on: its ``index`` in the batch, the time ``t`` in s at which that
    was noticed, and the reason.
    """

    index: tuple[int, ...]
    t: float
    reason: str


@dataclass(frozen=True, repr=False)
class Status:
    """Which states of a rollout went on to the end: ``failed`` (...) is True for the others, which
    ``failures`` lists.
    """

    failed: NDArray[np.bool_]
    failures: tuple[Failure, ...] = ()

    def __repr__(self) -> str:
        return f"<Status: {self}>"

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


class RolloutStates:
    """The states of a rollout from step to step, and those that failed."""

    def __init__(
        self, equation: Field, scheme: Scheme, project: bool, lead: tuple[int, ...], steps: int,
        dt: float, t0: float, every: int, already_failed: tuple[int, ...] = (),
    ) -> None:  # fmt: skip
        self.field, self.scheme, self.project, self.lead = equation, scheme, project, lead
        self.steps, self.dt, self.t0, self.every = steps, dt, t0, every
        self.watch: Watch | None = None
        self.unforced: set[int] = set()
        """States whose forces were not finite."""
        self.already_failed = already_failed
        """States that had failed before: they stay NaN."""
        self.failures = dict.fromkeys(already_failed, (t0, "it had failed before"))
        self.options: Mapping[str, Any] = {}
        """Options of the run that are neither in the field nor in the steps."""
        self.wall_time = 0.0  # s
        self.policy = ""
        self.forces: Array | None = None
        """u (steps, states, input_size), where a function or a sampled controller computes forces
        and every step is recorded.
        """

    def advance(
        self, y: Array, table: Array, strides: tuple[int, int], policy: Policy | None
    ) -> None:
        """Make all steps from y (states, size), under forces and wrenches of a table."""
        started = time.perf_counter()
        self._advance(y, table, strides, policy)
        self.wall_time = time.perf_counter() - started

    def _advance(
        self, y: Array, table: Array, strides: tuple[int, int], policy: Policy | None
    ) -> None:
        model = self.field.model
        self.y, self.begin, self.strides = y, y, strides
        if self.already_failed:
            y = self.y = y.copy()
            y[list(self.already_failed)] = np.nan
        self.table = table
        samples = self.steps // self.every if self.every else 0
        shape = len(y), samples, self.field.size
        refuse_too_large("the samples of this rollout", shape, _FEWER)
        self.history = np.empty(shape)
        if not (len(y) and self.steps):
            return
        if model.loops:
            q = y[:, : model.nq]
            self.watch = Watch(model, q, driven_velocities(self.field, q[0]), self.dt)
        steps = self._stepper()
        if policy is not None:
            self.policy = getattr(policy, "__qualname__", type(policy).__qualname__)
        if steps is None or self.field.sampled_without_states or policy is not None:
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

    def replay(self, y: Array, u: Array) -> None:
        """Advance y (1, size) under recorded inputs u (steps, input_size)."""
        steps, self.y = self._stepper(), y
        if steps is not None:
            strides = 0, self.field.input_size
            self.y, _ = steps.run(y, u, len(u), self.dt, self.t0, strides=strides)
            return
        for k in range(len(u)):
            self.y = self._in_python(self.t0 + k * self.dt, u[k : k + 1])

    # ---- ways to step ----

    def _stepper(self) -> Stepper | None:
        """Compiled steps, where all of them can be."""
        sampled = self.field.sampled_without_states
        moving = self.field.bare if sampled else self.field
        compiles = moving.compiles and self.field.sampled == sampled
        recorded = self.scheme.stages if self.project else 0
        return stepper(moving, self.scheme, self.project, recorded) if compiles else None

    def _watched(self, steps: Stepper, watch: Watch) -> None:
        """Several steps at a time, with a check of the loops after each."""
        of_q, of_v, _, _ = self.field.state_slices
        done = 0
        while done < self.steps:
            count = min(watch.steps(self.y[:, of_v]), self.steps - done)
            if self.every:
                count = min(count, self.every - done % self.every)
            forces = self.table[..., done:, :] if self.strides[1] else self.table
            t = self.t0 + done * self.dt
            self._compare(steps, done, forces, self.strides, t)
            self.y, flags = steps.run(self.y, forces, count, self.dt, t, strides=self.strides)
            done += count
            if flags or self._runs_away(self.y):
                self._note(self.t0 + done * self.dt, flags)
            watch.check(self.t0 + done * self.dt, self.y[:, of_q])
            self._record(done)

    def _compare(
        self, steps: Stepper, step: int, forces: Array, strides: tuple[int, int], t: float
    ) -> None:
        """Compare the rates before and after the loops are closed, in a step from these states,
        where that is due.
        """
        watch, size = self.watch, self.field.size
        if watch is None or not (self.project and watch.compares(step)):
            return
        rows = np.empty((len(self.y), 1, size * (1 + steps.recorded)))
        steps.run(self.y, forces, 1, self.dt, t, strides=strides, history=rows, every=1)
        closed = rows[:, 0, self.field.state_slices[1]]
        watch.compare(steps.rates_before_closing(self.y, rows[:, 0], self.dt), closed)

    def _step_by_step(self, steps: Stepper | None, policy: Policy | None) -> None:
        """With Python between the steps: for functions, sampled controllers, very large robots."""
        field, model = self.field, self.field.model
        of_q, of_v, _, _ = field.state_slices
        rate = field.control.rate_hz if field.control is not None else None
        u = np.empty((len(self.y), field.input_size))
        sampled, due = np.zeros((len(self.y), model.nv)), self.t0
        next_check = 0 if self.watch is None else self.watch.steps(self.y[:, of_v])
        driven = RobotText(model).driven().v if policy is not None else ()
        if self.every == 1 and (policy is not None or rate is not None):
            refuse_too_large("the forces of this rollout", (self.steps, *u.shape), _FEWER)
            self.forces = np.empty((self.steps, *u.shape))
        for step in range(self.steps):
            t = self.t0 + step * self.dt
            u[:] = self.table[..., step, :] if self.strides[1] else self.table
            if policy is not None:
                places, tau = self._policy_forces(policy, t, driven)
                u[:, places] += tau
            if rate is not None:
                if t >= due - 1e-9 / rate:
                    sampled, due = sample(field, t, self.y), due + 1.0 / rate
                u[:, : model.nv] += sampled
            if not finite(u):
                self._fail(t, u)
                if len(self.failures) == len(u):
                    return
            if self.forces is not None:
                self.forces[step] = u
            flags = 0
            if steps is not None:
                strides = field.input_size, 0
                self._compare(steps, step, u, strides, t)
                self.y, flags = steps.run(self.y, u, 1, self.dt, t, strides=strides)
            else:
                self.y = self._in_python(t, u)
            if flags or self._runs_away(self.y):
                self._note(t + self.dt, flags)
            if self.watch is not None and step + 1 in (next_check, self.steps):
                self.watch.check(t + self.dt, self.y[:, of_q])
                next_check = step + 1 + self.watch.steps(self.y[:, of_v])
            self._record(step + 1)

    def _policy_forces(
        self, policy: Policy, t: float, driven: tuple[int, ...]
    ) -> tuple[slice | list[int], Array]:
        """The forces of a function of the whole batch, a row per state or one for all, and their
        places among the velocities.
        """
        field, model = self.field, self.field.model
        of_q, of_v, _, _ = field.state_slices
        q, v = (
            self.y[:, part].reshape(*self.lead, part.stop - part.start) for part in (of_q, of_v)
        )
        name = self.policy
        try:
            forces = real(f"what {name} gives", detached(policy(t, q, v)))
        except RamifyError as error:
            raise SimulationError(f"{error} (at t = {t:g} s)") from error
        except Exception as error:
            hint, shapes = "", ("size" in str(error) or "shape" in str(error))
            if shapes or isinstance(error, (IndexError, TypeError, ValueError)):
                hint = (
                    f"; it is called with the whole batch, q {q.shape} and v {v.shape}; "
                    f"rf.control.Function({name}) calls it state by state"
                )
            raise SimulationError(
                f"the controller raised {error!r} at t = {t:g} s{hint}"
            ) from error
        if forces.shape in ((*self.lead, model.nv), (model.nv,)):
            refuse_undriven(name, forces, model, driven)
            where: Sequence[int] = range(model.nv)
        elif forces.shape in ((*self.lead, len(driven)), (len(driven),)):
            where = driven
        else:
            sizes = dict.fromkeys((model.nv, len(driven)))
            wanted = " or ".join(str((*self.lead, n)) for n in sizes)
            raise SimulationError(
                f"{name} gives forces of shape {forces.shape} at t = {t:g} s; it must give {wanted}"
            )
        tau = forces.reshape(math.prod(forces.shape[:-1]), len(where))
        apart = not where or any(j != where[0] + i for i, j in enumerate(where))
        return list(where) if apart else slice(where[0], where[-1] + 1), tau  # slices are faster

    def _in_python(self, t: float, u: Array) -> Array:
        field, model = self.field, self.field.model
        of_q, of_v, _, _ = field.state_slices
        y, failed = self.y, list(self.failures)
        if failed:  # kernels take finite states only
            y, u = y.copy(), u.copy()
            y[failed], u[failed] = self.begin[failed], 0.0
        moved = text_step(
            field, self.scheme, lambda now, at: rates_of(field, now, at, u), t, y, u, self.dt
        )
        if self.project:
            rates = moved[:, of_v].copy()
            moved[:, of_q], moved[:, of_v] = project_rows(model, moved[:, of_q], moved[:, of_v])
            if self.watch is not None:
                self.watch.compare(rates, moved[:, of_v])
        moved[failed] = np.nan
        return moved

    def _record(self, done: int) -> None:
        if self.every and done % self.every == 0:
            self.history[:, done // self.every - 1] = self.y

    # ---- states that fail ----

    def _runs_away(self, y: Array) -> bool:
        """Whether some state is not finite, or moves faster than any machine."""
        if below(y, RUNAWAY):
            return False
        of_q, of_v, _, _ = self.field.state_slices
        return not (below(y[:, of_v], RUNAWAY) and finite(y[:, of_q]))

    def _failing(self, y: Array) -> dict[int, str]:
        """Rows that are not finite or run away, or have an angle beyond the range of the kernels,
        and why.
        """
        out: dict[int, str] = {}
        for i in np.flatnonzero(~np.isfinite(y).all(axis=1)).tolist():
            place = int(np.flatnonzero(~np.isfinite(y[i]))[0])
            out[i] = f"{entry_name(self.field, place)!r} grows beyond all bounds"
        model, v = self.field.model, np.abs(y[:, self.field.state_slices[1]])
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
        reasons = self._failing(self.y)
        self._refuse_unknown(reasons, flags)
        for i, reason in reasons.items():
            self.failures.setdefault(i, (t, reason))
        self.y[list(self.failures)] = np.nan

    def _fail(self, t: float, u: Array) -> None:
        """Mark the states whose forces u are not finite; they stay NaN."""
        unknown = ~np.isfinite(u)
        for i in np.flatnonzero(unknown.any(axis=1)).tolist():
            j = int(np.argmax(unknown[i]))
            reason = f"the controller gave {u[i, j]} for {self.field.model.velocities[j]!r}"
            self.failures.setdefault(i, (t, reason))
            self.unforced.add(i)
        self.y = self.y.copy()
        self.y[list(self.failures)] = np.nan

    @staticmethod
    def _refuse_unknown(reasons: Mapping[int, str], flags: int) -> None:
        if flags & HUGE_ANGLE and not reasons:
            raise SimulationError(
                "an angle of the controller or its motion leaves the range of a million radians: "
                "take it modulo 2 pi, or give a smaller dt"
            )

    def _mark(self, flags: int, steps: Stepper) -> None:
        """After all steps: find when each failing state failed, by repeating its steps."""
        reasons = self._failing(self.y)
        self._refuse_unknown(reasons, flags)
        if self.every:
            self.history[list(self.already_failed)] = np.nan
        for i in reasons.keys() - self.failures.keys():
            done, reason = self._first_bad(i, steps)
            self.failures[i] = self.t0 + done * self.dt, reason
            self.y[i] = np.nan
            if self.every:
                self.history[i, max(done - 1, 0) // self.every :] = np.nan

    def _first_bad(self, i: int, steps: Stepper) -> tuple[int, str]:
        """The step after which state i fails, and why: by strides of ever fewer steps."""
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
            reasons = self._failing(rows)
            first = min(reasons, default=len(rows))
            if reasons and stride == 1:
                return done + first + 1, reasons[first]
            if first:
                y = rows[first - 1 : first].copy()
            done += first * stride
            left = stride if reasons else left - len(rows) * stride
        return self.steps, "it grows beyond all bounds"

    # ---- result ----

    def answer(
        self, on_failure: str
    ) -> tuple[Array, Array, Array, NDArray[np.bool_] | None, Status]:
        """t, q, v of the samples, the states that met singular postures, and the status."""
        model, field = self.field.model, self.field
        status = self._status(on_failure)
        singular = None
        if model.loops:
            y = self.y[~status.failed.reshape(-1)]
            refuse_torn(model, y[:, : model.nq], y[:, model.nq : model.nq + model.nv])
        if self.watch is not None:
            singular = self.watch.met.reshape(self.lead)
            self.watch.warn()
        if self.every:
            samples = np.arange(1.0, self.history.shape[1] + 1.0)
            t = self.t0 + self.dt * self.every * samples
            rows = apply_prescribed_motion(
                field, t, self.history.reshape(*self.lead, *self.history.shape[1:])
            )
        else:
            t = np.array([self.t0 + self.steps * self.dt])
            rows = apply_prescribed_motion(field, t[0], self.y.reshape(*self.lead, field.size))
        of_q, of_v, _, _ = field.state_slices
        return t, rows[..., of_q], rows[..., of_v], singular, status

    def _status(self, on_failure: str) -> Status:
        if not self.failures:
            return Status(np.zeros(self.lead, dtype=bool))
        failed = np.zeros(len(self.y), dtype=bool)
        failed[list(self.failures)] = True
        failures = tuple(
            Failure(tuple(map(int, np.unravel_index(i, self.lead))) if self.lead else (), *why)
            for i, why in sorted(self.failures.items())
        )
        status = Status(failed.reshape(self.lead), failures)
        stepped = min(self.failures) not in self.unforced
        hint = "; a smaller dt or an implicit method may help" if stepped else ""
        news = len(failures) > len(self.already_failed)
        if (failed.all() and not self.every) or (news and on_failure == "raise"):
            raise SimulationError(f"{status}{hint}")
        if not news:
            return status
        warn(
            f"{status}; their rows are NaN from there on, see Rollout.status{hint}", RuntimeWarning
        )
        return status
