"""The rates of one linearly implicit Euler step, (y+ - y) / h, over any scalar: stiff forces act at
its end.

Ground, springs, damping, friction, stops, tendons, servos and activations are taken at the end of
the step, linearised once; everything else at its start. A step is stable however stiff they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ramify.contact.ground import positive
from ramify.contact.robot_on_ground import ContactText
from ramify.core.jet import Jet, rate, value
from ramify.core.scalar import Scalar
from ramify.core.spatial import Vec3
from ramify.drives.actuators import within
from ramify.drives.passive import PARTS, PassiveText
from ramify.dynamics.closure import closures
from ramify.dynamics.contact_points import GroundText
from ramify.dynamics.implicit import LoopTerms, Resistance, implicit_dynamics
from ramify.dynamics.tree import tree_of
from ramify.kernels.closed import inertia_weight
from ramify.model.configuration import coordinate_rates
from ramify.sim.joint_gains import drive_gains, machine_gains, no_gains

if TYPE_CHECKING:
    from ramify.sim.field import Field

Scalars = Sequence[Scalar]


def implicit_rates(field: Field, t: Scalar, y: Scalars, u: Scalars, h: Scalar) -> list[Scalar]:
    """(y+ - y) / h of a step of h seconds from t, under forces u (nv) from outside."""
    model, (of_q, of_v, of_z, _) = field.model, field.parts
    q, v = list(y[of_q]), list(y[of_v])
    z, bristles = list(y[of_z])[: field.controlled], list(y[of_z])[field.controlled :]
    n, driven, control = model.nv, dict[int, Scalar](), None if field.sampled else field.control
    asked, tau = [0.0] * n, list(u)
    if field.prescribed is not None:
        q, v, given = field.prescribed.placed(field.robot_text, t, q, v)
        driven = dict(zip(field.prescribed.driven(field.robot_text).v, given, strict=True))
    else:
        if control is not None:
            asked = field.torque(t, q, v, z)[0]
        asked = [a + b for a, b in zip(asked, u, strict=True)]
        tau = field.driven_within(asked)
    servo, servo_d = drive_gains(control, field.robot_text, t, q, v, z)
    if field.efforts:  # a drive at its limit is no spring
        free = [within(f, e) for f, e in zip(asked, field.effort_ranges, strict=True)]
        servo = [k * x for k, x in zip(servo, free, strict=True)]
        servo_d = [d * x for d, x in zip(servo_d, free, strict=True)]
    ahead = moved(field, q, v, h)
    net = [f - d * w - h * k * w for f, d, k, w in zip(tau, field.damping, servo, v, strict=True)]
    own_k, own_d = no_gains(n)
    if field.machine:
        lifted = PARTS[-1]
        rates = bristle_rates(field.machine, q, v, bristles, h)
        bent = [x + h * r for x, r in zip(bristles, rates, strict=True)]
        found = field.machine(ahead, v, bent).force
        if lifted in found:
            found[lifted] = field.machine(q, v, bristles).force[lifted]
        for part in found.values():
            net = [f + p for f, p in zip(net, part, strict=True)]
        own_k, own_d = machine_gains(field.machine, ahead, v, bent)
    drive_W = [h * (d + h * k) for k, d in zip(servo, servo_d, strict=True)]
    rotors = [
        W + h * (d + c + h * k)
        for W, k, d, c in zip(drive_W, own_k, own_d, field.damping, strict=True)
    ]
    rotors = [0.0 if j in driven else W for j, W in enumerate(rotors)]
    contact = field.contact
    loops = (
        LoopTerms(closures(model), field.baumgarte, inertia_weight(model)) if model.loops else None
    )
    a, forces, felt = implicit_dynamics(
        tree_of(model), model.skeleton.coordinates(q, (1.0, 0.0, 0.0, 0.0)), v, net, rotors, h,
        [()] * n if contact is None else contact.points, *_ground(contact), driven, loops,
    )  # fmt: skip
    w = [x + h * b for x, b in zip(v, a, strict=True)]
    bent = bristle_rates(field.machine, q, w, bristles, h)
    out = [*coordinate_rates(model, q, w), *a, *_own_rates(field, t, q, v, z, h), *bent]
    if not field.counted:
        return out
    # work and losses, by the powers at the end of the step
    each = zip(tau, servo, v, drive_W, a, strict=True)
    given = [f - h * k * x - W * b for f, k, x, W, b in each]
    for j, force in forces.items():
        given[j] = force - (net[j] - tau[j])
    work: Scalar = 0.0
    loss: Scalar = 0.0
    for f, d, x in zip(given, field.damping, w, strict=True):
        work, loss = work + f * x, loss + d * (x * x)
    heat: list[Scalar] = [] if contact is None else [sum(r.loss for r in felt())]
    bristles = [x + h * r for x, r in zip(bristles, bent, strict=True)]
    heat += list(field.machine(moved(field, q, w, h), w, bristles).loss.values())
    return [*out, work, loss, *heat]


def _ground(contact: ContactText | None) -> tuple[GroundText, Callable[..., Resistance]]:
    """The ground's answer to a point and its resistance; never asked where there is none."""
    if contact is None:
        return _nowhere, _nowhere
    return contact.ground.reaction, contact.ground.resistance


def _nowhere(place: Vec3, velocity: Vec3) -> Resistance:
    raise AssertionError("no point touches")


def moved(field: Field, q: Scalars, v: Scalars, h: Scalar) -> list[Scalar]:
    """q after h seconds with the velocities v."""
    return [x + h * dx for x, dx in zip(q, coordinate_rates(field.model, q, v), strict=True)]


def bristle_rates(
    machine: PassiveText, q: Scalars, v: Scalars, z: Scalars, h: Scalar
) -> list[Scalar]:
    """Of the deflections of bristles, over h seconds at the velocities v."""
    if not z:
        return []
    return decaying(machine(q, v, [Jet(x, 1.0, None) for x in z]).rates, h)


def _own_rates(
    field: Field, t: Scalar, q: Scalars, v: Scalars, z: Scalars, h: Scalar
) -> list[Scalar]:
    """Of the controller's states."""
    if not z or field.sampled:
        return [0.0] * len(z)
    return decaying(field.torque(t, q, v, [Jet(x, 1.0, None) for x in z])[1], h)


def decaying(rates: Scalars, h: Scalar) -> list[Scalar]:
    """Rates of states over h seconds, each by its own decay; they are jets by the states."""
    return [value(r) / (1.0 + h * positive(-rate(r))) for r in rates]
