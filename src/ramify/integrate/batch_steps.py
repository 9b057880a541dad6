"""The fixed steps of a rollout, many states at once (compiled, or with Python between the steps),
and the observers that set their forces, record samples and check loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ramify.control.function_controller import refuse_undriven
from ramify.control.robot_text import RobotText
from ramify.core.arrays import Array, detached, finite, real
from ramify.core.errors import RamifyError, SimulationError
from ramify.emit.stepper import Scheme
from ramify.integrate.driver import Observer
from ramify.integrate.singular_postures import Watch
from ramify.integrate.stepping import Stepper, stepper
from ramify.integrate.text_steps import text_step
from ramify.loops.stabilise import project_rows
from ramify.plant.field import Field
from ramify.plant.kernel_parts import KernelParts
from ramify.plant.rates import rates_of, sample

Policy = Callable[[float, Array, Array], ArrayLike]
"""The user's control function: (t, q, v) of a whole batch -> joint forces."""
# how to need less memory, for error messages
FEWER: Final = (
    "keep fewer samples by a larger every, leave every out to keep the last states alone, or roll "
    "out fewer states at once"
)


class Batch(NamedTuple):
    """A batch of states and its steps.

    ``y`` (states, size): at the start. ``project``: loops are closed after each step. ``table``:
    forces and wrenches u from outside; ``strides``: how many numbers apart its rows are, per state
    and per step (0: the same row). ``dt``, ``t0``: length of a step and start, s. ``every``: steps
    between samples (0: only the last state is kept).
    """

    field: Field
    scheme: Scheme
    project: bool
    y: Array
    table: Array
    strides: tuple[int, int]
    steps: int
    dt: float
    t0: float
    every: int

    @property
    def compiled_steps(self) -> Stepper | None:
        """The compiled steps; None where Python is needed in each. A sampled controller without
        states acts through u alone: the steps are those without it (``bare``).
        """
        sampled = self.field.sampled_without_states
        moving = self.field.bare if sampled else self.field
        compiles = moving.compiles and self.field.sampled == sampled
        recorded = self.scheme.stages if self.project else 0
        return stepper(moving, self.scheme, self.project, recorded) if compiles else None


class BatchSteps:
    """The steps of a batch, a ``driver.TimeSteps``. ``done``: steps so far; ``count``: those of the
    next chunk; ``flags``: those of the compiled code in the last chunk. ``u`` (states, input_size):
    replaces the table once an observer sets it. ``failed``: states that are NaN and stay so.
    ``history`` (states, samples, size): takes the samples; compiled code writes them where all
    steps are one chunk, else ``Samples``. ``watch``: compares velocities before and after closing
    loops.
    """

    at_boundary = True

    def __init__(self, batch: Batch, history: Array | None = None) -> None:
        self.batch, self.y, self.history = batch, batch.y, history
        self.stepper = batch.compiled_steps
        self.done, self.flags, self.stopped = 0, 0, False
        self.u: Array | None = None
        self.failed: Collection[int] = ()
        self.watch: Watch | None = None
        self.t, self.count = batch.t0, batch.steps if self.stepper is not None else 1

    @property
    def finished(self) -> bool:
        return self.stopped or self.done >= self.batch.steps

    def limit(self, count: int) -> None:
        """Make at most this many steps in the next chunk."""
        self.count = min(self.count, count)

    def advance(self) -> int:
        """Make ``count`` steps from the time t on."""
        batch, count, by_step = self.batch, self.count, self.batch.strides[1]
        forces, strides = batch.table, batch.strides
        if self.u is not None:
            forces, strides = self.u, (batch.field.input_size, 0)
        elif by_step and self.done:
            forces = forces[..., self.done :, :]
        if self.stepper is None:
            row = forces if self.u is not None or not by_step else forces[..., 0, :]
            self.y = self._in_python(row)
        elif self.history is not None and self.watch is None and count == batch.steps:
            self.y, self.flags = self.stepper.run(
                self.y, forces, count, batch.dt, self.t, strides=strides, history=self.history,
                every=batch.every,
            )  # fmt: skip
        else:
            if batch.project and self.watch is not None and self.watch.compares(self.done):
                self._compare(self.stepper, self.watch, forces, strides)
            self.y, self.flags = self.stepper.run(
                self.y, forces, count, batch.dt, self.t, strides=strides
            )
        return count

    def _compare(
        self, steps: Stepper, watch: Watch, forces: Array, strides: tuple[int, int]
    ) -> None:
        """Compare the rates before and after the loops are closed, in a step from these states."""
        batch = self.batch
        rows = np.empty((len(self.y), 1, batch.field.size * (1 + steps.recorded)))
        steps.run(self.y, forces, 1, batch.dt, self.t, strides=strides, history=rows, every=1)
        closed = rows[:, 0, batch.field.state_slices[1]]
        watch.compare(steps.rates_before_closing(self.y, rows[:, 0], batch.dt), closed)

    def accept(self, count: int) -> None:
        self.done += count
        self.t = self.batch.t0 + self.done * self.batch.dt

    def settle(self) -> None:
        self.count = self.batch.steps - self.done if self.stepper is not None else 1

    def _in_python(self, u: Array) -> Array:
        """The states after one step under u (states, input_size)."""
        batch, field = self.batch, self.batch.field
        of_q, of_v, _, _ = field.state_slices
        y, failed, u = self.y, list(self.failed), np.broadcast_to(u, (len(self.y), u.shape[-1]))
        if failed:  # kernels take finite states only
            y, u = y.copy(), u.copy()
            y[failed], u[failed] = batch.y[failed], 0.0
        parts = KernelParts(field)
        moved = text_step(
            field, batch.scheme, lambda now, at: rates_of(parts, now, at, u), self.t, y, u, batch.dt
        )
        if batch.project:
            rates = moved[:, of_v].copy()
            moved[:, of_q], moved[:, of_v] = project_rows(field.model, moved[:, of_q], rates)
            if self.watch is not None:
                self.watch.compare(rates, moved[:, of_v])
        moved[failed] = np.nan
        return moved


# ---- observers ----


class LoopChecks(Observer):
    """Checks the loops for singular postures: after each chunk, or, where chunks are single steps,
    as often as they would be.
    """

    def __init__(self, watch: Watch, one_by_one: bool) -> None:
        self.watch, self.one_by_one, self.due = watch, one_by_one, -1

    def _steps_until_check(self, steps: BatchSteps) -> int:
        return self.watch.steps(steps.y[:, steps.batch.field.state_slices[1]])

    def before(self, steps: BatchSteps) -> None:
        if not self.one_by_one:
            steps.limit(self._steps_until_check(steps))
        elif self.due < 0:
            self.due = self._steps_until_check(steps)

    def after(self, steps: BatchSteps, count: int) -> None:
        if not self.one_by_one or steps.done in (self.due, steps.batch.steps):
            self.watch.check(steps.t, steps.y[:, steps.batch.field.state_slices[0]])
            if self.one_by_one:
                self.due = steps.done + self._steps_until_check(steps)


class Samples(Observer):
    """Records the states after each multiple of ``every`` steps."""

    def before(self, steps: BatchSteps) -> None:
        if steps.batch.every:
            steps.limit(steps.batch.every - steps.done % steps.batch.every)

    def after(self, steps: BatchSteps, count: int) -> None:
        every = steps.batch.every
        if every and steps.done % every == 0:
            assert steps.history is not None
            steps.history[:, steps.done // every - 1] = steps.y


class BatchForces(Observer):
    """Sets u before each step: the row of the table, plus the forces of a policy and of a sampled
    controller. ``lead``: the shape of the batch as the user gave it. ``refuse(steps, u)`` is called
    for forces that are not finite. ``record`` (steps, states, input_size): takes u of all steps.
    """

    def __init__(
        self, batch: Batch, lead: tuple[int, ...], policy: Policy | None,
        refuse: Callable[[BatchSteps, Array], None],
    ) -> None:  # fmt: skip
        field, states = batch.field, len(batch.y)
        self.lead, self.policy, self.refuse = lead, policy, refuse
        self.rate = None if field.control is None else field.control.rate_hz
        self.u = np.empty((states, field.input_size))
        self.sampled, self.due = np.zeros((states, field.model.nv)), batch.t0
        self.driven = RobotText(field.model).driven().v if policy is not None else ()
        self.record: Array | None = None

    def before(self, steps: BatchSteps) -> None:
        batch, u, nv = steps.batch, self.u, steps.batch.field.model.nv
        u[:] = batch.table[..., steps.done, :] if batch.strides[1] else batch.table
        if self.policy is not None:
            places, tau = policy_forces(self.policy, steps, self.lead, self.driven)
            u[:, places] += tau
        if self.rate is not None:
            if steps.t >= self.due - 1e-9 / self.rate:
                self.sampled = sample(batch.field, steps.t, steps.y)
                self.due += 1.0 / self.rate
            u[:, :nv] += self.sampled
        if not finite(u):
            self.refuse(steps, u)
            if steps.finished:
                return
        if self.record is not None:
            self.record[steps.done] = u
        steps.u = u
        steps.limit(1)


def policy_forces(
    policy: Policy, steps: BatchSteps, lead: tuple[int, ...], driven: tuple[int, ...]
) -> tuple[slice | list[int], Array]:
    """(places, forces): the forces of a policy, one row per state or one for all, and the places in
    v on which they act.
    """
    model, (of_q, of_v, _, _) = steps.batch.field.model, steps.batch.field.state_slices
    q, v = (steps.y[:, part].reshape(*lead, part.stop - part.start) for part in (of_q, of_v))
    name, t = policy_name(policy), steps.t
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
        raise SimulationError(f"the controller raised {error!r} at t = {t:g} s{hint}") from error
    if forces.shape in ((*lead, model.nv), (model.nv,)):
        refuse_undriven(name, forces, model, driven)
        where: Sequence[int] = range(model.nv)
    elif forces.shape in ((*lead, len(driven)), (len(driven),)):
        where = driven
    else:
        sizes = dict.fromkeys((model.nv, len(driven)))
        wanted = " or ".join(str((*lead, n)) for n in sizes)
        raise SimulationError(
            f"{name} gives forces of shape {forces.shape} at t = {t:g} s; it must give {wanted}"
        )
    tau = forces.reshape(math.prod(forces.shape[:-1]), len(where))
    apart = not where or any(j != where[0] + i for i, j in enumerate(where))
    return list(where) if apart else slice(where[0], where[-1] + 1), tau  # slices are faster


def policy_name(policy: Policy) -> str:
    """The name of a function, for messages and records."""
    return getattr(policy, "__qualname__", type(policy).__qualname__)
