"""Runs whose options changed, clash or are tiny."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import ramify as rf
from ramify.control.base import Controller


def test_a_law_that_changes_is_compiled_anew() -> None:
    """A user's own law may change, or a number it reads, while its repr does not."""
    gain = {"k": -2.0}

    @dataclass(frozen=True)
    class Law(Controller):
        def law(self, robot, driven, t, q, v, z):  # type: ignore[no-untyped-def]
            return [gain["k"] * v[j] for j in driven.v], []

    m = rf.load("planar_3r")
    q0 = np.array([0.3, -0.4, 0.5])
    ends = []
    for k in (-2.0, -0.5):
        gain["k"] = k
        r = rf.simulate(m, 0.3, q0=q0, control=Law())
        direct = rf.simulate(m, 0.3, q0=q0, control=lambda t, q, v, k=k: k * v)
        np.testing.assert_allclose(r.q[-1], direct.q[-1], rtol=0, atol=1e-7)
        rolled = rf.rollout(m, q0, np.zeros(3), steps=300, dt=1e-3, control=Law())
        np.testing.assert_allclose(rolled.q, direct.q[-1], rtol=0, atol=1e-6)
        ends.append(r.q[-1])
    assert np.abs(ends[0] - ends[1]).max() > 1e-3


def test_an_event_that_crosses_twice_within_a_step_is_found() -> None:
    m = rf.with_gravity(rf.load("planar_3r"), (0.0, 0.0, 0.0))
    r = rf.simulate(
        m,
        1.0,
        v0=[1e-3, 0.0, 0.0],
        max_step=0.1,
        events={"win": lambda t, q, v: (t - 0.5) ** 2 - 4e-4},
    )
    assert r.status == "event: win"
    assert r.t[-1] == pytest.approx(0.48, abs=1e-9)


def test_tiny_runs_and_options_that_do_not_belong_together() -> None:
    m = rf.load("planar_3r")
    assert rf.simulate(m, 1e-12).t[-1] == 1e-12
    assert rf.simulate(m, 0.1, max_step=0.01).options["max_step"] == 0.01
    with pytest.raises(rf.SimulationError, match="chooses its own steps"):
        rf.simulate(m, 0.1, method="dop853", step=0.01)
    with pytest.raises(rf.SimulationError, match="events must map"):
        rf.simulate(m, 0.1, events=lambda t, q, v: 1.0)  # type: ignore[arg-type]


def test_a_motion_that_runs_away_is_ended() -> None:
    with pytest.raises(rf.SimulationError, match="runs away: the rate of") as stop:
        rf.simulate(rf.load("planar_3r"), 10.0, control=lambda t, q, v: 1e3 * v)
    assert stop.value.result is not None
