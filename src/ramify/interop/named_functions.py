"""The functions of a robot that other libraries may call, by name: every algorithm, poses of
frames, the machine's forces, its accelerations and its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ramify.core.arrays import real
from ramify.core.errors import RamifyError, SimulationError, StateError
from ramify.core.messages import near
from ramify.core.scalar import Scalar
from ramify.drives.machine_forces import actuator_text, passive_text
from ramify.integrate.integrators import AUTO, scheme_of
from ramify.integrate.machine_steps import batch_method, refuse_implicit, warn_of_stiff_joints
from ramify.interop.differentiable import Differentiable
from ramify.interop.step_text import step_text
from ramify.kernels.algorithms import ALGORITHMS
from ramify.kernels.closed import closed_algorithms
from ramify.kernels.columns import Which
from ramify.kernels.make import algorithm_of, kernel
from ramify.kernels.robot_keys import robot_key
from ramify.model.pivots import determined
from ramify.model.robot import Robot
from ramify.plant.field import Field
from ramify.plant.make_field import PlantOptions, make_field
from ramify.runtime.cache_keys import digest
from ramify.trace.interpret import replay
from ramify.trace.program import Port, Program, trace

Row = list[Scalar]


def named_function(robot: Robot, name: str, options: dict[str, Any]) -> Differentiable:
    """The function of that name. Options: ``body`` and ``point`` of "jacobian" and "jacobian_rate",
    ``body`` of "pose"; ``dt`` and ``method`` of "step"; ``control``, ``ground``, ``damping``,
    ``passive``, ``stops`` and ``efforts`` of "step" and "acceleration", as in ``rf.rollout``.
    """
    make = _MAKERS.get(name, partial(_algorithm, name=name)) if isinstance(name, str) else None
    if make is None or (name not in _MAKERS and name not in _algorithms(robot)):
        names = [*_MAKERS, *_algorithms(robot)]
        raise RamifyError(f"there is no function {name!r}{near(str(name), names)}")
    try:
        key = f"function {name} {sorted(options.items())!r}"
        simple = all(isinstance(x, (str, int, float, tuple)) for x in options.values())
        function: Differentiable
        if simple:
            function = robot.memo.remember(key, lambda: make(robot, **options))
        else:
            function = make(robot, **options)
    except TypeError as error:
        if "argument" not in str(error):
            raise
        raise RamifyError(f"{name}: {str(error).partition('() ')[2] or error}") from None
    return function


def _algorithms(robot: Robot) -> dict[str, Any]:
    return {**ALGORITHMS, **closed_algorithms(robot)}


def _build(
    robot: Robot,
    name: str,
    text: Callable[..., list[Row]],
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    *parts: str,
    answer: type[tuple[Any, ...]] = tuple,
) -> Differentiable:
    """A function of a text; ``parts``: what its code depends on besides the robot."""

    def program() -> Program:
        return trace(name, text, inputs, outputs)

    def key() -> str:
        return digest("function", name, robot_key(robot), *parts)

    return Differentiable(name, program, key, inputs, outputs, answer)


def _replayed(program: Program, inputs: Sequence[Sequence[Scalar]]) -> list[Row]:
    values = replay(program, inputs)
    return [[values[node] for node in nodes] for nodes in program.results]


def _algorithm(
    robot: Robot, name: str, which: Which = None, parameters: Sequence[str] = ()
) -> Differentiable:
    """An algorithm as its kernel has it; ``parameters`` are constants of the robot that become its
    last input. Where loops are open, accelerations and forces are NaN.
    """
    checked = f"{name}_if_closed"
    if checked in closed_algorithms(robot):
        name = checked
    varied = (parameters,) if isinstance(parameters, str) else tuple(parameters)
    made = kernel(robot, name, which=which, parameters=varied)
    return _build(
        robot, name, lambda *given: _replayed(made.program, given), made.inputs, made.outputs,
        repr((which, varied)), answer=algorithm_of(robot, name).answer,
    )  # fmt: skip


def _of_point(
    robot: Robot, name: str, body: str, point: Sequence[float] = (0.0, 0.0, 0.0)
) -> Differentiable:
    """The Jacobian, or its rate times v, of a point of a link: a function of q, and v."""
    _, frame = robot.attachment(body)
    at = real("point", point)
    if at.shape != (3,) or not np.isfinite(at).all():
        raise StateError(f"point must be three finite numbers in m, in the frame of {body!r}")
    return _of_link(robot, name, name, body, (frame.rotation @ at + frame.position).tolist())


def _pose(robot: Robot, body: str) -> Differentiable:
    """The world pose of a link, a merged link or a frame."""
    _, frame = robot.attachment(body)
    place = [*frame.rotation.ravel().tolist(), *frame.position.tolist()]
    return _of_link(robot, "pose", "frame_pose", body, place)


def _of_link(
    robot: Robot, name: str, algorithm: str, body: str, place: list[float]
) -> Differentiable:
    """An algorithm that belongs to one body, its last input known."""
    index, _ = robot.attachment(body)
    if index < 0:
        raise RamifyError(f"{body!r} belongs to the base, which does not move; ask model.{name}")
    whole = kernel(robot, algorithm, which=index)
    return _build(
        robot, name, lambda *given: _replayed(whole.program, (*given, place)), whole.inputs[:-1],
        whole.outputs, repr((index, place)), answer=algorithm_of(robot, algorithm).answer,
    )  # fmt: skip


def _passive(robot: Robot) -> Differentiable:
    """All passive joint forces of the machine."""
    text, inputs = passive_text(robot), [Port("q", (robot.nq,)), Port("v", (robot.nv,))]
    return _build(
        robot, "passive_forces", lambda q, v: [list(text(q, v).total)], inputs,
        [Port("tau", (robot.nv,))], text.fingerprint,
    )  # fmt: skip


def _actuators(robot: Robot) -> Differentiable:
    """The joint forces of the actuators under commands; those with activations take these, and give
    their rates.
    """
    if not robot.actuators:
        raise RamifyError(f"{robot.name} has no actuators; joint forces act as they are given")
    text, n = actuator_text(robot), len(robot.actuators)

    def run(q: Row, v: Row, u: Row, *w: Row) -> list[Row]:
        found = text(q, v, u, w[0] if w else [])
        return [list(found.tau), *([list(found.rates)] if w else [])]

    inputs = [Port("q", (robot.nq,)), Port("v", (robot.nv,)), Port("command", (n,))]
    outputs = [Port("tau", (robot.nv,))]
    if text.states:
        inputs.append(Port("activation", (text.states,)))
        outputs.append(Port("activation_rate", (text.states,)))
    return _build(robot, "actuator_forces", run, inputs, outputs, text.fingerprint)


def _acceleration(robot: Robot, **options: Any) -> Differentiable:
    """(q, v, tau) -> a of the whole machine: passive forces, limits of the drives, ground and
    controller; see ``_of_field`` for the further inputs of a controller.
    """
    field = _field(robot, "acceleration", **options)

    def text(t: Scalar, y: Row, u: Row) -> list[Row]:
        with determined(robot, "acceleration"):
            observed = field.observe(t, y, u)
        return [observed.a, observed.state_rates]

    return _of_field(field, "acceleration", text, ("a", "z_rate"))


def _step(robot: Robot, dt: float, method: str = AUTO, **options: Any) -> Differentiable:
    """(q, v, tau) -> (q, v) after a step of dt seconds with tau held, as a rollout takes it, whose
    rule also chooses the method.
    """
    if not (isinstance(dt, (int, float)) and np.isfinite(dt) and dt > 0.0):
        raise SimulationError(f"dt is {dt!r}; it must be a finite number of seconds > 0")
    field = _field(robot, "step", **options)
    if str(method).lower() == AUTO:
        method = batch_method(field, float(dt)).name
    scheme = scheme_of(method)
    if scheme.implicit:
        refuse_implicit(field)
        field = field.implicitly
    warn_of_stiff_joints(field, robot.neutral(), method, float(dt), scheme.stability)
    step = step_text(field, scheme, float(dt))
    of_q, of_v, of_z, _ = field.state_slices

    def text(t: Scalar, y: Row, u: Row) -> list[Row]:
        after = step(t, y, u)
        return [after[of_q], after[of_v], after[of_z]]

    return _of_field(field, "step", text, ("q", "v", "z"), repr((dt, scheme)))


def _field(robot: Robot, name: str, **options: Any) -> Field:
    if "parameters" in options:
        raise RamifyError(
            f"{name} takes no parameters; algorithms such as 'forward_dynamics' do, and rf.rollout "
            "with its derivatives"
        )
    control = options.pop("control", None)
    field = make_field(robot, control, PlantOptions(**options))
    if field.control is not None and (field.sampled or not field.traceable or field.prescribed):
        raise SimulationError(
            f"{name}: {type(field.control).__name__} cannot be differentiated: give a controller "
            "that is a continuous law over scalars (PD, ComputedTorque …), or none"
        )
    return field


def _of_field(
    field: Field,
    name: str,
    text: Callable[[Scalar, Row, Row], list[Row]],
    results: tuple[str, ...],
    *parts: str,
) -> Differentiable:
    """A function (q, v, tau) of a text over (t, y, u). With a controller it takes the time t after
    them; then the states z of the controller and of bristles, where there are any: these are also
    the last result.
    """
    robot, states = field.model, field.states
    inputs = [Port("q", (robot.nq,)), Port("v", (robot.nv,)), Port("tau", (robot.nv,))]
    if field.control is not None:
        inputs.append(Port("t", ()))
    if states:
        inputs.append(Port("z", (states,)))
    counters = [0.0] * (field.size - field.state_slices[3].start)

    def run(q: Row, v: Row, u: Row, *rest: Row) -> list[Row]:
        t = rest[0][0] if field.control is not None else 0.0
        z = rest[-1] if states else []
        found = text(t, [*q, *v, *z, *counters], u)
        return found if states else found[:-1]

    sizes = {"q": robot.nq, "z": states, "z_rate": states}
    kept = results if states else results[:-1]
    outputs = [Port(result, (sizes.get(result, robot.nv),)) for result in kept]
    return _build(robot, name, run, inputs, outputs, field.fingerprint, *parts)


_MAKERS: dict[str, Callable[..., Differentiable]] = {
    "jacobian": partial(_of_point, name="jacobian"),
    "jacobian_rate": partial(_of_point, name="jacobian_rate"),
    "pose": _pose,
    "passive_forces": _passive,
    "actuator_forces": _actuators,
    "acceleration": _acceleration,
    "step": _step,
}
