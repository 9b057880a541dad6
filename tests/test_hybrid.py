"""Hybrid dynamics: any joints prescribed, against partitioned solves with I and h, against
Pinocchio, and at its two ends.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from peers import pinocchio_of, random_model, states, worst

import ramify as rf
from ramify.api.model import Model
from ramify.kernels.make import make_kernel
from ramify.model.joint import JOINT_KINDS

KINDS = tuple(kind for kind in JOINT_KINDS if kind not in ("fixed",))
TREES = 30


def robot(seed: int) -> Model:
    """Every third on a free base, every third on free_euler."""
    return random_model(seed, KINDS, 7, ("", "free", "free_euler")[seed % 3])


def some_joints(model: Model, seed: int) -> tuple[tuple[str, ...], np.ndarray]:
    """A random set of joints and the mask of their coordinates."""
    rng = np.random.default_rng(seed)
    names = tuple(joint.name for joint in model.joints if rng.random() < 0.5)
    held = np.zeros(model.nv, dtype=bool)
    for name in names:
        held[model.joint_slice(name)] = True
    return names, held


@pytest.mark.parametrize("seed", range(TREES))
def test_partitioned_solve(seed: int) -> None:
    """I_ff a_f = tau_f - h_f - I_fp a_p, and tau_p from inverse dynamics; loops, batch of states."""
    model = robot(seed)
    names, held = some_joints(model, seed)
    q, v, x = states(model, 4, seed)
    M, h = model.mass_matrix(q), model.bias(q, v)
    found = model.hybrid_dynamics(q, v, x[:, held], names, tau=x[:, ~held])
    for i in range(len(q)):
        a = np.where(held, x[i], 0.0)
        free = (
            np.linalg.solve(M[i][~held][:, ~held], (x[i] - h[i] - M[i] @ a)[~held])
            if (~held).any()
            else np.zeros(0)
        )
        a[~held] = free
        exact = 1e-10 + 1e-14 * (np.linalg.cond(M[i][~held][:, ~held]) if (~held).any() else 0.0)
        if (~held).any():
            assert worst(found.acceleration[i], free) < exact
        if held.any():
            assert worst(found.tau[i], (M[i] @ a + h[i])[held]) < exact


@pytest.mark.parametrize("seed", range(0, TREES, 3))
@pytest.mark.parametrize("tier", ["numpy", "rolled", "unrolled"])
def test_all_tiers(seed: int, tier: str) -> None:
    """x from a known motion: what is hidden comes back."""
    model = random_model(seed, KINDS, 5, ("", "free", "free_euler")[seed // 3 % 3])
    names, held = some_joints(model, seed + 100)
    q, v, a = states(model, 3, seed)
    tau = model.inverse_dynamics(q, v, a)
    kernel = make_kernel(model, "hybrid_dynamics", tier, names)
    found = kernel(q, v, np.where(held, a, tau))
    exact = 1e-10 + 1e-13 * float(np.linalg.cond(model.mass_matrix(q)).max())
    assert kernel.tier == tier
    assert worst(found, np.where(held, tau, a)) < exact


@pytest.mark.parametrize("seed", range(1, TREES, 3))
def test_floating_base_against_pinocchio(seed: int) -> None:
    """Table 7.1: the base's acceleration and the torques make Pinocchio's inverse dynamics vanish
    at the base.
    """
    model = random_model(seed, [k for k in KINDS if k != "planar"], 7, "free")
    peer = pinocchio_of(model)
    data = peer.createData()
    q, v, a = states(model, 3, seed)
    found = model.hybrid_dynamics(q, v, a[:, 6:])
    whole = np.concatenate([found.acceleration, a[:, 6:]], axis=-1)
    theirs = model.to_pinocchio(q, v, whole)
    assert theirs.v is not None
    assert theirs.a is not None
    for i in range(len(q)):
        tau = pin.rnea(peer, data, theirs.q[i], theirs.v[i], theirs.a[i])
        back = model.from_pinocchio(theirs.q[i], tau=tau).tau
        assert worst(back, np.concatenate([np.zeros(6), found.tau[i]])) < 1e-9


@pytest.mark.parametrize("seed", range(0, TREES, 5))
def test_the_ends_are_inverse_and_forward_dynamics(seed: int) -> None:
    model = robot(seed)
    q, v, x = states(model, 3, seed)
    every = [joint.name for joint in model.joints]
    all_held = model.hybrid_dynamics(q, v, x, every)
    assert all_held.acceleration.shape == (3, 0)
    assert worst(all_held.tau, model.inverse_dynamics(q, v, x)) < 1e-12
    none_held = model.hybrid_dynamics(q, v, np.zeros(0), [], tau=x)
    assert none_held.tau.shape == (3, 0)
    a = model.forward_dynamics(q, v, x)
    assert (
        worst(none_held.acceleration, a)
        < 1e-11 + 1e-14 * np.linalg.cond(model.mass_matrix(q)).max()
    )


@pytest.mark.parametrize("seed", range(0, TREES, 6))
def test_external_wrenches(seed: int) -> None:
    model = robot(seed)
    names, held = some_joints(model, seed)
    q, v, a = states(model, 3, seed)
    rng = np.random.default_rng(seed)
    wrenches = {
        model.bodies[-1].name: rng.normal(size=6),
        model.bodies[0].name: rng.normal(size=(3, 6)),
    }
    tau = model.inverse_dynamics(q, v, a, wrenches)
    found = model.hybrid_dynamics(q, v, a[:, held], names, tau[:, ~held], wrenches)
    exact = 1e-10 + 1e-13 * np.linalg.cond(model.mass_matrix(q)).max()
    assert worst(found.tau, tau[:, held]) < exact if held.any() else True
    assert worst(found.acceleration, a[:, ~held]) < exact if (~held).any() else True


def test_free_fall_needs_no_torque() -> None:
    """A floating robot under gravity alone: its base falls with g, and no joint has to work."""
    model = random_model(4, ("revolute", "ball", "prismatic"), 6, "free")
    q = model.random(2)[0]
    found = model.hybrid_dynamics(q, np.zeros(model.nv), np.zeros(model.nv - 6))
    R = np.array(model.joints[0].placement.rotation)
    assert (
        worst(found.acceleration, np.concatenate([R.T @ np.array(model.gravity), np.zeros(3)]))
        < 1e-12
    )
    assert worst(found.tau, np.zeros(model.nv - 6)) < 1e-11


def test_a_prescribed_joint_may_move_no_mass() -> None:
    builder = rf.Builder("massless").link(
        "body", mass=2.0, com=(0.1, 0.2, 0.0), inertia=(0.1, 0.1, 0.1)
    )
    model = builder.link("pointer", "body", at=(0.3, 0.0, 0.0)).model()
    found = model.hybrid_dynamics([0.1, 0.2], [0.3, 0.4], [5.0])
    assert worst(found.tau, [0.0]) < 1e-15
    with pytest.raises(rf.StateError, match="singular"):
        model.forward_dynamics([0.1, 0.2], [0.3, 0.4], [0.0, 0.0])


def test_shapes_and_batches() -> None:
    model = random_model(1, ("revolute",), 6, "free")
    q, v, a = states(model, 5, 1)
    one = model.hybrid_dynamics(q[0], v[0], a[0, 6:])
    assert one.acceleration.shape == (6,)
    assert one.tau.shape == (model.nv - 6,)
    many = model.hybrid_dynamics(q, v, a[0, 6:], tau=np.zeros((2, 1, 6)))
    assert many.tau.shape == (2, 5, model.nv - 6)
    assert worst(many.tau[1, 0], one.tau) < 1e-12
    assert model.kernel("hybrid_dynamics")(q, v, a).shape == (5, model.nv)


def test_mistakes_are_named() -> None:
    model = random_model(1, ("revolute",), 6, "free")
    q, v, a = states(model, 1, 1)
    with pytest.raises(
        rf.StateError,
        match=r"a_joints has shape \(1, 2\); it must be \(..., \d+\), an entry per prescribed coordinate: joint1",
    ):
        model.hybrid_dynamics(q, v, a[:, :2])
    with pytest.raises(rf.ModelError, match="no joint 'knee'"):
        model.hybrid_dynamics(q, v, a, ["knee"])
    with pytest.raises(rf.ModelError, match="names joint 'joint1' twice"):
        model.hybrid_dynamics(q, v, a, ["joint1", "joint1"])
    with pytest.raises(rf.ModelError, match="list of joint names; got the text 'joint1'"):
        model.hybrid_dynamics(q, v, a, "joint1")
    with pytest.raises(rf.StateError, match=r"a_joints\[0\] is nan; it must be finite"):
        model.hybrid_dynamics(q, v, np.full(model.nv - 6, np.nan))
    with pytest.raises(rf.StateError, match="tau must be an array of real numbers"):
        model.hybrid_dynamics(q, v, a[:, 6:], tau="none")
