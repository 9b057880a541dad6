"""Transmissions: the length an actuator sees, and how it transmits its force to the joints."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ramify.core.scalar import Scalar, Scalars, atan2, select, sqrt
from ramify.core.spatial import Mat3, Vec3
from ramify.drives.places import Places, Row, plus_row
from ramify.drives.rotation import log
from ramify.drives.tendons import tendon_length
from ramify.model.machine import Actuator
from ramify.model.robot import Robot


@dataclass
class Reach:
    """Length l, its Jacobian, and the period of l where it is an angle that repeats."""

    length: Scalar
    row: Row
    period: float = 0.0


def transmission_at(robot: Robot, a: Actuator, q: Scalars, places: Places | None) -> Reach:
    """The transmission of an actuator at q."""
    if a.dead:
        return Reach(0.0, {})
    if a.joint:
        return _at_joint(robot, a, q)
    g = a.gear[0]
    if a.tendon:
        tendon = next(t for t in robot.tendons if t.name == a.tendon)
        L, row = tendon_length(robot, tendon, q, places)
        return Reach(g * L, {k: g * x for k, x in row.items()})
    assert places is not None
    if a.slider:
        return _slider_crank(a, places)
    return _at_site(a, places)


def _at_joint(robot: Robot, a: Actuator, q: Scalars) -> Reach:
    joint, rates = robot.joint(a.joint), robot.joint_slice(a.joint)
    coordinates = q[robot.joint_slice(a.joint, "q")]
    start = rates.start
    if joint.dof == 1:
        return Reach(a.gear[0] * coordinates[0], {start: a.gear[0]})
    if joint.kind not in ("ball", "free"):
        row: Row = {start + k: float(g) for k, g in enumerate(a.gear[: joint.dof]) if g}
        total: Scalar = 0.0
        for k, g in row.items():
            total = total + g * coordinates[k - start]
        return Reach(total, row)
    turn = Vec3(*(a.gear[3:6] if joint.kind == "free" else a.gear[:3]))
    if a.in_parent:
        turn = _turned_back(coordinates[-4:], turn)
    first = start + joint.dof - 3
    row = {first + k: x for k, x in enumerate((turn.x, turn.y, turn.z)) if _there(x)}
    if joint.kind == "free":
        row |= {start + k: float(g) for k, g in enumerate(a.gear[:3]) if g}
        return Reach(0.0, row)
    period = 2.0 * math.pi * math.sqrt(sum(g * g for g in a.gear[:3]))
    return Reach(turn.dot(log(coordinates)), row, period)


def _there(x: Any) -> bool:
    return not (isinstance(x, float) and x == 0.0)


def _turned_back(q: Scalars, u: Vec3) -> Vec3:
    """R' u of the rotation of a unit quaternion."""
    w, r = q[0], Vec3(*q[1:])
    t = u.cross(r) * 2.0
    return u + t * w + t.cross(r)


def _at_site(a: Actuator, places: Places) -> Reach:
    at = places.pose(a.site)
    force, moment = Vec3(*a.gear[:3]), Vec3(*a.gear[3:6])
    if not a.reference:
        row = places.along(a.site, at.r, at.R @ force) if any(a.gear[:3]) else {}
        if any(a.gear[3:6]):
            row = plus_row(row, places.about(a.site, at.R @ moment))
        return Reach(0.0, row)
    base = places.pose(a.reference)
    total: Scalar = 0.0
    row, period = {}, 0.0
    if any(a.gear[:3]):
        axis = base.R @ force
        total = total + axis.dot(at.r - base.r)
        row = places.along(a.site, at.r, axis)
        row = plus_row(row, places.along(a.reference, base.r, axis), -1.0)
    if any(a.gear[3:6]):
        axis = base.R @ moment
        total = total + moment.dot(_rotation_vector(base.R, at.R))
        row = plus_row(row, places.about(a.site, axis))
        row = plus_row(row, places.about(a.reference, axis), -1.0)
        if not any(a.gear[:3]):
            period = 2.0 * math.pi * math.sqrt(sum(g * g for g in a.gear[3:6]))
    common = places.support(a.site) & places.support(a.reference)
    return Reach(total, {k: x for k, x in row.items() if k not in common}, period)


def _rotation_vector(A: Mat3, B: Mat3) -> Vec3:
    """log(A' B), its length below pi."""
    a, b = A.columns, B.columns
    R = [[x.dot(y) for y in b] for x in a]
    u = Vec3(R[2][1] - R[1][2], R[0][2] - R[2][0], R[1][0] - R[0][1])
    square = u.dot(u)
    none = square < 1e-24
    size = sqrt(select(none, 1.0, square))
    angle = atan2(size, R[0][0] + R[1][1] + R[2][2] - 1.0)
    return u * select(none, 0.5, angle / size)


def _slider_crank(a: Actuator, places: Places) -> Reach:
    """l = a·r - sqrt((a·r)^2 + rod^2 - r·r), r from the slider to the crank, a the slider's z."""
    slide, crank, g = places.pose(a.slider), places.pose(a.site), a.gear[0]
    axis, r = slide.R.columns[2], crank.r - slide.r
    along = axis.dot(r)
    square = along * along + a.rod * a.rod - r.dot(r)
    apart = square < 1e-30
    root = sqrt(select(apart, 1.0, square))
    lever = 1.0 - along / root
    by_axis = r * select(apart, 1.0, lever)
    by_place = axis * select(apart, 1.0, lever) + r * select(apart, 0.0, 1.0 / root)
    row = places.along(a.site, crank.r, by_place)
    row = plus_row(row, places.along(a.slider, slide.r, by_place), -1.0)
    row = plus_row(row, places.about(a.slider, axis.cross(by_axis)))
    return Reach(g * (along - select(apart, 0.0, root)), {k: g * x for k, x in row.items()})
