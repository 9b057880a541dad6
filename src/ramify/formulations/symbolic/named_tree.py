"""A robot's tree with names in place of its numbers: lengths, masses, mass centres, inertias,
gravity.

What is zero stays zero and angles between axes stay numbers, so that the named robot is the family
of robots of that build. A link that is a slender rod from its joint keeps being one: its mass
centre is at l/2 and its inertia m l^2 / 12.

| name | meaning |
| --- | --- |
| l1 | length of body 1: to the joint of its first child along x, or of the rod |
| a2, b2 | offsets of joint 2 along the normal and along its axis (Denavit-Hartenberg); x2, y2, z2 where they do not suffice |
| m1 | mass |
| r1; rx1, ry1, rz1 | mass centre: distance from the joint where it lies on an axis; or its coordinates in the link's frame |
| I1; Ixx1, Iyy1 ... | moment of inertia about the mass centre where only one matters; or entries of the tensor |
| J1 | inertia of the rotor at coordinate 1, reflected to the joint |
| g; gx, gy, gz | gravity |
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ramify.core.scalar import number
from ramify.core.spatial import RigidInertia, Sym3, Vec3
from ramify.dynamics.tree import Tree
from ramify.formulations.chain import chain_link as central_moments
from ramify.formulations.symbolic.waves import Space, Waves
from ramify.model.link import Link
from ramify.model.robot import Robot
from ramify.model.skeleton import Skeleton

_CLOSE = 1e-9
_DUST = 1e-14
_ROUNDED = 1e-13


@dataclass
class Names:
    """The variables made so far and what they stand for in the robot at hand."""

    space: Space
    values: dict[str, float] = field(default_factory=dict)

    def named(self, name: str, value: float) -> Any:
        """A variable for a number; zero stays zero."""
        if value == 0.0:
            return 0.0
        short = float(f"{value:.12g}")  # 0.041, where rounding has left 0.040999999999999995
        self.values.setdefault(name, short if abs(short - value) < _ROUNDED * abs(value) else value)
        return self.space.variable(name)


def named_tree(model: Robot, tree: Tree, space: Space) -> tuple[Tree, dict[str, float]]:
    """The tree over variables, and the value of each in SI units."""
    names = Names(space)
    skeleton = model.skeleton
    body_of = {link: b for b, link in enumerate(skeleton.last)}
    lengths = _lengths(skeleton, body_of)
    links = []
    for k, link in enumerate(tree.links):
        r0 = _offset(names, k, link, skeleton.parents[k], lengths, body_of)
        M = _inertia(names, body_of[k] + 1, link, lengths.get(k)) if k in body_of else link.M
        rotor = names.named(f"J{k + 1}", number(link.rotor))
        links.append(replace(link, r0=r0, M=M, rotor=rotor))
    gravity = Vec3(*_along(names, "g", "", _items(tree.gravity)))
    return replace(tree, links=tuple(links), gravity=gravity), names.values


@dataclass(frozen=True)
class _Length:
    """Length of a body along an axis (0, 1, 2) of its frame; whether it is a slender rod."""

    axis: int
    value: float
    rod: bool


def _items(u: Vec3) -> list[float]:
    """The coordinates of a vector, rounding dust swept away."""
    items = [float(number(x)) for x in (u.x, u.y, u.z)]
    return [x if abs(x) > _DUST * max(map(abs, items)) else 0.0 for x in items]


def _only(u: list[float]) -> int | None:
    """The index of the only entry that is not zero."""
    found = [i for i, x in enumerate(u) if x != 0.0]
    return found[0] if len(found) == 1 else None


def _lengths(skeleton: Skeleton, body_of: dict[int, int]) -> dict[int, _Length]:
    """Lengths by link: of rods, and to the first child's joint where it lies on the x axis."""
    out: dict[int, _Length] = {}
    for k in body_of:
        rod = _rod(skeleton.links[k])
        if rod is not None:
            out[k] = rod
        elif k in skeleton.parents:
            place = _items(skeleton.links[skeleton.parents.index(k)].r0)
            if _only(place) == 0:
                out[k] = _Length(0, place[0], False)
    return out


def _rod(link: Link) -> _Length | None:
    """A slender rod along an axis of the link's frame, from the joint outward."""
    central = central_moments(link)
    axis = _only(_items(central.c))
    if axis is None or not central.m:
        return None
    length = 2.0 * _items(central.c)[axis]
    right = number(central.m) * length * length / 12.0
    tensor = [number(x) for x in (central.I.xx, central.I.yy, central.I.zz)]
    wanted = [0.0 if i == axis else right for i in range(3)]
    apart = [abs(a - b) for a, b in zip(tensor, wanted, strict=True)]
    apart += [abs(number(x)) for x in (central.I.xy, central.I.xz, central.I.yz)]
    return _Length(axis, length, True) if max(apart) < _CLOSE * right else None


def _offset(
    names: Names,
    k: int,
    link: Link,
    parent: int,
    lengths: dict[int, _Length],
    body_of: dict[int, int],
) -> Vec3:
    """r0: the parent's length, DH offsets a and b, or three coordinates. That of the first link
    moves nothing: it stays.
    """
    place = _items(link.r0)
    if parent < 0 or not any(place):
        return link.r0
    length, axis, number = lengths.get(parent), _only(place), k + 1
    if length is not None and axis == length.axis:
        apart = abs(place[axis] - length.value)
        if apart < _CLOSE * abs(length.value):
            return Vec3(*_along(names, "l", str(body_of[parent] + 1), place))
    flat = link.r0.rotate_z(link.gamma.c, -link.gamma.s)
    a, y, b = _items(flat.rotate_x(link.alpha.c, -link.alpha.s))
    if y == 0.0:
        named = Vec3(names.named(f"a{number}", a), 0.0, names.named(f"b{number}", b))
        return named.rotate_x(link.alpha.c, link.alpha.s).rotate_z(link.gamma.c, link.gamma.s)
    return Vec3(*(names.named(f"{c}{number}", x) for c, x in zip("xyz", place, strict=True)))


def _inertia(names: Names, body: int, link: Link, length: _Length | None) -> RigidInertia:
    """M about the link's origin, from m, mass centre and central tensor."""
    central = central_moments(link)
    m = names.named(f"m{body}", float(central.m))
    tensor: list[Any]
    if length is not None and length.rod:
        side: Any = names.named(f"l{body}", abs(length.value))
        half = side * math.copysign(0.5, length.value)
        c: list[Any] = [half if i == length.axis else 0.0 for i in range(3)]
        moment = m * (side * side) / 12.0
        tensor = [0.0 if i == length.axis else moment for i in range(3)] + [0.0] * 3
    else:
        c = _along(names, "r", str(body), _items(central.c))
        moments = {f.name: float(getattr(central.I, f.name)) for f in fields(Sym3)}
        dust = _DUST * max(map(abs, moments.values()))
        tensor = [
            names.named(f"I{e}{body}", x if abs(x) > dust else 0.0) for e, x in moments.items()
        ]
    h = [m * x for x in c]
    xx, yy, zz = (a * b for a, b in zip(h, c, strict=True))
    I = Sym3(  # noqa: E741
        tensor[0] + (yy + zz), tensor[1] + (xx + zz), tensor[2] + (xx + yy),
        tensor[3] - h[0] * c[1], tensor[4] - h[0] * c[2], tensor[5] - h[1] * c[2],
    )  # fmt: skip
    return RigidInertia(m, Vec3(*h), I)


def _along(names: Names, letter: str, index: str, values: list[float]) -> list[Any]:
    """A vector along one axis by its length, any other by its coordinates."""
    only = _only(values)
    if only is None:
        return [
            names.named(f"{letter}{axis}{index}", x) for axis, x in zip("xyz", values, strict=True)
        ]
    size = names.named(f"{letter}{index}", abs(values[only]))
    return [size * math.copysign(1.0, x) if x else 0.0 for x in values]


def used_variables(entries: list[Waves]) -> set[str]:
    """Names of the variables in some closed forms."""
    return {x.space.variables[i] for x in entries for _, _, used in x.terms for i in used}
