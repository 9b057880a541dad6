"""What a fork waits for, so that no child process inherits a lock that a thread of its parent has
taken: a thread that compiles, a thread that imports.

``import ramify`` brings this in first: handlers that are registered while a process forks would be
called after the fork, but not before it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from importlib import import_module
from types import ModuleType
from typing import Any, Final

LOCK: Final = threading.RLock()
"""Held during every call into LLVM, also those that free its objects. A process that forks takes it
first, so that no child inherits LLVM at work, nor the lock that llvmlite holds meanwhile.
"""
_LIBRARIES: Final = frozenset({"ramify", "numpy", "scipy", "llvmlite", "ruamel", "lxml"})
"""Packages that are imported on first use and that a child needs."""
_LONGEST: Final = 10.0
"""Seconds that a fork waits for an import in another thread, which may itself be waiting for the
thread that forks.
"""
_importing = threading.RLock()
_taken: list[Any] = []


def imported(name: str) -> ModuleType:
    """A module that is imported on first use. A process that forks waits until it is complete: a
    child would wait forever for an import that another thread of its parent had begun.
    """
    with _importing:
        return import_module(name)


def _half_imported() -> bool:
    """Whether some thread is importing one of the libraries: it holds the lock of a module, first
    while it looks for the file, then while the module is initialised.
    """
    locks = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    locked = [name for name, lock in list(locks.items()) if lock() is not None]
    begun = [
        name
        for name, module in list(sys.modules.items())
        if getattr(getattr(module, "__dict__", {}).get("__spec__"), "_initializing", False)
    ]
    return any(name.partition(".")[0] in _LIBRARIES for name in (*locked, *begun))


def _before() -> None:
    end = time.monotonic() + _LONGEST
    if _importing.acquire(timeout=_LONGEST):
        _taken.append(_importing)
    LOCK.acquire()
    while threading.active_count() > 1 and _half_imported() and time.monotonic() < end:
        LOCK.release()  # the thread that imports may need it
        time.sleep(0.001)
        LOCK.acquire()
    _taken.append(LOCK)


def _release() -> None:
    while _taken:
        _taken.pop().release()


def _in_child() -> None:
    global _importing
    _release()
    _importing = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_in_child)
