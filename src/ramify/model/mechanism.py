"""Closed systems given whole: bodies, and every joint between two of them. Which joints to cut is
chosen here, or given.

A joint is described by two frames, one on each of its bodies, that the joint lets move against each
other; this is also how a loop is described, so a joint can become either: a joint of the tree, or
one that closes a loop.

A cut joint has no coordinate. One that needs it (for limits, friction, a drive, …) stays in the
tree: the body beyond it is split instead, into parts of equal mass and inertia that a fixed loop
joins again. The motion is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Final, NamedTuple

from ramify.core.errors import ModelError, about
from ramify.core.names import fresh
from ramify.model.build import LinkSpec, point_of
from ramify.model.elements import Element
from ramify.model.frame import Frame, as_frame
from ramify.model.joint import Joint
from ramify.model.loop import COUPLINGS, LOOP_KINDS, Loop, LoopEnd
from ramify.model.mechanism_graph import Edge, SpanningTree, Way, cut_at, least_cdof

_CLOSING: Final = {
    kind: kind for kind in LOOP_KINDS if kind not in ("point_on_line", "distance", *COUPLINGS)
} | {"ball": "spherical"}
"""Joints that can be cut, and what closes the loop then."""

HERE: Final = Frame()
_AXIAL: Final = ("revolute", "prismatic", "helical", "cylindrical")
_TURNED: Final = ("fixed", "ball", "universal", "spherical")


def edge_of(joint: Joint, first: str | None, second: str | None) -> Edge:
    """A joint between two bodies as one of the graph; laden where it needs its coordinates for more
    than a drive.
    """
    laden = (
        joint.kind not in _CLOSING
        or any(isfinite(x) for pair in joint.limits for x in pair)
        or not all(element.idle for element in joint.elements)
    )
    return Edge(joint.name, first, second, joint.kind, joint.dof, joint.actuated, laden)


@dataclass(frozen=True)
class WholeJoint:
    """A joint of a closed system between the frames ``first`` and ``second``; the other fields are
    those of Joint and Loop.
    """

    name: str
    kind: str
    first: LoopEnd
    second: LoopEnd
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    sequence: str = ""
    pitch: float = 0.0
    limits: tuple[tuple[float, float], ...] = ()
    actuated: bool = True
    planar: bool = False
    elements: tuple[Element, ...] = ()

    def joint(
        self, placement: Frame = HERE, outlet: Frame = HERE, backwards: bool = False
    ) -> Joint:
        own = (self.axis, self.sequence, self.pitch, self.limits, self.actuated, self.elements)
        return Joint(self.name, self.kind, placement, outlet, *own, backwards)

    @property
    def edge(self) -> Edge:
        return edge_of(self.joint(), self.first.link, self.second.link)

    def on_tree(self, way: Way) -> Joint:
        """The joint as one of the tree, from the parent's frame to the body's.

        Walked from its second body to its first it keeps its coordinates where it has an axis
        (which is turned round). The angles of universal and spherical joints are then those of the
        opposite motion: last first, negative.
        """
        ends = (self.second, self.first) if way.backwards else (self.first, self.second)
        joint = self.joint(ends[0].frame, ends[1].frame.inverse(), way.backwards)
        if not way.backwards or self.kind in ("fixed", "ball"):
            return joint
        if self.kind in _AXIAL:
            x, y, z = self.axis
            return replace(joint, axis=(-x, -y, -z))
        if self.kind in _TURNED:
            limits = tuple((-high, -low) for low, high in reversed(self.limits))
            turned = tuple(element.turned for element in reversed(self.elements))
            return replace(joint, sequence=joint.sequence[::-1], limits=limits, elements=turned)
        raise ModelError(
            f"joint {self.name!r}: the tree reaches it from its second body; list the ends of a "
            f"{self.kind} joint in reverse"
        )

    def closing(self) -> Loop:
        """The joint as one that closes a loop."""
        kind = _CLOSING[self.kind]
        axis = self.axis if self.kind in _AXIAL else (0.0, 0.0, 1.0)
        sequence = self.sequence if kind == "universal" else ""
        planar = self.planar and kind == "revolute"
        return Loop(self.name, kind, self.first, self.second, axis, sequence, planar)

    def tree_joint(self, joints: Sequence[WholeJoint]) -> TreeJoint:
        """The joint in the tree although it closes a loop. The plane is that of any planar pin of
        the body, its own first.
        """
        backwards = self.second.link is None
        near, far = (self.second, self.first) if backwards else (self.first, self.second)
        assert far.link is not None
        way = Way(far.link, near.link, self.edge, backwards, 0)
        for joint in (self, *joints):
            for end in (joint.first, joint.second):
                if joint.planar and joint.kind == "revolute" and end.link == far.link:
                    normal = end.frame.rotation @ joint.axis
                    return TreeJoint(far.link, near.link, self.on_tree(way), point_of(normal))
        return TreeJoint(far.link, near.link, self.on_tree(way))


class TreeJoint(NamedTuple):
    """A joint that closes a loop and keeps its coordinates, between ``body`` and ``parent``, and
    the normal of the plane in which the body moves, in the body's frame.
    """

    body: str
    parent: str | None
    joint: Joint
    normal: tuple[float, float, float] | None = None


def split_bodies(
    links: Sequence[LinkSpec], tree_joints: Sequence[TreeJoint]
) -> tuple[list[LinkSpec], list[Loop]]:
    """The links with a part of its body on every joint that is kept, and the loops that join the
    parts to their bodies. Only the first part has shapes and points.
    """
    taken = {spec.name for spec in links}
    parts: list[LinkSpec] = []
    welds: list[Loop] = []
    shared: dict[str, LinkSpec] = {}
    for spec in links:
        on_body = [one for one in tree_joints if one.body == spec.name]
        n = len(on_body) + 1
        (lifted, centre) = spec.lift
        shared[spec.name] = share = (
            replace(spec, mass=spec.mass / n, inertia=spec.inertia / n, lift=(lifted / n, centre))
            if on_body
            else spec
        )
        for i, (body, parent, joint, normal) in enumerate(on_body, start=2):
            name = f"{body} (second half)" if n == 2 else f"{body} (part {i} of {n})"
            taken.add(name := fresh(name, taken))
            parts.append(
                replace(share, name=name, parent=parent, joint=joint, shapes=(), points=())
            )
            seat = joint.outlet.inverse()
            axis = (0.0, 0.0, 1.0) if normal is None else point_of(seat.rotation.T @ normal)
            ends = LoopEnd(body, seat), LoopEnd(name, seat)
            weld = fresh(f"weld of {body}", [loop.name for loop in welds])
            welds.append(Loop(weld, "fixed", *ends, axis, planar=normal is not None))
    return [*shared.values(), *parts], welds


def opened(
    bodies: Sequence[LinkSpec], joints: Sequence[WholeJoint], cut: Sequence[str] | None
) -> tuple[list[LinkSpec], list[Loop]]:
    """A closed system as links of a tree, in the order of the bodies where that can be, and the
    loops that close it.

    cut: names of the joints to cut; by default they are chosen by minimum cumulative degree of
    freedom (sections 8.1, 8.4). Those that need their coordinates are kept (``split_bodies``).
    """
    tree = spanned([spec.name for spec in bodies], joints, cut)
    by_name = {joint.name: joint for joint in joints}
    ways = {way.body: way for way in tree.ways}
    links, tree_joints, loops = [], [], []
    for spec in bodies:
        way = ways[spec.name]
        with about("joints", way.joint.name):
            joint = by_name[way.joint.name].on_tree(way)
        links.append(replace(spec, parent=way.parent, joint=joint))
    for edge in tree.cut:
        with about("joints", edge.name):
            if edge.laden or edge.actuated:
                tree_joints.append(by_name[edge.name].tree_joint(joints))
            else:
                loops.append(by_name[edge.name].closing())
    links, welds = split_bodies(links, tree_joints)
    return links, [*loops, *welds]


def spanned(
    names: Sequence[str], joints: Sequence[WholeJoint], cut: Sequence[str] | None
) -> SpanningTree:
    """The tree of a closed system: the least one, or the one that the cut joints leave."""
    edges = [joint.edge for joint in joints]
    return least_cdof(names, edges) if cut is None else cut_at(names, edges, cut)


def guess_without(guess: Mapping[str, float], loops: Sequence[Loop]) -> dict[str, float]:
    """A guess less the coordinates of joints that are cut, which have none."""
    cut = {loop.name for loop in loops}
    return {name: value for name, value in guess.items() if name.partition(".")[0] not in cut}


def end_of(end: Any) -> LoopEnd:
    if end is None or isinstance(end, str):
        return LoopEnd(end)
    link, at = end
    return LoopEnd(link, as_frame(at))
