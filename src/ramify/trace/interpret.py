"""The reference interpreter: what a graph means, one NumPy operation per node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ramify.core.scalar import lookup
from ramify.trace.program import Program

MEANING: Final[dict[str, Callable[..., Any]]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "recip": lambda x: 1.0 / x,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "sin": np.sin,
    "cos": np.cos,
    "atan2": np.arctan2,
    "lt": np.less,
    "le": np.less_equal,
    "select": np.where,
    "lookup": lookup,
}


def interpret(program: Program, inputs: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Outputs (N, size) of a program for inputs (N, size), one array per port."""
    graph, values = program.graph, {}
    for node in program.order:
        op = graph.ops[node]
        if op == "const":
            values[node] = graph.payload[node]
        elif op == "symbol":
            port, position = graph.payload[node]
            values[node] = inputs[port][:, position]
        else:
            tables = (graph.payload[node],) if op == "lookup" else ()
            values[node] = MEANING[op](*tables, *(values[arg] for arg in graph.args[node]))
    batch = inputs[0].shape[0]
    return [
        np.stack([np.broadcast_to(values[node], (batch,)) for node in nodes], axis=1)
        if nodes
        else np.empty((batch, 0))
        for nodes in program.results
    ]
