"""Derivatives of rollouts: forward and adjoint agree with each other and with differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.core.arrays import Array


def _hopper() -> tuple[rf.Model, Array, Array, dict[str, Any]]:
    """A servo-driven leg that lands: drive, friction and ground."""
    made = rf.Builder("hopper").link("trunk", joint="prismatic", axis=(0, 0, 1), mass=5.0)
    made.link("leg", "trunk", axis=(0, 1, 0), mass=0.5, com=(0, 0, -0.2), inertia=(0.01, 0.01, 0.01),
              friction={"coulomb": 0.2}, damping=0.1, points={"foot": (0.1, 0, -0.4)})  # fmt: skip
    q = np.array([[0.39, 0.1], [0.4, -0.1], [0.395, 0.3]])
    hold = rf.control.PD(rf.motion.Hold([0.2]), kp=40.0, kd=2.0, actuated=["leg"])
    law = rf.contact.HuntCrossley(stiffness=20000.0, slip_speed=0.2)
    v = np.array([[-0.5, 0.2], [-0.2, 0.1], [-0.4, -0.3]])
    parameters = {
        "leg.mass": np.array([0.5, 0.6, 0.7]), "leg.friction": np.array([0.2, 0.1, 0.3]),
        "control.kp": np.array([40.0, 30.0, 50.0]), "ground.friction": np.full(3, 0.6),
        "gravity": np.array([0.0, 0.3, -9.8]) * np.ones((3, 1)),
    }  # fmt: skip
    return (
        made.model(),
        q,
        v,
        {"control": hold, "ground": law, "parameters": parameters, "dt": 5e-4},
    )


def _arm() -> tuple[rf.Model, Array, Array, dict[str, Any]]:
    m = rf.load("planar_3r")
    states = [m.random(seed) for seed in range(9)]
    q, v = (np.array([s[k] for s in states]) for k in (0, 1))
    tau = np.random.default_rng(0).normal(size=(24, 3))
    return m, q, v, {"tau": tau, "parameters": {f"{m.bodies[1].name}.mass": np.linspace(1, 2, 9)}}


def _top() -> tuple[rf.Model, Array, Array, dict[str, Any]]:
    """A free base with a quaternion, which each step normalises."""
    made = rf.Builder("top").link("top", joint="free", mass=1.0, inertia=(0.1, 0.2, 0.3))
    m = made.link("arm", "top", at=(0.3, 0, 0), axis=(0, 1, 0), mass=0.3, com=(0, 0, 0.2)).model()
    q, v = m.random(3)
    return m, q, 3.0 * v, {"tau": np.random.default_rng(1).normal(size=(24, 7)), "dt": 5e-3}


def _moved(given: Any, along: Any, step: float) -> Any:
    if isinstance(given, dict):
        return {name: np.asarray(x) + step * along[name] for name, x in given.items()}
    return None if given is None else given + step * along


@pytest.mark.parametrize(
    ("case", "method", "every"),
    [
        (_arm, "rk4", 7),
        (_arm, "semi_implicit_euler", None),
        (_top, "rk4", None),
        (_top, "semi_implicit_euler", 8),
        (_hopper, "rk4", 5),
        (_hopper, "implicit_extrapolation", None),
    ],
)
def test_adjoint_tangent_and_differences_agree(case: Any, method: str, every: int | None) -> None:
    m, q, v, options = case()
    options = {"steps": 24, "dt": 1e-3, "tau": None, "parameters": None, **options}
    tau, parameters = options.pop("tau"), options.pop("parameters")
    rng = np.random.default_rng(4)

    def run(step: float) -> rf.Rollout:
        return rf.rollout(
            m, m.integrate(q, dq, step), v + step * dv, tau=_moved(tau, dtau, step),
            parameters=_moved(parameters, dp, step), method=method, every=every, **options,
        )  # fmt: skip

    dq, dv = rng.normal(size=v.shape), rng.normal(size=v.shape)
    dtau = None if tau is None else rng.normal(size=tau.shape)
    dp = {name: rng.normal(size=np.shape(x)) for name, x in (parameters or {}).items()}
    made = run(0.0)
    by_q, by_v = rng.normal(size=made.v.shape), rng.normal(size=made.v.shape)
    found = made.gradient(by_q, by_v)
    along = float((found.q0 * dq).sum() + (found.v0 * dv).sum())
    along += sum(float((found.parameters[name] * x).sum()) for name, x in dp.items())
    if dtau is not None:
        assert found.tau.shape == dtau.shape
        along += float((found.tau * dtau).sum())
    moved, faster = made.tangent(dq, dv, dtau, dp or None)
    forward = float((by_q * moved).sum() + (by_v * faster).sum())
    assert abs(along - forward) < 1e-11 * abs(forward)
    step = 1e-6
    ahead, behind = run(step), run(-step)
    change = (by_q * m.difference(behind.q, ahead.q)).sum() + (by_v * (ahead.v - behind.v)).sum()
    assert abs(along - change / (2 * step)) < 1e-6 * abs(along)


@pytest.mark.parametrize("method", ["rk4", "implicit_extrapolation"])
def test_states_of_the_machine_follow_the_start(method: str) -> None:
    """Bristles start as deflected as v0 and the friction want, activations as the parameter says;
    the derivatives by v0 and by these count that. Every state is the run of such a robot.
    """

    def arm(scale: float) -> rf.Model:
        made = rf.Builder("arm")
        coulomb = {"forward": 1.2 * scale, "backward": 0.8 * scale}
        friction = {"coulomb": coulomb, "slip_speed": 0.05, "lugre": {"stiffness": 300.0}}
        made.link("upper", axis=(0, 1, 0), mass=2.0, com=(0.2, 0, 0), friction=friction)
        made.actuator("drive", kind="motor", joint="upper", activation="filter", time=0.02)
        return made.model()

    m = arm(1.0)
    q, v, dv = np.array([[0.1], [0.4]]), np.array([[0.3], [-0.5]]), np.array([[0.7], [1.1]])
    given = {"upper.friction": np.array([1.0, 1.5]), "control.activation": np.array([0.4, 0.6])}
    along = {"upper.friction": np.array([0.3, -0.2]), "control.activation": np.array([0.5, 1.0])}

    def run(step: float) -> rf.Rollout:
        return rf.rollout(
            m, q, v + step * dv, steps=8, dt=1e-3, method=method,
            control=rf.control.Commands.to(m, {"drive": 2.0}),
            parameters=_moved(given, along, step),
        )  # fmt: skip

    found, w = run(0.0), np.array([[1.0], [-2.0]])
    for i, scale in enumerate((1.0, 1.5)):
        command = rf.control.Commands({"drive": 2.0}, (given["control.activation"][i],))
        one = rf.rollout(arm(scale), q[i], v[i], steps=8, dt=1e-3, method=method, control=command)
        assert np.allclose(found.v[i], one.v, rtol=1e-12)
    back = found.gradient(v=w)
    total = (back.v0 * dv).sum() + sum((back.parameters[k] * x).sum() for k, x in along.items())
    forward = (w * found.tangent(v0=dv, parameters=along)[1]).sum()
    step = 1e-4
    change = (w * (8 * (run(step).v - run(-step).v) - run(2 * step).v + run(-2 * step).v)).sum()
    for derivative in (total, forward):
        assert abs(derivative - change / (12 * step)) < 1e-8 * abs(derivative)


def test_batches_of_one_and_none() -> None:
    """A table with an axis for a batch of one keeps its shape; nothing to do gives nothing, and
    nothing is written beyond empty arrays.
    """
    m = rf.load("planar_3r")
    q, tau = np.full((1, 3), 0.3), np.random.default_rng(0).normal(size=(1, 4, 3))
    one = rf.rollout(m, q, q, steps=4, dt=1e-2, tau=tau).gradient(q, q)
    plain = rf.rollout(m, q[0], q[0], steps=4, dt=1e-2, tau=tau[0]).gradient(q[0], q[0])
    assert one.tau.shape == tau.shape
    assert np.allclose(one.tau[0], plain.tau, rtol=1e-12)
    empty = np.zeros((0, 3))
    for _ in range(20):
        none = rf.rollout(m, empty, empty, steps=4, dt=1e-2)
        assert none.gradient(empty).q0.shape == (0, 3)
        assert none.tangent(empty)[0].shape == (0, 3)
        assert none.sensitivity().x0.shape == (0, 6, 6)
        assert rf.linearize(m, empty, empty, empty, dt=1e-2, method="rk4").A.shape == (0, 6, 6)
    still = rf.rollout(m, q, q, steps=0, dt=1e-2)
    assert np.array_equal(still.gradient(2 * q, 3 * q).v0, 3 * q)
    assert np.array_equal(still.sensitivity().x0[0], np.eye(6))


def test_checkpoints_change_nothing() -> None:
    """With room for a few states the run is taken in stretches; a stretch that begins at the wrong
    state, time or force fails.
    """
    m, q, v, options = _arm()
    tau = np.random.default_rng(2).normal(size=(9, 23, 3))
    made = rf.rollout(
        m, q, v, steps=23, dt=2e-3, every=3, tau=tau, parameters=options["parameters"],
        control=rf.control.PD(rf.motion.Quintic(q[0], q[1], 0.05), kp=3.0),
    )  # fmt: skip
    weights = np.random.default_rng(3).normal(size=made.v.shape)
    whole, pieces = made.gradient(weights, weights), made.gradient(weights, weights, memory=1)
    for a, b in zip(whole[:3], pieces[:3], strict=True):
        assert np.allclose(a, b, rtol=1e-12, atol=1e-13)
    (a,), (b,) = whole.parameters.values(), pieces.parameters.values()
    assert np.allclose(a, b, rtol=1e-12)


def test_sensitivity_of_one_step_is_the_linear_system() -> None:
    m, q, v, _ = _top()
    tau = np.linspace(-1.0, 1.0, m.nv)
    one = rf.rollout(m, q, v, steps=1, dt=5e-3, tau=tau).sensitivity()
    A, B = rf.linearize(m, q, v, tau, dt=5e-3, method="rk4")
    assert np.allclose(one.x0, A, atol=1e-12)
    assert np.allclose(one.tau, B, atol=1e-12)


def test_loops_are_projected_and_differentiated() -> None:
    m = rf.load("four_bar")
    state = m.assemble({m.coordinates[0]: 0.4}, {m.coordinates[0]: 1.0})
    name = f"{m.bodies[2].name}.mass"

    def run(step: float) -> rf.Rollout:
        return rf.rollout(
            m, state.q, state.v, steps=10, dt=2e-3, tau=[0.5 + step, 0, 0],
            parameters={name: 2.0 + step},
        )  # fmt: skip

    found, one, step = run(0.0), np.ones(3), 1e-5
    back = found.gradient(one, one)
    dq, dv = found.tangent(tau=[1, 0, 0], parameters={name: 1.0})
    ahead, behind = run(step), run(-step)
    change = (ahead.q + ahead.v - behind.q - behind.v).sum() / (2 * step)
    for derivative in (back.tau[0] + back.parameters[name], (dq + dv).sum()):
        assert abs(derivative - change) < 1e-7 * abs(change)
    opening = m.constraints(state.q).J @ found.sensitivity().tau[:3]
    closed = m.constraints(found.q).J @ found.sensitivity().tau[:3]
    assert np.abs(closed).max() < 1e-3 * np.abs(opening).max()  # the deviation keeps them closed


def test_what_has_no_derivative_is_refused() -> None:
    m = rf.load("planar_3r")
    q = np.zeros(3)
    run = rf.rollout(m, q, q, steps=2, dt=1e-3, control=lambda t, q, v: 0 * v)
    with pytest.raises(rf.SimulationError, match="function of Python"):
        run.gradient(q)
    sampled = rf.control.PD(rf.motion.Hold(q), rate_hz=100.0)
    run = rf.rollout(m, q, q, steps=2, dt=1e-3, control=sampled)
    with pytest.raises(rf.SimulationError, match="all of it is compiled"):
        run.gradient(q)
    run = rf.rollout(m, q, q, steps=4, dt=1e-3, every=2)
    for shape in ((3, 3), (3,)):  # the last sample alone is not the run
        with pytest.raises(rf.StateError, match="a row for every sample"):
            run.gradient(np.ones(shape))
    with pytest.raises(rf.StateError, match="not a parameter"):
        run.tangent(parameters={"link.mass": 1.0})
    for given in ({"q0": np.ones((2, 3))}, {"tau": np.ones((5, 3))}):
        with pytest.raises(rf.StateError, match="it must be"):
            run.tangent(**given)
    with pytest.raises(rf.StateError, match="memory 0 must be"):
        run.gradient(np.ones((2, 3)), memory=0)
