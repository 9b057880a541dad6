"""The rates of one linearly implicit Euler step, (y+ - y) / h, over any scalar: stiff forces act at
its end.

Ground, springs, damping, friction, stops, tendons, servos and activations are taken at the end of
the step, linearised once; everything else at its start. A step is stable however stiff they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, NoReturn

from ramify.contact.ground import positive_part
from ramify.contact.robot_on_ground import ContactText
from ramify.core.jet import Jet, rate, value
from ramify.core.scalar import Scalar, Scalars
from ramify.core.spatial import Vec3
from ramify.drives.actuators import within
from ramify.drives.passive import PARTS, PassiveText
from ramify.dynamics.closure import closures
from ramify.dynamics.contact_points import GroundText, NormalText
from ramify.dynamics.implicit import PointContact, Resistance, implicit_dynamics
from ramify.dynamics.independent_rows import LoopTerms
from ramify.dynamics.redundancy import redundancy
from ramify.dynamics.tree import tree_of
from ramify.kernels.closed import inertia_weight
from ramify.model.configuration import coordinate_rates
from ramify.plant.joint_gains import drive_gains, machine_gains, no_gains
from ramify.plant.plant import Plant
from ramify.plant.right_hand_side import NetForce, counter_rates, opposed, plus
from ramify.plant.text_parts import TextParts


def implicit_rates(field: Plant, t: Scalar, y: Scalars, u: Scalars, h: Scalar) -> list[Scalar]:
    """(y+ - y) / h of a step of h seconds from t, under forces and wrenches u from outside."""
    model, (of_q, of_v, of_z, _) = field.model, field.state_slices
    q, v, z = list(y[of_q]), list(y[of_v]), list(y[of_z])
    z, bristles = z[: field.controlled], z[field.controlled :]
    driven: dict[int, Scalar] = {}
    if field.prescribed is not None:
        q, v, prescribed_accelerations = field.prescribed.apply_prescribed_motion(
            field.robot_text, t, q, v
        )
        driven = dict(
            zip(field.prescribed.driven(field.robot_text).v, prescribed_accelerations, strict=True)
        )
        drive = Terms(list(u[: model.nv]), *no_gains(model.nv))
    else:
        drive = drive_terms(field, t, q, v, z, u[: model.nv])
    acting = implicit_forces(field, drive, q, v, bristles, u, h)
    parts, net, resisting = TextParts(field), acting.net, acting.resisting
    rotors = [0.0 if j in driven else x for j, x in enumerate(acting.rotors)]
    contact, loops = field.contact, None
    if model.loops:
        loops = LoopTerms(
            closures(model), field.baumgarte, inertia_weight(model), redundancy(model)
        )
    a, forces, reactions = implicit_dynamics(
        tree_of(model), model.skeleton.coordinates(q, (1.0, 0.0, 0.0, 0.0)), v, net, rotors, h,
        PointContact([()] * model.nv if contact is None else contact.points, *_ground(contact)),
        driven, loops,
    )  # fmt: skip
    w = [x + h * b for x, b in zip(v, a, strict=True)]
    deflection_rates = bristle_rates(field.passive_forces, q, w, bristles, h)
    out = [
        *coordinate_rates(model, q, w),
        *a,
        *controller_rates(field, t, q, v, z, h),
        *deflection_rates,
    ]
    if not field.counted:
        return out
    powers: list[Scalar] = []  # at the step's end
    for j, x in enumerate(w):
        f = acting.driven[j] - acting.servo[j] * a[j]
        powers.append((forces[j] - resisting.net[j] if j in driven else f) * x)
    heat: list[Scalar] = [] if contact is None else [sum(r.loss for r in reactions())]
    bristles = [x + h * r for x, r in zip(bristles, deflection_rates, strict=True)]
    heat += list(
        field.passive_forces(moved_with_velocities(field, q, w, h), w, bristles).loss.values()
    )
    return [*out, *counter_rates(parts, w, powers, resisting, heat)]


class Terms(NamedTuple):
    """Forces at the joints with their stiffness and damping there, each (nv)."""

    force: list[Scalar]
    k: list[Scalar]
    d: list[Scalar]


class ImplicitForces(NamedTuple):
    """Of a step, (nv) each: joint forces ``net`` and the inertia ``rotors`` that implicit terms
    add; of these the drives' ``driven`` and ``servo``; what else acts, ``resisting``.
    """

    net: list[Scalar]
    rotors: list[Scalar]
    driven: list[Scalar]
    servo: list[Scalar]
    resisting: NetForce


def implicit_forces(
    field: Plant, drive: Terms, q: Scalars, v: Scalars, bristles: Scalars, u: Scalars, h: Scalar
) -> ImplicitForces:
    """The forces of a step of h seconds in which drives, passive forces and damping act at its
    end.
    """
    passive = passive_terms(field, q, v, bristles, h)
    resisting = opposed(TextParts(field), passive.force, q, v, u)
    driven = [f - h * k * x for f, k, x in zip(drive.force, drive.k, v, strict=True)]
    servo, rest = (
        [h * (d + h * k) for k, d in zip(x.k, x.d, strict=True)] for x in (drive, passive)
    )
    return ImplicitForces(plus(driven, resisting.net), plus(servo, rest), driven, servo, resisting)


def drive_terms(field: Plant, t: Scalar, q: Scalars, v: Scalars, z: Scalars, u: Scalars) -> Terms:
    """Controller and forces from outside, now; a drive at its limit has no stiffness."""
    asked, control = list(u), None if field.sampled else field.control
    if control is not None:
        asked = [a + b for a, b in zip(field.torque(t, q, v, z)[0], u, strict=True)]
    k, d = drive_gains(control, field.robot_text, t, q, v, z)
    if field.efforts:
        free = [within(f, e) for f, e in zip(asked, field.effort_ranges, strict=True)]
        k, d = ([x * g for x, g in zip(free, gains, strict=True)] for gains in (k, d))
    return Terms(field.driven_within(asked), k, d)


def passive_terms(field: Plant, q: Scalars, v: Scalars, bristles: Scalars, h: Scalar) -> Terms:
    """The machine's passive forces where the joints would be at the end of the step, gravity
    compensation at its start; the damping of the joints with that of ``damping``.
    """
    if not field.passive_forces:
        return Terms([0.0] * len(v), [0.0] * len(v), list(field.damping))
    ahead, rates = (
        moved_with_velocities(field, q, v, h),
        bristle_rates(field.passive_forces, q, v, bristles, h),
    )
    deflections = [x + h * r for x, r in zip(bristles, rates, strict=True)]
    forces = field.passive_forces(ahead, v, deflections)
    lifted = PARTS[-1]
    if lifted in forces.force:
        forces.force[lifted] = field.passive_forces(q, v, bristles).force[lifted]
    k, d = machine_gains(field.passive_forces, ahead, v, deflections)
    return Terms(forces.total, k, plus(d, field.damping))


def _ground(
    contact: ContactText | None,
) -> tuple[GroundText, Callable[..., Resistance], NormalText]:
    """The reaction of the ground to a point, its resistance and its normal; never called without a
    ground.
    """
    if contact is None:
        return _nowhere, _nowhere, _nowhere
    ground = contact.ground
    return ground.reaction, ground.resistance, ground.terrain.unit_normal


def _nowhere(*args: Vec3) -> NoReturn:
    raise AssertionError("no point touches")


def moved_with_velocities(field: Plant, q: Scalars, v: Scalars, h: Scalar) -> list[Scalar]:
    """q after h seconds with the velocities v."""
    return [x + h * dx for x, dx in zip(q, coordinate_rates(field.model, q, v), strict=True)]


def bristle_rates(
    machine: PassiveText, q: Scalars, v: Scalars, z: Scalars, h: Scalar
) -> list[Scalar]:
    """The rates of the deflections of bristles, over h seconds at the velocities v."""
    if not z:
        return []
    still = [Jet(x, 0.0, None) for x in v]
    return decaying(machine(q, still, [Jet(x, 1.0, None) for x in z]).rates, h)


def controller_rates(
    field: Plant, t: Scalar, q: Scalars, v: Scalars, z: Scalars, h: Scalar
) -> list[Scalar]:
    """The rates of the controller's states."""
    if not z or field.sampled:
        return [0.0] * len(z)
    return decaying(field.torque(t, q, v, [Jet(x, 1.0, None) for x in z])[1], h)


def decaying(rates: Scalars, h: Scalar) -> list[Scalar]:
    """Rates of states over h seconds, each by its own decay; they are jets by the states."""
    return [value(r) / (1.0 + h * positive_part(-rate(r))) for r in rates]
