"""Slopes of joint forces, and the fastest motion that they cause."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ramify.core.arrays import Array
from ramify.core.jet import Jet, rate
from ramify.core.scalar import Scalar
from ramify.drives.passive import PassiveText
from ramify.model.configuration import coordinate_rates
from ramify.model.robot import Robot

JointForces = Callable[[Sequence[Scalar], Sequence[Scalar]], Sequence[Scalar]]
"""Joint forces (nv) of q (nq) and v (nv), over any scalar."""


def force_slopes(robot: Robot, forces: JointForces, q: Array) -> tuple[Array, Array]:
    """(K, D), each (nv, nv): -dF/dq and -dF/dv of joint forces at rest at q, couplings included."""
    n = robot.nv
    moves = np.zeros((robot.nq, 2 * n))
    moves[:, :n] = np.array([coordinate_rates(robot, q.tolist(), e) for e in np.eye(n).tolist()]).T
    at = [Jet(x, dx, None) for x, dx in zip(q.tolist(), moves, strict=True)]
    still = [Jet(0.0, dx, None) for dx in np.eye(2 * n)[n:]]
    slopes = np.zeros((n, 2 * n))
    for j, force in enumerate(forces(at, still)):
        slopes[j] = np.asarray(rate(force))
    return -slopes[:, :n], -slopes[:, n:]


def fastest_rate(M: Array, K: Array, D: Array, ways: Array) -> tuple[float, int]:
    """(1/s, place in v): the largest absolute eigenvalue of I a + D v + K x = 0 along the
    possible directions ``ways`` (nv, n), and the joint that moves most in it.
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
    """(1/s, place in v) of a single joint that touches its stop, with the inertia (nv) it shows."""
    rates = [(0.0, 0)]
    for j in {j for _, j, _, _ in text.limits} if "stop" in text.parts else ():
        k, c, _ = text.law_of_stop(j)
        m = inertia[j]
        rates.append((float(np.abs(np.roots([m, c, k])).max()), j))
    return max(rates)
