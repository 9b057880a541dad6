"""How messages quote values and names, and what they suggest for a name that does not exist."""

from __future__ import annotations

from difflib import get_close_matches
from numbers import Real
from typing import Final

_LONG: Final = 10_000
"""Bits of a whole number beyond which Python may refuse to write its digits."""


def shown(value: object, most: int = 48) -> str:
    """A value as a message quotes it: shortened where it is long."""
    text = repr(value) if isinstance(value, str) else _kind(value)
    if isinstance(value, int) and value.bit_length() > _LONG:
        return f"a whole number of about {value.bit_length() * 0.30103:.0f} digits"
    text = f"{value}" if isinstance(value, Real) else text
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    for kind, text in ((dict, "mapping"), (list, "list")):
        if isinstance(value, kind):
            return f"a {text}" if value else f"an empty {text}"
    return type(value).__name__


def nearest_name(name: str, names: list[str]) -> str | None:
    """The known name that is probably meant, if there is one."""
    found = get_close_matches(str(name)[:80], names[:1000], n=1, cutoff=0.6)
    return found[0] if found else None


def near(name: str, names: list[str]) -> str:
    """``"; did you mean 'mass'?"``, or what there is to choose from."""
    found = nearest_name(name, names)
    if found is not None:
        return f"; did you mean {found!r}?"
    more = ", ..." if len(names) > 12 else ""
    return f"; there are {', '.join(names[:12])}{more}" if names else ""


def degrees(count: int) -> str:
    """``"1 degree of freedom"``, ``"2 degrees of freedom"``."""
    return f"{count} degree{'' if count == 1 else 's'} of freedom"


def pretty(unit: str) -> str:
    """A unit as it is printed."""
    return "–" if unit == "1" else unit.replace("^2", "²").replace(" ", "·")
