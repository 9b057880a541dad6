"""Rates that closing the loops after a step has changed by more than the error of a step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ramify.core.arrays import Array
from ramify.dynamics.closure import closures, reach
from ramify.loops.constraints import column_sizes
from ramify.model.robot import Robot

LEAST = 1e-3
"""Share of the fastest joint of the loops that a projection may change rates by."""
_SLOW = 1e-6  # rad/s, or robot's sizes per s, below which such a change is rounding


class ThrownRates:
    """Compares rates before and after the loops are closed: ``count`` steps have changed some by
    more than a share ``least`` of the fastest joint of the loops.
    """

    def __init__(self, model: Robot, least: float) -> None:
        self.model, self.least, self.count = model, least, 0
        self._worst = 0.0, 0, 0.0  # share, velocity, change
        self._columns, self._slow = column_sizes(model), _SLOW * reach(model)
        self._in_loops = sorted({k for closure in closures(model) for k, _ in closure.moves})

    def speeds(self, v: Array) -> Array:
        """(N,): the fastest joint of the loops, in m/s, of rates v (N, nv)."""
        speeds: Array = (np.abs(v) * self._columns)[:, self._in_loops].max(axis=1, initial=0.0)
        return speeds

    def changes(self, v: Array, closed: Array) -> Array:
        """(N, nv): by how much rates differ, in m/s; 0 where they are not known."""
        return np.nan_to_num(np.abs(closed - v) * self._columns)

    def compare(self, v: Array, closed: Array, fastest: Array) -> NDArray[np.bool_]:
        """Which of some steps changed rates v (N, nv) to others by too much, measured by the
        ``fastest`` joints (N,); steps of states that are not known did not.
        """
        change = self.changes(v, closed)
        largest = change.max(axis=1, initial=0.0)
        shares = np.divide(largest, fastest, out=np.zeros_like(largest), where=fastest > 0.0)
        thrown: NDArray[np.bool_] = (shares > self.least) & (largest > self._slow)
        self.count += int(thrown.sum())
        if thrown.any():
            i = int(np.argmax(np.where(thrown, shares, 0.0)))
            k = int(np.argmax(change[i]))
            self._worst = max(self._worst, (float(shares[i]), k, float(abs(closed - v)[i, k])))
        return thrown

    def text(self, times: str) -> str:
        """What a warning says, with how often it happened."""
        share, k, change = self._worst
        unit = [step.unit for joint in self.model.joints for step in joint.steps][k]
        return (
            f"closing the loops of {self.model.name!r} changed rates by more than the error of "
            f"a step, {times}: that of {self.model.velocities[k]!r} by up to {change:.3g} "
            f"{unit}/s, {100.0 * share:.2g} % of the fastest joint of the loops"
        )
