"""A function for several vector widths, each compiled when it is first needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ramify.core.forks import LOCK
from ramify.emit.cpu_target import CpuTarget
from ramify.runtime.backend import function_of
from ramify.runtime.compile import Compiled, compiled
from ramify.runtime.target import host


class CompiledWidths:
    """One function per width, compiled when it is first needed."""

    def __init__(
        self, text: Callable[[CpuTarget], str], name: str, key: Callable[[], str], arguments: int
    ) -> None:
        self._text, self._name, self._key, self._arguments = text, name, key, arguments
        self._functions: dict[int, tuple[Compiled, Any]] = {}

    def __getitem__(self, width: int) -> Any:
        return self.entry(width)[1]

    def entry(self, width: int) -> tuple[Compiled, Any]:
        entry = self._functions.get(width)
        if entry is None:
            with LOCK:
                if width not in self._functions:
                    target = host().with_width(width)
                    code = compiled(lambda: self._text(target), self._name, target, self._key())
                    self._functions[width] = code, function_of(code.address, self._arguments)
                entry = self._functions[width]
        return entry
