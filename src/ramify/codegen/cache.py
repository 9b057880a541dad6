"""Compiled objects on disk. The cache is a place for code, so it is private, checked, and never
trusted.

An entry is used only if its directory and file belong to this user and to nobody else, and its
contents match the digest it carries and the key it was asked for. Anything else is ignored and
built anew. Entries are written to a temporary file and moved into place, so a process killed at any
moment leaves either no entry or a whole one.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

_MAGIC = b"ramify-object-1\n"
_DIGEST = 32
_SAFELY = sum(
    getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")
)  # no links, no waiting for a pipe


def directory() -> Path | None:
    """The cache's directory, made if need be; None where none can be had (or RAMIFY_CACHE_DIR is
    "off").

    A directory that is open to others is not changed; a private one inside it is used.
    """
    given = os.environ.get("RAMIFY_CACHE_DIR")
    if given == "off":
        return None
    with suppress(OSError, RuntimeError):  # RuntimeError: a user without a home
        place = Path(given).expanduser() if given else _default()
        for candidate in (place, place / "ramify"):
            candidate.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _mine(candidate.lstat(), stat.S_ISDIR):
                return candidate
    return None


def _default() -> Path:
    """Where this system keeps the caches of a user."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "ramify" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ramify"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ramify"


def _mine(status: os.stat_result, kind: object) -> bool:
    """Whether a file or directory is of the right kind, belongs to this user and is closed to
    others.
    """
    if not kind(status.st_mode):  # type: ignore[operator]
        return False
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & 0o077


def _digest(key: str, payload: bytes) -> bytes:
    return hashlib.sha256(key.encode() + payload).digest()


def has(key: str) -> bool:
    """Whether there is a file for a key."""
    place = directory()
    return place is not None and (place / f"{key}.o").is_file()


def load(key: str) -> bytes | None:
    """The object stored under a key, or None."""
    place = directory()
    if place is None:
        return None
    try:
        descriptor = os.open(place / f"{key}.o", os.O_RDONLY | _SAFELY)
        with os.fdopen(descriptor, "rb") as file:
            if not _mine(os.fstat(file.fileno()), stat.S_ISREG):
                return None
            raw = file.read()
    except OSError:
        return None
    head = len(_MAGIC) + _DIGEST
    payload = raw[head:]
    if raw[: len(_MAGIC)] != _MAGIC or raw[len(_MAGIC) : head] != _digest(key, payload):
        return None
    return payload


def store(key: str, payload: bytes) -> None:
    """Keep an object. A cache that cannot be written is no error: the object is built again next
    time. So is one that a power failure has torn, since its digest is wrong; hence no fsync.
    """
    place = directory()
    if place is None:
        return
    with suppress(OSError):
        descriptor, name = tempfile.mkstemp(prefix=".new-", dir=place)  # mode 0600
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_MAGIC + _digest(key, payload) + payload)
            os.replace(name, place / f"{key}.o")
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
