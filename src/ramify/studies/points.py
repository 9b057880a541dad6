"""The points of a study: values crossed as a grid, or drawn from distributions at random, in a
Latin hypercube or by Sobol.
"""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ramify.core.arrays import Array

MOST_RUNS: Final = 1_000_000
"""The largest number of runs by default; see the key ``most_runs``."""


@dataclass(frozen=True)
class Series:
    """Numbers one after the other."""

    values: Sequence[float] | Array

    @property
    def ends(self) -> tuple[float, ...]:
        """The smallest and the largest possible number."""
        return ()


@dataclass(frozen=True)
class Distribution:
    """``kind`` "uniform" or "log_uniform" between two numbers, or "normal" with mean and standard
    deviation, perhaps cut to ``within``.
    """

    kind: str
    a: float
    b: float
    within: tuple[float, float] = (-math.inf, math.inf)

    @property
    def ends(self) -> tuple[float, ...]:
        """The smallest and the largest possible number."""
        return self.within if self.kind == "normal" else (self.a, self.b)

    def at(self, share: Array) -> Array:
        """Where the distribution function reaches a share in (0, 1)."""
        if self.kind == "uniform":
            return self.a + (self.b - self.a) * share
        if self.kind == "log_uniform":
            return np.clip(self.a * (self.b / self.a) ** share, self.a, self.b)
        from scipy.special import ndtr, ndtri

        low, high = ((end - self.a) / self.b for end in self.within)
        inner = np.clip(share, 1e-16, 1.0 - 1e-16)
        if low > 0.0:  # far above the mean a share is almost 1; the mirrored tail keeps its digits
            z = -_lower_tail(-high, -low, 1.0 - inner)
        elif high < 0.0:
            z = _lower_tail(low, high, inner)
        else:
            z = ndtri(ndtr(low) + (ndtr(high) - ndtr(low)) * inner)
        return np.asarray(np.clip(self.a + self.b * z, *self.within), dtype=np.float64)


def _lower_tail(low: float, high: float, share: Array) -> Array:
    """Where the normal distribution cut to low < z < high < 0 reaches a share, by logarithms."""
    from scipy.special import log_ndtr, ndtri_exp

    top = log_ndtr(high)
    return np.asarray(ndtri_exp(top + np.log(share + (1.0 - share) * np.exp(log_ndtr(low) - top))))


Varied = Series | Distribution


@dataclass(frozen=True)
class Design:
    """How points are laid out. ``runs`` points are drawn for the distributions, the same ones in
    each cell of the grid of values.

    combine: "cross" (every value with every other) or "together" (the first of each, the second of
    each, ...).
    """

    design: str = "random"
    runs: int = 1
    seed: int = 0
    combine: str = "cross"


def cells(vary: Mapping[str, Varied], design: Design) -> int:
    """Cells of the grid of listed values."""
    sizes = [len(one.values) for one in vary.values() if isinstance(one, Series)]
    return math.prod(sizes) if design.combine == "cross" else max(sizes, default=1)


def run_count(vary: Mapping[str, Varied], design: Design) -> int:
    """How many runs there are, without making their points."""
    drawn = any(isinstance(one, Distribution) for one in vary.values())
    return cells(vary, design) * (design.runs if drawn else 1)


def points(vary: Mapping[str, Varied], design: Design) -> Array:
    """The points (runs, parameters), in the order of ``vary``. The same study gives the same
    points, bit for bit.

    Random and Sobol points stay the same when more runs are asked for; those of a Latin hypercube
    do not.
    """
    listed = {name: np.array(one.values) for name, one in vary.items() if isinstance(one, Series)}
    drawn = {name: one for name, one in vary.items() if isinstance(one, Distribution)}
    n, m = design.runs if drawn else 1, cells(vary, design)
    if design.combine == "cross":
        grid = np.meshgrid(*listed.values(), indexing="ij")
        listed = {name: values.ravel() for name, values in zip(listed, grid, strict=True)}
    # Runs of one draw are adjacent: a study that grows appends whole grids.
    columns = {name: np.tile(column, n) for name, column in listed.items()}
    shares = _shares(design, list(drawn))
    for i, (name, one) in enumerate(drawn.items()):
        columns[name] = np.repeat(one.at(shares[:, i]), m)
    if not columns:
        return np.empty((1, 0))
    return np.ascontiguousarray(np.stack([columns[name] for name in vary], axis=1), np.float64)


def _shares(design: Design, drawn: Sequence[str]) -> Array:
    """(runs, parameters) in (0, 1)."""
    if not drawn:
        return np.empty((1, 0))
    if design.design == "random":  # a stream per name: a new parameter leaves the others unchanged
        seeds = [[design.seed, zlib.crc32(name.encode())] for name in drawn]
        return np.stack([np.random.default_rng(x).random(design.runs) for x in seeds], axis=1)
    from scipy.stats import qmc

    kind: Any = qmc.Sobol if design.design == "sobol" else qmc.LatinHypercube
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the number of points is not a power of two
        source = kind(len(drawn), seed=np.random.default_rng(design.seed))
        return np.asarray(source.random(design.runs), dtype=np.float64)
