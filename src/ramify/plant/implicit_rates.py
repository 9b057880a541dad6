"""The mean rates (y+ - y) / h of one linearly implicit Euler step, in which stiff forces act at its
end, over any scalar.

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
from ramify.drives.passive import PassiveText
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
from ramify.plant.right_hand_side import NetForce, counter_rates, plus, with_friction_and_loads
from ramify.plant.text_parts import TextParts


def implicit_rates(plant: Plant, t: Scalar, y: Scalars, u: Scalars, h: Scalar) -> list[Scalar]:
    """(y+ - y) / h of a step of h seconds from t, under forces and wrenches u from outside."""
    model, (of_q, of_v, of_z, _) = plant.model, plant.state_slices
    q, v, z = list(y[of_q]), list(y[of_v]), list(y[of_z])
    z, bristles = z[: plant.controlled], z[plant.controlled :]
    prescribed: dict[int, Scalar] = {}  # accelerations by place in v
    if plant.prescribed is not None:
        robot = plant.robot_text
        q, v, accelerations = plant.prescribed.apply_prescribed_motion(robot, t, q, v)
        prescribed = dict(zip(plant.prescribed.driven(robot).v, accelerations, strict=True))
        drive = JointTerms(list(u[: model.nv]), *no_gains(model.nv))
    else:
        drive = drive_terms(plant, t, q, v, z, u[: model.nv])
    acting = implicit_forces(plant, drive, q, v, bristles, u, h)
    parts, net, resisting = TextParts(plant), acting.net, acting.resisting
    inertia = [0.0 if j in prescribed else x for j, x in enumerate(acting.added_inertia)]
    contact, loops = plant.contact, None
    if model.loops:
        loops = LoopTerms(
            closures(model), plant.baumgarte, inertia_weight(model), redundancy(model)
        )
    a, forces, reactions = implicit_dynamics(
        tree_of(model), model.skeleton.coordinates(q, (1.0, 0.0, 0.0, 0.0)), v, net, inertia, h,
        PointContact([()] * model.nv if contact is None else contact.points, *_ground(contact)),
        prescribed, loops,
    )  # fmt: skip
    w = [x + h * dx for x, dx in zip(v, a, strict=True)]  # velocities at the step's end
    deflection_rates = bristle_rates(plant.passive_forces, q, w, bristles, h)
    out = [
        *coordinate_rates(model, q, w),
        *a,
        *controller_rates(plant, t, q, v, z, h),
        *deflection_rates,
    ]
    if not plant.counted:
        return out
    powers: list[Scalar] = []  # at the step's end
    for j, x in enumerate(w):
        f = acting.drive_force[j] - acting.drive_inertia[j] * a[j]
        powers.append((forces[j] - resisting.net[j] if j in prescribed else f) * x)
    heat: list[Scalar] = [] if contact is None else [sum(r.loss for r in reactions())]
    bristles = [x + h * r for x, r in zip(bristles, deflection_rates, strict=True)]
    heat += list(
        plant.passive_forces(moved_with_velocities(plant, q, w, h), w, bristles).loss.values()
    )
    return [*out, *counter_rates(parts, w, powers, resisting, heat)]


class JointTerms(NamedTuple):
    """Forces at the joints with their stiffness and damping there, each (nv)."""

    force: list[Scalar]
    stiffness: list[Scalar]
    damping: list[Scalar]


class ImplicitForces(NamedTuple):
    """The joint forces of a linearly implicit step, (nv) each. With the accelerations a of the
    step, ``net - added_inertia * a`` acts at its end. The drives' part of it is ``drive_force -
    drive_inertia * a``; ``resisting`` are all other forces, without their implicit part. An added
    inertia is h (damping + h stiffness): see ``dynamics.implicit``.
    """

    net: list[Scalar]
    added_inertia: list[Scalar]
    drive_force: list[Scalar]
    drive_inertia: list[Scalar]
    resisting: NetForce


def implicit_forces(
    plant: Plant,
    drive: JointTerms,
    q: Scalars,
    v: Scalars,
    bristles: Scalars,
    u: Scalars,
    h: Scalar,
) -> ImplicitForces:
    """The forces of a step of h seconds in which drives, passive forces and damping act at its end.
    ``drive.force`` is that at the start of the step; passive forces are already evaluated at q +
    h*v.
    """
    passive = passive_terms(plant, q, v, bristles, h)
    resisting = with_friction_and_loads(TextParts(plant), passive.force, q, v, u)
    drive_force = [f - h * k * x for f, k, x in zip(drive.force, drive.stiffness, v, strict=True)]
    drive_inertia, passive_inertia = (
        [h * (d + h * k) for k, d in zip(terms.stiffness, terms.damping, strict=True)]
        for terms in (drive, passive)
    )
    return ImplicitForces(
        plus(drive_force, resisting.net), plus(drive_inertia, passive_inertia),
        drive_force, drive_inertia, resisting,
    )  # fmt: skip


def drive_terms(
    plant: Plant, t: Scalar, q: Scalars, v: Scalars, z: Scalars, u: Scalars
) -> JointTerms:
    """The forces of controller and u at the start of the step, with the gains of the servos; a
    drive at its limit has neither stiffness nor damping.
    """
    asked, control = list(u), None if plant.sampled else plant.control
    if control is not None:
        asked = [a + b for a, b in zip(plant.torque(t, q, v, z)[0], u, strict=True)]
    k, d = drive_gains(control, plant.robot_text, t, q, v, z)
    if plant.efforts:
        free = [within(f, e) for f, e in zip(asked, plant.effort_ranges, strict=True)]
        k, d = ([x * g for x, g in zip(free, gains, strict=True)] for gains in (k, d))
    return JointTerms(plant.driven_within(asked), k, d)


def passive_terms(plant: Plant, q: Scalars, v: Scalars, bristles: Scalars, h: Scalar) -> JointTerms:
    """The machine's passive forces at q + h v, but gravity compensation at q. The damping includes
    the plant's viscous friction ``damping``, whose force is not in ``force``.
    """
    if not plant.passive_forces:
        return JointTerms([0.0] * len(v), [0.0] * len(v), list(plant.damping))
    ahead, rates = (
        moved_with_velocities(plant, q, v, h),
        bristle_rates(plant.passive_forces, q, v, bristles, h),
    )
    deflections = [x + h * r for x, r in zip(bristles, rates, strict=True)]
    forces = plant.passive_forces(ahead, v, deflections)
    part = "gravity_compensation"
    if part in forces.force:
        forces.force[part] = plant.passive_forces(q, v, bristles).force[part]
    k, d = machine_gains(plant.passive_forces, ahead, v, deflections)
    return JointTerms(forces.total, k, plus(d, plant.damping))


def _ground(
    contact: ContactText | None,
) -> tuple[GroundText, Callable[..., Resistance], NormalText]:
    """The reaction of the ground to a point, its resistance and its normal; never called without a
    ground.
    """
    if contact is None:
        return _no_ground, _no_ground, _no_ground
    ground = contact.ground
    return ground.reaction, ground.resistance, ground.terrain.unit_normal


def _no_ground(*args: Vec3) -> NoReturn:
    raise AssertionError("no point touches")


def moved_with_velocities(plant: Plant, q: Scalars, v: Scalars, h: Scalar) -> list[Scalar]:
    """q after h seconds with the velocities v."""
    return [x + h * dx for x, dx in zip(q, coordinate_rates(plant.model, q, v), strict=True)]


def bristle_rates(
    machine: PassiveText, q: Scalars, v: Scalars, z: Scalars, h: Scalar
) -> list[Scalar]:
    """The mean rates of the bristle deflections z over h seconds at the velocities v."""
    if not z:
        return []
    still = [Jet(x, 0.0, None) for x in v]
    return implicit_state_rates(machine(q, still, [Jet(x, 1.0, None) for x in z]).rates, h)


def controller_rates(
    plant: Plant, t: Scalar, q: Scalars, v: Scalars, z: Scalars, h: Scalar
) -> list[Scalar]:
    """The mean rates of the controller's states over h seconds; 0 if it is sampled."""
    if not z or plant.sampled:
        return [0.0] * len(z)
    return implicit_state_rates(plant.torque(t, q, v, [Jet(x, 1.0, None) for x in z])[1], h)


def implicit_state_rates(rates: Scalars, h: Scalar) -> list[Scalar]:
    """(z+ - z) / h of a linearly implicit step of each state z alone: z' / (1 + h max(0, -dz'/dz)).
    ``rates``: jets z', whose derivatives are by z.
    """
    return [value(r) / (1.0 + h * positive_part(-rate(r))) for r in rates]
