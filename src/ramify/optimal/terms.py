"""Terms of a cost: residuals with a weight and a name, over any scalar.

A cost is half the sum of the squares of its residuals. What a function of a user returns is read
here; anything that is not a list of residuals is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ramify.core.errors import StateError
from ramify.core.messages import shown
from ramify.core.scalar import Scalar, Scalars, sqrt
from ramify.trace.graph import Expr


@dataclass(frozen=True)
class Term:
    """Residuals whose squares are summed under one name."""

    name: str
    residuals: tuple[Scalar, ...]


def weighted(weight: Any, residuals: Any, name: str = "") -> list[Term]:
    """A term of a cost, weight / 2 times the sum of the squares of some residuals.

    weight: a number that is not negative, a parameter of the knot, or one of them for each
    residual. residuals: a list of scalars, or one scalar. Terms are added as lists: ``weighted(…) +
    weighted(…)``. name: what the results call the term.
    """
    values = list(residuals) if _is_list(residuals) else [residuals]
    weights = list(weight) if _is_list(weight) else [weight] * len(values)
    if len(weights) != len(values):
        raise StateError(
            f"weighted: {len(weights)} weights for {len(values)} residuals; give one weight, or "
            "one for each residual"
        )
    for w in weights:
        if isinstance(w, (float, int)) and not (w >= 0.0 and w < float("inf")):
            raise StateError(f"weighted: the weight {w!r} must be finite and not negative")
    roots = [float(w) ** 0.5 if isinstance(w, (float, int)) else sqrt(w) for w in weights]
    return [Term(name, tuple(r * x for r, x in zip(roots, values, strict=True)))]


def read_terms(what: str, returned: Any) -> list[Term]:
    """What a cost function has returned, as terms with names; StateError for anything else."""
    if not _is_list(returned):
        raise StateError(
            f"{what} must return a list of residuals, whose squares are summed; it returned "
            f"{_described(returned)}. Return [x] for the cost x * x / 2, or weighted(w, [x])"
        )
    terms: list[Term] = []
    for i, item in enumerate(returned):
        if isinstance(item, Term):
            terms.append(Term(item.name or f"{what}[{i}]", item.residuals))
        else:
            terms.append(Term(f"{what}[{i}]", (item,)))
        for x in terms[-1].residuals:
            _check_scalar(terms[-1].name, x)
    if not any(term.residuals for term in terms):
        raise StateError(f"{what} returned no residuals: nothing is to be minimised")
    return _distinct(terms)


def read_constraints(what: str, returned: Any) -> list[Scalar]:
    """What a function of constraints has returned: scalars that are to be at most zero."""
    if not _is_list(returned):
        raise StateError(
            f"{what} must return a list of scalars, each to be at most 0; it returned "
            f"{_described(returned)}"
        )
    values = list(returned)
    for i, x in enumerate(values):
        _check_scalar(f"{what}[{i}]", x)
    return values


def call(what: str, function: Callable[[Any], Any], stage: Any) -> Any:
    """What a function of a user gives for a knot; StateError for one that needs numbers."""
    try:
        return function(stage)
    except TypeError as error:
        if "truth value" in str(error) or "Expr" in str(error):
            raise StateError(
                f"{what} cannot be traced: {error}. Write it over the scalars of the knot, with "
                "ramify.core.scalar's sin, cos, sqrt, atan2 and select"
            ) from error
        raise


def _distinct(terms: Sequence[Term]) -> list[Term]:
    """Terms of the same name are one term."""
    by_name: dict[str, list[Scalar]] = {}
    for term in terms:
        by_name.setdefault(term.name, []).extend(term.residuals)
    return [Term(name, tuple(residuals)) for name, residuals in by_name.items()]


def _is_list(x: Any) -> bool:
    return isinstance(x, (list, tuple)) or (isinstance(x, np.ndarray) and x.ndim > 0)


def _check_scalar(name: str, x: Any) -> None:
    if isinstance(x, (bool, str)) or not hasattr(x, "__mul__") or _is_list(x):
        raise StateError(f"{name} must be a scalar; it is {_described(x)}")
    if isinstance(x, (float, int, np.floating)) and not np.isfinite(x):
        raise StateError(f"{name} is {x}, whatever the state; it must be finite")


def _described(x: Any) -> str:
    if isinstance(x, Expr):
        return "a single scalar"
    if isinstance(x, Term):
        return "a term of a cost"
    return "None" if x is None else f"a {type(x).__name__}, {shown(x)}"


def half_square(residuals: Scalars) -> Scalar:
    """Half the sum of the squares."""
    total: Scalar = 0.0
    for x in residuals:
        total = total + x * x
    return 0.5 * total
