"""Robot files that give a closed system whole: ``joints`` lists every joint with both its ends,
``cut`` may say which to cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, StrictBool

from ramify.core.errors import ModelError
from ramify.documents.mistakes import Mistakes, Path
from ramify.documents.schema import NameStr, Part, validate
from ramify.files.link_reader import limits_of
from ramify.files.loop_reader import SIDES, EndPart, read_end
from ramify.files.robot_schema import JointPart, as_joint
from ramify.model.build import LinkSpec
from ramify.model.elements import elements
from ramify.model.loop import Loop
from ramify.model.mechanism import WholeJoint, opened

OWN = ("parent", "joint", "dh", "classical_dh", "frame", "outlet")
"""Keys of a link that say how it hangs on its parent: joints say so where a file has them."""


class WholeJointPart(JointPart):
    """A joint without a name of its own; ``planar`` where it moves in a plane anyway, should it be
    cut.
    """

    name: None = None
    planar: StrictBool = False


class WholePart(Part):
    """A joint between two frames, described as a loop is."""

    inner: ClassVar = {"joint": WholeJointPart, "first": EndPart, "second": EndPart}

    name: NameStr
    joint: Annotated[WholeJointPart, BeforeValidator(as_joint)] = Field(
        default_factory=WholeJointPart
    )
    first: EndPart = Field(default_factory=EndPart)
    second: EndPart = Field(default_factory=EndPart)


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
    part = validate(WholePart, raw, path, names, mistakes)
    if part is None:
        return None
    first, second = (
        read_end(getattr(part, side), raw.get(side), (*path, side), mistakes, known)
        for side in SIDES
    )
    joint = part.joint
    limits = limits_of(joint, lambda where, text: mistakes.add((*path, *where), text))
    axis = (0.0, 0.0, 1.0) if joint.axis is None else joint.axis
    whole = WholeJoint(
        part.name,
        joint.type,
        first,
        second,
        axis,
        joint.sequence,
        joint.pitch,
        limits,
        joint.actuated,
        joint.planar,
    )
    try:
        whole = replace(whole, elements=elements(whole.edge.dof, joint.machine))
    except ModelError as error:
        mistakes.add((*path, "joint"), str(error))
        return None
    return whole


def _blamed(error: str, joints: Sequence[WholeJoint], cut: bool) -> Path:
    """The part of the file that an error is about."""
    for i, joint in enumerate(joints):
        if error.startswith((f"joint {joint.name!r}", f"two joints are named {joint.name!r}")):
            return "joints", i
    return ("cut",) if cut else ("joints",)
