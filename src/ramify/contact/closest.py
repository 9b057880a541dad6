"""Where two shapes are closest: gap, normal and points, over any scalar and without a branch.

The gap is negative where the shapes overlap. The normal is a unit vector in the world from the
second shape to the first. Both stay finite everywhere: where centres or axes coincide, a direction
is chosen.

Pairs that touch along a line or a face have several contacts, always the same number: see
``CONTACTS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from ramify.contact.terrain import HeightField
from ramify.core.errors import ModelError
from ramify.core.scalar import Scalar, clip, maximum, minimum, select, sqrt
from ramify.core.spatial import Mat3, Vec3
from ramify.model.frame import Frame
from ramify.model.link import Pose
from ramify.model.shape import Shape


class Closest(NamedTuple):
    """``gap`` (m, negative where the shapes overlap), unit ``normal`` from the second shape to the
    first, and the closest point ``on_first`` and ``on_second``; vectors in the world.
    """

    gap: Scalar
    normal: Vec3
    on_first: Vec3
    on_second: Vec3


COINCIDENT: Final = 1e-24
"""m^2: below this square of a distance, its direction is chosen."""
PARALLEL: Final = 1e-8
"""The square of the sine of an angle: axes within it count as parallel, and touch in the middle of
where they overlap.
"""
LEVEL: Final = 1e-12
"""m: a slope of half the square of a distance that counts as none."""
_X, _Y, _Z = Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0)


def pose_of(frame: Frame) -> Pose:
    """A constant frame as a pose over any scalar."""
    R, r = frame.rotation.ravel().tolist(), frame.position.tolist()
    return Pose(Mat3(*R), Vec3(*r))


def shape_pose(shape: Shape, body: Pose) -> Pose:
    """A shape's frame in the world, from the pose of its body's frame there."""
    return body if shape.frame.is_identity else body @ pose_of(shape.frame)


def closest(first: Shape, at: Pose, second: Shape, of: Pose) -> tuple[Closest, ...]:
    """The contacts of two shapes on bodies whose frames are at the poses ``at`` and ``of`` in the
    world; as many as ``contact_count`` says. Raises ModelError for a pair of kinds that has no such
    text.
    """
    kinds = first.kind, second.kind
    if kinds in CONTACTS:
        return CONTACTS[kinds][1](first, shape_pose(first, at), second, shape_pose(second, of))
    if kinds[::-1] in CONTACTS:
        return tuple(
            Closest(c.gap, -c.normal, c.on_second, c.on_first)
            for c in closest(second, of, first, at)
        )
    raise ModelError(
        f"no contact of a {kinds[0]} with a {kinds[1]} is implemented; use spheres and capsules"
    )


def contact_count(first: Shape, second: Shape) -> int:
    """How many contacts ``closest`` gives for two shapes; 0 for kinds that do not collide."""
    kinds = first.kind, second.kind
    row = CONTACTS.get(kinds) or CONTACTS.get(kinds[::-1])
    return row[0] if row else 0


def ground_points(shape: Shape) -> tuple[tuple[tuple[float, float, float], float], ...]:
    """The points of a shape that can touch a plane, in the frame of its body (m), each with the
    radius (m) of the ball about it: the centre of a sphere, both ends of a capsule, the eight
    corners of a box. None for other kinds.
    """
    radius = shape.size[0] if shape.kind in ("sphere", "capsule") else 0.0
    seat = pose_of(shape.frame)
    return tuple((_numbers(seat.point(corner)), radius) for corner in _corners(shape))


def _numbers(point: Vec3) -> tuple[float, float, float]:
    x, y, z = (float(c) for c in (point.x, point.y, point.z))  # type: ignore[arg-type]
    return x, y, z


def _corners(shape: Shape) -> list[Vec3]:
    """The centres of the balls whose hull is the shape, in its frame."""
    if shape.kind == "sphere":
        return [Vec3(0.0, 0.0, 0.0)]
    if shape.kind == "capsule":
        return [Vec3(0.0, 0.0, side * 0.5 * shape.size[1]) for side in (-1.0, 1.0)]
    if shape.kind == "box":
        x, y, z = (0.5 * edge for edge in shape.size)
        sides = (-1.0, 1.0)
        return [Vec3(i * x, j * y, k * z) for i in sides for j in sides for k in sides]
    return []


# ---- spheres and capsules: the closest points of two axes ----


def _segment(shape: Shape, at: Pose) -> tuple[Vec3, float]:
    """Direction and half length of a shape's axis; a sphere's has no length."""
    half = 0.5 * shape.size[1] if shape.kind == "capsule" else 0.0
    return at.R.columns[2], half


def _round_pair(first: Shape, at: Pose, second: Shape, of: Pose) -> tuple[Closest, ...]:
    """Spheres and capsules: balls about the closest points of their axes."""
    (u, h), (w, k) = _segment(first, at), _segment(second, of)
    a, b = at.r, of.r
    if h and k:
        s, t = _closest_on_axes(a - b, u, h, w, k)
        a, b = a + u * s, b + w * t
    elif h:
        a = a + u * clip((b - a).dot(u), -h, h)
    elif k:
        b = b + w * clip((a - b).dot(w), -k, k)
    return (_balls(a, first.size[0], b, second.size[0], _across(u, w)),)


def _closest_on_axes(r: Vec3, u: Vec3, h: float, w: Vec3, k: float) -> tuple[Scalar, Scalar]:
    """(s, t), |s| <= h and |t| <= k, that minimise |r + s u - t w| for unit vectors u and w: the
    lines' closest points, clipped one after the other. Parallel axes overlap around ``middle``.
    """
    b, p, q = u.dot(w), u.dot(r), w.dot(r)
    low, high = maximum(-p - k, -h), minimum(k - p, h)
    middle = (low + high) * 0.5
    normal = u.cross(w)
    s = clip((b * q - p + middle * PARALLEL) / (normal.dot(normal) + PARALLEL), -h, h)
    t = clip(b * s + q, -k, k)
    return clip(b * t - p, -h, h), t


def _across(u: Vec3, w: Vec3) -> Vec3:
    """A unit vector across both directions; across the first where they are parallel."""
    return unit_or(u.cross(w), unit_or(u.cross(_X), unit_or(u.cross(_Y), _Z)))


def _balls(a: Vec3, r: float, b: Vec3, s: float, otherwise: Vec3) -> Closest:
    """Two balls; ``otherwise`` is the normal where their centres coincide."""
    n = unit_or(a - b, otherwise)
    gap = n.dot(a - b) - (r + s)
    return Closest(gap, n, a - n * r, b + n * s)


# ---- boxes ----


def _round_box(first: Shape, at: Pose, second: Shape, of: Pose) -> tuple[Closest, ...]:
    """A sphere or a capsule at a box. A capsule touches it where its axis is closest, and at both
    ends: it can lie on a face.
    """
    u, h = _segment(first, at)
    half = [0.5 * edge for edge in second.size]
    centre = of.R.transposed_times(at.r - of.r)
    if not h:
        return (_ball_box(centre, first.size[0], half, of),)
    axis = of.R.transposed_times(u)
    along = [_closest_to_box(centre, axis, h, half), -h, h]
    return tuple(_ball_box(centre + axis * s, first.size[0], half, of) for s in along)


def _ball_box(p: Vec3, radius: float, half: Sequence[float], of: Pose) -> Closest:
    """A ball about p, in the box's frame: outside, the closest point of the box; inside, that of
    the nearest face.
    """
    xyz = (p.x, p.y, p.z)
    clipped = Vec3(*(clip(x, -h, h) for x, h in zip(xyz, half, strict=True)))
    signs = [select(x < 0.0, -1.0, 1.0) for x in xyz]
    depths = [h - x * sign for x, h, sign in zip(xyz, half, signs, strict=True)]
    on_x = select(depths[0] < depths[1], select(depths[0] < depths[2], 1.0, 0.0), 0.0)
    on_y = select(depths[1] < depths[2], 1.0 - on_x, 0.0)
    face = Vec3(signs[0] * on_x, signs[1] * on_y, signs[2] * (1.0 - on_x - on_y))
    depth = minimum(depths[0], minimum(depths[1], depths[2]))
    n = unit_or(p - clipped, face)
    outside = (p - clipped).dot(p - clipped) > COINCIDENT
    distance = select(outside, n.dot(p - clipped), -depth)
    normal = of.R @ n
    return Closest(distance - radius, normal, of.point(p - n * radius), of.point(p - n * distance))


def _closest_to_box(p: Vec3, u: Vec3, h: float, half: Sequence[float]) -> Scalar:
    """s, |s| <= h, at which p + s u is closest to the box |x_i| <= half_i.

    The square of the distance is convex in s, and half its derivative g(s) = sum u_i e_i(s), with
    e_i what x_i exceeds the box by, is linear between the crossings of the six faces. Its zero lies
    between the last of these (and of the ends) with g <= 0 and the first with g >= 0; where it
    vanishes on an interval, s is the middle.
    """
    lines = list(zip((p.x, p.y, p.z), (u.x, u.y, u.z), half, strict=True))

    def slope(s: Scalar) -> Scalar:
        total: Scalar = 0.0
        for x, v, edge in lines:
            y = x + v * s
            total = total + v * (y - clip(y, -edge, edge))
        return total

    first, last = slope(-h), slope(h)
    below: Scalar = -h  # the last place where g <= 0
    above: Scalar = h  # the first where g >= 0
    g_below, g_above = first, last
    for x, v, edge in lines:
        flat = v * v < COINCIDENT
        speed = select(flat, 1.0, v)
        for side in (-edge, edge):
            s = select(flat, 0.0, clip((side - x) / speed, -h, h))
            g = slope(s)
            falls, rises = g <= LEVEL, g >= -LEVEL
            below = select(falls, maximum(s, below), below)
            g_below = select(falls, maximum(g, g_below), g_below)
            above = select(rises, minimum(s, above), above)
            g_above = select(rises, minimum(g, g_above), g_above)
    span, rise = above - below, g_above - g_below
    zero = below - g_below * span / select(rise > 0.0, rise, 1.0)
    between = select(span > 0.0, zero, (below + above) * 0.5)
    return select(first > LEVEL, -h, select(last < -LEVEL, h, between))


# ---- planes and height fields ----


def _on_plane(first: Shape, at: Pose, second: Shape, of: Pose) -> tuple[Closest, ...]:
    """The balls of a shape over a plane, which ends at the x and y axes of its frame."""
    n, radius = of.R.columns[2], first.size[0] if first.kind != "box" else 0.0
    contacts = []
    for corner in _corners(first):
        c = at.point(corner)
        height = n.dot(c - of.r)
        contacts.append(Closest(height - radius, n, c - n * radius, c - n * height))
    return tuple(contacts)


def _on_height_field(first: Shape, at: Pose, second: Shape, of: Pose) -> tuple[Closest, ...]:
    """The balls of a shape over the tangent planes of a height field below their centres."""
    radius, field = first.size[0] if first.kind != "box" else 0.0, height_field(second)
    contacts = []
    for corner in _corners(first):
        c = at.point(corner)
        depth, up = field.under(of.R.transposed_times(c - of.r))
        steep = sqrt(up.dot(up))
        n, height = of.R @ (up * (1.0 / steep)), -depth / steep
        contacts.append(Closest(height - radius, n, c - n * radius, c - n * height))
    return tuple(contacts)


def height_field(shape: Shape) -> HeightField:
    """The terrain of a height field, in the shape's own frame: its centre is the origin."""
    counts = len(shape.heights), len(shape.heights[0])
    origin = [-0.5 * (n - 1) * step for n, step in zip(counts, shape.size, strict=True)]
    return HeightField(heights=shape.heights, spacing=shape.size, origin=origin, up=(0.0, 0.0, 1.0))


ContactFormula = Callable[[Shape, Pose, Shape, Pose], tuple[Closest, ...]]
CONTACTS: Final[Mapping[tuple[str, str], tuple[int, ContactFormula]]] = {
    ("sphere", "sphere"): (1, _round_pair),
    ("sphere", "capsule"): (1, _round_pair),
    ("capsule", "capsule"): (1, _round_pair),
    ("sphere", "box"): (1, _round_box),
    ("capsule", "box"): (3, _round_box),
    ("sphere", "plane"): (1, _on_plane),
    ("capsule", "plane"): (2, _on_plane),
    ("box", "plane"): (8, _on_plane),
    ("sphere", "height_field"): (1, _on_height_field),
    ("capsule", "height_field"): (2, _on_height_field),
    ("box", "height_field"): (8, _on_height_field),
}
"""The number of contacts and the text for two kinds; the poses are those of the shapes."""


# ---- scalars ----


def unit_or(v: Vec3, otherwise: Vec3) -> Vec3:
    """v as a unit vector; ``otherwise`` where it has no length."""
    square = v.dot(v)
    short = square < COINCIDENT
    size = 1.0 / sqrt(select(short, 1.0, square))
    parts = ((v.x, otherwise.x), (v.y, otherwise.y), (v.z, otherwise.z))
    return Vec3(*(select(short, b, a * size) for a, b in parts))
