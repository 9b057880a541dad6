"""From LLVM text to a function in memory, through the cache."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Final

from ramify.codegen import cache as disk
from ramify.codegen.keys import object_key
from ramify.codegen.target import Target, llvm, machine

LOCK: Final = threading.RLock()
"""Held by whoever compiles. A process that forks takes it first, so that no child inherits a
compiler at work.
"""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release
    )


class Compiled:
    """A loaded object; its functions live as long as it does."""

    def __init__(self, engine: Any, name: str) -> None:
        self._engine = engine
        self.address: int = engine.get_function_address(name)


def compiled(
    text: Callable[[], str], name: str, target: Target, fingerprint: str, optimise: int = 2
) -> Compiled:
    """The function ``name`` of an LLVM module. ``text`` is asked for only where the cache has no
    object for the fingerprint.
    """
    with LOCK:
        key = object_key(name, target, fingerprint, optimise)
        payload = disk.load(key)
        if payload is None:
            payload = _build(text(), target, optimise)
            disk.store(key, payload)
        return Compiled(_load(payload, target), name)


def is_cached(name: str, target: Target, fingerprint: str, optimise: int = 2) -> bool:
    """Whether the cache has a file for a function (which may still prove damaged)."""
    with LOCK:
        return disk.has(object_key(name, target, fingerprint, optimise))


def compile_text(text: str, name: str, target: Target) -> Compiled:
    """A function that is not worth keeping (it holds addresses of this process)."""
    with LOCK:
        return Compiled(_load(_build(text, target, 1), target), name)


def _build(text: str, target: Target, optimise: int) -> bytes:
    with LOCK:
        binding = llvm()
        module = binding.parse_assembly(text)
        module.triple = binding.get_process_triple()
        return bytes(machine(target, optimise).emit_object(module))


def _load(payload: bytes, target: Target) -> Any:
    with LOCK:
        binding = llvm()
        engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine(target, 0))
        engine.add_object_file(binding.ObjectFileRef.from_data(payload))
        engine.finalize_object()
    return engine
