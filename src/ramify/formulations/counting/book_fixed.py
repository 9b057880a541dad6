"""The book's recursions for a fixed base with the steps of its tables 6.8 and 6.9, written for
counting; over any scalar.

``ramify.dynamics`` has the same algorithms for use. Here every step is a row of the book's tables,
worked out as appendix A does, so that what a text costs can be laid beside what is printed. A
ledger, where one is given, gets a row per step. The sweeps serve a floating base too, which is the
parent -1 of a link: the last entry of a list over links.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ramify.core.scalar import Scalar
from ramify.core.spatial import Mat3, RigidInertia, Sym3, Twist, Vec3, Wrench
from ramify.formulations.chain import ORIGIN, in_store
from ramify.formulations.counting.appendix import Hat, euler_moment, rate_products, varpi
from ramify.formulations.counting.book_tree import NO_WRENCH, BookTree, PlacedAxis
from ramify.formulations.counting.tally import OperationLedger

NO_FIELD = Mat3(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
FURTHER = "further axis: "


@dataclass
class BookMotion:
    """Angular velocity, its rate, acceleration of the origin; of a joint's last axis also the
    tensor varpi, for what it carries.
    """

    w: Vec3
    dw: Vec3
    do: Vec3
    field: Mat3 = field(default_factory=lambda: NO_FIELD)


def _beyond(
    ledger: OperationLedger, axis: PlacedAxis, x: BookMotion, v: Scalar, a: Scalar, more: str = ""
) -> BookMotion:
    """Motion beyond the first axis of a joint (steps 1 and 2, r = 1), from that of the parent; or
    beyond a further one (``more``), from that of the axis before.
    """
    with ledger.step(f"{more}angular velocity"):
        w = axis.outward(x.w)
        w = Vec3(w.x, w.y, w.z + v)
    with ledger.step(f"{more}angular acceleration"):  # dw + e a + (w x e) v
        dw = axis.outward(x.dw)
        dw = Vec3(dw.x + w.y * v, dw.y - w.x * v, dw.z + a)
    with ledger.step(f"{more}acceleration of the origin"):
        do = axis.outward(x.do if more else x.do + x.field @ axis.axis.r)
    return BookMotion(w, dw, do)


def body_wrench(ledger: OperationLedger, M: RigidInertia, x: BookMotion) -> tuple[Mat3, Wrench]:
    """varpi and w* of a body (steps 3 and 4): 39M 39A (A.25)-(A.28)."""
    with ledger.step("tensor of the acceleration field"):
        products = rate_products(x.w)
        field = varpi(products, x.dw)
    with ledger.step("moment I dw + w x I w"):
        n = euler_moment(M.I, products, field, x.dw)
    with ledger.step("moment m d x acceleration"):
        n = n + M.h.cross(x.do)
    with ledger.step("force"):
        f = x.do * M.m + field @ M.h
    return field, Wrench(n, f)


def _moment_about_axis(
    ledger: OperationLedger, M: RigidInertia, x: BookMotion
) -> tuple[Mat3, Wrench]:
    """varpi and w* of a link that turns about a fixed axis; of w* only the moment about it."""
    with ledger.step("fixed parent: tensor of the acceleration field"):
        field = varpi(rate_products(x.w), x.dw)
    with ledger.step("fixed parent: moment about the axis"):
        n = M.I.zz * x.dw.z + (M.h.x * x.do.y - M.h.y * x.do.x)
    return field, Wrench(Vec3(0.0, 0.0, n), ORIGIN)


def wrenches_of(
    tree: BookTree,
    axes: Sequence[Sequence[PlacedAxis]],
    base: BookMotion,
    v: Sequence[Scalar],
    a: Sequence[Scalar],
    ledger: OperationLedger,
) -> list[Wrench]:
    """w* of all links, from the motion of the base outward."""
    rates, accelerations = tree.by_link(v, "v"), tree.by_link(a, "a")
    motions, out = {-1: base}, []
    for k, (link, link_axes) in enumerate(zip(tree.links, axes, strict=True)):
        (v1, *vs), (a1, *accs), x = rates[k], accelerations[k], motions[link.parent]
        fixed = link.parent < 0 and tree.base is None
        if fixed:
            with ledger.step("fixed parent: acceleration of the origin"):
                do = link_axes[0].outward(in_store(x.do, v1))
            x = BookMotion(Vec3(0.0, 0.0, v1), Vec3(0.0, 0.0, a1), do)
        else:
            x = _beyond(ledger, link_axes[0], x, v1, a1)
        if fixed and len(link_axes) == 1:
            field, wrench = _moment_about_axis(ledger, link.M, x)
        else:
            x = in_store(x, v1)
            for axis, vj, aj in zip(link_axes[1:], vs, accs, strict=True):
                x = _beyond(ledger, axis, x, vj, aj, FURTHER)
            field, wrench = body_wrench(ledger, link.M, x)
        motions[k] = in_store(replace(x, field=field), v1)
        out.append(wrench)
    return out


def inverse_dynamics(
    tree: BookTree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    a: Sequence[Scalar],
    ledger: OperationLedger | None = None,
) -> list[Scalar]:
    """tau (n) on a fixed base by the steps of table 6.8."""
    axes, ledger = tree.axes_at(q), ledger or OperationLedger()
    base = BookMotion(ORIGIN, ORIGIN, -tree.gravity)
    wrenches = wrenches_of(tree, axes, base, v, a, ledger)
    tau: list[Scalar] = []
    for k in reversed(range(len(tree.links))):
        link, wrench = tree.links[k], wrenches[k]
        for axis in reversed(axes[k][1:]):
            tau.append(wrench.n.z)
            with ledger.step("further axis: wrench to the axis before"):
                wrench = axis.turned_wrench(wrench)
        tau.append(wrench.n.z)
        if link.parent >= 0:
            with ledger.step("wrench to the parent"):
                handed = axes[k][0].wrench(wrench)
            with ledger.step("wrench added to the parent's"):
                wrenches[link.parent] = in_store(wrenches[link.parent], wrench.n.z) + handed
    return tau[::-1]


@dataclass
class BookPivot:
    """psi = M^ p / m^ and phi~ of one axis."""

    psi: Wrench
    phi: Scalar


def _through_joint(ledger: OperationLedger, M: Hat, psi: Wrench, more: str) -> Hat:
    """M^_jj = M^ - psi^ psi': nothing is left along the axis (A.47). The pattern of (A.47) is
    stored, its further zeros too.
    """
    I, F, G, n, f = M.I, M.F, M.G, psi.n, psi.f  # noqa: E741
    with ledger.step(f"{more}I less psi^ psi'"):
        planar_inertia = I.xx - I.xz * n.x, I.yy - I.yz * n.y, I.xy - I.xz * n.y
    with ledger.step(f"{more}G less psi^ psi'"):
        G = Sym3(
            G.xx - F.xz * f.x, G.yy - F.yz * f.y, G.zz - F.zz * f.z,
            G.xy - F.xz * f.y, G.xz - F.xz * f.z, G.yz - F.yz * f.z,
        )  # fmt: skip
    with ledger.step(f"{more}F less psi^ psi'"):
        x = Vec3(F.xx - F.xz * n.x, F.yx - F.yz * n.x, F.zx - F.zz * n.x)
        y = Vec3(F.xy - F.xz * n.y, F.yy - F.yz * n.y, F.zy - F.zz * n.y)
    (xx, yy, xy), x, y = in_store((planar_inertia, x, y), I.zz)
    return Hat(Sym3(xx, yy, 0.0, xy, 0.0, 0.0), Mat3.from_columns(x, y, ORIGIN), G)


def eliminated(
    tree: BookTree,
    axes: Sequence[Sequence[PlacedAxis]],
    phi: Sequence[Sequence[Scalar]],
    ledger: OperationLedger,
    wrenches: Sequence[Wrench] | None = None,
) -> tuple[list[list[BookPivot]], Hat, Wrench | None]:
    """psi and phi~ of all axes, from the tips inward; M^ and eta that a floating base is left with.
    ``wrenches``: w* of the links, where they are not in phi.

    M^ p and m^ are there to be read. Between the axes of a joint row and column y of I and column y
    of F are zero, and known to be.
    """
    M, bears = [Hat.of(body) for body in tree.bodies], tree.bears
    eta: list[Wrench | None] = [None] * len(M)
    pivots: list[list[BookPivot]] = [[] for _ in tree.links]
    for k in reversed(range(len(tree.links))):
        link, like, last = tree.links[k], phi[k][0], len(axes[k]) - 1
        hat, load = M[k] if bears[k] else in_store(M[k], like), eta[k] or in_store(NO_WRENCH, like)
        for r in range(last, -1, -1):
            axis, more = axes[k][r], FURTHER if r < last else ""
            m, moment = hat.I.zz, load.n.z
            with ledger.step(f"{more}psi"):
                n, f = Vec3(hat.I.xz / m, hat.I.yz / m, 1.0), Vec3(hat.F.xz, hat.F.yz, hat.F.zz)
                psi = Wrench(n, Vec3(f.x / m, f.y / m, f.z / m))
            with ledger.step(f"{more}phi^"):
                if wrenches is not None and r == last:
                    moment = moment + wrenches[k].n.z
                phi_hat = phi[k][r] - moment
            with ledger.step(f"{more}phi~"):
                pivots[k].insert(0, BookPivot(psi, phi_hat / m))
            with ledger.step(f"{more}eta"):
                if wrenches is not None and r == last:
                    load = load + wrenches[k]
                load = psi * phi_hat + load
            if not r and link.parent < 0 and tree.base is None:
                continue
            hat = _through_joint(ledger, hat, psi, more)
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
    return pivots, M[-1], eta[-1]


def axis_accelerations(
    tree: BookTree,
    axes: Sequence[Sequence[PlacedAxis]],
    pivots: Sequence[Sequence[BookPivot]],
    ledger: OperationLedger,
    base: Twist | None = None,
) -> list[Scalar]:
    """q'' of all axes, from the base outward; ``base`` is mu of a floating one."""
    out: list[Scalar] = []
    link_rates = {-1: base}
    for k, link in enumerate(tree.links):
        parent, mu = link_rates[link.parent], Twist(ORIGIN, ORIGIN)
        for r, (axis, pivot) in enumerate(zip(axes[k], pivots[k], strict=True)):
            more = FURTHER if r else ""
            if r == 0 and parent is None:
                mu, a = in_store(mu, pivot.phi), pivot.phi
            else:
                with ledger.step(f"{more}mu~"):
                    mu = axis.turned_twist(mu) if r else axis.twist(parent or mu)
                with ledger.step(f"{FURTHER if r < len(axes[k]) - 1 else ''}acceleration"):
                    a = pivot.phi - mu.dot(pivot.psi)
            with ledger.step(f"{more}mu"):
                mu = Twist(Vec3(mu.w.x, mu.w.y, mu.w.z + a), mu.v)
            out.append(a)
        link_rates[k] = mu
    return out


def accelerations_from(
    tree: BookTree,
    q: Sequence[Scalar],
    phi: Sequence[Scalar],
    ledger: OperationLedger | None = None,
) -> list[Scalar]:
    """q'' (n) of I q'' = phi by the steps of table 6.9, I = U D U'. phi = tau - h is given: table
    6.9 does not count it.
    """
    axes, ledger = tree.axes_at(q), ledger or OperationLedger()
    pivots, _, _ = eliminated(tree, axes, tree.by_link(phi, "phi"), ledger)
    return axis_accelerations(tree, axes, pivots, ledger)
