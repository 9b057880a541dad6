"""Rules for nodes that are not written one by one: a product that only feeds one sum becomes part
of it, and nodes that only one side of a select needs are jumped over where no lane takes that side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from ramify.trace.graph import Graph

_WORTH_A_JUMP: Final = 8
"""Nodes from which on it pays to jump over them."""
_MOST_HOISTED: Final = 8
"""Nodes that may be computed before a jump that several selects share, instead of after it."""


class Fusion:
    """The rules for one graph.

    - ``products``: nodes that are multiplied within the sum that uses them (a multiply-add).
    - ``lazy_branches``: by select, the nodes that only the side taken rarely needs; all of these
      are ``deferred``: they are written with their select.

    They depend on the roots alone, not on the order in which nodes are written, so that all widths
    and segments give the same bits.
    """

    def __init__(self, graph: Graph, roots: Iterable[int]) -> None:
        roots = list(roots)
        self.graph, self.order = graph, graph.reachable(roots)
        uses = Counter(arg for node in self.order for arg in graph.args[node])
        uses.update(roots)
        self.products = _fused_products(graph, self.order, uses)
        self.lazy_branches = _lazy_branches(graph, self.order, uses)
        self.deferred = {node for branch in self.lazy_branches.values() for node in branch}

    def operands(self, node: int) -> set[int]:
        """The values that are read where a node is written."""
        inner = {node, *self.lazy_branches.get(node, ())}
        read = {arg for one in inner for arg in self.graph.args[one]}
        for arg in read & self.products:
            read.update(self.graph.args[arg])
        return read - inner - self.products


def group_branches(fusion: Fusion) -> dict[int, tuple[list[int], set[int]]]:
    """Selects whose lazy branches share one jump, since little has to be hoisted before it: by the
    first select of a group, its selects and all that they need besides their lazy branches.
    """
    groups: dict[int, tuple[list[int], set[int]]] = {}
    first, graph = -1, fusion.graph
    for node, branch in fusion.lazy_branches.items():
        needed = set(graph.reachable(graph.args[node])).difference(branch)
        hoisted = sum(x > first and not graph.op(x).is_leaf for x in needed)
        if (
            first < 0
            or hoisted > _MOST_HOISTED
            or not fusion.lazy_branches.keys().isdisjoint(needed)
        ):
            first = node
            groups[first] = [], set()
        groups[first][0].append(node)
        groups[first][1].update(needed)
    return groups


def is_absolute_value(graph: Graph, args: tuple[int, ...]) -> bool:
    """Whether a select gives |x|: x where -x < x, else -x."""
    condition, x, minus = args
    return (
        graph.ops[minus] == "neg"
        and graph.args[minus] == (x,)
        and graph.ops[condition] == "lt"
        and graph.args[condition] == (minus, x)
    )


def _lazy_branches(graph: Graph, order: list[int], uses: Counter[int]) -> dict[int, list[int]]:
    """By select whose second choice is a number or an input: the nodes that only its first choice
    needs, where a jump over these pays.
    """
    branches: dict[int, list[int]] = {}
    for node in order:
        if graph.ops[node] != "select" or not graph.op(graph.args[node][2]).is_leaf:
            continue
        left = Counter[int]()
        branch: list[int] = []
        stack = [graph.args[node][1]]
        while stack:
            x = stack.pop()
            left[x] += 1
            if left[x] == uses[x] and graph.op(x).may_be_skipped:
                branch.append(x)
                stack.extend(graph.args[x])
        if len(branch) >= _WORTH_A_JUMP:
            branches[node] = sorted(branch)
    inner = {x for branch in branches.values() for x in branch}
    return {node: branch for node, branch in branches.items() if node not in inner}


def _fused_products(graph: Graph, order: list[int], uses: Counter[int]) -> set[int]:
    """Products used once, by a sum; of two such operands the later one is fused."""
    fused: set[int] = set()
    for node in order:
        if graph.ops[node] in ("add", "sub"):
            a, b = graph.args[node]
            for arg in (b, a):
                if graph.ops[arg] == "mul" and uses[arg] == 1:
                    fused.add(arg)
                    break
    return fused
