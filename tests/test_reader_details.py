"""Numbers of robot files, URDF, SDF and MJCF, read one by one and compared with what they say: every
option of a part, values that differ in every entry, and both directions of each warning.
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import close

import ramify as rf

ARM = """
name: arm
gravity: [0.5, -0.25, -9.0]
links:
  - {name: a, frame: {xyz: [0, 0, 0]}, joint: {type: revolute, axis: [0, 1, 0]}, mass: 2, com: [0.1, 0.2, 0.3], inertia: [0.5, 0.6, 0.7]}
  - {name: b, parent: a, frame: {xyz: [0, 0, 0]}, joint: {type: prismatic}, mass: 3, com: [0.3, 0.1, 0.2], inertia: [0.4, 0.5, 0.6]}
"""


def robot(tmp_path: Path, text: str, name: str = "r.yaml") -> rf.Model:
    (tmp_path / name).write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the report says it all
        return rf.load(tmp_path / name)


# ---- robot files: actuators, tendons, frames, keyframes ----


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("kind: motor", {"gain": (1, 0, 0), "bias": (0, 0, 0), "command": (-math.inf, math.inf)}),
        ("kind: position, kp: 7, kv: 2", {"gain": (7, 0, 0), "bias": (0, -7, -2)}),
        ("kind: position, kp: 7, command: [-0.5, 0.25]", {"gain": (7, 0, 0), "command": (-0.5, 0.25)}),
        ("kind: velocity, kv: 3, command: [-2, 4]", {"gain": (3, 0, 0), "bias": (0, 0, -3), "command": (-2, 4)}),
        ("kind: dc_motor, constant: 0.2, resistance: 4, voltage: 12", {"command": (-12, 12)}),
        ("kind: dc_motor, constant: 0.2, resistance: 4, voltage: 12, command: [-3, 5]", {"command": (-3, 5)}),
        ("gain: [1, 2, 3], bias: [4, 5, 6], force: [-7, 8]", {"gain": (1, 2, 3), "bias": (4, 5, 6), "force": (-7, 8)}),
        ("gear: 3", {"gear": (3, 0, 0, 0, 0, 0)}),
        ("gear: [1, 2, 3, 4, 5, 6]", {"gear": (1, 2, 3, 4, 5, 6)}),
        ("activation: filter, time: 0.3, activations: [-1, 2]", {"activation": "filter", "time": 0.3, "activations": (-1, 2)}),
    ],
)  # fmt: skip
def test_actuators(said: str, wanted: dict[str, Any], tmp_path: Path) -> None:
    m = robot(tmp_path, f"{ARM}actuators:\n  - {{name: m, joint: a, {said}}}\n")
    (found,) = m.actuators
    for key, value in wanted.items():
        x = getattr(found, key)
        if isinstance(value, str):
            assert x == value
        else:
            close(x, value, 1e-12, 0.0, key)
    m.save(tmp_path / "again.yaml")
    assert rf.load(tmp_path / "again.yaml").actuators == m.actuators


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("actuators: [{name: m, joint: a, gear: [1, 2]}]", "gear must be one number, or six"),
        ("actuators: [{name: m, joint: a, kind: position}]", "a position actuator needs kp"),
        ("actuators: [{name: m, joint: a, kind: motor, kp: 3}]", "kp does not belong to a motor actuator, which takes no gains"),
        ("actuators: [{name: m, joint: a, kind: dc_motor, constant: 1}]", "needs resistance, voltage"),
        ("tendons: [{name: t}]", "give one of joints, frames, branches"),
        ("tendons: [{name: t, joints: {}}]", "must have at least one entry"),
        ("tendons: [{name: t, joints: {a: 1}, stiffness: -1}]", "must be one number"),
        ("tendons: [{name: t, joints: {a: 1}, stiffness: [1, 2]}]", "must be one number"),
        ("tendons: [{name: t, joints: {a: 1}, damping: [1, -3, 1]}]", "would make energy at some speed"),
        ("tendons: [{name: t, joints: {a: 1}, damping: [1, 0, -1]}]", "would make energy at some speed"),
        ("tendons: [{name: t, joints: {a: 1}, damping: [1, -2, 1]}]", ""),
        ("tendons: [{name: t, joints: {a: 1}, stiffness: [1, -3, 1]}]", ""),
        ("frames: [{name: f, link: c}]", "no link is named 'c'"),
        ("frames: [{name: a, link: b}]", "duplicate name 'a'"),
        ("frames: [{name: f}, {name: f}]", "duplicate name 'f'"),
        ("keyframes: [{name: k, q: [1]}]", "q needs 2 numbers, and v 2 or none"),
        ("keyframes: [{name: k, q: [1, 2], v: [1]}]", "q needs 2 numbers, and v 2 or none"),
        ("keyframes: [{name: k, q: [1, 2], v: [1, 2]}]", ""),
        ("keyframes: [{name: k, q: [1, 2], command: [1]}]", "1 numbers given; the actuators need 0"),
        ("keyframes: [{name: k, q: [1, 2]}, {name: k, q: [1, 2]}]", "duplicate name 'k'"),
    ],
)  # fmt: skip
def test_parts_of_a_machine(said: str, why: str, tmp_path: Path) -> None:
    if why:
        with pytest.raises(rf.ModelError, match=why):
            robot(tmp_path, f"{ARM}{said}\n")
    else:
        robot(tmp_path, f"{ARM}{said}\n")


def test_tendons_and_keyframes(tmp_path: Path) -> None:
    text = """
frames: [{name: f, link: a, xyz: [0.1, 0.2, 0.3]}, {name: g, link: b, xyz: [0, 0.5, 0]}, {name: w, xyz: [1, 2, 3]}]
tendons:
  - {name: t, joints: {a: 0.5, b: -2}, stiffness: [1, 2, 3], damping: 4, rest: [0.1, 0.2], effort: [-5, 6]}
  - {name: s, frames: [w, f, g], stiffness: 7, rest: 0.3}
  - {name: p, branches: [{frames: [w, f], divisor: 2}, {frames: [f, g]}]}
actuators: [{name: m, tendon: t, activation: integrator, time: 0.1}, {name: n, joint: b}]
keyframes: [{name: k, q: [1, 2], v: [3, 4], command: [5, 6], activation: [7], time: 8}]
"""
    m = robot(tmp_path, ARM + text)
    t, s, p = m.tendons
    assert (t.joints, t.stiffness, t.damping) == ((("a", 0.5), ("b", -2.0)), (1, 2, 3), (4, 0, 0))
    assert (t.rest, t.effort, s.rest) == ((0.1, 0.2), (-5, 6), (0.3, 0.3))
    assert (s.branches, p.branches) == (
        ((1.0, ("w", "f", "g")),),
        ((2.0, ("w", "f")), (1.0, ("f", "g"))),
    )
    (k,) = m.keyframes
    assert (k.q, k.v, k.command, k.activation, k.time) == ((1, 2), (3, 4), (5, 6), (7,), 8.0)
    close(m.pose([0.0, 0.0], "f").position, [0.1, 0.2, 0.3], 1e-14)
    close(m.pose([0.3, 0.4], "w").position, [1, 2, 3], 1e-14)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("type: revolute", "type: ball, limits_deg: [10, 20]", "the coordinates of a ball joint are not all angles"),
        ("type: revolute, axis: [0, 1, 0]", "type: ball, axis: [0, 1, 0]", "a ball joint takes no axis"),
        ("[0.5, 0.6, 0.7]", "[[0.5, 0.1, 0], [0, 0.6, 0], [0, 0, 0.7]]", "the tensor is not symmetric"),
        ("[0.5, 0.6, 0.7]", "[0.01, 0.01, 0.01], inertia_about: origin", "has a principal moment of"),
    ],
)  # fmt: skip
def test_joints_and_tensors_that_are_refused(old: str, new: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(rf.ModelError, match=why):
        robot(tmp_path, ARM.replace(old, new, 1))


def test_limits_tensors_and_lifts(tmp_path: Path) -> None:
    text = ARM.replace("axis: [0, 1, 0]}", "axis: [0, 1, 0], limits_deg: [-30, 45]}")
    text = text.replace(
        "[0.5, 0.6, 0.7]", "[0.9, 0.8, 0.7], inertia_about: origin, gravity_compensation: 0.25"
    )
    text = text.replace(
        "[0.4, 0.5, 0.6]",
        "[0.4, 0.5, 0.6], gravity_compensation: {mass: 1.5, com: [0.3, 0.2, 0.1]}",
    )
    m = robot(tmp_path, text)
    close(m.joints[0].limits[0], np.radians([-30, 45]), 1e-14)
    a, b = m.bodies
    x, y, z = 0.1, 0.2, 0.3
    shift = 2.0 * np.array(
        [
            [y * y + z * z, -x * y, -x * z],
            [-x * y, x * x + z * z, -y * z],
            [-x * z, -y * z, x * x + y * y],
        ]
    )
    close(a.inertia, np.diag([0.9, 0.8, 0.7]) - shift, 1e-12, 1e-15)
    assert a.lift == (0.5, (0.1, 0.2, 0.3))
    assert b.lift == (1.5, (0.3, 0.2, 0.1))


# ---- URDF ----

URDF = """<robot name="r"><link name="base"/><link name="a"><inertial><origin xyz="0.1 0.2 0.3" rpy="0.3 -0.2 0.5"/>
<mass value="2"/><inertia ixx="0.5" iyy="0.6" izz="0.7" ixy="0.01" ixz="0.02" iyz="0.03"/></inertial></link>
<link name="b"><inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial></link>
<joint name="j" type="revolute"><parent link="base"/><child link="a"/><origin xyz="1 2 3" rpy="0.1 0.2 0.3"/>
<axis xyz="0 0.6 0.8"/><limit lower="-0.5" upper="0.75" effort="11" velocity="12"/>
<dynamics damping="0.3" friction="0.4"/></joint>
<joint name="k" type="prismatic"><parent link="a"/><child link="b"/>{mimic}<limit {limit} effort="1" velocity="1"/></joint>
{more}</robot>"""


def urdf(
    tmp_path: Path, mimic: str = "", limit: str = 'lower="-1" upper="2"', more: str = ""
) -> rf.Model:
    return robot(tmp_path, URDF.format(mimic=mimic, limit=limit, more=more), "r.urdf")


def report(m: rf.Model) -> str:
    return str(m.metadata["report"])


def rpy(r: float, p: float, y: float) -> Any:
    def about(i: int, x: float) -> Any:
        R, j, k = np.eye(3), (i + 1) % 3, (i + 2) % 3
        R[j, j] = R[k, k] = np.cos(x)
        R[j, k], R[k, j] = -np.sin(x), np.sin(x)
        return R

    return about(2, y) @ about(1, p) @ about(0, r)


def test_a_urdf_robot(tmp_path: Path) -> None:
    m = urdf(tmp_path)
    j, k = m.joints
    close(j.placement.position, [1, 2, 3], 0.0)
    close(j.placement.rotation, rpy(0.1, 0.2, 0.3), 1e-14, 1e-15)
    close(j.axis, [0, 0.6, 0.8], 1e-12)
    assert (j.limits, k.limits) == (((-0.5, 0.75),), ((-1.0, 2.0),))
    element = j.machine[0]
    assert (element.effort, element.velocity, element.damping[0]) == (11.0, 12.0, 0.3)
    assert element.friction is not None
    assert element.friction.sliding == 0.4
    a = next(body for body in m.bodies if body.name == "a")
    R = rpy(0.3, -0.2, 0.5)
    close(a.inertia, R @ [[0.5, 0.01, 0.02], [0.01, 0.6, 0.03], [0.02, 0.03, 0.7]] @ R.T, 1e-12)
    close(a.com, [0.1, 0.2, 0.3], 0.0)
    assert "link 'b': no ixy, ixz, iyz given: zero" in report(m)
    assert "link 'a': no " not in report(m)
    assert "joint 'k': no axis given: the x axis" in report(m)
    assert "joint 'j': no axis" not in report(m)


@pytest.mark.parametrize(
    ("limit", "limits", "said"),
    [
        ('lower="-1"', ((-1.0, 0.0),), "<limit> without upper: 0, as URDF has it"),
        ('upper="2"', ((0.0, 2.0),), "<limit> without lower: 0, as URDF has it"),
        ('lower="1" upper="-2"', (), "lower limit 1 exceeds upper limit -2, so the joint has no limits; swap them"),
        ('lower="1"', (), "exceeds upper limit 0, so the joint has no limits; upper is missing and counts as 0"),
        ('lower="-1" upper="2"', ((-1.0, 2.0),), None),
    ],
)  # fmt: skip
def test_limits_of_urdf(limit: str, limits: Any, said: str | None, tmp_path: Path) -> None:
    m = urdf(tmp_path, limit=limit)
    assert m.joints[1].limits == limits
    assert ("<limit>" in report(m) or "exceeds" in report(m)) == (said is not None)
    assert said is None or said in report(m)


def test_mimics_and_transmissions_of_urdf(tmp_path: Path) -> None:
    m = urdf(tmp_path, '<mimic joint="j" multiplier="-2" offset="0.3"/>')
    (gear,) = m.loops
    assert (gear.joints, gear.ratio, gear.offset, gear.name) == (("j", "k"), -2.0, 0.3, "k_mimic")
    assert [joint.actuated for joint in m.tree.joints] == [True, False]
    (gear,) = urdf(tmp_path, '<mimic joint="j"/>').loops
    assert (gear.ratio, gear.offset) == (1.0, 0.0)
    text = (
        '<transmission name="t{0}"><type>{1}</type><joint name="{2}"/><actuator name="x">'
        "<mechanicalReduction>{3}</mechanicalReduction><motorInertia>{4}</motorInertia></actuator></transmission>"
    )
    simple = "transmission_interface/SimpleTransmission"
    m = urdf(tmp_path, more=text.format(1, simple, "j", 50, 0.002))
    assert (m.joints[0].machine[0].gear, m.joints[0].machine[0].armature) == (
        50.0,
        pytest.approx(5.0),
    )
    assert m.joints[1].machine[0].gear == 1.0
    twice = text.format(1, simple, "j", 50, 0.002) + text.format(2, simple, "j", 3, 0.1)
    m = urdf(tmp_path, more=twice)
    assert m.joints[0].machine[0].gear == 50.0
    assert "transmission 't2': joint 'j' has transmission 't1' already" in report(m)
    m = urdf(tmp_path, more=text.format(1, simple, "none", 50, 0.002))
    assert "the file has no joint 'none'" in report(m)
    for gear_text, rotor, why in (
        ("0", "0.1", "must not be 0"),
        ("2", "-0.1", "rotor inertia -0.1 must be"),
    ):
        with pytest.raises(rf.ModelError, match=why):
            urdf(tmp_path, more=text.format(1, simple, "j", gear_text, rotor))


# ---- SDF ----

SDF = """<sdf version="1.7"><model name="r">{pose}<link name="base"><inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial></link>
<link name="a"><pose {format}>{at}</pose><inertial><pose>0.1 0.2 0.3 0.3 -0.2 0.5</pose><mass>2</mass><inertia><ixx>0.5</ixx><iyy>0.6</iyy><izz>0.7</izz>
<ixy>0.01</ixy><ixz>0.02</ixz><iyz>0.03</iyz></inertia></inertial>{link}</link>
<joint name="j" type="{type}"><parent>base</parent><child>a</child>{joint}<axis><xyz>0 0.6 0.8</xyz>{axis}</axis></joint></model></sdf>"""
PLAIN = {"pose": "", "format": "", "at": "1 2 3 0.1 0.2 0.3", "link": "", "type": "revolute", "joint": "", "axis": ""}  # fmt: skip


def sdf(tmp_path: Path, **changes: str) -> rf.Model:
    return robot(tmp_path, SDF.format(**(PLAIN | changes)), "r.sdf")


def test_an_sdf_robot(tmp_path: Path) -> None:
    m = sdf(tmp_path)
    a = m.bodies[-1]
    R = rpy(0.3, -0.2, 0.5)
    close(a.inertia, R @ [[0.5, 0.01, 0.02], [0.01, 0.6, 0.03], [0.02, 0.03, 0.7]] @ R.T, 1e-12)
    close(a.com, [0.1, 0.2, 0.3], 0.0)
    assert a.lift == (0.0, (0.0, 0.0, 0.0))
    pose = m.pose(m.neutral(), "a")
    close(pose.position, [1, 2, 3], 1e-12)
    close(pose.rotation, rpy(0.1, 0.2, 0.3), 1e-12, 1e-14)
    close(m.joints[-1].axis, [0, 0.6, 0.8], 1e-12)
    lifted = sdf(tmp_path, link="<gravity>false</gravity>").bodies[-1]
    assert lifted.lift[0] == 2.0
    close(lifted.lift[1], [0.1, 0.2, 0.3], 0.0)
    assert sdf(tmp_path, link="<gravity>1</gravity>").bodies[-1].lift[0] == 0.0


@pytest.mark.parametrize(
    ("form", "at", "turn"),
    [
        ('degrees="true"', "1 2 3 10 20 30", rpy(*np.radians([10, 20, 30]))),
        ('rotation_format="quat_xyzw"', "1 2 3 0 0 0.6 0.8", rpy(0, 0, 2 * np.arctan2(0.6, 0.8))),
        ('rotation_format="quat_xyzw"', "1 2 3 3 0 0 4", rpy(2 * np.arctan2(0.6, 0.8), 0, 0)),
        ('rotation_format="axis"', "1 2 3 0 0 0", "rotation_format must be euler_rpy or quat_xyzw"),
        ('rotation_format="quat_xyzw"', "1 2 3 0 0 0 0", "its quaternion not zero"),
    ],
)  # fmt: skip
def test_poses_of_sdf(form: str, at: str, turn: Any, tmp_path: Path) -> None:
    if isinstance(turn, str):
        with pytest.raises(rf.ModelError, match=turn):
            sdf(tmp_path, format=form, at=at)
        return
    m = sdf(tmp_path, format=form, at=at)
    close(m.pose(m.neutral(), "a").rotation, turn, 1e-12, 1e-14)
    close(m.pose(m.neutral(), "a").position, [1, 2, 3], 1e-12)


def test_joints_of_sdf(tmp_path: Path) -> None:
    axis = (
        "<limit><lower>-0.5</lower><upper>0.75</upper><effort>11</effort><velocity>12</velocity></limit>"
        "<dynamics><damping>0.3</damping><friction>0.4</friction><spring_stiffness>5</spring_stiffness>"
        "<spring_reference>0.6</spring_reference></dynamics>"
    )
    joint = sdf(tmp_path, axis=axis).joints[-1]
    element = joint.machine[0]
    assert joint.limits == ((-0.5, 0.75),)
    assert (element.effort, element.velocity, element.damping[0]) == (11.0, 12.0, 0.3)
    assert element.friction is not None
    assert element.friction.sliding == 0.4
    assert element.spring is not None
    assert (element.spring.stiffness[0], element.spring.rest[0]) == (5.0, 0.6)
    m = sdf(tmp_path, axis="<limit><effort>0</effort></limit>")
    assert "<effort> 0, a drive without force" in report(m)
    free = sdf(tmp_path, axis="<limit><effort>-1</effort><velocity>-1</velocity></limit>")
    assert (free.joints[-1].machine[0].effort, "<effort> 0" in report(free)) == (math.inf, False)
    with pytest.raises(rf.ModelError, match="lower limit 2 exceeds upper limit 1; swap them"):
        sdf(tmp_path, axis="<limit><lower>2</lower><upper>1</upper></limit>")
    for said, pitch in (
        ("<screw_thread_pitch>0.5</screw_thread_pitch>", 0.5 / (2 * np.pi)),
        ("<thread_pitch>4</thread_pitch>", -0.25), ("", 1 / (2 * np.pi)),
    ):  # fmt: skip
        m = sdf(tmp_path, type="screw", joint=said)
        close(m.joints[-1].pitch, pitch, 1e-12)
        assert ("no <screw_thread_pitch>: 1 m per turn" in report(m)) == (said == "")
    with pytest.raises(rf.ModelError, match="its thread pitch must be finite and not 0"):
        sdf(tmp_path, type="screw", joint="<thread_pitch>0</thread_pitch>")
    turned = sdf(tmp_path, axis="").joints[-1]
    close(turned.axis, [0, 0.6, 0.8], 1e-12)
    text = SDF.format(**PLAIN).replace("<xyz>", '<xyz expressed_in="base">')
    inside = robot(tmp_path, text, "r.sdf").joints[-1]
    close(inside.axis, rpy(0.1, 0.2, 0.3).T @ [0, 0.6, 0.8], 1e-12)
    old = robot(tmp_path, SDF.format(**PLAIN).replace('"1.7"', '"1.4"'), "r.sdf").joints[-1]
    close(old.axis, rpy(0.1, 0.2, 0.3).T @ [0, 0.6, 0.8], 1e-12)
