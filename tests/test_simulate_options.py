"""Runs whose options changed, clash or are tiny."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from reference_runs import pendulum

import ramify as rf
from ramify.control.controller import Controller
from ramify.plant.make_field import PlantOptions, make_field


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


@pytest.mark.parametrize("method", ["dop853", "rk4"])
def test_an_event_that_is_zero_at_the_start_waits_for_its_change_of_sign(method: str) -> None:
    """A pendulum starts where the event is zero, comes back there, and only then the run ends."""
    r = rf.simulate(
        pendulum(),
        5.0,
        [0.0],
        [1.0],
        method=method,
        step=1e-3 if method == "rk4" else None,
        events={"back": lambda t, q, v: q[0]},
    )
    assert r.status == "event: back"
    half = np.pi / np.sqrt(9.81)  # half a period, longer by some percent for a large swing
    assert half < r.t[-1] < 1.05 * half
    assert abs(r.q[-1, 0]) < 1e-8


def test_equal_parts_are_compiled_once_and_found_again() -> None:
    """The second run of the same machine finds the right-hand side of the first."""
    m = rf.load("planar_3r")
    control = rf.control.PD(rf.motion.Hold([0.1, 0.2, 0.3]))
    assert make_field(m, control) is make_field(m, control)
    assert make_field(m, control) is not make_field(m, control, PlantOptions(0.1))
    assert make_field(m, control) is not make_field(m, None)
    assert make_field(m, lambda t, q, v: 0.0 * v) is not make_field(m, lambda t, q, v: 0.0 * v)
    other = rf.control.PD(rf.motion.Hold([0.1, 0.2, 0.3]))
    assert make_field(m, other).fingerprint == make_field(m, control).fingerprint
    stiffer = rf.control.PD(rf.motion.Hold([0.1, 0.2, 0.3]), kp=1e3)
    assert make_field(m, stiffer).fingerprint != make_field(m, control).fingerprint


def test_the_key_of_the_right_hand_side_holds_baumgartes_rate() -> None:
    m = rf.load("four_bar")
    keys = {
        make_field(m, None, PlantOptions(stabilisation=rate)).fingerprint
        for rate in (5.0, 10.0, "none")
    }
    assert len(keys) == 3
    assert (
        make_field(m, None, PlantOptions(stabilisation="none")).fingerprint
        == make_field(m).fingerprint
    )


def test_baumgarte_closes_a_gap_at_its_rate() -> None:
    """c = J' v + 2 rate J v + rate^2 phi: phi'' = -2 rate phi' - rate^2 phi, so an open loop at
    rest closes as (1 + rate t) e^(-rate t).
    """
    m, rate = rf.load("four_bar"), 20.0
    q = m.assemble({"crank": 0.3}).q + np.array([0.0, 1e-5, -2e-5])
    opened = m.constraints(q).residual
    found = rf.rollout(m, q, np.zeros(3), steps=1000, dt=1e-4, stabilisation=rate, every=100)
    for t, at in zip(found.t, found.q, strict=True):
        left = m.constraints(at).residual / opened
        assert left == pytest.approx(np.full(2, (1.0 + rate * t) * np.exp(-rate * t)), rel=2e-3)
