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

from ramify.contact.ground import Reaction
from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.core.records import ships_with_ramify
from ramify.core.scalar import Scalar
from ramify.drives.machine_forces import actuator_text
from ramify.kernels.closed import forward_dynamics
from ramify.kernels.make import algorithm_of
from ramify.kernels.robot_keys import robot_key
from ramify.kernels.text import plain_text
from ramify.kernels.tier_policy import unrolls
from ramify.loops.stabilise import projection
from ramify.model.configuration import coordinate_rates
from ramify.model.pivots import determined
from ramify.model.robot import Robot
from ramify.plant.implicit_rates import implicit_rates
from ramify.plant.plant import Plant
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

    def observe(
        self, t: Scalar, y: Sequence[Scalar], u: Sequence[Scalar]
    ) -> tuple[list[Scalar], list[Scalar], list[Scalar], list[Scalar]]:
        """(a, tau, z', heat'): accelerations, joint forces of controller and table, rates of the
        controller's states, and the power that the ground dissipates, where there is one.
        """
        of_q, of_v, of_z, _ = self.state_slices
        q, v = self.apply_prescribed_motion(t, y[of_q], y[of_v])
        z = list(self.bristles(y[of_z]))
        if self.prescribed is not None:
            a, tau = self._prescribed_motion(t, q, v, u, z)
            return a, tau, self.passive_forces(q, v, z).rates, self._heat(q, v, z)
        rates: list[Scalar]
        tau, rates = [0.0] * self.model.nv, [0.0] * self.controlled
        if not self.sampled:
            tau, rates = self.torque(t, q, v, y[of_z])
        outside = u[: self.model.nv]
        tau = self.driven_within([a + b for a, b in zip(tau, outside, strict=True)])
        net = [f - d * w for f, d, w in zip(tau, self.damping, v, strict=True)]
        if self.pushed:
            net = [f + p for f, p in zip(net, self.pushes(q, u), strict=True)]
        a, heat, bristle_rates = self.accelerations(q, v, net, z)
        return a, tau, [*rates, *bristle_rates], heat

    def accelerations(
        self, q: list[Scalar], v: list[Scalar], net: list[Scalar], z: list[Scalar]
    ) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        """(a, heat', z'): accelerations (nv) under joint forces ``net`` and the machine's passive
        ones, loops honoured; the power lost in the ground, if any, and in the machine; the rates of
        the bristles z.
        """
        passive = self.passive_forces(q, v, z)
        if self.passive_forces:
            net = [f + p for f, p in zip(net, passive.total, strict=True)]
        losses = list(passive.loss.values())
        if self.contact is None:
            return self._dynamics(q, v, net)[0], losses, passive.rates
        if self.model.loops:
            _, reactions, wrenches = self.contact.reactions(q, v)
            (a,) = self._dynamics(q, v, net, wrenches)
        else:
            a, reactions = self.contact.forward_dynamics(q, v, net)
        return a, [_losses(reactions), *losses], passive.rates

    @cached_property
    def _dynamics(self) -> Callable[..., list[list[Scalar]]]:
        """Forward dynamics as a text, under wrenches where there is a ground."""
        wrenches = self.contact is not None
        name = "forward_dynamics_wrenches" if wrenches else "forward_dynamics"
        algorithm = algorithm_of(self.model, name)
        if self.baumgarte:
            algorithm = forward_dynamics(self.model, self.baumgarte, wrenches)
        return plain_text(algorithm, self.model, ())

    def text(
        self, t: Scalar, y: Sequence[Scalar], u: Sequence[Scalar], h: Scalar = 0.0
    ) -> list[Scalar]:
        """y' over any scalar; h: the length of an implicit step, s."""
        of_q, of_v, _, _ = self.state_slices
        with determined(self.model, "simulation"):
            if self.implicit:
                return implicit_rates(self, t, y, u, h)
            a, tau, rates, heat = self.observe(t, y, u)
        q, v = self.apply_prescribed_motion(t, y[of_q], y[of_v])
        out = [*coordinate_rates(self.model, q, v), *a, *rates]
        if not self.counted:
            return out
        powers = [f * w for f, w in zip(tau, v, strict=True)]
        return [*out, *self.counter_rates(q, v, u, powers, heat)]

    def _prescribed_motion(
        self,
        t: Scalar,
        q: list[Scalar],
        v: list[Scalar],
        u: Sequence[Scalar],
        z: list[Scalar],
    ) -> tuple[list[Scalar], list[Scalar]]:
        """(a, tau): friction is overcome where the motion is prescribed, else it acts."""
        assert self.prescribed is not None
        passive = (
            self.passive_forces(q, v, z).total if self.passive_forces else [0.0] * self.model.nv
        )
        resisting = [p - d * w for p, d, w in zip(passive, self.damping, v, strict=True)]
        if self.pushed:
            resisting = [p + f for p, f in zip(resisting, self.pushes(q, u), strict=True)]
        outside = [f + p for f, p in zip(u[: self.model.nv], resisting, strict=True)]
        a, tau = self.prescribed.solve(self.robot_text, t, q, v, outside)
        return a, [f - p for f, p in zip(tau, resisting, strict=True)]

    def _heat(self, q: list[Scalar], v: list[Scalar], z: list[Scalar]) -> list[Scalar]:
        losses = list(self.passive_forces(q, v, z).loss.values())
        ground = [] if self.contact is None else [_losses(self.contact.reactions(q, v)[1])]
        return ground + losses

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


def _losses(reactions: Sequence[Reaction]) -> Scalar:
    """The power that the ground dissipates."""
    heat: Scalar = 0.0
    for reaction in reactions:
        heat = heat + reaction.loss
    return heat
