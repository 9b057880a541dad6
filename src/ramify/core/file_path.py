"""Paths that users give."""

from __future__ import annotations

import os
from pathlib import Path

from ramify.core.errors import RamifyError
from ramify.core.messages import shown


def path_of(value: object, error: type[RamifyError] = RamifyError) -> Path:
    """A path; raises ``error`` for what cannot be one."""
    try:
        text = os.fspath(value)  # type: ignore[call-overload]
        if not isinstance(text, str):
            raise TypeError
        text.encode()
    except (TypeError, UnicodeError):
        raise error(f"a path must be a text or a pathlib.Path; got {shown(value)}") from None
    if "\0" in text:
        raise error(f"{shown(value)} cannot be read or written: no path holds a NUL character")
    return Path(text)
