"""Passive forces of a robot's machine as kernels, and how they enter inverse and forward
dynamics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, numbers, real, unknown_states
from ramify.core.errors import ModelError, StateError
from ramify.core.scalar import Scalar
from ramify.drives.actuators import ActuatorText
from ramify.drives.joint_drives import ACTIVATED, DRIVES
from ramify.drives.joint_elements import BRISTLES, DYNAMICS, ELEMENTS, JOINT_PARTS, law_columns
from ramify.drives.passive import Forces, PassiveText
from ramify.dynamics.tree import tree_of
from ramify.kernels.derivative_kernels import text_derivatives
from ramify.kernels.make import kernel, make_kernel
from ramify.kernels.robot_keys import robot_key
from ramify.kernels.rolled_tier import rolled
from ramify.kernels.text_kernel import text_kernel
from ramify.kernels.tier_policy import Tier
from ramify.model.configuration import checked
from ramify.model.robot import Robot, once
from ramify.runtime.backend import ArrangedOutputs, Backend, PlainNumpy, Summed, scattered
from ramify.runtime.cache_keys import digest
from ramify.runtime.kernel import Kernel
from ramify.trace.program import Port, Program, trace


class Passive(NamedTuple):
    """``total`` (..., nv) of the passive joint forces and its ``parts`` by name; what they store
    (J) and lose (W) by part, each (...); ``bristle_rate`` (..., bristles) of LuGre friction, if
    its state is an input.
    """

    total: Array
    parts: Mapping[str, Array]
    stored: Mapping[str, Array]
    loss: Mapping[str, Array]
    bristle_rate: Array | None = None


def passive_text(
    robot: Robot, stops: bool = True, rest: bool = True, dry: bool = True
) -> PassiveText:
    """The passive forces of a robot, with or without its stops, all the rest, and dry friction."""
    key = f"passive text {stops} {rest} {dry}"
    return robot.memo.remember(key, lambda: PassiveText(robot, stops, rest, dry))


def passive_kernel(text: PassiveText, tier: str | None = None, bristles: bool = False) -> Kernel:
    """(q, v) -> (total, force of each part …, stored, loss); with the states of ``bristles`` as a
    further input and their rates as a further output.
    """
    key = f"passive_forces/{tier} {text.stops} {text.rest} {bristles}"
    return text.robot.memo.remember(key, lambda: _make_passive_kernel(text, tier, bristles))


def _make_passive_kernel(text: PassiveText, tier: str | None, bristles: bool) -> Kernel:
    robot, name = text.robot, "passive_forces"

    def run(q: list[Scalar], v: list[Scalar], *z: list[Scalar]) -> list[list[Scalar]]:
        return _listed(text, text(q, v, *z), bool(z))

    n, k = robot.nv, len(text.parts)
    outputs = [Port("total", (n,)), *(Port(part, (n,)) for part in text.parts)]
    outputs += [Port("stored", (k,)), Port("loss", (k,))]
    inputs = [Port("q", (robot.nq,)), Port("v", (n,))]
    if bristles:
        inputs.append(Port("bristles", (len(text.bristles),)))
        outputs.append(Port("bristle_rates", (len(text.bristles),)))
    return text_kernel(
        robot, name, run, inputs, outputs,
        lambda _: digest(robot_key(robot), text.fingerprint, f"{name} {bristles}"), tier,
        lambda: _loops(text, bristles),
    )  # fmt: skip


def _listed(text: PassiveText, forces: Forces, bristles: bool) -> list[list[Scalar]]:
    """The outputs of a kernel of passive forces."""
    losses = [forces.loss.get(part, 0.0) for part in text.parts]
    rates = [forces.rates] if bristles else []
    return [forces.total, *forces.force.values(), list(forces.stored.values()), losses, *rates]


def _loops(text: PassiveText, bristles: bool) -> Backend:
    """Rolled code of the forces of single coordinates, arranged as outputs of the kernel; NumPy
    adds the forces that concern several coordinates at once.
    """
    robot, n = text.robot, len(JOINT_PARTS)
    algorithm = BRISTLES if bristles else ELEMENTS
    places = {rate: k for k, rate in enumerate(text.bristles)}
    spread = {"bristles": scattered(robot.nv, places)}
    extras = law_columns(text.joint_laws)
    loops = rolled(algorithm, robot, tree_of(robot), extras, spread if bristles else {})
    chosen = [JOINT_PARTS.index(part) if part in JOINT_PARTS else -1 for part in text.parts]
    every, none = range(robot.nv), [-1] * robot.nv
    results: list[tuple[int, Sequence[int]]] = [(0, every)]
    results += [(1 + i, every) if i >= 0 else (0, none) for i in chosen]
    results += [(1 + n, chosen), (2 + n, chosen), *([(3 + n, text.bristles)] if bristles else [])]
    arranged = ArrangedOutputs(
        loops, [robot.nv] * (1 + n) + [n, n] + [robot.nv] * bristles, results
    )
    if text.by_joint:
        return arranged

    def several(q: list[Scalar], v: list[Scalar], *z: list[Scalar]) -> list[list[Scalar]]:
        return _listed(text, text.of_several(q, v), bool(z))

    return Summed(arranged, PlainNumpy(several))


def machine_dynamics(
    robot: Robot, name: str, tier: Tier | None = None, stops: bool = True, rest: bool = True
) -> Kernel | None:
    """Inverse or forward dynamics with the passive forces in one kernel; None where some of these
    concern several coordinates at once.
    """
    text = passive_text(robot, stops, rest)
    if not text.by_joint or robot.loops:
        return None
    if not text:
        return kernel(robot, name, tier)
    return robot.memo.remember(
        f"machine {name}/{tier} {stops} {rest}",
        lambda: make_kernel(robot, DYNAMICS[name], tier, columns=law_columns(text.joint_laws)),
    )


def passive_forces(
    robot: Robot, q: ArrayLike, v: ArrayLike, stops: bool = True, rest: bool = True,
    bristles: ArrayLike | None = None,
) -> Passive:  # fmt: skip
    """See Model.passive_forces."""
    text = passive_text(robot, stops, rest)
    inputs: list[ArrayLike] = []
    if bristles is not None and (text.bristles or real("bristles", bristles).size):
        wanted = f"one entry per joint with LuGre friction, {len(text.bristles)}"
        inputs.append(numbers("bristles", bristles, len(text.bristles), wanted, unknown=True))
    if not text:
        sizes = {"q": (q, robot.nq), "v": (v, robot.nv)}
        state = [checked(robot, name, x, n, True) for name, (x, n) in sizes.items()]
        unknown = unknown_states(*state)
        return Passive(np.where(unknown[..., None], np.nan, np.zeros(robot.nv)), {}, {}, {})
    total, *others = passive_kernel(text, None, bool(inputs))(q, v, *inputs)
    parts, (stored, loss, *rates) = others[: len(text.parts)], others[len(text.parts) :]
    return Passive(
        total,
        dict(zip(text.parts, parts, strict=True)),
        {part: stored[..., i] for i, part in enumerate(text.parts)},
        {part: loss[..., i] for i, part in enumerate(text.parts)},
        *rates,
    )


class ActuatorForces(NamedTuple):
    """``tau`` (..., nv): joint forces of the actuators, within the efforts of the joints; ``force``
    (..., na) of each actuator; ``activation_rate`` (..., states).
    """

    tau: Array
    force: Array
    activation_rate: Array


@once
def actuator_text(robot: Robot) -> ActuatorText:
    """The actuators of a robot."""
    return ActuatorText(robot)


def actuator_kernel(robot: Robot, tier: str | None = None) -> Kernel:
    """(q, v, command, activation) -> (tau, force, rates); without activations these
    ports are absent.
    """
    return robot.memo.remember(
        f"actuator_forces/{tier}", lambda: _make_actuator_kernel(robot, tier)
    )


def _make_actuator_kernel(robot: Robot, tier: str | None) -> Kernel:
    text, n = actuator_text(robot), len(robot.actuators)

    def run(
        q: list[Scalar], v: list[Scalar], u: list[Scalar], *w: list[Scalar]
    ) -> list[list[Scalar]]:
        driving = text(q, v, u, *w or [[]])
        return [driving.tau, driving.force, *([driving.rates] if w else [])]

    inputs = [Port("q", (robot.nq,)), Port("v", (robot.nv,)), Port("command", (n,))]
    outputs = [Port("tau", (robot.nv,)), Port("force", (n,))]
    if text.states:
        inputs.append(Port("activation", (text.states,)))
        outputs.append(Port("rates", (text.states,)))
    name = "actuator_forces"
    return text_kernel(
        robot, name, run, inputs, outputs,
        lambda _: digest(robot_key(robot), text.fingerprint, name), tier,
        lambda: _drive_loops(text),
    )  # fmt: skip


def _drive_loops(text: ActuatorText) -> Backend:
    """Rolled code of the actuators that drive a coordinate alone, arranged as outputs of the
    kernel; NumPy adds the forces of the others.
    """
    robot = text.robot
    at = {i: j for j, (i, _) in text.alone.items()}
    active = [i for i, a in enumerate(text.actuators) if a.activation]
    states = {i: k for k, i in enumerate(active) if i in at}
    spread = {
        "command": scattered(robot.nv, {rate: i for i, rate in at.items()}),
        "activation": scattered(robot.nv, {at[i]: k for i, k in states.items()}),
    }
    algorithm = ACTIVATED if active else DRIVES
    extras = law_columns(text.drive_laws)
    loops = rolled(algorithm, robot, tree_of(robot), extras, spread)
    results: list[tuple[int, Sequence[int]]] = [(0, range(robot.nv))]
    results.append((1, [at.get(i, -1) for i in range(len(text.actuators))]))
    results += [(2, [at.get(i, -1) for i in active])] if active else []
    arranged = ArrangedOutputs(loops, [robot.nv] * len(results), results)
    if not text.several:
        return arranged

    def several(
        q: list[Scalar], v: list[Scalar], u: list[Scalar], *w: list[Scalar]
    ) -> list[list[Scalar]]:
        driving = text.of_several(q, v, u, *w or [[]])
        return [driving.tau, driving.force, driving.rates][: len(results)]

    return Summed(arranged, PlainNumpy(several))


def _refuse_none(robot: Robot) -> None:
    if not robot.actuators:
        raise ModelError(f"{robot.name} has no actuators; joint forces act as they are given")


def actuator_forces(
    robot: Robot, q: ArrayLike, v: ArrayLike, command: ArrayLike, activation: ArrayLike | None
) -> ActuatorForces:
    """See Model.actuator_forces."""
    _refuse_none(robot)
    text = actuator_text(robot)
    u = numbers("command", command, len(robot.actuators), "one entry per actuator", unknown=True)
    if not text.states:
        if activation is not None and real("activation", activation).size:
            raise StateError(f"no actuator of {robot.name} has an activation; leave it out")
        tau, force = actuator_kernel(robot)(q, v, u)
        return ActuatorForces(tau, force, np.zeros((*tau.shape[:-1], 0)))
    activations = np.zeros(text.states) if activation is None else activation
    wanted = "one entry per actuator that has one"
    w = numbers("activation", activations, text.states, wanted, unknown=True)
    return ActuatorForces(*actuator_kernel(robot)(q, v, u, w))


def machine_derivatives(
    robot: Robot, name: str, inputs: Sequence[ArrayLike], stops: bool = True, rest: bool = True
) -> tuple[tuple[Array, ...], ...]:
    """Derivatives of ``passive_forces`` (of its total, by q, v and bristles where given) or of
    ``actuator_forces`` (of tau, force and the rates, by q, v, command and activation): see
    Model.derivatives.
    """
    if name == "actuator_forces":
        _refuse_none(robot)
        kernel = actuator_kernel(robot)
        key = actuator_text(robot).fingerprint
        return text_derivatives(robot, name, lambda: kernel.program, key, inputs)
    text, bristles = passive_text(robot, stops, rest), len(inputs) > 2

    def of() -> Program:
        sizes = {"q": robot.nq, "v": robot.nv, "bristles": len(text.bristles)}
        ports = [Port(key, (n,)) for key, n in list(sizes.items())[: 3 if bristles else 2]]
        return trace(
            name,
            lambda *x: [text(*x).total if text else [0.0] * robot.nv],
            ports,
            [Port("total", (robot.nv,))],
        )

    return text_derivatives(robot, name, of, f"{text.fingerprint} {bristles}", inputs)
