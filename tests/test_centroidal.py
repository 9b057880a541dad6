"""The centroidal momentum matrix and the zero-moment point: against Pinocchio, the joint reactions,
and standing still.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from numpy.testing import assert_allclose
from peers import pinocchio_of, random_model, states, worst

import ramify as rf
from ramify.api.model import Model
from ramify.core.arrays import Array
from ramify.model.joint import JOINT_KINDS

KINDS = tuple(kind for kind in JOINT_KINDS if kind != "fixed")


def robot(seed: int) -> Model:
    return random_model(seed, KINDS, 8, ("", "free", "free_euler")[seed % 3])


def velocity_map(model: Model, q: Array) -> Array:
    """T (nv, nv) with their v = T our v."""
    T = model.to_pinocchio(q, np.eye(model.nv)).v
    assert T is not None
    return T.T


@pytest.mark.parametrize(
    ("tier", "seed"),
    [
        (tier, seed)
        for tier, trees in (("numpy", 20), ("rolled", 20), ("unrolled", 6))
        for seed in range(trees)
    ],
)
def test_matrix_against_pinocchio(seed: int, tier: str) -> None:
    model = robot(seed)
    peer = pinocchio_of(model)
    data = peer.createData()
    q, v, _ = states(model, 2, seed)
    A = model.kernel("centroidal_momentum_matrix", tier)(q)  # type: ignore[arg-type]
    for i in range(2):
        Ag = pin.computeCentroidalMap(peer, data, model.to_pinocchio(q[i]).q).reshape(
            6, -1
        ) @ velocity_map(model, q[i])
        assert worst(A[i], np.vstack([Ag[3:], Ag[:3]])) < 1e-11
        p = model.momentum(q[i], v[i])
        assert worst(A[i] @ v[i], np.concatenate([p.angular, p.linear])) < 1e-12
    assert_allclose(model.centroidal_momentum_matrix(q), A, atol=1e-12)
    assert model.centroidal_momentum_matrix(q[0]).shape == (6, model.nv)


@pytest.mark.parametrize("seed", range(12))
def test_linear_rows_move_the_centre_of_mass(seed: int) -> None:
    """A's linear rows are m d(com)/dt, by a central difference along v on the manifold."""
    model = robot(seed)
    q, v, _ = states(model, 1, seed)
    h = 1e-6
    rate = (
        model.center_of_mass(model.integrate(q, v, h))
        - model.center_of_mass(model.integrate(q, v, -h))
    ) / (2 * h)
    assert_allclose(
        (model.centroidal_momentum_matrix(q) @ v[..., None])[..., 0][:, 3:],
        model.mass * rate,
        atol=1e-6 * model.mass,
    )


def lifting(model: Model, q: Array, v: Array, a: Array) -> bool:
    g = np.array(model.gravity)
    return bool(
        (model.kernel("required_wrench")(q, v, a)[..., 3:] @ -g > 0.05 * model.mass * g @ g).all()
    )


@pytest.mark.parametrize("seed", range(20))
def test_zero_moment_point_from_the_rate_of_momentum(seed: int) -> None:
    """Pinocchio's rate of centroidal momentum, less gravity, seen from the point has no moment in
    the plane.
    """
    model = robot(seed)
    peer = pinocchio_of(model)
    data = peer.createData()
    q, v, a = states(model, 1, seed)
    v, a = 0.1 * v, 0.1 * a
    if not lifting(model, q, v, a):
        pytest.fail("choose another seed: the robot would leave the ground")
    theirs = model.to_pinocchio(q[0], v[0], a[0])
    rate = pin.computeCentroidalMomentumTimeVariation(peer, data, *theirs[:3])
    com, g = data.com[0], np.array(model.gravity)
    up = -g / np.linalg.norm(g)
    f = rate.linear - model.mass * g
    n = rate.angular + np.cross(com, f)
    for height in (0.0, 0.7):
        point = model.zero_moment_point(q[0], v[0], a[0], height)
        assert abs(point @ up - height) < 1e-12
        left = n - np.cross(point, f)
        assert np.linalg.norm(np.cross(up, left)) < 1e-10 * max(1.0, float(np.linalg.norm(n)))


@pytest.mark.parametrize("seed", range(0, 12, 3))
def test_zero_moment_point_from_the_root_reaction(seed: int) -> None:
    """What the base gives to the first body is all that the surroundings do, wherever it acts."""
    model = random_model(seed, KINDS, 8, "revolute")
    q, v, a = states(model, 4, seed)
    v, a = 0.1 * v, 0.1 * a
    assert lifting(model, q, v, a)
    reaction = model.reactions(q, v, a)[:, 0]
    origin = model.kinematics(q).position[:, 0]
    f = reaction[:, 3:]
    n = reaction[:, :3] + np.cross(origin, f)
    up = -np.array(model.gravity) / np.linalg.norm(model.gravity)
    assert_allclose(
        model.zero_moment_point(q, v, a), np.cross(up, n) / (f @ up)[:, None], atol=1e-11
    )


@pytest.mark.parametrize("seed", range(6))
def test_at_rest_it_lies_under_the_centre_of_mass(seed: int) -> None:
    model = robot(seed)
    q = model.random(seed)[0]
    up = -np.array(model.gravity) / np.linalg.norm(model.gravity)
    com, still = model.center_of_mass(q), np.zeros(model.nv)
    assert_allclose(model.zero_moment_point(q, still, still), com - up * (up @ com), atol=1e-11)
    assert_allclose(
        model.zero_moment_point(q, still, still, height=1.5),
        com - up * (up @ com - 1.5),
        atol=1e-11,
    )


def cart(accelerating: float) -> tuple[Array, Array]:
    """A flywheel on a mast on a cart: the point by the model, and by eq. (B.1) by hand (its second
    line with + i_xx dw_x).
    """
    m, J, z, g = 3.0, (0.4, 0.5, 0.6), 1.2, 9.81
    builder = (
        rf.Builder("cart")
        .link("x", joint="prismatic", axis=(1, 0, 0))
        .link("y", "x", joint="prismatic", axis=(0, 1, 0))
    )
    builder.link("tilt", "y", axis=(1, 0, 0), at=(0, 0, z)).link(
        "wheel", "tilt", axis=(0, 1, 0), mass=m, inertia=J
    )
    model = builder.model()
    q, a = np.array([0.3, -0.2, 0.0, 0.0]), accelerating * np.array([1.0, -0.7, 2.0, 3.0])
    by_hand = [
        q[0] - (m * a[0] * z + J[1] * a[3]) / (m * g),
        q[1] - (m * a[1] * z - J[0] * a[2]) / (m * g),
        0.0,
    ]
    return model.zero_moment_point(q, np.zeros(4), a), np.array(by_hand)


@pytest.mark.parametrize("accelerating", [0.0, 0.5, -1.3])
def test_the_books_formula(accelerating: float) -> None:
    found, by_hand = cart(accelerating)
    assert_allclose(found, by_hand, atol=1e-13)


def test_where_there_is_none() -> None:
    model = rf.Builder("stone").link("stone", joint="free", mass=2.0, inertia=(1, 1, 1)).model()
    q, v = model.neutral(), np.zeros(6)
    with pytest.raises(rf.StateError, match="the ground would have to pull"):
        model.zero_moment_point(q, v, [0, 0, -20.0, 0, 0, 0])
    with pytest.raises(rf.StateError, match="the ground would have to pull of state 1"):
        model.zero_moment_point(q, v, [[0, 0, 0, 0, 0, 0.0], [0, 0, -20.0, 0, 0, 0]])
    with pytest.raises(rf.ModelError, match="has no gravity"):
        rf.with_gravity(model, (0.0, 0.0, 0.0)).zero_moment_point(q, v, v)
