"""Shapes of robot files: those of links, and those of the world."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from ramify.core.errors import ModelError
from ramify.core.messages import shown
from ramify.documents.forms import Flag, Form, NotedError, Number, Numbers, Reading, Rows
from ramify.documents.kinds import Alternatives, Keys, read_part
from ramify.documents.mistakes import Mistakes, Path
from ramify.files.frame_schema import NOT_NEGATIVE, POSITIVE, Rotated
from ramify.model.frame import Frame
from ramify.model.shape import ALL_GROUPS, FRICTION, Shape

SOLIDS: Final = ("box", "cylinder", "capsule", "sphere")
SHARE: Final = Number(least=0.0, most=1.0)
Groups = tuple[int, int]
"""Group and mask of a shape."""
EVERYTHING: Final[Groups] = (1, 1)
NOTHING: Final[Groups] = (0, 0)
WITH_WORLD: Final[Groups] = (1, 0)
_BITS: Final = Number(least=0.0, most=float(ALL_GROUPS), whole=True)


@dataclass(frozen=True)
class ColourForm(Form):
    """A colour, as in web pages."""

    wanted: ClassVar[str] = 'a colour "#rrggbb"'

    def read(self, raw: object, path: Path, reading: Reading) -> str:
        if not isinstance(raw, str) or not re.fullmatch("#[0-9a-f]{6}", raw):
            raise reading.refuse(path, f"{shown(raw)} must be {self.wanted}")
        return raw


@dataclass(frozen=True)
class CollidesForm(Form):
    """What a shape collides with, as its group and its mask."""

    wanted: ClassVar[str] = "true, false, world (alone) or {group: 1, mask: 1}"

    def read(self, raw: object, path: Path, reading: Reading) -> Groups:
        if isinstance(raw, bool):
            return EVERYTHING if raw else NOTHING
        if raw == "world":
            return WITH_WORLD
        if not isinstance(raw, Mapping):
            raise reading.refuse(path, f"{shown(raw)} must be {self.wanted}")
        bits = Keys({"group": _BITS, "mask": _BITS}, ("group", "mask")).read(raw, path, reading)
        return bits["group"], bits["mask"]

    def write(self, value: Any) -> Any:
        """The shortest word for a group and a mask."""
        words = {EVERYTHING: True, NOTHING: False, WITH_WORLD: "world"}
        group, mask = value
        return words.get((group, mask), {"group": group, "mask": mask})


COLLIDES: Final = CollidesForm()


@dataclass(frozen=True, kw_only=True)
class ShapePart(Rotated):
    """A solid of a link, in m: its kind with its size, and its centre in the link's frame; whether
    it is drawn, and what it collides with.
    """

    alternatives: ClassVar[Alternatives] = {SOLIDS: True, **Rotated.alternatives}
    default_groups: ClassVar[Groups] = NOTHING

    box: Annotated[Any, Numbers(3, of=POSITIVE, said="a list of three edges")] = None
    cylinder: Annotated[Any, Numbers(2, of=POSITIVE, said="[radius, length]")] = None
    capsule: Annotated[Any, Numbers(2, of=POSITIVE, said="[radius, length]")] = None
    sphere: Annotated[float | None, POSITIVE] = None
    colour: Annotated[str, ColourForm()] = ""
    name: str = ""
    drawn: bool = True
    collides: Annotated[Any, COLLIDES] = None
    friction: Annotated[float, NOT_NEGATIVE] = FRICTION
    restitution: Annotated[float, SHARE] = 0.0
    priority: int = 0
    slippery: bool = False

    def to_shape(self, path: Path, reading: Reading) -> Shape:
        """The shape; what does not fit together is noted as a mistake."""
        kind, size = self.kind_and_size()
        group, mask = self.default_groups if self.collides is None else self.collides
        touch = self.friction, self.restitution, self.priority, self.slippery
        frame = self.to_frame(path, reading)
        heights = self.heights()
        own = (self.colour, self.name, self.drawn, group, mask, *touch, heights)
        try:
            return Shape(kind, size, frame, *own)
        except ModelError as error:
            reading.refuse(path, str(error))
            return Shape("sphere", (1.0,), Frame())

    def kind_and_size(self) -> tuple[str, tuple[float, ...]]:
        """The kind that is given, and its size."""
        sizes = {kind: getattr(self, kind) for kind in SOLIDS}
        kind, size = next((kind, size) for kind, size in sizes.items() if size is not None)
        return kind, (size,) if kind == "sphere" else tuple(size)

    def heights(self) -> tuple[tuple[float, ...], ...]:
        """Of a height field."""
        return ()


@dataclass(frozen=True, kw_only=True)
class WorldShapePart(ShapePart):
    """A shape that stands still: a solid, a plane (through its xyz, across its z axis), or a height
    field about its xyz.
    """

    alternatives: ClassVar[Alternatives] = {
        (*SOLIDS, "plane", "height_field"): True,
        **Rotated.alternatives,
    }
    default_groups: ClassVar[Groups] = EVERYTHING

    plane: Annotated[Any, Flag()] = None
    height_field: Annotated[
        Any,
        Keys(
            {"heights": Rows(), "spacing": Numbers(of=POSITIVE, single=True)},
            ("heights", "spacing"),
        ),
    ] = None

    def kind_and_size(self) -> tuple[str, tuple[float, ...]]:
        if self.plane is not None:
            return "plane", ()
        if self.height_field is None:
            return super().kind_and_size()
        spacing = self.height_field["spacing"]
        steps = spacing if isinstance(spacing, list | tuple) else (spacing, spacing)
        return "height_field", tuple(steps)

    def heights(self) -> tuple[tuple[float, ...], ...]:
        return () if self.height_field is None else tuple(map(tuple, self.height_field["heights"]))


def shape_of(raw: object) -> Shape:
    """The shape that a mapping describes, as in a robot file. Raises ModelError for others."""
    if not isinstance(raw, Mapping):
        raise ModelError(f"a shape must be a mapping such as {{'sphere': 0.1}}; got {raw!r:.80}")
    reading = Reading(Mistakes("a shape", with_positions=False))
    with suppress(NotedError):
        shape = read_part(ShapePart, raw, (), reading).to_shape((), reading)
        reading.mistakes.raise_if_any()
        return shape
    reading.mistakes.raise_if_any()
    raise AssertionError


def shape_document(shape: Shape, groups: Groups = NOTHING) -> dict[str, Any]:
    """The keys of a shape but for its frame, None for those at their defaults; ``groups``: what it
    collides with by default.
    """
    bits = shape.group, shape.mask
    kind: Any = {shape.kind: shape.size[0] if shape.kind == "sphere" else shape.size}
    if shape.kind == "plane":
        kind = {"plane": True}
    elif shape.kind == "height_field":
        kind = {"height_field": {"heights": shape.heights, "spacing": shape.size}}
    return {
        **kind,
        "colour": shape.colour or None,
        "name": shape.name or None,
        "drawn": None if shape.drawn else False,
        "collides": None if bits == groups else COLLIDES.write(bits),
        "friction": None if shape.friction == FRICTION else shape.friction,
        "restitution": shape.restitution or None,
        "priority": shape.priority or None,
        "slippery": shape.slippery or None,
    }
