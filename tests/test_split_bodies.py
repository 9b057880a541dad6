"""Joints that close a loop and keep their coordinates, for limits, friction or a drive: the body
beyond them is split and joined again. The motion is that of the same mechanism cut elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from given_whole import four_bar, six_bar, spatial

import ramify as rf
from ramify.core.arrays import Array
from ramify.dynamics.closure import reach
from ramify.loops.far_guess import pose_errors
from ramify.loops.survey import survey
from ramify.motion import Target
from ramify.view.scene import make_scene

DRY = {"coulomb": 0.01, "slip_speed": 0.01}


def cut_names(made: rf.Mechanism) -> list[str]:
    return [edge.name for edge in made.spanning_tree().cut]


def torque(model: rf.Model, turn: Any = 1.0) -> Array:
    """What the motor gives along a motion."""
    state = model.assemble({"motor": turn}, {"motor": 3.0}, None, {"motor": -2.0})
    return model.inverse_dynamics(*state)[..., model.velocities.index("motor")]


def same_motion(one: rf.Model, other: rf.Model, **options: Any) -> None:
    """Runs of both agree in all joints that they share, and their energy balances."""
    runs = [
        rf.simulate(m, 1.0, m.assemble({"motor": 1.0}).q, rtol=1e-12, atol=1e-13, **options)
        for m in (one, other)
    ]
    for name in set(one.coordinates) & set(other.coordinates):
        np.testing.assert_allclose(runs[0][name], runs[1][name], atol=1e-9)
    assert all(run.audit.passed for run in runs)
    assert np.ptp(runs[0]["motor"]) > 0.3


# ---- which joints are cut ----


@pytest.mark.parametrize(
    "load",
    [
        {"limits": (-0.9, 0.9)}, {"damping": 0.1}, {"friction": 0.1}, {"armature": 1e-3},
        {"spring": {"stiffness": 1.0}}, {"effort": 5.0}, {"velocity": 3.0},
    ],
)  # fmt: skip
def test_a_joint_that_needs_its_coordinate_is_not_chosen(load: dict[str, Any]) -> None:
    assert cut_names(four_bar()) == ["A"]
    assert cut_names(four_bar(A=load)) == ["B"]
    assert cut_names(four_bar(A=load, B=load)) == ["O2"]
    assert cut_names(four_bar(A=load, B=load, O2=load)) == ["A"]
    model = four_bar(A=load).model()
    assert [loop.name for loop in model.loops] == ["B"]


def test_elements_that_do_nothing_count_as_none() -> None:
    idle: dict[str, Any] = {
        "damping": 0.0, "friction": 0.0, "armature": 0, "spring": {"stiffness": 0.0},
        "limits": (-np.inf, np.inf), "stop": {"time": 0.01}, "effort": np.inf,
    }  # fmt: skip
    model = four_bar(A=idle).model()
    assert [loop.name for loop in model.loops] == ["A"]
    assert torque(model) == pytest.approx(torque(four_bar().model()), rel=1e-14)


# ---- the split is exact ----


def test_limits_hold_whichever_joint_is_cut() -> None:
    made = four_bar(A={"limits": (-0.9, 0.9)})
    for cut in (["A"], ["B"], None):
        model = made.model(cut=cut)
        run = rf.simulate(model, 1.0, model.assemble({"motor": 1.0}).q)
        assert run["A"].max() < 0.93
        assert np.ptp(run["motor"]) < 1.0  # 5.6 rad without the limits
        assert run.limits_reached[0].name == "A"


@pytest.mark.parametrize(
    "load",
    [
        {"damping": 0.02},
        {"friction": DRY},
        {"spring": {"stiffness": 1.0, "rest": 0.2}},
        {"armature": 1e-3},
        {"limits": (-0.9, 0.9), "stop": {"stiffness": 20.0}},
    ],
    ids=["damping", "friction", "spring", "armature", "stop"],
)
def test_a_split_four_bar_moves_as_the_one_that_is_cut_elsewhere(load: dict[str, Any]) -> None:
    made = four_bar(A=load)
    split, plain = made.model(cut=["A"]), made.model(cut=["B"])
    assert [body.name for body in split.bodies if "coupler" in body.name] == [
        "coupler (second half)", "coupler",
    ]  # fmt: skip
    (weld,) = split.loops
    assert (weld.name, weld.rows) == ("weld of coupler", ("x", "y", "turn_z"))
    assert split.mass == pytest.approx(plain.mass, rel=1e-15)
    assert split.degrees_of_freedom == plain.degrees_of_freedom == 1
    assert split.check() == plain.check() == []
    assert not split.constraints(split.assemble().q).redundant
    assert np.linalg.eigvalsh(split.mass_matrix(split.assemble().q)).min() > 0.0
    turn = np.linspace(0.0, 6.0, 25)
    np.testing.assert_allclose(torque(split, turn), torque(plain, turn), atol=1e-10)
    same_motion(split, plain)


def test_friction_in_all_pins_of_a_six_bar() -> None:
    """Two of them close loops. With c and o2, b and c the rocker is in three parts."""
    made = six_bar(damping=0.01, friction=DRY)
    models = [made.model(cut=cut) for cut in (None, ["a", "d"], ["b", "c"], ["c", "o2"])]
    for model in models:
        assert {"a", "b", "c", "d", "o2", "o3", "motor"} == set(model.coordinates)
        assert model.check() == []
        assert model.degrees_of_freedom == 1
        assert model.mass == pytest.approx(5.0, rel=1e-14)
        turn = np.linspace(0.0, 6.0, 7)
        np.testing.assert_allclose(torque(model, turn), torque(models[0], turn), atol=1e-10)
    assert [body.name for body in models[2].bodies if "rocker (" in body.name] == [
        "rocker (part 2 of 3)", "rocker (part 3 of 3)",
    ]  # fmt: skip
    assert models[2].body("rocker").mass == pytest.approx(1.0 / 3.0)
    same_motion(models[0], models[1])
    same_motion(models[0], models[2])


def test_the_torque_against_friction_in_all_pins() -> None:
    """Under a prescribed motion the power of the motor is that of inverse dynamics and the loss."""
    load = {"damping": 0.05}
    model = four_bar(A=load, B=load, O2=load, motor=load).model()
    state = model.assemble({"motor": 0.0}, {"motor": 3.0})
    motion = rf.control.Prescribed(rf.motion.TimeFunction(lambda t: 3.0 * t))
    run = rf.simulate(model, 2.0, state.q, state.v, control=motion)
    k = model.velocities.index("motor")
    power = 3.0 * model.inverse_dynamics(run.q, run.v, run.a)[:, k]
    loss = 0.05 * (run.v**2).sum(axis=1)
    np.testing.assert_allclose(3.0 * run.tau[:, k], power + loss, atol=1e-7)
    tau = model.inverse_dynamics(run.q, run.v, run.a, passive=True)
    np.testing.assert_allclose(3.0 * tau[:, k], power + loss, atol=1e-7)


def test_driven_joints_may_close_a_loop() -> None:
    """Redundant drives: the shortest torques do the work that one drive would do."""
    driven = {"actuated": True, "planar": True}
    model = four_bar(A=driven, B=driven, O2=driven).model()
    assert model.degrees_of_freedom == 1
    assert {joint.name for joint in model.joints if joint.actuated} == {"motor", "A", "B", "O2"}
    state = model.assemble({"motor": 1.0}, {"motor": 3.0}, None, {"motor": -2.0})
    power = model.inverse_dynamics(*state) @ state.v
    assert power == pytest.approx(3.0 * float(torque(four_bar().model())), rel=1e-10)
    other = four_bar().model(cut=["motor"])
    np.testing.assert_allclose(torque(other), torque(four_bar().model()), atol=1e-12)


def test_a_ball_joint_with_damping_and_a_cone_is_kept() -> None:
    made = spatial(damping=0.02, cone=3.0)
    split, plain = made.model(cut=["ball"]), made.model(cut=["cross"])
    assert [loop.rows for loop in split.loops] == [("x", "y", "z", "turn_x", "turn_y", "turn_z")]
    assert split.joint("ball").machine[0].cone == 3.0
    assert split.degrees_of_freedom == plain.degrees_of_freedom
    np.testing.assert_allclose(torque(split, 0.5), torque(plain, 0.5), atol=1e-10)
    same_motion(split, plain)


def test_a_screw_can_close_a_loop() -> None:
    """A nut that slides without turning, on a screw that turns: x = pitch · angle."""
    made = rf.Mechanism("vice", gravity=(0, 0, 0))
    made.body("screw", mass=1.0, inertia=(1e-2, 1e-2, 2e-2))
    made.body("nut", mass=3.0, inertia=(1e-2, 1e-2, 1e-2))
    made.joint("motor", None, "screw").joint("slide", None, "nut", "prismatic", actuated=False)
    made.joint("thread", "screw", "nut", "helical", pitch=0.1, actuated=False)
    model = made.model(cut=["thread"])
    state = model.assemble({"motor": 0.5}, {"motor": 1.0}, None, {"motor": 2.0})
    assert model.degrees_of_freedom == 1
    at = model.coordinates.index("slide")
    assert state.q[at] == pytest.approx(-0.05)  # turned back against the screw
    expected = 2.0 * (2e-2 + 3.0 * 0.1**2)
    assert model.inverse_dynamics(*state)[0] == pytest.approx(expected, rel=1e-12)


# ---- everything else ----


def test_derivatives_and_inverse_kinematics_of_a_split_body() -> None:
    made = four_bar(A={"limits": (-0.9, 0.9), "damping": 0.02})
    split, plain = made.model(cut=["A"]), made.model(cut=["B"])
    state = split.assemble({"motor": 1.0}, {"motor": 2.0})
    tau = np.array([0.3, 0.0, 0.0, 0.0])
    _, by_v, by_tau = split.forward_dynamics_derivatives(state.q, state.v, tau)
    for k in range(4):
        h = 1e-6 * np.eye(4)[k]
        ahead, behind = (split.forward_dynamics(state.q, state.v, tau + s * h) for s in (1, -1))
        np.testing.assert_allclose(by_tau[:, k], (ahead - behind) / 2e-6, atol=1e-5)
        ahead, behind = (split.forward_dynamics(state.q, state.v + s * h, tau) for s in (1, -1))
        np.testing.assert_allclose(by_v[:, k], (ahead - behind) / 2e-6, atol=1e-5)
    goal = split.pose(state.q, "coupler").position
    for model in (split, plain):
        found = rf.ik(model, Target("coupler", position=goal))
        assert found.q[model.coordinates.index("motor")] == pytest.approx(1.0, abs=1e-6)


def test_the_parts_are_drawn_once_and_kept_by_files(tmp_path: Path) -> None:
    made = four_bar(A={"limits": (-0.9, 0.9)})
    split, plain = made.model(cut=["A"]), made.model(cut=["B"])
    split.save(tmp_path / "split.yaml")
    again = rf.load(tmp_path / "split.yaml")
    for model in (split, again):
        parts = [part for part in make_scene(model).parts if part.kind == "link"]
        assert len(parts) == 3
        assert len(make_scene(model).parts) == len(make_scene(plain).parts)
    np.testing.assert_array_equal(torque(again), torque(split))
    assert "weld of coupler: fixed" in survey(split).text
    assert survey(split).least == ("weld of coupler",)


FILE = """
name: four_bar
gravity: [0, -9.81, 0]
links:
  - {name: crank, mass: 0.4, com: [0.04, 0, 0], inertia: [1e-6, 2e-4, 2e-4], shapes: [{box: [0.08, 0.01, 0.01]}]}
  - {name: coupler, mass: 1, com: [0.125, 0, 0], inertia: [1e-6, 5e-3, 5e-3], shapes: [{box: [0.2, 0.01, 0.01]}],
     points: {tip: [0.3, 0, 0]}, gravity_compensation: 0.5}
  - {name: rocker, mass: 0.8, com: [0.11, 0, 0], inertia: [1e-6, 3e-3, 3e-3]}
joints:
  - {name: motor, second: {link: crank}}
  - {name: A, joint: {actuated: false, planar: true, damping: 0.02}, first: {link: crank, xyz: [0.08, 0, 0]}, second: {link: coupler}}
  - {name: B, joint: {actuated: false, planar: true}, first: {link: coupler, xyz: [0.25, 0, 0]}, second: {link: rocker, xyz: [0.22, 0, 0]}}
  - {name: O2, joint: {actuated: false, planar: true}, first: {xyz: [0.28, 0, 0]}, second: {link: rocker}}
guess: {motor: 1, O2: 1.4}
"""


def test_files_split_bodies_too(tmp_path: Path) -> None:
    models = []
    for cut in ("A", "B"):
        path = tmp_path / f"{cut}.yaml"
        path.write_text(f"{FILE}cut: [{cut}]\n")
        models.append(rf.load(path))
    split, plain = models
    assert [loop.name for loop in split.loops] == ["weld of coupler"]
    assert [point for body in split.bodies for point, _ in body.points] == ["tip"]
    assert len([shape for body in split.bodies for shape in body.shapes]) == 2
    assert sum(body.lift[0] for body in split.bodies) == pytest.approx(0.5)
    same_motion(split, plain)


SDF = """<sdf version="1.9"><world name="w"><gravity>0 -9.81 0</gravity><model name="bars">
  <joint name="hold" type="fixed"><parent>world</parent><child>ground</child></joint>
  <link name="ground"/>{links}{joints}</model></world></sdf>"""


def test_limits_of_a_second_joint_in_sdf_are_kept(tmp_path: Path) -> None:
    body = (
        "<inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>"
    )
    links = "".join(
        f'<link name="{name}"><pose>{at} 0 0 0 0</pose>{body}</link>'
        for name, at in (("a", "0 0"), ("b", "0 1"), ("c", "2 0"))
    )
    pins = (("ground", "a", "0 0"), ("a", "b", "0 1"), ("ground", "c", "2 0"), ("b", "c", "2 1"))

    def model(limit: str) -> rf.Model:
        joints = "".join(
            f'<joint name="{p}{c}" type="revolute"><pose relative_to="__model__">{at} 0 0 0 0'
            f"</pose><parent>{p}</parent><child>{c}</child><axis><xyz>0 0 1</xyz>"
            f"{limit if p == 'b' else ''}</axis></joint>"
            for p, c, at in pins
        )
        path = tmp_path / "bars.sdf"
        path.write_text(SDF.format(links=links, joints=joints))
        return rf.load(path)

    free = model("")
    held = model("<limit><lower>-0.1</lower><upper>0.1</upper></limit>")
    assert [loop.name for loop in held.loops] == ["weld of c"]
    assert held.mass == pytest.approx(free.mass)
    assert held.degrees_of_freedom == free.degrees_of_freedom == 1
    starts = [m.assemble({"groundc": 0.0}, {"groundc": 0.5}) for m in (free, held)]
    spins = [
        rf.simulate(m, 0.5, at.q, at.v)["groundc"]
        for m, at in zip((free, held), starts, strict=True)
    ]
    assert np.abs(spins[0]).max() > 0.2
    assert np.abs(spins[1]).max() < 0.12


def test_a_planar_weld_grows_with_the_angle_and_needs_its_plane() -> None:
    model = four_bar(A={"damping": 0.1}).model(cut=["A"])
    q = model.assemble({"motor": 1.0}).q
    q[model.coordinates.index("A")] += 3.0
    assert pose_errors(model, q)[2] == pytest.approx(3.0 * reach(model))  # its sine is small
    body = {"mass": 1.0, "inertia": (1.0, 1.0, 1.0)}
    tilting = rf.Builder("tilting").link("a", axis=(1, 0, 0), **body).link("b", "a", **body)
    weld = tilting.loop("weld", "fixed", (None, (0, 0, 0)), ("b", (0, 0, 0)), planar=True)
    with pytest.raises(
        rf.LoopError, match=r"called planar, but 'a' moves it out of its plane \(turn_x"
    ):
        weld.model().assemble()
    along = tilting.model().loops[0]
    assert replace(along, axis=(1.0, 0.0, 0.0)).frames[0].rotation[:, 2].tolist() == [1.0, 0.0, 0.0]
