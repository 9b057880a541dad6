"""The loops of a robot file: two frames and the joint that closes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final

from pydantic import BeforeValidator, Field, StrictBool

from ramify.core.errors import ModelError
from ramify.core.messages import near, shown
from ramify.documents.mistakes import Mistakes, Path
from ramify.documents.schema import Finite, NameStr, Part, Positive, Prose, validate, wrong
from ramify.files.link_reader import frame_of
from ramify.files.robot_schema import AxisVector, Rotated, as_joint, clashes_of_frame
from ramify.model.loop import LOOP_KINDS, Loop, LoopEnd

SIDES: Final = ("first", "second")


def _kind(value: object) -> str:
    if not isinstance(value, str) or value not in LOOP_KINDS:
        raise wrong(
            "no joint that closes a loop is called "
            f"{shown(value)}{near(str(value), list(LOOP_KINDS))}"
        )
    return value


class ClosingPart(Part):
    """The joint that closes a loop."""

    type: Annotated[str, BeforeValidator(_kind)]
    axis: AxisVector = (0.0, 0.0, 1.0)
    sequence: Prose = ""
    planar: StrictBool = False
    length: Positive | None = None
    joints: Annotated[list[NameStr], Field(min_length=1)] | None = None
    ratio: Finite = 1.0
    offset: Finite = 0.0


class EndPart(Rotated):
    """A frame on a link; on the base where no link is named."""

    link: NameStr | None = None


class LoopPart(Part):
    """A loop; a gear has coordinates instead of ends."""

    inner: ClassVar = {"joint": ClosingPart, "first": EndPart, "second": EndPart}

    name: NameStr
    joint: Annotated[ClosingPart, BeforeValidator(as_joint)]
    first: EndPart | None = None
    second: EndPart | None = None


def read_loops(
    items: Sequence[object],
    names: Mapping[str, float],
    mistakes: Mistakes,
    known: Callable[[str], bool],
) -> list[Loop]:
    """The loops of a file; what is wrong is noted with its place. ``known`` says whether a link of
    that name exists.
    """
    out: list[Loop] = []
    taken: set[str] = set()
    for i, raw in enumerate(items):
        path: Path = ("loops", i)
        loop = _loop(raw, path, names, mistakes, known)
        if loop is None:
            continue
        if loop.name in taken:
            mistakes.add((*path, "name"), f"two loops are named {loop.name!r}; names must differ")
        taken.add(loop.name)
        out.append(loop)
    return out


def _loop(
    raw: Any,
    path: Path,
    names: Mapping[str, float],
    mistakes: Mistakes,
    known: Callable[[str], bool],
) -> Loop | None:
    part = validate(LoopPart, raw, path, names, mistakes)
    if part is None:
        return None
    gear = part.joint.type == "gear"
    for side in SIDES:
        end: EndPart | None = getattr(part, side)
        if (end is None) != gear:
            mistakes.add(
                path if end is None else (*path, side),
                f"{side} {'is missing' if end is None else 'does not belong in a gear'}",
            )
            return None
    first, second = (
        read_end(getattr(part, side), raw.get(side), (*path, side), mistakes, known)
        for side in SIDES
    )
    joint = part.joint
    try:
        return Loop(
            part.name,
            joint.type,
            first,
            second,
            joint.axis,
            joint.sequence,
            joint.planar,
            joint.length or 0.0,
            tuple(joint.joints or ()),
            joint.ratio,
            joint.offset,
        )
    except ModelError as error:
        mistakes.add((*path, "joint"), str(error))
        return None


def read_end(
    part: EndPart | None, raw: object, path: Path, mistakes: Mistakes, known: Callable[[str], bool]
) -> LoopEnd:
    """An end of a loop or joint; on the base where there is none."""
    if part is None:
        return LoopEnd(None)
    for where, text in clashes_of_frame(raw, ()):
        mistakes.add((*path, *where), text)
    if part.link is not None and not known(part.link):
        mistakes.add((*path, "link"), f"no link is named {part.link!r}")
    return LoopEnd(
        part.link, frame_of(part, (), lambda where, text: mistakes.add((*path, *where), text))
    )
