"""The laws of machine elements, one coordinate each, over any scalar.

A law gives the force on the joint, what it stores in J, and the power it loses in W.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ramify.core.scalar import Scalar, given, select, sqrt
from ramify.model.elements import Cubic, Friction


@dataclass(frozen=True)
class Answer:
    """Force on the joint, energy stored, power lost, and the rate of the element's own state."""

    force: Scalar
    stored: Scalar = 0.0
    loss: Scalar = 0.0
    rate: Scalar = 0.0


def spring(law: Cubic, x: Scalar) -> Answer:
    """-(a + b x + c x^2) x."""
    a, b, c = law
    stored = x * x * (0.5 * a + x * (b * (1.0 / 3.0) + x * (0.25 * c)))
    return Answer(-(a + x * (b + x * c)) * x, stored)


def damping(law: Cubic, v: Scalar) -> Answer:
    """-(a + b |v| + c v^2) v."""
    a, b, c = law
    size = select(v < 0.0, -v, v) if b else 0.0
    factor = a + (b * size + c * (v * v))
    return Answer(-factor * v, 0.0, factor * (v * v))


def friction(law: Friction, slip: float, v: Scalar) -> Answer:
    """-(mean s + asym s^2) with s = v / sqrt(v^2 + slip^2); static friction falls with the speed.

    The sign of v is smoothed without an exponential: it costs the adaptive methods least.
    """
    s = v / sqrt(v * v + slip * slip)
    mean, asym = law.sliding, 0.5 * (law.forward - law.backward)
    height: Scalar = mean
    if law.static:
        x = v * (1.0 / law.stribeck_speed)
        height = mean + (law.static - mean) / (1.0 + x * x)
    skew = asym / mean if given(asym) else 0.0
    force = -(height * s * (1.0 + skew * s))
    return Answer(force, 0.0, -force * v)


def bristles(
    law: Friction, stiffness: float, damping: float, time: float, v: Scalar, z: Scalar
) -> Answer:
    """LuGre friction with the mean deflection z of the bristles as its state, elasto-plastic below
    0.7 of the sliding force: there z follows the joint, and nothing creeps.

    F = -(r s0 z + s1 max(s, 0) w) with dz/dt = w s and s = 1 - A s0 |z| / g(v). The speed w that
    bends the bristles is v, at most F_c / (s0 time), so that steps of that length stay stable; A
    rises from 0 to 1 where the bristles give way, and is 0 where they unbend; there r = w / v. The
    loss -F v - s0 z dz/dt is never negative.
    """
    ahead = v > 0.0
    sliding = select(ahead, law.forward, law.backward)
    height = sliding
    if law.static:
        x = v * (1.0 / law.stribeck_speed)
        height = sliding + (law.static - sliding) / (1.0 + x * x)
    most = law.sliding / (stiffness * time)
    w = select(v > most, most, select(v < -most, -most, v))
    bending = z * v > 0.0
    size = select(z < 0.0, -z, z) * stiffness
    stuck = 0.7 * sliding
    x = (size - stuck) / (height - stuck)
    x = select(x < 0.0, 0.0, select(x > 1.0, 1.0, x))
    yielded = select(bending, x * x * (3.0 - 2.0 * x), 0.0)
    s = 1.0 - yielded * size / height
    still = v * v < 1e-300
    r = select(z * v < 0.0, w / select(still, 1.0, v), 1.0)
    rate = w * s
    force = -(r * stiffness * z + damping * select(s > 0.0, s, 0.0) * w)
    return Answer(force, 0.5 * stiffness * (z * z), -force * v - stiffness * z * rate, rate)


def stop(stiffness: float, damping: float, ramp: float, depth: Scalar, rate: Scalar) -> Answer:
    """(k d + c S(d / ramp) r)+ against the motion outward, d the depth beyond the limit and r its
    rate: unilateral, without a jump at touch, never sticky.

    The force is that along -d. What it loses is (F - k d) r, which is never negative.
    """
    d = select(depth > 0.0, depth, 0.0)
    x = d * (1.0 / ramp)
    x = select(x > 1.0, 1.0, x)
    push = stiffness * d + damping * (x * x * (3.0 - 2.0 * x)) * rate
    force = select(push > 0.0, push, 0.0)
    return Answer(force, 0.5 * stiffness * (d * d), (force - stiffness * d) * rate)


def limit(
    law: tuple[float, float, float], ends: tuple[float, float], q: Scalar, v: Scalar
) -> Answer:
    """The stops at both ends of a range: only one can be touched, so that one law serves them."""
    low, high = ends
    over, under = q - high, low - q
    if high == math.inf or low == -math.inf:
        way = 1.0 if low == -math.inf else -1.0
        found = stop(*law, over if way > 0.0 else under, v * way)
        return replace(found, force=found.force * -way)
    up = over > under
    found = stop(*law, select(up, over, under), select(up, v, -v))
    return replace(found, force=select(up, -found.force, found.force))
