"""A program with its derivatives, ready to be called by other libraries: compiled code of the
value, and on demand programs along directions (tangent), against weights (adjoint) and of all
partial derivatives (jacobian), which are of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ramify.core.arrays import Array, real, refuse_masks
from ramify.core.cached import cached_property
from ramify.core.scalar import Scalar
from ramify.emit.guards import HUGE_ANGLE
from ramify.runtime.backend import Backend, pointers, width_for
from ramify.runtime.batch_pool import SharedFunction, can_share_batches
from ramify.runtime.cache_keys import digest
from ramify.runtime.compiled_program import CompiledProgram
from ramify.runtime.native import builtin_calls
from ramify.runtime.straight_python import StraightPython
from ramify.runtime.target import host, llvm_available
from ramify.runtime.threads import Cost, threads
from ramify.trace.differentiate import adjoint, tangent
from ramify.trace.interpret import interpret, replay
from ramify.trace.jacobian_program import Blocks, jacobian_program
from ramify.trace.program import Port, Program, trace

TOO_LARGE: Final = "an angle is beyond 1e6 rad; bring angles into a range of some turns"


def foreign(name: str, x: Any, library_type: type) -> Any:
    """An input as another library takes it: of its ``own`` type, or made of such, as it is; any
    other as an array of real numbers. Raises StateError for anything else, and for masked entries.
    """
    if isinstance(x, library_type):
        return x
    refuse_masks(name, x)
    return x if isinstance(x, (list, tuple)) and _holds(x, library_type) else real(name, x)


def _holds(x: Any, library_type: type) -> bool:
    return isinstance(x, library_type) or (
        isinstance(x, (list, tuple)) and any(_holds(part, library_type) for part in x)
    )


class Differentiable:
    """``inputs`` to ``outputs``, one state or a batch in rows. ``answer`` is the tuple that several
    results make.

    Numbers that are not finite pass through: where an input or a result is NaN, what depends on it
    is NaN.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], Program],
        key: Callable[[], str],
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        answer: type[tuple[object, ...]] = tuple,
    ) -> None:
        self.name, self._key = name, key
        self.code = CompiledProgram(name, make, lambda: self.key)
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.answer = answer
        self.tangent_of: tuple[Differentiable, tuple[int, ...]] | None = None
        self._derived: dict[tuple[object, ...], Differentiable] = {}
        self._jacobians: dict[tuple[int, ...], tuple[Differentiable, Blocks]] = {}
        self._cost = Cost(1000.0)

    def __repr__(self) -> str:
        ports = ", ".join(f"{p.name}{list(p.shape)}" for p in self.inputs)
        return f"<ramify function {self.name}({ports})>"

    @property
    def doc(self) -> str:
        """What it takes and gives, as other libraries show it."""
        takes = ", ".join(
            f"{p.name} ({', '.join(map(str, ('...', *p.shape)))})" for p in self.inputs
        )
        gives = ", ".join(f"{p.name} {p.shape}" for p in self.outputs)
        return f"{self.name} of {takes}; gives {gives}."

    @cached_property
    def key(self) -> str:
        """A digest of all that its code depends on."""
        return self._key()

    @property
    def program(self) -> Program:
        """The straight-line program."""
        return self.code.program

    @cached_property
    def _without_compiler(self) -> StraightPython:
        return StraightPython(lambda: self.program, InterpretedProgram(lambda: self.program))

    # ---- derivatives ----

    def _derive(
        self,
        kind: str,
        make: Callable[[Program, Sequence[int]], Program],
        by: tuple[int, ...],
        inputs: Sequence[Port],
        outputs: Sequence[Port],
    ) -> Differentiable:
        derived = self._derived.get((kind, by))
        if derived is None:
            derived = Differentiable(
                f"{self.name}_{kind}",
                lambda: make(self.program, by),
                lambda: digest(kind, repr(by), self.key),
                inputs,
                outputs,
            )
            derived = self._derived.setdefault((kind, by), derived)
        return derived

    def tangent(self, along: tuple[int, ...]) -> Differentiable:
        """The rates of the outputs along a direction in some inputs, which it takes after its
        own.
        """
        ways = [Port(f"d{self.inputs[i].name}", self.inputs[i].shape) for i in along]
        rates = [Port(f"d{p.name}", p.shape) for p in self.outputs]
        found = self._derive("tangent", tangent, along, (*self.inputs, *ways), rates)
        found.tangent_of = self, along
        return found

    def adjoint(self, by: tuple[int, ...]) -> Differentiable:
        """The derivatives by some inputs of the sum of the outputs times weights, which it takes
        after its own inputs.
        """
        weights = [Port(f"weight_{p.name}", p.shape) for p in self.outputs]
        slopes = [Port(f"by_{self.inputs[i].name}", self.inputs[i].shape) for i in by]
        return self._derive("adjoint", adjoint, by, (*self.inputs, *weights), slopes)

    def jacobian(self, by: tuple[int, ...]) -> tuple[Differentiable, Blocks]:
        """All partial derivatives by some inputs that are not always zero, and where they stand."""
        found = self._jacobians.get(by)
        if found is None:
            program, blocks = jacobian_program(self.program, by)
            made = self._derive("jacobian", lambda *_: program, by, program.inputs, program.outputs)
            found = self._jacobians.setdefault(by, (made, blocks))
        return found

    def arranged(
        self, inputs: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]]
    ) -> Differentiable:
        """The function with its numbers in another order: for every input and output, the places
        here of the numbers there.
        """

        def text(*given: list[Scalar]) -> list[list[Scalar]]:
            back = [
                [x for _, x in sorted(zip(places, xs, strict=True), key=lambda pair: pair[0])]
                for places, xs in zip(inputs, given, strict=True)
            ]
            values = replay(self.program, back)
            return [
                [values[nodes[i]] for i in places]
                for places, nodes in zip(outputs, self.program.results, strict=True)
            ]

        return Differentiable(
            self.name,
            lambda: trace(self.name, text, self.inputs, self.outputs),
            lambda: digest("arranged", repr((inputs, outputs)), self.key),
            self.inputs,
            self.outputs,
            self.answer,
        )

    # ---- calls ----

    def rows(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs (N, size) for inputs (N, size), C-contiguous."""
        out = [np.empty((len(inputs[0]), port.size)) for port in self.outputs]
        self.fill(inputs, out)
        return out

    def fill(self, inputs: Sequence[Array], out: Sequence[Array]) -> None:
        """The results, written into the arrays ``out``."""
        states = len(inputs[0])
        if not states:
            return
        if not llvm_available():
            self._without_compiler.run(inputs, out, 0, states)
            return
        if states == 1:
            inputs, out = [x[0] for x in inputs], [x[0] for x in out]
        self._entry(*inputs, out=out[0] if len(out) == 1 else tuple(out))

    @cached_property
    def _entry(self) -> Callable[..., object]:
        flat_in, flat_out = (
            [Port(p.name, (p.size,)) for p in ports] for ports in (self.inputs, self.outputs)
        )
        batch = self._shared.compute if can_share_batches() else None
        single = self.code.function()
        return builtin_calls(single, flat_in, flat_out, self._general, batch).call

    @cached_property
    def _shared(self) -> SharedFunction:
        wide = self.code.function(host().width)
        return SharedFunction(wide, self.inputs, self.outputs, self._cost, host())

    def _general(self, *inputs: Array, out: Array | Sequence[Array]) -> None:
        """Few states, and what the kernel flags."""
        rows_of = [np.atleast_2d(x) for x in inputs]
        results = [np.atleast_2d(x) for x in ([out] if isinstance(out, np.ndarray) else out)]
        states, count = len(rows_of[0]), threads()
        if width_for(states) > 1 and can_share_batches():
            rows = pointers(rows_of, 0), pointers(results, 0)
            flags = self._shared.run(*rows, states, count)
        else:
            flags = self.code.run(rows_of, results, 0, states)
        if flags & HUGE_ANGLE:
            InterpretedProgram(lambda: self.program).run(rows_of, results, 0, states)


class InterpretedProgram(Backend):
    """A program run by NumPy, an array per node."""

    tier = "numpy"

    def __init__(self, program: Callable[[], Program]) -> None:
        self._program = program

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int) -> int:
        with np.errstate(all="ignore"):
            found = interpret(self._program(), [a[start:stop] for a in inputs])
        for a, rows in zip(outputs, found, strict=True):
            a[start:stop] = rows
        return 0
