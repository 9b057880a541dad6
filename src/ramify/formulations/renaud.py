"""Renaud's formulation of the inertia matrix: composite bodies about their own joints.

First moment and inertia of body j are taken about the origin of frame j. What is constant in them
is added up beforehand: where joint i + 1 turns, its origin stays where it is in link i, and the
mass beyond it acts on link i like a point mass there ("augmented body", A5 and A6). The equations
are those of the appendix of Lin's paper (see ``lin``). It runs over any scalar.
"""

from __future__ import annotations

from collections.abc import Sequence

from ramify.core.scalar import Scalar
from ramify.core.spatial import Sym3, Vec3
from ramify.formulations.chain import (
    ORIGIN,
    Chain,
    Rotation,
    axes_seen_outward,
    chain_of,
    in_store,
    rotations,
)
from ramify.model.robot import Robot

ScalarRows = list[list[Scalar]]


def _point_mass(m: Scalar, r: Vec3) -> Sym3:
    """-m (r x)(r x)."""
    a = r * m
    xx, yy, zz = a.x * r.x, a.y * r.y, a.z * r.z
    return Sym3(yy + zz, xx + zz, xx + yy, -(a.x * r.y), -(a.x * r.z), -(a.y * r.z))


def _moved(s: Vec3, c: Vec3) -> Sym3:
    """-(s x)(c x) - (c x)(s x): 9M 9A, doubling being an addition."""
    x, y, z = s.x * c.x, s.y * c.y, s.z * c.z
    xx, yy, zz = y + z, x + z, x + y
    xy, xz, yz = s.x * c.y + s.y * c.x, s.x * c.z + s.z * c.x, s.y * c.z + s.z * c.y
    return Sym3(xx + xx, yy + yy, zz + zz, -xy, -xz, -yz)


def frame_offsets(chain: Chain, R: Sequence[Rotation], q: Sequence[Scalar]) -> list[Vec3]:
    """s_i: from the origin of frame i - 1 to that of frame i, in frame i - 1."""
    return [
        link.offset(qi).rotate_x(r.cb, r.sb) for link, r, qi in zip(chain.links, R, q, strict=True)
    ]


def renaud_arms(
    chain: Chain, R: Sequence[Rotation], s: Sequence[Vec3], u: Sequence[Sequence[Vec3]]
) -> list[list[Vec3]]:
    """s^[m][j] = u_m x (from frame m to frame j) in frame j (A4), (A9), for rotational joints m."""
    n = len(chain.links)
    out: list[list[Vec3]] = []
    for m in range(n):
        row = [ORIGIN] * n
        if chain.links[m].rotational:
            for j in range(m + 1, n):
                if j == m + 1:
                    row[j] = R[j].outward_flat(-s[j].y, s[j].x)
                else:
                    row[j] = R[j].outward(row[j - 1] + u[m][j - 1].cross(s[j]))
        out.append(row)
    return out


def composite_moments(
    chain: Chain, R: Sequence[Rotation], s: Sequence[Vec3]
) -> tuple[list[Vec3], list[Sym3 | None], Scalar]:
    """c^ (A7) and J^ (A8) of the composite bodies; of the first rotational one only J33."""
    n, first, m = len(chain.links), chain.first, chain.composite_masses
    c: list[Vec3] = [ORIGIN] * n
    J: list[Sym3 | None] = [None] * n
    J33: Scalar = 0.0
    for i in reversed(range(n)):
        link = chain.links[i]
        constant_c, constant_J = link.c * link.m, link.I + _point_mass(link.m, link.c)  # (A5), (A6)
        if i == n - 1:
            c[i], J[i] = in_store((constant_c, constant_J), R[i].c)
            J33 = constant_J.zz
            continue
        si, r, outer, sliding = s[i + 1], R[i + 1], J[i + 1], not chain.links[i + 1].rotational
        if not sliding:
            constant_c = constant_c + si * m[i + 1]
            constant_J = constant_J + _point_mass(m[i + 1], si)
        handed = r.inward(c[i + 1])
        c[i] = constant_c + handed
        if sliding:
            c[i] = c[i] + si * m[i + 1]
        if i > first and outer is not None:
            total = constant_J + r.similarity(outer) + _moved(si, handed)
            J[i] = total + _point_mass(m[i + 1], si) if sliding else total
        elif i == first and outer is not None:
            moved = (2.0 * si.x) * handed.x + (2.0 * si.y) * handed.y
            J33 = constant_J.zz + r.corner(outer) + moved
            if sliding:
                J33 = J33 + m[i + 1] * (si.x * si.x + si.y * si.y)
    return c, J, J33


def renaud_inertia(chain: Chain, R: list[Rotation], q: Sequence[Scalar]) -> ScalarRows:
    """The inertia matrix H, rotations given (A1)."""
    n, links, m_hat = len(chain.links), chain.links, chain.composite_masses
    s = frame_offsets(chain, R, q)
    u = axes_seen_outward(chain, R)
    s_hat = renaud_arms(chain, R, s, u)
    c, J, J33 = composite_moments(chain, R, s)
    H: ScalarRows = [[0.0] * n for _ in range(n)]
    for j in range(n):
        e, a, tensor = Vec3(-c[j].y, c[j].x, 0.0), ORIGIN, J[j]
        if not links[j].rotational:
            H[j][j] = m_hat[j]
        elif j == chain.first or tensor is None:
            H[j][j] = J33
        else:
            a = Vec3(tensor.xz, tensor.yz, tensor.zz)
            H[j][j] = a.z
        for m in range(j):
            um, sm = u[m][j], s_hat[m][j]
            if links[j].rotational:
                entry = a.dot(um) + sm.dot(e) if links[m].rotational else e.dot(um)
            elif links[m].rotational:
                entry = m_hat[j] * sm.z - e.dot(um)
            else:
                entry = m_hat[j] * um.z
            H[m][j] = H[j][m] = entry
    return H


def mass_matrix(model: Robot, q: Sequence[Scalar]) -> ScalarRows:
    """H (nv, nv) of a serial model, as rows; ModelError where the model is not a chain of revolute
    and prismatic joints.
    """
    chain = chain_of(model, q=q)
    return renaud_inertia(chain, rotations(chain, q), q)
