"""How well parameters predict the torques of a log."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ramify.core.arrays import Array
from ramify.identify.regression import Regression


class JointError(NamedTuple):
    """How well a fit predicts the torques of a joint in a log: root mean squares of what is left
    away from reversals and near these, of the torque, and the first over the noise of the fit.
    """

    joint: str
    rmse: float
    near_reversals: float
    torque: float
    ratio: float


class Validation(tuple[JointError, ...]):
    """The errors of all joints, which print as a table."""

    def __str__(self) -> str:
        head = f"{'joint':24} {'RMSE':>10} {'reversals':>10} {'torque':>10} {'RMSE/noise':>11}"
        rows = [
            f"{x.joint[:24]:24} {x.rmse:10.4g} {x.near_reversals:10.4g} {x.torque:10.4g} "
            f"{x.ratio:11.3g}"
            for x in self
        ]
        return "\n".join([head, *rows])

    @property
    def passed(self) -> bool:
        """Whether no joint's error exceeds 1.5 times the noise of the fit."""
        return all(x.ratio < 1.5 for x in self)


def validation(problem: Regression, beta: Array, noise: dict[str, float]) -> Validation:
    """The errors of a prediction by joint."""
    residuals, targets = problem.residuals(beta), problem.y
    rows = []
    for name in dict.fromkeys(group.name for group in problem.groups):
        numbers = [i for i, group in enumerate(problem.groups) if group.name == name]
        here = np.isin(problem.group, numbers)
        away, near = here & problem.keep, here & ~problem.keep

        def rms(x: Array) -> float:
            return float(np.sqrt(np.mean(x**2))) if x.size else float("nan")

        error = rms(residuals[away])
        usual = noise.get(name, float("nan"))
        rows.append(
            JointError(name, error, rms(residuals[near]), rms(targets[here]), error / usual)
        )
    return Validation(rows)
