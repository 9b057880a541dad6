"""The search for a motion that shows a robot's parameters: amplitudes of Fourier series within the
limits, by L-BFGS with exact derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, real
from ramify.core.errors import StateError
from ramify.identify.base_parameters import BaseParameters
from ramify.identify.unknowns import Unknowns
from ramify.kernels.derivative_kernels import weighted_derivatives
from ramify.model.robot import Robot

HARMONICS: Final = 5
STATES: Final = 160
"""Times of a period at which the information is summed."""
TRIALS: Final = 200
STARTS: Final = 4
"""Random motions that are tried, and how many of the best are optimised."""
_WEIGHTS: Final = (1.0, 1e2, 1e4)  # of what exceeds the limits, one round after the other
_FREE: Final = 2.0  # rad or m around the centre where there is no limit
_SPEED: Final = 2.0  # rad/s or m/s where none is rated
_SOFT: Final = 0.05  # rad/s: the sign of a rate is smoothed over this when a motion is planned
_MARGIN: Final = 0.98  # of the limits that are aimed at
_NOISE: Final = 0.01  # of the torques, where no noise is given
_ROUNDS: Final = 120  # of L-BFGS for each weight


class Bounds(NamedTuple):
    lower: Array
    upper: Array
    velocity: Array
    effort: Array


def bounds_of(robot: Robot, limits: Mapping[str, ArrayLike]) -> Bounds:
    """The limits with what is aimed at where there are none."""
    unknown = set(limits) - set(Bounds._fields)
    if unknown:
        raise StateError(
            f"limits has no {sorted(unknown)[0]!r}; it has {', '.join(Bounds._fields)}"
        )
    of_robot = {
        "lower": robot.lower,
        "upper": robot.upper,
        "velocity": robot.rated_velocity,
        "effort": robot.effort,
    }
    arrays = {
        key: np.broadcast_to(real(key, limits.get(key, of_robot[key])), (robot.nv,))
        for key in Bounds._fields
    }
    lower, upper = np.array(arrays["lower"]), np.array(arrays["upper"])
    below, above = ~np.isfinite(lower), ~np.isfinite(upper)
    lower[below & above], upper[below & above] = -_FREE, _FREE
    lower[below & ~above] = upper[below & ~above] - 2.0 * _FREE
    upper[above & ~below] = lower[above & ~below] + 2.0 * _FREE
    velocity = np.where(
        np.isfinite(arrays["velocity"]) & (arrays["velocity"] > 0.0), arrays["velocity"], _SPEED
    )
    effort = np.where(arrays["effort"] > 0.0, arrays["effort"], np.inf)
    if (lower >= upper).any():
        i = int(np.argmax(lower >= upper))
        raise StateError(
            f"{robot.velocities[i]!r} has no room between {lower[i]:g} and {upper[i]:g}"
        )
    return Bounds(lower, upper, velocity, effort)


def fourier_basis(t: Array, period: float, harmonics: int) -> tuple[Array, Array, Array]:
    """(T, 2 harmonics) of q, v and a for unit amplitudes of the rates."""
    w = 2.0 * np.pi / period * np.arange(1, harmonics + 1)
    angle = np.outer(t, w)
    s, c = np.sin(angle), np.cos(angle)
    return np.hstack([s / w, (1.0 - c) / w]), np.hstack([c, s]), np.hstack([-s * w, c * w])


def motion_columns(unknowns: Unknowns, q: Array, v: Array, a: Array, soft: bool = True) -> Array:
    drives = list(unknowns.drives)
    rates = v[:, drives]
    sign = np.tanh(rates / _SOFT) if soft else np.sign(rates)
    machine = unknowns.drive_columns(rates, a[:, drives], sign, sign)
    return np.concatenate([unknowns.rigid_columns(q, v, a), machine], axis=-1)


class Planner:
    """The search over amplitudes. A motion is x (n, 1 + 2 h - 2): centre, and amplitudes that leave
    it at rest, without acceleration, at the beginning.
    """

    def __init__(
        self, base: BaseParameters, bounds: Bounds, period: float, noise: ArrayLike | None,
        allowed: Callable[[Array], ArrayLike] | None,
    ) -> None:  # fmt: skip
        self.base, self.bounds, self.period, self.allowed = base, bounds, period, allowed
        self.unknowns, self.robot = base.unknowns, base.unknowns.robot
        self.t = np.linspace(0.0, period, STATES, endpoint=False)
        self.B = fourier_basis(self.t, period, HARMONICS)
        start = np.vstack([b[0] for b in self.B[1:]])
        self.null = np.linalg.svd(start)[2][2:].T  # (2 h, 2 h - 2): v and a are zero at t = 0
        self.middle = 0.5 * (bounds.lower + bounds.upper)
        self.half = 0.5 * (bounds.upper - bounds.lower)
        self.columns = list(base.columns)
        pi = np.array(self.unknowns.nominal)
        self.nominal = pi
        self.noise = np.ones(self.robot.nv)
        self.centre = self.middle
        self._noise_given = noise
        self.scale = np.ones(len(base))

    def amplitudes(self, x: Array) -> tuple[Array, Array]:
        """sin and cos (n, harmonics); the centre is kept as q at the beginning."""
        n = self.robot.nv
        X = x.reshape(n, -1)
        self.centre = X[:, 0]
        both = X[:, 1:] @ self.null.T
        return both[:, :HARMONICS], both[:, HARMONICS:]

    def motion(self, x: Array) -> tuple[Array, Array, Array]:
        sin, cos = self.amplitudes(x)
        both = np.hstack([sin, cos]).T
        q, v, a = (b @ both for b in self.B)
        return self.centre + q, v, a

    def random(self, rng: np.random.Generator) -> Array:
        """A random motion, scaled into the limits."""
        n = self.robot.nv
        both = rng.normal(size=(n, 2 * HARMONICS))
        inner = both @ self.null
        amplitude = inner @ self.null.T
        q, v, _ = (b @ amplitude.T for b in self.B)
        span = 0.5 * np.ptp(q, axis=0)
        scale = _MARGIN * np.minimum(
            self.half / np.maximum(span, 1e-12),
            self.bounds.velocity / np.maximum(np.abs(v).max(axis=0), 1e-12),
        )
        inner = inner * scale[:, None]
        middle = 0.5 * (q.max(axis=0) + q.min(axis=0)) * scale
        return np.column_stack([self.middle - middle, inner]).ravel()

    def best_random(self, trials: int, seed: int, count: int = 1) -> list[Array]:
        """The best of some random motions within the limits; sets noise and scales by the first."""
        rng = np.random.default_rng(seed)
        ranked: list[tuple[float, int, Array]] = []
        for _ in range(trials):
            x = self.random(rng)
            for _ in range(12):  # slower until the torques are within the limits
                if self._excess(x) <= 0.0:
                    break
                X = x.reshape(self.robot.nv, -1)
                X[:, 1:] *= 0.8
                X[:, 0] = self.middle + 0.8 * (X[:, 0] - self.middle)
            else:
                continue
            if not ranked:
                self._set_scales(x)
            ranked.append((self.value(x, 0.0)[0], len(ranked), x))
        if not ranked:
            raise StateError("no motion stays within the limits of q, v and tau; raise them")
        return [x for _, _, x in sorted(ranked)[:count]]

    def _excess(self, x: Array) -> float:
        q, v, a = self.motion(x)
        tau = motion_columns(self.unknowns, q, v, a) @ self.nominal
        over = [
            self.bounds.lower - q,
            q - self.bounds.upper,
            np.abs(v) - self.bounds.velocity,
            np.abs(tau) - self.bounds.effort,
        ]
        worst = max(float(o.max()) for o in over)
        if worst <= 1e-9 and self.allowed is not None:
            worst = max(worst, float(-np.min(np.asarray(self.allowed(q), dtype=np.float64))))
        return worst if worst > 1e-9 else 0.0

    def _set_scales(self, x: Array) -> None:
        """Set the noise of the torques, and the sizes of parameters by their columns."""
        q, v, a = self.motion(x)
        Y = motion_columns(self.unknowns, q, v, a)
        tau = Y @ self.nominal
        if self._noise_given is not None:
            self.noise = np.broadcast_to(real("noise", self._noise_given), (self.robot.nv,)).copy()
            if not (self.noise > 0.0).all():
                raise StateError("noise must be above 0 for every joint")
        else:
            size = np.sqrt(np.mean(tau**2, axis=0))
            self.noise = _NOISE * np.maximum(size, 1e-2 * size.max(initial=1e-9))
        weighted = (Y[..., self.columns] / self.noise[:, None]).reshape(-1, len(self.base))
        self.scale = 1.0 / np.maximum(np.linalg.norm(weighted, axis=0), 1e-300)

    def value(self, x: Array, weight: float) -> tuple[float, Array]:
        """The objective and its derivative."""
        q, v, a = self.motion(x)
        Y = motion_columns(self.unknowns, q, v, a)
        A = Y[..., self.columns] / self.noise[:, None] * self.scale
        rows = A.reshape(-1, len(self.base))
        M = rows.T @ rows + 1e-10 * np.eye(len(self.base))
        L = np.linalg.cholesky(M)
        value = -2.0 * float(np.sum(np.log(np.diag(L))))
        inverse = np.linalg.inv(L)
        inverse = inverse.T @ inverse
        W = np.zeros_like(Y)
        W[..., self.columns] = -2.0 * (A @ inverse) / self.noise[:, None] * self.scale
        by_q, by_v = np.zeros_like(q), np.zeros_like(v)
        if weight:
            value += self._penalty(q, v, Y, weight, W, by_q, by_v)
        g = self._slopes(q, v, a, W)
        slope_q, slope_v, slope_a = g[0] + by_q, g[1] + by_v, g[2]
        slopes = (slope_q, slope_v, slope_a)
        both = np.sum([b.T @ s for b, s in zip(self.B, slopes, strict=True)], axis=0)
        return value, np.column_stack([slope_q.sum(axis=0), both.T @ self.null]).ravel()

    def _penalty(
        self, q: Array, v: Array, Y: Array, weight: float, W: Array, by_q: Array, by_v: Array
    ) -> float:
        """Squares of what exceeds the limits, in units of these; adds the slopes."""
        bounds, value = self.bounds, 0.0
        for over, sign in ((q - self.middle, 1.0), (self.middle - q, -1.0)):
            e = np.maximum(over / (_MARGIN * self.half) - 1.0, 0.0)
            value += weight * float(np.sum(e * e))
            by_q += weight * 2.0 * e * sign / (_MARGIN * self.half)
        e = np.maximum(np.abs(v) / (_MARGIN * bounds.velocity) - 1.0, 0.0)
        value += weight * float(np.sum(e * e))
        by_v += weight * 2.0 * e * np.sign(v) / (_MARGIN * bounds.velocity)
        if np.isfinite(bounds.effort).any():
            tau = Y @ self.nominal
            e = np.maximum(np.abs(tau) / (_MARGIN * bounds.effort) - 1.0, 0.0)
            value += weight * float(np.sum(e * e))
            slope = weight * 2.0 * e * np.sign(tau) / (_MARGIN * bounds.effort)
            W += slope[..., None] * self.nominal
        if self.allowed is not None:
            value += self._forbidden(q, weight, by_q)
        return value

    def _forbidden(self, q: Array, weight: float, by_q: Array) -> float:
        """The penalty of postures that are not allowed, by differences."""
        assert self.allowed is not None
        e = np.maximum(-np.asarray(self.allowed(q), dtype=np.float64), 0.0)
        if not e.any():
            return 0.0
        h = 1e-6
        for i in range(q.shape[1]):
            other = np.array(q)
            other[:, i] += h
            moved = np.maximum(-np.asarray(self.allowed(other), dtype=np.float64), 0.0)
            by_q[:, i] += 100.0 * weight * 2.0 * e * (moved - e) / h
        return 100.0 * weight * float(np.sum(e * e))

    def _slopes(self, q: Array, v: Array, a: Array, W: Array) -> list[Array]:
        """The derivatives of sum(W * Y) by q, v, a."""
        rigid = np.ascontiguousarray(W[..., : self.unknowns.bodies])
        by = [
            np.array(x) for x in weighted_derivatives(self.robot, "regressor", (q, v, a), (rigid,))
        ]
        drives = list(self.unknowns.drives)
        count = len(drives)
        machine = W[:, drives, self.unknowns.bodies :].reshape(len(q), count, -1, count)
        diagonal = np.einsum("tjkj->tkj", machine)
        rates = v[:, drives]
        for k, kind in enumerate(self.unknowns.kinds):
            if kind == "armature":
                by[2][:, drives] += diagonal[:, k]
            elif kind == "damping":
                by[1][:, drives] += diagonal[:, k]
            elif kind in ("coulomb", "stribeck"):
                steep = (1.0 - np.tanh(rates / _SOFT) ** 2) / _SOFT
                by[1][:, drives] += diagonal[:, k] * steep
        return by

    def optimised(self, starts: list[Array], show: Callable[[float], None]) -> Array:
        """The best motion after rounds of L-BFGS with rising weights of the limits."""
        from scipy.optimize import minimize

        total, done = _ROUNDS * len(_WEIGHTS) * len(starts), 0

        def tick(_: Any) -> None:
            nonlocal done
            done += 1
            show(min(1.0, done / total))

        best = [(self.value(x, 0.0)[0], i, x) for i, x in enumerate(starts)]
        for i, start in enumerate(starts):
            x = np.array(start)
            for weight in _WEIGHTS:
                x = minimize(
                    lambda z, w=weight: self.value(z, w), x, jac=True, method="L-BFGS-B",
                    callback=tick, options={"maxiter": _ROUNDS},
                ).x  # fmt: skip
            x = self._inside(np.array(x))
            best.append((self.value(x, 0.0)[0], len(starts) + i, x))
        return min(best)[2]

    def _inside(self, x: Array) -> Array:
        """The motion made smaller until it is within the limits."""
        for _ in range(60):
            if self._excess(x) <= 0.0:
                return x
            X = x.reshape(self.robot.nv, -1)
            q, _, _ = self.motion(x)
            middle = 0.5 * (q.max(axis=0) + q.min(axis=0))
            X[:, 1:] *= 0.99
            X[:, 0] = middle + 0.99 * (X[:, 0] - middle)
            middle_over = np.clip(middle, self.bounds.lower, self.bounds.upper) - middle
            X[:, 0] += middle_over
        raise StateError("the planned motion cannot be brought within the limits; raise them")
