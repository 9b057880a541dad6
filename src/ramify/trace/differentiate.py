"""Programs that differentiate programs: along a direction (forward), and of a weighted sum of the
results (reverse). Both are traced anew, so that they fold, share and compile like any other.

A floor, a table's entry and a comparison count as constant; a select has the derivative of the
branch it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ramify.core.scalar import Scalar, select
from ramify.trace.interpret import replay
from ramify.trace.ops import Op
from ramify.trace.program import Port, Program, trace


def rate_of(op: Op, value: Scalar, args: Sequence[Scalar], rates: Sequence[Scalar]) -> Scalar:
    """The rate of an operation from those of its operands."""
    if op.name == "select":
        return selected(args[0], rates[1], rates[2])
    total: Scalar = 0.0
    for slope, rate in zip(op.partials(value, *args), rates, strict=False):
        total = total + slope * rate
    return total


def tangent(program: Program, along: Sequence[int]) -> Program:
    """The derivatives of all results along a direction in the inputs ``along``, which it takes
    after the program's own.
    """
    count = len(program.inputs)
    directions = [Port(f"d{program.inputs[i].name}", program.inputs[i].shape) for i in along]

    def text(*given: list[Any]) -> list[list[Any]]:
        graph, values = program.graph, replay(program, given[:count])
        rates: dict[int, Scalar] = {}
        for node in program.order:
            op, args = graph.op(node), graph.args[node]
            if op.name == "symbol":
                port, position = graph.payload[node]
                moving = port in along
                rates[node] = given[count + along.index(port)][position] if moving else 0.0
            else:
                operands = [values[arg] for arg in args]
                rates[node] = rate_of(op, values[node], operands, [rates[arg] for arg in args])
        return [[rates[node] for node in port] for port in program.results]

    outputs = [Port(f"d{port.name}", port.shape) for port in program.outputs]
    return trace(f"{program.name}_tangent", text, [*program.inputs, *directions], outputs)


def adjoint(program: Program, by: Sequence[int]) -> Program:
    """The derivatives, by the inputs ``by``, of the sum of all results times weights, which it
    takes after the program's own inputs, a port for each result.
    """
    count = len(program.inputs)
    weights = [Port(f"weight_{port.name}", port.shape) for port in program.outputs]

    def text(*given: list[Any]) -> list[list[Any]]:
        graph, values = program.graph, replay(program, given[:count])
        bars: dict[int, Scalar] = {}

        def add(node: int, share: Scalar) -> None:
            bars[node] = bars[node] + share if node in bars else share

        for port, weight in zip(program.results, given[count:], strict=True):
            for node, w in zip(port, weight, strict=True):
                add(node, w)
        found: list[list[Scalar]] = [[0.0] * program.inputs[i].size for i in by]
        for node in reversed(program.order):
            if node not in bars:
                continue
            op, args, bar = graph.op(node), graph.args[node], bars[node]
            if op.name == "symbol":
                port, position = graph.payload[node]
                if port in by:
                    found[by.index(port)][position] = bar
            elif op.name == "select":
                add(args[1], selected(values[args[0]], bar, 0.0))
                add(args[2], selected(values[args[0]], 0.0, bar))
            else:
                slopes = op.partials(values[node], *(values[arg] for arg in args))
                for arg, slope in zip(args, slopes, strict=False):
                    add(arg, slope * bar)
        return found

    outputs = [Port(f"by_{program.inputs[i].name}", program.inputs[i].shape) for i in by]
    return trace(f"{program.name}_adjoint", text, [*program.inputs, *weights], outputs)


def selected(condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
    """The rate of a select from those of its branches."""
    if isinstance(a, float) and isinstance(b, float) and a == b:
        return a
    return select(condition, a, b)
