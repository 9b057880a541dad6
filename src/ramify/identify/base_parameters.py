"""Base parameters: the combinations of unknowns that a motion can show, by name.

Columns of the regressor over random states are taken one after the other (Gram-Schmidt, twice,
without pivoting), so that a column which depends on earlier ones is grouped with these: the order
from the root to the tip gives the groupings of the literature, link lengths as coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.identify.unknowns import Unknowns, described

STATES: Final = 400
_TOLERANCE: Final = 1e-8
_DUST: Final = 1e-9
_ROUNDING: Final = 1e-7  # share of a column below which a coefficient is zero


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """``columns`` of the unknowns that are the base; ``grouping`` G with beta = G pi; ``unseen``
    columns never act; ``kept`` and ``dropped`` are the smallest remainder of a column of the base
    and the largest of one that depends on it.
    """

    unknowns: Unknowns
    columns: tuple[int, ...]
    grouping: Array
    unseen: tuple[int, ...]
    least_independent: float
    largest_dependent: float

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def rigid(self) -> int:
        """How many are of bodies alone or of bodies and rotors."""
        return sum(c < self.unknowns.bodies for c in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The combinations, such as ``Izz[upper] + 0.25 m[lower]``."""
        out = []
        for column, row in zip(self.columns, self.grouping, strict=True):
            used = [column, *(k for k in np.flatnonzero(row).tolist() if k != column)]
            out.append(described([self.unknowns.names[k] for k in used], row[used]))
        return tuple(out)

    @property
    def short_names(self) -> tuple[str, ...]:
        """The leading unknown of each combination."""
        return tuple(self.unknowns.names[c] for c in self.columns)

    @property
    def units(self) -> tuple[str, ...]:
        return tuple(self.unknowns.units[c] for c in self.columns)

    @property
    def nominal(self) -> Array:
        return self.grouping @ self.unknowns.nominal


def independent_columns(
    A: Array, order: list[int], tolerance: float = _TOLERANCE
) -> tuple[list[int], list[int], list[float], list[float]]:
    """Columns of A that depend on no earlier one, those that are zero, and what remains of the
    normalised columns of the base and of the others.
    """
    size = np.linalg.norm(A, axis=0)
    zero = size <= _DUST * max(float(size.max(initial=0.0)), 1e-300)
    Q = np.empty((len(A), min(A.shape)))
    base: list[int] = []
    remains: list[float] = []
    dependent: list[float] = []
    for k in order:
        if zero[k]:
            continue
        basis = Q[:, : len(base)]
        x = A[:, k] / size[k]
        for _ in range(2):
            x = x - basis @ (basis.T @ x)
        rest = float(np.linalg.norm(x))
        if rest > tolerance and len(base) < Q.shape[1]:
            Q[:, len(base)] = x / rest
            base.append(k)
            remains.append(rest)
        else:
            dependent.append(rest)
    return base, [k for k in order if zero[k]], remains, dependent


def base_parameters(unknowns: Unknowns, A: Array, tolerance: float = _TOLERANCE) -> BaseParameters:
    """The base of the unknowns from their columns A (rows, size) over many states."""
    base, unseen, remains, dependent = independent_columns(A, unknowns.order, tolerance)
    base = sorted(base)
    G = np.zeros((len(base), unknowns.size))
    G[range(len(base)), base] = 1.0
    others = [k for k in range(unknowns.size) if k not in set(base) and k not in set(unseen)]
    if others:
        scale = np.linalg.norm(A[:, base], axis=0)
        C = np.linalg.lstsq(A[:, base] / scale, A[:, others], rcond=None)[0] / scale[:, None]
        share = np.abs(C) * scale[:, None] / np.linalg.norm(A[:, others], axis=0)
        C[share < _ROUNDING] = 0.0
        whole = np.round(C)
        G[:, others] = np.where(np.abs(C - whole) < 1e-9, whole, C)
    return BaseParameters(
        unknowns, tuple(base), G, tuple(unseen), min(remains, default=0.0),
        max(dependent, default=0.0),
    )  # fmt: skip
