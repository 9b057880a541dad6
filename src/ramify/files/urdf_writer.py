"""A model as a URDF file, where URDF can say what the model is.

Every body becomes a link of its name, every link that was merged into a body and every named frame
a massless link on a fixed joint, so that names and frames stay known. The body's frame of URDF is
the frame that the joint moves; where ours is another one and cannot be moved there, a massless link
named ``<body>_mount`` rides on the joint and carries the body on a fixed joint.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.core.names import fresh
from ramify.core.warning import LeftOutWarning, warn
from ramify.documents.writing import write_whole
from ramify.files.urdf_machine import limit_text, transmission_text, unsaid
from ramify.model.body import Body
from ramify.model.frame import Frame, align_z, cos_sin
from ramify.model.joint import Joint
from ramify.model.loop import Loop
from ramify.model.robot import Robot
from ramify.model.shape import Shape, rgb

NO_LIMIT: Final = 1e9
"""Written where URDF wants a limit and the model has none: as a position (rad, m), an effort (N m,
N) and a velocity.
"""

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DASHES: Final = re.compile("-(?=-)")  # XML has no "--" in comments
_Z: Final = (0.0, 0.0, 1.0)
_TYPES: Final = {
    "revolute": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "planar": "planar",
    "free": "floating",
}
_INSTEAD: Final = {
    "free_euler": "rf.load(…, base='free') gives a base that URDF has, a floating joint",
    "cylindrical": "a revolute and a prismatic joint on one axis move alike",
    "universal": "two revolute joints move alike",
    "spherical": "three revolute joints move alike",
}


def save(model: Robot, path: str | os.PathLike[str]) -> None:
    """Write a model as a URDF file, whole or not at all. Raises ModelError where URDF cannot say it
    or the disk refuses.
    """
    write_whole(path, to_urdf(model), ModelError)


def to_urdf(model: Robot) -> str:
    """The text of a URDF file of this model. Gravity, contact points and modules have no place in
    URDF; a comment names them.

    Raises ModelError naming the joints whose type URDF does not have, and for loops that are not
    gears or linear couplings of two joints (mimic). A LeftOutWarning names what the robot's machine
    has, such as springs, and URDF cannot say, joint by joint.
    """
    closed = [loop for loop in model.loops if not (loop.couples and loop.joints)]
    if names := ", ".join(loop.name for loop in closed):
        text = f"{model.name}: URDF has no closed loops ({names})"
        raise ModelError(f"{text}; write its open tree (model.tree), or a YAML file")
    for loop in model.loops:
        if len(loop.joints) != 2 or len(loop.polynomial) > 2:
            raise ModelError(
                f"{model.name}: URDF has no {loop!r}: a mimic is linear, of two joints; write a "
                "YAML file"
            )
    foreign = [joint for joint in model.joints if joint.kind not in _TYPES]
    if foreign:
        lines = (
            f"joint {j.name!r}: URDF has no {j.kind} joint"
            + (f"; {_INSTEAD[j.kind]}" if j.kind in _INSTEAD else "")
            for j in foreign
        )
        raise ModelError("\n".join(lines))
    document = ['<?xml version="1.0" encoding="utf-8"?>', *_UrdfWriter(model).lines()]
    if missing := "; ".join(line.text for line in unsaid(model) if line.moves):
        warn(
            f"{model.name}: URDF cannot say all that changes its motion: {missing}; a .yaml file "
            "keeps it",
            LeftOutWarning,
        )
    return "\n".join(document) + "\n"


class _UrdfJoint(NamedTuple):
    """A joint as URDF has it: its frame in the parent's, its axis, and what is left between the
    moved frame and the body's.
    """

    placement: Frame
    axis: tuple[float, float, float]
    rest: Frame


def with_outlet_in_front(joint: Joint) -> _UrdfJoint:
    """The joint with as much of its outlet as possible moved in front of it.

    What lies along the axis of a turn, or anywhere for a slide, commutes with the motion. A plane
    is turned to have z as its normal, so that its two directions are the same for everyone.
    """
    outlet, axis = joint.outlet, np.array(joint.axis)
    if joint.kind == "planar" and joint.axis != _Z:
        plane = Frame(align_z(axis))
        return _UrdfJoint(joint.placement @ plane, _Z, plane.inverse() @ outlet)
    commutes = joint.kind == "prismatic" or (
        joint.kind == "revolute" and not np.cross(outlet.position, axis).any()
    )
    if outlet.is_identity or not commutes:
        return _UrdfJoint(joint.placement, joint.axis, outlet)
    x, y, z = (float(u) for u in outlet.rotation.T @ axis)
    return _UrdfJoint(joint.placement @ outlet, (x, y, z), Frame())


class _UrdfWriter:
    def __init__(self, model: Robot) -> None:
        self.model = model
        own = {body.name for body in model.bodies}
        self.merged = {name: at for name, at in model.attached.items() if name not in own}
        self.links = {*model.attached, *own, *model.machine.frames}
        self.joints = {joint.name for joint in model.joints}
        at_base = (name for name, at in self.merged.items() if at.body < 0 and at.frame.is_identity)
        new = "world" if "base" in self.links else "base"
        self.base = next(at_base, None) or _new(new, self.links)
        self.merged |= model.machine.frames

    def lines(self) -> Iterator[str]:
        model = self.model
        yield f"<robot name={_text(model.name)}>"
        said = (*self.left_out(), *(f"left out: {part.text}" for part in unsaid(model)))
        yield from (f"  <!-- {_DASHES.sub('- ', line)} -->" for line in said)
        yield from self.frame(self.base)
        for body in model.bodies:
            yield from self.body(body)
        for name, (carrier, frame) in self.merged.items():
            if name != self.base:
                yield from self.frame(name)
                yield from self.fixed(self.carrier(carrier), name, frame)
        yield from transmission_text(model, _text)
        yield "</robot>"

    def left_out(self) -> Iterator[str]:
        """What URDF has no place for."""
        yield f"gravity of the model, not part of URDF: {_numbers(self.model.gravity)} m/s^2"
        points = [name for body in self.model.bodies for name, _ in body.points]
        if points:
            yield f"contact points left out: {len(points)}"
        world = len(self.model.collisions.world)
        if world:
            yield f"shapes of the world left out: {world}"

    def frame(self, link: str) -> Iterator[str]:
        """A link without mass."""
        meshes = list(self.meshes(link))
        yield f"  <link name={_text(link)}{'' if meshes else '/'}>"
        yield from [*meshes, "  </link>"] if meshes else ()

    def carrier(self, index: int) -> str:
        return self.base if index < 0 else self.model.bodies[index].name

    def body(self, body: Body) -> Iterator[str]:
        joint = with_outlet_in_front(body.joint)
        mount = body.name if joint.rest.is_identity else _new(f"{body.name}_mount", self.links)
        if mount != body.name:
            yield f"  <link name={_text(mount)}/>"
        gear = next(
            (loop for loop in self.model.loops if loop.joints[1:] == (body.joint.name,)), None
        )
        yield from _joint(body.joint, joint, self.carrier(body.parent), mount, gear)
        if mount != body.name:
            yield from self.fixed(mount, body.name, joint.rest)
        yield f"  <link name={_text(body.name)}>"
        if body.mass or body.inertia.any():
            yield from _inertial(body)
        for shape in body.shapes:
            if shape.drawn:
                yield from _visual(shape)
            if shape.collides:
                yield from _visual(shape, "collision")
        yield from self.meshes(body.name)
        yield "  </link>"

    def meshes(self, link: str) -> Iterator[str]:
        """The meshes that came with a URDF file, by their names."""
        for mesh in self.model.metadata.get("meshes", {}).get(link, ()):
            mesh_text = f'<mesh filename={_text(mesh.filename)} scale="{_numbers(mesh.scale)}"/>'
            drawn = f"<geometry>{mesh_text}</geometry>{_material(mesh.colour)}"
            yield f"    <visual>{_origin(mesh.frame)}{drawn}</visual>"

    def fixed(self, parent: str, child: str, frame: Frame) -> Iterator[str]:
        name = _new(f"{child}_fixed", self.joints)
        yield from _joint(Joint(name, "fixed"), _UrdfJoint(frame, _Z, Frame()), parent, child)


def _new(name: str, taken: set[str]) -> str:
    taken.add(found := fresh(name, taken))
    return found


def _joint(
    joint: Joint, at: _UrdfJoint, parent: str, child: str, gear: Loop | None = None
) -> Iterator[str]:
    kind = "continuous" if joint.kind == "revolute" and not joint.limits else _TYPES[joint.kind]
    yield f"  <joint name={_text(joint.name)} type={_text(kind)}>"
    yield f"    <parent link={_text(parent)}/>"
    yield f"    <child link={_text(child)}/>"
    yield f"    {_origin(at.placement)}"
    if kind not in ("fixed", "floating"):
        yield f'    <axis xyz="{_numbers(at.axis)}"/>'
    if kind in ("revolute", "prismatic", "continuous"):
        yield from (f"    {line}" for line in limit_text(joint, NO_LIMIT))
    if gear is not None:
        offset, multiplier = (*gear.polynomial, 0.0)[:2]
        law = f'multiplier="{multiplier!r}" offset="{offset!r}"'
        yield f"    <mimic joint={_text(gear.joints[0])} {law}/>"
    yield "  </joint>"


def _inertial(body: Body) -> Iterator[str]:
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = body.inertia.tolist()
    moments = {"ixx": xx, "ixy": xy, "ixz": xz, "iyy": yy, "iyz": yz, "izz": zz}
    yield "    <inertial>"
    yield f"      {_origin(Frame(position=body.com))}"
    yield f'      <mass value="{body.mass!r}"/>'
    entries = " ".join(f'{key}="{value!r}"' for key, value in moments.items())
    yield f"      <inertia {entries}/>"
    yield "    </inertial>"


def _visual(shape: Shape, tag: str = "visual") -> Iterator[str]:
    """A shape; a capsule is a cylinder and two spheres."""
    if shape.kind == "capsule":
        radius, length = shape.size
        yield from _visual(Shape("cylinder", shape.size, shape.frame, shape.colour), tag)
        for end in (-0.5, 0.5):
            at = shape.frame @ Frame(position=np.array([0.0, 0.0, end * length]))
            yield from _visual(Shape("sphere", (radius,), at, shape.colour), tag)
        return
    size = f'size="{_numbers(shape.size)}"'
    if shape.kind != "box":
        pairs = zip(("radius", "length"), map(float, shape.size), strict=False)
        size = " ".join(f'{key}="{value!r}"' for key, value in pairs)
    geometry = f"<geometry><{shape.kind} {size}/></geometry>"
    material = _material(shape.colour) if tag == "visual" else ""
    yield f"    <{tag}>{_origin(shape.frame)}{geometry}{material}</{tag}>"


def _material(colour: str) -> str:
    """A material of a colour, named after it; empty without one."""
    if not colour:
        return ""
    parts = " ".join(f"{x / 255:.4g}" for x in rgb(colour))
    return f'<material name="colour_{colour[1:]}"><color rgba="{parts} 1"/></material>'


def _origin(frame: Frame) -> str:
    rpy = "" if Frame(frame.rotation).is_identity else f' rpy="{_numbers(to_rpy(frame.rotation))}"'
    return f'<origin xyz="{_numbers(frame.position)}"{rpy}/>'


def to_rpy(R: Array) -> tuple[float, float, float]:
    """Roll, pitch and yaw of a rotation matrix Rz(yaw) Ry(pitch) Rx(roll). Where the pitch is 90
    degrees the roll takes it all.

    The roll is read from what the yaw leaves, so that the three together are right to the last
    digits also near 90 degrees.
    """
    yaw = math.atan2(R[1, 0], R[0, 0])
    c, s = cos_sin(yaw)
    turned = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) @ R
    return math.atan2(-turned[1, 2], turned[1, 1]), math.atan2(-turned[2, 0], turned[0, 0]), yaw


def _numbers(values: Iterable[float]) -> str:
    return " ".join(repr(float(value)) for value in values)


def _text(text: str) -> str:
    """A quoted attribute. Raises ModelError for characters that XML cannot hold."""
    if bad := _NOT_XML.search(text):
        raise ModelError(
            f"name {text!r}: the character {bad[0]!r} is not allowed in XML; rename it"
        )
    return quoteattr(text, {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"})
