"""From LLVM text to a function in memory, through the cache."""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from ramify.core.cached import cached_property
from ramify.core.forks import LOCK
from ramify.emit.cpu_target import CpuTarget
from ramify.emit.writer import InOrder
from ramify.runtime import cache as disk
from ramify.runtime.cache_keys import object_key
from ramify.runtime.target import code_generator, llvm

_retired: Final[deque[Any]] = deque()
"""Objects whose functions can no longer be called, until LLVM is free to dispose of them."""
_numbers: Final = count()


class Compiled:
    """A loaded object; its functions live as long as it does."""

    def __init__(self, payload: bytes, name: str) -> None:
        """Under LOCK."""
        _dispose()
        self._linker = _Linker.current()
        library = llvm().JITLibraryBuilder().add_object_img(payload).add_current_process()
        symbols = library.export_symbol(name).link(self._linker.jit, f"object {next(_numbers)}")
        self.address: int = symbols[name]
        self._symbols = [symbols]  # the object goes with the first of them that is disposed of
        self._linker.living += 1
        weakref.finalize(self, _retire, self._symbols, self._linker).atexit = False

    def function(self, name: str) -> int:
        """The address of another function of the same object, or of a global array."""
        with LOCK:
            symbols = self._linker.jit.lookup(self._symbols[0].name, name)
            self._symbols.append(symbols)
            return int(symbols[name])

    def fill(self, name: str, words: Sequence[int]) -> None:
        """Write whole numbers of 64 bits into a global array of the object."""
        place = self.function(name)
        for i, word in enumerate(words):
            ctypes.c_uint64.from_address(place + 8 * i).value = word


def aligned_address(memory: NDArray[np.float64]) -> int:
    """The first address of a piece of memory on a 64-byte boundary."""
    return int(memory.ctypes.data + 63) // 64 * 64


@dataclass(frozen=True)
class FunctionPointer:
    """A kernel's function: its address, that of the robot's numbers where it takes some, the
    doubles of scratch memory that it needs, and what keeps all this alive.
    """

    address: int
    robot: int = 0
    doubles: int = 0
    keep: object = None

    @cached_property
    def arguments(self) -> tuple[int, ...]:
        """The arguments after inputs and outputs, with scratch memory of this object."""
        robot = (self.robot,) if self.robot else ()
        return (*robot, aligned_address(self._memory)) if self.doubles else robot

    @cached_property
    def _memory(self) -> NDArray[np.float64]:
        return np.empty(self.doubles + 8)


def _retire(symbols: list[Any], linker: _Linker) -> None:
    """Dispose of an object now or, where LLVM is at work in another thread, with the next build."""
    _retired.append((symbols, linker))
    if LOCK.acquire(blocking=False):
        try:
            _dispose()
        finally:
            LOCK.release()


def _dispose() -> None:
    """Under LOCK, and explicitly: a last reference may be dropped anywhere."""
    while _retired:
        found, linker = _retired.pop()
        for tracker in reversed(found):
            tracker.close()
        linker.living -= 1
        linker.close_if_done()


class _Linker:
    """Under LOCK: what loads objects. LLVM's JITLink maps the sections of an object side by side.
    Its older linker maps each wherever there is room; in a process with little of it, code and
    constants can then be too far apart to reach.

    A linker keeps about 10 kB of every object that it has ever loaded. After some objects another
    one takes over, and the first goes with the last of its objects.
    """

    MOST: Final = 200
    _current: ClassVar[_Linker | None] = None

    def __init__(self) -> None:
        self.jit = llvm().create_lljit_compiler(use_jit_link=sys.platform != "win32")
        self.jit._owned = True  # by the process: when Python ends, objects may be let go after it
        self.loaded = self.living = 0

    @classmethod
    def current(cls) -> _Linker:
        """The linker of the next object."""
        linker = cls._current
        if linker is None or linker.loaded >= cls.MOST:
            cls._current = cls()
            if linker is not None:
                linker.close_if_done()
            linker = cls._current
        linker.loaded += 1
        return linker

    def close_if_done(self) -> None:
        """Let the linker go where another one has taken over and none of its objects is left."""
        if self.living == 0 and self is not _Linker._current:
            self.jit._owned = False
            self.jit.close()


def compiled(
    text: Callable[[], str], name: str, target: CpuTarget, fingerprint: str, optimise: int = 2
) -> Compiled:
    """The function ``name`` of an LLVM module. ``text`` is asked for only where the cache has no
    object for the fingerprint.
    """
    with LOCK:
        key = object_key(name, target, fingerprint, optimise)
        payload = disk.load_object(key)
        if payload is None:
            payload = _build(text(), target, optimise)
            disk.store_object(key, payload)
        return Compiled(payload, name)


def is_cached(name: str, target: CpuTarget, fingerprint: str, optimise: int = 2) -> bool:
    """Whether the cache has a file for a function (which may still prove damaged)."""
    with LOCK:
        return disk.has_object(object_key(name, target, fingerprint, optimise))


def compile_text(text: str, name: str, target: CpuTarget) -> Compiled:
    """A function that is not cached, as it contains addresses of this process."""
    with LOCK:
        return Compiled(_build(text, target, 1), name)


def _build(text: str, target: CpuTarget, optimise: int) -> bytes:
    """Under LOCK, as whatever it makes is disposed of when it returns."""
    binding = llvm()
    context = binding.create_context()  # which holds the constants of the text until it is closed
    module = binding.parse_assembly(text, context)
    module.triple = binding.get_process_triple()
    try:
        with _scheduled(not isinstance(text, InOrder)):
            return bytes(code_generator(target.cpu, target.features, optimise).emit_object(module))
    finally:
        module.close()
        context.close()


@contextmanager
def _scheduled(wanted: bool) -> Iterator[None]:
    """Switches LLVM's machine scheduler off where it is not wanted, and on again: there is one
    switch for the whole process.
    """
    if wanted:
        yield
        return
    binding = llvm()
    binding.set_option("ramify", "-enable-misched=false")
    try:
        yield
    finally:
        binding.set_option("ramify", "-enable-misched=true")
