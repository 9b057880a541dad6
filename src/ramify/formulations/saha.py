"""Saha's recursions for serial robots: RIDIM, inverse dynamics in two steps, and RFDSIM, forward
dynamics in three.

They differ from ``ramify.dynamics`` in where a link is looked at. Twists and wrenches belong to the
mass centres, so the mass matrix of a link is block diagonal; B (13) leads from mass centre to mass
centre, and p = [e; e x d] for a revolute joint. Frames of RIDIM are the classical
Denavit-Hartenberg ones: frame i + 1, at the far joint of link i, is fixed to link i and carries its
vectors. ``ramify.formulations.elimination`` has the three steps of RFDSIM.

S. K. Saha, Dynamics of serial multibody systems using the decoupled natural orthogonal complement
matrices, J. Applied Mechanics 66 (1999) 986-996; equation numbers are its own. The texts run over
any scalar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ramify.core.scalar import Scalar
from ramify.core.spatial import Sym3, Twist, Vec3, Wrench
from ramify.formulations.chain import ORIGIN, Chain, Z, chain_of, in_store
from ramify.formulations.counting.tally import OperationLedger
from ramify.formulations.elimination import bodies_at, solve_by_elimination
from ramify.model.link import Turn
from ramify.model.robot import Robot


@dataclass(frozen=True)
class MassCentreLink:
    """Link i at a coordinate, in frame i + 1: cosine and sine of theta, twist angle alpha, mass,
    central inertia tensor.

    ``e`` is the joint axis, ``d`` leads from joint i (origin of frame i) to the mass centre, ``r``
    from there to joint i + 1.
    """

    rotational: bool
    theta: Turn
    alpha: Turn
    m: float
    I: Sym3  # noqa: E741 - the paper's symbol
    e: Vec3
    d: Vec3
    r: Vec3

    def outward(self, u: Vec3) -> Vec3:
        """A vector of frame i, seen from frame i + 1: 8M 4A."""
        return u.rotate_z(self.theta.c, -self.theta.s).rotate_x(self.alpha.c, -self.alpha.s)

    def inward(self, x: Vec3) -> Vec3:
        """A vector of frame i + 1, seen from frame i: 8M 4A."""
        return x.rotate_x(self.alpha.c, self.alpha.s).rotate_z(self.theta.c, self.theta.s)

    @property
    def p(self) -> Twist:
        """The joint-rate propagation vector (13), (15)."""
        return Twist(self.e, self.e.cross(self.d)) if self.rotational else Twist(ORIGIN, self.e)

    @property
    def turned_d(self) -> Vec3:
        """d in frame i: alpha turns it beforehand, theta takes 4M 2A."""
        return self.d.rotate_x(self.alpha.c, self.alpha.s).rotate_z(self.theta.c, self.theta.s)


PARALLEL = Turn(1.0, 0.0)


def links_at(chain: Chain, q: Sequence[Scalar], tip: Turn = PARALLEL) -> list[MassCentreLink]:
    """The links of a chain, its frames moved from each link's own joint to the next one.

    Frame n + 1 has no joint and may be chosen at will: it is turned by ``tip``, the angle alpha_n
    of a DH table.
    """
    out = []
    for i, (link, qi) in enumerate(zip(chain.links, q, strict=True)):
        last = i + 1 == len(chain.links)
        alpha, o = (tip, ORIGIN) if last else (chain.links[i + 1].beta, chain.links[i + 1].o)
        slide = Vec3(0.0, 0.0, link.offset(qi).z)
        turn = alpha.c, -alpha.s
        centre, I = link.c.rotate_x(*turn), link.I.rotate_x(*turn)  # noqa: E741
        e, d, r = Z.rotate_x(*turn), centre + slide.rotate_x(*turn), Vec3(o.x, o.y, 0.0) - centre
        out.append(MassCentreLink(link.rotational, link.theta(qi), alpha, link.m, I, e, d, r))
    return out


def ridim(
    chain: Chain,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    a: Sequence[Scalar],
    ledger: OperationLedger | None = None,
    tip: Turn = PARALLEL,
) -> list[Scalar]:
    """tau (n): joint forces by a forward and a backward recursion (section 5.1; gravity: 32)."""
    links, ledger = links_at(chain, q, tip), ledger or OperationLedger()
    return _joint_forces(links, _forward(chain, links, v, a, ledger), ledger)


@dataclass
class _MassCentreRates:
    """Angular velocity, its rate, acceleration of the mass centre: the parts of nu, xi in use."""

    w: Vec3
    dw: Vec3
    dv: Vec3


def _forward(
    chain: Chain,
    links: Sequence[MassCentreLink],
    v: Sequence[Scalar],
    a: Sequence[Scalar],
    ledger: OperationLedger,
) -> list[_MassCentreRates]:
    """xi_i = p q'' + Omega p q' + B xi + dB/dt nu; gravity accelerates the base by -g (32)."""
    beta = chain.links[0].beta
    gravity = chain.gravity.rotate_x(beta.c, -beta.s)
    # one loop for all links, the base's zeros in the arrays
    w, dw, dv = in_store((ORIGIN, ORIGIN, -gravity), links[0].theta.c)
    out: list[_MassCentreRates] = []
    for i, (link, vi, ai) in enumerate(zip(links, v, a, strict=True)):
        if i > 0:
            with ledger.step("acceleration from the last mass centre to the joint, by r"):
                r = links[i - 1].r
                dv = dv + dw.cross(r) + w.cross(w.cross(r))
        with ledger.step("angular acceleration"):
            if link.rotational:
                dw = Vec3(dw.x + w.y * vi, dw.y - w.x * vi, dw.z + ai)
            dw = link.outward(dw)
        with ledger.step("angular velocity"):
            if link.rotational:
                w = Vec3(w.x, w.y, w.z + vi)
            w = link.outward(w)
        with ledger.step("acceleration turned, and on to the mass centre, by d"):
            dv = link.outward(dv)
            dv = dv + dw.cross(link.d) + w.cross(w.cross(link.d))
            if not link.rotational:
                dv = dv + w.cross(link.e) * (vi + vi) + link.e * ai
        out.append(_MassCentreRates(w, dw, dv))
    return out


def _joint_forces(
    links: Sequence[MassCentreLink], rates: Sequence[_MassCentreRates], ledger: OperationLedger
) -> list[Scalar]:
    """gamma_i = M xi + dM/dt nu + B' gamma and tau = p' gamma (section 5.1, backward recursion)."""
    tau: list[Scalar] = []
    gamma: Wrench | None = None
    for i in reversed(range(len(links))):
        link, x, beyond = links[i], rates[i], gamma
        with ledger.step("wrench of the link: I dω + ω × Iω, m dv"):
            gamma = Wrench(link.I @ x.dw + x.w.cross(link.I @ x.w), x.dv * link.m)
        if beyond is not None:
            with ledger.step("c, from mass centre to mass centre (13)"):
                c = link.r + links[i + 1].turned_d
            with ledger.step("Bᵀ γ"):
                n, f = links[i + 1].inward(beyond.n), links[i + 1].inward(beyond.f)
                handed = Wrench(n + c.cross(f), f)
            with ledger.step("Bᵀ γ added"):
                gamma = gamma + handed
        with ledger.step("τ = pᵀ γ"):
            tau.append(link.p.dot(gamma))
    return tau[::-1]


def rfdsim(
    chain: Chain, q: Sequence[Scalar], v: Sequence[Scalar], tau: Sequence[Scalar]
) -> list[Scalar]:
    """q'' (n) of I q'' = phi, phi = tau - h, h being the forces of RIDIM at q'' = 0 (5.2)."""
    h = ridim(chain, q, v, [0.0] * len(chain.links))
    return solve_by_elimination(bodies_at(chain, q), [t - x for t, x in zip(tau, h, strict=True)])


def inverse_dynamics(
    model: Robot, q: Sequence[Scalar], v: Sequence[Scalar], a: Sequence[Scalar]
) -> list[Scalar]:
    """tau (nv) of a serial model by RIDIM; ModelError where it is not a chain of revolute and
    prismatic joints.
    """
    return ridim(chain_of(model, q=q, v=v, a=a), q, v, a)


def forward_dynamics(
    model: Robot, q: Sequence[Scalar], v: Sequence[Scalar], tau: Sequence[Scalar]
) -> list[Scalar]:
    """q'' (nv) of a serial model by RFDSIM; ModelError as for ``inverse_dynamics``."""
    return rfdsim(chain_of(model, q=q, v=v, tau=tau), q, v, tau)
