"""Motions given by Python functions of the time."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ramify.core.arrays import refuse_masks
from ramify.core.cached import cached_property
from ramify.core.errors import StateError
from ramify.core.jet import Jet, parts
from ramify.core.records import settle
from ramify.core.scalar import Scalar
from ramify.motion.trajectory import Texts, Trajectory, span
from ramify.trace.graph import Graph, as_node

FunctionOfTime = Callable[[Any], Any]


@dataclass(frozen=True, repr=False)
class TimeFunction(Trajectory):
    """q(t) as a Python function that gives a number or a list of n numbers, rad or m, for a time in
    s.

    Written with ``+ - * /``, whole powers and ``ramify.core.scalar``'s sin, cos, sqrt, atan2, floor
    and select, it is differentiated exactly and can be compiled. A function that computes in any
    other way must come with its rates ``v`` and accelerations ``a``: nothing is differentiated
    numerically.

    Raises StateError where q cannot be differentiated and v or a is missing, only one of them is
    given, or their lengths differ.
    """

    q: FunctionOfTime
    v: FunctionOfTime | None = None
    a: FunctionOfTime | None = None
    duration: float = math.inf
    begin: float = 0.0

    def __post_init__(self) -> None:
        begin, duration = span(self.begin, self.duration, endless=True)
        settle(self, begin=begin, duration=duration)
        if (self.v is None) != (self.a is None):
            raise StateError(
                f"{'a' if self.a is None else 'v'} is missing: give both rates and accelerations, "
                "or neither"
            )
        try:
            q, v, a = self.inside(self.begin)
        except TypeError as error:
            if self.v is not None:
                raise
            raise StateError(
                f"{_name(self.q)} cannot be differentiated: {error}; write it with + - * / and the "
                "functions of ramify.core.scalar, "
                "or give v and a"
            ) from error
        if not len(q) == len(v) == len(a):
            raise StateError(
                f"q gives {len(q)} numbers, v {len(v)} and a {len(a)}; they must give as many"
            )
        if not q:
            raise StateError(f"{_name(self.q)} gives no number")

    def __repr__(self) -> str:
        """What the function computes, not where it lies: compiled code is kept under this text."""
        what = self._digest or f"{id(self.q):#x}"
        when = f"duration={self.duration!r}, begin={self.begin!r}"
        return f"TimeFunction({_name(self.q)}, {what}, {when})"

    @property
    def traceable(self) -> bool:
        return bool(self._digest)

    @cached_property
    def _digest(self) -> str:
        """A digest of the traced text; empty where it cannot be traced."""
        graph = Graph()
        try:
            roots = [as_node(graph, x) for part in self.inside(graph.symbol("t")) for x in part]
        except (TypeError, ValueError, AttributeError):  # the user's function wants numbers
            return ""
        nodes = [
            (i, graph.ops[i], graph.args[i], graph.payload.get(i)) for i in graph.reachable(roots)
        ]
        return hashlib.sha256(repr((nodes, roots)).encode()).hexdigest()[:32]

    def inside(self, t: Scalar) -> Texts:
        if self.v is not None and self.a is not None:
            return _numbers(self.q(t)), _numbers(self.v(t)), _numbers(self.a(t))
        return parts(_numbers(self.q(Jet(t, 1.0))))


def _numbers(values: Any) -> list[Scalar]:
    """A number or a sequence of them as a list."""
    refuse_masks("what a function of a motion gives", values)
    return list(values) if isinstance(values, (list, tuple)) else [values]


def _name(function: FunctionOfTime) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)
