"""The projection of a whole state as one text, and compiled: what a simulation does after each
step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import SimulationError
from ramify.core.scalar import Scalar, sqrt
from ramify.dynamics.closure import closures
from ramify.dynamics.projection import Projection
from ramify.dynamics.redundancy import redundancy
from ramify.dynamics.tree import tree_of
from ramify.kernels.closed import inertia_weight
from ramify.kernels.robot_keys import robot_key
from ramify.kernels.tier_policy import unrolls
from ramify.model.configuration import coordinate_rates
from ramify.model.robot import Robot, once
from ramify.runtime.cache_keys import digest
from ramify.runtime.compiled_program import CompiledProgram
from ramify.trace.program import Port, trace

StateProjection = Callable[[Sequence[Scalar], Sequence[Scalar]], tuple[list[Scalar], list[Scalar]]]


@once
def projection(model: Robot) -> StateProjection:
    """(q, v) -> (q, v) on the loops, over any scalar, for states near them."""
    made = Projection(tree_of(model), closures(model), inertia_weight(model), redundancy(model))
    return lambda q, v: made.state(
        q,
        v,
        lambda u: model.skeleton.coordinates(u, (1.0, 0.0, 0.0, 0.0)),
        lambda u, step: moved_by_small_step(model, u, step),
    )


def moved_by_small_step(model: Robot, q: Sequence[Scalar], step: Sequence[Scalar]) -> list[Scalar]:
    """q after a small motion ``step`` (nv): to first order in the angles of quaternions, which stay
    of length one.
    """
    out = [x + dx for x, dx in zip(q, coordinate_rates(model, q, step), strict=True)]
    for i, _ in model.layout.balls:
        turned = out[i : i + 4]
        k = 1.0 / sqrt(sum((u * u for u in turned[1:]), turned[0] * turned[0]))
        out[i : i + 4] = [u * k for u in turned]
    return out


def projector(model: Robot) -> Callable[[Array], Array]:
    """[q, v] (nq + nv) -> [q, v] on the loops: compiled where the robot is not too large."""
    text, size = projection(model), model.nq + model.nv

    def flat(y: Sequence[Scalar]) -> list[Scalar]:
        q, v = text(list(y[: model.nq]), list(y[model.nq :]))
        return [*q, *v]

    def written_out(y: Array) -> Array:
        closed = np.array(flat([float(x) for x in y]), dtype=np.float64)
        if not np.isfinite(closed).all():
            raise SimulationError(
                f"the loops of {model.name} cannot be closed again: the state is not finite"
            )
        return closed

    if not unrolls(model):
        return written_out
    port = Port("y", (size,))
    program = trace("projection", lambda y: [flat(y)], (port,), (Port("closed", (size,)),))
    key = digest(robot_key(model), "projection")
    return CompiledProgram("projection", program, key).call(
        program.inputs, program.outputs, written_out
    )


def project_rows(model: Robot, q: Array, v: Array) -> tuple[Array, Array]:
    """The projection of rows of states (N, nq), (N, nv), by the text on arrays."""
    with np.errstate(all="ignore"):
        closed = projection(model)(list(q.T), list(v.T))
    return tuple(
        np.stack([np.broadcast_to(np.asarray(x), q.shape[:1]) for x in part], axis=1)
        for part in closed
    )  # type: ignore[return-value]
