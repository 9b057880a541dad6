"""tau = Y pi: on random trees against inverse dynamics, on an arm against Pinocchio's regressor, in
every tier.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from peers import pinocchio_of, random_model, states, worst

import ramify as rf

KINDS = (
    "revolute",
    "prismatic",
    "helical",
    "universal",
    "spherical",
    "cylindrical",
    "planar",
    "ball",
    "free",
)


@pytest.mark.parametrize("seed", range(25))
def test_torques_are_linear_in_the_parameters(seed: int) -> None:
    model = random_model(seed, KINDS)
    q, v, a = states(model, 3, seed)
    Y = model.regressor(q, v, a)
    assert Y.shape == (3, model.nv, 10 * len(model.bodies))
    assert worst(Y @ model.inertial_parameters, model.inverse_dynamics(q, v, a)) < 1e-11


@pytest.mark.parametrize("tier", ["unrolled", "rolled", "numpy"])
@pytest.mark.parametrize("root", ["", "free"])
@pytest.mark.parametrize("kinds", [("revolute", "helical"), ("revolute", "universal")])
def test_tiers_agree(tier: str, root: str, kinds: tuple[str, ...]) -> None:
    """With and without a trunk, every link a body or not."""
    model = random_model(4, kinds, 4, root)
    q, v, a = states(model, 11, 1)
    Y = model.kernel("regressor", tier)(q, v, a)  # type: ignore[arg-type]
    assert worst(Y @ model.inertial_parameters, model.inverse_dynamics(q, v, a)) < 1e-12
    wanted = model.kernel("regressor", "numpy")(q, v, a)
    assert worst(Y, wanted) < 1e-13
    assert worst(model.kernel("regressor", tier)(q[0], v[0], a[0]), wanted[0]) < 1e-13  # type: ignore[arg-type]


def test_pinocchio() -> None:
    model = rf.load("kuka_kr5")
    peer = pinocchio_of(model)
    q, v, a = (x[0] for x in states(model, 1, 2))
    theirs = pin.computeJointTorqueRegressor(peer, peer.createData(), q, v, a)
    order = [0, 1, 2, 3, 4, 6, 9, 5, 8, 7]  # Pinocchio: m, h, Ixx, Ixy, Iyy, Ixz, Iyz, Izz
    theirs = theirs.reshape(model.nv, -1, 10)[:, :, order].reshape(model.nv, -1)
    assert worst(model.regressor(q, v, a), theirs) < 1e-12


def test_parameters_of_a_known_body() -> None:
    rod = rf.from_dh(
        [(0.0, 0.0, 0.0, 0.0)], mass=[2.0], com=[(0.5, 0.0, 0.0)], inertia=[(0.0, 0.1, 0.1)]
    )
    assert np.allclose(
        rod.inertial_parameters, [2.0, 1.0, 0.0, 0.0, 0.0, 0.6, 0.6, 0.0, 0.0, 0.0], atol=1e-15
    )


@pytest.mark.parametrize("rotors", [False, True])
def test_the_layout_with_drives_does_not_depend_on_the_robot(rotors: bool) -> None:
    builder = rf.Builder("two")
    machine = {"armature": 0.3, "damping": 0.2, "friction": 0.5} if rotors else {}
    builder.link("upper", mass=2.0, com=(0.2, 0.1, 0), inertia=(0.1, 0.2, 0.25), **machine)
    builder.link("lower", "upper", at=(0.5, 0, 0), axis=(0, 1, 0), mass=1.0, com=(0.1, 0, 0.2))
    m = builder.model()
    q, v, a = states(m, 5, 3)
    Y = m.regressor(q, v, a, drives=True)
    assert Y.shape == (5, 2, 20 + 3 * 2)
    assert np.array_equal(Y[..., 20:], [[[a, 0, v, 0, np.sign(v), 0], [0, A, 0, V, 0, np.sign(V)]] for (a, A), (v, V) in zip(a, v, strict=True)])  # fmt: skip
    dry = 0.5 * rotors * np.sign(v[:, :1]) + 0.2 * rotors * v[:, :1]
    wanted = m.inverse_dynamics(q, v, a) + np.hstack([dry, 0 * dry])
    assert worst(Y @ m.dynamic_parameters, wanted) < 1e-13


def test_a_robot_of_other_parameters() -> None:
    m = random_model(3, ("revolute", "prismatic"), 5)
    q, v, a = states(m, 4, 1)
    pi = m.dynamic_parameters * np.random.default_rng(0).uniform(
        1.0, 1.2, m.dynamic_parameters.size
    )
    drives = 10 * len(m.bodies)
    pi[drives:] = np.arange(1.0, 1.0 + 3 * m.nv)
    other = rf.with_inertial_parameters(m, pi)
    assert np.allclose(other.dynamic_parameters, pi, rtol=1e-12, atol=1e-14)
    Y = m.regressor(q, v, a)
    tau = Y @ pi[:drives] + a * pi[drives : drives + m.nv]
    assert worst(other.inverse_dynamics(q, v, a), tau) < 1e-12
    bodies = rf.with_inertial_parameters(m, pi[:drives])
    assert not bodies.armature.any()
    same = rf.with_inertial_parameters(m, m.dynamic_parameters)
    assert all(
        np.array_equal(x.inertia, y.inertia) for x, y in zip(same.bodies, m.bodies, strict=True)
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda pi: pi[:-1], r"shape \(38,\).*needs \(30,\)"),
        (lambda pi: np.where(np.arange(39) == 4, np.nan, pi), r"parameters\[4\] is nan"),
        (lambda pi: np.where(np.arange(39) == 10, -1.0, pi), "mass of '2', -1 kg, must be ≥ 0"),
        (lambda pi: np.where(np.arange(39) == 10, 0.0, pi), "cannot be 0 with a first moment"),
        (lambda pi: np.where(np.arange(39) == 34, -1.0, pi), "damping of .* is -1"),
    ],
)
def test_parameters_that_no_robot_has(change: object, message: str) -> None:
    m = rf.load("planar_3r")
    with pytest.raises(rf.ModelError, match=message.replace("'2'", repr(m.bodies[1].name))):
        rf.with_inertial_parameters(m, change(m.dynamic_parameters))  # type: ignore[operator]


@pytest.mark.parametrize("root", ["", "free"])
def test_the_contracted_derivative_of_the_regressor(root: str) -> None:
    m = random_model(5, ("revolute", "prismatic"), 4, root)
    q, v, a = states(m, 3, 2)
    Y = m.regressor(q, v, a)
    W = np.random.default_rng(1).normal(size=Y.shape)
    (whole,) = m.derivatives("regressor", q, v, a)
    wanted = [np.einsum("nij,nijk->nk", W, by) for by in whole]
    for ours, theirs in zip(
        m.weighted_derivatives("regressor", (q, v, a), (W,)), wanted, strict=True
    ):
        assert worst(ours, theirs) < 1e-12
    with pytest.raises(rf.StateError, match="weights of regressor must be a list of 1 arrays"):
        m.weighted_derivatives("regressor", (q, v, a), W)
