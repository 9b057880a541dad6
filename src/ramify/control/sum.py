"""Controllers that act together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ramify.control.controller import CONTROLLERS, ControlForces, Controller
from ramify.control.follow import sums
from ramify.control.robot_text import RobotText
from ramify.core.errors import StateError
from ramify.core.records import settle
from ramify.core.scalar import Scalar, Scalars
from ramify.documents.forms import Listed
from ramify.documents.kinds import OneOf, key
from ramify.model.driven import Driven
from ramify.model.robot import Robot
from ramify.motion.trajectory import Row


@CONTROLLERS.add("sum")
@dataclass(frozen=True)
class Sum(Controller):
    """The forces of all ``parts`` together; each part keeps its own joints and limits, and limits
    of the sum come last.

    It drives what its parts drive unless ``actuated`` narrows that down. Its states are those of
    the parts, one after the other. Parts are sampled together or not at all: their rate is the
    sum's.

    Raises StateError without parts, for a part that is not a controller, and where rates differ.
    """

    parts: Any = field(metadata=key(Listed(OneOf(CONTROLLERS))))

    def __post_init__(self) -> None:
        super().__post_init__()
        parts = tuple(self.parts) if isinstance(self.parts, (list, tuple)) else (self.parts,)
        for i, part in enumerate(parts):
            if not isinstance(part, Controller):
                raise StateError(f"Sum: part {i} is a {type(part).__name__}, not a controller")
            if part.prescribes:
                raise StateError(
                    f"Sum: part {i} prescribes a motion; such joints take no further forces, use "
                    "it alone"
                )
        if not parts:
            raise StateError("Sum needs at least one controller")
        rate = parts[0].rate_hz if self.rate_hz is None else self.rate_hz
        for i, part in enumerate(parts):
            if part.rate_hz != rate and not (part.rate_hz is None and self.rate_hz is not None):
                raise StateError(
                    f"Sum: part {i} has rate_hz {part.rate_hz}, not {rate}; leave the rates to "
                    "the sum, which samples all parts. A slow policy above fast servos is a loop "
                    "of rollouts with the servos as control and tau from the policy"
                )
        settle(self, parts=parts, rate_hz=rate)

    @property
    def traceable(self) -> bool:
        return all(part.traceable for part in self.parts)

    @property
    def states(self) -> int:
        return sum(part.states for part in self.parts)

    @property
    def start(self) -> Row:
        return tuple(x for part in self.parts for x in part.start)

    def state_count(self, robot: RobotText) -> int:
        return sum(part.state_count(robot) for part in self.parts)

    def states_at_start(self, robot: RobotText, q: Scalars, v: Scalars) -> list[Scalar]:
        return [x for part in self.parts for x in part.states_at_start(robot, q, v)]

    def driven(self, robot: RobotText) -> Driven:
        if self.actuated is not None:
            return robot.driven(self.actuated)
        chosen = {j for part in self.parts for j in part.driven(robot).v}
        return robot.driven(tuple(robot.model.velocities[j] for j in sorted(chosen)))

    def check(self, model: Robot) -> None:
        """Check each part, then the joints and limits of the sum."""
        for part in self.parts:
            part.check(model)
        robot = RobotText(model)
        self.limits_of(robot, self.driven(robot))

    def law(
        self, robot: RobotText, driven: Driven, t: Scalar, q: Scalars, v: Scalars, z: Scalars
    ) -> ControlForces:
        forces: list[list[Scalar]] = []
        rates: list[Scalar] = []
        for part in self.parts:
            states = z[len(rates) : len(rates) + part.state_count(robot)]
            tau, moved = part.text(robot, t, q, v, states)
            forces.append([tau[j] for j in driven.v])
            rates += moved
        return sums(*forces), rates


def parts_of(control: Controller | None) -> tuple[Controller, ...]:
    """A controller's parts, or itself."""
    if control is None:
        return ()
    return control.parts if isinstance(control, Sum) else (control,)
