"""What the numbers of a study depend on, and which runs are Pareto-optimal."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ramify.core.arrays import Array

FEW: Final = 8
"""Runs below which no index is given."""
MOST_BINS: Final = 20


def rank_correlation(x: Array, y: Array) -> float:
    """Spearman's: 1 where y grows with x, -1 where it falls, 0 without a trend; NaN where one of
    them does not vary.
    """
    from scipy.stats import rankdata

    a, b = (rankdata(z) - 0.5 * (len(z) + 1) for z in (x, y))  # equal numbers share their rank
    spread = float(np.sqrt(a @ a) * np.sqrt(b @ b))
    return float(a @ b) / spread if spread > 0.0 else float("nan")


def first_order_index(x: Array, y: Array) -> float:
    """The share of the variance of y that x alone explains, Var(E[y | x]) / Var(y), from 0 to 1:
    Sobol's first-order index, estimated by groups of equal x, or of about equally many runs.

    The spread that groups of this size would show by chance is taken away. NaN where y does not
    vary.
    """
    variance = float(y.var())
    if variance <= 1e-24 * float(np.abs(y).max(initial=0.0)) ** 2:
        return float("nan")
    values, group = np.unique(x, return_inverse=True)
    if len(values) > MOST_BINS:
        bins = int(np.clip(np.sqrt(len(x)) / 1.5, 4, MOST_BINS))
        edges = np.quantile(x, np.linspace(0.0, 1.0, bins + 1)[1:-1])
        group = np.searchsorted(edges, x, side="right")
    _, group, count = np.unique(group, return_inverse=True, return_counts=True)
    mean = np.bincount(group, y) / count
    between = float(count @ (mean - y.mean()) ** 2)
    within = len(y) * variance - between
    groups = len(count)
    if len(y) > groups:
        between -= within * (groups - 1) / (len(y) - groups)
    return float(np.clip(between / (len(y) * variance), 0.0, 1.0))


def pareto(points: Array) -> NDArray[np.intp]:
    """The rows of points (n, k) that no other row betters: smaller or equal everywhere, smaller
    somewhere. In the order of the first column.
    """
    order = np.lexsort(points.T[::-1])
    front: list[int] = []
    for i in order:
        better = (points[front] <= points[i]).all(axis=1) & (points[front] < points[i]).any(axis=1)
        if not better.any():
            front.append(int(i))
    return np.array(front, dtype=np.intp)
