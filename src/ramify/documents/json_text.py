"""JSON that somebody may have damaged or crafted: read whole, and checked for the kinds of its
entries.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from sys import float_info
from typing import Any

Kind = Callable[[object], bool]
"""Whether an entry is of a kind."""


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError for what is not JSON, and for what Python reads
    and could not write again: NaN, 1e999, half a surrogate pair, great depth.
    """
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as error:
        raise ValueError(str(error)[:200]) from None
    return value


def is_text(x: object) -> bool:
    """A text."""
    return isinstance(x, str)


def is_number(x: object) -> bool:
    """A finite number; True and False are none."""
    return isinstance(x, int | float) and not isinstance(x, bool) and abs(x) <= float_info.max


def is_flag(x: object) -> bool:
    """True or False."""
    return isinstance(x, bool)


def is_whole(least: int, most: int = 2**63 - 1) -> Kind:
    """A whole number from ``least`` to ``most``."""
    return lambda x: isinstance(x, int) and not isinstance(x, bool) and least <= x <= most


def optional(kind: Kind) -> Kind:
    """None, or an entry of a kind."""
    return lambda x: x is None or kind(x)


def list_of(kind: Kind, length: int | None = None) -> Kind:
    """A list whose entries are all of a kind."""
    return lambda x: isinstance(x, list) and length in (None, len(x)) and all(map(kind, x))


def mapping_to(kind: Kind) -> Kind:
    """A mapping whose values are all of a kind."""
    return lambda x: isinstance(x, dict) and all(map(kind, x.values()))


def record(**kinds: Kind) -> Kind:
    """A mapping with exactly these keys, each value of its kind."""
    return lambda x: (
        isinstance(x, dict) and x.keys() == kinds.keys() and all(kinds[k](v) for k, v in x.items())
    )


def is_names(x: object) -> bool:
    """A list of texts, none of them twice."""
    return list_of(is_text)(x) and len(set(x)) == len(x)  # type: ignore[arg-type, call-overload]
