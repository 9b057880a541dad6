"""How the joints resist small motions: stiffness and damping of servos and of the machine, joint by
joint, for steps that take them implicitly.

What couples joints (a tendon with row J and stiffness k) counts with |J_i| sum |J_j| k at joint i,
which resists any motion at least as much as J' k J does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ramify.contact.ground import positive_part
from ramify.control.commands import Commands
from ramify.control.controller import Controller, spread
from ramify.control.feedforward import Feedforward, MeasuredFeedforward
from ramify.control.pd import PD, PID
from ramify.control.robot_text import RobotText
from ramify.control.sum import parts_of
from ramify.core.jet import Jet, rate
from ramify.core.scalar import Scalar, Scalars, select
from ramify.drives.actuators import within
from ramify.drives.passive import PARTS, PassiveText
from ramify.drives.places import Places, Row, row_times
from ramify.drives.tendons import pull, tendon_length
from ramify.model.configuration import coordinate_rates
from ramify.model.robot import Robot

Gains = tuple[list[Scalar], list[Scalar]]
"""Stiffness, N m/rad or N/m, and damping, N m s/rad or N s/m, of each velocity (nv)."""


def no_gains(n: int) -> Gains:
    return [0.0] * n, [0.0] * n


def sum_gains(*gains: Gains) -> Gains:
    """The sum of some gains."""
    k, d = ([sum(column[1:], column[0]) for column in zip(*part, strict=True)]
            for part in zip(*gains, strict=True))  # fmt: skip
    return k, d


def servo_gains(control: Controller | None, robot: RobotText) -> Gains:
    """kp and kd of the controllers that are springs and dampers at their joints."""
    return sum_gains(no_gains(robot.nv), *(_pd_gains(part, robot) for part in parts_of(control)))


def _pd_gains(part: Controller, robot: RobotText, tau: Scalars | None = None) -> Gains:
    """kp and kd, but not of a servo whose force tau (nv) is at its limit."""
    gains_of_joints = no_gains(robot.nv)
    if not isinstance(part, (PD, PID, Feedforward, MeasuredFeedforward)):
        return gains_of_joints
    driven = part.driven(robot)
    free: list[Scalar] = [1.0] * len(driven)
    if tau is not None and part.limits is not None:
        limits = part.limits_of(robot, driven)
        free = [within(tau[j], (-x, x)) for j, x in zip(driven.v, limits, strict=True)]
    for name, gains, out in (
        ("kp", part.kp, gains_of_joints[0]),
        ("kd", part.kd, gains_of_joints[1]),
    ):
        each = zip(driven.v, free, spread(name, gains, driven, robot), strict=True)
        for j, share, gain in each:
            out[j] = share * gain
    return gains_of_joints


def drive_gains(
    control: Controller | None, robot: RobotText, t: Scalar, q: Scalars, v: Scalars, z: Scalars
) -> Gains:
    """kp and kd of controllers and actuators at a state, zero where they are saturated."""
    gains, first = [no_gains(robot.nv)], 0
    for part in parts_of(control):
        states = z[first : first + part.state_count(robot)]
        first += len(states)
        if isinstance(part, Commands):
            driving = part.driving(robot.model, t, q, v, states)
            rows = zip(driving.rows, driving.stiffness, driving.damping, strict=True)
            gains += [
                along(row, positive_part(k), positive_part(d), robot.nv) for row, k, d in rows
            ]
        else:
            tau = None if part.limits is None else part.text(robot, t, q, v, states)[0]
            gains.append(_pd_gains(part, robot, tau))
    return sum_gains(*gains)


def machine_gains(machine: PassiveText, q: Scalars, v: Scalars, z: Scalars) -> Gains:
    """The gains of the machine's passive forces, z being the deflections of its bristles."""
    model = machine.robot
    if not machine:
        return no_gains(model.nv)

    def force(x: Scalars, w: Scalars) -> list[Scalar]:
        parts = [f for part, f in machine(x, w, z).force.items() if part not in PARTS[-2:]]
        return [sum(column) for column in zip(*parts, strict=True)] if parts else [0.0] * model.nv

    gains = [diagonal_slopes(model, q, v, force)]
    if machine.bristles:  # they bend as the joint moves
        o, one = [0.0] * len(z), [1.0] * len(z)
        forces = machine(q, _jets(v, [0.0] * len(v)), _jets(z, one)).force["friction"]
        rates = machine(q, _jets(v, [1.0] * len(v)), _jets(z, o)).rates
        of_bristles = no_gains(model.nv)
        for j, r in zip(machine.bristles, rates, strict=True):
            of_bristles[0][j] = positive_part(-rate(forces[j])) * positive_part(rate(r))
        gains.append(of_bristles)
    spatial = any(tendon.branches for tendon in model.tendons)
    places = Places(model, q) if spatial else None
    for tendon in model.tendons if "tendon" in machine.parts else ():
        L, row = tendon_length(model, tendon, q, places)
        speed = row_times(row, v)
        k = positive_part(-rate(pull(tendon, Jet(L, 1.0, None), speed)[0].force))
        d = positive_part(-rate(pull(tendon, L, Jet(speed, 1.0, None))[1].force))
        gains.append(along(row, k, d, model.nv))
    return sum_gains(*gains)


def along(row: Row, stiffness: Scalar, damping: Scalar, n: int) -> Gains:
    """The gains at the joints of a force along a length with this row of derivatives."""
    size = {j: select(x < 0.0, -x, x) for j, x in row.items()}
    total: Scalar = sum(size.values())
    k, d = no_gains(n)
    for j, x in size.items():
        k[j], d[j] = stiffness * (x * total), damping * (x * total)
    return k, d


def diagonal_slopes(
    model: Robot, q: Scalars, v: Scalars, force: Callable[[Scalars, Scalars], Sequence[Scalar]]
) -> Gains:
    """Derivatives of a force at each joint by its own coordinates and velocities, where it resists;
    the joints' first coordinates at once, then their second …
    """
    k, d = no_gains(model.nv)
    still = [0.0] * model.nv
    starts = [model.joint_slice(joint.name) for joint in model.joints]
    for i in range(max((rates.stop - rates.start for rates in starts), default=0)):
        chosen = [rates.start + i for rates in starts if rates.start + i < rates.stop]
        unit = [float(j in chosen) for j in range(model.nv)]
        moved = coordinate_rates(model, q, unit)
        by_q = force(_jets(q, moved), _jets(v, still))
        by_v = force(_jets(q, [0.0] * len(q)), _jets(v, unit))
        for j in chosen:
            k[j], d[j] = positive_part(-rate(by_q[j])), positive_part(-rate(by_v[j]))
    return k, d


def _jets(x: Scalars, rates: Scalars) -> list[Scalar]:
    return [Jet(a, da, None) for a, da in zip(x, rates, strict=True)]
