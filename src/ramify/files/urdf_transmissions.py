"""``<transmission>`` of URDF: the gears, and the rotors where a file has them, between motors and
joints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from lxml import etree

from ramify.documents.mistakes import Mistakes
from ramify.files.xml_reader import XmlValues, shown
from ramify.model.elements import Element
from ramify.model.joint import Joint
from ramify.model.robot import Robot

_GEAR: Final = ("mechanicalReduction", "gear_ratio")
_ROTOR: Final = ("motorInertia", "rotorInertia", "rotor_inertia")
_SIMPLE: Final = "SimpleTransmission"


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
        who = f"transmission {shown(element.get('name', ''))}"
        kind = (element.get("type") or element.findtext("type") or _SIMPLE).strip()
        joints = [x.get("name", "") for x in element if _local(x) == "joint"]
        motors = [x for x in element if _local(x) == "actuator"]
        rotors = [self._number(x, who) for x in element.iter() if _local(x) in _ROTOR]
        if not kind.endswith(_SIMPLE) or len(joints) != 1 or len(motors) > 1:
            gears = [self._number(x, who) for x in element.iter() if _local(x) in _GEAR]
            if any(rotors) or any(abs(gear) != 1.0 for gear in gears):
                text = f"gears and rotors are read of one joint and one motor, not of {shown(kind)}"
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
        """The number of an element, its text or its attribute ``value``. What is none is reported
        and left out, as other programs do.
        """
        given = (element.get("value") or element.text or "").strip()
        what, values = f"<{_local(element)}>", XmlValues(Mistakes(""), self._report)
        found = values.read(element, what, given, 1, who, (blank,))[0] if given else blank
        if values.mistakes:
            where = f"{who}, line {element.sourceline}"
            self._report.ignored(where, f"{what} {shown(given)} is not a number", doubt=True)
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
            self._report.ignored(where, f"the file has no joint {shown(joint)}", doubt=doubt)


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
