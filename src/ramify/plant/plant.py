"""A robot with its controller, its machine and its ground, and the layout of their states and
inputs in y and u.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ramify.contact.ground import Ground
from ramify.contact.hard import Hard
from ramify.contact.robot_on_ground import ContactText
from ramify.control.controller import Controller
from ramify.control.prescribed import Prescribed
from ramify.control.robot_text import RobotText
from ramify.control.sum import parts_of
from ramify.core.arrays import Array
from ramify.core.cached import Memo, cached_property
from ramify.core.scalar import Scalar
from ramify.core.spatial import Vec3, Wrench
from ramify.drives.actuators import within_drive_efforts
from ramify.drives.machine_forces import passive_text
from ramify.drives.passive import PassiveText
from ramify.dynamics.tree import tree_of
from ramify.dynamics.wrenches import joint_forces
from ramify.model.robot import Robot
from ramify.plant.hard_slots import LOSSES, HardSlots
from ramify.plant.joint_gains import Gains, servo_gains
from ramify.plant.joint_loads import JointLoad

_NONE: Final = np.zeros(0)


@dataclass(frozen=True)
class Plant:
    """A robot under a controller (or none), with viscous friction ``damping`` (nv) in the joints, N
    m s/rad or N s/m, on a ground (or none).

    ``baumgarte``: the rate in 1/s with which loops that have opened are drawn together, 0 for none.
    ``passive``: springs, damping, friction, tendons and gravity compensation of the machine act;
    ``stops``: its joints stop at their limits; ``efforts``: its drives give no more than they can.
    ``implicit``: its rates are those of a linearly implicit step, whose length follows the time.
    ``counted``: work and losses are integrated with the rest, for the audit. ``pushed``: links and
    frames on which external wrenches act, which follow the joint forces in u. ``drives``: the rates
    (places in v) on which joint forces act; the work of each is counted separately. ``loads``:
    further forces on the joints. ``hard``: the law of hard contact, whose steps also hold stops,
    dry friction and loops exactly.
    """

    model: Robot
    control: Controller | None
    damping: tuple[float, ...]
    ground: Ground | None = None
    baumgarte: float = 0.0
    passive: bool = True
    stops: bool = True
    efforts: bool = True
    implicit: bool = False
    counted: bool = True
    pushed: tuple[str, ...] = ()
    drives: tuple[int, ...] = ()
    loads: tuple[JointLoad, ...] = ()
    hard: Hard | None = None

    @cached_property
    def memo(self) -> Memo:
        """What upper layers have made for this equation."""
        return Memo()

    @cached_property
    def controlled(self) -> int:
        """The number of states of the controller; they come first in z."""
        return self.control.state_count(self.robot_text) if self.control is not None else 0

    @cached_property
    def states(self) -> int:
        """The number of states z of the controller and of the bristles of LuGre friction, and of
        what steps of hard contact record.
        """
        bristles = len(self.passive_forces.bristles)
        return self.controlled + bristles + (self.hard_slots.recorded if self.hard_slots else 0)

    def bristles(self, z: Any) -> Any:
        """The part of z (..., states), or of its columns, that are deflections of bristles."""
        part = slice(self.controlled, self.controlled + len(self.passive_forces.bristles))
        return z[..., part] if isinstance(z, np.ndarray) else z[part]

    @cached_property
    def size(self) -> int:
        return self.of_step.stop if self.counted else self.state_slices[2].stop

    @cached_property
    def state_slices(self) -> tuple[slice, slice, slice, slice]:
        """The slices of q, v, z and [work, loss] in y."""
        a, b = self.model.nq, self.model.nq + self.model.nv
        c = b + self.states
        return slice(0, a), slice(a, b), slice(b, c), slice(c, c + 2)

    @property
    def of_heat(self) -> slice:
        """The slice of y with the energy that the ground has dissipated, if there is one, followed
        by that of the machine's ``losses``; with hard contact, by its ``LOSSES`` first.
        """
        start, contact = self.of_pushes.stop, int(self.ground is not None)
        contact = contact if self.hard is None else len(LOSSES)
        return slice(start, start + contact + len(self.passive_forces.losses))

    @property
    def rising(self) -> tuple[int, ...]:
        """The entries of y that never fall: what ground and machine have dissipated."""
        return tuple(range(self.of_heat.start, self.of_heat.stop)) if self.counted else ()

    @property
    def of_drives(self) -> slice:
        """The slice of y with the work of each drive but the last; that of the last is the total
        work minus the others.
        """
        start = self.of_heat.stop
        return slice(start, start + max(0, len(self.drives) - 1))

    @property
    def of_step(self) -> slice:
        """The slice of y with the energy that hard steps themselves have added, J, and the mean
        accelerations (nv) of the last of them; empty without hard contact.
        """
        start = self.of_drives.stop
        return slice(start, start + (0 if self.hard is None else 1 + self.model.nv))

    @property
    def of_pushes(self) -> slice:
        """The slice of y with the work of the external wrenches; empty without them."""
        start = self.state_slices[3].stop
        return slice(start, start + bool(self.pushed))

    @property
    def input_size(self) -> int:
        """The size of u."""
        return self.model.nv + 6 * len(self.pushed)

    @cached_property
    def passive_forces(self) -> PassiveText:
        """The machine's passive forces that act."""
        soft = self.hard is None
        return passive_text(self.model, self.stops and soft, self.passive, dry=soft)

    def driven_within(self, tau: Sequence[Scalar]) -> list[Scalar]:
        """Joint forces within what the drives can give."""
        return within_drive_efforts(self.model, tau) if self.efforts else list(tau)

    @cached_property
    def sampled(self) -> bool:
        """Whether the controller's output is held between samples."""
        return self.control is not None and self.control.rate_hz is not None

    @property
    def sampled_without_states(self) -> bool:
        """Whether the controller acts through the inputs u alone: it is sampled and has
        no states.
        """
        return self.sampled and not self.controlled

    @cached_property
    def servo_gains(self) -> Gains:
        """Stiffness and damping (nv) of a continuous controller that is springs and dampers."""
        return servo_gains(None if self.sampled else self.control, self.robot_text)

    @property
    def traceable(self) -> bool:
        """Whether all of it can be compiled."""
        return self.control is None or self.control.traceable

    @property
    def rounds(self) -> bool:
        """Whether a sensor rounds what the controller sees, so that no derivative tells of it."""
        laws = () if self.control is None else (self.control, *parts_of(self.control))
        return any(law.sensor is not None and law.sensor.rounds for law in laws)

    def torque(
        self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar], z: Sequence[Scalar]
    ) -> tuple[list[Scalar], list[Scalar]]:
        """The controller's joint forces and the rates of its states."""
        if self.control is None:
            return [0.0] * self.model.nv, []
        states = list(z)[: self.controlled]
        tau, rates = self.control.text(self.robot_text, t, list(q), list(v), states)
        return list(tau), list(rates)

    @cached_property
    def robot_text(self) -> RobotText:
        """The robot as its controller sees it."""
        return RobotText(self.model, self.contact)

    @cached_property
    def contact(self) -> ContactText | None:
        """The contact points on the ground, as texts."""
        if self.ground is None:
            return None

        return ContactText(self.model, self.ground)

    @cached_property
    def hard_slots(self) -> HardSlots | None:
        """What the steps of hard contact hold."""
        if self.hard is None:
            return None
        return HardSlots(self.model, self.hard, self.stops, self.passive)

    @property
    def of_hard(self) -> slice:
        """The slice of y with what hard steps record; empty without them."""
        end = self.state_slices[2].stop
        return slice(end - (0 if self.hard_slots is None else self.hard_slots.recorded), end)

    @cached_property
    def effort_ranges(self) -> list[tuple[float, float]]:
        """What each drive can give, backward and forward."""
        return [element.efforts for joint in self.model.joints for element in joint.machine]

    def pushes(self, q: Sequence[Scalar], u: Sequence[Scalar]) -> list[Scalar]:
        """Joint forces (nv) of the external wrenches in u."""
        model, tree = self.model, tree_of(self.model)
        links: list[list[tuple[Vec3, Wrench]]] = [[] for _ in tree.links]
        for i, name in enumerate(self.pushed):
            body, frame = model.attachment(name)
            k, n = model.skeleton.last[body], model.nv + 6 * i
            place = tree.links[k].seat.point(Vec3(*frame.position.tolist()))
            links[k].append((place, Wrench(Vec3(*u[n : n + 3]), Vec3(*u[n + 3 : n + 6]))))
        own_q = model.skeleton.coordinates(list(q), (1.0, 0.0, 0.0, 0.0))
        return list(joint_forces(tree, own_q, links))

    @property
    def prescribed(self) -> Prescribed | None:
        """The controller, if it prescribes the motion of its coordinates."""
        return self.control if self.control is not None and self.control.prescribes else None  # type: ignore[return-value]

    def apply_prescribed_motion(
        self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar]
    ) -> tuple[list[Scalar], list[Scalar]]:
        """(q, v) with the prescribed coordinates set to their motion at time t."""
        if self.prescribed is None:
            return list(q), list(v)
        return self.prescribed.apply_prescribed_motion(self.robot_text, t, q, v)[:2]

    def start(self, q: Array, v: Array, p: Array = _NONE) -> Array:
        """y (..., size) of a state at the start of a run, its last entries p."""
        lead = q.shape[:-1]
        if not lead == v.shape[:-1] == p.shape[:-1]:
            lead = np.broadcast_shapes(lead, v.shape[:-1], p.shape[:-1])
        y = np.zeros((*lead, self.size))
        of_q, of_v, of_z, _ = self.state_slices
        y[..., of_q], y[..., of_v], y[..., self.size - p.shape[-1] :] = q, v, p
        if self.states:
            columns = ([x[..., i] for i in range(x.shape[-1])] for x in (q, v, p))
            for i, z in enumerate(self.states_at_start(*columns), of_z.start):
                y[..., i] = z
        return y

    def states_at_start(
        self, q: Sequence[Scalar], v: Sequence[Scalar], p: Sequence[Scalar] = ()
    ) -> list[Scalar]:
        """z of a run that starts at q, v with the parameters p."""
        of_control: Sequence[Scalar] = ()
        if self.control is not None and self.controlled:
            of_control = self.control.states_at_start(self.robot_text, q, v)
        recorded = [0.0] * (self.hard_slots.recorded if self.hard_slots else 0)
        return [*of_control, *self.passive_forces.bristles_at_start(v), *recorded]
