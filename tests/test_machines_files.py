"""Machines in robot files: they read back bit for bit, and mistakes are named with their place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_machines_mjcf import CHAIN, ROWS, written
from test_machines_passive import arm

import ramify as rf
from ramify.files.robot_writer import to_yaml
from ramify.files.urdf_writer import to_urdf
from ramify.kernels.make import kernel

ARM = """
name: arm
links:
  - name: upper
    joint: {type: revolute, axis: y, rotor: {inertia: 2e-4, gear: 50}, friction: 0.2, effort: 20}
    frame: {}
    mass: 2
    com: [0.2, 0, 0]
    gravity_compensation: 0.5
  - name: fore
    parent: upper
    joint: {type: revolute, axis: y, spring: {stiffness: 3}}
    frame: {xyz: [0.4, 0, 0]}
    mass: 1
    com: [0.2, 0, 0]
frames:
  - {name: tool0, link: fore, xyz: [0.4, 0, 0], rpy: [0, 1, 0]}
  - {name: bench, xyz: [1, 0, 0]}
tendons:
  - {name: belt, joints: {upper: 0.1, fore: -0.1}, stiffness: 400, damping: 2}
  - {name: rope, frames: [bench, tool0], stiffness: 50, rest: 0.5}
actuators:
  - {name: shoulder, kind: dc_motor, joint: upper, gear: 50, constant: 0.05, resistance: 2,
     voltage: 24}
  - {name: elbow, kind: position, joint: fore, kp: 30, kv: 2, force: [-8, 8]}
  - {name: winch, kind: motor, tendon: rope, activation: filter, time: 0.1}
keyframes:
  - {name: home, q: [0.1, 0.2]}
"""


def test_all_of_it_reads_back_bit_for_bit(tmp_path: Path) -> None:
    (tmp_path / "arm.yaml").write_text(ARM)
    for m in (rf.load(written(tmp_path, CHAIN, ROWS)), arm(), rf.load(tmp_path / "arm.yaml")):
        (tmp_path / "again.yaml").write_text(to_yaml(m))
        again = rf.load(tmp_path / "again.yaml")
        assert [j.elements for j in again.joints] == [j.elements for j in m.joints]
        assert [b.lift for b in again.bodies] == [b.lift for b in m.bodies]
        assert again.tendons == m.tendons
        assert again.actuators == m.actuators
        assert again.keyframes == m.keyframes
        assert list(again.frames) == list(m.frames)
        for name, (body, frame) in m.frames.items():
            assert again.frames[name].body == body
            assert (again.frames[name].frame.position == frame.position).all()
            assert (again.frames[name].frame.rotation == frame.rotation).all()


def test_a_file_gives_the_machine_it_says(tmp_path: Path) -> None:
    (tmp_path / "arm.yaml").write_text(ARM)
    m = rf.load(tmp_path / "arm.yaml")
    assert m.joints[0].armature == (2e-4 * 50**2,)
    q, v = np.array([0.3, -0.4]), np.array([0.5, 0.2])
    at = m.pose(q, "tool0").position
    total = q.sum()
    assert_allclose(
        at, [0.4 * np.cos(0.3) + 0.4 * np.cos(total), 0, -0.4 * np.sin(0.3) - 0.4 * np.sin(total)]
    )
    parts = m.passive_forces(q, v).parts
    assert_allclose(parts["gravity_compensation"], [0.5 * -2 * 9.81 * 0.2 * np.cos(0.3), 0.0])
    found = m.actuator_forces(q, v, [100.0, 0.5, 3.0], [2.0])
    current = (24.0 - 0.05 * 50 * 0.5) / 2.0  # the voltage is limited to 24 V
    assert_allclose(found.force, [0.05 * current, 8.0, 2.0])
    assert_allclose(found.activation_rate, [10.0])
    length = np.linalg.norm(at - [1, 0, 0])
    J = m.jacobian(q, "tool0")[3:]
    row = (at - [1, 0, 0]) @ J / length
    assert_allclose(
        found.tau,
        [
            20.0 if 50 * 0.05 * current + 2 * row[0] > 20 else 50 * 0.05 * current + 2 * row[0],
            8.0 + 2 * row[1],
        ],
    )
    stretch = length - 0.5
    belt = -(400 * (0.1 * q[0] - 0.1 * q[1]) + 2 * (0.1 * v[0] - 0.1 * v[1]))
    assert_allclose(parts["tendon"], np.array([0.1, -0.1]) * belt - 50 * stretch * row)


def test_poses_and_jacobians_of_any_frame_agree_in_every_tier(tmp_path: Path) -> None:
    """Against the poses of the bodies and small motions, with a ball and a free joint on the way."""
    m = rf.load(written(tmp_path, CHAIN, ROWS))
    q = np.array([m.random(i)[0] for i in range(9)])
    bodies, h = m.kinematics(q), 1e-6
    for name in ("s3", "s4", "b", "origin"):
        b, local = m.attachment(name)
        at = m.pose(q, name)
        if b >= 0:
            R, p = bodies.rotation[:, b], bodies.position[:, b]
            assert_allclose(at.rotation, R @ local.rotation, atol=1e-13)
            assert_allclose(at.position, R @ local.position + p, atol=1e-13)
            given = np.concatenate([local.rotation.ravel(), local.position])
            for tier in ("unrolled", "rolled", "numpy"):
                R, p = kernel(m, "frame_pose", tier, which=b)(q, given)
                assert_allclose(R, at.rotation, atol=1e-13)
                assert_allclose(p, at.position, atol=1e-13)
        J = m.jacobian(q[0], name)
        for k, e in enumerate(np.eye(m.nv)):
            back, ahead = (m.pose(m.integrate(q[0], e, x), name).position for x in (-h, h))
            assert_allclose(J[3:, k], (ahead - back) / (2.0 * h), atol=1e-8)


def test_a_dc_motor_has_its_torque_speed_line(tmp_path: Path) -> None:
    (tmp_path / "arm.yaml").write_text(ARM.replace("effort: 20", "effort: 2000"))
    m = rf.load(tmp_path / "arm.yaml")
    speeds = np.linspace(0.0, 24.0 / 0.05 / 50, 7)
    v = np.stack([speeds, 0 * speeds], axis=1)
    force = m.actuator_forces(np.zeros(2), v, [24.0, 0.0, 0.0], [0.0]).force[:, 0]
    stall = 0.05 * 24.0 / 2.0
    assert_allclose(force, stall * (1.0 - speeds / speeds[-1]), atol=1e-12)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("joint: fore, kp", "joint: for, kp", "there is no joint 'for'.*did you mean.*fore"),
        ("gear: 50, constant", "gear: 0, constant", "gear is 0"),
        ("kp: 30, kv: 2, force: [-8, 8]", "kv: 2", "a position actuator needs kp"),
        ("force: [-8, 8]", "force: [8, -8]", "lower end 8 of force exceeds -8"),
        ("link: fore, xyz", "link: four, xyz", "no link is named 'four'"),
        ("frames: [bench, tool0]", "frames: [bench]", "must be a list with at least 2 entries"),
        ("joints: {upper: 0.1, fore: -0.1}", "joints: {}", "at least one entry, or the tendon"),
        ("frames: [bench, tool0]", "frames: [bench, tool1]", "there is no frame 'tool1'"),
        ("name: elbow, kind: position", "name: shoulder, kind: position", "duplicate name"),
        ("q: [0.1, 0.2]", "q: [0.1]", "q needs 2 numbers"),
        ("stiffness: 400", "stiffnes: 400", "unknown key"),
        ("time: 0.1", "time: 0", "time 0 s must be above 0"),
        ("kind: motor, tendon", "kind: motor, kp: 3, tendon", "kp does not belong to a motor"),
        ("kind: position, joint", "kind: velocity, joint", "kp does not belong.*takes kv"),
        ("winch, kind: motor", "winch, kind: motor, voltage: 3", "voltage does not belong"),
        ("rest: 0.5", "rest: [0.5, 0.2]", "lower end 0.5 of rest exceeds 0.2"),
        ("upper: 0.1, fore", "upper: 0, fore", "the coefficient of 'upper' is 0"),
        ("spring: {stiffness: 3}", "cone: 1", "it limits ball joints; a revolute joint has"),
        ("spring: {stiffness: 3}", "spring: {stiffnes: 3}", "did you mean 'stiffness'"),
        ("gear: 50}, friction", "ratio: 50}, friction", "unknown key; there are inertia, gear"),
        ("friction: 0.2", "friction: {coulomb: 1, lugre: {tim: 1}}", "did you mean 'time'"),
        ("friction: 0.2", "limits: 3", "3 must be .lower, upper., or a list of such pairs"),
        ("friction: 0.2", "limits_deg: [9, -9]", "joint.limits_deg .*lower limit"),
        ("effort: 20", "effort: 0", "effort is 0; give what the drive can give"),
        (
            "gravity_compensation: 0.5",
            "gravity_compensation: [1]",
            "a list must be a finite number or a mapping",
        ),
        ("q: [0.1, 0.2]", "q: [0.1, 0.2], command: [1]", "1 numbers given; the actuators need 3"),
        ("q: [0.1, 0.2]", "q: [0, 0], activation: [1, 2]", "2 numbers given; the actuators need 1"),
        ("home, q: [0.1, 0.2]}", "home, q: [0, 0]}\n  - {name: home, q: [0, 1]}", "duplicate name"),
        ("winch, kind: motor, tendon: rope", "winch, site: tool0, slider: bench", "rod 0 m must"),
    ],
)
def test_mistakes_are_named_with_file_and_line(
    old: str, new: str, words: str, tmp_path: Path
) -> None:
    assert old in ARM
    file = tmp_path / "arm.yaml"
    file.write_text(ARM.replace(old, new))
    with pytest.raises(rf.ModelError, match=words) as found:
        rf.load(file)
    last = new.split("\n")[-1]
    (line,) = (i for i, text in enumerate(file.read_text().split("\n"), 1) if last in text)
    assert f"{file}:{line}:" in str(found.value)


def test_names_that_do_not_exist_get_a_suggestion(tmp_path: Path) -> None:
    (tmp_path / "arm.yaml").write_text(ARM)
    m = rf.load(tmp_path / "arm.yaml")
    for ask in (m.pose, m.jacobian):
        with pytest.raises(rf.ModelError, match="no link or frame 'tol0'; did you mean 'tool0'"):
            ask([0.0, 0.0], "tol0")
    with pytest.raises(rf.StateError, match="no actuator 'elbo'; did you mean 'elbow'"):
        rf.control.Commands.to(m, {"elbo": 1.0})
    assert not [f for f in m.check() if f.code == "keyframe-outside"]


def test_keyframes_and_starts_outside_limits_are_reported(tmp_path: Path) -> None:
    (tmp_path / "arm.yaml").write_text(
        ARM.replace("stiffness: 3}}", "stiffness: 3}, limits: [-1, 0.15]}")
    )
    m = rf.load(tmp_path / "arm.yaml")
    (found,) = [finding for finding in m.check() if finding.code == "keyframe-outside"]
    assert "'home' puts fore at 0.2, outside the limits (-1, 0.15)" in found.message
    with pytest.warns(RuntimeWarning, match=r"'fore' starts at 0.2, outside its limits"):
        rf.simulate(m, 0.01, q0=m.keyframes[0].q)
    again = rf.load(tmp_path / "arm.yaml")
    with pytest.warns(RuntimeWarning, match="its stop throws it back"):
        rf.rollout(again, np.tile([0.0, -1.2], (3, 1)), np.zeros(2), steps=1, dt=1e-4)
    rf.simulate(again, 0.01, q0=[0.0, 0.2], stops=False)
    rf.simulate(rf.load(tmp_path / "arm.yaml"), 0.01, q0=[0.0, 0.151])
    with pytest.warns(RuntimeWarning, match=r"'fore' starts at 0.155, outside its limits"):
        rf.simulate(rf.load(tmp_path / "arm.yaml"), 0.01, q0=[0.0, 0.155])


def test_a_neutral_posture_outside_limits_is_reported_with_loops_too() -> None:
    b = rf.Builder("hand")
    b.link("elbow", mass=1.0, inertia=(0.1, 0.1, 0.1), limits=[(-3.0, -0.05)])
    for name in ("left", "right"):
        b.link(name, "elbow", "prismatic", mass=0.1, limits=[(0.0, 0.04)])
    m = b.loop("jaw", "gear", joints=("left", "right")).model()
    (found,) = [finding for finding in m.check() if finding.code == "neutral-outside"]
    assert "neutral() is outside the limits of elbow:" in found.message
    with pytest.warns(
        RuntimeWarning, match=r"'elbow' starts at 0, outside its limits \(-3, -0.05\)"
    ):
        rf.simulate(m, 0.001)


def test_the_gap_of_a_gear_has_the_unit_of_its_second_joint() -> None:
    b = rf.Builder("jaws")
    for name, joint in (("left", "prismatic"), ("right", "prismatic"), ("wheel", "revolute")):
        b.link(name, joint=joint, mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.loop("jaw", "gear", joints=("left", "right"))
    b.loop("spin", "gear", joints=("left", "wheel"), ratio=3.0)
    m = b.model()
    assert m.constraints(m.neutral()).units == ("m", "rad")
    with pytest.raises(rf.LoopError, match=r"spin.gear is off by 0.25 rad"):
        m.forward_dynamics([0.0, 0.0, 0.25], [0.0] * 3, [0.0] * 3)
    with pytest.raises(rf.LoopError, match=r"jaw.gear is off by 0.5 m"):
        m.forward_dynamics([0.0, 0.5, 0.0], [0.0] * 3, [0.0] * 3)


def test_builders_take_what_files_do(tmp_path: Path) -> None:
    """The robot of a file, built in Python, and its mistakes."""
    file = tmp_path / "arm.yaml"
    file.write_text(
        """
name: arm
links:
  - {name: a, joint: {type: revolute, axis: y}, frame: {}, mass: 2, com: [0.2, 0, 0],
     gravity_compensation: 0.5}
frames:
  - {name: tip, link: a, xyz: [0.4, 0, 0]}
  - {name: wall, xyz: [0, 0, 1]}
tendons:
  - {name: rope, frames: [wall, tip], stiffness: 50, rest: [0, 0.5]}
actuators:
  - {name: motor, kind: position, joint: a, kp: 30, force: [-8, 8]}
keyframes:
  - {name: home, q: [0.1]}
"""
    )
    b = rf.Builder("arm")
    b.link("a", axis=(0, 1, 0), mass=2.0, com=(0.2, 0, 0), gravity_compensation=0.5)
    b.frame("tip", "a", (0.4, 0, 0)).frame("wall", at=(0, 0, 1))
    b.tendon("rope", frames=("wall", "tip"), stiffness=50, rest=(0, 0.5))
    b.actuator("motor", kind="position", joint="a", kp=30, force=np.array([-8, 8]))
    m, wanted = b.keyframe("home", [0.1]).model(), rf.load(file)
    assert to_yaml(m) == to_yaml(wanted)
    b.actuator("other", kind="motor", joint="b").keyframe("far", [1.0, 2.0])
    with pytest.raises(rf.ModelError, match=r"(?s)arm: keyframes.1.*arm: actuators.1: there is no"):
        b.model()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"friction": -1}, "link 'a': friction.coulomb -1 must be finite and ≥ 0"),
        ({"friction": {"static": 1, "stribeck_speed": 1}}, "link 'a': friction.coulomb is missing"),
        ({"friction": {"coulomb": {"forward": 1}}}, "friction.coulomb.backward is missing"),
        ({"rotor": {}}, "link 'a': rotor.inertia is missing"),
        ({"spring": {"rest": 1}}, "link 'a': spring.stiffness is missing"),
        ({"effort": 0}, "link 'a': effort is 0"),
        ({"velocity": 0}, "link 'a': velocity is 0"),
        ({"lifts": 3}, "link 'a': lifts 3 must be True or False"),
        ({"actuated": "no"}, "link 'a': actuated must be True or False"),
        ({"gravity_compensation": np.nan}, "gravity_compensation nan must be finite"),
        ({"limits": [(0,)]}, "link 'a': limits must be a pair .lower, upper."),
        ({"limits": {"lower": 0, "upper": 1}}, "link 'a': limits must be a pair"),
    ],
)
def test_mistakes_of_builders_name_link_and_key(given: dict[str, Any], said: str) -> None:
    with pytest.raises(rf.ModelError, match=said):
        rf.Builder("x").link("a", mass=1.0, **given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([{"friction": -1}, {}], r"machine\[0\]: friction.coulomb -1 must be"),
        ([{}, 3], r"machine\[1\] must be a mapping"),
        (3, "machine must be a list with a mapping per DH row"),
    ],
)
def test_mistakes_of_dh_tables_name_row_and_key(given: Any, said: str) -> None:
    with pytest.raises(rf.ModelError, match=said):
        rf.from_dh([(0, 0, 0, 0)] * 2, machine=given)


def test_builders_take_numbers_of_numpy_and_no_limits() -> None:
    b = rf.Builder("x").link("a", mass=1.0, armature=np.int64(2), effort=np.float32(3), limits=None)
    b.link("b", "a", "cylindrical", mass=1.0, damping=np.array([1.0, 2.0]), friction=np.array(0.5))
    a, other = b.model().joints
    assert (a.machine[0].armature, a.machine[0].effort, a.limits) == (2.0, 3.0, ())
    assert [e.damping[0] for e in other.machine] == [1.0, 2.0]
    assert other.machine[1].friction.sliding == 0.5


def test_drives_of_one_direction_read_back(tmp_path: Path) -> None:
    for given, wanted in (("0 2", (0.0, 2.0)), ("-2 0", (-2.0, 0.0))):
        body = f'<body><joint name="j" actuatorfrcrange="{given}"/><geom size="0.1"/></body>'
        m = rf.load(written(tmp_path, body, ""))
        (tmp_path / "copy.yaml").write_text(to_yaml(m))
        assert rf.load(tmp_path / "copy.yaml").joints[0].machine[0].efforts == wanted


def test_keyframes_have_all_commands_and_the_activations_that_are_read(tmp_path: Path) -> None:
    rest = """<actuator><muscle name="m" joint="h" lengthrange="-1 1"/><motor name="a" joint="h"/>
      <general name="f" joint="h" dyntype="filter" dynprm="0.1"/></actuator>
      <keyframe><key name="k" qpos="0.3 0.4" ctrl="0.1 0.2 0.3" act="0.5 0.6"/></keyframe>"""
    body = """<body><joint name="h"/><geom size="0.1"/>
      <body><joint name="g"/><geom size="0.1" pos="0.1 0 0"/></body></body>"""
    with pytest.warns(UserWarning, match="actuator 'm'"):
        m = rf.load(written(tmp_path, body, rest))
    (key,) = m.keyframes
    assert (key.command, key.activation) == ((0.1, 0.2, 0.3), (0.6,))
    (key,) = rf.with_locked(m, "g").keyframes
    assert (key.q, key.command, key.activation) == ((0.3,), (0.1, 0.2, 0.3), (0.6,))
    (key,) = rf.with_locked(m, "h").keyframes
    assert (key.q, key.command, key.activation) == ((0.4,), (0.1,), ())


def test_urdf_has_frames_as_links_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    b = rf.Builder("arm")
    b.link("a", axis=(0, 1, 0), mass=1.0, effort=3, backward_effort=2, gravity_compensation=0.5)
    b.frame("tool", "a", (0.1, 0, 0.2)).frame("bench", at=(1, 0, 0)).keyframe("home", [0.1])
    m, file = b.model(), tmp_path / "arm.urdf"
    with pytest.warns(
        rf.LeftOutWarning, match="effort by direction of a; gravity compensation of a"
    ):
        text = to_urdf(m)
    for said in ("effort by direction of a", "keyframes home", "gravity compensation of a"):
        assert f"<!-- left out: {said} -->" in text
    file.write_text(text)
    for name in ("tool", "bench"):
        found, wanted = rf.load(file).pose([0.4], name), m.pose([0.4], name)
        assert_allclose(found.position, wanted.position, atol=1e-15)
        assert_allclose(found.rotation, wanted.rotation, atol=1e-15)


def test_what_urdf_cannot_say_is_a_warning_that_names_joint_and_part(tmp_path: Path) -> None:
    b = rf.Builder("arm")
    b.link("bent", mass=1.0, spring={"stiffness": 3.0}, damping={"linear": 0.1, "quadratic": 0.2})
    b.link("rough--a", "bent", mass=1.0, friction={"coulomb": {"forward": 2.0, "backward": 1.0}})
    b.link("flat", "rough--a", joint="planar", mass=1.0, damping=2.0, effort=3.0)
    m, said = (
        b.model(),
        "bent; damping beyond the linear of bent; friction by direction or speed of rough--a",
    )
    with pytest.warns(
        rf.LeftOutWarning, match=f"spring of {said}; damping of flat; effort of flat"
    ):
        m.save(tmp_path / "arm.urdf")
    assert rf.load(tmp_path / "arm.urdf").nv == 5  # the comments with "--" are well-formed
    b = rf.Builder("plain").link("a", mass=1.0, damping=0.1, friction=0.2, effort=3.0)
    to_urdf(b.keyframe("home", [0.1]).model())  # without a warning: keyframes do not move it
