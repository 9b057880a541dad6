"""The augmented Lagrangian: multipliers and penalties of the constraints, one pair for each at each
knot.

A constraint c <= 0 with multiplier l and penalty r adds r/2 max(0, c + l/r)^2 to the cost. After
each solution l becomes max(0, l + r c); where c has not come much closer to the feasible set, r
grows. What is left is the size of max(c, -l/r): zero where c <= 0, l >= 0 and l c = 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ramify.core.arrays import Array

_GROWTH: Final = 10.0
_ENOUGH: Final = 0.25
"""The share of the last violation that is progress enough."""
_MOST: Final = 1e9


@dataclass
class Multipliers:
    """Multipliers and penalties (knots + 1, constraints); ``active`` says which there are."""

    active: Array
    multiplier: Array = field(init=False)
    penalty: Array = field(init=False)
    left: Array = field(init=False)

    def __post_init__(self) -> None:
        self.multiplier = np.zeros(self.active.shape)
        self.penalty = np.zeros(self.active.shape)
        self.left = np.full(self.active.shape, np.inf)

    def begin(self, cost: float, values: Array) -> None:
        """Penalties that make the violation as dear as the cost of the trajectory without
        constraints.
        """
        violated = np.maximum(values, 0.0) * self.active
        square = float((violated**2).sum())
        first = np.clip(2.0 * (1e-3 + abs(cost)) / square, 1.0, 1e6) if square > 0.0 else 1.0
        self.penalty = np.maximum(self.penalty, first * self.active)

    def write(self, rows: Array) -> None:
        """The scales and shifts of the residuals, into rows (knots + 1, 2 constraints)."""
        count = self.active.shape[1]
        scale = np.sqrt(self.penalty)
        rows[:, :count] = scale
        rows[:, count:] = np.divide(
            self.multiplier, scale, out=np.zeros_like(scale), where=scale > 0.0
        )

    def residual(self, values: Array) -> Array:
        """The size of max(c, -l / r) of all constraints."""
        pushed = np.divide(
            self.multiplier, self.penalty, out=np.zeros_like(values), where=self.penalty > 0.0
        )
        return np.abs(np.maximum(values, -pushed)) * (self.active > 0.0)

    def shift(self) -> None:
        """Those of each knot become those of the knot before; the last two knots share theirs."""
        for rows in (self.multiplier, self.penalty):
            rows[:-1] = rows[1:]
            rows *= self.active
        first = np.max(self.penalty, axis=0)
        self.penalty = np.where(self.penalty > 0.0, self.penalty, first) * self.active

    def follow(self, values: Array) -> None:
        """New multipliers for constraints of these values."""
        self.multiplier = np.maximum(0.0, self.multiplier + self.penalty * values) * self.active

    def update(self, values: Array) -> None:
        """New multipliers for constraints of these values; larger penalties where that is
        needed.
        """
        left = self.residual(values)
        self.follow(values)
        slow = left > np.maximum(_ENOUGH * self.left, 1e-9)
        self.penalty = np.where(
            slow & (self.active > 0.0), np.minimum(self.penalty * _GROWTH, _MOST), self.penalty
        )
        self.left = left
