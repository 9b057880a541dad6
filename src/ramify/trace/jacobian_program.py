"""The program of all partial derivatives of a program that are not always zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ramify.core.scalar import Scalar
from ramify.trace.differentiate import rate_of
from ramify.trace.interpret import replay
from ramify.trace.program import Port, Program, trace


@dataclass(frozen=True)
class JacobianBlock:
    """The derivatives of an output, which has ``rows`` numbers, by an input: for each column, the
    rows that are not always zero. The program has a port for every block, with these entries column
    by column.
    """

    rows: int
    pattern: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        return sum(map(len, self.pattern))


Blocks = tuple[tuple[JacobianBlock, ...], ...]
"""A tuple for every output, with a block for every input."""


def jacobian_program(program: Program, by: Sequence[int]) -> tuple[Program, Blocks]:
    """The program of the derivatives by the inputs ``by``, and its blocks; it takes the same
    inputs.
    """
    columns = [(i, j) for i in by for j in range(program.inputs[i].size)]
    blocks: list[tuple[JacobianBlock, ...]] = []
    ports: list[Port] = []

    def text(*inputs: list[Any]) -> list[list[Any]]:
        values = replay(program, inputs)
        rates = {column: rates_along(program, values, {column: 1.0}) for column in columns}
        entries: list[list[Any]] = []
        for out, nodes in zip(program.outputs, program.results, strict=True):
            row: list[JacobianBlock] = []
            for i in by:
                name, size = program.inputs[i].name, program.inputs[i].size
                slopes = [[rates[i, j].get(node, 0.0) for node in nodes] for j in range(size)]
                pattern = tuple(
                    tuple(k for k, x in enumerate(column) if not _zero(x)) for column in slopes
                )
                row.append(JacobianBlock(len(nodes), pattern))
                entries.append(
                    [c[k] for c, rows in zip(slopes, pattern, strict=True) for k in rows]
                )
                ports.append(Port(f"{out.name}_by_{name}", (row[-1].size,)))
            blocks.append(tuple(row))
        return entries

    jacobian = trace(f"{program.name}_jacobian", text, program.inputs, ports)
    return jacobian, tuple(blocks)


def rates_along(
    program: Program, values: dict[int, Scalar], direction: Mapping[tuple[int, int], Scalar]
) -> dict[int, Scalar]:
    """The rates of all nodes that change along a direction: the rates of some symbols."""
    graph, rates = program.graph, dict[int, Scalar]()
    for node in program.order:
        op, args = graph.op(node), graph.args[node]
        if op.name == "symbol":
            if graph.payload[node] in direction:
                rates[node] = direction[graph.payload[node]]
        elif any(arg in rates for arg in args):
            operands = [values[arg] for arg in args]
            rate = rate_of(op, values[node], operands, [rates.get(arg, 0.0) for arg in args])
            if not _zero(rate):
                rates[node] = rate
    return rates


def _zero(x: Scalar) -> bool:
    return isinstance(x, (float, int)) and x == 0.0
