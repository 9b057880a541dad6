"""Forces of the actuators over any scalar: command, activation, gain and bias, limits, joints."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.core.scalar import Scalar, Scalars, floor, select
from ramify.drives.element_laws import clamped
from ramify.drives.joint_drives import DriveLaw, commanded, force_of, law_of
from ramify.drives.passive import PassiveText
from ramify.drives.places import Places, Row, row_times
from ramify.drives.transmission import Reach, transmission_at
from ramify.model.machine import ANY, Actuator, Range
from ramify.model.robot import Robot, once
from ramify.runtime.cache_keys import digest


@dataclass
class Driving:
    """Joint forces tau (nv), the force of each actuator, and the rates of the activations; of each
    actuator the row of its transmission, and the stiffness and damping of its force along it.
    """

    tau: list[Scalar]
    force: list[Scalar]
    rates: list[Scalar]
    rows: list[Row]
    stiffness: list[Scalar]
    damping: list[Scalar]


class ActuatorText:
    """The actuators of a robot. ``states``: the number of those with an activation."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.actuators = robot.actuators
        self.states = sum(bool(a.activation) for a in self.actuators)
        self._elements = [element for joint in robot.joints for element in joint.machine]
        self._passive = PassiveText(robot, stops=False)

    @cached_property
    def fingerprint(self) -> str:
        """All that the forces depend on besides the rigid robot."""
        frames = [
            (name, body, frame.rotation.tolist(), frame.position.tolist())
            for name, (body, frame) in self.robot.frames.items()
        ]
        efforts = [(e.effort, e.backward_effort, e.lifts) for e in self._elements]
        lifts = [body.lift for body in self.robot.bodies]
        return digest(repr((self.actuators, self.robot.tendons, frames, efforts, lifts)))

    @cached_property
    def alone(self) -> dict[int, tuple[int, float]]:
        """By rate its actuator and the gear, for code that loops over the joints: an actuator that
        acts on this plain coordinate alone. A coordinate whose effort limits several forces
        together has none.
        """
        moved = [self._moved(a) for a in self.actuators]
        drives: dict[int, tuple[int, float]] = {}
        for i, (a, rates) in enumerate(zip(self.actuators, moved, strict=True)):
            if not a.joint or len(rates) != 1 or not rates <= set(self.robot.layout.plain_v):
                continue
            (j,) = rates
            summed = self._elements[j].lifts or sum(j in others for others in moved) > 1
            if j not in drives and not (summed and self._elements[j].efforts != ANY):
                drives[j] = i, a.gear[j - self.robot.joint_slice(a.joint).start]
        return drives

    def _moved(self, a: Actuator) -> set[int]:
        """The rates that an actuator may act on."""
        if a.joint:
            rates = range(self.robot.nv)[self.robot.joint_slice(a.joint)]
            if self.robot.joint(a.joint).kind in ("ball", "free"):
                return set(rates)
            return {k for k, g in zip(rates, a.gear, strict=False) if g}
        frames = {a.site, a.reference, a.slider}
        rates_of = {name: i for i, name in enumerate(self.robot.velocities)}
        moved: set[int] = set()
        for tendon in self.robot.tendons:
            if tendon.name == a.tendon:
                moved = {rates_of[name] for name, _ in tendon.joints}
                frames = {name for _, names in tendon.branches for name in names}
        bodies = [self.robot.attachment(name).body for name in frames if name]
        return moved.union(*(self.robot.skeleton.support(b) for b in bodies if b >= 0))

    @cached_property
    def drive_laws(self) -> list[DriveLaw]:
        """For every rate the law of the actuator that drives it alone."""
        laws = [DriveLaw()] * self.robot.nv
        for j, (i, gear) in self.alone.items():
            laws[j] = law_of(self.actuators[i], gear, self._elements[j].efforts)
        return laws

    @property
    def several(self) -> bool:
        """Whether some actuators act on several coordinates, or together."""
        live = sum(not a.dead for a in self.actuators)
        return len(self.alone) < live or any(e.lifts for e in self._elements)

    def of_several(self, q: Scalars, v: Scalars, command: Scalars, activation: Scalars) -> Driving:
        """The forces of actuators that do not drive a coordinate alone; the others count
        as zero.
        """
        return self(q, v, command, activation, {i for i, _ in self.alone.values()})

    def __call__(
        self,
        q: Scalars,
        v: Scalars,
        command: Scalars,
        activation: Scalars,
        left_out: Collection[int] = (),
    ) -> Driving:
        """Forces and rates at q (nq), v (nv), commands (one per actuator) and activations
        (states).
        """
        spatial = any(a.site for a in self.actuators) or any(t.branches for t in self.robot.tendons)
        places = Places(self.robot, q) if spatial else None
        forces: list[Scalar] = []
        rates: list[Scalar] = []
        rows: list[Row] = []
        stiffness: list[Scalar] = []
        damping: list[Scalar] = []
        ranges: list[Range] = []
        waiting = iter(activation)
        for i, (a, u) in enumerate(zip(self.actuators, command, strict=True)):
            w = next(waiting) if a.activation else None
            law, transmission = DriveLaw(), Reach(0.0, {})
            if i not in left_out:
                law, transmission = law_of(a), transmission_at(self.robot, a, q, places)
            x, rate = commanded(law, u, w)
            if w is not None:
                rates.append(rate)
            if transmission.period and a.gain[0] == -a.bias[1] and not any(a.gain[1:]):
                x = x - transmission.period * floor(
                    (x - transmission.length) * (1.0 / transmission.period) + 0.5
                )
            forces.append(force_of(law, x, transmission.length, row_times(transmission.row, v)))
            stiffness.append(-(law.gain[1] * x + law.bias[1]))
            damping.append(-(law.gain[2] * x + law.bias[2]))
            rows.append(transmission.row)
            ranges.append(ANY if i in left_out else a.force)
        self._tendon_limits(forces)
        free = [within(f, a) for f, a in zip(forces, ranges, strict=True)]
        forces = [clamped(f, *a) for f, a in zip(forces, ranges, strict=True)]
        tau: list[Scalar] = [0.0] * self.robot.nv
        for f, row in zip(forces, rows, strict=True):
            for k, x in row.items():
                tau[k] = tau[k] + x * f
        stiffness = [x * k for x, k in zip(free, stiffness, strict=True)]
        damping = [x * d for x, d in zip(free, damping, strict=True)]
        tau = within_drive_efforts(self.robot, self._lifted(tau, q))
        return Driving(tau, forces, rates, rows, stiffness, damping)

    def _tendon_limits(self, forces: list[Scalar]) -> None:
        """The forces on a tendon, scaled together where their sum exceeds its effort."""
        for tendon in self.robot.tendons:
            pulling = [i for i, a in enumerate(self.actuators) if a.tendon == tendon.name]
            if tendon.effort == ANY or not pulling:
                continue
            total: Scalar = 0.0
            for i in pulling:
                total = total + forces[i]
            bound = clamped(total, *tendon.effort)
            none = bound == total
            scale = select(none, 1.0, bound / select(none, 1.0, total))
            for i in pulling:
                forces[i] = forces[i] * scale

    def _lifted(self, tau: list[Scalar], q: Scalars) -> list[Scalar]:
        """Gravity compensation, where actuated joints give it."""
        lifting = any(e.lifts for e in self._elements) and any(b.lift[0] for b in self.robot.bodies)
        if not (lifting and self.actuators):
            return tau
        weight = self._passive.compensation(q)
        return [
            f + w if e.lifts else f for f, w, e in zip(tau, weight, self._elements, strict=True)
        ]


def within_drive_efforts(robot: Robot, tau: Scalars) -> list[Scalar]:
    """Joint forces (nv) within the efforts of the drives."""
    elements = [element for joint in robot.joints for element in joint.machine]
    return [clamped(f, *e.efforts) for f, e in zip(tau, elements, strict=True)]


@once
def effort_ranges(robot: Robot) -> tuple[Array, Array]:
    """The least and the largest force (nv) that each drive can give, infinite where not rated."""
    efforts = [element.efforts for joint in robot.joints for element in joint.machine]
    low, high = np.array(efforts, dtype=np.float64).reshape(-1, 2).T
    return low, high


def within(x: Scalar, bounds: Range) -> Scalar:
    """1 where x is within the bounds, else 0: a force at its limit does not change."""
    low, high = bounds
    inside: Scalar = 1.0 if high == math.inf else select(x < high, 1.0, 0.0)
    return inside if low == -math.inf else select(x > low, inside, 0.0)
