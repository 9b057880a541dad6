"""Joints of SDF: their types, axes, limits, machines, threads and couplings (``<mimic>``)."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from lxml import etree

from ramify.core.errors import ModelError
from ramify.core.names import fresh
from ramify.files.import_report import ImportReport
from ramify.files.sdf_parts import SdfLink, SdfParts
from ramify.files.xml_reader import UNLIMITED, finite_limits, quoted_text
from ramify.model.build import point_of
from ramify.model.elements import Element, elements
from ramify.model.frame import Frame
from ramify.model.joint import Joint
from ramify.model.loop import Loop
from ramify.model.machine import ANY

KINDS: Final = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "ball": "ball",
    "screw": "helical",
    "universal": "universal",
    "revolute2": "universal",
}
"""Joint types of SDF and ours."""
_TWO_AXES: Final = ("universal", "revolute2")
_SQUARE: Final = 1e-9
"""Two axes whose cosine is below this are at right angles."""


class SdfJoint(NamedTuple):
    """A joint of the file; its frame and its links' are poses in the model."""

    element: etree._Element
    joint: Joint
    parent: str
    child: str


class SdfJoints(SdfParts):
    """Reads joints. ``axes``: the coordinate of each axis, by the joint's name in the file and
    ``axis`` or ``axis2``; ``mimics``: coordinates that follow another, with their elements.
    """

    def __init__(self, root: etree._Element, file: str, report: ImportReport) -> None:
        super().__init__(root, file, report)
        self.axes: dict[tuple[str, str], str] = {}
        self.mimics: list[tuple[str, etree._Element]] = []

    def edges(self, element: etree._Element) -> list[SdfJoint]:
        """The joint of an element; two in a row for two axes that are not at right angles. None
        where it is wrong.
        """
        said, kind = element.get("name", ""), element.get("type", "")
        who = f"joint {said!r}"
        ends = [
            self.link_of((element.findtext(tag) or "").strip(), who) for tag in ("parent", "child")
        ]
        if kind not in KINDS:
            self.wrong(
                element, f"{who}: type {quoted_text(kind)} must be one of {', '.join(KINDS)}"
            )
            return []
        if ends[1] == "world" and ends[1] not in self.bodies:
            self.wrong(element, f"{who}: the world cannot be a child; exchange parent and child")
            return []
        if kind in _TWO_AXES:
            joints = self.two_axes(element, ends, who)
        else:
            joints = [self.one_axis(element, ends, who)]
        coordinates = [name for edge in joints for name in edge.joint.coordinates]
        if len(coordinates) <= 2:
            for tag, coordinate in zip(("axis", "axis2"), coordinates, strict=False):
                self.axes[said, tag] = coordinate
                mimic = element.find(f"{tag}/mimic")
                if mimic is not None:
                    self.mimics.append((coordinate, mimic))
        return joints

    def seats(self, element: etree._Element, ends: list[str], who: str) -> tuple[str, Frame, Frame]:
        """The name of a joint, its frame in the parent, and the child in its frame."""
        said = element.get("name", "")
        name = self.joint_names.get(said, said)
        here = self.pose(name, who)
        inlet = self.world() if ends[0] not in self.bodies else self.pose(ends[0], who)
        return name, inlet.inverse() @ here, here.inverse() @ self.pose(ends[1], who)

    def one_axis(self, element: etree._Element, ends: list[str], who: str) -> SdfJoint:
        kind, axis = element.get("type", ""), element.find("axis")
        name, start, end = self.seats(element, ends, who)
        joint = Joint(
            name, KINDS[kind], start, end, self.axis(axis, self.pose(name, who), kind, who),
            pitch=self.pitch(element, who) if kind == "screw" else 0.0,
            limits=self.limits(axis, kind, who), elements=self.elements(axis, kind, who),
        )  # fmt: skip
        return SdfJoint(element, joint, *ends)

    def two_axes(self, element: etree._Element, ends: list[str], who: str) -> list[SdfJoint]:
        """A universal joint, or two revolute ones with a massless link between them where the axes
        are not at right angles.
        """
        kind, axes = element.get("type", ""), [element.find(tag) for tag in ("axis", "axis2")]
        name, start, end = self.seats(element, ends, who)
        here = self.pose(name, who)
        first, second = (np.array(self.axis(axis, here, kind, who)) for axis in axes)
        limits = [self.limits(axis, kind, who) for axis in axes]
        machines = [self.elements(axis, kind, who) for axis in axes]
        if abs(first @ second) < _SQUARE:  # of its axes, y is the first and x the second
            turn = Frame(np.column_stack([second, first, np.cross(second, first)]))
            joint = Joint(
                name, "universal", start @ turn, turn.inverse() @ end, sequence="YX",
                limits=tuple((one or (ANY,))[0] for one in limits) if any(limits) else (),
                elements=tuple((one or (Element(),))[0] for one in machines)
                if any(machines) else (),
            )  # fmt: skip
            return [SdfJoint(element, joint, *ends)]
        between = fresh(f"{ends[1]}/{name}", {*self.places, *self.bodies})
        self.bodies[between] = SdfLink(0.0, np.zeros(3), np.zeros((3, 3)))
        self.poses[between] = here
        seats: tuple[tuple[Frame, Frame], ...] = (start, Frame()), (Frame(), end)
        joints = [
            Joint(
                f"{name}_{tag}", "revolute", *frames, point_of(axis), limits=limit, elements=machine
            )
            for tag, frames, axis, limit, machine in zip(
                ("axis", "axis2"), seats, (first, second), limits, machines,
                strict=True,
            )
        ]  # fmt: skip
        return [
            SdfJoint(element, joints[0], ends[0], between),
            SdfJoint(element, joints[1], between, ends[1]),
        ]

    def gears(self, coordinates: set[str]) -> list[Loop]:
        """Axes that follow others: follower = multiplier (leader - reference) + offset."""
        gears = []
        for follower, mimic in self.mimics:
            leader = self.axes.get((mimic.get("joint", ""), mimic.get("axis", "axis")), "")
            who = f"joint {follower!r}"
            ratio, offset, reference = (
                self.text(mimic, tag, who, otherwise)
                for tag, otherwise in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
            )
            if not {follower, leader} <= coordinates or follower == leader:
                text = (
                    f"mimic of {quoted_text(mimic.get('joint', ''))}, which has no such coordinate"
                )
                self.report.ignored(f"{who}, line {mimic.sourceline}", text, moves=True)
                continue
            start = offset - ratio * reference
            related = (leader, follower)
            gears.append(
                Loop(f"{follower}_mimic", "gear", joints=related, ratio=ratio, offset=start)
            )
            self.report.note(who, f"follows {leader!r}: a gear in model.loops")
        return gears

    def pitch(self, element: etree._Element, who: str) -> float:
        """The pitch of a screw in m/rad. ``thread_pitch`` of old files is in rad/m, left-handed."""
        old = self.text(element, "thread_pitch", who, math.nan)
        if element.find("screw_thread_pitch") is None and not math.isnan(old):
            pitch = -1.0 / old if old else math.inf
        else:
            if element.find("screw_thread_pitch") is None:
                self.report.assumed(who, "no <screw_thread_pitch>: 1 m per turn, as SDF has it")
            pitch = self.text(element, "screw_thread_pitch", who, 1.0) / (2.0 * math.pi)
        if not (math.isfinite(pitch) and pitch):
            self.wrong(element, f"{who}: its thread pitch must be finite and not 0")
            return 1.0
        return pitch

    def axis(
        self, axis: etree._Element | None, here: Frame, kind: str, who: str
    ) -> tuple[float, float, float]:
        """The joint's axis in its own frame."""
        if kind in ("fixed", "ball"):
            return 0.0, 0.0, 1.0
        u = np.array(self.texts(axis, "xyz", 3, who, (0.0, 0.0, 1.0)))
        xyz = axis.find("xyz") if axis is not None else None
        if axis is None or not np.isfinite(u).all() or not np.linalg.norm(u) > 1e-6:
            at = self.root if axis is None else axis
            tags = (
                "<axis> and <axis2> with directions"
                if kind in _TWO_AXES
                else "<axis> with a direction"
            )
            self.wrong(at, f"{who}: give {tags} <xyz>")
            return 0.0, 0.0, 1.0
        frame = xyz.get("expressed_in") if xyz is not None else None
        old = (axis.findtext("use_parent_model_frame") or "").strip() in ("1", "true")
        if frame:
            u = here.rotation.T @ self.pose(frame, who).rotation @ u
        elif old or self.version() < (1, 5):
            u = here.rotation.T @ u
        return point_of(u / np.linalg.norm(u))

    def version(self) -> tuple[int, ...]:
        words = self.root.get("version", "1.6").split(".")
        return tuple(int(word) for word in words) if all(map(str.isdecimal, words)) else (1, 6)

    def limits(
        self, axis: etree._Element | None, kind: str, who: str
    ) -> tuple[tuple[float, float], ...]:
        limit = axis.find("limit") if axis is not None else None
        if limit is None or kind in ("fixed", "ball", "continuous"):
            return ()
        low = self.text(limit, "lower", who, -math.inf, endless=True)
        high = self.text(limit, "upper", who, math.inf, endless=True)
        if low > high:
            self.wrong(limit, f"{who}: lower limit {low:g} exceeds upper limit {high:g}; swap them")
            return ()
        return finite_limits(low, high)

    def elements(self, axis: etree._Element | None, kind: str, who: str) -> tuple[Element, ...]:
        """What the machine has at the joint: damping, friction, spring, ratings."""
        if axis is None or kind in ("fixed", "ball"):
            return ()
        dynamics, limit = axis.find("dynamics"), axis.find("limit")
        keys: dict[str, object] = {
            key: x for key in ("damping", "friction") if (x := self.text(dynamics, key, who, 0.0))
        }
        keys |= self.ratings(limit, who)
        if stiffness := self.text(dynamics, "spring_stiffness", who, 0.0):
            rest = self.text(dynamics, "spring_reference", who, 0.0)
            keys["spring"] = {"stiffness": stiffness, "rest": rest}
        try:
            return elements(1, keys)
        except ModelError as error:
            self.wrong(axis, f"{who}: {error}")
            return ()

    def ratings(self, limit: etree._Element | None, who: str) -> dict[str, float]:
        """The effort and the speed that a drive can give; a negative one means no limit."""
        rated = {
            key: self.text(limit, key, who, math.inf, endless=True)
            for key in ("effort", "velocity")
        }
        if rated["effort"] == 0.0:
            text = "<effort> 0, a drive without force: it has no limit here; remove the drive"
            self.report.ignored(who, text, moves=True)
        return {key: x for key, x in rated.items() if 0.0 < x < UNLIMITED}
