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
_ALIKE: Final = 0.3  # share of a current's variation that the nominal torque must explain
_SPREAD: Final = 1.5  # of the logarithm of a torque constant around its first guess


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
    base: BaseParameters, X: Array, current: Array, row: Array,
    fixed_constants: Mapping[int, float], nominal: Array,
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
    kappa = _first_guess(drives, predicted, current, row)
    kappa |= {j: 1.0 / k for j, k in fixed_constants.items()}
    start = dict(kappa)
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
        prior = np.hstack([np.zeros((len(free), A.shape[1])), np.eye(len(free)) / _SPREAD])
        away = np.array([np.log(start[j] / kappa[j]) for j in free]) / _SPREAD
        whole, residuals = np.vstack([whole, prior]), np.concatenate([residuals, away])
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


def _first_guess(
    drives: Sequence[int], predicted: Array, current: Array, row: Array
) -> dict[int, float]:
    """1 / k of each drive from the nominal robot's torques; where these do not resemble the
    current, the usual one of the others.
    """
    alike, out = [], {}
    for j in drives:
        p, i = predicted[row == j], current[row == j]
        p, i = p - p.mean(), i - i.mean()
        along, sizes = float(p @ i), float(p @ p) * float(i @ i)
        if along > 0.0 and along * along > _ALIKE * sizes:
            out[j] = along / float(p @ p)
            alike.append(out[j])
    if not alike:
        raise StateError(
            "currents do not resemble the torques of the nominal robot, so that torque constants "
            "cannot be found; check signs and order of the currents, or give torque_constants"
        )
    usual = float(np.exp(np.mean(np.log(alike))))
    return {j: out.get(j, usual) for j in drives}


def scale_verdict(robot: Robot, scale: str, constants: Mapping[str, float]) -> Finding:
    """What currents cannot show."""
    listed = ", ".join(f"{name} {x:.4g}" for name, x in constants.items())
    text = (
        f"currents show torque constants and masses only up to one common factor, which is set by "
        f"{scale}; N m/A: {listed}"
    )
    return Finding("note" if "given" in scale else "warning", robot.name, "scale", text)
