"""Model predictive control: the problem is solved again at every sample, from where it was left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from ramify.control.function_controller import Function
from ramify.core.arrays import Array, positive, whole
from ramify.core.errors import StateError
from ramify.core.messages import shown
from ramify.optimal.problem import Problem, starts
from ramify.optimal.solver import KnotSolver, SolverSettings

_FIRST: Final = 300
"""The most iterations of the first step of a problem with constraints."""


class Mpc:
    """Controls from the state, by a few iterations of a problem at every step.

    problem: its horizon is the one that recedes; the length of its steps is the time between two
    calls of ``step``. iterations: of the solver, at every step; tolerance: it does fewer where
    less than this share of the cost is to be won. shift: the trajectory of the last step, one step
    later, is where the next begins.
    """

    def __init__(
        self, problem: Problem, iterations: int = 1, tolerance: float = 1e-9, shift: bool = True
    ) -> None:
        if not isinstance(problem, Problem):
            raise StateError(f"problem must be a Problem; it is {shown(problem)}")
        if problem.dt is None:
            raise StateError("Mpc needs steps of a fixed length: give dt as one number, in s")
        self.problem, self.shift = problem, bool(shift)
        self._iterations = whole("iterations", iterations, 1)
        most = _FIRST if problem.texts.constraints else self._iterations
        settings = SolverSettings(positive("tolerance", tolerance), most)
        self._solver = KnotSolver(problem, settings)
        self._parameters: dict[str, Any] | None = None
        self._started = False

    def reset(self) -> None:
        """Forget the trajectory: the next step begins with none."""
        self._started = False

    def step(self, q: ArrayLike, v: ArrayLike, **parameters: Any) -> tuple[Array, Array]:
        """(u, K): the forces of the driven joints at the state q, v, and the gains of the first
        step. Parameters that are not given stay as they were. Raises StateError for a state that
        does not fit.
        """
        space = self._solver.workspace
        arrays = space.arrays
        x = self._state(q, v)
        if not self._started:
            self._solver.load(x, self._rows(parameters), None)
            self._started = True
            if self.problem.texts.constraints:
                self._solver.run()
        else:
            if parameters:
                arrays["p"][:] = self._rows(parameters)
            if self.shift:
                for trajectory in (arrays["x"], arrays["u"]):
                    trajectory[:-1] = trajectory[1:]
            arrays["x"][0] = x
            self._solver.shift_multipliers(self.shift)
        space["count"], space["most"] = 0, self._iterations
        space["tolerance"] = self._solver.settings.tolerance
        space["reg"] = min(max(space["reg"], 1e-9), 1e-3)
        self.problem.code.iterate(space.pointer)
        self._solver.update_multipliers()
        n = self.problem.code.layout.n
        return arrays["u"][0].copy(), arrays["gains"][0, :, 1 : 1 + n].copy()

    def _state(self, q: ArrayLike, v: ArrayLike) -> Array:
        robot, field = self.problem.robot, self.problem.step.field
        if (
            type(q) is np.ndarray and type(v) is np.ndarray and not field.states
            and q.shape == (robot.nq,) and v.shape == (robot.nv,)
        ):  # fmt: skip
            x = np.concatenate((q, v))
            if not robot.layout.balls and np.isfinite(x.sum()):
                return x
        x = starts(self.problem, q, v)
        if x.ndim != 1:
            raise StateError(f"Mpc.step takes one state; q and v have leading axes {x.shape[:-1]}")
        return x

    def _rows(self, parameters: dict[str, Any]) -> Array:
        self._parameters = (self._parameters or {}) | parameters
        return self.problem.parameter_rows(self._parameters)

    @property
    def trajectory(self) -> tuple[Array, Array, Array]:
        """q (knots, nq), v (knots, nv) and u (steps, drives) that the last step has planned."""
        arrays, robot = self._solver.workspace.arrays, self.problem.robot
        q, v = arrays["x"][:, : robot.nq], arrays["x"][:, robot.nq : robot.nq + robot.nv]
        return q.copy(), v.copy(), arrays["u"].copy()

    def controller(
        self, reference: Callable[[float], dict[str, Any]] | None = None, **parameters: Any
    ) -> Function:
        """A sampled controller for ``simulate``. reference: the parameters as a function of time,
        for those that change.
        """
        self.reset()
        assert self.problem.dt is not None

        def force(t: float, q: Array, v: Array) -> Array:
            if t <= 0.0:
                self.reset()
            changing = {} if reference is None else reference(t)
            first = not self._started
            return self.step(q, v, **((parameters if first else {}) | changing))[0]

        return Function(
            force, actuated=self.problem.step.driven.names, rate_hz=1.0 / self.problem.dt
        )
