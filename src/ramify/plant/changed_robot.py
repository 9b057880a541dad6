"""A robot with other constants, by the names under which rollouts vary them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.errors import ModelError, StateError
from ramify.dynamics.parameters import by_name, chosen, packed, rigid_parameters
from ramify.model.body import Body
from ramify.model.edits import with_gravity, with_payload
from ramify.model.elements import Element
from ramify.model.frame import Frame
from ramify.model.robot import Robot, the_robot
from ramify.plant.varied_field import actuators_with, elements_with, machine_parameters

R = TypeVar("R", bound=Robot)
NumbersByName = Mapping[str, Sequence[float]]


def with_parameters(model: R, parameters: Mapping[str, ArrayLike]) -> R:
    """The model with other constants: {name: value}, names and units as in ``rf.parameters(model)``
    and in the ``parameters=`` of rollouts, one value each.

    Raises ModelError for an unknown name, StateError for a value that does not fit.
    """
    the_robot(model)
    constants = {**rigid_parameters(model), **machine_parameters(model)}
    for name in parameters if isinstance(parameters, Mapping) else ():
        part = str(name).partition(".")[0]
        if part in ("control", "ground") and name not in constants:
            raise ModelError(
                f"{name!r} is not a constant of the robot; give it to the {part} itself"
            )
    names, values = packed(constants, parameters, model.name)
    if values.ndim != 1:
        raise StateError(
            f"parameters has values for {values.shape[:-1]} states; one robot has one value each: "
            "for many use rf.rollout(…, parameters=…)"
        )
    return robot_with_numbers(model, by_name(chosen(constants, names, model.name), values.tolist()))


def robot_with_numbers(model: R, values: NumbersByName) -> R:
    """The model with these checked numbers; those of a controller or a ground are left out."""
    elements = elements_with(model, values)
    bodies = tuple(_body(b, new, values) for b, new in zip(model.bodies, elements, strict=True))
    machine = replace(model.machine, actuators=actuators_with(model, values))
    robot = replace(model, bodies=bodies, machine=machine)
    for link in model.attached:
        if f"{link}.payload" in values:
            robot = with_payload(robot, link, values[f"{link}.payload"][0])
    return with_gravity(robot, values["gravity"]) if "gravity" in values else robot


def _body(body: Body, elements: tuple[Element, ...], values: NumbersByName) -> Body:
    joint = body.joint
    rotors = values.get(f"{joint.name}.armature", list(joint.armature))
    elements = tuple(replace(e, armature=x) for e, x in zip(elements, rotors, strict=True))
    if elements != joint.machine:
        joint = replace(joint, elements=elements)
    if place := values.get(f"{joint.name}.position"):
        joint = replace(joint, placement=Frame(joint.placement.rotation, np.array(place)))
    mass, com, six = (values.get(f"{body.name}.{kind}") for kind in ("mass", "com", "inertia"))
    body = body if mass is None else replace(body, mass=mass[0])
    body = body if com is None else replace(body, com=np.array(com))
    if six is not None:
        xx, yy, zz, xy, yz, xz = six
        body = replace(body, inertia=np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    return body if joint is body.joint else replace(body, joint=joint)
