"""A traced straight-line function: inputs by name, outputs as nodes of a graph."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ramify.core.cached import cached_property
from ramify.trace.graph import Expr, Graph, as_node


@dataclass(frozen=True)
class Port:
    """A named array of an algorithm: ``size`` numbers per state, in the ``shape`` users see."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        size = 1
        for n in self.shape:
            size *= n
        return size


@dataclass(frozen=True)
class Program:
    """A straight-line program. Symbols of the graph are (input's index, position); ``outputs`` are
    nodes, port after port.
    """

    name: str
    graph: Graph
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    results: tuple[tuple[int, ...], ...]

    @cached_property
    def order(self) -> list[int]:
        """The nodes that the outputs need, operands first."""
        return self.graph.reachable(node for port in self.results for node in port)

    @property
    def digest(self) -> str:
        """A digest of what the program computes."""
        g, h = self.graph, hashlib.sha256(repr((self.inputs, self.outputs, self.results)).encode())
        for node in self.order:
            h.update(f"{node} {g.ops[node]} {g.args[node]} {g.payload.get(node)!r};".encode())
        return h.hexdigest()


def trace(
    name: str,
    function: Callable[..., Sequence[Sequence[Any]]],
    inputs: Sequence[Port],
    outputs: Sequence[Port],
) -> Program:
    """Run a function on symbols: it takes one list of scalars per input, gives one per output."""
    graph = Graph()
    arguments: list[list[Expr]] = [
        [graph.symbol((i, j)) for j in range(port.size)] for i, port in enumerate(inputs)
    ]
    outcome = function(*arguments)
    results = tuple(tuple(as_node(graph, x) for x in port) for port in outcome)
    for port, nodes in zip(outputs, results, strict=True):
        if port.size != len(nodes):
            raise ValueError(
                f"{name}: output {port.name} has {len(nodes)} numbers, not {port.size}"
            )
    return Program(name, graph, tuple(inputs), tuple(outputs), results)
