"""The controller of an optimised trajectory: its forces, and feedback with its gains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ramify.control.controller import ControlForces, Controller
from ramify.control.robot_text import RobotText
from ramify.core.arrays import Array
from ramify.core.lookup import LookupTable
from ramify.core.scalar import Scalar, Scalars, floor, lookup, select
from ramify.model.driven import Driven
from ramify.motion.ik_text import velocity_between

_EARLY = 1e-6
"""The share of a step by which a sample may come too early."""


@dataclass(frozen=True)
class Tracking(Controller):
    """tau = u_k + K_k [difference(q_k, q), v - v_k] at the step k that begins at time k dt; after
    the last step, the last gains hold the last state.

    The tables have one number after the other, knot by knot; dt in s.
    """

    states_q: LookupTable
    states_v: LookupTable
    forces: LookupTable
    gains: LookupTable
    dt: float

    @staticmethod
    def of(q: Array, v: Array, u: Array, K: Array, dt: float, **options: Any) -> Tracking:
        """From the arrays of a solution: one more state than forces and gains."""
        nv = v.shape[-1]
        last = (np.concatenate([u, u[-1:]]), np.concatenate([K, K[-1:]])[:, :, : 2 * nv])
        at_q, at_v, forces, gains = (LookupTable(x) for x in (q, v, *last))
        return Tracking(at_q, at_v, forces, gains, dt, **options)

    def law(
        self, robot: RobotText, driven: Driven, t: Scalar, q: Scalars, v: Scalars, z: Scalars
    ) -> ControlForces:
        m, nq, nv = len(driven), robot.nq, robot.nv
        last = float(len(self.forces) // m - 1)
        step = floor(t / self.dt + _EARLY)
        step = select(step < last, step, last)
        step = select(step > 0.0, step, 0.0)

        def entry(table: LookupTable, size: int, i: int) -> Scalar:
            return lookup(table, step * float(size) + float(i))

        at_q = [entry(self.states_q, nq, i) for i in range(nq)]
        at_v = [entry(self.states_v, nv, i) for i in range(nv)]
        deviation = [
            *velocity_between(robot.model, at_q, list(q)),
            *(a - b for a, b in zip(v, at_v, strict=True)),
        ]
        forces: list[Scalar] = []
        for a in range(m):
            force = entry(self.forces, m, a)
            for j, d in enumerate(deviation):
                force = force + entry(self.gains, 2 * nv * m, 2 * nv * a + j) * d
            forces.append(force)
        return forces, []
