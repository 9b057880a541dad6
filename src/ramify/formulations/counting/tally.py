"""Counting operations as they are written: a scalar that tallies what a text does to it.

The rules, which are those of the papers that publish such counts:

- A number of type ``Counted`` is computed at run time. A plain ``float`` or ``int`` is a constant
  known beforehand.
- A product or quotient with at least one ``Counted`` operand is one multiplication, a sum or
  difference one addition.
- Constants among themselves cost nothing, for they are worked out once.
- A product with a known 0, 1 or -1, a quotient by a known 1 or -1 and a sum with a known 0 cost
  nothing; a product with 0 is again a known 0.
- A change of sign costs nothing: it ends in a subtraction.
- Sines and cosines are counted apart, as angles; so are square roots.

A general program keeps some constants in the same arrays as computed numbers and then treats all
alike. A text says so with ``stored``. Nothing is shared or folded beyond these rules: what is
written twice is counted twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ramify.core.scalar import Scalar, number
from ramify.trace.op_count import OpCount


@dataclass
class Tally:
    """Operations so far. ``mul`` holds multiplications and divisions, ``add`` additions and
    subtractions.
    """

    mul: int = 0
    add: int = 0
    sqrt: int = 0
    angles: dict[int, Counted] = field(default_factory=dict)

    def number(self, value: float) -> Counted:
        """A run-time number."""
        return Counted(value, self)

    def count(self) -> OpCount:
        """The operations so far; divisions are within ``mul``, so ``div`` is zero."""
        return OpCount(self.mul, self.add, 0, self.sqrt, len(self.angles))


class Counted:
    """A run-time number whose operations its tally counts; the module's text gives the rules."""

    __slots__ = ("tally", "value")

    def __init__(self, value: float, tally: Tally) -> None:
        self.value, self.tally = float(value), tally

    def __repr__(self) -> str:
        return f"Counted({self.value!r})"

    def __float__(self) -> float:
        return self.value

    def __bool__(self) -> bool:
        raise TypeError("a counted number has no truth value: a text must not branch on numbers")

    def _times(self, value: float) -> Counted:
        self.tally.mul += 1
        return Counted(value, self.tally)

    def _plus(self, value: float) -> Counted:
        self.tally.add += 1
        return Counted(value, self.tally)

    def __neg__(self) -> Counted:
        return Counted(-self.value, self.tally)

    def __mul__(self, o: Any) -> Scalar:
        if isinstance(o, Counted):
            return self._times(self.value * o.value)
        if o == 0.0:
            return 0.0
        if abs(o) == 1.0:
            return self if o > 0.0 else -self
        return self._times(self.value * o)

    __rmul__ = __mul__

    def __truediv__(self, o: Any) -> Scalar:
        if isinstance(o, Counted):
            return self._times(self.value / o.value)
        return self * (1.0 / o)

    def __rtruediv__(self, o: Any) -> Scalar:
        return 0.0 if o == 0.0 else self._times(o / self.value)

    def __add__(self, o: Any) -> Counted:
        if isinstance(o, Counted):
            return self._plus(self.value + o.value)
        return self if o == 0.0 else self._plus(self.value + o)

    __radd__ = __add__

    def __sub__(self, o: Any) -> Counted:
        return self + -o

    def __rsub__(self, o: Any) -> Counted:
        return -self + o

    def _compared(self, o: Any) -> Any:
        raise TypeError("a counted number cannot be compared: a text must not branch on numbers")

    __lt__ = __le__ = __gt__ = __ge__ = _compared

    def _angle(self, value: float) -> Counted:
        self.tally.angles[id(self)] = self
        return Counted(value, self.tally)

    @staticmethod
    def _sin_(x: Counted) -> Counted:
        return x._angle(math.sin(x.value))

    @staticmethod
    def _cos_(x: Counted) -> Counted:
        return x._angle(math.cos(x.value))

    @staticmethod
    def _sqrt_(x: Counted) -> Counted:
        x.tally.sqrt += 1
        return Counted(math.sqrt(x.value), x.tally)


class OperationLedger:
    """Where the operations of a text go: ``with ledger.step("w*"):`` charges what is done inside to
    that row.

    Without a tally (any other scalar than Counted) it does nothing. ``rows`` maps steps to
    (multiplications, additions).
    """

    def __init__(self, tally: Tally | None = None) -> None:
        self.tally = tally
        self.rows: dict[str, tuple[int, int]] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Charges to one row; rows of the same name add up."""
        before = (self.tally.mul, self.tally.add) if self.tally else (0, 0)
        yield
        if self.tally:
            mul, add = self.rows.get(name, (0, 0))
            self.rows[name] = mul + self.tally.mul - before[0], add + self.tally.add - before[1]


def stored(constant: Scalar, like: Scalar) -> Scalar:
    """A constant kept among run-time numbers such as ``like``: counted texts treat it as one."""
    if isinstance(like, Counted) and not isinstance(constant, Counted):
        return Counted(number(constant), like.tally)
    return constant
