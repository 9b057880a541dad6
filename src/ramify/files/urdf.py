"""Robots from URDF files: a strict reader of what dynamics needs, with a report of what was ignored
or assumed.

Links become bodies, joints keep their names, links on fixed joints are merged into the body that
carries them. Nothing but the file itself is opened: meshes stay names.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import PurePath
from typing import Final

from lxml import etree

from ramify.core.errors import ModelError
from ramify.core.messages import near
from ramify.core.names import NAME, fresh, is_name
from ramify.documents.reading import read_bytes
from ramify.documents.xml_text import parse_xml
from ramify.files.import_report import ImportReport
from ramify.files.parent_cycles import cycles
from ramify.files.urdf_elements import UrdfElements
from ramify.files.urdf_joints import UrdfEdge, UrdfJoints
from ramify.files.urdf_links import UrdfLinks
from ramify.files.urdf_transmissions import Transmissions
from ramify.files.xacro_files import expanded, leftover, macro_name, unexpanded
from ramify.files.xml_reader import MAX_BYTES, XmlReader
from ramify.files.xml_values import shown, some
from ramify.model.build import EARTH, LinkSpec
from ramify.model.joint import Joint
from ramify.model.robot import Robot

MAX_LINKS: Final = 20_000
MAX_VISUALS: Final = 20_000
"""Limits of a URDF file."""


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
    return _UrdfReader.parse(data, file, base)


class _UrdfReader(XmlReader):
    FORMAT = "URDF"

    def __init__(self, root: etree._Element, file: str, report: ImportReport) -> None:
        super().__init__(root, file, report)
        self.elements = UrdfElements(root, self.values, report, self.unused)
        self.of_links, self.of_joints = UrdfLinks(self.elements), UrdfJoints(self.elements)
        self.links = self.of_links.links
        self.transmissions = Transmissions(self.values, report)

    def robot(self, base: str | None) -> Robot:
        self.check_root()
        readers = {
            "link": self.of_links.read,
            "joint": self.of_joints.read,
            "transmission": self.transmissions.read,
        }
        for element in self.elements.used(self.root):
            readers[str(element.tag)](element)
        self.edges = [
            edge._replace(joint=self.transmissions.applied(edge.joint))
            for edge in self.of_joints.edges
        ]
        self.transmissions.finish()
        root = self.check_tree()
        if base == "fixed" and all(edge.joint.kind == "fixed" for edge in self.edges):
            raise ModelError(
                f"{self.file}: no link moves: the robot has no joint but fixed ones; with "
                'base="free" it floats'
            )
        model = self.built(
            self.root.get("name"),
            self.specs(root, base or "fixed"),
            EARTH,
            self.of_joints.gears(),
            meshes={link: tuple(item.meshes) for link, item in self.links.items() if item.meshes},
            continuous=tuple(self.of_joints.continuous),
        )
        self.remark(model, root, base)
        return model

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

    # ---- the tree ----

    def check_tree(self) -> str:
        """The root link. Unknown links, links with two parents, cycles and several roots are
        mistakes.
        """
        carrier: dict[str, UrdfEdge] = {}
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
        for ring in cycles({child: edge.parent for child, edge in carrier.items()}):
            self.wrong_at(
                carrier[ring[0]].line,
                f"links {some(ring)} carry one another in a cycle; one link must be the root",
            )
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

    def specs(self, root: str, base: str) -> list[LinkSpec]:
        """The links for the builder: the root on the base or on a joint of its own, the others in
        the order of their joints.
        """
        own = Joint(fresh("root_joint", self.of_joints.lines), base, actuated=False)
        specs = []
        for edge in (UrdfEdge(own, "", root, 1), *self.edges):
            link, parent = self.links[edge.child], edge.parent or None
            body = (link.mass, link.com, link.inertia, tuple(link.shapes))
            specs.append(LinkSpec(edge.child, parent, edge.joint, *body))
        return specs

    # ---- what is worth saying ----

    def remark(self, model: Robot, root: str, base: str | None) -> None:
        """What concerns the whole robot."""
        say = self.report
        say.assumed(
            "gravity", f"{' '.join(f'{g:g}' for g in model.gravity)} m/s^2, z up: URDF has none"
        )
        if self.of_links.without_inertial:
            say.assumed(
                "links", f"no <inertial>, so no mass: {some(self.of_links.without_inertial)}"
            )
        if self.of_joints.unlimited:
            say.assumed("joints", f"no limits given, so none: {some(self.of_joints.unlimited)}")
        massless = [
            body.name for body in model.bodies if body.mass == 0.0 and not body.inertia.any()
        ]
        if massless:
            say.note("links", f"move without mass of their own: {some(massless)}")
        still = sum(self.links[name].mass for name, at in model.attached.items() if at.body < 0)
        if base == "fixed":
            mass = f"; {still:g} kg are part of it and do not move" if still else ""
            say.note(f"link {root!r}", f'is the base{mass}. With base="free" it floats')
        self.report_unused()
        meshes = sum(len(link.meshes) for link in self.links.values())
        if self.of_links.outside:
            say.ignored(
                "meshes",
                "outside the package or the file's folder, dropped: "
                f"{some(map(repr, self.of_links.outside), 4)}",
            )
        if meshes:
            say.note("meshes", f"{meshes} kept as names, none opened")
