"""An algorithm for one robot: its arrays, its text, its program and its rolled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.core.errors import StateError
from ramify.dynamics.parameters import by_name, chosen, rigid_parameters, tree_with
from ramify.dynamics.tree import Tree, tree_of
from ramify.kernels.algorithms import Algorithm
from ramify.kernels.robot_keys import kernel_key
from ramify.kernels.rolled_tier import columns_are_bodies, rolled
from ramify.kernels.text import plain_text
from ramify.model.pivots import never_moved
from ramify.model.robot import Robot
from ramify.runtime.backend import ArrangedOutputs, Backend
from ramify.runtime.cache_keys import text_key
from ramify.runtime.compiled_program import CompiledProgram
from ramify.trace.program import Port, Program, trace


class RobotAlgorithm:
    """All that a kernel is made from: ``inputs`` and ``outputs`` with this robot's shapes, the text
    over flat lists, the program with its code, the rolled code with the robot's numbers. Nothing is
    traced or compiled before it is needed.

    ``extras``: the columns that say which body or joints are meant. ``parameters``: names of
    constants of the robot that are a further input.
    """

    def __init__(
        self,
        model: Robot,
        algorithm: Algorithm,
        extras: Sequence[Sequence[float]],
        parameters: tuple[str, ...] = (),
    ) -> None:
        self.model, self.algorithm, self.extras = model, algorithm, extras
        self.name, self.tree = algorithm.name, tree_of(model)
        self.parameters = parameters
        self._varied = chosen(rigid_parameters(model), parameters, model.name)
        self._layout = algorithm.layout(model) if algorithm.layout else ()
        self._text = plain_text(algorithm, model, extras)
        self.inputs = tuple(Port(p.name, p.shape(model.nq, model.nv)) for p in algorithm.inputs)
        if self._varied:
            self.inputs += (Port("parameters", (sum(p.size for p in self._varied),)),)
        self._of_text = tuple(Port(p.name, p.shape(model.nq, model.nv)) for p in algorithm.outputs)
        self.outputs = tuple(result.port for result in self._layout) or self._of_text

    @property
    def has_rolled_code(self) -> bool:
        """Whether there is rolled code: it knows neither loops nor other constants."""
        return self.algorithm.rolled_as != "none" and not self._varied

    @property
    def quaternions(self) -> tuple[int, ...]:
        """Where quaternions begin in q."""
        return tuple(i for i, _ in self.model.layout.balls)

    def text(self, *columns: list[Any]) -> list[list[Any]]:
        """The results, as users get them, over flat lists of scalars of any kind."""
        try:
            results = self._results(*columns)
        except ZeroDivisionError:  # a pivot that is zero whatever the posture
            raise StateError(
                f"{self.name}: {never_moved(self.model)}, the inertia matrix is singular; see "
                "model.check()"
            ) from None
        return [
            [results[part.source][i] if i >= 0 else 0.0 for i in part.places]
            for part in self._layout
        ] or results

    def _results(self, *columns: list[Any]) -> list[list[Any]]:
        if not self._varied:
            return self._text(*columns)
        tree = tree_with(self.model, by_name(self._varied, columns[-1]))
        return plain_text(self.algorithm, self.model, self.extras, tree)(*columns[:-1])

    def compiled(self) -> CompiledProgram:
        """The program with its code, neither of them made yet."""
        named = f"{self.name}{text_key(self.algorithm.text)}"

        def program() -> Program:
            return trace(self.name, self.text, self.inputs, self.outputs)

        def key() -> str:
            return kernel_key(self.model, named, self.extras, self._layout, self.parameters)

        return CompiledProgram(self.name, program, key, self.quaternions)

    def rolled(self) -> Backend:
        """Rolled code with the robot's constants."""
        code = rolled(self.algorithm, self.model, self.tree, self.extras)
        if not self._layout or columns_are_bodies(self.algorithm, self.model):
            return code
        places = [(result.source, result.places) for result in self._layout]
        return ArrangedOutputs(code, [port.size for port in self._of_text], places)

    def pattern(self) -> list[NDArray[np.bool_]]:
        """For each output, which numbers are not zero whatever the state."""
        related = _related(self.tree)
        nonzero = [
            np.repeat(related, argument.count, axis=1).reshape(-1)
            if argument.per == "pair"
            else np.ones(port.size, dtype=bool)
            for argument, port in zip(self.algorithm.outputs, self._of_text, strict=True)
        ]
        return [
            nonzero[result.source][np.array(result.places)] & (np.array(result.places) >= 0)
            for result in self._layout
        ] or nonzero


def _related(tree: Tree) -> NDArray[np.bool_]:
    """(links, links): whether one of two links carries the other."""
    carries = np.eye(len(tree.links), dtype=bool)
    for k, parent in enumerate(tree.parents):
        if parent >= 0:
            carries[k] |= carries[parent]
    return carries | carries.T
