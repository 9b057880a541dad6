"""What is wrong with a log before anything is fitted: gaps, uneven times, clipped torques, a rate
that is not that of the coordinates, coarse encoders.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import StateError
from ramify.identify.measured_log import LEAST_ROWS, Log
from ramify.lint.finding import Finding
from ramify.model.robot import Robot

_GAP: Final = 1.5  # times the usual step
_UNEVEN: Final = 0.2  # of a step: times that differ by less are taken as even
_CLIPPED: Final = 5  # equal samples in a row at the largest value
_LATTICE: Final = 0.9  # share of samples on a lattice from which a step counts as an encoder's


@dataclass(frozen=True, eq=False)
class Segments:
    """Parts of a log with even times, and which torques (T, nv) of each are clipped."""

    parts: tuple[Log, ...]
    clipped: tuple[Array, ...]
    notes: tuple[Finding, ...]


def segments(robot: Robot, log: Log) -> Segments:
    """The even parts of a log and what was noticed."""
    notes = list(log.notes)
    known = np.isfinite(log.q).any(axis=0)
    measured = np.isfinite(log.tau).any(axis=0)
    fine = np.isfinite(log.q[:, known]).all(axis=1) & np.isfinite(log.tau[:, measured]).all(axis=1)
    if log.current is not None:
        driven = np.isfinite(log.current).any(axis=0)
        fine &= np.isfinite(log.current[:, driven]).all(axis=1)
    dt = log.dt
    breaks = (np.diff(log.t) > _GAP * dt) | ~fine[1:] | ~fine[:-1]
    edges = [0, *(np.flatnonzero(breaks) + 1).tolist(), len(log)]
    ranges = [
        (a, b) for a, b in zip(edges, edges[1:], strict=False) if b - a >= LEAST_ROWS and fine[a]
    ]
    if not ranges:
        raise StateError(
            f"{log.name}: gaps: no part of {LEAST_ROWS} samples is free of gaps and of numbers that "
            "are not finite"
        )
    if len(edges) > 2:
        lost = len(log) - sum(b - a for a, b in ranges)
        text = f"the log has gaps: {len(ranges)} parts are used, {lost} samples left out"
        notes.append(Finding("warning", log.name, "gaps", text))
    parts = [_even(log.rows(a, b), notes) for a, b in ranges]
    clipped = [_clipped(robot, part) for part in parts]
    for j in np.flatnonzero(np.concatenate(clipped).any(axis=0)).tolist():
        share = float(np.mean(np.concatenate([c[:, j] for c in clipped])))
        text = (
            f"the torque stays at its largest value for {100 * share:.2g} % of the time: it is "
            "clipped; these rows of the joint are left out"
        )
        notes.append(Finding("warning", robot.velocities[j], "clipping", text))
    notes += _rates(robot, log)
    return Segments(tuple(parts), tuple(clipped), tuple(notes))


def _even(part: Log, notes: list[Finding]) -> Log:
    """The part on even times; by interpolation where its times are uneven."""
    steps = np.diff(part.t)
    dt = float(steps.mean())
    even = part.t[0] + dt * np.arange(len(part))
    off = float(np.abs(part.t - even).max())
    if off <= _UNEVEN * dt:
        return replace(part, t=even)
    from scipy.interpolate import CubicSpline

    dt = float(np.median(steps))
    even = np.arange(part.t[0], part.t[-1], dt)

    def resampled(x: Array | None) -> Array | None:
        if x is None:
            return None
        out = np.full((len(even), x.shape[1]), np.nan)
        known = np.isfinite(x).all(axis=0)
        if known.any():
            out[:, known] = CubicSpline(part.t, x[:, known])(even)
        return out

    text = f"times are uneven by up to {1e3 * off:.3g} ms; they were interpolated to every {1e3 * dt:.4g} ms"
    notes.append(Finding("warning", part.name, "uneven-times", text))
    wrenches = {body: resampled(w) for body, w in part.wrenches.items()}
    return replace(
        part, t=even, q=resampled(part.q), tau=resampled(part.tau), v=resampled(part.v),
        a=resampled(part.a), current=resampled(part.current), wrenches=wrenches,
    )  # fmt: skip


def _clipped(robot: Robot, part: Log) -> Array:
    """Which torques (T, nv) stand at their largest value for several samples."""
    source = part.tau if np.isfinite(part.tau).any() or part.current is None else part.current
    out = np.zeros(source.shape, dtype=bool)
    for j in range(source.shape[1]):
        x = source[:, j]
        if not np.isfinite(x).all() or not x.any():
            continue
        for top in (x.max(), -x.min()):
            signed = x if top == x.max() else -x
            if top <= 0.0:
                continue
            at_top = signed >= top * (1.0 - 1e-9)
            edges = np.flatnonzero(np.diff(np.concatenate([[0], at_top.astype(int), [0]])))
            for start, stop in zip(edges[::2], edges[1::2], strict=True):
                if stop - start >= _CLIPPED and signed.std() > 0.0:
                    out[start:stop, j] = True
    return out


def _rates(robot: Robot, log: Log) -> Iterator[Finding]:
    """Rates that are not the derivatives of the coordinates."""
    if log.v is None:
        return
    for i, j in zip(robot.layout.plain_q, robot.layout.plain_v, strict=True):
        q, v = log.q[:, i], log.v[:, j]
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            continue
        slope = np.gradient(q, log.t)
        size = float(slope @ slope)
        if not size or not v.any():
            continue
        scale = float(slope @ v) / size
        if not 0.7 < scale < 1.4:
            hint = " (degrees)" if 40.0 < scale < 80.0 else ""
            text = f"the rate in the log is {scale:.3g} times the derivative of q{hint}; it is not used"
            yield Finding("warning", robot.velocities[j], "rate", text)


def encoder_step(q: Array) -> float:
    """The step of an encoder from its samples (T,): the lattice on which they lie; 0 where there is
    none.
    """
    changes = np.abs(np.diff(q))
    changes = changes[changes > 1e-12]
    if len(changes) < 20:
        return 0.0
    step = float(np.min(changes))
    if step < 1e-9:
        return 0.0
    ratio = changes / step
    off = np.abs(ratio - np.round(ratio))
    return step if float(np.mean(off < 0.05 + 1e-6 * ratio)) > _LATTICE else 0.0
