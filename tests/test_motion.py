"""The cycloid of eq. (6.14): its ends, its exact derivatives, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ramify as rf
from ramify.motion import cycloid, example_ends


def test_from_rest_to_rest() -> None:
    start, end = np.array([0.0, -1.0, 3.0]), np.array([1.0, -1.0, -2.0])
    motion = cycloid(start, end, duration=2.5, rows=11)
    assert motion.t.shape == (11,)
    assert motion.q.shape == motion.v.shape == motion.a.shape == (11, 3)
    assert motion.t[[0, -1]].tolist() == [0.0, 2.5]
    assert np.array_equal(motion.q[0], start)
    assert np.allclose(motion.q[-1], end, rtol=0, atol=1e-15)
    assert np.abs(motion.v[[0, -1]]).max() == 0.0
    assert np.abs(motion.a[[0, -1]]).max() < 1e-14
    assert np.abs(motion.v[:, 1]).max() == 0.0


def test_rates_are_the_derivatives() -> None:
    duration, h = 1.7, 1.7 / 20_000
    motion = cycloid([0.2, -0.4], [1.3, 2.0], duration, rows=20_001)
    assert np.abs((motion.q[2:] - motion.q[:-2]) / (2 * h) - motion.v[1:-1]).max() < 1e-7
    assert np.abs((motion.v[2:] - motion.v[:-2]) / (2 * h) - motion.a[1:-1]).max() < 1e-6


def test_a_number_serves_all() -> None:
    assert np.array_equal(cycloid(0.0, [1.0, 2.0], rows=3).q, cycloid([0.0, 0.0], [1.0, 2.0], rows=3).q)


def test_published_motion(shared: Path) -> None:
    state = np.loadtxt(shared / "redysim" / "kuka_kr5_invdyn_statevar.dat")
    motion = cycloid(np.zeros(6), np.full(6, np.pi / 3))
    assert np.abs(np.hstack([motion.q, motion.v, motion.a]) - state).max() < 1e-6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0, 0.0], [1.0, 1.0, 1.0]), "start has 2 coordinates, end has 3"),
        (([0.0, np.nan], [1.0, 1.0]), r"start\[1\] is nan"),
        (([0.0], [np.inf]), r"end\[0\] is inf"),
        (([[0.0]], [1.0]), "shape"),
        ((0.0, 1.0, 0.0), "duration 0.0 s"),
        ((0.0, 1.0, np.inf), "duration inf s"),
        ((0.0, 1.0, 1.0, 1), "at least 2 rows"),
    ],
)
def test_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(rf.StateError, match=message):
        cycloid(*arguments)  # type: ignore[arg-type]


def test_examples_end_where_the_joints_can_go() -> None:
    robot = rf.Builder("rp").link("turn", mass=1, com=(1, 0, 0)).link("slide", parent="turn", joint="prismatic", mass=1)
    start, end = example_ends(robot.model())
    assert start.tolist() == [0.0, 0.0]
    assert end.tolist() == [np.pi / 3, 0.1]
