"""What a closing joint forbids, over any scalar: its rows, the wrenches that enforce them, and
their accelerations.

In the axes of the world, d leads from the first end's origin to the second's; w', v' are the
angular velocity of the second end and the velocity of its origin as seen from the first end, dw',
dv' the accelerations seen so. A row phi(d, axes) has the rate

    n . w' + f . v'    and the second derivative    n . dw' + f . dv' + rest,

so [n; f] is the wrench, at the second end's origin, with which a unit multiplier acts on the second
link (and its reverse on the first), and the rest is what bends: the rows of J and J' v of eqs.
(8.1) and (8.5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ramify.core.scalar import Scalar, select, sqrt
from ramify.core.spatial import ZERO, Mat3, Vec3
from ramify.model.link import Pose
from ramify.model.loop import Loop


@dataclass(slots=True)
class ConstraintRow:
    """A row's value, its wrench [n; f], and ``rest(w', v')``; ``gap`` is its value, but none that
    vanishes at half a turn.
    """

    value: Scalar
    n: Vec3
    f: Vec3
    rest: Callable[[Vec3, Vec3], Scalar]
    gap: Any = None

    def __post_init__(self) -> None:
        if self.gap is None:
            self.gap = self.value


def closing_rows(
    loop: Loop, first: Pose, second: Pose, facing: bool = False
) -> list[ConstraintRow]:
    """The rows of a closing joint at the poses of its ends in the world.

    A sine vanishes at half a turn, too. ``gap`` of a row does not: beyond a quarter turn it is
    2 - |s| in the direction of the sine s. facing: so is the row itself, with its wrench and its
    rest. The dynamics, of loops that are closed, need not pay for that.
    """
    by_name = {name: _row(name, loop, first, second) for name in loop.rows}
    a, b = first.R.columns, second.R.columns
    upright = a[2].dot(b[2])
    turned = a[0].dot(b[0]) + a[1].dot(b[1]) + upright - 1.0
    for names, cosine in ((_TILTS, upright), (_TURNS, turned)):
        sines = [name for name in names if name in by_name]
        for name, row in zip(sines, _faced([by_name[n] for n in sines], cosine), strict=True):
            by_name[name].gap = row.value
            if facing:
                by_name[name] = row
    return list(by_name.values())


def _faced(sines: list[ConstraintRow], cosine: Scalar) -> list[ConstraintRow]:
    """Rows s (2 / |s| - 1) where the cosine is negative, else s; at half a turn, where no direction
    is left, 2 each.
    """
    away = cosine < 0.0
    square: Scalar = 0.0
    for row in sines:
        square = square + row.value * row.value
    some = square > _HALF_TURN
    m = sqrt(select(some, square, 1.0))
    g, k = 2.0 / m - 1.0, 2.0 / (m * m * m)
    n = ZERO
    for row in sines:
        n = n + row.n * row.value

    def turned(row: ConstraintRow) -> ConstraintRow:
        def rest(w: Vec3, v: Vec3) -> Scalar:
            along = n.dot(w)
            squares: Scalar = 0.0
            bend: Scalar = 0.0
            for other in sines:
                rate = other.n.dot(w)
                squares = squares + rate * rate
                bend = bend + other.value * other.rest(w, v)
            pull = row.value * (3.0 * along * along / (m * m) - squares - bend)
            far = g * row.rest(w, v) + k * (pull - 2.0 * along * row.n.dot(w))
            return select(away, far, row.rest(w, v))

        value = select(away, select(some, row.value * g, 2.0), row.value)
        own = row.n * g - n * (k * row.value)
        wrench = Vec3(
            *(select(away, x, y) for x, y in zip(_parts(own), _parts(row.n), strict=True))
        )
        return ConstraintRow(value, wrench, row.f, rest, value)

    return [turned(row) for row in sines]


def _parts(u: Vec3) -> tuple[Scalar, Scalar, Scalar]:
    return u.x, u.y, u.z


def _row(name: str, loop: Loop, first: Pose, second: Pose) -> ConstraintRow:
    d = second.r - first.r
    a, b = first.R.columns, second.R.columns
    if name in _AXES:
        e = a[_AXES[name]]
        return ConstraintRow(e.dot(d), ZERO, e, lambda w, v: 0.0)
    if name == "tilt_x":
        return _angle(-a[1], b[2])
    if name == "tilt_y":
        return _angle(a[0], b[2])
    if name == "cross":
        return _angle(a[2], b[2])
    if name == "distance":
        k = 1.0 / loop.length
        return ConstraintRow(
            (d.dot(d) - loop.length * loop.length) * (0.5 * k),
            ZERO,
            d * k,
            lambda w, v: v.dot(v) * k,
        )
    return _turn(_TURNS.index(name), first.R, second.R)


_AXES = {"x": 0, "y": 1, "z": 2}
_TILTS = ("tilt_x", "tilt_y")
_TURNS = ("turn_x", "turn_y", "turn_z")
_HALF_TURN = 1e-20  # squared sine at which the direction of a half turn is not known any more


def _angle(u: Vec3, z: Vec3) -> ConstraintRow:
    """u . z for an axis u of the first end and z of the second: its rate is u . (w' x z)."""
    return ConstraintRow(u.dot(z), z.cross(u), ZERO, lambda w, v: u.dot(w.cross(w.cross(z))))


def _turn(k: int, first: Mat3, second: Mat3) -> ConstraintRow:
    """Half the sum of a_i x b_i over the axes of both ends, along axis k: the sine of the angle
    between them times its axis.
    """
    a, b = first.columns, second.columns
    e = a[k]
    value = 0.5 * (_crosses(a, b).dot(e))
    trace = a[0].dot(b[0]) + a[1].dot(b[1]) + a[2].dot(b[2])
    n = (e * trace - (a[0] * e.dot(b[0]) + a[1] * e.dot(b[1]) + a[2] * e.dot(b[2]))) * 0.5

    def rest(w: Vec3, v: Vec3) -> Scalar:
        x, y, z = (w.cross(w.cross(axis)) for axis in b)
        return 0.5 * _crosses(a, (x, y, z)).dot(e)

    return ConstraintRow(value, n, ZERO, rest)


def _crosses(a: tuple[Vec3, Vec3, Vec3], b: tuple[Vec3, Vec3, Vec3]) -> Vec3:
    return a[0].cross(b[0]) + a[1].cross(b[1]) + a[2].cross(b[2])
