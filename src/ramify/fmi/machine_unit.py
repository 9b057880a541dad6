"""A machine as the model of a functional mock-up unit: its variables and its programs.

The states are x = [q, v, z], with z the states of the controller, the deflections of bristles and
the activations of commanded actuators; the inputs are joint forces or commands; the outputs are the
states, the joint forces, the poses of frames and the forces of the ground.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.core.errors import ModelError, SimulationError
from ramify.core.records import flatten
from ramify.core.scalar import Scalar
from ramify.drives.machine_forces import actuator_text
from ramify.drives.places import Places
from ramify.loops.stabilise import moved_by_small_step, projection
from ramify.plant.field import Field
from ramify.trace.differentiate import tangent
from ramify.trace.program import Port, Program, trace

Inputs = Literal["forces", "commands", "none"]
Causality = Literal["independent", "local", "input", "output", "parameter"]


@dataclass(frozen=True)
class UnitVariable:
    """One scalar variable; ``derivative``: the reference of the state whose rate it is."""

    reference: int
    name: str
    causality: Causality
    unit: str
    description: str
    start: float | None = None
    derivative: int | None = None


@dataclass(frozen=True, eq=False)
class MachineUnit:
    """A right-hand side, the start (x), what drives it from outside, the frames it shows and
    whether it has directional derivatives.
    """

    field: Field
    start: Array
    driven: Inputs
    frames: tuple[str, ...]
    derivatives: bool

    def __post_init__(self) -> None:
        robot, control = self.field.model, self.field.control
        if not self.field.traceable:
            raise SimulationError(
                "the controller is a Python function, which a mock-up unit cannot hold; use a "
                "controller of rf.control, or close the loop in the program that imports the unit"
            )
        if self.field.sampled:
            raise SimulationError(
                "the controller is sampled (rate_hz); a mock-up unit holds continuous ones only: "
                "leave rate_hz out, or close the loop in the program that imports the unit"
            )
        if self.field.prescribed is not None:
            raise SimulationError("a prescribed motion cannot be exported; use computed torque")
        if self.driven == "commands" and not robot.actuators:
            raise ModelError(f"{robot.name} has no actuators to command; use inputs='forces'")
        if self.driven == "commands" and control is not None:
            raise ModelError("inputs='commands' and a controller exclude each other")
        for name in self.frames:
            robot.attachment(name)

    # ---- variables ----

    @cached_property
    def variables(self) -> list[UnitVariable]:
        """All variables; a reference is the place in this list."""
        rows = [
            UnitVariable(0, "time", "independent", "s", "Time"),
            *self._state_variables(),
            *self._input_variables(),
            *self._output_variables(),
        ]
        for name in self.points:
            text = f"depth of {name} in the ground: an indicator"
            rows.append(UnitVariable(0, f"depth.{name}", "local", "m", text))
        text = "relative tolerance of co-simulation"
        rows.append(UnitVariable(0, "relative_tolerance", "parameter", "1", text, start=1e-9))
        twice = [name for name, count in Counter(x.name for x in rows).items() if count > 1]
        if twice:
            raise ModelError(
                f"two variables of the unit would have the name {twice[0]!r}; rename the link or "
                "frame, or leave it out of frames="
            )
        return [replace(row, reference=i) for i, row in enumerate(rows)]

    def _state_variables(self) -> Iterator[UnitVariable]:
        """The states, which follow the time, and their rates."""
        robot = self.field.model
        steps = [step for joint in robot.joints for step in joint.steps]
        names = [f"q.{name}" for name in robot.coordinates]
        names += [f"v.{name}" for name in robot.velocities]
        names += [f"z.{i + 1}" for i in range(self.states - robot.nq - robot.nv)]
        units = ["1" if step.ball else step.unit for step in steps for _ in step.positions]
        units += [f"{step.unit}/s" for step in steps]
        units += ["1"] * (self.states - len(units))
        shown = robot.nq + robot.nv
        for i, (name, unit, x) in enumerate(zip(names, units, self.start, strict=True)):
            kind = "coordinate" if i < robot.nq else "velocity" if i < shown else "internal state"
            causality: Causality = "output" if i < shown else "local"
            yield UnitVariable(0, name, causality, unit, f"{kind} {name[2:]}", start=x)
        for i, (name, unit) in enumerate(zip(names, units, strict=True)):
            rate = "1/s" if unit == "1" else f"{unit}2" if unit.endswith("/s") else f"{unit}/s"
            text = f"rate of {name}"
            yield UnitVariable(0, f"der({name})", "local", rate, text, derivative=i + 1)

    def _forces(self) -> list[tuple[str, str]]:
        """(name, unit) of the joint forces."""
        robot = self.field.model
        steps = [step for joint in robot.joints for step in joint.steps]
        units = ["N.m" if step.unit == "rad" else "N" for step in steps]
        return list(zip(robot.velocities, units, strict=True))

    def _input_variables(self) -> Iterator[UnitVariable]:
        if self.driven == "commands":
            for actuator in self.field.model.actuators:
                text = f"command of actuator {actuator.name}"
                yield UnitVariable(0, f"command.{actuator.name}", "input", "1", text, start=0.0)
        elif self.driven == "forces":
            for name, unit in self._forces():
                text = f"joint force {name} from outside"
                yield UnitVariable(0, f"force.{name}", "input", unit, text, start=0.0)

    def _output_variables(self) -> Iterator[UnitVariable]:
        """The outputs that are not states."""
        for name, unit in self._forces():
            text = f"joint force {name} of all drives"
            yield UnitVariable(0, f"drive.{name}", "output", unit, text)
        for name in self.frames:
            for axis in "xyz":
                text = f"place of {name} in the world, {axis}"
                yield UnitVariable(0, f"{name}.{axis}", "output", "m", text)
            for i, k in product(range(1, 4), repeat=2):
                text = f"rotation matrix of {name}, row {i}, column {k}"
                yield UnitVariable(0, f"{name}.R{i}{k}", "output", "1", text)
        for name in self.points:
            for axis in "xyz":
                text = f"force of the ground on {name}"
                yield UnitVariable(0, f"ground.{name}.{axis}", "output", "N", text)

    @property
    def points(self) -> tuple[str, ...]:
        """The points that touch the ground."""
        return () if self.field.contact is None else self.field.contact.names

    @property
    def states(self) -> int:
        """The number of states."""
        return len(self.start)

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return sum(x.causality == "input" for x in self.variables)

    @property
    def shown(self) -> int:
        """The number of outputs that are not states."""
        return self.field.model.nv + 12 * len(self.frames) + 3 * len(self.points)

    # ---- programs ----

    @cached_property
    def programs(self) -> list[Program]:
        """rates(t, x, u), outputs(t, x, u), closed(x) and, on a ground, indicators(x)."""
        x = Port("x", (self.states,))
        taken = (Port("t", (1,)), x, Port("u", (max(self.inputs, 1),)))
        programs = [
            trace("rates", self._rates, taken, (Port("dx", (self.states,)),)),
            trace("outputs", self._outputs, taken, (Port("w", (self.shown,)),)),
            trace("closed", self._closed, (x,), (Port("y", (self.states,)),)),
        ]
        if self.points:
            depths = (Port("depth", (len(self.points),)),)
            programs.append(trace("indicators", self._indicators, (x,), depths))
        return programs

    @cached_property
    def tangents(self) -> list[Program]:
        """Rates, outputs and indicators along a direction in their inputs, where they are
        wanted.
        """
        smooth = [p for p in self.programs if self.derivatives and p.name != "closed"]
        return [tangent(p, range(len(p.inputs))) for p in smooth]

    def _inputs(
        self, x: Sequence[Scalar], u: Sequence[Scalar]
    ) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        """(y, tau, dz/dt): the state of the right-hand side, joint forces from outside, and the
        rates of the activations.
        """
        robot, field = self.field.model, self.field
        q, v, z = self._parts(x)
        states = z[: field.states]
        y = [*q, *v, *states, *[0.0] * (field.size - robot.nq - robot.nv - len(states))]
        if self.driven != "commands":
            return y, list(u) if self.driven == "forces" else [0.0] * robot.nv, []
        found = actuator_text(robot)(q, v, u, z[len(states) :])
        return y, found.tau, found.rates

    def _parts(self, x: Sequence[Scalar]) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        nq, n = self.field.model.nq, self.field.model.nq + self.field.model.nv
        return list(x[:nq]), list(x[nq:n]), list(x[n:])

    def _rates(
        self, t: Sequence[Scalar], x: Sequence[Scalar], u: Sequence[Scalar]
    ) -> list[list[Scalar]]:
        y, tau, activation = self._inputs(x, u)
        rates = self.field.text(t[0], y, tau)[: self.states - len(activation)]
        return [[*rates, *activation]]

    def _outputs(
        self, t: Sequence[Scalar], x: Sequence[Scalar], u: Sequence[Scalar]
    ) -> list[list[Scalar]]:
        y, tau, _ = self._inputs(x, u)
        q, v, _ = self._parts(x)
        out = list(self.field.observe(t[0], y, tau).tau)
        if self.frames:
            places = Places(self.field.model, q)
            for name in self.frames:
                pose = places.pose(name)
                out += flatten([pose.r, *pose.R.rows])
        if self.field.contact is not None:
            for reaction in self.field.contact.reactions(q, v)[1]:
                out += flatten(reaction.force)
        return [out]

    def _closed(self, x: Sequence[Scalar]) -> list[list[Scalar]]:
        """The state with its loops closed and its quaternions of length one."""
        robot = self.field.model
        q, v, z = self._parts(x)
        if robot.loops:
            q, v = projection(robot)(q, v)
        return [[*moved_by_small_step(robot, q, [0.0] * robot.nv), *v, *z]]

    def _indicators(self, x: Sequence[Scalar]) -> list[list[Scalar]]:
        assert self.field.contact is not None
        q, v, _ = self._parts(x)
        return [[reaction.depth for reaction in self.field.contact.reactions(q, v)[1]]]
