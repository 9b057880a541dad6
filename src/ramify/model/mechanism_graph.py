"""A mechanism as a graph: bodies joined by joints, and which joints to cut so that a tree remains
(sections 8.1 and 8.4).

A mechanism of n moving bodies and c joints has c - n independent loops, and as many joints must be
cut. The *cumulative degree of freedom* (CDOF) of a body is the sum of the degrees of freedom of the
joints on a way from the base to it. Every body stays on its way of least CDOF; the joints that are
on no such way are cut. So the tree is shallow and its recursions short.

A cut joint has no coordinate, so none for an actuator, a limit or friction. Driven joints are
therefore kept where that can be: what a driven joint carries stays on it. Where two ways are
equally short the one over fewer driven joints is taken: the links that hang on a driven joint then
keep to themselves, and what is left is more often determinate (section 8.3). Then the joint that is
listed first wins. If this cuts a joint that needs its coordinate, such joints are kept before
others are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ramify.core.errors import ModelError
from ramify.core.messages import shown
from ramify.core.names import names_of

BASE = "base"
"""What the base is called where a graph is shown."""


@dataclass(frozen=True)
class Edge:
    """A joint between two bodies (None: the base), its type in words, its degrees of freedom,
    whether it is driven, and whether it needs its coordinate for something else.
    """

    name: str
    first: str | None
    second: str | None
    kind: str = "revolute"
    dof: int = 1
    actuated: bool = False
    laden: bool = False

    def other(self, body: str | None) -> str | None:
        """The body at its other end."""
        return self.second if body == self.first else self.first


@dataclass(frozen=True)
class Way:
    """How a body hangs in the tree: its parent, the joint between them, whether that joint is
    listed the other way round, and the body's cumulative degree of freedom.
    """

    body: str
    parent: str | None
    joint: Edge
    backwards: bool
    cdof: int


@dataclass(frozen=True)
class SpanningTree:
    """A graph cut open: ``ways`` of the bodies, parents first, and the joints ``cut``. ``chosen``
    says by whom.
    """

    ways: tuple[Way, ...]
    cut: tuple[Edge, ...]
    chosen: str

    def cdof(self, body: str | None) -> int:
        """Cumulative degree of freedom of a body, 0 for the base."""
        return next((way.cdof for way in self.ways if way.body == body), 0)


def least_cdof(bodies: Sequence[str], edges: Sequence[Edge]) -> SpanningTree:
    """The tree of ways of least cumulative degree of freedom (section 8.4).

    ModelError where some body cannot be reached.
    """
    _check(bodies, edges)
    how = "minimum cumulative degree of freedom"
    tree = _grown(bodies, edges, (), how)
    if not any(edge.laden for edge in tree.cut):
        return tree
    return _grown(bodies, edges, (), f"{how}, joints with limits or elements kept", True)


def cut_at(bodies: Sequence[str], edges: Sequence[Edge], cut: Iterable[str]) -> SpanningTree:
    """The tree that remains when the named joints are cut. ModelError where they leave a loop
    closed or a body loose.
    """
    _check(bodies, edges)
    cut = names_of("cut", cut)
    names = {edge.name for edge in edges}
    for name in cut:
        if name not in names:
            raise ModelError(
                f"cut names {name!r}, which is not a joint; the joints are "
                f"{', '.join(sorted(names))}"
            )
    if len(set(cut)) < len(cut):
        raise ModelError(f"cut names a joint twice: {', '.join(cut)}")
    loops = len(edges) - len(bodies)
    tree = _grown(bodies, edges, cut, "given")
    still_closed = [edge.name for edge in tree.cut if edge.name not in cut]
    if still_closed:
        raise ModelError(
            f"{len(cut)} cut joints leave a loop closed through {still_closed[0]!r}: this "
            f"mechanism has {loops} independent loops, "
            f"so {loops} joints must be cut"
        )
    return tree


def _check(bodies: Sequence[str], edges: Sequence[Edge]) -> None:
    names = {*bodies, None}
    joints: set[str] = set()
    for edge in edges:
        if not isinstance(edge.name, str):
            raise ModelError(f"the name of a joint must be a text; got {shown(edge.name)}")
        if edge.name in joints:
            raise ModelError(
                f"two joints are named {edge.name!r}; names must differ", key=("joints", edge.name)
            )
        joints.add(edge.name)
        for body in (edge.first, edge.second):
            if not isinstance(body, str | None) or body not in names:
                raise ModelError(
                    f"joint {edge.name!r} names {shown(body)}, which is not a body; the bodies are "
                    f"{', '.join(bodies)}",
                    key=("joints", edge.name),
                )
        if edge.first == edge.second:
            raise ModelError(
                f"joint {edge.name!r} joins {edge.first or BASE!r} to itself; it needs two bodies",
                key=("joints", edge.name),
            )


def _grown(
    bodies: Sequence[str],
    edges: Sequence[Edge],
    barred: Sequence[str],
    chosen: str,
    laden_first: bool = False,
) -> SpanningTree:
    """Dijkstra's shortest ways from the base; a joint's length is its degrees of freedom. Driven
    joints go first, then laden ones if so wished.
    """
    usable = [(i, edge) for i, edge in enumerate(edges) if edge.name not in barred]
    ways: dict[str | None, Way] = {}
    while True:
        best: tuple[tuple[bool, bool, int, int, int], Way] | None = None
        for i, edge in usable:
            ends = [body for body in (edge.first, edge.second) if body is None or body in ways]
            if len(ends) != 1:
                continue
            parent, body = ends[0], edge.other(ends[0])
            assert body is not None
            cdof = edge.dof + (ways[parent].cdof if parent is not None else 0)
            light = laden_first and not edge.laden
            rank = (not edge.actuated, light, cdof, _driven(ways, parent) + edge.actuated, i)
            if best is None or rank < best[0]:
                best = rank, Way(body, parent, edge, edge.second == parent, cdof)
        if best is None:
            break
        ways[best[1].body] = best[1]
    loose = [body for body in bodies if body not in ways]
    if loose:
        without = f" without {', '.join(barred)}" if barred else ""
        raise ModelError(
            f"body {loose[0]!r} hangs on nothing: no joint leads from the base to it{without}"
        )
    used = {way.joint.name for way in ways.values()}
    cut = tuple(edge for edge in edges if edge.name not in used)
    return SpanningTree(tuple(ways.values()), cut, chosen)


def _driven(ways: Mapping[str | None, Way], body: str | None) -> int:
    """Driven joints between the base and a body."""
    count = 0
    while body is not None:
        count += ways[body].joint.actuated
        body = ways[body].parent
    return count
