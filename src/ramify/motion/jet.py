"""Numbers with a first and a second derivative in time, so that a text for positions gives rates
and accelerations too.

Arithmetic on jets is arithmetic on Taylor series cut after the second power. The parts may be
scalars of any kind: the derivatives of a traced text are traced.
"""

from __future__ import annotations

from typing import Any

from ramify.core.scalar import Scalar, atan2, cos, floor, lookup, select, sin, sqrt
from ramify.core.table import Table


class Jet:
    """x + dx h + ddx h^2 / 2: a value, its rate and its acceleration."""

    __slots__ = ("ddx", "dx", "x")
    __array_ufunc__ = None  # NumPy's numbers leave the operators to us

    def __init__(self, x: Scalar, dx: Scalar = 0.0, ddx: Scalar = 0.0) -> None:
        self.x, self.dx, self.ddx = x, dx, ddx

    def _through(self, f: Scalar, df: Scalar, ddf: Scalar) -> Jet:
        """A function of this jet, from its value and derivatives there."""
        return Jet(f, df * self.dx, ddf * (self.dx * self.dx) + df * self.ddx)

    def __add__(self, o: Any) -> Jet:
        o = jet(o)
        return Jet(self.x + o.x, self.dx + o.dx, self.ddx + o.ddx)

    __radd__ = __add__

    def __neg__(self) -> Jet:
        return Jet(-self.x, -self.dx, -self.ddx)

    def __sub__(self, o: Any) -> Jet:
        return self + (-jet(o))

    def __rsub__(self, o: Any) -> Jet:
        return jet(o) + (-self)

    def __mul__(self, o: Any) -> Jet:
        o = jet(o)
        return Jet(
            self.x * o.x,
            self.x * o.dx + self.dx * o.x,
            self.x * o.ddx + 2.0 * (self.dx * o.dx) + self.ddx * o.x,
        )

    __rmul__ = __mul__

    def __truediv__(self, o: Any) -> Jet:
        return self * (1.0 / jet(o))

    def __rtruediv__(self, o: Any) -> Jet:
        r = 1.0 / self.x
        return jet(o) * self._through(r, -(r * r), 2.0 * (r * r * r))

    def __pow__(self, exponent: int) -> Jet:
        if not isinstance(exponent, int) or exponent < 0:
            raise TypeError(
                f"a power of the time must be a whole number, not negative; got {exponent!r}"
            )
        out = Jet(1.0)
        for _ in range(exponent):
            out = out * self
        return out

    def _sin_(self, _: Any) -> Jet:
        s, c = sin(self.x), cos(self.x)
        return self._through(s, c, -s)

    def _cos_(self, _: Any) -> Jet:
        s, c = sin(self.x), cos(self.x)
        return self._through(c, -s, -c)

    def _sqrt_(self, _: Any) -> Jet:
        root = sqrt(self.x)
        rate = 0.5 / root
        return self._through(root, rate, -0.5 * rate / self.x)

    def _lookup_(self, table: Table) -> Jet:
        return Jet(lookup(table, self.x))

    def _floor_(self, _: Any) -> Jet:
        return Jet(floor(self.x))

    def _atan2_(self, y: Any, x: Any) -> Jet:
        y, x = jet(y), jet(x)
        square = x.x * x.x + y.x * y.x
        rate = (x.x * y.dx - y.x * x.dx) / square
        bend = (x.x * y.ddx - y.x * x.ddx) / square - 2.0 * rate * (
            x.x * x.dx + y.x * y.dx
        ) / square
        return Jet(atan2(y.x, x.x), rate, bend)

    def __lt__(self, o: Any) -> _Condition:
        return _Condition(self.x < jet(o).x)

    def __le__(self, o: Any) -> _Condition:
        return _Condition(self.x <= jet(o).x)

    def __gt__(self, o: Any) -> _Condition:
        return _Condition(self.x > jet(o).x)

    def __ge__(self, o: Any) -> _Condition:
        return _Condition(self.x >= jet(o).x)


class _Condition:
    """A comparison of jets; it has no truth value, as it may not be known yet: branch with
    ``select``.
    """

    def __init__(self, holds: Any) -> None:
        self._holds = holds

    def __bool__(self) -> bool:
        raise TypeError(
            "a comparison of the time has no truth value in a text; branch with "
            "ramify.core.scalar.select"
        )

    def _select_(self, if_true: Any, if_false: Any) -> Jet:
        a, b, c = jet(if_true), jet(if_false), self._holds
        return Jet(select(c, a.x, b.x), select(c, a.dx, b.dx), select(c, a.ddx, b.ddx))


def jet(x: Any) -> Jet:
    """A jet as it is; any other number as one that does not change."""
    return x if isinstance(x, Jet) else Jet(x)
