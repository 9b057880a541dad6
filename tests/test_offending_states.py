"""Checks that must look at more than the first state, the default or the first call: the offender
is second, numbers are off their defaults, and calls are repeated with others.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import close

import ramify as rf
from ramify.contact.robot_on_ground import ContactText
from ramify.contact.step_limits import damping_rate
from ramify.envs import RobotVectorEnv
from ramify.integrate.machine_steps import open_ways
from ramify.loops.constraints import constraints


def test_bristles_count_as_springs_where_a_method_is_chosen() -> None:
    """Their stiffness alone makes explicit steps unstable: sqrt(k / I) = 3162 and 100 1/s."""
    methods = []
    for stiffness in (1e6, 1e3):
        rod: dict[str, Any] = {"axis": (0, 1, 0), "mass": 1.0, "com": (0.3, 0, 0), "inertia": (0.01,) * 3}  # fmt: skip
        friction = {"coulomb": 1.0, "lugre": {"stiffness": stiffness, "damping": 0.1}}
        m = rf.Builder("arm").link("rod", **rod, friction=friction).model()
        run = rf.rollout(m, [[0.1], [0.2]], [[0.5], [1.0]], steps=50, dt=2e-3)
        assert np.isfinite(run.q).all()
        methods.append(run.method)
    assert methods == ["implicit_extrapolation", "rk4"]


@pytest.mark.parametrize("name", ["slider_crank", "four_bar", "stewart_platform"])
def test_open_ways_keep_loops_closed(name: str) -> None:
    """J times each of them is zero, also where slides and hinges have different sizes."""
    m = rf.load(name)
    q = m.assemble().q
    J, ways = constraints(m, q).J, open_ways(m, q)
    assert ways.shape == (m.nv, m.nv - constraints(m, q).rank)
    close(J @ ways, 0.0, atol=1e-10 * np.abs(J).max() * np.abs(ways).max(), of="J ways")


def test_the_ground_is_judged_by_the_state_that_is_fastest_on_it() -> None:
    """The step is short enough for the first posture and too long for the second."""
    m = rf.load("quadruped")
    contact = ContactText(m, rf.contact.Firm().fitted(m))
    rng = np.random.default_rng(3)
    q = np.tile(m.neutral(), (20, 1))
    q[:, 2], q[:, 6:] = 2.0, rng.uniform(-1.0, 1.0, (20, 12))
    rates = np.array([damping_rate(contact, row[None]) for row in q])
    pair = q[[int(np.argmin(rates)), int(np.argmax(rates))]]
    assert rates.max() > 1.3 * rates.min()
    dt = 2.785 / np.sqrt(rates.min() * rates.max())  # between the limits of rk4
    options: dict[str, Any] = {"steps": 1, "dt": dt, "ground": "firm", "method": "rk4"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rf.rollout(rf.load("quadruped"), pair[:1], np.zeros((1, m.nv)), **options)
    with pytest.warns(RuntimeWarning, match=re.escape(f"decays at {rates.max():.3g} 1/s")):
        rf.rollout(rf.load("quadruped"), pair, np.zeros((2, m.nv)), **options)


@pytest.mark.parametrize("law", [rf.contact.Firm, rf.contact.Dusty])
def test_numbers_that_a_ground_leaves_open_follow_from_those_given(law: Any) -> None:
    """c = 2 zeta sqrt(k m), c_h = 0.5 s k, whichever of them are given."""
    m = rf.load("quadruped")
    weight = m.mass * 9.81
    for given in ({}, {"stiffness": 3e4}, {"overdamping": 2.0}, {"stiffness": 3e4, "overdamping": 0.7}):  # fmt: skip
        made = law(**given).fitted(m)
        k = given.get("stiffness", weight / 0.05)
        close(made.stiffness, k, 1e-3, of="stiffness")
        zeta = given.get("overdamping", 10.0)
        close(made.damping, 2.0 * zeta * np.sqrt(made.stiffness * m.mass), 1e-12, of="damping")
        close(made.horizontal_damping, 0.5 * made.stiffness, 1e-12, of="horizontal damping")
    assert law(horizontal_damping=7.0).fitted(m).horizontal_damping == 7.0
    assert law(damping=5.0).fitted(m).damping == 5.0
    if law is rf.contact.Firm:
        fast = law(top_speed=2.0).fitted(m)
        close(fast.full_depth, 2.0 * fast.damping / fast.stiffness, 1e-12, of="full depth")
        assert law(full_depth=0.3).fitted(m).full_depth == 0.3


def test_a_state_that_is_not_a_number_has_failed() -> None:
    """The second of three robots becomes NaN in all entries; it ends, starts anew and is named, and
    the others go on.
    """
    m = rf.load("planar_3r")
    begun = np.zeros((3, 3))

    def start(rng: np.random.Generator, n: int) -> Any:
        v = begun.copy() if n == 3 else np.zeros((n, 3))
        if n == 3:
            v[1] = 1e180, -3e180, 2e180
        return np.full((n, 3), 0.3), v

    env = RobotVectorEnv(m, 3, reward=lambda a, b: 1.0, start=start, scale=1.0, dt=1e-3, substeps=3)
    observation, reward, ended, cut, info = env.step(np.zeros((3, 3)))
    assert np.isfinite(observation).all()
    assert info["failed"].tolist() == [False, True, False]
    assert ended.tolist() == [False, True, False]
    assert not cut.any()
    assert reward.tolist() == [1.0, 0.0, 1.0]
    np.testing.assert_array_equal(observation[1], [0.3] * 3 + [0.0] * 3)
    np.testing.assert_array_equal(observation[0], observation[2])


def test_a_second_joint_beyond_its_limits_is_warned_of() -> None:
    """Catches: after the first warning of a robot no other joint was named."""
    rod: dict[str, Any] = {"axis": (0, 1, 0), "mass": 1.0, "com": (0.3, 0, 0), "inertia": (0.01,) * 3}  # fmt: skip
    made = rf.Builder("arm").link("a", **rod, limits=(-1.0, 1.0))
    m = made.link("b", "a", **rod, limits=(-2.0, 2.0)).model()
    still, options = np.zeros((2, 2)), {"steps": 1, "dt": 1e-3}
    with pytest.warns(RuntimeWarning, match=r"'a' starts at 1.5, outside its limits \(-1, 1\)"):
        rf.rollout(m, [[0.0, 0.0], [1.5, 0.0]], still, **options)
    with pytest.warns(RuntimeWarning, match=r"'b' starts at -2.3, outside its limits \(-2, 2\)"):
        rf.rollout(m, [[0.0, 0.0], [1.5, -2.3]], still, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rf.rollout(m, [[0.0, 0.0], [1.5, -2.3]], still, **options)  # each once


@pytest.mark.parametrize("count", [127, 128, 257])
def test_gradients_of_large_batches_have_every_state(count: int) -> None:
    """Fewer states than threads share, as many, and more that do not divide: each as if alone."""
    m = rf.load("two_link")
    rng = np.random.default_rng(0)
    q, v, by_q, by_v = rng.uniform(-1.0, 1.0, (4, count, 2))
    tau = rng.normal(size=(count, 3, 2))

    def gradient(i: Any) -> Any:
        run = rf.rollout(m, q[i], v[i], steps=3, dt=1e-2, tau=tau[i], method="rk4")
        return run.gradient(by_q[i], by_v[i])

    before = rf.threads()
    rf.threads(3)
    try:
        every = gradient(slice(None))
    finally:
        rf.threads(before)
    for i in (0, 63, 64, 85, count - 2, count - 1):
        alone = gradient(i)
        for name in ("q0", "v0", "tau"):
            close(getattr(every, name)[i], getattr(alone, name), 1e-12, 1e-12, f"{name} of {i}")


@pytest.mark.parametrize(
    "parts",
    [
        {"algorithms": ["acceleration"]},
        {"algorithms": ["acceleration"], "derivatives": True},
        {"algorithms": [], "step": "rk4"},
        {"algorithms": [], "step": "implicit_euler"},
        {"algorithms": [], "ground": "firm"},
    ],
    ids=str,
)
def test_c_code_of_a_joint_that_moves_no_mass_is_refused(parts: Any, tmp_path: Path) -> None:
    """Catches: ZeroDivisionError, as of a gripper without masses in a humanoid's file."""
    body: dict[str, Any] = {"mass": 1.0, "com": (0.3, 0, 0), "inertia": (0.1,) * 3}
    made = rf.Builder("arm").link("a", axis=(0, 1, 0), **body, points={"tip": (0.5, 0, 0)})
    m = made.link("finger", "a", axis=(0, 1, 0)).model()
    with pytest.raises(rf.RamifyError, match="'finger' of 'arm' moves no mass"):
        rf.to_c(m, tmp_path, **parts)
    assert not list(tmp_path.iterdir())
