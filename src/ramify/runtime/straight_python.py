"""Straight-line Python for single states, where there is no compiler.

A scalar is a Python float here, so that a state takes microseconds where NumPy, with an array per
scalar, takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.emit.guards import NOT_FINITE
from ramify.emit.python_code import python_source
from ramify.runtime.backend import Backend
from ramify.trace.interpret import interpret
from ramify.trace.program import Port, Program

_FEW: Final = 64
"""States up to which one by one is faster than arrays: a call of NumPy costs as much as some tens
of operations on floats.
"""


class StraightPython(Backend):
    """A few states one by one, more by another backend."""

    tier = "numpy"

    def __init__(self, program: Callable[[], Program], batches: Backend) -> None:
        self._make, self._batches = program, batches

    @cached_property
    def _program(self) -> Program:
        return self._make()

    @cached_property
    def _compute(self) -> Callable[[list[list[float]]], tuple[tuple[float, ...], ...]]:
        source, names = python_source(self._program)
        exec(compile(source, "<straight-line program>", "exec"), names)
        return names["compute"]

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int) -> int:
        if stop - start > _FEW:
            return self._batches.run(inputs, outputs, start, stop)
        sound = True
        for state in range(start, stop):
            given = [a[state].tolist() for a in inputs]
            try:
                found = self._compute(given)
            except (ZeroDivisionError, ValueError, OverflowError):  # not errors for arrays
                with np.errstate(all="ignore"):
                    rows = interpret(self._program, [a[state : state + 1] for a in inputs])
                found = tuple(tuple(a[0].tolist()) for a in rows)
            for a, row in zip(outputs, found, strict=True):
                a[state] = row
            sound = sound and all(isfinite(x) for row in (*given, *found) for x in row)
        return 0 if sound else NOT_FINITE

    def entry(
        self,
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        fallback: Callable[..., Any],
        answer: type[tuple[Any, ...]],
    ) -> Callable[..., Any]:
        """The fastest way to ask for one state; ``fallback`` takes what is not a plain array, and
        what is not finite.
        """
        compute, shapes = self._compute, [port.shape for port in inputs]
        rows = all(len(port.shape) == 1 for port in outputs)

        def call(*given: Any, **options: Any) -> Any:
            if options or len(given) != len(shapes):
                return fallback(*given, **options)
            numbers: list[list[float]] = []
            for x, shape in zip(given, shapes, strict=True):
                if type(x) is not np.ndarray or x.shape != shape or x.dtype != np.float64:
                    return fallback(*given)
                numbers.append(x.tolist() if len(shape) == 1 else x.ravel().tolist())
            try:
                found = compute(numbers)
            except (ZeroDivisionError, ValueError, OverflowError):
                return fallback(*given)
            if not isfinite(sum(map(sum, numbers)) + sum(map(sum, found))):
                return fallback(*given)
            if rows and len(found) == 1:
                return np.array(found[0])
            results = [
                np.array(row).reshape(port.shape) if port.shape else np.float64(row[0])
                for row, port in zip(found, outputs, strict=True)
            ]
            return results[0] if len(results) == 1 else tuple.__new__(answer, results)

        return call
