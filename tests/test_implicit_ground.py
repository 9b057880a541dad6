"""Linearly implicit steps on the ground: the equation they solve, their order, and that they stay
stable where explicit ones do not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.contact.grounds import as_ground
from ramify.contact.robot_on_ground import ContactText
from ramify.control.robot_text import RobotText
from ramify.core.spatial import Vec3
from ramify.kernels.queries import jacobian
from ramify.sim.joint_gains import servo_gains

LAWS = ("firm", "dusty", "hunt_crossley")


def landing() -> tuple[rf.Model, Any, Any, Any]:
    """(robot, q, v, control): a quadruped about to land under stiff servos."""
    s = rf.scenario("quadruped_fall")
    q, v = np.array(s.q0), np.array(s.v0)
    return s.robot, q, v, rf.control.PD(rf.motion.Hold(q[-12:]), kp=200.0, kd=10.0)


@pytest.mark.parametrize("law", LAWS)
def test_the_step_solves_its_equation(law: str) -> None:
    """(I + J' W J + R) a = tau - h + J' (f - h K u), W = h^2 K + h D, against dense matrices."""
    model, q, v, _ = landing()
    rng = np.random.default_rng(0)
    ground = as_ground(law, model)
    assert ground is not None
    contact, h = ContactText(model, ground), 4e-3
    v = 0.2 * rng.normal(size=model.nv)
    q = q.copy()
    q[2] -= 0.02 + float(np.min(contact.forces(q, v)[0][:, 2]))  # all feet touch
    tau, rotors = rng.normal(size=model.nv), rng.uniform(0.0, 0.1, model.nv)
    found, felt = contact.implicit_dynamics(
        q.tolist(), v.tolist(), tau.tolist(), rotors.tolist(), h
    )
    places, forces = contact.forces(q, v)[:2]
    A, b = model.mass_matrix(q) + np.diag(rotors), tau - model.bias(q, v)
    touched = 0
    for place, force, body, own in zip(places, forces, contact.bodies, contact.places, strict=True):
        J = jacobian(model, q, body, own)[3:]
        u = J @ v
        r = contact.ground.resistance(Vec3(*place), Vec3(*u))
        n = np.array([r.normal.x, r.normal.y, r.normal.z])
        along, across = np.outer(n, n), np.eye(3) - np.outer(n, n)
        K, D = r.stiffness * along, r.damping * along + r.grip * across
        A += J.T @ (h * h * K + h * D) @ J
        b += J.T @ (force - h * K @ u)
        touched += r.stiffness > 0.0
    assert touched >= 1
    np.testing.assert_allclose(found, np.linalg.solve(A, b), rtol=1e-8, atol=1e-8)
    assert len(felt) == len(places)


@pytest.mark.parametrize("law", LAWS)
def test_resistance_is_the_derivative_of_the_force(law: str) -> None:
    model, _, _, _ = landing()
    given = as_ground(law, model)
    assert given is not None
    ground, step = given.fitted(model), 1e-7
    for depth, speed in ((2.3e-3, 0.05), (5.7e-3, 0.3), (1.1e-3, 0.01)):
        place, u = Vec3(0.0, 0.0, -depth), Vec3(0.1, 0.2, -speed)
        r = ground.resistance(place, u)
        by_depth = (ground.normal(depth + step, speed).force
                    - ground.normal(depth - step, speed).force) / (2.0 * step)  # fmt: skip
        by_rate = (ground.normal(depth, speed + step).force
                   - ground.normal(depth, speed - step).force) / (2.0 * step)  # fmt: skip
        assert r.stiffness == pytest.approx(max(by_depth, 0.0), rel=1e-5, abs=1e-3)
        assert r.damping == pytest.approx(max(by_rate, 0.0), rel=1e-5, abs=1e-3)


def test_servos_are_springs_and_dampers() -> None:
    model, q, _, control = landing()
    k, d = servo_gains(control, RobotText(model))
    assert k == [0.0] * 6 + [200.0] * 12
    assert d == [0.0] * 6 + [10.0] * 12
    both = rf.control.Sum([control, rf.control.PD(rf.motion.Hold(q[-12:]), kp=1.0, kd=2.0)])
    assert servo_gains(both, RobotText(model))[0][-1] == 201.0
    assert servo_gains(None, RobotText(model)) == ([0.0] * 18, [0.0] * 18)


def test_long_steps_on_stiff_ground_stay_stable_and_are_of_first_order() -> None:
    """A landing under stiff servos: explicit steps of 4 ms blow up, implicit ones are millimetres
    off, and half as much with half the step.
    """
    model, q, v, control = landing()
    options: dict[str, Any] = {"ground": "hunt_crossley", "control": control}
    fine = rf.rollout(model, q, v, steps=30_000, dt=2e-5, method="semi_implicit_euler", **options).q
    off = []
    for h in (4e-3, 2e-3):
        found = rf.rollout(
            model, q, v, steps=round(0.6 / h), dt=h, method="implicit_euler", **options
        )
        off.append(float(np.abs(found.q[:3] - fine[:3]).max()))
    assert off[0] < 5e-3
    assert off[0] / off[1] == pytest.approx(2.0, rel=0.35)
    with pytest.raises(rf.SimulationError, match="1 of 1 states failed"):
        rf.rollout(model, q, v, steps=150, dt=4e-3, method="semi_implicit_euler", **options)
    run = rf.simulate(model, 0.2, q, v, method="implicit_euler", step=4e-3, dt_out=0.1, **options)
    same = rf.rollout(model, q, v, steps=50, dt=4e-3, method="implicit_euler", **options)
    np.testing.assert_allclose(run.q[-1], same.q, atol=1e-9)


def test_where_there_is_no_ground_it_says_so() -> None:
    with pytest.raises(rf.SimulationError, match="for trees on a ground"):
        rf.simulate(rf.load("planar_3r"), 0.1, method="implicit_euler", step=1e-3)
