"""Right-hand sides of what is differentiated: of the motion alone, and of motion and direction side
by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ramify.core.cached import cached_property
from ramify.core.scalar import Scalar, sqrt
from ramify.emit.stepper import StateLayout
from ramify.integrate.stepping import Stepper
from ramify.model.robot import Robot
from ramify.plant.field import Field
from ramify.plant.varied_field import VariedField
from ramify.runtime.cache_keys import digest
from ramify.trace.differentiate import tangent
from ramify.trace.interpret import replay
from ramify.trace.program import Port, Program, trace


@dataclass(frozen=True)
class MotionField:
    """The right-hand side of x alone, for the steppers."""

    field: Field

    @property
    def model(self) -> Robot:
        return self.field.model

    @cached_property
    def places_in_y(self) -> tuple[int, ...]:
        """The places in y that make x."""
        last = self.field.state_slices[2].stop
        without_parameters = (
            self.field.state_size if isinstance(self.field, VariedField) else self.field.size
        )
        return (*range(last), *range(without_parameters, self.field.size))

    @property
    def size(self) -> int:
        return len(self.places_in_y)

    @property
    def state_slices(self) -> tuple[slice, slice, slice, slice]:
        a, b, c, _ = self.field.state_slices
        return a, b, c, slice(c.stop, c.stop)

    def _of(self, program: Program, name: str) -> Program:
        """A program of y as one of x."""
        size, places = self.field.size, self.places_in_y

        def text(t: Any, x: Any, *u: Any) -> list[list[Scalar]]:
            y: list[Scalar] = [0.0] * size
            for i, value in zip(places, x, strict=True):
                y[i] = value
            values = replay(program, [t, y, *u], [program.results[0][i] for i in places])
            return [[values[program.results[0][i]] for i in places]]

        inputs = (program.inputs[0], Port("x", (self.size,)), *program.inputs[2:])
        return trace(name, text, inputs, (Port("rates", (self.size,)),))

    @cached_property
    def program(self) -> Program:
        return self._of(self.field.program, "motion")

    @cached_property
    def projection(self) -> Program:
        return self._of(self.field.projection, "closed_motion")

    @property
    def rising(self) -> tuple[int, ...]:
        return ()

    @cached_property
    def fingerprint(self) -> str:
        return digest("motion", self.field.fingerprint)

    @cached_property
    def start(self) -> Program | None:
        """x -> x as a run starts: z follows from q, v and p; None where there is none."""
        of_q, of_v, of_z, _ = self.state_slices
        if not self.field.states:
            return None

        def text(x: Any) -> list[list[Scalar]]:
            z = self.field.states_at_start(x[of_q], x[of_v], x[of_z.stop :])
            return [[*x[: of_z.start], *z, *x[of_z.stop :]]]

        return trace("start", text, (Port("x", (self.size,)),), (Port("start", (self.size,)),))

    def finish(self, project: bool) -> Program | None:
        """(t, x) -> x as a step leaves it: quaternions of length one, loops closed; None where
        there are none.
        """
        balls = self.model.layout.balls
        if not (balls or project):
            return None

        def text(t: Any, x: Any) -> list[list[Scalar]]:
            out = list(x)
            for i, _ in balls:
                q = out[i : i + 4]
                k = 1.0 / sqrt(q[0] * q[0] + (q[1] * q[1] + (q[2] * q[2] + q[3] * q[3])))
                out[i : i + 4] = [e * k for e in q]
            if project:
                values = replay(self.projection, [t, out])
                out = [values[node] for node in self.projection.results[0]]
            return [out]

        ports = (Port("t", (1,)), Port("x", (self.size,)))
        return trace("finish", text, ports, (Port("x", (self.size,)),))


@dataclass(frozen=True)
class TangentField:
    """The right-hand side of [x, dx] under [u, du]."""

    motion: MotionField
    project: bool

    @property
    def model(self) -> Robot:
        return self.motion.model

    @property
    def size(self) -> int:
        return 2 * self.motion.size

    @property
    def state_slices(self) -> tuple[slice, slice, slice, slice]:
        return self.motion.state_slices

    @cached_property
    def program(self) -> Program:
        return self.with_tangent(self.motion.program)

    @cached_property
    def projection(self) -> Program:
        finish = self.motion.finish(self.project)
        assert finish is not None
        return self.with_tangent(finish)

    @property
    def rising(self) -> tuple[int, ...]:
        return ()

    @cached_property
    def fingerprint(self) -> str:
        return digest("tangents", self.motion.fingerprint, str(self.project))

    def with_tangent(self, program: Program) -> Program:
        """A program (t, x, …) -> … with its derivatives after its results."""
        by = range(1, len(program.inputs))
        slopes = tangent(program, by)

        def text(t: Any, *pairs: Any) -> list[list[Scalar]]:
            halves = [(x[: len(x) // 2], x[len(x) // 2 :]) for x in pairs]
            plain, rates = ([half[k] for half in halves] for k in (0, 1))
            out: list[Scalar] = []
            for part, inputs in ((program, [t, *plain]), (slopes, [t, *plain, *rates])):
                values = replay(part, inputs)
                out += [values[node] for node in part.results[0]]
            return [out]

        inputs = (program.inputs[0], *(Port(p.name, (2 * p.size,)) for p in program.inputs[1:]))
        return trace(program.name, text, inputs, (Port("rates", (2 * program.outputs[0].size,)),))


class TangentStepper(Stepper):
    """Steps of states and directions side by side."""

    field: TangentField

    @cached_property
    def layout(self) -> StateLayout:
        n, nq = self.field.motion.size, self.field.model.nq
        return StateLayout(2 * n, (), (*range(nq), *range(n, n + nq)))

    @cached_property
    def position(self) -> Program:
        plain = Stepper(self.field.motion, self.scheme).position
        return self.field.with_tangent(plain)
