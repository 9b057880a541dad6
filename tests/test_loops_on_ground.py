"""A closed loop that floats, falls and lands: loops, free base and ground in one run."""

from __future__ import annotations

import numpy as np
import pytest

import ramify as rf

LENGTH = 0.3


@pytest.fixture(scope="module")
def rhombus() -> rf.Model:
    rod = {
        "mass": 1.0,
        "com": (LENGTH / 2, 0.0, 0.0),
        "inertia": (1e-3, LENGTH**2 / 12, LENGTH**2 / 12),
    }
    end = (LENGTH, 0.0, 0.0)
    turning = {"axis": (0.0, 1.0, 0.0), **rod}
    b = rf.Builder("rhombus")
    b.link("a", None, "free", actuated=False, points={"near": (0.0, 0.0, 0.0), "far": end}, **rod)  # type: ignore[arg-type]
    b.link("b", "a", at=end, points={"knee": end}, **turning)  # type: ignore[arg-type]
    b.link("c", "b", at=end, points={"tip": end}, **turning)  # type: ignore[arg-type]
    b.link("d", "a", **turning)  # type: ignore[arg-type]
    b.loop("pin", "revolute", ("c", end), ("d", end), axis=(0.0, 1.0, 0.0))
    b.near(b=-1.2, c=-np.pi + 1.2, d=-1.2)
    return b.model()


@pytest.fixture(scope="module")
def start(rhombus: rf.Model) -> np.ndarray:
    q = rhombus.assemble({"b": -1.2}).q.copy()
    q[2] = 0.5  # a link and a half above the ground
    return q


def test_it_lands_with_its_loop_closed_and_its_energy_accounted_for(
    rhombus: rf.Model, start: np.ndarray
) -> None:
    r = rf.simulate(rhombus, 0.6, start, ground="firm", rtol=1e-9, atol=1e-11)
    assert r.status == "finished"
    assert r.audit.passed
    assert r.loops is not None
    assert r.loops.largest_gap < 1e-13
    assert np.abs(r.loops.power).max() < 1e-10
    assert r.contacts is not None
    assert np.isclose(
        r.contacts.total_force[-1, 2], rhombus.mass * 9.81, rtol=1e-2
    )  # it has come to rest
    assert np.abs(r.contacts.total_force[r.t < 0.2]).max() == 0.0  # and began in the air


def test_momentum_is_conserved_in_the_air(rhombus: rf.Model, start: np.ndarray) -> None:
    v = np.zeros(rhombus.nv)
    v[3:6] = 0.3, -0.2, 0.5  # it tumbles; the joints keep their angles
    r = rf.simulate(rhombus, 0.3, start, v, rtol=1e-10, atol=1e-12)
    assert r.audit.passed
    assert np.allclose(
        r.momentum.linear[-1],
        r.momentum.linear[0] + rhombus.mass * np.array([0, 0, -9.81 * 0.3]),
        atol=1e-9,
    )
    assert np.allclose(r.momentum.angular[-1], r.momentum.angular[0], atol=1e-9)


def test_a_rollout_takes_the_same_way(rhombus: rf.Model, start: np.ndarray) -> None:
    r = rf.simulate(rhombus, 0.4, start, ground="firm", rtol=1e-10, atol=1e-12)
    end = rf.rollout(
        rhombus, np.stack([start] * 3), np.zeros(rhombus.nv), steps=1600, dt=2.5e-4, ground="firm",
        method="rk4",
    )  # fmt: skip
    assert np.abs(end.q - r.q[-1]).max() < 1e-4
    assert np.asarray(rhombus.constraints(end.q).gap).max() < 1e-12
