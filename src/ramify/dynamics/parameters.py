"""Constants of a robot as inputs: the tree with masses, mass centres, inertias, payloads, rotors,
places of joints or gravity that are scalars of any kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, real, together
from ramify.core.errors import ModelError, StateError
from ramify.core.messages import near, shown
from ramify.core.scalar import Scalar
from ramify.core.spatial import NO_TENSOR, ZERO, Mat3, RigidInertia, Sym3, Vec3
from ramify.dynamics.tree import Tree, tree_of
from ramify.model.body import Body
from ramify.model.joint import Joint
from ramify.model.link import Link, Pose
from ramify.model.robot import Robot, once
from ramify.model.skeleton import as_pose

T = TypeVar("T")
Values = Mapping[str, Sequence[Scalar]]
"""Numbers by the name of their parameter."""


MACHINE = ("damping", "friction", "stiffness", "gain")
"""Kinds of parameters that passive forces and actuators have, and the tree has not."""


@dataclass(frozen=True)
class Parameter:
    """A constant of a robot by name: its own numbers (``nominal``), their unit, and the least value
    that makes sense.
    """

    name: str
    nominal: tuple[float, ...]
    unit: str
    least: float = -math.inf

    @property
    def size(self) -> int:
        return len(self.nominal)


class ParameterTable(dict[str, Parameter]):
    """Parameters by name, which print as a table."""

    def __str__(self) -> str:
        wide = max(map(len, self), default=0)
        return "\n".join(
            f"{name:{wide}}  {', '.join(f'{x:g}' for x in p.nominal)} {p.unit}"
            for name, p in self.items()
        )


def rate_unit(joint: Joint, turning: str, sliding: str) -> str:
    """The unit of a number per rate of a joint; both where it turns and slides."""
    kinds = {step.unit for step in joint.steps}
    return " or ".join(unit for kind, unit in (("rad", turning), ("m", sliding)) if kind in kinds)


@once
def rigid_parameters(model: Robot) -> Mapping[str, Parameter]:
    """The parameters of a robot's tree by name.

    BODY.mass (kg), BODY.com (3, m), BODY.inertia (6: xx yy zz xy yz xz about the mass centre,
    kg m^2), all in the body's frame; LINK.payload (kg): a point mass at the origin of any link;
    JOINT.armature (one per rate); JOINT.position (3, m): of the joint in its parent's frame, in
    trees; gravity (3, m/s^2).
    """
    parameters = [Parameter("gravity", tuple(float(g) for g in model.gravity), "m/s^2")]
    for body in model.bodies:
        unit = rate_unit(body.joint, "kg m^2", "kg")
        parameters += [
            Parameter(f"{body.name}.mass", (body.mass,), "kg", 0.0),
            Parameter(f"{body.name}.com", tuple(body.com.tolist()), "m"),
            Parameter(f"{body.name}.inertia", _six(body), "kg m^2"),
            Parameter(f"{body.joint.name}.armature", body.joint.armature, unit, 0.0),
        ]
        if not model.loops:
            at = tuple(body.joint.placement.position.tolist())
            parameters.append(Parameter(f"{body.joint.name}.position", at, "m"))
    for link, (b, _) in model.attached.items():
        if b >= 0:
            parameters.append(Parameter(f"{link}.payload", (0.0,), "kg", 0.0))
    return {parameter.name: parameter for parameter in parameters}


def _six(body: Body) -> tuple[float, ...]:
    """xx yy zz xy yz xz of its inertia."""
    return tuple(body.inertia[(0, 1, 2, 0, 1, 0), (0, 1, 2, 1, 2, 2)].tolist())


def chosen(
    parameters: Mapping[str, Parameter], names: Iterable[str], whose: str
) -> list[Parameter]:
    """The parameters of these names; ModelError for an unknown one."""
    out = []
    for name in names:
        if not isinstance(name, str) or name not in parameters:
            part = next((x for x in ("control", "ground") if str(name).startswith(f"{x}.")), "")
            kind = str(name).rpartition(".")[2]
            there = any(key.endswith(f".{kind}") for key in parameters)
            if not part and kind in MACHINE and not there:
                raise ModelError(
                    f"{name!r} belongs to the machine of {whose}, not to its rigid bodies: "
                    "inverse and forward dynamics with passive=True, rf.rollout and its "
                    "derivatives take it; here you can vary masses, mass "
                    "centres, inertias, payloads, rotors, places of joints and gravity"
                )
            here = any(x.startswith(f"{part}.") for x in parameters)
            alike = here or not part
            hint = near(str(name), list(parameters)) if alike else f"; give {part}= with it"
            raise ModelError(f"{whose} has no parameter {shown(name)}{hint}")
        out.append(parameters[name])
    return out


def packed(
    parameters: Mapping[str, Parameter], values: Mapping[str, ArrayLike], whose: str
) -> tuple[tuple[str, ...], Array]:
    """The names and their values side by side (..., size in all): of one number as (...), of
    several as (..., size). Raises StateError for values that do not fit.
    """
    if not isinstance(values, Mapping) or not values:
        raise StateError("parameters must map names such as 'link.mass' to numbers, at least one")
    columns, leads = [], {}
    for parameter in chosen(parameters, values, whose):
        name, size = parameter.name, parameter.size
        a = real(name, values[name])
        a = a[..., None] if size == 1 else a
        if a.shape[-1:] != (size,):
            raise StateError(f"{name} has shape {a.shape}; it must be (..., {size})")
        if not (np.isfinite(a).all() and (a >= parameter.least).all()):
            bad = a[~(np.isfinite(a) & (a >= parameter.least))][0]
            least = "" if parameter.least == -math.inf else f" and ≥ {parameter.least:g}"
            raise StateError(f"{name} is {bad:g} {parameter.unit}; it must be finite{least}")
        if name.endswith(".inertia"):
            _check_tensors(name, a)
        columns.append(a)
        leads[name] = a.shape[:-1]
    if len(columns) == 1:
        return tuple(values), columns[0]
    lead = together(**leads)
    return tuple(values), np.concatenate(
        [np.broadcast_to(a, (*lead, a.shape[-1])) for a in columns], axis=-1
    )


def _check_tensors(name: str, six: Array) -> None:
    tensor = six[..., (0, 3, 5, 3, 1, 4, 5, 4, 2)].reshape(*six.shape[:-1], 3, 3)
    moments = np.linalg.eigvalsh(tensor)
    if (moments[..., 0] < -1e-9 * np.abs(moments[..., 2])).any():
        raise StateError(f"{name} has a negative principal moment for some state")


def by_name(parameters: Sequence[Parameter], flat: Sequence[T]) -> dict[str, list[T]]:
    """Numbers side by side as a list for each parameter."""
    out: dict[str, list[T]] = {}
    start = 0
    for parameter in parameters:
        out[parameter.name] = list(flat[start : start + parameter.size])
        start += parameter.size
    return out


def tree_with(model: Robot, values: Values) -> Tree:
    """The tree of a robot with these values; names that are not the tree's own are left out."""
    tree, skeleton = tree_of(model), model.skeleton
    links = list(tree.links)
    for b, body in enumerate(model.bodies):
        mass, com, six = (values.get(f"{body.name}.{kind}") for kind in ("mass", "com", "inertia"))
        k = skeleton.last[b]
        if mass or com or six:
            xx, yy, zz, xy, yz, xz = six or _six(body)
            about_com = mass[0] if mass else body.mass, Vec3(*(com or body.com.tolist()))
            M = _seated(*about_com, Sym3(xx, yy, zz, xy, xz, yz), links[k].seat)
            links[k] = replace(links[k], M=M)
        first = k - body.joint.dof + 1
        for i, rotor in enumerate(values.get(f"{body.joint.name}.armature", ())):
            links[first + i] = replace(links[first + i], rotor=rotor)
        place = values.get(f"{body.joint.name}.position")
        if place:
            links[first] = _moved(model, links, first, b, Vec3(*place))
    for link, seat in model.attached.items():
        payload = values.get(f"{link}.payload")
        if payload:
            k = skeleton.last[seat.body]
            at = links[k].seat.point(Vec3(*seat.frame.position.tolist()))
            point = RigidInertia(payload[0], ZERO, NO_TENSOR).shift(at)
            links[k] = replace(links[k], M=links[k].M + point)
    gravity = tree.gravity
    if "gravity" in values:
        gravity = as_pose(skeleton.root).R.transposed_times(Vec3(*values["gravity"]))
    return replace(tree, links=tuple(links), gravity=gravity)


def _seated(mass: Scalar, com: Vec3, tensor: Sym3, seat: Pose) -> RigidInertia:
    """The inertia of a body about the origin of its link, in the link's frame."""
    about_com = RigidInertia(mass, ZERO, tensor.rotate(seat.R))
    return about_com.shift(seat.point(com))


def _moved(model: Robot, links: Sequence[Link], k: int, b: int, place: Vec3) -> Link:
    """The first link of a joint at another place in its parent's frame: what it carries moves
    along.
    """
    body = model.bodies[b]
    shift = place - Vec3(*body.joint.placement.position.tolist())
    seat: Callable[[Vec3], Vec3] = as_pose(model.skeleton.root).R.transposed_times
    if body.parent >= 0:
        R: Mat3 = links[model.skeleton.last[body.parent]].seat.R
        seat = R.__matmul__
    return replace(links[k], r0=links[k].r0 + seat(shift))
