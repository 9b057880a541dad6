"""The words for errors of a kernel: what a number is, and what may be wrong with a state."""

from __future__ import annotations

from ramify.core.arrays import Array
from ramify.kernels.algorithms import Algorithm
from ramify.kernels.columns import Which, watched_locks
from ramify.model.configuration import check_quaternions
from ramify.model.locks import check_locks, explain_singularity
from ramify.model.pivots import without_inertia
from ramify.model.robot import Robot
from ramify.runtime.kernel import Diagnosis
from ramify.trace.program import Port


def diagnosis_of(
    model: Robot, algorithm: Algorithm, which: Which, quaternions: tuple[int, ...]
) -> Diagnosis:
    """The diagnosis of an algorithm's kernel."""
    watched = watched_locks(model, algorithm, which)

    def check(q: Array) -> None:
        check_quaternions(list(quaternions), model.coordinates, q)
        check_locks(watched, model.coordinates, q)

    return Diagnosis(
        lambda port, i: _explain_position(model, algorithm, port, i),
        quaternions,
        tuple((lock.place, lock.half_turns) for lock in watched),
        check,
        lambda q: explain_singularity(watched, model.coordinates, q) or without_inertia(model, q),
    )


def _explain_position(model: Robot, algorithm: Algorithm, port: Port, position: int) -> str:
    outputs = () if algorithm.layout else algorithm.outputs
    kind = next((p for p in (*algorithm.inputs, *outputs) if p.name == port.name), None)
    if kind is None or kind.per in ("state", "row"):
        return f"number {position}"
    if kind.per == "coordinate":
        return f"coordinate {model.coordinates[position]!r}"
    if kind.per == "link":
        return f"joint {model.velocities[position // kind.count]!r}"
    row, column = divmod(position, model.nv)
    return f"row {model.velocities[row]!r}, column {model.velocities[column]!r}"
