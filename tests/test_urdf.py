"""URDF files: what is read, what is reported, what is refused, and what is written."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_trees import random_bodies, random_frame

import ramify as rf
from ramify.api.builders import as_model
from ramify.files.import_report import ImportReport
from ramify.files.load import read_yaml
from ramify.files.mesh import inside
from ramify.files.robot_writer import to_yaml
from ramify.files.urdf import parse_urdf
from ramify.files.urdf_writer import save, to_rpy, to_urdf
from ramify.model.build import LinkSpec, build
from ramify.model.edits import with_locked
from ramify.model.frame import align_z, from_quaternion, from_rpy, rotation_about
from ramify.model.joint import Joint
from ramify.model.shape import Shape

read_yaml, build, parse_urdf = as_model(read_yaml), as_model(build), as_model(parse_urdf)

ARM = """<?xml version="1.0"?>
<robot name="arm">
  <link name="base"><inertial><mass value="5"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="upper">
    <inertial>
      <origin xyz="0.1 0 0.02" rpy="0.3 -0.2 0.5"/>
      <mass value="2.5"/>
      <inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001" ixz="-0.002" iyz="0.003"/>
    </inertial>
    <visual><origin xyz="0 0 1"/><geometry><box size="1 2 3"/></geometry></visual>
    <visual><geometry><cylinder radius="0.1" length="0.4"/></geometry></visual>
    <visual><geometry><mesh filename="package://arm/upper.stl" scale="1 1 2"/></geometry></visual>
    <collision><geometry><sphere radius="0.2"/></geometry></collision>
  </link>
  <link name="lower"><inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tool"/>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/><origin xyz="0 0 0.5" rpy="0 1.5707963267948966 0"/>
    <axis xyz="0 2 0"/><limit lower="-1" upper="2" effort="10" velocity="3"/><dynamics damping="0.1"/>
  </joint>
  <joint name="elbow" type="prismatic">
    <parent link="upper"/><child link="lower"/><limit lower="-1e16" upper="1" effort="1" velocity="1"/>
    <mimic joint="shoulder" multiplier="2"/>
  </joint>
  <joint name="weld" type="fixed"><parent link="lower"/><child link="tool"/><origin xyz="0 0 0.1"/></joint>
  <gazebo reference="tool"/>
</robot>
"""


def report(model: rf.Model) -> str:
    found = model.metadata["report"]
    assert isinstance(found, ImportReport)
    return str(found)


def tiny(joint: str, link: str = "") -> str:
    """A robot of two links and the joint between them."""
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    body = f'<link name="a"/><link name="b">{link or inertial}</link>'
    return f'<robot name="r">{body}<joint name="j" {joint}><parent link="a"/><child link="b"/>'


def wrong(text: str) -> str:
    with pytest.raises(rf.ModelError) as caught:
        parse_urdf(text, "r.urdf")
    return str(caught.value)


# ---- reading ----


def test_an_arm_is_read_as_it_stands() -> None:
    m = parse_urdf(ARM, "arm.urdf")
    assert (m.name, m.nv, [b.name for b in m.bodies]) == ("arm", 2, ["upper", "lower"])
    upper = m.body("upper")
    R = from_rpy(0.3, -0.2, 0.5)
    tensor = (
        R @ np.array([[0.02, 0.001, -0.002], [0.001, 0.03, 0.003], [-0.002, 0.003, 0.04]]) @ R.T
    )
    np.testing.assert_allclose(upper.inertia, tensor, rtol=1e-14)
    np.testing.assert_array_equal(upper.com, [0.1, 0.0, 0.02])
    assert (upper.joint.axis, upper.joint.limits, upper.joint.kind) == (
        (0.0, 1.0, 0.0),
        ((-1.0, 2.0),),
        "revolute",
    )
    np.testing.assert_array_equal(
        upper.joint.placement.rotation, rotation_about((0, 1, 0), np.pi / 2)
    )
    assert [(s.kind, s.size, s.drawn, s.collides) for s in upper.shapes] == [
        ("box", (1.0, 2.0, 3.0), True, False),
        ("cylinder", (0.1, 0.4), True, False),
        ("sphere", (0.2,), False, True),
    ]
    assert m.metadata["meshes"]["upper"][0].filename == "package://arm/upper.stl"
    elbow = m.joint("elbow")
    assert (elbow.kind, elbow.axis, elbow.limits) == (
        "prismatic",
        (1.0, 0.0, 0.0),
        ((-np.inf, 1.0),),
    )
    assert m.attachment("tool").body == 1
    assert m.attachment("base").body == -1


def test_the_report_says_what_was_ignored_and_assumed() -> None:
    said = report(parse_urdf(ARM, "arm.urdf"))
    for line in (
        "note: joint 'elbow': follows 'shoulder': a gear in model.loops",
        "note: shapes: 1 collide with a ground or a world", "<gazebo>",
        "assumed: gravity: 0 0 -9.81",
        "assumed: links: no <inertial>, so no mass: tool",
        "assumed: joint 'elbow': no axis given: the x axis",
        "note: joint 'shoulder': axis 0 2 0 has length 2",
        "note: link 'base': is the base; 5 kg are part of it",
        "note: meshes: 1 kept as names",
    ):  # fmt: skip
        assert line in said


@pytest.mark.parametrize(
    ("base", "nq", "nv"), [("fixed", 2, 2), ("free", 9, 8), ("free_euler", 8, 8)]
)
def test_the_base_stands_or_floats(tmp_path: Path, base: str, nq: int, nv: int) -> None:
    path = tmp_path / "arm.URDF"
    path.write_text(ARM)
    m = rf.load(path, base=base)
    assert (m.nq, m.nv, m.mass) == (nq, nv, 3.5 + 5.0 * (base != "fixed"))
    if base != "fixed":
        assert (m.bodies[0].name, m.joints[0].name, m.joints[0].kind, m.joints[0].actuated) == (
            "base",
            "root_joint",
            base,
            False,
        )


def test_a_joint_called_root_joint_does_not_clash() -> None:
    m = parse_urdf(ARM.replace('"elbow"', '"root_joint"'), base="free")
    assert [joint.name for joint in m.joints] == ["root_joint_2", "shoulder", "root_joint"]


def test_joints_keep_the_order_of_the_file() -> None:
    links = "".join(f'<link name="l{i}"/>' for i in range(4))

    def joint(i: int, parent: int) -> str:
        return f'<joint name="j{i}" type="continuous"><parent link="l{parent}"/><child link="l{i}"/><axis xyz="0 0 1"/></joint>'

    good = parse_urdf(f'<robot name="r">{links}{joint(2, 0)}{joint(1, 0)}{joint(3, 2)}</robot>')
    assert [j.name for j in good.joints] == ["j2", "j1", "j3"]
    late = parse_urdf(f'<robot name="r">{links}{joint(3, 2)}{joint(1, 0)}{joint(2, 0)}</robot>')
    assert [j.name for j in late.joints] == ["j1", "j2", "j3"]


@pytest.mark.parametrize("axis", [(0.0, 0.0, 1.0), (0.0, -1.0, 0.0), (0.6, 0.0, 0.8)])
def test_a_planar_joint_moves_in_the_plane_normal_to_its_axis(
    axis: tuple[float, float, float],
) -> None:
    m = parse_urdf(
        tiny('type="planar"') + f'<axis xyz="{axis[0]} {axis[1]} {axis[2]}"/></joint></robot>'
    )
    pose = m.kinematics([0.3, -0.2, 0.7])
    np.testing.assert_allclose(pose.position[0], align_z(axis) @ [0.3, -0.2, 0.0], atol=1e-15)
    np.testing.assert_allclose(pose.rotation[0], rotation_about(axis, 0.7), atol=1e-15)


def test_a_floating_joint_is_free() -> None:
    m = parse_urdf(tiny('type="floating"') + '<origin xyz="1 2 3" rpy="0 0 1"/></joint></robot>')
    assert (m.joints[0].kind, m.nq, m.nv) == ("free", 7, 6)
    q = [0.1, 0.2, 0.3, 0.5, 0.5, -0.5, 0.5]
    pose = m.kinematics(q)
    R = from_rpy(0.0, 0.0, 1.0)
    np.testing.assert_allclose(pose.position[0], R @ q[:3] + [1, 2, 3])
    np.testing.assert_allclose(pose.rotation[0], R @ from_quaternion(*q[3:]), atol=1e-15)


def test_bytes_order_marks_comments_and_foreign_elements_do_no_harm() -> None:
    text = ARM.replace("<robot", "<!-- <!DOCTYPE x> --><robot", 1).replace(
        "<gazebo", '<x:y xmlns:x="urn:z"/><loop_joint/><gazebo'
    )
    m = parse_urdf(
        b"\xef\xbb\xbf" + text.encode().replace(b'name="arm"', 'name="Ärmchen"'.encode())
    )
    assert m.name == "Ärmchen"
    assert "<loop_joint>" in report(m)


def test_drawings_that_make_no_sense_are_left_out() -> None:
    said = parse_urdf(
        ARM.replace('size="1 2 3"', 'size="1 2"').replace('radius="0.1"', 'radius="-1"')
    )
    assert [shape.drawn for shape in said.body("upper").shapes] == [False]
    assert "a <box> whose origin or size is not understood" in report(said)


def test_inertia_that_no_matter_has_is_taken_and_reported() -> None:
    said = report(parse_urdf(ARM.replace('ixy="0.001"', 'ixy="0.9"')))
    assert "link 'upper': the inertia has a negative principal moment" in said


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("package://robot/meshes/a.stl", True), ("package://robot/meshes/../a.stl", True), ("./m/a.stl", True),
        ("package://robot/../../etc/passwd", False), ("../a.stl", False), ("a/../../b", False), ("/etc/passwd", False), ("", False),
        ("file:///etc/passwd", False), ("http://example.org/a.stl", False), ("C:\\a.stl", False), ("..\\a.stl", False),
        ("package://../a.stl", False), ("package:///a.stl", False), ("%2e%2e/a.stl", False), ("~/a.stl", False), ("a\x7fb", False),
        ("//host/a.stl", False), ("meshes/..", False),
    ],
)  # fmt: skip
def test_meshes_stay_inside(name: str, kept: bool) -> None:
    assert inside(name) is kept


def test_a_mesh_outside_is_dropped_and_never_opened(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(ARM.replace("package://arm/upper.stl", "../../../../etc/passwd"))
    m = rf.load(path)
    assert m.metadata["meshes"] == {}
    assert "dropped: '../../../../etc/passwd'" in report(m)


# ---- mistakes ----


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ARM.replace('value="2.5"', 'value="-2.5"'), "r.urdf:7: link 'upper': mass -2.5 kg is negative"),
        (ARM.replace('value="2.5"', 'value="nan"'), "r.urdf:7: link 'upper': <mass> value: 'nan' is not finite"),
        (ARM.replace('value="2.5"', 'value="1e400"'), "r.urdf:7: link 'upper': <mass> value: '1e400' is too large"),
        (ARM.replace('value="2.5"', 'value="1_000"'), "'1_000' is not a number"),
        (ARM.replace('value="2.5"', 'value="2,5"'), "'2,5' is not a number"),
        (ARM.replace(' value="2.5"', ""), "<mass> has no value"),
        (ARM.replace('<mass value="2.5"/>', ""), "<inertial> without <mass"),
        (ARM.replace('ixx="0.02"', 'ixx="-0.02"'), "r.urdf:8: link 'upper': moments of inertia -0.02, 0.03, 0.04 kg m^2"),
        (ARM.replace('xyz="0.1 0 0.02"', 'xyz="0.1 0"'), "<origin> xyz='0.1 0' must be 3 numbers"),
        (ARM.replace('xyz="0 2 0"', 'xyz="0 0 0"'), "r.urdf:19: joint 'shoulder': axis 0 0 0 has no direction"),
        (ARM.replace('type="revolute"', 'type="hinge"'), "unknown type 'hinge'; choose one of revolute, continuous"),
        (ARM.replace('name="tool"/>', 'name="lower"/>'), "r.urdf:16: two links are named 'lower', the first in line 15"),
        (ARM.replace('name="elbow"', 'name="shoulder"'), "r.urdf:21: two joints are named 'shoulder', the first in line 17"),
        (ARM.replace('parent link="lower"', 'parent link="lowr"'), "its parent 'lowr' does not exist; did you mean 'lower'?"),
        (ARM.replace('child link="tool"', 'child link="upper"'), "its child 'upper' hangs on joint 'shoulder' (line 17) already"),
        (ARM.replace('<parent link="lower"/>', ""), "r.urdf:25: joint 'weld' names no parent"),
        (ARM.replace('parent link="base"', 'parent link="tool"'), "carry one another in a cycle"),
        (ARM.replace('name="weld"', 'name=""'), "a joint has no name"),
        (ARM.replace('name="tool"', 'nome="tool"'), "a link has no name"),
        (ARM.replace("</robot>", '<link name="other"/></robot>'), "2 links hang on no joint: base, other"),
        (ARM.replace("</robot>", '<link name="other"/><xacro:if xmlns:xacro="http://ros.org/wiki/xacro"/></robot>'), "<xacro:if>: expand this xacro file first"),
        (ARM.replace('<link name="tool"', '<link name="${x}_tool"'), "<link> name='${x}_tool': expand this xacro file first"),
        (ARM.replace('value="2.5"', 'value="${5/2}"'), "r.urdf:7: <mass> value='${5/2}': expand this xacro file first"),
        (ARM.replace('value="2.5"', 'value="$(arg m)"'), "<mass> value='$(arg m)' must be one number; this is an expression of xacro: expand the file first"),
        (ARM.replace('<axis xyz="0 2 0"/>', '<axis xyz="0 1 0"/><axis xyz="1 0 0"/>'), "a second <axis>"),
        ("<mujoco/>", "the root element is <mujoco>, a URDF file has <robot>; this is MJCF"),
        ('<robot name="r"/>', "the robot has no link"),
        ('<robot name="r"><link name="a"/></robot>', "no link moves: the robot has no joint but fixed ones; with base=\"free\" it floats"),
        ('<r:robot xmlns:r="http://ros.org" name="r"/>', "a URDF file has <robot>"),
        (ARM.replace('name="tool"/>', 'name="to&#10;ol"/>'), r"r.urdf:16: a link is named 'to\nol'; a name has 1 to 200 printable"),
        (ARM.replace('name="weld"', f'name="{"w" * 201}"'), "r.urdf:25: a joint is named 'www"),
        (ARM.replace('name="arm"', 'name="a&#9;"'), r"r.urdf:2: the robot is named 'a\t'; a name has"),
        (ARM[:300], "r.urdf:8:21: not well-formed XML"),
        ("", "r.urdf:1:1: not well-formed XML"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place_and_remedy(text: str, said: str) -> None:
    assert said in wrong(text)


def test_many_mistakes_are_told_at_once() -> None:
    text = (
        ARM.replace('value="2.5"', 'value="x"')
        .replace('xyz="0 2 0"', 'xyz="0 0 0"')
        .replace('link="base"', 'link="basis"')
    )
    said = wrong(text.replace("</robot>", '<link name="other"/></robot>')).splitlines()
    assert [line.split(":")[1] for line in said] == ["7", "17", "19", "27"]


def test_a_refused_joint_does_not_make_its_child_a_second_root() -> None:
    assert len(wrong(ARM.replace('type="revolute"', 'type="hinge"')).splitlines()) == 1


def test_wrong_calls(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    with pytest.raises(rf.ModelError, match="base 'loose' must be one of fixed, free, free_euler"):
        rf.load(path, base="loose")
    with pytest.raises(rf.ModelError, match="no parameters to set; got n"):
        rf.load(path, n=3)
    with pytest.raises(rf.ModelError, match="no such file"):
        rf.load(tmp_path / "none.urdf")
    (tmp_path / "folder.urdf").mkdir()
    with pytest.raises(rf.ModelError, match="is a directory"):
        rf.load(tmp_path / "folder.urdf")


def test_continuous_joints_are_named() -> None:
    arm = ARM.replace('type="revolute"', 'type="continuous"')
    m = parse_urdf(arm)
    assert m.metadata["continuous"] == ("shoulder",)
    assert m.to_pinocchio([0.0, 0.5]).q.tolist() == [1.0, 0.0, 0.5]
    assert with_locked(m.tree, "shoulder", 0.3).to_pinocchio([0.5]).q.tolist() == [0.5]
    assert "continuous" not in to_yaml(m)


# ---- as robot files ----


def same(m: rf.Model) -> None:
    """A model comes back from its robot file to the last bit."""
    again = read_yaml(to_yaml(m))
    assert again.skeleton == m.skeleton
    assert again.joints == m.joints
    assert set(again.attached) == set(m.attached)
    for one, other in zip(m.bodies, again.bodies, strict=True):
        assert (one.name, one.mass, one.com.tolist(), one.inertia.tolist()) == (
            other.name, other.mass, other.com.tolist(), other.inertia.tolist()
        )  # fmt: skip


def test_a_merged_link_may_be_named_like_a_joint() -> None:
    arm = ARM.replace('"tool"', '"elbow"').replace(
        "</robot>", '<link name="elbow_fixed"/>' + WELD + "</robot>"
    )
    m = parse_urdf(arm)
    assert {"elbow", "elbow_fixed"} <= set(m.attached)
    same(m)


WELD = '<joint name="w" type="fixed"><parent link="lower"/><child link="elbow_fixed"/></joint>'


@pytest.mark.parametrize(
    "tensor",
    [
        'ixx="-5e-20" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"',
        'ixx="-5e-20" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"',
        'ixx="0.02" iyy="0.03" izz="0.04" ixy="0.9" ixz="0" iyz="0"',
        'ixx="0" iyy="0" izz="1" ixy="1" ixz="0" iyz="0"',
    ],
)
@pytest.mark.parametrize("rpy", ["0.3 -0.2 0.5", "0 0 0", "0 0 0.7853981633974483"])
def test_an_inertia_that_is_read_is_also_written(tensor: str, rpy: str) -> None:
    old = 'ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001" ixz="-0.002" iyz="0.003"'
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*negative principal moment")
        same(parse_urdf(ARM.replace(old, tensor).replace("0.3 -0.2 0.5", rpy)))


# ---- writing ----

SAYABLE = ("revolute", "prismatic", "planar", "free")


def random_model(seed: int) -> rf.Model:
    """A tree of joints that URDF has, with outlets, limits, shapes and links welded on."""
    rng = np.random.default_rng(seed)
    bodies = random_bodies(rng, int(rng.integers(1, 9)), kinds=SAYABLE)
    specs = []
    for body in bodies:
        joint = body.joint
        if joint.kind in ("revolute", "prismatic") and rng.random() < 0.5:
            joint = Joint(
                joint.name,
                joint.kind,
                joint.placement,
                joint.outlet,
                joint.axis,
                limits=((-1.0, 2.0),),
            )
        parent = None if body.parent < 0 else bodies[body.parent].name
        shapes = (Shape("box", (1.0, 2.0, 3.0), random_frame(rng)), Shape("sphere", (0.5,)))
        specs.append(LinkSpec(body.name, parent, joint, body.mass, body.com, body.inertia, shapes))
    specs.append(
        LinkSpec("tool & <tip>", bodies[-1].name, Joint("weld", "fixed", random_frame(rng)))
    )
    specs.append(LinkSpec("floor", None, Joint("floor", "fixed", random_frame(rng))))
    return build("written", specs)


def quantities(m: rf.Model, seed: int) -> dict[str, Any]:
    q, v = m.random(seed)
    out = {
        "q": q,
        "bias": m.kernel("bias", "rolled")(q, v),
        "M": m.kernel("mass_matrix", "rolled")(q),
    }
    kinematics = m.kinematics(q)
    for name, (body, frame) in sorted(m.attached.items()):
        R, p = (
            (np.eye(3), np.zeros(3))
            if body < 0
            else (kinematics.rotation[body], kinematics.position[body])
        )
        out[name] = np.column_stack([R @ frame.rotation, R @ frame.position + p])
    return out


@given(st.integers(0, 10**6))
def test_a_model_comes_back_from_its_urdf(seed: int) -> None:
    ours = random_model(seed)
    again = parse_urdf(to_urdf(ours))
    assert [j.name for j in again.joints] == [j.name for j in ours.joints]
    assert [j.limits for j in again.joints] == [j.limits for j in ours.joints]
    assert set(ours.attached) <= set(again.attached)
    assert [len(body.shapes) for body in again.bodies] == [len(body.shapes) for body in ours.bodies]
    there = quantities(again, seed)
    for what, value in quantities(ours, seed).items():
        np.testing.assert_allclose(
            there[what], value, rtol=1e-9, atol=1e-12 * (1.0 + np.abs(value).max()), err_msg=what
        )


def test_a_file_written_twice_is_the_same(tmp_path: Path) -> None:
    first = parse_urdf(ARM)
    save(first, tmp_path / "arm.urdf")
    again = rf.load(tmp_path / "arm.urdf")
    assert to_urdf(again) == (tmp_path / "arm.urdf").read_text()
    assert again.metadata["meshes"].keys() == {"upper"}
    assert [p.name for p in tmp_path.iterdir()] == ["arm.urdf"]


def test_a_floating_robot_is_written_with_its_floating_joint() -> None:
    ours = parse_urdf(ARM, base="free")
    again = parse_urdf(to_urdf(ours))
    assert [(j.name, j.kind) for j in again.joints] == [(j.name, j.kind) for j in ours.joints]


@pytest.mark.parametrize("name", rf.robots())
def test_built_in_robots_are_written_or_refused_by_the_name_of_the_joint(name: str) -> None:
    ours = rf.load(name)
    if ours.loops:
        with pytest.raises(
            rf.ModelError, match=rf"URDF has no closed loops \({ours.loops[0].name}"
        ):
            to_urdf(ours)
        ours = ours.tree
    foreign = [j for j in ours.joints if j.kind not in SAYABLE]
    if foreign:
        with pytest.raises(
            rf.ModelError, match=f"joint '{foreign[0].name}': URDF has no {foreign[0].kind} joint"
        ):
            to_urdf(ours)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rf.LeftOutWarning)  # of friction by direction
            text = to_urdf(ours)
        again = parse_urdf(text)
        mine, there = quantities(rf.with_gravity(ours, again.gravity), 0), quantities(again, 0)
        for what in ("bias", "M"):
            np.testing.assert_allclose(
                there[what], mine[what], rtol=1e-9, atol=1e-12 * (1.0 + np.abs(mine[what]).max())
            )


@given(
    st.lists(st.floats(-4.0, 4.0), min_size=3, max_size=3),
    st.sampled_from([0.0, 1e-15, 1e-9, 1e-8, 1e-5, 1.0]),
)
def test_roll_pitch_yaw_are_exact_everywhere(rpy: list[float], from_the_pole: float) -> None:
    R = from_rpy(rpy[0], np.pi / 2 - from_the_pole * rpy[1], rpy[2])
    np.testing.assert_allclose(from_rpy(*to_rpy(R)), R, atol=4e-15)


def test_names_that_xml_cannot_hold_are_refused() -> None:
    m = replace(rf.Builder("r").link("a", mass=1.0, com=(1, 0, 0)).model(), name="bell\x07")
    with pytest.raises(rf.ModelError, match=r"is not allowed in XML"):
        to_urdf(m)


# ---- files as they are found ----


@pytest.mark.parametrize(
    ("change", "remark"),
    [
        (('<?xml version="1.0"?>', '<?xml version="0.0" ?>'), "line 1: XML version '0.0' does not exist"),
        (('<?xml version="1.0"?>', '\n\n<?xml version="1.0"?>'), "line 1: blanks before the XML declaration"),
        (('<gazebo reference="tool"/>', '<xacro:property name="x" value="${pi}"/>'), "line 26: <xacro:property>: what xacro left over is not read"),
        (('<gazebo reference="tool"/>', '<sensor:camera/>'), "line 26: Namespace prefix sensor on camera is not defined"),
        (('<axis xyz="0 2 0"/>', '<axis xyz="0 2 0"/><axis xyz="0 2 0"/>'), "line 19: a second <axis>; the first is in line 19 and says the same"),
        (('lower="-1" upper="2"', 'lower="3" upper="2"'), "lower limit 3 exceeds upper limit 2, so the joint has no limits; swap them"),
        (('lower="-1" upper="2"', 'lower="0.5"'), "0.5 exceeds upper limit 0, so the joint has no limits; upper is missing and counts as 0"),
    ],
)  # fmt: skip
def test_small_faults_are_reported_and_passed_over(
    change: tuple[str, str], remark: str, tmp_path: Path
) -> None:
    assert change[0] in ARM
    (tmp_path / "r.urdf").write_text(ARM.replace(*change), encoding="utf-8")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found, right = rf.load(tmp_path / "r.urdf"), parse_urdf(ARM)
    assert remark in report(found)
    if "says the same" not in remark:
        assert remark in str(caught[0].message)
        doubts = [
            x.message for x in found.check() if (x.level, x.code) == ("warning", "file-doubt")
        ]
        assert any(remark in doubt for doubt in doubts)
    assert found.skeleton == right.skeleton
    assert (found.joint("shoulder").limits == ()) == ("no limits" in remark)


def test_other_faults_of_xml_are_mistakes_also_beside_small_ones() -> None:
    text = wrong(ARM.replace("<gazebo", "<sensor:camera/><gazebo").replace("</robot>", "</robo>"))
    assert "not well-formed XML" in text


FLAT = """<robot name="flat">
  <link name="a"><inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  <link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  <joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint>
</robot>"""


def test_a_robot_whose_joints_lie_in_a_plane_may_move_in_it(tmp_path: Path) -> None:
    path = tmp_path / "flat.urdf"
    path.write_text(FLAT)
    m = rf.load(path, base="planar")
    assert [(joint.name, joint.kind) for joint in m.joints] == [
        ("root_joint", "planar"),
        ("j", "revolute"),
    ]
    assert not m.joints[0].actuated
    assert np.allclose(m.mass_matrix(np.zeros(4))[:2, :2], 3.0 * np.eye(2))
    with pytest.raises(rf.ModelError, match="the joints of arm do not move in one plane; choose"):
        parse_urdf(ARM.replace("prismatic", "revolute"), base="planar")


def test_a_robot_without_joints_floats() -> None:
    body = '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    m = parse_urdf(f'<robot name="r"><link name="a">{body}</link></robot>', base="free")
    assert (m.nv, m.mass) == (6, 2.0)


XACRO = """<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:property name="mass" value="${1 + 1.5}"/>
  <xacro:macro name="body" params="name">
    <link name="${name}"><inertial><mass value="${mass}"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  </xacro:macro>
  <xacro:body name="a"/><xacro:body name="b"/>
  <joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint>
</robot>"""


CALLS = """<xacro:include filename="$(find x)/sensors.xacro"/>
  <xacro:camera parent="tool" name="${prefix}eye"><origin xyz="0 0 0"/></xacro:camera>
  <xacro:camera parent="tool" name="other"/>
  <gazebo reference="tool"><material>${colour}</material></gazebo>
"""


@pytest.mark.parametrize("declared", ['xmlns:xacro="http://www.ros.org/wiki/xacro"', ""])
def test_calls_that_xacro_left_over_are_a_warning(declared: str, tmp_path: Path) -> None:
    """Files that were expanded without their sensors: the robot is all there."""
    path = tmp_path / "arm.urdf"
    text = ARM.replace("<gazebo", f"{CALLS}<gazebo", 1)
    path.write_text(text.replace('<robot name="arm"', f'<robot name="arm" {declared}'))
    with pytest.warns(
        UserWarning, match=r"<xacro:camera>: what xacro left over is not read, 2 times"
    ):
        m = rf.load(path)
    assert "<xacro:include>" in str(m.metadata["report"])
    assert "file-doubt" in {finding.code for finding in m.check()}
    q, v = m.random(0)
    want = parse_urdf(ARM).inverse_dynamics(q, v, v)
    np.testing.assert_array_equal(m.inverse_dynamics(q, v, v), want)


def test_a_default_namespace_is_harmless() -> None:
    text = ARM.replace("<robot ", '<robot xmlns="http://www.ros.org" ', 1)
    assert to_yaml(parse_urdf(text)) == to_yaml(parse_urdf(ARM))


@pytest.mark.parametrize("name", ["arm.xacro", "arm.urdf.xacro", "arm.XACRO"])
def test_macros_are_expanded(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(XACRO, encoding="utf-8")
    assert rf.load(path).mass == 2.5
    assert rf.load(path, base="free").mass == 5.0
    path.write_text(XACRO.replace("1 + 1.5", "nobody"), encoding="utf-8")
    with pytest.raises(rf.ModelError, match=r"xacro refuses it: .*nobody"):
        rf.load(path)


def test_a_left_over_macro_call_gets_the_right_advice(tmp_path: Path) -> None:
    (tmp_path / "arm.xacro").write_text('<robot name="r"><xacro:body name="x"/></robot>')
    with pytest.raises(rf.ModelError, match="declare xmlns:xacro="):
        rf.load(tmp_path / "arm.xacro")


def test_expressions_alone_are_expanded(tmp_path: Path) -> None:
    path = tmp_path / "arm.xacro"
    argument = '<xacro:arg xmlns:xacro="http://ros.org/wiki/xacro" name="m" default="2.5"/><link '
    for text in (
        ARM.replace('value="2.5"', 'value="${5/2}"'),
        ARM.replace('value="2.5"', 'value="$(arg m)"').replace("<link ", argument, 1),
    ):
        path.write_text(text, encoding="utf-8")
        assert rf.load(path).mass == parse_urdf(ARM).mass


@pytest.mark.parametrize(
    "inside",
    [
        '<xacro:include filename="{secret}"/>',
        """<link name="${{xacro.load_yaml('{secret}')['name']}}"/>""",
        '<xacro:property name="x" value="$(env HOME)"/><link name="${{x}}"/>',
    ],
)
def test_a_urdf_file_is_never_expanded(
    inside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """xacro reads files and runs expressions: nothing but the suffix .xacro asks for it."""
    monkeypatch.setattr("ramify.files.urdf.expanded", lambda path: pytest.fail("expanded"))
    path = tmp_path / "arm.urdf"
    head = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
    path.write_text(head + inside.format(secret=tmp_path / "secret.yaml") + "</robot>")
    with pytest.raises(rf.ModelError, match=r"expand this xacro file first.*rename it to \.xacro"):
        rf.load(path)


def test_without_xacro_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "arm.xacro"
    monkeypatch.setattr("ramify.files.xacro_files.find_spec", lambda name: None)
    for text in (XACRO, ARM.replace('rpy="0.3', 'rpy="${pi/2}')):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(
            rf.ModelError, match=r"pip install 'ramify\[xacro\]'.* or expand it first"
        ):
            rf.load(path)
