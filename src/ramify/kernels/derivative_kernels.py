"""Derivatives of every algorithm of a robot, from a program that differentiates its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ramify.codegen.backend import Unrolled
from ramify.codegen.cache_keys import digest
from ramify.codegen.kernel_arrays import KernelArrays
from ramify.codegen.target import llvm_available
from ramify.core.arrays import Array
from ramify.core.errors import StateError
from ramify.core.messages import shown
from ramify.dynamics.parameters import packed, rigid_parameters
from ramify.kernels.columns import Which
from ramify.kernels.make import algorithm_of, kernel
from ramify.kernels.queries import frame_motion, point_of
from ramify.kernels.robot_keys import robot_key
from ramify.model.configuration import configuration, unit_rates
from ramify.model.robot import Robot
from ramify.trace.differentiate import tangent
from ramify.trace.interpret import interpret
from ramify.trace.program import Port, Program

_COMPILED: Final = 30_000
"""Nodes up to which a program is compiled; a larger one is interpreted."""


class FrameDerivatives(NamedTuple):
    """Partial derivatives (..., 6, nv) of a frame's velocity by q and v, and of its acceleration by
    q, v and a.
    """

    velocity_by_q: Array
    velocity_by_v: Array
    acceleration_by_q: Array
    acceleration_by_v: Array
    acceleration_by_a: Array


class _Tangent:
    """The derivative of a program along a direction in all its inputs; ``key`` says all that the
    program depends on.
    """

    def __init__(self, of: Program, name: str, *key: str) -> None:
        self.of = of
        self.program = tangent(of, range(len(of.inputs)))
        whole = digest("tangent", name, *key)
        self._code = Unrolled(lambda: self.program, lambda: whole, f"{name}_tangent")
        self._compiles = llvm_available() and len(self.program.order) <= _COMPILED

    def __call__(self, inputs: Sequence[Array], directions: Sequence[Array]) -> list[Array]:
        """Rows (N, size) of all outputs' rates."""
        rows = [np.ascontiguousarray(x) for x in (*inputs, *directions)]
        if not self._compiles:
            return interpret(self.program, rows)
        out = [np.empty((len(rows[0]), port.size)) for port in self.program.outputs]
        self._code.run(rows, out, 0, len(rows[0]))
        return out


def _tangent(robot: Robot, name: str, which: Which, parameters: tuple[str, ...] = ()) -> _Tangent:
    algorithm_of(robot, name)
    key = f"tangent of {name}:{which}{parameters or ''}"
    found: _Tangent | None = robot.memo.get(key)
    if found is None:
        of = kernel(robot, name, which=which, parameters=parameters).program
        made = _Tangent(of, name, robot_key(robot), repr(which), *parameters)
        found = robot.memo.setdefault(key, made)
    return found


def text_derivatives(
    robot: Robot, name: str, of: Callable[[], Program], key: str, inputs: Sequence[ArrayLike]
) -> tuple[tuple[Array, ...], ...]:
    """The derivatives of a program of a layer above, whose code depends on ``key``."""
    kept = f"tangent of {name} {key}"
    if kept not in robot.memo:
        robot.memo[kept] = _Tangent(of(), name, robot_key(robot), key)
    return _slopes(robot, name, robot.memo[kept], inputs)


def derivatives(
    robot: Robot,
    name: str,
    inputs: Sequence[ArrayLike],
    which: Which = None,
    parameters: Mapping[str, ArrayLike] | None = None,
) -> tuple[tuple[Any, ...], ...]:
    """See Model.derivatives."""
    if parameters is not None:
        return _by_parameters(robot, name, inputs, which, parameters)
    return _slopes(robot, name, _tangent(robot, name, which), inputs)


def _by_parameters(
    robot: Robot,
    name: str,
    inputs: Sequence[ArrayLike],
    which: Which,
    parameters: Mapping[str, ArrayLike],
) -> tuple[tuple[Any, ...], ...]:
    """The same, with the last column of every result by parameter."""
    known = rigid_parameters(robot)
    names, values = packed(known, parameters, robot.name)
    found = _slopes(robot, name, _tangent(robot, name, which, names), [*inputs, values])
    ends = np.cumsum([known[key].size for key in names])[:-1].tolist()
    return tuple(
        (*by, dict(zip(names, np.split(last, ends, axis=-1), strict=True))) for *by, last in found
    )


def _slopes(
    robot: Robot, name: str, made: _Tangent, inputs: Sequence[ArrayLike]
) -> tuple[tuple[Array, ...], ...]:
    given, lead = _given(robot, name, made.of.inputs, inputs)
    states = len(given[0])
    slopes: list[list[Array]] = [[] for _ in made.of.outputs]
    for i, port in enumerate(made.of.inputs):
        units = unit_rates(robot, given[0]) if port.name == "q" else np.eye(port.size)[None]
        many = units.shape[1]
        directions = [
            np.broadcast_to(units if i == k else 0.0, (states, many, p.size)).reshape(-1, p.size)
            for k, p in enumerate(made.of.inputs)
        ]
        found = made([np.repeat(x, many, axis=0) for x in given], directions)
        for rates, out, listed in zip(found, made.of.outputs, slopes, strict=True):
            by = np.moveaxis(rates.reshape(states, many, *out.shape), 1, -1)
            listed.append(np.ascontiguousarray(by).reshape(*lead, *out.shape, many))
    return tuple(tuple(listed) for listed in slopes)


def frame_motion_derivatives(
    robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, link: str, point: ArrayLike
) -> FrameDerivatives:
    """See Model.frame_motion_derivatives."""
    body, at = point_of(robot, link, point)
    if body < 0:
        lead = frame_motion(robot, q, v, a, link).velocity.shape
        return FrameDerivatives(*(np.zeros((*lead, robot.nv)) for _ in FrameDerivatives._fields))
    found = derivatives(robot, "frame_motion", (q, v, a, at), body)
    (by_q, by_v, _, _), (*by, _) = found
    return FrameDerivatives(by_q, by_v, *by)


def derivative_along(
    robot: Robot,
    name: str,
    inputs: Sequence[ArrayLike],
    directions: Sequence[ArrayLike],
    which: Which = None,
) -> tuple[Array, ...]:
    """See Model.derivative_along."""
    made = _tangent(robot, name, which)
    for which_ones, arrays in (("inputs", inputs), ("directions", directions)):
        if not isinstance(arrays, (list, tuple)):
            listed = ", ".join(p.name for p in made.of.inputs)
            raise StateError(
                f"{which_ones} must be a list of arrays, for {listed}; got {shown(arrays)}"
            )
    ports = tuple(
        Port(f"d{p.name}", (robot.nv,) if p.name == "q" else p.shape) for p in made.of.inputs
    )
    rows, lead = _given(robot, name, (*made.of.inputs, *ports), [*inputs, *directions])
    given, along = rows[: len(ports)], rows[len(ports) :]
    for i, port in enumerate(made.of.inputs):
        if port.name == "q":
            along[i] = np.einsum("nk,nki->ni", along[i], unit_rates(robot, given[i]))
    found = made(given, along)
    return tuple(
        rates.reshape((*lead, *port.shape))
        for rates, port in zip(found, made.of.outputs, strict=True)
    )


def _given(
    robot: Robot, name: str, ports: Sequence[Port], inputs: Sequence[ArrayLike]
) -> tuple[list[Array], tuple[int, ...]]:
    """Inputs as rows (N, size), and the shape of their batch."""
    arrays = KernelArrays(name, robot.name, tuple(ports), ())
    given, lead = arrays.given(inputs)
    for i, (port, x) in enumerate(zip(ports, given, strict=True)):
        if not np.isfinite(x).all():
            raise StateError(f"{name}: {port.name} must be finite")
        if port.name == "q":
            given[i] = configuration(robot, "q", x)
    return arrays.rows(given, lead), lead
