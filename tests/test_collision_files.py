"""Shapes that collide in robot files, URDF and SDF: what is read, refused and written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from saved_robots import saved

import ramify as rf
from ramify.cli import main
from ramify.contact.collision_pairs import all_pairs
from ramify.files.load import read_yaml
from ramify.files.robot_writer import to_yaml
from ramify.files.sdf import parse_sdf
from ramify.files.urdf import parse_urdf
from ramify.files.urdf_writer import to_urdf
from ramify.lint.robot_checks import check
from ramify.view.scene import collision_parts, make_scene

ROBOT = """
name: walker
links:
  - name: trunk
    joint: free
    frame: {}
    mass: 5
    inertia: [1, 1, 1]
    shapes:
      - {box: [0.4, 0.2, 0.1], colour: "#808080"}
      - {capsule: [0.05, 0.3], name: belly, collides: true, drawn: false, friction: 0.4}
  - use: leg
    prefix: left_
    parent: trunk
    frame: {xyz: [0, 0.1, 0]}
  - use: leg
    prefix: right_
    parent: trunk
    frame: {xyz: [0, -0.1, 0]}
templates:
  leg:
    links:
      - name: thigh
        joint: {type: revolute, axis: y}
        frame: {}
        mass: 1
        inertia: [0.1, 0.1, 0.1]
        shapes: [{capsule: [0.04, 0.3], xyz: [0, 0, -0.15], collides: world}]
      - name: shank
        parent: thigh
        joint: {type: revolute, axis: y}
        frame: {xyz: [0, 0, -0.3]}
        mass: 1
        inertia: [0.1, 0.1, 0.1]
        shapes:
          - {sphere: 0.03, name: foot, xyz: [0, 0, -0.3], restitution: 0.1,
             collides: {group: 1, mask: 2}}
world:
  - {plane: true, name: floor, friction: 0.9, rpy_deg: [5, 0, 0]}
  - {height_field: {heights: [[0, 0.1], [0.2, 0.3]], spacing: [1, 2]}, name: hill, xyz: [5, 0, 0]}
  - {box: [0.1, 1, 0.05], xyz: [1, 0, 0], name: step}
pairs:
  - {between: [left_foot, right_foot], friction: 0.2}
excludes:
  - [belly, step]
"""


def test_a_robot_file_says_what_collides() -> None:
    m = read_yaml(ROBOT, "walker.yaml")
    assert [shape.kind for shape in m.collisions.world] == ["plane", "height_field", "box"]
    pairs = {pair.name: pair for pair in all_pairs(m)}
    assert pairs["left_foot–right_foot"].friction == 0.2
    assert "belly–step" not in pairs
    assert "belly–left_foot" in pairs
    assert not [name for name in pairs if name.startswith("left_thigh.0–right")]
    assert pairs["left_foot–floor"].friction == 0.9
    assert pairs["left_foot–floor"].restitution == 0.1
    again = read_yaml(to_yaml(m), "again.yaml")
    assert to_yaml(again) == to_yaml(m)
    assert again.collisions == m.collisions


MISTAKES = {
    "sphere: 0.03, name: foot": ("sphere: 0, name: foot", "0 must be a finite number > 0"),
    "capsule: [0.05, 0.3]": ("capsule: [-0.05, 0.3]", "must be a finite number > 0"),
    "friction: 0.4": ("friction: .nan", "a finite number ≥ 0"),
    "restitution: 0.1": ("restitution: 1.1", "must be a finite number ≥ 0 and ≤ 1"),
    "collides: world": ("collides: sometimes", "true, false, world"),
    "mask: 2": ("mask: 1.5", "a whole number ≥ 0 and ≤ 4294967295"),
    "heights: [[0, 0.1], [0.2, 0.3]]": ("heights: [[0, 0.1], [0.2]]", "row"),
    "spacing: [1, 2]": ("spacing: [1, -2]", "must be a finite number > 0"),
    "between: [left_foot, right_foot]": ("between: [left_foot]", "two names of links or shapes"),
    "[belly, step]": ("[belly, stairs]", "there is no link or shape 'stairs'"),
}


@pytest.mark.parametrize("right", MISTAKES)
def test_mistakes_have_their_place(right: str) -> None:
    wrong, message = MISTAKES[right]
    assert right in ROBOT
    with pytest.raises(rf.ModelError) as caught:
        read_yaml(ROBOT.replace(right, wrong), "walker.yaml")
    line = 1 + ROBOT[: ROBOT.index(right)].count("\n")
    assert message in str(caught.value)
    assert f"walker.yaml:{line}" in str(caught.value) or f"walker.yaml:{line - 1}" in str(
        caught.value
    )


def test_all_mistakes_are_listed_at_once() -> None:
    text = ROBOT
    for right in ("friction: 0.4", "restitution: 0.1", "collides: world", "mask: 2"):
        text = text.replace(right, MISTAKES[right][0])
    with pytest.raises(rf.ModelError) as caught:
        read_yaml(text, "walker.yaml")
    assert str(caught.value).count("walker.yaml:") >= 4


def test_surfaces_stand_in_the_world_alone() -> None:
    with pytest.raises(rf.ModelError, match="unknown key"):
        read_yaml(ROBOT.replace("sphere: 0.03, name: foot", "plane: true"), "walker.yaml")


def test_info_and_check_show_shapes_and_pairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "walker.yaml"
    path.write_text(ROBOT)
    with pytest.raises(SystemExit, match="0"):
        main(["info", str(path)])
    said = capsys.readouterr().out
    assert "shapes that collide" in said
    assert "left_foot–right_foot" in said
    with pytest.raises(SystemExit, match="0"):
        main(["info", str(path), "--json"])
    data = json.loads(capsys.readouterr().out)
    assert {row["name"] for row in data["collisions"]} >= {"belly", "left_foot", "floor", "hill"}
    assert data["pairs"][0]["contacts"] == 1
    drums = ROBOT.replace("sphere: 0.03", "cylinder: [0.03, 0.1]")
    codes = {finding.code: finding for finding in check(read_yaml(drums, "walker.yaml"))}
    assert "pairs of shapes pass through each other" in codes["no-contact"].message
    near = ROBOT.replace("collides: world", "collides: true").replace("[0.04, 0.3]", "[0.15, 0.3]")
    findings = {finding.code: finding.message for finding in check(read_yaml(near, "walker.yaml"))}
    assert "overlap by" in findings["shapes-overlap"]


def test_a_height_field_upside_down_is_refused() -> None:
    wrong = ROBOT.replace("name: hill, ", "name: hill, rpy_deg: [180, 0, 0], ")
    with pytest.raises(rf.ModelError, match="height field 'hill': its z axis points down"):
        read_yaml(wrong, "walker.yaml")


def test_scenes_show_the_world_and_what_collides() -> None:
    m = read_yaml(ROBOT, "walker.yaml")
    scene = make_scene(m)
    (ground,) = [part for part in scene.parts if part.kind == "ground"]
    low, high = ground.triangles.points.min(axis=0), ground.triangles.points.max(axis=0)
    assert (low[0], high[0]) == pytest.approx((0.95, 5.5))  # from the step to the hill
    assert high[2] == pytest.approx(0.3)
    links = [part for part in scene.parts if part.kind == "link" and part.body == 0]
    assert [part.paint for part in links] == ["#808080"]  # the belly is not drawn
    assert len(collision_parts(m)) == 5
    alone = ROBOT.replace('      - {box: [0.4, 0.2, 0.1], colour: "#808080"}\n', "")
    shapes = read_yaml(alone, "walker.yaml").bodies[0].drawn_shapes
    assert [shape.name for shape in shapes] == ["belly"]


def test_builders_take_colliding_shapes() -> None:
    foot = {"sphere": 0.1, "collides": "world", "friction": 0.5}
    m = rf.Builder("leg").link("a", joint="free", mass=1.0, shapes=[foot]).model()
    (place,) = m.shapes
    assert (place.name, place.shape.group, place.shape.mask) == ("a.0", 1, 0)
    assert place.shape.friction == 0.5


URDF = """<robot name="arm">
<link name="base"><collision name="column"><geometry><box size="0.2 0.2 1"/></geometry></collision></link>
<link name="upper"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>
  <visual><origin xyz="0 0 0.1"/><geometry><sphere radius="0.1"/></geometry></visual>
  <collision><origin xyz="0 0 0.1"/><geometry><sphere radius="0.1"/></geometry></collision>
  <collision name="rod"><geometry><capsule radius="0.05" length="0.4"/></geometry></collision>
  <collision><geometry><mesh filename="a.stl"/></geometry></collision>
  <collision><geometry><sphere radius="-1"/></geometry></collision>
  <contact><lateral_friction value="0.3"/><restitution value="0.2"/></contact></link>
<link name="hand"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>
  <collision><geometry><cylinder radius="0.1" length="0.2"/></geometry></collision></link>
<joint name="shoulder" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/></joint>
<joint name="wrist" type="continuous"><parent link="upper"/><child link="hand"/><axis xyz="0 0 1"/></joint>
<gazebo reference="hand"><mu1>0.45</mu1></gazebo></robot>"""


def test_collisions_of_urdf() -> None:
    m = parse_urdf(URDF)
    ball, rod = m.body("upper").shapes
    assert (ball.kind, ball.drawn, ball.collides) == ("sphere", True, True)
    assert (rod.kind, rod.name, rod.drawn, rod.size) == ("capsule", "rod", False, (0.05, 0.4))
    assert (rod.friction, rod.restitution) == (0.3, 0.2)
    assert m.body("hand").shapes[0].friction == 0.45
    assert [shape.name for shape in m.collisions.world] == ["column"]
    assert m.collisions.excludes == (("column", "upper"),)
    said = str(m.metadata["report"])
    assert "<collision>: mesh, cylinder have no contact here" in said
    assert "a <sphere> of a <collision> whose origin or size is not understood" in said
    assert {pair.name for pair in all_pairs(m)} == set()  # the robot alone: URDF has no world


def test_collisions_are_written_to_urdf() -> None:
    builder = rf.Builder("a").link("ball", joint="free", mass=1.0, shapes=[
        {"sphere": 0.1, "collides": True}, {"box": [0.1, 0.2, 0.3], "collides": True, "drawn": False},
        {"sphere": 0.2},
    ])  # fmt: skip
    again = parse_urdf(to_urdf(builder.model()), base="fixed").body("ball").shapes
    assert [(s.kind, s.drawn, s.collides) for s in again] == [
        ("sphere", True, True), ("sphere", True, False), ("box", False, True),
    ]  # fmt: skip


SDF = """<sdf version="1.9"><world name="w"><gravity>0 0 -9.8</gravity>
<model name="floor"><static>true</static><pose>0 0 -1 0 0 0</pose><link name="l"><collision name="c">
  <geometry><plane><normal>1 0 1</normal></plane></geometry>
  <surface><friction><ode><mu>0.6</mu></ode></friction></surface></collision></link></model>
<model name="robot">{}<link name="a"><inertial><mass>1</mass></inertial>
  <collision name="foot"><pose>0 0 -0.5 0 0 0</pose><geometry><sphere><radius>0.1</radius></sphere></geometry>
    <surface><bounce><restitution_coefficient>0.25</restitution_coefficient></bounce></surface></collision>
  <collision name="lid"><geometry><plane/></geometry></collision></link>
<link name="b"><inertial><mass>1</mass></inertial></link>
<joint name="j" type="revolute"><parent>a</parent><child>b</child><axis><xyz>0 0 1</xyz></axis></joint>
</model></world></sdf>"""


@pytest.mark.parametrize(("self_collide", "mask"), [("", 0), ("<self_collide>1</self_collide>", 1)])
def test_collisions_of_sdf(self_collide: str, mask: int) -> None:
    m = parse_sdf(SDF.format(self_collide))
    (foot,) = m.body("a").shapes
    assert (foot.kind, foot.name, foot.size, foot.mask) == ("sphere", "foot", (0.1,), mask)
    assert (foot.restitution, foot.frame.position[2]) == (0.25, -0.5)
    (floor,) = m.collisions.world
    assert (floor.kind, floor.friction, floor.frame.position.tolist()) == ("plane", 0.6, [0, 0, -1])
    assert floor.frame.rotation[:, 2] == pytest.approx(np.array([1, 0, 1]) / np.sqrt(2.0))
    (pair,) = all_pairs(m)
    assert (pair.friction, pair.restitution) == (0.7, 0.25)
    (left_out,) = [x for x in m.metadata["report"] if x.where == "contacts"]
    assert "with plane even then" in left_out.message


def test_saved_files_are_equal() -> None:
    saved(parse_urdf(URDF), "urdf")
    saved(parse_sdf(SDF.format("")), "sdf")
