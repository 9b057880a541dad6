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
from ramify.documents.forms import Reading
from ramify.documents.mistakes import Path
from ramify.files.frame_schema import ZERO, Triple
from ramify.files.inertia_rule import dust, fault_of
from ramify.files.robot_schema import Z_AXIS, JointPart, LinkPart, UnnamedJointPart
from ramify.model.build import LinkSpec
from ramify.model.dh import dh_frames
from ramify.model.elements import elements
from ramify.model.frame import Frame
from ramify.model.joint import Joint

AXIAL: Final = ("revolute", "prismatic", "helical", "cylindrical", "planar")
ANGULAR: Final = ("revolute", "helical", "universal", "spherical")
"""Joint types with an axis; those whose coordinates are angles."""


def link_spec(link: LinkPart, path: Path, reading: Reading) -> LinkSpec:
    """The link under the names of its own scope. What is wrong is noted, and something harmless put
    in its place.
    """
    outlet = Frame() if link.outlet is None else link.outlet.to_frame((*path, "outlet"), reading)
    placement = Frame() if link.frame is None else link.frame.to_frame((*path, "frame"), reading)
    if link.dh is not None:
        placement, _ = dh_frames("modified", *link.dh.columns)
    if link.classical_dh is not None:
        placement, outlet = dh_frames("classical", *link.classical_dh.columns)
    at = (*path, "joint")
    return LinkSpec(
        link.name,
        link.parent,
        _joint(link.joint, link.joint.name or link.name, placement, outlet, at, reading),
        link.mass,
        np.array(link.com),
        _tensor(link, (*path, "inertia"), reading),
        tuple(x.to_shape((*path, "shapes", i), reading) for i, x in enumerate(link.shapes)),
        tuple(link.points.items()),
        _lift(link),
    )


def _lift(link: LinkPart) -> tuple[float, Triple]:
    """The mass that gravity compensation carries, and its centre: a share of the link, or given."""
    given = link.gravity_compensation
    if isinstance(given, Mapping):
        return (given["mass"], given.get("com", ZERO)) if given["mass"] else (0.0, ZERO)
    return (given * link.mass, link.com) if given else (0.0, ZERO)


def renamed(spec: LinkSpec, full: Callable[[str], str]) -> LinkSpec:
    """The link under the names that the robot has for it."""
    return replace(
        spec,
        name=full(spec.name),
        parent=None if spec.parent is None else full(spec.parent),
        joint=replace(spec.joint, name=full(spec.joint.name)),
        points=tuple((full(name), point) for name, point in spec.points),
        shapes=tuple(replace(x, name=full(x.name)) if x.name else x for x in spec.shapes),
    )


def limits_of(
    part: UnnamedJointPart, path: Path, reading: Reading
) -> tuple[tuple[float, float], ...]:
    """The limits of a joint in rad or m; degrees of what is not an angle are noted as a mistake."""
    if part.limits_deg and part.type not in ANGULAR:
        text = f"the coordinates of a {part.type} joint are not all angles"
        reading.refuse((*path, "limits_deg"), f"{text}; give its limits as limits")
    degrees = ((math.radians(low), math.radians(high)) for low, high in part.limits_deg)
    return tuple(part.limits or degrees)


def _joint(
    part: JointPart, name: str, placement: Frame, outlet: Frame, path: Path, reading: Reading
) -> Joint:
    try:
        joint = Joint(
            name,
            part.type,
            placement,
            outlet,
            part.axis or Z_AXIS,
            part.sequence,
            part.pitch,
            limits_of(part, path, reading),
            part.actuated,
            backwards=part.backwards,
        )
        joint = replace(joint, elements=elements(joint.dof, part.machine))
    except ModelError as error:
        wrong = error.key or ("type",)
        if wrong == ("limits",) and part.limits_deg:
            wrong = ("limits_deg",)
        reading.refuse((*path, *wrong), str(error).removeprefix(f"joint {name!r}: "))
        return Joint(name, "fixed", placement, outlet)
    if part.axis is not None and part.type not in AXIAL:
        text = f"a {part.type} joint takes no axis; those of type {', '.join(AXIAL)} do"
        reading.refuse((*path, "axis"), text)
    return joint


def _tensor(link: LinkPart, path: Path, reading: Reading) -> Array:
    """Inertia about the mass centre. Mistakes are noted: one that is not symmetric, one that no
    file may have (``inertia_rule``), one that is impossible once moved to the mass centre.
    """
    rows = np.array(link.inertia)
    tensor, moved = np.diag(rows) if rows.ndim == 1 else rows, link.inertia_about == "origin"
    scale = float(np.abs(tensor).max())
    if np.abs(tensor - tensor.T).max() > 1e-9 * scale:
        reading.refuse(path, "the tensor is not symmetric")
        return np.zeros((3, 3))
    if moved:
        c = np.array(link.com)
        tensor = tensor - link.mass * (c @ c * np.eye(3) - np.outer(c, c))
    if moved and scale:
        least = float(np.linalg.eigvalsh(tensor)[0])
        if least < -max(dust(link.mass, tensor), 1e-9 * scale):
            text = "the tensor about the mass centre has a principal moment of"
            reading.refuse(path, f"{text} {least:.4g} kg m^2; moments are 0 or more")
    elif fault := fault_of(link.mass, tensor, rows=rows.ndim > 1):
        reading.refuse(path, fault)
    return tensor
