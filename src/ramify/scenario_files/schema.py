"""What a scenario file may say: the keys of each part and their types.

A key that holds coordinates may be a number for all of them, a list, or a mapping from joints to
numbers or lists; with ``_deg`` at its end it is in degrees.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from ramify.documents.schema import (
    Bound,
    Count,
    Late,
    Name,
    Names,
    NotNegative,
    Number,
    Pair,
    Part,
    Positive,
    Prose,
    Row,
    Table,
    Vector,
    as_list,
    form_of,
)

Values = Annotated[
    Annotated[Number, Tag("<number>")]
    | Annotated[list[Number], Tag("<list>")]
    | Annotated[dict[str, Annotated[list[Number], BeforeValidator(as_list)]], Tag("<joints>")],
    Discriminator(form_of),
]
"""A number, a list, or numbers by the names of joints."""

Limits = Annotated[
    Annotated[Bound, Tag("<number>")] | Annotated[list[Bound], Tag("<list>")],
    Discriminator(form_of),
]


class RobotOf(Late):
    """Which robot: a built-in name or a path beside the scenario, parameters of its file, its base,
    its gravity in m/s^2.
    """

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
    support: Names | None = None
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
    actuated: Names | None = None
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
        Annotated[NotNegative, Tag("<number>")] | Annotated[list[NotNegative], Tag("<list>")], Discriminator(form_of)
    ] = 0.0  # fmt: skip
