"""IkTask of inverse kinematics, and the velocities that follow them within limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from packages import package
from scipy.optimize import lsq_linear

import ramify as rf
from ramify.motion.differential import _within


@pytest.fixture(scope="module")
def panda() -> rf.Model:
    return rf.load(package("example-robot-data") / "panda_description" / "urdf" / "panda.urdf")


ARM = [f"panda_joint{i}" for i in range(1, 8)]


def reachable(m: rf.Model, count: int) -> np.ndarray[Any, Any]:
    """Random postures of the arm within its limits."""
    q = np.tile(m.neutral(), (count, 1))
    limits = np.array([joint.limits[0] for joint in m.joints[:7]])
    q[:, :7] = np.random.default_rng(5).uniform(limits[:, 0], limits[:, 1], size=(count, 7))
    return q


def test_reachable_poses_are_solved_within_limits(panda: rf.Model) -> None:
    q = reachable(panda, 200)
    wanted = panda.pose(q, "panda_link7")
    target = rf.motion.Target("panda_link7", wanted.position, wanted.rotation)
    found = rf.ik(panda, target, joints=ARM, strict=False)
    assert found.converged.mean() >= 0.995
    limits = np.array([joint.limits[0] for joint in panda.joints[:7]])
    assert (found.q[:, :7] >= limits[:, 0]).all()
    assert (found.q[:, :7] <= limits[:, 1]).all()
    at = panda.pose(found.q[found.converged], "panda_link7")
    np.testing.assert_allclose(at.position, wanted.position[found.converged], atol=1e-9)
    np.testing.assert_allclose(at.rotation, wanted.rotation[found.converged], atol=1e-9)


def test_a_posture_chooses_among_answers(panda: rf.Model) -> None:
    near = np.array([0.3, -0.4, 0.2, -1.8, 0.1, 1.6, 0.5, 0.02, 0.02])
    place = panda.pose(near, "panda_link7").position + np.array([0.05, 0.0, 0.02])
    target = rf.motion.Target("panda_link7", place)
    start = near + np.array([1.0, 0.3, -1.0, 0.4, 0.8, 0.3, 0.5, 0.0, 0.0])
    free = rf.ik(panda, target, start, joints=ARM)
    kept = rf.ik(panda, [target, rf.motion.KeepPosture(near)], start, joints=ARM)
    assert kept.converged
    assert kept.position_error[0] < 1e-10  # the target is met exactly, the posture bends
    assert np.linalg.norm(kept.q - near) < 0.3 < np.linalg.norm(free.q - near)


def test_the_centre_of_mass_of_a_standing_robot() -> None:
    m = rf.load("quadruped")
    q = rf.scenario("quadruped_fall").q0
    feet = [body.name for body in m.bodies if body.points]
    tasks: list[Any] = [
        rf.motion.Target(foot, m.pose(q, foot).position) for foot in feet
    ]  # the feet stay
    com = m.center_of_mass(q) + np.array([0.02, -0.01, 0.0])
    tasks.append(rf.motion.CenterOfMass(com, axes="xy"))
    found = rf.ik(m, tasks, q, joints=[joint.name for joint in m.joints], tolerance=1e-9)
    np.testing.assert_allclose(m.center_of_mass(found.q)[:2], com[:2], atol=1e-8)
    for foot in feet:
        np.testing.assert_allclose(m.pose(found.q, foot).position, m.pose(q, foot).position,
                                   atol=1e-8)  # fmt: skip


def test_a_body_as_seen_from_another() -> None:
    m = rf.load("dual_arm")
    tips = [b.name for i, b in enumerate(m.bodies) if i not in {c.parent for c in m.bodies}][:2]
    rng = np.random.default_rng(3)
    q = m.neutral() + 0.3 * rng.standard_normal(m.nq)
    start = q + 0.1 * rng.standard_normal(m.nq)
    one, two = (m.pose(q, tip) for tip in tips)
    p = two.rotation.T @ (one.position - two.position)
    R = two.rotation.T @ one.rotation
    task = rf.motion.RelativePose(tips[0], tips[1], p, R)
    found = rf.ik(m, task, start, limits=False, joints=[j.name for j in m.joints]).q
    a, b = (m.pose(found, tip) for tip in tips)
    np.testing.assert_allclose(b.rotation.T @ (a.position - b.position), p, atol=1e-9)
    np.testing.assert_allclose(b.rotation.T @ a.rotation, R, atol=1e-9)


@pytest.mark.parametrize("name", ["dual_arm", "quadruped"])
def test_jacobians_of_tasks_are_the_slopes_of_their_errors(name: str) -> None:
    from ramify.motion.ik_iteration import rows_kernel
    from ramify.motion.ik_tasks import ready_tasks
    from ramify.motion.inverse_kinematics import ik_goal

    m = rf.load(name)
    rng = np.random.default_rng(2)
    q = m.integrate(m.neutral(), 0.3 * rng.standard_normal(m.nv), 1.0)
    ends = [b.name for i, b in enumerate(m.bodies) if i not in {c.parent for c in m.bodies}][:2]
    here, there = (m.pose(q, end) for end in ends)
    seen = there.rotation.T @ here.rotation
    tasks = [
        rf.motion.CenterOfMass(np.ones(3)),
        rf.motion.RelativePose(*ends, np.ones(3), seen, weight=2.0, rotation_weight=3.0),
        rf.motion.KeepPosture(m.neutral()) if name == "dual_arm" else rf.motion.Target(ends[0], q[:3]),
    ]  # fmt: skip
    every = [joint.name for joint in m.joints]
    problem, _, goal = ik_goal(m, ready_tasks(m, tasks), (), every, False, 0.0)
    rows = rows_kernel(m, problem)
    J = rows(q, goal[0])[1]
    h = 1e-6
    for k in range(m.nv):
        ends_of = [m.integrate(q, s * h * np.eye(m.nv)[k], 1.0) for s in (1.0, -1.0)]
        plus, minus = (rows(x, goal[0])[0] for x in ends_of)
        np.testing.assert_allclose(J[:, k], (minus - plus) / (2 * h), atol=1e-7)


def test_a_batch_of_none_gives_none(panda: rf.Model) -> None:
    none = rf.motion.Target("panda_link7", np.zeros((0, 3)))
    assert rf.ik(panda, none, joints=ARM).q.shape == (0, 9)
    assert rf.differential_ik(panda, panda.neutral(), none, 0.01, joints=ARM).shape == (0, 9)


def test_a_state_alone_and_in_a_batch_gives_the_same(panda: rf.Model) -> None:
    wanted = panda.pose(reachable(panda, 12), "panda_link7")
    target = rf.motion.Target("panda_link7", wanted.position, wanted.rotation)
    batch = rf.ik(panda, target, joints=ARM, strict=False)
    for i in range(12):
        alone = rf.motion.Target("panda_link7", wanted.position[i], wanted.rotation[i])
        found = rf.ik(panda, alone, joints=ARM, strict=False)
        np.testing.assert_allclose(found.q, batch.q[i], atol=1e-7)
        assert found.converged == batch.converged[i]


@pytest.mark.parametrize("angle", [1e-9, 1.0, 3.0, np.pi - 1e-9, np.pi])
def test_rotation_vectors_up_to_half_a_turn(angle: float) -> None:
    from scipy.spatial.transform import Rotation

    from ramify.core.spatial import Mat3
    from ramify.motion.ik_text import rotation_vector

    for axis in (*np.eye(3), np.array([0.6, -0.8, 0.0]), np.array([-2.0, 1.0, 2.0]) / 3.0):
        R = Rotation.from_rotvec(angle * axis).as_matrix()
        found = rotation_vector(Mat3(*R.ravel().tolist()))
        turn = np.array([found.x, found.y, found.z], dtype=float)
        np.testing.assert_allclose(np.linalg.norm(turn), angle, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(abs(turn @ axis), angle, rtol=1e-12, atol=1e-14)
        if angle < 3.1:
            np.testing.assert_allclose(turn, angle * axis, atol=1e-14)


def test_velocities_within_a_box_are_the_least_squares() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 5, 7))
    H = np.einsum("rmn,rmk->rnk", A, A) + 1e-3 * np.eye(7)
    g = 3.0 * rng.standard_normal((200, 7))
    high = rng.uniform(0.1, 1.0, (200, 7))
    found = _within(H, g, -high, high)
    for row in range(0, 200, 8):
        L = np.linalg.cholesky(H[row])
        right = lsq_linear(L.T, np.linalg.solve(L, g[row]), (-high[row], high[row]), tol=1e-14)
        np.testing.assert_allclose(found[row], right.x, atol=1e-5)
        pull = g[row] - H[row] @ found[row]
        inner = abs(found[row]) < high[row]
        np.testing.assert_allclose(pull[inner], 0.0, atol=1e-9)
        assert (pull[~inner] * found[row][~inner] >= 0.0).all()


def test_following_a_circle_keeps_speeds_and_limits(panda: rf.Model) -> None:
    q = np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.7, 0.02, 0.02])
    centre, dt = panda.pose(q, "panda_link7").position, 0.02
    turned = panda.pose(q, "panda_link7").rotation
    speeds = np.full(panda.nv, 1.0)
    away = []
    for i in range(100):
        angle = 2.0 * np.pi * i / 100
        place = centre + 0.08 * np.array([0.0, np.cos(angle) - 1.0, np.sin(angle)])
        tasks = [
            rf.motion.Target("panda_link7", place, turned),
            rf.motion.KeepPosture(q, weight=1e-4),
        ]
        v = rf.differential_ik(panda, q, tasks, dt, joints=ARM, speeds=speeds)
        assert abs(v).max() <= 1.0 + 1e-12
        q = panda.integrate(q, v, dt)
        away.append(np.linalg.norm(panda.pose(q, "panda_link7").position - place))
    assert max(away[5:]) < 1e-3
    hard = rf.motion.Target("panda_link7", centre + np.array([0.0, 0.0, 5.0]))
    for _ in range(150):  # a target out of reach: the limits hold
        q = panda.integrate(q, rf.differential_ik(panda, q, hard, dt, joints=ARM), dt)
    limits = np.array([joint.limits[0] for joint in panda.joints[:7]])
    assert (q[:7] >= limits[:, 0] - 1e-9).all()
    assert (q[:7] <= limits[:, 1] + 1e-9).all()


def test_loops_stay_closed_while_a_frame_is_followed() -> None:
    m = rf.load("stewart_platform")
    q = m.assemble().q
    platform = next(b.name for b in m.bodies if b.joint.kind in ("free", "free_euler", "ball"))
    place = m.pose(q, platform).position
    for i in range(25):
        target = rf.motion.Target(platform, place + np.array([0.0, 0.0, 0.001 * (i + 1)]))
        q = m.integrate(q, rf.differential_ik(m, q, target, 0.01, limits=False), 0.01)
    assert np.linalg.norm(m.pose(q, platform).position - place - [0, 0, 0.025]) < 1e-3
    assert abs(m.constraints(q).residual).max() < 1e-4


def test_what_does_not_fit_is_named(panda: rf.Model) -> None:
    with pytest.raises(rf.StateError, match="at least one target that must be met"):
        rf.ik(panda, rf.motion.KeepPosture(panda.neutral()))
    with pytest.raises(rf.StateError, match="axes must name some of 'xyz'"):
        rf.ik(panda, rf.motion.CenterOfMass([0, 0, 1], axes="xw"))
    with pytest.raises(rf.ModelError, match="no mass"):
        rf.ik(rf.from_dh([(0.4, 0, 0, 0)]), rf.motion.CenterOfMass([0, 0, 1]))
    with pytest.raises(rf.StateError, match="both are parts of one body"):
        rf.ik(panda, rf.motion.RelativePose("panda_link7", "panda_hand", [0, 0, 0]))
    with pytest.raises(rf.StateError, match=r"dt 0\.0 must be finite and positive"):
        rf.differential_ik(panda, panda.neutral(), {"panda_link7": [0, 0, 1]}, 0.0)
    with pytest.raises(rf.StateError, match="speeds must be"):
        rf.differential_ik(panda, panda.neutral(), {"panda_link7": [0, 0, 1]}, 0.01, speeds=[1.0])
