"""A kernel of any text over lists of scalars: what a layer above the algorithms compiles for one
robot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ramify.core.arrays import Array
from ramify.core.names import one_of
from ramify.core.scalar import Scalar
from ramify.kernels.tier_policy import choose_tiers
from ramify.model.configuration import check_quaternions
from ramify.model.robot import Robot
from ramify.runtime.backend import Backend, PlainNumpy
from ramify.runtime.compiled_program import CompiledProgram
from ramify.runtime.kernel import Diagnosis, Kernel, KernelPlan
from ramify.trace.program import Port, Program, trace


def text_kernel(
    robot: Robot,
    name: str,
    text: Callable[..., list[list[Scalar]]],
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    key: Callable[[Callable[[], Program]], str],
    tier: str | None = None,
    rolled: Callable[[], Backend] | None = None,
) -> Kernel:
    """A kernel of a text whose first input is q. ``rolled`` gives its rolled code, if there is
    some. ``key`` gives all that its code depends on, from the program if need be.
    """
    tiers = ("unrolled", "numpy", *(["rolled"] if rolled is not None else []))
    if tier is not None:
        one_of(f"{name}: tier", tier, tiers)

    quaternions = tuple(i for i, _ in robot.layout.balls)

    def program() -> Program:
        return trace(name, text, inputs, outputs)

    plain = PlainNumpy(text)
    compiled = CompiledProgram(name, program, lambda: key(lambda: compiled.program), quaternions)

    def explain(port: Port, i: int) -> str:
        if port.name == "q":
            return f"coordinate {robot.coordinates[i]!r}"
        return f"joint {robot.velocities[i]!r}" if port.shape == (robot.nv,) else f"number {i}"

    def check(q: Array) -> None:
        check_quaternions(list(quaternions), robot.coordinates, q)

    return Kernel(
        KernelPlan(
            robot.name, tuple(inputs), tuple(outputs), compiled, plain,
            choose_tiers(tier, plain, compiled, rolled, compile_at_once=True),
            Diagnosis(explain, quaternions, check=check),
            cost_ns=12.0 * robot.nv,
        )
    )  # fmt: skip
