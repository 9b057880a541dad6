"""A machine that is simulated while it is watched: fixed steps of compiled code, forces from the
mouse, and masses and gains that change while it runs.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ramify.contact.contact_record import Contacts, contacts
from ramify.core.arrays import Array
from ramify.core.errors import SimulationError
from ramify.dynamics.parameters import by_name
from ramify.integrate.batch_steps import Batch, BatchSteps
from ramify.integrate.driver import Observer, drive
from ramify.integrate.integrators import scheme_of
from ramify.integrate.machine_steps import batch_method
from ramify.kernels.queries import jacobian, kinematics
from ramify.model.robot import Robot
from ramify.plant.make_field import ControlLike, PlantOptions, make_field
from ramify.plant.pushes import AppliedWrenches
from ramify.plant.rates import evaluate_samples
from ramify.plant.varied_field import known_parameters, varied_start
from ramify.runs.recorder import record_run
from ramify.runs.run_record import Run

STEP: Final = 1.0 / 720.0  # s
PICTURES: Final = 60.0  # per second
RECORDED: Final = 60.0  # s that a recording holds
MOST_PARAMETERS: Final = 12


@dataclass(frozen=True, eq=False)
class Pull:
    """A point ``at`` (3,) of a body, in its frame, is drawn to a ``target`` (3,) of the world."""

    body: int
    at: Array
    target: Array


_PER_PICTURE: Final = round(1.0 / (STEP * PICTURES))  # steps


class LiveMachine:
    """A robot, its controller and its ground from a posture at rest on. ``scales`` are factors of
    masses and gains by name, 1 at first. Raises SimulationError where the equations cannot be
    compiled as a whole, and where the motion diverges.
    """

    def __init__(
        self, model: Robot, q: Array, control: ControlLike = None, ground: str | None = None,
        damping: float = 0.0,
    ) -> None:  # fmt: skip
        bodies = tuple(body.name for body in model.bodies)
        options = PlantOptions(damping, ground, counted=False, pushed=bodies)
        field = make_field(model, control, options)
        known = known_parameters(field)
        names = [f"{body.name}.mass" for body in model.bodies if body.mass > 0.0]
        names = [name for name in names if name in known][: MOST_PARAMETERS - 2]
        names += [name for name in ("control.kp", "control.kd") if name in known]
        self.model, self.time = model, 0.0
        self.nominal = {name: np.array(known[name].nominal, dtype=np.float64) for name in names}
        self.scales = dict.fromkeys(names, 1.0)
        self._changed: dict[str, None] = {}  # names, in the order of their first change
        self.method = batch_method(field, STEP).name
        scheme = scheme_of(self.method)
        self.plain, field = field, field.implicitly if scheme.implicit else field
        start = np.concatenate([np.zeros(0), *self.nominal.values()])
        self.field, self.y = varied_start(field, names, q, np.zeros(model.nv), start)
        self._scheme = scheme
        self.rows: deque[tuple[float, Array, Array]] = deque(maxlen=round(RECORDED * PICTURES))
        """Time, y, and what acts from outside: no joint forces, and the wrench of a pull."""
        weight = model.mass * max(float(np.linalg.norm(model.gravity)), 1.0)
        self._strongest, self._mass = 3.0 * weight, model.mass
        self.rows.append((self.time, self.y.copy(), np.zeros(field.input_size)))

    @property
    def q(self) -> Array:
        return self.y[: self.model.nq]

    @property
    def v(self) -> Array:
        return self.y[self.model.nq : self.model.nq + self.model.nv]

    def scale(self, name: str, factor: float) -> None:
        """Set a mass or a gain to a multiple of its own."""
        self.scales[name] = float(factor)
        self._changed[name] = None
        own = [self.scales[key] * nominal for key, nominal in self.nominal.items()]
        y = self.y.copy()
        y[self.field.state_size :] = np.concatenate(own)
        self.y = y

    def advance(self, pictures: int = 1, pull: Pull | None = None, reach: float = 1.0) -> None:
        """Go on by the time of ``pictures`` pictures. ``reach``: m over which a pull has its full
        force, three times the robot's weight.
        """
        batch = Batch(
            self.field, self._scheme, bool(self.model.loops), self.y[None], np.zeros(0), (0, 0),
            pictures * _PER_PICTURE, STEP, self.time, 0,
        )  # fmt: skip
        drive(BatchSteps(batch), [_Pictures(self, pull, reach)])

    def forces(self, pull: Pull | None, reach: float) -> Array:
        """What acts from outside (input_size): no joint forces, and the wrench of a pull."""
        forces = np.zeros(self.field.input_size)
        if pull is not None:
            start = self.model.nv + 6 * pull.body
            forces[start : start + 6] = self._pulled(pull, reach)
        return forces

    def _pulled(self, pull: Pull, reach: float) -> Array:
        """The wrench (6) on a body of a spring and a damper between a point and its target, as
        strong as three weights at most.
        """
        J = jacobian(self.model, self.q, self.model.bodies[pull.body].name, pull.at)[3:]
        R, r = kinematics(self.model, self.q)
        arm = R[pull.body] @ pull.at
        stretch = pull.target - (arm + r[pull.body])
        stiffness = self._strongest / reach
        force = stiffness * stretch - np.sqrt(stiffness * self._mass) * (J @ self.v)
        size = float(np.linalg.norm(force))
        force = force * min(1.0, self._strongest / max(size, 1e-300))
        return np.concatenate([np.cross(arm, force), force])

    def contacts(self) -> Contacts | None:
        """What the contact points feel now, with one row."""
        return None if self.field.contact is None else self._contacts_at(self.q[None], self.v[None])

    def _contacts_at(self, q: Array, v: Array) -> Contacts:
        text = self.field.contact
        assert text is not None
        return contacts(text, text.forces(q, v), np.full(len(q), np.nan))

    def recording(self) -> Run:
        """The last minute as a run with 60 rows per second, pulls among its wrenches; work is not
        recorded (NaN).
        """
        t, y, u = (np.array(column) for column in zip(*self.rows, strict=True))
        a, tau = np.empty((2, len(t), self.model.nv))
        values, which = np.unique(y[:, self.field.state_size :], axis=0, return_inverse=True)
        for k, row in enumerate(values):  # masses and gains as they were
            field, rows = self.plain, which.reshape(-1) == k
            if any(np.concatenate([np.zeros(0), *self.nominal.values()]) != row):
                field = self.field.at(by_name(self.field.varied, row.tolist()))
            a[rows], tau[rows] = evaluate_samples(
                field, t[rows], y[rows, : self.field.state_size], u[rows]
            )
        pulls = self._pulls(u, np.full(len(t), np.nan))
        actual: dict[str, object] = {
            "method": self.method, "step": STEP, "dt_out": 1.0 / PICTURES, "t_end": t[-1] - t[0],
            "wrenches": None if pulls is None else f"pulls at {', '.join(pulls.names)}",
        }  # fmt: skip
        if self._changed:
            actual["parameters"] = f"changed while it ran: {', '.join(self._changed)}"
        run = record_run(
            self.plain, t, y[:, : self.field.state_size], u, options={}, actual=actual,
            stats={"steps": round((t[-1] - t[0]) / STEP)}, forces=(a, tau),
        )  # fmt: skip
        return replace(run, t=t - t[0], wrenches=pulls)

    def _pulls(self, applied: Array, work: Array) -> AppliedWrenches | None:
        """The bodies that were pulled at."""
        values = applied[:, self.model.nv :].reshape(len(applied), -1, 6)
        pulled = np.flatnonzero(values.any(axis=(0, 2))).tolist()
        names = tuple(self.model.bodies[b].name for b in pulled)
        return AppliedWrenches(names, values[:, pulled], work) if pulled else None


class _Pictures(Observer):
    """From picture to picture: a pull acts with constant force, a row is recorded."""

    def __init__(self, machine: LiveMachine, pull: Pull | None, reach: float) -> None:
        self.machine, self.pull, self.reach = machine, pull, reach

    def before(self, steps: BatchSteps) -> None:
        machine = self.machine
        self.forces = machine.forces(self.pull, self.reach)
        machine.rows[-1] = machine.time, machine.y.copy(), self.forces  # as the steps begin
        steps.u, steps.t = self.forces[None], machine.time
        steps.limit(_PER_PICTURE)

    def after(self, steps: BatchSteps, count: int) -> None:
        machine = self.machine
        if not np.isfinite(steps.y).all():
            raise SimulationError(
                f"the motion diverges at {machine.time:.4g} s; use softer gains, or less force"
            )
        machine.y = steps.y[0]
        machine.time += count * STEP
        machine.rows.append((machine.time, machine.y.copy(), self.forces))
