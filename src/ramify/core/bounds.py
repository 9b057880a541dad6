"""The bound of all numbers in a robot, whatever file or call they come from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

LARGEST: Final = 1e30
"""Numbers of a robot stay below this, so that products of a few of them stay finite."""

TOO_LARGE: Final = f"is too large; numbers here stay below {LARGEST:.0e}"


ENDLESS: Final = frozenset(
    ("limits", "effort", "backward_effort", "velocity", "cone", "command", "force", "activations")
)
"""Fields of a robot that may be infinite: ranges and ratings, of which there may be none."""


def out_of_bounds(record: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, float]]:
    """(path, value) of the numbers in a record that are NaN, above ``LARGEST``, or infinite where
    they may not be, through dataclasses, mappings, sequences and arrays; entries with a name are
    called by it.
    """
    if isinstance(record, float):
        endless = "keyframes" not in path and not ENDLESS.isdisjoint(path)
        if not (abs(record) <= LARGEST or (endless and math.isinf(record))):
            yield ".".join(path), record
    elif hasattr(record, "dtype"):  # an array; the command line starts without NumPy
        if record.dtype.kind == "f" and not (abs(record) <= LARGEST).all():
            for x in record.ravel().tolist():
                yield from out_of_bounds(x, path)
    elif is_dataclass(record) and not isinstance(record, type):
        for f in fields(record):
            yield from out_of_bounds(getattr(record, f.name), (*path, f.name))
    elif isinstance(record, Mapping):
        for key, value in record.items():
            yield from out_of_bounds(value, (*path, str(key)))
    elif isinstance(record, list | tuple):
        for i, value in enumerate(record):
            own = getattr(value, "name", None)
            name = f"{own!r}" if isinstance(own, str) else str(i)
            yield from out_of_bounds(value, (*path, name) if len(record) > 1 or own else path)
