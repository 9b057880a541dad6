"""Derivatives along a direction, from the same text: every scalar becomes a number with a rate.

``TangentTree`` wraps a tree (plain or of loops). A column then holds pairs of records, values and
rates, and a step sees one record of ``Dual`` numbers. Rates that are known to be zero cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ramify.core.records import flatten, rebuild
from ramify.core.scalar import Scalar, cos, floor, lookup, sin, sqrt
from ramify.core.table import Table


class Dual:
    """value + rate * epsilon, with epsilon^2 = 0."""

    __slots__ = ("rate", "value")

    def __init__(self, value: Scalar, rate: Scalar) -> None:
        self.value = value
        self.rate = rate

    def __add__(self, o: Any) -> Any:
        return (
            dual(self.value + o.value, self.rate + o.rate)
            if isinstance(o, Dual)
            else dual(self.value + o, self.rate)
        )

    __radd__ = __add__

    def __sub__(self, o: Any) -> Any:
        return (
            dual(self.value - o.value, self.rate - o.rate)
            if isinstance(o, Dual)
            else dual(self.value - o, self.rate)
        )

    def __rsub__(self, o: Any) -> Any:
        return dual(o - self.value, -self.rate)

    def __mul__(self, o: Any) -> Any:
        if isinstance(o, Dual):
            return dual(self.value * o.value, self.value * o.rate + self.rate * o.value)
        return dual(self.value * o, self.rate * o)

    __rmul__ = __mul__

    def __truediv__(self, o: Any) -> Any:
        return self * (1.0 / o)

    def __rtruediv__(self, o: Any) -> Any:
        inverse = 1.0 / self.value
        return dual(o * inverse, -(o * inverse * inverse * self.rate))

    def __neg__(self) -> Any:
        return dual(-self.value, -self.rate)

    def _sin_(self, _: Any) -> Any:
        return dual(sin(self.value), cos(self.value) * self.rate)

    def _cos_(self, _: Any) -> Any:
        return dual(cos(self.value), -(sin(self.value) * self.rate))

    def _floor_(self, _: Any) -> Any:
        return floor(self.value)

    def _lookup_(self, table: Table) -> Any:
        return lookup(table, self.value)

    def _sqrt_(self, _: Any) -> Any:
        root = sqrt(self.value)
        return dual(root, self.rate * (0.5 / root))


def dual(value: Scalar, rate: Scalar) -> Any:
    """A number with a rate; the number alone where the rate is known to be zero."""
    return value if isinstance(rate, float) and rate == 0.0 else Dual(value, rate)


def value(x: Any) -> Scalar:
    """The number without its rate."""
    return x.value if isinstance(x, Dual) else x


def rate(x: Any) -> Scalar:
    """The rate of a number; zero for one that has none."""
    return x.rate if isinstance(x, Dual) else 0.0


def join(pair: Any) -> Any:
    """One record of numbers with rates from a pair of records."""
    values, rates = pair
    return rebuild(
        values, iter([dual(x, dx) for x, dx in zip(flatten(values), flatten(rates), strict=True)])
    )


def split(record: Any) -> tuple[Any, Any]:
    """The reverse of ``join``."""
    scalars = flatten(record)
    return rebuild(record, iter([value(x) for x in scalars])), rebuild(
        record, iter([rate(x) for x in scalars])
    )


def _still(record: Any) -> tuple[Any, Any]:
    return record, rebuild(record, iter([0.0] * len(flatten(record))))


class TangentTree:
    """The traversals of a tree on numbers with rates; its columns hold pairs (values, rates)."""

    def __init__(self, tree: Any) -> None:
        self._tree = tree
        self.root = tree.root
        self.gravity = tree.gravity
        self.balls = tree.balls

    def pair(self, values: Any, rates: Any) -> Any:
        """A column of pairs from a column of values and one of rates."""
        return self._tree.each(lambda link, x, dx: (x, dx), values, rates)

    def each(self, step: Callable[..., Any], *columns: Any) -> Any:
        return self._tree.each(lambda link, *items: split(step(link, *map(join, items))), *columns)

    def outward(self, step: Callable[..., Any], root: Any, *columns: Any) -> Any:
        def paired(link: Any, parent: Any, *items: Any) -> Any:
            return split(step(link, join(parent), *map(join, items)))

        return self._tree.outward(paired, _still(root), *columns)

    def inward(self, step: Callable[..., Any], zero: Any, *columns: Any) -> Any:
        def paired(link: Any, children: Any, *items: Any) -> Any:
            record, handed = step(link, join(children), *map(join, items))
            return split(record), split(handed)

        return self._tree.inward(paired, _still(zero), *columns)

    def rates(self, column: Any) -> Any:
        """The rates of a column of scalars."""
        return self._tree.each(lambda link, item: item[1], column)
