"""Kernels of a robot by the name of an algorithm: made on the first call and remembered by the
robot.

``RobotAlgorithm`` prepares an algorithm for one robot, ``tier_policy`` chooses the code that
computes it, ``diagnosis`` words its errors; the ``Kernel`` made from these is called with arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from ramify.core.errors import LoopError, RamifyError
from ramify.core.messages import near
from ramify.core.names import one_of
from ramify.kernels.algorithms import ALGORITHMS, Algorithm
from ramify.kernels.closed import closed_algorithms
from ramify.kernels.columns import Which, extra_columns
from ramify.kernels.diagnosis import diagnosis_of
from ramify.kernels.robot_algorithm import RobotAlgorithm
from ramify.kernels.tier_policy import (
    Tier,
    choose_tiers,
    refuse_too_long_code,
    unrolled_fits,
    unrolls,
)
from ramify.model.pivots import refuse_massless
from ramify.model.robot import Robot
from ramify.runtime.backend import PlainNumpy
from ramify.runtime.compiled_program import CompiledProgram
from ramify.runtime.kernel import Kernel, KernelPlan, Tiers
from ramify.runtime.single_kernel import SingleKernel


def kernel(
    robot: Robot,
    name: str,
    tier: Tier | None = None,
    which: Which = None,
    parameters: tuple[str, ...] = (),
) -> Kernel:
    """The kernel of an algorithm, made at the first call and remembered by the robot. ``which``:
    the body or the joints, for an algorithm that needs these. ``parameters``: names of constants of
    the robot that become the last input of the kernel, one after the other.
    """
    if not isinstance(name, str):
        algorithm_of(robot, name)  # refused there
    default = tier is None and which is None and not parameters
    key = name if default else f"{name}/{tier}:{which}{parameters or ''}"
    return robot.memo.remember(key, lambda: make_kernel(robot, name, tier, which, parameters))


def single_kernel(robot: Robot, name: str) -> SingleKernel:
    """The kernel of an algorithm in single precision; RamifyError for robots with loops, robots
    that are too large, and without a compiler.
    """
    return robot.memo.remember(f"{name}/single", lambda: _make_single(robot, name))


def _make_single(robot: Robot, name: str) -> SingleKernel:
    double = kernel(robot, name)
    reason = ""
    if robot.loops:
        reason = "the robot has loops; ask model.tree, its loops opened"
    elif not unrolls(robot, algorithm_of(robot, name).gives_pairs):
        reason = "the robot is too large, or there is no compiler"
    if reason:
        raise RamifyError(f"{name} has no kernel in single precision: {reason}")
    return SingleKernel(double)


def algorithm_of(model: Robot, name: str) -> Algorithm:
    """The algorithm of that name: of the tree, or, for a model with loops, the one that honours
    them.
    """
    algorithm = ALGORITHMS.get(name) if isinstance(name, str) else None
    if model.loops and (algorithm is None or algorithm.loops == "honoured"):
        algorithm = closed_algorithms(model).get(name)
    if algorithm is None:
        names = {**ALGORITHMS, **closed_algorithms(model)}
        public_first = sorted(names, key=lambda x: not hasattr(model, x))
        raise RamifyError(f"there is no algorithm {name!r}{near(str(name), public_first)}")
    if model.loops and algorithm.loops == "refused":
        raise LoopError(
            f"{name} does not know loops, and {model.name!r} has {len(model.loops)}; ask "
            "model.tree, its loops opened"
        )
    return algorithm


def make_kernel(
    model: Robot,
    algorithm: str | Algorithm,
    tier: str | None,
    which: Which = None,
    parameters: tuple[str, ...] = (),
    columns: Sequence[Sequence[float]] | None = None,
) -> Kernel:
    """Make a kernel. ``tier`` None: unrolled code if it is cached, else rolled code at once and
    unrolled code when the kernel is called often.

    ``which``: for an algorithm that belongs to one body its index, for one that belongs to some
    joints their names. ``parameters`` as in ``kernel``; rolled code knows none. ``columns`` are the
    extra ones of an algorithm that is not in the table, a number per link each.
    """
    if isinstance(algorithm, str):
        algorithm = algorithm_of(model, algorithm)
    if algorithm.needs_mass and not parameters:
        refuse_massless(model, algorithm.name)
    if tier is not None:
        one_of("tier", tier, get_args(Tier))
    extras = extra_columns(model, algorithm, which) if columns is None else columns
    prepared = RobotAlgorithm(model, algorithm, extras, parameters)
    plain, unrolled = PlainNumpy(prepared.text), prepared.compiled()  # compiled when needed
    return Kernel(
        KernelPlan(
            model.name, prepared.inputs, prepared.outputs, unrolled, plain,
            _tiers(prepared, tier, plain, unrolled),
            diagnosis_of(model, algorithm, which, prepared.quaternions),
            cost_ns=5.0 * len(prepared.tree.links), answer=algorithm.answer,
            pattern=prepared.pattern,
        )
    )  # fmt: skip


def _tiers(
    prepared: RobotAlgorithm, tier: str | None, plain: PlainNumpy, unrolled: CompiledProgram
) -> Tiers:
    """The tiers of a kernel; RamifyError for a tier that this algorithm and robot do not have."""
    if tier == "unrolled":
        refuse_too_long_code(prepared.model, prepared.tree)
    elif tier == "rolled" and not prepared.has_rolled_code:
        whose = "with parameters" if prepared.parameters else "of a robot with loops"
        raise RamifyError(f"{prepared.name} {whose} is straight-line code; leave out tier='rolled'")
    return choose_tiers(
        tier, plain, unrolled, prepared.rolled if prepared.has_rolled_code else None,
        fits=unrolled_fits(prepared.tree, prepared.algorithm.gives_pairs),
        prefers_rolled=len(prepared.tree.links) > prepared.algorithm.max_unrolled_links,
    )  # fmt: skip
