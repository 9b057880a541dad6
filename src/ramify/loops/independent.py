"""The independent coordinates of an assembly: which they are, and their values, rates and
accelerations, row by row.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array
from ramify.core.errors import StateError
from ramify.loops.given_values import ball_joints, number_of, orientations, place_of
from ramify.model.robot import Robot


class Independent:
    """Coordinates with values by name. ``in_q``, ``in_v``: their places; ``free``: those of the
    other velocities; ``turns``: quaternions by their place in q; ``tables``: tables (rows, k) of
    values, rates and accelerations; ``rows``: None where all are single numbers.
    """

    def __init__(
        self,
        model: Robot,
        independent: Mapping[str, ArrayLike],
        rates: Mapping[str, ArrayLike],
        second: Mapping[str, ArrayLike],
    ) -> None:
        self.model = model
        to_v = dict(zip(model.layout.plain_q, model.layout.plain_v, strict=True))
        independent = dict(independent)
        self.turns = orientations(model, independent, "independent")
        balls = ball_joints(model).items()
        of_turns = [(name, *place) for name, place in balls if place[0] in self.turns]
        self.names = list(independent)
        self.in_q = [place_of(model, name, "independent") for name in self.names]
        self.in_v = [to_v[i] for i in self.in_q]
        self.in_v += [j + k for _, _, j in of_turns for k in range(3)]
        self.free = [k for k in range(model.nv) if k not in self.in_v]
        for what, values in (("rates", rates), ("accelerations", second)):
            names = [*self.names, *(name for name, _, _ in of_turns)]
            for name in values:
                if name not in names:
                    raise StateError(
                        f"{what} names {name!r}, which is not among the independent coordinates "
                        f"{names}"
                    )
        columns = [
            [number_of(name, values.get(name, 0.0)) for name in self.names]
            for values in (independent, rates, second)
        ]
        shapes = {x.shape for column in columns for x in column if x.ndim}
        if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
            raise StateError(
                "independent coordinates must be numbers or rows of one length; got shapes "
                f"{sorted(shapes)}"
            )
        self.rows = next(iter(shapes))[0] if shapes else None
        count = 1 if self.rows is None else self.rows
        self.tables = [
            np.stack([np.broadcast_to(x, (count,)) for x in column], axis=1)
            if column
            else np.zeros((count, 0))
            for column in columns
        ]
        for table, values in ((1, rates), (2, second)):  # of orientations, as angular velocities
            for name, _, _ in of_turns:
                w = np.zeros(3) + number_of(name, values.get(name, 0.0))
                self.tables[table] = np.hstack([self.tables[table], np.tile(w, (count, 1))])
        self.turning = self._turning()

    def _turning(self) -> Array:
        """(k,): independent coordinates that come back after a turn: those of revolute joints, but
        for those in gears and couplings, which count turns.
        """
        tendons = {tendon.name: tendon.joints for tendon in self.model.tendons}
        geared = {name for loop in self.model.loops for name in loop.joints}
        lengths = [tendons[name] for loop in self.model.loops for name in loop.tendons]
        geared |= {name for terms in lengths for name, _ in terms}
        steps = [step for joint in self.model.joints for step in joint.steps]
        rates = self.in_v[: len(self.names)]
        plain = [abs(steps[k].rho) == 1.0 and steps[k].eta == 0.0 for k in rates]
        pairs = zip(plain, self.names, strict=True)
        return np.array([turns and name not in geared for turns, name in pairs], dtype=bool)

    def described(self, values: Array) -> str:
        said = [f"{name} = {x:.6g}" for name, x in zip(self.names, values, strict=True)]
        said += [
            f"the orientation of {name} given"
            for name, (i, _) in ball_joints(self.model).items()
            if i in self.turns
        ]
        return ", ".join(said) or "no coordinate given"

    def with_values(self, q: Array, values: Array) -> Array:
        """q with these values of the independent coordinates."""
        q = np.array(q)
        q[self.in_q] = values
        for i, quaternion in self.turns.items():
            q[i : i + 4] = quaternion
        return q

    def way(self, begin: Array, end: Array) -> Array:
        """From some independent values to others, without whole turns that change nothing."""
        way = end - begin
        way = way - 2.0 * np.pi * np.where(self.turning, np.trunc(way / (2.0 * np.pi)), 0.0)
        return np.concatenate([way, np.zeros(len(self.in_v) - len(way))])
