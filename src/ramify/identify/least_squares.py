"""Weighted least squares with one noise for each group of rows, and honest standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ramify.core.arrays import Array

ROUNDS: Final = 4


@dataclass(frozen=True, eq=False)
class WeightedSolution:
    """``beta`` with its ``covariance``, ``noise`` of each group (N m or N), ``residuals`` of all
    rows, ``chi2`` of the weighted residuals, ``root`` R with R'R the information.
    """

    beta: Array
    covariance: Array
    noise: Array
    residuals: Array
    chi2: float
    root: Array

    @property
    def errors(self) -> Array:
        return np.sqrt(np.diag(self.covariance))


Knowledge = tuple[Array, Array]
"""Rows C and d of what is known besides: C beta = d, each divided by its standard error."""


def solve_least_squares(
    X: Array, y: Array, group: NDArray[np.intp], rounds: int = ROUNDS,
    knowledge: Knowledge | None = None, groups: int = 0,
) -> WeightedSolution:  # fmt: skip
    """The beta with X beta = y, rows weighted by the noise of their group, which is estimated from
    the residuals with the degrees of freedom that the fit takes from each group.
    """
    groups = max(groups, int(group.max()) + 1)
    count = np.bincount(group, minlength=groups).astype(np.float64)
    scale = np.linalg.norm(X, axis=0)
    scale[scale == 0.0] = 1.0
    A = X / scale
    grams = np.zeros((groups, A.shape[1], A.shape[1]))
    moments = np.zeros((groups, A.shape[1]))
    for g in range(groups):
        rows = A[group == g]
        grams[g], moments[g] = rows.T @ rows, rows.T @ y[group == g]
    C, d = knowledge if knowledge is not None else (np.zeros((0, X.shape[1])), np.zeros(0))
    C = C / scale
    power = np.bincount(group, y * y, groups) / np.maximum(count, 1.0)
    variance = np.where(power > 0.0, power, 1.0)
    for _ in range(rounds):
        weight = 1.0 / variance
        information = np.tensordot(weight, grams, 1) + C.T @ C
        inverse = np.linalg.pinv(information, rcond=1e-14, hermitian=True)
        beta = inverse @ (weight @ moments + C.T @ d)
        residuals = y - A @ beta
        used = weight * np.einsum("gij,ji->g", grams, inverse)
        squares = np.bincount(group, residuals * residuals, groups)
        floor = 1e-24 * np.maximum(power, 1e-300)
        variance = np.maximum(squares / np.maximum(count - used, 1.0), floor)
        variance[count == 0.0] = 1.0
    weights = 1.0 / np.sqrt(variance[group])
    R, z = triangular(np.vstack([A * weights[:, None], C]), np.concatenate([y * weights, d]))
    beta = np.linalg.lstsq(R, z, rcond=1e-12)[0]
    residuals = y - A @ beta
    inverse = np.linalg.pinv(R, rcond=1e-12)
    covariance = (inverse @ inverse.T) / np.outer(scale, scale)
    chi2 = float(np.sum((residuals * weights) ** 2))
    return WeightedSolution(beta / scale, covariance, np.sqrt(variance), residuals, chi2, R * scale)


def triangular(A: Array, y: Array) -> tuple[Array, Array]:
    """R and Q'y of A = Q R."""
    together: Array = np.asarray(np.linalg.qr(np.column_stack([A, y]), mode="r"))
    n = A.shape[1]
    return together[:n, :n], together[:n, n]


def marginal_root(A: Array, first: int) -> Array:
    """R with R'R the information on the later columns of A when the first ones are unknown too."""
    scale = np.linalg.norm(A, axis=0)
    scale[scale == 0.0] = 1.0
    whole: Array = np.asarray(np.linalg.qr(A / scale, mode="r")) * scale
    return np.asarray(whole[first:, first:])


def lag_one(residuals: Array, keep: NDArray[np.bool_]) -> Array:
    """The autocorrelation of residuals (T, rows) from one row to the next, of those kept."""
    both = keep[1:] & keep[:-1]
    products = np.where(both, residuals[1:] * residuals[:-1], 0.0).sum(axis=0)
    squares = np.where(keep, residuals**2, 0.0).sum(axis=0)
    pairs, rows = both.sum(axis=0), keep.sum(axis=0)
    mean = squares / np.maximum(rows, 1)
    usable = (pairs >= 10) & (mean > 0.0)
    return np.where(usable, products / np.maximum(pairs, 1) / np.where(mean > 0.0, mean, 1.0), 0.0)
