"""Closed forms and published figures of the source documents, met by the compiled kernels."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pinocchio as pin
import pytest
from numpy.testing import assert_allclose
from random_trees import to_pinocchio
from redysim_data import published

import ramify as rf

TIERS = ["numpy", "rolled", "unrolled"]


def planar_3r_inertia(q: np.ndarray) -> np.ndarray:
    """Eqs. (43a)-(43f) of Saha's paper on the analytical inverse, for three links of 1 m and 1 kg."""
    c2, c3, c23 = np.cos(q[1]), np.cos(q[2]), np.cos(q[1] + q[2])
    i11 = 1 / 3 + (1 + 1 / 3 + c2) + (1 + 1 + 1 / 3 + 2 * c2 + c23 + c3)
    i21 = (1 / 3 + c2 / 2) + (c2 + 1 + c3 + c23 / 2 + 1 / 3)
    i22 = 1 / 3 + (1 + 1 / 3 + c3)
    i31 = c23 / 2 + c3 / 2 + 1 / 3
    i32 = c3 / 2 + 1 / 3
    return np.array([[i11, i21, i31], [i21, i22, i32], [i31, i32, 1 / 3]])


def planar_3r_factors(M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """U and D of eq. (45), written out with the entries of the inertia matrix."""
    m3 = M[2, 2]
    a13, a23 = M[0, 2] / m3, M[1, 2] / m3
    m2 = M[1, 1] - M[1, 2] ** 2 / m3
    a12 = (M[0, 1] - M[0, 2] * M[1, 2] / m3) / m2
    m1 = M[0, 0] - M[0, 2] ** 2 / m3 - a12**2 * m2
    return np.array([[1.0, a12, a13], [0.0, 1.0, a23], [0.0, 0.0, 1.0]]), np.diag([m1, m2, m3])


@pytest.mark.parametrize("tier", TIERS)
def test_planar_3r_meets_its_closed_forms(tier: str) -> None:
    m = rf.load("planar_3r")
    for q in np.random.default_rng(0).uniform(-np.pi, np.pi, size=(50, 3)):
        M = planar_3r_inertia(q)
        U, D = planar_3r_factors(M)
        assert_allclose(m.kernel("mass_matrix", tier)(q), M, rtol=0, atol=1e-12)
        found_u, found_d = m.kernel("udu", tier)(q)
        assert_allclose(found_u, U, rtol=0, atol=1e-12)
        assert_allclose(found_d, D, rtol=0, atol=1e-12)
        inverse_u, inverse_d = m.kernel("udu_inverse", tier)(q)
        assert_allclose(inverse_u, np.linalg.inv(U), rtol=0, atol=1e-12)
        assert_allclose(np.diag(inverse_d), 1.0 / np.diag(D), rtol=1e-12)
        assert_allclose(
            m.kernel("mass_matrix_inverse", tier)(q),
            np.linalg.inv(M),
            rtol=0,
            atol=1e-12 * np.abs(np.linalg.inv(M)).max(),
        )


def block_pattern(m: rf.Model, matrix: np.ndarray) -> np.ndarray:
    """Which blocks between modules are not zero."""
    of_body = {b: module.index for module in m.modules for b in module.bodies}
    index = np.array([of_body[b] for b, body in enumerate(m.bodies) for _ in range(body.joint.dof)])
    n = len(m.modules)
    return np.array(
        [
            [np.abs(matrix[np.ix_(index == i, index == j)]).max() > 0.0 for j in range(n)]
            for i in range(n)
        ]
    )


PATTERN = np.array([[1, 1, 1], [0, 1, 0], [0, 0, 1]], dtype=bool)
"""U of eqs. (5.49) and (5.56): two modules that both start on the first."""


@pytest.mark.parametrize("name", ["gripper", "planar_biped", "spatial_biped"])
def test_module_level_factors_have_the_published_pattern(name: str) -> None:
    m = rf.load(name)
    assert len(m.modules) == 3
    q, _ = m.random(1)
    M = m.mass_matrix(q)
    U, D = m.udu(q, level="module")
    scale = np.abs(M).max()
    assert_allclose(U @ D @ U.T, M, rtol=0, atol=1e-11 * scale)
    assert (block_pattern(m, U) == PATTERN).all()
    assert (block_pattern(m, D) == np.eye(3, dtype=bool)).all()
    size = [sum(m.bodies[b].joint.dof for b in module.bodies) for module in m.modules]
    start = np.concatenate([[0], np.cumsum(size)])
    for a, b in pairwise(start):  # U has unit blocks, D full symmetric ones
        assert_allclose(U[a:b, a:b], np.eye(b - a), rtol=0, atol=1e-10)
        assert_allclose(D[a:b, a:b], D[a:b, a:b].T, rtol=0, atol=1e-10 * scale)
    V, E = m.udu_inverse(q, level="module")
    assert (block_pattern(m, V) == PATTERN).all()
    assert_allclose(V @ U, np.eye(m.nv), rtol=0, atol=1e-8)
    assert_allclose(E @ D, np.eye(m.nv), rtol=0, atol=1e-7)


def test_module_level_elimination_is_the_dense_one() -> None:
    """The blocks against block reverse Gaussian elimination of the dense matrix (eqs. 5.22-5.33)."""
    m = rf.load("gripper")
    q, _ = m.random(3)
    M = m.mass_matrix(q)
    blocks = [slice(0, 1), slice(1, 3), slice(3, 4)]
    rest, U, D = M.copy(), np.eye(4), np.zeros((4, 4))
    for b in reversed(blocks):
        D[b, b] = rest[b, b]
        U[:, b] = rest[:, b] @ np.linalg.inv(rest[b, b])
        rest = rest - U[:, b] @ D[b, b] @ U[:, b].T
    found = m.udu(q, level="module")
    assert_allclose(found.U, U, rtol=0, atol=1e-12)
    assert_allclose(found.D, D, rtol=0, atol=1e-13)


@pytest.mark.parametrize("tier", TIERS)
def test_kuka_meets_redysims_published_torques(tier: str) -> None:
    motion, torques = (published("kuka_kr5_invdyn", table) for table in ("statevar", "tor"))
    q, v, a = motion[:, :6], motion[:, 6:12], motion[:, 12:18]
    assert len(torques) == 11
    found = rf.load("kuka_kr5").kernel("inverse_dynamics", tier)(q, v, a)
    assert_allclose(found, torques, rtol=0, atol=1e-4)


def test_a_chain_of_two_hundred_links_agrees_with_pinocchio() -> None:
    m = rf.load("chain", n=200)
    q, v, tau = 0.1 * np.random.default_rng(0).normal(size=(3, 200))
    peer = to_pinocchio(m)  # a thousand links overrun its stack
    reference = pin.aba(peer, peer.createData(), q, v, tau)
    assert_allclose(
        m.forward_dynamics(q, v, tau), reference, rtol=0, atol=1e-11 * np.abs(reference).max()
    )


def test_a_chain_of_a_thousand_links() -> None:
    """Loops answer; I a + h = tau and I = U D U' to rounding."""
    m = rf.load("chain", n=1000)
    q, v, tau = 0.1 * np.random.default_rng(0).normal(size=(3, 1000))
    a = m.forward_dynamics(q, v, tau)
    assert m.kernel("forward_dynamics").tier == "rolled"
    M = m.mass_matrix(q)
    residual = M @ a + m.bias(q, v) - tau
    assert np.abs(residual).max() < 1e-13 * np.abs(M).max() * np.abs(a).max()
    U, D = m.kernel("udu")(q)
    assert_allclose(U @ D @ U.T, M, rtol=0, atol=1e-13 * np.abs(M).max())
    assert (M == M.T).all()


def test_pendulum_in_one_line() -> None:
    """m l^2 a + m g l sin(q) = tau for a point mass that hangs below its joint."""
    pendulum = rf.from_dh(
        [(0.0, np.pi / 2, 0.0, -np.pi / 2)], [2.0], [(0.7, 0.0, 0.0)], [(0.0, 0.0, 0.0)]
    )
    q, v, a = 0.3, 1.1, -0.4
    for tier in TIERS:
        tau = pendulum.kernel("inverse_dynamics", tier)(np.array([q]), np.array([v]), np.array([a]))
        assert_allclose(tau, [2.0 * 0.7**2 * a + 2.0 * 9.81 * 0.7 * np.sin(q)], rtol=1e-14)
