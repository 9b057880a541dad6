"""One validated link of a robot file as a link of the builder: its joint placed, its inertia as a
tensor about the mass centre.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.documents.mistakes import Mistakes, Path
from ramify.documents.schema import validate
from ramify.files.robot_schema import (
    DhRow,
    JointPart,
    LiftPart,
    LinkPart,
    Moments,
    Rotated,
    ShapePart,
    clashes_of_shape,
)
from ramify.model.body import Shape
from ramify.model.build import LinkSpec
from ramify.model.dh import dh_frames
from ramify.model.elements import KEYS, elements
from ramify.model.frame import Frame, from_rpy
from ramify.model.joint import Joint

AXIAL: Final = ("revolute", "prismatic", "helical", "cylindrical", "planar")
ANGULAR: Final = ("revolute", "helical", "universal", "spherical")
"""Joint types with an axis; those whose coordinates are angles."""

Note = Callable[[Path, str], None]
"""Called with the path within the link, and what is wrong there."""


def link_spec(link: LinkPart, note: Note) -> LinkSpec:
    """The link under the names of its own scope. What is wrong is noted, and something harmless put
    in its place.
    """
    placement, outlet = _placed(link, note)
    return LinkSpec(
        link.name,
        link.parent,
        _joint(link.joint, link.joint.name or link.name, placement, outlet, note),
        link.mass,
        np.array(link.com),
        _tensor(link, note),
        tuple(_shape(shape, ("shapes", i), note) for i, shape in enumerate(link.shapes)),
        tuple(link.points.items()),
        _lift(link),
    )


def _lift(link: LinkPart) -> tuple[float, tuple[float, float, float]]:
    """The mass that gravity compensation carries, and its centre: a share of the link, or given."""
    given = link.gravity_compensation
    if isinstance(given, LiftPart):
        return given.mass, given.com
    return (given * link.mass, link.com) if given else (0.0, (0.0, 0.0, 0.0))


def renamed(spec: LinkSpec, full: Callable[[str], str]) -> LinkSpec:
    """The link under the names that the robot has for it."""
    return replace(
        spec,
        name=full(spec.name),
        parent=None if spec.parent is None else full(spec.parent),
        joint=replace(spec.joint, name=full(spec.joint.name)),
        points=tuple((full(name), point) for name, point in spec.points),
    )


def frame_of(part: Rotated, path: Path, note: Note) -> Frame:
    """A frame given by its origin and rotation."""
    if part.rotation is not None:
        R = np.array(part.rotation)
        if (
            np.abs(R).max() > 1.1
            or np.abs(R @ R.T - np.eye(3)).max() > 1e-6
            or np.linalg.det(R) < 0.0
        ):
            note(
                (*path, "rotation"),
                "no rotation matrix: its rows must have length 1, stand at right angles and be "
                "right-handed",
            )
            return Frame()
        return Frame(R, np.array(part.xyz))
    angles = part.rpy if part.rpy_deg is None else tuple(map(_radians, part.rpy_deg))
    if angles is None:
        return Frame(position=np.array(part.xyz))
    return Frame(from_rpy(*angles), np.array(part.xyz), max(angles, key=abs))


def _placed(link: LinkPart, note: Note) -> tuple[Frame, Frame]:
    """Placement of the joint in the parent's frame, and the link's frame in the moved one."""
    if link.classical_dh is not None:
        return dh_frames("classical", *_columns(link.classical_dh))
    outlet = Frame() if link.outlet is None else frame_of(link.outlet, ("outlet",), note)
    if link.dh is not None:
        return dh_frames("modified", *_columns(link.dh))[0], outlet
    return Frame() if link.frame is None else frame_of(link.frame, ("frame",), note), outlet


def _columns(row: DhRow) -> tuple[float, float, float, float]:
    along = row.d if row.d is not None else row.b or 0.0
    return row.a, _angle(row.alpha, row.alpha_deg), along, _angle(row.theta, row.theta_deg)


def _angle(radians: float | None, degrees: float | None) -> float:
    return _radians(degrees) if degrees is not None else radians or 0.0


def _radians(degrees: float) -> float:
    """Degrees, beyond a turn without whole turns, in radians."""
    return math.radians(degrees if abs(degrees) <= 360.0 else math.remainder(degrees, 360.0))


def limits_of(part: JointPart, note: Note) -> tuple[tuple[float, float], ...]:
    """The limits of a joint in rad or m; degrees of what is no angle are noted."""
    if part.limits_deg and part.type not in ANGULAR:
        note(
            ("joint", "limits_deg"),
            f"the coordinates of a {part.type} joint are not all angles; give its limits as limits",
        )
    degrees = ((math.radians(low), math.radians(high)) for low, high in part.limits_deg)
    return tuple(part.limits or degrees)


def _joint(part: JointPart, name: str, placement: Frame, outlet: Frame, note: Note) -> Joint:
    try:
        axis = (0.0, 0.0, 1.0) if part.axis is None else part.axis
        joint = Joint(
            name,
            part.type,
            placement,
            outlet,
            axis,
            part.sequence,
            part.pitch,
            limits_of(part, note),
            part.actuated,
        )
        joint = replace(joint, elements=elements(joint.dof, part.machine))
        if part.axis is not None and part.type not in AXIAL:
            note(
                ("joint", "axis"),
                f"a {part.type} joint takes no axis; those of type {', '.join(AXIAL)} do",
            )
        return joint
    except ModelError as error:
        said = str(error).removeprefix(f"joint {name!r}: ")
        words = said.replace(".", " ").replace(":", " ").split()
        own = [key for key in KEYS if key == words[0]]
        given = ("sequence", "pitch", "axis", "limit")
        key = next((key for key in (*own, *(k for k in given if k in said))), "type")
        if key == "limit":
            key = "limits_deg" if part.limits_deg else "limits"
        note(("joint", key), said)
        return Joint(name, "fixed", placement, outlet)


def shape_of(raw: object) -> Shape:
    """The shape that a mapping says, as in a robot file; ModelError for what is none."""
    if not isinstance(raw, Mapping):
        raise ModelError(f"a shape must be a mapping such as {{'sphere': 0.1}}; got {raw!r:.80}")
    mistakes = Mistakes("a shape")
    part = validate(ShapePart, dict(raw), (), {}, mistakes)
    for path, text in clashes_of_shape(raw, ()):
        mistakes.add(path, text)
    try:
        mistakes.raise_if_any()
    except ModelError as error:
        raise ModelError(str(error).replace("a shape:1:1:", "a shape:")) from None
    assert part is not None
    return _shape(part, (), lambda path, text: None)


def _shape(part: ShapePart, path: Path, note: Note) -> Shape:
    sizes = {
        "box": part.box,
        "cylinder": part.cylinder,
        "capsule": part.capsule,
        "sphere": part.sphere and (part.sphere,),
    }
    kind, size = next((kind, size) for kind, size in sizes.items() if size)
    return Shape(kind, tuple(size), frame_of(part, path, note))


def _tensor(link: LinkPart, note: Note) -> Array:
    """Inertia about the mass centre. One that is not symmetric is noted, and so are negative
    principal moments.

    A tensor about the mass centre given by all its elements is taken as it is, as in URDF:
    Model.check reports inertias that no body can have.
    """
    given = link.inertia
    if isinstance(given, Moments):
        tensor = np.array(
            [
                [given.xx, given.xy, given.xz],
                [given.xy, given.yy, given.yz],
                [given.xz, given.yz, given.zz],
            ]
        )
    else:
        array = np.array(given)
        tensor = np.diag(array) if array.ndim == 1 else array
    scale = float(np.abs(tensor).max())
    if np.abs(tensor - tensor.T).max() > 1e-9 * scale:
        note(("inertia",), "the tensor is not symmetric")
        return np.zeros((3, 3))
    if link.inertia_about == "origin":
        c = np.array(link.com)
        tensor = tensor - link.mass * (c @ c * np.eye(3) - np.outer(c, c))
    moved = link.inertia_about == "origin"
    plain = moved or not (isinstance(given, Moments) or array.ndim == 2)
    if (
        plain
        and scale
        and (least := float(np.linalg.eigvalsh(tensor)[0]))
        < -max(dust(link.mass, tensor), 1e-9 * scale)
    ):
        about = " about the mass centre" if moved else ""
        note(
            ("inertia",),
            f"the tensor{about} has a principal moment of {least:.4g} kg m^2; moments are 0 or "
            "more",
        )
    return tensor


def dust(mass: float, inertia: Array) -> float:
    """A moment of inertia above minus this counts as rounded zero, in kg m^2."""
    return 1e-12 * mass + 1e-9 * float(np.abs(inertia).max())
