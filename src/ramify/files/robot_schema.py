"""What a robot file may say: the keys of each part, their types, and how a value that is wrong is
explained.

Numbers may be arithmetic; its names are looked up in the validation context, a mapping of
parameters. Structure and single values are checked here, part by part; what concerns several links
is checked in :mod:`ramify.files.robot_reader`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BeforeValidator, Discriminator, Field, StrictBool, Tag

from ramify.core.messages import near, shown
from ramify.documents.forms import Number
from ramify.documents.mistakes import Path
from ramify.documents.schema import (
    Bound,
    Finite,
    Matrix3,
    NameStr,
    NotNegative,
    Part,
    Positive,
    Prose,
    Row,
    Vector,
    Whole,
    as_list,
    choice,
    form_of,
    list_of,
    number,
    wrong,
)
from ramify.model.joint import AXES, JOINT_KINDS


def _joint_type(value: object) -> str:
    if not isinstance(value, str) or value not in JOINT_KINDS:
        raise wrong(f"no joint type is called {shown(value)}{near(str(value), list(JOINT_KINDS))}")
    return value


def _axis(value: object) -> object:
    if isinstance(value, str):
        letter, sign = value.lstrip("+-").upper(), -1.0 if value.startswith("-") else 1.0
        if letter not in AXES or len(value) > 2:
            raise wrong(
                f"{shown(value)} is not an axis; it must be x, y, z, -x, -y, -z or three numbers"
            )
        return tuple(sign * x for x in AXES[letter])
    return value


def _pairs(value: object) -> object:
    """One pair of limits as a list of pairs."""
    if not isinstance(value, list):
        raise wrong(f"{shown(value)} must be [lower, upper], or a list of such pairs")
    return (
        [value]
        if isinstance(value, list) and not any(isinstance(entry, list) for entry in value)
        else value
    )


def as_joint(value: object) -> object:
    """A joint that is given by its type alone, as a mapping."""
    return {"type": value} if isinstance(value, str) else value


def _under(key: str) -> BeforeValidator:
    """A plain number as the main entry of a mapping."""
    return BeforeValidator(
        lambda value: value if isinstance(value, Mapping | list) else {key: value}
    )


AxisVector = Annotated[Vector, BeforeValidator(_axis)]
Limits = Annotated[
    list[Annotated[tuple[Bound, Bound], list_of(2, "a pair [lower, upper]")]],
    BeforeValidator(_pairs),
]


class Rotated(Part):
    """A frame: origin in m, and one of roll-pitch-yaw (Rz Ry Rx, as in URDF) or a rotation
    matrix.
    """

    xyz: Vector = (0.0, 0.0, 0.0)
    rpy: Vector | None = None
    rpy_deg: Vector | None = None
    rotation: Matrix3 | None = None


class DhRow(Part):
    """A Denavit-Hartenberg row: lengths a, b (or d) in m, angles alpha, theta in rad or, with
    ``_deg``, in degrees.
    """

    a: Finite = 0.0
    b: Finite | None = None
    d: Finite | None = None
    alpha: Finite | None = None
    alpha_deg: Finite | None = None
    theta: Finite | None = None
    theta_deg: Finite | None = None


def _plain(value: object) -> object:
    """A part, or a list of parts, as plain mappings of what it says."""
    if isinstance(value, Part):
        return {key: _plain(entry) for key, entry in value if entry is not None}
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


class RotorPart(Part):
    """A rotor behind a gear: inertia in kg m^2 at the rotor, turns of the rotor per turn (or metre)
    of the joint.
    """

    inertia: NotNegative
    gear: Finite = 1.0


class DampingPart(Part):
    """-(linear + quadratic |v| + cubic v^2) v, in N m s, N m s^2, N m s^3 (or N s/m …)."""

    linear: NotNegative = 0.0
    quadratic: Finite = 0.0
    cubic: NotNegative = 0.0


class SidesPart(Part):
    """Sliding friction by direction, N m or N, both positive."""

    forward: NotNegative
    backward: NotNegative


class LugrePart(Part):
    """Bristles that stick: stiffness (N m/rad or N/m) and damping (N m s or N s/m), by default
    those that settle in about time (s) with the joint's own inertia.
    """

    stiffness: Positive | None = None
    damping: NotNegative | None = None
    time: Positive | None = None


class FrictionPart(Part):
    """Dry friction, N m or N: coulomb (a number, or forward and backward), static above it at rest,
    stribeck_speed where that falls, slip_speed that smooths the sign of the rate (rad/s or m/s);
    lugre: bristles with a state of their own, which truly stick.
    """

    inner: ClassVar[Mapping[str, type[Part]]] = {"coulomb": SidesPart, "lugre": LugrePart}

    coulomb: Annotated[
        Annotated[SidesPart, Tag("<joints>")] | Annotated[NotNegative, Tag("<number>")],
        Discriminator(form_of),
    ]
    static: NotNegative = 0.0
    stribeck_speed: NotNegative = 0.0
    slip_speed: Positive | None = None
    lugre: LugrePart | None = None


class SpringPart(Part):
    """-(a + b x + c x^2) x with x = q - rest: stiffness a, or [a, b, c], in N m/rad or N/m …"""

    stiffness: Row
    rest: Row = 0.0


class StopPart(Part):
    """What holds a joint at its limits: time (s) and ratio, or stiffness and damping."""

    time: Positive | None = None
    ratio: NotNegative | None = None
    stiffness: Positive | None = None
    damping: NotNegative | None = None


Rating = Annotated[float, number(Number(least=0.0, endless=True))]
Ratings = Annotated[list[Rating], BeforeValidator(as_list)]


class MachinePart(Part):
    """What the machine has at a joint: one value, or a list with one per coordinate."""

    inner: ClassVar[Mapping[str, type[Part]]] = {
        "rotor": RotorPart, "damping": DampingPart, "spring": SpringPart, "friction": FrictionPart,
        "stop": StopPart,
    }  # fmt: skip

    armature: Annotated[list[NotNegative], BeforeValidator(as_list)] | None = None
    rotor: Annotated[list[RotorPart], BeforeValidator(as_list)] | None = None
    damping: (
        Annotated[list[Annotated[DampingPart, _under("linear")]], BeforeValidator(as_list)] | None
    ) = None
    spring: Annotated[list[SpringPart], BeforeValidator(as_list)] | None = None
    friction: (
        Annotated[list[Annotated[FrictionPart, _under("coulomb")]], BeforeValidator(as_list)] | None
    ) = None
    stop: Annotated[list[StopPart], BeforeValidator(as_list)] | None = None
    effort: Ratings | None = None
    velocity: Ratings | None = None
    cone: Positive | None = None
    backward_effort: Ratings | None = None
    lifts: Annotated[list[StrictBool], BeforeValidator(as_list)] | None = None
    gear: Annotated[list[Finite], BeforeValidator(as_list)] | None = None

    @property
    def machine(self) -> dict[str, object]:
        """What was given, by key, as ``ramify.model.elements.elements`` takes it."""
        given = {key: getattr(self, key) for key in MachinePart.model_fields}
        return {key: _plain(value) for key, value in given.items() if value is not None}


class JointPart(MachinePart):
    """A joint; by default revolute about z."""

    type: Annotated[str, BeforeValidator(_joint_type)] = "revolute"
    name: NameStr | None = None
    axis: AxisVector | None = None
    sequence: Prose = ""
    pitch: Finite = 0.0
    limits: Limits = Field(default_factory=list)
    limits_deg: Limits = Field(default_factory=list)
    actuated: StrictBool = True


class Moments(Part):
    """An inertia tensor by its elements (not products of inertia of the opposite sign), kg m^2."""

    xx: Finite
    yy: Finite
    zz: Finite
    xy: Finite = 0.0
    xz: Finite = 0.0
    yz: Finite = 0.0


def _inertia_form(value: object) -> str:
    if isinstance(value, Mapping | Moments):
        return "<elements>"
    return (
        "<rows>"
        if isinstance(value, list) and any(isinstance(row, list) for row in value)
        else "<principal>"
    )


Inertia = Annotated[
    Annotated[Moments, Tag("<elements>")]
    | Annotated[Matrix3, Tag("<rows>")]
    | Annotated[
        Vector,
        list_of(3, "three principal moments, six elements by name, or three rows"),
        Tag("<principal>"),
    ],
    Discriminator(_inertia_form),
]


class ShapePart(Rotated):
    """Something to draw, in m: its kind with its size, and its centre in the link's frame."""

    box: (
        Annotated[tuple[Positive, Positive, Positive], list_of(3, "a list of three edges")] | None
    ) = None
    cylinder: Annotated[tuple[Positive, Positive], list_of(2, "[radius, length]")] | None = None
    capsule: Annotated[tuple[Positive, Positive], list_of(2, "[radius, length]")] | None = None
    sphere: Positive | None = None


class LiftPart(Part):
    """The mass that gravity compensation carries, kg, and its mass centre, m."""

    mass: Finite
    com: Vector = (0.0, 0.0, 0.0)


class LinkPart(Part):
    """A link, and the joint that carries it. In a template it may go without a name: the prefix is
    its name then.
    """

    inner: ClassVar[Mapping[str, type[Part]]] = {
        "frame": Rotated, "outlet": Rotated, "dh": DhRow, "classical_dh": DhRow, "joint": JointPart,
        "inertia": Moments, "shapes": ShapePart, "gravity_compensation": LiftPart,
    }  # fmt: skip

    name: NameStr = ""
    parent: NameStr | None = None
    joint: Annotated[JointPart, BeforeValidator(as_joint)] = Field(default_factory=JointPart)
    dh: DhRow | None = None
    classical_dh: DhRow | None = None
    frame: Rotated | None = None
    outlet: Rotated | None = None
    mass: NotNegative = 0.0
    com: Vector = (0.0, 0.0, 0.0)
    inertia: Inertia = (0.0, 0.0, 0.0)
    inertia_about: Literal["com", "origin"] = "com"
    shapes: list[ShapePart] = Field(default_factory=list)
    points: dict[NameStr, Vector] = Field(default_factory=dict)
    gravity_compensation: Annotated[
        Annotated[LiftPart, Tag("<joints>")] | Annotated[Finite, Tag("<number>")],
        Discriminator(form_of),
    ] = 0.0


class UsePart(Part):
    """A template put into the tree, once or several times."""

    use: NameStr
    prefix: Prose = ""
    parent: NameStr | None = None
    frame: Rotated = Field(default_factory=Rotated)
    mirror: Literal["x", "y", "z"] | None = None
    repeat: Whole | None = None
    series: Whole | None = None
    with_: dict[str, Finite] = Field(default_factory=dict, alias="with")


class TemplatePart(Part):
    """A sub-tree to be used by name."""

    parameters: dict[str, Any] = Field(default_factory=dict)
    links: Annotated[list[Any], Field(min_length=1)]


class RobotPart(Part):
    """The file itself; links are looked at one by one."""

    name: NameStr
    description: Prose = ""
    source: Prose = ""
    left_out: list[Prose] = Field(default_factory=list)
    gravity: Vector = (0.0, 0.0, -9.81)
    parameters: dict[str, Any] = Field(default_factory=dict)
    templates: dict[str, Any] = Field(default_factory=dict)
    links: Annotated[list[Any], Field(min_length=1)]
    modules: list[list[NameStr]] | None = None
    loops: list[Any] = Field(default_factory=list)
    joints: Annotated[list[Any], Field(min_length=1)] | None = None
    cut: list[NameStr] | None = None
    guess: dict[NameStr, Finite] = Field(default_factory=dict)
    frames: list[Any] = Field(default_factory=list)
    tendons: list[Any] = Field(default_factory=list)
    actuators: list[Any] = Field(default_factory=list)
    keyframes: list[Any] = Field(default_factory=list)


PLACEMENTS: Final = ("dh", "classical_dh", "frame")
_ROTATIONS: Final = ("rpy", "rpy_deg", "rotation")
_SHAPES: Final = ("box", "cylinder", "capsule", "sphere")
_VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "revolute": ("theta",),
    "prismatic": ("b",),
    "cylindrical": ("theta", "b"),
}
"""Columns of a DH row that are the joint's own variables, 0 where left out."""


def clashes(link: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Keys of a link or use that exclude each other or miss each other: path and what is wrong."""
    yield from choice(link, (), PLACEMENTS, needed="use" not in link)
    yield from choice(link, (), ("repeat", "series"))
    if "classical_dh" in link and "outlet" in link:
        yield (
            ("outlet",),
            "a classical_dh row already says where the link's frame is; leave out outlet",
        )
    for part in ("frame", "outlet"):
        yield from clashes_of_frame(link.get(part), (part,))
    joint = link.get("joint", "revolute")
    yield from choice(joint, ("joint",), ("limits", "limits_deg"))
    kind = joint.get("type", "revolute") if isinstance(joint, Mapping) else joint
    for part in ("dh", "classical_dh"):
        row = link.get(part)
        if not isinstance(row, Mapping):
            continue
        if isinstance(joint, Mapping) and "axis" in joint:
            yield (
                ("joint", "axis"),
                f"a {part} row has its joint along z; leave out the axis, or place the joint with "
                "frame",
            )
        own = _VARIABLES.get(str(kind), () if str(kind) in JOINT_KINDS else ("theta", "b"))
        if "a" not in row:
            yield (
                (part, "a"),
                "is missing; a row has a, alpha, b, theta (the joint's own variable may be "
                "left out: 0)",
            )
        yield from choice(row, (part,), ("b", "d"), needed="b" not in own)
        for angle in ("alpha", "theta"):
            yield from choice(row, (part,), (angle, f"{angle}_deg"), needed=angle not in own)
    shapes = link.get("shapes")
    for i, shape in enumerate(shapes if isinstance(shapes, list) else []):
        yield from clashes_of_shape(shape, ("shapes", i))


def clashes_of_shape(shape: object, path: Path) -> Iterator[tuple[Path, str]]:
    """A shape has one kind, and one rotation at most."""
    yield from choice(shape, path, _SHAPES, needed=True)
    yield from choice(shape, path, _ROTATIONS)


def clashes_of_frame(part: object, path: Path) -> Iterator[tuple[Path, str]]:
    """Rotations of a frame that exclude each other."""
    yield from choice(part, path, _ROTATIONS)
