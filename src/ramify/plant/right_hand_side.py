"""The right-hand side of a machine: the forces that act, the accelerations that follow, and the
power of each force. Runs, rollouts, derivatives and exports all use this one text.

``observe`` is a text over the parts of a machine: controller, limits of the drives, pushes, loads,
passive forces, ground and dynamics. ``TextParts`` evaluates them over lists of scalars of any kind,
an entry per coordinate, so that the whole can be compiled; ``KernelParts`` over rows (..., n) of
numbers, through the robot's kernels. Vectors are lists or rows; ``plus`` and its like take both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ramify.core.scalar import Scalar

Vector = Any
"""A list of scalars, or rows (..., n)."""


class PassivePart(NamedTuple):
    """The passive forces of a machine: their sum ``total`` (nv), None where there are none; the
    power of each kind of loss, W; the rates of the bristle deflections (LuGre friction).
    """

    total: Vector | None
    losses: Vector
    bristle_rates: Vector


class NetForce(NamedTuple):
    """``net`` (nv): all forces on the joints but those of ground and loops; of them the ``pushes``
    of external wrenches, where there are some, and the further ``loads``; the ``passive`` part.
    """

    net: Vector
    pushes: Vector | None
    loads: Sequence[Vector]
    passive: PassivePart


class Observed(NamedTuple):
    """``a`` (nv): accelerations; ``tau`` (nv): joint forces of the controller and of u, within what
    the drives can give; ``state_rates``: of the states of controller and bristles; ``loss_powers``,
    W: what the ground dissipates, where there is one, then the machine's losses; ``forces``: the
    sum of all forces, and its parts.
    """

    a: Vector
    tau: Vector
    state_rates: Vector
    loss_powers: Vector
    forces: NetForce


class MachineState(NamedTuple):
    """The parts of y: coordinates, velocities, states of the controller, and of the bristles."""

    q: Vector
    v: Vector
    z: Vector
    bristles: Vector


class MachineParts(Protocol):
    """The parts of a machine, one way to evaluate them."""

    @property
    def prescribed(self) -> bool:
        """Whether the controller prescribes the motion of its coordinates."""

    @property
    def damping(self) -> Vector:
        """Viscous friction (nv) of the joints."""

    @property
    def drives(self) -> Sequence[int]:
        """The places in v of the driven joints, whose work is counted separately."""

    def state(self, t: Any, y: Vector) -> MachineState: ...

    def torque(self, t: Any, state: MachineState) -> tuple[Vector | None, Vector]:
        """The controller's joint forces, None where none act at all times, and the rates of its
        states.
        """

    def outside(self, u: Vector) -> Vector:
        """The joint forces (nv) in u; the external wrenches follow them there."""

    def limited(self, tau: Vector) -> Vector: ...

    def pushes(self, q: Vector, u: Vector) -> Vector | None:
        """The joint forces (nv) of the external wrenches in u; None without such."""

    def loads(self, q: Vector, v: Vector) -> Sequence[Vector]:
        """The joint forces (nv) of each registered load that acts."""

    def passive(self, q: Vector, v: Vector, bristles: Vector) -> PassivePart: ...

    def dynamics(self, q: Vector, v: Vector, net: Vector) -> tuple[Vector, Vector]:
        """(a, heat'): accelerations under the joint forces ``net``, with ground and loops; the
        power that the ground dissipates, empty without a ground.
        """

    def prescribed_dynamics(
        self, t: Any, q: Vector, v: Vector, forces: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """(a, tau, heat') where the controller prescribes the motion of its coordinates and
        ``forces`` act on the others.
        """


def observe(parts: MachineParts, t: Any, y: Vector, u: Vector) -> Observed:
    """What acts on the machine in the state y at time t under forces and wrenches u from outside,
    and what follows from it.
    """
    state = parts.state(t, y)
    q, v, _, bristles = state
    if parts.prescribed:
        return _prescribed(parts, t, state, u)
    tau, rates = parts.torque(t, state)
    tau = parts.limited(parts.outside(u) if tau is None else plus(tau, parts.outside(u)))
    forces = net_force(parts, tau, q, v, bristles, u)
    a, heat = parts.dynamics(q, v, forces.net)
    passive = forces.passive
    return Observed(
        a, tau, joined(rates, passive.bristle_rates), joined(heat, passive.losses), forces
    )


def net_force(
    parts: MachineParts, tau: Vector, q: Vector, v: Vector, bristles: Vector, u: Vector
) -> NetForce:
    """The sum of joint forces tau, viscous friction, pushes, loads and passive forces."""
    forces = with_friction_and_loads(parts, tau, q, v, u)
    passive = parts.passive(q, v, bristles)
    net = forces.net if passive.total is None else plus(forces.net, passive.total)
    return forces._replace(net=net, passive=passive)


def with_friction_and_loads(
    parts: MachineParts, forces: Vector, q: Vector, v: Vector, u: Vector
) -> NetForce:
    """``forces`` (nv) with viscous friction, pushes and loads added; ``passive`` is left empty."""
    net = minus(forces, products(parts.damping, v))
    pushes, loads = parts.pushes(q, u), parts.loads(q, v)
    for force in (*([] if pushes is None else [pushes]), *loads):
        net = plus(net, force)
    return NetForce(net, pushes, loads, PassivePart(None, [], []))


def _prescribed(parts: MachineParts, t: Any, state: MachineState, u: Vector) -> Observed:
    """As ``observe``, where the controller prescribes a motion. ``tau`` of the result is, at a
    prescribed joint, the drive force that its motion needs against friction and loads; at the other
    joints the force in u.
    """
    q, v, _, bristles = state
    passive = parts.passive(q, v, bristles)
    resisting = with_friction_and_loads(
        parts, zeros(v) if passive.total is None else passive.total, q, v, u
    )
    a, tau, heat = parts.prescribed_dynamics(t, q, v, plus(parts.outside(u), resisting.net))
    return Observed(
        a, minus(tau, resisting.net), passive.bristle_rates, joined(heat, passive.losses),
        resisting._replace(net=tau, passive=passive),
    )  # fmt: skip


def counter_rates(
    parts: MachineParts, v: Vector, powers: Vector, forces: NetForce, heat: Vector
) -> Vector:
    """The rates (W) of all counters in y, in their order: work of the joint forces; losses by
    viscous friction and loads; work of the pushes, where there are some; ``heat``; work of each
    drive but the last, which is the total less the others. ``powers`` (nv): the power of each joint
    force.
    """
    loss = total(products(parts.damping, products(v, v)))
    for force in forces.loads:
        loss = minus(loss, total(products(force, v)))
    pushes = [] if forces.pushes is None else [total(products(forces.pushes, v))]
    return joined(total(powers), loss, *pushes, heat, entries_at(powers, parts.drives[:-1]))


# ---- vectors ----


def plus(a: Vector, b: Vector) -> Vector:
    """a + b."""
    return a + b if isinstance(a, np.ndarray) else [x + y for x, y in zip(a, b, strict=True)]


def minus(a: Vector, b: Vector) -> Vector:
    """a - b."""
    return a - b if isinstance(a, np.ndarray) else [x - y for x, y in zip(a, b, strict=True)]


def products(a: Vector, b: Vector) -> Vector:
    """The products of the entries."""
    return a * b if isinstance(a, np.ndarray) else [x * y for x, y in zip(a, b, strict=True)]


def zeros(like: Vector) -> Vector:
    """As many zeros."""
    return np.zeros_like(like) if isinstance(like, np.ndarray) else [0.0] * len(like)


def total(a: Vector) -> Vector:
    """The sum of all entries, as a vector of one."""
    if isinstance(a, np.ndarray):
        return a.sum(axis=-1, keepdims=True)
    out: Scalar = 0.0
    for x in a:
        out = out + x
    return [out]


def joined(*vectors: Vector) -> Vector:
    """One vector after the other."""
    if not isinstance(vectors[0], np.ndarray):
        return [x for vector in vectors for x in vector]
    parts = [x for x in vectors if x.shape[-1]] or vectors[:1]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)


def entries_at(a: Vector, places: Sequence[int]) -> Vector:
    """The entries at some places."""
    return a[..., list(places)] if isinstance(a, np.ndarray) else [a[i] for i in places]
