"""The configuration manifold: the places of unit quaternions in q, and how to move on it.

A ball joint's velocity is the angular velocity in the body's frame; moving with it for a time dt
multiplies the quaternion from the right by the rotation exp(v dt). Everything else is a vector
space.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, numbers, one_number, together, unknown_states, whole
from ramify.core.errors import StateError
from ramify.core.scalar import Scalar
from ramify.model.joint import Joint
from ramify.model.loop import Loop

UNIT_TOLERANCE = 1e-4
"""A quaternion whose length is this close to one is normalised; any other is refused."""


class Configured(Protocol):
    """What this module asks of a robot: its joints, loops and the names of its coordinates."""

    @property
    def name(self) -> str: ...
    @property
    def nq(self) -> int: ...
    @property
    def nv(self) -> int: ...
    @property
    def joints(self) -> Sequence[Joint]: ...
    @property
    def loops(self) -> Sequence[Loop]: ...
    @property
    def coordinates(self) -> tuple[str, ...]: ...
    @property
    def layout(self) -> Layout: ...


class Layout(NamedTuple):
    """Entries of q and v that belong together: ``plain`` pairs (in q, in v), and the starts (in q,
    in v) of each ball joint.
    """

    plain_q: list[int]
    plain_v: list[int]
    balls: list[tuple[int, int]]

    @property
    def to_v(self) -> dict[int, int]:
        """The place in v of each plain entry of q."""
        return dict(zip(self.plain_q, self.plain_v, strict=True))

    @property
    def to_q(self) -> dict[int, int]:
        """The place in q of each plain entry of v."""
        return dict(zip(self.plain_v, self.plain_q, strict=True))


def layout(model: Configured) -> Layout:
    """Where the entries of q and v stand."""
    out = Layout([], [], [])
    i = j = 0
    for joint in model.joints:
        for step in joint.steps:
            if step.ball == 0:
                out.plain_q.append(i)
                out.plain_v.append(j)
            elif step.ball == 1:
                out.balls.append((i, j))
            i += len(step.positions)
            j += 1
    return out


def neutral(model: Configured) -> Array:
    """Every joint at zero, every quaternion at one."""
    q = np.zeros(model.nq)
    for i, _ in model.layout.balls:
        q[i] = 1.0
    return q


def random(model: Configured, seed: int) -> tuple[Array, Array]:
    """A repeatable random state that honours the gears."""
    rng = np.random.default_rng(whole("seed", seed, 0))
    q, v = np.empty(model.nq), rng.normal(size=model.nv)
    low, high = _reach(model)
    followers = _followers(model)
    for i, (master, (offset, *slopes)) in reversed(followers.items()):
        if any(slopes) and not any(slopes[1:]):
            ends = sorted(((low[i] - offset) / slopes[0], (high[i] - offset) / slopes[0]))
            if max(low[master], ends[0]) <= min(high[master], ends[1]):
                low[master], high[master] = max(low[master], ends[0]), min(high[master], ends[1])
    balls = [i for i, _ in model.layout.balls]
    for i in sorted(model.layout.plain_q + balls):
        if i in balls:
            u = rng.normal(size=4)
            q[i : i + 4] = u / np.linalg.norm(u)
        else:
            q[i] = rng.uniform(low[i], high[i])
    rate = model.layout.to_v
    for i, (master, curve) in followers.items():
        law = np.polynomial.Polynomial(curve)
        q[i], v[rate[i]] = law(q[master]), law.deriv()(q[master]) * v[rate[master]]
    return q, v


def _reach(model: Configured) -> tuple[Array, Array]:
    """Lower and upper limit per entry of q; half a turn or a metre either way where there is
    none.
    """
    steps = [step for joint in model.joints for step in joint.steps for _ in step.positions]
    high = np.array([np.pi if step.rho else 1.0 for step in steps])
    low = -high
    start = 0
    for joint in model.joints:
        for i, (least, most) in enumerate(joint.limits, start=start):
            low[i] = least if np.isfinite(least) else min(low[i], most - 2.0 * high[i])
            high[i] = most if np.isfinite(most) else max(high[i], least + 2.0 * high[i])
        start += joint.nq
    return low, high


def _followers(model: Configured) -> dict[int, tuple[int, tuple[float, ...]]]:
    """Entries of q that follow another one through gears and couplings: (that entry, coefficients
    of its powers), each after those that it follows.
    """
    index = {name: i for i, name in enumerate(model.coordinates)}
    direct: dict[int, tuple[int, tuple[float, ...]]] = {}
    for loop in model.loops:
        if loop.joints:
            first, second = index[loop.joints[0]], index[loop.joints[-1]]
            direct.setdefault(second, (first, loop.polynomial))
    followers: dict[int, tuple[int, tuple[float, ...]]] = {}
    for follower in direct:
        way = [follower]
        while way[-1] in direct and direct[way[-1]][0] not in way:
            way.append(direct[way[-1]][0])
        closes = way[-1] in direct and direct[way[-1]][0] == way[-1]
        if way[-1] not in direct or closes:  # gears in a ring have no first
            followers |= {i: direct[i] for i in reversed(way) if i in direct}
    return followers


def multiply(a: Array, b: Array) -> Array:
    """Product of quaternions (..., 4), w first."""
    w = a[..., :1] * b[..., :1] - (a[..., 1:] * b[..., 1:]).sum(axis=-1, keepdims=True)
    u = a[..., :1] * b[..., 1:] + b[..., :1] * a[..., 1:] + np.cross(a[..., 1:], b[..., 1:])
    return np.concatenate([w, u], axis=-1)


def quaternion_exponential(turn: Array) -> Array:
    """Quaternion of a rotation vector (..., 3)."""
    angle = np.linalg.norm(turn, axis=-1, keepdims=True)
    half = 0.5 * angle
    return np.concatenate([np.cos(half), 0.5 * np.sinc(half / np.pi) * turn], axis=-1)


def logarithm(q: Array) -> Array:
    """Rotation vector (..., 3), of angle at most pi, of a unit quaternion."""
    q = np.where(q[..., :1] < 0.0, -q, q)
    sine = np.linalg.norm(q[..., 1:], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, q[..., :1])
    small = sine < 1e-12
    return np.where(small, 2.0, angle / np.where(small, 1.0, sine)) * q[..., 1:]


def integrate(model: Configured, q: ArrayLike, v: ArrayLike, dt: float) -> Array:
    """The configuration after moving with constant v for the time dt."""
    start, rate = configuration(model, "q", q, True), checked(model, "v", v, model.nv, True)
    if not math.isfinite(one_number(dt)):
        raise StateError(f"dt {dt!r} must be a finite number of seconds")
    where = model.layout
    out = np.empty((*together(q=start.shape[:-1], v=rate.shape[:-1]), model.nq))
    out[..., where.plain_q] = start[..., where.plain_q] + rate[..., where.plain_v] * dt
    for i, j in where.balls:
        moved = multiply(start[..., i : i + 4], quaternion_exponential(rate[..., j : j + 3] * dt))
        out[..., i : i + 4] = moved / np.linalg.norm(moved, axis=-1, keepdims=True)
    out[unknown_states(start, rate)] = np.nan
    return out


def difference(model: Configured, q0: ArrayLike, q1: ArrayLike) -> Array:
    """The velocity that takes q0 to q1 in unit time: integrate(q0, difference(q0, q1), 1) = q1."""
    a, b = configuration(model, "q0", q0, True), configuration(model, "q1", q1, True)
    where = model.layout
    out = np.empty((*together(q0=a.shape[:-1], q1=b.shape[:-1]), model.nv))
    out[..., where.plain_v] = b[..., where.plain_q] - a[..., where.plain_q]
    for i, j in where.balls:
        back = a[..., i : i + 4] * np.array([1.0, -1.0, -1.0, -1.0])
        out[..., j : j + 3] = logarithm(multiply(back, b[..., i : i + 4]))
    out[unknown_states(a, b)] = np.nan
    return out


def coordinate_rates(model: Configured, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """dq/dt (nq) over any scalar: the velocities, and for a quaternion see ``turning``."""
    out: list[Scalar] = [0.0] * model.nq
    for i, j in zip(model.layout.plain_q, model.layout.plain_v, strict=True):
        out[i] = v[j]
    for i, j in model.layout.balls:
        out[i : i + 4] = turning(q[i : i + 4], v[j : j + 3])
    return out


def turning(q: Sequence[Scalar], w: Sequence[Scalar]) -> list[Scalar]:
    """q * w / 2: the rate of a quaternion (4) of a body with angular velocity w (3) in its own
    axes.
    """
    s, x, y, z = q
    a, b, c = (0.5 * rate for rate in w)
    return [
        -(x * a + y * b + z * c),
        s * a + y * c - z * b, s * b + z * a - x * c, s * c + x * b - y * a,
    ]  # fmt: skip


def unit_rates(model: Configured, q: Array) -> Array:
    """dq/dt (..., nv, nq) of each unit velocity: rows of the map from v to the rates of the
    coordinates.
    """
    where = model.layout
    out = np.zeros((*q.shape[:-1], model.nv, model.nq))
    out[..., where.plain_v, where.plain_q] = 1.0
    for i, j in where.balls:
        parts = [q[..., i + k] for k in range(4)]
        for axis, unit in enumerate(np.eye(3).tolist()):
            for k, rate in enumerate(turning(parts, unit)):
                out[..., j + axis, i + k] = rate
    return out


def checked(
    model: Configured, name: str, value: ArrayLike, size: int, unknown: bool = False
) -> Array:
    """An array (..., size) of finite real numbers; ``unknown``: states of a batch may be NaN."""
    return numbers(name, value, size, model.name, unknown)


def configuration(
    model: Configured, name: str, value: ArrayLike, unknown: bool = False
) -> Array:  # fmt: skip
    """Coordinates (..., nq) with quaternions of unit length; ``unknown``: states of a batch may be
    NaN.
    """
    q = checked(model, name, value, model.nq, unknown)
    balls = [i for i, _ in model.layout.balls]
    check_quaternions(balls, model.coordinates, q.reshape(-1, model.nq))
    return q


def check_quaternions(starts: list[int], names: tuple[str, ...], q: Array) -> None:
    """Refuse quaternions (in rows of q) that are not of unit length."""
    for i in starts:
        if len(q) == 1 and abs(math.hypot(*q[0, i : i + 4].tolist()) - 1.0) <= UNIT_TOLERANCE:
            continue
        length = np.hypot.reduce(q[:, i : i + 4], axis=1)  # does not overflow
        bad = np.flatnonzero(np.abs(length - 1.0) > UNIT_TOLERANCE)
        if bad.size:
            state = int(bad[0])
            where = f" of state {state}" if q.shape[0] > 1 else ""
            raise StateError(
                f"the quaternion {names[i]} … {names[i + 3]} (q[{i}:{i + 4}]{where}) has length "
                f"{length[state]:.6g}; it must be 1 "
                "(w first); normalise it"
            )
