"""Robots from SDF files (Gazebo's simulation description format): links, joints, frames, inertia,
with a report of what was ignored or assumed.

Poses are resolved through ``relative_to`` and ``attached_to``. A second joint that carries a link
becomes a loop. Includes and nested models are refused, with advice. Nothing but the file itself is
opened.
"""

from __future__ import annotations

import math
import os
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
from lxml import etree

from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.core.messages import near
from ramify.core.names import NAME, fresh, is_name
from ramify.documents.reading import read_bytes
from ramify.files.import_report import ImportReport
from ramify.files.xml_reader import (
    MAX_BYTES,
    SIZES,
    UNLIMITED,
    NumberTuple,
    XmlReader,
    finite_limits,
    shown,
    some,
    symmetric,
    turned,
)
from ramify.model.body import Shape
from ramify.model.build import EARTH, LinkSpec, point_of
from ramify.model.elements import Element, elements
from ramify.model.frame import Frame
from ramify.model.joint import Joint
from ramify.model.loop import Loop, LoopEnd
from ramify.model.mechanism import TreeJoint, edge_of, split
from ramify.model.robot import Robot

KINDS: Final = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "ball": "ball",
    "screw": "helical",
}
"""Joint types of SDF and ours."""

_READ: Final = frozenset(["pose", "link", "joint", "frame", "static"])
_MODEL: Final = "__model__"


class _SdfLink(NamedTuple):
    """A link of the file."""

    mass: float
    com: Array
    inertia: Array
    shapes: tuple[Shape, ...]


class _SdfJoint(NamedTuple):
    """A joint of the file; its frame and its links' are poses in the model."""

    element: etree._Element
    joint: Joint
    parent: str
    child: str


def read_sdf(path: str | os.PathLike[str], base: str | None = None) -> Robot:
    """A robot from an SDF file, its root by default as the file has it: free, or fixed if a joint
    holds it to the world, the model is static, or it has no mass.

    base: "fixed", "free", "free_euler" or "planar" instead. What was ignored or assumed is in
    ``model.metadata["report"]``. Raises ModelError with a line for every mistake found.
    """
    robot = parse_sdf(read_bytes(path, MAX_BYTES), os.fspath(path), base)
    robot.metadata["report"].warn()
    return robot


def parse_sdf(data: bytes | str, file: str = "robot.sdf", base: str | None = None) -> Robot:
    """A robot from the text of an SDF file; ``file`` is its name in messages. See ``read_sdf``."""
    return _SdfReader.parse(data, file, base)


class _SdfReader(XmlReader):
    FORMAT = "SDF"

    def __init__(self, root: etree._Element, file: str, report: ImportReport) -> None:
        super().__init__(root, file, report)
        self.bodies: dict[str, _SdfLink] = {}
        self.places: dict[str, tuple[etree._Element, str]] = {}
        self.poses: dict[str, Frame] = {_MODEL: Frame()}

    def robot(self, base: str | None) -> Robot:
        model = self.the_model()
        self.collect(model)
        edges = [edge for joint in model.findall("joint") if (edge := self.edge(joint))]
        specs, loops = self.tree(model, edges, base)
        self.mistakes.raise_if_any()
        self.report_unused()
        return self.built(model.get("name"), specs, self.gravity(), loops)

    def the_model(self) -> etree._Element:
        """The one model with a joint, or the one model."""
        if self.root.tag != "sdf":
            hint = " (URDF files end in .urdf)" if self.root.tag == "robot" else ""
            text = f"the root element is <{shown(str(self.root.tag))}>, not <sdf>{hint}"
            self.wrong(self.root, text)
            self.mistakes.raise_if_any()
        models = [*self.root.findall("model"), *self.root.findall("world/model")]
        for tag, advice in (
            ("include", "put the included model into the file"),
            ("model/model", "nested models are not read: write one model"),
        ):
            found = self.root.find(f".//{tag}")
            if found is not None:
                self.wrong(found, f"<{found.tag}>: {advice}; `gz sdf -p` writes such a file")
        jointed = [model for model in models if model.find("joint") is not None]
        chosen = jointed or models
        if len(chosen) != 1:
            names = some(shown(model.get("name", "")) for model in chosen)
            text = f"{len(chosen)} models with joints: {names}; keep one in the file"
            self.wrong(self.root, text)
        self.mistakes.raise_if_any()
        if len(models) > 1:
            self.report.ignored("models", f"{len(models) - 1} without joints")
        return chosen[0]

    def collect(self, model: etree._Element) -> None:
        """Links, joints and frames by name, each with what its pose is relative to by default."""
        for element in model:
            if not isinstance(element.tag, str) or element.tag not in _READ:
                self.unused[str(element.tag)[:40]] += isinstance(element.tag, str)
                continue
            if element.tag in ("pose", "static"):
                continue
            name = element.get("name", "")
            if not is_name(name) or name in self.places:
                why = f"the name {shown(name)} is taken" if name in self.places else NAME
                self.wrong(element, f"<{element.tag} name={shown(name)}>: {why}")
                continue
            default = {
                "link": _MODEL,
                "frame": element.get("attached_to") or _MODEL,
                "joint": (element.findtext("child") or "").strip(),
            }[str(element.tag)]
            self.places[name] = element, default
            if element.tag == "link":
                self.bodies[name] = self.body(element, f"link {name!r}")

    # ---- numbers ----

    def texts(
        self, parent: etree._Element | None, tag: str, count: int, who: str, default: NumberTuple
    ) -> NumberTuple:
        """The numbers in a child element, the default where it is missing or empty."""
        child = parent.find(tag) if parent is not None else None
        if child is None or not (child.text or "").strip():
            return default
        return self.read(child, f"<{tag}>", child.text or "", count, who, default, True)

    def text(self, parent: etree._Element | None, tag: str, who: str, default: float) -> float:
        return self.texts(parent, tag, 1, who, (default,))[0]

    def own_pose(self, element: etree._Element, who: str) -> Frame:
        x, y, z, *rpy = self.texts(element, "pose", 6, who, (0.0,) * 6)
        pose = element.find("pose")
        if pose is not None and pose.get("rotation_format", "euler_rpy") != "euler_rpy":
            self.wrong(pose, f"{who}: rotation_format must be euler_rpy")
        if pose is not None and pose.get("degrees") in ("true", "1"):
            rpy = [math.radians(angle) for angle in rpy]
        if not all(map(math.isfinite, (x, y, z, *rpy))):
            self.wrong(element, f"{who}: <pose> must be finite")
            return Frame()
        return self.turned((x, y, z), rpy, who)

    def pose(self, name: str, who: str, within: tuple[str, ...] = ()) -> Frame:
        """The pose of a link, joint or frame in the model."""
        if name in self.poses:
            return self.poses[name]
        if name not in self.places or name in within:
            text = (
                f"poses relative to each other: {' -> '.join((*within, name))[:200]}"
                if name in within
                else f"no link or frame is named {shown(name)}{near(name, list(self.places))}"
            )
            self.wrong(self.places[within[-1]][0] if within else self.root, f"{who}: {text}")
            return Frame()
        element, default = self.places[name]
        given = element.find("pose")
        relative = (given.get("relative_to") if given is not None else None) or default
        own = self.own_pose(element, f"{element.tag} {name!r}")
        self.poses[name] = self.pose(relative, who, (*within, name)) @ own
        return self.poses[name]

    def link_of(self, name: str, who: str) -> str:
        """The link that a name stands for: its own, or the one that a frame is attached to."""
        seen: set[str] = set()
        while name not in self.bodies and name in self.places and name not in seen:
            seen.add(name)
            element, _ = self.places[name]
            name = element.get("attached_to") or (element.findtext("child") or "").strip()
        if name not in self.bodies and name != "world":
            hint = near(name, list(self.bodies))
            self.wrong(self.root, f"{who}: no link is named {shown(name)}{hint}")
        return name

    # ---- links and joints ----

    def body(self, element: etree._Element, who: str) -> _SdfLink:
        shapes, inertial = self.shapes(element, who), element.find("inertial")
        nothing = _SdfLink(0.0, np.zeros(3), np.zeros((3, 3)), shapes)
        if inertial is None:
            self.report.assumed(who, "no <inertial>, so no mass")
            return nothing
        seat, tensor = self.own_pose(inertial, who), inertial.find("inertia")
        mass = self.text(inertial, "mass", who, 1.0)
        moments = [self.text(tensor, key, who, 1.0) for key in ("ixx", "iyy", "izz")]
        products = [self.text(tensor, key, who, 0.0) for key in ("ixy", "ixz", "iyz")]
        if tensor is None or inertial.find("mass") is None:
            self.report.assumed(who, "<inertial> is not complete: 1 kg, 1 kg m^2, as SDF has it")
        central = symmetric((*moments, *products))
        if mass < 0.0 or not (math.isfinite(mass) and np.isfinite(central).all()):
            self.wrong(element, f"{who}: mass and moments of inertia must be finite, the mass ≥ 0")
            return nothing
        return _SdfLink(mass, seat.position, turned(central, seat), shapes)

    def shapes(self, link: etree._Element, who: str) -> tuple[Shape, ...]:
        found = []
        for shape in link.iterfind("visual/geometry/*"):
            if shape.tag not in SIZES:
                self.unused[str(shape.tag)[:40]] += 1
                continue
            keys = SIZES[str(shape.tag)]
            size = (*chain(*(self.texts(shape, key, n, who, (1.0,) * n) for key, n in keys)),)
            if all(0.0 < x < math.inf for x in size):
                visual = shape.getparent().getparent()
                found.append(Shape(str(shape.tag), size, self.own_pose(visual, who)))
        return tuple(found)

    def edge(self, element: etree._Element) -> _SdfJoint | None:
        name, kind = element.get("name", ""), element.get("type", "")
        who = f"joint {name!r}"
        parent, child = (
            self.link_of((element.findtext(tag) or "").strip(), who) for tag in ("parent", "child")
        )
        if kind not in KINDS:
            self.wrong(element, f"{who}: type {shown(kind)} must be one of {', '.join(KINDS)}")
            return None
        if child == "world" and child not in self.bodies:
            self.wrong(element, f"{who}: the world cannot be a child; exchange parent and child")
            return None
        here = self.pose(name, who)
        axis = element.find("axis")
        limits, own = self.limits(axis, kind, who), self.elements(axis, kind, who)
        pitch = self.text(element, "screw_thread_pitch", who, math.nan) / (2.0 * math.pi)
        if kind == "screw" and not (math.isfinite(pitch) and pitch):
            self.wrong(element, f"{who}: give <screw_thread_pitch> in metres per turn, not 0")
            return None
        inlet = self.world() if parent not in self.bodies else self.pose(parent, who)
        joint = Joint(
            name,
            KINDS[kind],
            inlet.inverse() @ here,
            here.inverse() @ self.pose(child, who),
            self.axis(axis, here, kind, who),
            pitch=pitch if kind == "screw" else 0.0,
            limits=limits,
            elements=own,
        )
        return _SdfJoint(element, joint, parent, child)

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
            self.wrong(at, f"{who}: give <axis> with a direction <xyz>")
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
        low = self.text(limit, "lower", who, -math.inf)
        high = self.text(limit, "upper", who, math.inf)
        if low > high:
            self.wrong(limit, f"{who}: lower limit {low:g} exceeds upper limit {high:g}; swap them")
            return ()
        return finite_limits(low, high)

    def elements(self, axis: etree._Element | None, kind: str, who: str) -> tuple[Element, ...]:
        """What the machine has at the joint: damping, friction, spring, ratings."""
        if axis is None or kind in ("fixed", "ball"):
            return ()
        dynamics, limit = axis.find("dynamics"), axis.find("limit")
        given: dict[str, object] = {
            key: x for key in ("damping", "friction") if (x := self.text(dynamics, key, who, 0.0))
        }
        given |= {
            key: x
            for key in ("effort", "velocity")
            if 0.0 < (x := self.text(limit, key, who, math.inf)) < UNLIMITED
        }
        if stiffness := self.text(dynamics, "spring_stiffness", who, 0.0):
            rest = self.text(dynamics, "spring_reference", who, 0.0)
            given["spring"] = {"stiffness": stiffness, "rest": rest}
        if (mimic := axis.find("mimic")) is not None:
            text = f"mimic of {shown(mimic.get('joint', ''))}"
            self.report.ignored(f"{who}, line {mimic.sourceline}", text, moves=True)
        try:
            return elements(1, given)
        except ModelError as error:
            self.wrong(axis, f"{who}: {error}")
            return ()

    # ---- the tree ----

    def world(self) -> Frame:
        """The world, seen from the model."""
        model = next(iter(self.places.values()))[0].getparent()
        return self.own_pose(model, "model").inverse()

    def tree(
        self, model: etree._Element, edges: list[_SdfJoint], base: str | None
    ) -> tuple[list[LinkSpec], list[Loop]]:
        """The links on their joints, and the joints that close loops."""
        carrier: dict[str, _SdfJoint] = {}
        loops, kept = [], []
        for edge in edges:
            parent = edge.parent if edge.parent in self.bodies else None
            if edge.child not in carrier:
                carrier[edge.child] = edge
            elif edge_of(edge.joint, parent, edge.child).laden:
                self.report.note(f"joint {edge.joint.name!r}", f"splits {edge.child!r} in parts")
                kept.append(TreeJoint(edge.child, parent, edge.joint))
            else:
                loops.append(self.loop(edge))
        static = (model.findtext("static") or "").strip() in ("1", "true")
        specs, taken = [], {edge.joint.name for edge in edges}
        for name, body in self.bodies.items():
            if name in carrier:
                edge = carrier[name]
                parent = edge.parent if edge.parent in self.bodies else None
                joint = edge.joint
            else:
                parent, kind = None, base or ("fixed" if static or not body.mass else "free")
                place = self.world().inverse() @ self.pose(name, f"link {name!r}")
                taken.add(own := fresh(f"{name}_root", taken))
                joint = Joint(own, kind, place if kind == "fixed" else Frame(), actuated=False)
                if base is None:
                    why = "the model is static" if static else "it has no mass"
                    said = f"is fixed, because {why}" if kind == "fixed" else "moves freely"
                    self.report.note(f"link {name!r}", f'{said}; base="fixed" or "free" changes it')
            specs.append(LinkSpec(name, parent, joint, *body))
        specs, welds = split(specs, kept)
        return specs, [*loops, *welds]

    def loop(self, edge: _SdfJoint) -> Loop:
        """A joint whose child another joint carries already."""
        joint = edge.joint
        kind = "spherical" if joint.kind == "ball" else joint.kind
        self.report.note(f"joint {joint.name!r}", "closes a loop")
        ends = (
            LoopEnd(edge.parent if edge.parent in self.bodies else None, joint.placement),
            LoopEnd(edge.child, joint.outlet.inverse()),
        )
        axis = joint.axis if kind in ("revolute", "prismatic") else (0.0, 0.0, 1.0)
        return Loop(joint.name, kind, *ends, axis=axis)

    def gravity(self) -> NumberTuple:
        """The world's gravity; 9.8 m/s^2 down where a world gives none, as SDF has it."""
        world = self.root.find("world")
        if world is None:
            self.report.assumed("gravity", f"{EARTH[2]} m/s^2 along z: a model alone has none")
            return EARTH
        return self.texts(world, "gravity", 3, "world", (0.0, 0.0, -9.8))
