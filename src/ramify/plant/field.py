"""The equations of motion of a controlled robot as one text: y' = f(t, y, u).

The state is y = [q, v, z, work, loss], and on a ground one more, heat: coordinates, velocities, the
states of the controller and of the bristles of LuGre friction, the work of the actuators, what
friction in the joints and what the ground have dissipated, integrated with the rest so that every
run can be audited. ``u`` are joint forces from outside: a table, or the output of a sampled
controller, constant between samples; they are followed by the external wrenches on the links that
are pushed, whose work then follows the losses in y. Everything is a function of scalars, so the
whole right-hand side, controller and ground included, is compiled as one kernel. Where several
drives act, their work one by one comes last in y.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.core.records import ships_with_ramify
from ramify.core.scalar import Scalar
from ramify.drives.machine_forces import actuator_text
from ramify.kernels.robot_keys import robot_key
from ramify.kernels.tier_policy import unrolls
from ramify.loops.stabilise import projection
from ramify.model.configuration import coordinate_rates
from ramify.model.pivots import determined
from ramify.model.robot import Robot
from ramify.plant.implicit_rates import implicit_rates
from ramify.plant.plant import Plant
from ramify.plant.right_hand_side import Observed, counter_rates, observe, products
from ramify.plant.text_parts import TextParts
from ramify.runtime.cache_keys import digest
from ramify.runtime.compile import FunctionPointer
from ramify.runtime.compiled_program import CompiledProgram
from ramify.trace.program import Port, Program, trace


class FieldEntry(NamedTuple):
    """The compiled right-hand side for one state. ``call`` (t (1), y, inputs) -> y', or None for
    what the kernel refuses; ``inputs`` is u followed by the field's ``numbers``.
    """

    compute: FunctionPointer
    call: Callable[[Array, Array, Array], Array | None]


class Stepped(Protocol):
    """What a compiled stepper needs to know of a right-hand side."""

    @property
    def model(self) -> Robot: ...
    @property
    def size(self) -> int: ...
    @property
    def state_slices(self) -> tuple[slice, slice, slice, slice]: ...
    @property
    def program(self) -> Program: ...
    @property
    def rising(self) -> tuple[int, ...]: ...
    @property
    def projection(self) -> Program: ...
    @property
    def fingerprint(self) -> str: ...


@dataclass(frozen=True)
class Field(Plant):
    """The equations of motion of a plant, as texts and compiled."""

    @cached_property
    def steps_checked(self) -> set[tuple[str, float]]:
        """Methods and steps whose stability with this machine has been checked."""
        return set()

    def with_parameters_of(self, y: Array) -> Field:
        """The field with the parameters that these rows (..., size) have."""
        return self

    @cached_property
    def parts(self) -> TextParts:
        """The parts of the machine, as texts."""
        return TextParts(self)

    def observe(self, t: Scalar, y: Sequence[Scalar], u: Sequence[Scalar]) -> Observed:
        """What acts in the state y, and the accelerations, over any scalar."""
        return observe(self.parts, t, y, u)

    def text(
        self, t: Scalar, y: Sequence[Scalar], u: Sequence[Scalar], h: Scalar = 0.0
    ) -> list[Scalar]:
        """y' over any scalar; h: the length of an implicit step, s."""
        of_q, of_v, _, _ = self.state_slices
        with determined(self.model, "simulation"):
            if self.implicit:
                return implicit_rates(self, t, y, u, h)
            observed = self.observe(t, y, u)
        q, v = self.apply_prescribed_motion(t, y[of_q], y[of_v])
        out = [*coordinate_rates(self.model, q, v), *observed.a, *observed.state_rates]
        if not self.counted:
            return out
        powers = products(observed.tau, v)
        return [*out, *counter_rates(self.parts, v, powers, observed.forces, observed.loss_powers)]

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The inputs of ``program``, without tracing it."""
        return (
            Port("t", (1 + self.implicit,)),
            Port("y", (self.size,)),
            Port("u", (self.input_size,)),
        )

    @property
    def output(self) -> Port:
        """The output of ``program``."""
        return Port("rates", (self.size,))

    @cached_property
    def program(self) -> Program:
        """The traced right-hand side: inputs t (1), implicit [t, h], y, u; output y'."""

        def text(
            t: Sequence[Scalar], y: Sequence[Scalar], u: Sequence[Scalar]
        ) -> list[list[Scalar]]:
            return [self.text(t[0], y, u, *t[1:])]

        return trace("field", text, self.inputs, (self.output,))

    @cached_property
    def fingerprint(self) -> str:
        """Everything that determines the compiled code."""
        law = repr(self.control)
        if self.traceable and not (
            ships_with_ramify(self.control) and ships_with_ramify(self.ground)
        ):
            law = self.program.digest  # a law written elsewhere may change while its repr does not
        ground = "" if self.contact is None else self.contact.fingerprint
        efforts = self.efforts and self.effort_ranges
        return digest(
            robot_key(self.model),
            law,
            repr(self.damping),
            repr((self.baumgarte, efforts, self.implicit, self.counted, self.drives)),
            self.passive_forces.fingerprint,
            actuator_text(self.model).fingerprint if self.model.actuators else "",
            *filter(None, [ground]),
            *(["pushed", *self.pushed] if self.pushed else []),
            *(["hard", self.hard_slots.fingerprint] if self.hard_slots else []),
            *([self.program.digest] if self.loads else []),
        )

    @cached_property
    def projection(self) -> Program:
        """y -> y with its loops closed, for a model that has some."""
        project, n = projection(self.model), self.model.nq

        def text(t: Sequence[Scalar], y: Sequence[Scalar]) -> list[list[Scalar]]:
            of_q, of_v, _, _ = self.state_slices
            q, v = project(y[of_q], y[of_v])
            return [[*q, *v, *y[n + len(v) :]]]

        return trace("projection", text, self.inputs[:2], (Port("closed", (self.size,)),))

    @cached_property
    def compiles(self) -> bool:
        """Whether the whole right-hand side is compiled; with hard contact, the whole step."""
        return self.traceable and unrolls(self.model)

    @cached_property
    def entry(self) -> FieldEntry:
        """The compiled right-hand side of one state."""
        code = CompiledProgram("field", lambda: self.program, self.fingerprint)
        call = code.call(self.inputs, (self.output,), lambda *_: None)
        return FieldEntry(code.function(), call)

    @property
    def numbers(self) -> Array:
        """The numbers that follow the forces in u, for code shared by many robots."""
        return np.empty(0)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that make this field, by name."""
        return {f.name: getattr(self, f.name) for f in fields(Field)}

    @cached_property
    def implicitly(self) -> Field:
        """This field for implicit schemes."""
        return replace(self, implicit=True)

    @cached_property
    def bare(self) -> Field:
        """This field without its controller, whose forces then come from outside."""
        return replace(self, control=None)

    def accelerated(self, t: Array, y: Array, outside: Array) -> Array | None:
        """dv/dt (T, nv) at rows of t (T), y and the forces from outside, by code shared with
        other robots; None for a field that has none.
        """
        return None
