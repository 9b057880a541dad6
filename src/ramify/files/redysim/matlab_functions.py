"""Operators and functions of ReDySim's MATLAB files on floats and two-dimensional arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from ramify.core.arrays import Array
from ramify.core.bounds import LARGEST
from ramify.documents.expression import FUNCTIONS

Value = float | Array


class RefusedError(ValueError):
    """An operation that has no value; the statement is named where it is caught."""


class Budget(Protocol):
    """What an operation is paid from."""

    def pay(self, price: float) -> None: ...
    def make_room(self, height: int, width: int) -> None: ...


def matrix(value: Value) -> Array:
    return np.array([[value]]) if isinstance(value, float) else value


def float_if_single(value: Array) -> Value:
    """A float in place of a matrix with one entry."""
    return float(value[0, 0]) if value.shape == (1, 1) else value


def matlab_number(value: Value) -> float:
    if not isinstance(value, float):
        raise RefusedError(f"expected a number, not {value.shape[0]} x {value.shape[1]} of them")
    return value


def is_true(value: Value) -> bool:
    """As ``if`` reads it: every entry differs from zero, and there is one."""
    entries = matrix(value)
    return bool(entries.size and entries.all())


def bounded(budget: Budget, value: Value) -> Value:
    """The value, unless an entry is not finite or too large."""
    if isinstance(value, float):
        good = abs(value) <= LARGEST
    else:
        budget.pay(value.size / 100.0)
        good = bool((np.abs(value) <= LARGEST).all())
    if not good:
        raise RefusedError(f"a number that is not finite, or above {LARGEST:.0e}")
    return value


# ---- operators ----

_BY_ENTRY: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "^": operator.pow, "\\": lambda a, b: b / a,
    "==": operator.eq, "~=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
    "&": lambda a, b: (a != 0.0) & (b != 0.0), "|": lambda a, b: (a != 0.0) | (b != 0.0),
}  # fmt: skip


def binary(budget: Budget, op: str, left: Value, right: Value) -> Value:
    """``left op right`` as MATLAB has it: * / and \\ of matrices are products and solutions."""
    entrywise = _BY_ENTRY[op.removeprefix(".")]
    if isinstance(left, float) and isinstance(right, float):
        if op[-1:] == "^" and (abs(right) > 1000.0 or (left < 0.0 and right != int(right))):
            raise RefusedError(f"{left:g} ^ {right:g} is not a real number of sensible size")
        return float(entrywise(left, right))
    if op == "^":
        raise RefusedError("^ is meant for matrices here, which is not known; write .^ for entries")
    if op == "/" and not isinstance(right, float):
        return float_if_single(np.atleast_2d(_solved(budget, right.T, matrix(left).T)).T)
    if op == "\\" and not isinstance(left, float):
        return float_if_single(_solved(budget, left, matrix(right)))
    if not isinstance(left, float) and not isinstance(right, float):
        if op == "*":
            return _product(budget, left, right)
        if left.shape != right.shape:
            shapes = " and ".join(f"{a.shape[0]} x {a.shape[1]}" for a in (left, right))
            raise RefusedError(f"vectors of {shapes} have different shapes")
    with np.errstate(all="ignore"):
        return np.asarray(entrywise(left, right), dtype=np.float64)


def _product(budget: Budget, left: Array, right: Array) -> Value:
    """The product of two matrices, of a row and a column among them."""
    (height, inner), (other, width) = left.shape, right.shape
    if inner != other:
        text = f"a {height} x {inner} and a {other} x {width} matrix have no product"
        raise RefusedError(f"{text}; write .* to go by elements")
    budget.make_room(height, width)
    budget.pay(height * inner * width / 100.0)
    with np.errstate(all="ignore"):
        return float_if_single(np.asarray(left @ right, dtype=np.float64))


def _solved(budget: Budget, left: Array, right: Array) -> Array:
    """left \\ right: the solution, or the least squares of more equations than unknowns."""
    (height, width), (other, columns) = left.shape, right.shape
    if height != other or height < width:
        text = f"{height} x {width} \\ {other} x {columns} has no one solution"
        raise RefusedError(f"{text}; \\ and / of matrices need as many equations as unknowns")
    budget.make_room(width, columns)
    budget.pay(height * width * (width + columns) / 10.0)
    found, _, rank, _ = np.linalg.lstsq(left, right, rcond=None)
    if rank < width:
        raise RefusedError(f"a matrix of rank {rank} with {width} unknowns has no one solution")
    solution = np.linalg.solve(left, right) if height == width else found
    return np.asarray(solution, dtype=np.float64)


# ---- functions ----

_ENTRY_BY_ENTRY: Final = {
    name: FUNCTIONS[name] for name in ("sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "abs")
} | {
    "deg2rad": math.radians, "rad2deg": math.degrees, "exp": math.exp,
    "floor": math.floor, "ceil": math.ceil,
}  # fmt: skip
_PAIRED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "atan2": np.arctan2,
    "rem": np.fmod,
    "mod": lambda x, y: np.where(y == 0.0, x, np.mod(x, y)),
}
_SIZED: Final = {"zeros": 0.0, "ones": 1.0}
_WHOLE: Final[Mapping[str, Callable[[Array], float]]] = {
    "length": lambda a: float(max(a.shape) if a.size else 0),
    "numel": lambda a: float(a.size),
}
_BY_COLUMN: Final[Mapping[str, Callable[..., Any]]] = {"sum": np.sum, "max": np.max, "min": np.min}
KNOWN: Final = (
    *_ENTRY_BY_ENTRY, *_SIZED, *_WHOLE, *_BY_COLUMN, *_PAIRED, "linspace", "repmat"
)  # fmt: skip
"""Functions that an ``inputs.m`` may call."""


def function(budget: Budget, name: str, values: Sequence[Value]) -> Value:
    """The value of one of the KNOWN functions."""
    if len(values) == 1 and name not in _SIZED:
        return _of_one(budget, name, matrix(values[0]))
    if name in _SIZED and 1 <= len(values) <= 2:
        sizes = [matlab_number(value) for value in values] * (3 - len(values))
        height, width = (int(x) if x == math.floor(x) else -1 for x in sizes)
        budget.make_room(height, width)
        return float_if_single(np.full((height, width), _SIZED[name]))
    if name in _PAIRED and len(values) == 2:
        y, x = np.broadcast_arrays(*map(matrix, values))
        budget.pay(y.size / 2.0)
        with np.errstate(all="ignore"):
            return bounded(
                budget, float_if_single(np.asarray(_PAIRED[name](y, x), dtype=np.float64))
            )
    if name == "linspace" and 2 <= len(values) <= 3:
        first, last, count = [*map(matlab_number, values), 100.0][:3]
        budget.make_room(1, int(count))
        return float_if_single(np.linspace(first, last, int(count)).reshape(1, -1))
    if name == "repmat" and 2 <= len(values) <= 3:
        a, times = matrix(values[0]), [int(matlab_number(value)) for value in values[1:]]
        times = times * (3 - len(times))
        budget.make_room(a.shape[0] * times[0], a.shape[1] * times[1])
        return float_if_single(np.tile(a, times))
    raise RefusedError(f"{name} does not take {len(values)} arguments here")


def _of_one(budget: Budget, name: str, a: Array) -> Value:
    if name in _WHOLE:
        return _WHOLE[name](a)
    if name in _BY_COLUMN:
        columns = a if min(a.shape) > 1 else a.reshape(-1, 1)  # also a row is one run
        budget.pay(a.size / 100.0)
        return bounded(budget, float_if_single(_BY_COLUMN[name](columns, axis=0, keepdims=True)))
    if name in _ENTRY_BY_ENTRY:
        budget.pay(a.size / 2.0)
        found = [float(_ENTRY_BY_ENTRY[name](float(x))) for x in a.ravel()]
        return bounded(budget, float_if_single(np.array(found).reshape(a.shape)))
    raise RefusedError(f"{name} does not take 1 argument here")
