"""The equations of motion with constants of the machine as inputs: y' = f(t, [y, p], u), p' = 0.

The values p are states that do not change, so that every state of a batch has its own
robot, and derivatives by them come out like those by the start.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final

import numpy as np

from ramify.contact.ground import Ground
from ramify.contact.grounds import as_ground
from ramify.contact.robot_on_ground import ContactText
from ramify.control.controller import Controller
from ramify.control.function_controller import as_controller
from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.core.errors import SimulationError
from ramify.core.records import settle
from ramify.core.scalar import Scalar
from ramify.documents.kinds import keys_of
from ramify.drives.machine_forces import passive_text
from ramify.drives.passive import PassiveText, joint_inertia, joint_load
from ramify.dynamics.parameters import (
    Parameter,
    ParameterTable,
    Values,
    by_name,
    chosen,
    rate_unit,
    rigid_parameters,
    tree_with,
)
from ramify.dynamics.tree import tree_of
from ramify.kernels.closed import closed_algorithms, dense_weight, inertia_weight
from ramify.loops.stabilise import projection
from ramify.model.elements import Element, Friction, Spring
from ramify.model.machine import Actuator
from ramify.model.robot import Robot, known_answer, once, the_robot
from ramify.plant.field import Field
from ramify.plant.make_field import ControlLike, GroundLike
from ramify.runtime.cache_keys import digest
from ramify.trace.program import Port, Program, trace

_SLIP_SPEED: Final = 0.01
"""rad/s or m/s at which dry friction is rounded off where the robot itself has none."""
_OTHERS: Final = ("actuated", "limits", "rate_hz", "sensor", "points", "terrain")
"""Fields of controllers and grounds that are not numbers of their laws."""


def parameters(
    model: Robot, control: ControlLike = None, ground: GroundLike = None
) -> Mapping[str, Parameter]:
    """The constants of a robot, and of a controller and a ground, that ``parameters=``
    may vary, by name; each Parameter has its own numbers and their unit. Print it as a table.

    In addition to those of the tree (mass, com, inertia, payload, armature, position, gravity):
    JOINT.damping, JOINT.friction and JOINT.stiffness (one per rate), ACTUATOR.gain, control.kp and
    other numbers of the controller, ground.stiffness and other numbers of the ground.
    """
    the_robot(model)
    law = as_controller(control, model)
    terrain = as_ground(ground, model)
    return _parameters_of(model, law, None if terrain is None else terrain.fitted(model))


def _parameters_of(
    model: Robot, control: Controller | None, ground: Ground | None
) -> Mapping[str, Parameter]:
    table = ParameterTable({**rigid_parameters(model), **machine_parameters(model)})
    for whose, part in (("control", control), ("ground", ground)):
        for name, (numbers, unit) in _numbers(part, whose).items():
            table[name] = Parameter(name, numbers, unit or ("SI" if part is control else "1"))
    return table


@once
def machine_parameters(model: Robot) -> Mapping[str, Parameter]:
    table = []
    for joint in model.joints:
        elements, name = joint.machine, joint.name
        table += [
            Parameter(
                f"{name}.damping", tuple(e.damping[0] for e in elements),
                rate_unit(joint, "N m s/rad", "N s/m"), 0.0,
            ),
            Parameter(
                f"{name}.friction",
                tuple(0.0 if e.friction is None else e.friction.sliding for e in elements),
                rate_unit(joint, "N m", "N"), 0.0,
            ),
        ]  # fmt: skip
        if not any(step.ball for step in joint.steps) and joint.kind != "free":
            stiffness = tuple(0.0 if e.spring is None else e.spring.stiffness[0] for e in elements)
            unit = rate_unit(joint, "N m/rad", "N/m")
            table.append(Parameter(f"{name}.stiffness", stiffness, unit, 0.0))
    table += [Parameter(f"{a.name}.gain", (a.gain[0],), "SI") for a in model.actuators]
    return {parameter.name: parameter for parameter in table}


_GAINS: Final = {
    "kp": "N m/rad or N/m",
    "ki": "N m/(rad s) or N/(m s)",
    "kd": "N m s/rad or N s/m",
    "ComputedTorque.kp": "1/s^2",
    "ComputedTorque.kd": "1/s",
}


def _numbers(part: object, path: str) -> dict[str, tuple[tuple[float, ...], str]]:
    """The numbers of a law by their path with their unit, those of its parts too."""
    out: dict[str, tuple[tuple[float, ...], str]] = {}
    if not is_dataclass(part):
        return out
    keys = keys_of(type(part))
    for f in fields(part):
        value = getattr(part, f.name)
        if f.name in _OTHERS or isinstance(value, bool):
            continue
        unit = (keys[f.name].unit if f.name in keys else "") or _GAINS.get(
            f"{type(part).__name__}.{f.name}", _GAINS.get(f.name, "")
        )
        if isinstance(value, float):
            out[f"{path}.{f.name}"] = (value,), unit
        elif isinstance(value, tuple) and value and isinstance(value[0], float):
            out[f"{path}.{f.name}"] = value, unit
        elif isinstance(value, tuple) and value and isinstance(value[0], Controller):
            for i, item in enumerate(value):
                out |= _numbers(item, f"{path}.{i}")
    return out


def with_numbers(part: Any, path: str, values: Values) -> Any:
    """A law with other numbers, unchecked: they may be scalars of any kind."""
    if not is_dataclass(part) or not any(name.startswith(f"{path}.") for name in values):
        return part
    law = copy.copy(part)
    for f in fields(law):
        value, name = getattr(law, f.name), f"{path}.{f.name}"
        if name in values:
            numbers = values[name]
            settle(law, **{f.name: tuple(numbers) if isinstance(value, tuple) else numbers[0]})
        elif isinstance(value, tuple) and value and isinstance(value[0], Controller):
            parts = [with_numbers(x, f"{path}.{i}", values) for i, x in enumerate(value)]
            settle(law, **{f.name: tuple(parts)})
    return law


def _element(element: Element, slip: float, values: Mapping[str, Any]) -> Element:
    if "damping" in values:
        element = replace(element, damping=(values["damping"], *element.damping[1:]))
    if "friction" in values:
        law, force = element.friction or Friction(0.0, 0.0), values["friction"]
        skew = 0.5 * (law.forward - law.backward) / law.sliding if law.sliding else 0.0
        forward, backward = force * (1.0 + skew), force * (1.0 - skew)
        law = replace(law, forward=forward, backward=backward, slip_speed=slip)
        element = replace(element, friction=law)
    if "stiffness" in values:
        law_of_spring = element.spring or Spring((0.0, 0.0, 0.0))
        stiffness = (values["stiffness"], *law_of_spring.stiffness[1:])
        element = replace(element, spring=replace(law_of_spring, stiffness=stiffness))
    return element


def elements_with(model: Robot, values: Values) -> list[tuple[Element, ...]]:
    """The elements of each joint with other damping, friction and stiffness."""
    slips = passive_text(model)
    out, j = [], 0
    for joint in model.joints:
        elements = []
        for i, element in enumerate(joint.machine):
            slip = _SLIP_SPEED if element.friction is None else slips.slip(j)
            changes = {
                kind: values[f"{joint.name}.{kind}"][i]
                for kind in ("damping", "friction", "stiffness")
                if f"{joint.name}.{kind}" in values
            }
            elements.append(_element(element, slip, changes) if changes else element)
            j += 1
        out.append(tuple(elements))
    return out


def actuators_with(model: Robot, values: Values) -> tuple[Actuator, ...]:
    """The actuators with other gains; those of servos pull back as strongly."""
    drives = []
    for actuator in model.actuators:
        gain = values.get(f"{actuator.name}.gain")
        if gain:
            k, bias = gain[0], actuator.bias
            servo = actuator.gain[0] == -bias[1]
            actuator = copy.copy(actuator)
            settle(actuator, gain=(k, *actuator.gain[1:]))
            if servo:
                settle(actuator, bias=(bias[0], -k, bias[2]))
        drives.append(actuator)
    return tuple(drives)


def robot_with(model: Robot, values: Values) -> Robot:
    """A robot with constants that may be scalars of any kind: for texts alone."""
    robot = copy.copy(model)
    bodies = []
    for body, elements in zip(model.bodies, elements_with(model, values), strict=True):
        joint = body.joint
        if any(new is not old for new, old in zip(elements, joint.machine, strict=True)):
            body, joint = copy.copy(body), copy.copy(joint)
            settle(joint, elements=elements)
            settle(body, joint=joint)
        bodies.append(body)
    machine = copy.copy(model.machine)
    settle(machine, actuators=actuators_with(model, values))
    settle(robot, bodies=tuple(bodies), machine=machine)
    settle(robot, skeleton=model.skeleton)
    known_answer(robot, tree_of, tree_with(model, values))
    for ask in (joint_inertia, joint_load, closed_algorithms, inertia_weight, dense_weight):
        if model.loops or ask in (joint_inertia, joint_load):
            known_answer(robot, ask, ask(model))
    return robot


@dataclass(frozen=True)
class VariedField(Field):
    """A field some of whose constants are the last entries of y."""

    varied: tuple[Parameter, ...] = ()

    @cached_property
    def state_size(self) -> int:
        """The size of y without the parameters."""
        return super().size

    @property
    def size(self) -> int:
        return self.state_size + sum(p.size for p in self.varied)

    @cached_property
    def passive_forces(self) -> PassiveText:
        """The passive forces of a robot that has all parts which the parameters may add."""
        values = {p.name: [x or 1e-300 for x in p.nominal] for p in self.varied}
        return passive_text(robot_with(self.model, values), self.stops, self.passive)

    def at(self, values: Values) -> Field:
        """The field where the parameters have these values."""
        control = with_numbers(self.control, "control", values)
        model = robot_with(self.model, values)
        field = Field(**self.options | {"model": model, "control": control})
        if self.contact is not None:
            contact: ContactText = copy.copy(self.contact)
            contact.ground = with_numbers(contact.ground, "ground", values)
            contact._tree = tree_of(field.model)
            settle(field, contact=contact)
        return field

    def with_parameters_of(self, y: Array) -> Field:
        return self.at(by_name(self.varied, [*np.moveaxis(y[..., self.state_size :], -1, 0)]))

    def text(
        self, t: Scalar, y: Sequence[Scalar], u: Sequence[Scalar], h: Scalar = 0.0
    ) -> list[Scalar]:
        field = self.at(by_name(self.varied, y[self.state_size :]))
        try:
            rates = field.text(t, y[: self.state_size], u, h)
        except TypeError as error:
            names = ", ".join(p.name for p in self.varied)
            raise SimulationError(
                f"one of the parameters {names} decides how the equations are written, so it "
                f"cannot vary from state to state ({error})"
            ) from error
        return [*rates, *[0.0] * (self.size - self.state_size)]

    def states_at_start(
        self, q: Sequence[Scalar], v: Sequence[Scalar], p: Sequence[Scalar] = ()
    ) -> list[Scalar]:
        return self.at(by_name(self.varied, p)).states_at_start(q, v)

    @cached_property
    def projection(self) -> Program:
        n = self.model.nq

        def text(t: Sequence[Scalar], y: Sequence[Scalar]) -> list[list[Scalar]]:
            of_q, of_v, _, _ = self.state_slices
            robot = self.at(by_name(self.varied, y[self.state_size :])).model
            q, v = projection(robot)(y[of_q], y[of_v])
            return [[*q, *v, *y[n + len(v) :]]]

        return trace("projection", text, self.inputs[:2], (Port("closed", (self.size,)),))

    @cached_property
    def fingerprint(self) -> str:
        return digest("varied", super().fingerprint, *(p.name for p in self.varied))


def varied_start(
    field: Field, names: Sequence[str], q: Array, v: Array, values: Array
) -> tuple[VariedField, Array]:
    """The field with these constants as states, and y (..., size) at the start with the values
    (..., p) of the parameters; SimulationError where it is not compiled.
    """
    if field.hard is not None:
        raise SimulationError(
            "hard contact does not take parameters yet: roll out one robot at a time, or take "
            "ground= for a compliant ground"
        )
    if not field.bare.compiles:
        raise SimulationError(
            f"parameters need compiled steps, and {field.model.name!r} is too large for them"
        )
    if field.sampled != field.sampled_without_states:
        raise SimulationError(
            f"{type(field.control).__name__} is sampled and has states; with "
            "parameters leave rate_hz out"
        )
    if not (field.traceable or field.sampled_without_states):
        raise SimulationError(
            "parameters need compiled steps, which cannot call a Function at every stage: give the "
            "function itself (control=f), which is called once a step, or a rate_hz"
        )

    def make() -> VariedField:
        varied = tuple(chosen(known_parameters(field), names, field.model.name))
        return VariedField(**field.options, varied=varied)

    varied_field = field.memo.remember(("varied", *names), make)
    return varied_field, varied_field.start(q, v, values)


def known_parameters(field: Field) -> Mapping[str, Parameter]:
    """The constants that may vary in a right-hand side."""
    ground = None if field.contact is None else field.contact.ground
    return _parameters_of(field.model, field.control, ground)
