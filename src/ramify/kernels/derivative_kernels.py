"""Derivatives of every algorithm of a robot, from a program that differentiates its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.core.arrays import Array
from ramify.core.errors import StateError
from ramify.core.messages import shown
from ramify.dynamics.parameters import packed, rigid_parameters
from ramify.kernels.columns import Which
from ramify.kernels.make import algorithm_of, kernel
from ramify.kernels.queries import body_point, frame_motion
from ramify.kernels.robot_keys import robot_key
from ramify.model.configuration import configuration, unit_rates
from ramify.model.robot import Robot
from ramify.runtime.cache_keys import digest
from ramify.runtime.compiled_program import CompiledProgram
from ramify.runtime.kernel_arrays import KernelArrays
from ramify.runtime.target import llvm_available
from ramify.trace.differentiate import adjoint, tangent
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
        program = tangent(of, range(len(of.inputs)))
        self._code = CompiledProgram(f"{name}_tangent", program, digest("tangent", name, *key))
        self._compiles = llvm_available() and len(program.order) <= _COMPILED

    def __call__(self, inputs: Sequence[Array], directions: Sequence[Array]) -> list[Array]:
        """Rows (N, size) of all outputs' rates."""
        rows = [np.ascontiguousarray(x) for x in (*inputs, *directions)]
        return self._code.rows(rows) if self._compiles else interpret(self._code.program, rows)


def _tangent(robot: Robot, name: str, which: Which, parameters: tuple[str, ...] = ()) -> _Tangent:
    algorithm_of(robot, name)

    def make() -> _Tangent:
        of = kernel(robot, name, which=which, parameters=parameters).program
        return _Tangent(of, name, robot_key(robot), repr(which), *parameters)

    return robot.memo.remember(f"tangent of {name}:{which}{parameters or ''}", make)


def text_derivatives(
    robot: Robot, name: str, of: Callable[[], Program], key: str, inputs: Sequence[ArrayLike]
) -> tuple[tuple[Array, ...], ...]:
    """The derivatives of a program of a layer above, whose code depends on ``key``."""
    derivative = robot.memo.remember(
        f"tangent of {name} {key}", lambda: _Tangent(of(), name, robot_key(robot), key)
    )
    return _slopes(robot, name, derivative, inputs)


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
    """Derivatives by inputs and parameters, the latter as a dictionary."""
    constants = rigid_parameters(robot)
    names, values = packed(constants, parameters, robot.name)
    slopes = _slopes(robot, name, _tangent(robot, name, which, names), [*inputs, values])
    ends = np.cumsum([constants[key].size for key in names])[:-1].tolist()
    return tuple(
        (*by, dict(zip(names, np.split(last, ends, axis=-1), strict=True))) for *by, last in slopes
    )


def _slopes(
    robot: Robot, name: str, derivative: _Tangent, inputs: Sequence[ArrayLike]
) -> tuple[tuple[Array, ...], ...]:
    rows, lead, unknown = _rows(robot, name, derivative.of.inputs, inputs)
    states = len(rows[0])
    slopes: list[list[Array]] = [[] for _ in derivative.of.outputs]
    for i, port in enumerate(derivative.of.inputs):
        units = unit_rates(robot, rows[0]) if port.name == "q" else np.eye(port.size)[None]
        many = units.shape[1]
        directions = [
            np.broadcast_to(units if i == k else 0.0, (states, many, p.size)).reshape(-1, p.size)
            for k, p in enumerate(derivative.of.inputs)
        ]
        rates_of_outputs = derivative([np.repeat(x, many, axis=0) for x in rows], directions)
        for rates, out, listed in zip(rates_of_outputs, derivative.of.outputs, slopes, strict=True):
            by = np.moveaxis(rates.reshape(states, many, *out.shape), 1, -1)
            by[unknown] = np.nan
            listed.append(np.ascontiguousarray(by).reshape(*lead, *out.shape, many))
    return tuple(tuple(listed) for listed in slopes)


def frame_motion_derivatives(
    robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, link: str, point: ArrayLike
) -> FrameDerivatives:
    """See Model.frame_motion_derivatives."""
    body, at = body_point(robot, link, point)
    if body < 0:
        lead = frame_motion(robot, q, v, a, link).velocity.shape
        return FrameDerivatives(*(np.zeros((*lead, robot.nv)) for _ in FrameDerivatives._fields))
    slopes = derivatives(robot, "frame_motion", (q, v, a, at), body)
    (by_q, by_v, _, _), (*by, _) = slopes
    return FrameDerivatives(by_q, by_v, *by)


def derivative_along(
    robot: Robot,
    name: str,
    inputs: Sequence[ArrayLike],
    directions: Sequence[ArrayLike],
    which: Which = None,
) -> tuple[Array, ...]:
    """See Model.derivative_along."""
    derivative = _tangent(robot, name, which)
    for what, arrays in (("inputs", inputs), ("directions", directions)):
        if not isinstance(arrays, (list, tuple)):
            listed = ", ".join(p.name for p in derivative.of.inputs)
            raise StateError(f"{what} must be a list of arrays, for {listed}; got {shown(arrays)}")
    ports = tuple(
        Port(f"d{p.name}", (robot.nv,) if p.name == "q" else p.shape) for p in derivative.of.inputs
    )
    rows, lead, unknown = _rows(
        robot, name, (*derivative.of.inputs, *ports), [*inputs, *directions]
    )
    at, along = rows[: len(ports)], rows[len(ports) :]
    for i, port in enumerate(derivative.of.inputs):
        if port.name == "q":
            along[i] = np.einsum("nk,nki->ni", along[i], unit_rates(robot, at[i]))
    rates_of_outputs = derivative(at, along)
    for rates in rates_of_outputs:
        rates[unknown] = np.nan
    return tuple(
        rates.reshape((*lead, *port.shape))
        for rates, port in zip(rates_of_outputs, derivative.of.outputs, strict=True)
    )


def weighted_derivatives(
    robot: Robot, name: str, inputs: Sequence[ArrayLike], weights: Sequence[ArrayLike]
) -> tuple[Array, ...]:
    """See Model.weighted_derivatives."""
    algorithm_of(robot, name)
    memo_key = f"adjoint of {name}"
    if memo_key not in robot.memo:
        of = kernel(robot, name).program
        program = adjoint(of, range(len(of.inputs)))
        robot.memo[memo_key] = CompiledProgram(
            f"{name}_adjoint", program, digest("adjoint", name, robot_key(robot))
        )
    code: CompiledProgram = robot.memo[memo_key]
    count = len(code.program.outputs)
    ports = code.program.inputs
    for what, arrays, expected in (
        ("inputs", inputs, count),
        ("weights", weights, len(ports) - count),
    ):
        if not isinstance(arrays, (list, tuple)) or len(arrays) != expected:
            raise StateError(f"{what} of {name} must be a list of {expected} arrays")
    rows, lead, unknown = _rows(robot, name, ports, [*inputs, *weights])
    rows = [np.ascontiguousarray(x) for x in rows]
    compiles = llvm_available() and len(code.program.order) <= _COMPILED
    slopes = code.rows(rows) if compiles else interpret(code.program, rows)
    answers = []
    for port, slope in zip(ports, slopes, strict=False):
        by = np.array(slope)
        if port.name == "q":
            by = np.einsum("ni,nki->nk", by, unit_rates(robot, rows[0]))
        by[unknown] = np.nan
        answers.append(by.reshape((*lead, *by.shape[1:])))
    return tuple(answers)


def _rows(
    robot: Robot, name: str, ports: Sequence[Port], inputs: Sequence[ArrayLike]
) -> tuple[list[Array], tuple[int, ...], NDArray[np.bool_]]:
    """Inputs as rows (N, size), the shape of their batch, and which states are not known."""
    arrays = KernelArrays(name, robot.name, tuple(ports), ())
    columns, lead = arrays.checked_inputs(inputs)
    for i, (port, x) in enumerate(zip(ports, columns, strict=True)):
        shared = x.ndim == len(port.shape)
        if not (np.isfinite(x).all() if shared else (np.isfinite(x) | np.isnan(x)).all()):
            raise StateError(f"{name}: {port.name} must be finite")
        if port.name == "q":
            columns[i] = configuration(robot, "q", x, True)
    return arrays.rows(columns, lead), lead, arrays.unknown(columns, lead)
