"""Links, frames and poses of SDF, and numbers from the texts of its elements."""

from __future__ import annotations

import math
from collections import Counter
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
from lxml import etree

from ramify.core.arrays import Array
from ramify.core.messages import near
from ramify.core.names import NAME, fresh, is_name
from ramify.files.collision_shapes import SELF, add_collision, shape_name, surface_numbers
from ramify.files.import_report import ImportReport
from ramify.files.inertia_rule import doubt_about, fault_of
from ramify.files.sdf_elements import SDF
from ramify.files.shape_schema import Groups
from ramify.files.xml_reader import (
    SIZES,
    NumberTuple,
    XmlReader,
    quoted_text,
    symmetric,
    tensor_in_outer_frame,
)
from ramify.model.build import point_of
from ramify.model.frame import Frame, align_z, from_quaternion
from ramify.model.shape import FRICTION, SURFACES, Shape

_READ: Final = frozenset(["link", "joint", "frame"])
_MODEL: Final = "__model__"


class SdfLink(NamedTuple):
    """A link of the file; ``lift`` carries one that gravity does not act on."""

    mass: float
    com: Array
    inertia: Array
    shapes: tuple[Shape, ...] = ()
    points: tuple[tuple[str, tuple[float, float, float]], ...] = ()
    lift: tuple[float, tuple[float, float, float]] = (0.0, (0.0, 0.0, 0.0))


class SdfParts(XmlReader):
    """Reads links and poses; ``joint_names``: new names of joints that are called like a link;
    ``passing``: how many shapes of a kind do not collide here.
    """

    FORMAT = "SDF"

    def __init__(self, root: etree._Element, file: str, report: ImportReport) -> None:
        super().__init__(root, file, report)
        self.bodies: dict[str, SdfLink] = {}
        self.places: dict[str, tuple[etree._Element, str]] = {}
        self.poses: dict[str, Frame] = {_MODEL: Frame()}
        self.joint_names: dict[str, str] = {}
        self.passing: Counter[str] = Counter()

    def collect(self, model: etree._Element) -> None:
        """Links, joints and frames by name, each with what its pose is relative to by default. A
        joint that is called like a link, as old files have it, gets another name.
        """
        taken = {str(element.get("name", "")) for element in model}
        links = {str(element.get("name", "")) for element in model.findall("link")}
        for element in model:
            tag = str(element.tag)
            if tag not in _READ:
                if SDF.fate("model", tag) != "carried" and SDF.needless("model", element):
                    self.unused[tag] += 1
                continue
            name = element.get("name", "")
            if tag == "joint" and name in links and name not in self.joint_names:
                taken.add(other := fresh(f"{name}_joint", taken))
                self.joint_names[name] = other
                self.report.note(f"joint {name!r}", f"a link has this name; it is {other!r}")
                name = other
            if not is_name(name) or name in self.places:
                why = f"the name {quoted_text(name)} is taken" if name in self.places else NAME
                self.wrong(element, f"<{tag} name={quoted_text(name)}>: {why}")
                continue
            default = {
                "link": _MODEL,
                "frame": element.get("attached_to") or _MODEL,
                "joint": (element.findtext("child") or "").strip(),
            }[tag]
            self.places[name] = element, default
            if tag == "link":
                self.bodies[name] = self.body(element, f"link {name!r}")

    # ---- numbers ----

    def texts(
        self,
        parent: etree._Element | None,
        tag: str,
        count: int,
        who: str,
        default: NumberTuple,
        endless: bool = False,
    ) -> NumberTuple:
        """The numbers in a child element, the default where it is missing or empty; ``endless``:
        they may be infinite.
        """
        child = parent.find(tag) if parent is not None else None
        if child is None or not (child.text or "").strip():
            return default
        return self.read(child, f"<{tag}>", child.text or "", count, who, default, endless)

    def text(
        self,
        parent: etree._Element | None,
        tag: str,
        who: str,
        default: float,
        endless: bool = False,
    ) -> float:
        return self.texts(parent, tag, 1, who, (default,), endless)[0]

    def own_pose(self, element: etree._Element, who: str) -> Frame:
        pose = element.find("pose")
        kind = "euler_rpy" if pose is None else pose.get("rotation_format", "euler_rpy")
        if kind == "quat_xyzw":
            return self.quaternion_pose(element, who)
        if kind != "euler_rpy":
            self.wrong(element, f"{who}: rotation_format must be euler_rpy or quat_xyzw")
            return Frame()
        x, y, z, *rpy = self.texts(element, "pose", 6, who, (0.0,) * 6)
        if pose is not None and pose.get("degrees") in ("true", "1"):
            rpy = [math.radians(angle) for angle in rpy]
        if not all(map(math.isfinite, (x, y, z, *rpy))):
            self.wrong(element, f"{who}: <pose> must be finite")
            return Frame()
        return self.turned((x, y, z), rpy, who)

    def quaternion_pose(self, element: etree._Element, who: str) -> Frame:
        numbers = self.texts(element, "pose", 7, who, (0.0,) * 6 + (1.0,))
        x, y, z, *turn = numbers
        size = math.hypot(*turn)
        if not (all(map(math.isfinite, numbers)) and size > 1e-6):
            self.wrong(element, f"{who}: <pose> must be finite, its quaternion not zero")
            return Frame()
        a, b, c, w = (number / size for number in turn)
        return Frame(from_quaternion(w, a, b, c), np.array([x, y, z]))

    def pose(self, name: str, who: str, within: tuple[str, ...] = ()) -> Frame:
        """The pose of a link, joint or frame in the model."""
        if name in self.poses:
            return self.poses[name]
        if name not in self.places or name in within:
            text = (
                f"poses relative to each other: {' -> '.join((*within, name))[:200]}"
                if name in within
                else f"no link or frame is named {quoted_text(name)}{near(name, list(self.places))}"
            )
            self.wrong(self.places[within[-1]][0] if within else self.root, f"{who}: {text}")
            return Frame()
        element, default = self.places[name]
        given = element.find("pose")
        relative = (given.get("relative_to") if given is not None else None) or default
        own = self.own_pose(element, f"{element.tag} {name!r}")
        self.poses[name] = self.pose(relative, who, (*within, name)) @ own
        return self.poses[name]

    def world(self) -> Frame:
        """The world, seen from the model, whose pose may be that of one of its frames."""
        model = next(iter(self.places.values()))[0].getparent()
        placed = self.pose(model.get("placement_frame") or _MODEL, "model")
        return placed @ self.own_pose(model, "model").inverse()

    def link_of(self, name: str, who: str) -> str:
        """The link that a name stands for: its own, or the one that a frame is attached to."""
        seen: set[str] = set()
        while name not in self.bodies and name in self.places and name not in seen:
            seen.add(name)
            element, _ = self.places[name]
            name = element.get("attached_to") or (element.findtext("child") or "").strip()
        if name not in self.bodies and name != "world":
            hint = near(name, list(self.bodies))
            self.wrong(self.root, f"{who}: no link is named {quoted_text(name)}{hint}")
        return name

    # ---- links ----

    def body(self, element: etree._Element, who: str) -> SdfLink:
        shapes, inertial = self.shapes(element, who), element.find("inertial")
        tags = ("mass", "inertia")
        if inertial is None or any(inertial.find(tag) is None for tag in tags):
            missing = "no <inertial>" if inertial is None else "<inertial> is not complete"
            self.report.assumed(who, f"{missing}: 1 kg, 1 kg m^2, as SDF has it")
        seat = Frame() if inertial is None else self.own_pose(inertial, who)
        tensor = None if inertial is None else inertial.find("inertia")
        mass = self.text(inertial, "mass", who, 1.0)
        moments = [self.text(tensor, key, who, 1.0) for key in ("ixx", "iyy", "izz")]
        products = [self.text(tensor, key, who, 0.0) for key in ("ixy", "ixz", "iyz")]
        central = symmetric((*moments, *products))
        if fault := fault_of(mass, central):
            self.wrong(element, f"{who}: {fault}")
            return SdfLink(0.0, np.zeros(3), np.zeros((3, 3)), shapes)
        if doubt := doubt_about(mass, central):
            self.report.note(who, doubt, doubt=True)
        falls = self.flag(element, "gravity", True)
        lift = (0.0 if falls else mass), point_of(seat.position if not falls else np.zeros(3))
        return SdfLink(mass, seat.position, tensor_in_outer_frame(central, seat), shapes, lift=lift)

    def flag(self, element: etree._Element, tag: str, otherwise: bool) -> bool:
        """A child that says true or false."""
        said = (element.findtext(tag) or "").strip()
        return said in ("1", "true") if said else otherwise

    def shapes(self, link: etree._Element, who: str) -> tuple[Shape, ...]:
        """Shapes to draw, and those that collide."""
        shapes: list[Shape] = []
        for shape in link.iterfind("visual/geometry/*"):
            if shape.tag not in SIZES:
                self.unused[str(shape.tag)[:40]] += 1
                continue
            size = self.size(shape, who)
            if all(0.0 < x < math.inf for x in size):
                visual = shape.getparent().getparent()
                shapes.append(Shape(str(shape.tag), size, self.own_pose(visual, who)))
        parts = (link, link.getparent())
        groups = SELF[any(self.flag(part, "self_collide", False) for part in parts)]
        for collision in link.iterfind("collision"):
            solid = self.collision(collision, who, groups)
            if solid and solid.kind in SURFACES:
                self.passing[solid.kind] += 1  # one that would move
            elif solid:
                add_collision(shapes, solid)
        return tuple(shapes)

    def size(self, shape: etree._Element, who: str) -> NumberTuple:
        """The sizes of a shape."""
        keys = SIZES[str(shape.tag)]
        return (*chain(*(self.texts(shape, key, n, who, (1.0,) * n) for key, n in keys)),)

    def collision(self, element: etree._Element, who: str, groups: Groups) -> Shape | None:
        """A shape that collides; None, counted, for what is none here."""
        for shape in element.iterfind("geometry/*"):
            tag, frame = str(shape.tag), self.own_pose(element, who)
            size: NumberTuple = ()
            if tag == "plane":
                normal = np.array(self.texts(shape, "normal", 3, who, (0.0, 0.0, 1.0)))
                length = float(np.linalg.norm(normal))
                if not 0.0 < length < math.inf:
                    self.wrong(shape, f"{who}: the normal of a <plane> must not be zero")
                    return None
                frame = frame @ Frame(align_z(normal / length))
            elif tag not in SIZES or not all(0.0 < x < math.inf for x in self.size(shape, who)):
                self.passing[tag[:40]] += 1
                return None
            else:
                size = self.size(shape, who)
            self.passing[tag] += tag == "cylinder"
            rubs = element.find("surface/friction/ode")
            bounces = element.find("surface/bounce")
            mu = None if rubs is None else self.text(rubs, "mu", who, FRICTION, endless=True)
            e = None if bounces is None else self.text(bounces, "restitution_coefficient", who, 0.0)
            name, (friction, restitution) = shape_name(element.get("name")), surface_numbers(mu, e)
            return Shape(
                tag, size, frame, "", name, False, *groups, friction=friction,
                restitution=restitution,
            )  # fmt: skip
        return None
