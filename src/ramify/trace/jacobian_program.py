"""The program of all partial derivatives of a program that are not always zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ramify.core.scalar import Scalar
from ramify.trace.differentiate import rate_of
from ramify.trace.interpret import replay
from ramify.trace.program import Port, Program, trace


@dataclass(frozen=True)
class JacobianBlock:
    """The derivatives of an output (of so many ``rows``) by an input: for each column, the rows
    that are not always zero. The program has a port for every block, with these entries column by
    column.
    """

    rows: int
    pattern: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        return sum(map(len, self.pattern))


Blocks = tuple[tuple[JacobianBlock, ...], ...]
"""A tuple for every output, with a block for every input."""


def jacobian_program(program: Program, by: Sequence[int]) -> tuple[Program, Blocks]:
    """The program, with the inputs of the given one, and its blocks, by the inputs ``by``."""
    columns = [(i, j) for i in by for j in range(program.inputs[i].size)]
    blocks: list[tuple[JacobianBlock, ...]] = []
    ports: list[Port] = []

    def text(*given: list[Any]) -> list[list[Any]]:
        values = replay(program, given)
        rates = {column: _rates(program, values, column) for column in columns}
        found: list[list[Any]] = []
        for out, nodes in zip(program.outputs, program.results, strict=True):
            row: list[JacobianBlock] = []
            for i in by:
                name, size = program.inputs[i].name, program.inputs[i].size
                slopes = [[rates[i, j].get(node, 0.0) for node in nodes] for j in range(size)]
                pattern = tuple(
                    tuple(k for k, x in enumerate(column) if not _zero(x)) for column in slopes
                )
                row.append(JacobianBlock(len(nodes), pattern))
                found.append([c[k] for c, kept in zip(slopes, pattern, strict=True) for k in kept])
                ports.append(Port(f"{out.name}_by_{name}", (row[-1].size,)))
            blocks.append(tuple(row))
        return found

    made = trace(f"{program.name}_jacobian", text, program.inputs, ports)
    return made, tuple(blocks)


def _rates(
    program: Program, values: dict[int, Scalar], column: tuple[int, int]
) -> dict[int, Scalar]:
    """The derivatives by one number of all nodes that depend on it."""
    graph, rates = program.graph, dict[int, Scalar]()
    for node in program.order:
        op, args = graph.op(node), graph.args[node]
        if op.name == "symbol":
            if graph.payload[node] == column:
                rates[node] = 1.0
        elif any(arg in rates for arg in args):
            operands = [values[arg] for arg in args]
            rate = rate_of(op, values[node], operands, [rates.get(arg, 0.0) for arg in args])
            if not _zero(rate):
                rates[node] = rate
    return rates


def _zero(x: Scalar) -> bool:
    return isinstance(x, (float, int)) and x == 0.0
