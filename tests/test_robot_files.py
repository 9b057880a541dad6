"""Robot files: what they may say, and that a model written out is read back to the last bit."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_trees import random_bodies
from sample_files import FULL, ONE, one, refused

import ramify as rf
from ramify.api.builders import as_model
from ramify.api.model import Model
from ramify.documents.expression import ExpressionError, evaluate
from ramify.documents.yaml_text import scalar
from ramify.files.load import read_yaml
from ramify.files.mirror import PLANES
from ramify.files.robot_writer import save, to_yaml
from ramify.model.build import LinkSpec, build
from ramify.model.frame import Frame, classical_dh, from_rpy, modified_dh, rotation_about
from ramify.model.joint import Joint

read_yaml, build = as_model(read_yaml), as_model(build)


def poses(model: Model, q: np.ndarray[Any, Any]) -> list[Frame]:
    """World frames of the bodies, straight from the joints' screws."""
    out: list[Frame] = []
    rest = list(q)
    for body in model.bodies:
        frame = (Frame() if body.parent < 0 else out[body.parent]) @ body.joint.placement
        for step in body.joint.steps:
            x, u = rest.pop(0), np.array(step.axis)
            frame = frame @ Frame(rotation_about(u, step.rho * x), step.eta * x * u)
        out.append(frame @ body.joint.outlet)
    return out


# ---- what a file may say ----


def test_a_file_with_every_key() -> None:
    model = read_yaml(FULL)
    assert [body.name for body in model.bodies] == [
        "column", "arm", "wrist", "left_proximal", "left_distal", "right_proximal", "right_distal"
    ]  # fmt: skip
    assert model.nv == 2 + 1 + 3 + 4
    assert model.metadata == {
        "description": "a sample",
        "source": "these tests",
        "dh": {"column": (0.0, 0.0, 0.0, 0.0), "arm": (np.pi / 2, 0.4, 0.1, 0.0)},
        "classical_dh": {"wrist": (-np.pi / 2, 0.1, 0.2, np.pi / 2)},
    }
    assert [module.bodies for module in model.modules] == [(0, 1, 2), (3, 4), (5, 6)]
    assert model.joint("column").limits == ((-1.0, 1.0), (0.0, np.inf))
    assert model.joint("left_proximal").limits == ((np.deg2rad(-5), np.deg2rad(90)),)
    assert not model.joint("right_distal").actuated
    assert model.joint("ball").sequence == "ZYZ"
    assert model.body("left_proximal").points == (("left_pad", (0.01, 0.0, 0.02)),)
    assert model.body("arm").mass == 3.0
    assert model.body("wrist").mass == pytest.approx(0.3)
    assert model.attachment("camera").body == 2
    assert [shape.kind for body in model.bodies for shape in body.shapes] == [
        "cylinder",
        "box",
        "capsule",
        "sphere",
    ]


def test_the_examples_of_the_documentation(root: Path) -> None:
    blocks = re.findall(
        r"```yaml\n(.*?)```", (root / "docs" / "robot-files.md").read_text(), flags=re.S
    )
    picker, hand = read_yaml(blocks[0], payload=2.0), read_yaml("name: hand\n" + blocks[1])
    assert (picker.name, picker.nv, picker.joints[1].name) == ("picker", 9, "shoulder")
    assert picker.body("hand").mass == pytest.approx(2.5)
    assert [body.name for body in hand.bodies[:5]] == [
        "palm",
        "finger1_bone",
        "finger2_bone",
        "finger3_bone",
        "tail1",
    ]
    assert hand.nv == 24


def test_placements() -> None:
    dh = read_yaml(FULL).body("arm").joint
    assert dh.placement == modified_dh(np.pi / 2, 0.4, 0.1, 0.0)
    classical = read_yaml(FULL).body("wrist").joint
    assert (classical.placement, classical.outlet) == (
        Frame(),
        classical_dh(np.pi / 2, 0.2, 0.1, -np.pi / 2),
    )
    place = "name: x\nlinks: [{name: a, frame: {xyz: [1, 2, 3], rpy: [0.1, 0.2, 0.3]}, outlet: {xyz: [0, 0, 1]}}]"
    assert read_yaml(place).bodies[0].joint.placement == Frame(
        from_rpy(0.1, 0.2, 0.3), np.array([1.0, 2.0, 3.0])
    )
    assert read_yaml(place).bodies[0].joint.outlet == Frame(position=np.array([0.0, 0.0, 1.0]))


def test_forms_of_an_inertia() -> None:
    tensor = np.array([[2.0, 0.1, 0.2], [0.1, 3.0, 0.3], [0.2, 0.3, 4.0]])
    assert (one("inertia: [2, 3, 4]").inertia == np.diag([2.0, 3.0, 4.0])).all()
    assert (
        one("inertia: {xx: 2, yy: 3, zz: 4, xy: 0.1, xz: 0.2, yz: 0.3}").inertia == tensor
    ).all()
    assert (one("inertia: [[2, 0.1, 0.2], [0.1, 3, 0.3], [0.2, 0.3, 4]]").inertia == tensor).all()
    about = one("mass: 2, com: [1, 0, 0], inertia: [2, 4, 4], inertia_about: origin")
    assert (about.inertia == np.diag([2.0, 2.0, 2.0])).all()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3),
        ("1E3", 1000.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("+7", 7),
        ("-0", 0),
        ("012", 12),
        ("yes", "yes"),
        ("0x10", "0x10"),
        ("true", True),
        ("~", None),
        ("-.inf", -np.inf),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("1" * 400, np.inf),
    ],
)
def test_scalars_of_yaml_1_2(text: str, value: object) -> None:
    assert scalar(text) == value
    assert type(scalar(text)) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("pi/2", np.pi / 2),
        ("0.4*0.1**2/12", 0.4 * 0.1**2 / 12),
        ("-(l + 1)*2", -6.0),
        ("2**-1", 0.5),
        ("sqrt(2)*cos(pi)", -np.sqrt(2)),
        ("atan2(1, 1)", np.pi / 4),
        ("min(l, 1, 5)", 1.0),
        ("1e-3", 1e-3),
    ],
)
def test_arithmetic(text: str, value: float) -> None:
    assert evaluate(text, {"l": 2.0}) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "l.real",
        "l[0]",
        "(1, 2)",
        "1 if l else 2",
        "lambda: 1",
        "1if l else 2",
        "l := 1",
        "1 < 2",
        "1j",
        "not l",
        "~1",
        "9**9**9**9",
        "1/0",
        "sqrt(-1)",
        "(-1)**0.5",
        "sin()",
        "sin(1, 2)",
        "m",
        "f(1)",
        "sin(x=1)",
        "",
        " ",
        "1 2",
        "(" * 99,
        "1" * 201,
        "0**-1",
        "1e31",
        "\x00",
        "min(*l)",
        "l//2",
        "l@l",
        True,
        None,
        [1],
        {},
        float("nan"),
    ],
)
def test_what_is_no_number(text: Any) -> None:
    with pytest.raises(ExpressionError):
        evaluate(text, {"l": 2.0})


def test_a_tensor_given_by_all_its_elements_is_taken_as_it_is() -> None:
    """As in URDF, with a warning; the check of the model says that no matter has it."""
    with pytest.warns(UserWarning, match="negative principal moment, -1 kg"):
        m = read_yaml(
            ONE.format("joint: free, mass: 1, inertia: [[1, 2, 0], [2, 1, 0], [0, 0, 1]]")
        )
    assert "inertia-indefinite" in {finding.code for finding in m.check()}


def test_parameters_can_be_overridden() -> None:
    assert read_yaml(FULL, payload=np.int64(4)).body("arm").mass == 8.0
    assert "too large" in refused(FULL, payload=10**5000)[0]
    assert refused(FULL, paylaod=4) == [
        "6:13: parameters: no parameter is named 'paylaod'; did you mean 'payload'?"
    ]
    assert "finite" in refused(FULL, payload=float("nan"))[0]


# ---- templates ----


def test_copies_side_by_side_and_in_series() -> None:
    model = read_yaml("""
name: hand
parameters: {fingers: 3}
templates:
  bone:
    links: [{name: bone$, frame: {xyz: [0, 0, 0.1]}, mass: 1}]
  finger:
    links:
      - {name: root, joint: {axis: x}, frame: {}}
      - {use: bone, series: 2, parent: root}
links:
  - {name: palm, frame: {}, mass: 1}
  - {use: finger, repeat: fingers, prefix: f$_, parent: palm, frame: {xyz: [copy, 0, 0], rpy_deg: [0, 0, 360*(copy - 1)/fingers]}}
  - {name: ring, parent: f2_bone2, frame: {}}
""")
    names = [body.name for body in model.bodies]
    assert names == [
        "palm",
        *(f"f{k}_{part}" for k in (1, 2, 3) for part in ("root", "bone1", "bone2")),
        "ring",
    ]
    assert [names[p] if p >= 0 else "" for p in model.parents] == [
        "", "palm", "f1_root", "f1_bone1", "palm", "f2_root", "f2_bone1", "palm", "f3_root", "f3_bone1", "f2_bone2"
    ]  # fmt: skip
    third = model.joint("f3_root").placement
    assert third.position[0] == 3.0
    assert np.allclose(third.rotation, rotation_about((0, 0, 1), np.deg2rad(240)))


@pytest.mark.parametrize("plane", "xyz")
@pytest.mark.parametrize(
    "kind", ["fixed", "revolute", "prismatic", "helical", "universal", "spherical", "planar"]
)
def test_a_mirrored_tree_is_the_image_of_the_tree(plane: str, kind: str) -> None:
    detail = {
        "helical": ", pitch: 0.1",
        "universal": ", sequence: XZ",
        "spherical": ", sequence: ZXY",
    }.get(kind, "")
    axis = "" if kind in ("universal", "spherical", "fixed") else ", axis: [1, 2, -1]"
    text = f"""
name: pair
templates:
  limb:
    links:
      - {{name: thigh, frame: {{xyz: [0.1, 0.2, 0.3], rpy: [0.4, 0.5, 0.6]}}, mass: 1, com: [0.1, 0.2, 0.3]}}
      - name: shin
        parent: thigh
        joint: {{type: {kind}{axis}{detail}}}
        frame: {{xyz: [0.3, -0.1, 0.2], rpy: [-1, 0.7, 0.2]}}
        outlet: {{xyz: [0, 0.1, 0], rpy: [0.3, 0, 1]}}
        mass: 2
        com: [0.1, -0.1, 0.3]
        inertia: {{xx: 1, yy: 2, zz: 2.5, xy: 0.1, xz: 0.2, yz: -0.1}}
        points: {{toe: [0.1, 0.2, 0.3]}}
links:
  - {{use: limb, prefix: a_}}
  - {{use: limb, prefix: b_, mirror: {plane}}}
"""
    model, S = read_yaml(text), PLANES[plane]
    half = model.nv // 2
    assert model.body("a_thigh").mass == model.body("b_thigh").mass
    q = np.random.default_rng(0).normal(size=half)
    both = poses(model, np.concatenate([q, q]))
    for a, b in zip(range(len(both) // 2), range(len(both) // 2, len(both)), strict=True):
        assert np.allclose(both[b].rotation, S @ both[a].rotation @ S)
        assert np.allclose(both[b].position, S @ both[a].position)
        assert np.allclose(model.bodies[b].com, S @ model.bodies[a].com)
        assert np.allclose(model.bodies[b].inertia, S @ model.bodies[a].inertia @ S)
        for (_, p), (_, image) in zip(model.bodies[a].points, model.bodies[b].points, strict=True):
            assert np.allclose(image, S @ np.array(p))


# ---- writing ----


@given(st.integers(0, 10_000))
@settings(max_examples=60)
def test_random_trees_survive_to_the_last_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bodies = random_bodies(rng, int(rng.integers(1, 12)))
    specs = [
        LinkSpec(
            b.name,
            bodies[b.parent].name if b.parent >= 0 else None,
            b.joint,
            b.mass,
            b.com,
            b.inertia,
        )
        for b in bodies
    ]
    tool = LinkSpec(
        'tool: "#"',
        bodies[-1].name,
        Joint("weld", "fixed", Frame(rotation_about((0, 0, 1), 0.3), rng.normal(size=3))),
    )
    model = build(f"tree {seed}", [*specs, tool], tuple(rng.normal(size=3)))
    again = read_yaml(to_yaml(model))
    assert again.skeleton == model.skeleton
    assert [replace(j, axis=(0, 0, 1)) for j in again.joints] == [
        replace(j, axis=(0, 0, 1)) for j in model.joints
    ]
    assert again.gravity == model.gravity
    assert list(again.attached.values()) == list(model.attached.values())


def test_zeros_keep_their_sign() -> None:
    b = rf.Builder("zeros", gravity=(-0.0, 0.0, -9.81))
    solid = {"mass": 1.0, "inertia": (1.0, 1.0, 1.0)}
    b.link("a", com=(-0.0, 0.0, 0.1), limits=(-0.0, 1.0), **solid)
    b.link("b", "a", at=(-0.0, 0.5, -0.0), com=(0.0, -0.0, -0.0), **solid)
    m = b.model()
    again = read_yaml(to_yaml(m))

    def numbers(robot: Any) -> str:
        bodies = [(body.com.tolist(), body.joint.placement.position) for body in robot.bodies]
        return repr((robot.gravity, bodies, [joint.limits for joint in robot.joints]))

    assert numbers(again) == numbers(m)
    assert numbers(m).count("-0.") >= 7


def test_saving_is_whole_or_not_at_all(tmp_path: Path) -> None:
    model, path = read_yaml(FULL), tmp_path / "robot.yaml"
    save(model, path)
    save(model, path)
    assert rf.load(path).skeleton == model.skeleton
    assert [entry.name for entry in tmp_path.iterdir()] == ["robot.yaml"]
    with pytest.raises(rf.ModelError, match="cannot be written"):
        save(model, tmp_path / "absent" / "robot.yaml")
