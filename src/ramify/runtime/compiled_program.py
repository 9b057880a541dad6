"""A straight-line program with its code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.emit.cpu_target import CpuTarget
from ramify.emit.unrolled import unrolled_ir
from ramify.runtime import backend
from ramify.runtime.backend import Backend, Blocks, pointers
from ramify.runtime.compile import FunctionPointer, is_cached
from ramify.runtime.compiled_widths import CompiledWidths
from ramify.runtime.native import builtin_calls
from ramify.runtime.target import host
from ramify.trace.program import Port, Program


class CompiledProgram(Backend):
    """A program and its compiled code, the unrolled tier.

    A ``program`` that is a function is called once at most, and not at all where the cache has the
    code. ``key`` says all that the program depends on. ``quaternions`` are the positions in the
    first input where unit quaternions begin; the code checks their length.
    """

    tier = "unrolled"

    def __init__(
        self,
        name: str,
        program: Program | Callable[[], Program],
        key: str | Callable[[], str],
        quaternions: Sequence[int] = (),
    ) -> None:
        self.name, self.quaternions = name, quaternions
        self._program, self._key = program, key
        self._function_name = f"kernel_{name}"
        self._functions = CompiledWidths(self.ir, self._function_name, lambda: self.key, 2)
        self._fills: dict[tuple[int, ...], CompiledWidths] = {}

    @cached_property
    def program(self) -> Program:
        """The program, traced when it is first needed."""
        return self._program if isinstance(self._program, Program) else self._program()

    @cached_property
    def key(self) -> str:
        """What the code depends on, besides the machine."""
        return f"unrolled {self._key if isinstance(self._key, str) else self._key()}"

    # ---- code ----

    def ir(self, target: CpuTarget, name: str | None = None) -> str:
        """LLVM text for a target."""
        return unrolled_ir(self.program, target, name or self._function_name, self.quaternions)

    def llvm_ir(self, width: int) -> str:
        return self.ir(host().with_width(width))

    def cached(self) -> bool:
        """Whether the cache has the code of both widths."""
        targets = (host().with_width(w) for w in {1, host().width})
        return all(is_cached(self._function_name, target, self.key) for target in targets)

    def ready(self) -> None:
        """Compile what one state and batches need."""
        for width in (1, host().width):
            self._functions.entry(width)

    def function(self, width: int = 1) -> FunctionPointer:
        """The function for one state, or for batches."""
        code = self._functions.entry(width)[0]
        return FunctionPointer(code.address, keep=code)

    # ---- calls ----

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int) -> int:
        if stop == start:
            return 0
        function = self._functions[backend.width_for(stop - start)]
        return int(function(stop - start, pointers(inputs, start), pointers(outputs, start)))

    def rows(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs (N, size) for inputs (N, size), C-contiguous; flags are not reported."""
        out = [np.empty((len(inputs[0]), port.size)) for port in self.program.outputs]
        self.run(inputs, out, 0, len(inputs[0]))
        return out

    def call(
        self, inputs: Sequence[Port], outputs: Sequence[Port], fallback: Callable[..., Any]
    ) -> Callable[..., Any]:
        """The fastest call with plain arrays of one state; ``fallback`` takes anything else. The
        ports are those of the program, which need not be traced for that.
        """
        return builtin_calls(self.function(), inputs, outputs, fallback).call

    def fills(self, states: int) -> bool:
        return states >= host().width

    def fill(
        self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int,
        blocks: Blocks,
    ) -> int:  # fmt: skip
        skip_zero_blocks, strides = blocks is not None, tuple(a.strides[0] // 8 for a in outputs)
        key, name = (skip_zero_blocks, *strides), f"{self._function_name}_fill"
        if key not in self._fills:
            self._fills[key] = CompiledWidths(
                lambda target: unrolled_ir(
                    self.program, target, name, self.quaternions, strides, skip_zero_blocks
                ),
                name,
                lambda: f"fill {skip_zero_blocks} {strides} {self.key}",
                2,
            )
        function = self._fills[key][host().width]
        return int(function(stop - start, pointers(inputs, start), pointers(outputs, start)))
