"""Scenarios: those that ship, their files and mistakes, overrides, records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ramify as rf
from ramify.motion import PlanarLine
from ramify.scenario_files.scenario import read_scenario
from ramify.scenario_files.shipped import is_scenario

SHIPPED = (
    "biped_controlled", "biped_open_loop", "gripper_free_fall", "kuka_free_fall", "kuka_motion", "planar_3r_free_fall",
    "stanford_free_fall", "stanford_motion", "two_link_line",
)  # fmt: skip
SMALL = "name: small\nrobot: planar_3r\nt_end: 0.1\n"


def test_the_promised_scenarios_ship() -> None:
    assert set(SHIPPED) <= set(rf.scenarios())


@pytest.mark.parametrize("name", rf.scenarios())
def test_shipped_scenarios_run_and_pass_the_audit(name: str) -> None:
    s = rf.scenario(name)
    assert s.name == name
    assert s.description
    assert s.source
    r = s.run()
    assert r.status == "finished"
    assert r.t[-1] == pytest.approx(s.options["t_end"])
    assert r.audit.passed
    assert r.options["scenario"]["text"] == s.text


# ---- what the sources say of them ----


def test_the_3r_arm_falls_like_a_triple_pendulum() -> None:
    r = rf.scenario("planar_3r_free_fall").run()
    assert (r.q[1:20, 0] < 0.0).all()  # the first angle grows in the negative direction
    assert np.ptp(r.energy.kinetic) > 10.0


def test_joint_2_of_the_stanford_arm_falls_and_the_slide_runs_out_downward() -> None:
    """From 90 to 4.6 degrees, which takes the slide's axis from level to almost straight down."""
    r = rf.scenario("stanford_free_fall").run()
    assert r.q[0].tolist() == pytest.approx([0.0, np.pi / 2, 0.0, 0.0, 0.0, 0.0])
    theta_2, slide = np.degrees(r["joint2"]), r["joint3"]
    assert (np.diff(theta_2) < 0.0).all()
    assert theta_2[-1] == pytest.approx(4.639, abs=1e-3)
    assert (np.diff(slide) > 0.0).all()
    assert slide[-1] == pytest.approx(2.9997, abs=1e-4)
    axis = r.model.kinematics(r.q).rotation[:, r.model.body_index("link3"), :, 2]
    assert abs(axis[0, 2]) < 1e-12
    assert axis[-1, 2] == pytest.approx(-np.cos(np.radians(4.639)), abs=1e-4)


def test_the_gripper_falls_from_minus_60_degrees() -> None:
    r = rf.scenario("gripper_free_fall").run()
    assert r.q[0].tolist() == pytest.approx([-np.pi / 3, 0.0, 0.0, 0.0])
    assert len(r) == 1001


@pytest.mark.parametrize(
    ("name", "off"), [("kuka_motion", 1e-6), ("stanford_motion", 1e-6), ("biped_controlled", 1e-6)]
)
def test_controlled_motions_arrive(name: str, off: float) -> None:
    r = rf.scenario(name).run()
    assert r.desired is not None
    assert np.abs(r.q - r.desired.q).max() < off


def test_the_biped_diverges_after_a_tenth_of_a_second_and_control_cures_it() -> None:
    blind, seeing = rf.scenario("biped_open_loop").run(), rf.scenario("biped_controlled").run()
    assert blind.desired is not None
    assert seeing.desired is not None
    assert np.array_equal(blind.desired.q, seeing.desired.q)
    off = np.abs(blind.q - blind.desired.q).max(axis=1)
    degree = np.pi / 180.0
    assert off[blind.t <= 0.08].max() < 0.7 * degree
    assert off[blind.t >= 0.12].min() > 2.0 * degree
    assert off[-1] > 1.0
    early = (blind.t > 0.08) & (blind.t < 0.2)
    growth = np.polyfit(blind.t[early], np.log(off[early]), 1)[0]
    assert 15.0 < growth < 60.0  # 1/s: it doubles within some hundredths of a second
    assert np.abs(seeing.q - seeing.desired.q).max() < 1e-6


def test_the_tip_comes_back_onto_the_line() -> None:
    r = rf.scenario("two_link_line").run()
    a, b = r.q[:, 0], r.q[:, 0] + r.q[:, 1]
    x, y = 0.915 * (np.cos(a) + np.cos(b)), 0.915 * (np.sin(a) + np.sin(b))
    share = 0.5 - 0.5 * np.cos(r.t)
    assert np.abs(x - y).max() < 1e-6
    assert np.abs(x - (0.305 + 0.61 * share)).max() < 1e-6
    way = np.hypot(x - x[0], y - y[0])
    acceleration = np.gradient(np.gradient(way, r.t, edge_order=2), r.t, edge_order=2)
    assert np.abs(acceleration - 0.4313 * np.cos(r.t))[5:-5].max() < 1e-3


def test_a_line_beyond_reach_is_refused() -> None:
    with pytest.raises(rf.StateError, match="the arm reaches from 0 to 2 m"):
        PlanarLine((0.5, 0.5), (2.0, 2.0), (1.0, 1.0))
    with pytest.raises(rf.StateError, match="passes"):
        PlanarLine((1.0, 0.01), (-1.0, -0.01), (1.0, 0.5))
    with pytest.raises(rf.StateError, match="elbow"):
        PlanarLine((0.5, 0.5), (1.0, 1.0), (1.0, 1.0), elbow=0)


# ---- overrides and records ----


def test_options_override_by_name() -> None:
    s = rf.scenario("kuka_motion")
    r = s.run(control="computed_torque", t_end=0.2, dt_out=0.05, method="rk4", step=0.005)
    assert r.t.tolist() == pytest.approx([0.0, 0.05, 0.1, 0.15, 0.2])
    assert r.options["control"]["type"] == "computed_torque"
    assert s.run(control="pd", t_end=0.05).options["control"]["type"] == "pd"
    stiff = s.run(control={"type": "pd", "kp": 900}, t_end=0.05).options["control"]
    assert (stiff["type"], stiff["kp"]) == ("pd", [900.0])
    assert s.run(control="{type: none}", t_end=0.05).options["control"] == "none"
    assert s.run(control=None, t_end=0.05).options["control"] == "none"
    assert s.run(control=rf.control.Torque(0.0), t_end=0.05).q[-1].tolist() != [0.0] * 6
    assert s.run(control=lambda t, q, v: np.zeros(6), t_end=0.05).status == "finished"
    assert s.run(initial={"q_deg": {"joint2": 10}}, t_end=0.05).q[0, 1] == pytest.approx(
        np.deg2rad(10.0)
    )
    assert s.run(motion="{type: hold}", t_end=0.05).q[-1].tolist() == pytest.approx(
        [0.0] * 6, abs=1e-9
    )
    moved = s.run(motion=rf.motion.Hold(np.zeros(6)), t_end=0.05)
    assert moved.desired is not None
    assert not moved.desired.q.any()
    assert s.run(q0=np.full(6, 0.1), t_end=0.05).q[0].tolist() == [0.1] * 6


def test_a_word_keeps_the_numbers_of_its_own_kind() -> None:
    text = SMALL + "motion: {type: hold}\ncontrol: {type: pd, kp: 7}\n"
    s = read_scenario(text)
    assert s.run(control="pd").options["control"]["kp"] == [7.0]
    assert s.run(control="computed_torque").options["control"]["kp"] == [49.0]


def test_unknown_options_are_refused() -> None:
    with pytest.raises(rf.SimulationError, match="no option 'contro'; did you mean 'control'"):
        rf.scenario("kuka_motion").run(contro="pd")
    with pytest.raises(rf.ModelError, match="no controller is called 'magic'"):
        rf.scenario("kuka_motion").run(control="magic")


def test_a_step_is_dropped_where_a_method_needs_none() -> None:
    s = read_scenario(SMALL + "method: rk4\nstep: 0.01\n")
    assert s.run().options["method"] == "rk4"
    assert s.run(method="dop853").options["step"] is None


def test_a_run_can_be_repeated_from_its_file(tmp_path: Path) -> None:
    r = rf.scenario("kuka_motion").run(t_end=0.2, control={"type": "pd", "kp": 900.0})
    r.save(tmp_path / "run.nc")
    again = rf.Scenario.again(rf.Result.open(tmp_path / "run.nc"))
    assert np.array_equal(again.q, r.q)
    odd = rf.scenario("kuka_motion").run(t_end=0.05, control=lambda t, q, v: np.zeros(6))
    with pytest.raises(rf.SimulationError, match="control was given as an object"):
        rf.Scenario.again(odd)
    with pytest.raises(rf.SimulationError, match="does not come from a scenario"):
        rf.Scenario.again(rf.simulate(rf.load("planar_3r"), 0.01))


# ---- files ----


def test_a_robot_beside_the_scenario(tmp_path: Path) -> None:
    from ramify.files.robot_writer import to_yaml

    (tmp_path / "arm.yaml").write_text(to_yaml(rf.load("planar_3r")))
    path = tmp_path / "run.yaml"
    path.write_text("name: mine\nrobot: {name: arm.yaml, gravity: [0, 0, 0]}\nt_end: 0.1\n")
    s = rf.scenario(path)
    assert s.robot.gravity == (0.0, 0.0, 0.0)
    assert is_scenario(path)
    assert not is_scenario(tmp_path / "arm.yaml")
    assert rf.scenario(str(path)).run().q[-1].tolist() == [0.0, 0.0, 0.0]


def test_parameters_and_base() -> None:
    s = read_scenario("name: c\nrobot: {name: chain, parameters: {n: 5}}\nt_end: 0.01\n")
    assert s.robot.nv == 5
    robot, initial = (
        "robot: {name: spatial_biped, base: free}",
        "initial: {q: {base: [0, 0, 1, 1, 0, 0, 0]}}",
    )
    s = read_scenario(f"name: c\n{robot}\n{initial}\nt_end: 0.01\n")
    assert s.robot.nq == s.robot.nv + 1
    assert s.q0[2] == 1.0


MOTIONS = {
    "{type: cycloid, end_deg: 60}": [np.pi / 3] * 3,
    "{type: cycloid, start: 0.1, end: {joint1: 1}}": [1.0, 0.1, 0.1],
    "{type: quintic, end: [1, 2, 3], duration: 0.1}": [1.0, 2.0, 3.0],
    "{type: hold, q_deg: {joint3: 90}}": [0.0, 0.0, np.pi / 2],
    "{type: harmonic, amplitude: 1, frequency: 0.25, duration: 1}": [1.0, 1.0, 1.0],
    "{type: spline, times: [0, 0.5, 1], points: [[0, 0, 0], [1, 1, 1], [2, 0, 3]]}": [
        2.0,
        0.0,
        3.0,
    ],
    "{type: table, times: [0, 1], values_deg: [[0, 0, 0], [90, 0, 0]]}": [np.pi / 2, 0.0, 0.0],
    "{type: per_joint, joints: {joint2: {type: cycloid, end_deg: 30}}}": [0.0, np.pi / 6, 0.0],
    "{type: sequence, parts: [{type: cycloid, end: 1, duration: 0.4}, {type: quintic, start: 1, end: 2, duration: 0.6}]}": [
        2.0
    ]
    * 3,
}


@pytest.mark.parametrize(("text", "end"), MOTIONS.items())
def test_every_motion_can_be_written(text: str, end: list[float]) -> None:
    s = read_scenario(SMALL + f"motion: {text}\ncontrol: pd\n")
    assert s.motion is not None
    assert s.motion.at(1.0).q.tolist() == pytest.approx(end)
    assert s.q0.tolist() == s.motion.at(0.0).q.tolist()


CONTROLS = {
    "none": "NoneType", "pd": "PD", "{type: pid, ki: 3}": "PID", "{type: computed_torque, kp: [1, 2, 3]}": "ComputedTorque",
    "{type: feedforward, limits: 5}": "Feedforward", "gravity_compensation": "GravityCompensation",
    "{type: torque, tau: {joint1: 2}}": "Torque", "{type: torque, tau: [1, 2, 3], actuated: [joint1, joint2, joint3]}": "Torque",
    "{type: torque_table, times: [0, 1], values: [[0, 0, 0], [1, 1, 1]]}": "TorqueTable",
    "{type: torques_of_motion, rows: 11}": "TorqueTable", "{type: pd, rate_hz: 100}": "PD",
    "{type: sum, parts: [gravity_compensation, {type: pd, kp: 3}]}": "Sum",
}  # fmt: skip


@pytest.mark.parametrize(("text", "kind"), CONTROLS.items())
def test_every_controller_can_be_written(text: str, kind: str) -> None:
    s = read_scenario(SMALL + f"motion: {{type: cycloid, end: 1}}\ncontrol: {text}\n")
    assert type(s.control).__name__ == kind
    assert s.run().status == "finished"


MISTAKES = {
    "robot: planar_3r\nt_end: 1": ["name: is missing"],
    "name: x\nt_end: 1": ["robot: is missing"],
    "name: x\nrobot: planar_4r\nt_end: 1": ["run.yaml:2:8: robot: no built-in robot is named 'planar_4r'; did you mean"],
    "name: x\nrobot: planar_3r\nt_end: -1": ["run.yaml:3:8: t_end: -1 must be a finite number > 0"],
    "name: x\nrobot: planar_3r\nt_end: 1\nmethod: rk7": ["run.yaml:4:9: method: no method is called 'rk7'; did you mean 'rk"],
    "name: x\nrobot: planar_3r\nt_end: 1\nmethod: rk4": ["method: rk4 needs a fixed step"],
    "name: x\nrobot: planar_3r\nt_end: 1\ntend: 2": ["run.yaml:4:1: tend: unknown key; did you mean 't_end'?"],
    "name: x\nrobot: planar_3r\nt_end: 1\ninitial: {q: [1, 2]}": ["initial.q: 2 entries; it must have 3"],
    "name: x\nrobot: planar_3r\nt_end: 1\ninitial: {q: {joint9: 1}}": [
        "run.yaml:4:15: initial.q.joint9: no joint or coordinate has this name; did you mean 'joint"
    ],
    "name: x\nrobot: planar_3r\nt_end: 1\ninitial: {q: 1, q_deg: 2}": ["q and q_deg exclude each other"],
    "name: x\nrobot: planar_3r\nt_end: 1\ninitial: {q: {joint1: 1}, q_deg: {joint1: 2}}": ["is given twice"],
    "name: x\nrobot: stanford_arm\nt_end: 1\ninitial: {q_deg: {joint3: 1}}": ["initial.q_deg.joint3: is not an angle"],
    "name: x\nrobot: stanford_arm\nt_end: 1\ninitial: {q_deg: 1}": ["not all coordinates are angles"],
    "name: x\nrobot: planar_3r\nt_end: 1\nmotion: {type: cycloyd}": ["no motion is called 'cycloyd'; did you mean 'cycloid'"],
    "name: x\nrobot: planar_3r\nt_end: 1\nmotion: {end: 1}": ["type is missing; there are cycloid"],
    "name: x\nrobot: planar_3r\nt_end: 1\nmotion: {type: cycloid}": ["one of end, end_deg is missing"],
    "name: x\nrobot: planar_3r\nt_end: 1\nmotion: {type: cycloid, end: [1, 2]}": ["motion.end: 2 entries; planar_3r takes 3"],
    "name: x\nrobot: planar_3r\nt_end: 1\nmotion: {type: cycloid, end: [1, 2, x]}": ["run.yaml:4:37: motion.end.2: "],
    "name: x\nrobot: planar_3r\nt_end: 1\ncontrol: pd": ["run.yaml:4:10: control: pd follows a motion; add the key motion"],
    "name: x\nrobot: planar_3r\nt_end: 1\ncontrol: {type: torque, tau: 1, actuated: [elbow]}": ["no joint 'elbow'"],
    "name: x\nrobot: planar_3r\nt_end: 1\ndamping: [1, 2]": ["damping: 2 entries"],
    "name: x\nrobot: planar_3r\nt_end: 1\ndamping: [1, -2, 3]": ["run.yaml:4:14: damping.1: -2 must be a finite number ≥ 0"],
    "name: x\nrobot: planar_3r\nt_end: 1\nmotion: {type: spline, times: [0, 1], points: [[0, 0, 0]]}": ["1 rows for 2 times"],
    "name: x\nrobot: planar_3r\nt_end: 1\nmotion: {type: spline, times: [1, 0], points: [[0, 0, 0], [1, 1, 1]]}": ["must rise"],
    "- 1": ["a scenario file is a mapping"],
    "": ["empty"],
    "name: x\nrobot: kuka_kr5\nt_end: soon\nmotion: 3\ncontrol: {type: pid, kp: -1}\nrtol: 0": [
        "run.yaml:3:8: t_end", "run.yaml:4:9: motion: 3 must be a word", "run.yaml:6:7: rtol: 0 must be a finite number > 0",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("text", "parts"), MISTAKES.items())
def test_mistakes_are_told_with_their_place(text: str, parts: list[str]) -> None:
    with pytest.raises(rf.ModelError) as error:
        read_scenario(text, "run.yaml")
    for part in parts:
        assert part in str(error.value)
    assert all(line.startswith("run.yaml:") for line in str(error.value).splitlines())


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "name",
                "robot",
                "t_end",
                "motion",
                "control",
                "initial",
                "step",
                "method",
                "rtol",
                "damping",
                "odd",
            ]
        ),
        st.recursive(
            st.none()
            | st.booleans()
            | st.floats()
            | st.text(max_size=8)
            | st.sampled_from(["planar_3r", "cycloid", "pd"]),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["type", "q", "end", "kp", "joint1", "name"]), inner, max_size=3
                )
            ),
            max_leaves=6,
        ),
    )
)
def test_no_file_breaks_the_reader(document: dict[str, Any]) -> None:
    try:
        read_scenario(
            json.dumps({"name": "x", "robot": "planar_3r", "t_end": 0.1, **document}), "run.yaml"
        )
    except rf.ModelError as error:
        told = str(error)
    else:
        return
    assert told.startswith("run.yaml")


def test_unknown_names_are_refused() -> None:
    with pytest.raises(rf.ModelError, match="did you mean 'kuka_motion'"):
        rf.scenario("kuka_moton")
    with pytest.raises(rf.ModelError, match="no such file"):
        rf.scenario("nowhere.yaml")
    with pytest.raises(rf.ModelError, match=r"ends in \.yaml"):
        rf.scenario("robot.urdf")


SPY = """<robot name="$(env RAMIFY_PLANTED)" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:include filename="planted.xacro"/>
  <link name="a"/><link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"
    ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint>
</robot>"""


@pytest.mark.parametrize("kind", ["scenario", "study"])
def test_scenarios_and_studies_expand_nothing(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a scenario whose xacro robot puts an environment variable and a file into results."""
    monkeypatch.setenv("RAMIFY_PLANTED", "secret")
    (tmp_path / "spy.xacro").write_text(SPY)
    (tmp_path / "planted.xacro").write_text('<robot><link name="planted"/></robot>')
    file = tmp_path / "spy.yaml"
    text = "{name: spy, robot: spy.xacro, t_end: 0.01}"
    if kind == "study":
        (tmp_path / "run.yaml").write_text(text)
        text = "{name: spy, scenario: run.yaml, vary: {initial.q.j: [0, 1]}}"
    file.write_text(text)
    read = rf.scenario if kind == "scenario" else rf.study
    with pytest.raises(rf.ModelError, match="does not expand a xacro file") as caught:
        read(file)
    assert "secret" not in str(caught.value)
    assert "planted" not in str(caught.value)
