"""What a robot file may say: the keys of each part, their types, and how a value that is wrong is explained.

Numbers may be arithmetic; its names are looked up in the validation context, a mapping of parameters. Structure and single values
are checked here, part by part; what concerns several links is checked in :mod:`ramify.io.assemble`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, StrictBool, Tag, ValidationError, ValidationInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from ramify.io.expression import ExpressionError, evaluate, near, shown
from ramify.io.mistakes import Path
from ramify.model.joint import AXES, JOINT_KINDS
from ramify.model.names import NAME, is_name


def wrong(text: str) -> PydanticCustomError:
    return PydanticCustomError("ramify", "{text}", {"text": text})


def _number(accept: Callable[[float], bool], wanted: str) -> BeforeValidator:
    def check(value: object, info: ValidationInfo) -> float:
        try:
            x = evaluate(value, info.context or {})
        except ExpressionError as error:
            raise wrong(f"{error}; {wanted} belongs here" if "did you mean" not in str(error) else str(error)) from None
        if not accept(x):
            raise wrong(f"{shown(value)}{'' if not isinstance(value, str) else f' = {x}'} will not do; {wanted} belongs here")
        return x

    return BeforeValidator(check)


def _list_of(count: int, what: str) -> BeforeValidator:
    def check(value: object) -> object:
        if not isinstance(value, list | tuple) or len(value) != count:
            got = f"{len(value)} entries" if isinstance(value, list | tuple) else shown(value)
            raise wrong(f"{got} will not do; {what} belongs here")
        return value

    return BeforeValidator(check)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise wrong(f"{shown(value)} is not a text; put it in quotes if it is meant as one")
    if not is_name(value):
        raise wrong(f"{shown(value)} is no name; {NAME}")
    return value


def _prose(value: object) -> str:
    if not isinstance(value, str):
        raise wrong(f"{shown(value)} is not a text; put it in quotes if it is meant as one")
    return value


def _joint_type(value: object) -> str:
    if not isinstance(value, str) or value not in JOINT_KINDS:
        raise wrong(f"no joint type is called {shown(value)}{near(str(value), list(JOINT_KINDS))}")
    return value


def _axis(value: object) -> object:
    if isinstance(value, str):
        letter, sign = value.lstrip("+-").upper(), -1.0 if value.startswith("-") else 1.0
        if letter not in AXES or len(value) > 2:
            raise wrong(f"{shown(value)} is no axis; x, y, z, -x, -y, -z or three numbers belong here")
        return tuple(sign * x for x in AXES[letter])
    return value


def _pairs(value: object) -> object:
    """One pair of limits as a list of pairs."""
    return [value] if isinstance(value, list) and not any(isinstance(entry, list) for entry in value) else value


def _joint(value: object) -> object:
    return {"type": value} if isinstance(value, str) else value


Number = Annotated[float, _number(math.isfinite, "a finite number")]
Bound = Annotated[float, _number(lambda x: True, "a number or .inf")]
Positive = Annotated[float, _number(lambda x: 0.0 < x < math.inf, "a finite number above 0")]
NotNegative = Annotated[float, _number(lambda x: 0.0 <= x < math.inf, "a finite number, 0 or more,")]
Count = Annotated[float, _number(lambda x: x >= 1 and x == int(x) if math.isfinite(x) else False, "a whole number, 1 or more,")]
Vector = Annotated[tuple[Number, Number, Number], _list_of(3, "a list of three numbers")]
Matrix = Annotated[tuple[Vector, Vector, Vector], _list_of(3, "a list of three rows of three numbers")]
Name = Annotated[str, BeforeValidator(_text)]
Prose = Annotated[str, BeforeValidator(_prose)]
Axis = Annotated[Vector, BeforeValidator(_axis)]
Limits = Annotated[list[Annotated[tuple[Bound, Bound], _list_of(2, "a pair [lower, upper]")]], BeforeValidator(_pairs)]


class Part(BaseModel):
    """A part of a robot file; unknown keys are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Rotated(Part):
    """A frame: origin in m, and one of roll-pitch-yaw (Rz Ry Rx, as in URDF) or a rotation matrix."""

    xyz: Vector = (0.0, 0.0, 0.0)
    rpy: Vector | None = None
    rpy_deg: Vector | None = None
    rotation: Matrix | None = None


class DhRow(Part):
    """A Denavit-Hartenberg row: lengths a, b in m, angles alpha, theta in rad or, with ``_deg``, in degrees."""

    a: Number = 0.0
    b: Number = 0.0
    alpha: Number | None = None
    alpha_deg: Number | None = None
    theta: Number | None = None
    theta_deg: Number | None = None


class JointPart(Part):
    """A joint; revolute about z unless told otherwise."""

    type: Annotated[str, BeforeValidator(_joint_type)] = "revolute"
    name: Name | None = None
    axis: Axis | None = None
    sequence: Prose = ""
    pitch: Number = 0.0
    limits: Limits = Field(default_factory=list)
    limits_deg: Limits = Field(default_factory=list)
    actuated: StrictBool = True


class Moments(Part):
    """An inertia tensor by its elements (not products of inertia of the opposite sign), kg m^2."""

    xx: Number
    yy: Number
    zz: Number
    xy: Number = 0.0
    xz: Number = 0.0
    yz: Number = 0.0


def _inertia_form(value: object) -> str:
    if isinstance(value, Mapping | Moments):
        return "<elements>"
    return "<rows>" if isinstance(value, list) and any(isinstance(row, list) for row in value) else "<principal>"


_FORMS: Final = ("<elements>", "<rows>", "<principal>", "<number>", "<list>", "<joints>")
Inertia = Annotated[
    Annotated[Moments, Tag("<elements>")]
    | Annotated[Matrix, Tag("<rows>")]
    | Annotated[Vector, _list_of(3, "three principal moments, six elements by name, or three rows"), Tag("<principal>")],
    Discriminator(_inertia_form),
]


class ShapePart(Rotated):
    """Something to draw, in m: its kind with its size, and its centre in the link's frame."""

    box: Annotated[tuple[Positive, Positive, Positive], _list_of(3, "a list of three edges")] | None = None
    cylinder: Annotated[tuple[Positive, Positive], _list_of(2, "[radius, length]")] | None = None
    capsule: Annotated[tuple[Positive, Positive], _list_of(2, "[radius, length]")] | None = None
    sphere: Positive | None = None


class LinkPart(Part):
    """A link, and the joint that carries it. In a template it may go without a name: the prefix is its name then."""

    name: Name = ""
    parent: Name | None = None
    joint: Annotated[JointPart, BeforeValidator(_joint)] = Field(default_factory=JointPart)
    dh: DhRow | None = None
    classical_dh: DhRow | None = None
    frame: Rotated | None = None
    outlet: Rotated | None = None
    mass: NotNegative = 0.0
    com: Vector = (0.0, 0.0, 0.0)
    inertia: Inertia = (0.0, 0.0, 0.0)
    inertia_about: Literal["com", "origin"] = "com"
    shapes: list[ShapePart] = Field(default_factory=list)
    points: dict[Name, Vector] = Field(default_factory=dict)


class UsePart(Part):
    """A template put into the tree, once or several times."""

    use: Name
    prefix: Prose = ""
    parent: Name | None = None
    frame: Rotated = Field(default_factory=Rotated)
    mirror: Literal["x", "y", "z"] | None = None
    repeat: Count | None = None
    series: Count | None = None
    with_: dict[str, Number] = Field(default_factory=dict, alias="with")


class TemplatePart(Part):
    """A sub-tree to be used by name."""

    parameters: dict[str, Any] = Field(default_factory=dict)
    links: Annotated[list[Any], Field(min_length=1)]


class RobotPart(Part):
    """The file itself; links are looked at one by one."""

    name: Name
    description: Prose = ""
    source: Prose = ""
    gravity: Vector = (0.0, 0.0, -9.81)
    parameters: dict[str, Any] = Field(default_factory=dict)
    templates: dict[str, Any] = Field(default_factory=dict)
    links: Annotated[list[Any], Field(min_length=1)]
    modules: list[list[Name]] | None = None
    loops: list[Any] = Field(default_factory=list)
    joints: Annotated[list[Any], Field(min_length=1)] | None = None
    cut: list[Name] | None = None
    guess: dict[Name, Number] = Field(default_factory=dict)


PLACEMENTS: Final = ("dh", "classical_dh", "frame")
_ROTATIONS: Final = ("rpy", "rpy_deg", "rotation")
_SHAPES: Final = ("box", "cylinder", "capsule", "sphere")
_VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {"revolute": ("theta",), "prismatic": ("b",), "cylindrical": ("theta", "b")}
"""Columns of a DH row that are the joint's own variables, 0 where left out."""


def clashes(link: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Keys of a link or use that exclude each other or miss each other: path and what is wrong."""
    yield from _choice(link, (), PLACEMENTS, needed="use" not in link)
    yield from _choice(link, (), ("repeat", "series"))
    if "classical_dh" in link and "outlet" in link:
        yield ("outlet",), "a classical_dh row already says where the link's frame is; leave out outlet"
    for part in ("frame", "outlet"):
        yield from clashes_of_frame(link.get(part), (part,))
    joint = link.get("joint", "revolute")
    yield from _choice(joint, ("joint",), ("limits", "limits_deg"))
    kind = joint.get("type", "revolute") if isinstance(joint, Mapping) else joint
    for part in ("dh", "classical_dh"):
        row = link.get(part)
        if not isinstance(row, Mapping):
            continue
        if isinstance(joint, Mapping) and "axis" in joint:
            yield ("joint", "axis"), f"a {part} row has its joint along z; leave out the axis, or place the joint with frame"
        own = _VARIABLES.get(str(kind), () if str(kind) in JOINT_KINDS else ("theta", "b"))
        for column in ("a", "b"):
            if column not in row and column not in own:
                yield (part, column), "is missing; a row has a, alpha, b, theta (the joint's own variable may be left out: 0)"
        for angle in ("alpha", "theta"):
            yield from _choice(row, (part,), (angle, f"{angle}_deg"), needed=angle not in own)
    shapes = link.get("shapes")
    for i, shape in enumerate(shapes if isinstance(shapes, list) else []):
        yield from _choice(shape, ("shapes", i), _SHAPES, needed=True)
        yield from _choice(shape, ("shapes", i), _ROTATIONS)


def clashes_of_frame(part: object, path: Path) -> Iterator[tuple[Path, str]]:
    """Rotations of a frame that exclude each other."""
    yield from _choice(part, path, _ROTATIONS)


def _choice(part: object, path: Path, keys: tuple[str, ...], needed: bool = False) -> Iterator[tuple[Path, str]]:
    if isinstance(part, Mapping):
        given = [key for key in keys if key in part]
        if len(given) > 1:
            yield (*path, given[1]), f"{' and '.join(given)} exclude each other; give one of {', '.join(keys)}"
        elif needed and not given:
            yield path, f"one of {', '.join(keys)} is missing"


def explain(error: ErrorDetails, part: type[Part]) -> tuple[Path, str, bool]:
    """Path within the part, message, and whether the key itself (not its value) is wrong."""
    path = tuple(step for step in error["loc"] if step not in _FORMS)
    match error["type"]:
        case "extra_forbidden":
            return path, f"unknown key{near(str(path[-1]), _keys(part, path[:-1]))}", True
        case "missing":
            return path, "is missing", False
        case "literal_error":
            return path, f"{shown(error['input'])} will not do; {error['ctx']['expected']} belongs here", False
        case "model_type" | "dict_type" | "model_attributes_type":
            return path, f"{shown(error['input'])} will not do; a mapping belongs here", False
        case "list_type" | "too_short":
            return path, f"{shown(error['input'])} will not do; a list with at least one entry belongs here", False
        case "bool_type":
            return path, f"{shown(error['input'])} will not do; true or false belongs here", False
        case _:
            return path, error["msg"], False


def _keys(part: type[Part], path: Path) -> list[str]:
    """The keys known at a path of a part."""
    parts: dict[str, type[Part]] = {"frame": Rotated, "outlet": Rotated, "dh": DhRow, "classical_dh": DhRow, "joint": JointPart,
                                    "inertia": Moments, "shapes": ShapePart}  # fmt: skip
    part = parts.get(str(path[0]), part) if path else part
    return [field.alias or name for name, field in part.model_fields.items()]


P = TypeVar("P", bound=Part)


def validate(part: type[P], raw: object, names: Mapping[str, float]) -> tuple[P | None, list[tuple[Path, str, bool]]]:
    """The part, or None and its mistakes."""
    try:
        return part.model_validate(raw, context=names), []
    except ValidationError as error:
        return None, [explain(detail, part) for detail in error.errors(include_url=False)]
