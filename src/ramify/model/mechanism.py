"""Closed systems given whole: bodies, and every joint between two of them. Which joints to cut is
chosen here, or given.

A joint is described by two frames, one on each of its bodies, that the joint lets move against each
other; this is also how a loop is described, so a joint can become either: a joint of the tree, or
one that closes a loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ramify.core.errors import ModelError
from ramify.model.build import LinkSpec
from ramify.model.elements import Element
from ramify.model.frame import as_frame
from ramify.model.joint import Joint
from ramify.model.loop import LOOP_KINDS, Loop, LoopEnd
from ramify.model.mechanism_graph import Edge, SpanningTree, Way, cut_at, least_cdof

_CLOSING: Final = {
    kind: kind for kind in LOOP_KINDS if kind not in ("point_on_line", "distance", "gear")
} | {"ball": "spherical"}
"""Joints that can be cut, and what closes the loop then."""

_AXIAL: Final = ("revolute", "prismatic", "helical", "cylindrical")
_TURNED: Final = ("fixed", "ball", "universal", "spherical")


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

    @property
    def edge(self) -> Edge:
        dof = Joint(
            self.name,
            self.kind,
            axis=self.axis,
            sequence=self.sequence,
            pitch=self.pitch,
            limits=self.limits,
        ).dof
        return Edge(self.name, self.first.link, self.second.link, self.kind, dof, self.actuated)

    def on_tree(self, way: Way) -> Joint:
        """The joint as one of the tree, from the parent's frame to the body's.

        Walked from its second body to its first it keeps its coordinates where it has an axis
        (which is turned round). The angles of universal and spherical joints are then those of the
        opposite motion: last first, negative.
        """
        ends = (self.second, self.first) if way.backwards else (self.first, self.second)
        placement, outlet = ends[0].frame, ends[1].frame.inverse()
        joint = Joint(
            self.name,
            self.kind,
            placement,
            outlet,
            self.axis,
            self.sequence,
            self.pitch,
            self.limits,
            self.actuated,
            self.elements,
        )
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
        if self.kind not in _CLOSING:
            raise ModelError(
                f"joint {self.name!r}: a {self.kind} joint cannot be cut; give cut, a list of "
                "other joints"
            )
        if self.elements:
            raise ModelError(
                f"joint {self.name!r} would be cut, and a cut joint has no rotor, spring, damping, "
                "friction or drive; give cut, a list of other joints"
            )
        kind = _CLOSING[self.kind]
        axis = self.axis if self.kind in _AXIAL else (0.0, 0.0, 1.0)
        sequence = self.sequence if kind == "universal" else ""
        return Loop(
            self.name,
            kind,
            self.first,
            self.second,
            axis,
            sequence,
            self.planar and kind == "revolute",
        )


def opened(
    bodies: Sequence[LinkSpec], joints: Sequence[WholeJoint], cut: Sequence[str] | None
) -> tuple[list[LinkSpec], list[Loop]]:
    """A closed system as links of a tree, in the order of the bodies where that can be, and the
    loops that close it.

    cut: names of the joints to cut; by default they are chosen by minimum cumulative degree of
    freedom (sections 8.1, 8.4).
    """
    names = [spec.name for spec in bodies]
    tree = spanned(names, joints, cut)
    by_name = {joint.name: joint for joint in joints}
    ways = {way.body: way for way in tree.ways}
    links = [
        replace(
            spec,
            parent=ways[spec.name].parent,
            joint=by_name[ways[spec.name].joint.name].on_tree(ways[spec.name]),
        )
        for spec in bodies
    ]
    return links, [by_name[edge.name].closing() for edge in tree.cut]


def spanned(
    names: Sequence[str], joints: Sequence[WholeJoint], cut: Sequence[str] | None
) -> SpanningTree:
    """The tree of a closed system: the least one, or the one that the cut joints leave."""
    edges = [joint.edge for joint in joints]
    return least_cdof(names, edges) if cut is None else cut_at(names, edges, cut)


def without(guess: Mapping[str, float], loops: Sequence[Loop]) -> dict[str, float]:
    """A guess less the coordinates of joints that are cut, which have none."""
    cut = {loop.name for loop in loops}
    return {name: value for name, value in guess.items() if name.partition(".")[0] not in cut}


def end_of(given: Any) -> LoopEnd:
    if given is None or isinstance(given, str):
        return LoopEnd(given)
    link, at = given
    return LoopEnd(link, as_frame(at))
