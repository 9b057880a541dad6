"""The traversals of a tree, recorded once: a step runs on symbols, and what it computes is the body
of a pass over the links.

``RolledTree`` offers the traversals of ``ramify.dynamics.tree.Tree``. Nothing about a particular
tree is known: links' constants, parents and the number of links are read when the passes run, so
one program serves every tree. Traversals that follow each other in the same direction share a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ramify.core.records import flatten, rebuild
from ramify.core.scalar import number
from ramify.trace.graph import Expr, Graph, as_node
from ramify.trace.rolled_program import (
    Argument,
    Climb,
    Once,
    Pass,
    RolledProgram,
    Sweep,
    field_places,
    needed_fields,
)

Source = tuple[Any, ...] | float


@dataclass(frozen=True)
class RolledColumn:
    """One record per link: every scalar is a known number or the name of where it is read, without
    the ``who``.
    """

    tree: RolledTree
    template: Any
    sources: tuple[Source, ...]

    def at(self, who: str) -> Any:
        """The record of a link."""
        return rebuild(
            self.template, iter([self.tree.read(source, who) for source in self.sources])
        )


@dataclass(frozen=True)
class RolledMatrix:
    """A matrix over the links: entries of a climb, its diagonal, and rows and columns of what
    carries the tree before it (``Tree.bordered``).
    """

    climb: Climb
    which: int
    diagonal: RolledColumn | None = None
    sides: RolledColumn | None = None
    corner: Sequence[Sequence[Any]] = ()

    def with_diagonal(self, diagonal: RolledColumn) -> RolledMatrix:
        """The same matrix with its diagonal set."""
        return replace(self, diagonal=diagonal)


@dataclass(frozen=True)
class Preceded:
    """A column with numbers of what carries the tree before it."""

    head: Sequence[Any]
    column: RolledColumn


class RolledTree:
    """Records traversals as passes. ``root`` and ``gravity`` are numbers of the whole tree, read
    when the passes run.
    """

    def __init__(self, link: Any, root: Any, gravity: Any, balls: bool = False) -> None:
        self.graph = Graph()
        self.balls = balls
        self._link = link
        self.passes: list[Pass] = []
        self._fields = 0
        self._globals = 0
        self._written: dict[int, Any] = {}
        self._sums: set[tuple[Any, ...]] = set()  # from children: known only within their pass
        self.root = self.shared(root)
        self.gravity = self.shared(gravity)

    # ---- what a step reads ----

    def shared(self, template: Any) -> Any:
        """A record of the whole tree, read when the passes run."""
        start = self._globals
        self._globals += len(flatten(template))
        return rebuild(
            template, iter([self.graph.symbol(("global", i)) for i in range(start, self._globals)])
        )

    def column(self, template: Any, sources: Sequence[Source]) -> RolledColumn:
        """A column of inputs, each scalar by its name."""
        return RolledColumn(self, template, tuple(sources))

    def read(self, source: Source, who: str) -> Any:
        """A scalar of a column at a link; what the open pass has just computed is used as it is."""
        if isinstance(source, float):
            return source
        if who == "k" and source[0] == "slot" and source[1] in self._written:
            return self._written[source[1]]
        return self.graph.symbol((*source, who))

    def _constants(self, who: str) -> Any:
        n = len(flatten(self._link))
        return rebuild(self._link, iter([self.graph.symbol(("link", i, who)) for i in range(n)]))

    # ---- traversals ----

    def each(self, step: Callable[..., Any], *columns: RolledColumn) -> RolledColumn:
        sweep = self._open("any")
        return self._column(sweep, step(self._constants("k"), *(c.at("k") for c in columns)))

    def outward(self, step: Callable[..., Any], root: Any, *columns: RolledColumn) -> RolledColumn:
        sweep = self._open("outward")
        scalars = flatten(root)
        fields = [self._new_field() for _ in scalars]
        for f, x in zip(fields, scalars, strict=True):
            sweep.roots[f] = as_node(self.graph, x)
        parent = rebuild(root, iter([self.graph.symbol(("slot", f, "parent")) for f in fields]))
        record = step(self._constants("k"), parent, *(c.at("k") for c in columns))
        for f, x in zip(fields, flatten(record), strict=True):
            self._store(sweep, f, x)
        return RolledColumn(self, record, tuple(("slot", f) for f in fields))

    def inward(self, step: Callable[..., Any], zero: Any, *columns: RolledColumn) -> RolledColumn:
        return self._inward(step, zero, columns)[0]

    def inward_to_base(
        self, step: Callable[..., Any], zero: Any, *columns: RolledColumn
    ) -> tuple[RolledColumn, Any]:
        column, fields, sweep = self._inward(step, zero, columns)
        sweep.closed = True
        handed = iter([self.graph.symbol(("slot", f, "root")) for f in fields])
        return column, rebuild(zero, handed)

    def _inward(
        self, step: Callable[..., Any], zero: Any, columns: Sequence[RolledColumn]
    ) -> tuple[RolledColumn, list[int], Sweep]:
        sweep = self._open("inward")
        fields = [self._new_field() for _ in flatten(zero)]
        sweep.zeros.extend(fields)
        self._sums.update(("slot", f) for f in fields)
        children = rebuild(zero, iter([self.graph.symbol(("slot", f, "k")) for f in fields]))
        record, handed = step(self._constants("k"), children, *(c.at("k") for c in columns))
        for f, x in zip(fields, flatten(handed), strict=True):
            sweep.sums.append((f, as_node(self.graph, x), "parent"))
        return self._column(sweep, record), fields, sweep

    def total(self, step: Callable[..., Any], zero: Any, *columns: RolledColumn) -> Any:
        sweep = self._open("any")
        record = step(self._constants("k"), *(c.at("k") for c in columns))
        fields = [self._new_field() for _ in flatten(zero)]
        for f, x in zip(fields, flatten(record), strict=True):
            sweep.roots[f] = as_node(self.graph, 0.0)
            sweep.sums.append((f, as_node(self.graph, x), "root"))
        sweep.closed = True
        return rebuild(zero, iter([self.graph.symbol(("slot", f, "root")) for f in fields]))

    def climb(
        self, step: Callable[..., Any], start: RolledColumn, *columns: RolledColumn
    ) -> RolledMatrix:
        def one(carried: Any, own: Any, above: Any) -> Any:
            pair, carried = step(carried, own, above)
            return (pair,), carried

        return self.climbs(1, one, start, *columns)[0]

    def climbs(
        self, count: int, step: Callable[..., Any], start: RolledColumn, *columns: RolledColumn
    ) -> list[RolledMatrix]:
        """What is known beforehand and stays so is not carried."""
        self._written = {}
        begin = start.at("k")
        scalars = flatten(begin)
        own = (self._constants("i"), *(c.at("i") for c in columns))
        above = (self._constants("j"), *(c.at("j") for c in columns))
        known = {i for i, x in enumerate(scalars) if not isinstance(x, Expr)}
        while True:
            given = [
                x if i in known else self.graph.symbol(("carry", i)) for i, x in enumerate(scalars)
            ]
            entries, carry = step(rebuild(begin, iter(given)), own, above)
            after = flatten(carry)
            changed = {i for i in known if isinstance(after[i], Expr) or after[i] != scalars[i]}
            if not changed:
                break
            known -= changed
        begun, kept = ([as_node(self.graph, x) for x in record] for record in (scalars, after))
        both = [(as_node(self.graph, a), as_node(self.graph, b)) for a, b in entries]
        climb = Climb(begun, kept, both)
        self.passes.append(climb)
        return [RolledMatrix(climb, i) for i in range(count)]

    def hoisted(self, record: Any) -> Any:
        sweep = Sweep("any", closed=True)
        self.passes.append(sweep)
        out: list[Any] = []
        for x in flatten(record):
            if isinstance(x, Expr):
                f = self._new_field()
                sweep.roots[f] = x.node
                x = self.graph.symbol(("slot", f, "root"))
            out.append(x)
        return rebuild(record, iter(out))

    def preceded(self, head: Sequence[Any], column: RolledColumn) -> Preceded:
        return Preceded(head, column)

    def bordered(
        self, matrix: RolledMatrix, sides: RolledColumn, corner: Sequence[Sequence[Any]]
    ) -> RolledMatrix:
        return replace(matrix, sides=sides, corner=corner)

    # ---- what a step writes ----

    def _open(self, direction: str) -> Sweep:
        """The last pass where it runs in the same direction, else a new one."""
        last = self.passes[-1] if self.passes else None
        if (
            isinstance(last, Sweep)
            and not last.closed
            and (direction == last.direction or "any" in (direction, last.direction))
        ):
            if last.direction == "any":
                last.direction = direction
            return last
        self._written = {}
        sweep = Sweep(direction)
        self.passes.append(sweep)
        return sweep

    def _new_field(self) -> int:
        self._fields += 1
        return self._fields - 1

    def _store(self, sweep: Sweep, f: int, x: Any) -> None:
        sweep.stores[f] = as_node(self.graph, x)
        self._written[f] = x

    def _column(self, sweep: Sweep, record: Any) -> RolledColumn:
        sources: list[Source] = []
        for x in flatten(record):
            if not isinstance(x, Expr):
                sources.append(float(number(x)))
                continue
            name = self.graph.payload.get(x.node, ())
            if (
                self.graph.ops[x.node] == "symbol"
                and name[-1] == "k"
                and name[0] in ("slot", "in", "extra")
                and name[:2] not in self._sums
            ):
                sources.append(name[:-1])
                continue
            f = next((f for f, node in sweep.stores.items() if node == x.node), None)
            if f is None:
                f = self._new_field()
                self._store(sweep, f, x)
            sources.append(("slot", f))
        return RolledColumn(self, record, tuple(sources))

    # ---- results ----

    def output(self, port: int, value: Any) -> None:
        """Send a column, a matrix or numbers of the whole tree to an output."""
        matrices = [value] if isinstance(value, RolledMatrix) else value
        if isinstance(matrices, list) and isinstance(matrices[0], RolledMatrix):
            for i, matrix in enumerate(matrices):
                self._output_matrix(port, i, matrix)
        elif isinstance(value, Preceded):
            self._output_column(port, value.column, "row")
            self._output_once(port, list(enumerate(value.head)))
        elif isinstance(value, RolledColumn):
            self._output_column(port, value, "row")
        else:
            self._output_once(port, list(enumerate(flatten(value))))

    def _output_matrix(self, port: int, number: int, matrix: RolledMatrix) -> None:
        """A matrix as one of the numbers that an output has for each pair."""
        matrix.climb.outputs[matrix.which] = port, number
        if matrix.diagonal is not None:
            self._output_column(port, matrix.diagonal, "diagonal", number)
        if matrix.sides is not None:
            self._output_column(port, matrix.sides, "sides", number * len(matrix.sides.sources))
        cells = [
            ((i, j, number), x) for i, row in enumerate(matrix.corner) for j, x in enumerate(row)
        ]
        self._output_once(port, [(at, x) for at, x in cells if isinstance(x, Expr) or x != 0.0])

    def _output_once(self, port: int, numbers: Sequence[tuple[Any, Any]]) -> None:
        if not numbers:
            return
        if not (self.passes and isinstance(self.passes[-1], Once)):
            self.passes.append(Once())
        once = self.passes[-1]
        assert isinstance(once, Once)
        once.outputs.extend((port, place, as_node(self.graph, x)) for place, x in numbers)

    def _output_column(self, port: int, column: RolledColumn, layout: str, first: int = 0) -> None:
        for i, source in enumerate(column.sources, first):
            if source == 0.0 and layout == "sides":
                continue  # matrices are zero where nothing is written
            maker = self._maker(source)
            if maker is not None:
                assert not isinstance(source, float)
                maker.outputs.append((port, layout, i, maker.stores[source[1]]))
                continue
            sweeps = [x for x in self.passes if isinstance(x, Sweep) and x.direction == "any"]
            if not sweeps:
                sweeps = [Sweep("any")]
                self.passes += sweeps
            value = source if isinstance(source, float) else self.graph.symbol((*source, "k"))
            sweeps[-1].outputs.append((port, layout, i, as_node(self.graph, value)))

    def _maker(self, source: Source) -> Sweep | None:
        """The pass that stores a field."""
        if isinstance(source, float) or source[0] != "slot":
            return None
        return next(
            one for one in self.passes if isinstance(one, Sweep) and source[1] in one.stores
        )

    def program(
        self, name: str, inputs: Sequence[Argument], outputs: Sequence[Argument], extras: int
    ) -> RolledProgram:
        """What was recorded, without values that are never read."""
        needed = needed_fields(self.graph, self.passes)
        kept = [x for x in self.passes if not isinstance(x, Sweep) or x.keep(needed)]
        fields = field_places(self.graph, needed, kept)
        ports, constants = (tuple(inputs), tuple(outputs)), len(flatten(self._link))
        return RolledProgram(name, self.graph, *ports, tuple(kept), *fields, constants, extras)
