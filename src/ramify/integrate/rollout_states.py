"""The states of a rollout from step to step, and those that fail."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.core.arrays import Array, below, finite
from ramify.core.errors import SimulationError
from ramify.core.memory import refuse_too_large
from ramify.core.warning import warn
from ramify.emit.guards import HUGE_ANGLE
from ramify.emit.writer import ANGLE_LIMIT
from ramify.integrate.batch_steps import (
    FEWER,
    Batch,
    BatchForces,
    BatchSteps,
    LoopChecks,
    Policy,
    Samples,
    policy_name,
)
from ramify.integrate.closed_run import driven_velocities
from ramify.integrate.closed_start import refuse_torn
from ramify.integrate.driver import Observer, drive
from ramify.integrate.options import RUNAWAY
from ramify.integrate.singular_postures import Watch
from ramify.integrate.stepping import Stepper
from ramify.plant.rates import apply_prescribed_motion, entry_name


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


class Failures(Observer):
    """The states of a batch that cannot go on: when that was noticed, and why. They stay NaN.
    ``unforced``: those whose forces were not finite.
    """

    def __init__(self, batch: Batch, already_failed: tuple[int, ...]) -> None:
        self.batch, self.field, self.already_failed = batch, batch.field, already_failed
        self.reasons = dict.fromkeys(already_failed, (batch.t0, "it had failed before"))
        self.unforced: set[int] = set()
        self.at_once = False  # all steps are one chunk

    def after(self, steps: BatchSteps, count: int) -> None:
        if steps.flags or self._runs_away(steps.y):
            if self.at_once and steps.stepper is not None:
                self._mark(steps, steps.stepper)
            else:
                self._note(steps)

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

    def _note(self, steps: BatchSteps) -> None:
        """Mark the states that fail now."""
        reasons = self._failing(steps.y)
        self._refuse_unknown(reasons, steps.flags)
        for i, reason in reasons.items():
            self.reasons.setdefault(i, (steps.t, reason))
        steps.y[list(self.reasons)] = np.nan

    def without_forces(self, steps: BatchSteps, u: Array) -> None:
        """Mark the states whose forces u are not finite; where all have failed, stop."""
        unknown = ~np.isfinite(u)
        for i in np.flatnonzero(unknown.any(axis=1)).tolist():
            j = int(np.argmax(unknown[i]))
            reason = f"the controller gave {u[i, j]} for {self.field.model.velocities[j]!r}"
            self.reasons.setdefault(i, (steps.t, reason))
            self.unforced.add(i)
        steps.y = steps.y.copy()
        steps.y[list(self.reasons)] = np.nan
        steps.stopped = len(self.reasons) == len(u)

    @staticmethod
    def _refuse_unknown(reasons: Mapping[int, str], flags: int) -> None:
        if flags & HUGE_ANGLE and not reasons:
            raise SimulationError(
                "an angle of the controller or its motion leaves the range of a million radians: "
                "take it modulo 2 pi, or give a smaller dt"
            )

    def _mark(self, steps: BatchSteps, stepper: Stepper) -> None:
        """After all steps: find when each failing state failed, by repeating its steps."""
        batch, history = self.batch, steps.history
        reasons = self._failing(steps.y)
        self._refuse_unknown(reasons, steps.flags)
        if batch.every and history is not None:
            history[list(self.already_failed)] = np.nan
        for i in reasons.keys() - self.reasons.keys():
            done, reason = self._first_bad(i, stepper)
            self.reasons[i] = batch.t0 + done * batch.dt, reason
            steps.y[i] = np.nan
            if batch.every and history is not None:
                history[i, max(done - 1, 0) // batch.every :] = np.nan

    def _first_bad(self, i: int, stepper: Stepper) -> tuple[int, str]:
        """The step after which state i fails, and why: by strides of ever fewer steps."""
        batch = self.batch
        y, done, left = batch.y[i : i + 1], 0, batch.steps
        table, (by_state, by_step) = batch.table.reshape(-1), batch.strides
        while left > 0:
            stride = max(1, left // 64)
            history = np.empty((1, left // stride, self.field.size))
            stepper.run(
                y, table[i * by_state + done * by_step :], left // stride * stride, batch.dt,
                batch.t0 + done * batch.dt, strides=(0, by_step), history=history, every=stride,
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
        return batch.steps, "it grows beyond all bounds"


class RolloutStates:
    """The states of a rollout from its start to its end, and those that failed."""

    def __init__(
        self, batch: Batch, lead: tuple[int, ...], already_failed: tuple[int, ...] = ()
    ) -> None:
        self.batch, self.lead, self.field, self.y = batch, lead, batch.field, batch.y
        if already_failed:
            self.y = batch.y.copy()
            self.y[list(already_failed)] = np.nan
        self.failures = Failures(batch, already_failed)
        self.watch: Watch | None = None
        self.options: Mapping[str, Any] = {}
        """Options of the run that are neither in the field nor in the steps."""
        self.wall_time = 0.0  # s
        self.policy = ""
        self.forces: Array | None = None
        """u (steps, states, input_size), where a function or a sampled controller computes forces
        and every step is recorded.
        """
        samples = batch.steps // batch.every if batch.every else 0
        shape = len(batch.y), samples, batch.field.size
        refuse_too_large("the samples of this rollout", shape, FEWER)
        self.history = np.empty(shape)

    def advance(self, policy: Policy | None) -> None:
        """Make all steps."""
        started = time.perf_counter()
        if policy is not None:
            self.policy = policy_name(policy)
        if len(self.y) and self.batch.steps:
            steps = BatchSteps(self.batch, self.history)
            steps.y, steps.failed = self.y, self.failures.reasons
            drive(steps, self._observers(steps, policy))
            self.y = steps.y
        self.wall_time = time.perf_counter() - started

    def _observers(self, steps: BatchSteps, policy: Policy | None) -> list[Observer]:
        """What acts, what fails, what is recorded; failures alone where all steps are one chunk."""
        field, batch = self.field, self.batch
        model, sampled = field.model, field.sampled_without_states
        one_by_one = steps.stepper is None or sampled or policy is not None
        observers: list[Observer] = [self.failures]
        if one_by_one:
            forces = BatchForces(batch, self.lead, policy, self.failures.without_forces)
            if batch.every == 1 and (policy is not None or forces.rate is not None):
                shape = (batch.steps, *forces.u.shape)
                refuse_too_large("the forces of this rollout", shape, FEWER)
                self.forces = forces.record = np.empty(shape)
            observers.insert(0, forces)
        if model.loops:
            driven = driven_velocities(field, batch.y[0, : model.nq])  # never NaN, as y may be
            self.watch = steps.watch = Watch(model, self.y[:, : model.nq], driven, batch.dt)
            observers.append(LoopChecks(self.watch, one_by_one))
        if not (one_by_one or model.loops):
            self.failures.at_once = True
            return observers
        return [*observers, Samples()]

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
        if self.batch.every:
            samples = np.arange(1.0, self.history.shape[1] + 1.0)
            t = self.batch.t0 + self.batch.dt * self.batch.every * samples
            rows = self._on_motion(t, self.history.reshape(*self.lead, *self.history.shape[1:]))
        else:
            t = np.array([self.batch.t0 + self.batch.steps * self.batch.dt])
            rows = self._on_motion(t[0], self.y.reshape(*self.lead, field.size))
        of_q, of_v, _, _ = field.state_slices
        return t, rows[..., of_q], rows[..., of_v], singular, status

    def _on_motion(self, t: Array, y: Array) -> Array:
        """Rows y (..., size) at times t with prescribed coordinates on their motion; those of
        states that failed stay NaN.
        """
        rows = apply_prescribed_motion(self.field, t, y)
        if rows is not y:
            rows[np.isnan(y).all(axis=-1)] = np.nan
        return rows

    def _status(self, on_failure: str) -> Status:
        reasons, already_failed = self.failures.reasons, self.failures.already_failed
        if not reasons:
            return Status(np.zeros(self.lead, dtype=bool))
        failed = np.zeros(len(self.y), dtype=bool)
        failed[list(reasons)] = True
        failures = tuple(
            Failure(tuple(map(int, np.unravel_index(i, self.lead))) if self.lead else (), *why)
            for i, why in sorted(reasons.items())
        )
        status = Status(failed.reshape(self.lead), failures)
        stepped = min(reasons) not in self.failures.unforced
        hint = "; a smaller dt or an implicit method may help" if stepped else ""
        news = len(failures) > len(already_failed)
        if (failed.all() and not self.batch.every) or (news and on_failure == "raise"):
            raise SimulationError(f"{status}{hint}")
        if not news:
            return status
        warn(
            f"{status}; their rows are NaN from there on, see Rollout.status{hint}", RuntimeWarning
        )
        return status
