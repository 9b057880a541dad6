"""One step of a fixed-step scheme as a text over any scalar, as a rollout takes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ramify.codegen.stepper import Scheme
from ramify.core.scalar import Scalar
from ramify.interop.quaternion_inputs import normalised
from ramify.loops.stabilise import projection
from ramify.model.configuration import coordinate_rates
from ramify.sim.field import Field

Row = list[Scalar]


def step_text(field: Field, scheme: Scheme, dt: float) -> Callable[[Scalar, Row, Row], Row]:
    """(t, y, u) -> y after a step of ``dt`` seconds that begins at t, joint forces u held; y is the
    state of the field.
    """
    model, (of_q, of_v, _, _) = field.model, field.parts

    def step(t: Scalar, y: Row, u: Row) -> Row:
        if scheme.kick:  # everything but the coordinates first, these with the new velocities
            y = y[of_q] + _moved(y, dt, [1.0], [field.text(t, y, u)])[of_q.stop :]
            turning = coordinate_rates(model, y[of_q], y[of_v])
            return finished([x + dt * w for x, w in zip(y, turning, strict=False)] + y[of_q.stop :])
        stages: list[Row] = []
        for row, c in zip(scheme.a, scheme.c, strict=True):
            stages.append(field.text(t + c * dt, _moved(y, dt, row, stages), u))
        return finished(_moved(y, dt, scheme.b, stages))

    def finished(y: Row) -> Row:
        q, v = normalised(model, y[of_q]), y[of_v]
        if model.loops:
            q, v = projection(model)(q, v)
        return [*q, *v, *y[of_v.stop :]]

    return step


def _moved(y: Row, dt: float, weights: Sequence[float], rates: Sequence[Row]) -> Row:
    """y + dt times the weighted sum of some rates."""
    used = [(dt * w, k) for w, k in zip(weights, rates, strict=False) if w]
    return [sum((w * k[i] for w, k in used), x) for i, x in enumerate(y)]
