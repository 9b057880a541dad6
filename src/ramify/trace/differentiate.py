"""Programs that differentiate programs: along a direction (forward), and of a weighted sum of the
results (reverse). Both are traced anew, so that they fold, share and compile like any other.

A floor, a table's entry and a comparison count as constant; a select has the derivative of the
branch it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ramify.core.scalar import Scalar, atan2, cos, floor, lookup, select, sin, sqrt
from ramify.trace.graph import Graph
from ramify.trace.program import Port, Program, trace

_MEANING: Final[dict[str, Callable[..., Scalar]]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
    "recip": lambda a: 1.0 / a,
    "sqrt": sqrt,
    "floor": floor,
    "sin": sin,
    "cos": cos,
    "atan2": atan2,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "select": select,
}


def replay(
    program: Program, inputs: Sequence[Sequence[Scalar]], roots: Sequence[int] | None = None
) -> dict[int, Scalar]:
    """The value of every node that the results (or some ``roots``) need, for inputs of any kind of
    scalar.
    """
    order = program.order if roots is None else program.graph.reachable(roots)
    return replay_nodes(program.graph, order, lambda name: inputs[name[0]][name[1]])


def replay_nodes(
    graph: Graph, order: Sequence[int], symbol: Callable[[Any], Scalar]
) -> dict[int, Scalar]:
    """The value of every node in an order, for symbols of any kind of scalar."""
    values = dict[int, Scalar]()
    for node in order:
        op = graph.ops[node]
        if op == "const":
            values[node] = graph.payload[node]
        elif op == "symbol":
            values[node] = symbol(graph.payload[node])
        elif op == "lookup":
            values[node] = lookup(graph.payload[node], values[graph.args[node][0]])
        else:
            values[node] = _MEANING[op](*(values[arg] for arg in graph.args[node]))
    return values


def partials(op: str, value: Scalar, args: Sequence[Scalar]) -> list[tuple[int, Scalar]]:
    """(operand, derivative of the operation by it), where there is one; all but select."""
    match op:
        case "add":
            return [(0, 1.0), (1, 1.0)]
        case "sub":
            return [(0, 1.0), (1, -1.0)]
        case "mul":
            return [(0, args[1]), (1, args[0])]
        case "neg":
            return [(0, -1.0)]
        case "recip":
            return [(0, -(value * value))]
        case "sqrt":
            return [(0, 0.5 / value)]
        case "sin":
            return [(0, cos(args[0]))]
        case "cos":
            return [(0, -sin(args[0]))]
        case "atan2":
            y, x = args
            k = 1.0 / (x * x + y * y)
            return [(0, x * k), (1, -(y * k))]
    return []


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
            op, args = graph.ops[node], graph.args[node]
            rate: Scalar = 0.0
            if op == "symbol":
                port, position = graph.payload[node]
                rate = given[count + along.index(port)][position] if port in along else 0.0
            elif op == "select":
                rate = selected(values[args[0]], rates[args[1]], rates[args[2]])
            else:
                for i, slope in partials(op, values[node], [values[arg] for arg in args]):
                    rate = rate + slope * rates[args[i]]
            rates[node] = rate
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
            op, args, bar = graph.ops[node], graph.args[node], bars[node]
            if op == "symbol":
                port, position = graph.payload[node]
                if port in by:
                    found[by.index(port)][position] = bar
            elif op == "select":
                add(args[1], selected(values[args[0]], bar, 0.0))
                add(args[2], selected(values[args[0]], 0.0, bar))
            else:
                for i, slope in partials(op, values[node], [values[arg] for arg in args]):
                    add(args[i], slope * bar)
        return found

    outputs = [Port(f"by_{program.inputs[i].name}", program.inputs[i].shape) for i in by]
    return trace(f"{program.name}_adjoint", text, [*program.inputs, *weights], outputs)


def selected(condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
    """The rate of a select from those of its branches."""
    if isinstance(a, float) and isinstance(b, float) and a == b:
        return a
    return select(condition, a, b)
