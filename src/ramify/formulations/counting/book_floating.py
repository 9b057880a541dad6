"""The book's recursions for a floating base with the steps of its tables 7.3 and 7.4, written for
counting; over any scalar.

The base moves as it likes: twist t_0 and its rate are [w; v] in the base's own axes, at its origin,
P_0 being the identity. Gravity is an acceleration of the base, in its axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ramify.core.errors import ModelError
from ramify.core.scalar import Scalar
from ramify.core.spatial import RigidInertia, Twist, Vec3, Wrench
from ramify.formulations.chain import ORIGIN, in_store
from ramify.formulations.counting.appendix import Hat, solve_symmetric
from ramify.formulations.counting.book_fixed import (
    BookMotion,
    BookPivot,
    body_wrench,
    eliminate,
    first_axis,
    freed,
    further_axis,
    loaded,
    outward_sweep,
)
from ramify.formulations.counting.book_tree import NO_WRENCH, BookTree, Placed
from ramify.formulations.counting.tally import OperationLedger

ScalarColumns = list[list[Scalar]]


@dataclass
class _Start:
    """What the first sweep gives: axes of the links; wrenches w* of the links, and of the base
    last, where its index -1 finds it.
    """

    axes: list[list[Placed]]
    wrenches: list[Wrench]


def _outward(
    tree: BookTree,
    q: Sequence[Scalar],
    w0: Vec3,
    gravity: Vec3,
    v: Sequence[Scalar],
    a: Sequence[Scalar],
    outside: Sequence[Wrench] | None,
    ledger: OperationLedger,
) -> _Start:
    """t, t' and w* of base and links; t'_0 is the acceleration against gravity alone. ``outside``:
    wrenches w^F, base first.
    """
    assert tree.base is not None
    axes, rates, accelerations = tree.placed(q), tree.by_link(v, "v"), tree.by_link(a, "a")
    like = w0.x
    rest = in_store(ORIGIN, like)
    with ledger.step("base: w*"):
        field, base = body_wrench(OperationLedger(), tree.base, w0, rest, -gravity)
    motions = {-1: BookMotion(w0, rest, -gravity, field)}
    wrenches: list[Wrench] = []
    columns = zip(tree.links, axes, rates, accelerations, strict=True)
    for k, (link, own, vs, accs) in enumerate(columns):
        w, dw, do = first_axis(ledger, own[0], motions[link.parent], vs[0], accs[0])
        for axis, vj, aj in zip(own[1:], vs[1:], accs[1:], strict=True):
            w, dw, do = further_axis(ledger, axis, w, dw, do, vj, aj)
        field, wrench = body_wrench(ledger, link.M, w, dw, do)
        motions[k] = BookMotion(w, dw, do, field)
        wrenches.append(wrench)
    if outside is not None:
        with ledger.step("base: less the outside wrench"):
            base = base - outside[0]
        with ledger.step("less the outside wrench"):
            wrenches = [w - x for w, x in zip(wrenches, outside[1:], strict=True)]
    return _Start(axes, [*wrenches, base])


def _check(tree: BookTree) -> RigidInertia:
    if tree.base is None:
        raise ModelError("the base is fixed; these recursions are for a floating one")
    return tree.base


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
    """Rate of the base's twist (6) and tau (n) by the steps of table 7.3: the joints move as given,
    the base as it must.
    """
    base, ledger = _check(tree), ledger or OperationLedger()
    start = _outward(tree, q, w0, gravity, v, a, outside, ledger)
    like, bears = w0.x, tree.bears
    reach = _reaches(tree, start.axes, like, ledger)
    M = [*(link.M for link in tree.links), base]
    h: ScalarColumns = [[] for _ in tree.links]
    k_tilde: list[list[Wrench]] = [[] for _ in tree.links]
    for k in reversed(range(len(tree.links))):
        link, w = tree.links[k], start.wrenches[k]
        body = (
            M[k]
            if bears[k]
            else RigidInertia(M[k].m, in_store(M[k].h, like), in_store(M[k].I, like))
        )
        for r in reversed(range(len(link.axes))):
            more = "further axis: " if r else ""
            h[k].insert(0, w.n.z)
            kappa = Wrench(
                Vec3(body.I.xz, body.I.yz, body.I.zz),
                in_store(Vec3(-body.h.y, body.h.x, 0.0), like),
            )
            with ledger.step(f"{more}k~"):
                k_tilde[k].insert(0, Wrench(kappa.n + reach[k][r].cross(kappa.f), kappa.f))
            axis = start.axes[k][r]
            if r:
                with ledger.step("further axis: w~ to the axis before"):
                    w = axis.turned_wrench(w)
                with ledger.step("further axis: M~ to the axis before"):
                    body = axis.turned_composite(body)
            else:
                with ledger.step("w~ to the parent"):
                    handed = axis.wrench(w)
                with ledger.step("w~ added to the parent's"):
                    start.wrenches[link.parent] = start.wrenches[link.parent] + handed
                with ledger.step("M~ to the parent"):
                    carried = axis.composite(body)
                with ledger.step("M~ added to the parent's"):
                    M[link.parent] = M[link.parent] + carried
    with ledger.step("base: acceleration"):
        w = _reversed(start.wrenches[-1])
        a0 = solve_symmetric(in_store(Hat.of(M[-1]), like).rows(), _six(w))
    found = {-1: Twist(Vec3(*a0[:3]), Vec3(*a0[3:]))}
    tau: list[Scalar] = []
    for k, link in enumerate(tree.links):
        t = found[link.parent]
        for r, axis in enumerate(start.axes[k]):
            more = "further axis: " if r else ""
            with ledger.step(f"{more}base acceleration, turned"):
                t = axis.turned_twist(t)
            with ledger.step(f"{more}tau"):
                tau.append(k_tilde[k][r].n.dot(t.w) + k_tilde[k][r].f.dot(t.v) + h[k][r])
        found[k] = t
    return a0, tau


def _reaches(
    tree: BookTree, axes: list[list[Placed]], like: Scalar, ledger: OperationLedger
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
    base, ledger = _check(tree), ledger or OperationLedger()
    start = _outward(tree, q, w0, gravity, v, [0.0] * tree.n, outside, ledger)
    like, bears, forces = w0.x, tree.bears, tree.by_link(tau, "tau")
    M = [*(Hat.of(link.M) for link in tree.links), Hat.of(base)]
    eta: list[Wrench | None] = [None] * len(M)
    pivots: list[list[BookPivot]] = [[] for _ in tree.links]
    for k in reversed(range(len(tree.links))):
        link, last = tree.links[k], len(tree.links[k].axes) - 1
        hat, load = M[k] if bears[k] else in_store(M[k], like), eta[k] or in_store(NO_WRENCH, like)
        for r in reversed(range(last + 1)):
            more = "further axis: " if r < last else ""
            if r == last:
                with ledger.step("phi^"):
                    about = load.n.z + start.wrenches[k].n.z
                pivot, phi_hat = eliminate(
                    ledger, hat, Wrench(Vec3(0.0, 0.0, about), ORIGIN), forces[k][r]
                )
                with ledger.step("eta"):
                    load = load + start.wrenches[k]
            else:
                pivot, phi_hat = eliminate(ledger, hat, load, forces[k][r], more)
            load = loaded(ledger, pivot.psi, phi_hat, load, more)
            pivots[k].insert(0, pivot)
            hat = freed(ledger, hat, pivot.psi, more)
            axis = start.axes[k][r]
            if r:
                with ledger.step("further axis: M^ to the axis before"):
                    hat = axis.turned_articulated(hat)
                with ledger.step("further axis: eta to the axis before"):
                    load = axis.turned_wrench(load)
                continue
            with ledger.step("M^ to the parent"):
                handed = axis.articulated(hat)
            with ledger.step("M^ added to the parent's"):
                M[link.parent] = M[link.parent] + handed
            with ledger.step("eta to the parent"):
                load = axis.wrench(load)
            with ledger.step("eta of a further child added"):
                before = eta[link.parent]
                eta[link.parent] = load if before is None else before + load
    with ledger.step("base: phi^"):
        phi0 = _reversed((eta[-1] or NO_WRENCH) + start.wrenches[-1])
    with ledger.step("base: acceleration"):
        a0 = solve_symmetric(in_store(M[-1], like).rows(), _six(phi0))
    out: list[Scalar] = []
    mu = {-1: Twist(Vec3(*a0[:3]), Vec3(*a0[3:]))}
    for k, link in enumerate(tree.links):
        found, mu[k] = outward_sweep(ledger, start.axes[k], pivots[k], mu[link.parent])
        out += found
    return a0, out


def _reversed(w: Wrench) -> Wrench:
    return Wrench(-w.n, -w.f)


def _six(w: Wrench) -> list[Scalar]:
    return [w.n.x, w.n.y, w.n.z, w.f.x, w.f.y, w.f.z]
