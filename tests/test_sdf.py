"""SDF files: poses, frames and axes against the same robot in URDF, loops, and mistakes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from packages import package

import ramify as rf
from ramify.api.builders import as_model
from ramify.files.sdf import parse_sdf
from ramify.files.urdf import parse_urdf

parse_sdf, parse_urdf = as_model(parse_sdf), as_model(parse_urdf)

URDF = """<robot name="arm">
  <link name="base"><inertial><mass value="3"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  <link name="upper"><inertial><origin xyz="0.1 0 0.02" rpy="0.3 -0.2 0.5"/><mass value="2.5"/>
    <inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001" ixz="-0.002" iyz="0.003"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0 0.2 0"/><mass value="1"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <origin xyz="0 0.1 0.5" rpy="0.1 0.2 0.3"/><axis xyz="0 0.6 0.8"/>
    <limit lower="-1" upper="2" effort="10" velocity="3"/><dynamics damping="0.5"/></joint>
  <joint name="slide" type="prismatic"><parent link="upper"/><child link="lower"/>
    <origin xyz="0.3 0 0" rpy="0 0 0.7"/><axis xyz="1 0 0"/><limit lower="-0.1" upper="0.4"/></joint>
</robot>"""

INERTIA = "<ixx>{}</ixx><iyy>{}</iyy><izz>{}</izz><ixy>{}</ixy><ixz>{}</ixz><iyz>{}</iyz>"
UPPER = INERTIA.format(0.02, 0.03, 0.04, 0.001, -0.002, 0.003)
LOWER = INERTIA.format(0.1, 0.1, 0.1, 0, 0, 0)
SDF = f"""<?xml version="1.0"?>
<sdf version="1.9"><world name="w"><gravity>0 0 -9.81</gravity><model name="arm">
  <pose>1 2 0 0 0 0</pose>
  <link name="base"><inertial><mass>3</mass><inertia>{INERTIA.format(1, 1, 1, 0, 0, 0)}</inertia></inertial></link>
  <frame name="mount" attached_to="base"><pose>0 0.1 0.5 0.1 0.2 0.3</pose></frame>
  <link name="upper"><pose relative_to="mount"/>
    <inertial><pose>0.1 0 0.02 0.3 -0.2 0.5</pose><mass>2.5</mass><inertia>{UPPER}</inertia></inertial>
    <visual name="v"><geometry><box><size>1 2 3</size></box></geometry></visual></link>
  <link name="lower"><pose relative_to="slide"/>
    <inertial><pose>0 0.2 0 0 0 0</pose><mass>1</mass><inertia>{LOWER}</inertia></inertial></link>
  <joint name="shoulder" type="revolute"><parent>base</parent><child>upper</child>
    <axis><xyz>0 0.6 0.8</xyz><limit><lower>-1</lower><upper>2</upper><effort>10</effort>
      <velocity>3</velocity></limit><dynamics><damping>0.5</damping></dynamics></axis></joint>
  <joint name="slide" type="prismatic"><pose relative_to="upper">0.3 0 0 0 0 0.7</pose>
    <parent>upper</parent><child>lower</child>
    <axis><xyz>1 0 0</xyz><limit><lower>-0.1</lower><upper>0.4</upper></limit></axis></joint>
  <plugin name="p" filename="f"/>
</model></world></sdf>"""


def same(ours: rf.Model, theirs: rf.Model) -> None:
    assert [joint.name for joint in ours.joints] == [joint.name for joint in theirs.joints]
    assert [joint.limits for joint in ours.joints] == [joint.limits for joint in theirs.joints]
    for seed in range(3):
        q, v = theirs.random(seed)
        np.testing.assert_allclose(
            ours.inverse_dynamics(q, v, v), theirs.inverse_dynamics(q, v, v), rtol=1e-12, atol=1e-12
        )


def test_the_same_robot_as_urdf() -> None:
    found = parse_sdf(SDF, base="fixed")
    same(found, parse_urdf(URDF))
    assert found.joint("shoulder").elements == parse_urdf(URDF).joint("shoulder").elements
    assert found.gravity == (0.0, 0.0, -9.81)
    assert found.attachment("base").frame.position.tolist() == [1.0, 2.0, 0.0]
    assert found.bodies[0].shapes[0].size == (1.0, 2.0, 3.0)
    said = str(found.metadata["report"])
    assert "<plugin>" in said


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('<pose relative_to="mount"/>', '<pose degrees="true" relative_to="mount">0 0 0 0 0 0</pose>'),
        ("<xyz>0 0.6 0.8</xyz>", '<xyz expressed_in="mount">0 0.6 0.8</xyz>'),
        ("<child>upper</child>", "<child>shoulder_frame</child>"),
        ('<pose>0 0.1 0.5 0.1 0.2 0.3</pose>', '<pose degrees="1">0 0.1 0.5 5.729577951308232 11.459155902616464 17.188733853924696</pose>'),
    ],
)  # fmt: skip
def test_other_ways_to_say_it(old: str, new: str) -> None:
    assert old in SDF
    text = SDF.replace(old, new)
    extra = '<frame name="shoulder_frame" attached_to="upper"/><plugin'
    same(parse_sdf(text.replace("<plugin", extra), base="fixed"), parse_urdf(URDF))


def test_axes_of_old_files_are_in_the_model_frame() -> None:
    model = parse_urdf(URDF)
    turn = model.joint("shoulder").placement.rotation @ np.array([0.0, 0.6, 0.8])
    axis = f"<xyz>{' '.join(map(repr, turn.tolist()))}</xyz>"
    old = SDF.replace(
        "<xyz>0 0.6 0.8</xyz>", f"{axis}<use_parent_model_frame>1</use_parent_model_frame>"
    )
    same(parse_sdf(old, base="fixed"), model)


@pytest.mark.parametrize(
    ("old", "new", "said", "code"),
    [
        ('version="1.0"', 'version="0.0"', "XML version '0.0' does not exist", "file-doubt"),
        ("<damping>0.5</damping>", "</dynamics><mimic joint='elbow'/><dynamics>", "changes the motion: .*mimic of 'elbow'", "left-out"),
    ],
)  # fmt: skip
def test_what_may_be_wrong_or_moves_otherwise_is_warned_of(
    old: str, new: str, said: str, code: str, tmp_path: Path
) -> None:
    assert old in SDF
    (tmp_path / "r.sdf").write_text(SDF.replace(old, new, 1), encoding="utf-8")
    with pytest.warns(UserWarning, match=said):
        robot = rf.load(tmp_path / "r.sdf")
    assert code in [finding.code for finding in robot.check()]


def test_springs_of_joints() -> None:
    spring = "<spring_stiffness>9</spring_stiffness><spring_reference>0.3</spring_reference>"
    m = parse_sdf(SDF.replace("<damping>0.5</damping>", spring), base="fixed")
    found = m.passive_forces([0.5, 0.0], [0.0, 0.0]).parts["spring"]
    np.testing.assert_allclose(np.abs(found).max(), [9.0 * 0.2], rtol=1e-12)


def test_the_root_is_as_the_file_has_it() -> None:
    assert parse_sdf(SDF).joints[0].kind == "free"
    assert parse_sdf(SDF).mass == 6.5
    held = (
        "<joint name='hold' type='fixed'><parent>world</parent><child>base</child></joint><plugin"
    )
    same(parse_sdf(SDF.replace("<plugin", held)), parse_urdf(URDF))
    assert parse_sdf(SDF.replace("<plugin", "<static>true</static><plugin")).nv == 2
    assert parse_sdf(SDF.replace("<mass>3</mass>", "<mass>0</mass>")).nv == 2


def test_a_planar_base() -> None:
    link = "<link name='{}'><inertial><mass>1</mass></inertial></link>"
    joint = """<joint name='j' type='revolute'><parent>a</parent><child>b</child>
      <axis><xyz>0 0 1</xyz></axis></joint>"""
    text = "<sdf version='1.9'><model name='flat'>{}</model></sdf>"
    m = parse_sdf(text.format(link.format("a") + link.format("b") + joint), base="planar")
    assert [joint.kind for joint in m.joints] == ["planar", "revolute"]


def test_the_kuka_of_pybullet_in_both_formats() -> None:
    folder = package("pybullet") / "pybullet_data" / "kuka_iiwa"
    ours, theirs = rf.load(folder / "model.sdf"), rf.load(folder / "model.urdf")
    assert (ours.nv, theirs.nv) == (7, 7)
    q, _v = theirs.random(0)
    for mine, other in zip(ours.bodies, theirs.bodies, strict=True):
        assert mine.mass == pytest.approx(other.mass)
    place = ours.kinematics(q).position - ours.kinematics(0 * q).position
    other = theirs.kinematics(q).position - theirs.kinematics(0 * q).position
    np.testing.assert_allclose(place, other, atol=1e-5)  # the SDF file has angles to six digits
    np.testing.assert_allclose(ours.mass_matrix(q), theirs.mass_matrix(q), rtol=1e-4, atol=1e-5)


FOUR_BAR = """<sdf version="1.9"><model name="bars">
  <joint name="hold" type="fixed"><parent>world</parent><child>ground</child></joint>
  <link name="ground"/>
  {links}
  {joints}
</model></sdf>"""


def bars() -> rf.Model:
    body = f"<inertial><mass>1</mass><inertia>{LOWER}</inertia></inertial>"
    links = "".join(
        f'<link name="{name}"><pose>{at} 0 0 0 0</pose>{body}</link>'
        for name, at in (("a", "0 0"), ("b", "0 1"), ("c", "2 0"))
    )
    pins = (("ground", "a", "0 0"), ("a", "b", "0 1"), ("ground", "c", "2 0"), ("b", "c", "2 1"))
    joints = "".join(
        f'<joint name="{p}_{c}" type="revolute"><pose relative_to="__model__">{at} 0 0 0 0</pose>'
        f"<parent>{p}</parent><child>{c}</child><axis><xyz>0 0 1</xyz></axis></joint>"
        for p, c, at in pins
    )
    return parse_sdf(FOUR_BAR.format(links=links, joints=joints))


def test_a_second_joint_closes_a_loop() -> None:
    model = bars()
    assert (model.nv, [loop.name for loop in model.loops]) == (3, ["b_c"])
    closed = model.constraints(np.zeros(3), np.zeros(3))
    np.testing.assert_allclose(closed.residual, 0.0, atol=1e-15)
    assert closed.mobility == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<plugin", "<include><uri>model://x</uri></include><plugin", "<include>: put the included model"),
        ("<plugin", "<model name='m'/><plugin", "nested models are not read"),
        ("</model>", "</model><model name='b'><link name='x'/><joint name='y' type='fixed'><parent>world</parent><child>x</child></joint></model>", "2 models with joints"),
        (SDF[SDF.index("<model"):], "<model name='a'/><model name='b'/></world></sdf>", "2 models, none with a joint: 'a', 'b'"),
        ('type="prismatic"', 'type="gearbox"', "joint 'slide': type 'gearbox' must be one of"),
        ("<child>upper</child>", "<child>uper</child>", "no link is named 'uper'; did you mean 'upper'"),
        ('relative_to="mount"', 'relative_to="nobody"', "is named 'nobody'"),
        ('attached_to="base"', 'attached_to="upper"', "poses relative to each other"),
        ("<xyz>0 0.6 0.8</xyz>", "<xyz>0 0 0</xyz>", "with a direction"),
        ("<mass>2.5</mass>", "<mass>heavy</mass>", "'heavy' is not a number"),
        ("<mass>2.5</mass>", "<mass>-1</mass>", "must be finite"),
        ('<link name="lower">', '<link name="upper">', "the name 'upper' is taken"),
        ("<lower>-1</lower>", "<lower>3</lower>", "lower limit 3 exceeds upper limit 2; swap them"),
        ("<damping>0.5</damping>", "<friction>-2</friction>", "friction.coulomb -2 must be finite"),
        ("<damping>0.5</damping>", "<spring_stiffness>-9</spring_stiffness>", "stiffness -9 must be"),
        ("<sdf ", "<robot/><sdf ", "not well-formed"),
    ],
)  # fmt: skip
def test_mistakes_are_named(old: str, new: str, message: str) -> None:
    assert old in SDF
    with pytest.raises(rf.ModelError) as caught:
        parse_sdf(SDF.replace(old, new, 1))
    assert message in str(caught.value)
    assert "robot.sdf:" in str(caught.value)


def test_loading_by_suffix(tmp_path: Path) -> None:
    (tmp_path / "arm.sdf").write_text(SDF, encoding="utf-8")
    assert rf.load(tmp_path / "arm.sdf", base="free_euler").nv == 8
    with pytest.raises(rf.ModelError, match="base 'wheels' must be one of"):
        rf.load(tmp_path / "arm.sdf", base="wheels")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("<lower>-1</lower>", "<lower>-1</lower><stiffness>100</stiffness>", "<stiffness> 100"),
        ("<lower>-1</lower>", "<lower>-1</lower><dissipation>2</dissipation>", "<dissipation> 2"),
        ("<lower>-1</lower>", "<lower>-1</lower><effort>0</effort>", "<effort> 0, a drive without"),
        ("<axis>", "<physics><ode><bounce>0.5</bounce></ode></physics><axis>", "<bounce> 0.5"),
        ("<axis>", "<physics><ode><limit><cfm>1</cfm></limit></ode></physics><axis>", "<cfm> 1 of"),
        (
            "<axis>",
            "<physics><ode><limit><erp>0.9</erp></limit></ode></physics><axis>",
            "<erp> 0.9 of",
        ),
    ],
)
def test_softness_of_stops_and_drives_without_force_are_warnings(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    assert old in SDF
    (tmp_path / "arm.sdf").write_text(SDF.replace(old, new, 1), encoding="utf-8")
    with pytest.warns(rf.LeftOutWarning, match=said):
        robot = rf.load(tmp_path / "arm.sdf")
    robot.save(tmp_path / "arm.yaml")
    text = (tmp_path / "arm.yaml").read_text(encoding="utf-8")
    assert said in text
    assert "line" not in text[: text.index("gravity")]  # of the file that was read before


@pytest.mark.parametrize(
    ("name", "value", "usual"),
    [("stopKp", 500, "1e8"), ("stopKd", 20, "1.0"), ("stopCfm", 0.1, "0.0"), ("stopErp", 0.8, 0.2)],
)
def test_stops_of_gazebo_in_urdf_are_warnings(
    name: str, value: float, usual: object, tmp_path: Path
) -> None:
    """What they are by default changes nothing."""
    joint = URDF.split('<joint name="')[1].split('"')[0]
    for x in (value, usual):
        said = f'<gazebo reference="{joint}"><{name}>{x}</{name}></gazebo></robot>'
        (tmp_path / f"{x}.urdf").write_text(URDF.replace("</robot>", said), encoding="utf-8")
    with pytest.warns(rf.LeftOutWarning, match=f"<{name}> {value} of <gazebo> is left out"):
        robot = rf.load(tmp_path / f"{value}.urdf")
    (finding,) = [f for f in robot.check() if f.code == "left-out"]
    assert f"<{name}> {value}" in finding.message
    assert finding.level == "warning"
    assert "left-out" not in [f.code for f in rf.load(tmp_path / f"{usual}.urdf").check()]


def test_what_is_used_or_left_out_is_not_reported_as_not_needed() -> None:
    moved = SDF.replace("<plugin", "<enable_wind>1</enable_wind><plugin", 1)
    report = str(parse_sdf(moved).metadata["report"])
    assert "not needed for dynamics: <plugin>" in report
    assert "<enable_wind> 1 of <model> is left out" in report
    assert report.count("enable_wind") == 1
    gravity = '<gazebo reference="lower"><turnGravityOff>1</turnGravityOff></gazebo>'
    quiet = '<gazebo reference="upper"><plugin/></gazebo><joint_gear/>'
    said = str(parse_urdf(URDF.replace("</robot>", f"{gravity}{quiet}</robot>")).metadata["report"])
    assert "not needed for dynamics: <gazebo>\n" in said
    assert "<turnGravityOff> 1 of <gazebo> is left out" in said
    assert said.count("joint_gear") == 1


def test_joints_of_a_static_model_that_move_here_are_a_warning_and_a_finding(
    tmp_path: Path,
) -> None:
    file = tmp_path / "arm.sdf"
    file.write_text(SDF.replace("<plugin", "<static>true</static><plugin"))
    with pytest.warns(rf.LeftOutWarning, match=r"<static> true.*'shoulder', 'slide'.*with_locked"):
        m = rf.load(file)
    assert [f.code for f in m.check() if "<static>" in f.message] == ["left-out"]
    file.write_text(SDF)
    assert not any("<static>" in f.message for f in rf.load(file).check())
