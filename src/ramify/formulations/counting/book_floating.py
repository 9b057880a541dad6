"""The book's recursions for a floating base with the steps of its tables 7.3 and 7.4, written for
counting; over any scalar.

The base moves as it likes: twist t_0 and its rate are [w; v] in the base's own axes, at its origin,
P_0 being the identity. Gravity is an acceleration of the base, in its axes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ramify.core.errors import ModelError
from ramify.core.records import flatten
from ramify.core.scalar import Scalar
from ramify.core.spatial import RigidInertia, Twist, Vec3, Wrench
from ramify.formulations.chain import ORIGIN, in_store
from ramify.formulations.counting.appendix import Hat, solve_symmetric
from ramify.formulations.counting.book_fixed import (
    FURTHER,
    BookMotion,
    axis_accelerations,
    body_wrench,
    eliminated,
    wrenches_of,
)
from ramify.formulations.counting.book_tree import NO_WRENCH, BookTree, PlacedAxis
from ramify.formulations.counting.tally import OperationLedger


def _outward(
    tree: BookTree,
    q: Sequence[Scalar],
    w0: Vec3,
    gravity: Vec3,
    v: Sequence[Scalar],
    a: Sequence[Scalar],
    outside: Sequence[Wrench] | None,
    ledger: OperationLedger,
) -> tuple[list[list[PlacedAxis]], list[Wrench]]:
    """Axes of the links; w* of the links, and of the base last. t'_0 is the acceleration against
    gravity alone. ``outside``: wrenches w^F, base first.
    """
    if tree.base is None:
        raise ModelError("the base is fixed; these recursions are for a floating one")
    axes, motion = tree.axes_at(q), BookMotion(w0, in_store(ORIGIN, w0.x), -gravity)
    with ledger.step("base: w*"):
        motion.field, base = body_wrench(OperationLedger(), tree.base, motion)
    wrenches = wrenches_of(tree, axes, motion, v, a, ledger)
    if outside is not None:
        with ledger.step("base: less the outside wrench"):
            base = base - outside[0]
        with ledger.step("less the outside wrench"):
            wrenches = [w - x for w, x in zip(wrenches, outside[1:], strict=True)]
    return axes, [*wrenches, base]


def inverse_dynamics(
    tree: BookTree,
    q: Sequence[Scalar],
    w0: Vec3,
    gravity: Vec3,
    v: Sequence[Scalar],
    a: Sequence[Scalar],
    outside: Sequence[Wrench] | None = None,
    ledger: OperationLedger | None = None,
) -> tuple[list[Scalar], list[Scalar]]:
    """Rate of the base's twist (6) and tau (n) by table 7.3; the joints move as given."""
    ledger = ledger or OperationLedger()
    axes, wrenches = _outward(tree, q, w0, gravity, v, a, outside, ledger)
    like, bears, M = w0.x, tree.bears, tree.bodies
    reach = _reaches(tree, axes, like, ledger)
    h: list[list[Scalar]] = [[] for _ in tree.links]
    k_tilde: list[list[Wrench]] = [[] for _ in tree.links]
    for k in reversed(range(len(tree.links))):
        link, w, body = tree.links[k], wrenches[k], M[k]
        if not bears[k]:
            body = RigidInertia(body.m, in_store(body.h, like), in_store(body.I, like))
        for r, axis in reversed(list(enumerate(axes[k]))):
            h[k].insert(0, w.n.z)
            n = Vec3(body.I.xz, body.I.yz, body.I.zz)
            f = in_store(Vec3(-body.h.y, body.h.x, 0.0), like)
            with ledger.step(f"{FURTHER if r else ''}k~"):
                k_tilde[k].insert(0, Wrench(n + reach[k][r].cross(f), f))
            if r:
                with ledger.step("further axis: w~ to the axis before"):
                    w = axis.turned_wrench(w)
                with ledger.step("further axis: M~ to the axis before"):
                    body = axis.turned_composite(body)
                continue
            with ledger.step("w~ to the parent"):
                handed = axis.wrench(w)
            with ledger.step("w~ added to the parent's"):
                wrenches[link.parent] = wrenches[link.parent] + handed
            with ledger.step("M~ to the parent"):
                carried = axis.composite(body)
            with ledger.step("M~ added to the parent's"):
                M[link.parent] = M[link.parent] + carried
    a0 = _base_acceleration(Hat.of(M[-1]), wrenches[-1], like, ledger)
    twist_rates = {-1: Twist(Vec3(*a0[:3]), Vec3(*a0[3:]))}
    tau: list[Scalar] = []
    for k, link in enumerate(tree.links):
        t = twist_rates[link.parent]
        for r, axis in enumerate(axes[k]):
            more = FURTHER if r else ""
            with ledger.step(f"{more}base acceleration, turned"):
                t = axis.turned_twist(t)
            with ledger.step(f"{more}tau"):
                tau.append(t.dot(k_tilde[k][r]) + h[k][r])
        twist_rates[k] = t
    return a0, tau


def _base_acceleration(M: Hat, w: Wrench, like: Scalar, ledger: OperationLedger) -> list[Scalar]:
    with ledger.step("base: acceleration"):
        return solve_symmetric(in_store(M, like).rows(), [-x for x in flatten(w)])


def _reaches(
    tree: BookTree, axes: list[list[PlacedAxis]], like: Scalar, ledger: OperationLedger
) -> list[list[Vec3]]:
    """a_(0, k): from the base's origin to each link's, in the frame of every axis."""
    out: list[list[Vec3]] = []
    for link, own in zip(tree.links, axes, strict=True):
        u = in_store(ORIGIN, like) if link.parent < 0 else out[link.parent][-1]
        out.append([])
        for r, axis in enumerate(own):
            with ledger.step("further axis: a from the base" if r else "a from the base"):
                u = axis.outward(u) if r else axis.outward(u + axis.axis.r)
            out[-1].append(u)
    return out


def forward_dynamics(
    tree: BookTree,
    q: Sequence[Scalar],
    w0: Vec3,
    gravity: Vec3,
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    outside: Sequence[Wrench] | None = None,
    ledger: OperationLedger | None = None,
) -> tuple[list[Scalar], list[Scalar]]:
    """Rate of the base's twist (6) and q'' (n) by the steps of table 7.4."""
    ledger = ledger or OperationLedger()
    axes, wrenches = _outward(tree, q, w0, gravity, v, [0.0] * tree.n, outside, ledger)
    pivots, M, eta = eliminated(tree, axes, tree.by_link(tau, "tau"), ledger, wrenches)
    with ledger.step("base: phi^"):
        w = (eta or NO_WRENCH) + wrenches[-1]
    a0 = _base_acceleration(M, w, w0.x, ledger)
    base = Twist(Vec3(*a0[:3]), Vec3(*a0[3:]))
    return a0, axis_accelerations(tree, axes, pivots, ledger, base)
