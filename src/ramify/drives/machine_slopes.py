"""How steep a machine is: slopes of its joints' own forces by rate and by coordinate."""

from __future__ import annotations

import math

import numpy as np

from ramify.core.arrays import Array
from ramify.drives.passive import PassiveText


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
            stiffness, damping, _ = text.law_of_bristles(j)
            k[j] += stiffness
            d[j] += damping
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


def fastest_decay(text: PassiveText, viscous: Array, M: Array, q: Array) -> float:
    """1/s: the largest rate at which damping and friction alone would slow the robot down at rest,
    of the eigenvalues of I^-1 D.
    """
    d = slopes(text, q, np.zeros(len(viscous)))[0] + viscous
    if not d.any():
        return 0.0
    root = np.sqrt(d)
    found = np.linalg.eigvalsh(root[:, None] * np.linalg.inv(M) * root)
    return float(found[-1])
