"""Forces of the actuators over any scalar: command, activation, gain and bias, limits, joints."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from ramify.codegen.cache_keys import digest
from ramify.core.scalar import Scalar, Scalars, floor, given, select
from ramify.drives.element_laws import clamped
from ramify.drives.passive import PassiveText
from ramify.drives.places import Places, Row, times
from ramify.drives.transmission import reach
from ramify.model.machine import ANY, Actuator, Range
from ramify.model.robot import Robot


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
    """The actuators of a robot. ``states``: how many have an activation, in their order."""

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

    def __call__(self, q: Scalars, v: Scalars, command: Scalars, activation: Scalars) -> Driving:
        """All of it at q (nq), v (nv), commands (one per actuator) and activations (states)."""
        spatial = any(a.site for a in self.actuators) or any(t.branches for t in self.robot.tendons)
        places = Places(self.robot, q) if spatial else None
        forces: list[Scalar] = []
        rates: list[Scalar] = []
        rows: list[Row] = []
        stiffness: list[Scalar] = []
        damping: list[Scalar] = []
        waiting = iter(activation)
        for a, u in zip(self.actuators, command, strict=True):
            u = clamped(u, *a.command)
            found = reach(self.robot, a, q, places)
            x = u
            if a.activation:
                w = next(waiting)
                rate = u if a.activation == "integrator" else (u - w) * (1.0 / a.time)
                rates.append(rate)
                x = self._next(a, w, u, rate) if a.early else w
            if found.period and a.gain[0] == -a.bias[1] and not any(a.gain[1:]):
                x = x - found.period * floor((x - found.length) * (1.0 / found.period) + 0.5)
            speed = times(found.row, v)
            gain = _affine(a.gain, found.length, speed)
            forces.append(gain * x + _affine(a.bias, found.length, speed))
            stiffness.append(-(a.gain[1] * x + a.bias[1]))
            damping.append(-(a.gain[2] * x + a.bias[2]))
            rows.append(found.row)
        self._tendon_limits(forces)
        free = [within(f, a.force) for f, a in zip(forces, self.actuators, strict=True)]
        forces = [clamped(f, *a.force) for f, a in zip(forces, self.actuators, strict=True)]
        tau: list[Scalar] = [0.0] * self.robot.nv
        for f, row in zip(forces, rows, strict=True):
            for k, x in row.items():
                tau[k] = tau[k] + x * f
        stiffness = [x * k for x, k in zip(free, stiffness, strict=True)]
        damping = [x * d for x, d in zip(free, damping, strict=True)]
        return Driving(self.limited(self._lifted(tau, q)), forces, rates, rows, stiffness, damping)

    def _next(self, a: Actuator, w: Scalar, u: Scalar, rate: Scalar) -> Scalar:
        if a.activation == "filterexact":
            after = w + (u - w) * (1.0 - math.exp(-a.step / a.time))
        else:
            after = w + rate * a.step
        return clamped(after, *a.activations)

    def _tendon_limits(self, forces: list[Scalar]) -> None:
        """The forces on a tendon, scaled together where their sum exceeds its effort."""
        for tendon in self.robot.tendons:
            own = [i for i, a in enumerate(self.actuators) if a.tendon == tendon.name]
            if tendon.effort == ANY or not own:
                continue
            total: Scalar = 0.0
            for i in own:
                total = total + forces[i]
            bound = clamped(total, *tendon.effort)
            none = bound == total
            scale = select(none, 1.0, bound / select(none, 1.0, total))
            for i in own:
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

    def limited(self, tau: Scalars) -> list[Scalar]:
        """Joint forces within the efforts of the drives."""
        return limited(self.robot, tau)


def limited(robot: Robot, tau: Scalars) -> list[Scalar]:
    """Joint forces (nv) within the efforts of the drives."""
    elements = [element for joint in robot.joints for element in joint.machine]
    return [clamped(f, *e.efforts) for f, e in zip(tau, elements, strict=True)]


def within(x: Scalar, bounds: Range) -> Scalar:
    """1 where x is within the bounds, else 0: a force at its limit does not change."""
    low, high = bounds
    inside: Scalar = 1.0 if high == math.inf else select(x < high, 1.0, 0.0)
    return inside if low == -math.inf else select(x > low, inside, 0.0)


def _affine(law: tuple[float, float, float], length: Scalar, speed: Scalar) -> Scalar:
    a, b, c = law
    return a + (b * length + c * speed) if given(b) or given(c) else a
