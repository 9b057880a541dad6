"""Building models: order, names, numbers, fixed joints, Denavit-Hartenberg tables, the Builder."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from random_trees import tree_of

import ramify as rf
from ramify.api.builders import as_model
from ramify.api.model import Model
from ramify.core.records import flatten
from ramify.core.spatial import NO_WRENCH
from ramify.dynamics.inverse import inverse_dynamics
from ramify.dynamics.kinematics import body_poses
from ramify.files.robot_writer import save, to_yaml
from ramify.model.build import LinkSpec, build, combine
from ramify.model.frame import Frame, from_rpy, rotation_about
from ramify.model.joint import Joint
from ramify.model.shape import Shape

build = as_model(build)


def link(name: str, parent: str | None = None, kind: str = "revolute", **more: Any) -> LinkSpec:
    at = more.pop("at", Frame())
    return LinkSpec(
        name, parent, Joint(more.pop("joint", f"{name}_joint"), kind, at), **{"mass": 1.0, **more}
    )


def torques(model: Model, q: Any, v: Any, a: Any) -> np.ndarray:
    tree, _ = tree_of(model.bodies, model.gravity)
    return np.array(inverse_dynamics(tree, list(q), list(v), list(a), [NO_WRENCH] * model.nv))


def pose_of(model: Model, name: str, q: Any) -> Frame:
    """World frame of a link, merged or not."""
    tree, skeleton = tree_of(model.bodies, model.gravity)
    body, local = model.attachment(name)
    if body < 0:
        return local
    pose = body_poses(tree, [float(x) for x in q])[skeleton.last[body]]
    return Frame(np.array(flatten(pose.R)), np.array(flatten(pose.r))) @ local


# ---- order and names ----


@given(st.permutations(["trunk", "arm", "hand", "leg", "foot"]))
def test_any_order_will_do(names: list[str]) -> None:
    parents = {"trunk": None, "arm": "trunk", "hand": "arm", "leg": "trunk", "foot": "leg"}
    model = build("robot", [link(name, parents[name]) for name in names])
    found = {
        body.name: model.bodies[body.parent].name if body.parent >= 0 else None
        for body in model.bodies
    }
    assert found == parents
    assert all(body.parent < i for i, body in enumerate(model.bodies))


def test_a_good_order_is_kept() -> None:
    """Breadth first stays breadth first: coordinates keep the user's order."""
    model = build(
        "robot", [link("a"), link("b", "a"), link("c", "a"), link("d", "b"), link("e", "c")]
    )
    assert [body.name for body in model.bodies] == ["a", "b", "c", "d", "e"]


def test_children_keep_their_order() -> None:
    model = build("robot", [link("d", "b"), link("c", "a"), link("b", "a"), link("a")])
    assert [body.name for body in model.bodies] == ["a", "c", "b", "d"]


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ([link("a"), link("b", "a"), link("a", "b")], "two links are named 'a'"),
        ([link("a"), link("b", "a", joint="a_joint")], "two joints are named 'a_joint'"),
        (
            [link("a"), link("b", "c")],
            "link 'b': its parent 'c' does not exist; links are 'a', 'b'",
        ),
        (
            [link("a"), link("b", "c"), link("c", "d"), link("d", "b")],
            "the parents of b -> c -> d -> b form a cycle",
        ),
        ([link("a", "a")], "the parents of a -> a form a cycle"),
        ([link("a", "b"), link("b", "a")], "form a cycle; one link must hang on the base"),
        ([link("")], "a link has no name"),
        ([], "'robot' has no moving link"),
        ([link("a", kind="fixed")], "'robot' has no moving link"),
    ],
)
def test_bad_trees(links: list[LinkSpec], message: str) -> None:
    with pytest.raises(rf.ModelError, match=message):
        build("robot", links)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"mass": -1.0}, "link 'a': mass -1.0 kg must be finite and not negative"),
        ({"mass": math.nan}, "link 'a': mass nan"),
        ({"mass": math.inf}, "link 'a': mass inf"),
        ({"com": np.array([0.0, math.nan, 0.0])}, "link 'a': com must be finite"),
        ({"com": np.zeros(2)}, r"link 'a': com must be finite, of shape \(3,\)"),
        ({"inertia": np.full((3, 3), math.inf)}, "link 'a': inertia must be finite"),
        ({"inertia": np.zeros(3)}, r"link 'a': inertia must be finite, of shape \(3, 3\)"),
        (
            {"inertia": np.array([[1.0, 0.5, 0], [0, 1, 0], [0, 0, 1]])},
            "link 'a': the inertia tensor is not symmetric",
        ),
        (
            {"at": Frame(2 * np.eye(3))},
            "joint 'a_joint': its frame is not a finite position and a rotation",
        ),
        ({"at": Frame(np.diag([1.0, 1.0, -1.0]))}, "joint 'a_joint': its frame is not"),
        (
            {"at": Frame(position=np.array([0.0, math.nan, 0.0]))},
            "joint 'a_joint': its frame is not",
        ),
        ({"at": Frame(np.full((3, 3), math.nan))}, "joint 'a_joint': its frame is not"),
    ],
)
def test_bad_numbers(more: dict[str, Any], message: str) -> None:
    with pytest.raises(rf.ModelError, match=message):
        build("robot", [link("a", **more)])


@pytest.mark.parametrize("gravity", [(0.0, 0.0), (0.0, 0.0, math.nan), (0.0, math.inf, 0.0)])
def test_bad_gravity(gravity: tuple[float, ...]) -> None:
    with pytest.raises(rf.ModelError, match=r"gravity .* must be three finite numbers"):
        build("robot", [link("a")], gravity)


def test_unknown_names_list_the_choices() -> None:
    model = build("robot", [link("a"), link("b", "a"), link("tip", "b", "fixed")])
    for ask, message in (
        (model.body, "robot has no moving body 'x'; its bodies are a, b"),
        (model.joint, "robot has no joint 'x'; its joints are a_joint, b_joint"),
        (model.attachment, "robot has no link or frame 'x'; there are a, b, tip"),
    ):
        with pytest.raises(rf.ModelError, match=message):
            ask("x")


# ---- fixed joints ----


def test_fixed_links_become_part_of_their_carrier() -> None:
    at, turn = np.array([1.0, 0.0, 0.0]), from_rpy(0.0, 0.0, math.pi / 2)
    lump: Any = {"mass": 2.0, "com": np.array([0.5, 0.0, 0.0]), "inertia": np.diag([1.0, 2.0, 3.0])}
    tool = link("tool", "arm", "fixed", at=Frame(turn, at), **lump)
    arm = link("arm", mass=2.0, com=np.array([1.0, -0.5, 0.0]), inertia=np.diag([3.0, 3.0, 3.0]))
    model = build(
        "robot", [arm, tool, link("finger", "tool", at=Frame(position=np.array([0.0, 1.0, 0.0])))]
    )
    body = model.body("arm")
    assert len(model.bodies) == 2
    assert body.mass == 4.0
    assert_allclose(
        body.com, [1.0, 0.0, 0.0], atol=1e-15
    )  # mass centres at (1, -0.5, 0) and (1, 0.5, 0)
    assert_allclose(body.inertia, np.diag([3 + 2 + 1, 3 + 1, 3 + 3 + 1]), atol=1e-15)
    assert model.body("finger").parent == 0
    assert_allclose(model.joint("finger_joint").placement.position, [0.0, 0.0, 0.0], atol=1e-15)
    assert_allclose(model.joint("finger_joint").placement.rotation, turn, atol=1e-15)
    assert model.attachment("tool") == (0, Frame(turn, at))


def test_points_and_shapes_move_along() -> None:
    at = Frame(rotation_about((0, 0, 1), math.pi / 2), np.array([1.0, 0.0, 0.0]))
    foot = link(
        "foot",
        "leg",
        "fixed",
        at=at,
        points=(("heel", (1.0, 0.0, 0.0)),),
        shapes=(Shape("sphere", (0.1,)),),
    )
    model = build("robot", [link("leg", points=(("knee", (0.0, 0.0, 1.0)),)), foot])
    body = model.body("leg")
    assert body.points == (("knee", (0.0, 0.0, 1.0)), ("heel", (1.0, 1.0, 0.0)))
    assert body.shapes[0].frame == at


def test_links_fixed_to_the_base() -> None:
    up = Frame(position=np.array([0.0, 0.0, 2.0]))
    model = build(
        "robot",
        [link("pedestal", None, "fixed", at=up, mass=100.0), link("arm", "pedestal", at=up)],
    )
    assert model.mass == 1.0
    assert model.attachment("pedestal") == (-1, up)
    assert model.body("arm").parent == -1
    assert_array_equal(model.joint("arm_joint").placement.position, [0.0, 0.0, 4.0])


@given(st.integers(0, 10**6))
def test_a_fixed_joint_is_a_joint_held_at_zero(seed: int) -> None:
    """Merging gives the torques of the same robot with a moving joint that does not move."""
    rng = np.random.default_rng(seed)

    def some(name: str, parent: str | None, kind: str) -> LinkSpec:
        spread = rng.normal(size=(3, 3))
        tensor = np.trace(spread @ spread.T) * np.eye(3) - spread @ spread.T
        place, out = (Frame(from_rpy(*rng.uniform(-3, 3, 3)), rng.normal(size=3)) for _ in range(2))
        return LinkSpec(
            name,
            parent,
            Joint(name, kind, place, out),
            rng.uniform(0.1, 3.0),
            rng.normal(size=3),
            tensor,
        )

    held = [
        some("a", None, "revolute"),
        some("b", "a", "revolute"),
        some("c", "b", "prismatic"),
        some("d", "c", "revolute"),
    ]
    welded = list(held)
    welded[1] = LinkSpec(
        "b",
        "a",
        Joint("b", "fixed", held[1].joint.placement, held[1].joint.outlet),
        *_mass(held[1]),
    )
    x = rng.normal(size=(3, 4))
    x[:, 1] = 0.0
    full, merged = build("held", held), build("welded", welded)
    rest = [0, 2, 3]
    tau = torques(full, *x.tolist())[rest]
    assert_allclose(
        torques(merged, *x[:, rest].tolist()), tau, rtol=0, atol=1e-12 * np.abs(tau).max()
    )
    for name in "abcd":
        here, there = pose_of(full, name, x[0]), pose_of(merged, name, x[0, rest])
        assert_allclose(there.rotation, here.rotation, atol=1e-13)
        assert_allclose(there.position, here.position, atol=1e-13)


def _mass(spec: LinkSpec) -> tuple[float, np.ndarray, np.ndarray]:
    return spec.mass, spec.com, spec.inertia


@given(st.integers(0, 10**6))
def test_combine_is_the_inertia_of_all_particles(seed: int) -> None:
    rng = np.random.default_rng(seed)
    masses, places = rng.uniform(0.1, 2.0, size=9), rng.normal(size=(9, 3))

    def lump(some: slice) -> tuple[float, np.ndarray, np.ndarray]:
        m, x = masses[some], places[some]
        c = m @ x / m.sum()
        d = x - c
        return (
            m.sum(),
            c,
            sum(mk * (dk @ dk * np.eye(3) - np.outer(dk, dk)) for mk, dk in zip(m, d, strict=True)),
        )

    whole = lump(slice(None))
    parts = combine(lump(slice(0, 3)), lump(slice(3, 4)), lump(slice(4, 9)))
    for ours, theirs in zip(parts, whole, strict=True):
        assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)


def test_massless_parts_change_nothing() -> None:
    """To the last bit, on either side; without any mass the tensors still add up."""
    some = (0.3, np.array([0.1, 0.7, 0.2]), np.diag([0.1, 0.2, 0.3]))
    nothing = (0.0, np.ones(3), np.zeros((3, 3)))
    for whole in (combine(some, nothing), combine(nothing, some, nothing)):
        for ours, theirs in zip(whole, some, strict=True):
            assert_array_equal(ours, theirs)
    assert_array_equal(combine(nothing, nothing)[1], np.ones(3))
    mass, _, inertia = combine((0.0, np.ones(3), np.eye(3)), (0.0, np.zeros(3), np.eye(3)))
    assert mass == 0.0
    assert_array_equal(inertia, 2 * np.eye(3))


# ---- Denavit-Hartenberg tables ----


def test_one_pendulum() -> None:
    """Hanging from the y axis: tau = (I + m c^2) a + m g c cos q."""
    model = rf.from_dh([(0.0, math.pi / 2, 0.0, 0.0)], [2.0], [(0.5, 0.0, 0.0)], [(0.1, 0.2, 0.3)])
    q, v, a = 0.7, 0.3, -1.1
    expected = (0.3 + 2.0 * 0.25) * a + 2.0 * 9.81 * 0.5 * math.cos(q)
    assert torques(model, [q], [v], [a])[0] == pytest.approx(expected, rel=1e-14)
    assert model.joints[0].name == "joint1"
    assert model.bodies[0].name == "link1"


@given(st.integers(0, 10**6), st.text("RP", min_size=1, max_size=7))
def test_classical_and_modified_tables_of_one_arm(seed: int, joints: str) -> None:
    """A classical row's a and alpha follow its joint, a modified one's precede it: shift them by
    one, and the frames with them.
    """
    rng = np.random.default_rng(seed)
    n = len(joints)
    a, b, alpha, theta = rng.normal(size=(4, n))
    mass, com, spread = (
        rng.uniform(0.1, 3.0, n),
        rng.normal(size=(n, 3)),
        rng.normal(size=(n, 3, 3)),
    )
    tensor = np.array([np.trace(s @ s.T) * np.eye(3) - s @ s.T for s in spread])
    classical = rf.from_dh(
        np.c_[a, alpha, b, theta], mass, com, tensor, joints=joints, convention="classical"
    )

    before = np.c_[np.r_[0.0, a[:-1]], np.r_[0.0, alpha[:-1]], b, theta]
    turns = [rotation_about((1, 0, 0), x) for x in alpha]
    moved = [R @ c + np.array([x, 0, 0]) for R, c, x in zip(turns, com, a, strict=True)]
    turned = [R @ T @ R.T for R, T in zip(turns, tensor, strict=True)]
    modified = rf.from_dh(before, mass, moved, turned, joints=joints)

    q, v, acc = rng.normal(size=(3, n))
    tau = torques(classical, q, v, acc)
    assert_allclose(
        torques(modified, q, v, acc), tau, rtol=0, atol=1e-12 * max(1.0, np.abs(tau).max())
    )


def test_rows_may_be_mappings() -> None:
    rows = [(0.1, 0.2, 0.3, 0.4), (0.5, 0.6, 0.7, 0.8)]
    keys = ("a", "alpha", "b", "theta")
    more: Any = ([1.0, 1.0], np.ones((2, 3)), np.ones((2, 3)))
    named = rf.from_dh([dict(zip(keys, row, strict=True)) for row in rows], *more)
    plain = rf.from_dh(rows, *more)
    assert [j.placement for j in named.joints] == [j.placement for j in plain.joints]


@pytest.mark.parametrize("convention", ["modified", "standard"])
def test_a_saved_arm_keeps_its_dh_rows(convention: str, tmp_path: Path) -> None:
    """Unless its joints have moved since."""
    rows = [(0.1, math.pi / 2, 0.3, 0.4), (0.5, -0.6, 0.7, 0.8)]
    more: Any = ([1.0, 1.0], np.ones((2, 3)), np.ones((2, 3)))
    m = rf.from_dh(rows, *more, joints="RP", convention=convention)
    key = "dh" if convention == "modified" else "classical_dh"
    text = to_yaml(m)
    assert f"    {key}: {{alpha: -0.6, a: 0.5, b: 0.7, theta: 0.8}}" in text
    assert "frame:" not in text
    assert "outlet:" not in text
    (tmp_path / "arm.yaml").write_text(text)
    for mine, read in zip(m.bodies, rf.load(tmp_path / "arm.yaml").bodies, strict=True):
        assert mine.joint == read.joint
        np.testing.assert_array_equal(mine.com, read.com)
    turned = replace(m.joints[0], **{"placement" if key == "dh" else "outlet": Frame()})
    bodies = (replace(m.bodies[0], joint=turned), *m.bodies[1:])
    assert to_yaml(replace(m, bodies=bodies)).count(f"    {key}:") == 1


@pytest.mark.parametrize("joints", ["rp", ["revolute", "prismatic"], ("R", "Prismatic")])
def test_joints_of_a_dh_table_in_other_words(joints: Any) -> None:
    rows = [(0.1, 0.2, 0.3, 0.4), (0.5, 0.6, 0.7, 0.8)]
    arm = rf.from_dh(rows, joints=joints, convention="Standard")
    assert arm.joints == rf.from_dh(rows, joints="RP", convention="standard").joints
    for wrong in ("RX", ["revolute", "ball"], ["revolute", 1]):
        with pytest.raises(rf.ModelError, match=r"joints\[1\] is .*; it must be 'R' or 'P'"):
            rf.from_dh(rows, joints=wrong)
    with pytest.raises(rf.ModelError, match="joints has 8 entries"):
        rf.from_dh(rows, joints="revolute")


def test_dh_tables_of_other_books(tmp_path: Path) -> None:
    """``d`` for b, degrees by ``_deg``, and "standard" for classical; in files too."""
    row = {"a": 0.1, "alpha_deg": 90.0, "d": 0.3, "theta_deg": 30.0}
    more: Any = ([1.0], [(0.1, 0.0, 0.0)], [(0.1, 0.1, 0.1)])
    plain = rf.from_dh([(0.1, math.pi / 2, 0.3, math.pi / 6)], *more, convention="classical")
    named = rf.from_dh([row], *more, convention="standard")
    assert named.joints[0].outlet == plain.joints[0].outlet
    (tmp_path / "arm.yaml").write_text(
        "name: arm\nlinks:\n  - {name: link1, mass: 1, com: [0.1, 0, 0], inertia: [0.1, 0.1, 0.1],\n"
        "     classical_dh: {a: 0.1, alpha_deg: 90, d: 0.3, theta_deg: 30}}\n"
    )
    assert rf.load(tmp_path / "arm.yaml").joints[0].outlet == plain.joints[0].outlet
    for wrong, said in (
        ({"b": 0.3}, "b is given twice"),
        (
            {"joint": 1.0},
            "unknown column 'joint'; columns are a, alpha, b, theta or .*joints='RRP'",
        ),
    ):
        with pytest.raises(rf.ModelError, match=said):
            rf.from_dh([row | wrong], *more)


def test_limits_of_single_coordinates() -> None:
    """A plain pair serves a joint of one coordinate; DH arms take limits among their machines."""
    rows = [(0.0, 0.0, 0.0, 0.0)] * 2
    given: Any = [{"limits_deg": (-90, 45), "effort": 3.0}, {"limits": [(-0.1, 0.2)]}]
    arm = rf.from_dh(rows, joints="RP", machine=given)
    assert_allclose(arm.joints[0].limits, [(-math.pi / 2, math.pi / 4)])
    assert arm.joints[1].limits == ((-0.1, 0.2),)
    assert arm.joints[0].machine[0].effort == 3.0
    for wrong, said in (
        ({"limits_deg": (-1, 1)}, r"machine\[1\]: a slide has no degrees"),
        ({"limits_deg": (-1, 1), "limits": (0, 1)}, "exclude each other"),
        ({"limits": (-1, 0, 1)}, r"machine\[1\]: limits must be one pair"),
        ({"limits": (1, -1)}, "lower limit"),
    ):
        with pytest.raises(rf.ModelError, match=said):
            rf.from_dh(rows, joints="RP", machine=[{}, wrong])
    one = rf.Builder("one").link("rod", mass=1.0, com=(0.1, 0, 0), limits=(-1, 1)).model()
    assert one.joints[0].limits == ((-1, 1),)
    both = rf.Mechanism("both").body("rod", mass=1.0).joint("pin", None, "rod", limits=(-1, 1))
    assert both.model().joints[0].limits == ((-1, 1),)
    with pytest.raises(rf.ModelError, match=r"1 limits for 3 coordinates; give one \(lower, upper"):
        rf.Builder("ball").link("rod", None, "spherical", mass=1.0, limits=(-1, 1))


def test_a_table_without_masses_has_kinematics_only() -> None:
    rows = [(0.0, 0.0, 0.0, 0.0), (0.4, 0.0, 0.0, 0.0), {"a": 0.3, "alpha": 0, "d": 0, "theta": 0}]
    arm = rf.from_dh(rows, convention="standard")
    q = np.array([0.3, 0.5, 0.2])
    angles = np.cumsum(q)[1:]
    tip = np.array([0.4, 0.3]) @ np.c_[np.cos(angles), np.sin(angles)]
    assert_allclose(arm.pose(q, "link3").position[:2], tip, atol=1e-15)
    assert arm.jacobian(q, "link3").shape == (6, 3)
    for asked in (
        lambda: arm.inverse_dynamics(q, q, q),
        lambda: arm.mass_matrix(q),
        lambda: arm.center_of_mass(q),
        lambda: rf.simulate(arm, 0.1),
        lambda: rf.rollout(arm, q, q, steps=2, dt=0.01),
    ):
        with pytest.raises(rf.ModelError, match="'arm' has no mass, so it has kinematics only"):
            asked()
    pulled = arm.inverse_dynamics(q, q, q, {"link3": [0, 0, 0, 0, 1.0, 0]})  # statics needs none
    assert_allclose(pulled, -arm.jacobian(q, "link3")[4], atol=1e-15)
    heavy = {f"link{k}.mass": 1.0 for k in (1, 2, 3)}
    assert np.isfinite(arm.inverse_dynamics(q, q, q, parameters=heavy)).all()
    with pytest.raises(rf.ModelError, match="com and inertia missing; give mass, com and inertia"):
        rf.from_dh(rows, [1.0, 1.0, 1.0])


def test_prismatic_joints_slide_along_z() -> None:
    model = rf.from_dh([(0.0, 0.0, 0.5, 0.0)], [1.0], [(0, 0, 0)], [(0, 0, 0)], joints="P")
    assert_allclose(pose_of(model, "link1", [0.25]).position, [0.0, 0.0, 0.75], atol=1e-15)


ROW: dict[str, float] = {"a": 0.0, "alpha": 0.0, "b": 0.0, "theta": 0.0}


@pytest.mark.parametrize(
    ("rows", "more", "message"),
    [
        (
            [{"a": 0.0, "b": 0.0}],
            {},
            "DH row 1 lacks alpha; a row has a, alpha, b, theta, of which theta may be left out",
        ),
        ([ROW, (0.0, 0.0, 0.0)], {}, "DH row 2 has 3 columns"),
        ([(0.0, math.nan, 0.0, 0.0)], {}, "DH row 1: alpha is nan; it must be finite"),
        ([ROW | {"b": math.inf}], {}, "DH row 1: b is inf"),
        ([ROW], {"joints": "X"}, r"joints\[0\] is 'X'; it must be 'R' or 'P'"),
        ([ROW], {"joints": "RR"}, "joints has 2 entries for 1 DH rows"),
        ([ROW], {"mass": [1.0, 2.0]}, "mass has 2 entries for 1 DH rows"),
        ([ROW], {"com": []}, "com has 0 entries for 1 DH rows"),
        ([ROW], {"inertia": [1.0, 2.0]}, "inertia has 2 entries"),
        ([ROW], {"inertia": [1.0]}, r"'link1': inertia must be finite, of shape \(3, 3\)"),
        (
            [ROW],
            {"convention": "old"},
            "convention must be 'modified', 'classical' or 'standard'; got 'old'",
        ),
        ([ROW], {"mass": [-1.0]}, "'link1': mass -1.0"),
    ],
)
def test_bad_tables(rows: list[Any], more: dict[str, Any], message: str) -> None:
    n = len(rows)
    with pytest.raises(rf.ModelError, match=message):
        rf.from_dh(
            rows, **{"mass": [1.0] * n, "com": [(0, 0, 0)] * n, "inertia": [(1, 1, 1)] * n, **more}
        )


# ---- Builder ----


def test_builder() -> None:
    robot = rf.Builder("gripper", gravity=(0, -9.81, 0))
    robot.link("palm", mass=0.4, com=(0.05, 0, 0), inertia=(0, 3e-4, 3e-4), limits=[(-1, 1)])
    robot.link(
        "finger",
        "palm",
        "prismatic",
        at=(0.1, 0, 0),
        axis=(0, 2, 0),
        mass=0.2,
        points={"tip": (0.05, 0, 0)},
    )
    wrist = Frame(from_rpy(0.1, 0.2, 0.3), np.array([0.0, 0.1, 0.0]))
    robot.link(
        "ball",
        "palm",
        "spherical",
        sequence="zyx",
        at=wrist,
        actuated=False,
        joint_name="wrist",
        inertia=np.eye(3),
    )
    robot.link("screw", "ball", "helical", pitch=0.01, outlet=(0, 0, 0.1), mass=1)
    model = robot.model()
    assert model.name == "gripper"
    assert model.gravity == (0.0, -9.81, 0.0)
    assert model.nv == model.nq == 6
    assert model.coordinates == ("palm", "finger", "wrist.z1", "wrist.y2", "wrist.x3", "screw")
    assert model.joint("finger").axis == (0.0, 1.0, 0.0)
    assert model.joint("palm").limits == ((-1, 1),)
    assert model.joint("wrist").placement == wrist
    assert not model.joint("wrist").actuated
    assert model.joint_slice("wrist") == slice(2, 5)
    assert model.body("finger").points == (("tip", (0.05, 0.0, 0.0)),)
    assert_array_equal(model.body("palm").inertia, np.diag([0, 3e-4, 3e-4]))
    assert repr(model) == "<ramify.Model 'gripper': 4 bodies, 6 degrees of freedom>"


def test_builder_refuses_what_build_refuses() -> None:
    with pytest.raises(rf.ModelError, match="link 'b': its parent 'c' does not exist"):
        rf.Builder("robot").link("a", mass=1.0).link("b", "c", mass=1.0).model()
    with pytest.raises(rf.ModelError, match="is not a frame"):
        rf.Builder("robot").link("a", at=(1.0, 2.0))


def test_bodies_cannot_be_changed_behind_a_model() -> None:
    com = np.zeros(3)
    model = build("robot", [link("a", com=com)])
    com[0] = 1.0
    assert_array_equal(model.bodies[0].com, np.zeros(3))
    with pytest.raises(ValueError, match="read-only"):
        model.bodies[0].com[0] = 1.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: rf.from_dh([("a", 0, 0, 0)], [1], [(0, 0, 0)], [(1, 1, 1)]),
        lambda: rf.from_dh([None], [1], [(0, 0, 0)], [(1, 1, 1)]),
        lambda: rf.from_dh(None, [1], [(0, 0, 0)], [(1, 1, 1)]),
        lambda: rf.from_dh([(0, 0, 0, 0)], 1.0, [(0, 0, 0)], [(1, 1, 1)]),
        lambda: rf.from_dh([(0, 0, 0, 0)], ["x"], [(0, 0, 0)], [(1, 1, 1)]),
        lambda: rf.from_dh([(0, 0, 0, 0)], [1], [("x", 0, 0)], [(1, 1, 1)]),
        lambda: rf.from_dh([(0, 0, 0, 0)], [1], [(0, 0, 0)], [(1, 1, 1)], gravity=9.81),
        lambda: rf.from_dh([(0, 0, 0, 0)], [1], [(0, 0, 0)], [(1, 1, 1)], gravity=("a", 0, 0)),
        lambda: rf.Builder("x").link("a", mass="heavy"),
        lambda: rf.Builder("x").link("a", axis=None),
        lambda: rf.Builder("x").link("a", com="abc"),
        lambda: rf.Builder("x").link("a", sequence=5, joint="spherical"),
        lambda: rf.Builder("x", gravity=None).link("a", mass=1.0).model(),
    ],
)
def test_strange_values_are_model_errors(call: Any) -> None:
    with pytest.raises(rf.ModelError):
        call()


BAD_NAMES = ("a\nb", "a\u202eb", "a\0", " ", "x" * 201)


@pytest.mark.parametrize("name", BAD_NAMES)
def test_builders_and_files_refuse_the_same_names(name: str, tmp_path: Path) -> None:
    path = tmp_path / "robot.yaml"
    path.write_text(f"name: r\nlinks:\n  - {{name: {json.dumps(name)}, frame: {{}}, mass: 1}}\n")
    builders = [
        rf.Builder(name).link("a", mass=1.0),
        rf.Builder("r").link(name, joint_name="j", mass=1.0),
        rf.Builder("r").link("a", joint_name=name, mass=1.0),
        rf.Builder("r").link("a", mass=1.0, points={name: (0, 0, 0)}),
    ]
    for make in (lambda: rf.load(path), *(builder.model for builder in builders)):
        with pytest.raises(
            rf.ModelError, match="a name has 1 to 200 printable characters"
        ) as caught:
            make()
        assert str(caught.value).isprintable()


def test_messages_about_files_hold_no_control_characters(tmp_path: Path) -> None:
    path = tmp_path / "robot.yaml"
    path.write_text(
        "name: r\nlinks:\n  - "
        f"{{name: a, frame: {{}}, mass: 1, {json.dumps('k' + chr(0x202E) + chr(27))}: 1}}\n"
    )
    with pytest.raises(rf.ModelError, match=r"k\\u202e\\x1b.*unknown key") as caught:
        rf.load(path)
    assert str(caught.value).isprintable()


def test_an_axis_by_its_letter_is_refused_with_what_to_write() -> None:
    with pytest.raises(rf.ModelError, match=r"link 'a': axis 'y' .* \(0\.0, 1\.0, 0\.0\)"):
        rf.Builder("r").link("a", axis="y")  # type: ignore[arg-type]


def test_shapes_are_given_as_in_files(tmp_path: Path) -> None:
    shape = {"capsule": (0.03, 0.5), "xyz": [0, 0, 0.25]}
    model = rf.Builder("arm").link("a", mass=1.0, inertia=(1, 1, 1), shapes=[shape]).model()
    (drawn,) = model.bodies[0].shapes
    assert (drawn.kind, drawn.size) == ("capsule", (0.03, 0.5))
    np.testing.assert_array_equal(drawn.frame.position, [0, 0, 0.25])
    save(model, tmp_path / "arm.yaml")
    assert "capsule" in (tmp_path / "arm.yaml").read_text(encoding="utf-8")
    for bad, said in (
        ({"capsul": [0.03, 0.5]}, "did you mean 'capsule'"),
        ({"box": [1, 1, 1], "sphere": 1.0}, "exclude each other"),
        ("sphere", "must be a mapping"),
    ):
        with pytest.raises(rf.ModelError, match=said):
            rf.Mechanism("arm").body("a", shapes=[bad])


ROW = {"a": 0.3, "alpha": 0.0, "d": 0.1}


def test_rows_may_leave_out_what_the_joint_moves() -> None:
    arm = rf.from_dh([ROW, {"a": 0.2, "alpha": 0.1, "theta": 0.2}], joints="RP")
    whole = rf.from_dh([ROW | {"theta": 0.0}, (0.2, 0.1, 0.0, 0.2)], joints="RP")
    q = [0.3, 0.4]
    assert np.array_equal(arm.pose(q, "link2").position, whole.pose(q, "link2").position)
    with pytest.raises(rf.ModelError, match=r"row 1 lacks b; .* of which theta may be left out"):
        rf.from_dh([{"a": 0.3, "alpha": 0.0}])


def test_inertias_by_their_elements() -> None:
    six = {"xx": 0.1, "yy": 0.2, "zz": 0.25, "xz": 0.01}
    arm = rf.from_dh([ROW], [1.0], [(0, 0, 0)], [six])
    assert arm.bodies[0].inertia.tolist() == [[0.1, 0, 0.01], [0, 0.2, 0], [0.01, 0, 0.25]]
    link = rf.Builder("arm").link("a", mass=1.0, inertia=six).model()
    assert np.array_equal(link.bodies[0].inertia, arm.bodies[0].inertia)
    for wrong, words in (
        ((1, 1, 1, 0, 0, 0), "six numbers.* give three moments, 3 x 3, or"),
        ({"xx": 1.0, "yy": 1.0}, "it must have xx, yy, zz"),
        (six | {"yx": 0.0}, "it must have xx, yy, zz"),
    ):
        with pytest.raises(rf.ModelError, match=words):
            rf.from_dh([ROW], [1.0], [(0, 0, 0)], [wrong])
    with pytest.raises(rf.ModelError, match=r"gravity 9.81 must be three.* e.g. \(0, 0, -9.81\)"):
        rf.from_dh([ROW], gravity=9.81)  # type: ignore[arg-type]
    with pytest.raises(rf.ModelError, match=r"did you mean 'limits_deg'\? keys are .*limits_deg"):
        rf.from_dh([ROW], machine=[{"limit_deg": (-1, 1)}])


def test_limits_and_ratings_as_arrays() -> None:
    b = rf.Builder("arm").link("a", limits=[(-1.0, 2.0)], effort=5.0, velocity=3.0, mass=1.0)
    m = b.link("b", "a", "ball", mass=1.0).link("c", "b", mass=1.0).model()
    inf = np.inf
    assert m.lower.tolist() == [-1.0, *[-inf] * 5]
    assert m.upper.tolist() == [2.0, *[inf] * 5]
    assert m.effort.tolist() == [5.0, *[inf] * 4]
    assert m.rated_velocity.tolist() == [3.0, *[inf] * 4]


def test_a_model_is_saved_by_suffix(tmp_path: Path) -> None:
    m = rf.load("kuka_kr5")
    for name in ("arm.yaml", "arm.urdf"):
        m.save(tmp_path / name)
        assert rf.load(tmp_path / name).nv == 6
    with pytest.raises(rf.ModelError, match=r"robots are written as .yaml, .yml, .urdf"):
        m.save(tmp_path / "arm.mat")


def test_frames_print_as_a_table() -> None:
    lines = str(rf.with_tool(rf.load("kuka_kr5"), "link6", "tip", (0, 0, 0.1)).frames).split("\n")
    assert lines[0].split() == ["frame", "on", "body", "x,", "y,", "z", "in", "the", "body,", "m"]
    assert "tip" in [line.split()[0] for line in lines]
    assert len({line.index(line.split("  ")[-1]) for line in lines[1:]}) == 1


def test_only_public_names_are_listed() -> None:
    shown = [name for name in dir(rf) if not name.startswith("__")]
    assert shown == sorted(rf.__all__)


def test_limits_in_degrees_and_keys_that_are_none() -> None:
    own = {"mass": 1.0, "inertia": (0.1, 0.1, 0.1)}
    arm = rf.Builder("arm").link("a", **own, limits_deg=(-90, 45)).model()
    assert arm.joints[0].limits == ((-math.pi / 2, math.pi / 4),)
    bars = rf.Mechanism("bars").body("a", **own)
    whole = bars.joint("j", None, "a", limits_deg=(-90, 45), damping=0.1).model()
    assert whole.joints[0].limits == ((-math.pi / 2, math.pi / 4),)
    for options, said in (
        (
            {"dampng": 1.0},
            "joint 'k': dampng is no key of a joint's machine; did you mean 'damping'",
        ),
        ({"limits_deg": (0, 1), "limits": (0, 1)}, "limits and limits_deg exclude each other"),
        (
            {"limits_deg": (0, 1), "kind": "prismatic"},
            "limits_deg is for joints whose coordinates are angles, not for prismatic",
        ),
    ):
        with pytest.raises(rf.ModelError, match=said):
            rf.Mechanism("bars").body("a", **own).joint("k", None, "a", **options)


@pytest.mark.parametrize(
    ("ends", "which"), [(("rod", None), "first"), ((("rod", (0, 0, 0)), ("rod",)), "second")]
)
def test_an_end_of_a_loop_that_is_no_pair_is_named(ends: tuple[Any, Any], which: str) -> None:
    with pytest.raises(
        rf.ModelError, match=rf"loop 'pin': {which} must be \(link, place\), e\.g\. .*; got"
    ):
        rf.Builder("r").link("rod", mass=1.0).loop("pin", "revolute", *ends)


@pytest.mark.parametrize("truth", [True, np.True_], ids=["bool", "numpy"])
def test_truth_values_are_no_numbers_of_a_dh_table(truth: object) -> None:
    for row in ([truth, 0.0, 0.0, 0.0], {"a": truth, "alpha": 0.0, "d": 0.0}):
        with pytest.raises(rf.ModelError, match=r"DH row 2.*(is True|\[0\] is a truth value)"):
            rf.from_dh([[1.0, 0.0, 0.0, 0.0], row])  # type: ignore[list-item]
    with pytest.raises(rf.ModelError, match=r"mass must be .* entry \[0\] is a truth value"):
        rf.from_dh([[1.0, 0.0, 0.0, 0.0]], [truth], [(0, 0, 0)], [(1, 1, 1)])  # type: ignore[list-item]
