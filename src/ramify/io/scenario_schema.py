"""What a scenario file may say: the keys of each part and their types.

A key that holds coordinates may be a number for all of them, a list, or a mapping from joints to numbers or lists; with ``_deg`` at
its end it is in degrees.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag

from ramify.io.schema import Bound, Count, Name, NotNegative, Number, Part, Positive, Prose, Vector


def _form(value: object) -> str:
    if isinstance(value, Mapping):
        return "<joints>"
    return "<list>" if isinstance(value, list | tuple) else "<number>"


def _single(value: object) -> object:
    return value if isinstance(value, list) else [value]


Row = Annotated[Annotated[Number, Tag("<number>")] | Annotated[list[Number], Tag("<list>")], Discriminator(_form)]
"""A number, or a list of numbers."""

Values = Annotated[
    Annotated[Number, Tag("<number>")]
    | Annotated[list[Number], Tag("<list>")]
    | Annotated[dict[str, Annotated[list[Number], BeforeValidator(_single)]], Tag("<joints>")],
    Discriminator(_form),
]
"""A number, a list, or numbers by the names of joints."""

Limits = Annotated[Annotated[Bound, Tag("<number>")] | Annotated[list[Bound], Tag("<list>")], Discriminator(_form)]
Table = Annotated[list[list[Number]], Field(min_length=1)]
Pair = Annotated[list[Number], Field(min_length=2, max_length=2)]
Joints = Annotated[list[Name], BeforeValidator(_single)]


class Late(Part):
    """A part whose validator is made when it is first needed: a file uses few of them."""

    model_config = ConfigDict(defer_build=True)


class RobotOf(Late):
    """Which robot: a built-in name or a path beside the scenario, parameters of its file, its base, its gravity in m/s^2."""

    name: Name
    parameters: dict[str, Number] = Field(default_factory=dict)
    base: Name | None = None
    gravity: Vector | None = None


class Initial(Late):
    """The start: coordinates and rates."""

    q: Values | None = None
    q_deg: Values | None = None
    v: Values | None = None
    v_deg: Values | None = None


class _Timed(Late):
    type: Name
    duration: Positive = 1.0
    begin: Number = 0.0


class CycloidPart(_Timed):
    start: Values | None = None
    start_deg: Values | None = None
    end: Values | None = None
    end_deg: Values | None = None


class QuinticPart(CycloidPart):
    start_rate: Values | None = None
    start_rate_deg: Values | None = None
    end_rate: Values | None = None
    end_rate_deg: Values | None = None
    start_acceleration: Values | None = None
    end_acceleration: Values | None = None


class HarmonicPart(_Timed):
    duration: Bound = math.inf
    offset: Values | None = None
    offset_deg: Values | None = None
    amplitude: Values | None = None
    amplitude_deg: Values | None = None
    frequency: Values
    phase: Values | None = None
    phase_deg: Values | None = None


class HoldPart(_Timed):
    duration: Bound = math.inf
    q: Values | None = None
    q_deg: Values | None = None


class SplinePart(Late):
    type: Name
    times: list[Number]
    points: Table | None = None
    points_deg: Table | None = None
    ends: Literal["natural", "clamped", "not_a_knot"] = "natural"
    start_rate: Row = 0.0
    end_rate: Row = 0.0


class TablePart(Late):
    type: Name
    times: list[Number]
    values: Table | None = None
    values_deg: Table | None = None


class LinePart(_Timed):
    start: Pair
    end: Pair
    lengths: Pair
    elbow: Literal[1, -1] = 1


class GaitPart(Late):
    type: Name
    height: Positive
    period: Positive
    stride: Positive
    lift: Positive
    sway: NotNegative = 0.0
    support: Joints | None = None
    steps: Count | None = None
    begin: Number = 0.0


class PerJointPart(Late):
    type: Name
    joints: dict[str, Any]


class SequencePart(Late):
    type: Name
    parts: Annotated[list[Any], Field(min_length=1)]
    begin: Number = 0.0


MOTIONS: Final[Mapping[str, type[Part]]] = {
    "cycloid": CycloidPart, "quintic": QuinticPart, "harmonic": HarmonicPart, "hold": HoldPart, "spline": SplinePart,
    "table": TablePart, "planar_line": LinePart, "per_joint": PerJointPart, "sequence": SequencePart, "gait": GaitPart,
}  # fmt: skip
"""Motions by the word after ``type``."""


class ControlPart(Late):
    """What all controllers take."""

    type: Name
    actuated: Joints | None = None
    limits: Limits | None = None
    rate_hz: Positive | None = None


class GainPart(ControlPart):
    kp: Row = 49.0
    kd: Row | None = None


class PIDPart(GainPart):
    ki: Row = 49.0


class GravityPart(ControlPart):
    kd: Row = 0.0


class TorquePart(ControlPart):
    tau: Values


class TorqueTablePart(ControlPart):
    times: list[Number]
    values: Table
    interpolate: Literal["linear", "hold"] = "linear"


class BeforehandPart(ControlPart):
    rows: Count = 101
    interpolate: Literal["linear", "hold"] = "linear"


class SumPart(ControlPart):
    parts: Annotated[list[Any], Field(min_length=1)]


CONTROLS: Final[Mapping[str, type[ControlPart]]] = {
    "none": ControlPart, "inverse": ControlPart, "pd": GainPart, "pid": PIDPart, "computed_torque": GainPart,
    "feedforward": GainPart, "gravity_compensation": GravityPart, "torque": TorquePart, "torque_table": TorqueTablePart,
    "torques_of_motion": BeforehandPart, "sum": SumPart,
}  # fmt: skip
"""Controllers by the word after ``type``."""


class GroundPart(Late):
    """What all grounds take."""

    law: Name
    terrain: Any = None
    points: Joints | None = None
    friction: NotNegative | None = None
    chosen: list[Name] | None = None  # in the record of a run: what had been left open


class BookGroundPart(GroundPart):
    stiffness: Positive | None = None
    damping: NotNegative | None = None
    overdamping: NotNegative | None = None
    horizontal_damping: Positive | None = None


class FirmPart(BookGroundPart):
    top_speed: Positive | None = None
    full_depth: Positive | None = None


class DustyPart(BookGroundPart):
    dust: NotNegative | None = None


class HuntCrossleyPart(GroundPart):
    stiffness: Positive | None = None
    exponent: Positive | None = None
    dissipation: NotNegative | None = None
    slip_speed: Positive | None = None


GROUNDS: Final[Mapping[str, type[GroundPart]]] = {"firm": FirmPart, "dusty": DustyPart, "hunt_crossley": HuntCrossleyPart}
"""Grounds by the word after ``law``."""


class TerrainPart(Late):
    kind: Name | None = None
    up: Vector | None = None


class FlatPart(TerrainPart):
    height: Number | None = None


class SlopePart(FlatPart):
    slope: Number | None = None
    slope_deg: Number | None = None
    heading: Number | None = None
    heading_deg: Number | None = None
    normal: Vector | None = None


class HeightFieldPart(TerrainPart):
    heights: Table
    spacing: Row
    origin: Pair | None = None
    interpolate: Literal["linear", "cubic"] | None = None


TERRAIN_PARTS: Final[Mapping[str, type[TerrainPart]]] = {"flat": FlatPart, "slope": SlopePart, "height_field": HeightFieldPart}
"""Terrains by the word after ``kind``; without it the keys tell."""


class ScenarioPart(Late):
    """The file itself; the parts with a choice of kinds are looked at one by one."""

    name: Name
    description: Prose = ""
    source: Prose = ""
    robot: Any
    initial: Any = None
    motion: Any = None
    control: Any = None
    controls: dict[str, Any] | None = None
    ground: Any = None
    t_end: Positive
    method: Name = "auto"
    step: Positive | None = None
    max_step: Positive | None = None
    rtol: Positive = 1e-8
    atol: Positive = 1e-10
    dt_out: Positive = 0.01
    damping: Annotated[
        Annotated[NotNegative, Tag("<number>")] | Annotated[list[NotNegative], Tag("<list>")], Discriminator(_form)
    ] = 0.0  # fmt: skip
