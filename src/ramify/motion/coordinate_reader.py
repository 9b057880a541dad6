"""Coordinates of a robot in files: a number for all of them, a list, or numbers by joint, in rad
and m or, under a key that ends in ``_deg``, in degrees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import StateError
from ramify.core.messages import near
from ramify.documents.forms import ByName, Form, GivenPart, Numbers, Reading
from ramify.documents.mistakes import Path
from ramify.model.driven import Driven, driven
from ramify.model.robot import Robot, joint_entries

DEGREE: Final = np.pi / 180.0
_NUMBERS: Final = Numbers(single=True)
WANTED: Final = "a number, a list, or numbers by joint"
Value = float | list[float] | dict[str, list[float]]
"""What a key may hold: one number, a list, or lists by joint."""


@dataclass(frozen=True, eq=False)
class RobotReading(Reading):
    """A file about a robot. ``start`` (nq): where its run starts, NaN where the file does not say;
    ``joints``: those that are read, None for all driven ones.
    """

    robot: Robot
    start: Array
    joints: tuple[str | int, ...] | None = None

    def of_joint(self, joint: str) -> RobotReading:
        """The reading of this file for one joint alone."""
        known = any(one.name == joint for one in self.robot.joints)
        return replace(self, joints=(joint,)) if known else self

    @property
    def driven(self) -> Driven:
        return driven(self.robot, self.joints)

    @property
    def rest(self) -> Array:
        """Where the driven coordinates start, (k,)."""
        q = np.where(np.isnan(self.start), self.robot.neutral(), self.start)
        return np.array([q[i] if i >= 0 else 0.0 for i in self.driven.q])


def about_robot(reading: Reading) -> RobotReading:
    """A reading as what it is. Raises StateError for a document that is read by itself."""
    if not isinstance(reading, RobotReading):
        raise StateError("numbers by joint need a robot; give the coordinates as a list")
    return reading


def of_actuated(section: GivenPart) -> Reading:
    """The reading for values of a controller: about the joints that it drives, where it names
    them.
    """
    about, joints = section.reading, section.done.get("actuated")
    if not isinstance(about, RobotReading) or joints is None:
        return about
    try:
        driven(about.robot, joints)
    except StateError as error:
        raise section.refuse(str(error), "actuated") from error
    return replace(about, joints=tuple(joints))


@dataclass(frozen=True)
class AnyLength(Form):
    """A value whose coordinates are not the driven ones of a robot: lists of any length."""

    of: Form

    @property
    def wanted(self) -> str:
        return self.of.wanted

    def read(self, raw: object, path: Path, reading: Reading) -> Any:
        plain = Reading(
            reading.mistakes, context=reading.context, names=reading.names, link=reading.link
        )
        return self.of.read(raw, path, plain)

    def write(self, value: Any) -> Any:
        return self.of.write(value)


@dataclass(frozen=True)
class CoordinateReader(Form):
    """Numbers of the driven coordinates. Joints that a mapping does not name take ``others``: the
    start of the run ("rest"), zero, or what another field has. ``needed``: the key cannot be left
    out.
    """

    wanted: ClassVar[str] = WANTED
    others: str = "zero"
    needed: bool = False
    degrees: bool = True

    @property
    def absent(self) -> str:
        if self.needed:
            return ""
        return {"rest": "where the run starts", "zero": "0"}.get(self.others, self.others)

    def read(self, raw: object, path: Path, reading: Reading) -> Value:
        value = read_value(raw, path, reading)
        if isinstance(value, dict) and not isinstance(reading, RobotReading):
            raise reading.refuse(path, "numbers by joint need a robot; give a list")
        return value

    def take(self, name: str, section: GivenPart) -> Any:
        about, keys = of_actuated(section), self.names(name)
        if not isinstance(about, RobotReading):
            return super().take(name, section)
        if self.needed and not section.keys(keys):
            raise section.refuse(f"{'one of ' if self.degrees else ''}{', '.join(keys)} is missing")
        robot, chosen = about.robot, about.driven
        default = {"rest": about.rest, "zero": np.zeros(len(chosen))}.get(self.others)
        if default is None:
            default = np.asarray(section.done.get(self.others, about.rest))
        by_key = values(section, keys)
        for one, value in by_key.items():
            sizes = sorted({len(chosen), robot.nv})
            if isinstance(value, list) and len(value) not in sizes:
                wanted = " or ".join(map(str, sizes))
                raise section.refuse(f"{len(value)} entries; {robot.name} takes {wanted}", one)
        places = {one: [i] for i, one in enumerate(chosen.names)}
        for joint in robot.joints:
            at = [chosen.v.index(j) for j in joint_entries(robot, joint.name) if j in chosen.v]
            places |= {joint.name: at} if at else {}
        turns = _turns(robot, of="v")
        if any(isinstance(value, list) and len(value) == robot.nv for value in by_key.values()):
            return _filled(section, by_key, robot.nv, places, turns)
        filled = _filled(section, by_key, len(chosen), places, [turns[j] for j in chosen.v])
        if default.shape != filled.shape and np.isnan(filled).any():
            default = default[list(chosen.v)]
        return np.where(np.isnan(filled), default, filled)


@dataclass(frozen=True)
class WholeState(Form):
    """All coordinates q (nq) or rates v (nv) of a robot; NaN where the file does not say."""

    wanted: ClassVar[str] = WANTED
    of: Literal["q", "v"]
    degrees: bool = True

    def read(self, raw: object, path: Path, reading: Reading) -> Value:
        return read_value(raw, path, reading)

    def take(self, name: str, section: GivenPart) -> Array:
        robot = about_robot(section.reading).robot
        names = robot.coordinates if self.of == "q" else robot.velocities
        places = {one: [i] for i, one in enumerate(names)}
        for joint in robot.joints:
            places[joint.name] = list(joint_entries(robot, joint.name, self.of))
        by_key = values(section, self.names(name))
        return _filled(section, by_key, len(names), places, _turns(robot, self.of))


def read_value(raw: object, path: Path, reading: Reading) -> Value:
    """A number, a list of numbers, or such lists by joint."""
    if isinstance(raw, Mapping):
        found: dict[str, float | list[float]] = ByName(_NUMBERS).read(raw, path, reading)
        return {joint: x if isinstance(x, list) else [x] for joint, x in found.items()}
    value: float | list[float] = _NUMBERS.read(raw, path, reading)
    return value


def values(section: GivenPart, names: tuple[str, ...]) -> dict[str, Value]:
    """What a part gives under some keys that say the same."""
    keys = section.keys(names)
    by_key = {
        key: read_value(section.part[key], (*section.path, key), section.reading) for key in keys
    }
    if len(keys) > 1 and not all(isinstance(value, Mapping) for value in by_key.values()):
        text = f"{' and '.join(keys)} exclude each other, unless both go by joint"
        raise section.refuse(text, keys[1])
    return by_key


def _turns(robot: Robot, of: Literal["q", "v"]) -> list[bool]:
    """Whether each coordinate is an angle."""
    steps = [step for joint in robot.joints for step in joint.steps]
    if of == "v":
        return [step.unit == "rad" for step in steps]
    return [step.unit == "rad" and not step.ball for step in steps for _ in step.positions]


def _filled(
    section: GivenPart, by_key: Mapping[str, Value], size: int, places: Mapping[str, list[int]],
    turns: list[bool],
) -> Array:  # fmt: skip
    """(size) numbers, NaN where nothing is given."""
    out = np.full(size, np.nan)
    for name, value in by_key.items():
        degrees = name.endswith("_deg")
        unit = DEGREE if degrees else 1.0
        if not isinstance(value, dict):
            if isinstance(value, list) and len(value) != size:
                raise section.refuse(f"{len(value)} entries; it must have {size}", name)
            if degrees and not all(turns):
                text = "give the angles by joint, and slides under the key without _deg"
                raise section.refuse(f"not all coordinates are angles; {text}", name)
            out[:] = np.asarray(value) * unit
            continue
        for joint, numbers in value.items():
            path, refuse = (*section.path, name, joint), section.reading.refuse
            if joint not in places:
                text = f"no joint or coordinate has this name{near(joint, list(places))}"
                raise refuse(path, text, key=True)
            at = places[joint]
            if len(numbers) != len(at):
                raise refuse(path, f"{len(numbers)} numbers; the joint has {len(at)} coordinates")
            if degrees and not all(turns[i] for i in at):
                raise refuse(path, "is not an angle; give it under the key without _deg", key=True)
            if not np.isnan(out[at]).all():
                raise refuse(path, "is given twice", key=True)
            out[at] = np.array(numbers) * unit
    return out
