"""The parts of a machine as numbers, through the robot's kernels: of one state or of many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ramify.control.controller import Controller
from ramify.core.arrays import Array
from ramify.core.errors import RamifyError, SimulationError
from ramify.core.scalar import Scalar
from ramify.drives.actuators import effort_ranges
from ramify.drives.machine_forces import passive_forces
from ramify.kernels.make import kernel
from ramify.model.robot import Robot
from ramify.motion.trajectory import stacked
from ramify.plant.field import Field
from ramify.plant.pushes import push_forces
from ramify.plant.right_hand_side import MachineState, PassivePart


class KernelParts:
    """See ``right_hand_side.MachineParts``; all arrays are rows (..., n). For machines whose motion
    is not prescribed. Errors of the controller name the time.
    """

    prescribed = False

    def __init__(self, field: Field) -> None:
        self.field, self.damping, self.drives = field, np.array(field.damping), field.drives

    def state(self, t: Any, y: Array) -> MachineState:
        of_q, of_v, of_z, _ = self.field.state_slices
        z = y[..., of_z]
        q = np.ascontiguousarray(unit(self.field.model, y)[..., of_q])
        return MachineState(q, np.ascontiguousarray(y[..., of_v]), z, self.field.bristles(z))

    def torque(self, t: Any, state: MachineState) -> tuple[Array | None, Array]:
        field, (q, v, z, _) = self.field, state
        if field.control is None or field.sampled:
            return None, np.zeros((*q.shape[:-1], field.controlled))
        tau, rates = controller_output(field, t, q, v, z)
        refuse_unknown(field, t, tau)
        return tau, rows(rates, q.shape[:-1])

    def outside(self, u: Array) -> Array:
        return u[..., : self.field.model.nv]

    def limited(self, tau: Array) -> Array:
        return np.clip(tau, *effort_ranges(self.field.model)) if self.field.efforts else tau

    def pushes(self, q: Array, u: Array) -> Array | None:
        field = self.field
        if not field.pushed:
            return None
        return push_forces(field.model, field.pushed, q, u[..., field.model.nv :])

    def loads(self, q: Array, v: Array) -> Sequence[Array]:
        return [
            rows(load.forces(self.field.model, columns(q), columns(v)), q.shape[:-1])
            for load in self.field.loads
        ]

    def passive(self, q: Array, v: Array, bristles: Array) -> PassivePart:
        field, text = self.field, self.field.passive_forces
        nothing = np.zeros((*q.shape[:-1], 0))
        if not text:
            return PassivePart(None, nothing, nothing)
        passive = passive_forces(field.model, q, v, field.stops, field.passive, bristles)
        losses = [passive.loss[part] for part in text.losses]
        return PassivePart(
            passive.total, np.stack(losses, axis=-1) if losses else nothing,
            nothing if passive.bristle_rate is None else passive.bristle_rate,
        )  # fmt: skip

    def dynamics(self, q: Array, v: Array, net: Array) -> tuple[Array, Array]:
        field, lead = self.field, q.shape[:-1]
        if field.baumgarte:
            with np.errstate(all="ignore"):
                a, heat = field.parts.dynamics(*(_entries(x) for x in (q, v, net)))
            return rows(a, lead), rows(heat, lead)
        if field.contact is None:
            return kernel(field.model, "forward_dynamics")(q, v, net), np.zeros((*lead, 0))
        *_, loss, wrenches = field.contact.forces(q, v)
        a = kernel(field.model, "forward_dynamics_wrenches")(q, v, net, wrenches)
        return a, loss.sum(axis=-1, keepdims=True)

    def prescribed_dynamics(
        self, t: Any, q: Array, v: Array, forces: Array
    ) -> tuple[Array, Array, Array]:
        raise AssertionError("prescribed motions are evaluated as texts")


class SampleParts(KernelParts):
    """The parts at the samples y (T, size) of a run at times t (T): NaN where the controller gives
    no finite force.
    """

    def __init__(self, field: Field, t: Array, y: Array, outside: Array) -> None:
        super().__init__(field)
        self.t, self.y, self.u = t, y, outside

    def state(self, t: Any, y: Array) -> MachineState:
        parts = (np.ascontiguousarray(y[:, part]) for part in self.field.state_slices[:3])
        q, v, z = parts
        return MachineState(q, v, z, self.field.bristles(z))

    def torque(self, t: Any, state: MachineState) -> tuple[Array | None, Array]:
        field, (q, v, z, _) = self.field, state
        rates = np.zeros((len(q), field.controlled))
        if field.control is None or field.sampled:
            return None, rates
        return _forces(field, field.control, t, (q, v, z[:, : field.controlled])), rates

    def dynamics(self, q: Array, v: Array, net: Array) -> tuple[Array, Array]:
        finite = np.isfinite(net).all(axis=1)
        every = bool(finite.all())
        if not every:
            q, v, net = q[finite], v[finite], net[finite]
        of_rows = (
            (self.t, self.y, self.u) if every else (self.t[finite], self.y[finite], self.u[finite])
        )
        a = self.field.accelerated(*of_rows)
        heat = np.zeros((len(q), 0))
        if a is None:
            a, heat = super().dynamics(q, v, net)
        return (a, heat) if every else (_spread(a, finite), _spread(heat, finite))


def _entries(x: Array) -> list[Any]:
    """An entry per column, as NumPy's numbers, which divide by zero without an error."""
    return list(np.moveaxis(x, -1, 0))


def _spread(values: Array, where: Any) -> Array:
    """Rows (T, n) that have values where these are, and NaN elsewhere."""
    out = np.full((len(where), values.shape[1]), np.nan)
    out[where] = values
    return out


def _forces(
    field: Field, control: Controller, t: Array, states: tuple[Array, Array, Array]
) -> Array:
    """The controller's joint forces (T, nv): all rows at once where that works, else one by one."""
    if control.traceable:
        try:
            return control.torque(field.model, t, *states, ground=field.contact)
        except RamifyError:
            pass
    out = np.full((len(t), field.model.nv), np.nan)
    for i, (q, v, z) in enumerate(zip(*states, strict=True)):
        try:
            out[i] = control.torque(field.model, float(t[i]), q, v, z, field.contact)
        except Exception:  # the controller may end this as it ended the run
            continue
    return out


def controller_output(
    field: Field, t: float, q: Array, v: Array, z: Array
) -> tuple[Array, Sequence[Scalar]]:
    """The controller's joint forces (..., nv) and the rates of its states; errors name the time."""
    try:
        tau, rates = field.torque(t, columns(q), columns(v), columns(z))
    except SimulationError:
        raise
    except RamifyError as error:
        raise SimulationError(f"{error} (at t = {t:g} s)") from error
    except Exception as error:
        raise SimulationError(f"the controller raised {error!r} at t = {t:g} s") from error
    return rows(tau, q.shape[:-1]), rates


def refuse_unknown(field: Field, t: float, tau: Array) -> None:
    """Refuse forces (..., nv) that are not finite."""
    bad = np.argwhere(~np.isfinite(tau))
    if bad.size:
        *state, joint = (int(i) for i in bad[0])
        which = f" (state {state[0] if len(state) == 1 else tuple(state)})" if state else ""
        raise SimulationError(
            f"the controller gave {tau[tuple(bad[0])]} for {field.model.velocities[joint]!r} at "
            f"t = {t:g} s{which}"
        )


# ---- rows and columns ----


def unit(model: Robot, y: Array) -> Array:
    """Rows (..., size) with their quaternions of length one."""
    if not model.layout.balls:
        return y
    y = np.array(y)
    for i, _ in model.layout.balls:
        y[..., i : i + 4] /= np.linalg.norm(y[..., i : i + 4], axis=-1, keepdims=True)
    return y


def rows(entries: Sequence[Scalar], lead: tuple[int, ...]) -> Array:
    """The reverse of ``columns``."""
    return stacked(entries, lead) if lead else np.array(entries, dtype=np.float64)


def columns(y: Array) -> list[Any]:
    """An entry per column: numbers for one state, arrays for a batch."""
    return y.tolist() if y.ndim == 1 else list(np.moveaxis(y, -1, 0))
