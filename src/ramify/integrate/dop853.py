"""The adaptive method of order 8 by Dormand and Prince, with its interpolation of order 7 (Hairer,
Norsett and Wanner 1993, II.10).

SciPy has it too; this one starts without SciPy's half a second of imports, evaluates the
interpolation only where it is needed, and notices when stability rather than accuracy sets its
step. Its steps are those of SciPy's. ``compiled_dop853`` makes the same steps in compiled code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ramify.core.arrays import Array
from ramify.integrate.dop853_table import E3, E5, STAGES, A, B, C, D
from ramify.plant.rates import UnboundedError

STABLE: Final = 6.1
"""Largest |h lambda| at which the method is stable along the negative real axis."""
STUCK_MESSAGE: Final = (
    "the step needed is smaller than the spacing of numbers; the motion may have a singularity here"
)


class Ranges(NamedTuple):
    """Bounds of some entries of a state."""

    places: NDArray[np.int64]
    low: Array
    high: Array

    def sides(self, y: Array) -> bytes:
        """On which side of its bounds each entry is."""
        if not len(self.places):
            return b""
        x = y[self.places]
        return ((x < self.low) + 2 * (x > self.high)).tobytes()


NOWHERE: Final = Ranges(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))


class Dop853:
    """Steps from t0 to t_end: call ``step`` while ``status`` is "running"; then ``t_old``,
    ``y_old``, ``t``, ``y`` are its ends. ``boundary`` counts the steps whose size stability set,
    not accuracy; six others in a row (``within``) reset it (Hairer and Wanner's test). ``ranges``:
    places in y, and the bounds beyond which another force acts on them. In a step that passes one,
    the estimate of order 8 may miss the kink; that of order 5 counts there.
    """

    def __init__(
        self, rates: Callable[[float, Array], Array], t0: float, y0: Array, t_end: float, *,
        rtol: float, atol: float, max_step: float, ranges: Ranges = NOWHERE,
    ) -> None:  # fmt: skip
        self.ranges, self.switched = ranges, False
        self.rates, self.t, self.t_end, self.max_step = rates, float(t0), float(t_end), max_step
        self.rtol, self.atol = rtol, atol
        self.y = np.array(y0, dtype=np.float64)
        self.f = rates(self.t, self.y)
        self.nfev, self.status = 1, "running"
        self.boundary, self.within = 0, 0
        self.t_old, self.y_old, self.f_old = self.t, self.y, self.f
        self.K = np.empty((16, len(self.y)))
        self.h = self._first_step()

    def _first_step(self) -> float:
        """One that moves the state by a hundredth of itself, corrected by the second derivative."""
        interval = self.t_end - self.t
        scale = self.atol + self.rtol * np.abs(self.y)
        d0, d1 = _norm(self.y / scale), _norm(self.f / scale)
        h0 = min(1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1, interval)
        after = self.rates(self.t + h0, self.y + h0 * self.f)
        self.nfev += 1
        d2 = _norm((after - self.f) / scale) / h0
        h1 = max(1e-6, h0 * 1e-3) if max(d1, d2) <= 1e-15 else (0.01 / max(d1, d2)) ** 0.125
        return float(min(100.0 * h0, h1, interval, self.max_step))

    def step(self) -> str | None:
        """One step; gives a message where none is possible, the status being "failed" then."""
        smallest = 10.0 * abs(np.nextafter(self.t, np.inf) - self.t)
        h = min(max(self.h, smallest), self.max_step)
        rejected = False
        overflow: UnboundedError | None = None
        while True:
            if h < smallest:
                if overflow is not None:
                    raise overflow
                self.status = "failed"
                return STUCK_MESSAGE
            end = min(self.t + h, self.t_end)
            h = end - self.t
            try:
                y, f = self._try(h)
                error = self._error(y, h)
            except UnboundedError as unbounded:  # a shorter step may not leave the range of numbers
                overflow, error = unbounded, np.inf
            if error < 1.0:
                break
            h *= max(0.2, 0.9 * error**-0.125) if np.isfinite(error) else 0.2
            rejected = True
        factor = 10.0 if error == 0.0 else min(10.0, 0.9 * error**-0.125)
        self.h = h * (min(1.0, factor) if rejected else factor)
        self.t_old, self.y_old, self.f_old = self.t, self.y, self.f
        self.t, self.y, self.f = end, y, f
        if end >= self.t_end:
            self.status = "finished"
        self._count_stability()
        return None

    def _count_stability(self) -> None:
        if self.at_stability:
            self.boundary, self.within = self.boundary + 1, 0
        else:
            self.within += 1
            if self.within == 6:
                self.boundary = 0

    def _try(self, h: float) -> tuple[Array, Array]:
        K, begun = self.K, self.ranges.sides(self.y)
        K[0] = self.f
        self.switched = False
        for s in range(1, STAGES):
            t = min(self.t + C[s] * h, self.t_end)
            y = self.y + (A[s, :s] @ K[:s]) * h
            K[s] = self.rates(t, y)
            self.switched |= self.ranges.sides(y) != begun
        y = self.y + h * (B @ K[:STAGES])
        K[STAGES] = f = self.rates(self.t + h, y)
        self.switched |= self.ranges.sides(y) != begun
        self.nfev += STAGES
        return y, f

    def _error(self, y: Array, h: float) -> float:
        """The estimated error by the tolerance; a step is good below 1."""
        scale = self.atol + np.maximum(np.abs(self.y), np.abs(y)) * self.rtol
        five, three = ((E @ self.K[: STAGES + 1]) / scale for E in (E5, E3))
        five2, three2 = float(five @ five), float(three @ three)
        if five2 == 0.0 and three2 == 0.0:
            return 0.0
        if self.switched:
            return h * float(np.sqrt(five2 / len(scale)))
        return h * five2 / float(np.sqrt((five2 + 0.01 * three2) * len(scale)))

    @property
    def at_stability(self) -> bool:
        """Whether |h lambda| of the last step, estimated from two stages at its end, lies beyond
        the boundary of stability.
        """
        h = self.t - self.t_old
        last = self.y_old + h * (A[11, :11] @ self.K[:11])
        apart = float(np.linalg.norm(self.y - last))
        return (
            apart > 0.0 and h * float(np.linalg.norm(self.K[STAGES] - self.K[11])) > STABLE * apart
        )

    def dense_output(self) -> Callable[[float], Array]:
        """y(t) within the last step, until the next one; three evaluations, once, when a time
        inside is first evaluated.
        """
        t0, t1, y0, y1, f0, f1 = self.t_old, self.t, self.y_old, self.y, self.f_old, self.f
        h = t1 - t0
        polynomial: list[Array] = []

        def coefficients() -> Array:
            K = self.K
            for s in range(STAGES + 1, 16):
                K[s] = self.rates(t0 + C[s] * h, y0 + (A[s, :s] @ K[:s]) * h)
            self.nfev += 3
            way = y1 - y0
            return np.vstack([way, h * f0 - way, 2.0 * way - h * (f1 + f0), h * (D @ K)])

        def at(t: float) -> Array:
            if t <= t0 or t >= t1:
                return y0 if t <= t0 else y1
            if not polynomial:
                polynomial.append(coefficients())
            x = (t - t0) / h
            y = np.zeros_like(y0)
            for i, row in enumerate(polynomial[0][::-1]):
                y = (y + row) * (x if i % 2 == 0 else 1.0 - x)
            return y0 + y

        return at


def _norm(x: Array) -> float:
    return float(np.linalg.norm(x)) / len(x) ** 0.5
