"""The laws of machine elements, one coordinate each, over any scalar.

A law gives the force on the joint, what it stores in J, and the power it loses in W.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ramify.core.scalar import Scalar, may_be_nonzero, select, sqrt
from ramify.model.elements import Cubic, Friction


@dataclass(frozen=True)
class Answer:
    """Force on the joint, energy stored, power lost, and the rate of the element's own state."""

    force: Scalar
    stored: Scalar = 0.0
    loss: Scalar = 0.0
    rate: Scalar = 0.0


@dataclass(frozen=True)
class DryLaw:
    """Friction as its law reads it: half the ``sliding`` forces of both directions, half their
    difference over it, what static friction has more, 1 / the Stribeck speed, the square of the
    slip speed, and 1 where the Stribeck curve is ``exponential``. ``even``: static friction times
    the skew where bristles make it equal in both directions, else 0.
    """

    sliding: Scalar = 0.0
    skew: Scalar = 0.0
    excess: Scalar = 0.0
    per_speed: Scalar = 0.0
    slip_squared: Scalar = 1.0
    exponential: Scalar = 0.0
    even: Scalar = 0.0


@dataclass(frozen=True)
class BristleLaw:
    """LuGre friction: sliding forces ``forward`` and ``backward``, ``static`` friction (0: none),
    1 / the Stribeck speed, stiffness and damping of the bristles, the largest speed that bends
    them, and 1 where the Stribeck curve is ``exponential``.
    """

    forward: Scalar = 0.0
    backward: Scalar = 0.0
    static: Scalar = 0.0
    per_speed: Scalar = 0.0
    stiffness: Scalar = 0.0
    damping: Scalar = 0.0
    most: Scalar = 0.0
    exponential: Scalar = 0.0


@dataclass(frozen=True)
class StopLaw:
    """The range of a coordinate; stiffness, damping and 1 / ramp of the stops at its ends."""

    low: Scalar = -math.inf
    high: Scalar = math.inf
    stiffness: Scalar = 0.0
    damping: Scalar = 0.0
    per_ramp: Scalar = 0.0


def spring(law: Cubic, x: Scalar) -> Answer:
    """-(a + b x + c x^2) x."""
    a, b, c = law
    stored = x * x * (0.5 * a + x * (b * (1.0 / 3.0) + x * (0.25 * c)))
    return Answer(-(a + x * (b + x * c)) * x, stored)


def damping(law: Cubic, v: Scalar) -> Answer:
    """-(a + b |v| + c v^2) v."""
    a, b, c = law
    size = select(v < 0.0, -v, v) if may_be_nonzero(b) else 0.0
    factor = a + (b * size + c * (v * v))
    return Answer(-factor * v, 0.0, factor * (v * v))


def dry(law: Friction, slip: Scalar) -> DryLaw:
    """Friction with a slip speed."""
    mean, asym = law.sliding, 0.5 * (law.forward - law.backward)
    static = bool(law.static)
    skew = asym / mean if may_be_nonzero(asym) else 0.0
    return DryLaw(
        mean,
        skew,
        law.static - mean if static else 0.0,
        1.0 / law.stribeck_speed if static else 0.0,
        slip * slip,
        falls_exponentially(law),
        skew * law.static if static and law.bristles is not None else 0.0,
    )


def falls_exponentially(law: Friction) -> float:
    """1 where static friction falls exponentially, else 0."""
    return float(bool(law.static) and law.stribeck == "exponential")


def stribeck(excess: Scalar, x: Scalar, exponential: Scalar) -> Scalar:
    """What static friction has more than sliding friction at x, the speed over the Stribeck speed:
    excess / (1 + x^2), or excess exp(-x^2).
    """
    y = x * x
    rational = excess / (1.0 + y)
    if not may_be_nonzero(exponential):
        return rational
    falling = excess * decay(y)
    if isinstance(exponential, float):
        return falling
    return select(exponential > 0.5, falling, rational)


def decay(y: Scalar) -> Scalar:
    """exp(-y) for y >= 0 by sums and products, to 1e-13 of itself up to y = 64, where it ends.

    exp(-y / 256) by its series, then squared eight times.
    """
    t = select(y > 64.0, 64.0, y) * (-1.0 / 256.0)
    total: Scalar = 1.0
    for n in range(11, 0, -1):
        total = 1.0 + t * total * (1.0 / n)
    for _ in range(8):
        total = total * total
    return total


def friction(law: DryLaw, v: Scalar) -> Answer:
    """-F s (1 + skew s) with s = v / sqrt(v^2 + slip^2), F the mean sliding force and what static
    friction has more, which falls with the speed. Of bristles that slide steadily: -H s, with
    H = G + (static - G) curve and G = F_c (1 + skew s), which is that of either direction beyond
    the slip speed; the skew of static friction is taken back.

    The sign of v is smoothed without an exponential: it costs the adaptive methods least.
    """
    s = v / sqrt(v * v + law.slip_squared)
    height = law.sliding
    if may_be_nonzero(law.excess):
        x = v * law.per_speed
        height = height + stribeck(law.excess, x, law.exponential)
    force = -(height * s * (1.0 + law.skew * s))
    if may_be_nonzero(law.even):
        force = force + s * s * stribeck(law.even, v * law.per_speed, law.exponential)
    return Answer(force, 0.0, -force * v)


def bristles(law: BristleLaw, v: Scalar, z: Scalar) -> Answer:
    """LuGre friction with the mean deflection z of the bristles as its state, elasto-plastic below
    0.7 of the sliding force: there z follows the joint, and nothing creeps.

    F = -(r s0 z + s1 max(s, 0) w) with dz/dt = w s and s = 1 - A s0 |z| / g(v). The speed w that
    bends the bristles is v, at most F_c / (s0 time), so that steps of that length stay stable; A
    rises from 0 to 1 where the bristles give way, and is 0 where they unbend; there r = w / v. The
    loss -F v - s0 z dz/dt is never negative.
    """
    stiffness, most = law.stiffness, law.most
    sliding = select(v > 0.0, law.forward, law.backward)
    height = sliding
    if may_be_nonzero(law.static):
        x = v * law.per_speed
        peak = select(law.static > 0.0, law.static, sliding)
        height = sliding + stribeck(peak - sliding, x, law.exponential)
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
    force = -(r * stiffness * z + law.damping * select(s > 0.0, s, 0.0) * w)
    return Answer(force, 0.5 * stiffness * (z * z), -force * v - stiffness * z * rate, rate)


def stop(law: StopLaw, q: Scalar, v: Scalar) -> Answer:
    """(k d + c S(d / ramp) r)+ against the motion outward, d the depth beyond a limit and r its
    rate: unilateral, without a jump at touch, never sticky.

    Both ends are one law of the signed depth e = q - clamp(q): -(k e + c S(|e| / ramp) v) where
    that points inward, else 0. It loses -(F + k e) v, which is never negative.
    """
    e = q - clamped(q, law.low, law.high)
    force = stopped(law, q, v, 0.0)
    return Answer(force, 0.5 * law.stiffness * (e * e), -(force + law.stiffness * e) * v)


def stopped(law: StopLaw, q: Scalar, v: Scalar, force: Scalar) -> Scalar:
    """A force on the joint and that of its stop, which is computed where one is touched."""
    e = q - clamped(q, law.low, law.high)
    x = e * law.per_ramp
    x = select(x > -x, x, -x)
    x = select(x > 1.0, 1.0, x)
    push = law.stiffness * e + x * x * (3.0 * law.damping - 2.0 * law.damping * x) * v
    inward = select(push * e > 0.0, -push, 0.0)
    return select(beyond(q, law.low, law.high), force + inward, force)


def clamped(x: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """x, but not beyond the bounds."""
    x = x if isinstance(high, float) and high == math.inf else select(x > high, high, x)
    return x if isinstance(low, float) and low == -math.inf else select(x < low, low, x)


def beyond(x: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """Whether x is outside of the bounds, of which at least one is finite."""
    if isinstance(low, float) and low == -math.inf:
        return x > high
    if isinstance(high, float) and high == math.inf:
        return x < low
    return (x - low) * (high - x) < 0.0
