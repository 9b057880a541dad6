"""What is wrong with a log before anything is fitted: gaps, uneven times, clipped torques, a rate
that is not that of the coordinates, coarse encoders.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ramify.core.arrays import Array
from ramify.core.errors import StateError
from ramify.identify.measured_log import LEAST_ROWS, Log
from ramify.kernels.queries import jacobian
from ramify.lint.finding import Finding
from ramify.model.robot import Robot

Mask = NDArray[np.bool_]
_GAP: Final = 2.5  # times the usual step
_UNEVEN: Final = 0.2  # of a step: times that differ by less are taken as even
_CLIPPED: Final = 5  # equal samples in a row at the largest value
_LATTICE: Final = 0.9  # share of samples on a lattice from which a step counts as an encoder's


@dataclass(frozen=True, eq=False)
class Segments:
    """Parts of a log with even times, and which torques (T, nv) of each are clipped."""

    parts: tuple[Log, ...]
    clipped: tuple[Mask, ...]
    notes: tuple[Finding, ...]


def segments(robot: Robot, log: Log) -> Segments:
    """The even parts of a log and what was noticed."""
    notes = list(log.notes)
    known = np.isfinite(log.q).any(axis=0)
    measured = np.isfinite(log.tau).any(axis=0)
    together = np.hstack([log.q[:, known], log.tau[:, measured]])
    fine: Mask = np.asarray(np.isfinite(together).all(axis=1))
    if log.current is not None:
        driven = np.isfinite(log.current).any(axis=0)
        fine &= np.isfinite(log.current[:, driven]).all(axis=1)
    dt = log.dt
    breaks = (np.diff(log.t) > _GAP * dt) | ~fine[1:] | ~fine[:-1]
    edges = [0, *(np.flatnonzero(breaks) + 1).tolist(), len(log)]
    ranges = [(a, b) for a, b in pairwise(edges) if b - a >= LEAST_ROWS and fine[a]]
    if not ranges:
        raise StateError(
            f"{log.name}: gaps: no part of {LEAST_ROWS} samples is without gaps and numbers that "
            "are not finite"
        )
    if len(edges) > 2:
        lost = len(log) - sum(b - a for a, b in ranges)
        text = f"the log has gaps: {len(ranges)} parts are used, {lost} samples left out"
        notes.append(Finding("warning", log.name, "gaps", text))
    parts = [_with_forces(robot, _even(log.rows(a, b), notes)) for a, b in ranges]
    clipped = [_clipped(part) for part in parts]
    for j in np.flatnonzero(np.concatenate(clipped).any(axis=0)).tolist():
        share = float(np.mean(np.concatenate([c[:, j] for c in clipped])))
        text = (
            f"the torque stays at its largest value for {100 * share:.2g} % of the time: it is "
            "clipped; these rows of the joint are left out"
        )
        notes.append(Finding("warning", robot.velocities[j], "clipping", text))
    notes += _rates(robot, log)
    return Segments(tuple(parts), tuple(clipped), tuple(notes))


def _with_forces(robot: Robot, part: Log) -> Log:
    """The part with the generalized forces of its wrenches."""
    if not part.wrenches:
        return part
    forces = np.zeros((len(part), robot.nv))
    for body, wrench in part.wrenches.items():
        forces += np.einsum("tij,ti->tj", jacobian(robot, part.q, body), wrench)
    return replace(part, wrench_forces=forces)


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

    def resampled(x: Array) -> Array:
        out = np.full((len(even), x.shape[1]), np.nan)
        known = np.isfinite(x).all(axis=0)
        if known.any():
            out[:, known] = CubicSpline(part.t, x[:, known])(even)
        return out

    text = (
        f"times are uneven by up to {1e3 * off:.3g} ms; the log was interpolated to every "
        f"{1e3 * dt:.4g} ms"
    )
    notes.append(Finding("warning", part.name, "uneven-times", text))
    others: dict[str, Any] = {
        key: resampled(x) for key in ("v", "a", "current") if (x := getattr(part, key)) is not None
    }
    wrenches = {body: resampled(w) for body, w in part.wrenches.items()}
    q, tau = resampled(part.q), resampled(part.tau)
    return replace(part, t=even, q=q, tau=tau, wrenches=wrenches, **others)


def _clipped(part: Log) -> Mask:
    """Which torques (T, nv) stay at their largest value for several samples."""
    source = part.tau if np.isfinite(part.tau).any() or part.current is None else part.current
    out: Mask = np.zeros(source.shape, dtype=bool)
    for j, sign in product(range(source.shape[1]), (1.0, -1.0)):
        x = sign * source[:, j]
        if not np.isfinite(x).all() or x.max() <= 0.0 or x.std() == 0.0:
            continue
        at_top = x >= x.max() * (1.0 - 1e-9)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], at_top.astype(int), [0]])))
        for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            if stop - start >= _CLIPPED:
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
            text = f"the rate in the log is {scale:.3g} times the derivative of q{hint}"
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
