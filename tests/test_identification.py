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
