"""The regressor: joint forces are linear in the inertial parameters of the bodies, tau = Y pi.

All is seen from one inertial frame, as in ``ramify.dynamics.derivatives``: a body's ten wrenches,
one for each parameter at the value one, are felt by every joint that carries it, Y = s . w.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ramify.core.scalar import Scalar, Scalars
from ramify.core.spatial import ZERO, RigidInertia, Sym3, Twist, Vec3, Wrench, acceleration_field
from ramify.dynamics.derivatives import WorldFrameLink, outward, screw
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import Column, Matrix, Tree
from ramify.dynamics.trunk import FREE, Flow, Trunk, axes, identity, motion_at_rest, split_trunk
from ramify.model.link import Link, Pose

PARAMETERS: Final = ("m", "hx", "hy", "hz", "Ixx", "Iyy", "Izz", "Ixy", "Iyz", "Ixz")
"""Mass in kg, first moment h = m d in kg m, inertia tensor in kg m^2, both about the frame's
origin.
"""


def rigid(parameters: Scalars) -> RigidInertia:
    """The inertia of ten parameters, in the order of ``PARAMETERS``."""
    m, hx, hy, hz, xx, yy, zz, xy, yz, xz = parameters
    return RigidInertia(m, Vec3(hx, hy, hz), Sym3(xx, yy, zz, xy, xz, yz))


_TENSORS: Final = [
    rigid([float(i == k) for i in range(len(PARAMETERS))]).I for k in range(4, len(PARAMETERS))
]


def wrenches(at: Pose, flow: Flow) -> tuple[Wrench, ...]:
    """The wrench of each parameter at the value one (eq. 5.5), for a body at a pose."""
    w, dw, r = flow.t.w, flow.dt.w, at.r
    a = flow.dt.v + dw.cross(r) + w.cross(flow.t.v + w.cross(r))
    columns = [Wrench(r.cross(a), a)]
    field = acceleration_field(w, dw)
    for e in at.R.columns:
        f = field @ e
        columns.append(Wrench(e.cross(a) + r.cross(f), f))
    u, du = at.R.transposed_times(w), at.R.transposed_times(dw)
    for tensor in _TENSORS:
        columns.append(Wrench(at.R @ (tensor @ du + u.cross(tensor @ u)), ZERO))
    return tuple(columns)


def of_link(link: Link, here: WorldFrameLink) -> tuple[Wrench, ...]:
    """Those of the body that sits on a link."""
    return wrenches(here.pose @ link.seat, here.flow)


def along_axis(s: Twist, of: Sequence[Wrench]) -> tuple[Scalar, ...]:
    return tuple(s.dot(w) for w in of)


def climb(of: tuple[Wrench, ...], child: Any, above: Any) -> tuple[Any, tuple[Wrench, ...]]:
    """A wrench on a link is felt by every joint below it."""
    return tuple((0.0, x) for x in along_axis(above[1], of)), of


def _sweep(
    tree: Tree, root: WorldFrameLink, q: Column, v: Column, a: Column
) -> tuple[Column, list[Matrix]]:
    """The wrenches of all links, and the ten matrices."""
    seen = tree.outward(outward, root, displacements(tree, q), v, a)
    axes = tree.each(lambda link, s: screw(link, s.pose), seen)
    of = tree.each(of_link, seen)
    own = tree.each(lambda link, s, w: along_axis(s, w), axes, of)
    return of, [
        matrix.with_diagonal(tree.each(lambda link, entries, i=i: entries[i], own))
        for i, matrix in enumerate(tree.climbs(len(PARAMETERS), climb, of, axes))
    ]


def regressor(tree: Tree, q: Column, v: Column, a: Column) -> list[Matrix]:
    """Ten matrices (nv, links), one a parameter: tau is the sum of each times that parameter of all
    links, in the frames of their bodies.
    """
    flying = split_trunk(tree)
    if flying is not None:
        heads = (*q[:3], *q[3][1:]), v[:FREE], a[:FREE]
        return trunk_regressor(flying[1], flying[0], *heads, q[FREE:], v[FREE:], a[FREE:])
    base = motion_at_rest(-tree.gravity)
    return _sweep(tree, WorldFrameLink(identity(), base, base), q, v, a)[1]


def trunk_regressor(
    limbs: Tree, trunk: Trunk, q0: Scalars, v0: Scalars, a0: Scalars,
    q: Column, v: Column, a: Column,
) -> list[Matrix]:  # fmt: skip
    """The regressor of a trunk with the coordinates q0 (7), v0, a0 (6) that carries limbs."""
    slides, flow, _ = limbs.hoisted(trunk.motion(limbs.gravity, q0, v0, a0))
    of, matrices = _sweep(limbs, WorldFrameLink(trunk.end, flow, flow), q, v, a)
    own_axes = axes(slides)
    nothing = [0.0] * (FREE - 1)
    trunk_rows = [along_axis(s, wrenches(trunk.seat, flow)) for s in own_axes]

    def sides(link: Link, w: tuple[Wrench, ...]) -> tuple[Any, ...]:
        by_axis = [along_axis(s, w) for s in own_axes]
        return tuple(((0.0,) * FREE, tuple(x[i] for x in by_axis)) for i in range(len(PARAMETERS)))

    above, whole = limbs.each(sides, of), []
    for i, matrix in enumerate(matrices):
        beside = limbs.each(lambda link, x, i=i: x[i], above)
        whole.append(limbs.bordered(matrix, beside, [[*nothing, row[i]] for row in trunk_rows]))
    return whole
