"""Free, ball and Euler-angle joints: one motion in different coordinates, the configuration
manifold, gimbal lock, Pinocchio.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from peers import model_of, pinocchio_of, random_model, states, worst

import ramify as rf
from ramify.api.model import Model
from ramify.model.body import Body
from ramify.model.joint import SPHERICAL_SEQUENCES, Joint

TIERS = ("numpy", "rolled", "unrolled")
SIMPLE = ("revolute", "prismatic", "ball", "helical")
QUATERNION = {"spherical": "ball", "free_euler": "free"}


# ---- one motion, different coordinates ----


def on_quaternions(model: Model) -> tuple[Model, dict[str, str]]:
    """The same robot with its Euler-angle joints on quaternions, and the forms that say so."""
    bodies: list[Body] = []
    forms: dict[str, str] = {}
    for body in model.bodies:
        joint = body.joint
        if joint.kind in QUATERNION:
            forms[joint.name] = "quaternion"
            joint = Joint(joint.name, QUATERNION[joint.kind], joint.placement, joint.outlet)
        bodies.append(replace(body, joint=joint))
    return model_of(tuple(bodies), model.gravity), forms


def with_sequence(model: Model, sequence: str) -> Model:
    """The same robot with every Euler-angle joint in one sequence."""
    bodies = (
        replace(
            b, joint=replace(b.joint, sequence=sequence) if len(b.joint.sequence) == 3 else b.joint
        )
        for b in model.bodies
    )
    return model_of(tuple(bodies), model.gravity)


@pytest.mark.parametrize(
    ("sequence", "tier"),
    [
        (sequence, tier)
        for tier in TIERS
        for sequence in SPHERICAL_SEQUENCES[:: 4 if tier == "unrolled" else 1]
    ],
)
def test_euler_angles_and_quaternions_move_alike(sequence: str, tier: Any) -> None:
    """Forward dynamics in Euler angles, mapped, is forward dynamics in quaternions; so are forces,
    energies and matrices.
    """
    seed = SPHERICAL_SEQUENCES.index(sequence)
    euler = with_sequence(
        random_model(seed, ("revolute", "spherical", "prismatic"), 4, "free_euler"), sequence
    )
    turning, forms = on_quaternions(euler)
    q, v, tau = states(euler, 3, seed)
    found = euler.kernel("forward_dynamics", tier)(q, v, tau)
    mapped = euler.to_mujoco(q, v, found, tau, forms=forms)
    there = turning.kernel("forward_dynamics", tier)(mapped.q, mapped.v, mapped.tau)
    exact = 1e-11 + 1e-13 * float(np.linalg.cond(euler.mass_matrix(q)).max())
    assert worst(there, mapped.a) < exact
    assert (
        worst(turning.kernel("inverse_dynamics", tier)(mapped.q, mapped.v, mapped.a), mapped.tau)
        < exact
    )
    assert_allclose(turning.energy(mapped.q, mapped.v), euler.energy(q, v), rtol=1e-11, atol=1e-11)
    assert_allclose(turning.kinematics(mapped.q).rotation, euler.kinematics(q).rotation, atol=1e-12)
    T = np.swapaxes(np.array(euler.to_mujoco(q[0], np.eye(euler.nv), forms=forms).v), -1, -2)
    assert (
        worst(T.T @ turning.kernel("mass_matrix", tier)(mapped.q[0]) @ T, euler.mass_matrix(q[0]))
        < 1e-11
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_free_joint_is_three_slides_and_a_ball(seed: int) -> None:
    """q and v in a row: the same numbers in all of the dynamics."""
    whole = random_model(seed, SIMPLE, 5, "free")
    base = whole.bodies[0]
    slides = [
        Body(
            f"s{i}",
            i - 1,
            Joint(
                f"s{i}",
                "prismatic",
                base.joint.placement if i == 0 else rf.Frame(),
                axis=tuple(axis),
            ),
        )
        for i, axis in enumerate(np.eye(3).tolist())
    ]
    socket = replace(base, parent=2, joint=Joint("socket", "ball", outlet=base.joint.outlet))
    others = [replace(body, parent=body.parent + 3) for body in whole.bodies[1:]]
    run = model_of((*slides, socket, *others), whole.gravity)
    q, v, a = states(whole, 4, seed)
    for name in ("inverse_dynamics", "forward_dynamics"):
        assert worst(run.kernel(name)(q, v, a), whole.kernel(name)(q, v, a)) < 1e-9
    assert worst(run.coriolis_matrix(q, v), whole.coriolis_matrix(q, v)) < 1e-11


# ---- random trees against Pinocchio ----


@pytest.mark.parametrize("seed", range(32))
def test_random_trees_with_quaternions(seed: int) -> None:
    """ID, FD, M, C v, gravity and Jacobians of every body, rolled, against Pinocchio's free flyers
    and spherical joints.
    """
    model = random_model(seed, (*SIMPLE, "ball", "free"), 8, "free" if seed % 2 else "ball")
    peer = pinocchio_of(model)
    data = peer.createData()
    k = {
        n: model.kernel(n, "rolled")
        for n in (
            "inverse_dynamics",
            "forward_dynamics",
            "mass_matrix",
            "coriolis_matrix",
            "gravity_forces",
        )
    }
    (q,), (v,), (a,) = states(model, 1, seed)
    tau, M = k["inverse_dynamics"](q, v, a), k["mass_matrix"](q)
    theirs = model.to_pinocchio(q, v, a, tau)
    T = np.swapaxes(np.array(model.to_pinocchio(q, np.eye(model.nv)).v), -1, -2)  # their v = T v
    assert worst(pin.rnea(peer, data, *theirs[:3]), theirs.tau) < 1e-10
    full = pin.crba(peer, data, theirs.q).reshape(model.nv, -1)
    full = np.triu(full) + np.triu(full, 1).T
    assert worst(M, T.T @ full @ T) < 1e-10
    exact = 1e-10 + 1e-14 * float(np.linalg.cond(M))
    assert worst(pin.aba(peer, data, theirs.q, theirs.v, theirs.tau), theirs.a) < exact
    assert worst(k["forward_dynamics"](q, v, tau), a) < exact
    g = T.T @ pin.computeGeneralizedGravity(peer, data, theirs.q)
    assert worst(k["gravity_forces"](q), g) < 1e-10
    steady = model.to_pinocchio(q, v, np.zeros(model.nv))
    assert (
        worst(k["coriolis_matrix"](q, v) @ v, T.T @ pin.rnea(peer, data, *steady[:3]) - g) < 1e-10
    )
    for body in model.bodies:
        J = (
            pin.computeFrameJacobian(
                peer, data, theirs.q, peer.getFrameId(body.name), pin.LOCAL_WORLD_ALIGNED
            ).reshape(6, -1)
            @ T
        )
        assert worst(model.jacobian(q, body.name), np.vstack([J[3:], J[:3]])) < 1e-10


# ---- the configuration manifold ----

ROBOT = random_model(11, ("revolute", "ball", "spherical"), 5, "free")
numbers = st.floats(-3.0, 3.0, allow_nan=False)


@given(
    st.integers(0, 10**6),
    st.lists(numbers, min_size=ROBOT.nv, max_size=ROBOT.nv),
    st.floats(1e-3, 1.0),
)
def test_integrate_and_difference_are_inverse(seed: int, rates: list[float], dt: float) -> None:
    """difference(q, integrate(q, v, dt)) = v dt while no ball joint turns by more than half a turn,
    and the other way round.
    """
    q, other = ROBOT.random(seed)[0], ROBOT.random(seed + 1)[0]
    v = np.array(rates)
    for _, j in ROBOT.layout.balls:
        v[j : j + 3] *= min(1.0, 3.1 / max(1e-300, float(np.linalg.norm(v[j : j + 3]) * dt)))
    assert_allclose(ROBOT.difference(q, ROBOT.integrate(q, v, dt)), v * dt, atol=1e-12)
    moved = ROBOT.integrate(q, ROBOT.difference(q, other), 1.0)
    for i, _ in ROBOT.layout.balls:
        moved[i : i + 4] *= np.sign(
            moved[i : i + 4] @ other[i : i + 4]
        )  # q and -q are one rotation
    assert_allclose(moved, other, atol=1e-12)


def test_integrate_follows_the_velocity() -> None:
    """The point of a body moves with J v."""
    q, v = ROBOT.random(3)
    h, name = 1e-6, ROBOT.bodies[-1].name
    ahead, behind = (
        ROBOT.kinematics(ROBOT.integrate(q, v, s * h)).position[-1] for s in (1.0, -1.0)
    )
    assert_allclose((ahead - behind) / (2 * h), (ROBOT.jacobian(q, name) @ v)[3:], atol=1e-8)


@pytest.mark.parametrize("tier", TIERS)
def test_quaternions_are_normalised_within_a_tolerance(tier: Any) -> None:
    q, v = ROBOT.random(5)
    kernel = ROBOT.kernel("inverse_dynamics", tier)
    exact = kernel(q, v, v)
    i = ROBOT.layout.balls[0][0]
    near, far = q.copy(), q.copy()
    near[i : i + 4] *= 1.00005
    far[i : i + 4] *= 1.001
    for _ in range(3):  # through the Python path and, once it is there, the builtin
        assert worst(kernel(near, v, v), exact) < 1e-13
        with pytest.raises(rf.StateError, match=rf"has length {1.001}.*; it must be 1"):
            kernel(far, v, v)
    nothing = q.copy()
    nothing[i : i + 4] = 0.0
    with pytest.raises(
        rf.StateError, match=r"\(q\[\d+:\d+\] of state 1\) has length 0; it must be 1"
    ):
        kernel(np.stack([q, nothing]), v, v)


# ---- gimbal lock ----


def locked(kind: str, sequence: str) -> tuple[Model, np.ndarray, int]:
    """A robot on an Euler-angle joint, a configuration in gimbal lock, and the place of the angle."""
    builder = rf.Builder("robot").link(
        "hip", joint=kind, sequence=sequence, mass=1.0, com=(0.1, 0.2, 0.3), inertia=(0.1, 0.2, 0.3)
    )
    model = builder.link(
        "leg",
        "hip",
        at=(0, 0, -0.4),
        axis=(0, 1, 0),
        mass=0.5,
        com=(0, 0, -0.2),
        inertia=(0.01, 0.01, 0.001),
    ).model()
    place = model.joints[0].nq - 2
    q = model.random(1)[0]
    q[place] = 0.0 if sequence[0] == sequence[2] else np.pi / 2
    return model, q, place


@pytest.mark.parametrize(("kind", "better"), [("spherical", "ball"), ("free_euler", "free")])
@pytest.mark.parametrize("sequence", ["YXZ", "ZYZ"])
def test_gimbal_lock_is_named(kind: str, better: str, sequence: str) -> None:
    model, q, place = locked(kind, sequence)
    zero = np.zeros(model.nv)
    angle = rf"its middle angle hip\.\w2 = \S+ rad \(q\[{place}\]"
    said = rf"joint 'hip' is in gimbal lock: at {angle}.* of {sequence} .*use a '{better}' joint"
    for turns in (0.0, np.pi, -np.pi):
        at = q.copy()
        at[place] += turns
        for tier in TIERS:
            with pytest.raises(rf.StateError, match=said):
                model.kernel("forward_dynamics", tier)(at, zero, zero)  # type: ignore[arg-type]
    for ask in (model.mass_matrix_inverse, model.udu, model.udu_inverse):
        with pytest.raises(rf.StateError, match=said):
            ask(q)
    with pytest.raises(rf.StateError, match=rf"q\[{place}\] of state 1"):
        model.forward_dynamics(np.stack([model.random(2)[0], q]), zero, zero)
    with pytest.raises(rf.StateError, match=said):
        model.hybrid_dynamics(q, zero, [0.0])
    model.hybrid_dynamics(q, zero, np.zeros(model.nv), [joint.name for joint in model.joints])
    assert np.isfinite(model.inverse_dynamics(q, zero, zero)).all()
    assert np.isfinite(model.mass_matrix(q)).all()


@pytest.mark.usefixtures("background_compiler")
def test_gimbal_lock_is_seen_by_the_builtin() -> None:
    """Once single states go straight to compiled code, too; and near a lock finite answers are left
    alone.
    """
    model, q, place = locked("free_euler", "XYZ")
    zero, away = np.zeros(model.nv), model.random(2)[0]
    for _ in range(20):
        model.forward_dynamics(away, zero, zero)
    for _ in range(1200):
        if model.kernel("forward_dynamics").tier == "unrolled":
            break
        time.sleep(0.05)
    else:
        raise AssertionError("the background compiler has not answered")
    model.forward_dynamics(away, zero, zero)
    with pytest.raises(rf.StateError, match="joint 'hip' is in gimbal lock"):
        model.forward_dynamics(q, zero, zero)
    many = np.tile(away, (70, 1))
    assert np.isfinite(
        model.forward_dynamics(many, np.tile(zero, (70, 1)), np.tile(zero, (70, 1)))
    ).all()
    many[41] = q
    with pytest.raises(rf.StateError, match=r"joint 'hip' is in gimbal lock.* of state 41"):
        model.forward_dynamics(many, np.tile(zero, (70, 1)), np.tile(zero, (70, 1)))
    q[place] += 1e-3
    assert np.isfinite(model.forward_dynamics(q, zero, zero)).all()
    found = model.singularities(np.stack([q, away]), tolerance=0.01)
    assert [(one.state, one.joint, one.coordinate) for one in found] == [((0,), "hip", "hip.y2")]
    assert found[0].distance == pytest.approx(1e-3)
    assert model.singularities(q, tolerance=1e-4) == []


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("sequence", ["YXZ", "ZYZ"])
def test_near_gimbal_lock_answers_are_refused_or_their_lost_digits_reported(
    tier: Any, sequence: str
) -> None:
    """The pivot falls with the square of the distance: at 2e-8 rad no digit of it is left."""
    model, q, place = locked("spherical", sequence)
    zero, lock = np.zeros(model.nv), q[place]
    ask = model.kernel("forward_dynamics", tier)
    for distance in (2e-9, 2e-8, 9e-7):
        for sign in (1.0, -1.0):
            q[place] = lock + sign * distance
            with pytest.raises(rf.StateError, match="joint 'hip' is in gimbal lock"):
                ask(q, zero, zero)
    q[place] = lock + 2e-6
    with pytest.warns(
        RuntimeWarning, match=r"'hip' is 2e-06 rad from gimbal lock .*about 12 of 16"
    ):
        ask(q, zero, zero)
    q[place] = lock + 2e-4
    for _ in range(3):
        assert np.isfinite(ask(q, zero, zero)).all()


def test_rollouts_refuse_and_warn_near_gimbal_lock_alike() -> None:
    model, q, place = locked("free_euler", "YXZ")
    zero = np.zeros(model.nv)
    starts = np.stack([model.random(2)[0], q])
    starts[1, place] += 2e-8
    with pytest.raises(rf.StateError, match=r"joint 'hip' is in gimbal lock.* of state 1"):
        rf.rollout(model, starts, zero, steps=1, dt=1e-3)
    starts[1, place] = q[place] + 2e-6
    with pytest.warns(RuntimeWarning, match="'hip' is 2e-06 rad from gimbal lock .*12 of 16"):
        rf.rollout(model, starts, zero, steps=1, dt=1e-3)
    model, q, _ = locked("spherical", "YXZ")
    held = rf.control.Prescribed(rf.motion.Hold(q))  # a prescribed joint may be in gimbal lock
    r = rf.rollout(model, q, np.zeros(4), steps=1, dt=1e-3, control=held, method="rk4")
    assert_allclose(r.q, q)


@pytest.mark.parametrize("size", [1e200, 1e308, 1e-200])
def test_quaternions_of_absurd_length_are_refused_without_warnings(size: float) -> None:
    m = rf.load("quadruped", base="free")
    q, v = m.random(0)
    q[3:7] *= size
    for sent in (q, np.stack([q, q])):
        with pytest.raises(rf.StateError, match="has length"):
            m.integrate(sent, v, 0.1)
        with pytest.raises(rf.StateError, match="has length"):
            m.inverse_dynamics(sent, np.zeros(m.nv), np.zeros(m.nv))


@given(st.integers(0, 10_000))
def test_difference_takes_the_short_way_round(seed: int) -> None:
    """A quaternion and its negative are one orientation: no difference turns by more than pi."""
    q, other = ROBOT.random(seed)[0], ROBOT.random(seed + 1)[0]
    for i, j in ROBOT.layout.balls:
        for sign in (1.0, -1.0):
            turned = other.copy()
            turned[i : i + 4] *= sign
            way = ROBOT.difference(q, turned)[j : j + 3]
            assert np.linalg.norm(way) <= np.pi + 1e-12
            assert_allclose(way, ROBOT.difference(q, other)[j : j + 3], atol=1e-12)
        same = q.copy()
        same[i : i + 4] *= -1.0
        assert np.abs(ROBOT.difference(q, same)[j : j + 3]).max() < 1e-12


@pytest.mark.parametrize("kind", ["universal", "spherical", "cylindrical", "planar", "free_euler"])
def test_random_states_keep_the_limits_of_every_coordinate(kind: str) -> None:
    """Joints of several coordinates, each with limits of its own."""
    size = {"universal": 2, "cylindrical": 2, "free_euler": 6}.get(kind, 3)
    limits = [(0.1 + 0.2 * i, 0.15 + 0.2 * i) for i in range(size)]
    one = rf.Builder("limited").link("a", joint="revolute", mass=1.0, inertia=(1.0, 1.0, 1.0))
    model = one.link("b", "a", kind, mass=1.0, inertia=(1.0, 1.0, 1.0), limits=limits).model()
    of_q = model.joint_slice(model.joints[1].name, "q")
    low, high = np.array(limits).T
    for seed in range(20):
        q = model.random(seed)[0][of_q]
        assert (low <= q).all()
        assert (q <= high).all()
