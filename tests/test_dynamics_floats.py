"""The algorithms on floats, arrays, complex numbers and symbols: against Pinocchio, closed forms,
and one another.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import casadi
import numpy as np
import pinocchio as pin
import pytest
import sympy
from numpy.testing import assert_allclose
from random_trees import Case, random_case, tree_of

from ramify.core.records import flatten
from ramify.core.spatial import NO_WRENCH, Vec3, Wrench
from ramify.dynamics.coriolis import coriolis_matrix
from ramify.dynamics.energy import center_of_mass, energy, momentum
from ramify.dynamics.factor import mass_matrix_inverse, udu, udu_inverse
from ramify.dynamics.forward import forward_dynamics
from ramify.dynamics.gravity import gravity_forces
from ramify.dynamics.inertia_matrix import mass_matrix
from ramify.dynamics.inverse import bias, inverse_dynamics
from ramify.dynamics.jacobian import jacobian, jacobian_rate
from ramify.dynamics.kinematics import body_poses
from ramify.dynamics.tree import Matrix
from ramify.dynamics.wrenches import forward_dynamics_wrenches, inverse_dynamics_wrenches, reactions
from ramify.model.body import Body
from ramify.model.frame import Frame
from ramify.model.joint import Joint

SEEDS = range(36)
H = 1e-30  # complex step: derivatives without cancellation

case = cache(random_case)


def close(ours: Any, theirs: Any, rtol: float = 1e-10, scale: float | None = None) -> None:
    """Equal to rtol of the largest number in the answer (or of ``scale``)."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    size = max(float(np.abs(theirs).max(initial=0.0)), 1e-3) if scale is None else scale
    assert_allclose(ours, theirs, rtol=0, atol=rtol * size)


def dense(matrix: Matrix) -> np.ndarray:
    return np.array(matrix.row_major()).reshape(matrix.n, matrix.n)


def flat(records: Any) -> np.ndarray:
    return np.array(flatten(records))


def free(c: Case) -> list[Wrench]:
    return [NO_WRENCH] * c.n


def rtol_of_solving(M: np.ndarray) -> float:
    """How exactly two ways to solve M a = phi must agree: near a singular posture less so."""
    return 1e-10 + 1e-14 * float(np.linalg.cond(M))


def along(f: Callable[..., Any], *lines: tuple[list[float], Any]) -> np.ndarray:
    """d/ds f(x + s d, ...) at s = 0, by a complex step."""
    return (
        flat(
            f(
                *(
                    [x + 1j * H * d for x, d in zip(np.asarray(base), np.asarray(to), strict=True)]
                    for base, to in lines
                )
            )
        ).imag
        / H
    )


def masks(c: Case, b: int) -> tuple[list[float], list[float]]:
    target, support = np.zeros(c.n), np.zeros(c.n)
    target[c.skeleton.last[b]] = 1.0
    support[c.skeleton.support(b)] = 1.0
    return target.tolist(), support.tolist()


def world_wrenches(c: Case, seed: int) -> tuple[list[Wrench], dict[int, np.ndarray]]:
    """Random wrenches on all bodies: per link, and [n; f] per body."""
    rng = np.random.default_rng(seed)
    per_link, per_body = free(c), {}
    for b, k in enumerate(c.skeleton.last):
        per_body[b] = rng.normal(size=6)
        per_link[k] = Wrench(Vec3(*per_body[b][:3].tolist()), Vec3(*per_body[b][3:].tolist()))
    return per_link, per_body


# ---- Pinocchio ----


@pytest.mark.parametrize("seed", SEEDS)
def test_dynamics_agree_with_pinocchio(seed: int) -> None:
    c = case(seed)
    m, d = c.peer, c.peer.createData()
    q, v, a = (np.array(x) for x in (c.q, c.v, c.a))
    tau = pin.rnea(m, d, q, v, a)
    g = pin.computeGeneralizedGravity(m, d, q)
    h = pin.nonLinearEffects(m, d, q, v)
    if c.depth_first:  # what these two of Pinocchio need
        upper = np.triu(pin.crba(m, d, q))
        M = upper + np.triu(upper, 1).T
        C = pin.computeCoriolisMatrix(m, d, q, v)
        close(dense(coriolis_matrix(c.tree, c.q, c.v)), C)
    else:
        M = np.array([pin.rnea(m, d, q, 0 * v, unit) - g for unit in np.eye(c.n)])
    close(inverse_dynamics(c.tree, c.q, c.v, c.a, free(c)), tau)
    close(dense(mass_matrix(c.tree, c.q)), M)
    close(bias(c.tree, c.q, c.v), h)
    close(gravity_forces(c.tree, c.q), g)
    close(dense(coriolis_matrix(c.tree, c.q, c.v)) @ v, h - g, scale=np.abs(h).max())
    a_peer = pin.aba(m, d, q, v, tau)
    close(forward_dynamics(c.tree, c.q, c.v, tau.tolist(), free(c)), a_peer, rtol_of_solving(M))


@pytest.mark.parametrize("seed", SEEDS)
def test_sums_over_the_robot_agree_with_pinocchio(seed: int) -> None:
    c = case(seed)
    m, d = c.peer, c.peer.createData()
    q, v = np.array(c.q), np.array(c.v)
    kinetic, potential = energy(c.tree, c.q, c.v)
    assert kinetic == pytest.approx(pin.computeKineticEnergy(m, d, q, v), rel=1e-10)
    assert potential == pytest.approx(
        pin.computePotentialEnergy(m, d, q), rel=1e-10, abs=1e-10 * sum(b.mass for b in c.bodies)
    )
    close(flat(center_of_mass(c.tree, c.q)), pin.centerOfMass(m, d, q))
    h = pin.computeCentroidalMomentum(m, d, q, v)
    linear, angular = momentum(c.tree, c.q, c.v)
    close(flat(linear), h.linear)
    close(flat(angular), h.angular, scale=max(np.abs(h.angular).max(), np.abs(h.linear).max()))


@pytest.mark.parametrize("seed", SEEDS)
def test_kinematics_agree_with_pinocchio(seed: int) -> None:
    c = case(seed)
    m = c.peer.copy()
    b = len(c.bodies) - 1 - seed % len(c.bodies)
    point = np.random.default_rng(seed).normal(size=3)
    carrier = m.frames[m.getFrameId(c.bodies[b].name)]
    tip = m.addFrame(
        pin.Frame(
            "tip",
            carrier.parentJoint,
            0,
            carrier.placement * pin.SE3(np.eye(3), point),
            pin.FrameType.OP_FRAME,
        )
    )
    d = m.createData()
    q, v = np.array(c.q), np.array(c.v)
    pin.forwardKinematics(m, d, q, v, 0 * v)
    pin.updateFramePlacements(m, d)

    found = body_poses(c.tree, c.q)
    for body, k in zip(c.bodies, c.skeleton.last, strict=True):
        pose = d.oMf[m.getFrameId(body.name)]
        close(flat(found[k].R), pose.rotation.ravel())
        close(flat(found[k].r), pose.translation)

    target, support = masks(c, b)
    at = Vec3(*point.tolist())
    J = np.array([flat(column) for column in jacobian(c.tree, c.q, target, support, at)]).T
    close(J, pin.computeFrameJacobian(m, d, q, tip, pin.LOCAL_WORLD_ALIGNED)[[3, 4, 5, 0, 1, 2]])
    pin.forwardKinematics(m, d, q, v, 0 * v)
    rate = pin.getFrameClassicalAcceleration(m, d, tip, pin.LOCAL_WORLD_ALIGNED)
    close(flat(jacobian_rate(c.tree, c.q, c.v, target, at)), np.r_[rate.angular, rate.linear])


@pytest.mark.parametrize("seed", SEEDS)
def test_wrenches_and_reactions_agree_with_pinocchio(seed: int) -> None:
    c = case(seed)
    m, d = c.peer, c.peer.createData()
    q, v, a = (np.array(x) for x in (c.q, c.v, c.a))
    per_link, per_body = world_wrenches(c, seed)
    pin.framesForwardKinematics(m, d, q)
    there = {
        b: pin.SE3(np.eye(3), d.oMf[m.getFrameId(body.name)].translation)
        for b, body in enumerate(c.bodies)
    }
    external = [pin.Force.Zero() for _ in range(m.njoints)]
    for b, k in enumerate(c.skeleton.last):
        external[k + 1] = d.oMi[k + 1].actInv(
            there[b].act(pin.Force(per_body[b][3:], per_body[b][:3]))
        )
    tau = pin.rnea(m, d, q, v, a, external)
    close(inverse_dynamics_wrenches(c.tree, c.q, c.v, c.a, per_link), tau)
    found = reactions(c.tree, c.q, c.v, c.a, per_link)
    for b, k in enumerate(c.skeleton.last):
        w = there[b].actInv(d.oMi[k + 1].act(d.f[k + 1]))
        close(flat(found[k]), np.r_[w.angular, w.linear])
    a_peer = pin.aba(m, d, q, v, tau, external)
    rtol = rtol_of_solving(dense(mass_matrix(c.tree, c.q)))
    close(forward_dynamics_wrenches(c.tree, c.q, c.v, tau.tolist(), per_link), a_peer, rtol)


# ---- identities ----


@pytest.mark.parametrize("seed", SEEDS)
def test_forward_dynamics_undoes_inverse_dynamics(seed: int) -> None:
    c = case(seed)
    tau = inverse_dynamics(c.tree, c.q, c.v, c.a, free(c))
    M = dense(mass_matrix(c.tree, c.q))
    a = forward_dynamics(c.tree, c.q, c.v, tau, free(c))
    close(a, c.a, rtol_of_solving(M))
    close(M @ a + bias(c.tree, c.q, c.v), tau)


@pytest.mark.parametrize("seed", SEEDS)
def test_mass_matrix_by_unit_accelerations(seed: int) -> None:
    c = case(seed)
    M = dense(mass_matrix(c.tree, c.q))
    still, g = [0.0] * c.n, np.array(gravity_forces(c.tree, c.q))
    for k in range(0, c.n, max(1, c.n // 6)):
        unit = np.eye(c.n)[k].tolist()
        close(
            np.array(inverse_dynamics(c.tree, c.q, still, unit, free(c))) - g,
            M[:, k],
            scale=np.abs(M).max() + np.abs(g).max(),
        )
    v = np.array(c.v)
    assert energy(c.tree, c.q, c.v)[0] == pytest.approx(0.5 * v @ M @ v, rel=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_factors(seed: int) -> None:
    c = case(seed)
    M = dense(mass_matrix(c.tree, c.q))
    (upper, D), (upper_inverse, D_inverse) = udu(c.tree, c.q), udu_inverse(c.tree, c.q)
    U, V, one = dense(upper), dense(upper_inverse), np.eye(c.n)
    assert (np.tril(U, -1) == 0).all()
    assert (np.diag(U) == 1).all()
    assert min(D) > 0
    close(U * D @ U.T, M)
    close(U @ V, one, scale=np.abs(U).max() * np.abs(V).max())
    close(np.array(D) * D_inverse, np.ones(c.n))
    W = dense(mass_matrix_inverse(c.tree, c.q))
    assert (W == W.T).all()
    close(W @ M, one, rtol_of_solving(M))


@pytest.mark.parametrize("seed", SEEDS)
def test_coriolis_matrix(seed: int) -> None:
    c = case(seed)
    """C v is the velocity's part of the bias, dI/dt - 2 C is skew-symmetric, and C(u) v = C(v) u: C
    is of Christoffel symbols.
    """
    C, v = dense(coriolis_matrix(c.tree, c.q, c.v)), np.array(c.v)
    h, g = np.array(bias(c.tree, c.q, c.v)), np.array(gravity_forces(c.tree, c.q))
    close(C @ v + g, h)
    rate = along(lambda q: mass_matrix(c.tree, q).row_major(), (c.q, v)).reshape(c.n, c.n)
    close(rate, C + C.T, scale=np.abs(C).max() + 1e-3)
    u = np.arange(c.n) / c.n
    close(
        dense(coriolis_matrix(c.tree, c.q, u.tolist())) @ v,
        C @ u,
        scale=np.abs(C).max() * np.abs(v).max() + 1e-3,
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_rates(seed: int) -> None:
    """Power balance; momentum; gravity forces from the potential; the Jacobian and its rate from
    positions.
    """
    c = case(seed)
    tree, v = c.tree, np.array(c.v)
    tau = np.array(inverse_dynamics(tree, c.q, c.v, c.a, free(c)))
    kinetic, potential = along(lambda q, v: energy(tree, q, v), (c.q, v), (c.v, c.a))
    assert kinetic + potential == pytest.approx(
        v @ tau, rel=1e-10, abs=1e-10 * np.abs(v) @ np.abs(tau)
    )
    assert potential == pytest.approx(
        v @ gravity_forces(tree, c.q), rel=1e-10, abs=1e-10 * abs(kinetic)
    )
    mass = sum(body.mass for body in c.bodies)
    linear = flat(momentum(tree, c.q, c.v)[0])
    close(mass * along(lambda q: center_of_mass(tree, q), (c.q, v)), linear)

    b = len(c.bodies) - 1
    target, support = masks(c, b)
    at = Vec3(0.3, -0.2, 0.5)
    J = np.array([flat(column) for column in jacobian(tree, c.q, target, support, at)]).T
    place = along(lambda q: body_poses(tree, q)[c.skeleton.last[b]].point(at), (c.q, v))
    close(J[3:] @ v, place)
    J_rate = along(lambda q: jacobian(tree, q, target, support, at), (c.q, v)).reshape(c.n, 6).T
    close(flat(jacobian_rate(tree, c.q, c.v, target, at)), J_rate @ v)


@pytest.mark.parametrize("seed", SEEDS[::4])
def test_momentum_balance(seed: int) -> None:
    """The reactions on the base and gravity are the rate of momentum."""
    c = case(seed)
    mass = sum(body.mass for body in c.bodies)
    linear = along(lambda q, v: momentum(c.tree, q, v)[0], (c.q, c.v), (c.v, c.a))
    angular = along(lambda q, v: momentum(c.tree, q, v)[1], (c.q, c.v), (c.v, c.a))
    w = reactions(c.tree, c.q, c.v, c.a, free(c))
    pose, com = body_poses(c.tree, c.q), flat(center_of_mass(c.tree, c.q))
    ground = [k for k, parent in enumerate(c.tree.parents) if parent < 0]
    close(sum(flat(w[k].f) for k in ground) + mass * c.gravity, linear)
    close(
        sum(flat(w[k].n) + np.cross(flat(pose[k].r) - com, flat(w[k].f)) for k in ground), angular
    )


# ---- other scalars ----

ANSWERS: dict[str, Callable[..., Any]] = {
    "inverse_dynamics": lambda t, q, v, a: inverse_dynamics(t, q, v, a, [NO_WRENCH] * len(q)),
    "forward_dynamics": lambda t, q, v, a: forward_dynamics(t, q, v, a, [NO_WRENCH] * len(q)),
    "bias": lambda t, q, v, a: bias(t, q, v),
    "gravity_forces": lambda t, q, v, a: gravity_forces(t, q),
    "mass_matrix": lambda t, q, v, a: mass_matrix(t, q).row_major(),
    "mass_matrix_inverse": lambda t, q, v, a: mass_matrix_inverse(t, q).row_major(),
    "udu": lambda t, q, v, a: [udu(t, q)[0].row_major(), udu(t, q)[1]],
    "udu_inverse": lambda t, q, v, a: [udu_inverse(t, q)[0].row_major(), udu_inverse(t, q)[1]],
    "coriolis_matrix": lambda t, q, v, a: coriolis_matrix(t, q, v).row_major(),
    "body_poses": lambda t, q, v, a: body_poses(t, q),
    "jacobian": lambda t, q, v, a: jacobian(
        t, q, [0.0] * (len(q) - 1) + [1.0], [1.0] * len(q), Vec3(0.1, 0.2, 0.3)
    ),
    "jacobian_rate": lambda t, q, v, a: jacobian_rate(
        t, q, v, [0.0] * (len(q) - 1) + [1.0], Vec3(0.1, 0.2, 0.3)
    ),
    "energy": lambda t, q, v, a: energy(t, q, v),
    "center_of_mass": lambda t, q, v, a: center_of_mass(t, q),
    "momentum": lambda t, q, v, a: momentum(t, q, v),
    "reactions": lambda t, q, v, a: reactions(t, q, v, a, [NO_WRENCH] * len(q)),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_arrays_are_scalars(answer: str) -> None:
    """A batch of states, one array per coordinate, gives state by state what floats give."""
    c, states = random_case(7, n_bodies=6), 5
    q, v, a = np.random.default_rng(3).normal(size=(3, c.n, states))
    batch = flatten(ANSWERS[answer](c.tree, list(q), list(v), list(a)))
    for s in range(states):
        one = flat(ANSWERS[answer](c.tree, q[:, s].tolist(), v[:, s].tolist(), a[:, s].tolist()))
        close([np.broadcast_to(x, states)[s] for x in batch], one, 1e-12)


@pytest.mark.parametrize("answer", ANSWERS)
def test_casadi_expressions_are_scalars(answer: str) -> None:
    c = random_case(11, n_bodies=4)
    q, v, a = (casadi.SX.sym(name, c.n) for name in "qva")
    rows = flatten(
        ANSWERS[answer](c.tree, casadi.vertsplit(q), casadi.vertsplit(v), casadi.vertsplit(a))
    )
    f = casadi.Function("f", [q, v, a], [casadi.vertcat(*rows)])
    close(np.array(f(c.q, c.v, c.a)).ravel(), flat(ANSWERS[answer](c.tree, c.q, c.v, c.a)), 1e-12)


def test_planar_2r_in_symbols() -> None:
    """The textbook's two-link arm: links of 2 m and 4 m with mass centres half-way, masses 3 and 5
    kg, moments 7 and 11 kg m^2.
    """
    l1, c1, c2, m1, m2, I1, I2, g = 2, 1, 2, 3, 5, 7, 11, 10

    def body(name: str, parent: int, at: float, mass: float, com: float, moment: float) -> Body:
        hinge = Joint(name, "revolute", Frame(position=np.array([at, 0.0, 0.0])))
        return Body(
            name, parent, hinge, mass, np.array([com, 0.0, 0.0]), np.diag([1.0, moment, moment])
        )

    tree, _ = tree_of(
        (body("upper", -1, 0.0, m1, c1, I1), body("lower", 0, l1, m2, c2, I2)),
        (0.0, -float(g), 0.0),
    )
    q1, q2, v1, v2, a1, a2 = sympy.symbols("q1 q2 v1 v2 a1 a2", real=True)
    q, v, a = [q1, q2], [v1, v2], sympy.Matrix([a1, a2])

    far = m2 * l1 * c2 * sympy.cos(q2)
    d = I2 + m2 * c2**2
    M = sympy.Matrix([[I1 + m1 * c1**2 + d + m2 * l1**2 + 2 * far, d + far], [d + far, d]])
    k = m2 * l1 * c2 * sympy.sin(q2)
    velocity = sympy.Matrix([-k * (2 * v1 * v2 + v2**2), k * v1**2])
    pull = g * sympy.Matrix(
        [
            (m1 * c1 + m2 * l1) * sympy.cos(q1) + m2 * c2 * sympy.cos(q1 + q2),
            m2 * c2 * sympy.cos(q1 + q2),
        ]
    )

    def same(ours: Any, theirs: Any) -> None:
        difference = sympy.Matrix(ours) - sympy.Matrix(theirs)
        assert sympy.simplify(sympy.nsimplify(difference.applyfunc(sympy.expand))) == sympy.zeros(
            *difference.shape
        )

    same(sympy.Matrix(2, 2, mass_matrix(tree, q).row_major()), M)
    same(gravity_forces(tree, q), pull)
    same(bias(tree, q, v), velocity + pull)
    same(
        sympy.Matrix(2, 2, coriolis_matrix(tree, q, v).row_major()),
        sympy.Matrix([[-k * v2, -k * (v1 + v2)], [k * v1, 0]]),
    )
    same(inverse_dynamics(tree, q, v, list(a), [NO_WRENCH] * 2), M * a + velocity + pull)
    kinetic, potential = energy(tree, q, v)
    same([kinetic], (sympy.Matrix([v]) * M * sympy.Matrix(v)) / 2)
    same([potential], [g * ((m1 * c1 + m2 * l1) * sympy.sin(q1) + m2 * c2 * sympy.sin(q1 + q2))])
    upper, D = udu(tree, q)
    U = sympy.Matrix(2, 2, upper.row_major())
    same(U * sympy.diag(*D) * U.T, M)
