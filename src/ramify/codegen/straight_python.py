"""Straight-line Python from a traced program: single states where there is no compiler.

A scalar is a Python float here, so that a state takes microseconds where NumPy, with an array per
scalar, takes milliseconds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, Final

import numpy as np

from ramify.codegen.backend import Backend
from ramify.codegen.guards import NOT_FINITE
from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.trace.interpret import interpret
from ramify.trace.ops import OPS
from ramify.trace.program import Port, Program

_FEW: Final = 64
"""States up to which one by one is faster than arrays: a call of NumPy costs as much as some tens
of operations on floats.
"""


def python_source(program: Program) -> tuple[str, dict[str, Any]]:
    """The function ``compute(inputs)`` over flat lists, as text, and the names it uses.

    A node that is used once is written where it is used: fewer names are faster.
    """
    graph, order = program.graph, program.order
    names: dict[str, Any] = {op.name: op.on_floats for op in OPS.values() if op.on_floats}
    uses = Counter(arg for node in order for arg in graph.args[node])
    for port in program.results:
        uses.update([*port, *port])  # results keep their names
    texts: dict[int, tuple[str, int]] = {}  # with the depth of nesting
    lines = ["def compute(inputs):"]
    given = [[f"i{p}_{j}" for j in range(port.size)] for p, port in enumerate(program.inputs)]
    lines += [f" {','.join(xs)}, = inputs[{p}]" for p, xs in enumerate(given) if xs]
    for node in order:
        op, args = graph.op(node), [texts[arg] for arg in graph.args[node]]
        if op.name == "const":
            value = graph.payload[node]
            texts[node] = (f"({value!r})" if math.isfinite(value) else f"float('{value}')"), 0
        elif op.name == "symbol":
            port, position = graph.payload[node]
            texts[node] = given[port][position], 0
        else:
            depth = 1 + max(level for _, level in args)
            if op.has_table:
                names[f"table{node}"] = graph.payload[node]
            text = op.python.format(*(text for text, _ in args), table=f"table{node}")
            if uses[node] == 1 and depth < 40:
                texts[node] = f"({text})", depth
            else:
                lines.append(f" x{node}={text}")
                texts[node] = f"x{node}", 0
    results = [f"({''.join(texts[node][0] + ',' for node in port)})" for port in program.results]
    lines.append(f" return {''.join(text + ',' for text in results)}")
    return "\n".join(lines), names


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
