"""Changed models. Each function returns a new model and leaves the old one as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, finite_number, real
from ramify.core.errors import ModelError
from ramify.core.messages import shown
from ramify.core.names import mapping_of, names_of
from ramify.model.answers import Attachment
from ramify.model.build import (
    LinkSpec,
    build,
    check_name,
    loop_between,
    point_of,
    understood,
    welded,
)
from ramify.model.frame import (
    Frame,
    as_frame,
    from_quaternion,
    is_rigid,
    point_seen,
    rotation_about,
)
from ramify.model.joint import Joint
from ramify.model.loop import Loop
from ramify.model.machine import Machine
from ramify.model.robot import Robot, the_robot

R = TypeVar("R", bound=Robot)


def with_gravity(model: R, gravity: Sequence[float]) -> R:
    """The model under another gravity: an acceleration (3,) in the world frame, m/s^2. ModelError
    where it is not finite.
    """
    the_robot(model)
    return replace(model, gravity=_three("gravity", gravity))


def with_payload(
    model: R, link: str, mass: float, com: ArrayLike = (0.0, 0.0, 0.0), inertia: ArrayLike = 0.0
) -> R:
    """The model with a payload welded to a link, also to one that a fixed joint made part of
    another body.

    mass in kg; com (3,) in m and inertia about it in kg m^2, both in the link's frame. inertia: 3 x
    3, three principal moments along the link's axes, or one number for all three.

    Raises ModelError for an unknown link, a link of the base (it does not move), and values that
    are negative or not finite.
    """
    the_robot(model)
    carrier = model.attachment(link)
    if carrier.body < 0:
        choices = ", ".join(name for name, at in model.attached.items() if at.body >= 0)
        raise ModelError(
            f"link {link!r} is part of the base, where a payload changes nothing; choose a moving "
            f"link: {choices}"
        )
    return _welded_at(model, carrier, _lump(f"payload on {link!r}", mass, com, inertia))


def with_tool(
    model: R,
    link: str,
    name: str,
    frame: Frame | ArrayLike = (0.0, 0.0, 0.0),
    mass: float = 0.0,
    com: ArrayLike = (0.0, 0.0, 0.0),
    inertia: ArrayLike = 0.0,
) -> R:
    """The model with a tool welded to a link. Its ``name`` is then a link like any other, for
    kinematics and Jacobians.

    frame: the tool's frame in the link's: a Frame, a 4 x 4 matrix or an offset (3,) in m. mass, com
    and inertia as in :func:`with_payload`, in the tool's frame. On a link of the base the tool is a
    frame that stands still.

    Raises ModelError for an unknown link, a name that is taken or empty, a frame that is not
    a rotation and a position, bad masses.
    """
    the_robot(model)
    carrier = model.attachment(link)
    check_name(f"tool on {link!r}", name)
    if name in model.attached:
        raise ModelError(f"{model.name} already has a link {name!r}; give the tool another name")
    local = as_frame(frame)
    if not is_rigid(local):
        raise ModelError(f"tool {name!r}: its frame is not a finite position and a rotation matrix")
    seat = Attachment(carrier.body, carrier.frame @ local)
    lump = _lump(f"tool {name!r}", mass, com, inertia)
    changed = _welded_at(model, seat, lump) if carrier.body >= 0 else model
    return replace(changed, attached={**model.attached, name: seat})


def with_contact_points(model: R, points: Mapping[str, Mapping[str, ArrayLike]]) -> R:
    """The model with more contact points: {link: {name: (x, y, z)}}, places in m in the link's
    frame.

    A name that the link's body has already moves that point. Raises ModelError for an unknown link,
    one of the base (it does not move), and places that are not three finite numbers.
    """
    the_robot(model)
    bodies = list(model.bodies)
    if not isinstance(points, Mapping):
        raise ModelError(f"points must be {{link: {{name: (x, y, z)}}}}; got {shown(points)}")
    for link, places in points.items():
        b, frame = model.attachment(link)
        if b < 0:
            raise ModelError(
                f"link {link!r} is part of the base, which does not move; put contact points on a "
                "moving link"
            )
        if not isinstance(places, Mapping):
            raise ModelError(
                f"contact points of {link!r} must be a mapping such as {{'foot': (0, 0, 0)}}; got "
                f"{places!r}"
            )
        named = dict(bodies[b].points)
        for name, place in places.items():
            check_name(f"contact point on {link!r}", name)
            at = _three(f"contact point {name!r} of {link!r}", place)
            named[name] = _three(name, point_seen(frame, at))
        bodies[b] = replace(bodies[b], points=tuple(named.items()))
    return replace(model, bodies=tuple(bodies))


def with_loop(
    model: R,
    name: str,
    joint: str = "revolute",
    first: tuple[str | None, Frame | ArrayLike] = (None, (0.0, 0.0, 0.0)),
    second: tuple[str | None, Frame | ArrayLike] = (None, (0.0, 0.0, 0.0)),
    guess: Mapping[str, float] | None = None,
    **options: Any,
) -> R:
    """The model with one more loop, closed by a joint between two frames, first and second, each
    (link, Frame or matrix or offset in m); None: the base.

    guess: coordinates near which it is closed, by name. options are those of
    ``ramify.model.loop.Loop``: axis, sequence, planar, length; joints, ratio and offset of a gear;
    joints or tendons and the curve of a coupling.
    Raises ModelError for what does not fit together.
    """
    the_robot(model)
    loops = (*model.loops, loop_between(name, joint, first, second, options))
    notes = model.metadata
    report: Any = notes.get("report")
    if hasattr(report, "after"):  # an import report may say that loops are open
        notes = {**notes, "report": report.after(len(loops))}
    near = {**model.guess, **mapping_of("guess", guess)}
    return replace(model, loops=loops, guess=near, metadata=notes)


def with_locked(
    model: R, joint: str | list[str] | tuple[str, ...], at: float | Sequence[float] = 0.0
) -> R:
    """The model with a joint fixed at its coordinates ``at`` (one number, or one per coordinate;
    rad or m) and its body merged. Several joints as a list: ``at`` is one number for all, or a list
    with an entry for each.

    A quaternion is w first, of any length but zero; 0 is the neutral posture of any joint. The body
    becomes part of its parent (or of the base); what hung on it hangs there now. Names of links
    stay known. Modules that were given lose the body; those found automatically are found anew. A
    joint that is geared or coupled locks its partner as well.

    Raises ModelError for an unknown joint, for coordinates too few, too many or not finite, and
    where nothing would move.
    """
    the_robot(model)
    if isinstance(at, str):
        raise ModelError(
            f"at must be numbers; got {at!r}: to lock several joints, give a list of names"
        )
    if isinstance(joint, (list, tuple)):
        names_of("joint", joint)
        places = [at] * len(joint) if np.ndim(at) == 0 else list(at)  # type: ignore[arg-type]
        if len(places) != len(joint):
            raise ModelError(f"at has {len(places)} entries for {len(joint)} joints")
        geared = {one: loop.joints for loop in model.loops for one in loop.joints}
        done: set[str] = set()
        for name, place in zip(joint, places, strict=True):
            if done.isdisjoint(geared.get(name, ())):
                model = with_locked(model, name, place)
            elif np.ndim(at):
                raise ModelError(f"{name!r} is locked by its gear already; leave it out")
            done.add(name)
        return model
    locked = model.joint(joint)
    gear = next((loop for loop in model.loops if joint in loop.joints), None)
    if gear is not None:
        return _locked_pair(model, gear, joint, at)
    frame = locked.placement @ _displacement(locked, at) @ locked.outlet
    if len(model.bodies) == 1:
        raise ModelError(
            f"{joint!r} is the only joint of {model.name}; a model needs one that moves"
        )
    links = []
    for body in model.bodies:
        parent = model.bodies[body.parent].name if body.parent >= 0 else None
        made = Joint(joint, "fixed", frame) if body.joint is locked else body.joint
        links.append(LinkSpec(**vars(body) | {"parent": parent, "joint": made}))
    groups = None
    if model.module_groups is not None:
        kept = [
            [model.bodies[b].name for b in group if model.bodies[b].joint is not locked]
            for group in model.module_groups
        ]
        groups = [group for group in kept if group]
    built = type(model).of(build(model.name, links, model.gravity, groups, model.metadata))

    def moved(frames: Mapping[str, Attachment]) -> dict[str, Attachment]:
        """Frames of the model on the bodies that remain."""
        found = {}
        for name, (b, local) in frames.items():
            body, seat = built.attached[model.bodies[b].name] if b >= 0 else (-1, Frame())
            found[name] = Attachment(body, seat @ local)
        return found

    guess = {name: value for name, value in model.guess.items() if name not in locked.coordinates}
    machine = _machine_without(model, locked, moved(model.machine.frames))
    collisions = replace(
        model.collisions,
        world=model.collisions.world + built.collisions.world,
        excludes=model.collisions.excludes + built.collisions.excludes,
    )
    return replace(
        built, attached=moved(model.attached), loops=model.loops, guess=guess, machine=machine,
        collisions=collisions,
    )  # fmt: skip


def _machine_without(model: Robot, locked: Joint, frames: Mapping[str, Attachment]) -> Machine:
    """Tendons, actuators and keyframes without a locked joint, beside the frames."""
    for tendon in model.tendons:
        if any(rate in locked.velocities for rate, _ in tendon.joints):
            raise ModelError(
                f"joint {locked.name!r} moves the tendon {tendon.name!r}, so it cannot be locked; "
                "leave the tendon out first"
            )
    remaining = [i for i, a in enumerate(model.actuators) if a.joint != locked.name]
    states = [i for i, a in enumerate(model.actuators) if a.activation]
    active = [k for k, i in enumerate(states) if i in remaining]
    slices = model.joint_slice(locked.name, of="q"), model.joint_slice(locked.name)
    keys = (
        replace(
            key,
            q=(*key.q[: slices[0].start], *key.q[slices[0].stop :]),
            v=(*key.v[: slices[1].start], *key.v[slices[1].stop :]),
            command=tuple(key.command[i] for i in remaining if key.command),
            activation=tuple(key.activation[k] for k in active if key.activation),
        )
        for key in model.keyframes
    )
    drives = tuple(model.actuators[i] for i in remaining)
    return Machine(frames, model.tendons, drives, tuple(keys))


def _locked_pair(model: R, gear: Loop, joint: str, at: float | Sequence[float]) -> R:
    """Both joints of a gear or coupling locked, the other where it has it."""
    value = float(real(f"joint {joint!r}: at", at, ModelError).reshape(-1)[0])
    *first, second = gear.joints
    c0, *slopes = gear.polynomial
    rest = replace(model, loops=tuple(loop for loop in model.loops if loop is not gear))
    if joint in first:
        other, there = second, float(np.polyval(gear.polynomial[::-1], value))
    elif any(slopes[1:]):
        raise ModelError(
            f"{joint!r} follows {first[0]!r} along a curve ({gear}); lock {first[0]!r} instead"
        )
    elif any(slopes):
        other, there = first[0], (value - c0) / slopes[0]
    elif value == c0 and not first:
        return with_locked(rest, joint, value)
    else:
        whatever = f", whatever {first[0]!r} does" if first else ""
        raise ModelError(
            f"{joint!r} is held at {c0:g} by {gear}{whatever}; it cannot be locked elsewhere"
        )
    return with_locked(with_locked(rest, joint, value), other, there)


_UPRIGHT = (1.0, 0.0, 0.0, 0.0)


def _displacement(joint: Joint, at: float | Sequence[float]) -> Frame:
    """The frame that a joint has moved to, seen from its placement."""
    values = real(f"joint {joint.name!r}: at", at, ModelError)
    if values.ndim == 0 and (joint.nq == 1 or values == 0.0):
        values = np.concatenate(
            [_UPRIGHT if step.ball == 1 else [values] * len(step.positions) for step in joint.steps]
        )
    if values.shape != (joint.nq,) or not np.isfinite(values).all():
        names = ", ".join(joint.coordinates)
        raise ModelError(
            f"joint {joint.name!r}: at = {at} must be finite, one number for each of its "
            f"coordinates ({names})"
        )
    frame = Frame()
    for step in joint.steps:
        x, values = np.split(values, [len(step.positions)])
        if step.ball == 1 and not x.any():
            raise ModelError(
                f"joint {joint.name!r}: at = {at} has a zero quaternion; the neutral one is (1, 0, "
                "0, 0)"
            )
        if step.ball == 1:
            frame = frame @ Frame(from_quaternion(*x))
        elif not step.ball:
            turn = rotation_about(step.axis, step.rho * x[0])
            frame = frame @ Frame(turn, step.eta * x[0] * np.array(step.axis))
    return frame


def _welded_at(model: R, seat: Attachment, lump: LinkSpec) -> R:
    """The model with a lump welded to a body; modules, names and order stay."""
    if lump.mass == 0.0 and not lump.inertia.any():
        return model
    bodies = list(model.bodies)
    bodies[seat.body] = welded(bodies[seat.body], lump, seat.frame)
    return replace(model, bodies=tuple(bodies))


def _lump(what: str, mass: float, com: ArrayLike, inertia: ArrayLike) -> LinkSpec:
    """A mass with its inertia, checked."""
    with understood(what):
        tensor = real(f"{what}: inertia", inertia, ModelError)
    mass = finite_number(f"{what}: mass", mass, "kg", ModelError)
    if tensor.shape in ((), (3,)):
        tensor = tensor * np.eye(3)
    if tensor.shape != (3, 3) or not np.isfinite(tensor).all():
        raise ModelError(
            f"{what}: inertia must be one, three or 3 x 3 finite numbers; got "
            f"{np.asarray(inertia).tolist()}"
        )
    largest = float(np.abs(tensor).max())
    if (
        np.abs(tensor - tensor.T).max() > 1e-9 * largest
        or np.linalg.eigvalsh(tensor)[0] < -1e-9 * largest
    ):
        raise ModelError(
            f"{what}: the inertia tensor must be symmetric, without negative moments; got "
            f"{tensor.tolist()}"
        )
    if mass < 0.0:
        raise ModelError(f"{what}: mass {mass} kg must be finite and not negative")
    centre = np.array(_three(f"{what}: com", com))
    return LinkSpec(what, None, Joint(what, "fixed"), mass, centre, tensor)


def _three(what: str, value: ArrayLike) -> tuple[float, float, float]:
    with understood(what):
        a: Array = real("the array", value, ModelError)
    if a.shape != (3,) or not np.isfinite(a).all():
        raise ModelError(f"{what} {a.tolist()} must be three finite numbers")
    return point_of(a)
