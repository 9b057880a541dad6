"""``<joint>`` of URDF: type, place, axis, limits, and couplings (``<mimic>``)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final, NamedTuple

from lxml import etree

from ramify.files.urdf_elements import UrdfElements
from ramify.files.urdf_machine import joint_elements
from ramify.files.xml_reader import finite_limits
from ramify.model.joint import Joint
from ramify.model.loop import Loop

KINDS: Final = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "floating": "free",
    "planar": "planar",
}
"""Joint types of URDF and ours."""


class UrdfEdge(NamedTuple):
    """A joint of the file, between two links."""

    joint: Joint
    parent: str
    child: str
    line: int


class UrdfJoints:
    """The joints of a file, read one by one; ``unlimited`` and ``continuous`` name some."""

    def __init__(self, elements: UrdfElements) -> None:
        self.elements, self.values, self.report = elements, elements.values, elements.report
        self.edges: list[UrdfEdge] = []
        self.lines: dict[str, int] = {}
        self.unlimited: list[str] = []
        self.continuous: list[str] = []
        self.mimics: list[tuple[str, str, float, float]] = []

    # ---- joints ----

    def read(self, element: etree._Element) -> None:
        name, kind = self.elements.own_name(element, "joint", self.lines), element.get("type", "")
        if not name:
            return
        who = f"joint {name!r}"
        parts = self.elements.children(element, who)
        ends = [parts[tag].get("link", "") if tag in parts else "" for tag in ("parent", "child")]
        for tag, end in zip(("parent", "child"), ends, strict=True):
            if not end:
                self.values.note(element, f'{who} names no {tag}; write <{tag} link="…"/>')
        if kind not in KINDS:
            self.values.note(
                element, f"{who}: unknown type {kind[:60]!r}; choose one of {', '.join(KINDS)}"
            )
        elif all(ends):
            placement = self.values.frame(parts.get("origin"), who)
            axis = self.axis(parts.get("axis"), kind, who)
            limits = self.limits(parts.get("limit"), kind, who)
            drives = kind != "floating" and "mimic" not in parts
            joint = Joint(name, KINDS[kind], placement, axis=axis, limits=limits, actuated=drives)
            own = joint_elements(self.values, parts, joint.dof, who)
            joint = replace(joint, elements=own if joint.dof else ())
            if kind == "continuous":
                self.continuous.append(name)
            self.edges.append(UrdfEdge(joint, ends[0], ends[1], element.sourceline or 1))
            if "mimic" in parts:
                self.read_mimic(parts["mimic"], joint, who)

    def read_mimic(self, element: etree._Element, joint: Joint, who: str) -> None:
        """A joint that follows another: q = multiplier q_other + offset."""
        master = element.get("joint", "")
        ratio, offset = (
            self.values.number(element, key, who, rest)
            for key, rest in (("multiplier", 1.0), ("offset", 0.0))
        )
        if joint.dof != 1 or joint.name == master:
            self.report.ignored(
                who,
                f"mimic of {master[:60]!r}: only a joint of one degree of freedom can follow "
                "another",
                moves=joint.dof > 0,
            )
        else:
            self.mimics.append((joint.name, master, ratio, offset))

    def gears(self) -> list[Loop]:
        """The couplings, as loops; those to joints that do not move are reported."""
        moving = {edge.joint.name for edge in self.edges if edge.joint.dof == 1}
        found = []
        for joint, master, ratio, offset in self.mimics:
            if master not in moving:
                self.report.ignored(
                    f"joint {joint!r}",
                    f"mimic of {master[:60]!r}, which is no joint of one degree of freedom",
                    moves=True,
                )
                continue
            found.append(
                Loop(f"{joint}_mimic", "gear", joints=(master, joint), ratio=ratio, offset=offset)
            )
            self.report.note(
                f"joint {joint!r}",
                f"follows {master!r}: a gear in model.loops; model.tree lets it move by itself",
            )
        return found

    def axis(
        self, element: etree._Element | None, kind: str, who: str
    ) -> tuple[float, float, float]:
        """The axis of a joint that has one, x by default."""
        if kind in ("fixed", "floating"):
            return 0.0, 0.0, 1.0
        if element is None or element.get("xyz") is None:
            self.report.assumed(who, "no axis given: the x axis, as URDF has it")
            return 1.0, 0.0, 0.0
        x, y, z = self.values.numbers(element, "xyz", 3, who, (1.0, 0.0, 0.0))
        length = math.hypot(x, y, z)
        if length < 1e-6:
            self.values.note(
                element,
                f"{who}: axis {x:g} {y:g} {z:g} has no direction; give a vector of length 1",
            )
            return 1.0, 0.0, 0.0
        if abs(length - 1.0) > 1e-3:
            self.report.note(
                who, f"axis {x:g} {y:g} {z:g} has length {length:.4g}; its direction counts"
            )
        return x / length, y / length, z / length

    def limits(
        self, element: etree._Element | None, kind: str, who: str
    ) -> tuple[tuple[float, float], ...]:
        """Lower and upper limit, none where there are none."""
        if kind not in ("revolute", "prismatic"):
            return ()
        if element is None or (element.get("lower") is None and element.get("upper") is None):
            self.unlimited.append(who.removeprefix("joint "))
            return ()
        missing = next((key for key in ("lower", "upper") if element.get(key) is None), "")
        low, high = (
            self.values.number(element, key, who, 0.0, endless=True) for key in ("lower", "upper")
        )
        if low > high:  # PyBullet's way to say that there are none
            remedy = f"{missing} is missing and counts as 0: give it" if missing else "swap them"
            self.report.ignored(
                f"{who}, line {element.sourceline}",
                f"lower limit {low:g} exceeds upper limit {high:g}, so the joint has no limits; "
                f"{remedy}",
                doubt=True,
            )
            return ()
        if missing:
            self.report.assumed(who, f"<limit> without {missing}: 0, as URDF has it")
        return finite_limits(low, high)
