"""Lengths of tendons and their Jacobians over any scalar."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ramify.core.scalar import Scalar, select, sqrt
from ramify.drives import element_laws as laws
from ramify.drives.places import Places, Row, plus_row
from ramify.model.machine import Tendon
from ramify.model.robot import Robot


def tendon_length(
    robot: Robot, tendon: Tendon, q: Sequence[Scalar], places: Places | None
) -> tuple[Scalar, Row]:
    """(L, dL/dq as a row): sums of coordinates, or of straight pieces between frames."""
    if not tendon.branches:
        rates = {name: i for i, name in enumerate(robot.velocities)}
        plain = dict(zip(robot.layout.plain_v, robot.layout.plain_q, strict=True))
        total: Scalar = 0.0
        row: Row = {}
        for name, c in tendon.joints:
            total = total + c * q[plain[rates[name]]]
            row = plus_row(row, {rates[name]: c})
        return total, row
    assert places is not None
    total, row = 0.0, {}
    for divisor, names in tendon.branches:
        for first, second in pairwise(names):
            a, b = places.pose(first).r, places.pose(second).r
            piece = b - a
            square = piece.dot(piece)
            none = square < 1e-30
            size = sqrt(select(none, 1.0, square))
            total = total + select(none, 0.0, size) * (1.0 / divisor)
            if places.body(first) == places.body(second):
                continue
            u = piece * (1.0 / size)
            row = plus_row(row, places.along(second, b, u), 1.0 / divisor)
            row = plus_row(row, places.along(first, a, u), -1.0 / divisor)
    return total, row


def pull(tendon: Tendon, L: Scalar, rate: Scalar) -> tuple[laws.Answer, laws.Answer]:
    """Spring beyond the slack range, and damping: forces along the length."""
    low, high = tendon.rest
    over = L - high
    if low < high:
        under = L - low
        over = select(over > 0.0, over, select(under < 0.0, under, 0.0))
    return laws.spring(tendon.stiffness, over), laws.damping(tendon.damping, rate)
