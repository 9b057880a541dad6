"""What a graph means: its operations on numbers, arrays or scalars of any other kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.core.scalar import Scalar
from ramify.trace.graph import Graph
from ramify.trace.program import Program


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
        op = graph.op(node)
        if op.name == "const":
            values[node] = graph.payload[node]
        elif op.name == "symbol":
            values[node] = symbol(graph.payload[node])
        else:
            table = (graph.payload[node],) if op.has_table else ()
            values[node] = op.meaning(*table, *(values[arg] for arg in graph.args[node]))
    return values


def interpret(program: Program, inputs: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Outputs (N, size) of a program for inputs (N, size), one array per port: the reference for
    compiled code.
    """
    values = replay(program, [list(x.T) for x in inputs])
    batch = inputs[0].shape[0]
    return [
        np.stack([np.broadcast_to(np.asarray(values[node]), (batch,)) for node in nodes], axis=1)
        if nodes
        else np.empty((batch, 0))
        for nodes in program.results
    ]
