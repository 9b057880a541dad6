"""All rows of all logs as one least-squares problem: its band, its delay, its friction speeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.core.errors import StateError
from ramify.identify.base_parameters import BaseParameters
from ramify.identify.least_squares import (
    Knowledge,
    WeightedSolution,
    lag_one,
    solve_least_squares,
    triangular,
)
from ramify.identify.log_checks import Segments
from ramify.identify.measured_log import Log
from ramify.identify.sampled_rows import Group, SampledRows

CUTOFFS: Final = (10.0, 7.0, 5.0, 3.0, 2.0)
"""Hz: bands that are tried, the widest first."""
QUANTISED: Final = -0.2
"""Autocorrelation of residuals below which the encoder's steps dominate the noise."""
_ANY: Final = -0.12  # the same of a single row, beyond what chance gives
_PRODUCTS: Final = 5.5
"""Times the frequency of a motion: its torques have products of rates, and a filter passes up to
half of its band."""
_NEARLY_ALL: Final = 0.98
_SHARE: Final = 0.2  # of the sampling rate: the widest band


@dataclass(frozen=True, eq=False)
class Regression:
    """The rows of all parts of all logs under one band, ``delay`` (s) of the forces against the
    coordinates and Stribeck ``speeds`` of the drives.
    """

    base: BaseParameters
    parts: tuple[SampledRows, ...]
    logs: tuple[int, ...]
    delay: float = 0.0
    speeds: Array | None = None
    knowledge: Knowledge | None = None

    @property
    def cutoff(self) -> float:
        return self.parts[0].filter.cutoff

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Rows that share their noise, in the order of their numbers."""
        pairs = [
            (log, name)
            for part, log in zip(self.parts, self.logs, strict=True)
            for name in part.names
        ]
        return tuple(Group(log, name) for log, name in dict.fromkeys(pairs))

    @cached_property
    def all_columns(self) -> tuple[Array, ...]:
        """(T, rows, unknowns) of each part."""
        return tuple(part.columns(self.speeds) for part in self.parts)

    @cached_property
    def keep(self) -> NDArray[np.bool_]:
        return np.concatenate([part.keep.ravel() for part in self.parts])

    @cached_property
    def group(self) -> NDArray[np.intp]:
        """The group of every row, kept or not."""
        number = {group: i for i, group in enumerate(self.groups)}
        numbers = []
        for part, log in zip(self.parts, self.logs, strict=True):
            row = [number[Group(log, name)] for name in part.names]
            numbers.append(np.tile(row, len(part.t)))
        return np.concatenate(numbers)

    @cached_property
    def X(self) -> Array:
        """(rows, base parameters), of all rows."""
        columns = list(self.base.columns)
        return np.concatenate([x[..., columns].reshape(-1, len(columns)) for x in self.all_columns])

    def rows_of(self, extra: Sequence[Array]) -> Array:
        """Arrays (T, rows, n) of each part as one (rows, n)."""
        return np.concatenate([x.reshape(-1, x.shape[-1]) for x in extra])

    @cached_property
    def y(self) -> Array:
        return self.targets(self.delay)

    def targets(self, delay: float) -> Array:
        return np.concatenate([part.targets(delay).ravel() for part in self.parts])

    @cached_property
    def solution(self) -> WeightedSolution:
        """The fit of the rows that are kept."""
        keep = self.keep
        if keep.sum() < 2 * self.X.shape[1]:
            raise StateError(
                f"poor-motion: {int(keep.sum())} rows remain for {self.X.shape[1]} parameters; the "
                "drives move too slowly or too briefly, or their torques are clipped"
            )
        return solve_least_squares(
            self.X[keep],
            self.y[keep],
            self.group[keep],
            knowledge=self.knowledge,
            groups=len(self.groups),
        )

    def residuals(self, beta: Array) -> Array:
        """Of all rows, kept or not."""
        return self.y - self.X @ beta

    def per_part(self, values: Array) -> list[Array]:
        """Values of all rows as (T, rows) of each part."""
        out, start = [], 0
        for part in self.parts:
            count = len(part.t) * len(part.names)
            out.append(values[start : start + count].reshape(len(part.t), -1))
            start += count
        return out

    @cached_property
    def whiteness(self) -> dict[str, tuple[float, int]]:
        """By row, the autocorrelation of its residuals from one time to the next (of several parts
        the mean), and the number of pairs that it is computed from.
        """
        residuals = self.per_part(self.residuals(self.solution.beta))
        total: dict[str, list[tuple[float, int]]] = {}
        for part, r in zip(self.parts, residuals, strict=True):
            pairs = (part.keep[1:] & part.keep[:-1]).sum(axis=0).tolist()
            for name, x, n in zip(part.names, lag_one(r, part.keep).tolist(), pairs, strict=True):
                total.setdefault(name, []).append((x, n))
        out = {}
        for name, values in total.items():
            count = sum(n for _, n in values)
            mean = sum(x * n for x, n in values) / max(count, 1)
            out[name] = mean, count
        return out

    @property
    def autocorrelation(self) -> dict[str, float]:
        return {name: x for name, (x, _) in self.whiteness.items()}

    def with_delay(self, delay: float) -> Regression:
        return replace(self, delay=delay)

    def weighted(self) -> tuple[Array, Array, Array]:
        """Weighted columns and targets of the rows kept, and their weights."""
        keep = self.keep
        weights = 1.0 / self.solution.noise[self.group[keep]]
        return self.X[keep] * weights[:, None], self.y[keep] * weights, weights


def regression(
    base: BaseParameters, logs: Sequence[Segments], cutoff: float, delay: float = 0.0
) -> Regression:
    """The rows of all logs under a band."""
    parts, numbers = [], []
    for number, log in enumerate(logs):
        for part, clipped in zip(log.parts, log.clipped, strict=True):
            parts.append(SampledRows(base.unknowns, part, clipped, cutoff))
            numbers.append(number)
    speeds = None
    if "stribeck" in base.unknowns.kinds:
        rates = np.concatenate([part.driven_rates for part in parts])
        speeds = np.maximum(0.1 * np.sqrt(np.mean(rates**2, axis=0)), 1e-6)
    return Regression(base, tuple(parts), tuple(numbers), delay, speeds)


def _frequency(base: BaseParameters, part: Log) -> float:
    """The frequency, Hz, below which the drives' rates have nearly all of their power."""
    to_q = dict(
        zip(base.unknowns.robot.layout.plain_v, base.unknowns.robot.layout.plain_q, strict=True)
    )
    q = part.q[:, [to_q[j] for j in base.unknowns.drives]]
    window = np.hanning(len(q))[:, None]
    f = np.fft.rfftfreq(len(q), part.dt)
    power = np.abs(np.fft.rfft((q - q.mean(axis=0)) * window, axis=0)) ** 2 * f[:, None] ** 2
    power[f > CUTOFFS[0]] = 0.0
    total = np.cumsum(power, axis=0)
    moving = total[-1] > 1e-2 * total[-1].max(initial=0.0)
    if not moving.any():
        return 0.0
    return max(
        float(f[np.argmax(total[:, k] > _NEARLY_ALL * total[-1, k])])
        for k in np.flatnonzero(moving)
    )


class Band(NamedTuple):
    """The rows in the band that was chosen; whether encoders made it ``narrow``, and whether even
    the narrowest is ``spoilt`` by them.
    """

    problem: Regression
    narrow: bool = False
    spoilt: bool = False


def widest_band(
    base: BaseParameters, logs: Sequence[Segments], knowledge: Knowledge | None = None
) -> Band:
    """The widest band in which the steps of encoders do not spoil the accelerations."""
    fastest = _SHARE / max(part.dt for log in logs for part in log.parts)
    longest = max(part.t[-1] - part.t[0] for log in logs for part in log.parts)
    slowest = _PRODUCTS * max(_frequency(base, part) for log in logs for part in log.parts)
    possible = [f for f in CUTOFFS if f <= fastest and 20.0 / f <= longest] or [CUTOFFS[-1]]
    bands = [f for f in possible if f >= slowest] or possible[:1]
    chosen = None
    for cutoff in bands:
        chosen = replace(regression(base, logs, cutoff), knowledge=knowledge)
        taken = len(base) / max(int(chosen.keep.sum()), 1)  # a fit alone makes residuals alternate
        values = [(x + taken, n) for x, n in chosen.whiteness.values()]
        some = sum(x < QUANTISED for x, _ in values)
        clear = any(x < _ANY - 1.5 / np.sqrt(max(n, 1)) for x, n in values)
        if some < len(values) / 2 and not clear:
            return Band(chosen, narrow=cutoff != bands[0])
    assert chosen is not None
    return Band(chosen, True, True)


@dataclass(frozen=True)
class Delay:
    """The time by which forces are recorded later than coordinates, s, and its standard error."""

    value: float
    error: float


def best_delay(problem: Regression) -> Delay:
    """The delay at which the weighted residuals are least."""
    A, _, weights = problem.weighted()
    keep = problem.keep
    Q = np.linalg.qr(A)[0]

    def chi2(delay: float) -> float:
        y = problem.targets(delay)[keep] * weights
        return float(y @ y - np.sum((Q.T @ y) ** 2))

    reach = min((part.pad - 1) * part.part.dt for part in problem.parts)
    grid = np.linspace(-reach, reach, 13)
    values = [chi2(d) for d in grid]
    best = int(np.argmin(values))
    centre, step = float(grid[best]), float(grid[1] - grid[0])
    curvature = 0.0
    for _ in range(4):
        around = [chi2(centre + k * step) for k in (-1, 0, 1)]
        curvature = (around[0] - 2.0 * around[1] + around[2]) / step**2
        if curvature <= 0.0:
            break
        move = -0.5 * (around[2] - around[0]) / step / curvature
        centre = float(np.clip(centre + np.clip(move, -step, step), -reach, reach))
        step *= 0.4
    error = float(np.sqrt(2.0 / curvature)) if curvature > 0.0 else np.inf
    return Delay(centre, error)


def stribeck_speeds(problem: Regression, rounds: int = 12) -> Regression:
    """The problem with the Stribeck speeds at which its residuals are least, by variable
    projection: Gauss-Newton steps over the logarithms of the speeds.
    """
    assert problem.speeds is not None
    drives = list(problem.base.unknowns.drives)
    speeds = np.array(problem.speeds)
    columns = problem.base.unknowns.columns_of("stribeck")
    places = [problem.base.columns.index(c) for c in columns]
    h = 1e-3
    best = problem
    for k in range(len(drives)):  # a coarse search, one drive after the other
        tried = []
        for factor in (0.3, 0.55, 1.0, 1.8, 3.2):
            other = np.array(speeds)
            other[k] *= factor
            new = replace(best, speeds=other)
            tried.append((new.solution.chi2 + _log_noise(new), factor))
        speeds[k] *= min(tried)[1]
        best = replace(best, speeds=np.array(speeds))
    for _ in range(rounds):
        A, y, weights = best.weighted()
        beta = best.solution.beta
        up = replace(best, speeds=speeds * np.exp(h))
        slope = (up.X - best.X)[best.keep][:, places] / h * beta[places] * weights[:, None]
        step = np.linalg.lstsq(np.hstack([A, slope]), y, rcond=1e-12)[0][-len(drives) :]
        step = np.clip(step, -0.7, 0.7)
        speeds = np.clip(speeds * np.exp(step), 1e-5, 1e3)
        best = replace(best, speeds=np.array(speeds))
        if np.abs(step).max() < 1e-4:
            break
    return best


def _log_noise(problem: Regression) -> float:
    """What the noise of the groups adds to minus twice the logarithm of the likelihood."""
    count = np.bincount(problem.group[problem.keep], minlength=len(problem.groups))
    return float(2.0 * np.sum(count * np.log(problem.solution.noise)))


def stacked_root(problem: Regression) -> tuple[Array, Array]:
    """R and z of the weighted rows."""
    A, y, _ = problem.weighted()
    return triangular(A, y)
