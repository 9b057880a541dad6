"""One step of a fixed-step scheme as a text over any scalar, as a rollout takes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ramify.core.scalar import Scalar, sqrt
from ramify.emit.stepper import Scheme
from ramify.loops.stabilise import projection
from ramify.model.configuration import coordinate_rates
from ramify.plant.field import Field
from ramify.trace.program import Port, Program, trace

Row = list[Scalar]


def step_text(field: Field, scheme: Scheme, dt: Scalar) -> Callable[[Scalar, Row, Row], Row]:
    """(t, y, u) -> y after a step of ``dt`` seconds that begins at t, joint forces u held; y is the
    state of the field.
    """
    model, (of_q, of_v, _, _) = field.model, field.state_slices

    def step(t: Scalar, y: Row, u: Row) -> Row:
        if scheme.kick:  # everything but the coordinates first, these with the new velocities
            y = y[of_q] + _moved(y, dt, [1.0], [field.text(t, y, u)])[of_q.stop :]
            turning = coordinate_rates(model, y[of_q], y[of_v])
            return finished([x + dt * w for x, w in zip(y, turning, strict=False)] + y[of_q.stop :])
        stages: list[Row] = []
        lengths = scheme.lengths or (0.0,) * scheme.stages
        for row, c, length in zip(scheme.a, scheme.c, lengths, strict=True):
            at = _moved(y, dt, row, stages)
            stages.append(field.text(t + c * dt, at, u, length * dt))
        return finished(_moved(y, dt, scheme.b, stages))

    def finished(y: Row) -> Row:
        q, v = y[of_q], y[of_v]
        for i, _ in model.layout.balls:
            shorter = 1.0 / sqrt(sum((x * x for x in q[i + 1 : i + 4]), q[i] * q[i]))
            q[i : i + 4] = [x * shorter for x in q[i : i + 4]]
        if model.loops:
            q, v = projection(model)(q, v)
        return [*q, *v, *y[of_v.stop :]]

    return step


def step_program(field: Field, scheme: Scheme) -> Program:
    """A step for other programs: inputs t (2) = [t, h], q, v, the states z of controllers and
    bristles where there are any, u (nv); outputs q, v and z after it.
    """
    model, parts = field.model, field.state_slices[:3]
    sizes = {"q": model.nq, "v": model.nv, "z": field.states}
    ports = [Port(name, (n,)) for name, n in sizes.items() if n]

    def text(t: Row, *given: Row) -> list[Row]:
        y = [x for part in given[:-1] for x in part]
        y += [0.0] * (field.size - len(y))
        after = step_text(field, scheme, t[1])(t[0], y, given[-1])
        return [after[part] for part in parts][: len(ports)]

    outputs = [Port(f"{port.name}_next", port.shape) for port in ports]
    return trace(
        f"{scheme.name}_step", text, [Port("t", (2,)), *ports, Port("u", (model.nv,))], outputs
    )


def _moved(y: Row, dt: Scalar, weights: Sequence[float], rates: Sequence[Row]) -> Row:
    """y + dt times the weighted sum of some rates."""
    used = [(dt * w, k) for w, k in zip(weights, rates, strict=False) if w]
    return [sum((w * k[i] for w, k in used), x) for i, x in enumerate(y)]
