"""Robot files that give a closed system whole: ``joints`` lists every joint with both its ends,
``cut`` may say which to cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictBool

from ramify.core.errors import ModelError
from ramify.core.messages import near
from ramify.documents.mistakes import Mistakes, Path
from ramify.documents.schema import NameStr, Part, validate
from ramify.files.link_reader import ANGULAR, frame_of
from ramify.files.loop_reader import EndPart
from ramify.files.robot_schema import JointPart, clashes_of_frame
from ramify.model.build import LinkSpec
from ramify.model.elements import elements
from ramify.model.loop import Loop, LoopEnd
from ramify.model.mechanism import WholeJoint, opened

OWN = ("parent", "joint", "dh", "classical_dh", "frame", "outlet")
"""Keys of a link that say how it hangs on its parent: joints say so where a file has them."""


def _joint(value: object) -> object:
    return {"type": value} if isinstance(value, str) else value


class WholeJointPart(JointPart):
    """A joint without a name of its own; ``planar`` where it moves in a plane anyway, should it be
    cut.
    """

    name: None = None
    planar: StrictBool = False


class WholePart(Part):
    """A joint between two frames, described as a loop is."""

    name: NameStr
    joint: Annotated[WholeJointPart, BeforeValidator(_joint)] = Field(
        default_factory=WholeJointPart
    )
    first: EndPart = Field(default_factory=EndPart)
    second: EndPart = Field(default_factory=EndPart)


_KEYS: Mapping[str, type[Part]] = {"joint": WholeJointPart, "first": EndPart, "second": EndPart}


def read_whole(
    document: Mapping[str, Any],
    links: Sequence[LinkSpec],
    names: Mapping[str, float],
    mistakes: Mistakes,
    known: Callable[[str], bool],
) -> tuple[list[LinkSpec], list[Loop]]:
    """Links on their joints, and the loops. What is wrong is noted with its place; the rest is then
    as good as can be.
    """
    given = document.get("joints")
    joints: list[WholeJoint] = []
    for i, raw in enumerate(given if isinstance(given, list) else []):
        joint = _read(raw, ("joints", i), names, mistakes, known)
        if joint is not None:
            joints.append(joint)
    if mistakes:
        return list(links), []
    cut = document.get("cut")
    try:
        return opened(links, joints, cut)
    except ModelError as error:
        mistakes.add(_blamed(str(error), joints, cut is not None), str(error))
        return list(links), []


def _read(
    raw: Any,
    path: Path,
    names: Mapping[str, float],
    mistakes: Mistakes,
    known: Callable[[str], bool],
) -> WholeJoint | None:
    part, found = validate(WholePart, raw, names)
    for where, text, key in found:
        mistakes.add((*path, *where), "unknown key" + _hint(where) if key else text, key=key)
    if part is None:
        return None
    for side in ("first", "second"):
        for where, text in clashes_of_frame(raw.get(side), (side,)):
            mistakes.add((*path, *where), text)
        link = getattr(part, side).link
        if link is not None and not known(link):
            mistakes.add((*path, side, "link"), f"no link is named {link!r}")
    joint = part.joint
    limits = joint.limits or [
        (math.radians(low), math.radians(high)) for low, high in joint.limits_deg
    ]
    if joint.limits_deg and joint.type not in ANGULAR:
        mistakes.add(
            (*path, "joint", "limits_deg"),
            f"the coordinates of a {joint.type} joint are not all angles; give limits",
        )
    axis = (0.0, 0.0, 1.0) if joint.axis is None else joint.axis
    first, second = (
        _end(getattr(part, side), (*path, side), mistakes) for side in ("first", "second")
    )
    whole = WholeJoint(
        part.name,
        joint.type,
        first,
        second,
        axis,
        joint.sequence,
        joint.pitch,
        tuple(limits),
        joint.actuated,
        joint.planar,
    )
    try:
        whole = replace(whole, elements=elements(whole.edge.dof, joint.machine))
    except ModelError as error:
        mistakes.add((*path, "joint"), str(error))
        return None
    return whole


def _end(part: EndPart, path: Path, mistakes: Mistakes) -> LoopEnd:
    return LoopEnd(
        part.link, frame_of(part, (), lambda where, text: mistakes.add((*path, *where), text))
    )


def _hint(where: Path) -> str:
    part = _KEYS.get(str(where[0]), WholePart) if len(where) > 1 else WholePart
    return near(str(where[-1]), list(part.model_fields))


def _blamed(error: str, joints: Sequence[WholeJoint], cut: bool) -> Path:
    """The part of the file that an error is about."""
    for i, joint in enumerate(joints):
        if error.startswith((f"joint {joint.name!r}", f"two joints are named {joint.name!r}")):
            return "joints", i
    return ("cut",) if cut else ("joints",)
