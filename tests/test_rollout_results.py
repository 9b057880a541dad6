"""States of rollouts as results, and robots with other constants."""

from __future__ import annotations

import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import ramify as rf

ARM = "kuka_kr5"
RNG = np.random.default_rng(0)
START = RNG.uniform(-0.5, 0.5, (4, 6))
STILL = np.zeros((4, 6))
TORQUES = RNG.normal(size=(4, 40, 6)) * [5.0, 5.0, 5.0, 0.1, 0.1, 0.01]
REACH = rf.motion.Cycloid(np.zeros(6), np.ones(6), duration=1.0)


def damped(t, q, v):
    return -0.002 * v


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"control": rf.control.PD(REACH, kp=10.0, kd=1.0)},
        {"control": rf.control.ComputedTorque(REACH, rate_hz=1000.0)},
        {"control": rf.control.Function(damped)},
        {"wrenches": {"link3": [0, 0, 0.5, 0, 9.0, 0]}},
        {"wrenches": {"link3": [0, 0, 0.5, 0, 9.0, 0]}, "method": "implicit_euler"},
        {"damping": 0.01},
    ],
    ids=["free", "pd", "sampled", "function", "wrenches", "implicit", "damped"],
)
def test_a_state_of_a_rollout_is_the_result_of_its_own_simulation(how: dict) -> None:
    m = rf.load(ARM)
    run = rf.rollout(m, START, STILL, steps=40, dt=1e-3, every=1, **how)
    made = run.result(2)
    assert isinstance(made, rf.Result)
    alone = rf.simulate(m, 0.04, START[2], step=1e-3, dt_out=1e-3, **{**how, "method": run.method})
    np.testing.assert_array_equal(made.q[1:], run.q[2])
    for name in ("t", "q", "v", "a", "tau"):
        mine, other = getattr(made, name), getattr(alone, name)
        np.testing.assert_allclose(mine, other, rtol=0, atol=1e-9 * (1.0 + np.abs(other).max()))
    for mine, other in zip(made.work, alone.work, strict=True):
        np.testing.assert_allclose(mine, other, rtol=0, atol=1e-10)
    assert made.audit.passed == alone.audit.passed
    assert (made.desired is None) == (alone.desired is None)
    if "wrenches" in how:
        np.testing.assert_allclose(made.wrenches.values, alone.wrenches.values)
        np.testing.assert_allclose(made.wrenches.work, alone.wrenches.work, atol=1e-12)


def test_held_forces_of_tables_and_policies_are_counted(tmp_path: Path) -> None:
    """Their work is the sum of force times displacement over the steps."""
    m = rf.load(ARM)
    for how, every in (({"tau": TORQUES}, 1), ({"tau": TORQUES}, 10), ({"control": damped}, 1)):
        run = rf.rollout(m, START, STILL, steps=40, dt=1e-3, every=every, **how)
        made = run.result(-1)
        each = rf.rollout(m, START, STILL, steps=40, dt=1e-3, every=1, **how)
        path = np.concatenate([START[-1:], each.q[-1]])
        tau = TORQUES[-1] if "tau" in how else damped(0.0, None, each.result(-1).v[:-1])
        work = (tau * np.diff(path, axis=0)).sum()
        assert made.work.actuator[-1] == pytest.approx(work, rel=1e-6)
        assert made.audit.passed
        np.testing.assert_allclose(made.tau[1:], tau[every - 1 :: every], atol=1e-12)
        assert made.t[0] == 0.0
        assert len(made) == 1 + 40 // every
    assert made.options["control"] == {"type": "python", "object": "damped"}
    made.save(tmp_path / "state.nc")
    assert rf.Result.open(tmp_path / "state.nc").audit.passed
    assert made.report(tmp_path / "state.html").stat().st_size > 1000
    for what in ("q", "tau", "energy", "audit"):
        made.plot(what)


def test_states_with_parameters_of_their_own() -> None:
    m = rf.load(ARM)
    masses, damping, kp = (np.linspace(*ends, 4) for ends in ((1.0, 4.0), (0.0, 2.0), (5.0, 20.0)))
    law = rf.control.PD(REACH, kp=10.0, kd=1.0)
    given = {"link6.mass": masses, "joint2.damping": damping, "control.kp": kp}
    run = rf.rollout(m, START, STILL, steps=40, dt=1e-3, every=4, control=law, parameters=given)
    for i in (0, 3):
        made = run.result(i)
        robot = rf.with_parameters(
            m, {"link6.mass": masses[i], "joint2.damping": float(damping[i])}
        )
        alone = rf.simulate(
            robot, 0.04, START[i], step=1e-3, dt_out=4e-3, method=run.method,
            control=rf.control.PD(REACH, kp=float(kp[i]), kd=1.0),
        )  # fmt: skip
        assert made.model.bodies[-1].mass == masses[i]
        for name in ("q", "v", "a", "tau"):
            np.testing.assert_allclose(getattr(made, name), getattr(alone, name), atol=1e-8)
        np.testing.assert_allclose(made.work.actuator, alone.work.actuator, atol=1e-9)
        np.testing.assert_allclose(made.work.dissipated, alone.work.dissipated, atol=1e-9)
        assert made.audit.passed


def test_states_on_a_ground_with_loops_and_of_a_single_start() -> None:
    s = rf.scenario("biped_fall")
    how = {"ground": "hunt_crossley"}
    made = rf.rollout(s.robot, s.q0, s.v0, steps=200, dt=5e-4, every=20, **how).result()
    alone = rf.simulate(s.robot, 0.1, s.q0, s.v0, step=5e-4, **how)
    np.testing.assert_allclose(made.contacts.force, alone.contacts.force, atol=1e-6)
    np.testing.assert_allclose(made.work.dissipated, alone.work.dissipated, atol=1e-9)
    assert made.audit.passed
    bar = rf.load("four_bar")
    q = np.tile(bar.assemble().q, (2, 3, 1))
    run = rf.rollout(bar, q, 0.0 * q, steps=100, dt=1e-3, every=10, t0=2.0)
    made, alone = run.result(1, -1), rf.simulate(bar, 0.1, q[0, 0], step=1e-3, method=run.method)
    np.testing.assert_allclose(made.loops.multipliers, alone.loops.multipliers, atol=1e-9)
    np.testing.assert_allclose(made.t, alone.t + 2.0)
    assert made.audit.passed


def test_a_state_that_failed_ends_before() -> None:
    m, v0 = rf.load("planar_3r"), np.zeros((3, 3))
    v0[1] = 3e2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        run = rf.rollout(m, 0.0 * v0, v0, steps=50, dt=0.02, method="euler", every=1)
    assert run.status.failed.tolist() == [False, True, False]
    made = run.result(1)
    assert made.status.startswith("failed: ")
    assert len(made) == 1 + np.isfinite(run.q[1]).all(axis=1).sum()
    assert run.result(0).status == "finished"


def test_what_a_rollout_has_not_kept_is_said() -> None:
    m = rf.load(ARM)
    with pytest.raises(rf.SimulationError, match=r"rollout\(…, every=1\) records every step"):
        rf.rollout(m, START, STILL, steps=4, dt=1e-3).result(0)
    copied = pickle.loads(
        pickle.dumps(rf.rollout(m, START, STILL, steps=4, dt=1e-3, every=1, control=damped))
    )
    assert copied.q.shape == (4, 4, 6)
    with pytest.raises(rf.SimulationError, match="or is a copy"):
        copied.result(0)
    thinned = rf.rollout(m, START, STILL, steps=4, dt=1e-3, every=2, control=damped)
    alone = (
        "records them. Run state 2 alone: rf.rollout(m, q0[2], v0[2], …, every=1).result(), with"
    )
    with pytest.raises(rf.SimulationError, match=re.escape(alone)):
        thinned.result(2)
    options = {"steps": 4, "dt": 1e-3, "every": 2, "control": damped}
    with pytest.raises(rf.SimulationError, match=r"every=1\) records them$"):
        rf.rollout(m, START[0], STILL[0], **options).result()
    varied = rf.rollout(m, START, STILL, **options, parameters={"link6.mass": np.ones(4)})
    own = "…, parameters={k: x[-1] for k, x in parameters.items()}, every=1).result()"
    with pytest.raises(rf.SimulationError, match=re.escape(own)):
        varied.result(-1)
    run = rf.rollout(m, START, STILL, steps=4, dt=1e-3, every=2)
    for index in ((), (4,), (0, 0), ("a",), (0.5,)):
        with pytest.raises(rf.SimulationError, match=r"whose batch is \(4,\): give one whole"):
            run.result(*index)


# ---- rf.with_parameters ----


@pytest.mark.parametrize("name", ["kuka_kr5", "puma_560", "four_bar", "quadruped"])
def test_a_robot_with_other_constants_is_that_of_rollouts(name: str) -> None:
    m = rf.load(name, base="free") if name == "quadruped" else rf.load(name)
    rng, values = np.random.default_rng(3), {}
    for key, p in rf.parameters(m).items():
        x = np.array(p.nominal) * (1.1 if key.endswith(".inertia") else rng.uniform(0.9, 1.1))
        if p.least == 0.0:
            x = x + rng.uniform(0.01, 0.2, p.size)
        values[key] = x if p.size > 1 else float(x[0])
    changed = rf.with_parameters(m, values)
    assert type(changed) is rf.Model
    again = rf.parameters(changed)
    for key, x in values.items():
        body = key.rpartition(".")[0]
        if not key.endswith(".payload") and not (
            f"{body}.payload" in values and key.endswith((".mass", ".com", ".inertia"))
        ):
            np.testing.assert_allclose(again[key].nominal, np.atleast_1d(x), rtol=1e-12)
    q, v = (m.assemble().q, np.zeros(m.nv)) if m.loops else m.random(seed=1)
    how = {"steps": 20, "dt": 1e-4, "stops": False, "method": "rk4"}
    varied = rf.rollout(m, q, v, parameters=values, **how)
    plain = rf.rollout(changed, q, v, **how)
    np.testing.assert_allclose(varied.v, plain.v, rtol=1e-12, atol=1e-12)
    assert np.abs(plain.v - v).max() > 1e-4


def test_constants_that_do_not_fit_are_refused() -> None:
    m = rf.load(ARM)
    for given, kind, said in (
        ({"link9.mass": 1.0}, rf.ModelError, "no parameter 'link9.mass'"),
        ({"control.kp": 1.0}, rf.ModelError, "give it to the control itself"),
        ({"ground.stiffness": 1.0}, rf.ModelError, "give it to the ground itself"),
        ({"link3.mass": -1.0}, rf.StateError, "≥ 0"),
        ({"link3.mass": [1.0, 2.0]}, rf.StateError, r"for many use rf\.rollout"),
        ({}, rf.StateError, "at least one"),
        (None, rf.StateError, "must map names"),
    ):
        with pytest.raises(kind, match=said):
            rf.with_parameters(m, given)
