"""Whether a fixed step is short enough for a machine: its springs, damping, friction, stops and
tendons, and the gains of its actuators and servos.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ramify.control.commands import Commands
from ramify.core.arrays import Array
from ramify.core.cached import Memo
from ramify.core.errors import RamifyError, SimulationError
from ramify.core.scalar import Scalar
from ramify.core.warning import warn
from ramify.drives.machine_slopes import fastest_rate, fastest_stop, force_slopes
from ramify.drives.passive import joint_inertia
from ramify.integrate.integrator import Adaptive, Integrator
from ramify.integrate.integrators import AUTO, HARD, find_integrator
from ramify.kernels.closed import inertia_weight
from ramify.kernels.make import kernel
from ramify.loops.constraints import column_sizes, constraints
from ramify.model.robot import Robot
from ramify.plant.field import Field

MARGIN: Final = 0.9
"""Share of a method's limit from which a step counts as too long."""


def fastest_joint(field: Field, q: Array) -> tuple[float, int]:
    """(1/s, place in v): the fastest rate of the machine at q, and the joint that it moves most;
    0 where that cannot be computed.
    """
    servos: Array = np.array(field.servo_gains, dtype=np.float64)
    viscous, commanded = np.array(field.damping) + servos[1], isinstance(field.control, Commands)
    if not (field.passive_forces or viscous.any() or servos.any() or commanded):
        return 0.0, 0

    machine = field.passive_forces.without_slack

    def forces(q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        net: list[Scalar] = [0.0] * field.model.nv
        if machine:
            net = machine(q, v, [0.0] * len(machine.bristles)).total
        if commanded:
            start = [] if field.control is None else list(field.control.start)
            net = [a + b for a, b in zip(net, field.torque(0.0, q, v, start)[0], strict=True)]
        return net

    try:
        K, D = force_slopes(field.model, forces, q)
        K, D = K + np.diag(servos[0]), D + np.diag(viscous)
        for j in field.passive_forces.bristles:
            K[j, j] += field.passive_forces.law_of_bristles(j).stiffness
        M, ways = kernel(field.model, "mass_matrix")(q), open_ways(field.model, q)
        if not ways.size:
            return 0.0, 0
        fastest = fastest_rate(M, K, D, ways)
    except (RamifyError, np.linalg.LinAlgError, ZeroDivisionError):
        return 0.0, 0
    return max(fastest, fastest_stop(field.passive_forces, _inertia(field.model, q)))


def open_ways(model: Robot, q: Array) -> Array:
    """(nv, n): directions of the velocities that the loops leave free at q; for a tree, all."""
    if not model.loops:
        return np.eye(model.nv)
    c = constraints(model, q)
    ways: Array = np.linalg.svd(c.scaled)[2][c.rank :].T
    return ways / column_sizes(model)[:, None]


def _inertia(model: Robot, q: Array) -> tuple[float, ...]:
    """(nv): the least inertia that each joint shows, with loops that at q."""
    if not model.loops:
        return joint_inertia(model)
    ways = open_ways(model, q)
    moved = ways.T @ kernel(model, "mass_matrix")(q) @ ways
    shown = np.diag(ways @ np.linalg.solve(moved, ways.T))
    return tuple(1.0 / max(x, 1e-300) for x in shown.tolist())


def _stiffest(field: Field, q: Array, rate: float, j: int) -> str:
    """What makes the joint at place j that fast, for messages."""
    model, machine = field.model, field.passive_forces.without_slack
    if fastest_stop(field.passive_forces, _inertia(model, q)) == (rate, j):
        ends = next((low, high) for _, k, low, high in machine.limits if k == j)
        return f"the stop (limits {ends[0]:.4g} and {ends[1]:.4g})"
    stiffness, damping = np.array(field.servo_gains, dtype=np.float64)
    slopes = {"the controller": (stiffness[j], damping[j]), "damping=": (0.0, field.damping[j])}
    start = [] if field.control is None else list(field.control.start)
    for part in (*machine.parts, *(["actuator"] if isinstance(field.control, Commands) else [])):

        def forces(q: Sequence[Scalar], v: Sequence[Scalar], part: str = part) -> list[Scalar]:
            if part == "actuator":
                return field.torque(0.0, q, v, start)[0]
            return machine(q, v, [0.0] * len(machine.bristles)).force[part]

        K, D = force_slopes(model, forces, q)
        slopes[f"the {part.replace('_', ' ')}"] = K[j, j], D[j, j]
    if j in machine.bristles:
        slopes["the friction"] = machine.law_of_bristles(j).stiffness, slopes["the friction"][1]
    m = _inertia(model, q)[j]
    return max(slopes, key=lambda x: max(abs(slopes[x][0] / m) ** 0.5, abs(slopes[x][1] / m)))


def too_stiff(field: Field, q: Array, integrator: Integrator, step: float) -> bool:
    """Whether the machine makes a step unstable that an implicit method could take."""
    limit = None if isinstance(integrator.method, Adaptive) else integrator.method.stability
    if limit is None or field.prescribed is not None:
        return False
    return step * fastest_joint(field, q)[0] > MARGIN * limit


def refuse_implicit(field: Field) -> None:
    """Refuse machines that implicit steps do not support."""
    if field.contact is not None and field.model.loops and inertia_weight(field.model):
        raise SimulationError(
            f"{field.model.name!r} has links without mass in its loops, which implicit steps do "
            "not take on a ground: use rk4 or dop853, or give the links some mass"
        )


def hard_method(method: str, step: float | None) -> Integrator:
    """The method of a run with hard contact. Raises SimulationError for any other, and where no
    step is given.
    """
    if str(method).lower() not in (AUTO, HARD.name):
        raise SimulationError(
            f"method {method!r} cannot be combined with hard contact, whose steps are a method of "
            "their own; leave method out, or take ground= for a compliant ground"
        )
    if step is None:
        raise SimulationError(
            "hard contact is solved in fixed steps: give step= in seconds, 0.002 to 0.005 for most "
            "robots"
        )
    return HARD


def fixed_method(field: Field, q: Array, step: float) -> Integrator:
    """The fixed-step method: the implicit one of second order on a ground, and where rk4 would be
    unstable. That of first order needs a third of the time for a step, but on a ground its returns
    are off by more than ten per cent at 2 ms (docs/environments.md).
    """
    try:
        refuse_implicit(field)
    except SimulationError:
        return find_integrator("rk4")
    stiff = field.contact is not None or too_stiff(field, q, find_integrator("rk4"), step)
    return find_integrator("implicit_extrapolation" if stiff else "rk4")


def batch_method(field: Field, step: float) -> Integrator:
    """The fixed-step method for a batch, chosen at the neutral posture, so that it does not depend
    on the states; remembered for the next call.
    """
    methods = field.model.memo.remember("batch methods", lambda: Memo(64))
    return methods.remember(
        (field.fingerprint, step), lambda: fixed_method(field, field.model.neutral(), step)
    )


def warn_of_stiff_joints(
    field: Field, q: Array, method: str, step: float, limit: float | None
) -> None:
    """Warn, once for a robot, of a step that the machine makes unstable."""
    if (method, step) in field.steps_checked:
        return
    field.steps_checked.add((method, step))
    prescribed = field.prescribed
    if prescribed is not None and len(prescribed.driven(field.robot_text)) == field.model.nv:
        return  # all coordinates are prescribed
    if not limit or not (field.passive_forces or any(field.damping) or field.control is not None):
        return
    warned: set[object] = field.model.memo.remember("warned of stiff joints", set)
    gains = tuple(map(tuple, field.servo_gains))
    commanded = isinstance(field.control, Commands)
    key = (field.passive_forces.fingerprint, field.damping, gains, commanded, method, float(step))
    if key in warned:
        return
    warned.add(key)
    rate, j = fastest_joint(field, q)
    if step * rate > MARGIN * limit:
        what = _stiffest(field, q, rate, j)
        warn(
            f"a step of {step:g} s is too long for {method}: {what} at "
            f"{field.model.velocities[j]!r} of {field.model.name!r} acts at up to {rate:.3g} 1/s; "
            f"take at most {MARGIN * limit / rate:.2g} s, or method='implicit_extrapolation'",
            RuntimeWarning,
        )
