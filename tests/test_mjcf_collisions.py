"""Collisions of MJCF files beside MuJoCo's own: which geoms, where, in which pairs, with which
friction.

MuJoCo lists all pairs that pass its filters where every geom has a margin of 100 m; only pairs of
kinds that have no contact here, such as boxes, may be missing there.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest
from packages import files

import ramify as rf
from ramify.api.model import Model
from ramify.contact.closest import closest, pose_of
from ramify.contact.collision_pairs import CollisionPair, all_pairs
from ramify.model.collisions import ShapePlace
from ramify.model.frame import Frame
from ramify.model.shape import Shape

KINDS = {0: "plane", 1: "height_field", 2: "sphere", 3: "capsule", 5: "cylinder", 6: "box"}
ROBOTS = {
    "gymnasium": (
        "ant.xml", "half_cheetah.xml", "hopper.xml", "humanoid.xml", "humanoidstandup.xml",
        "point.xml", "pusher.xml", "swimmer.xml", "walker2d_v5.xml",
    ),
    "dm_control": (
        "ball_in_cup.xml", "cheetah.xml", "finger.xml", "hopper.xml", "humanoid.xml",
        "humanoid_CMU.xml", "manipulator.xml", "quadruped.xml", "stacker.xml", "walker.xml",
        "jaco_arm.xml", "robot_arm.xml",
    ),
}  # fmt: skip
PATHS = [(package, name) for package, names in ROBOTS.items() for name in names]


def loaded(path: Path) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rf.load(path)


def mujoco_pairs(path: Path) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """A model whose contacts are all pairs that pass MuJoCo's filters."""
    spec = mujoco.MjSpec.from_file(str(path))
    spec.memory = 1 << 28
    for geom in spec.geoms:
        geom.margin = 100.0
    for pair in spec.pairs:
        pair.margin = 100.0
    m = spec.compile()
    d = mujoco.MjData(m)
    mujoco.mj_kinematics(m, d)
    mujoco.mj_comPos(m, d)
    mujoco.mj_collision(m, d)
    return m, d


def matched(model: Model, m: mujoco.MjModel, d: mujoco.MjData) -> dict[int, ShapePlace]:
    """The shape of every geom that touches something and has a shape, found by its pose and
    size.
    """
    poses, shapes = model.kinematics(d.qpos), {}
    free = [place for place in model.shapes if place.shape.name or place.shape.collides]
    for g in sorted({int(g) for contact in d.contact for g in contact.geom}):
        kind = KINDS.get(int(m.geom_type[g]))
        for place in free:
            R, r = np.eye(3), np.zeros(3)
            if place.body >= 0:
                R, r = poses.rotation[place.body], poses.position[place.body]
            shape = place.shape
            if (shape.kind, shape.name) == (kind, m.geom(g).name or shape.name) and (
                np.allclose(R @ shape.frame.position + r, d.geom_xpos[g], atol=1e-7)
                and np.allclose(R @ shape.frame.rotation, d.geom_xmat[g].reshape(3, 3), atol=1e-7)
            ):
                free.remove(place)
                shapes[g] = place
                break
        else:
            assert kind is None, f"{kind} {m.geom(g).name!r} has no shape"
    return shapes


def half_sizes(place: ShapePlace) -> list[float]:
    size = list(place.shape.size)
    half = {"sphere": [1.0], "capsule": [1.0, 0.5], "cylinder": [1.0, 0.5], "box": [0.5] * 3}
    factors = half.get(place.shape.kind, [])
    return [x * factor for x, factor in zip(size, factors, strict=False)]


@pytest.mark.parametrize(("package", "name"), PATHS, ids=["/".join(path) for path in PATHS])
@pytest.mark.filterwarnings("ignore:compiler attribute")
def test_pairs_are_those_of_mujoco(package: str, name: str) -> None:
    path = next(file for file in files(package, ".xml") if file.name == name)
    model = loaded(path)
    m, d = mujoco_pairs(path)
    shapes = matched(model, m, d)
    for g, place in shapes.items():
        size = half_sizes(place)
        assert size == pytest.approx(m.geom_size[g][: len(size)].tolist()), place.name
    theirs = {
        tuple(sorted(shapes[int(g)].name for g in c.geom)): float(c.friction[0]) * (c.dim > 1)
        for c in d.contact
        if all(int(g) in shapes for g in c.geom)
    }
    ours = {tuple(sorted(names_of(model, pair))): pair for pair in all_pairs(model)}
    assert theirs.keys() <= ours.keys()
    assert not [pair.name for key, pair in ours.items() if key not in theirs and pair.contacts]
    for key, friction in theirs.items():
        assert ours[key].friction == pytest.approx(friction), key


def names_of(model: Model, pair: CollisionPair) -> list[str]:
    two = [(pair.body, pair.shape), (pair.other, pair.other_shape)]
    return [p.name for b, shape in two for p in model.shapes if p.body == b and p.shape is shape]


FILE = """<mujoco>{option}<asset><hfield name="hills" nrow="3" ncol="2" size="2 1 0.5 0.1"
  elevation="0 1 2 3 4 5"/></asset>
<worldbody>
  <geom name="floor" type="plane" size="1 1 1" pos="0 0 -1" euler="0 10 0" friction="0.3"/>
  <geom name="terrain" type="hfield" hfield="hills" pos="0 0 -2"/>
  <body name="table" pos="1 2 3"><geom name="top" type="box" size="0.1 0.2 0.3"/></body>
  <body name="a" pos="0 0 1"><freejoint/><geom type="capsule" fromto="0 0 0 0 0 0.4" size="0.05"
    friction="0.8" priority="1" solref="0.01 1"/>
    <body name="hand" pos="0.2 0 0"><geom name="palm" size="0.1"/></body>
    <body name="b" pos="0 0 0.4"><joint axis="0 1 0"/><geom name="b" size="0.1" condim="1"/>
      <body name="c" pos="0 0 0.4"><joint axis="0 1 0"/><geom name="c" size="0.1" condim="1"/>
        <geom name="shell" type="ellipsoid" size="0.1 0.2 0.3"/>
        <geom name="picture" size="0.1" contype="0" conaffinity="0"/></body></body></body>
</worldbody>
<contact>{contact}</contact></mujoco>"""


def written(folder: Path, contact: str = "", option: str = "") -> Model:
    path = folder / "robot.xml"
    path.write_text(FILE.format(contact=contact, option=option))
    return loaded(path)


def pairs_of(model: Model) -> dict[str, float]:
    return {pair.name: pair.friction for pair in all_pairs(model)}


def test_what_a_file_says_is_what_collides(tmp_path: Path) -> None:
    m = written(tmp_path)
    world = {shape.name: shape for shape in m.collisions.world}
    assert {name: shape.kind for name, shape in world.items()} == {
        "top": "box", "floor": "plane", "terrain": "height_field",
    }  # fmt: skip
    assert world["top"].frame.position.tolist() == [1, 2, 3]
    assert world["terrain"].size == (4.0, 1.0)
    capsule = m.body("a").shapes[0]
    assert (capsule.friction, capsule.priority, capsule.slippery) == (0.8, 1, False)
    assert m.body("c").shapes[1].collides is False
    pairs = pairs_of(m)
    assert {pairs["a.0–floor"], pairs["a.0–c"]} == {0.8}  # by priority
    assert pairs["palm–c"] == 1.0
    assert "a.0–b" not in pairs
    assert "palm–b" not in pairs  # welded to the parent
    (left_out,) = [entry for entry in m.metadata["report"] if entry.where == "contacts"]
    assert "with ellipsoid even then" in left_out.message


def test_heights_are_where_mujoco_has_them(tmp_path: Path) -> None:
    """At the nodes, where the two ways to interpolate agree but for the rounding of creases."""
    robot = written(tmp_path)
    m = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    d = mujoco.MjData(m)
    mujoco.mj_kinematics(m, d)
    g = mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_GEOM, "terrain")
    field = next(shape for shape in robot.collisions.world if shape.name == "terrain")
    ball, hit = Shape("sphere", (1e-6,)), np.zeros(3)
    for x in (-1.999, 1.999):
        for y in (-0.999, 0.0, 0.999):
            above = np.array([x, y, 3.0])
            distance = mujoco.mj_rayHfield(m, d, g, above, np.array([0.0, 0.0, -1.0]), hit)
            place = Frame(position=above - [0.0, 0.0, distance])
            (contact,) = closest(ball, pose_of(place), field, pose_of(Frame()))
            assert contact.gap == pytest.approx(0.0, abs=2e-3)


def test_excludes_are_of_the_bodies_own_geoms(tmp_path: Path) -> None:
    """A body that is welded to another one keeps its own excludes."""
    everything = pairs_of(written(tmp_path))
    hand = pairs_of(written(tmp_path, '<exclude body1="hand" body2="c"/>'))
    assert everything.keys() - hand.keys() == {"palm–c"}
    arm = pairs_of(written(tmp_path, '<exclude body1="c" body2="a"/>'))
    assert everything.keys() - {name.replace("geom3", "a.0") for name in arm} == {"a.0–c"}
    table = pairs_of(written(tmp_path, '<exclude body1="table" body2="c"/>'))
    assert everything.keys() - table.keys() == {"c–top"}
    assert "b–floor" in pairs_of(written(tmp_path, '<exclude body1="world" body2="c"/>'))
    assert "c–floor" not in pairs_of(written(tmp_path, '<exclude body1="world" body2="c"/>'))


def test_pairs_are_declared(tmp_path: Path) -> None:
    m = written(tmp_path, '<pair geom1="picture" geom2="b" friction="0.4 0.4 0.1 0 0"/>')
    assert pairs_of(m)["b–picture"] == 0.4
    m = written(tmp_path, '<pair geom1="picture" geom2="b" condim="1"/>')
    assert pairs_of(m)["b–picture"] == 0.0
    m = written(tmp_path, '<pair geom1="picture" geom2="b" friction="0.4 0.2 0.1 0 0"/>')
    assert "friction 0.2 along the second direction" in str(m.metadata["report"])


def test_switches_of_the_file_count(tmp_path: Path) -> None:
    off = '<option><flag contact="disable"/></option>'
    assert not pairs_of(written(tmp_path, option=off))
    near = written(tmp_path, option='<option><flag filterparent="disable"/></option>')
    assert "b–c" in pairs_of(near)


def test_heights_in_a_file_are_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    text = FILE.format(contact="", option="")
    elevation = 'nrow="3" ncol="2" size="2 1 0.5 0.1"\\n  elevation="0 1 2 3 4 5"'
    text = text.replace(elevation.replace("\\n", "\n"), 'size="2 1 0.5 0.1" file="none.png"')
    path.write_text(text)
    m = loaded(path)
    assert "height_field" not in {shape.kind for shape in m.collisions.world}
    assert "with ellipsoid, hfield even then" in str(m.metadata["report"])
