"""A kernel of any text over lists of scalars: what a layer above the algorithms compiles for one
robot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ramify.core.names import one_of
from ramify.core.scalar import Scalar
from ramify.model.configuration import check_quaternions
from ramify.model.robot import Robot
from ramify.runtime.backend import Backend, PlainNumpy, Unrolled
from ramify.runtime.kernel import Kernel, KernelPlan
from ramify.runtime.straight_python import StraightPython
from ramify.runtime.target import llvm_available
from ramify.trace.program import Port, Program, trace


def text_kernel(
    robot: Robot,
    name: str,
    text: Callable[..., list[list[Scalar]]],
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    key: Callable[[Callable[[], Program]], str],
    tier: str | None = None,
    loops: Callable[[], Backend] | None = None,
) -> Kernel:
    """The text, compiled (tier "unrolled"), as ``loops`` where there are some (tier "rolled"), or
    run by NumPy; ``key`` gives all that its code depends on, from the program if need be. The first
    input is q.
    """
    tiers = ("unrolled", "numpy", *(["rolled"] if loops is not None else []))
    if tier is not None:
        one_of(f"{name}: tier", tier, tiers)

    def program() -> Program:
        return trace(name, text, inputs, outputs)

    starts = tuple(i for i, _ in robot.layout.balls)
    plain = PlainNumpy(text)
    first: Backend = plain if tier == "numpy" else StraightPython(program, plain)
    better: Unrolled | None = None
    if tier in ("unrolled", "rolled") or (tier is None and llvm_available()):
        first = unrolled = Unrolled(program, lambda: key(program), name, starts)
        if loops is not None and (tier == "rolled" or (tier is None and not unrolled.cached())):
            first, better = loops(), unrolled if tier is None else None

    def explain(port: Port, i: int) -> str:
        if port.name == "q":
            return f"coordinate {robot.coordinates[i]!r}"
        return f"joint {robot.velocities[i]!r}" if port.shape == (robot.nv,) else f"number {i}"

    def check(q: object) -> None:
        check_quaternions(list(starts), robot.coordinates, q)  # type: ignore[arg-type]

    return Kernel(
        KernelPlan(
            name, robot.name, tuple(inputs), tuple(outputs), program, plain, first, better, explain,
            12.0 * robot.nv, starts, (), check,
        )
    )  # fmt: skip
