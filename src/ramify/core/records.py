"""Records: dataclasses of scalars and records, taken apart into a flat list and put together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from ramify.core.scalar import Scalar


@cache
def _names(kind: Any) -> tuple[str, ...] | None:
    """The fields of a dataclass; None for any other type."""
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else None


def flatten(record: Any) -> list[Scalar]:
    """The scalars of a record, depth first; a scalar is its own record, a tuple is a record of its
    items.
    """
    out: list[Scalar] = []
    _collect(record, out)
    return out


def _collect(record: Any, out: list[Scalar]) -> None:
    kind: Any = type(record)
    if isinstance(record, (tuple, list)):
        for item in record:
            _collect(item, out)
    elif (names := _names(kind)) is None:
        out.append(record)
    else:
        for name in names:
            _collect(getattr(record, name), out)


def rebuild(template: Any, scalars: Iterator[Scalar]) -> Any:
    """A record of the template's shape from the next scalars."""
    if isinstance(template, (tuple, list)):
        return tuple(rebuild(item, scalars) for item in template)
    make: Any = type(template)
    names = _names(make)
    if names is not None:
        return make(*(rebuild(getattr(template, name), scalars) for name in names))
    return next(scalars)


def add(a: Any, b: Any) -> Any:
    """Sum of two records of one shape."""
    return rebuild(a, iter([x + y for x, y in zip(flatten(a), flatten(b), strict=True)]))


def ships_with_ramify(part: Any) -> bool:
    """Whether a controller, a ground and all it is made of come with ramify, so that their reprs
    say all there is.
    """
    if isinstance(part, (tuple, list)):
        return bool(part and isinstance(part[0], float)) or all(map(ships_with_ramify, part))
    if not is_dataclass(part):
        return True
    return type(part).__module__.startswith("ramify.") and all(
        ships_with_ramify(getattr(part, f.name)) for f in fields(part)
    )


def settle(record: object, **values: object) -> None:
    """Set fields of a frozen record while it is made."""
    for name, value in values.items():
        object.__setattr__(record, name, value)
