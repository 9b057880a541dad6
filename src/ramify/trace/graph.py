"""Expressions: a hash-consed graph over the operations of ``ramify.trace.ops``, folded while it is
written.

An expression stands for a number that is not known yet. Numbers that are known stay Python floats,
so ``0.0 * x`` is ``0.0``, ``1.0 * x`` is ``x``, and equal terms are one node. Signs are drawn
outwards, so that they end in a subtraction; quotients are products with one shared reciprocal.
Folding assumes finite numbers: kernels refuse others before they compute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from ramify.core.lookup import LookupTable
from ramify.trace.ops import OPS, Op


class Graph:
    """An arena of nodes. Node i has the operation ``ops[i]`` and operands ``args[i]``, all of them
    before i.
    """

    def __init__(self) -> None:
        self.ops: list[str] = []
        self.args: list[tuple[int, ...]] = []
        self.payload: dict[int, Any] = {}
        self._known: dict[tuple[Any, ...], int] = {}

    def symbol(self, name: Any) -> Expr:
        """The number called ``name`` (any hashable value)."""
        return Expr(self, self._known_node("symbol", name, name))

    def number(self, value: float) -> int:
        """The node of a known number."""
        return self._known_node("const", float(value), float(value))

    def lookup(self, table: LookupTable, place: int) -> int:
        """The node of an entry of a table, which is its payload."""
        return self._known_node("lookup", (table.digest, place), table, place)

    def op(self, node: int) -> Op:
        """The operation of a node."""
        return OPS[self.ops[node]]

    def _known_node(self, op: str, key: Any, payload: Any, *args: int) -> int:
        node = self._known.get((op, key))
        if node is None:
            node = self._known[op, key] = len(self.ops)
            self.ops.append(op)
            self.args.append(args)
            self.payload[node] = payload
        return node

    def _node(self, op: str, *args: int) -> int:
        key = (op, *args)
        node = self._known.get(key)
        if node is None:
            node = self._known[key] = len(self.ops)
            self.ops.append(op)
            self.args.append(args)
        return node

    def copied(self, op: str, args: Iterable[int], payload: Any = None) -> int:
        """The node of an operation of another graph, as it is there: nothing is folded."""
        match op:
            case "symbol":
                return self.symbol(payload).node
            case "const":
                return self.number(payload)
            case "lookup":
                return self.lookup(payload, *args)
        return self._node(op, *args)

    # ---- folding ----

    def add(self, a: int, b: int) -> int:
        """a + b, as a subtraction where one of them is negated."""
        if self.ops[b] == "neg":
            return self.sub(a, self.args[b][0])
        if self.ops[a] == "neg":
            return self.sub(b, self.args[a][0])
        return self._node("add", a, b) if a < b else self._node("add", b, a)

    def sub(self, a: int, b: int) -> int:
        """a - b for different nodes; where b - a is known already, its negation."""
        if self.ops[b] == "neg":
            return self.add(a, self.args[b][0])
        if self.ops[a] == "neg":
            return self.neg(self.add(self.args[a][0], b))
        if ("sub", b, a) in self._known:
            return self.neg(self._known["sub", b, a])
        return self._node("sub", a, b)

    def mul(self, a: int, b: int) -> int:
        """a * b with signs drawn out; x * (y / x) is y."""
        ops, args = self.ops, self.args
        if ops[a] == "neg":
            return self.neg(self.mul(args[a][0], b))
        if ops[b] == "neg":
            return self.neg(self.mul(a, args[b][0]))
        for x, y in ((a, b), (b, a)):
            if ops[y] == "mul":
                for u, w in (args[y], args[y][::-1]):
                    if ops[w] == "recip" and args[w][0] == x:
                        return u
        return self._node("mul", a, b) if a < b else self._node("mul", b, a)

    def scale(self, k: float, a: int) -> int:
        """A known number k > 0, not 1, times a; numbers in a row are multiplied beforehand."""
        if self.ops[a] == "mul" and self.ops[self.args[a][0]] == "const":
            return self._scaled(k * self.payload[self.args[a][0]], self.args[a][1])
        return self._scaled(k, a)

    def _scaled(self, k: float, a: int) -> int:
        return a if k == 1.0 else self._node("mul", self.number(k), a)

    def neg(self, a: int) -> int:
        """-a."""
        return self.args[a][0] if self.ops[a] == "neg" else self._node("neg", a)

    def reachable(self, roots: Iterable[int]) -> list[int]:
        """The nodes that the roots need, operands first (in the order they were written)."""
        marked = bytearray(len(self.ops))
        stack = list(roots)
        while stack:
            node = stack.pop()
            if not marked[node]:
                marked[node] = 1
                stack.extend(self.args[node])
        return [i for i, mark in enumerate(marked) if mark]


class Expr:
    """A node of a graph, with the operators of a number."""

    __slots__ = ("graph", "node")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, graph: Graph, node: int) -> None:
        self.graph = graph
        self.node = node

    def __repr__(self) -> str:
        g = self.graph
        return f"<{g.ops[self.node]} {self.node} {g.payload.get(self.node, g.args[self.node])}>"

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "an expression has no truth value while it is traced; branch with "
            "ramify.core.scalar.select"
        )

    def __add__(self, o: Expr | float) -> Any:
        g = self.graph
        if isinstance(o, Expr):
            return Expr(g, g.add(self.node, o.node))
        if not isinstance(o, (float, int)):
            return NotImplemented
        return self if o == 0.0 else Expr(g, g.add(self.node, g.number(o)))

    __radd__ = __add__

    def __sub__(self, o: Expr | float) -> Any:
        g = self.graph
        if isinstance(o, Expr):
            return 0.0 if o.node == self.node else Expr(g, g.sub(self.node, o.node))
        if not isinstance(o, (float, int)):
            return NotImplemented
        return self if o == 0.0 else Expr(g, g.sub(self.node, g.number(o)))

    def __rsub__(self, o: float) -> Any:
        g = self.graph
        return Expr(g, g.neg(self.node)) if o == 0.0 else Expr(g, g.sub(g.number(o), self.node))

    def __mul__(self, o: Expr | float) -> Any:
        g = self.graph
        if isinstance(o, Expr):
            if g.ops[self.node] == "recip" and g.args[self.node][0] == o.node:
                return 1.0
            if g.ops[o.node] == "recip" and g.args[o.node][0] == self.node:
                return 1.0
            return Expr(g, g.mul(self.node, o.node))
        if not isinstance(o, (float, int)):
            return NotImplemented
        if o == 0.0:
            return 0.0
        negative, node = o < 0.0, self.node
        if g.ops[node] == "neg":
            negative, node = not negative, g.args[node][0]
        if abs(o) != 1.0:
            node = g.scale(abs(float(o)), node)
        return Expr(g, g.neg(node) if negative else node)

    __rmul__ = __mul__

    def __truediv__(self, o: Expr | float) -> Any:
        if isinstance(o, Expr):
            return 1.0 if o.node == self.node else self * (1.0 / o)
        return self * (1.0 / o) if isinstance(o, (float, int)) else NotImplemented

    def __rtruediv__(self, o: float) -> Any:
        g, node = self.graph, self.node
        if g.ops[node] == "neg":
            return -(o / Expr(g, g.args[node][0]))
        if g.ops[node] == "recip":
            return Expr(g, g.args[node][0]) * o
        return Expr(g, g._node("recip", node)) * o

    def __neg__(self) -> Any:
        return Expr(self.graph, self.graph.neg(self.node))

    def _new(self, op: str, *args: Expr | float) -> Expr:
        g = self.graph
        return Expr(g, g._node(op, *(as_node(g, x) for x in args)))

    def _apply_(self, op: str, *args: Expr | float) -> Expr:
        """A function of ramify.core.scalar."""
        if op not in OPS:
            raise TypeError(f"{op!r} is not an operation of ramify.trace.ops")
        return self._new(op, *args)

    def _lookup_(self, table: LookupTable) -> Any:
        return Expr(self.graph, self.graph.lookup(table, self.node))

    def __lt__(self, o: Expr | float) -> Expr:
        return self._new("lt", self, o)

    def __gt__(self, o: Expr | float) -> Expr:
        return self._new("lt", o, self)

    def __le__(self, o: Expr | float) -> Expr:
        return self._new("le", self, o)

    def __ge__(self, o: Expr | float) -> Expr:
        return self._new("le", o, self)

    def _select_(self, if_true: Expr | float, if_false: Expr | float) -> Any:
        g = self.graph
        a, b = as_node(g, if_true), as_node(g, if_false)
        return if_true if a == b else Expr(g, g._node("select", self.node, a, b))


def as_node(graph: Graph, x: Any) -> int:
    """The node of an expression or of a known number."""
    return x.node if isinstance(x, Expr) else graph.number(x)


def symbols(graph: Graph, nodes: Iterable[int]) -> Iterator[tuple[int, Any]]:
    """(node, name) of the symbols among some nodes."""
    return ((i, graph.payload[i]) for i in nodes if graph.ops[i] == "symbol")
