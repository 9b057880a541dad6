"""Robots from SDF files (Gazebo's simulation description format): links, joints, frames, inertia,
with a report of what was ignored or assumed.

Poses are resolved through ``relative_to`` and ``attached_to``. A second joint that carries a link
becomes a loop. Includes and nested models are refused, with advice. Nothing but the file itself is
opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from lxml import etree

from ramify.core.names import fresh, is_name
from ramify.documents.reading import read_bytes
from ramify.files.import_report import without_contact
from ramify.files.sdf_elements import SDF
from ramify.files.sdf_joints import SdfJoint, SdfJoints
from ramify.files.shape_schema import EVERYTHING
from ramify.files.xml_reader import MAX_BYTES, NumberTuple, quoted_text, some
from ramify.model.build import EARTH, LinkSpec
from ramify.model.frame import Frame
from ramify.model.joint import Joint
from ramify.model.loop import Loop, LoopEnd
from ramify.model.mechanism import TreeJoint, edge_of, split_bodies
from ramify.model.robot import Robot
from ramify.model.shape import Shape


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


class _SdfReader(SdfJoints):
    def robot(self, base: str | None) -> Robot:
        model = self.the_model()
        self.collect(model)
        edges = [edge for joint in model.findall("joint") for edge in self.edges(joint)]
        specs, loops = self.tree(model, edges, base)
        others = [one for one in self.root.iter("model") if one is not model]
        world = tuple(self.world_shapes(others))
        loops += self.gears({name for spec in specs for name in spec.joint.coordinates})
        self.mistakes.raise_if_any()
        self.report_contacts(model)
        SDF.report(self.root, self.report, leave_out=others)
        self.report_unused()
        robot = self.built(model.get("name"), specs, self.gravity(), loops)
        world += robot.collisions.world
        return replace(robot, collisions=replace(robot.collisions, world=world))

    def world_shapes(self, others: list[etree._Element]) -> Iterator[Shape]:
        """The collision shapes of static models, such as a floor."""
        for model in others:
            static = self.flag(model, "static", False)
            for collision in model.iterfind("link/collision") if static else ():
                who = f"model {model.get('name', '')!r}"
                if solid := self.collision(collision, who, EVERYTHING):
                    poses = [self.own_pose(part, who) for part in (model, collision.getparent())]
                    name = fresh(solid.name or model.get("name", "world"), self.bodies)
                    name = name if is_name(name) else ""
                    yield replace(solid, frame=poses[0] @ poses[1] @ solid.frame, name=name)

    def report_contacts(self, model: etree._Element) -> None:
        """Contacts need a ground: those between the model and others, or between its own links."""
        collisions = len(model.findall("link/collision"))
        others = [one for one in self.root.iter("model") if one is not model]
        touched = any(one.find("link/collision") is not None for one in others)
        parts = (model, *model.findall("link"))
        collides = any(self.flag(part, "self_collide", False) for part in parts)
        if collisions and (touched or collides):
            text = f"of {collisions} collision shapes ({without_contact(self.passing)})"
            self.report.ignored("contacts", text, moves=True)

    def the_model(self) -> etree._Element:
        """The one model with a joint, or the one model."""
        if self.root.tag != "sdf":
            hint = " (URDF files end in .urdf)" if self.root.tag == "robot" else ""
            text = f"the root element is <{quoted_text(str(self.root.tag))}>, not <sdf>{hint}"
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
            names = some(quoted_text(model.get("name", "")) for model in chosen)
            which = "models with joints" if jointed else "models, none with a joint"
            text = f"{len(chosen)} {which}: {names}; keep one in the file"
            self.wrong(self.root, text)
        self.mistakes.raise_if_any()
        if len(models) > 1:
            self.report.ignored("models", f"{len(models) - 1} without joints")
        return chosen[0]

    # ---- the tree ----

    def tree(
        self, model: etree._Element, edges: list[SdfJoint], base: str | None
    ) -> tuple[list[LinkSpec], list[Loop]]:
        """The links on their joints, and the joints that close loops."""
        carrier: dict[str, SdfJoint] = {}
        loops, splits = [], []
        for edge in edges:
            parent = edge.parent if edge.parent in self.bodies else None
            if edge.child not in carrier:
                carrier[edge.child] = edge
            elif edge_of(edge.joint, parent, edge.child).laden:
                self.report.note(f"joint {edge.joint.name!r}", f"splits {edge.child!r} in parts")
                splits.append(TreeJoint(edge.child, parent, edge.joint))
            else:
                loops.append(self.loop(edge))
        static = self.flag(model, "static", False)
        if static and (moving := [edge.joint.name for edge in edges if edge.joint.dof]):
            self.report.ignored(
                f"model {model.get('name', '')!r}",
                f"<static> true, which holds it still: {some(map(quoted_text, moving))} can move "
                "here; rf.with_locked locks joints",
                moves=True,
            )
        specs, taken = [], {edge.joint.name for edge in edges}
        for name, body in self.bodies.items():
            if name in carrier:
                edge = carrier[name]
                parent = edge.parent if edge.parent in self.bodies else None
                joint = edge.joint
            else:
                parent, kind = None, base or ("fixed" if static or not body.mass else "free")
                place = self.world().inverse() @ self.pose(name, f"link {name!r}")
                taken.add(root_name := fresh(f"{name}_root", taken))
                joint = Joint(
                    root_name, kind, place if kind == "fixed" else Frame(), actuated=False
                )
                if base is None:
                    why = "the model is static" if static else "it has no mass"
                    said = f"is fixed, because {why}" if kind == "fixed" else "moves freely"
                    self.report.note(f"link {name!r}", f'{said}; base="fixed" or "free" changes it')
            specs.append(LinkSpec(name, parent, joint, *body))
        specs, welds = split_bodies(specs, splits)
        return specs, [*loops, *welds]

    def loop(self, edge: SdfJoint) -> Loop:
        """A joint whose child another joint carries already."""
        joint = edge.joint
        kind = "spherical" if joint.kind == "ball" else joint.kind
        self.report.note(f"joint {joint.name!r}", "closes a loop")
        ends = (
            LoopEnd(edge.parent if edge.parent in self.bodies else None, joint.placement),
            LoopEnd(edge.child, joint.outlet.inverse()),
        )
        axis = joint.axis if kind in ("revolute", "prismatic") else (0.0, 0.0, 1.0)
        return Loop(joint.name, kind, *ends, axis=axis, sequence=joint.sequence)

    def gravity(self) -> NumberTuple:
        """The world's gravity, in old files under <physics>; 9.8 m/s^2 down where a world gives
        none, as SDF has it.
        """
        world = self.root.find("world")
        if world is None:
            self.report.assumed("gravity", f"{EARTH[2]} m/s^2 along z: a model alone has none")
            return EARTH
        tag = "gravity" if world.find("gravity") is not None else "physics/gravity"
        return self.texts(world, tag, 3, "world", (0.0, 0.0, -9.8))
