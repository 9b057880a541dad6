"""The linter: each finding on a model made to have it, and silence on sane robots."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_trees import random_bodies, tree_of
from test_urdf import ARM as URDF

import ramify as rf
from ramify.api.model import Model
from ramify.dynamics.inertia_matrix import mass_matrix
from ramify.files.load import read_yaml
from ramify.lint.finding import LEVELS, Finding
from ramify.lint.robot_checks import check
from ramify.lint.unit_checks import degrees_as_radians
from ramify.model.answers import Attachment
from ramify.model.body import Body
from ramify.model.frame import Frame, from_rpy
from ramify.model.joint import Joint
from ramify.model.shape import Shape

# The KUKA KR5 (book, table 6.6, with the mass centres that its program uses): a, alpha, b per row;
# mass; com; principal moments.
KUKA = (
    [
        (0.0, 0.0, 0.4, 0.0),
        (0.18, math.pi / 2, 0.0, 0.0),
        (0.6, 0.0, 0.0, 0.0),
        (0.12, math.pi / 2, 0.62, 0.0),
        (0.0, -math.pi / 2, 0.0, 0.0),
        (0.0, math.pi / 2, 0.0, 0.0),
    ],
    [16.038, 7.988, 12.973, 2.051, 0.811, 0.008],
    [
        (0.104667, 0.005077, 0.059035),
        (0.267012, 0, 0),
        (0.087677, -0.034263, 0.007779),
        (-3.3e-05, 0.007634, -0.109372),
        (0, 0.032618, -0.009789),
        (0, 0, 0.111885),
    ],
    [
        (0.176938765, 0.266532371, 0.262222375),
        (0.271640468, 0.276878849, 0.021894253),
        (0.388988085, 0.376583684, 0.10414629),
        (0.004767354, 0.010122217, 0.01210886),
        (0.000760688, 0.001783961, 0.001801078),
        (3.113e-06, 1.512e-06, 1.652e-06),
    ],
)


def kuka() -> Model:
    return rf.from_dh(*KUKA, name="kuka")


def changed(model: Model, index: int, **body: Any) -> Model:
    """A model with one body replaced, past all checks of build()."""
    bodies = list(model.bodies)
    bodies[index] = replace(bodies[index], **body)
    return replace(model, bodies=tuple(bodies))


def jointed(model: Model, index: int, **joint: Any) -> Model:
    return changed(model, index, joint=replace(model.joints[index], **joint))


def only(model: Model) -> Finding:
    (finding,) = check(model)
    return finding


def expect(model: Model, level: str, where: str, code: str, *words: str) -> None:
    """One finding of that code on the whole model, of this level, at this place, with these words."""
    (finding,) = [f for f in check(model) if f.code == code]
    assert (finding.level, finding.where) == (level, where)
    for word in words:
        assert word in finding.message


# ---- silence ----


def test_a_sane_arm_gives_no_finding() -> None:
    assert check(kuka()) == []
    assert kuka().check() == []


@given(st.integers(0, 10**6))
def test_random_robots_give_no_finding_but_singular_sequences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bodies = random_bodies(rng, int(rng.integers(1, 20)))
    model = Model("random", bodies, (0.0, 0.0, -9.81), {})
    symmetric = {
        b.joint.name for b in bodies if len(b.joint.sequence) == 3 > len(set(b.joint.sequence))
    }
    findings = check(model)
    assert {f.where for f in findings if f.code == "euler-singular"} == symmetric
    assert [f for f in findings if f.code != "euler-singular"] == []


def test_teaching_models_give_no_warning() -> None:
    """Slender rods, point masses on massless strings, a cart and a pole."""
    rod = (1.0, (0.5, 0, 0), (0, 1 / 12, 1 / 12))
    arm = rf.Builder("3R", gravity=(0, -9.81, 0))
    for k, parent in enumerate((None, "link1", "link2"), start=1):
        arm.link(
            f"link{k}",
            parent,
            at=(1.0 if parent else 0.0, 0, 0),
            mass=rod[0],
            com=rod[1],
            inertia=rod[2],
        )
    pendulum = rf.Builder("pendulum").link(
        "bob", axis=(0, 1, 0), mass=1.0, com=(0, 0, -1.0), inertia=(1e-4,) * 3
    )
    cart = rf.Builder("cart").link(
        "cart", None, "prismatic", axis=(1, 0, 0), mass=1.0, inertia=(0.1, 0.1, 0.1)
    )
    cart.link(
        "pole",
        "cart",
        at=(0, 0, 0.02),
        axis=(0, 1, 0),
        mass=0.1,
        com=(0, 0, 1.0),
        inertia=(1e-3, 1e-3, 1e-5),
    )
    for model in (arm.model(), pendulum.model(), cart.model()):
        assert check(model) == []


# ---- inertia ----


def test_triangle_inequality() -> None:
    model = changed(kuka(), 3, inertia=np.diag([0.004, 0.005, 0.012]))
    expect(model, "error", "link4", "triangle-inequality", "0.004, 0.005, 0.012", "0.009", "raise")
    rounded = changed(kuka(), 3, inertia=np.diag([0.004, 0.008, 0.01203]))
    expect(rounded, "warning", "link4", "triangle-inequality", "more digits")
    assert check(changed(kuka(), 3, inertia=np.diag([0.004, 0.008, 0.012]))) == []


def test_indefinite_tensor() -> None:
    tensor = np.array([[0.01, 0.02, 0.0], [0.02, 0.01, 0.0], [0.0, 0.0, 0.02]])
    expect(
        changed(kuka(), 2, inertia=tensor),
        "error",
        "link3",
        "inertia-indefinite",
        "-0.01, 0.02, 0.03",
        "negative",
    )


def test_moments_that_never_count_are_noted_only() -> None:
    """The first link turns about z alone: a tensor with nothing but Izz is no matter's, and
    harmless.
    """
    expect(
        changed(kuka(), 0, inertia=np.diag([0, 0, 0.3])),
        "note",
        "link1",
        "inertia-incomplete",
        "(0, 0, 1)",
    )
    expect(
        changed(kuka(), 1, inertia=np.diag([0, 0, 0.3])), "error", "link2", "triangle-inequality"
    )
    planar = rf.Builder("planar", gravity=(0, -9.81, 0))
    planar.link("a", mass=1.0, com=(0.5, 0, 0), inertia=(0, 0, 0.1))
    planar.link("b", "a", at=(1, 0, 0), mass=1.0, com=(0.5, 0, 0), inertia=(0, 0, 0.1))
    assert [(f.level, f.code) for f in check(planar.model())] == [
        ("note", "inertia-incomplete")
    ] * 2
    slider = (
        rf.Builder("slider").link("cart", None, "prismatic", mass=1.0, inertia=(0, 0, 1.0)).model()
    )
    expect(slider, "note", "cart", "inertia-incomplete", "never turns")
    negative = changed(kuka(), 0, inertia=np.diag([0.1, 0.1, -0.05]))
    expect(negative, "error", "link1", "inertia-indefinite")


def test_masses() -> None:
    expect(changed(kuka(), 2, mass=-1.0), "error", "link3", "negative-mass", "-1 kg")
    expect(changed(kuka(), 2, mass=0.0), "warning", "link3", "inertia-without-mass", "0.389")
    point = changed(kuka(), 2, inertia=np.zeros((3, 3)))
    expect(point, "note", "link3", "point-mass", "12.973 kg", "(0.08768, -0.03426, 0.007779)")
    expect(
        changed(kuka(), 5, mass=1e-7, inertia=1e-9 * np.eye(3)),
        "note",
        "link6",
        "mass-ratio",
        "'link1'",
        "1.6e+08",
    )


# ---- coordinates without inertia ----


def test_a_massless_leaf() -> None:
    model = changed(kuka(), 5, mass=0.0, inertia=np.zeros((3, 3)))
    finding = only(model)
    assert (finding.level, finding.where, finding.code) == ("error", "joint6", "zero-inertia")
    assert "massless links ('link6')" in finding.message


def test_a_massless_branch_is_named_link_by_link() -> None:
    robot = rf.Builder("robot").link("arm", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    robot.link("hand", "arm", at=(1, 0, 0)).link("finger", "hand", at=(0.1, 0, 0)).link(
        "other", "arm", mass=1.0, inertia=(1, 1, 1)
    )
    errors = [f for f in check(robot.model()) if f.level == "error"]
    assert [f.where for f in errors] == ["hand", "finger"]
    assert "('hand', 'finger')" in errors[0].message


def test_a_point_mass_on_its_axis() -> None:
    robot = rf.Builder("robot").link("arm", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    robot.link("drill", "arm", at=(1, 0, 0), axis=(1, 0, 0), mass=1.0, com=(0.3, 0, 0))
    expect(robot.model(), "error", "drill", "zero-inertia", "'drill'", "about the joint's axis")


def test_two_hinges_on_one_axis_with_nothing_between() -> None:
    """Each moves inertia, but only their sum is felt: the inertia matrix is singular in every
    posture.
    """
    robot = (
        rf.Builder("robot")
        .link("ring")
        .link("disc", "ring", mass=1.0, com=(0.3, 0, 0), inertia=(0.1, 0.1, 0.1))
    )
    expect(robot.model(), "error", "ring", "zero-inertia")


def test_a_free_point_mass_cannot_be_turned() -> None:
    point = rf.Builder("robot").link("dot", None, "free", mass=1.0).model()
    expect(point, "error", "dot", "zero-inertia", "dot.wx, dot.wy, dot.wz")
    solid = rf.Builder("robot").link("box", None, "free", mass=1.0, inertia=(0.1, 0.1, 0.1)).model()
    assert check(solid) == []


def test_a_floating_base_in_a_singular_sequence() -> None:
    base: dict[str, Any] = {"mass": 1.0, "inertia": (0.1, 0.1, 0.1)}
    expect(
        rf.Builder("r").link("base", None, "free_euler", sequence="ZYZ", **base).model(),
        "warning",
        "base",
        "euler-singular",
    )
    assert check(rf.Builder("r").link("base", None, "free_euler", **base).model()) == []


def test_a_model_without_any_mass_is_one_error() -> None:
    robot = rf.Builder("empty").link("a").link("b", "a").model()
    finding = only(robot)
    assert (finding.level, finding.where, finding.code) == ("error", "empty", "massless")


def test_singular_at_zero_only() -> None:
    """A massless gimbal whose outer and inner axes coincide at q = 0."""
    robot = (
        rf.Builder("gimbal").link("outer", axis=(0, 0, 1)).link("middle", "outer", axis=(0, 1, 0))
    )
    robot.link("inner", "middle", axis=(0, 0, 1), mass=1.0, inertia=(0.1, 0.1, 0.1))
    expect(robot.model(), "warning", "outer", "singular-at-zero", "another posture")


@given(st.integers(0, 10**6))
def test_zero_inertia_is_a_singular_inertia_matrix(seed: int) -> None:
    """Links without mass, or with a point mass at their origin, strewn over random trees: found
    where it is singular, only so.
    """
    rng = np.random.default_rng(seed)
    kinds = ("revolute", "prismatic", "universal")
    bodies = list(
        random_bodies(rng, int(rng.integers(2, 9)), kinds=kinds, styles=("right angles",))
    )
    for i, body in enumerate(bodies):
        if rng.random() < 0.4:
            bodies[i] = replace(
                body, mass=float(rng.integers(0, 2)), inertia=np.zeros((3, 3)), com=np.zeros(3)
            )
    model = Model("robot", tuple(bodies), (0.0, 0.0, -9.81), {})
    tree, _ = tree_of(model.bodies, model.gravity)
    smallest = 0.0
    for k in range(3):
        M = mass_matrix(tree, model.random(k)[0].tolist())
        dense = np.array(M.row_major()).reshape(M.n, M.n)
        size = np.sqrt(np.maximum(np.diag(dense), 1e-30))
        smallest = max(smallest, float(np.linalg.eigvalsh(dense / np.outer(size, size))[0]))
    found = any(f.code in ("zero-inertia", "massless") for f in check(model))
    assert found == (smallest < 1e-10)


# ---- sequences, limits, units ----


@pytest.mark.parametrize("sequence", ["ZYZ", "XZX", "YXY"])
def test_singular_sequences(sequence: str) -> None:
    arm: dict[str, Any] = {
        "sequence": sequence,
        "mass": 1.0,
        "com": (0.1, 0, 0),
        "inertia": (0.1, 0.1, 0.1),
    }
    finding = only(rf.Builder("robot").link("ball", None, "spherical", **arm).model())
    assert (finding.level, finding.where, finding.code) == ("warning", "ball", "euler-singular")
    assert sequence in finding.message
    assert "YXZ" in finding.message
    limits = [(-1.0, 1.0), (0.2, 2.9), (-1.0, 1.0)]
    model = rf.Builder("robot").link("ball", None, "spherical", limits=limits, **arm).model()
    assert [f.code for f in check(model)] == ["neutral-outside"]


def test_limits_in_degrees() -> None:
    model = jointed(jointed(kuka(), 1, limits=((-155.0, 65.0),)), 4, limits=((-20.0, 20.0),))
    findings = check(model)
    assert [(f.level, f.where, f.code) for f in findings] == [
        ("warning", "joint2", "limits-degrees"),
        ("warning", "joint5", "limits-degrees"),
    ]
    assert "(-2.705, 1.134)" in findings[0].message


@pytest.mark.parametrize(
    "limits",
    [
        (-2 * math.pi, 2 * math.pi),
        (-10.0, 10.0),
        (-math.inf, math.inf),
        (-1e10, 1e10),
        (0.0, 12.56),
    ],
)
def test_wide_limits_are_not_degrees(limits: tuple[float, float]) -> None:
    assert check(jointed(kuka(), 1, limits=(limits,))) == []


def test_limits_without_room() -> None:
    expect(jointed(kuka(), 3, limits=((0.0, 0.0),)), "note", "joint4", "limits-closed", "(0, 0)")


def test_limits_of_slides_are_not_angles() -> None:
    slide = (
        rf.Builder("slide")
        .link("cart", None, "prismatic", mass=1.0, limits=[(-100.0, 100.0)])
        .model()
    )
    assert [f.code for f in check(slide)] == ["point-mass"]


@pytest.mark.parametrize(
    "value",
    [1.57, 1.571, 1.5708, -1.5708, 1.5707, 3.14, 3.1416, -3.1416, 3.14159, -3.1415, 3.141592],
)
def test_rounded_right_angles(value: float) -> None:
    rows = list(KUKA[0])
    rows[3] = (0.12, value, 0.62, 0.0)
    model = rf.from_dh(rows, *KUKA[1:])
    finding = only(model)
    assert (finding.level, finding.where, finding.code) == ("note", "joint4", "angle-rounded")
    assert f"by {value} rad" in finding.message


@pytest.mark.parametrize("value", [math.pi / 2, -math.pi, 1.5, 1.58, 3.0, 3.15, 0.785, 1.5707963])
def test_other_angles_are_not_rounded_ones(value: float) -> None:
    rows = list(KUKA[0])
    rows[3] = (0.12, value, 0.62, 0.0)
    assert check(rf.from_dh(rows, *KUKA[1:])) == []


def test_many_rounded_angles_are_one_note() -> None:
    rows = [
        (a, {math.pi / 2: 1.5708}.get(alpha, alpha), b, theta) for a, alpha, b, theta in KUKA[0]
    ]
    assert "likewise joint4, joint6" in only(rf.from_dh(rows, *KUKA[1:])).message


def test_millimetres_and_grams() -> None:
    far = changed(kuka(), 1, com=np.array([267.0, 0.0, 0.0]))
    expect(far, "warning", "link2", "com-far", "(267, 0, 0)", "0.632", "millimetres")
    heavy = changed(kuka(), 1, inertia=1e6 * kuka().bodies[1].inertia)
    expect(heavy, "warning", "link2", "inertia-units", "kg mm^2")
    small = rf.Builder("toy").link("a", mass=500.0, com=(0.01, 0, 0), inertia=(1e-5,) * 3)
    small.link("b", "a", at=(0.03, 0, 0), mass=300.0, com=(0.01, 0, 0), inertia=(1e-5,) * 3)
    assert [f.code for f in check(small.model())] == ["mass-units"] * 2


def test_gravity() -> None:
    expect(rf.with_gravity(kuka(), (0, 0, 0)), "note", "kuka", "zero-gravity", "9.81")
    expect(rf.with_gravity(kuka(), (0, 0, -9810)), "warning", "kuka", "gravity-units", "9810 m/s^2")


def test_skewed_rotations() -> None:
    skew = np.eye(3)
    skew[0, 1] = 1e-7
    expect(
        jointed(kuka(), 2, placement=Frame(skew)), "warning", "joint3", "rotation-skewed", "1e-07"
    )
    expect(jointed(kuka(), 2, outlet=Frame(1.1 * np.eye(3))), "error", "joint3", "rotation-skewed")


# ---- the list ----


def test_worst_first() -> None:
    model = changed(rf.with_gravity(kuka(), (0, 0, 0)), 4, inertia=np.diag([1, 1, 9e-3]) * 1e-3)
    model = jointed(
        changed(model, 3, inertia=np.diag([0.004, 0.005, 0.012])), 1, limits=((-155.0, 65.0),)
    )
    model = changed(model, 1, inertia=np.diag([0.02, 0.02, 0.3]))
    findings = check(model)
    assert [f.level for f in findings] == sorted((f.level for f in findings), key=LEVELS.index)
    assert [f.where for f in findings] == ["link2", "link4", "joint2", "kuka"]


def test_a_finding_reads_as_a_line() -> None:
    assert str(Finding("note", "arm", "slug", "Words.")) == "note: arm: Words. [slug]"
    assert repr([Finding("note", "arm", "slug", "Words.")]) == "[<note: arm: Words. [slug]>]"
    with pytest.raises(AttributeError):
        Finding("note", "arm", "slug", "Words.").level = "error"  # type: ignore[misc]


def test_checking_needs_no_build() -> None:
    """A model put together by hand is judged as well."""
    body = Body("a", -1, Joint("a", "revolute"), -2.0, np.zeros(3), np.eye(3))
    assert check(Model("hand-made", (body,), (0.0, 0.0, -9.81), {}))[0].code == "negative-mass"


# ---- angles in degrees ----


def turned(at: Frame, outlet: Frame | None = None) -> Model:
    robot = rf.Builder("arm").link("a", mass=1.0, com=(0.1, 0, 0), inertia=(1, 1, 1))
    robot.link(
        "b", "a", at=at, outlet=outlet or Frame(), mass=1.0, com=(0.1, 0, 0), inertia=(1, 1, 1)
    )
    return robot.model()


@pytest.mark.parametrize("column", ["alpha", "theta"])
@pytest.mark.parametrize("convention", ["modified", "classical"])
@pytest.mark.parametrize("degrees", [90, -90, 45, 180, 30, -120, 270])
def test_degrees_in_a_dh_row(column: str, convention: str, degrees: float) -> None:
    def arm(angle: float) -> Model:
        row = {"a": 0.1, "alpha": 0.3, "b": 0.2, "theta": -0.4, column: angle}
        plain = {"a": 0.1, "alpha": 0.0, "b": 0.2, "theta": 0.0}
        two = {"mass": [1, 1], "com": [[0.1, 0, 0]] * 2, "inertia": [[1, 1, 1]] * 2}
        return rf.from_dh([plain, row], **two, convention=convention)

    expect(arm(degrees), "warning", "joint2", "frame-degrees", f"{abs(degrees)} rad")
    assert "frame-degrees" not in [f.code for f in arm(math.radians(degrees)).check()]


@pytest.mark.parametrize("rpy", [(90, 0, 0), (0, 90, 0), (0, 0, 90), (0, -60, 0), (0.1, 90, 0.2)])
def test_degrees_in_a_frame(rpy: tuple[float, float, float]) -> None:
    frame = Frame(from_rpy(*rpy), np.zeros(3))
    expect(turned(frame), "warning", "b", "frame-degrees")
    expect(turned(Frame(), frame), "warning", "b", "frame-degrees")


def test_degrees_in_files(tmp_path: Path) -> None:
    path = tmp_path / "arm.yaml"
    body = "mass: 1, com: [0.1, 0, 0], inertia: [1, 1, 1]"
    text = (
        f"name: arm\nlinks:\n- {{name: a, joint: revolute, frame: {{xyz: [0, 0, 0]}}, {body}}}\n"
        f"- {{name: b, parent: a, joint: revolute, dh: {{a: 1, alpha: 90, b: 0}}, {body}}}\n"
        "- {name: tool, parent: b, joint: fixed, frame: {rpy: [0, 45, 0]}}\n"
    )
    path.write_text(text, encoding="utf-8")
    found = [f.where for f in rf.load(path).check() if f.code == "frame-degrees"]
    assert found == ["tool", "b"] or found == ["b", "tool"]
    path.write_text(
        text.replace("alpha: 90", "alpha_deg: 90").replace("rpy:", "rpy_deg:"), encoding="utf-8"
    )
    assert not [f for f in rf.load(path).check() if f.code == "frame-degrees"]


def test_degrees_in_a_guess() -> None:
    model = rf.load("four_bar")
    name = next(iter(model.guess))
    wrong = replace(model, guess={**model.guess, name: 56.4})
    assert [f.code for f in check(wrong) if f.code == "guess-degrees"] == ["guess-degrees"]


@given(st.integers(0, 2**32))
def test_other_frames_are_not_taken_for_degrees(seed: int) -> None:
    angles = np.random.default_rng(seed).uniform(-np.pi, np.pi, 3)
    for rpy in (angles, np.round(angles, 2), np.round(angles * 2 / np.pi) * np.pi / 2):
        assert degrees_as_radians(from_rpy(*rpy)) is None


@pytest.mark.parametrize("states", [(), (4,)])
@pytest.mark.parametrize("base", ["revolute", "free"])
def test_a_massless_leaf_is_blamed_itself(states: tuple[int, ...], base: str) -> None:
    """Its division by zero makes every acceleration NaN; the error names the cause, not the first."""
    robot = rf.Builder("arm").link("a", joint=base, mass=1.0, inertia=(1, 1, 1))
    robot.link("b", "a", at=(1, 0, 0), axis=(0, 1, 0), mass=1.0, com=(0.1, 0, 0))
    model = robot.link("c", "b", at=(1, 0, 0)).model()
    q, v = (np.broadcast_to(x, (*states, x.size)) for x in model.random(0))
    with pytest.raises(rf.StateError, match="'c' moves no inertia; give its links mass"):
        model.forward_dynamics(q, v, v)


def test_degrees_in_shapes_and_named_frames() -> None:
    arm = kuka()
    turned = Frame(from_rpy(0.0, 90.0, 0.0))
    shape = Shape("box", (0.1, 0.1, 0.1), turned)
    expect(changed(arm, 1, shapes=(shape,)), "warning", "a shape of link2", "frame-degrees")
    machine = replace(arm.machine, frames={"tip": Attachment(2, turned)})
    expect(replace(arm, machine=machine), "warning", "tip", "frame-degrees")


@pytest.mark.parametrize("convention", ["modified", "classical"])
@pytest.mark.parametrize("column", [1, 3])
@pytest.mark.parametrize(
    "angle", [57.3, 57.29578, -45.5, 6.5, 400.25, 1.5707963, 7.853981634, -1.2]
)
def test_angles_of_rows_that_are_more_than_a_turn(
    angle: float, column: int, convention: str
) -> None:
    """Quarter turns are left alone, however many."""
    row = [0.3, 0.0, 0.1, 0.0]
    row[column] = angle
    given = {"mass": [1.0], "com": [(0.1, 0, 0)], "inertia": [(0.1, 0.1, 0.1)]}
    found = rf.from_dh([row], **given, convention=convention).check()
    doubted = abs(angle) > 6.3 and angle != 7.853981634
    assert ("frame-degrees" in [f.code for f in found]) is doubted
    assert not doubted or any(f"turned by {angle:g} rad" in f.message for f in found)


def test_degrees_in_robot_files_and_rounded_frames() -> None:
    text = "name: arm\nlinks:\n  - {name: a, mass: 1, com: [0.1, 0, 0], inertia: [1, 1, 1], joint: {}, %s}\n"
    for key, doubted in (
        ("dh: {a: 0.1, b: 0, alpha: 57.29578, theta: 0}", True),
        ("classical_dh: {a: 0.1, b: 0, alpha: 0, theta: 57.29578}", True),
        ("frame: {rpy: [0, 0.1, 33.33]}", True),
        ("frame: {rpy_deg: [0, 0, 400]}", False),
        ("dh: {a: 0.1, b: 0, alpha_deg: 400, theta: 0}", False),
    ):
        found = check(read_yaml(text % key))
        assert ("frame-degrees" in [f.code for f in found]) is doubted
    turned = Frame(from_rpy(0.0, 57.3, 0.0))  # a matrix, whose angle is found by its digits
    expect(changed(kuka(), 1, shapes=(Shape("box", (1, 1, 1), turned),)), "warning", "a shape of link2", "frame-degrees")  # fmt: skip


@pytest.mark.parametrize(
    ("limit", "doubted"), [(57.3, True), (31.4, False), (90.0, True), (3.2, False)]
)
def test_limits_in_degrees_with_a_digit(limit: float, doubted: bool) -> None:
    robot = rf.Builder("arm").link(
        "a", mass=1.0, com=(0.1, 0, 0), inertia=(1, 1, 1), limits=[(-limit, limit)]
    )
    assert ("limits-degrees" in [f.code for f in robot.model().check()]) is doubted


def test_angles_of_files_that_are_more_than_a_turn(tmp_path: Path) -> None:
    """Also those that are no whole degrees; quarter turns are left alone, however many."""
    for angle, doubted in (("56.4", True), ("7.853981634", False), ("-1.2", False)):
        path = tmp_path / "arm.urdf"
        path.write_text(URDF.replace('rpy="0 1.5707963267948966', f'rpy="0 {angle}', 1))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = rf.load(path)
        assert bool(caught) is doubted
        assert ("file-doubt" in [f.code for f in model.check()]) is doubted
