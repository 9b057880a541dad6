"""``<link>`` of URDF: inertia, shapes and the names of meshes."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from lxml import etree

from ramify.core.arrays import Array
from ramify.documents.mistakes import Mistakes
from ramify.files.link_reader import dust
from ramify.files.mesh import Mesh, inside
from ramify.files.urdf_elements import UrdfElements
from ramify.files.xml_reader import SIZES, symmetric, turned
from ramify.files.xml_values import XmlValues
from ramify.model.body import Shape, hex_colour


@dataclass
class UrdfLink:
    """A link of the file."""

    line: int
    mass: float = 0.0
    com: Array = field(default_factory=lambda: np.zeros(3))
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))
    shapes: list[Shape] = field(default_factory=list)
    meshes: list[Mesh] = field(default_factory=list)


class UrdfLinks:
    """The links of a file by name, read one by one; ``outside``: meshes that may not be kept."""

    def __init__(self, elements: UrdfElements) -> None:
        self.elements, self.values, self.report = elements, elements.values, elements.report
        self.links: dict[str, UrdfLink] = {}
        self.lines: dict[str, int] = {}
        self.without_inertial: list[str] = []
        self.outside: list[str] = []

    # ---- links ----

    def read(self, element: etree._Element) -> None:
        name = self.elements.own_name(element, "link", self.lines)
        if not name:
            return
        who = f"link {name!r}"
        link = self.links[name] = UrdfLink(element.sourceline or 1)
        found = self.elements.children(element, who)
        if "inertial" in found:
            self.read_inertial(found["inertial"], link, who)
        else:
            self.without_inertial.append(name)
        for visual in element.findall("visual"):
            self.read_visual(visual, link, who)

    def read_inertial(self, element: etree._Element, link: UrdfLink, who: str) -> None:
        parts = self.elements.children(element, who)
        if "mass" not in parts:
            self.values.note(
                element,
                f"{who}: <inertial> without <mass value=…/>; give the mass in kg, or leave out "
                "<inertial>",
            )
            return
        link.mass = self.values.number(parts["mass"], "value", who)
        if link.mass < 0.0:
            self.values.note(
                parts["mass"], f"{who}: mass {link.mass:g} kg is negative; it must be zero or more"
            )
        frame = self.values.frame(parts.get("origin"), who)
        link.com = np.array(frame.position)
        if "inertia" not in parts:
            self.report.assumed(who, "<inertial> without <inertia>: a point mass")
            return
        tensor = parts["inertia"]
        xx, yy, zz = (self.values.number(tensor, key, who) for key in ("ixx", "iyy", "izz"))
        products = [self.values.number(tensor, key, who, 0.0) for key in ("ixy", "ixz", "iyz")]
        if missing := [key for key in ("ixy", "ixz", "iyz") if key not in tensor.attrib]:
            self.report.assumed(who, f"no {', '.join(missing)} given: zero")
        central = symmetric((xx, yy, zz, *products))
        rounding = dust(link.mass, central)
        if min(xx, yy, zz) < -rounding:
            self.values.note(
                tensor,
                f"{who}: moments of inertia {xx:g}, {yy:g}, {zz:g} kg m^2; none may be negative",
            )
        link.inertia = turned(central, frame)
        if link.mass == 0.0 and link.inertia.any():
            self.report.note(
                who,
                "has moments of inertia but no mass; taken as it is (some programs drop such an "
                "inertia)",
            )
        least = float(np.linalg.eigvalsh(central)[0]) if any(products) else 0.0
        if least < -rounding:
            text = (
                f"the inertia has a negative principal moment, {least:.4g} kg m^2, as no matter "
                "can; taken as it is"
            )
            self.report.note(who, text)

    def read_visual(self, element: etree._Element, link: UrdfLink, who: str) -> None:
        """Boxes, cylinders and spheres to draw; meshes by their names. A wrong drawing is reported
        and left out.
        """
        doubts = Mistakes("")
        values = XmlValues(doubts, self.report)
        frame, colour = values.frame(element.find("origin"), who), self.colour(element)
        for shape in element.iterfind("geometry/*"):
            drawn: Shape | Mesh
            if shape.tag in SIZES:
                sizes = (values.numbers(shape, key, n, who) for key, n in SIZES[shape.tag])
                drawn = Shape(str(shape.tag), tuple(chain(*sizes)), frame, colour)
            elif shape.tag == "mesh":
                scale = values.numbers(shape, "scale", 3, who, (1.0, 1.0, 1.0))
                drawn = Mesh(shape.get("filename", ""), scale, frame, colour)
            else:
                self.elements.unused[str(shape.tag)[:40]] += 1
                continue
            if doubts or (isinstance(drawn, Shape) and min(drawn.size) <= 0.0):
                self.report.ignored(
                    f"{who}, line {shape.sourceline}",
                    f"a <{shape.tag}> whose origin or size is not understood",
                )
            elif isinstance(drawn, Shape):
                link.shapes.append(drawn)
            elif inside(drawn.filename):
                link.meshes.append(drawn)
            else:
                self.outside.append(drawn.filename)

    def colour(self, visual: etree._Element) -> str:
        """The colour of a visual's material, its own or one that the robot defines; empty without
        one that is understood.
        """
        own = visual.find("material")
        if own is None:
            return ""
        name = own.get("name")
        named = [one for one in self.elements.root.iterfind("material") if one.get("name") == name]
        for colour in (one.find("color") for one in (own, *named)):
            try:
                if colour is not None:
                    return hex_colour([float(x) for x in colour.get("rgba", "").split()])
            except ValueError:
                continue
        return ""
