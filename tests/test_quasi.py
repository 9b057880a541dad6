"""The equations of motion in quasi-coordinates: agreement with the recursions, the paper's example,
what the coordinates cost.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_trees import random_bodies
from scipy.integrate import solve_ivp

import ramify as rf
from ramify.api.model import Model
from ramify.core.spatial import Mat3, Vec3, Wrench
from ramify.formulations import general_count, published_count, quasi
from ramify.formulations.quasi_chain import joint_motions, quasi_chain_of
from ramify.model.answers import Attachment
from ramify.model.frame import Frame
from ramify.motion.line import PlanarLine

TURNING = (
    "revolute",
    "universal",
    "spherical",
    "ball",
)  # the paper's joints of one, two and three freedoms
SLIDING = ("prismatic", "cylindrical", "helical", "planar")
BASES = ("free", "free_euler", "prismatic", "planar")


def serial_robot(seed: int) -> tuple[Model, Any, Any, Any]:
    """A random chain of 1-6 bodies: turning joints only, a moving base under such, or any joints;
    and a state.
    """
    rng = np.random.default_rng(seed)
    kinds = [
        str(rng.choice(TURNING if seed % 3 else TURNING + SLIDING))
        for _ in range(int(rng.integers(1, 7)))
    ]
    if seed % 3 == 1:
        kinds[0] = BASES[seed % 4]
    bodies = []
    for i, kind in enumerate(kinds):
        body = random_bodies(rng, 1, kinds=(kind,))[0]
        bodies.append(
            replace(
                body, name=f"body{i}", parent=i - 1, joint=replace(body.joint, name=f"joint{i}")
            )
        )
    attached = {body.name: Attachment(i, Frame()) for i, body in enumerate(bodies)}
    m = Model("chain", tuple(bodies), tuple(6.0 * rng.normal(size=3)), attached)
    return m, *m.random(seed), rng.normal(size=m.nv)


def error(got: Any, right: Any) -> float:
    """Largest difference, relative to the largest entry."""
    return float(np.abs(np.array(got, dtype=np.float64) - right).max() / np.abs(right).max())


@pytest.mark.parametrize("block", range(4))
def test_serial_robots(block: int) -> None:
    """120 random chains with joints of one, two and three freedoms: matrix, bias, control in both
    coordinates, simulation.
    """
    well_conditioned = 0
    for seed in range(30 * block, 30 * block + 30):
        m, q, v, a = serial_robot(seed)
        tau = m.inverse_dynamics(q, v, a)
        assert error(quasi.mass_matrix(m, q), m.mass_matrix(q)) < 1e-11
        assert error(quasi.bias_forces(m, q, v), m.bias(q, v)) < 1e-11
        assert error(quasi.inverse_dynamics(m, q, v, a), tau) < 1e-11
        assert error(quasi.inverse_dynamics(m, q, v, a, "relative"), tau) < 1e-11
        found = np.array(quasi.forward_dynamics(m, q, v, tau), dtype=np.float64)
        assert error(m.inverse_dynamics(q, v, found), tau) < 1e-11
        if (
            np.linalg.cond(m.mass_matrix(q)) < 1e4
        ):  # near singular Euler angles the answer itself is ill-conditioned
            assert error(found, a) < 1e-11
            well_conditioned += 1
    assert well_conditioned >= 26


def _matrix(blocks: list[list[Mat3]]) -> Any:
    def array(b: Mat3) -> Any:
        return np.array([[u.x, u.y, u.z] for u in b.rows], dtype=np.float64)

    return np.block([[array(b) for b in row] for row in blocks])


def test_the_matrices_of_the_paper() -> None:
    """A of (29) is symmetric and the linear part of (22); omega = G Omega (31); M_c = D' G' A G D
    (37).
    """
    for seed in (1, 2, 3, 7):
        m, q, v, a = serial_robot(seed)
        chain = quasi_chain_of(m)
        still = [0.0] * m.nv
        joints = joint_motions(chain, q, still, a)
        rates = quasi.inertial_rates(joints)
        A = _matrix(quasi.inertia_blocks(chain, joints, rates))
        np.testing.assert_allclose(A, A.T, atol=1e-13)
        n = len(joints)
        x = np.array(
            [[u.x, u.y, u.z] for u in [*(j.du for j in joints), *(rate.dw for rate in rates)]],
            dtype=np.float64,
        ).ravel()
        g, F = quasi.generalized_equations(
            replace(chain, gravity=Vec3(0.0, 0.0, 0.0)), joints, rates
        )
        carriers = [np.eye(3), *(_matrix([[rate.C]]) for rate in rates)]
        moments = np.array([[u.x, u.y, u.z] for u in g], dtype=np.float64).ravel()
        forces = np.concatenate(
            [carriers[i].T @ np.array([F[i].x, F[i].y, F[i].z], dtype=np.float64) for i in range(n)]
        )
        np.testing.assert_allclose(A @ x, np.concatenate([forces, moments]), atol=1e-11)
        moving = joint_motions(chain, q, v, a)
        G = quasi.connectivity(moving)
        for one, other in zip(
            quasi.inertial_rates(moving), quasi.relative_rates(moving, G), strict=True
        ):
            for u, w in ((one.w, other.w), (one.dw, other.dw)):
                np.testing.assert_allclose([u.x, u.y, u.z], [w.x, w.y, w.z], atol=1e-11)


def test_external_forces() -> None:
    """(15), (16): a force at a point of a body."""
    m, q, v, a = serial_robot(5)
    point, force = np.array([0.1, -0.2, 0.3]), np.array([1.0, 2.0, -3.0])
    body = len(m.bodies) - 1
    pose = m.kinematics(q)
    R = (
        pose.rotation[body] @ m.bodies[body].joint.outlet.rotation.T
    )  # frame of the body at its joint
    origin = pose.position[body] - R @ m.bodies[body].joint.outlet.position
    world = {
        m.bodies[body].name: np.concatenate(
            [np.cross(R @ point + origin - pose.position[body], R @ force), R @ force]
        )
    }
    o = Vec3(0.0, 0.0, 0.0)
    applied = [Wrench(o, o)] * body + [Wrench(Vec3(*np.cross(point, force)), Vec3(*force))]
    tau = quasi.control(quasi_chain_of(m), q, v, a, applied=applied)
    assert error(tau, m.inverse_dynamics(q, v, a, wrenches=world)) < 1e-11
    assert error(quasi.simulation(quasi_chain_of(m), q, v, tau, applied=applied), a) < 1e-10


def test_example_of_the_paper() -> None:
    """Torques of a straight line of the tip, then those torques applied: the tip comes back onto
    the line, to 1e-6 m.
    """
    m = rf.with_gravity(rf.load("two_link"), (0.0, 0.0, 0.0))
    length, start, end = 0.915, np.array([0.305, 0.305]), np.array([0.915, 0.915])
    assert [body.mass for body in m.bodies] == [1.754, 1.754]
    assert np.linalg.norm(end - start) / 2.0 == pytest.approx(
        0.4313, abs=5e-5
    )  # cos t over [0, pi] would travel 2 m
    line = PlanarLine(start, end, (length, length))
    chain = quasi_chain_of(m)

    def torques(t: float) -> list[float]:
        return quasi.control(chain, *(list(map(float, x)) for x in line.text(t)))

    def slope(t: float, y: Any) -> list[float]:
        q, v = y[:2].tolist(), y[2:].tolist()
        return [*v, *quasi.simulation(chain, q, v, torques(min(t, math.pi)))]

    times = np.linspace(0.0, math.pi, 41)
    q0, v0, _ = line.text(0.0)
    run = solve_ivp(
        slope, (0.0, math.pi), np.concatenate([q0, v0]), "DOP853", times, rtol=1e-10, atol=1e-12
    )
    q1, q12 = run.y[0], run.y[0] + run.y[1]
    tip = length * np.column_stack([np.cos(q1) + np.cos(q12), np.sin(q1) + np.sin(q12)])
    right = start + np.outer((1.0 - np.cos(times)) / 2.0, end - start)
    assert np.abs(tip - right).max() < 1e-6
    # Torques in closed form: M(q2) a + C v of two slender links.
    k = 1.754 * length**2
    for t in (0.0, 0.7, 1.9, 3.0):
        (_, b), (w1, w2), (a1, a2) = line.text(t)
        M = k * np.array(
            [[5 / 3 + np.cos(b), 1 / 3 + np.cos(b) / 2], [1 / 3 + np.cos(b) / 2, 1 / 3]]
        )
        turning = k * np.sin(b) / 2 * np.array([-(2 * w1 + w2) * w2, w1 * w1])
        np.testing.assert_allclose(torques(t), M @ [a1, a2] + turning, atol=1e-12)


def test_torques_of_the_page() -> None:
    """The table of the page, to its last figure."""
    text = (
        Path(__file__).resolve().parent.parent / "docs" / "formulations" / "quasi.md"
    ).read_text(encoding="utf-8")
    chain = quasi_chain_of(rf.with_gravity(rf.load("two_link"), (0.0, 0.0, 0.0)))
    line = PlanarLine((0.305, 0.305), (0.915, 0.915), (0.915, 0.915))
    times = {"0": 0.0, "π/4": math.pi / 4, "π/2": math.pi / 2, "π": math.pi}
    for name, t in times.items():
        first, second = quasi.control(chain, *line.text(t))
        assert f"| {name} | {first:.4f} | {second:.4f} |".replace("-", "−") in text


@pytest.mark.parametrize("n", range(2, 9))
def test_what_the_coordinates_cost(n: int) -> None:
    """The formulas of the page; relative coordinates cost more, the more so the longer the chain,
    as the paper claims.
    """
    inertial, relative = general_count("quasi_inertial", n), general_count("quasi_relative", n)
    assert (inertial.mul, inertial.add) == (153 * n - 137, 121 * n - 121)
    assert (2 * relative.mul, relative.add) == (
        53 * n * n + 123 * n - 112,
        21 * n * n + 48 * n - 55,
    )
    assert inertial.mul < relative.mul
    assert inertial.add < relative.add
    assert inertial.sincos == relative.sincos == n
    assert published_count("quasi_relative", n) is None


def test_any_scalar() -> None:
    """SymPy's symbols give the textbook's two-link arm; columns of arrays a batch."""
    import sympy as sp

    arm = rf.from_dh(
        [(0.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)],
        [1, 1],
        [(0.5, 0, 0)] * 2,
        [(0, 1 / 12, 1 / 12)] * 2,
    )
    x, y = sp.symbols("x y")
    M = quasi.mass_matrix(arm, [x, y])
    assert (
        sp.simplify(
            sp.nsimplify(M[0][0], rational=True, tolerance=1e-12) - (sp.Rational(5, 3) + sp.cos(y))
        )
        == 0
    )
    m, _, _, _ = serial_robot(2)
    rng = np.random.default_rng(0)
    states = [m.random(seed) for seed in range(4)]
    q, v = (np.array([state[i] for state in states]) for i in (0, 1))
    tau = rng.normal(size=(4, m.nv))
    got = np.array(quasi.forward_dynamics(m, list(q.T), list(v.T), list(tau.T))).T
    np.testing.assert_allclose(got, m.forward_dynamics(q, v, tau), rtol=1e-9)


def test_what_is_refused() -> None:
    gripper = rf.load("gripper")
    with pytest.raises(rf.ModelError, match="branches at"):
        quasi.mass_matrix(gripper, gripper.neutral())
    arm = rf.load("stanford_arm")
    with pytest.raises(rf.StateError, match=r"a has 5 entries; .* takes 6"):
        quasi.inverse_dynamics(arm, [0.0] * 6, [0.0] * 6, [0.0] * 5)
    with pytest.raises(rf.RamifyError, match="'inertial' or 'relative'"):
        quasi.inverse_dynamics(arm, [0.0] * 6, [0.0] * 6, [0.0] * 6, "absolute")  # type: ignore[arg-type]
