"""The numbers of a robot in which its equation of motion is linear, and the robot of such numbers.

Ten of every body, in its frame and about its origin: m, m c (3), Ixx Iyy Izz Ixy Iyz Ixz; then, per
coordinate, armature, viscous damping and Coulomb friction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, real
from ramify.core.errors import ModelError
from ramify.model.body import Body
from ramify.model.elements import Element, Friction
from ramify.model.robot import Robot, the_robot

PER_BODY = 10
R = TypeVar("R", bound=Robot)


def body_parameters(body: Body) -> Array:
    """The ten numbers of a body."""
    m, c = body.mass, body.com
    tensor = body.inertia + m * (c @ c * np.eye(3) - np.outer(c, c))
    return np.array([m, *(m * c), *np.diag(tensor), tensor[0, 1], tensor[1, 2], tensor[0, 2]])


def inertial_parameters(robot: Robot) -> Array:
    """(10 nb,), on a robot with rotors (10 nb + nv,)."""
    rotors = [robot.armature] if any(robot.armature) else []
    return _constant([*map(body_parameters, robot.bodies), *rotors])


def dynamic_parameters(robot: Robot) -> Array:
    """(10 nb + 3 nv,), whatever the robot has."""
    elements = [element for joint in robot.joints for element in joint.machine]
    viscous = [element.damping[0] for element in elements]
    dry = [element.friction.sliding if element.friction else 0.0 for element in elements]
    return _constant([*map(body_parameters, robot.bodies), robot.armature, viscous, dry])


def _constant(parts: list[ArrayLike]) -> Array:
    out: Array = np.concatenate(parts, dtype=np.float64)
    out.flags.writeable = False
    return out


def with_inertial_parameters(model: R, parameters: ArrayLike) -> R:
    """The model whose ``inertial_parameters`` are these: (10 nb,), with nv armatures (10 nb + nv,),
    or with the damping and the Coulomb friction of all coordinates too (10 nb + 3 nv,), as
    ``dynamic_parameters`` has them.

    Raises ModelError for a wrong size, numbers that are not finite, negative masses, armatures or
    friction, and a mass of zero with a first moment. Whether the inertias are those of matter is a
    question for ``check()``.
    """
    the_robot(model)
    nb, nv = len(model.bodies), model.nv
    sizes = (PER_BODY * nb, PER_BODY * nb + nv, PER_BODY * nb + 3 * nv)
    numbers = real("parameters", parameters, ModelError)
    if numbers.ndim != 1 or numbers.size not in sizes:
        raise ModelError(
            f"parameters has shape {numbers.shape}; {model.name} needs ({sizes[0]},), "
            f"({sizes[1]},) with rotors or ({sizes[2]},) with rotors and friction"
        )
    if not np.isfinite(numbers).all():
        i = int(np.argmin(np.isfinite(numbers)))
        raise ModelError(f"parameters[{i}] is {numbers[i]}; it must be finite")
    bodies = [
        with_body_parameters(body, ten)
        for body, ten in zip(model.bodies, numbers[: sizes[0]].reshape(nb, PER_BODY), strict=True)
    ]
    rest = numbers[sizes[0] :]
    if (rest < 0.0).any():
        i = int(np.argmax(rest < 0.0))
        kind = ("armature", "damping", "Coulomb friction")[i // nv]
        raise ModelError(f"{kind} of {model.velocities[i % nv]!r} is {rest[i]:g}; it must be ≥ 0")
    start = 0
    for b, body in enumerate(bodies if rest.size else ()):
        here = slice(start, start + body.joint.dof)
        start += body.joint.dof
        columns = rest.reshape(-1, nv)[:, here].T.tolist()
        pairs = zip(body.joint.machine, columns, strict=True)
        elements = tuple(_with_drive(element, *row) for element, row in pairs)
        if elements != body.joint.machine:
            bodies[b] = replace(body, joint=replace(body.joint, elements=elements))
    return replace(model, bodies=tuple(bodies))


def with_body_parameters(body: Body, ten: Array) -> Body:
    """The body with these ten numbers."""
    m, h = float(ten[0]), ten[1:4]
    if m < 0.0 or (m == 0.0 and h.any()):
        problem = "must be ≥ 0" if m < 0.0 else "cannot be 0 with a first moment"
        raise ModelError(f"the mass of {body.name!r}, {m:g} kg, {problem}")
    if np.array_equal(ten, body_parameters(body)):
        return body
    c = h / m if m else np.zeros(3)
    xx, yy, zz, xy, yz, xz = ten[4:]
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    about_com = tensor - m * (c @ c * np.eye(3) - np.outer(c, c))
    return replace(body, mass=m, com=c, inertia=about_com)


def _with_drive(
    element: Element, armature: float, viscous: float | None = None, dry: float | None = None
) -> Element:
    element = replace(element, armature=armature)
    if viscous is None or dry is None:
        return element
    friction = element.friction
    if friction is not None:
        scale = dry / friction.sliding if friction.sliding else 0.0
        forward, backward = friction.forward * scale, friction.backward * scale
        friction = replace(friction, forward=forward or dry, backward=backward or dry)
    elif dry:
        friction = Friction(dry, dry)
    return replace(element, damping=(viscous, *element.damping[1:]), friction=friction)
