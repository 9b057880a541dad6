"""Gears and couplings over any scalar: y = c0 + c1 x + c2 x^2 + ... of two lengths.

A length is a sum of coordinates, or of straight pieces between frames (a tendon). With P the
polynomial, the row y - P(x) has the rate y' - P'(x) x' and the second derivative

    y'' - P'(x) x'' - P''(x) x'^2.

A piece from a to b, along the unit vector u, has the rate u . (b' - a') and the second derivative
u . (b'' - a'') + (|b' - a'|^2 - (u . (b' - a'))^2) / |b - a|.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ramify.core.scalar import Scalar, select, sqrt
from ramify.core.spatial import ZERO, Wrench
from ramify.dynamics.closure import CoupledLength, TendonPiece
from ramify.dynamics.loop_ends import end_motion, end_pose, unit_twist, wrench_on
from ramify.dynamics.motion import Drift
from ramify.dynamics.tree import Column, Tree

_NO_LENGTH = 1e-30
"""Squared length, m^2, of a piece that has no direction."""


@dataclass(slots=True)
class LengthRow:
    """A length: its value, its derivatives by link, its rate, and its second derivative ``bend`` at
    zero joint accelerations. What a unit tension does: ``wrenches`` on links, ``forces`` in joints.
    """

    value: Scalar = 0.0
    entries: dict[int, Scalar] = field(default_factory=dict)
    rate: Scalar = 0.0
    bend: Scalar = 0.0
    wrenches: dict[int, Wrench] = field(default_factory=dict)
    forces: dict[int, Scalar] = field(default_factory=dict)


def coupled(
    tree: Tree, lengths: Sequence[CoupledLength], polynomial: Sequence[float], q: Column,
    at: Column, moving: Drift | None,
) -> LengthRow:  # fmt: skip
    """The row y - P(x) of the lengths (x, y), or y - c0 of one alone, at the coordinates q and
    poses ``at`` of the links. ``moving``: see ``loop_constraints``.
    """
    *leader, y = (_length(tree, length, q, at, moving) for length in lengths)
    c0, *rest = polynomial
    if not leader or not rest:
        y.value = y.value - c0
        return y
    x = leader[0]
    slope, curvature = _derivatives(rest, x.value)
    return LengthRow(
        y.value - x.value * _horner(rest, x.value) - c0,
        _sum(y.entries, x.entries, slope),
        bend=y.bend - slope * x.bend - curvature * (x.rate * x.rate),
        wrenches=_sum(y.wrenches, x.wrenches, slope),
        forces=_sum(y.forces, x.forces, slope),
    )


def _horner(c: Sequence[float], x: Scalar) -> Scalar:
    """c0 + c1 x + c2 x^2 + ..."""
    total: Scalar = c[-1]
    for one in reversed(c[:-1]):
        total = total * x + one
    return total


def _derivatives(rest: Sequence[float], x: Scalar) -> tuple[Scalar, Scalar]:
    """P' and P'' of P = c0 + rest[0] x + rest[1] x^2 + ..."""
    first = [k * c for k, c in enumerate(rest, 1)]
    second = [k * c for k, c in enumerate(first[1:], 1)]
    return _horner(first, x), _horner(second, x) if second else 0.0


def _sum(y: Mapping[int, Any], x: Mapping[int, Any], slope: Scalar) -> dict[int, Any]:
    """y - slope x of scalars or wrenches, by link."""
    out = {k: value * -slope for k, value in x.items()}
    for k, value in y.items():
        out[k] = out[k] + value if k in out else value
    return out


def _length(
    tree: Tree, length: CoupledLength, q: Column, at: Column, moving: Drift | None
) -> LengthRow:
    row = LengthRow()
    for k, factor in length.terms:
        row.value = row.value + q[k] * factor
        row.entries[k] = row.forces[k] = row.entries.get(k, 0.0) + factor
        if moving is not None:
            row.rate = row.rate + moving.v[k] * factor
    for piece in length.pieces:
        _add_piece(row, tree, piece, at, moving)
    return row


def _add_piece(
    row: LengthRow, tree: Tree, piece: TendonPiece, at: Column, moving: Drift | None
) -> None:
    a, b = (end_pose(end, at).r for end in (piece.first, piece.second))
    d = b - a
    square = d.dot(d)
    none = square < _NO_LENGTH
    size = sqrt(select(none, 1.0, square))
    row.value = row.value + select(none, 0.0, size) * piece.factor
    if not piece.moves:
        return
    u = d * (1.0 / size)
    for k, sign in piece.moves:
        entry = u.dot(unit_twist(tree, at[k], k, b).v) * (sign * piece.factor)
        row.entries[k] = row.entries.get(k, 0.0) + entry
    for end, place, sign in ((piece.first, a, -1.0), (piece.second, b, 1.0)):
        if end.link >= 0:
            pull = wrench_on(at[end.link], place, ZERO, u) * (sign * piece.factor)
            known = row.wrenches.get(end.link)
            row.wrenches[end.link] = pull if known is None else known + pull
    if moving is not None:
        (_, v1, _, dv1), (_, v2, _, dv2) = (
            end_motion(tree, end, at, moving.links) for end in (piece.first, piece.second)
        )
        v, along = v2 - v1, u.dot(v2 - v1)
        row.rate = row.rate + along * piece.factor
        across = (v.dot(v) - along * along) * (1.0 / size)
        row.bend = row.bend + (u.dot(dv2 - dv1) + across) * piece.factor
