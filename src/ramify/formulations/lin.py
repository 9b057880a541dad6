"""Lin's composite body method: inertia matrix and bias vector of a serial robot, every point seen
from one origin at rest.

Body j below is the composite one: link j and all it carries. Its first moment and inertia are taken
about the origin of the base, not about its own joint, so what belongs to a joint (axis u, moment
arm s^ = u x s) and what belongs to a body (p^, J-) are carried over the chain independently of each
other. As in the paper the origin is that of frame 1; where joint 1 slides, it is the fixed point
through which frame 1 passes at the instant.

S.-K. Lin, A new composite body method for manipulator dynamics, J. Robotic Systems 8 (1991)
197-219. The text follows figure 3, eqs. (24)-(30) and (54)-(67). It runs over any scalar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ramify.core.scalar import Scalar
from ramify.core.spatial import Mat3, Sym3, Vec3
from ramify.formulations.chain import (
    ORIGIN,
    Chain,
    Rotation,
    axes_seen_outward,
    chain_of,
    in_store,
    rotations,
)
from ramify.formulations.counting.tally import stored
from ramify.model.robot import Robot

ScalarRows = list[list[Scalar]]


@dataclass
class CompositeBody:
    """Composite body j in frame j: mass m^, first moment p^ (29) and J- (30), of which the first
    rotational one has only J33.

    ``e`` is (63); ``xy`` and its like are the products of s^_j with p^_j that (62) and (64) share.
    """

    m: float
    mp: Vec3 = field(default_factory=lambda: ORIGIN)
    p: Vec3 = field(default_factory=lambda: ORIGIN)
    J: Sym3 | None = None
    J33: Scalar = 0.0
    e: Vec3 = field(default_factory=lambda: ORIGIN)
    xy: Scalar = 0.0
    xz: Scalar = 0.0
    yx: Scalar = 0.0
    yz: Scalar = 0.0


@dataclass
class Lin:
    """The inertia matrix and what the bias vector needs of it: u[j][i] and s_hat[j][i] are axis and
    arm of joint j in frame i.
    """

    chain: Chain
    R: list[Rotation]
    u: list[list[Vec3]]
    s_hat: list[list[Vec3]]
    bodies: list[CompositeBody]
    H: ScalarRows


def origins(chain: Chain, R: Sequence[Rotation], q: Sequence[Scalar]) -> list[Vec3]:
    """s_i: from the common origin to that of frame i, in frame i (25), (61)."""
    s = [ORIGIN]
    for i in range(1, len(chain.links)):
        o, r = chain.links[i].offset(q[i]), R[i]
        if i == 1:
            at = o.rotate_z(r.c, -r.s)
            s.append(Vec3(at.x, at.y, stored(at.z, r.c)))
        else:
            s.append(r.outward(s[-1] + o.rotate_x(r.cb, r.sb)))
    return s


def lin_arms(chain: Chain, R: Sequence[Rotation], s: Sequence[Vec3]) -> list[list[Vec3]]:
    """s^[j][i] = u_j x s_j in frame i >= j (15), (27) of rotational joints; 0 for joint 1 (59)."""
    n = len(chain.links)
    out: list[list[Vec3]] = []
    for j in range(n):
        row = [ORIGIN] * n
        if j > 0 and chain.links[j].rotational:
            row[j] = Vec3(-s[j].y, s[j].x, 0.0)
            for i in range(j + 1, n):
                flat = i == j + 1
                row[i] = R[i].outward_flat(row[j].x, row[j].y) if flat else R[i].outward(row[i - 1])
        out.append(row)
    return out


def composite_bodies(chain: Chain, R: Sequence[Rotation], s: Sequence[Vec3]) -> list[CompositeBody]:
    """Moments of composite bodies from the first rotational joint on, tip inward (28)-(30)."""
    n, first = len(chain.links), chain.first
    bodies = [CompositeBody(m) for m in chain.composite_masses]
    for i in reversed(range(first, n)):
        link, body = chain.links[i], bodies[i]
        outer = bodies[i + 1] if i + 1 < n else None
        p = s[i] + link.c
        body.mp = p * link.m
        if i > 0:  # p^ of body 1 is a matter of gravity only
            body.p = body.mp if outer is None else body.mp + R[i + 1].inward(outer.p)
        if i > first:
            body.J = _less_outer(_less_half_trace(link.I), body.mp, p)
            if outer is not None and outer.J is not None:
                body.J = body.J + R[i + 1].similarity(outer.J)
        else:
            body.J33 = link.I.zz + (body.mp.x * p.x + body.mp.y * p.y)
            if outer is not None and outer.J is not None:
                body.J33 = body.J33 + R[i + 1].corner(_less_trace(outer.J))
    return bodies


def _less_half_trace(I: Sym3) -> Sym3:  # noqa: E741 - the paper's symbol
    """I - tr(I)/2 (19)."""
    half = 0.5 * (I.xx + I.yy + I.zz)
    return Sym3(I.xx - half, I.yy - half, I.zz - half, I.xy, I.xz, I.yz)


def _less_outer(I: Sym3, a: Vec3, b: Vec3) -> Sym3:  # noqa: E741 - the paper's symbol
    """I - a b' for parallel a, b."""
    products = I.xy - a.x * b.y, I.xz - a.x * b.z, I.yz - a.y * b.z
    return Sym3(I.xx - a.x * b.x, I.yy - a.y * b.y, I.zz - a.z * b.z, *products)


def _less_trace(J: Sym3) -> Sym3:
    """J^ = J- - tr(J-) (23)."""
    return Sym3(-(J.yy + J.zz), -(J.xx + J.zz), -(J.xx + J.yy), J.xy, J.xz, J.yz)


def lin_inertia(chain: Chain, R: list[Rotation], q: Sequence[Scalar]) -> Lin:
    """The inertia matrix H, rotations given (62), (63), (65)."""
    n, links = len(chain.links), chain.links
    s = origins(chain, R, q)
    u, s_hat = axes_seen_outward(chain, R), lin_arms(chain, R, s)
    bodies = composite_bodies(chain, R, s)
    H: ScalarRows = [[0.0] * n for _ in range(n)]
    for j, body in enumerate(bodies):
        p, arm, a = body.p, s_hat[j][j], ORIGIN
        if not links[j].rotational:
            H[j][j] = body.m
        elif j == 0:
            H[0][0] = body.J33
        else:
            body.e = Vec3(-p.y - body.m * arm.x, p.x - body.m * arm.y, 0.0)
            body.xy, body.yx = arm.x * p.y, arm.y * p.x
            if body.J is None:
                a = Vec3(0.0, 0.0, body.J33 + (body.xy - body.yx))
            else:
                J, body.xz, body.yz = body.J, arm.x * p.z, arm.y * p.z
                a = Vec3(J.xz + body.yz, J.yz - body.xz, (body.xy - body.yx) - (J.xx + J.yy))
            H[j][j] = a.z - arm.dot(body.e)
        for m in range(j):
            um, sm = u[m][j], s_hat[m][j]
            if links[j].rotational:
                entry = a.dot(um) - sm.dot(body.e) if links[m].rotational else body.e.dot(um)
            elif links[m].rotational:
                entry = (um.x * p.y - um.y * p.x) - body.m * sm.z
            else:
                entry = body.m * um.z
            H[m][j] = H[j][m] = entry
    return Lin(chain, R, u, s_hat, bodies, H)


def lin_bias(lin: Lin, q_dot: Sequence[Scalar]) -> list[Scalar]:
    """The bias vector b: Coriolis, centrifugal and gravity forces (54)-(57), (66), (67)."""
    n, first = len(lin.bodies), lin.chain.first
    b = gravity_terms(lin)
    if first == n:
        return b
    d = [bias_vectors(lin, j) if j >= first else [] for j in range(n)]
    zeta = rates(lin, q_dot)
    for j in range(first, n):
        for m in range(j):
            b[m] = b[m] + zeta[j][j].dot(d[j][m])
        for m in range(j + 1, n):
            b[m] = b[m] - zeta[j][m].dot(d[m][j])
    return b


def gravity_terms(lin: Lin) -> list[Scalar]:
    """eta (67), with the first moment of body 1, which nothing else needs."""
    R, bodies = lin.R, lin.bodies
    g, out = in_store(lin.chain.gravity, R[0].c), []
    for j, (link, body) in enumerate(zip(lin.chain.links, bodies, strict=True)):
        g = R[j].outward(g)
        if j == 0 and link.rotational:
            body.p = body.mp + R[1].inward(bodies[1].p) if len(bodies) > 1 else body.mp
            body.e = Vec3(-body.p.y, body.p.x, 0.0)
        out.append(-(body.e.x * g.x + body.e.y * g.y) if link.rotational else -(body.m * g.z))
    return out


def bias_vectors(lin: Lin, j: int) -> list[Vec3]:
    """d_mj for all m < j (66)."""
    body, links = lin.bodies[j], lin.chain.links
    p, e, B, out = body.p, body.e, None, []
    if links[j].rotational and body.J is not None:
        B = _bias_tensor(body, body.J, lin.s_hat[j][j])
    for m in range(j):
        um, sm = lin.u[m][j], lin.s_hat[m][j]
        if B is not None and links[m].rotational:
            out.append(B @ um + sm.cross(e))
        elif links[j].rotational:
            out.append(e.cross(um))
        elif links[m].rotational:
            x = (um.y * p.z - um.z * p.y) - body.m * sm.x
            y = (um.z * p.x - um.x * p.z) - body.m * sm.y
            out.append(Vec3(-y, x, 0.0))
        else:
            out.append(Vec3(-(body.m * um.y), body.m * um.x, 0.0))
    return out


def _bias_tensor(body: CompositeBody, J: Sym3, arm: Vec3) -> Mat3:
    """B_j = -J- (u x) + (s^ x)(p^ x) (64)."""
    xx, yy = arm.x * body.p.x, arm.y * body.p.y
    return Mat3(
        -J.xy - yy, J.xx + body.yx, 0.0,
        body.xy - J.yy, J.xy - xx, 0.0,
        body.xz - J.yz, J.xz + body.yz, -xx - yy,
    )  # fmt: skip


def rates(lin: Lin, q_dot: Sequence[Scalar]) -> list[list[Vec3]]:
    """zeta_j q'_j in frame i >= j (55)-(57), from the first rotational joint on; zero before it.

    The first step of (56) leaves out the x component, which is zero along a joint axis, and carries
    the rest out in general form.
    """
    R, links, n, first = lin.R, lin.chain.links, len(lin.bodies), lin.chain.first
    out = [[ORIGIN] * n for _ in range(n)]
    v = q_dot[first]
    squared = v * v
    out[first] = [axis * squared for axis in lin.u[first]]
    zeta = Vec3(0.0, stored(0.0, v), v)
    for j in range(first + 1, n):
        if links[j - 1].rotational:
            zeta = Vec3(zeta.x, zeta.y, zeta.z + q_dot[j - 1])
        zeta = R[j].outward(zeta)
        if links[j].rotational:
            zeta = Vec3(zeta.x, zeta.y, zeta.z + q_dot[j])
        out[j][j] = zeta * q_dot[j]
        for i in range(j + 1, n):
            out[j][i] = R[i].outward(out[j][i - 1])
    return out


def equations_of_motion(
    chain: Chain, q: Sequence[Scalar], q_dot: Sequence[Scalar]
) -> tuple[ScalarRows, list[Scalar]]:
    """(H, b) of H q'' + b = tau (1): n rows of n scalars, and n scalars."""
    lin = lin_inertia(chain, rotations(chain, q), q)
    return lin.H, lin_bias(lin, q_dot)


def mass_matrix(model: Robot, q: Sequence[Scalar]) -> ScalarRows:
    """H (nv, nv) of a serial model, as rows; ModelError where the model is not a chain of revolute
    and prismatic joints.
    """
    chain = chain_of(model, q=q)
    return lin_inertia(chain, rotations(chain, q), q).H


def bias_forces(model: Robot, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """b (nv) of a serial model; ModelError as for ``mass_matrix``."""
    return equations_of_motion(chain_of(model, q=q, v=v), q, v)[1]


def rate_coefficients(model: Robot, q: Sequence[Scalar]) -> list[ScalarRows]:
    """D[m][k][j] of b_m = sum_kj D_mkj q'_k q'_j + eta_m (31) of a serial model, n by n by n.

    D_mjk = D_mkj (32), D_jkj = 0 for j >= k (33), D_jkm = -D_mkj for m, j >= k (34): they are the
    Christoffel symbols of H. ModelError as for ``mass_matrix``.
    """
    chain = chain_of(model, q=q)
    lin = lin_inertia(chain, rotations(chain, q), q)
    n, links = len(chain.links), chain.links
    d = [bias_vectors(lin, j) for j in range(n)]
    D: list[ScalarRows] = [[[0.0] * n for _ in range(n)] for _ in range(n)]
    for j in range(n):
        for k in range(j + 1):
            if not links[k].rotational:
                continue  # no force grows with the speed of a slide below
            for m in range(n):
                if m < j:
                    D[m][k][j] = lin.u[k][j].dot(d[j][m])  # (45)
                elif m > j:
                    D[m][k][j] = -lin.u[k][m].dot(d[m][j])  # (47)
                D[m][j][k] = D[m][k][j]
    return D
