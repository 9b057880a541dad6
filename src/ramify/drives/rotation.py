"""Rotation vectors of unit quaternions, over any scalar."""

from __future__ import annotations

from collections.abc import Sequence

from ramify.core.scalar import Scalar, atan2, select, sqrt
from ramify.core.spatial import Vec3

_TINY = 1e-24


def between(rest: Sequence[Scalar], q: Sequence[Scalar]) -> Vec3:
    """log(rest^-1 q): the rotation vector from one quaternion to another, in the turned frame; its
    length is at most pi.
    """
    a, b, c, d = rest
    w, x, y, z = q
    return log(
        (
            a * w + (b * x + (c * y + d * z)),
            a * x - b * w - c * z + d * y,
            a * y - c * w - d * x + b * z,
            a * z - d * w - b * y + c * x,
        )
    )


def log(q: Sequence[Scalar]) -> Vec3:
    """The rotation vector of a quaternion of any length but zero."""
    w, u = q[0], Vec3(*q[1:])
    sign = select(w < 0.0, -1.0, 1.0)
    square = u.dot(u)
    small = square < _TINY * (w * w)
    n = sqrt(select(small, 1.0, square))
    turn = select(small, 2.0 / select(small, w * sign, 1.0), 2.0 * atan2(n, w * sign) / n)
    return u * (turn * sign)


def smooth_length(r: Vec3) -> Scalar:
    """|r|, smooth enough to be differentiated at zero."""
    square = r.dot(r)
    small = square < _TINY
    return select(small, 0.0, sqrt(select(small, 1.0, square)))


def direction_or_zero(r: Vec3, size: Scalar) -> Vec3:
    """r / |r|, or zero."""
    small = size < 1e-12
    return r * select(small, 0.0, 1.0 / select(small, 1.0, size))
