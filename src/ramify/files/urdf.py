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

from ramify.core.errors import ModelError
from ramify.core.messages import near
from ramify.core.names import NAME, fresh, is_name
from ramify.documents.reading import read_bytes
from ramify.documents.xml_text import parse_xml
from ramify.files.import_report import counted
from ramify.files.urdf_elements import URDF
from ramify.files.urdf_machine import Transmissions
from ramify.files.urdf_parts import UrdfEdge, UrdfParts
from ramify.files.xacro_files import expanded, leftover, unexpanded
from ramify.files.xml_reader import MAX_BYTES, quoted_text, some
from ramify.model.build import EARTH, LinkSpec
from ramify.model.joint import Joint
from ramify.model.parent_cycles import cycles
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


class _UrdfReader(UrdfParts):
    def robot(self, base: str | None) -> Robot:
        self.check_root()
        transmissions = Transmissions(self)
        readers = {
            "link": self.read_link,
            "joint": self.read_joint,
            "transmission": transmissions.read,
        }
        for element in self.used(self.root):
            readers[str(element.tag)](element)
        self.edges = [edge._replace(joint=transmissions.applied(edge.joint)) for edge in self.edges]
        transmissions.finish()
        root = self.check_tree()
        if base == "fixed" and all(edge.joint.kind == "fixed" for edge in self.edges):
            text = "no link moves: the robot has no joint but fixed ones"
            raise ModelError(f'{self.file}: {text}; with base="free" it floats')
        model = self.built(
            self.root.get("name"),
            self.specs(root, base or "fixed"),
            EARTH,
            self.gears(),
            meshes={link: tuple(item.meshes) for link, item in self.links.items() if item.meshes},
            continuous=tuple(self.continuous),
        )
        self.remark(model, root, base)
        URDF.report(self.root, self.report)
        return model

    def check_root(self) -> None:
        root = self.root
        if root.tag != "robot":
            hint = "; this is MJCF, a file for MuJoCo, which ends in .xml"
            hint = hint if root.tag == "mujoco" else ""
            text = f"the root element is <{str(root.tag)[:60]}>, a URDF file has <robot>{hint}"
            self.wrong(root, text)
        for tag, most in (("link", MAX_LINKS), ("joint", MAX_LINKS), ("visual", MAX_VISUALS)):
            if (number := sum(1 for _ in root.iter(tag))) > most:
                self.wrong(root, f"{number} <{tag}> elements; a robot has at most {most}")
        if len(root) > 4 * MAX_LINKS:
            self.wrong(root, f"{len(root)} elements; a robot has at most {MAX_LINKS} links")
        self.mistakes.raise_if_any()
        if expression := unexpanded(root):
            self.refuse_macro(*expression)
            self.mistakes.raise_if_any()
        for name, (line, n) in leftover(root).items():
            times = f", {n} times" if n > 1 else ""
            text = f"<xacro:{name[:60]}>: what xacro left over is not read{times}"
            self.report.note(f"line {line}", text, doubt=True)
        if (name := root.get("name")) and not is_name(name):
            self.wrong(root, f"the robot is named {quoted_text(name)}; {NAME}")
        elif not name:
            self.report.assumed("robot", "it has no name; it is called like the file")

    def refuse_macro(self, line: int, what: str) -> None:
        """Note what only xacro can replace."""
        self.wrong(
            line,
            f"{what}: expand this xacro file first (xacro robot.xacro > robot.urdf); if you trust "
            "it, rename it to .xacro: the xacro package then expands it when loaded",
        )

    # ---- the tree ----

    def check_tree(self) -> str:
        """The root link. Unknown links, links with two parents, cycles and several roots are
        mistakes.
        """
        carrier: dict[str, UrdfEdge] = {}
        for edge in self.edges:
            who = f"joint {edge.joint.name!r}"
            for what, link in (("parent", edge.parent), ("child", edge.child)):
                if link not in self.links:
                    hint = near(link, list(self.links)) if len(self.links) < 500 else ""
                    text = f"its {what} {link[:60]!r} does not exist{hint}"
                    self.wrong(edge.line, f"{who}: {text}")
            first = carrier.setdefault(edge.child, edge)
            if first is not edge:
                text = f"hangs on joint {first.joint.name!r} (line {first.line}) already"
                tree = "a URDF robot is a tree: cut the loop"
                self.wrong(edge.line, f"{who}: its child {edge.child!r} {text}; {tree}")
        roots = [link for link in self.links if link not in carrier]
        for ring in cycles({child: edge.parent for child, edge in carrier.items()}):
            text = f"links {some(ring)} carry one another in a cycle; one link must be the root"
            self.wrong(carrier[ring[0]].line, text)
        refused = len(self.root.findall("joint")) - len(self.edges)  # each leaves its child alone
        if not self.links:
            self.wrong(self.root, "the robot has no link")
        elif len(roots) > 1 and not refused:
            text = (
                f"{len(roots)} links hang on no joint: {some(roots)}; all but one need a joint "
                "(type fixed, if they do not move)"
            )
            self.wrong(self.links[roots[1]].line, text)
        if self.mistakes:  # perhaps what is missing is in a macro
            for name, (line, _) in leftover(self.root).items():
                self.refuse_macro(line, f"<xacro:{name[:60]}>")
        self.mistakes.raise_if_any()
        return roots[0]

    def specs(self, root: str, base: str) -> list[LinkSpec]:
        """The links for the builder: the root on the base or on a joint of its own, the others in
        the order of their joints.
        """
        own = Joint(fresh("root_joint", self.lines["joint"]), base, actuated=False)
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
        given = " ".join(f"{g:g}" for g in model.gravity)
        say.assumed("gravity", f"{given} m/s^2, z up: URDF has none")
        if self.without_inertial:
            say.assumed("links", f"no <inertial>, so no mass: {some(self.without_inertial)}")
        if self.unlimited:
            say.assumed("joints", f"no limits given, so none: {some(self.unlimited)}")
        massless = [b.name for b in model.bodies if b.mass == 0.0 and not b.inertia.any()]
        if massless:
            say.note("links", f"move without mass of their own: {some(massless)}")
        still = sum(self.links[name].mass for name, at in model.attached.items() if at.body < 0)
        if base == "fixed":
            mass = f"; {still:g} kg are part of it and do not move" if still else ""
            say.note(f"link {root!r}", f'is the base{mass}. With base="free" it floats')
        self.report_unused()
        if self.outside:
            listed = some(map(repr, self.outside), 4)
            say.ignored("meshes", f"outside the package or the file's folder, dropped: {listed}")
        touching = sum(x.collides for link in self.links.values() for x in link.shapes)
        if touching:
            where = "with a ground or a world, not with each other (<collision>)"
            say.note("shapes", f"{touching} collide {where}")
        if passing := counted(self.passing):
            text = "have no contact here; spheres, capsules and boxes do"
            say.ignored("<collision>", f"{passing} {text}")
        if meshes := sum(len(link.meshes) for link in self.links.values()):
            say.note("meshes", f"{meshes} kept as names, none opened")
