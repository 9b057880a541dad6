"""The book's recursions for a fixed base with the steps of its tables 6.8 and 6.9, written for
counting; over any scalar.

``ramify.dynamics`` has the same algorithms for use. Here every step is a row of the book's tables,
worked out as appendix A does, so that what a text costs can be laid beside what is printed. A
ledger, where one is given, gets a row per step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ramify.core.scalar import Scalar
from ramify.core.spatial import Mat3, RigidInertia, Sym3, Twist, Vec3, Wrench
from ramify.formulations.chain import ORIGIN, in_store
from ramify.formulations.counting.appendix import Hat, euler_moment, rate_products, varpi
from ramify.formulations.counting.book_tree import NO_WRENCH, BookTree, Placed
from ramify.formulations.counting.tally import OperationLedger


@dataclass
class BookMotion:
    """Angular velocity, its rate, acceleration of the origin; of a joint's last axis also the
    tensor varpi, for what it carries.
    """

    w: Vec3
    dw: Vec3
    do: Vec3
    field: Mat3


NO_FIELD = Mat3(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def first_axis(
    ledger: OperationLedger,
    axis: Placed,
    parent: BookMotion,
    v: Scalar,
    a: Scalar,
    at_rest: bool = False,
) -> tuple[Vec3, Vec3, Vec3]:
    """Motion beyond the first axis of a joint (steps 1 and 2, r = 1), from that of the parent;
    ``at_rest``: a fixed parent.
    """
    if at_rest:
        with ledger.step("fixed parent: acceleration of the origin"):
            do = axis.outward(in_store(parent.do, v))
        return Vec3(0.0, 0.0, v), Vec3(0.0, 0.0, a), do
    with ledger.step("angular velocity"):
        w = axis.outward(parent.w)
        w = Vec3(w.x, w.y, w.z + v)
    with ledger.step("angular acceleration"):
        dw = _with_joint(axis.outward(parent.dw), w, v, a)
    with ledger.step("acceleration of the origin"):
        do = axis.outward(parent.do + parent.field @ axis.axis.r)
    return w, dw, do


def further_axis(
    ledger: OperationLedger,
    axis: Placed,
    w: Vec3,
    dw: Vec3,
    do: Vec3,
    v: Scalar,
    a: Scalar,
) -> tuple[Vec3, Vec3, Vec3]:
    """The same beyond each further axis of the joint (r > 1)."""
    with ledger.step("further axis: angular velocity"):
        w = axis.outward(w)
        w = Vec3(w.x, w.y, w.z + v)
    with ledger.step("further axis: angular acceleration"):
        dw = _with_joint(axis.outward(dw), w, v, a)
    with ledger.step("further axis: acceleration of the origin"):
        do = axis.outward(do)
    return w, dw, do


def _with_joint(dw: Vec3, w: Vec3, v: Scalar, a: Scalar) -> Vec3:
    """dw + e a + (w x e) v: 2M 3A."""
    return Vec3(dw.x + w.y * v, dw.y - w.x * v, dw.z + a)


def body_wrench(
    ledger: OperationLedger, M: RigidInertia, w: Vec3, dw: Vec3, do: Vec3
) -> tuple[Mat3, Wrench]:
    """varpi and w* of a body (steps 3 and 4): 39M 39A (A.25)-(A.28)."""
    with ledger.step("tensor of the acceleration field"):
        products = rate_products(w)
        field = varpi(products, dw)
    with ledger.step("moment I dw + w x I w"):
        n = euler_moment(M.I, products, field, dw)
    with ledger.step("moment m d x acceleration"):
        n = n + M.h.cross(do)
    with ledger.step("force"):
        f = do * M.m + field @ M.h
    return field, Wrench(n, f)


def _moment_about_axis(
    ledger: OperationLedger, M: RigidInertia, v: Scalar, a: Scalar, do: Vec3
) -> tuple[Mat3, Wrench]:
    """varpi and w* of a link that turns about a fixed axis; of the wrench only the moment about
    that axis is wanted.
    """
    with ledger.step("fixed parent: tensor of the acceleration field"):
        field = varpi(rate_products(Vec3(0.0, 0.0, v)), Vec3(0.0, 0.0, a))
    with ledger.step("fixed parent: moment about the axis"):
        n = M.I.zz * a + (M.h.x * do.y - M.h.y * do.x)
    return field, Wrench(Vec3(0.0, 0.0, n), ORIGIN)


def inverse_dynamics(
    tree: BookTree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    a: Sequence[Scalar],
    ledger: OperationLedger | None = None,
) -> list[Scalar]:
    """tau (n) on a fixed base by the steps of table 6.8."""
    ledger = ledger or OperationLedger()
    axes, rates, accelerations = tree.placed(q), tree.by_link(v, "v"), tree.by_link(a, "a")
    base = BookMotion(ORIGIN, ORIGIN, -tree.gravity, NO_FIELD)
    motions: list[BookMotion] = []
    wrenches: list[Wrench] = []
    for link, own, vs, accs in zip(tree.links, axes, rates, accelerations, strict=True):
        fixed = link.parent < 0
        parent = base if fixed else motions[link.parent]
        w, dw, do = first_axis(ledger, own[0], parent, vs[0], accs[0], fixed)
        if fixed and len(own) == 1:
            field, wrench = _moment_about_axis(ledger, link.M, vs[0], accs[0], do)
        else:
            w, dw = in_store(w, vs[0]), in_store(dw, vs[0])
            for axis, vj, aj in zip(own[1:], vs[1:], accs[1:], strict=True):
                w, dw, do = further_axis(ledger, axis, w, dw, do, vj, aj)
            field, wrench = body_wrench(ledger, link.M, w, dw, do)
        motions.append(BookMotion(*in_store((w, dw, do, field), vs[0])))
        wrenches.append(wrench)
    tau: list[list[Scalar]] = [[] for _ in tree.links]
    for k in reversed(range(len(tree.links))):
        link, wrench = tree.links[k], wrenches[k]
        for axis in reversed(axes[k][1:]):
            tau[k].append(wrench.n.z)
            with ledger.step("further axis: wrench to the axis before"):
                wrench = axis.turned_wrench(wrench)
        tau[k].append(wrench.n.z)
        if link.parent >= 0:
            with ledger.step("wrench to the parent"):
                handed = axes[k][0].wrench(wrench)
            with ledger.step("wrench added to the parent's"):
                wrenches[link.parent] = in_store(wrenches[link.parent], wrench.n.z) + handed
    return [x for own in tau for x in reversed(own)]


@dataclass
class BookPivot:
    """psi = M^ p / m^ and phi~ of one axis."""

    psi: Wrench
    phi: Scalar


def eliminate(
    ledger: OperationLedger, M: Hat, eta: Wrench, phi: Scalar, more: str = ""
) -> tuple[BookPivot, Scalar]:
    """psi, phi^ and phi~ of an axis; M^ p and m^ are there to be read. ``more`` names a further
    axis in the ledger.

    Between the axes of a joint row and column y of I and column y of F are zero, and known to be.
    """
    m = M.I.zz
    with ledger.step(f"{more}psi"):
        psi = Wrench(Vec3(M.I.xz / m, M.I.yz / m, 1.0), Vec3(M.F.xz / m, M.F.yz / m, M.F.zz / m))
    with ledger.step(f"{more}phi^"):
        phi_hat = phi - eta.n.z
    with ledger.step(f"{more}phi~"):
        phi_tilde = phi_hat / m
    return BookPivot(psi, phi_tilde), phi_hat


def loaded(
    ledger: OperationLedger, psi: Wrench, phi_hat: Scalar, eta: Wrench, more: str = ""
) -> Wrench:
    """eta = psi phi^ + eta~."""
    with ledger.step(f"{more}eta"):
        return psi * phi_hat + eta


def freed(ledger: OperationLedger, M: Hat, psi: Wrench, more: str = "") -> Hat:
    """M^_jj = M^ - psi^ psi': nothing is left along the axis (A.47). The pattern of (A.47) is
    stored, its further zeros too.
    """
    I, F, G, n, f = M.I, M.F, M.G, psi.n, psi.f  # noqa: E741
    with ledger.step(f"{more}I less psi^ psi'"):
        kept = Sym3(I.xx - I.xz * n.x, I.yy - I.yz * n.y, 0.0, I.xy - I.xz * n.y, 0.0, 0.0)
    with ledger.step(f"{more}G less psi^ psi'"):
        G = Sym3(
            G.xx - F.xz * f.x,
            G.yy - F.yz * f.y,
            G.zz - F.zz * f.z,
            G.xy - F.xz * f.y,
            G.xz - F.xz * f.z,
            G.yz - F.yz * f.z,
        )
    with ledger.step(f"{more}F less psi^ psi'"):
        x = Vec3(F.xx - F.xz * n.x, F.yx - F.yz * n.x, F.zx - F.zz * n.x)
        y = Vec3(F.xy - F.xz * n.y, F.yy - F.yz * n.y, F.zy - F.zz * n.y)
    like = I.zz
    xx, yy, xy = in_store((kept.xx, kept.yy, kept.xy), like)
    x, y = in_store((x, y), like)
    return Hat(
        Sym3(xx, yy, 0.0, xy, 0.0, 0.0), Mat3(x.x, y.x, 0.0, x.y, y.y, 0.0, x.z, y.z, 0.0), G
    )


def accelerations_from(
    tree: BookTree,
    q: Sequence[Scalar],
    phi: Sequence[Scalar],
    ledger: OperationLedger | None = None,
) -> list[Scalar]:
    """q'' (n) of I q'' = phi by the steps of table 6.9, I = U D U'. phi = tau - h is given: table
    6.9 does not count it.
    """
    ledger = ledger or OperationLedger()
    axes, forces, bears = tree.placed(q), tree.by_link(phi, "phi"), tree.bears
    M = [Hat.of(link.M) for link in tree.links]
    eta: list[Wrench | None] = [None] * len(tree.links)
    pivots: list[list[BookPivot]] = [[] for _ in tree.links]
    for k in reversed(range(len(tree.links))):
        link, like = tree.links[k], forces[k][0]
        hat, load = M[k] if bears[k] else in_store(M[k], like), eta[k] or in_store(NO_WRENCH, like)
        for r in reversed(range(len(axes[k]))):
            more = "further axis: " if r < len(axes[k]) - 1 else ""
            pivot, phi_hat = eliminate(ledger, hat, load, forces[k][r], more)
            load = loaded(ledger, pivot.psi, phi_hat, load, more)
            pivots[k].insert(0, pivot)
            if r > 0:
                hat = freed(ledger, hat, pivot.psi, more)
                with ledger.step("further axis: M^ to the axis before"):
                    hat = axes[k][r].turned_articulated(hat)
                with ledger.step("further axis: eta to the axis before"):
                    load = axes[k][r].turned_wrench(load)
            elif link.parent >= 0:
                hat = freed(ledger, hat, pivot.psi, more)
                with ledger.step("M^ to the parent"):
                    handed = axes[k][0].articulated(hat)
                with ledger.step("M^ added to the parent's"):
                    M[link.parent] = M[link.parent] + handed
                with ledger.step("eta to the parent"):
                    load = axes[k][0].wrench(load)
                with ledger.step("eta of a further child added"):
                    before = eta[link.parent]
                    eta[link.parent] = load if before is None else before + load
    out: list[Scalar] = []
    mu: dict[int, Twist | None] = {-1: None}
    for k, link in enumerate(tree.links):
        found, mu[k] = outward_sweep(ledger, axes[k], pivots[k], mu[link.parent])
        out += found
    return out


def outward_sweep(
    ledger: OperationLedger,
    axes: Sequence[Placed],
    pivots: Sequence[BookPivot],
    parent: Twist | None,
) -> tuple[list[Scalar], Twist]:
    """Accelerations of a joint's axes and mu of its link; ``parent`` is None at the base."""
    found: list[Scalar] = []
    mu = Twist(ORIGIN, ORIGIN)
    for r, (axis, pivot) in enumerate(zip(axes, pivots, strict=True)):
        more = "further axis: " if r else ""
        if r == 0 and parent is None:
            mu, a = in_store(mu, pivot.phi), pivot.phi
        else:
            with ledger.step(f"{more}mu~"):
                mu = axis.turned_twist(mu) if r else axis.twist(parent or mu)
            with ledger.step(f"{'further axis: ' if r < len(axes) - 1 else ''}acceleration"):
                a = pivot.phi - (pivot.psi.n.dot(mu.w) + pivot.psi.f.dot(mu.v))
        with ledger.step(f"{more}mu"):
            mu = Twist(Vec3(mu.w.x, mu.w.y, mu.w.z + a), mu.v)
        found.append(a)
    return found, mu
