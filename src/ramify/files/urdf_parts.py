"""Links and joints of URDF: inertia, shapes and the names of meshes; type, place, axis, limits and
couplings (``<mimic>``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
from lxml import etree

from ramify.core.arrays import Array
from ramify.core.names import NAME, is_name
from ramify.documents.mistakes import Mistakes
from ramify.files.collision_shapes import SELF, add_collision, shape_name, surface_numbers
from ramify.files.element_table import local
from ramify.files.import_report import ImportReport
from ramify.files.inertia_rule import doubt_about, fault_of
from ramify.files.mesh import Mesh, inside
from ramify.files.urdf_elements import URDF
from ramify.files.urdf_machine import urdf_joint_elements
from ramify.files.xml_reader import (
    SIZES,
    NumberTuple,
    XmlReader,
    XmlValues,
    finite_limits,
    quoted_text,
    symmetric,
    tensor_in_outer_frame,
)
from ramify.model.joint import Joint
from ramify.model.loop import Loop
from ramify.model.shape import Shape, hex_colour

KINDS: Final = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "floating": "free",
    "planar": "planar",
}
"""Joint types of URDF and ours."""
_USED: Final[Mapping[str, frozenset[str]]] = {
    "robot": frozenset(["link", "joint", "transmission"]),
    "link": frozenset(["inertial", "visual", "collision", "contact"]),
    "inertial": frozenset(["origin", "mass", "inertia"]),
    "joint": frozenset(["origin", "parent", "child", "axis", "limit", "dynamics", "mimic"]),
}


@dataclass
class UrdfLink:
    """A link of the file."""

    line: int
    mass: float = 0.0
    com: Array = field(default_factory=lambda: np.zeros(3))
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))
    shapes: list[Shape] = field(default_factory=list)
    meshes: list[Mesh] = field(default_factory=list)


class UrdfEdge(NamedTuple):
    """A joint of the file, between two links."""

    joint: Joint
    parent: str
    child: str
    line: int


class UrdfParts(XmlReader):
    """Reads links and joints one by one; ``outside``: meshes that may not be kept; ``passing``: how
    many of a kind do not collide here; some lists name links and joints for the report.
    """

    FORMAT = "URDF"

    def __init__(self, root: etree._Element, file: str, report: ImportReport) -> None:
        super().__init__(root, file, report)
        self.lines: dict[str, dict[str, int]] = {"link": {}, "joint": {}}
        self.links: dict[str, UrdfLink] = {}
        self.edges: list[UrdfEdge] = []
        self.mimics: list[tuple[str, str, float, float]] = []
        self.without_inertial: list[str] = []
        self.outside: list[str] = []
        self.unlimited: list[str] = []
        self.continuous: list[str] = []
        self.passing: Counter[str] = Counter()

    # ---- elements ----

    def used(self, element: etree._Element) -> list[etree._Element]:
        """The children that matter here; those that are not needed are counted."""
        children = []
        for child in element:
            if child.tag in _USED[str(element.tag)]:
                children.append(child)
            elif isinstance(child.tag, str) and URDF.needless(str(element.tag), child):
                self.unused[local(child)] += 1
        return children

    def children(self, element: etree._Element, who: str) -> dict[str, etree._Element]:
        """The children that matter by their tags, each of which may occur once."""
        by_tag: dict[str, etree._Element] = {}
        for child in self.used(element):
            if child.tag in by_tag and child.tag not in ("visual", "collision"):
                first = by_tag[child.tag]
                text = f"a second <{child.tag}>; the first is in line {first.sourceline}"
                if dict(child.attrib) == dict(first.attrib) and not len(child) + len(first):
                    self.report.note(f"{who}, line {child.sourceline}", f"{text} and says the same")
                else:
                    self.wrong(child, f"{who}: {text}, keep one of them")
            by_tag.setdefault(str(child.tag), child)
        return by_tag

    def own_name(self, element: etree._Element) -> str:
        """The name of a link or a joint; empty where it is wrong or taken."""
        name, what = element.get("name", ""), str(element.tag)
        lines = self.lines[what]
        if not name:
            self.wrong(element, f"a {what} has no name; give every {what} a non-empty one")
        elif not is_name(name):
            self.wrong(element, f"a {what} is named {quoted_text(name)}; {NAME}")
        elif name in lines:
            text = f"two {what}s are named {name!r}, the first in line {lines[name]}"
            self.wrong(element, f"{text}; names must differ")
        else:
            lines[name] = element.sourceline or 1
            return name
        return ""

    # ---- links ----

    def read_link(self, element: etree._Element) -> None:
        name = self.own_name(element)
        if not name:
            return
        who = f"link {name!r}"
        link = self.links[name] = UrdfLink(element.sourceline or 1)
        parts = self.children(element, who)
        if "inertial" in parts:
            self.read_inertial(parts["inertial"], link, who)
        else:
            self.without_inertial.append(name)
        for visual in element.findall("visual"):
            self.read_visual(visual, link, who)
        touch = self.surface(parts.get("contact"), name)
        for collision in element.findall("collision"):
            self.read_collision(collision, link, who, touch)

    def read_inertial(self, element: etree._Element, link: UrdfLink, who: str) -> None:
        parts = self.children(element, who)
        if "mass" not in parts:
            text = "give the mass in kg, or leave out <inertial>"
            self.wrong(element, f"{who}: <inertial> without <mass value=…/>; {text}")
            return
        link.mass = self.number(parts["mass"], "value", who)
        if link.mass < 0.0:
            text = f"mass {link.mass:g} kg is negative; it must be zero or more"
            self.wrong(parts["mass"], f"{who}: {text}")
        frame = self.frame(parts.get("origin"), who)
        link.com = np.array(frame.position)
        if "inertia" not in parts:
            self.report.assumed(who, "<inertial> without <inertia>: a point mass")
            return
        tensor = parts["inertia"]
        moments = [self.number(tensor, key, who) for key in ("ixx", "iyy", "izz")]
        products = [self.number(tensor, key, who, 0.0) for key in ("ixy", "ixz", "iyz")]
        if missing := [key for key in ("ixy", "ixz", "iyz") if key not in tensor.attrib]:
            self.report.assumed(who, f"no {', '.join(missing)} given: zero")
        central = symmetric((*moments, *products))
        if fault := fault_of(max(link.mass, 0.0), central):
            self.wrong(tensor, f"{who}: {fault}")
            return
        if doubt := doubt_about(max(link.mass, 0.0), central):
            self.report.note(who, doubt, doubt=True)
        link.inertia = tensor_in_outer_frame(central, frame)
        if link.mass == 0.0 and link.inertia.any():
            text = "taken as it is (some programs drop such an inertia)"
            self.report.note(who, f"has moments of inertia but no mass; {text}")

    def read_visual(self, element: etree._Element, link: UrdfLink, who: str) -> None:
        """Boxes, cylinders and spheres to draw; meshes by their names. A wrong drawing is reported
        and left out.
        """
        values = XmlValues(Mistakes(""), self.report)
        frame, colour = values.frame(element.find("origin"), who), self.colour(element)
        for shape in element.iterfind("geometry/*"):
            size: NumberTuple = (1.0,)
            scale: NumberTuple = (1.0, 1.0, 1.0)
            if shape.tag in SIZES:
                keys = SIZES[shape.tag]
                size = (*chain(*(values.numbers(shape, key, n, who) for key, n in keys)),)
            elif shape.tag == "mesh":
                scale = values.numbers(shape, "scale", 3, who, scale)
            else:
                self.unused[str(shape.tag)[:40]] += 1
                continue
            name = shape.get("filename", "")
            if values.mistakes or min(size) <= 0.0:
                text = f"a <{shape.tag}> whose origin or size is not understood"
                self.report.ignored(f"{who}, line {shape.sourceline}", text)
            elif shape.tag != "mesh":
                link.shapes.append(Shape(str(shape.tag), size, frame, colour))
            elif inside(name):
                link.meshes.append(Mesh(name, scale, frame, colour))
            else:
                self.outside.append(name)

    def read_collision(
        self, element: etree._Element, link: UrdfLink, who: str, touch: tuple[float, float]
    ) -> None:
        """A shape that collides with the world; one that no shape can be is counted."""
        values = XmlValues(Mistakes(""), self.report)
        frame = values.frame(element.find("origin"), who)
        for shape in element.iterfind("geometry/*"):
            tag = str(shape.tag)
            if tag not in SIZES:
                self.passing[tag[:40]] += 1
                continue
            size = (*chain(*(values.numbers(shape, key, n, who) for key, n in SIZES[tag])),)
            if values.mistakes or min(size) <= 0.0:
                text = f"a <{tag}> of a <collision> whose origin or size is not understood"
                self.report.ignored(f"{who}, line {shape.sourceline}", text)
                continue
            name, (friction, restitution) = shape_name(element.get("name")), touch
            solid = Shape(
                tag, size, frame, "", name, False, *SELF[False], friction=friction,
                restitution=restitution,
            )  # fmt: skip
            add_collision(link.shapes, solid)
            self.passing[tag] += tag == "cylinder"

    def surface(self, contact: etree._Element | None, link: str) -> tuple[float, float]:
        """Friction and restitution of a link, as PyBullet (<contact>) or Gazebo (<gazebo>) has
        them.
        """
        values: dict[str, float] = {}
        for tag, key in (("lateral_friction", "friction"), ("restitution", "restitution")):
            child = contact.find(tag) if contact is not None else None
            if child is not None:
                values[key] = _number_or_nan(child.get("value"))
        for element in self.root.iterfind("gazebo"):
            if element.get("reference") == link and (text := element.findtext("mu1")):
                values.setdefault("friction", _number_or_nan(text))
        return surface_numbers(values.get("friction"), values.get("restitution"))

    def colour(self, visual: etree._Element) -> str:
        """The colour of a visual's material, its own or one that the robot defines; empty without
        one that is understood.
        """
        own = visual.find("material")
        if own is None:
            return ""
        name = own.get("name")
        named = [one for one in self.root.iterfind("material") if one.get("name") == name]
        for colour in (one.find("color") for one in (own, *named)):
            try:
                if colour is not None:
                    return hex_colour([float(x) for x in colour.get("rgba", "").split()])
            except ValueError:
                continue
        return ""

    # ---- joints ----

    def read_joint(self, element: etree._Element) -> None:
        name, kind = self.own_name(element), element.get("type", "")
        if not name:
            return
        who = f"joint {name!r}"
        parts = self.children(element, who)
        ends = [parts[tag].get("link", "") if tag in parts else "" for tag in ("parent", "child")]
        for tag, end in zip(("parent", "child"), ends, strict=True):
            if not end:
                self.wrong(element, f'{who} names no {tag}; write <{tag} link="…"/>')
        if kind not in KINDS:
            text = f"unknown type {kind[:60]!r}; choose one of {', '.join(KINDS)}"
            self.wrong(element, f"{who}: {text}")
        elif all(ends):
            placement = self.frame(parts.get("origin"), who)
            axis = self.axis(parts.get("axis"), kind, who)
            limits = self.limits(parts.get("limit"), kind, who)
            drives = kind != "floating" and "mimic" not in parts
            joint = Joint(name, KINDS[kind], placement, axis=axis, limits=limits, actuated=drives)
            own = urdf_joint_elements(self, parts, joint.dof, who)
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
            self.number(element, key, who, rest)
            for key, rest in (("multiplier", 1.0), ("offset", 0.0))
        )
        if joint.dof != 1 or joint.name == master:
            text = "only a joint of one degree of freedom can follow another"
            self.report.ignored(who, f"mimic of {master[:60]!r}: {text}", moves=joint.dof > 0)
        else:
            self.mimics.append((joint.name, master, ratio, offset))

    def gears(self) -> list[Loop]:
        """The couplings, as loops; those to joints that do not move are reported."""
        moving = {edge.joint.name for edge in self.edges if edge.joint.dof == 1}
        gears = []
        for joint, master, ratio, offset in self.mimics:
            who = f"joint {joint!r}"
            if master not in moving:
                text = f"mimic of {master[:60]!r}, which is not a joint of one degree of freedom"
                self.report.ignored(who, text, moves=True)
                continue
            gear = Loop(
                f"{joint}_mimic", "gear", joints=(master, joint), ratio=ratio, offset=offset
            )
            gears.append(gear)
            text = "a gear in model.loops; model.tree lets it move by itself"
            self.report.note(who, f"follows {master!r}: {text}")
        return gears

    def axis(
        self, element: etree._Element | None, kind: str, who: str
    ) -> tuple[float, float, float]:
        """The axis of a joint that has one, x by default."""
        if kind in ("fixed", "floating"):
            return 0.0, 0.0, 1.0
        if element is None or element.get("xyz") is None:
            self.report.assumed(who, "no axis given: the x axis, as URDF has it")
            return 1.0, 0.0, 0.0
        x, y, z = self.numbers(element, "xyz", 3, who, (1.0, 0.0, 0.0))
        length, given = math.hypot(x, y, z), f"axis {x:g} {y:g} {z:g} has"
        if length < 1e-6:
            self.wrong(element, f"{who}: {given} no direction; give a vector of length 1")
            return 1.0, 0.0, 0.0
        if abs(length - 1.0) > 1e-3:
            self.report.note(who, f"{given} length {length:.4g}; its direction counts")
        return x / length, y / length, z / length

    def limits(
        self, element: etree._Element | None, kind: str, who: str
    ) -> tuple[tuple[float, float], ...]:
        """Lower and upper limit, none where there are none."""
        if kind not in ("revolute", "prismatic"):
            return ()
        keys = ("lower", "upper")
        missing = [key for key in keys if element is None or element.get(key) is None]
        if element is None or len(missing) == 2:
            self.unlimited.append(who.removeprefix("joint "))
            return ()
        low, high = (self.number(element, key, who, 0.0, endless=True) for key in keys)
        if low > high:  # PyBullet's way to say that there are none
            text = f"lower limit {low:g} exceeds upper limit {high:g}, so the joint has no limits"
            remedy = f"{missing[0]} is missing and counts as 0: give it" if missing else "swap them"
            where = f"{who}, line {element.sourceline}"
            self.report.ignored(where, f"{text}; {remedy}", doubt=True)
            return ()
        if missing:
            self.report.assumed(who, f"<limit> without {missing[0]}: 0, as URDF has it")
        return finite_limits(low, high)


def _number_or_nan(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan
