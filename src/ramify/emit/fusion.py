"""What of a graph is written as one instruction or behind one branch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from ramify.trace.graph import Graph

_MANY: Final = 8
"""Nodes from which it pays to branch around them, and up to which they may be hoisted."""


class Fusion:
    """What of a graph is written as one: products that go into one sum, and arms of a select that
    are rarely taken. It depends on what is asked for, not on the order in which it is written.
    """

    def __init__(self, graph: Graph, roots: Iterable[int]) -> None:
        roots = list(roots)
        self.graph, self.order = graph, graph.reachable(roots)
        uses = Counter(arg for node in self.order for arg in graph.args[node])
        uses.update(roots)
        self.products = _fused_products(graph, self.order, uses)
        self.arms = _rare_arms(graph, self.order, uses)
        self.waiting = {node for arm in self.arms.values() for node in arm}

    def operands(self, node: int) -> set[int]:
        """The values that are read where a node is written."""
        inner = {node, *self.arms.get(node, ())}
        read = {arg for one in inner for arg in self.graph.args[one]}
        for arg in read & self.products:
            read.update(self.graph.args[arg])
        return read - inner - self.products


def together(fusion: Fusion) -> dict[int, tuple[list[int], set[int]]]:
    """By the first of them: rare selects that one branch serves, since little is to be hoisted, and
    all that they need besides their arms.
    """
    groups: dict[int, tuple[list[int], set[int]]] = {}
    first, graph = -1, fusion.graph
    for node, arm in fusion.arms.items():
        needed = set(graph.reachable(graph.args[node])).difference(arm)
        hoisted = sum(x > first and not graph.op(x).is_leaf for x in needed)
        if first < 0 or hoisted > _MANY or not fusion.arms.keys().isdisjoint(needed):
            first = node
            groups[first] = [], set()
        groups[first][0].append(node)
        groups[first][1].update(needed)
    return groups


def is_size(graph: Graph, args: tuple[int, ...]) -> bool:
    """Whether a select gives x where -x < x, else -x."""
    condition, x, minus = args
    return (
        graph.ops[minus] == "neg"
        and graph.args[minus] == (x,)
        and graph.ops[condition] == "lt"
        and graph.args[condition] == (minus, x)
    )


def _rare_arms(graph: Graph, order: list[int], uses: Counter[int]) -> dict[int, list[int]]:
    """By select of a number or an input: the nodes that only its other arm needs, where they are
    many.
    """
    found: dict[int, list[int]] = {}
    for node in order:
        if graph.ops[node] != "select" or not graph.op(graph.args[node][2]).is_leaf:
            continue
        left = Counter[int]()
        arm: list[int] = []
        stack = [graph.args[node][1]]
        while stack:
            x = stack.pop()
            left[x] += 1
            if left[x] == uses[x] and graph.op(x).may_be_skipped:
                arm.append(x)
                stack.extend(graph.args[x])
        if len(arm) >= _MANY:
            found[node] = sorted(arm)
    inner = {x for arm in found.values() for x in arm}
    return {node: arm for node, arm in found.items() if node not in inner}


def _fused_products(graph: Graph, order: list[int], uses: Counter[int]) -> set[int]:
    """Products used once, by a sum: the later operand of each sum where both would do."""
    fused: set[int] = set()
    for node in order:
        if graph.ops[node] in ("add", "sub"):
            a, b = graph.args[node]
            for arg in (b, a):
                if graph.ops[arg] == "mul" and uses[arg] == 1:
                    fused.add(arg)
                    break
    return fused
