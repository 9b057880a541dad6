"""Joint types: what they accept, their screws, and where they put a body."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from random_trees import KINDS, random_joint, tree_of

import ramify as rf
from ramify.api.model import Model
from ramify.core.records import flatten
from ramify.dynamics.kinematics import body_poses
from ramify.files.load import read_yaml
from ramify.files.robot_writer import to_yaml
from ramify.model.body import Body
from ramify.model.frame import (
    Frame,
    align_z,
    as_frame,
    classical_dh,
    cos_sin,
    from_quaternion,
    from_rpy,
    modified_dh,
    rotation_about,
)
from ramify.model.joint import JOINT_KINDS, Joint, Step

DOF = {
    "fixed": 0,
    "revolute": 1,
    "prismatic": 1,
    "helical": 1,
    "cylindrical": 2,
    "universal": 2,
    "spherical": 3,
    "planar": 3,
    "ball": 3,
    "free": 6,
    "free_euler": 6,
}


def joint(kind: str, **more: Any) -> Joint:
    return Joint("knee", kind, **({"pitch": 0.1} if kind == "helical" else {}), **more)


def test_every_kind_is_counted() -> None:
    assert {kind: joint(kind).dof for kind in JOINT_KINDS} == DOF


def test_names_and_units_of_coordinates() -> None:
    assert joint("revolute").coordinates == ("knee",)
    assert joint("spherical").coordinates == ("knee.y1", "knee.x2", "knee.z3")
    assert joint("spherical", sequence="zyz").coordinates == ("knee.z1", "knee.y2", "knee.z3")
    assert joint("planar").coordinates == ("knee.x", "knee.y", "knee.angle")
    assert joint("ball").coordinates == ("knee.qw", "knee.qx", "knee.qy", "knee.qz")
    assert joint("ball").velocities == ("knee.wx", "knee.wy", "knee.wz")
    assert joint("free").coordinates == tuple(
        f"knee.{x}" for x in ("x", "y", "z", "qw", "qx", "qy", "qz")
    )
    assert joint("free_euler").velocities == tuple(
        f"knee.{x}" for x in ("x", "y", "z", "y1", "x2", "z3")
    )
    assert [step.unit for step in joint("cylindrical").steps] == ["rad", "m"]
    assert [step.unit for step in joint("helical").steps] == ["rad"]


def test_sequences() -> None:
    assert joint("spherical").sequence == "YXZ"
    assert joint("universal").sequence == "YX"
    assert joint("universal", sequence="xz").sequence == "XZ"


@given(st.tuples(*[st.floats(-1e3, 1e3)] * 3).filter(lambda u: math.hypot(*u) > 1e-6))
def test_axes_are_made_unit_vectors(axis: tuple[float, float, float]) -> None:
    u = joint("revolute", axis=axis).axis
    assert math.hypot(*u) == pytest.approx(1.0, abs=1e-15)
    assert_allclose(np.cross(u, axis), 0.0, atol=1e-13 * math.hypot(*axis))
    assert np.dot(u, axis) > 0.0


def test_unit_axes_stay_to_the_last_bit() -> None:
    assert joint("revolute", axis=(0.0, 1.0, 0.0)).axis == (0.0, 1.0, 0.0)
    assert joint("revolute", axis=(0.6, 0.0, 0.8)).axis == (0.6, 0.0, 0.8)


@pytest.mark.parametrize(
    ("kind", "more", "message"),
    [
        ("hinge", {}, "'knee': unknown type 'hinge'; choose one of fixed, revolute, prismatic"),
        (
            "revolute",
            {"axis": (0.0, 0.0, 0.0)},
            r"'knee': axis \[0.0, 0.0, 0.0\] must be three finite numbers",
        ),
        ("revolute", {"axis": (0.0, math.nan, 1.0)}, "'knee': axis .* must be three finite"),
        ("revolute", {"axis": (0.0, math.inf, 1.0)}, "'knee': axis .* must be three finite"),
        ("revolute", {"axis": (0.0, 1.0)}, "'knee': axis .* must be three finite"),
        (
            "spherical",
            {"sequence": "XXY"},
            "'knee': sequence 'XXY' does not suit a spherical joint; choose one of XYX",
        ),
        (
            "universal",
            {"sequence": "XYZ"},
            "'knee': sequence 'XYZ' does not suit a universal joint; choose one of XY",
        ),
        ("revolute", {"sequence": "XYZ"}, "'knee': sequence 'XYZ' .*, which takes none"),
        ("revolute", {"pitch": 0.1}, "'knee': a pitch belongs to helical joints, not to revolute"),
        ("revolute", {"limits": ((0.0, 1.0), (0.0, 1.0))}, "'knee': 2 limits for 1 coordinates"),
        ("spherical", {"limits": ((0.0, 1.0),)}, "'knee': 1 limits for 3 coordinates"),
        (
            "revolute",
            {"limits": ((1.0, -1.0),)},
            "'knee': lower limit 1.0 exceeds upper limit -1.0",
        ),
        ("revolute", {"limits": ((math.nan, 1.0),)}, "'knee': lower limit nan"),
    ],
)
def test_bad_joints_name_the_culprit(kind: str, more: dict[str, Any], message: str) -> None:
    with pytest.raises(rf.ModelError, match=message):
        Joint("knee", kind, **more)


@pytest.mark.parametrize("pitch", [0.0, math.nan, math.inf])
def test_a_helix_needs_a_pitch(pitch: float) -> None:
    with pytest.raises(
        rf.ModelError,
        match=f"'knee': pitch {pitch} must be a finite, non-zero number of metres per radian",
    ):
        Joint("knee", "helical", pitch=pitch)


def displaced(j: Joint, q: np.ndarray) -> Frame:
    """Where the joint puts its body, written down by hand for each type."""
    x, u = np.zeros(3), np.array(j.axis)
    match j.kind:
        case "revolute":
            R = rotation_about(u, q[0])
        case "prismatic":
            R, x = np.eye(3), q[0] * u
        case "helical":
            R, x = rotation_about(u, q[0]), j.pitch * q[0] * u
        case "cylindrical":
            R, x = rotation_about(u, q[0]), q[1] * u
        case "planar":
            R, x = rotation_about(u, q[2]), align_z(u) @ np.array([q[0], q[1], 0.0])
        case "ball":
            R = from_quaternion(*q)
        case "free":
            R, x = from_quaternion(*q[3:]), q[:3]
        case "free_euler":
            R, x = rf.euler_joint(j.sequence).rotation(q[3:]), q[:3]
        case _:
            R = rf.euler_joint(j.sequence).rotation(q)
    return j.placement @ Frame(R, x) @ j.outlet


@pytest.mark.parametrize("style", ["anywhere", "right angles", "nearly parallel"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_puts_its_body_where_it_should(kind: str, style: str) -> None:
    rng = np.random.default_rng(KINDS.index(kind))
    atol = (
        2e-14 if style == "nearly parallel" else 1e-14
    )  # axes within 1e-14 of parallel are taken to be parallel
    for _ in range(10):
        j = random_joint(rng, "joint", kind, style)
        q = rng.uniform(-3.0, 3.0, size=j.nq)
        tree, skeleton = tree_of((Body("body", -1, j, 1.0),), (0, 0, 0))
        pose = body_poses(tree, skeleton.coordinates(q.tolist(), (1.0, 0.0, 0.0, 0.0)))[
            skeleton.last[0]
        ]
        expected = displaced(j, q)
        assert_allclose(
            np.array(flatten(pose.R)).reshape(3, 3), expected.rotation, rtol=0, atol=atol
        )
        assert_allclose(flatten(pose.r), expected.position, rtol=0, atol=atol)


# ---- frames ----


@pytest.mark.parametrize("k", range(-8, 9))
def test_quarter_turns_are_exact(k: int) -> None:
    c, s = cos_sin(k * math.pi / 2)
    assert (c, s) == ((1, 0), (0, 1), (-1, 0), (0, -1))[k % 4]
    for axis in np.eye(3):
        assert set(np.unique(np.abs(rotation_about(axis, k * math.pi / 2)))) == {0.0, 1.0}


@given(st.tuples(*[st.floats(-1.0, 1.0)] * 3).filter(lambda u: math.hypot(*u) > 0.1))
def test_align_z(u: tuple[float, float, float]) -> None:
    axis = np.array(u) / math.hypot(*u)
    R = align_z(axis)
    assert_allclose(R[:, 2], axis, rtol=0, atol=1e-15)
    assert_allclose(R @ R.T, np.eye(3), rtol=0, atol=3e-15)
    assert np.linalg.det(R) == pytest.approx(1.0, abs=3e-15)


@pytest.mark.parametrize("tilt", [0.0, 1e-300, 1e-17, 1e-13, 1e-9, 1e-5])
@pytest.mark.parametrize("z", [1.0, -1.0])
def test_align_z_near_the_poles(z: float, tilt: float) -> None:
    axis = np.array([0.6 * tilt, -0.8 * tilt, z * math.sqrt(1.0 - tilt**2)])
    R = align_z(axis)
    assert_allclose(R[:, 2], axis, rtol=0, atol=0)
    assert_allclose(R @ R.T, np.eye(3), rtol=0, atol=3e-15)


def test_align_z_on_the_coordinate_axes() -> None:
    for axis in (*np.eye(3), *-np.eye(3)):
        assert set(np.unique(np.abs(align_z(axis)))) == {0.0, 1.0}
    assert_allclose(align_z((0, 0, -1)), np.diag([1.0, -1.0, -1.0]), rtol=0, atol=0)


@given(st.tuples(*[st.floats(-7.0, 7.0)] * 4))
def test_dh_rows(row: tuple[float, float, float, float]) -> None:
    """Both conventions are products of two screws, in opposite orders."""
    a, alpha, b, theta = row
    along_x = Frame(rotation_about((1, 0, 0), alpha), np.array([a, 0.0, 0.0]))
    along_z = Frame(rotation_about((0, 0, 1), theta), np.array([0.0, 0.0, b]))
    rows = (
        (modified_dh(alpha, a, b, theta), along_x @ along_z),
        (classical_dh(theta, b, a, alpha), along_z @ along_x),
    )
    for ours, expected in rows:
        assert_allclose(ours.rotation, expected.rotation, rtol=0, atol=1e-15)
        assert_allclose(ours.position, expected.position, rtol=0, atol=1e-14)


@given(st.floats(-7.0, 7.0), st.floats(0.1, 10.0))
def test_quaternions(q: float, length: float) -> None:
    axis = np.array([0.48, -0.6, 0.64])
    quaternion = length * np.r_[math.cos(q / 2), math.sin(q / 2) * axis]
    assert_allclose(from_quaternion(*quaternion), rotation_about(axis, q), rtol=0, atol=2e-15)


def test_frames() -> None:
    frame = Frame(from_rpy(0.1, 0.2, 0.3), np.array([1.0, 2.0, 3.0]))
    back = frame @ frame.inverse()
    assert_allclose(back.rotation, np.eye(3), atol=1e-15)
    assert_allclose(back.position, np.zeros(3), atol=1e-15)
    assert Frame().is_identity
    assert not frame.is_identity
    assert frame == Frame(frame.rotation, frame.position)
    assert hash(frame) == hash(Frame(frame.rotation, frame.position))
    assert frame != "frame"
    with pytest.raises(ValueError, match="read-only"):
        frame.position[0] = 0.0


def test_as_frame() -> None:
    frame = Frame(from_rpy(0.1, 0.2, 0.3), np.array([1.0, 2.0, 3.0]))
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = frame.rotation, frame.position
    assert as_frame(frame) is frame
    assert as_frame(matrix) == frame
    assert as_frame([1, 2, 3]) == Frame(position=np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("bad", [(1.0, 2.0), np.eye(3), "here", 2 * np.eye(4), None])
def test_what_is_not_a_frame(bad: Any) -> None:
    with pytest.raises(rf.ModelError, match=r"a Frame, a 4 x 4 matrix"):
        as_frame(bad)


def test_a_joint_type_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row in the table is all: files, dynamics, names and the writer know the new type."""
    pin_in_slot = lambda joint: (  # noqa: E731
        Step("slide", (1.0, 0.0, 0.0), 0.0, 1.0),
        Step("angle", joint.axis, 1.0, 0.0),
    )
    monkeypatch.setitem(JOINT_KINDS, "pin_in_slot", pin_in_slot)
    body = "mass: 1, com: [0.1, 0.2, 0], inertia: [0.1, 0.2, 0.3]"
    text = (
        f"name: r\nlinks:\n- {{name: a, joint: pin_in_slot, frame: {{xyz: [0, 0, 1]}}, {body}}}\n"
        f"- {{name: b, parent: a, joint: revolute, frame: {{xyz: [1, 0, 0]}}, {body}}}\n"
    )
    model = Model.of(read_yaml(text))
    assert model.coordinates == ("a.slide", "a.angle", "b")
    two = rf.Builder("r").link("s", joint="prismatic", axis=(1, 0, 0), at=(0, 0, 1))
    two.link("a", "s", mass=1.0, com=(0.1, 0.2, 0), inertia=(0.1, 0.2, 0.3))
    two.link("b", "a", at=(1, 0, 0), mass=1.0, com=(0.1, 0.2, 0), inertia=(0.1, 0.2, 0.3))
    q, v = model.random(0)
    tau = model.inverse_dynamics(q, v, v)
    assert_allclose(tau, two.model().inverse_dynamics(q, v, v), rtol=1e-12)
    assert Model.of(read_yaml(to_yaml(model))).skeleton == model.skeleton
