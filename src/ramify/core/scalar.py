"""Elementary functions over any scalar.

The algorithms of ramify are written over ``+ - * /`` and the functions below, never over an array
library. A scalar may be a float, a NumPy array (a batch of numbers), a traced expression, a dual
number, an mpmath number, a SymPy expression, a CasADi ``SX`` or a JAX array. A type of our own
carries the functions as methods (``x.sin()``); for the others the table names the library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Protocol, TypeAlias, cast

from ramify.core.lookup import LookupTable


class Scalar(Protocol):
    """Whatever supports ``+ - * /``, comparison and the functions of this module. A comparison is a
    condition for ``select``; only that of numbers is a bool.
    """

    def __neg__(self) -> Scalar: ...
    def __add__(self, other: Any, /) -> Scalar: ...
    def __radd__(self, other: Any, /) -> Scalar: ...
    def __sub__(self, other: Any, /) -> Scalar: ...
    def __rsub__(self, other: Any, /) -> Scalar: ...
    def __mul__(self, other: Any, /) -> Scalar: ...
    def __rmul__(self, other: Any, /) -> Scalar: ...
    def __truediv__(self, other: Any, /) -> Scalar: ...
    def __rtruediv__(self, other: Any, /) -> Scalar: ...
    def __lt__(self, other: Any, /) -> Any: ...
    def __le__(self, other: Any, /) -> Any: ...
    def __gt__(self, other: Any, /) -> Any: ...
    def __ge__(self, other: Any, /) -> Any: ...


Scalars: TypeAlias = Sequence[Scalar]

_LIBRARIES = {name: name for name in ("numpy", "sympy", "casadi", "mpmath")}
_LIBRARIES |= dict.fromkeys(("jax", "jaxlib"), "jax.numpy")
_SELECT: dict[str, Callable[..., Any]] = {
    "numpy": lambda np, c, a, b: np.where(c, a, b),
    "sympy": lambda sp, c, a, b: sp.Piecewise((a, c), (b, True)),
    "casadi": lambda ca, c, a, b: ca.if_else(c, a, b),
    "jax.numpy": lambda jnp, c, a, b: jnp.where(c, a, b),
}


def _library(x: Scalar) -> str:
    root = type(x).__module__.partition(".")[0]
    try:
        return _LIBRARIES[root]
    except KeyError:
        raise TypeError(f"{type(x).__qualname__} is not a scalar that ramify knows") from None


def _holds_objects(x: Scalar) -> bool:
    """Whether x is an array of scalars of another kind."""
    return getattr(getattr(x, "dtype", None), "kind", "") == "O"


def apply(name: str, *args: Scalar) -> Scalar:
    """A function by its name: of floats from ``math``, of the scalars of a library from there, of a
    type of our own its method ``_name_``, or ``_apply_`` for all names.
    """
    lead = next((x for x in args if not isinstance(x, (float, int))), None)
    if lead is None:
        return getattr(math, name)(*args)
    if hasattr(lead, f"_{name}_"):
        return getattr(lead, f"_{name}_")(*args)
    if hasattr(lead, "_apply_"):
        return lead._apply_(name, *args)
    library = import_module(_library(lead))
    if _holds_objects(lead):
        return library.frompyfunc(lambda *xs: apply(name, *xs), len(args), 1)(*args)
    if name == "atan2" and library.__name__ in ("numpy", "jax.numpy"):
        name = "arctan2"
    return getattr(library, name)(*args)


def number(x: Scalar) -> float:
    """A scalar that is known to be a number where it is used, unchanged."""
    return cast(float, x)


def may_be_nonzero(x: Scalar) -> bool:
    """Whether a number may differ from zero: all that are not known beforehand may."""
    return not isinstance(x, (float, int)) or x != 0.0


def sin(x: Scalar) -> Scalar:
    """Sine of an angle in radians."""
    return apply("sin", x)


def cos(x: Scalar) -> Scalar:
    """Cosine of an angle in radians."""
    return apply("cos", x)


def sqrt(x: Scalar) -> Scalar:
    """Square root."""
    return apply("sqrt", x)


def floor(x: Scalar) -> Scalar:
    """The largest whole number that does not exceed x."""
    return float(math.floor(x)) if isinstance(x, (float, int)) else apply("floor", x)


def atan2(y: Scalar, x: Scalar) -> Scalar:
    """Angle in radians of the point (x, y)."""
    return apply("atan2", y, x)


def lookup(table: LookupTable, place: Scalar) -> Scalar:
    """The entry of a table at a whole number; the first or the last one beyond its ends."""
    if isinstance(place, (float, int)):
        return float(table.values[int(min(place, len(table) - 1)) if place > 0.0 else 0])
    if hasattr(place, "_lookup_"):
        return place._lookup_(table)
    name = _library(place)
    if _holds_objects(place):
        return import_module("numpy").frompyfunc(lambda x: lookup(table, x), 1, 1)(place)
    if name in ("numpy", "jax.numpy"):
        library = import_module(name)
        at = library.clip(place, 0.0, len(table) - 1.0).astype(int)
        return library.asarray(table.values)[at]
    return _chosen(table.values.tolist(), place, 0)


def _chosen(values: list[float], place: Scalar, first: int) -> Scalar:
    """The entry by halving, for scalars that have no memory."""
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    low = _chosen(values[:middle], place, first)
    high = _chosen(values[middle:], place, first + middle)
    return select(place < first + middle, low, high)


def select(condition: Scalar, if_true: Scalar, if_false: Scalar) -> Scalar:
    """``if_true`` where ``condition`` holds, else ``if_false``; both are evaluated."""
    if isinstance(condition, (bool, int)):
        return if_true if condition else if_false
    if _holds_objects(condition):
        return import_module("numpy").frompyfunc(select, 3, 1)(condition, if_true, if_false)
    for branch in (if_true, if_false):
        if hasattr(branch, "_selected_"):
            return branch._selected_(condition, if_true, if_false)
    if hasattr(condition, "_select_"):
        return condition._select_(if_true, if_false)
    name = _library(condition)
    return _SELECT[name](import_module(name), condition, if_true, if_false)


def minimum(a: Scalar, b: Scalar) -> Scalar:
    """The smaller of two."""
    return select(a < b, a, b)


def maximum(a: Scalar, b: Scalar) -> Scalar:
    """The larger of two."""
    return select(a > b, a, b)


def absolute(x: Scalar) -> Scalar:
    """|x|."""
    return maximum(x, -x)


def clip(x: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """x, at least ``low`` and at most ``high``."""
    return select(x > low, select(x < high, x, high), low)
