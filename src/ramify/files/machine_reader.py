"""Frames, tendons, actuators and keyframes of a robot file, read and written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field, StrictBool

from ramify.core.errors import ModelError
from ramify.core.messages import near
from ramify.documents.mistakes import Mistakes, Path
from ramify.documents.schema import (
    Bound,
    Finite,
    NameStr,
    NotNegative,
    P,
    Part,
    Positive,
    Row,
    list_of,
    validate,
)
from ramify.files.link_reader import frame_of
from ramify.files.robot_schema import Rotated, clashes_of_frame
from ramify.model.answers import Attachment
from ramify.model.elements import Cubic
from ramify.model.frame import Frame
from ramify.model.machine import (
    ANY,
    Actuator,
    Keyframe,
    Machine,
    Tendon,
    dc_motor,
    position_servo,
    velocity_servo,
)
from ramify.model.robot import Robot

Range = Annotated[tuple[Bound, Bound], list_of(2, "a pair [lower, upper]")]
Triple = Annotated[tuple[Finite, Finite, Finite], list_of(3, "three numbers")]


class FramePart(Rotated):
    """A named frame on a link, or on the base."""

    name: NameStr
    link: NameStr | None = None


class BranchPart(Part):
    """A straight run through frames; behind a pulley its length counts 1/divisor."""

    frames: Annotated[list[NameStr], Field(min_length=2)]
    divisor: Positive = 1.0


class TendonPart(Part):
    """A tendon over joints, {rate: coefficient}, or straight through frames; stiffness and damping
    are a number or three: see docs/machines.md.
    """

    inner: ClassVar[Mapping[str, type[Part]]] = {"branches": BranchPart}

    name: NameStr
    joints: dict[NameStr, Finite] | None = None
    frames: Annotated[list[NameStr], Field(min_length=2)] | None = None
    branches: list[BranchPart] | None = None
    stiffness: Row = 0.0
    damping: Row = 0.0
    rest: Annotated[Range, BeforeValidator(lambda x: x if isinstance(x, list) else [x, x])] = (
        0.0,
        0.0,
    )
    effort: Range = ANY


class ActuatorPart(Part):
    """An actuator of some kind on a joint, a tendon or a frame."""

    name: NameStr
    kind: Literal["motor", "position", "velocity", "dc_motor", "general"] = "general"
    joint: NameStr = ""
    tendon: NameStr = ""
    site: NameStr = ""
    reference: NameStr = ""
    slider: NameStr = ""
    rod: NotNegative = 0.0
    gear: Row = 1.0
    in_parent: StrictBool = False
    kp: NotNegative | None = None
    kv: NotNegative | None = None
    constant: Positive | None = None
    resistance: Positive | None = None
    voltage: Positive | None = None
    gain: Triple | None = None
    bias: Triple | None = None
    command: Range | None = None
    force: Range = ANY
    activation: Literal["", "integrator", "filter", "filterexact"] = ""
    time: NotNegative = 0.0
    activations: Range = ANY
    early: StrictBool = False
    step: NotNegative = 0.0


class KeyframePart(Part):
    """A named state."""

    name: NameStr
    q: list[Finite]
    v: list[Finite] = Field(default_factory=list)
    command: list[Finite] = Field(default_factory=list)
    activation: list[Finite] = Field(default_factory=list)
    time: Finite = 0.0


_NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "motor": (),
    "position": ("kp",),
    "velocity": ("kv",),
    "dc_motor": ("constant", "resistance", "voltage"),
    "general": (),
}
_TAKES: Final[Mapping[str, frozenset[str]]] = {
    "motor": frozenset(),
    "position": frozenset({"kp", "kv"}),
    "velocity": frozenset({"kv"}),
    "dc_motor": frozenset({"constant", "resistance", "voltage"}),
    "general": frozenset({"gain", "bias"}),
}
"""The keys of a law that each kind of actuator takes."""
_OF_KINDS: Final = frozenset().union(*_TAKES.values())


def read_machine(
    document: Mapping[str, Any], robot: Robot, names: Mapping[str, float], mistakes: Mistakes
) -> Machine:
    """The machine of a file whose robot is built; what is wrong is noted with its place."""
    frames: dict[str, Attachment] = {}
    for raw, frame, path in _parts(FramePart, "frames", document, names, mistakes):
        for where, text in clashes_of_frame(raw, ()):
            mistakes.add((*path, *where), text)
        seat = Attachment(-1, Frame())
        if frame.link is not None:
            if frame.link not in robot.attached:
                hint = near(frame.link, list(robot.attached))
                mistakes.add((*path, "link"), f"no link is named {frame.link!r}{hint}")
                continue
            seat = robot.attached[frame.link]
        if frame.name in robot.attached or frame.name in frames:
            mistakes.add((*path, "name"), f"duplicate name {frame.name!r}; names must differ")
        local = frame_of(frame, (), lambda at, text, path=path: mistakes.add((*path, *at), text))  # type: ignore[misc]
        frames[frame.name] = Attachment(seat.body, seat.frame @ local)
    tendons = []
    for _, line, path in _parts(TendonPart, "tendons", document, names, mistakes):
        try:
            tendons.append(_tendon(line, path, mistakes))
        except ModelError as error:
            text = str(error).removeprefix(f"tendon {line.name!r}: ")
            at = next((k for k in ("rest", "effort") if f" of {k} " in text), "joints")
            mistakes.add((*path, at), text)
    actuators = []
    for _, part, path in _parts(ActuatorPart, "actuators", document, names, mistakes):
        for odd in sorted((part.model_fields_set & _OF_KINDS) - _TAKES[part.kind]):
            own = ", ".join(sorted(_TAKES[part.kind])) or "no gains"
            mistakes.add(
                (*path, odd), f"{odd} does not belong to a {part.kind} actuator, which takes {own}"
            )
        try:
            actuators.append(_actuator(part))
        except ModelError as error:
            mistakes.add(path, str(error).removeprefix(f"actuator {part.name!r}: "))
    keys: list[Keyframe] = []
    for _, key, path in _parts(KeyframePart, "keyframes", document, names, mistakes):
        if len(key.q) != robot.nq or len(key.v) not in (0, robot.nv):
            mistakes.add(path, f"q needs {robot.nq} numbers, and v {robot.nv} or none")
        command, activation = tuple(key.command), tuple(key.activation)
        states = sum(bool(a.activation) for a in actuators)
        for at, given, n in (
            ("command", command, len(actuators)),
            ("activation", activation, states),
        ):
            if len(given) not in (0, n):
                mistakes.add((*path, at), f"{len(given)} numbers given; the actuators need {n}")
        if key.name in (known.name for known in keys):
            mistakes.add((*path, "name"), f"duplicate name {key.name!r}; names must differ")
        keys.append(Keyframe(key.name, tuple(key.q), tuple(key.v), command, activation, key.time))
    machine = Machine(frames, tuple(tendons), tuple(actuators), tuple(keys))
    known = {**frames, **robot.attached}
    for kind, name, text in machine.mistakes(robot.joints, robot.velocities, known):
        places = [i for i, x in enumerate(_list(document, f"{kind}s")) if x.get("name") == name]
        mistakes.add((f"{kind}s", places[-1]) if places else (f"{kind}s",), text)
    return machine


def _list(document: Mapping[str, Any], key: str) -> list[Any]:
    found = document.get(key)
    return [x for x in found if isinstance(x, Mapping)] if isinstance(found, list) else []


def _parts(
    part: type[P],
    key: str,
    document: Mapping[str, Any],
    names: Mapping[str, float],
    mistakes: Mistakes,
) -> Iterator[tuple[Any, P, Path]]:
    for i, raw in enumerate(document.get(key) or ()):
        made = validate(part, raw, (key, i), names, mistakes)
        if made is not None:
            yield raw, made, (key, i)


def _tendon(part: TendonPart, path: Path, mistakes: Mistakes) -> Tendon:
    given = [key for key in ("joints", "frames", "branches") if getattr(part, key) is not None]
    if len(given) != 1:
        mistakes.add(path, "give one of joints, frames, branches")
    elif not getattr(part, given[0]):
        mistakes.add((*path, given[0]), "must have at least one entry, or the tendon has no length")
    branches = [(b.divisor, tuple(b.frames)) for b in part.branches or ()]
    if part.frames is not None:
        branches.append((1.0, tuple(part.frames)))
    return Tendon(
        part.name,
        tuple((part.joints or {}).items()),
        tuple(branches),
        _cubic(part.stiffness, (*path, "stiffness"), mistakes),
        _cubic(part.damping, (*path, "damping"), mistakes),
        part.rest,
        part.effort,
    )


def _cubic(value: float | list[float], path: Path, mistakes: Mistakes) -> Cubic:
    row = list(value) if isinstance(value, list) else [value, 0.0, 0.0]
    if len(row) != 3 or row[0] < 0.0:
        mistakes.add(path, f"{row} must be one number ≥ 0, or three (a + b x + c x^2) x")
        return 0.0, 0.0, 0.0
    a, b, c = row
    if path[-1] == "damping" and (c < 0.0 or (b < 0.0 and b * b > 4.0 * a * c)):
        mistakes.add(path, f"({a:g}, {b:g}, {c:g}) would make energy at some speed")
    return a, b, c


def _actuator(part: ActuatorPart) -> Actuator:
    missing = [key for key in _NEEDS[part.kind] if getattr(part, key) is None]
    if missing:
        raise ModelError(f"a {part.kind} actuator needs {', '.join(missing)}")
    gear = list(part.gear) if isinstance(part.gear, list) else [part.gear]
    if len(gear) not in (1, 6):
        raise ModelError("gear must be one number, or six: [force; moment]")
    gain, bias, command = part.gain or (1.0, 0.0, 0.0), part.bias or (0.0, 0.0, 0.0), part.command
    servo: Actuator | None = None
    if part.kind == "position":
        servo = position_servo(part.name, "-", part.kp or 0.0, part.kv or 0.0)
    elif part.kind == "velocity":
        servo = velocity_servo(part.name, "-", part.kv or 0.0)
    elif part.kind == "dc_motor":
        values = (part.constant or 0.0, part.resistance or 0.0, part.voltage or 0.0)
        servo = dc_motor(part.name, "-", *values)
    if servo is not None:
        gain, bias, command = servo.gain, servo.bias, command or servo.command
    same = [
        "joint", "tendon", "site", "reference", "slider", "rod", "in_parent", "force",
        "activation", "time", "activations", "early", "step",
    ]  # fmt: skip
    return Actuator(
        part.name, **{key: getattr(part, key) for key in same}, gain=gain, bias=bias,
        gear=tuple(gear + [0.0] * (6 - len(gear))), command=command or ANY,
    )  # fmt: skip
