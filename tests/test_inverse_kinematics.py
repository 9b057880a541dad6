"""Numerical inverse kinematics: targets that are met, limits that are kept, what is out of reach."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from test_mechanisms import stewart_legs

import ramify as rf
from ramify.motion import Gait, Target, inverse_kinematics

KUKA = rf.load("kuka_kr5")
TIP = KUKA.bodies[-1].name


def poses(model: rf.Model, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q = np.random.default_rng(3).uniform(-1.5, 1.5, size=(rows, model.nq))
    R, r = model.kinematics(q)
    return q, R[:, -1], r[:, -1]


def test_random_poses_are_met_in_one_batch() -> None:
    _, R, r = poses(KUKA, 100)
    found = inverse_kinematics(KUKA, Target(TIP, r, R))
    assert found.converged.all()
    assert found.position_error.max() < 1e-10
    assert found.rotation_error.max() < 1e-10
    Rs, rs = KUKA.kinematics(found.q)
    np.testing.assert_allclose(rs[:, -1], r, atol=1e-10)
    np.testing.assert_allclose(Rs[:, -1], R, atol=1e-9)
    assert found.iterations.max() < 300


def test_a_point_of_a_body_and_the_short_form() -> None:
    point = np.array([0.1, -0.05, 0.2])
    q, R, r = poses(KUKA, 1)
    wanted = r[0] + R[0] @ point
    found = inverse_kinematics(KUKA, Target(TIP, wanted, point=point), q[0] + 0.2)
    Rs, rs = KUKA.kinematics(found.q)
    np.testing.assert_allclose(rs[-1] + Rs[-1] @ point, wanted, atol=1e-10)
    assert found.q.shape == (6,)
    assert inverse_kinematics(KUKA, {TIP: r[0]}).position_error[0] < 1e-10


def test_the_answer_stays_near_the_guess() -> None:
    q, _, r = poses(KUKA, 1)
    near = inverse_kinematics(KUKA, {TIP: r[0]}, q[0]).q
    np.testing.assert_array_equal(near, q[0])
    moved = inverse_kinematics(KUKA, {TIP: r[0] + [0.0, 0.0, 1e-3]}, q[0]).q
    assert np.abs(moved - q[0]).max() < 0.05


def test_it_agrees_with_legs_in_closed_form() -> None:
    model = rf.load("spatial_biped")
    gait = Gait.of(model, height=0.92, period=0.5, stride=0.3, lift=0.1, sway=0.08)
    t = np.linspace(0.0, 1.0, 21)
    m, ankles = gait.at(t), gait.ankles(t)
    guess = m.q.copy()
    guess[:, 6:] = 0.0
    guess[:, [9, 15]], guess[:, [8, 14]] = 0.6, -0.3  # knees backwards
    level = np.eye(3)
    found = inverse_kinematics(
        model,
        [Target("right_foot", ankles[:, 0], level), Target("left_foot", ankles[:, 1], level)],
        guess,
    )
    np.testing.assert_allclose(found.q, m.q, atol=1e-8)
    np.testing.assert_array_equal(
        found.q[:, :6], m.q[:, :6]
    )  # a floating base is not moved unless asked


def test_a_floating_base_moves_where_it_is_asked_to() -> None:
    model = rf.load("quadruped", base="free")
    feet = {f"{x}_{y}_shank": (x, y) for x in ("rear", "front") for y in ("left", "right")}
    places = {
        name: [0.5 if x == "front" else -0.5, 0.25 if y == "left" else -0.25, 0.0]
        for name, (x, y) in feet.items()
    }
    targets = [Target(name, place, point=[0.0, 0.0, -0.3]) for name, place in places.items()]
    targets += [Target("trunk", [0.1, 0.02, 0.45], np.eye(3))]
    guess = model.neutral()
    guess[2] = 0.5
    guess[7:] = np.tile([0.0, -0.5, 1.0], 4)
    found = inverse_kinematics(model, targets, guess, joints=[joint.name for joint in model.joints])
    assert np.linalg.norm(found.q[3:7]) == pytest.approx(1.0)
    np.testing.assert_allclose(found.q[:3], [0.1, 0.02, 0.45], atol=1e-9)


def test_limits_are_kept_and_may_be_in_the_way() -> None:
    model = rf.load("planar_3r")
    tip, reach = (
        Target(model.bodies[-1].name, point=[1.0, 0.0, 0.0], position=[1.5, 1.2, 0.0]),
        np.tile([-2.0, 2.0], (3, 1)),
    )
    free = inverse_kinematics(model, tip, [0.3, 0.3, 0.3], limits=reach)
    assert (np.abs(free.q) <= 2.0).all()
    tight = np.array([[-0.1, 0.1]] * 3)
    held = inverse_kinematics(model, tip, limits=tight, strict=False)
    assert not held.converged
    assert (np.abs(held.q) <= 0.1).all()
    np.testing.assert_allclose(held.q, 0.1)  # as far as it goes
    with pytest.raises(rf.StateError, match="limits"):
        inverse_kinematics(model, tip, limits=tight)


def test_weights_decide_between_targets_that_exclude_each_other() -> None:
    model = rf.load("planar_3r")
    body = model.bodies[-1].name
    a, b = np.array([1.0, 1.0, 0.0]), np.array([1.0, 2.0, 0.0])
    found = inverse_kinematics(
        model,
        [Target(body, a, weight=3.0), Target(body, b)],
        [0.3, 0.3, 0.3],
        strict=False,
        restarts=0,
    )
    np.testing.assert_allclose(found.position_error, [0.1, 0.9], atol=1e-6)  # 9 : 1


def test_what_is_out_of_reach_is_said() -> None:
    with pytest.raises(rf.StateError, match=rf"target 0 \('{TIP}'\) is not met, 3\.\d+ m remain"):
        inverse_kinematics(KUKA, {TIP: [5.0, 0.0, 0.0]})
    _, _, r = poses(KUKA, 3)
    r[1] = [9.0, 0.0, 0.0]
    with pytest.raises(rf.StateError, match="of state 1"):
        inverse_kinematics(KUKA, {TIP: r})
    quadruped = rf.load("quadruped")
    lifted = {quadruped.bodies[0].name: [0.0, 0.1, 0.7]}
    with pytest.raises(
        rf.StateError, match="floating base 'base' does not move by default; joints= can name it"
    ):
        inverse_kinematics(quadruped, lifted, restarts=0)
    np.testing.assert_allclose(
        inverse_kinematics(quadruped, lifted, joints=["base"]).q[:3], [0.0, 0.1, 0.7], atol=1e-9
    )
    nearest = inverse_kinematics(KUKA, {TIP: r}, strict=False)
    assert nearest.converged.tolist() == [True, False, True]
    at = KUKA.kinematics(nearest.q).position[1, -1]
    assert at[0] / np.linalg.norm(at) > 0.9  # stretched towards it


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        ([], "at least one"),
        ([Target(TIP)], "has no goal"),
        ([Target("elbow", [0.0, 0.0, 0.0])], "no link or frame 'elbow'"),
        ([Target(TIP, [0.0, np.nan, 0.0])], "finite"),
        ([Target(TIP, [0.0, 0.0])], "needs"),
        ([Target(TIP, rotation=np.ones((3, 3)))], "right angles"),
        ([Target(TIP, [0.0, 0.0, 0.0], weight=0.0)], "weight"),
        ([[0.0, 0.0, 0.0]], "Target"),
        ([Target(TIP, np.zeros((2, 3))), Target(TIP, np.zeros((3, 3)))], "do not fit together"),
    ],
)
def test_strange_targets(targets: list[object], said: str) -> None:
    with pytest.raises(rf.RamifyError, match=said):
        inverse_kinematics(KUKA, targets)  # type: ignore[arg-type]


# ---- closed mechanisms ----


def test_a_tilted_platform_gives_the_lengths_of_its_legs() -> None:
    """The basic task of a Stewart platform, against its closed form."""
    model = rf.load("stewart_platform")
    rng = np.random.default_rng(1)
    where = np.array((0.0, 0.0, 0.6)) + rng.uniform(-0.1, 0.1, size=(20, 3))
    turns = Rotation.from_rotvec(rng.uniform(-0.4, 0.4, size=(20, 3))).as_matrix()
    found = inverse_kinematics(model, Target("platform", where, turns))
    assert found.converged.all()
    assert found.loop_error.max() < 1e-10
    for q, p, R in zip(found.q, where, turns, strict=True):
        assert model.constraints(q).gap < 1e-10
        np.testing.assert_allclose(q[7:].reshape(6, 3), stewart_legs(p, R), atol=1e-9)


def four_bar(limits: tuple[float, float] | None = None) -> rf.Model:
    made = rf.Builder("four_bar", gravity=(0, -9.81, 0))
    rod = {"mass": 1.0, "com": (0.1, 0, 0), "inertia": (1e-4, 1e-2, 1e-2)}
    made.link("crank", **rod, **({} if limits is None else {"limits": [limits]}))
    made.link("rocker", at=(0.5, 0, 0), actuated=False, **rod)
    made.link("coupler", "crank", at=(0.2, 0, 0), actuated=False, **rod)
    made.loop("pin", "revolute", ("rocker", (0.35, 0, 0)), ("coupler", (0.5, 0, 0)), planar=True)
    return made.near(crank=1.0, rocker=1.2, coupler=-0.6).model()


def test_loops_stay_closed_where_a_target_is_out_of_reach() -> None:
    model = four_bar()
    far = Target("coupler", (3.0, 2.0, 0.0), point=(0.25, 0.1, 0.0))
    found = inverse_kinematics(model, far, strict=False, restarts=2)
    assert not found.converged
    assert found.loop_error < 1e-9
    assert model.constraints(found.q).gap < 1e-9
    angles = np.linspace(-np.pi, np.pi, 721)  # the nearest of all postures of this assembly
    crank = model.assemble({"crank": angles}).q
    R, r = model.tree.kinematics(crank)
    point = r[:, 2] + R[:, 2] @ (0.25, 0.1, 0.0)
    nearest = np.linalg.norm(point - (3.0, 2.0, 0.0), axis=1).min()
    assert found.position_error[0] < nearest + 1e-2
    with pytest.raises(rf.StateError, match="is not met with the loops closed"):
        inverse_kinematics(model, far, restarts=0)


def test_limits_of_closed_mechanisms_are_kept() -> None:
    free = four_bar()
    q = free.assemble({"crank": 1.4}).q
    R, r = free.tree.kinematics(q)
    target = Target("coupler", r[2] + R[2] @ (0.25, 0.1, 0.0), point=(0.25, 0.1, 0.0))
    assert inverse_kinematics(free, target).converged
    held = four_bar((0.5, 1.2))
    found = inverse_kinematics(held, target, strict=False, restarts=3)
    assert not found.converged
    assert 0.5 <= found.q[0] <= 1.2 + 1e-12
    assert held.constraints(found.q).gap < 1e-9


def test_a_floating_base_stays_though_its_legs_have_loops() -> None:
    made = rf.Builder("rider")
    made.link("trunk", joint="free", mass=5.0, inertia=(1, 1, 1))
    rod = {"mass": 1.0, "com": (0.1, 0, 0), "inertia": (1e-4, 1e-2, 1e-2)}
    made.link("crank", "trunk", **rod).link("rocker", "trunk", at=(0.5, 0, 0), **rod)
    made.link("coupler", "crank", at=(0.2, 0, 0), **rod)
    made.loop("pin", "revolute", ("rocker", (0.35, 0, 0)), ("coupler", (0.5, 0, 0)), planar=True)
    model = made.near(crank=1.0, rocker=1.2, coupler=-0.6).model()
    four = four_bar()
    q = four.assemble({"crank": 1.3}).q
    place = four.tree.kinematics(q).position[2]
    found = inverse_kinematics(model, {"coupler": place})
    np.testing.assert_array_equal(found.q[:7], model.neutral()[:7])
    assert model.constraints(found.q).gap < 1e-9


def test_a_reflection_is_no_rotation() -> None:
    target = Target("link6", rotation=np.diag([1.0, 1.0, -1.0]))
    with pytest.raises(rf.StateError, match="no reflection"):
        inverse_kinematics(rf.load("kuka_kr5"), [target])
