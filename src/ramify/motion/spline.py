"""Cubic splines: through given points at given times, with continuous accelerations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.core.errors import StateError
from ramify.core.names import one_of
from ramify.core.records import settle
from ramify.core.scalar import Scalar
from ramify.documents.forms import Choice, Numbers, Rows
from ramify.documents.kinds import key
from ramify.motion.piecewise import Columns, Knots
from ramify.motion.trajectory import MOTIONS, Row, Sampled, Texts, row, timed_rows, transposed

ENDS = ("natural", "clamped", "not_a_knot")


@MOTIONS.add("spline")
@dataclass(frozen=True, repr=False)
class Spline(Sampled):
    """The cubic spline through ``points`` (T, n), rad or m, at the rising ``times`` (T,), s.

    On each interval q = c_0 + c_1 u + c_2 u^2 + c_3 u^3 with u the time since its first knot; q, v
    and a are continuous in between. ``ends``: "natural" (no acceleration at both ends), "clamped"
    (``start_rate`` and ``end_rate`` are given, rest by default) or "not_a_knot" (the first two and
    the last two intervals share one cubic each). The cubics are memory of the compiled code: there
    may be many.

    Raises StateError where times do not rise, shapes do not fit, a value is not finite or ``ends``
    is unknown.
    """

    ROWS = "points"
    times: Any = field(metadata=key(Numbers(), unit="s"))
    points: Any = field(metadata=key(Rows(degrees=True, per="times"), unit="rad or m"))
    ends: str = field(default="natural", metadata=key(Choice(ENDS)))
    start_rate: Any = field(default=0.0, metadata=key(Numbers(single=True), unit="rad/s or m/s"))
    end_rate: Any = field(default=0.0, metadata=key(Numbers(single=True), unit="rad/s or m/s"))

    def __post_init__(self) -> None:
        times, points = timed_rows("points", self.times, self.points, least=2)
        one_of("ends", self.ends, ENDS, StateError)
        rates: dict[str, Row] = {}
        for name in ("start_rate", "end_rate"):
            rate = row(name, getattr(self, name))
            if any(rate) and self.ends != "clamped":
                raise StateError(f"{name} belongs to ends='clamped'; they are {self.ends!r}")
            if len(rate) not in (1, len(points[0])):
                raise StateError(
                    f"{name} has {len(rate)} coordinates, the points have {len(points[0])}"
                )
            rates[name] = rate * len(points[0]) if len(rate) == 1 else rate
        settle(self, times=times, points=points, **rates)

    @cached_property
    def _cubics(self) -> tuple[Knots, Columns]:
        """The knots between intervals; for every interval its first knot, then c_0 … c_3 of all
        coordinates.
        """
        t, y = np.array(self.times), np.array(self.points)
        h = np.diff(t)[:, None]
        slope = np.diff(y, axis=0) / h
        rates = np.array(self.start_rate), np.array(self.end_rate)
        m = curvatures(h[:, 0], slope, self.ends, *rates)
        c1 = slope - h * (2.0 * m[:-1] + m[1:]) / 6.0
        rows = [t[:-1, None], y[:-1], c1, 0.5 * m[:-1], np.diff(m, axis=0) / (6.0 * h)]
        return Knots(t[1:-1]), Columns(np.hstack(rows))

    def inside(self, t: Scalar) -> Texts:
        knots, rows = self._cubics
        first, *c = rows.row(knots.below(t))
        u, n = t - first, self.n
        return transposed(
            (
                c0 + u * (c1 + u * (c2 + u * c3)),
                c1 + u * (2.0 * c2 + u * (3.0 * c3)),
                2.0 * c2 + u * (6.0 * c3),
            )
            for c0, c1, c2, c3 in (c[k::n] for k in range(n))
        )


def curvatures(h: Array, slope: Array, ends: str, start_rate: Array, end_rate: Array) -> Array:
    """Accelerations m (T, n) at the knots of a cubic spline, from the intervals h (T - 1) and the
    slopes over them (T - 1, n).

    Inside, h_k m_k + 2 (h_k + h_k+1) m_k+1 + h_k+1 m_k+2 = 6 (slope_k+1 - slope_k); the ends close
    this tridiagonal system.
    """
    size, n = len(h) + 1, slope.shape[1]
    if ends == "not_a_knot" and size < 4:  # one parabola, or a line
        bend = 2.0 * (slope[1] - slope[0]) / (h[0] + h[1]) if size == 3 else np.zeros(n)
        return np.tile(bend, (size, 1))
    below, above, diagonal, right = *np.zeros((2, size)), np.ones(size), np.zeros((size, n))
    below[1:-1], above[1:-1] = h[:-1], h[1:]
    diagonal[1:-1] = 2.0 * (h[:-1] + h[1:])
    right[1:-1] = 6.0 * np.diff(slope, axis=0)
    if ends == "clamped":
        diagonal[0], above[0], right[0] = 2.0 * h[0], h[0], 6.0 * (slope[0] - start_rate)
        diagonal[-1], below[-1], right[-1] = 2.0 * h[-1], h[-1], 6.0 * (end_rate - slope[-1])
    elif ends == "not_a_knot":
        # m_0 lies on the line through m_1 and m_2, and so at the other end; put into their rows
        for k, edge, inner, band in ((1, h[0], h[1], above), (-2, h[-1], h[-2], below)):
            diagonal[k] += edge * (1.0 + edge / inner)
            band[k] -= edge * edge / inner
        below[1] = above[-2] = 0.0
    m = _tridiagonal(below, diagonal, above, right)
    if ends == "not_a_knot":
        m[0] = m[1] + (m[1] - m[2]) * (h[0] / h[1])
        m[-1] = m[-2] + (m[-2] - m[-3]) * (h[-1] / h[-2])
    return m


def _tridiagonal(below: Array, diagonal: Array, above: Array, right: Array) -> Array:
    """Solution (T, n) of a tridiagonal system by elimination, without pivots: the rows are
    dominated by their diagonals.
    """
    d, r = diagonal.copy(), right.copy()
    for k in range(1, len(d)):
        factor = below[k] / d[k - 1]
        d[k] -= factor * above[k - 1]
        r[k] -= factor * r[k - 1]
    r[-1] /= d[-1]
    for k in range(len(d) - 2, -1, -1):
        r[k] = (r[k] - above[k] * r[k + 1]) / d[k]
    return r
