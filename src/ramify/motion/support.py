"""What a walk is judged by: the zero-moment point (B.1) and the polygon of the points that stand
(appendix B.1.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from ramify.contact.contact_record import Contacts
from ramify.contact.terrain import level_axes
from ramify.core.arrays import Array, real
from ramify.core.errors import StateError
from ramify.kernels.floating import zero_moment_point
from ramify.kernels.queries import kinematics
from ramify.model.robot import Robot
from ramify.motion.gait import Gait
from ramify.motion.leg import soles


class Walk(Protocol):
    """A run on a ground, as ``ramify.Result`` has it."""

    @property
    def t(self) -> Array: ...
    @property
    def contacts(self) -> Contacts | None: ...


@dataclass(frozen=True, eq=False)
class Balance:
    """Where the ground must press, and where it can: ``point`` (T, 2), the zero-moment point or the
    centre of pressure, m; ``polygons``: for each time the support polygon (k, 2), counterclockwise;
    ``margin`` (T,): how far inside it the point lies, m, negative outside. Feet that stand on one
    line have no inside: there the margin is minus the distance from that line.

    The two coordinates are level ones: with Z up those along X and Y. ``axes`` (2, 3) has their
    directions in the world.
    """

    t: Array
    point: Array
    polygons: tuple[Array, ...]
    margin: Array
    axes: Array


def level(up: ArrayLike) -> Array:
    """(2, 3): the directions ahead and left, level where ``up`` (3,) points up; X and Y for Z."""
    return np.array(level_axes(real("up", up).tolist())[:2])


def support_polygon(points: ArrayLike, up: ArrayLike = (0.0, 0.0, 1.0)) -> Array:
    """The convex hull (k, 2) of points of the ground, counterclockwise; one or two points as they
    are.

    points: (n, 2), level coordinates, or (n, 3) in the world, where ``up`` (3,) points up.
    """
    array = real("points", points)
    shaped = array.ndim == 2 and array.shape[1] in (2, 3) and array.size
    if not (shaped and np.isfinite(array).all()):
        raise StateError(
            "support_polygon needs finite points (n, 2) or (n, 3), at least one; got shape "
            f"{array.shape}"
        )
    flat = array if array.shape[1] == 2 else array @ level(up).T
    unique = np.unique(flat, axis=0)  # sorted by the first coordinate, then the second
    lower, upper = (_chain(order) for order in (unique, unique[::-1]))
    return np.array(lower[:-1] + upper[:-1]) if len(unique) > 1 else unique


def _chain(points: Array) -> list[Array]:
    """One side of the hull: sorted points without those where the way turns right."""
    out: list[Array] = []
    for p in points:
        while len(out) > 1 and _cross(out[-1] - out[-2], p - out[-2]) <= 1e-15:
            out.pop()
        out.append(p)
    return out


def _cross(a: Array, b: Array) -> float:
    return float(a[0] * b[1] - a[1] * b[0])


def support_margin(polygon: ArrayLike, point: ArrayLike) -> float:
    """How far a point (2,) lies inside a polygon (k, 2) as support_polygon gives it, m; outside,
    minus its distance.
    """
    corners, p = real("polygon", polygon), real("point", point)
    if corners.ndim != 2 or corners.shape[1] != 2 or not len(corners) or p.shape != (2,):
        raise StateError(
            f"polygon has shape {corners.shape} and point {p.shape}; they must be (k, 2) and (2,)"
        )
    after = np.roll(corners, -1, axis=0)
    way = after - corners
    length2 = np.maximum((way * way).sum(axis=1), 1e-300)
    along = np.clip(((p - corners) * way).sum(axis=1) / length2, 0.0, 1.0)
    distance = float(np.linalg.norm(corners + along[:, None] * way - p, axis=1).min())
    inside = len(corners) > 2 and all(
        _cross(w, p - c) >= 0.0 for w, c in zip(way, corners, strict=True)
    )
    return distance if inside else -distance


def planned_balance(model: Robot, gait: Gait, t: ArrayLike) -> Balance:
    """The zero-moment point of a gait over the polygon of the feet that stand, at the times t (T,),
    s.

    The gait moves a point mass at the hips without a moment; the robot has heavy legs, so that its
    own point wanders about.
    """
    times = np.atleast_1d(real("t", t))
    if times.ndim != 1 or not isinstance(gait, Gait):
        raise StateError(
            f"t must be (T,) and gait a Gait; got {times.shape} and {type(gait).__name__}"
        )
    m = gait.whole(model, times)
    up = [-g for g in model.gravity]
    axes = level(up)
    zmp = zero_moment_point(model, m.q, m.v, m.a, 0.0) @ axes.T
    places, legs = _points(model, gait, m.q)
    standing = gait.standing(times)
    polygons = tuple(
        support_polygon(row[stands[legs]], up) for row, stands in zip(places, standing, strict=True)
    )
    return Balance(times, zmp, polygons, _margins(polygons, zmp), axes)


def measured_balance(result: Walk) -> Balance:
    """The centre of pressure of a run over the polygon of the points that touch the ground, both
    seen from above, which the ground's upward direction decides; NaN in flight.

    Raises StateError where the run had no ground.
    """
    contacts = result.contacts
    if contacts is None:
        raise StateError("this run had no ground; give rf.simulate one")
    axes = level(contacts.up)
    pressure = contacts.center_of_pressure @ axes.T
    none = np.full((1, 2), np.nan)
    rows = zip(contacts.position, contacts.touching, strict=True)
    polygons = tuple(
        support_polygon(row[touch], contacts.up) if touch.any() else none for row, touch in rows
    )
    return Balance(result.t, pressure, polygons, _margins(polygons, pressure), axes)


def _margins(polygons: tuple[Array, ...], points: Array) -> Array:
    return np.array([support_margin(*pair) for pair in zip(polygons, points, strict=True)])


def _points(model: Robot, gait: Gait, q: Array) -> tuple[Array, list[int]]:
    """Places (T, n, 3) of the points on which the legs stand, and the leg of each."""
    R, r = kinematics(model, q)
    found = soles(model, gait.legs)
    places = np.stack([r[:, b] + R[:, b] @ point for _, b, point in found], axis=1)
    return places, [leg for leg, _, _ in found]
