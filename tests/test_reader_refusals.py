"""Readers refuse what they cannot read: a small file for each reason, and the message that names the
line and the remedy. What is beside the mistake still counts.
"""

from __future__ import annotations

import re
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import close

import ramify as rf
from ramify.files.import_report import ImportReport
from ramify.files.inertia_rule import doubt_about, fault_of
from ramify.files.redysim.mat_file import MAX_VARIABLES, read_mat
from ramify.files.redysim.matlab_text import parse_matlab
from ramify.files.redysim.matlab_values import run_matlab

MATLAB = [
    ("for i = 1:2\nreturn\nend", 2, "a return inside a loop is not understood"),
    ("function [n, (] = inputs()\nx = 1;", 1, "expected a list of output names"),
    ("[n dof] = others(3)", 1, "inputs"),
    ("for 3 = 1:2\nend", 1, "a loop reads: for i = 1:n"),
    ("for (i = 1:2\nx = 1;\nend", 1, "a bracket is not closed"),
    ("y = 1;\nx = 1:2:3:4;", 2, "a range reads first:last or first:step:last"),
    ("x = a.(3);", 1, "expected the name of a variable after the dot"),
    ("x = max(1 2);", 1, "expected a comma or a closing bracket"),
    ("[n dof] = inputs()", 1, "inputs() is not available here"),
    ("x = [1 2; 3 4];\nx(3) = 5;", 2, "'x' is a matrix; give row and column"),
    ("x = zeros(1, 4);\nx(1:3) = [1 2];", 2, "2 numbers for 3 places"),
    ("x = load('other.mat');", 1, "it loads 'other.mat', which is not available here"),
    ("x = [1 2];\ny = x(1, 1, 1);", 2, "3 indices; there are one or two"),
    ("x = 'text';", 1, "a text has no value here; only load takes one"),
    ("x = [[1; 2] 3];", 1, "a row holds columns of different length"),
    ("x = [1 2; 3];", 1, "rows"),
    ("x = 1:[2 3];", 1, "expected a number, not 1 x 2 of them"),
    ("x = [1 2] + [1 2 3];", 1, "vectors of 1 x 2 and 1 x 3 have different shapes"),
    ("x = atan2(1);", 1, "atan2"),
    ("x(0) = 1;", 1, "the index 0 is not a whole number from 1"),
    ("x = [4 5];\ny = x(1.5);", 2, "the index 1.5 is not a whole number"),
    ("zeros(2) = 3;", 1, "'zeros' is a function"),
    ("x(:) = 3;", 1, "'x' does not exist yet"),
]


@pytest.mark.parametrize(("text", "line", "why"), MATLAB, ids=[text for text, _, _ in MATLAB])
def test_matlab_is_refused_at_its_line(text: str, line: int, why: str) -> None:
    with pytest.raises(rf.ModelError) as caught:
        run_matlab(parse_matlab(text, "inputs.m"), "inputs.m")
    assert why in str(caught.value)
    assert re.match(rf"inputs\.m:{line}\b|inputs\.m, line {line}\b", str(caught.value)), (
        caught.value
    )


def test_matlab_after_a_return_is_not_run() -> None:
    values = run_matlab(parse_matlab("x = 1;\nreturn\nx = 2;", "inputs.m"), "inputs.m")
    assert values["x"] == 1.0


LINK = (
    "{name: a, frame: {xyz: [0.1, 0.2, 0.3]}, mass: 2, com: [0.1, 0.2, 0], inertia: [0.4, 0.5, 0.6]"
)
YAML = [
    (LINK + ", joint: {type: prismatic, limits_deg: [[-5, 5]]}}", "not all angles; give its limits as limits"),
    (LINK + ", joint: {type: ball, axis: x}}", "a ball joint takes no axis; those of type"),
    (LINK + ", joint: {axis: xy}}", "'xy' is not an axis; it must be x, y, z, -x, -y, -z"),
    (LINK + ", joint: {axis: [0, 0, 0]}}", "axis"),
    (LINK + ", shapes: [{sphere: 0.1, colour: red}]}", "colour"),
    ("{name: a, frame: {xyz: [0, 0, 0]}, mass: 2, com: [0.5, 0, 0], inertia: [0.1, 0.1, 0.1], inertia_about: origin}",
     "the tensor about the mass centre has a principal moment of -0.4 kg m^2"),
    ("{name: a, frame: {xyz: [0, 0, 0]}, mass: 2, inertia: [[1, 0.1, 0], [0.2, 1, 0], [0, 0, 1]]}", "the tensor is not symmetric"),
    ("{name: a, frame: {xyz: [0, 0, 0]}, mass: 2, inertia: [1, -1, 1]}", "none may be negative"),
    ("{name: a, classical_dh: {a: 1}, outlet: {xyz: [0, 0, 1]}, mass: 2}", "leave out outlet"),
    (LINK + ", joint: {name: j}}\n  - {name: b, parent: a, joint: {name: j}, frame: {xyz: [0, 0, 1]}, mass: 1}",
     "the joints of 'a' and 'b' are both named 'j'; names must differ"),
    (LINK + "}\n  - " + LINK + "}", "two links are named 'a'; names must differ"),
    (LINK + "}\nframes: [{name: tip, link: b}]", "no link is named 'b'"),
    (LINK + "}\nframes: [{name: tip, link: a, xyz: [0, 0, 1]}, {name: tip, link: a, xyz: [0, 1, 0]}]", "duplicate name 'tip'"),
    (LINK + "}\nframes: [{name: a, link: a, xyz: [0, 0, 1]}]", "duplicate name 'a'"),
    (LINK + "}\nactuators: [{name: m, joint: a, kind: motor, kp: 3}]", "kp does not belong to a motor actuator"),
    (LINK + "}\nactuators: [{name: m, joint: a, kind: position}]", "a position actuator needs kp"),
    (LINK + "}\nactuators: [{name: m, joint: a, kind: motor, gear: [1, 2]}]", "gear must be one number, or six"),
    (LINK + "}\ntendons: [{name: t, joints: {a: 1.0}, damping: [1, -5, 1]}]", "(1, -5, 1) would make energy at some speed"),
    (LINK + "}\ntendons: [{name: t, joints: {a: 1.0}, damping: -1}]", "must be one number ≥ 0, or three"),
    (LINK + "}\ntendons: [{name: t, joints: {a: 1.0}, damping: [1, 2]}]", "must be one number ≥ 0, or three"),
]  # fmt: skip


@pytest.mark.parametrize(("links", "why"), YAML, ids=[why for _, why in YAML])
def test_robot_files_are_refused(links: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(f"name: r\nlinks:\n  - {links}\n")
    with pytest.raises(rf.ModelError) as caught:
        rf.load(tmp_path / "r.yaml")
    assert why in str(caught.value)
    assert re.search(r"r\.yaml:[2-9]:\d+: ", str(caught.value))


@pytest.mark.parametrize("axis", ["x", "-y", "z", "+x"])
def test_axes_by_letter(axis: str, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(f"name: r\nlinks:\n  - {LINK}, joint: {{axis: {axis}}}}}\n")
    sign = -1.0 if axis[0] == "-" else 1.0
    m = rf.load(tmp_path / "r.yaml")
    close(m.jacobian([0.3], "a")[:3, 0], sign * np.eye(3)["xyz".index(axis[-1])], 1e-12, 1e-12)


INERTIAL = (
    "<inertial><mass>2</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>"
)
SDF = [
    ("<robot name='a'/>", "the root element is <'robot'>, not <sdf> (URDF files end in .urdf)"),
    ("<wrong/>", "the root element is <'wrong'>, not <sdf>"),
    ("<joint name='j' type='revolute'><parent>a</parent><child>world</child></joint>",
     "joint 'j': the world cannot be a child; exchange parent and child"),
    ("<joint name='j' type='magic'><parent>world</parent><child>a</child></joint>", "joint 'j': type 'magic' must be one of"),
    ("<pose rotation_format='quat_wxyz'>0 0 0 0 0 0 1</pose>", "rotation_format must be euler_rpy or quat_xyzw"),
    ("<pose>0 0 0 0 inf 0</pose>", "finite"),
    ("<pose rotation_format='quat_xyzw'>0 0 0 0 0 0 0</pose>", "<pose> must be finite, its quaternion not zero"),
]  # fmt: skip


@pytest.mark.parametrize(("part", "why"), SDF, ids=[why for _, why in SDF])
def test_sdf_is_refused(part: str, why: str, tmp_path: Path) -> None:
    inside = part if part.startswith("<pose") else ""
    joint = part if part.startswith("<joint") else "<joint name='j' type='revolute'><parent>world</parent><child>a</child><axis><xyz>0 0 1</xyz></axis></joint>"  # fmt: skip
    text = f"<sdf version='1.9'><model name='m'><link name='a'>{inside}{INERTIAL}</link>{joint}</model></sdf>"  # fmt: skip
    (tmp_path / "m.sdf").write_text(part if part.startswith(("<robot", "<wrong")) else text)
    with pytest.raises(rf.ModelError) as caught:
        rf.load(tmp_path / "m.sdf")
    assert why in str(caught.value).replace("<robot>", "<'robot'>").replace("<wrong>", "<'wrong'>")
    assert "m.sdf:1" in str(caught.value)


def urdf(extra: str = "", limit: str = "", visual: str = "") -> str:
    solid = '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'  # fmt: skip
    return (
        f'<robot name="r"><link name="base"/><link name="tip">{solid}{visual}</link>'
        f'<joint name="j" type="revolute"><parent link="base"/><child link="tip"/>'
        f'<axis xyz="0 0 1"/>{limit}</joint>{extra}</robot>'
    )


MOTOR = '<transmission name="{name}"><type>SimpleTransmission</type><joint name="j"/><actuator name="m"><mechanicalReduction>{gear}</mechanicalReduction><motorInertia>{rotor}</motorInertia></actuator></transmission>'  # fmt: skip


def remarks(path: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return str(rf.load(path).metadata["report"])


def test_urdf_says_what_it_assumes(tmp_path: Path) -> None:
    path = tmp_path / "r.urdf"
    for given, missing, limits in (("upper", "lower", (0.0, 1.5)), ("lower", "upper", (-1.5, 0.0))):
        value = 1.5 if given == "upper" else -1.5
        path.write_text(urdf(limit=f'<limit {given}="{value}" effort="3" velocity="4"/>'))
        assert f"joint 'j': <limit> without {missing}: 0, as URDF has it" in remarks(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            m = rf.load(path)
        assert (m.lower[0], m.upper[0]) == limits
        assert (m.effort[0], m.rated_velocity[0]) == (3.0, 4.0)
    first, second = MOTOR.format(name="one", gear=3.0, rotor=0.02), MOTOR.format(name="two", gear=5.0, rotor=0.0)  # fmt: skip
    path.write_text(urdf(first + second))
    assert "joint 'j' has transmission 'one' already" in remarks(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        close(rf.load(path).armature, [0.02 * 9.0], 1e-12)
    path.write_text(urdf(MOTOR.format(name="one", gear=3.0, rotor=-0.5)))
    with pytest.raises(rf.ModelError, match=r"transmission 'one': rotor inertia -0.5 must be ≥ 0"):
        rf.load(path)


def test_urdf_colours_that_are_no_numbers_are_skipped(tmp_path: Path) -> None:
    bad = '<visual><geometry><sphere radius="0.1"/></geometry><material name="paint"><color rgba="a b c d"/></material></visual>'  # fmt: skip
    named = '<material name="paint"><color rgba="0.2 0.4 0.6 1"/></material>'
    path = tmp_path / "r.urdf"
    path.write_text(urdf(named, visual=bad))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (shape,) = rf.load(path).bodies[0].shapes
    assert shape.colour == "#336699"


def element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def variable(name: bytes, shape: tuple[int, ...], numbers: Any, kind: int = 9) -> bytes:
    """A real matrix of doubles as MATLAB's version 5 files have it."""
    flags = element(6, struct.pack("<II", 6, 0))
    sizes, values = struct.pack(f"<{len(shape)}i", *shape), np.asarray(numbers, "<f8").tobytes()
    return element(14, flags + element(5, sizes) + element(1, name) + element(kind, values))


HEAD = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
MAT = [
    (variable(b"n", (1, 1), [2.0]) * (MAX_VARIABLES + 1), f"more than {MAX_VARIABLES} variables"),
    (element(14, element(6, bytes(8)) + element(5, bytes(8))), "a variable lacks its flags, dimensions or name"),
    (variable(b"n", (1, 1), [2.0], kind=77), "variable 'n' has numbers of type 77"),
    (variable(b"a", (2, 2), [1.0, 2.0, 3.0]), "variable 'a' has 3 numbers for the dimensions [2, 2]"),
    (variable(b"a", (3,), [1.0, 2.0, 3.0]), "variable 'a' has 3 numbers for the dimensions [3]"),
    (variable(b"a", (1, 1), [1.0]) + b"1234", "bytes are left over at the end"),
    (struct.pack("<II", 14, 80) + bytes(8), "an element of 80 bytes goes beyond the end"),
    (element(9, bytes(8)), "an element of type 9 found where a variable was expected"),
    (struct.pack("<I", (6 << 16) | 9) + bytes(4), "a small element of 6 bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "why"), MAT, ids=[why for _, why in MAT])
def test_mat_files_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(rf.ModelError) as caught:
        read_mat(HEAD + data, "inputs.mat")
    assert why in str(caught.value)
    assert str(caught.value).startswith("inputs.mat: ")


def test_a_mat_file_has_its_columns_first() -> None:
    read = read_mat(HEAD + variable(b"a", (2, 3), [1, 2, 3, 4, 5, 6]), "inputs.mat")
    close(read["a"], [[1, 3, 5], [2, 4, 6]], 0)


def test_the_rule_for_inertias() -> None:
    """Rounding is no fault; a negative moment is one; a turned tensor is doubted only."""
    good = np.diag([0.3, 0.4, 0.5])
    assert fault_of(2.0, good) == ""
    assert fault_of(-0.1, good) == "mass -0.1 kg must be finite and ≥ 0"
    assert fault_of(np.inf, good).startswith("mass inf kg")
    assert fault_of(2.0, np.diag([0.3, np.nan, 0.5])) == "moments of inertia must be finite"
    bad = np.diag([0.3, -0.4, 0.5])
    assert fault_of(2.0, bad) == "moments of inertia 0.3, -0.4, 0.5 kg m^2; none may be negative"
    assert fault_of(2.0, bad, rows=True) == ""
    assert fault_of(2.0, np.diag([0.3, -2e-10, 0.5])) == ""
    assert fault_of(2.0, np.diag([0.3, -2e-9, 0.5])) != ""
    turned = np.array([[0.3, 0.5, 0], [0.5, 0.4, 0], [0, 0, 0.5]])
    least = np.linalg.eigvalsh(turned)[0]
    assert f"a negative principal moment, {least:.4g} kg m^2" in doubt_about(2.0, turned)
    assert doubt_about(2.0, good) == ""


def test_reports_sort_count_and_warn() -> None:
    report = ImportReport("r.urdf")
    assert str(report) == "r.urdf: nothing was ignored or assumed"
    report.note("joint 'a'", "odd", doubt=True)
    report.assumed("link 'b'", "no mass")
    report.ignored("left_out", "contacts", moves=True)
    for i in range(3):
        report.ignored(f"joint 'c{i}', line 7", f"thing {i}", moves=True)
    assert len(report) == 6
    levels = [remark.level for remark in report]
    assert levels == ["ignored"] * 4 + ["assumed", "note"]
    assert str(report).startswith("r.urdf: imported with remarks\n")
    assert report.left_out == ["contacts", "joint 'c0': thing 0", "joint 'c1': thing 1", "joint 'c2': thing 2"]  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report.warn()
    first, second = (str(w.message) for w in caught)
    assert caught[0].category is rf.LeftOutWarning
    assert caught[1].category is UserWarning
    assert first.startswith("r.urdf: left out, which changes the motion: left_out: contacts; ")
    assert "thing 1 and 1 more (see" in first
    assert second == "r.urdf: check the file: joint 'a': odd (see metadata[\"report\"])"


STUDY = """\
name: few
scenario: {{robot: two_link, t_end: 0.02}}
vary: {{initial.q.joint1: {how}{more}}}
{rest}
"""
STUDIES = [
    ("3", "", "", "must be a list, or a mapping with one of values, from, uniform, log_uniform, normal"),
    ("{step: 3}", "", "", "unknown key"),
    ("{}", "", "", "exactly one of values, from, uniform, log_uniform, normal is needed"),
    ("{from: 0, to: 1, count: 2000000000}", "", "", "2,000,000,000 values are too many"),
    ("{from: -1, to: 1, count: 3, log: true}", "", "", "with log: true, both ends must be > 0"),
    ("{from: 1, to: 2, count: 3, log: maybe}", "", "", "with log: true, both ends must be > 0"),
    ("{normal: [1, 0]}", "", "", "the standard deviation 0.0 must be > 0"),
    ("{log_uniform: [-1, 2]}", "", "", "the range from -1.0 to 2.0 has no logarithm"),
    ("{uniform: [2, 1]}", "", "", "the range from 2.0 to 1.0 is empty; the lower end comes first"),
    ("{uniform: [0, 1], to: 3}", "", "", "unknown key"),
    ("[0.1, 0.2]", ", initial.q.joint2: [1, 2, 3]", "points: {combine: together}",
     "with combine: together all lists have one length; initial.q.joint1 has 2, initial.q.joint2 has 3"),
    ("[0.1, 0.2]", ", initial.q.joint2: [1, 2, 3]", "most_runs: 5", "2 x 3 = 6 runs; a study has at most 5"),
    ("{uniform: [0, 1]}", ", initial.q.joint2: [1, 2, 3]", "points: {runs: 4}\nmost_runs: 11", "3 x 4 = 12 runs; a study has at most 11"),
    ("[0.1]", "", "keep: {metrics: [max_sped]}", "there is no metric 'max_sped'; did you mean 'max_speed'?"),
    ("[0.1]", "", "keep: {metrics: [max_speed.joint3]}", "there is no metric 'max_speed.joint3'"),
    ("[0.1]", ", initial.q.joint9.x: [1]", "", "no number is found at 'initial.q.joint9.x'"),
]  # fmt: skip


@pytest.mark.parametrize(("how", "more", "rest", "why"), STUDIES, ids=[row[-1] for row in STUDIES])
def test_study_files_are_refused(how: str, more: str, rest: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "few.yaml"
    path.write_text(STUDY.format(how=how, more=more, rest=rest))
    with pytest.raises(rf.RamifyError) as caught:
        rf.study(path)
    assert why in str(caught.value)
    assert "few.yaml:" in str(caught.value)


def test_as_many_runs_as_allowed(tmp_path: Path) -> None:
    path = tmp_path / "few.yaml"
    path.write_text(STUDY.format(how="[0.1, 0.2]", more=", initial.q.joint2: [1, 2, 3]", rest="most_runs: 6"))  # fmt: skip
    assert len(rf.study(path)) == 6
