"""How steep a machine is: slopes of its joints' own forces by rate and by coordinate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ramify.core.arrays import Array
from ramify.core.jet import Jet, rate
from ramify.core.scalar import Scalar
from ramify.drives.passive import PassiveText
from ramify.model.configuration import coordinate_rates
from ramify.model.robot import Robot


def slopes(text: PassiveText, q: Array, v: Array) -> tuple[Array, Array]:
    """(d, k), each (nv): -dF/dv and -dF/dq of damping, friction, springs and stops at one state,
    none negative; what couples joints (tendons) is left out.
    """
    robot = text.robot
    d, k = np.zeros(robot.nv), np.zeros(robot.nv)
    if not text:
        return d, k
    plain = dict(zip(robot.layout.plain_v, robot.layout.plain_q, strict=True))
    elements = [element for joint in robot.joints for element in joint.machine]
    for j, element in enumerate(elements) if text.rest else ():
        a, b, c = element.damping
        d[j] += a + 2.0 * b * abs(v[j]) + 3.0 * c * v[j] * v[j]
        if j in text.bristles:
            bristles = text.law_of_bristles(j)
            k[j] += bristles.stiffness
            d[j] += bristles.damping
        elif element.friction is not None:
            e = text.slip(j)
            most = max(element.friction.sliding, element.friction.static)
            d[j] += most * e * e / math.hypot(v[j], e) ** 3
        if element.spring is not None:
            a, b, c = element.spring.stiffness
            x = q[plain[j]] - element.spring.rest[0] if j in plain else 0.0
            k[j] += a + 2.0 * b * x + 3.0 * c * x * x
    if "stop" in text.parts:
        for i, j, low, high in text.limits:
            stiffness, damping, ramp = text.law_of_stop(j)
            for depth, rate in ((q[i] - high, v[j]), (low - q[i], -v[j])):
                x = min(max(depth / ramp, 0.0), 1.0)
                c = damping * x * x * (3.0 - 2.0 * x)
                if depth > 0.0 and stiffness * depth + c * rate > 0.0:
                    k[j] += stiffness
                    d[j] += c
    return np.maximum(d, 0.0), np.maximum(k, 0.0)


JointForces = Callable[[Sequence[Scalar], Sequence[Scalar]], Sequence[Scalar]]
"""Joint forces (nv) of q (nq) and v (nv), over any scalar."""


def force_slopes(robot: Robot, forces: JointForces, q: Array) -> tuple[Array, Array]:
    """(K, D), each (nv, nv): -dF/dq and -dF/dv of joint forces at q at rest, all couplings
    included.
    """
    n = robot.nv
    moves = np.zeros((robot.nq, 2 * n))
    moves[:, :n] = np.array([coordinate_rates(robot, q.tolist(), e) for e in np.eye(n).tolist()]).T
    at = [Jet(x, dx, None) for x, dx in zip(q.tolist(), moves, strict=True)]
    still = [Jet(0.0, dx, None) for dx in np.eye(2 * n)[n:]]
    found = np.zeros((n, 2 * n))
    for j, force in enumerate(forces(at, still)):
        found[j] = np.asarray(rate(force))
    return -found[:, :n], -found[:, n:]


def fastest_rate(M: Array, K: Array, D: Array, ways: Array) -> tuple[float, int]:
    """(1/s, place in v): the largest absolute eigenvalue of I a + D v + K x = 0 along the ``ways``
    (nv, n) that can be gone, and the joint that moves most in it.
    """
    M, K, D = (ways.T @ X @ ways for X in (M, K, D))
    n = len(M)
    A = np.zeros((2 * n, 2 * n))
    A[:n, n:] = np.eye(n)
    A[n:] = -np.linalg.solve(M, np.hstack([K, D]))
    values, vectors = np.linalg.eig(A)
    worst = int(np.argmax(np.abs(values)))
    return float(np.abs(values[worst])), int(np.argmax(np.abs(ways @ vectors[n:, worst])))


def fastest_stop(text: PassiveText, inertia: Sequence[float]) -> tuple[float, int]:
    """The same of a single joint that touches its stop, with the inertia (nv) that it shows."""
    rates = [(0.0, 0)]
    for j in {j for _, j, _, _ in text.limits} if "stop" in text.parts else ():
        k, c, _ = text.law_of_stop(j)
        m = inertia[j]
        rates.append((float(np.abs(np.roots([m, c, k])).max()), j))
    return max(rates)
