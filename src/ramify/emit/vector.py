"""From the nodes of a graph to LLVM instructions on vectors: one state in each of ``width`` lanes.

What an operation is in LLVM stands in its row of ``trace/ops.py``; here is the order, and what is
not written node by node: sine and cosine of an angle together, and the rules of ``emit/fusion.py``.
These are ours and not the compiler's, so that every width gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ramify.emit.fusion import Fusion, group_branches, is_absolute_value
from ramify.emit.writer import Writer
from ramify.trace.graph import Graph


class Emission:
    """Writes nodes of a graph, each once, and remembers the names of their values.

    - ``symbol(payload)`` gives the value of an input.
    - ``on_angle(value)`` is called with each angle whose sine is taken, before it is.
    - ``values``: names of values that are there already; a mapping may also fetch what it lacks, as
      those of segments do. Then every select jumps on its own.
    """

    def __init__(
        self,
        writer: Writer,
        fusion: Fusion,
        symbol: Callable[[Any], str],
        on_angle: Callable[[str], None],
        values: dict[int, str] | None = None,
    ) -> None:
        self._writer, self._graph, self._fusion = writer, fusion.graph, fusion
        self._symbol, self._on_angle = symbol, on_angle
        self._groups = {} if values is not None else group_branches(fusion)
        self._angles: dict[int, tuple[str, str]] = {}
        self._visited: set[int] = set()
        self.values: dict[int, str] = {} if values is None else values

    def need(self, roots: Iterable[int]) -> dict[int, str]:
        """Write what these roots need and has not been written; returns all values so far."""
        args = self._graph.args
        stack, fresh = [r for r in roots if r not in self._visited], []
        while stack:
            node = stack.pop()
            if node not in self._visited:
                self._visited.add(node)
                fresh.append(node)
                stack.extend(arg for arg in args[node] if arg not in self._visited)
        for node in sorted(fresh):
            if node not in self._fusion.deferred and node not in self.values:
                self.write(node)
        return self.values

    def _branch(self, nodes: Sequence[int]) -> None:
        """Write selects whose lazy branches are computed only if some lane takes one of them."""
        writer, args, values = self._writer, self._graph.args, self.values
        for operand in sorted({x for node in nodes for x in self._fusion.operands(node)}):
            _ = values[operand]
        some = ""
        for condition in dict.fromkeys(args[node][0] for node in nodes):
            one = values[condition]
            some = writer.put(f"or {writer.truth} {some}, {one}") if some else one
        some = writer.any(some)
        at = len(writer.lines)
        writer.go(f"before{at}")
        writer.label(f"before{at}")
        writer.fork(some, f"rare{at}", f"after{at}")
        writer.label(f"rare{at}")
        taken = {}
        for node in nodes:
            for inner in self._fusion.lazy_branches[node]:
                self.write(inner)
            taken[node] = writer.pick(*(values[x] for x in args[node]))
        writer.go(f"after{at}")
        writer.label(f"after{at}")
        for node, value in taken.items():
            other = values[args[node][2]]
            values[node] = writer.put(
                f"phi {writer.vector} [ {other}, %before{at} ], [ {value}, %rare{at} ]"
            )

    def write(self, node: int) -> None:
        """Write a node whose operands have been written."""
        graph, writer, values, fused = self._graph, self._writer, self.values, self._fusion.products
        op, args = graph.op(node), graph.args[node]
        if op.name == "const":
            values[node] = writer.const(graph.payload[node])
        elif op.name == "symbol":
            values[node] = self._symbol(graph.payload[node])
        elif op.turn is not None:
            values[node] = self._sine_and_cosine(args[0])[op.turn]
        elif node in self._fusion.lazy_branches:
            nodes, needed = self._groups.get(node, ([node], set()))
            for early in sorted(needed - values.keys() - fused):
                self.write(early)
            self._branch(nodes)
        elif node in fused:
            return
        elif not fused.isdisjoint(args):
            values[node] = _multiply_add(writer, graph, values, op.name, args, fused)
        elif op.name == "select" and is_absolute_value(graph, args):
            values[node] = writer.call("fabs", values[args[1]])
        else:
            table = (graph.payload[node],) if op.has_table else ()
            values[node] = op.llvm(writer, *table, *(values[arg] for arg in args))

    def _sine_and_cosine(self, angle: int) -> tuple[str, str]:
        """Sine and cosine of a node, computed once."""
        if angle not in self._angles:
            self._on_angle(self.values[angle])
            self._angles[angle] = self._writer.sine_cosine(self.values[angle])
        return self._angles[angle]


def emit(
    writer: Writer,
    graph: Graph,
    roots: Iterable[int],
    symbol: Callable[[Any], str],
    on_angle: Callable[[str], None],
) -> dict[int, str]:
    """Write the nodes that the roots need; returns the value of every node."""
    roots = list(roots)
    return Emission(writer, Fusion(graph, roots), symbol, on_angle).need(roots)


def _multiply_add(
    writer: Writer,
    graph: Graph,
    values: dict[int, str],
    op: str,
    args: tuple[int, ...],
    fused: set[int],
) -> str:
    a, b = args
    if b in fused:  # a +- x y
        x, y = (values[arg] for arg in graph.args[b])
        return writer.multiply_add(writer.negated(x) if op == "sub" else x, y, values[a])
    x, y = (values[arg] for arg in graph.args[a])  # x y +- b
    return writer.multiply_add(x, y, writer.negated(values[b]) if op == "sub" else values[b])
