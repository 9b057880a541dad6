"""The loops of a robot file: two frames and the joint that closes them; and files that give a
closed system whole: ``joints`` lists every joint with both its ends, ``cut`` may say which to cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

from ramify.core.errors import ModelError
from ramify.documents.forms import Listed, Name, NotedError, Number, OneWord, Reading
from ramify.documents.kinds import PartForm, read_part
from ramify.documents.mistakes import Path
from ramify.files.frame_schema import Rotated
from ramify.files.link_reader import limits_of
from ramify.files.robot_schema import Z_AXIS, Direction, Prose, UnnamedJointPart
from ramify.model.build import LinkSpec
from ramify.model.elements import elements
from ramify.model.loop import COUPLINGS, LOOP_KINDS, Loop, LoopEnd
from ramify.model.mechanism import WholeJoint, opened

ENDS: Final = ("first", "second")
OWN: Final = ("parent", "joint", "dh", "classical_dh", "frame", "outlet")
"""Keys of a link that say how it hangs on its parent: joints say so where a file has them."""

Exists = Callable[[str], bool]
"""Whether a link of that name exists."""


@dataclass(frozen=True, kw_only=True)
class ClosingPart:
    """The joint that closes a loop."""

    type: Annotated[str, OneWord("joint that closes a loop", LOOP_KINDS)]
    axis: Direction = Z_AXIS
    sequence: Prose = ""
    planar: bool = False
    length: Annotated[float, Number(above=0.0)] = 0.0
    joints: Annotated[list[str] | tuple[str, ...], Listed(Name())] = ()
    ratio: float = 1.0
    offset: float = 0.0
    tendons: Annotated[list[str] | tuple[str, ...], Listed(Name())] = ()
    curve: Annotated[list[float] | tuple[float, ...], Listed(Number())] = ()


@dataclass(frozen=True, kw_only=True)
class EndPart(Rotated):
    """A frame on a link; on the base where no link is named."""

    link: str | None = None

    def end(self, path: Path, reading: Reading, exists: Exists) -> LoopEnd:
        if self.link is not None and not exists(self.link):
            reading.refuse((*path, "link"), f"no link is named {self.link!r}")
        return LoopEnd(self.link, self.to_frame(path, reading))


@dataclass(frozen=True, kw_only=True)
class LoopPart:
    """A loop; a gear or coupling has coordinates or tendons instead of ends."""

    name: str
    joint: Annotated[ClosingPart, PartForm(ClosingPart, "type")]
    first: EndPart | None = None
    second: EndPart | None = None


@dataclass(frozen=True, kw_only=True)
class WholeJointPart(UnnamedJointPart):
    """A joint; ``planar`` where it moves in a plane anyway, should it be cut."""

    planar: bool = False


@dataclass(frozen=True, kw_only=True)
class WholePart:
    """A joint between two frames, described as a loop is."""

    name: str
    joint: Annotated[WholeJointPart, PartForm(WholeJointPart, "type")] = WholeJointPart(machine={})
    first: EndPart = EndPart()
    second: EndPart = EndPart()


def read_loops(items: Sequence[object], reading: Reading, exists: Exists) -> list[Loop]:
    """The loops of a file; what is wrong is noted with its place."""
    out: list[Loop] = []
    for i, raw in enumerate(items):
        try:
            loop = _loop(raw, ("loops", i), reading, exists)
        except NotedError:
            continue
        if loop.name in (other.name for other in out):
            text = f"two loops are named {loop.name!r}; names must differ"
            reading.refuse(("loops", i, "name"), text)
        out.append(loop)
    return out


def _loop(raw: object, path: Path, reading: Reading, exists: Exists) -> Loop:
    part = read_part(LoopPart, raw, path, reading)
    joint, ends = part.joint, list[LoopEnd]()
    couples = joint.type in COUPLINGS
    for side in ENDS:
        end: EndPart | None = getattr(part, side)
        if end is None and not couples:
            raise reading.refuse(path, f"{side} is missing")
        if end is not None and couples:
            raise reading.refuse((*path, side), f"{side} does not belong in a {joint.type}")
        ends.append(LoopEnd(None) if end is None else end.end((*path, side), reading, exists))
    try:
        return Loop(
            part.name,
            joint.type,
            ends[0],
            ends[1],
            joint.axis,
            joint.sequence,
            joint.planar,
            joint.length,
            tuple(joint.joints),
            joint.ratio,
            joint.offset,
            tuple(joint.tendons),
            tuple(joint.curve),
        )
    except ModelError as error:
        raise reading.refuse((*path, "joint"), str(error)) from None


def read_whole(
    document: Mapping[str, Any], links: Sequence[LinkSpec], reading: Reading, exists: Exists
) -> tuple[list[LinkSpec], list[Loop]]:
    """Links on their joints, and the loops. What is wrong is noted with its place, and the
    rest is read as well as it can be.
    """
    given, cut = document.get("joints"), document.get("cut")
    joints: list[WholeJoint] = []
    for i, raw in enumerate(given if isinstance(given, list) else []):
        try:
            joints.append(_whole(raw, ("joints", i), reading, exists))
        except NotedError:
            continue
    if not reading.mistakes:
        try:
            return opened(links, joints, cut)
        except ModelError as error:
            at: Path = ("joints",) if cut is None else ("cut",)
            if error.key[:1] == ("joints",):
                at = ("joints", [joint.name for joint in joints].index(str(error.key[1])))
            reading.refuse(at, str(error))
    return list(links), []


def _whole(raw: object, path: Path, reading: Reading, exists: Exists) -> WholeJoint:
    part = read_part(WholePart, raw, path, reading)
    first, second = (getattr(part, side).end((*path, side), reading, exists) for side in ENDS)
    joint, at = part.joint, (*path, "joint")
    try:
        whole = WholeJoint(
            part.name,
            joint.type,
            first,
            second,
            joint.axis or Z_AXIS,
            joint.sequence,
            joint.pitch,
            limits_of(joint, at, reading),
            joint.actuated,
            joint.planar,
        )
        return replace(whole, elements=elements(whole.edge.dof, joint.machine))
    except ModelError as error:
        raise reading.refuse(at, str(error)) from None
