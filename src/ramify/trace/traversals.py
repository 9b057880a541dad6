"""The traversals of a tree, written as loops: a step runs once, on symbols, and what it computes is
the body of a loop.

``RolledTree`` offers the traversals of ``ramify.dynamics.tree.Tree``. Nothing about a particular
tree is known: links' constants, parents and the number of links are read when the loops run, so one
set of loops serves every tree. Traversals that follow each other in the same direction share a
loop.

Records live in *slots*, one per link and one (slot 0) for the base; a scalar of a record is a
*field* of the slot. Symbols name what a loop reads: ``("slot", field, who)``, ``("link", i, who)``
(constants), ``("extra", i, who)`` (per-link parameters), ``("in", port, i, who)`` (per-link
inputs), ``("lane", port, i)`` (per-state inputs), ``("global", i)``, ``("carry", i)``; who is k
(the link itself), parent, i and j (a climb's child and parent) or root.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ramify.core.records import flatten, rebuild
from ramify.core.scalar import number
from ramify.trace.graph import Expr, Graph, as_node, symbols

Source = tuple[Any, ...] | float


@dataclass(frozen=True)
class LoopColumn:
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
class LoopMatrix:
    """A matrix over the links: entries of a climb, its diagonal, and rows and columns of what
    carries the tree before it (``Tree.bordered``).
    """

    climb: Climb
    which: int
    diagonal: LoopColumn | None = None
    sides: LoopColumn | None = None
    corner: Sequence[Sequence[Any]] = ()

    def with_diagonal(self, diagonal: LoopColumn) -> LoopMatrix:
        """The same matrix with its diagonal set."""
        return replace(self, diagonal=diagonal)


@dataclass(frozen=True)
class Preceded:
    """A column with numbers of what carries the tree before it."""

    head: Sequence[Any]
    column: LoopColumn


@dataclass
class Sweep:
    """A loop over the links. ``stores`` and ``outputs`` belong to link k, ``sums`` are added to the
    parent's or the root's slot.
    """

    direction: str = "any"
    roots: dict[int, int] = field(default_factory=dict)
    zeros: list[int] = field(default_factory=list)
    stores: dict[int, int] = field(default_factory=dict)
    sums: list[tuple[int, int, str]] = field(default_factory=list)
    outputs: list[tuple[int, str, int, int]] = field(default_factory=list)
    closed: bool = False


@dataclass
class Climb:
    """A loop from every link k up to the base. ``start`` and ``carry`` are the carried nodes,
    ``entries`` those of (k, j) and (j, k) of every matrix, which goes to an output as one of the
    numbers it has for each pair.
    """

    start: list[int]
    carry: list[int]
    entries: list[tuple[int, int]]
    outputs: dict[int, tuple[int, int]] = field(default_factory=dict)


@dataclass
class Once:
    """Numbers of the whole tree that go out after the loops: (port, position, node); a position in
    a matrix is a row, a column and which number of the pair.
    """

    outputs: list[tuple[int, int | tuple[int, int, int], int]] = field(default_factory=list)


@dataclass(frozen=True)
class Argument:
    """An array of numbers: ``count`` of them ``per`` "link", "pair" of links or "state"; a "row" is
    an array even of one. ``lead`` numbers (rows of a matrix) precede those of the links, in a
    matrix ``aside`` columns, by default as many.
    """

    name: str
    per: str
    count: int
    lead: int = 0
    aside: int | None = None

    @property
    def columns(self) -> int:
        """Columns of a matrix before those of the links."""
        return self.lead if self.aside is None else self.aside


@dataclass(frozen=True)
class RolledProgram:
    """Loops in order; inputs and outputs are ports per link, pair of links or state.

    ``fields`` gives the used fields their places in a slot; ``brief`` those that only pass between
    parent and child within one loop, and whose memory is used again once the last child is done.
    ``quaternions``: places in the first input, per state, where one of unit length begins.
    """

    name: str
    graph: Graph
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    loops: tuple[Sweep | Climb | Once, ...]
    fields: dict[int, int]
    brief: dict[int, int]
    constants: int
    extras: int
    quaternions: tuple[int, ...] = ()


class RolledTree:
    """Records traversals as loops. ``root`` and ``gravity`` are numbers of the whole tree, read
    when the loops run.
    """

    def __init__(self, link: Any, root: Any, gravity: Any, balls: bool = False) -> None:
        self.graph = Graph()
        self.balls = balls
        self._link = link
        self.loops: list[Sweep | Climb | Once] = []
        self._fields = 0
        self._globals = 0
        self._written: dict[int, Any] = {}
        self._sums: set[tuple[Any, ...]] = (
            set()
        )  # what children hand over: known only within its loop
        self.root = self.shared(root)
        self.gravity = self.shared(gravity)

    # ---- what a step reads ----

    def shared(self, template: Any) -> Any:
        """A record of the whole tree, read when the loops run."""
        start = self._globals
        self._globals += len(flatten(template))
        return rebuild(
            template, iter([self.graph.symbol(("global", i)) for i in range(start, self._globals)])
        )

    def column(self, template: Any, sources: Sequence[Source]) -> LoopColumn:
        """A column of inputs, each scalar by its name."""
        return LoopColumn(self, template, tuple(sources))

    def read(self, source: Source, who: str) -> Any:
        """A scalar of a column at a link; what the open loop has just computed is used as it is."""
        if isinstance(source, float):
            return source
        if who == "k" and source[0] == "slot" and source[1] in self._written:
            return self._written[source[1]]
        return self.graph.symbol((*source, who))

    def _constants(self, who: str) -> Any:
        n = len(flatten(self._link))
        return rebuild(self._link, iter([self.graph.symbol(("link", i, who)) for i in range(n)]))

    # ---- traversals ----

    def each(self, step: Callable[..., Any], *columns: LoopColumn) -> LoopColumn:
        sweep = self._open("any")
        return self._column(sweep, step(self._constants("k"), *(c.at("k") for c in columns)))

    def outward(self, step: Callable[..., Any], root: Any, *columns: LoopColumn) -> LoopColumn:
        sweep = self._open("outward")
        scalars = flatten(root)
        fields = [self._new_field() for _ in scalars]
        for f, x in zip(fields, scalars, strict=True):
            sweep.roots[f] = as_node(self.graph, x)
        parent = rebuild(root, iter([self.graph.symbol(("slot", f, "parent")) for f in fields]))
        record = step(self._constants("k"), parent, *(c.at("k") for c in columns))
        for f, x in zip(fields, flatten(record), strict=True):
            self._store(sweep, f, x)
        return LoopColumn(self, record, tuple(("slot", f) for f in fields))

    def inward(self, step: Callable[..., Any], zero: Any, *columns: LoopColumn) -> LoopColumn:
        return self._inward(step, zero, columns)[0]

    def inward_to_base(
        self, step: Callable[..., Any], zero: Any, *columns: LoopColumn
    ) -> tuple[LoopColumn, Any]:
        column, fields, sweep = self._inward(step, zero, columns)
        sweep.closed = True
        handed = iter([self.graph.symbol(("slot", f, "root")) for f in fields])
        return column, rebuild(zero, handed)

    def _inward(
        self, step: Callable[..., Any], zero: Any, columns: Sequence[LoopColumn]
    ) -> tuple[LoopColumn, list[int], Sweep]:
        sweep = self._open("inward")
        fields = [self._new_field() for _ in flatten(zero)]
        sweep.zeros.extend(fields)
        self._sums.update(("slot", f) for f in fields)
        children = rebuild(zero, iter([self.graph.symbol(("slot", f, "k")) for f in fields]))
        record, handed = step(self._constants("k"), children, *(c.at("k") for c in columns))
        for f, x in zip(fields, flatten(handed), strict=True):
            sweep.sums.append((f, as_node(self.graph, x), "parent"))
        return self._column(sweep, record), fields, sweep

    def total(self, step: Callable[..., Any], zero: Any, *columns: LoopColumn) -> Any:
        sweep = self._open("any")
        record = step(self._constants("k"), *(c.at("k") for c in columns))
        fields = [self._new_field() for _ in flatten(zero)]
        for f, x in zip(fields, flatten(record), strict=True):
            sweep.roots[f] = as_node(self.graph, 0.0)
            sweep.sums.append((f, as_node(self.graph, x), "root"))
        sweep.closed = True
        return rebuild(zero, iter([self.graph.symbol(("slot", f, "root")) for f in fields]))

    def climb(
        self, step: Callable[..., Any], start: LoopColumn, *columns: LoopColumn
    ) -> LoopMatrix:
        def one(carried: Any, own: Any, above: Any) -> Any:
            pair, carried = step(carried, own, above)
            return (pair,), carried

        return self.climbs(1, one, start, *columns)[0]

    def climbs(
        self, count: int, step: Callable[..., Any], start: LoopColumn, *columns: LoopColumn
    ) -> list[LoopMatrix]:
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
        loop = Climb(begun, kept, both)
        self.loops.append(loop)
        return [LoopMatrix(loop, i) for i in range(count)]

    def kept(self, record: Any) -> Any:
        sweep = Sweep("any", closed=True)
        self.loops.append(sweep)
        out: list[Any] = []
        for x in flatten(record):
            if isinstance(x, Expr):
                f = self._new_field()
                sweep.roots[f] = x.node
                x = self.graph.symbol(("slot", f, "root"))
            out.append(x)
        return rebuild(record, iter(out))

    def preceded(self, head: Sequence[Any], column: LoopColumn) -> Preceded:
        return Preceded(head, column)

    def bordered(
        self, matrix: LoopMatrix, sides: LoopColumn, corner: Sequence[Sequence[Any]]
    ) -> LoopMatrix:
        return replace(matrix, sides=sides, corner=corner)

    # ---- what a step writes ----

    def _open(self, direction: str) -> Sweep:
        """The last loop where it runs in the same direction, else a new one."""
        last = self.loops[-1] if self.loops else None
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
        self.loops.append(sweep)
        return sweep

    def _new_field(self) -> int:
        self._fields += 1
        return self._fields - 1

    def _store(self, sweep: Sweep, f: int, x: Any) -> None:
        sweep.stores[f] = as_node(self.graph, x)
        self._written[f] = x

    def _column(self, sweep: Sweep, record: Any) -> LoopColumn:
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
        return LoopColumn(self, record, tuple(sources))

    # ---- results ----

    def output(self, port: int, value: Any) -> None:
        """Send a column, a matrix or numbers of the whole tree to an output."""
        matrices = [value] if isinstance(value, LoopMatrix) else value
        if isinstance(matrices, list) and isinstance(matrices[0], LoopMatrix):
            for i, matrix in enumerate(matrices):
                self._output_matrix(port, i, matrix)
        elif isinstance(value, Preceded):
            self._output_column(port, value.column, "row")
            self._output_once(port, list(enumerate(value.head)))
        elif isinstance(value, LoopColumn):
            self._output_column(port, value, "row")
        else:
            self._output_once(port, list(enumerate(flatten(value))))

    def _output_matrix(self, port: int, number: int, matrix: LoopMatrix) -> None:
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
        if not (self.loops and isinstance(self.loops[-1], Once)):
            self.loops.append(Once())
        once = self.loops[-1]
        assert isinstance(once, Once)
        once.outputs.extend((port, place, as_node(self.graph, x)) for place, x in numbers)

    def _output_column(self, port: int, column: LoopColumn, layout: str, first: int = 0) -> None:
        for i, source in enumerate(column.sources, first):
            if source == 0.0 and layout == "sides":
                continue  # matrices are zero where nothing is written
            maker = self._maker(source)
            if maker is not None:
                assert not isinstance(source, float)
                maker.outputs.append((port, layout, i, maker.stores[source[1]]))
                continue
            last = next(
                (
                    loop
                    for loop in reversed(self.loops)
                    if isinstance(loop, Sweep) and loop.direction == "any"
                ),
                None,
            )
            if last is None:
                last = Sweep("any")
                self.loops.append(last)
            last.outputs.append((port, layout, i, as_node(self.graph, self.graph_value(source))))

    def graph_value(self, source: Source) -> Any:
        """A scalar of a column at link k, read from memory."""
        return source if isinstance(source, float) else self.graph.symbol((*source, "k"))

    def _maker(self, source: Source) -> Sweep | None:
        """The loop that stores a field."""
        if isinstance(source, float) or source[0] != "slot":
            return None
        return next(
            loop for loop in self.loops if isinstance(loop, Sweep) and source[1] in loop.stores
        )

    def program(
        self, name: str, inputs: Sequence[Argument], outputs: Sequence[Argument], extras: int
    ) -> RolledProgram:
        """The recorded loops, without values that are never read."""
        needed = self._needed_fields()
        for loop in self.loops:
            if isinstance(loop, Sweep):
                loop.roots = {f: x for f, x in loop.roots.items() if f in needed}
                loop.zeros = [f for f in loop.zeros if f in needed]
                loop.stores = {f: x for f, x in loop.stores.items() if f in needed}
                loop.sums = [s for s in loop.sums if s[0] in needed]
        kept = [
            loop
            for loop in self.loops
            if not isinstance(loop, Sweep)
            or (loop.stores or loop.sums or loop.outputs or loop.roots)
        ]
        lasting, brief = self._places(needed, kept)
        constants = len(flatten(self._link))
        return RolledProgram(
            name,
            self.graph,
            tuple(inputs),
            tuple(outputs),
            tuple(kept),
            lasting,
            brief,
            constants,
            extras,
        )

    def _places(
        self, needed: set[int], loops: Sequence[Sweep | Climb | Once]
    ) -> tuple[dict[int, int], dict[int, int]]:
        """Places of lasting and of brief fields; lasting fields that are never alive in the same
        loop share one.
        """
        alive: dict[int, list[int]] = {f: [] for f in needed}
        for i, loop in enumerate(loops):
            roots = loop_roots(loop)
            written = (
                {*loop.roots, *loop.zeros, *loop.stores, *(s[0] for s in loop.sums)}
                if isinstance(loop, Sweep)
                else set()
            )
            read = {
                name[1]
                for _, name in symbols(self.graph, self.graph.reachable(roots))
                if name[0] == "slot"
            }
            for f in (written | read) & needed:
                alive[f].append(i)
        brief: dict[int, list[int]] = {}
        for f in sorted(needed):
            loop = loops[alive[f][0]]
            passed = isinstance(loop, Sweep) and (
                f in loop.zeros or (f in loop.roots and f in loop.stores)
            )
            if len(alive[f]) == 1 and passed:
                brief[f] = alive[f]
        return _share({f: alive[f] for f in needed if f not in brief}), _share(brief)

    def _needed_fields(self) -> set[int]:
        """Fields that a result depends on, found by following reads until nothing new appears."""
        producers: dict[int, list[int]] = {}
        results: list[int] = []
        for loop in self.loops:
            if isinstance(loop, Sweep):
                for f, node in [
                    *loop.stores.items(),
                    *loop.roots.items(),
                    *((f, node) for f, node, _ in loop.sums),
                ]:
                    producers.setdefault(f, []).append(node)
                results += [node for *_, node in loop.outputs]
            else:
                results += loop_roots(loop)
        needed: set[int] = set()
        queue = results
        seen: set[int] = set()
        while queue:
            fresh = [x for x in self.graph.reachable(queue) if x not in seen]
            seen.update(fresh)
            queue = []
            for _, name in symbols(self.graph, fresh):
                if name[0] == "slot" and name[1] not in needed:
                    needed.add(name[1])
                    queue += producers.get(name[1], [])
        return needed


def loop_roots(loop: Sweep | Climb | Once) -> list[int]:
    """The nodes that a loop computes."""
    if isinstance(loop, Climb):
        return [*loop.start, *loop.carry, *(node for pair in loop.entries for node in pair)]
    roots = [node for *_, node in loop.outputs]
    if isinstance(loop, Sweep):
        roots += [*loop.roots.values(), *loop.stores.values(), *(node for _, node, _ in loop.sums)]
    return roots


def _share(alive: dict[int, list[int]]) -> dict[int, int]:
    """A place for every field, given the loops that use it; one place may serve fields one after
    the other.
    """
    places: dict[int, int] = {}
    last: list[int] = []  # for every place, the last loop that uses it
    for f in sorted(alive, key=lambda f: (alive[f][0], f)):
        place = next((p for p, loop in enumerate(last) if loop < alive[f][0]), len(last))
        last[place : place + 1] = [alive[f][-1]]
        places[f] = place
    return places
