"""Loops in files and in Python: robot files and their mistakes, URDF's mimic joints, MuJoCo's
equalities, edits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from closed_systems import KINDS, four_bar, two_arms
from packages import package

import ramify as rf
from ramify.api.builders import as_model
from ramify.files.load import read_yaml
from ramify.files.robot_writer import to_yaml
from ramify.files.urdf import parse_urdf
from ramify.files.urdf_writer import to_urdf
from ramify.model.loop import Loop, LoopEnd

read_yaml, parse_urdf = as_model(read_yaml), as_model(parse_urdf)

LINKS = """
name: pair
links:
  - {name: left, frame: {}, mass: 1, com: [0.5, 0, 0], inertia: [0, 0.1, 0.1]}
  - {name: right, frame: {xyz: [1, 0, 0]}, mass: 1, com: [0.5, 0, 0], inertia: [0, 0.1, 0.1]}
"""


@pytest.mark.parametrize(("kind", "options"), [*KINDS, ("revolute", {"planar": True})])
def test_a_file_written_is_the_same_robot(kind: str, options: Any) -> None:
    model, q = (
        two_arms(1, kind, options)
        if not options.get("planar")
        else (four_bar(), np.array([0.0, 1.0, 2.0]))
    )
    again = read_yaml(to_yaml(model))
    assert (again.loops, again.guess) == (model.loops, model.guess)
    assert to_yaml(again) == to_yaml(model)
    np.testing.assert_array_equal(again.constraints(q).residual, model.constraints(q).residual)


def test_gears_are_written_too() -> None:
    text = (
        LINKS
        + "loops: [{name: belt, joint: {type: gear, joints: [left, right], ratio: -2, offset: pi/4}}]\n"
    )
    model = read_yaml(text)
    assert model.loops == (
        Loop("belt", "gear", joints=("left", "right"), ratio=-2.0, offset=np.pi / 4),
    )
    assert read_yaml(to_yaml(model)).loops == model.loops
    assert model.tree.loops == ()
    assert model.tree.tree is model.tree


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            "{name: a, joint: revolut, first: {}, second: {link: left}}",
            "joint.type: no joint that closes a loop is called 'revolut'; did",
        ),
        (
            "{name: a, joint: {type: revolute, planr: true}, first: {}, second: {link: left}}",
            "unknown key; did you mean 'planar'?",
        ),
        (
            "{name: a, joint: spherical, first: {}, second: {link: lift}}",
            "second.link: no link is named 'lift'",
        ),
        ("{name: a, joint: spherical, first: {link: left}}", "second is missing"),
        (
            "{name: a, joint: spherical, first: {}, second: {link: left, rpy: [0, 0, 1], rpy_deg: "
            "[0, 0, 1]}}",
            "exclude each other",
        ),
        (
            "{name: a, joint: distance, first: {}, second: {link: left}}",
            "length 0.0 is wrong; a distance has one above 0 in m",
        ),
        (
            "{name: a, joint: {type: spherical, axis: x}, first: {}, second: {link: left}}",
            "a spherical joint takes no axis",
        ),
        ("{name: a, joint: {type: gear, joints: [left]}}", "a gear couples two coordinates"),
        (
            "{name: a, joint: {type: gear, joints: [left, up]}}",
            "there is no coordinate 'up' to couple",
        ),
        (
            "{name: a, joint: {type: gear, joints: [left, left]}}",
            "'left' cannot be geared to itself",
        ),
        (
            "{name: a, joint: {type: gear, joints: [left, right]}, first: {}}",
            "first does not belong in a gear",
        ),
        ("{name: a, joint: spherical, first: {}, second: {}}", "both of its ends are on the base"),
        (
            "{name: a, joint: spherical, first: {link: left}, second: {link: left}}",
            "both of its ends are on 'left'",
        ),
        (
            "{name: a, joint: {type: universal, sequence: XX}, first: {}, second: {link: left}}",
            "sequence 'XX' is wrong",
        ),
        (
            "{name: a, joint: {type: spherical, planar: true}, first: {}, second: {link: left}}",
            "planar belongs to revolute and fixed joints",
        ),
        ("{joint: spherical, first: {}, second: {link: left}}", "loops.0.name: is missing"),
        ("7", "loops.0: 7 must be a mapping"),
    ],
)
def test_mistakes_are_told_with_their_place(lines: str, message: str) -> None:
    with pytest.raises(rf.ModelError) as refused:
        read_yaml(LINKS + f"loops:\n  - {lines}\n")
    assert message in str(refused.value)
    assert str(refused.value).startswith("robot.yaml:7:")


def test_more_mistakes() -> None:
    loop = "{name: a, joint: spherical, first: {}, second: {link: left}}"
    with pytest.raises(
        rf.ModelError, match=r"robot\.yaml:8:\d+: loops\.1\.name: two loops are named 'a'"
    ):
        read_yaml(LINKS + f"loops:\n  - {loop}\n  - {loop}\n")
    with pytest.raises(
        rf.ModelError,
        match="guess names 'lift', which is not a coordinate; choose among left, right",
    ):
        read_yaml(LINKS + f"loops: [{loop}]\nguess: {{lift: 1}}\n")
    with pytest.raises(
        rf.ModelError, match="frame on 'left' is not a finite position and a rotation"
    ):
        Loop("a", "fixed", second=LoopEnd("left", rf.Frame(2.0 * np.eye(3))))


# ---- edits ----


def test_loops_survive_edits() -> None:
    model = four_bar()
    assert rf.with_gravity(model, (0, 0, 0)).loops == model.loops
    assert rf.with_payload(model, "coupler", 1.0).loops == model.loops
    held = rf.with_locked(
        rf.with_loop(
            model, "far", "distance", ("crank", (0, 0, 0)), ("coupler", (0, 0, 0)), length=0.1
        ),
        "rocker",
        1.0,
    )
    assert [loop.name for loop in held.loops] == ["pin", "far"]
    assert set(held.guess) == {"crank", "coupler"}
    with pytest.raises(rf.ModelError, match="no link is named 'nobody'"):
        rf.with_loop(model, "bad", "spherical", ("nobody", (0, 0, 0)), ("crank", (0, 0, 0)))
    with pytest.raises(rf.ModelError, match="two loops are named 'pin'"):
        rf.with_loop(model, "pin", "spherical", ("rocker", (0, 0, 0)), ("crank", (0, 0, 0)))


def test_a_locked_gear_locks_its_partner() -> None:
    robot = (
        rf.Builder("train")
        .link("a", mass=1.0, com=(1, 0, 0))
        .link("b", "a", mass=1.0, com=(1, 0, 0))
        .link("c", "b", mass=1.0, com=(1, 0, 0))
    )
    model = robot.loop("gear", "gear", joints=("a", "b"), ratio=2.0, offset=0.5).model()
    for joint, value in (("a", 0.3), ("b", 1.1)):
        held = rf.with_locked(model, joint, value)
        assert held.coordinates == ("c",)
        expected = model.tree.kinematics([0.3, 1.1, 0.7])
        np.testing.assert_allclose(
            held.kinematics([0.7]).position[0], expected.position[2], atol=1e-12
        )


# ---- URDF ----

FINGERS = """<robot name="hand"><link name="palm"/>
  <link name="left"><inertial>
    <mass value="1"/><origin xyz="0.1 0 0"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="right"><inertial>
    <mass value="1"/><origin xyz="0.1 0 0"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="drive" type="revolute"><parent link="palm"/><child link="left"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="follow" type="revolute"><parent link="palm"/><child link="right"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/><mimic joint="MASTER" multiplier="-0.5" offset="0.1"/></joint></robot>"""


def test_mimic_joints_are_gears() -> None:
    model = parse_urdf(FINGERS.replace("MASTER", "drive"))
    assert model.loops == (
        Loop("follow_mimic", "gear", joints=("drive", "follow"), ratio=-0.5, offset=0.1),
    )
    assert [joint.actuated for joint in model.joints] == [True, False]
    assert "follows 'drive': a gear in model.loops" in str(model.metadata["report"])
    np.testing.assert_allclose(model.assemble({"drive": 0.4}, {"drive": 2.0}).v, [2.0, -1.0])
    again = parse_urdf(to_urdf(model))
    assert again.loops == model.loops
    unknown = parse_urdf(FINGERS.replace("MASTER", "nobody"))
    assert not unknown.loops
    assert "mimic of 'nobody', which is not a joint of one degree of freedom" in str(
        unknown.metadata["report"]
    )
    with pytest.raises(rf.ModelError, match="URDF has no closed loops"):
        to_urdf(four_bar())


# ---- MJCF ----

MECHANISM = """<mujoco><compiler angle="radian"/><worldbody>
  <body name="crank" pos="0.1 0 0"><joint name="c" axis="0 0 1" ref="0.2"/>
    <inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
    <site name="tip" pos="0.2 0.01 0" euler="0.1 0.2 0.3"/></body>
  <body name="arm" pos="0 0.3 0.1" euler="0.3 0 0.1"><joint name="s" type="slide" axis="1 0 0"/>
    <inertial pos="0 0.1 0" mass="2" diaginertia="0.02 0.02 0.02"/>
    <body name="hand" pos="0.2 0 0"><joint name="w" axis="0 1 0"/><inertial pos="0 0 0.1" mass="1" diaginertia="0.01 0.01 0.01"/>
      <site name="palm" pos="0 0 0.2"/></body></body>
</worldbody><equality>
  <connect name="meet" body1="crank" body2="hand" anchor="0.1 0.05 0.02"/>
  <weld name="stick" body1="hand" body2="crank" relpose="0.1 0.2 0.3 0.9 0.1 0.2 0.3" anchor="0.03 0.02 0.01"/>
  <connect name="sites" site1="tip" site2="palm"/>
  <weld name="frames" site1="tip" site2="palm"/>
  <joint name="gear" joint1="w" joint2="c" polycoef="0.3 -2 0 0 0"/>
  <joint name="bent" joint1="w" joint2="c" polycoef="0 1 2 0 0"/>
  <connect name="off" body1="crank" body2="hand" anchor="0 0 0" active="false"/>
</equality></mujoco>"""


def test_equalities_are_loops(tmp_path: Path) -> None:
    """Their rows vanish where MuJoCo's do: its own residuals, at random postures, differ from ours
    by a rotation at most.
    """
    path = tmp_path / "mechanism.xml"
    path.write_text(MECHANISM)
    model = rf.load(path)
    assert [(loop.name, loop.kind) for loop in model.loops] == [
        ("meet", "spherical"), ("stick", "fixed"), ("sites", "spherical"), ("frames", "fixed"), ("gear", "gear"),
        ("bent", "coupling"),
    ]  # fmt: skip
    report = str(model.metadata["report"])
    assert "'off': it is not active" in report
    m = mujoco.MjModel.from_xml_path(str(path))
    d = mujoco.MjData(m)
    rng = np.random.default_rng(0)
    for _ in range(3):
        q = rng.normal(size=3) * 0.3
        d.qpos[:] = q
        mujoco.mj_forward(m, d)
        his = {
            "meet": slice(0, 3),
            "stick": slice(3, 9),
            "sites": slice(9, 12),
            "frames": slice(12, 18),
            "gear": slice(18, 19),
            "bent": slice(19, 20),
        }
        residual, start = model.constraints(q).residual, 0
        for loop in model.loops:
            ours, theirs = residual[start : start + len(loop.rows)], d.efc_pos[his[loop.name]]
            start += len(loop.rows)
            if loop.joints:
                np.testing.assert_allclose(ours, theirs, atol=1e-12)
                continue
            assert np.linalg.norm(ours[:3]) == pytest.approx(np.linalg.norm(theirs[:3]), rel=1e-10)
            if loop.kind == "fixed":  # his are the sine of half the angle, ours of the whole
                half = np.linalg.norm(theirs[3:])
                assert np.linalg.norm(ours[3:]) == pytest.approx(
                    2.0 * half * np.sqrt(1.0 - half**2), rel=1e-9
                )


CHAIN = """<robot name="hand">
  <link name="palm"/>
  LINKS
  JOINTS
</robot>"""


def hand(limits: str = 'lower="-0.4" upper="0.3"') -> rf.Model:
    """Four fingers in a row: b = -2 a + 0.1, c = 0.5 b, d is free."""
    body = '<inertial><mass value="1"/><origin xyz="0.1 0 0"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    mimics = {"b": 'joint="ja" multiplier="-2" offset="0.1"', "c": 'joint="jb" multiplier="0.5"'}
    wide = 'lower="-1" upper="1"'
    links = "".join(f'<link name="{name}">{body}</link>' for name in "abcd")
    joints = "".join(
        f'<joint name="j{name}" type="revolute"><parent link="{parent}"/><child link="{name}"/>'
        f'<axis xyz="0 0 1"/><limit {limits if name == "b" else wide}/>'
        + (f"<mimic {mimics[name]}/>" if name in mimics else "")
        + "</joint>"
        for parent, name in (("palm", "a"), ("a", "b"), ("b", "c"), ("c", "d"))
    )
    return parse_urdf(CHAIN.replace("LINKS", links).replace("JOINTS", joints))


@pytest.mark.parametrize("seed", range(20))
def test_random_states_honour_mimic_joints_and_all_their_limits(seed: int) -> None:
    model = hand()
    q, v = model.random(seed)
    assert q[1] == pytest.approx(-2 * q[0] + 0.1)
    assert q[2] == pytest.approx(0.5 * q[1])
    assert v[1:3] == pytest.approx([-2 * v[0], -v[0]])
    for x, joint in zip(q, model.joints, strict=True):
        ((low, high),) = joint.limits
        assert low - 1e-12 <= x <= high + 1e-12
    model.inverse_dynamics(q, v, model.forward_dynamics(q, v, np.zeros(4)))


def test_random_states_where_limits_and_gears_contradict_each_other() -> None:
    q, _ = hand('lower="5" upper="6"').random(0)
    assert q[1] == pytest.approx(-2 * q[0] + 0.1)
    assert -1 <= q[0] <= 1


def test_the_panda_of_the_readme() -> None:
    """A gripper with a mimic joint: random states are accepted by inverse dynamics."""
    folder = package("example-robot-data") / "panda_description" / "urdf"
    model = rf.load(folder / "panda.urdf")
    q, v = model.random(seed=0)
    assert np.isfinite(model.inverse_dynamics(q, v, np.zeros(model.nv))).all()


def test_equalities_between_fixed_bodies_are_no_loops(tmp_path: Path) -> None:
    """Catches a file that was refused for a weld between two bodies on the world."""
    bodies = '<body name="a"><joint/><geom size="1"/></body>'
    bodies += "".join(f'<body name="{name}"><geom size="1"/></body>' for name in "bc")
    weld = '<equality><weld name="w" body1="b" body2="c"/></equality>'
    path = tmp_path / "r.xml"
    path.write_text(f"<mujoco><worldbody>{bodies}</worldbody>{weld}</mujoco>")
    model = rf.load(path)
    assert not model.loops
    assert "equality 'w': its bodies are fixed to each other anyway" in str(
        model.metadata["report"]
    )
