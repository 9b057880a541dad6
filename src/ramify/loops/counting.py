"""What the inverse dynamics of a closed system costs: by subsystems, by one elimination, and by
orthogonalisation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ramify.core.errors import LoopError
from ramify.dynamics.closed_inverse import closed_driving_forces
from ramify.dynamics.closure import closures, constraint_count
from ramify.dynamics.constraint_kinematics import loop_constraints
from ramify.dynamics.inverse import joint_wrenches
from ramify.dynamics.motion import displacements
from ramify.dynamics.subsystems import plan, solve_blocks, solve_whole
from ramify.dynamics.tree import tree_of
from ramify.kernels.algorithms import no_wrenches
from ramify.model.robot import Robot
from ramify.trace.op_count import OpCount, op_count
from ramify.trace.program import Port, trace


class Counts(NamedTuple):
    """Operations for torques and multipliers from q, v and a, after folding and sharing:
    ``subsystems`` block by block (8.9-8.17), ``elimination`` of the whole F of (8.4),
    ``orthogonalisation`` as for systems that may be redundant; and the size of the largest
    ``block`` against that of F, ``whole``.
    """

    subsystems: OpCount
    elimination: OpCount
    orthogonalisation: OpCount
    block: int
    whole: int


def counts(model: Robot) -> Counts:
    """The operations of three ways to the same torques. LoopError where the subsystems are not
    determinate.
    """
    work = plan(model)
    if work.refused:
        raise LoopError(
            f"{model.name}: its subsystems cannot be solved one after the other: {work.refused}"
        )
    tree, loops = tree_of(model), closures(model)
    ports = (Port("q", (model.nq,)), Port("v", (model.nv,)), Port("a", (model.nv,)))
    outputs = (Port("tau", (model.nv,)), Port("multipliers", (constraint_count(model),)))

    def cost(solve: Callable[[Any, Any], tuple[list[Any], list[Any]]]) -> OpCount:
        def text(q: Sequence[Any], v: list[Any], a: list[Any]) -> list[list[Any]]:
            column = model.skeleton.coordinates(q, (1.0, 0.0, 0.0, 0.0))
            x = displacements(tree, column)
            phi = [force for force, _ in joint_wrenches(tree, x, v, a, no_wrenches(tree))]
            return list(solve(loop_constraints(tree, loops, column, x, None), phi))

        return op_count(trace("inverse dynamics", text, ports, outputs))

    return Counts(
        cost(lambda rows, phi: solve_blocks(work, rows, phi)),
        cost(lambda rows, phi: solve_whole(work, rows, phi)),
        cost(lambda rows, phi: closed_driving_forces(rows, work.driven, phi)),
        max(len(block.unknowns) for block in work.blocks),
        model.nv,
    )
