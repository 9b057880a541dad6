"""Saha's recursions for serial robots: RIDIM, inverse dynamics in two steps, and RFDSIM, forward dynamics in three.

They differ from ``ramify.dynamics`` in where a link is looked at. Twists and wrenches belong to the mass centres, so the mass
matrix of a link is block diagonal; B (13) leads from mass centre to mass centre, and p = [e; e x d] for a revolute joint. Frames
are the classical Denavit-Hartenberg ones: frame i + 1, at the far joint of link i, is fixed to link i and carries its vectors. B is
applied in two parts, from a mass centre to the joint and from the joint to the next mass centre, each with a vector of one link.

S. K. Saha, Dynamics of serial multibody systems using the decoupled natural orthogonal complement matrices, J. Applied Mechanics
66 (1999) 986-996; equation numbers are its own. The texts run over any scalar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ramify.formulations.chain import ORIGIN, Chain, Z, chain_of, in_store
from ramify.model.link import Turn
from ramify.scalar import Scalar, cos, sin
from ramify.spatial import ArticulatedInertia, Mat3, Sym3, Twist, Vec3, Wrench

if TYPE_CHECKING:
    from ramify.model.model import Model

T = TypeVar("T", Vec3, ArticulatedInertia)
_O3 = Mat3(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class MassCentreLink:
    """Link i at a coordinate, in frame i + 1: cosine and sine of theta, twist angle alpha, mass, central inertia tensor.

    ``e`` is the joint axis, ``d`` leads from joint i (origin of frame i) to the mass centre, ``r`` from there to joint i + 1.
    """

    rotational: bool
    theta: Turn
    alpha: Turn
    m: float
    I: Sym3  # noqa: E741 - the paper's symbol
    e: Vec3
    d: Vec3
    r: Vec3

    @property
    def p(self) -> Twist:
        """The joint-rate propagation vector (13), (15)."""
        return Twist(self.e, self.e.cross(self.d)) if self.rotational else Twist(ORIGIN, self.e)

    def outward(self, u: Vec3) -> Vec3:
        """A vector of frame i, seen from frame i + 1: 8M 4A."""
        return u.rotate_z(self.theta.c, -self.theta.s).rotate_x(self.alpha.c, -self.alpha.s)

    def inward(self, x: T) -> T:
        """A vector or inertia of frame i + 1, seen from frame i."""
        return x.rotate_x(self.alpha.c, self.alpha.s).rotate_z(self.theta.c, self.theta.s)

    def wrench_at_joint(self, w: Wrench) -> Wrench:
        """A wrench at the mass centre, felt at joint i, in frame i: one half of B'."""
        return Wrench(self.inward(w.n + self.d.cross(w.f)), self.inward(w.f))

    def wrench_from_joint(self, w: Wrench) -> Wrench:
        """A wrench at joint i + 1, felt at the mass centre: the other half."""
        return Wrench(w.n + self.r.cross(w.f), w.f)


def links_at(chain: Chain, q: Sequence[Scalar]) -> list[MassCentreLink]:
    """The links of a chain, its frames moved from each link's own joint to the next one: the last stays where it is."""
    out = []
    for i, (link, qi) in enumerate(zip(chain.links, q, strict=True)):
        tip = i + 1 == len(chain.links)
        alpha, o = (Turn(1.0, 0.0), ORIGIN) if tip else (chain.links[i + 1].beta, chain.links[i + 1].o)
        theta = link.theta0
        if link.rotational:
            c, s = cos(qi), sin(qi)
            theta = Turn(c * theta.c - s * theta.s, s * theta.c + c * theta.s)
        slide = Vec3(0.0, 0.0, link.offset(qi).z)
        centre = link.c.rotate_x(alpha.c, -alpha.s)
        out.append(
            MassCentreLink(
                link.rotational, theta, alpha, link.m, link.I.rotate_x(alpha.c, -alpha.s), Z.rotate_x(alpha.c, -alpha.s),
                centre + slide.rotate_x(alpha.c, -alpha.s), Vec3(o.x, o.y, 0.0) - centre,
            )
        )  # fmt: skip
    return out


def ridim(chain: Chain, q: Sequence[Scalar], v: Sequence[Scalar], a: Sequence[Scalar]) -> list[Scalar]:
    """tau (n): joint forces by a forward and a backward recursion over the links (section 5.1, eq. 32 for gravity)."""
    links = links_at(chain, q)
    return _joint_forces(links, _forward(chain, links, v, a))


@dataclass
class _Rates:
    """Angular velocity, its rate, and the acceleration of the mass centre: the parts of nu and xi that are used."""

    w: Vec3
    dw: Vec3
    dv: Vec3


def _forward(chain: Chain, links: Sequence[MassCentreLink], v: Sequence[Scalar], a: Sequence[Scalar]) -> list[_Rates]:
    """xi_i = p q'' + Omega p q' + B xi + dB/dt nu, gravity being an acceleration -g of the base."""
    beta = chain.links[0].beta
    gravity = chain.gravity.rotate_x(beta.c, -beta.s)
    w, dw, dv = ORIGIN, ORIGIN, in_store(-gravity, links[0].theta.c)
    out: list[_Rates] = []
    for i, (link, vi, ai) in enumerate(zip(links, v, a, strict=True)):
        if i > 0:  # from the last mass centre to this joint
            r = links[i - 1].r
            dv = dv + dw.cross(r) + w.cross(w.cross(r))
        if link.rotational:
            dw = Vec3(dw.x + w.y * vi, dw.y - w.x * vi, dw.z + ai)
            w = Vec3(w.x, w.y, w.z + vi)
        w, dw, dv = link.outward(w), link.outward(dw), link.outward(dv)
        dv = dv + dw.cross(link.d) + w.cross(w.cross(link.d))
        if not link.rotational:
            dv = dv + w.cross(link.e) * (vi + vi) + link.e * ai
        out.append(_Rates(w, dw, dv))
    return out


def _joint_forces(links: Sequence[MassCentreLink], rates: Sequence[_Rates]) -> list[Scalar]:
    """gamma_i = M xi + dM/dt nu + B' gamma; tau = p' gamma, read off at the joint (section 5.1, backward recursion)."""
    tau: list[Scalar] = []
    beyond: Wrench | None = None
    for link, x in zip(reversed(links), reversed(rates), strict=True):
        gamma = Wrench(link.I @ x.dw + x.w.cross(link.I @ x.w), x.dv * link.m)
        if beyond is not None:
            gamma = gamma + link.wrench_from_joint(beyond)
        beyond = link.wrench_at_joint(gamma)
        tau.append(beyond.n.z if link.rotational else beyond.f.z)
    return tau[::-1]


def rfdsim(chain: Chain, q: Sequence[Scalar], v: Sequence[Scalar], tau: Sequence[Scalar]) -> list[Scalar]:
    """q'' (n): joint accelerations through I = U D U' in three steps (34)-(37), the articulated bodies by (47)-(50)."""
    links = links_at(chain, q)
    h = _joint_forces(links, _forward(chain, links, v, [0.0] * len(links)))
    phi = [t - x for t, x in zip(tau, h, strict=True)]
    psi, pivots = articulated_bodies(links)
    # 1: U tau^ = phi, from the tip inward
    tau_hat: list[Scalar] = [0.0] * len(links)
    eta: Wrench | None = None
    for i in reversed(range(len(links))):
        tau_hat[i] = phi[i] if eta is None else phi[i] - links[i].p.dot(eta)
        own = psi[i] * tau_hat[i]
        eta = own if eta is None else own + eta
        if i > 0:
            eta = links[i - 1].wrench_from_joint(links[i].wrench_at_joint(eta))
    # 2: D tau~ = tau^
    tau_tilde = [x / m for x, m in zip(tau_hat, pivots, strict=True)]
    # 3: U' q'' = tau~, from the base outward
    a: list[Scalar] = []
    mu: Twist | None = None
    for i, link in enumerate(links):
        if mu is None:
            a.append(tau_tilde[i])
        else:
            before = links[i - 1]
            w = link.outward(mu.w)
            mu = Twist(w, link.outward(mu.v + mu.w.cross(before.r)) + w.cross(link.d))
            a.append(tau_tilde[i] - mu.dot(psi[i]))
        own_motion = Twist(link.p.w * a[i], link.p.v * a[i])
        mu = own_motion if mu is None else own_motion + mu
    return a


def articulated_bodies(links: Sequence[MassCentreLink]) -> tuple[list[Wrench], list[Scalar]]:
    """psi_i and the pivots m^_i (47), (48): what the joints feel of the links beyond, these being free to move (50)."""
    psi: list[Wrench] = []
    pivots: list[Scalar] = []
    beyond: ArticulatedInertia | None = None
    for i in reversed(range(len(links))):
        link = links[i]
        M = ArticulatedInertia(link.I, _O3, Sym3(link.m, link.m, link.m, 0.0, 0.0, 0.0))
        if beyond is not None:
            M = M + beyond.shift(link.r)
        psi_hat = M @ link.p
        pivots.append(link.p.dot(psi_hat))
        psi.append(psi_hat * (1.0 / pivots[-1]))
        if i > 0:
            beyond = link.inward(M.minus_outer(psi_hat, psi[-1]).shift(link.d))
    return psi[::-1], pivots[::-1]


def inverse_dynamics(model: Model, q: Sequence[Scalar], v: Sequence[Scalar], a: Sequence[Scalar]) -> list[Scalar]:
    """tau (nv) of a serial model by RIDIM; ModelError where it is no chain of revolute and prismatic joints."""
    return ridim(chain_of(model, q=q, v=v, a=a), q, v, a)


def forward_dynamics(model: Model, q: Sequence[Scalar], v: Sequence[Scalar], tau: Sequence[Scalar]) -> list[Scalar]:
    """q'' (nv) of a serial model by RFDSIM; ModelError as for ``inverse_dynamics``."""
    return rfdsim(chain_of(model, q=q, v=v, tau=tau), q, v, tau)
