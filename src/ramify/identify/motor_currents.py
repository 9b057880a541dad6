"""Motors: parameters from logs of currents, with torque constants as unknowns.

    i_j = kappa_j (Y_j beta),   kappa_j = 1 / k_j

is bilinear. All k could be multiplied by one number, and beta with them: that scale cannot be seen
in currents. It is set by one known torque constant, or by the nominal robot, which is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import StateError
from ramify.core.messages import near
from ramify.identify.base_parameters import BaseParameters
from ramify.identify.measured_log import Log
from ramify.lint.finding import Finding
from ramify.model.robot import Robot

_ROUNDS: Final = 30


@dataclass(frozen=True)
class TorqueConstants:
    """By drive: N m/A, the standard error (0 of those that were given), and what set the scale."""

    values: Mapping[str, float]
    errors: Mapping[str, float]
    scale: str


def checked_constants(
    robot: Robot, drives: Sequence[int], given_by: Mapping[str, float]
) -> dict[int, float]:
    """Known torque constants by coordinate of v."""
    names = [robot.velocities[j] for j in drives]
    out = {}
    for name, value in given_by.items():
        if name not in names:
            raise StateError(
                f"torque_constants names {name!r}, which is not a drive{near(name, names)}"
            )
        if not np.isfinite(value) or value == 0.0:
            raise StateError(
                f"torque_constants of {name!r} is {value}; it must be finite and not 0"
            )
        out[robot.velocities.index(name)] = float(value)
    return out


def as_torques(logs: Sequence[Log], constants: Mapping[int, float]) -> list[Log]:
    """The logs with torques from their currents."""
    out = []
    for log in logs:
        if log.current is None:
            out.append(log)
            continue
        tau = np.array(log.tau)
        for j, k in constants.items():
            tau[:, j] = k * log.current[:, j]
        out.append(replace(log, tau=tau))
    return out


def identified_constants(
    base: BaseParameters, X: Array, current: Array, row: Array, fixed_constants: Mapping[int, float],
    nominal: Array,
) -> tuple[dict[int, float], dict[int, float], str]:  # fmt: skip
    """Torque constants and their standard errors by drive from rows X beta = k i, ``row`` the drive
    of each.
    """
    drives = list(base.unknowns.drives)
    rigid = [i for i, c in enumerate(base.columns) if c < base.unknowns.bodies]
    scale = np.linalg.norm(X, axis=0)
    scale[scale == 0.0] = 1.0
    A = X / scale
    predicted = X[:, rigid] @ nominal[rigid]
    kappa = {}
    for j in drives:
        here = row == j
        p, i = predicted[here], current[here]
        if j in fixed_constants:
            kappa[j] = 1.0 / fixed_constants[j]
        else:  # as for the nominal robot, to begin with
            kappa[j] = float(p @ i / max(float(p @ p), 1e-300)) or 1e-6
    fixed = [j for j in drives if j in fixed_constants]
    said = "the torque constants that were given"
    if not fixed:
        sizes = {j: float(np.linalg.norm(predicted[row == j])) for j in drives}
        fixed = [max(sizes, key=lambda j: sizes[j])]
        said = f"the nominal robot's torques at {base.unknowns.robot.velocities[fixed[0]]}"
    free = [j for j in drives if j not in fixed]
    noise = dict.fromkeys(drives, 1.0)
    covariance = np.zeros((len(free), len(free)))
    for _ in range(_ROUNDS):
        k = np.array([kappa[j] for j in row])
        w = 1.0 / np.array([noise[j] for j in row])
        beta = np.linalg.lstsq(A * (k * w)[:, None], current * w, rcond=1e-11)[0]
        torque = A @ beta
        slopes = np.zeros((len(row), len(free)))
        for n, j in enumerate(free):
            slopes[:, n] = np.where(row == j, torque * kappa[j], 0.0)
        whole = np.hstack([A * k[:, None], slopes]) * w[:, None]
        residuals = (current - k * torque) * w
        step = np.linalg.lstsq(whole, residuals, rcond=1e-11)[0][A.shape[1] :]
        for n, j in enumerate(free):
            kappa[j] *= float(np.exp(np.clip(step[n], -0.5, 0.5)))
        left = current - k * torque
        noise = {j: max(float(np.sqrt(np.mean(left[row == j] ** 2))), 1e-12) for j in drives}
        if not free or np.abs(step).max() < 1e-7:
            break
    if free:
        inverse = np.linalg.pinv(whole, rcond=1e-11)[A.shape[1] :]
        covariance = inverse @ inverse.T
    errors = {j: float(np.sqrt(covariance[n, n])) / abs(kappa[j]) for n, j in enumerate(free)}
    return {j: 1.0 / x for j, x in kappa.items()}, errors, said


def scale_verdict(robot: Robot, scale: str, constants: Mapping[str, float]) -> Finding:
    """What currents cannot show."""
    listed = ", ".join(f"{name} {x:.4g}" for name, x in constants.items())
    text = (
        f"currents show torque constants and masses only up to one common factor, which is set by "
        f"{scale}; N m/A: {listed}"
    )
    return Finding("note" if "given" in scale else "warning", robot.name, "scale", text)
