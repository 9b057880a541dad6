"""Commands to the actuators of a robot, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ramify.control.controller import CONTROLLERS, ControlForces, Controller
from ramify.control.robot_text import RobotText
from ramify.core.arrays import real
from ramify.core.errors import StateError
from ramify.core.messages import near, shown
from ramify.core.names import mapping_of
from ramify.core.records import settle
from ramify.core.scalar import Scalar, Scalars
from ramify.documents.forms import ByName, Either, Number, Numbers
from ramify.documents.kinds import OneOf, key
from ramify.drives.actuators import Driving
from ramify.drives.machine_forces import actuator_text
from ramify.model.driven import Driven
from ramify.model.robot import Robot, the_robot
from ramify.motion.coordinate_reader import AnyLength
from ramify.motion.trajectory import MOTIONS, Row, Trajectory, row

Command = float | Trajectory


@CONTROLLERS.add("commands")
@dataclass(frozen=True)
class Commands(Controller):
    """The robot's own actuators under ``commands``, {actuator: number, or a motion of one
    coordinate}; those that are not named get 0.

    activation: the activations at the start, one per actuator that has one, by default 0 (then
    ``Commands.to(model, …)`` knows how many). Raises StateError for an unknown actuator.
    """

    commands: Any = field(metadata=key(ByName(AnyLength(Either(Number(), OneOf(MOTIONS))))))
    activation: Any = field(default=(), metadata=key(Numbers(single=True)))

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.commands, Mapping | tuple):
            raise StateError("commands must map names of actuators to numbers or motions")
        try:
            pairs = dict(mapping_of("commands", dict(self.commands)))
        except (TypeError, ValueError):
            raise StateError(
                f"commands must map names of actuators to numbers or motions; got "
                f"{shown(self.commands)}"
            ) from None
        for name, value in pairs.items():
            if isinstance(value, Trajectory):
                if value.n != 1:
                    raise StateError(f"the motion for {name!r} has {value.n} coordinates, not 1")
            else:
                pairs[name] = row(f"the command of {name!r}", value)[0]
        activation = (
            row("activation", self.activation) if real("activation", self.activation).size else ()
        )
        settle(self, commands=tuple(pairs.items()), activation=activation)

    @classmethod
    def to(cls, model: Robot, commands: Mapping[str, Command]) -> Commands:
        """The commands to a robot's actuators, all activations starting at 0. Raises StateError
        for an unknown actuator.
        """
        the_robot(model)
        commanded = cls(commands, (0.0,) * actuator_text(model).states)
        commanded.check(model)
        return commanded

    @property
    def states(self) -> int:
        return len(self.activation)

    @property
    def start(self) -> Row:
        return self.activation

    @property
    def traceable(self) -> bool:
        return all(not isinstance(x, Trajectory) or x.traceable for _, x in self.commands)

    def check(self, model: Robot) -> None:
        names = [a.name for a in model.actuators]
        for name, _ in self.commands:
            if name not in names:
                hint = near(name, names) if names else "; it has none"
                raise StateError(f"{model.name} has no actuator {name!r}{hint}")
        wanted = actuator_text(model).states
        if len(self.activation) != wanted:
            raise StateError(
                f"{wanted} actuators of {model.name} have an activation, and {self.states} are "
                "given; use Commands.to(model, commands)"
            )

    def text(
        self, robot: RobotText, t: Scalar, q: Scalars, v: Scalars, z: Scalars
    ) -> ControlForces:
        """(tau, dz/dt): joint forces (nv) of the actuators, and the rates of their activations."""
        driving = self.driving(robot.model, t, *self.observation(robot, t, q, v), z)
        return driving.tau, driving.rates

    def driving(self, model: Robot, t: Scalar, q: Scalars, v: Scalars, z: Scalars) -> Driving:
        """What the actuators do under their commands."""
        commands = dict(self.commands)
        u = [commands.get(a.name, 0.0) for a in model.actuators]
        u = [x.text(t)[0][0] if isinstance(x, Trajectory) else x for x in u]
        return actuator_text(model)(q, v, u, z)

    def law(
        self, robot: RobotText, driven: Driven, t: Scalar, q: Scalars, v: Scalars, z: Scalars
    ) -> ControlForces:
        tau, rates = self.text(robot, t, q, v, z)
        return [tau[j] for j in driven.v], rates
