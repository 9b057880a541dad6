"""The equations of motion in quasi-coordinates (Boltzmann and Hamel), as Quinn and Chang write them
for open chains.

The equations (22) are those of bodies that turn freely at their joints, over inertial angular
velocities: one moment equation per body and the force equation of the base. The matrix G (27)
combines them into the equations of relative angular velocities (26), and D (35) projects these onto
the freedoms that each joint has (37). *Control* is (22) read from left to right, forces from
motion; *simulation* solves M_c alpha'' = right side (38). The texts run over any scalar.

``coordinates`` chooses how the way from joint to body and back is written: "inertial" carries omega
from body to body and solves (24) for the joint moments from the tip inward; "relative" forms the
sums of (25) and (30) with all blocks C_ij of G.

Equation numbers: R. D. Quinn and R. Y. K. Chang, Dynamics of open-chained systems of rigid bodies
(1991). Their tilde is the transposed cross-product matrix; (22b) is derived anew from (18b), for it
is misprinted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Literal

from ramify.core.errors import RamifyError
from ramify.core.scalar import Scalar
from ramify.core.spatial import Mat3, Vec3, Wrench, acceleration_field
from ramify.formulations.chain import ORIGIN, in_store
from ramify.formulations.counting.appendix import solve_symmetric
from ramify.formulations.quasi_chain import (
    ONE,
    JointMotion,
    QuasiChain,
    joint_motions,
    product,
    product_transposed,
    quasi_chain_of,
)
from ramify.model.robot import Robot

NO_FIELD = Mat3.cross_tensor(ORIGIN)
CoordinateKind = Literal["inertial", "relative"]
Column = Sequence[Scalar]
ScalarRows = list[list[Scalar]]


@dataclass(slots=True)
class BodyRates:
    """Inertial orientation C_Ni of a body, its angular velocity w and its rate dw in body axes."""

    C: Mat3
    w: Vec3
    dw: Vec3


# ---- from joints to bodies ----


def inertial_rates(joints: Sequence[JointMotion]) -> list[BodyRates]:
    """omega from body to body: omega_i = C omega_{i-1} + Omega_i, its rate with omega_i x Omega_i
    for the turning axes.
    """
    out: list[BodyRates] = []
    before = BodyRates(ONE, ORIGIN, ORIGIN)
    for x in joints:
        w = x.C.transposed_times(before.w) + x.Omega
        dw = x.C.transposed_times(before.dw) + w.cross(x.Omega) + x.dOmega
        before = BodyRates(product(before.C, x.C), w, dw)
        out.append(before)
    return out


def connectivity(joints: Sequence[JointMotion]) -> list[list[Mat3]]:
    """The blocks C_ij, j <= i, of G (27): C_ij turns a vector of frame j into frame i."""
    G: list[list[Mat3]] = []
    for i, x in enumerate(joints):
        row = [] if i == 0 else [product_transposed(x.C, block) for block in G[i - 1]]
        G.append([*row, ONE])
    return G


def relative_rates(joints: Sequence[JointMotion], G: Sequence[Sequence[Mat3]]) -> list[BodyRates]:
    """omega = G Omega and its rate G dOmega + h (31), as sums over all inboard joints (30)."""
    out: list[BodyRates] = []
    C = ONE
    for i, x in enumerate(joints):
        C = product(C, x.C)
        seen = [G[i][j] @ joints[j].Omega for j in range(i)]
        w, dw = x.Omega, x.dOmega
        for u in seen:
            w = w + u
        for j, u in enumerate(seen):
            before = out[j].w
            dw = dw + (G[i][j] @ (before.cross(joints[j].Omega) + joints[j].dOmega) - w.cross(u))
        out.append(BodyRates(C, w, dw))
    return out


# ---- the equations ----


def generalized_equations(
    chain: QuasiChain,
    joints: Sequence[JointMotion],
    rates: Sequence[BodyRates],
    applied: Sequence[Wrench] = (),
) -> tuple[list[Vec3], list[Vec3]]:
    """(22): the left side g_i of every body's moment equation, in its frame, and the force F_i that
    joint i transmits, in N's axes.

    F_1 is the left side of (22a). The sums over inboard bodies are accelerations of the joints and
    the sums over outboard ones forces, both carried from body to body in the axes of N.
    ``applied``: external wrenches [n; f] per body about its joint, in its frame, which (15) and
    (16) put on the right side.
    """
    n = len(joints)
    a, C, w, field = in_store(-chain.gravity, joints[0].C.xx), ONE, ORIGIN, NO_FIELD
    g: list[Vec3] = []
    F: list[Vec3] = []
    for body, x, rate in zip(chain.bodies, joints, rates, strict=True):
        carried = w.cross(x.u)
        a = a + C @ (field @ x.L + (carried + carried) + x.du)  # A(L) of (22c), and what slides
        C, w, field = rate.C, rate.w, acceleration_field(rate.w, rate.dw)
        turned = body.I @ rate.dw + w.cross(body.I @ w)
        g.append(turned + body.S.cross(C.transposed_times(a)))
        F.append(a * body.m + C @ (field @ body.S))
    if applied:
        F = [f - rate.C @ wrench.f for f, rate, wrench in zip(F, rates, applied, strict=True)]
    for i in reversed(range(n)):
        rate = rates[i]
        if i + 1 < n:
            g[i] = g[i] + joints[i + 1].L.cross(rate.C.transposed_times(F[i + 1]))
            F[i] = F[i] + F[i + 1]
        if applied:
            g[i] = g[i] - applied[i].n
    return g, F


def joint_moments(joints: Sequence[JointMotion], g: Sequence[Vec3]) -> list[Vec3]:
    """M_i from (24), solved from the tip inward: M_i = g_i + C_{i,i+1} M_{i+1}."""
    M = list(g)
    for i in reversed(range(len(M) - 1)):
        M[i] = M[i] + joints[i + 1].C @ M[i + 1]
    return M


def joint_moments_by_G(G: Sequence[Sequence[Mat3]], g: Sequence[Vec3]) -> list[Vec3]:
    """M = G' g (26): the sums of (25)."""
    M = list(g)
    for i in range(len(M)):
        for j in range(i + 1, len(M)):
            M[i] = M[i] + G[j][i].transposed_times(g[j])
    return M


def forces_along_freedoms(
    joints: Sequence[JointMotion], rates: Sequence[BodyRates], M: Sequence[Vec3], F: Sequence[Vec3]
) -> list[Scalar]:
    """D' M of (37), and E' F for the freedoms that slide; what joints themselves hold drops out."""
    tau: list[Scalar] = []
    for i, x in enumerate(joints):
        slides = any(not _nothing(e) for e in x.E)
        force = (rates[i - 1].C.transposed_times(F[i]) if i else F[i]) if slides else ORIGIN
        tau += [d.dot(M[i]) + e.dot(force) for d, e in zip(x.D, x.E, strict=True)]
    return tau


def _nothing(u: Vec3) -> bool:
    """Whether a vector of constants is zero."""
    return all(isinstance(x, float) and x == 0.0 for x in (u.x, u.y, u.z))


def control(
    chain: QuasiChain,
    q: Column,
    v: Column,
    a: Column,
    coordinates: CoordinateKind = "inertial",
    applied: Sequence[Wrench] = (),
) -> list[Scalar]:
    """The control problem: generalized joint forces tau of a motion."""
    if coordinates not in ("inertial", "relative"):
        raise RamifyError(f"coordinates {coordinates!r} must be 'inertial' or 'relative'")
    joints = joint_motions(chain, q, v, a)
    G = connectivity(joints) if coordinates == "relative" else None
    rates = relative_rates(joints, G) if G else inertial_rates(joints)
    g, F = generalized_equations(chain, joints, rates, applied)
    M = joint_moments_by_G(G, g) if G else joint_moments(joints, g)
    return forces_along_freedoms(joints, rates, M, F)


# ---- the simulation problem ----


def inertia_blocks(
    chain: QuasiChain, joints: Sequence[JointMotion], rates: Sequence[BodyRates]
) -> list[list[Mat3]]:
    """A of (29), in blocks, over the quasi-velocities [u_1 ... u_n, omega_1 ... omega_n]; A is
    symmetric.

    With mu_i the mass from body i outward and T_i = S_i + mu_{i+1} L_{i+1} the first moment of body
    i augmented by what it carries, the coefficients of (22b) are L_{i+1} x C_ik (omega'_k x T_k)
    for bodies i < k and I_i + mu_{i+1} (L L - L L') on the diagonal. The rows of u are (22a) for
    the part of the chain beyond a joint.
    """
    n = len(joints)
    mass = [sum(body.m for body in chain.bodies[i:]) for i in range(n + 1)]
    arm = [x.L for x in joints[1:]] + [ORIGIN]
    T = [body.S + arm[i] * mass[i + 1] for i, body in enumerate(chain.bodies)]
    C = [ONE, *(rate.C for rate in rates)]  # of the carrier of body i from zero, C[i + 1] its own
    A: list[list[Mat3]] = [[ONE] * (2 * n) for _ in range(2 * n)]
    for i in range(n):
        for k in range(n):
            heavier, turned = mass[max(i, k)], product_transposed(C[i], C[k])
            A[i][k] = Mat3.from_columns(*(column * heavier for column in turned.columns))
            lever = T[k] if k >= i else arm[k] * mass[i]
            A[i][n + k] = product(product_transposed(C[i], C[k + 1]), Mat3.cross_tensor(-lever))
            A[n + k][i] = Mat3.from_columns(*A[i][n + k].rows)
            if i < k:
                turned = product_transposed(C[i + 1], C[k + 1])
                coupling = product(turned, Mat3.cross_tensor(-T[k])).crossed_by(arm[i])
                A[n + i][n + k], A[n + k][n + i] = coupling, Mat3.from_columns(*coupling.rows)
        J = chain.bodies[i].I
        own = Mat3(J.xx, J.xy, J.xz, J.xy, J.yy, J.yz, J.xz, J.yz, J.zz)
        A[n + i][n + i] = own + Mat3.steiner(arm[i] * mass[i + 1], arm[i])
    return A


def quasi_velocities(joints: Sequence[JointMotion], rates: Sequence[BodyRates]) -> list[list[Vec3]]:
    """Columns of diag(E, G D): the quasi-velocities [u, omega] at unit rate of each coordinate."""
    n = len(joints)
    columns = []
    for j, x in enumerate(joints):
        for d, e in zip(x.D, x.E, strict=True):
            axis = rates[j].C @ d
            column = [ORIGIN] * (2 * n)
            column[j] = e
            for i in range(j, n):
                column[n + i] = d if i == j else rates[i].C.transposed_times(axis)
            columns.append(column)
    return columns


def inertia_matrix(
    chain: QuasiChain, joints: Sequence[JointMotion], rates: Sequence[BodyRates]
) -> ScalarRows:
    """M_c = D' G' A G D (37), rows of scalars."""
    A = inertia_blocks(chain, joints, rates)
    columns = quasi_velocities(joints, rates)
    nv = len(columns)
    M: ScalarRows = [[0.0] * nv for _ in range(nv)]
    for c, column in enumerate(columns):
        moving = [k for k, u in enumerate(column) if not _nothing(u)]
        momentum = [reduce(add, (row[k] @ column[k] for k in moving)) for row in A]
        for b in range(c + 1):
            parts = (u.dot(p) for u, p in zip(columns[b], momentum, strict=True) if not _nothing(u))
            M[b][c] = M[c][b] = reduce(add, parts)
    return M


def simulation(
    chain: QuasiChain, q: Column, v: Column, tau: Column, applied: Sequence[Wrench] = ()
) -> list[Scalar]:
    """The simulation problem: alpha'' of (38), (39).

    At alpha'' = 0 the rates of omega are h + G D' alpha', so that the three terms in the brackets
    of (39) are tau less the joint forces of that motion.
    """
    joints = joint_motions(chain, q, v, [0.0] * len(v))
    rates = inertial_rates(joints)
    g, F = generalized_equations(chain, joints, rates, applied)
    bias = forces_along_freedoms(joints, rates, joint_moments(joints, g), F)
    M = inertia_matrix(chain, joints, rates)
    return solve_symmetric(M, [t - b for t, b in zip(tau, bias, strict=True)])


# ---- of a model ----


def inverse_dynamics(
    model: Robot, q: Column, v: Column, a: Column, coordinates: CoordinateKind = "inertial"
) -> list[Scalar]:
    """tau (nv) of a serial model: the control problem. ModelError where it branches, StateError for
    columns of a wrong length.
    """
    return control(quasi_chain_of(model, q=q, v=v, a=a), q, v, a, coordinates)


def bias_forces(model: Robot, q: Column, v: Column) -> list[Scalar]:
    """h (nv): the forces of the control problem at zero accelerations."""
    return control(quasi_chain_of(model, q=q, v=v), q, v, [0.0] * len(v))


def mass_matrix(model: Robot, q: Column) -> ScalarRows:
    """M_c (nv, nv) of a serial model, as rows (37)."""
    chain = quasi_chain_of(model, q=q)
    zeros = [0.0] * model.nv
    joints = joint_motions(chain, q, zeros, zeros)
    return inertia_matrix(chain, joints, inertial_rates(joints))


def forward_dynamics(model: Robot, q: Column, v: Column, tau: Column) -> list[Scalar]:
    """alpha'' (nv) of a serial model: the simulation problem (38)."""
    return simulation(quasi_chain_of(model, q=q, v=v, tau=tau), q, v, tau)
