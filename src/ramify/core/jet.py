"""Numbers with derivatives, so that a text for values gives their rates too.

Arithmetic on jets is arithmetic on Taylor series, cut after the first or after the second power.
The parts may be scalars of any kind: the derivatives of a traced text are traced.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ramify.core.lookup import LookupTable
from ramify.core.scalar import Scalar, atan2, cos, floor, lookup, select, sin, sqrt


class Jet:
    """x + dx h + ddx h^2 / 2: a value, its rate and its acceleration; a jet whose ``ddx`` is None
    carries the rate alone.
    """

    __slots__ = ("ddx", "dx", "x")
    __array_ufunc__ = None  # NumPy's numbers leave the operators to us

    def __init__(self, x: Scalar, dx: Scalar = 0.0, ddx: Scalar | None = 0.0) -> None:
        self.x, self.dx, self.ddx = x, dx, ddx

    def _through(self, f: Scalar, df: Scalar, ddf: Scalar) -> Jet:
        """A function of this jet, from its value and derivatives there."""
        bend = None if self.ddx is None else ddf * (self.dx * self.dx) + df * self.ddx
        return Jet(f, df * self.dx, bend)

    def _constant(self, x: Scalar) -> Jet:
        """A number that does not change, as a jet like this one."""
        return x if isinstance(x, Jet) else Jet(x, 0.0, None if self.ddx is None else 0.0)

    def __add__(self, o: Any) -> Jet:
        if not isinstance(o, Jet):
            return Jet(self.x + o, self.dx, self.ddx)
        bend = None if self.ddx is None or o.ddx is None else self.ddx + o.ddx
        return Jet(self.x + o.x, self.dx + o.dx, bend)

    __radd__ = __add__

    def __neg__(self) -> Jet:
        return Jet(-self.x, -self.dx, None if self.ddx is None else -self.ddx)

    def __sub__(self, o: Any) -> Jet:
        if not isinstance(o, Jet):
            return Jet(self.x - o, self.dx, self.ddx)
        bend = None if self.ddx is None or o.ddx is None else self.ddx - o.ddx
        return Jet(self.x - o.x, self.dx - o.dx, bend)

    def __rsub__(self, o: Any) -> Jet:
        return Jet(o - self.x, -self.dx, None if self.ddx is None else -self.ddx)

    def __mul__(self, o: Any) -> Jet:
        if not isinstance(o, Jet):
            return Jet(self.x * o, self.dx * o, None if self.ddx is None else self.ddx * o)
        bend = None
        if self.ddx is not None and o.ddx is not None:
            bend = self.x * o.ddx + 2.0 * (self.dx * o.dx) + self.ddx * o.x
        return Jet(self.x * o.x, self.x * o.dx + self.dx * o.x, bend)

    __rmul__ = __mul__

    def __truediv__(self, o: Any) -> Jet:
        return self * (1.0 / o)

    def __rtruediv__(self, o: Any) -> Jet:
        r = 1.0 / self.x
        return self._through(r, -(r * r), 2.0 * (r * r * r)) * o

    def __pow__(self, exponent: int) -> Jet:
        if not isinstance(exponent, int) or exponent < 0:
            raise TypeError(
                f"a power of the time must be a whole number, not negative; got {exponent!r}"
            )
        out = self._constant(1.0)
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
        return self._through(root, rate, 0.0 if self.ddx is None else -0.5 * rate / self.x)

    def _floor_(self, _: Any) -> Jet:
        return self._constant(floor(self.x))

    def _lookup_(self, table: LookupTable) -> Jet:
        return self._constant(lookup(table, self.x))

    def _atan2_(self, y: Any, x: Any) -> Jet:
        y, x = self._constant(y), self._constant(x)
        square = x.x * x.x + y.x * y.x
        rate = (x.x * y.dx - y.x * x.dx) / square
        bend = None
        if x.ddx is not None and y.ddx is not None:
            turned = 2.0 * rate * (x.x * x.dx + y.x * y.dx) / square
            bend = (x.x * y.ddx - y.x * x.ddx) / square - turned
        return Jet(atan2(y.x, x.x), rate, bend)

    def __lt__(self, o: Any) -> _Condition:
        return _Condition(self, self.x < value(o))

    def __le__(self, o: Any) -> _Condition:
        return _Condition(self, self.x <= value(o))

    def __gt__(self, o: Any) -> _Condition:
        return _Condition(self, self.x > value(o))

    def __ge__(self, o: Any) -> _Condition:
        return _Condition(self, self.x >= value(o))

    def _selected_(self, condition: Any, if_true: Any, if_false: Any) -> Jet:
        """What a condition chooses where this jet is one of the two; the condition may be one of
        numbers that do not change.
        """
        holds = condition._holds if isinstance(condition, _Condition) else condition
        return _Condition(self, holds)._select_(if_true, if_false)


class _Condition:
    """A comparison of jets; it has no truth value, as it may not be known yet: branch with
    ``select``.
    """

    def __init__(self, of: Jet, holds: Any) -> None:
        self._of, self._holds = of, holds

    def __bool__(self) -> bool:
        raise TypeError(
            "a comparison of the time has no truth value in a text; branch with "
            "ramify.core.scalar.select"
        )

    def _select_(self, if_true: Any, if_false: Any) -> Jet:
        a, b, c = self._of._constant(if_true), self._of._constant(if_false), self._holds
        bend = None if a.ddx is None or b.ddx is None else select(c, a.ddx, b.ddx)
        return Jet(select(c, a.x, b.x), select(c, a.dx, b.dx), bend)


def parts(values: Iterable[Any]) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
    """Values, rates and accelerations of some numbers."""
    jets = [jet(x) for x in values]
    bends = [0.0 if x.ddx is None else x.ddx for x in jets]
    return [x.x for x in jets], [x.dx for x in jets], bends


def jet(x: Any) -> Jet:
    """A jet as it is; any other number as one that does not change."""
    return x if isinstance(x, Jet) else Jet(x)


def value(x: Any) -> Scalar:
    """The number without its derivatives."""
    return x.x if isinstance(x, Jet) else x


def rate(x: Any) -> Scalar:
    """The rate of a number; zero for one that is not a jet."""
    return x.dx if isinstance(x, Jet) else 0.0
