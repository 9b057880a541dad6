"""Compiled objects on disk. The cache is a place for code, so it is private, checked, and never
trusted.

An entry is used only if its directory and file belong to this user and to nobody else, and its
contents match the digest it carries and the key it was asked for. Anything else is ignored and
built anew. Entries are written to a temporary file and moved into place, so a process killed at any
moment leaves either no entry or a whole one.

The cache has a size limit (RAMIFY_CACHE_SIZE in MB). Beyond it the entries that were not used for
the longest time are removed; a process that misses one builds it again.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from ramify.core.errors import RamifyError

_MAGIC = b"ramify-object-1\n"
_DIGEST = 32
_SAFELY = sum(
    getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")
)  # no links, no waiting for a pipe


_LIMIT_MB: Final = 1024.0
_KEPT: Final = 0.8
"""Part of the limit that is left when entries are removed, so that this is rare."""
_STORES: Final = 64
"""A process looks at the size with its first entry, and again after this number of entries."""
_HOUR: Final = 3600.0
_stores = count()


@dataclass(frozen=True)
class CacheState:
    """What the cache of compiled code holds: its folder (None: there is none), the number of its
    entries, their size and the limit, bytes.
    """

    folder: Path | None
    entries: int
    size: int
    limit: int


def limit() -> int:
    """The size, bytes, beyond which entries are removed: RAMIFY_CACHE_SIZE, MB, or 1024 MB."""
    text = os.environ.get("RAMIFY_CACHE_SIZE") or str(_LIMIT_MB)
    try:
        megabytes = float(text)
    except ValueError:
        megabytes = -1.0
    if not 0.0 <= megabytes < 1e9:
        raise RamifyError(f"RAMIFY_CACHE_SIZE={text!r} must be a number of megabytes, 0 or more")
    return int(1e6 * megabytes)


def _entries(place: Path) -> list[tuple[float, int, str]]:
    """Last use, size and path of every entry, and of files that a killed process has left."""
    entries = []
    with suppress(OSError), os.scandir(place) as files:
        for file in files:
            left = file.name.startswith(".new-")
            if not left and not file.name.endswith(".o"):
                continue
            with suppress(OSError):  # another process may have removed it
                status = file.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode) and not (
                    left and time.time() - status.st_mtime < _HOUR
                ):
                    entries.append((0.0 if left else status.st_mtime, status.st_size, file.path))
    return entries


def state() -> CacheState:
    """The state of the cache."""
    place = directory()
    entries = [] if place is None else _entries(place)
    return CacheState(place, len(entries), sum(size for _, size, _ in entries), limit())


def shrink(most: int) -> CacheState:
    """Remove the entries that were not used for the longest time until ``most`` bytes are left;
    gives what was removed. Several processes may do so at once.
    """
    place = directory()
    entries = sorted([] if place is None else _entries(place))
    total, removed, released = sum(size for _, size, _ in entries), 0, 0
    for _, size, path in entries:
        if total - released <= most:
            break
        with suppress(OSError):  # removed already, or in use on Windows
            os.unlink(path)
            removed, released = removed + 1, released + size
    return CacheState(place, removed, released, limit())


def directory() -> Path | None:
    """The cache's directory, made if need be; None where none can be had (or RAMIFY_CACHE_DIR is
    "off").

    A directory that is open to others is not changed; a private one inside it is used.
    """
    setting = os.environ.get("RAMIFY_CACHE_DIR")
    if setting == "off":
        return None
    with suppress(OSError, RuntimeError):  # RuntimeError: a user without a home
        place = Path(setting).expanduser() if setting else _default()
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


def has_object(key: str) -> bool:
    """Whether there is a file for a key."""
    place = directory()
    return place is not None and (place / f"{key}.o").is_file()


def load_object(key: str) -> bytes | None:
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
            if time.time() - os.fstat(file.fileno()).st_mtime > _HOUR / 60.0:
                with suppress(OSError):  # it was used now
                    os.utime(place / f"{key}.o")
    except OSError:
        return None
    head = len(_MAGIC) + _DIGEST
    payload = raw[head:]
    if raw[: len(_MAGIC)] != _MAGIC or raw[len(_MAGIC) : head] != _digest(key, payload):
        return None
    return payload


def store_object(key: str, payload: bytes) -> None:
    """Store an object. A cache that cannot be written is not an error: the object is built again
    next time. So is one that a power failure has torn, since its digest is wrong; hence no fsync.
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
    if next(_stores) % _STORES == 0 and state().size > limit():
        shrink(int(_KEPT * limit()))
