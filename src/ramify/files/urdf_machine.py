"""What URDF says about the machine: ``<dynamics>`` and the ratings of ``<limit>`` of a joint, and
``<transmission>``: the gears, and the rotors where a file has them, between motors and joints.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from lxml import etree

from ramify.core.errors import ModelError
from ramify.documents.mistakes import Mistakes
from ramify.files.xml_reader import UNLIMITED, XmlValues, quoted_text
from ramify.model.elements import Element, Friction, Stop, elements
from ramify.model.joint import Joint
from ramify.model.robot import Robot

_GEAR: Final = ("mechanicalReduction", "gear_ratio")
_ROTOR: Final = ("motorInertia", "rotorInertia", "rotor_inertia")
_SIMPLE: Final = "SimpleTransmission"
_DYNAMICS: Final = {"damping": "damping", "friction": "friction", "rotor_inertia": "armature"}


def urdf_joint_elements(
    values: XmlValues, parts: Mapping[str, etree._Element], dof: int, who: str
) -> tuple[Element, ...]:
    """The elements of a joint, one per rate; () where it says nothing. An effort or velocity of 0
    is not given.
    """
    keys: dict[str, object] = {}
    dynamics, limit = parts.get("dynamics"), parts.get("limit")
    for key, ours in _DYNAMICS.items() if dynamics is not None else ():
        if x := values.number(dynamics, key, who, 0.0):
            keys[ours] = x
    for key in ("effort", "velocity") if limit is not None else ():
        x = values.number(limit, key, who, 0.0, endless=True)
        if x and x < UNLIMITED:
            keys[key] = x
    try:
        return elements(dof, keys)
    except ModelError as error:
        at = limit if error.key[0] in ("effort", "velocity") else dynamics
        assert at is not None
        values.wrong(at, f"{who}: {error}")
        return ()


def limit_text(joint: Joint, no_limit: float) -> Iterator[str]:
    """``<limit>`` and ``<dynamics>`` of a joint with an axis; ``rotor_inertia`` is not in URDF's
    standard: programs that do not know it pass over it.
    """
    element = joint.machine[0]
    effort = max(map(abs, element.efforts))
    ratings = f'effort="{min(effort, no_limit)!r}" velocity="{min(element.velocity, no_limit)!r}"'
    if joint.limits or joint.kind == "prismatic":
        low, high = joint.limits[0] if joint.limits else (-no_limit, no_limit)
        ends = f'lower="{max(low, -no_limit)!r}" upper="{min(high, no_limit)!r}"'
        yield f"<limit {ends} {ratings}/>"
    elif min(effort, element.velocity) < no_limit:
        yield f"<limit {ratings}/>"
    coulomb = element.friction.sliding if element.friction else 0.0
    if element.damping[0] or coulomb or element.armature:
        rotor = f' rotor_inertia="{element.armature!r}"' if element.armature else ""
        yield f'<dynamics damping="{element.damping[0]!r}" friction="{coulomb!r}"{rotor}/>'


class LeftOut(NamedTuple):
    """Parts of a robot that URDF cannot say, by name; ``moves``: they change the motion."""

    text: str
    moves: bool = True


def unsaid(robot: Robot) -> Iterator[LeftOut]:
    """What URDF cannot say about a robot's machine."""
    joints_by_feature: dict[str, list[str]] = {}
    for joint in robot.joints:
        several = joint.dof > 1  # URDF has <limit> and <dynamics> for joints with an axis
        for element in joint.machine:
            friction = element.friction
            plain = Friction(friction.sliding, friction.sliding) if friction else None
            for what, there in (
                ("rotor inertia", several and element.armature),
                ("damping", several and element.damping[0]),
                ("friction", several and friction),
                ("effort", several and math.isfinite(max(map(abs, element.efforts)))),
                ("limits", several and joint.limits),
                ("spring", element.spring),
                ("damping beyond the linear", any(element.damping[1:])),
                ("friction by direction or speed", friction and friction != plain),
                ("stop", element.stop != Stop()),
                ("effort by direction", element.backward_effort is not None),
            ):  # fmt: skip
                if there and joint.name not in joints_by_feature.setdefault(what, []):
                    joints_by_feature[what].append(joint.name)
    for what, names in joints_by_feature.items():
        if names:
            yield LeftOut(f"{what} of {', '.join(names)}")
    for what, names in (
        ("tendons", [tendon.name for tendon in robot.tendons]),
        ("actuators", [actuator.name for actuator in robot.actuators]),
        ("keyframes", [key.name for key in robot.keyframes]),
        ("gravity compensation of", [body.name for body in robot.bodies if body.lift[0]]),
    ):
        if names:
            yield LeftOut(f"{what} {', '.join(names)}", moves=what != "keyframes")


# ---- transmissions ----


class Transmissions:
    """The transmissions of a file, read one by one; those of one joint by one motor are applied to
    it, the others are reported.
    """

    def __init__(self, values: XmlValues) -> None:
        self._values, self._report = values, values.report
        self._read: dict[str, tuple[str, float, float]] = {}
        self._lines: dict[str, int] = {}

    def read(self, element: etree._Element) -> None:
        """Gear and rotor inertia of a transmission; a second one of the same joint is reported."""
        who = f"transmission {quoted_text(element.get('name', ''))}"
        kind = (element.get("type") or element.findtext("type") or _SIMPLE).strip()
        joints = [x.get("name", "") for x in element if _local(x) == "joint"]
        motors = [x for x in element if _local(x) == "actuator"]
        rotors = [self._number(x, who) for x in element.iter() if _local(x) in _ROTOR]
        if not kind.endswith(_SIMPLE) or len(joints) != 1 or len(motors) > 1:
            gears = [self._number(x, who) for x in element.iter() if _local(x) in _GEAR]
            if any(rotors) or any(abs(gear) != 1.0 for gear in gears):
                text = (
                    "gears and rotors are read of one joint and one motor, "
                    f"not of {quoted_text(kind)}"
                )
                self._report.ignored(who, text, moves=any(rotors))
        elif joints[0] in self._read:
            first = self._read[joints[0]][0]
            self._report.ignored(who, f"joint {joints[0]!r} has {first} already", any(rotors))
        else:
            at = next((x for x in element.iter() if _local(x) in _GEAR), None)
            gear = 1.0 if at is None else self._number(at, who, 1.0)
            if at is not None and gear == 0.0:
                self._values.wrong(at, f"{who}: <{_local(at)}> 0 must not be 0")
            if any(rotor < 0.0 for rotor in rotors):
                self._values.wrong(element, f"{who}: rotor inertia {min(rotors):g} must be ≥ 0")
            self._read[joints[0]] = who, gear, sum(rotors) * gear * gear
            self._lines[joints[0]] = element.sourceline or 1

    def _number(self, element: etree._Element, who: str, blank: float = 0.0) -> float:
        """The number of an element, its text or its attribute ``value``. Other texts are
        reported and left out, as other programs do.
        """
        given = (element.get("value") or element.text or "").strip()
        what, values = f"<{_local(element)}>", XmlValues(Mistakes(""), self._report)
        found = values.read(element, what, given, 1, who, (blank,))[0] if given else blank
        if values.mistakes:
            where = f"{who}, line {element.sourceline}"
            self._report.ignored(where, f"{what} {quoted_text(given)} is not a number", doubt=True)
        return found

    def applied(self, joint: Joint) -> Joint:
        """A joint with its gear and rotor."""
        found = self._read.pop(joint.name, None)
        if found is None or found[1:] == (1.0, 0.0):
            return joint
        who, gear, armature = found
        if joint.dof != 1:
            self._report.ignored(who, f"joint {joint.name!r} is {joint.kind}, it has no gear")
            return joint
        own = joint.machine[0]
        made: Element = replace(own, gear=gear, armature=own.armature + armature)
        return replace(joint, elements=(made,))

    def finish(self) -> None:
        """Report those whose joint is not there."""
        for joint, (who, gear, armature) in self._read.items():
            where, doubt = f"{who}, line {self._lines[joint]}", (gear, armature) != (1.0, 0.0)
            self._report.ignored(where, f"the file has no joint {quoted_text(joint)}", doubt=doubt)


def _local(element: etree._Element) -> str:
    """The tag without its namespace; "" for a comment."""
    return element.tag.split("}")[-1].split(":")[-1] if isinstance(element.tag, str) else ""


def transmission_text(robot: Robot, quoted: Callable[[str], str]) -> Iterator[str]:
    """The gears of a robot; what its rotors add is ``rotor_inertia`` of the joint."""
    for joint in robot.joints:
        if joint.dof == 1 and joint.machine[0].gear != 1.0:
            name, motor = quoted(f"{joint.name}_transmission"), quoted(f"{joint.name}_motor")
            gear = f"<mechanicalReduction>{joint.machine[0].gear!r}</mechanicalReduction>"
            yield f"  <transmission name={name}>"
            yield f"    <type>transmission_interface/{_SIMPLE}</type>"
            yield f"    <joint name={quoted(joint.name)}/>"
            yield f"    <actuator name={motor}>{gear}</actuator>"
            yield "  </transmission>"
