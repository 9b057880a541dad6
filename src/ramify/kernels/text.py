"""An algorithm as a function of flat lists of scalars, for one robot: what every tier, controller
and simulation runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ramify.core.records import flatten
from ramify.dynamics.tree import Matrix, Tree, tree_of
from ramify.kernels.algorithms import Algorithm
from ramify.model.robot import Robot
from ramify.trace.rolled_program import Argument

IDENTITY: Final = (1.0, 0.0, 0.0, 0.0)
"""The quaternion of a link that has none."""


def plain_text(
    algorithm: Algorithm, model: Robot, extras: Sequence[Sequence[float]], tree: Tree | None = None
) -> Callable[..., list[list[Any]]]:
    """The algorithm over flat lists of scalars of any kind, for one robot; ``tree`` may have other
    constants than the model.
    """
    tree = tree or tree_of(model)

    def column(port: Argument, scalars: list[Any]) -> list[Any]:
        if port.per == "coordinate":
            return model.skeleton.coordinates(scalars, IDENTITY)
        if port.per in ("state", "row") or port.count == 1:
            return scalars
        return [tuple(scalars[i : i + port.count]) for i in range(0, len(scalars), port.count)]

    def run(*inputs: list[Any]) -> list[list[Any]]:
        columns = [
            column(port, scalars) for port, scalars in zip(algorithm.inputs, inputs, strict=True)
        ]
        return [_flat(value) for value in algorithm.text(tree, *columns, *extras)]

    return run


def _flat(value: Any) -> list[Any]:
    if isinstance(value, list) and value and isinstance(value[0], Matrix):
        rows = [matrix.row_major() for matrix in value]  # several numbers for each pair
        return [x for numbers in zip(*rows, strict=True) for x in numbers]
    return value.row_major() if isinstance(value, Matrix) else flatten(value)
