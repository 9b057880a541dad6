"""What rolled code is written from: passes over the links, each the body of a loop that a step
recorded once, on symbols.

A record lives in a *slot*, one per link and one (slot 0) for the base; a scalar of a record is a
*field* of the slot. Symbols name what a pass reads: ``("slot", field, who)``, ``("link", i, who)``
(constants), ``("extra", i, who)`` (per-link parameters), ``("in", port, i, who)`` (per-link
inputs), ``("lane", port, i)`` (per-state inputs), ``("global", i)``, ``("carry", i)``; who is k
(the link itself), parent, i and j (a climb's child and parent) or root.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ramify.trace.graph import Graph, as_node, symbols
from ramify.trace.interpret import replay_nodes

SymbolName = tuple[Any, ...]

_LESS: Final = 0.9
"""The part of a pass's operations above which plain links have no code of their own."""


@dataclass
class Sweep:
    """A pass over the links. ``stores`` and ``outputs`` belong to link k, ``sums`` are added to the
    parent's or the root's slot.
    """

    direction: str = "any"
    roots: dict[int, int] = field(default_factory=dict)
    zeros: list[int] = field(default_factory=list)
    stores: dict[int, int] = field(default_factory=dict)
    sums: list[tuple[int, int, str]] = field(default_factory=list)
    outputs: list[tuple[int, str, int, int]] = field(default_factory=list)
    closed: bool = False

    @property
    def writes(self) -> list[tuple[int, int]]:
        """The fields that it writes and the nodes that they get."""
        sums = [(f, node) for f, node, _ in self.sums]
        return [*self.stores.items(), *self.roots.items(), *sums]

    @property
    def needs(self) -> list[int]:
        """The nodes that it needs."""
        return [*(node for *_, node in self.outputs), *(node for _, node in self.writes)]

    @property
    def link_needs(self) -> list[int]:
        """The nodes that it needs at every link."""
        sums = (node for _, node, _ in self.sums)
        return [*self.stores.values(), *sums, *(node for *_, node in self.outputs)]

    def keep(self, needed: set[int]) -> bool:
        """Drop the fields that nothing needs; returns whether anything is left to do."""
        self.roots = {f: x for f, x in self.roots.items() if f in needed}
        self.zeros = [f for f in self.zeros if f in needed]
        self.stores = {f: x for f, x in self.stores.items() if f in needed}
        self.sums = [s for s in self.sums if s[0] in needed]
        return bool(self.stores or self.sums or self.outputs or self.roots)


@dataclass
class Climb:
    """A pass from every link k up to the base. ``start`` and ``carry`` are the carried nodes,
    ``entries`` those of (k, j) and (j, k) of every matrix, which goes to an output as one of the
    numbers it has for each pair.
    """

    start: list[int]
    carry: list[int]
    entries: list[tuple[int, int]]
    outputs: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def needs(self) -> list[int]:
        """The nodes that it needs."""
        return [*self.start, *self.carry, *(node for pair in self.entries for node in pair)]


@dataclass
class Epilogue:
    """Numbers of the whole tree that go out after the passes: (port, position, node); a position in
    a matrix is a row, a column and which number of the pair.
    """

    outputs: list[tuple[int, int | tuple[int, int, int], int]] = field(default_factory=list)

    @property
    def needs(self) -> list[int]:
        """The nodes that it needs."""
        return [node for *_, node in self.outputs]


Pass = Sweep | Climb | Epilogue


@dataclass(frozen=True)
class Argument:
    """An array of numbers: ``count`` of them ``per`` "link", "pair" of links or "state"; a "row" is
    an array even of one. ``base_rows`` numbers (rows of a matrix) precede those of the links, in a
    matrix ``base_columns`` columns, by default as many.
    """

    name: str
    per: str
    count: int
    base_rows: int = 0
    base_columns: int | None = None

    def shape(self, nq: int, nv: int) -> tuple[int, ...]:
        """The shape for a robot with nq coordinates and nv rates, as users see it."""
        if self.per == "coordinate":
            return (nq,)
        if self.per == "pair":
            return (nv, nv * self.count)
        if self.per == "link":
            return (nv,) if self.count == 1 else (nv, self.count)
        if self.per == "row":
            return (self.count,)
        return () if self.count == 1 else (self.count,)

    @property
    def columns(self) -> int:
        """Columns of a matrix before those of the links."""
        return self.base_rows if self.base_columns is None else self.base_columns


@dataclass(frozen=True)
class RolledProgram:
    """Passes in order; inputs and outputs are ports per link, pair of links or state.

    - ``fields``: the places of the used fields in a slot.
    - ``transient_fields``: the places of those that only pass between parent and child within one
      pass; their memory is used again once the last child is done.
    - ``base``: the places of those that the base alone has.
    - ``quaternions``: positions in the first input, per state, where a unit quaternion begins.
    - ``plain``: symbols whose values are known at plain links.
    """

    name: str
    graph: Graph
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    passes: tuple[Pass, ...]
    fields: dict[int, int]
    transient_fields: dict[int, int]
    base: dict[int, int]
    constants: int
    extras: int
    quaternions: tuple[int, ...] = ()
    plain: Mapping[SymbolName, float] = field(default_factory=dict)


@dataclass(frozen=True)
class LinkSteps:
    """The nodes of a pass, by those that stand for them in another graph."""

    graph: Graph
    nodes: dict[int, int]

    @property
    def work(self) -> int:
        """The operations they take."""
        graph = self.graph
        return sum(bool(graph.args[node]) for node in graph.reachable(self.nodes.values()))


def plain_steps(program: RolledProgram) -> list[LinkSteps | None]:
    """For each pass, what is left of it at plain links; None where that is hardly less."""
    values_of_plain, out = dict(program.plain), list[LinkSteps | None]()
    for one in program.passes:
        if not isinstance(one, Sweep):
            out.append(None)
            continue
        steps = _folded(program.graph, one.link_needs, values_of_plain)
        for f, node in one.stores.items():
            if steps.graph.ops[steps.nodes[node]] == "const":
                values_of_plain["slot", f, "k"] = steps.graph.payload[steps.nodes[node]]
        all_work = LinkSteps(program.graph, {node: node for node in one.link_needs}).work
        out.append(steps if steps.work < _LESS * all_work else None)
    return out


def _folded(
    graph: Graph, roots: Sequence[int], values_of_plain: Mapping[SymbolName, float]
) -> LinkSteps:
    """The roots in a new graph, where some symbols are known numbers."""
    new = Graph()

    def symbol(name: SymbolName) -> Any:
        return values_of_plain[name] if name in values_of_plain else new.symbol(name)

    values = replay_nodes(graph, graph.reachable(roots), symbol)
    return LinkSteps(new, {node: as_node(new, values[node]) for node in roots})


def needed_fields(graph: Graph, passes: Sequence[Pass]) -> set[int]:
    """Fields that a result depends on, found by following reads until nothing new appears."""
    producers: dict[int, list[int]] = {}
    queue: list[int] = []
    for one in passes:
        if isinstance(one, Sweep):
            for f, node in one.writes:
                producers.setdefault(f, []).append(node)
            queue += [node for *_, node in one.outputs]
        else:
            queue += one.needs
    needed: set[int] = set()
    visited: set[int] = set()
    while queue:
        fresh = [x for x in graph.reachable(queue) if x not in visited]
        visited.update(fresh)
        queue = []
        for _, name in symbols(graph, fresh):
            if name[0] == "slot" and name[1] not in needed:
                needed.add(name[1])
                queue += producers.get(name[1], [])
    return needed


def field_slots(
    graph: Graph, needed: set[int], passes: Sequence[Pass]
) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """Places of lasting and transient fields and of those of the base."""
    alive: dict[int, list[int]] = {f: [] for f in needed}
    read = [_read_fields(graph, one) for one in passes]
    linked: set[int] = set()  # fields that links have
    for i, one in enumerate(passes):
        used = {f for f, _ in read[i]}
        if isinstance(one, Sweep):
            used |= {*one.zeros, *(f for f, _ in one.writes)}
            linked |= {*one.stores, *one.zeros}
        for f in used & needed:
            alive[f].append(i)

    def is_transient(f: int) -> bool:
        first, *later = alive[f]
        one = passes[first]
        if not isinstance(one, Sweep):
            return False
        if f in one.zeros:  # the base's sum may be read later
            return all(who == "root" for i in later for g, who in read[i] if g == f)
        return not later and f in one.roots and f in one.stores

    transient = {f for f in linked & needed if is_transient(f)}

    def follows(old: int, new: int, i: int) -> bool:
        """Whether pass i, the last one to use a field, can store a new one in its place: each link
        has read its own before.
        """
        one = passes[i]
        return (
            isinstance(one, Sweep)
            and new in one.stores
            and old not in dict(one.writes)
            and {who for f, who in read[i] if f == old} == {"k"}
        )

    groups = (linked & needed) - transient, transient, needed - linked
    lasting, passing, base = ({f: alive[f] for f in group} for group in groups)
    return _allocate_slots(lasting, follows), _allocate_slots(passing), _allocate_slots(base)


def _read_fields(graph: Graph, one: Pass) -> set[tuple[int, str]]:
    """The fields that a pass reads, and whose."""
    names = symbols(graph, graph.reachable(one.needs))
    return {(name[1], name[2]) for _, name in names if name[0] == "slot"}


def _allocate_slots(
    alive: dict[int, list[int]], follows: Callable[[int, int, int], bool] = lambda *_: False
) -> dict[int, int]:
    """A place for every field, from the passes that use it; fields that are never alive at once may
    share one.
    """
    places: dict[int, int] = {}
    owners: list[int] = []  # for every place, the last field that has it
    for f in sorted(alive, key=lambda f: (alive[f][0], f)):
        first = alive[f][0]
        free = (
            place
            for place, old in enumerate(owners)
            if alive[old][-1] < first or (alive[old][-1] == first and follows(old, f, first))
        )
        place = next(free, len(owners))
        owners[place : place + 1] = [f]
        places[f] = place
    return places
