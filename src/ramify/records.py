"""Records: dataclasses of scalars and records, taken apart into a flat list and put together again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from ramify.scalar import Scalar


def flatten(record: Any) -> list[Scalar]:
    """The scalars of a record, depth first; a scalar is its own record, a tuple is a record of its items."""
    if isinstance(record, (tuple, list)):
        return [x for item in record for x in flatten(item)]
    if is_dataclass(record):
        return [x for f in fields(record) for x in flatten(getattr(record, f.name))]
    return [record]


def rebuild(template: Any, scalars: Iterator[Scalar]) -> Any:
    """A record of the template's shape from the next scalars."""
    if isinstance(template, (tuple, list)):
        return tuple(rebuild(item, scalars) for item in template)
    if is_dataclass(template):
        make: Any = type(template)
        return make(*(rebuild(getattr(template, f.name), scalars) for f in fields(template)))
    return next(scalars)


def add(a: Any, b: Any) -> Any:
    """Sum of two records of one shape."""
    return rebuild(a, iter([x + y for x, y in zip(flatten(a), flatten(b), strict=True)]))
