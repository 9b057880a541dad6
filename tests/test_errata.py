"""Errors of the source documents: an equation as printed fails, its correction holds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, product

import numpy as np

import ramify as rf
from ramify.formulations import denoc_matrices, floating_denoc, mass_centre_matrices
from ramify.formulations.denoc_assembly import cross_tensor

Array = np.ndarray


def test_entries_of_the_convective_matrix() -> None:
    """Saha 1999 (29), i <= j: H~_{j+1,i} as printed is 0.85 N m off on the KUKA; H~_{j+1,j} is
    right.
    """
    m = rf.load("kuka_kr5")
    q, v = m.random(4)
    x, n = mass_centre_matrices(m, q, v), m.nv
    six = [slice(6 * i, 6 * i + 6) for i in range(n)]
    p = [x.N_d[six[i], i] for i in range(n)]
    turn = [np.kron(np.eye(2), cross_tensor(x.t[six[i]][:3])) for i in range(n)]
    composite = [x.M_tilde[s, s] for s in six]
    rates = [sum(x.M_dot[s, s] for s in six[i:]) for i in range(n)]

    def B(i: int, j: int) -> Array:
        return x.N_l[six[i], six[j]]

    def H(i: int, j: int) -> Array:  # (28)
        if i == n:
            return np.zeros((6, 6))
        B_dot = np.zeros((6, 6))
        B_dot[3:, :3] = cross_tensor(x.t[six[j]][3:] - x.t[six[i]][3:])
        beyond = B(i + 1, i).T @ H(i + 1, i) if i + 1 < n else 0.0
        return composite[i] @ B_dot + beyond

    def C(column: Callable[[int, int], int]) -> Array:
        out = np.zeros((n, n))
        for i, j in product(range(n), repeat=2):
            if i <= j:
                beyond = B(j + 1, i).T @ H(j + 1, column(i, j)) if j + 1 < n else 0.0
                block = B(j, i).T @ composite[j] @ turn[j] + beyond + rates[j]
            else:
                block = composite[i] @ B(i, j) @ turn[j] + H(i, j) + rates[i]
            out[i, j] = p[i] @ block @ p[j]
        return out

    forces = m.bias(q, v) - m.gravity_forces(q)
    np.testing.assert_allclose(C(lambda i, j: j) @ v, forces, atol=1e-12)
    assert 0.8 < np.abs(C(lambda i, j: i) @ v - forces).max() < 0.9


def test_signs_of_the_inverse_inertia_matrix() -> None:
    """Inverse (48): with squares on the diagonal and the signs of U^-1, the minus signs beside the
    diagonal must go; alpha'_13 of the example is that of U^-1 with the opposite sign.
    """
    m = rf.load("planar_3r")
    q = [0.3, 0.4, 0.5]
    x = mass_centre_matrices(m, q, np.zeros(3))
    right, d = m.mass_matrix_inverse(q), 1.0 / np.diag(x.D)
    V = np.linalg.inv(x.U)

    def inverse(a12: float, a13: float, a23: float, sign: float) -> Array:
        out = np.diag([d[0], d[0] * a12**2 + d[1], d[0] * a13**2 + d[1] * a23**2 + d[2]])
        out[0, 1] = out[1, 0] = sign * d[0] * a12
        out[0, 2] = out[2, 0] = sign * d[0] * a13
        out[1, 2] = out[2, 1] = d[0] * a12 * a13 + sign * d[1] * a23
        return out

    entries = V[0, 1], V[0, 2], V[1, 2]
    np.testing.assert_allclose(inverse(*entries, 1.0), right, atol=1e-12)
    assert np.abs(inverse(*entries, -1.0) - right).max() > 5.0
    a12, a13, a23 = x.U[0, 1], x.U[0, 2], x.U[1, 2]
    np.testing.assert_allclose(a13 - a12 * a23, -V[0, 2])  # the bracket of alpha'_13, completed


def test_where_the_wrench_of_a_link_enters() -> None:
    """Tables 7.2, 7.4: w* of a link on a joint of several axes belongs at the last axis, j = eps_k
    of (7.19); at the first one, r = 1, as printed, a rod on a spherical joint is off by rad/s^2.
    """
    b = rf.Builder("rod")
    b.link("rod", None, "spherical", mass=1.0, com=(0.1, 0.0, -0.5), inertia=(0.1, 0.12, 0.05))
    m = b.model()
    q, v = m.random(3)
    tau = np.array([0.3, -0.2, 0.1])
    d = denoc_matrices(m, q, v)
    last = slice(12, 18)
    p = [d.N_d[6 * j : 6 * j + 6, j] for j in range(3)]
    M, turn, E = d.M[last, last], d.Omega[last, last], d.E[last, last]
    lifted = np.concatenate([np.zeros(3), -np.asarray(m.gravity)])
    w = M @ (d.N_dot[last] @ v + lifted) + turn @ M @ E @ d.t[last]

    def accelerations(axis: int) -> Array:
        """Table 7.2 for one link on a fixed base, w* entering at an axis of its joint."""
        inertia, eta = M.copy(), np.zeros(6)
        gains, known = [np.zeros(6)] * 3, np.zeros(3)
        for j in (2, 1, 0):
            eta = eta + w if j == axis else eta
            column = inertia @ p[j]
            pivot = p[j] @ column
            gains[j], left = column / pivot, tau[j] - p[j] @ eta
            known[j] = left / pivot
            inertia = inertia - np.outer(column, gains[j])
            eta = eta + gains[j] * left
        out, mu = np.zeros(3), np.zeros(6)
        for j in range(3):
            out[j] = known[j] - gains[j] @ mu
            mu = mu + p[j] * out[j]
        return out

    right = m.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(accelerations(2), right, atol=1e-10)
    assert np.abs(accelerations(0) - right).max() > 1.0


def test_potential_energy_takes_a_minus() -> None:
    """(C.1): with g = [0, 0, -9.81] the sum of m g'c falls where the robot rises."""
    m = rf.load("kuka_kr5")
    r = rf.simulate(m, 0.3, rtol=1e-10)
    as_printed = m.mass * m.center_of_mass(r.q) @ np.asarray(m.gravity)
    kinetic = r.energy.kinetic
    assert np.ptp(kinetic - as_printed) < 1e-6
    assert np.ptp(kinetic + as_printed) > 10.0


def test_three_quarter_turns() -> None:
    """3.3.3.1: Q_a Q_b Q_a = Q_b Q_a Q_b fails for 24 of the 48 choices of axes and signs; it holds
    where the outer two turns have the same sign, as in (3.9).
    """
    axes = np.eye(3)

    def turn(axis: int, sign: int) -> Array:
        X = cross_tensor(axes[axis])
        return np.eye(3) + sign * X + X @ X

    holds = {}
    for a, b in permutations(range(3), 2):
        for s, t, u in product((1, -1), repeat=3):
            one = turn(a, s) @ turn(b, t) @ turn(a, u)
            other = turn(b, s) @ turn(a, t) @ turn(b, u)
            holds[a, b, s, t, u] = np.array_equal(one, other)
    assert sum(holds.values()) == 24
    assert all(same == (s == u) for (_, _, s, _, u), same in holds.items())


def test_the_base_carries_its_modules() -> None:
    """7.1.1 step 3, (7.10): the base accelerates by -I00^-1 h~0, the wrenches of all links; with
    h0 of the trunk alone it does not.
    """
    m = rf.load("planar_biped")
    q, v = m.random(2)
    wanted = np.linspace(0.5, -0.5, m.nv - 6)
    right = m.hybrid_dynamics(q, v, wanted).acceleration
    known = np.concatenate([np.zeros(6), wanted])
    I = m.mass_matrix(q)[:6, :6]  # noqa: E741 - the book's symbol
    whole = m.inverse_dynamics(q, v, known)[:6]
    np.testing.assert_allclose(-np.linalg.solve(I, whole), right, atol=1e-9)
    f = floating_denoc(m, q, v)
    base = slice(0, 6)
    lifted = np.concatenate([np.zeros(3), -np.asarray(m.gravity)])
    rate = f.N_dot[base] @ v + lifted
    w = f.M[base, base] @ rate + f.Omega[base, base] @ f.M[base, base] @ f.E[base, base] @ f.t[base]
    alone = f.N[base, base].T @ w
    assert np.abs(-np.linalg.solve(I, alone) - right).max() > 1.0


def test_speeds_of_the_designed_walks() -> None:
    """Section 7.3 speaks of 0.4 m/s; a stride of 0.3 m in 1 s is 0.3 m/s. The other two speeds that
    chapter 7 prints are their stride over their time.
    """
    speeds = {"spatial_biped_walk": 0.6, "quadruped_trot": 0.3, "hexapod_tripod": 0.8}
    for name, speed in speeds.items():
        gait = rf.scenario(name).motion
        assert isinstance(gait, rf.motion.Gait)
        T = gait.pendulum.period
        x = gait.at(np.array([0.0, T])).q[:, 0]
        np.testing.assert_allclose((x[1] - x[0]) / T, speed, rtol=1e-9)


def test_works_count_negative_in_the_balance() -> None:
    """(C.2), (C.3): with the signs of the print the sum of a walk is not constant."""
    r = rf.scenario("quadruped_trot").run(t_end=0.3)
    assert r.contacts is not None
    energy, work = r.energy.total, r.work.actuator
    ground = -(r.contacts.stored + r.contacts.dissipated)  # the integral of f'v: what the feet get
    kept, printed = energy - work - ground, energy + work + ground
    assert np.ptp(kept) < 1e-5
    assert np.ptp(printed) > 1.0


def test_the_planar_biped_stays_in_its_plane() -> None:
    """7.2.1: x, z and phi of the trunk vary, y and the other angles do not."""
    r = rf.scenario("planar_biped_walk").run(t_end=0.3)
    varies = np.ptp(r.q[:, :6], axis=0) > 1e-3
    names = [name.split(".")[-1] for name in r.model.coordinates[:6]]
    assert varies[[0, 2, 3]].all(), names
    assert np.abs(r.q[:, [1, 4, 5]]).max() < 1e-9


def test_loops_of_the_3_rrr() -> None:
    """(8.15): two loops, each over the platform's leg and one other."""
    m = rf.load("three_rrr")
    J = m.constraints(m.assemble().q).J
    assert J.shape == (4, 7)
    legs = {name: [i for i, x in enumerate(m.coordinates) if x.endswith(name)] for name in "123"}
    first, second = J[:2], J[2:]
    assert first[:, legs["2"]].any(axis=0).all()
    assert not first[:, legs["3"]].any()
    assert second[:, legs["3"]].any(axis=0).all()
    assert not second[:, legs["2"]].any()
