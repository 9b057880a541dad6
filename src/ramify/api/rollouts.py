"""Rollouts as users start them: they show themselves in notebooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Final, ParamSpec, cast

import numpy as np

from ramify.api.result import Result
from ramify.core.arrays import Array
from ramify.core.html import Markup, facts, html_table, scrolled, sparkline
from ramify.model.robot import Robot
from ramify.runs import rollout as rolling
from ramify.runs.recorder import drawn_run
from ramify.view.report import player

P = ParamSpec("P")
MOST_COORDINATES: Final = 12
MOST_SAMPLES: Final = 100


@dataclass(frozen=True, repr=False)
class Rollout(rolling.RolloutRecord):
    __doc__ = rolling.RolloutRecord.__doc__

    model: Robot | None = field(default=None, repr=False, compare=False)

    def result(self, *index: int) -> Result:
        """The way of one state as a ``Result``, with its start: ``run.result(3)``, in a batch of
        two axes ``run.result(3, 5)``, of a single state ``run.result()``. Accelerations, forces and
        work are those of the rollout's steps; a state that failed ends at its last good sample.

        Raises SimulationError where the rollout has kept its last states alone (give it ``every``;
        with a Python function or a sampled controller ``every=1``), and for an index outside its
        batch.
        """
        return Result.of(self._run(index))

    def _repr_html_(self) -> str:
        """The table of its states; where there is a history, the motion of the first that did not
        fail.
        """
        good = ~self.status.failed
        names = [f"q[{i}]" for i in range(self.q.shape[-1])]
        if self.steps is not None:
            names = list(self.steps.steps.field.model.coordinates)
        shown = rollout_html(self.t, self.q, str(self.status), good.ndim, names)
        if self.model is None or self.q.ndim < good.ndim + 2 or not good.any():
            return shown
        first = np.unravel_index(int(good.argmax()), good.shape) if good.ndim else ()
        run = drawn_run(self.model, self.t, self.q[first], self.v[first])
        number = ", ".join(map(str, first)) or "0"
        return f"{shown}<p>state {number}:</p>{player(run, plots=False)}"


def rollout_html(t: Array, q: Array, status: str, lead: int, names: Sequence[str]) -> str:
    """Facts, and for the first coordinates the least, median and largest number at the end, with
    curves of the three over time where there is a history. q (..., samples, nq) or (..., nq), with
    ``lead`` axes of states.
    """
    rows = q.reshape(-1, t.size, q.shape[-1]) if q.ndim > lead + 1 else None
    last = q.reshape(-1, q.shape[-1]) if rows is None else rows[:, -1]
    said = facts({"states": len(last), "until": f"{t.flat[-1]:.6g} s", "status": status})
    good = np.isfinite(last).all(axis=1)
    if not good.any():
        return said
    cells = []
    for k, name in enumerate(names[:MOST_COORDINATES]):
        low, middle, high = np.quantile(last[good, k], [0.0, 0.5, 1.0]).tolist()
        curves: Markup | str = ""
        if rows is not None and t.size > 1:
            kept = np.linspace(0, t.size - 1, min(t.size, MOST_SAMPLES)).astype(int)
            spread = np.quantile(rows[good][:, kept, k], [0.0, 0.5, 1.0], axis=0)
            curves = sparkline(*spread.tolist())
        cells.append((name, low, middle, high, curves))
    columns = ("coordinate", "least", "median", "largest", "over time")
    more = len(names) - len(cells)
    note = f"<p>and {more} coordinates more</p>" if more > 0 else ""
    return said + scrolled(html_table(columns, cells, (1, 2, 3))) + note


def _shown(make: Callable[P, rolling.RolloutRecord]) -> Callable[P, Rollout]:
    """``make`` with a ``Rollout`` in place of the record that it returns."""

    @wraps(make)
    def make_rollout(*args: P.args, **options: P.kwargs) -> Rollout:
        record = make(*args, **options)
        model = cast(Robot, args[0] if args else options["model"])
        shown = object.__new__(Rollout)  # its fields were checked already
        shown.__dict__.update(record.__dict__, model=model)
        return shown

    make_rollout.__annotations__ = {**make_rollout.__annotations__, "return": "Rollout"}
    return make_rollout


rollout = _shown(rolling.rollout)
