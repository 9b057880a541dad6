"""The three steps of RFDSIM: I q'' = phi by the articulated bodies of reverse Gaussian elimination,
at the mass centres.

Each link has its vectors in the frame at its own joint, z on the joint's axis, so that p = [0, 0,
1; -d_y, d_x, 0]: the paper's frame i + 1 is this one, turned by alpha about x. B is one matrix: c
leads from mass centre to mass centre (13).

S. K. Saha, J. Applied Mechanics 66 (1999) 986-996, sections 5.2 and appendix B; equation numbers
are its own. Over any scalar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ramify.core.scalar import Scalar
from ramify.core.spatial import ArticulatedInertia, Mat3, Sym3, Twist, Vec3, Wrench
from ramify.formulations.chain import ORIGIN, Chain, Z, in_store
from ramify.formulations.counting.tally import OperationLedger, stored
from ramify.model.link import Turn

_O3 = Mat3(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class ChainBody:
    """Link i at a coordinate: theta, twist angle beta from link i - 1, M and p at its mass centre
    in its own frame.

    ``c`` leads from mass centre i - 1 to mass centre i, in the frame that has turned by beta but
    not yet by theta.
    """

    theta: Turn
    beta: Turn
    M: ArticulatedInertia
    p: Twist
    c: Vec3

    def wrench(self, w: Wrench) -> Wrench:
        """B' w: a wrench at this mass centre, felt at the one before: 22M 14A."""
        n, f = w.n.rotate_z(self.theta.c, self.theta.s), w.f.rotate_z(self.theta.c, self.theta.s)
        n = n + self.c.cross(f)
        return Wrench(n.rotate_x(self.beta.c, self.beta.s), f.rotate_x(self.beta.c, self.beta.s))

    def twist(self, t: Twist) -> Twist:
        """B t: a twist of the body before, at this mass centre: 22M 14A."""
        w, v = t.w.rotate_x(self.beta.c, -self.beta.s), t.v.rotate_x(self.beta.c, -self.beta.s)
        v = v + w.cross(self.c)
        return Twist(
            w.rotate_z(self.theta.c, -self.theta.s), v.rotate_z(self.theta.c, -self.theta.s)
        )

    def inertia(self, M: ArticulatedInertia) -> ArticulatedInertia:
        """B' M B: 98M 100A."""
        M = shift(M.rotate_z(self.theta.c, self.theta.s), self.c)
        return M.rotate_x(self.beta.c, self.beta.s)


def bodies_at(chain: Chain, q: Sequence[Scalar]) -> list[ChainBody]:
    """The links of a chain at q; c takes 4M 4A each beside sine and cosine; RIDIM has it too."""
    out: list[ChainBody] = []
    before = ORIGIN
    for link, qi in zip(chain.links, q, strict=True):
        theta = link.theta(qi)
        M = ArticulatedInertia(link.I, _O3, Sym3(link.m, link.m, link.m, 0.0, 0.0, 0.0))
        p = Twist(Z, Z.cross(link.c)) if link.rotational else Twist(ORIGIN, Z)
        c_vector = ORIGIN
        if out:
            r = link.offset(qi) - before.rotate_x(link.beta.c, -link.beta.s)
            c_vector = r + link.c.rotate_z(theta.c, theta.s)
        out.append(ChainBody(theta, link.beta, M, p, c_vector))
        before = link.c
    return out


@dataclass(frozen=True)
class ChainJoint:
    """What is left of a joint: psi (48) at its mass centre, the pivot m^ (47), its reciprocal."""

    psi: Wrench
    pivot: Scalar
    reciprocal: Scalar


@dataclass(frozen=True)
class ChainElimination:
    """U and D of I = U D U' by joint; ``moved`` is B p_1, the twist that joint 1 gives to body 2
    (None where there is none).
    """

    joints: list[ChainJoint]
    moved: Twist | None


def articulated_bodies(
    bodies: Sequence[ChainBody], ledger: OperationLedger | None = None
) -> ChainElimination:
    """psi_i and m^_i of all joints: what each feels of the links beyond, these being free to move
    (47)-(50).

    Of the first link only the pivot is asked for. It is found from B p_1, the motion that joint 1
    gives to body 2. The pivots are held in one array, that of the last link, a constant, among
    them: each has its reciprocal taken (section 5.2, step 2).
    """
    ledger = ledger or OperationLedger()
    out: list[ChainJoint] = []
    M, like = bodies[-1].M, bodies[0].theta.c
    for i in reversed(range(1, len(bodies))):
        body = bodies[i]
        with ledger.step("ψ̂ = M̂ p (47)"):
            psi_hat = M @ body.p
        with ledger.step("m̂ = pᵀ ψ̂ (47)"):
            pivot = body.p.dot(psi_hat)
        with ledger.step("1 / m̂ (§5.2, step 2)"):
            reciprocal = 1.0 / stored(pivot, like)
        with ledger.step("ψ = ψ̂ (1 / m̂) (48)"):
            last = i + 1 == len(bodies)  # its pivot is a constant
            psi = psi_hat * (1.0 / pivot if last else reciprocal)
        with ledger.step("M̂ − ψ̂ψᵀ (50)"):
            M = M.minus_outer(psi_hat, psi)
        out.append(ChainJoint(psi, pivot, reciprocal))
        if i > 1:
            with ledger.step("Bᵀ M̂ B (50)"):
                M = body.inertia(M)
            with ledger.step("M̂ = M + Bᵀ M̂ B (50), the sum"):
                own = bodies[i - 1].M  # m 1 with its zeros, a symmetric block
                M = ArticulatedInertia(own.A, own.B, in_store(own.C, like)) + M
    first, moved = bodies[0], None
    pivot = first.p.dot(first.M @ first.p)
    if len(bodies) > 1:
        with ledger.step("first joint: m̂ = pᵀ M p + (B p)ᵀ M̂ (B p)"):
            moved = bodies[1].twist(first.p)
            pivot = pivot + moved.dot(M @ moved)
    with ledger.step("1 / m̂ (§5.2, step 2)"):
        out.append(ChainJoint(Wrench(ORIGIN, ORIGIN), pivot, 1.0 / stored(pivot, like)))
    return ChainElimination(out[::-1], moved)


def solve_by_elimination(
    bodies: Sequence[ChainBody], phi: Sequence[Scalar], ledger: OperationLedger | None = None
) -> list[Scalar]:
    """q'' (n) of U D U' q'' = phi in three steps (34)-(37); the paper takes phi as given."""
    ledger = ledger or OperationLedger()
    eliminated = articulated_bodies(bodies, ledger)
    joints = eliminated.joints
    # 1: U tau^ = phi, from the tip inward
    tau_hat: list[Scalar] = list(phi)
    eta: Wrench | None = None
    for i in reversed(range(len(bodies))):
        if eta is not None:
            with ledger.step("τ̂ = φ − pᵀ η (34)"):
                tau_hat[i] = phi[i] - bodies[i].p.dot(eta)
        if i > 0:
            with ledger.step("η = ψ τ̂ + η (35)"):
                own = joints[i].psi * tau_hat[i]
                eta = own if eta is None else own + eta
            with ledger.step("Bᵀ η (35)"):
                eta = bodies[i].wrench(eta)
    # 2: D tau~ = tau^
    with ledger.step("τ̃ = τ̂ (1 / m̂)"):
        tau_tilde = [x * joint.reciprocal for x, joint in zip(tau_hat, joints, strict=True)]
    # 3: U' q'' = tau~, from the base outward
    a: list[Scalar] = [tau_tilde[0]]
    mu: Twist | None = None
    for i in range(1, len(bodies)):
        body, before = bodies[i], bodies[i - 1]
        if mu is None and eliminated.moved is not None:
            with ledger.step("μ of body 2 = (B p) q̈, with B p of the first pivot"):
                mu = Twist(eliminated.moved.w * a[0], eliminated.moved.v * a[0])
        elif mu is not None:
            with ledger.step("μ = p q̈ + μ (37)"):
                mu = Twist(before.p.w * a[i - 1], before.p.v * a[i - 1]) + mu
            with ledger.step("B μ (37)"):
                mu = body.twist(mu)
        assert mu is not None
        with ledger.step("q̈ = τ̃ − ψᵀ μ (36)"):
            a.append(tau_tilde[i] - mu.dot(joints[i].psi))
    return a


def shift(M: ArticulatedInertia, r: Vec3) -> ArticulatedInertia:
    """M^ felt at -r: B' = B + (r x) C, A' = A + (r x) B^T - B' (r x), by entries: 42M 42A."""
    A, C = M.A, M.C
    old = M.B.rows
    B = M.B + Mat3(C.xx, C.xy, C.xz, C.xy, C.yy, C.yz, C.xz, C.yz, C.zz).crossed_by(r)
    new = B.rows
    return ArticulatedInertia(
        Sym3(
            A.xx + (r.y * old[0].z - r.z * old[0].y) + (r.y * new[0].z - r.z * new[0].y),
            A.yy + (r.z * old[1].x - r.x * old[1].z) + (r.z * new[1].x - r.x * new[1].z),
            A.zz + (r.x * old[2].y - r.y * old[2].x) + (r.x * new[2].y - r.y * new[2].x),
            A.xy + (r.y * old[1].z - r.z * old[1].y) + (r.z * new[0].x - r.x * new[0].z),
            A.xz + (r.y * old[2].z - r.z * old[2].y) + (r.x * new[0].y - r.y * new[0].x),
            A.yz + (r.z * old[2].x - r.x * old[2].z) + (r.x * new[1].y - r.y * new[1].x),
        ),
        B,
        C,
    )
