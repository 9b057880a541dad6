"""Derivatives along a direction, from the same text: every scalar becomes a number with a rate.

``TangentTree`` wraps a tree (plain or rolled). A column then holds pairs of records, values and
rates, and a step sees one record of jets. Rates that are known to be zero cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ramify.core.jet import Jet, rate, value
from ramify.core.records import flatten, rebuild
from ramify.core.scalar import Scalar


def _with_rate(x: Scalar, dx: Scalar) -> Scalar:
    """A number with a rate; the number alone where the rate is known to be zero."""
    return x if isinstance(dx, float) and dx == 0.0 else Jet(x, dx, None)


def join(pair: Any) -> Any:
    """One record of numbers with rates from a pair of records."""
    values, rates = pair
    return rebuild(
        values,
        iter([_with_rate(x, dx) for x, dx in zip(flatten(values), flatten(rates), strict=True)]),
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
