"""Robots from URDF files: a strict reader of what dynamics needs, with a report of what was ignored
or assumed.

Links become bodies, joints keep their names, links on fixed joints are merged into the body that
carries them. Nothing but the file itself is opened: meshes stay names.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Final, NamedTuple

import numpy as np
from lxml import etree

from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.core.messages import near
from ramify.core.names import NAME, fresh, is_name
from ramify.documents.mistakes import Mistakes, Position
from ramify.documents.reading import read_bytes
from ramify.documents.xml_text import parse_xml
from ramify.files.import_report import ImportReport
from ramify.files.link_reader import dust
from ramify.files.urdf_machine import joint_elements
from ramify.files.urdf_transmissions import Transmissions
from ramify.files.urdf_values import UrdfValues, inside, shown, some
from ramify.files.xacro_files import expanded, leftover, macro_name, unexpanded
from ramify.model.body import Shape, hex_colour
from ramify.model.build import EARTH, LinkSpec, build
from ramify.model.floating_base import with_base
from ramify.model.frame import Frame
from ramify.model.joint import Joint
from ramify.model.loop import Loop
from ramify.model.robot import Robot

MAX_BYTES: Final = 8 << 20
MAX_LINKS: Final = 20_000
MAX_VISUALS: Final = 20_000
"""Limits of a URDF file."""

UNLIMITED: Final = 1e9
"""A limit of so many radians or metres is no limit."""

BASES: Final = ("fixed", "free", "free_euler", "planar")
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
    "link": frozenset(["inertial", "visual"]),
    "inertial": frozenset(["origin", "mass", "inertia"]),
    "joint": frozenset(["origin", "parent", "child", "axis", "limit", "dynamics", "mimic"]),
}


class Mesh(NamedTuple):
    """A mesh to draw: its name as the file gives it (never opened here), its scale, its frame in
    the link's, and its colour "#rrggbb"; empty: none is given.
    """

    filename: str
    scale: tuple[float, ...]
    frame: Frame
    colour: str = ""


@dataclass
class _UrdfLink:
    """A link of the file."""

    line: int
    mass: float = 0.0
    com: Array = field(default_factory=lambda: np.zeros(3))
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))
    shapes: list[Shape] = field(default_factory=list)
    meshes: list[Mesh] = field(default_factory=list)


class _UrdfEdge(NamedTuple):
    """A joint of the file, between two links."""

    joint: Joint
    parent: str
    child: str
    line: int


def read_urdf(path: str | os.PathLike[str], base: str | None = None) -> Robot:
    """A robot from a URDF file. ``base``: the root link stands ("fixed"), moves on a "free" or
    "free_euler" joint, or in the plane of the other joints ("planar"). A file that ends in
    ``.xacro`` is expanded by the xacro package first; one that ends otherwise never is.

    What was ignored or assumed is in ``model.metadata["report"]``. Raises ModelError with a line
    for every mistake found.
    """
    file = os.fspath(path)
    data = read_bytes(path, MAX_BYTES)
    if PurePath(file).suffix.lower() == ".xacro" and any(
        mark in data for mark in (b"xacro", b"${", b"$(")
    ):
        parse_xml(data, file, lambda line, text: None)  # refuses document types
        data = expanded(path)
    model = parse_urdf(data, file, base or "fixed")
    model.metadata["report"].warn()
    return replace(
        model, metadata={**model.metadata, "folder": os.path.dirname(os.path.abspath(path))}
    )  # for meshes, when drawn


def parse_urdf(data: bytes | str, file: str = "robot.urdf", base: str = "fixed") -> Robot:
    """A robot from the text of a URDF file; ``file`` is its name in messages. See ``read_urdf``."""
    if base not in BASES:
        raise ModelError(f"base {base!r} must be one of {', '.join(BASES)}")
    data = data.encode() if isinstance(data, str) else data
    if len(data) > MAX_BYTES:
        raise ModelError(
            f"{file}: {len(data) / 1e6:.1f} MB; a URDF file has at most {MAX_BYTES / 1e6:.1f} MB"
        )
    report = ImportReport(file)
    root = parse_xml(data, file, lambda line, text: report.note(f"line {line}", text, doubt=True))
    reader = _UrdfReader(root, file, report)
    return with_base(reader.model("free"), base) if base == "planar" else reader.model(base)


class _UrdfReader:
    def __init__(self, root: etree._Element, file: str, report: ImportReport) -> None:
        self.root, self.file = root, file
        self.mistakes = Mistakes(file)
        self.values = UrdfValues(self.mistakes, report)
        self.report = report
        self.links: dict[str, _UrdfLink] = {}
        self.edges: list[_UrdfEdge] = []
        self.unused: Counter[str] = Counter()
        self.without_inertial: list[str] = []
        self.unlimited: list[str] = []
        self.continuous: list[str] = []
        self.outside: list[str] = []
        self.link_lines: dict[str, int] = {}
        self.joint_lines: dict[str, int] = {}
        self.mimics: list[tuple[str, str, float, float]] = []
        self.transmissions = Transmissions(self.values, report)

    def model(self, base: str) -> Robot:
        """The model, or ModelError with all mistakes."""
        self.check_root()
        for element in self.used(self.root):
            if element.tag == "link":
                self.read_link(element)
            elif element.tag == "joint":
                self.read_joint(element)
            else:
                self.transmissions.read(element)
        self.edges = [
            edge._replace(joint=self.transmissions.applied(edge.joint)) for edge in self.edges
        ]
        self.transmissions.finish()
        root = self.check_tree()
        if base == "fixed" and all(edge.joint.kind == "fixed" for edge in self.edges):
            raise ModelError(
                f"{self.file}: no link moves: the robot has no joint but fixed ones; with "
                'base="free" it floats'
            )
        name = self.root.get("name") or PurePath(self.file).stem
        name = name if is_name(name) else "robot"
        meshes = {link: tuple(item.meshes) for link, item in self.links.items() if item.meshes}
        notes = {
            "source": f"URDF file {PurePath(self.file).name}",
            "report": self.report,
            "meshes": meshes,
            "continuous": tuple(self.continuous),
        }
        try:
            model = build(name, self.specs(root, base), EARTH, None, notes, self.gears())
        except ModelError as error:
            raise ModelError(f"{self.file}: {error}") from None
        self.remark(model, root, base)
        return model

    def wrong(self, element: etree._Element, text: str) -> None:
        """A mistake at an element."""
        self.wrong_at(element.sourceline or 1, text)

    def wrong_at(self, line: int, text: str) -> None:
        self.mistakes.add((), text, at=Position(line, 0))

    def check_root(self) -> None:
        line = self.root.sourceline or 1
        if self.root.tag != "robot":
            hint = (
                "; this is MJCF, a file for MuJoCo, which ends in .xml"
                if self.root.tag == "mujoco"
                else ""
            )
            if etree.QName(self.root).namespace and etree.QName(self.root).localname == "robot":
                hint = " without a namespace; remove xmlns=…"
            self.wrong_at(
                line,
                f"the root element is <{str(self.root.tag)[:60]}>, a URDF file has <robot>{hint}",
            )
        for tag, most in (("link", MAX_LINKS), ("joint", MAX_LINKS), ("visual", MAX_VISUALS)):
            if (number := sum(1 for _ in self.root.iter(tag))) > most:
                self.wrong_at(line, f"{number} <{tag}> elements; a robot has at most {most}")
        if len(self.root) > 4 * MAX_LINKS:
            self.wrong_at(line, f"{len(self.root)} elements; a robot has at most {MAX_LINKS} links")
        self.mistakes.raise_if_any()
        if macro := unexpanded(self.root):
            self.wrong(
                macro[0],
                f"{macro[1]}: expand this xacro file first (xacro robot.xacro > robot.urdf); if "
                "you trust it, rename it to .xacro: the xacro package then expands it when loaded",
            )
            self.mistakes.raise_if_any()
        left = leftover(self.root)
        if left is not None:
            self.report.note(
                f"line {left.sourceline}",
                f"<xacro:{macro_name(left)[:60]}>: what xacro left over is not read",
                doubt=True,
            )
        if (name := self.root.get("name")) and not is_name(name):
            self.wrong_at(line, f"the robot is named {shown(name)}; {NAME}")
        elif not name:
            self.report.assumed("robot", "it has no name; it is called like the file")

    def used(self, element: etree._Element) -> list[etree._Element]:
        """The children that matter here; the others are counted."""
        found = []
        for child in element:
            if child.tag in _USED[str(element.tag)]:
                found.append(child)
            elif isinstance(child.tag, str):
                self.unused[re.split("[:}]", child.tag)[-1][:40]] += 1
        return found

    def children(self, element: etree._Element, who: str) -> dict[str, etree._Element]:
        """The children that matter by their tags, each of which may stand once."""
        found: dict[str, etree._Element] = {}
        for child in self.used(element):
            if child.tag in found and child.tag != "visual":
                first = found[child.tag]
                text = f"a second <{child.tag}>; the first is in line {first.sourceline}"
                if dict(child.attrib) == dict(first.attrib) and not len(child) + len(first):
                    self.report.note(f"{who}, line {child.sourceline}", f"{text} and says the same")
                else:
                    self.wrong(child, f"{who}: {text}, keep one of them")
            found.setdefault(str(child.tag), child)
        return found

    def own_name(self, element: etree._Element, what: str, lines: dict[str, int]) -> str:
        """The name of a link or a joint, noted in ``lines``; empty where it is wrong or taken."""
        name = element.get("name", "")
        if not name:
            self.wrong(element, f"a {what} has no name; give every {what} a non-empty one")
        elif not is_name(name):
            self.wrong(element, f"a {what} is named {shown(name)}; {NAME}")
        elif name in lines:
            text = f"two {what}s are named {name!r}, the first in line {lines[name]}"
            self.wrong(element, f"{text}; names must differ")
        else:
            lines[name] = element.sourceline or 1
            return name
        return ""

    # ---- links ----

    def read_link(self, element: etree._Element) -> None:
        name = self.own_name(element, "link", self.link_lines)
        if not name:
            return
        who = f"link {name!r}"
        link = self.links[name] = _UrdfLink(element.sourceline or 1)
        found = self.children(element, who)
        if "inertial" in found:
            self.read_inertial(found["inertial"], link, who)
        else:
            self.without_inertial.append(name)
        for visual in element.findall("visual"):
            self.read_visual(visual, link, who)

    def read_inertial(self, element: etree._Element, link: _UrdfLink, who: str) -> None:
        parts = self.children(element, who)
        if "mass" not in parts:
            self.wrong(
                element,
                f"{who}: <inertial> without <mass value=…/>; give the mass in kg, or leave out "
                "<inertial>",
            )
            return
        link.mass = self.values.number(parts["mass"], "value", who)
        if link.mass < 0.0:
            self.wrong(
                parts["mass"], f"{who}: mass {link.mass:g} kg is negative; it must be zero or more"
            )
        frame = self.values.frame(parts.get("origin"), who)
        link.com = np.array(frame.position)
        if "inertia" not in parts:
            self.report.assumed(who, "<inertial> without <inertia>: a point mass")
            return
        tensor = parts["inertia"]
        xx, yy, zz = (self.values.number(tensor, key, who) for key in ("ixx", "iyy", "izz"))
        xy, xz, yz = (self.values.number(tensor, key, who, 0.0) for key in ("ixy", "ixz", "iyz"))
        if missing := [key for key in ("ixy", "ixz", "iyz") if key not in tensor.attrib]:
            self.report.assumed(who, f"no {', '.join(missing)} given: zero")
        central = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        rounding = dust(link.mass, central)
        if min(xx, yy, zz) < -rounding:
            self.wrong(
                tensor,
                f"{who}: moments of inertia {xx:g}, {yy:g}, {zz:g} kg m^2; none may be negative",
            )
        turned = frame.rotation @ central @ frame.rotation.T
        link.inertia = 0.5 * (turned + turned.T)
        if link.mass == 0.0 and link.inertia.any():
            self.report.note(
                who,
                "has moments of inertia but no mass; taken as it is (some programs drop such an "
                "inertia)",
            )
        least = float(np.linalg.eigvalsh(central)[0]) if any((xy, xz, yz)) else 0.0
        if least < -rounding:
            text = (
                f"the inertia has a negative principal moment, {least:.4g} kg m^2, as no matter "
                "can; taken as it is"
            )
            self.report.note(who, text)

    def read_visual(self, element: etree._Element, link: _UrdfLink, who: str) -> None:
        """Boxes, cylinders and spheres to draw; meshes by their names. A wrong drawing is reported
        and left out.
        """
        doubts = Mistakes(self.file)
        values = UrdfValues(doubts, self.report)
        frame, colour = values.frame(element.find("origin"), who), self.colour(element)
        for shape in element.iterfind("geometry/*"):
            match shape.tag:
                case "box":
                    size = values.numbers(shape, "size", 3, who)
                    drawn: Shape | Mesh = Shape("box", size, frame, colour)
                case "sphere":
                    drawn = Shape("sphere", (values.number(shape, "radius", who),), frame, colour)
                case "cylinder" | "capsule":
                    drawn = Shape(
                        str(shape.tag),
                        (values.number(shape, "radius", who), values.number(shape, "length", who)),
                        frame,
                        colour,
                    )
                case "mesh":
                    drawn = Mesh(
                        shape.get("filename", ""),
                        values.numbers(shape, "scale", 3, who, (1.0, 1.0, 1.0)),
                        frame,
                        colour,
                    )
                case _:
                    self.unused[str(shape.tag)[:40]] += 1
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
        name, kind = self.own_name(element, "joint", self.joint_lines), element.get("type", "")
        if not name:
            return
        who = f"joint {name!r}"
        parts = self.children(element, who)
        ends = [parts[tag].get("link", "") if tag in parts else "" for tag in ("parent", "child")]
        for tag, end in zip(("parent", "child"), ends, strict=True):
            if not end:
                self.wrong(element, f'{who} names no {tag}; write <{tag} link="…"/>')
        if kind not in KINDS:
            self.wrong(
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
            self.edges.append(_UrdfEdge(joint, ends[0], ends[1], element.sourceline or 1))
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
            self.wrong(
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
        low, high = low if low > -UNLIMITED else -math.inf, high if high < UNLIMITED else math.inf
        return ((low, high),) if math.isfinite(low) or math.isfinite(high) else ()

    # ---- the tree ----

    def check_tree(self) -> str:
        """The root link. Unknown links, links with two parents, cycles and several roots are
        mistakes.
        """
        carrier: dict[str, _UrdfEdge] = {}
        for edge in self.edges:
            for what, link in (("parent", edge.parent), ("child", edge.child)):
                if link not in self.links:
                    hint = near(link, list(self.links)) if len(self.links) < 500 else ""
                    self.wrong_at(
                        edge.line,
                        f"joint {edge.joint.name!r}: its {what} {link[:60]!r} does not exist{hint}",
                    )
            if edge.child in carrier:
                first = carrier[edge.child]
                text = (
                    f"its child {edge.child!r} hangs on joint {first.joint.name!r} (line "
                    f"{first.line}) already"
                )
                self.wrong_at(
                    edge.line,
                    f"joint {edge.joint.name!r}: {text}; a URDF robot is a tree: cut the loop",
                )
            carrier.setdefault(edge.child, edge)
        roots = [link for link in self.links if link not in carrier]
        self.check_cycles(carrier)
        if not self.links:
            self.wrong_at(self.root.sourceline or 1, "the robot has no link")
        elif len(roots) > 1 and len(self.edges) == len(
            self.root.findall("joint")
        ):  # a refused joint leaves its child alone
            text = (
                f"{len(roots)} links hang on no joint: {some(roots)}; all but one need a joint "
                "(type fixed, if they do not move)"
            )
            self.wrong_at(self.links[roots[1]].line, text)
        self.mistakes.raise_if_any()
        return roots[0]

    def check_cycles(self, carrier: Mapping[str, _UrdfEdge]) -> None:
        done: set[str] = set()
        for start in carrier:
            path: dict[str, None] = {}
            link = start
            while link in carrier and link not in done and link not in path:
                path[link] = None
                link = carrier[link].parent
            if link in path:
                ring = list(path)[list(path).index(link) :]
                self.wrong_at(
                    carrier[link].line,
                    f"links {some(ring)} carry one another in a cycle; one link must be the root",
                )
            done.update(path)

    def specs(self, root: str, base: str) -> list[LinkSpec]:
        """The links for the builder: the root on the base or on a joint of its own, the others in
        the order of their joints.
        """
        own = Joint(fresh("root_joint", self.joint_lines), base, actuated=False)
        edges = [_UrdfEdge(own, "", root, 1), *self.edges]
        return [self.spec(edge) for edge in edges]

    def spec(self, edge: _UrdfEdge) -> LinkSpec:
        link = self.links[edge.child]
        return LinkSpec(
            edge.child,
            edge.parent or None,
            edge.joint,
            link.mass,
            link.com,
            link.inertia,
            tuple(link.shapes),
        )

    # ---- what is worth saying ----

    def remark(self, model: Robot, root: str, base: str) -> None:
        """What concerns the whole robot."""
        say = self.report
        say.assumed(
            "gravity", f"{' '.join(f'{g:g}' for g in model.gravity)} m/s^2, z up: URDF has none"
        )
        if self.without_inertial:
            say.assumed("links", f"no <inertial>, so no mass: {some(self.without_inertial)}")
        if self.unlimited:
            say.assumed("joints", f"no limits given, so none: {some(self.unlimited)}")
        massless = [
            body.name for body in model.bodies if body.mass == 0.0 and not body.inertia.any()
        ]
        if massless:
            say.note("links", f"move without mass of their own: {some(massless)}")
        still = sum(self.links[name].mass for name, at in model.attached.items() if at.body < 0)
        if base == "fixed":
            mass = f"; {still:g} kg are part of it and do not move" if still else ""
            say.note(f"link {root!r}", f'is the base{mass}. With base="free" it floats')
        if self.unused:
            listed = ", ".join(
                f"<{tag}>" + (f" × {n}" if n > 1 else "") for tag, n in self.unused.most_common(20)
            )
            say.ignored("elements", f"not needed for dynamics: {listed}")
        meshes = sum(len(link.meshes) for link in self.links.values())
        if self.outside:
            say.ignored(
                "meshes",
                "outside the package or the file's folder, dropped: "
                f"{some(map(repr, self.outside), 4)}",
            )
        if meshes:
            say.note("meshes", f"{meshes} kept as names, none opened")
