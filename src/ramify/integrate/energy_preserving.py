"""The average vector field method: fixed steps that keep the total energy of a free robot."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import SimulationError
from ramify.core.scalar import Scalar
from ramify.integrate.integrator import Correction, Integrator, Marching, RatesLike
from ramify.kernels.algorithms import ALGORITHMS
from ramify.kernels.make import kernel
from ramify.kernels.robot_keys import robot_key
from ramify.kernels.text import plain_text
from ramify.kernels.tier_policy import unrolls
from ramify.model.robot import Robot, once
from ramify.plant.field import Field
from ramify.runtime.cache_keys import digest
from ramify.runtime.compiled_program import CompiledProgram
from ramify.trace.program import Port, trace

_GAUSS = np.polynomial.legendre.leggauss(7)


def _march(
    field: Field, rates: RatesLike, t: float, y: Array, dt: float, correct: Correction
) -> Callable[[], Array]:
    """Refuse what has no energy to keep, then step."""
    of_q, of_v, _, _ = field.state_slices
    driven = field.control is not None or any(field.damping) or field.ground is not None
    for refused, why in (
        (field.model.loops, "is for trees; for a robot with loops"),
        (driven, "is for motion without control and damping, off the ground;"),
        (field.pushed or field.loads, "takes no wrenches or loads, whose work changes the energy;"),
    ):
        if refused:
            raise SimulationError(f"the energy-preserving method {why} use dop853 or rk4")
    motion = EnergyPreserving(field.model, t, y[of_q], y[of_v], dt)

    def step() -> Array:
        row = y.copy()
        row[of_q], row[of_v] = motion.step()
        return row

    return step


class EnergyPreserving:
    """The average vector field method on (q, p), p = I v: second order, total energy kept to
    rounding. No joint force acts.

    p' = -g + C' v, because dI/dt = C + C'. The field is averaged along the straight line from one
    state to the next (seven Gauss points), the next state found by iteration.
    """

    def __init__(self, model: Robot, t: float, q: Array, v: Array, dt: float) -> None:
        if model.nq != model.nv:
            raise SimulationError(
                "the energy-preserving method moves vectors, not quaternions; load the robot with "
                "base='free_euler' or use rk4"
            )
        self.t, self.dt, self.taken, self._slope = t, dt, 0, hamiltonian(model)
        self.q, self.p = q, kernel(model, "mass_matrix")(q) @ v
        self._rates = self._average(self.q, self.p)

    def _average(self, q1: Array, p1: Array) -> tuple[Array, Array]:
        """[dq/dt, dp/dt] on the way from (q, p) to (q1, p1)."""
        nodes, weights = 0.5 * (_GAUSS[0][:, None] + 1.0), 0.5 * _GAUSS[1]
        q, p = self.q, self.p
        with np.errstate(all="ignore"):  # an iteration that runs away is reported below
            along = zip(q + nodes * (q1 - q), p + nodes * (p1 - p), strict=True)
            mean = weights @ np.array([self._slope(*state) for state in along])
        return mean[: len(q)], mean[len(q) :]

    def step(self) -> tuple[Array, Array]:
        """(q, v) after the next step."""
        q, p, dt, (dq, dp) = self.q, self.p, self.dt, self._rates
        q1, p1 = q + dt * dq, p + dt * dp
        for _ in range(60):
            dq, dp = self._rates = self._average(q1, p1)
            new_q, new_p = q + dt * dq, p + dt * dp
            change = max(
                np.abs(new_q - q1).max() / (1.0 + np.abs(q1).max()),
                np.abs(new_p - p1).max() / (1.0 + np.abs(p1).max()),
            )
            q1, p1 = new_q, new_p
            if change < 1e-15 or not np.isfinite(change):
                break
        if not change < 1e-12:
            raise SimulationError(
                f"the energy-preserving step at t = {self.t + self.taken * dt:g} s does not "
                f"converge; take a step below {dt:g} s"
            )
        self.q, self.p, self.taken = q1, p1, self.taken + 1
        return q1, self._slope(q1, p1)[: len(q1)]


@once
def hamiltonian(model: Robot) -> Callable[[Array, Array], Array]:
    """(q, p) -> [dq/dt, dp/dt] of the free robot: I^-1 p and C' v - g, compiled where the robot is
    not too large.
    """
    n = model.nv
    texts = [
        plain_text(ALGORITHMS[name], model, ())
        for name in ("mass_matrix_inverse", "coriolis_matrix", "gravity_forces")
    ]

    def text(q: Sequence[Scalar], p: Sequence[Scalar]) -> list[Scalar]:
        (inverse,) = texts[0](list(q))
        v = [sum((inverse[i * n + j] * p[j] for j in range(n)), start=0.0) for i in range(n)]
        (coriolis,), (gravity,) = texts[1](list(q), v), texts[2](list(q))
        pushed = [
            sum((coriolis[j * n + i] * v[j] for j in range(n)), start=0.0) - gravity[i]
            for i in range(n)
        ]
        return [*v, *pushed]

    def written_out(q: Array, p: Array) -> Array:
        return np.array(text(q.tolist(), p.tolist()), dtype=np.float64)

    if not unrolls(model, pairs=True):
        return written_out
    inputs, output = (Port("q", (n,)), Port("p", (n,))), Port("rates", (2 * n,))
    program = trace("hamiltonian", lambda q, p: [text(q, p)], inputs, (output,))
    key = digest(robot_key(model), "hamiltonian")
    return CompiledProgram("hamiltonian", program, key).call(inputs, (output,), written_out)


ENERGY = Integrator(
    "energy", "keeps the energy of a robot without control, damping, ground or loops", 2,
    Marching(_march),
)  # fmt: skip
