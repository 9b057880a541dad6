"""Euler-angle joints: their DH rows against the product of elementary rotations, the book's tables,
and the links of a model.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from random_trees import tree_of

import ramify as rf
from ramify.core.spatial import Vec3
from ramify.model.body import Body
from ramify.model.frame import Frame, rotation_about
from ramify.model.joint import AXES, SPHERICAL_SEQUENCES, UNIVERSAL_SEQUENCES, Joint

ALL = SPHERICAL_SEQUENCES + UNIVERSAL_SEQUENCES
angles = st.tuples(*[st.floats(-10.0, 10.0)] * 3)

# (alpha, offset) in degrees as the book prints them, where its tables 3.2-3.6 are legible; None
# where an offset is not.
PRINTED = {
    "ZXZ": [(0, 90), (90, 0), (-90, -90)],
    "ZYZ": [(0, 0), (-90, 0), (90, 0)],
    "ZXY": [(0, 90), (90, -90), (-90, -90)],
    "ZYX": [(0, None), (-90, None), (90, None)],
    "YXY": [(-90, None), (90, None), (-90, None)],
    "YZY": [(-90, None), (90, None), (-90, None)],
    "YXZ": [(-90, 90), (90, 90), (-90, -90)],
    "YZX": [(-90, 0), (90, 90), (90, 0)],
    "XYX": [(90, -90), (-90, 0), (90, 90)],
    "XZX": [(90, 0), (-90, 0), (90, 0)],
    "XYZ": [(90, -90), (-90, -90), (90, 0)],
    "XZY": [(90, 0), (-90, -90), (-90, 0)],
    "ZX": [(0, 90)],
    "ZY": [(0, 0)],
    "YX": [(-90, 90)],
    "YZ": [(-90, 0)],
}
TABLE_3_7 = {
    "none": ("ZYZ", "ZXZ", "YXZ"),
    "beginning": ("XYZ",),
    "end": ("ZYX", "YZX", "ZXY", "YXY", "YZY"),
    "both": ("XYX", "XZX", "XZY"),
}


def product(sequence: str, q: tuple[float, ...]) -> np.ndarray:
    R = np.eye(3)
    for letter, angle in zip(sequence, q, strict=True):
        R = R @ rotation_about(AXES[letter], angle)
    return R


def turned(sequence: str, q: tuple[float, ...], placement: Frame, outlet: Frame) -> np.ndarray:
    """The rotation of a body on such a joint, through the links' propagations."""
    kind = "spherical" if len(sequence) == 3 else "universal"
    tree, _ = tree_of(
        (Body("body", -1, Joint("joint", kind, placement, outlet, sequence=sequence), 1.0),),
        (0, 0, 0),
    )
    columns = []
    for i in range(3):
        u = tree.links[-1].seat.R.columns[i]
        for link, angle in zip(reversed(tree.links), reversed(q), strict=True):
            u = link.propagation(link.displacement(angle)).inward(u)
        w = tree.root.R @ u
        columns.append([w.x, w.y, w.z])
    return np.array(columns).T


def test_there_are_twelve_and_six() -> None:
    assert list(rf.euler_joints()) == list(ALL)
    assert (len(SPHERICAL_SEQUENCES), len(UNIVERSAL_SEQUENCES)) == (12, 6)


@pytest.mark.parametrize("sequence", ALL)
@settings(max_examples=20)
@given(angles)
def test_rows_give_the_product_of_rotations(sequence: str, q: tuple[float, ...]) -> None:
    q = q[: len(sequence)]
    joint = rf.euler_joint(sequence)
    assert_allclose(joint.rotation(q), product(sequence, q), rtol=0, atol=1e-15)


@pytest.mark.parametrize("sequence", ALL)
@settings(max_examples=20)
@given(angles)
def test_rows_are_modified_dh_rows(sequence: str, q: tuple[float, ...]) -> None:
    """before, then Rx(alpha) Rz(angle + offset) per row, then after, written out with angles that
    are summed first.
    """
    joint = rf.euler_joint(sequence)
    R = joint.before
    for row, angle in zip(joint.rows, q, strict=False):
        theta = angle + math.radians(row.offset)
        R = (
            R
            @ rotation_about((1, 0, 0), math.radians(row.alpha))
            @ rotation_about((0, 0, 1), theta)
        )
    assert_allclose(R @ joint.after, product(sequence, q[: len(sequence)]), rtol=0, atol=1e-14)


@pytest.mark.parametrize("sequence", ALL)
@settings(max_examples=20)
@given(angles)
def test_a_joint_turns_its_body_so(sequence: str, q: tuple[float, ...]) -> None:
    q = q[: len(sequence)]
    assert_allclose(turned(sequence, q, Frame(), Frame()), product(sequence, q), rtol=0, atol=2e-15)
    place, out = (
        Frame(rotation_about((0.6, 0.0, 0.8), 0.7), np.ones(3)),
        Frame(rotation_about((0.0, 0.8, 0.6), -2.0)),
    )
    expected = place.rotation @ product(sequence, q) @ out.rotation
    assert_allclose(turned(sequence, q, place, out), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("sequence", PRINTED)
def test_rows_as_printed(sequence: str) -> None:
    for row, (alpha, offset) in zip(rf.euler_joint(sequence).rows, PRINTED[sequence], strict=False):
        assert row.alpha == alpha
        assert offset is None or row.offset == offset


@pytest.mark.parametrize(("where", "sequences"), TABLE_3_7.items())
def test_constant_rows(where: str, sequences: tuple[str, ...]) -> None:
    assert tuple(s for s in sorted(sequences)) == tuple(
        s for s in SPHERICAL_SEQUENCES if rf.euler_joint(s).constant == where
    )
    for s in sequences:
        joint = rf.euler_joint(s)
        assert (joint.before == np.eye(3)).all() == (where in ("none", "end"))
        assert (joint.after == np.eye(3)).all() == (where in ("none", "beginning"))


@pytest.mark.parametrize("sequence", SPHERICAL_SEQUENCES)
def test_singular_at_zero(sequence: str) -> None:
    """At q = 0 the rate of the three angles is the angular velocity where their axes span space."""
    axes = np.array([AXES[letter] for letter in sequence])
    assert rf.euler_joint(sequence).singular_at_zero == (np.linalg.matrix_rank(axes) < 3)


@pytest.mark.parametrize("sequence", UNIVERSAL_SEQUENCES)
def test_two_axes_are_never_singular_at_zero(sequence: str) -> None:
    assert not rf.euler_joint(sequence).singular_at_zero


def test_lower_case_is_welcome() -> None:
    assert rf.euler_joint("yxz") == rf.euler_joint("YXZ")


@pytest.mark.parametrize("bad", ["", "X", "XX", "XXY", "XYY", "ABC", "XYZX"])
def test_unknown_sequences(bad: str) -> None:
    with pytest.raises(rf.ModelError, match="YXZ"):
        rf.euler_joint(bad)


def test_wrong_number_of_angles() -> None:
    with pytest.raises(rf.ModelError, match="YXZ takes 3 angles; got 2"):
        rf.euler_joint("YXZ").rotation((0.1, 0.2))


def test_printing() -> None:
    assert str(rf.euler_joint("XYX")).splitlines() == [
        "XYX  k  alpha  theta",
        "     0      0  90 (constant)",
        "     1     90  q1 -90",
        "     2    -90  q2",
        "     3     90  q3 +90",
        "     4    -90  -90 (constant)",
    ]
    lines = str(rf.euler_joints()).splitlines()
    assert len(lines) == 19
    assert lines[6].split() == ["YXZ", "-90", "90", "-90", "90", "90", "-90", "-", "-", "no"]
    assert lines[1].split() == [
        "XYX",
        "90",
        "-90",
        "90",
        "-90",
        "0",
        "90",
        "Rz",
        "90",
        "Rx-90",
        "Rz-90",
        "yes",
    ]
    assert len({line.rindex(" ") for line in lines[1:]}) == 1


def test_the_origin_stays() -> None:
    """The axes of an Euler joint meet in a point: its virtual links have no length."""
    tree, _ = tree_of((Body("body", -1, Joint("joint", "spherical"), 1.0),), (0, 0, 0))
    assert all(link.r0 == Vec3(0.0, 0.0, 0.0) for link in tree.links)
