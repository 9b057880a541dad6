"""Rollouts as users start them: they show themselves in notebooks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import ParamSpec, cast

import numpy as np

from ramify.api.result import Result
from ramify.model.robot import Robot
from ramify.sim import rollout as rolling
from ramify.sim.run_record import Run, Work
from ramify.view.report import player

P = ParamSpec("P")


@dataclass(frozen=True, repr=False)
class Rollout(rolling.RolloutRecord):
    __doc__ = rolling.RolloutRecord.__doc__

    model: Robot | None = field(default=None, repr=False, compare=False)

    def result(self, *index: int) -> Result:
        """The way of one state as a ``Result``, with its start: ``run.result(3)``, in a batch of
        two axes ``run.result(3, 5)``, of a single state ``run.result()``. Accelerations, forces and
        work are those of the rollout's steps; a state that failed ends at its last good sample.

        Raises SimulationError where the rollout has kept its last states alone (give it ``every``),
        and for an index outside its batch.
        """
        return Result.of(self._run(index))

    def _repr_html_(self) -> str:
        """The table of its states; where there is a history, the motion of the first that did not
        fail.
        """
        table, good = super()._repr_html_(), ~self.status.failed
        if self.model is None or self.q.ndim < good.ndim + 2 or not good.any():
            return table
        first = np.unravel_index(int(good.argmax()), good.shape) if good.ndim else ()
        still, unknown = np.zeros_like(self.t), np.full_like(self.v[first], np.nan)
        run = Run(
            self.model, self.t, self.q[first], self.v[first], unknown, unknown, Work(still, still)
        )
        number = ", ".join(map(str, first)) or "0"
        return f"{table}<p>state {number}:</p>{player(run, plots=False)}"


def _shown(make: Callable[P, rolling.RolloutRecord]) -> Callable[P, Rollout]:
    """The same function, whose rollout shows itself."""

    @wraps(make)
    def made(*args: P.args, **options: P.kwargs) -> Rollout:
        found = make(*args, **options)
        model = cast(Robot, args[0] if args else options["model"])
        shown = object.__new__(Rollout)  # its fields need no second look
        shown.__dict__.update(found.__dict__, model=model)
        return shown

    made.__annotations__ = {**made.__annotations__, "return": "Rollout"}
    return made


rollout = _shown(rolling.rollout)
