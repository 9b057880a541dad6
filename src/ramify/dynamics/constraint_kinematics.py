"""Constraint kinematics (section 8.2): residual, J and J' v of all loops, from the sweeps that also
serve the dynamics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ramify.core.scalar import Scalar
from ramify.core.spatial import NO_WRENCH, Wrench, acceleration_field
from ramify.dynamics.closure import Closure
from ramify.dynamics.constraint_rows import ConstraintRow, closing_rows
from ramify.dynamics.coupled_lengths import coupled
from ramify.dynamics.kinematics import poses
from ramify.dynamics.linear import dot
from ramify.dynamics.loop_ends import end_motion, end_pose, unit_twist, wrench_on
from ramify.dynamics.motion import Drift, displacements
from ramify.dynamics.tree import Column, Tree
from ramify.dynamics.wrenches import to_world
from ramify.model.link import Pose


@dataclass(slots=True)
class Constraint:
    """One row: its value, its ``gap`` (see ``Row``), its entries of J by link, and the wrenches by
    link (in the links' frames) of a unit multiplier.

    ``forces`` are joint forces by link instead, for gears and couplings of coordinates. ``size``:
    see Closure; ``loop`` is the index of its loop; ``at`` is the wrench of a unit multiplier on the
    second link, at that end and in the axes of the world.
    """

    value: Scalar
    gap: Scalar
    entries: dict[int, Scalar]
    bias: Scalar
    size: float
    loop: int
    wrenches: dict[int, Wrench] = field(default_factory=dict)
    forces: dict[int, Scalar] = field(default_factory=dict)
    at: Wrench | None = None

    def rate(self, v: Column) -> Scalar:
        """J v."""
        return dot([v[k] for k in self.entries], list(self.entries.values()))


def loop_constraints(
    tree: Tree, loops: Sequence[Closure], q: Column, x: Column, moving: Drift | None,
    facing: bool = False,
) -> list[Constraint]:  # fmt: skip
    """All rows of all loops at the links' coordinates q and displacements x.

    moving: the motions of the links under gravity at zero joint accelerations, which give J' v
    (gravity, an acceleration common to all, drops out); None leaves that at zero. facing: see
    ``rows``.
    """
    at = poses(tree, x)
    out: list[Constraint] = []
    for index, closure in enumerate(loops):
        out += (
            [_coupling(tree, closure, q, at, moving, index)]
            if closure.lengths
            else _rows(tree, closure, at, moving, index, facing)
        )
    return out


def _coupling(
    tree: Tree, closure: Closure, q: Column, at: Column, moving: Drift | None, index: int
) -> Constraint:
    row = coupled(tree, closure.lengths, closure.loop.polynomial, q, at, moving)
    own = (row.value, row.value, row.entries, row.bend, closure.sizes[0], index)
    return Constraint(*own, wrenches=row.wrenches, forces=row.forces)


def _rows(
    tree: Tree, closure: Closure, at: Column, moving: Drift | None, index: int, facing: bool
) -> list[Constraint]:
    ends = [end_pose(end, at) for end in (closure.first, closure.second)]
    found = closing_rows(closure.loop, ends[0], ends[1], facing)
    bias = [0.0] * len(found) if moving is None else _bias(tree, closure, at, ends, moving, found)
    place = ends[1].r
    out = []
    columns = {k: unit_twist(tree, at[k], k, place) for k, _ in closure.moves}
    for row, b, size in zip(found, bias, closure.sizes, strict=True):
        entries = {
            k: sign * (row.n.dot(columns[k].w) + row.f.dot(columns[k].v))
            for k, sign in closure.moves
        }
        wrenches = {
            end.link: wrench_on(at[end.link], place, row.n, row.f) * sign
            for end, sign in ((closure.first, -1.0), (closure.second, 1.0))
            if end.link >= 0
        }
        whole = Wrench(row.n, row.f)
        out.append(Constraint(row.value, row.gap, entries, b, size, index, wrenches, at=whole))
    return out


def _bias(
    tree: Tree, closure: Closure, at: Column, ends: Sequence[Pose], moving: Drift,
    rows: list[ConstraintRow],
) -> list[Scalar]:  # fmt: skip
    """J' v: the rows' second derivatives at zero joint accelerations."""
    (w1, v1, dw1, dv1), (w2, v2, dw2, dv2) = (
        end_motion(tree, end, at, moving.links) for end in (closure.first, closure.second)
    )
    d = ends[1].r - ends[0].r
    w, v = w2 - w1, v2 - v1 - w1.cross(d)
    dw = dw2 - dw1 - w1.cross(w2)
    dv = dv2 - dv1 - acceleration_field(w1, dw1) @ d - w1.cross(v) * 2.0
    return [row.n.dot(dw) + row.f.dot(dv) + row.rest(w, v) for row in rows]


def loop_wrenches(
    tree: Tree, loops: Sequence[Closure], q: Column, lam: Sequence[Scalar]
) -> tuple[list[Wrench], list[Wrench]]:
    """(on links, of loops): what the multipliers exert on every body, at its origin, and each
    loop's on its second link, at that end; world-aligned. A gear acts in its joints, not on the
    bodies.
    """
    x = displacements(tree, q)
    at = poses(tree, x)
    rows = loop_constraints(tree, loops, q, x, None)
    wrenches, out = [NO_WRENCH] * len(tree.links), [NO_WRENCH] * len(loops)
    for row, k in zip(rows, lam, strict=True):
        for link, w in row.wrenches.items():
            wrenches[link] = wrenches[link] + w * k
        if row.at is not None:
            out[row.loop] = out[row.loop] + row.at * k
    return [
        to_world(link, pose, w) for link, pose, w in zip(tree.links, at, wrenches, strict=True)
    ], out
