"""Frames, tendons, actuators and keyframes of a robot file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from ramify.core.errors import ModelError
from ramify.core.messages import near
from ramify.documents.forms import (
    ByName,
    Choice,
    Flag,
    Form,
    Listed,
    Name,
    NotedError,
    Number,
    Numbers,
    Reading,
)
from ramify.documents.kinds import Keys, PartForm
from ramify.documents.mistakes import Path
from ramify.files.frame_schema import FINITE, NOT_NEGATIVE, POSITIVE, Rotated
from ramify.files.robot_schema import PAIR, ROW
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


@dataclass(frozen=True, kw_only=True)
class FramePart(Rotated):
    """A named frame on a link, or on the base."""

    name: str
    link: str | None = None


_PATH: Final = Listed(Name(), least=2)
_TENDON: Final = Keys(
    {
        "name": Name(),
        "joints": ByName(FINITE),
        "frames": _PATH,
        "branches": Listed(Keys({"frames": _PATH, "divisor": POSITIVE}, ("frames",)), least=0),
        "stiffness": ROW,
        "damping": ROW,
        "rest": Numbers(2, single=True, of=Number(endless=True)),
        "effort": PAIR,
    },
    ("name",),
)
"""A tendon over joints, {rate: coefficient}, or straight through frames; behind a pulley the length
of a branch counts 1/divisor. See docs/machines.md.
"""
_LAWS: Final[Mapping[str, Form]] = {
    **dict.fromkeys(("kp", "kv"), NOT_NEGATIVE),
    **dict.fromkeys(("constant", "resistance", "voltage"), POSITIVE),
    **dict.fromkeys(("gain", "bias"), Numbers(3, said="three numbers")),
}
_KINDS: Final[Mapping[str, tuple[Any, tuple[str, ...], tuple[str, ...]]]] = {
    "motor": (None, (), ()),
    "position": (position_servo, ("kp",), ("kv",)),
    "velocity": (velocity_servo, ("kv",), ()),
    "dc_motor": (dc_motor, ("constant", "resistance", "voltage"), ()),
    "general": (None, (), ("gain", "bias")),
}
"""What makes each kind of actuator, the keys of its law that it needs, and those it may have."""
_ACTUATOR: Final = Keys(
    {
        "name": Name(),
        "kind": Choice(tuple(_KINDS)),
        **dict.fromkeys(("joint", "tendon", "site", "reference", "slider"), Name()),
        **dict.fromkeys(("rod", "time", "step"), NOT_NEGATIVE),
        **dict.fromkeys(("in_parent", "early"), Flag()),
        **dict.fromkeys(("command", "force", "activations"), PAIR),
        "gear": ROW,
        "activation": Choice(("", "integrator", "filter", "filterexact")),
        **_LAWS,
    },
    ("name",),
)
_KEYFRAME: Final = Keys(
    {
        "name": Name(),
        **dict.fromkeys(("q", "v", "command", "activation"), Listed(FINITE, least=0)),
        "time": FINITE,
    },
    ("name", "q"),
)


def read_machine(document: Mapping[str, Any], robot: Robot, reading: Reading) -> Machine:
    """The machine of a file whose robot is built; what is wrong is noted with its place."""
    frames = _frames(document, robot, reading)
    tendons = []
    for tendon, path in _parts(_TENDON, "tendons", document, reading):
        with suppress(NotedError):
            tendons.append(_tendon(tendon, path, reading))
    actuators = []
    for actuator, path in _parts(_ACTUATOR, "actuators", document, reading):
        with suppress(NotedError):
            actuators.append(_actuator(actuator, path, reading))
    states = sum(bool(a.activation) for a in actuators)
    keys: list[Keyframe] = []
    for part, path in _parts(_KEYFRAME, "keyframes", document, reading):
        made: Any = {k: tuple(x) if isinstance(x, list) else x for k, x in part.items()}
        key = Keyframe(**made)
        if len(key.q) != robot.nq or len(key.v) not in (0, robot.nv):
            reading.refuse(path, f"q needs {robot.nq} numbers, and v {robot.nv} or none")
        for at, n in (("command", len(actuators)), ("activation", states)):
            if (given := len(getattr(key, at))) not in (0, n):
                reading.refuse((*path, at), f"{given} numbers given; the actuators need {n}")
        if key.name in (known.name for known in keys):
            reading.refuse((*path, "name"), f"duplicate name {key.name!r}; names must differ")
        keys.append(key)
    machine = Machine(frames, tuple(tendons), tuple(actuators), tuple(keys))
    known = {**frames, **robot.attached}
    for kind, name, text in machine.mistakes(robot.joints, robot.velocities, known):
        items = enumerate(document.get(f"{kind}s") or ())
        places = [i for i, x in items if isinstance(x, Mapping) and x.get("name") == name]
        reading.refuse((f"{kind}s", *places[-1:]), text)
    return machine


def _parts(
    form: Form, key: str, document: Mapping[str, Any], reading: Reading
) -> Iterator[tuple[Any, Path]]:
    """The entries of a list that are right, and their places."""
    for i, raw in enumerate(document.get(key) or ()):
        with suppress(NotedError):
            yield form.read(raw, (key, i), reading), (key, i)


def _frames(document: Mapping[str, Any], robot: Robot, reading: Reading) -> dict[str, Attachment]:
    frames: dict[str, Attachment] = {}
    for frame, path in _parts(PartForm(FramePart), "frames", document, reading):
        seat = Attachment(-1, Frame())
        if frame.link is not None:
            if frame.link not in robot.attached:
                hint = near(frame.link, list(robot.attached))
                reading.refuse((*path, "link"), f"no link is named {frame.link!r}{hint}")
                continue
            seat = robot.attached[frame.link]
        if frame.name in robot.attached or frame.name in frames:
            reading.refuse((*path, "name"), f"duplicate name {frame.name!r}; names must differ")
        frames[frame.name] = Attachment(seat.body, seat.frame @ frame.to_frame(path, reading))
    return frames


def _tendon(part: Mapping[str, Any], path: Path, reading: Reading) -> Tendon:
    given = [key for key in ("joints", "frames", "branches") if key in part]
    if len(given) != 1:
        raise reading.refuse(path, "give one of joints, frames, branches")
    if not part[given[0]]:
        text = "must have at least one entry, or the tendon has no length"
        raise reading.refuse((*path, given[0]), text)
    branches = [(b.get("divisor", 1.0), tuple(b["frames"])) for b in part.get("branches", ())]
    if "frames" in part:
        branches.append((1.0, tuple(part["frames"])))
    rest = part.get("rest", 0.0)
    stiffness, damping = (
        _cubic(part.get(key, 0.0), (*path, key), reading) for key in ("stiffness", "damping")
    )
    try:
        return Tendon(
            part["name"],
            tuple(part.get("joints", {}).items()),
            tuple(branches),
            stiffness,
            damping,
            rest if isinstance(rest, tuple) else (rest, rest),
            part.get("effort", ANY),
        )
    except ModelError as error:
        text = str(error).removeprefix(f"tendon {part['name']!r}: ")
        raise reading.refuse((*path, *error.key), text) from None


def _cubic(value: float | list[float], path: Path, reading: Reading) -> Cubic:
    row = list(value) if isinstance(value, list) else [value, 0.0, 0.0]
    if len(row) != 3 or row[0] < 0.0:
        text = f"{row} must be one number ≥ 0, or three (a + b x + c x^2) x"
        raise reading.refuse(path, text)
    a, b, c = row
    if path[-1] == "damping" and (c < 0.0 or (b < 0.0 and b * b > 4.0 * a * c)):
        raise reading.refuse(path, f"({a:g}, {b:g}, {c:g}) would make energy at some speed")
    return a, b, c


def _actuator(part: dict[str, Any], path: Path, reading: Reading) -> Actuator:
    kind = part.pop("kind", "general")
    servo, needs, may = _KINDS[kind]
    law = {key: part.pop(key) for key in _LAWS if key in part}
    odd = sorted(law.keys() - {*needs, *may})
    own = ", ".join(sorted((*needs, *may))) or "no gains"
    for key in odd:
        text = f"{key} does not belong to a {kind} actuator, which takes {own}"
        reading.refuse((*path, key), text)
    if missing := [key for key in needs if key not in law]:
        raise reading.refuse(path, f"a {kind} actuator needs {', '.join(missing)}")
    row = part.pop("gear", 1.0)
    gear = row if isinstance(row, list) else [row]
    if len(gear) not in (1, 6):
        raise reading.refuse(path, "gear must be one number, or six: [force; moment]")
    if odd:
        raise NotedError
    if servo is not None:
        made = servo(part["name"], "-", **law)
        law = {"gain": made.gain, "bias": made.bias}
        part.setdefault("command", made.command)
    try:
        return Actuator(**part, **law, gear=(*gear, *[0.0] * (6 - len(gear))))
    except ModelError as error:
        text = str(error).removeprefix(f"actuator {part['name']!r}: ")
        raise reading.refuse(path, text) from None
