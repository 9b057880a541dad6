"""Building a model: links named by their parents, fixed joints merged, everything checked once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from ramify.core.arrays import Array, real, refuse_masks
from ramify.core.errors import ModelError, RamifyError
from ramify.core.names import NAME, disguise, is_name, refuse_twins
from ramify.core.warning import warn
from ramify.model.answers import Attachment
from ramify.model.body import Body
from ramify.model.collisions import Collisions
from ramify.model.frame import Frame, as_frame, is_rigid, point_seen
from ramify.model.joint import AXES, Joint
from ramify.model.loop import Loop, LoopEnd
from ramify.model.machine import Machine
from ramify.model.parent_cycles import cycles
from ramify.model.robot import Robot
from ramify.model.shape import Shape

EARTH = (0.0, 0.0, -9.81)


@contextmanager
def understood(what: str) -> Iterator[None]:
    """Turn errors of NumPy and Python about unsuitable values into a ModelError that names
    them.
    """
    try:
        yield
    except RamifyError:
        raise
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise ModelError(f"{what}: {error}") from None


def tensor_of(inertia: Any) -> Array:
    """An inertia tensor from three moments, 3 x 3 numbers, or its elements by name as in robot
    files.
    """
    if isinstance(inertia, Mapping):
        unknown = [key for key in inertia if key not in _ELEMENTS]
        missing = [key for key in _ELEMENTS[:3] if key not in inertia]
        if unknown or missing:
            raise ModelError(
                f"inertia has {', '.join(map(str, inertia))}; it must have xx, yy, zz and may have "
                "xy, xz, yz"
            )
        xx, yy, zz, xy, xz, yz = (inertia.get(key, 0.0) for key in _ELEMENTS)
        inertia = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
    tensor = real("inertia", inertia, ModelError)
    if tensor.shape == (6,):
        raise ModelError(
            "inertia has six numbers, whose order is not known; give three moments, 3 x 3, or "
            "{'xx': …, 'yy': …, 'zz': …, 'xy': …, 'xz': …, 'yz': …}"
        )
    return np.diag(tensor) if tensor.shape == (3,) else tensor


_ELEMENTS = ("xx", "yy", "zz", "xy", "xz", "yz")


@dataclass(frozen=True, eq=False)
class LinkSpec:
    """A link as a robot file gives it: the name of its parent (None: the base), its joint, its mass
    and shape.
    """

    name: str
    parent: str | None
    joint: Joint
    mass: float = 0.0
    com: Array = field(default_factory=lambda: np.zeros(3))
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))
    shapes: tuple[Shape, ...] = ()
    points: tuple[tuple[str, tuple[float, float, float]], ...] = ()
    lift: tuple[float, tuple[float, float, float]] = (0.0, (0.0, 0.0, 0.0))


def build(
    name: str,
    links: Iterable[LinkSpec],
    gravity: Sequence[float] = EARTH,
    modules: Sequence[Sequence[str]] | None = None,
    metadata: Mapping[str, Any] | None = None,
    loops: Sequence[Loop] = (),
    guess: Mapping[str, float] | None = None,
    machine: Machine | None = None,
    collisions: Collisions | None = None,
) -> Robot:
    """A model from links in any order: sorted parents first (children in the given order), fixed
    joints merged, checked.

    Raises ModelError naming the link for duplicate names, unknown parents, cycles, and for masses
    or inertias that are negative or not finite.
    """
    specs = list(links)
    _check_names(name, specs, loops)
    with understood(f"robot {name!r}"):
        _check_numbers(specs, gravity)
    ordered = _parents_first(specs)
    bodies, attached = _merge_fixed(ordered)
    if not bodies:
        raise ModelError(
            f"robot {name!r} has no moving link; give it at least one joint that is not fixed"
        )
    groups = None
    if modules is not None:
        index = {body.name: i for i, body in enumerate(bodies)}
        unknown = [link for group in modules for link in group if link not in index]
        if unknown:
            raise ModelError(
                f"modules name {unknown[0]!r}, which is not a moving link; choose among "
                f"{', '.join(index)}",
                key=("modules",),
            )
        groups = tuple(tuple(index[link] for link in group) for group in modules)
    x, y, z = (float(g) for g in gravity)
    notes, near = dict(metadata or {}), dict(guess or {})
    touching = _with_base_shapes(collisions or Collisions(), ordered, attached)
    own = (groups, notes, tuple(loops), near, machine or Machine(), touching)
    return Robot(name, tuple(bodies), (x, y, z), attached, *own)


def _check_numbers(specs: Sequence[LinkSpec], gravity: Sequence[float]) -> None:
    given = real("gravity", gravity, ModelError)
    if given.shape != (3,) or not np.isfinite(given).all():
        raise ModelError(
            f"gravity {gravity} must be three finite numbers in m/s^2, e.g. (0, 0, -9.81)"
        )
    for spec in specs:
        if not math.isfinite(spec.mass) or spec.mass < 0.0:
            raise ModelError(
                f"link {spec.name!r}: mass {spec.mass} kg must be finite and not negative"
            )
        for what, value, shape in (("com", spec.com, (3,)), ("inertia", spec.inertia, (3, 3))):
            a = real(f"link {spec.name!r}: {what}", value, ModelError)
            if a.shape != shape or not np.isfinite(a).all():
                raise ModelError(
                    f"link {spec.name!r}: {what} must be finite, of shape {shape}; got {a.tolist()}"
                )
        tensor = np.asarray(spec.inertia)
        if np.abs(tensor - tensor.T).max() > 1e-9 * max(1e-300, float(np.abs(tensor).max())):
            raise ModelError(
                f"link {spec.name!r}: the inertia tensor is not symmetric: {tensor.tolist()}"
            )
        if not (is_rigid(spec.joint.placement) and is_rigid(spec.joint.outlet)):
            raise ModelError(
                f"joint {spec.joint.name!r}: its frame is not a finite position and a rotation "
                "matrix"
            )


def _check_names(robot: str, specs: Sequence[LinkSpec], loops: Sequence[Loop]) -> None:
    check_name("robot", robot)
    for loop in loops:
        check_name("loop", loop.name)
    refuse_twins("loop", [loop.name for loop in loops])
    for spec in specs:
        for point, _ in spec.points:
            check_name("point", point)
        refuse_twins(f"contact point of {spec.name!r}", [point for point, _ in spec.points])
    for what, parts in (("link", specs), ("joint", [spec.joint for spec in specs])):
        names: dict[str, None] = {}
        for part in parts:
            if not isinstance(part.name, str) or not part.name:
                raise ModelError(f"a {what} has no name; give every {what} a non-empty one")
            check_name(what, part.name)
            if part.name in names:
                raise ModelError(f"two {what}s are named {part.name!r}; names must differ")
            names[part.name] = None
        refuse_twins(what, names)
        for name in names:
            if hidden := disguise(name):
                warn(f"{what} {name!r}: {hidden}; rename it in the file", UserWarning)


def check_name(what: str, name: object) -> None:
    """Refuse what cannot be the name of a link, joint, loop or point."""
    if not isinstance(name, str) or not is_name(name):
        raise ModelError(f"a {what} is named {name!r}; {NAME}")


def _parents_first(specs: list[LinkSpec]) -> list[LinkSpec]:
    """The links as given where parents come first; otherwise each after its parent."""
    seen: set[str | None] = {None}
    for spec in specs:
        if spec.parent not in seen:
            break
        seen.add(spec.name)
    else:
        return specs
    names = {spec.name for spec in specs}
    children: dict[str | None, list[LinkSpec]] = {}
    for spec in specs:
        if spec.parent is not None and spec.parent not in names:
            some = ", ".join(map(repr, sorted(names)[:8]))
            more = f" and {len(names) - 8} more" if len(names) > 8 else ""
            raise ModelError(
                f"link {spec.name!r}: its parent {spec.parent!r} does not exist; links are "
                f"{some}{more}"
            )
        children.setdefault(spec.parent, []).append(spec)
    ordered: list[LinkSpec] = []
    stack = list(reversed(children.get(None, [])))
    while stack:
        spec = stack.pop()
        ordered.append(spec)
        stack.extend(reversed(children.get(spec.name, [])))
    if len(ordered) < len(specs):
        reached = {spec.name for spec in ordered}
        cycle = next(iter(cycles({s.name: s.parent for s in specs if s.name not in reached})))
        told = " -> ".join([*cycle, cycle[0]])
        text = f"the parents of {told} form a cycle; one link must hang on the base (no parent)"
        raise ModelError(text)
    return ordered


def _merge_fixed(ordered: Sequence[LinkSpec]) -> tuple[list[Body], dict[str, Attachment]]:
    """The bodies, and where every link is: those on fixed joints become part of the body that
    carries them; their names stay as frames of that body.
    """
    bodies: list[Body] = []
    attached: dict[str, Attachment] = {}
    for spec in ordered:
        carrier = Attachment(-1, Frame()) if spec.parent is None else attached[spec.parent]
        if spec.joint.kind == "fixed":
            frame = carrier.frame @ spec.joint.placement @ spec.joint.outlet
            attached[spec.name] = Attachment(carrier.body, frame)
            if carrier.body >= 0:
                bodies[carrier.body] = welded(bodies[carrier.body], spec, frame)
            continue
        joint = spec.joint
        if not carrier.frame.is_identity:
            joint = replace(joint, placement=carrier.frame @ joint.placement)
        attached[spec.name] = Attachment(len(bodies), Frame())
        bodies.append(Body(**vars(spec) | {"parent": carrier.body, "joint": joint}))
    return bodies, attached


def _with_base_shapes(
    collisions: Collisions, ordered: Sequence[LinkSpec], attached: Mapping[str, Attachment]
) -> Collisions:
    """Collisions with the shapes of links that are fixed to the base, as shapes of the world, but
    for those that cannot collide. They do not collide with the bodies that hang on those links.
    """
    roots: dict[str, str] = {}
    shapes: dict[str, list[Shape]] = {}
    excludes = list(collisions.excludes)
    for spec in ordered:
        roots[spec.name] = spec.name if spec.parent is None else roots[spec.parent]
        body, frame = attached[spec.name]
        if body < 0:
            shapes[spec.name] = [
                replace(shape, frame=frame @ shape.frame, name=shape.name or spec.name)
                for shape in spec.shapes
                if shape.collides or shape.name  # a pair may name it
            ]
        elif spec.parent is not None and attached[spec.parent].body < 0:
            excludes += [
                (shape.name, spec.name)
                for link, carried in shapes.items()
                for shape in carried
                if roots[link] == roots[spec.name]
            ]
    if not any(shapes.values()):
        return collisions
    world = (*collisions.world, *(shape for carried in shapes.values() for shape in carried))
    return replace(collisions, world=world, excludes=tuple(dict.fromkeys(excludes)))


def welded(body: Body, spec: LinkSpec, frame: Frame) -> Body:
    """A body with another one welded to it at ``frame``."""
    tensor = frame.rotation @ np.asarray(spec.inertia) @ frame.rotation.T
    added = spec.mass, point_seen(frame, spec.com), tensor
    mass, com, inertia = combine((body.mass, body.com, body.inertia), added)
    shapes = tuple(replace(shape, frame=frame @ shape.frame) for shape in spec.shapes)
    points = tuple((name, point_of(point_seen(frame, point))) for name, point in spec.points)
    return replace(
        body, mass=mass, com=com, inertia=inertia, shapes=body.shapes + shapes,
        points=body.points + points, lift=_lifted(body.lift, spec.lift, frame),
    )  # fmt: skip


Lift = tuple[float, tuple[float, float, float]]


def _lifted(load: Lift, added: Lift, frame: Frame) -> Lift:
    """Mass and mass centre of two loads, the second given in a frame of the body."""
    mass = load[0] + added[0]
    if not mass:
        return load
    both = load[0] * np.array(load[1]) + added[0] * point_seen(frame, added[1])
    return mass, point_of(both / mass)


def point_of(values: Iterable[float]) -> tuple[float, float, float]:
    found = real("a point or axis", values, ModelError)
    if found.shape != (3,):
        raise ModelError(f"a point or axis must be three numbers; its shape is {found.shape}")
    x, y, z = found.tolist()
    return x, y, z


def axis_of(link: str, axis: Any) -> tuple[float, float, float]:
    """An axis as three numbers; a letter is refused with what to write in its place."""
    if isinstance(axis, str):
        numbers = AXES.get(axis.upper(), (0.0, 0.0, 1.0))
        raise ModelError(f"link {link!r}: axis {axis!r} must be three numbers, e.g. {numbers}")
    return point_of(axis)


def combine(*parts: tuple[float, Array, Array]) -> tuple[float, Array, Array]:
    """Mass, mass centre and central inertia of parts given so, in one frame. Massless parts add
    their inertia as it is.
    """
    solid = [part for part in parts if part[0] > 0.0 or np.any(part[2])]
    if len(solid) == 1:
        return solid[0]  # to the last bit
    mass, centre = sum(m for m, _, _ in parts), np.array(parts[0][1])
    if mass > 0.0:
        centre = sum((m * c for m, c, _ in parts), start=np.zeros(3)) / mass
    inertia = np.zeros((3, 3))
    for m, c, tensor in parts:
        d = np.asarray(c) - centre
        inertia = inertia + tensor + m * (d @ d * np.eye(3) - np.outer(d, d))
    return mass, centre, inertia


_ROWS: Final = ("axis", "joints", "tendons", "curve")


def _loop_end(loop: str, which: str, end: Any) -> LoopEnd:
    if not isinstance(end, tuple | list) or len(end) != 2:
        raise ModelError(
            f"loop {loop!r}: {which} must be (link, place), e.g. ('rod', (0.4, 0, 0)); got {end!r}"
        )
    return LoopEnd(end[0], as_frame(end[1]))


def loop_between(
    name: str, joint: str, first: Any, second: Any, options: Mapping[str, Any]
) -> Loop:
    """A loop between two (link, frame); ModelError names what is wrong with it."""
    check_name("loop", name)
    with understood(f"loop {name!r}"):
        one, other = (_loop_end(name, *end) for end in (("first", first), ("second", second)))
        refuse_masks("axis", options.get("axis"), ModelError)
        rows = {key: tuple(options[key]) for key in _ROWS if key in options}
        return Loop(name, joint, one, other, **{**options, **rows})
