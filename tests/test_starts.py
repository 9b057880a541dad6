"""Starts of runs: rows of NaN in batches, and starts that a prescribed motion replaces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from closed_systems import four_bar
from comparing import close

import ramify as rf
from ramify.scenario_files.scenario import read_scenario


@pytest.fixture(scope="module")
def arm() -> rf.Model:
    return rf.load("planar_3r")


@pytest.mark.parametrize("part", ["q0", "v0", "both"])
@pytest.mark.parametrize("unknown", [0, 2])
def test_robots_with_loops_go_on_beside_states_of_nan(part: str, unknown: int) -> None:
    model = four_bar()
    cranks = np.array([0.3, 0.5, 0.9])
    state = model.assemble({"crank": cranks}, {"crank": 2.0 * cranks})
    q, v = state.q, state.v
    good = [i for i in range(3) if i != unknown]
    options: dict[str, Any] = {"steps": 12, "dt": 1e-3, "every": 4}
    want = rf.rollout(model, q[good], v[good], **options)
    q, v = np.array(q), np.array(v)
    for x in {"q0": [q], "v0": [v], "both": [q, v]}[part]:
        x[unknown] = np.nan
    run = rf.rollout(model, q, v, **options)
    assert np.array_equal(run.q[good], want.q)
    assert np.array_equal(run.v[good], want.v)
    assert np.isnan(run.q[unknown]).all()
    assert np.isnan(run.v[unknown]).all()
    assert np.flatnonzero(run.status.failed).tolist() == [unknown]
    assert run.singular is not None
    assert not run.singular.any()


def test_rates_of_nan_pass_where_all_states_share_their_coordinates(arm: rf.Model) -> None:
    v = np.array([[0.1, 0.2, 0.3], [np.nan] * 3])
    run = rf.rollout(arm, np.zeros(3), v, steps=3, dt=1e-3)
    assert run.status.failed.tolist() == [False, True]
    v[1, 0] = 0.0
    with pytest.raises(rf.StateError, match=r"v0\[1\] of state 1 is nan"):
        rf.rollout(arm, np.zeros(3), v, steps=3, dt=1e-3)


def test_states_of_nan_are_marked_in_a_grid_with_parameters(arm: rf.Model) -> None:
    q = np.array([[[0.1, 0.2, 0.3]], [[np.nan] * 3]])
    masses = {"link1.mass": np.array([1.0, 2.0, 3.0])}
    run = rf.rollout(arm, q, np.zeros((2, 1, 3)), steps=2, dt=1e-3, parameters=masses)
    assert run.status.failed.tolist() == [[False] * 3, [True] * 3]


@pytest.mark.parametrize("every", [None, 1])
def test_states_of_nan_stay_so_under_a_prescribed_motion(arm: rf.Model, every: int | None) -> None:
    hold = rf.control.Prescribed(rf.motion.Hold([0.0, 0.0, 0.0]))
    q = [[0.0] * 3, [np.nan] * 3]
    run = rf.rollout(arm, q, np.zeros((2, 3)), steps=2, dt=1e-3, control=hold, every=every)
    assert np.isnan(run.q[1]).all()
    assert not run.q[0].any()


def test_step_checks_leave_states_of_nan_out(arm: rf.Model) -> None:
    q, v = np.array([[0.1, 0.2, 0.3], [np.nan] * 3]), np.ones((2, 3))
    options: dict[str, Any] = {"dt": 0.01, "t_end": 0.1}
    check, alone = rf.check_step(arm, q, v, **options), rf.check_step(arm, q[:1], v[:1], **options)
    close(check.error, alone.error, 1e-12, of="errors")
    assert check.error[-1] > 0.0
    with pytest.raises(rf.StateError, match="state 1 is NaN"):
        rf.check_step(arm, q, v, quantity=lambda q, v: q[:, 0], **options)


def test_step_checks_refuse_states_that_fail_in_the_shortest_steps() -> None:
    slide = {"joint": "prismatic", "axis": (1, 0, 0), "mass": 1.0, "damping": 1e7}
    model = rf.Builder("stiff").link("a", **slide).model()
    start = [[0.0], [0.0]], [[1.0], [0.0]]
    failing = pytest.raises(rf.SimulationError, match=r"shortest steps state \(0,\) failed")
    with failing, pytest.warns(RuntimeWarning):
        rf.check_step(model, *start, dt=1e-2, t_end=1.0, method="rk4")


# ---- starts that a prescribed motion replaces ----


def test_a_start_that_a_prescribed_motion_replaces_is_reported(arm: rf.Model) -> None:
    hold = rf.control.Prescribed(rf.motion.Hold([0.0, 0.5, 0.0]))
    text = r"replaces q0 of 'joint1' \(0, not 1\) and v0 of 'joint3' \(0, not 5\);"
    with pytest.warns(RuntimeWarning, match=text):
        rf.simulate(arm, 0.01, [1.0, 0.5, 0.0], [0.0, 0.0, 5.0], control=hold)
    q, v = [[0.0, 0.5, 0.0], [1.0, 0.5, 0.0]], [0.0, 0.0, 5.0]
    with pytest.warns(RuntimeWarning, match=text):
        rf.rollout(arm, q, v, steps=2, dt=1e-3, control=hold)
    rf.simulate(arm, 0.01, control=hold)
    rf.simulate(arm, 0.01, [0.0, 0.5, 0.0], control=hold)


def test_rollouts_that_go_on_along_a_motion_are_not_warned_of(arm: rf.Model) -> None:
    motion = rf.motion.Cycloid([0.0] * 3, [1.0, 2.0, 3.0], 0.5)
    law = rf.control.Prescribed(motion)
    first = rf.rollout(arm, np.zeros(3), np.zeros(3), steps=100, dt=1e-3, control=law)
    options: dict[str, Any] = {"steps": 1, "dt": 1e-3, "control": law}
    rf.rollout(arm, first.q, first.v, t0=0.1, **options)
    with pytest.warns(RuntimeWarning, match="motion is at t = 0 s"):
        rf.rollout(arm, first.q, first.v, **options)


SCENARIO = """
name: held
robot: planar_3r
t_end: 0.01
control: {type: inverse}
motion: {type: hold, q: [0.1, 0.2, 0.3]}
"""


def test_scenarios_report_what_their_start_says_alone() -> None:
    scenario = read_scenario(SCENARIO, "held.yaml")
    scenario.run()
    elsewhere = rf.control.Prescribed(rf.motion.Hold([1.0, 1.0, 1.0]))
    close(scenario.run(control=elsewhere).q[0], [1.0] * 3, of="start")
    with pytest.warns(RuntimeWarning, match=r"replaces q0 of 'joint2' \(0.2, not 0.9\);"):
        scenario.run(initial={"q": {"joint2": 0.9}})
