"""What a robot file may say: the keys of each part and the forms of their values.

Numbers may be arithmetic. Structure and single values are checked here, part by part; what concerns
several links is checked in :mod:`ramify.files.robot_reader`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Literal

import numpy as np

from ramify.core.messages import shown
from ramify.documents.file_version import Version
from ramify.documents.forms import (
    Anything,
    ByName,
    Choice,
    Either,
    Flag,
    Form,
    GivenPart,
    Listed,
    Many,
    Name,
    NotedError,
    Number,
    Numbers,
    OneWord,
    Reading,
)
from ramify.documents.kinds import Alternatives, Keys, PartForm, key
from ramify.documents.mistakes import Path
from ramify.files.frame_schema import (
    FINITE,
    NOT_NEGATIVE,
    POSITIVE,
    ROWS,
    TRIPLE,
    ZERO,
    Rotated,
    Triple,
    Vector,
    radians,
)
from ramify.files.shape_schema import ShapePart
from ramify.model.elements import STRIBECK
from ramify.model.joint import AXES, JOINT_KINDS

ROW: Final = Numbers(single=True)
PAIR: Final = Numbers(2, of=Number(endless=True), said="a pair [lower, upper]")

Prose = Annotated[str, Name(prose=True)]
MassNumber = Annotated[float, NOT_NEGATIVE]
CopyCount = Annotated[int, Number(least=1.0, whole=True)]
Entries = Annotated[list[Any], Listed(Anything())]
Z_AXIS: Final[Triple] = (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class AxisForm(Form):
    """A direction: a letter with its sign, or three numbers."""

    wanted: ClassVar[str] = "x, y, z, -x, -y, -z or three numbers"

    def read(self, raw: object, path: Path, reading: Reading) -> Triple:
        if not isinstance(raw, str):
            x, y, z = TRIPLE.read(raw, path, reading)
            return x, y, z
        letter, sign = raw.lstrip("+-").upper(), -1.0 if raw.startswith("-") else 1.0
        if letter not in AXES or len(raw) > 2:
            text = f"{shown(raw)} is not an axis; it must be {self.wanted}"
            raise reading.refuse(path, text)
        x, y, z = AXES[letter]
        return sign * x, sign * y, sign * z


@dataclass(frozen=True)
class LimitsForm(Form):
    """A pair of limits, or a list of pairs, as a list of pairs."""

    wanted: ClassVar[str] = "[lower, upper], or a list of such pairs"

    def read(self, raw: object, path: Path, reading: Reading) -> list[tuple[float, float]]:
        if not isinstance(raw, list):
            raise reading.refuse(path, f"{shown(raw)} must be {self.wanted}")
        if any(isinstance(entry, list) for entry in raw):
            return Listed(PAIR).read(raw, path, reading)
        return [PAIR.read(raw, path, reading)]


@dataclass(frozen=True)
class InertiaForm(Form):
    """An inertia tensor, kg m^2: three principal moments, its elements by name (not products of
    inertia of the opposite sign), or three rows.
    """

    wanted: ClassVar[str] = "three principal moments, six elements by name, or three rows"

    def read(self, raw: object, path: Path, reading: Reading) -> Any:
        """As (3,) or (3, 3)."""
        if isinstance(raw, Mapping):
            e = {"xy": 0.0, "xz": 0.0, "yz": 0.0} | ELEMENTS.read(raw, path, reading)
            return np.array([[e["".join(sorted(i + j))] for j in "xyz"] for i in "xyz"])
        if isinstance(raw, list) and any(isinstance(row, list) for row in raw):
            return np.array(ROWS.read(raw, path, reading))
        return np.array(Numbers(3, said=self.wanted).read(raw, path, reading))


ELEMENTS: Final = Keys(
    dict.fromkeys(("xx", "yy", "zz", "xy", "xz", "yz"), FINITE), ("xx", "yy", "zz")
)
Direction = Annotated[Triple, AxisForm()]
LimitPairs = Annotated[list[tuple[float, float]], LimitsForm()]

_RATINGS: Final = Many(Number(least=0.0, endless=True))
MACHINE: Final[Mapping[str, Form]] = {
    "armature": Many(NOT_NEGATIVE),
    "rotor": Many(Keys({"inertia": NOT_NEGATIVE, "gear": FINITE}, ("inertia",))),
    "damping": Many(
        Keys({"linear": NOT_NEGATIVE, "quadratic": FINITE, "cubic": NOT_NEGATIVE}, short="linear")
    ),
    "spring": Many(Keys({"stiffness": ROW, "rest": ROW}, ("stiffness",))),
    "friction": Many(
        Keys(
            {
                "coulomb": Either(
                    NOT_NEGATIVE,
                    Keys(dict.fromkeys(SIDES := ("forward", "backward"), NOT_NEGATIVE), SIDES),
                ),
                "static": NOT_NEGATIVE,
                "stribeck_speed": NOT_NEGATIVE,
                "stribeck": Choice(STRIBECK),
                "slip_speed": POSITIVE,
                "lugre": Keys({"stiffness": POSITIVE, "damping": NOT_NEGATIVE, "time": POSITIVE}),
            },
            ("coulomb",),
            short="coulomb",
        )
    ),
    "stop": Many(
        Keys(
            {
                "time": POSITIVE,
                "ratio": NOT_NEGATIVE,
                "stiffness": POSITIVE,
                "damping": NOT_NEGATIVE,
            }
        )
    ),
    "effort": _RATINGS,
    "velocity": _RATINGS,
    "cone": POSITIVE,
    "backward_effort": _RATINGS,
    "lifts": Many(Flag()),
    "gear": Many(FINITE),
}
"""What the machine has at a joint, as ``ramify.model.elements`` has it: one value, or a list with
one per coordinate. docs/machines.md has laws and units.
"""


@dataclass(frozen=True)
class MachineForm(Form):
    """The keys of ``MACHINE`` among those of a joint."""

    wanted: ClassVar[str] = "keys of a machine"

    def names(self, name: str) -> tuple[str, ...]:
        return tuple(MACHINE)

    def read(self, raw: object, path: Path, reading: Reading) -> dict[str, Any]:
        return Keys(MACHINE).read(raw, path, reading)

    def take(self, name: str, section: GivenPart) -> dict[str, Any]:
        part = {key: section.part[key] for key in section.keys(MACHINE)}
        return self.read(part, section.path, section.reading)


@dataclass(frozen=True, kw_only=True)
class DhRow:
    """A Denavit-Hartenberg row: lengths a, b (or d) in m, angles alpha, theta in rad or, with
    ``_deg``, in degrees.
    """

    a: float = 0.0
    b: float | None = None
    d: float | None = None
    alpha: float | None = None
    alpha_deg: float | None = None
    theta: float | None = None
    theta_deg: float | None = None

    @property
    def columns(self) -> tuple[float, float, float, float]:
        """a, alpha, b, theta in m and rad."""
        alpha, theta = (
            given or 0.0 if degrees is None else radians(degrees)
            for given, degrees in ((self.alpha, self.alpha_deg), (self.theta, self.theta_deg))
        )
        return self.a, alpha, (self.b if self.d is None else self.d) or 0.0, theta


@dataclass(frozen=True, kw_only=True)
class UnnamedJointPart:
    """A joint; by default revolute about z."""

    alternatives: ClassVar[Alternatives] = {("limits", "limits_deg"): False}

    type: Annotated[str, OneWord("joint type", JOINT_KINDS)] = "revolute"
    axis: Direction | None = None
    sequence: Prose = ""
    pitch: float = 0.0
    limits: LimitPairs = field(default_factory=list)
    limits_deg: LimitPairs = field(default_factory=list)
    actuated: bool = True
    machine: Annotated[Mapping[str, object], MachineForm()]


@dataclass(frozen=True, kw_only=True)
class JointPart(UnnamedJointPart):
    """The joint of a link; its name is by default that of the link. ``backwards``: forces in it are
    those on the parent.
    """

    name: str | None = None
    backwards: bool = False


LIFT: Final = Either(FINITE, Keys({"mass": FINITE, "com": TRIPLE}, ("mass",)))
"""What gravity compensation carries: a share of the link, or a mass, kg, and its centre, m."""


@dataclass(frozen=True, kw_only=True)
class LinkPart:
    """A link, and the joint that carries it. In a template it may go without a name: the prefix is
    its name then.
    """

    name: str = ""
    parent: str | None = None
    joint: Annotated[JointPart, PartForm(JointPart, "type")] = JointPart(machine={})
    dh: DhRow | None = None
    classical_dh: DhRow | None = None
    frame: Rotated | None = None
    outlet: Rotated | None = None
    mass: MassNumber = 0.0
    com: Vector = ZERO
    inertia: Annotated[Any, InertiaForm()] = ZERO
    inertia_about: Literal["com", "origin"] = "com"
    shapes: list[ShapePart] = field(default_factory=list)
    points: Annotated[dict[str, Triple], ByName(TRIPLE)] = field(default_factory=dict)
    gravity_compensation: Annotated[Any, LIFT] = 0.0


_HERE: Final = Rotated()


@dataclass(frozen=True, kw_only=True)
class UsePart:
    """A template put into the tree, once or several times."""

    alternatives: ClassVar[Alternatives] = {("repeat", "series"): False}

    use: str
    prefix: Prose = ""
    parent: str | None = None
    frame: Rotated = _HERE
    mirror: Literal["x", "y", "z"] | None = None
    repeat: CopyCount | None = None
    series: CopyCount | None = None
    arguments: dict[str, float] = field(
        default_factory=dict, metadata=key(ByName(FINITE), name="with")
    )


@dataclass(frozen=True, kw_only=True)
class TemplatePart:
    """A sub-tree to be used by name."""

    parameters: dict[str, Any] = field(default_factory=dict)
    links: Entries


@dataclass(frozen=True, kw_only=True)
class RobotPart:
    """The file itself; links are looked at one by one."""

    version: Version = 1
    name: str
    description: Prose = ""
    source: Prose = ""
    left_out: list[Prose] = field(default_factory=list)
    gravity: Vector = (0.0, 0.0, -9.81)
    parameters: dict[str, Any] = field(default_factory=dict)
    templates: dict[str, Any] = field(default_factory=dict)
    links: Entries
    modules: list[list[str]] | None = None
    loops: list[Any] = field(default_factory=list)
    world: list[Any] = field(default_factory=list)
    pairs: list[Any] = field(default_factory=list)
    excludes: list[Any] = field(default_factory=list)
    neighbours_collide: bool = False
    joints: Entries | None = None
    cut: list[str] | None = None
    guess: dict[str, float] = field(default_factory=dict)
    frames: list[Any] = field(default_factory=list)
    tendons: list[Any] = field(default_factory=list)
    actuators: list[Any] = field(default_factory=list)
    keyframes: list[Any] = field(default_factory=list)


_VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "revolute": ("theta",),
    "prismatic": ("b",),
    "cylindrical": ("theta", "b"),
}
"""Columns of a DH row that are the joint's own variables, 0 where left out."""


def clashes(link: Mapping[str, Any], path: Path, reading: Reading, hung: bool) -> bool:
    """Note keys of a link that exclude each other or miss each other, and say whether there are
    some. ``hung``: the link says how it hangs on its parent.
    """
    part_of_link = GivenPart(link, path, reading)
    errors = [part_of_link.one_of(("dh", "classical_dh", "frame"), hung)]
    if "classical_dh" in link and "outlet" in link:
        text = "a classical_dh row already says where the link's frame is; leave out outlet"
        errors.append(part_of_link.refuse(text, "outlet"))
    joint = link.get("joint", "revolute")
    for part in ("dh", "classical_dh"):
        if isinstance(link.get(part), Mapping):
            row = GivenPart(link[part], (*path, part), reading)
            errors += _clashes_of_row(
                part_of_link, row, joint if isinstance(joint, Mapping) else {"type": joint}
            )
    return any(error is not None for error in errors)


def _clashes_of_row(
    link: GivenPart, row: GivenPart, joint: Mapping[str, Any]
) -> Iterator[NotedError | None]:
    if "axis" in joint:
        text = "has its joint along z; leave out the axis, or place the joint with frame"
        yield link.refuse(f"a {row.path[-1]} row {text}", "joint", "axis")
    kind = str(joint.get("type", "revolute"))
    variables = _VARIABLES.get(kind, () if kind in JOINT_KINDS else ("theta", "b"))
    if "a" not in row.part:
        text = "a row has a, alpha, b, theta (the joint's own variable may be left out: 0)"
        yield row.refuse(f"is missing; {text}", "a")
    yield row.one_of(("b", "d"), "b" not in variables)
    for angle in ("alpha", "theta"):
        yield row.one_of((angle, f"{angle}_deg"), angle not in variables)
