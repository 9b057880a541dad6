"""The audit: sound runs pass, runs with something wrong in them fail, at the time and at the body
where it was put.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from reference_runs import changed, pendulum, run
from scipy.special import ellipj, ellipk

import ramify as rf
from ramify.api.result import Result
from ramify.runs.audit import audit
from ramify.runs.energy_blame import shares_of
from ramify.runs.run_record import Work


def exact_pendulum(amplitude: float = 1.0) -> Result:
    """The closed form: sin(q/2) = k sn(K - w t), from rest at the amplitude; nothing is integrated."""
    model = pendulum()
    w, k = np.sqrt(9.81), np.sin(0.5 * amplitude)
    t = np.linspace(0.0, 4.0, 401)
    sn, cn, _, _ = ellipj(ellipk(k * k) - w * t, k * k)
    q = 2.0 * np.arcsin(k * sn)
    v = -2.0 * k * w * cn
    a = -(w**2) * np.sin(q)
    none = np.zeros_like(t)
    return Result(
        model,
        t,
        q[:, None],
        v[:, None],
        a[:, None],
        none[:, None],
        Work(none, none),
        {"rtol": 1e-13},
    )


@pytest.fixture(scope="module")
def arm() -> Result:
    """A 3R arm falling under friction and a torque that does work."""
    model = rf.load("planar_3r")
    return run(
        model,
        [1.0, 0.2, -0.3],
        [0.0, 0.5, 0.0],
        1.0,
        damping=0.3,
        control=lambda t, q, v: np.array([3.0, 1.0, 0.2]) * np.cos(3 * t),
    )


@pytest.fixture(scope="module")
def space() -> Result:
    """A free-flying robot whose joints are driven and whose base nothing touches."""
    model = rf.load("space_3_link", base="free")
    v = 0.3 * np.arange(1.0, model.nv + 1.0) / model.nv
    return run(
        model,
        model.neutral(),
        v,
        2.0,
        control=lambda t, q, v: np.r_[np.zeros(6), 2.0 * np.sin(t + np.arange(model.nv - 6))],
    )


def test_a_closed_form_balances_to_rounding() -> None:
    found = exact_pendulum().audit
    assert found.passed
    assert found.first_break is None
    assert found.energy.relative < 1e-13
    assert found.tolerance == pytest.approx(2 * 401 * 1e-13)
    assert "PASS" in str(found)


def test_work_and_losses_enter_the_balance(arm: Result) -> None:
    assert arm.work.actuator[-1] != 0.0
    assert arm.work.dissipated[-1] > 0.0
    assert arm.audit.passed, str(arm.audit)
    assert arm.audit.energy.relative < 1e-8
    e = arm.energy
    expected = e.total - e.total[0] - arm.work.actuator + arm.work.dissipated
    np.testing.assert_array_equal(arm.audit.error, expected)
    assert not arm.audit.momentum


def test_body_energies_account_for_the_whole(arm: Result) -> None:
    """The shares of the bodies and the quadrature of the recorded work add up to the error of the
    balance.
    """
    row = len(arm) - 1
    shares, doubt = shares_of(arm, row)
    assert np.abs(shares).max() < 1e-6 * arm.audit.energy.scale
    assert (np.abs(shares) <= np.maximum(doubt, 1e-9)).all()


@pytest.mark.parametrize("body", [0, 1, 2])
def test_a_joint_that_jumps_is_named(arm: Result, body: int) -> None:
    v = np.array(arm.v)
    v[50:, body] += 0.5
    found = changed(arm, v=v).audit
    assert not found.passed
    at = found.first_break
    assert at is not None
    assert (at.row, at.time) == (50, pytest.approx(arm.t[50]))
    assert at.body is not None
    for text in (str(found), found.verdict):
        assert f"t = {arm.t[50]:.6g} s" in text
        assert at.body in text
    assert "FAIL" in str(found)


def test_the_last_link_alone_is_blamed_when_only_it_gains() -> None:
    """Only the last link moves faster than it should: no other body can be at fault."""
    model = rf.load("planar_3r")
    good = run(model, [0.5, 0.0, 0.0], [0.0, 0.0, 0.0], 0.5)
    v = np.array(good.v)
    v[20:, 2] += 1.0
    at = changed(good, v=v).audit.first_break
    assert at is not None
    assert (at.row, at.body) == (20, model.bodies[2].name)


def test_forces_that_do_not_fit_the_motion_are_named(arm: Result) -> None:
    """Joint forces and their work say one thing, the motion another: the joint's body is named."""
    tau = np.array(arm.tau)
    tau[:, 1] += 5.0
    power = (tau * arm.v).sum(axis=1)
    work = np.concatenate([[0.0], np.cumsum(0.5 * (power[1:] + power[:-1]) * np.diff(arm.t))])
    at = changed(arm, tau=tau, work=Work(work, arm.work.dissipated)).audit.first_break
    assert at is not None
    assert at.body == arm.model.bodies[1].name


def test_work_recorded_wrongly_is_nobodys_fault(arm: Result) -> None:
    at = changed(
        arm, work=Work(arm.work.actuator + 2.0 * arm.t, arm.work.dissipated)
    ).audit.first_break
    assert at is not None
    assert at.body is None
    assert "work and losses recorded" in at.reason


def test_a_little_less_gravity_or_more_speed_is_caught(arm: Result) -> None:
    lighter = rf.with_gravity(arm.model, tuple(0.999 * np.array(arm.model.gravity)))
    assert not changed(arm, model=lighter).audit.passed
    assert not changed(arm, v=arm.v * 1.001).audit.passed


def test_a_slow_drift_is_found_where_it_leaves_the_limit() -> None:
    good = exact_pendulum()
    v = np.array(good.v) * (1.0 + 1e-6 * good.t[:, None])
    bad = changed(good, v=v, options={"rtol": 1e-9})
    first = bad.audit.energy.first
    assert first is not None
    assert (
        np.abs(bad.audit.error[:first]).max()
        <= bad.audit.energy.limit
        < abs(bad.audit.error[first])
    )


def test_momentum_of_a_free_flyer(space: Result) -> None:
    linear, angular = space.audit.momentum
    assert space.audit.passed, str(space.audit)
    assert linear.relative < 1e-8
    assert angular.relative < 1e-8


def test_momentum_that_changes_is_found(space: Result) -> None:
    v = np.array(space.v)
    v[30:, :3] = v[30:, [1, 2, 0]]
    found = changed(space, v=v).audit
    assert not found.momentum[0].passed
    assert not found.passed
    assert found.first_break is not None
    assert found.first_break.row == 30


def test_momentum_in_free_fall_less_what_gravity_gave() -> None:
    model = rf.with_gravity(rf.load("space_3_link", base="free"), (0.0, 3.0, -9.81))
    found = run(model, model.neutral(), 0.2 * np.ones(model.nv), 1.0).audit
    assert [check.name for check in found.momentum] == ["linear momentum", "angular momentum"]
    assert found.passed, str(found)


def test_momentum_is_claimed_only_where_it_holds(space: Result, arm: Result) -> None:
    tau = np.array(space.tau)
    tau[3, 0] = 1e-9
    assert not changed(space, tau=tau).audit.momentum  # the base is pushed
    assert not changed(space, options={"ground": "soft"}).audit.momentum
    assert not changed(space, options={"damping": 0.1}).audit.momentum
    lost = Work(space.work.actuator, space.t)
    assert not changed(space, work=lost).audit.momentum
    assert (
        len(
            changed(
                space, work=lost, options={"damping": [0.0] * 6 + [0.1] * (space.model.nv - 6)}
            ).audit.momentum
        )
        == 2
    )
    assert not arm.audit.momentum


def geared(base: str, *related: str) -> rf.Model:
    """A sled or a satellite with two arms, and a gear between two of its coordinates."""
    builder = rf.Builder("geared", gravity=(0.0, 0.0, 0.0))
    builder.link("base", joint=base, mass=2.0, inertia=(0.1, 0.2, 0.15))
    for name, axis in (("left", (0, 0, 1)), ("right", (0, 1, 1))):
        builder.link(
            name, parent="base", joint="revolute", axis=axis, mass=1.0, com=(0.3, 0.1, 0),
            inertia=(0.01, 0.02, 0.02),
        )  # fmt: skip
    return rf.with_loop(builder.model(), "gear", "gear", joints=related, ratio=-1.5)


def test_a_gear_between_joints_of_a_free_robot_keeps_its_momentum() -> None:
    model = geared("free", "left", "right")
    v = np.array([0.1, -0.2, 0.3, 0.2, 0.1, -0.1, 0.0, 0.0])
    v = model.assemble(guess=model.neutral(), independent={"left": 0.0}, rates={"left": 1.0}).v + v
    found = run(model, model.neutral(), v, 1.0)
    assert [check.name for check in found.audit.momentum] == ["linear momentum", "angular momentum"]
    assert found.audit.passed, str(found.audit)
    assert np.ptp(found.v[:, :6], axis=0).max() > 1e-3  # the base feels the arms
    pushed = np.array(found.v)
    pushed[50:, :3] *= 1.01
    assert not changed(found, v=pushed).audit.momentum[0].passed


def test_a_gear_on_a_root_joint_holds_on_to_the_base() -> None:
    model = geared("prismatic", "base", "left")
    found = run(model, model.neutral(), np.zeros(model.nv), 0.1)
    assert not found.audit.momentum
    free = geared("prismatic", "left", "right")
    assert len(run(free, free.neutral(), np.zeros(free.nv), 0.1).audit.momentum) == 1


def test_a_planar_base_keeps_its_part_of_the_momentum() -> None:
    model = (
        rf.Builder("sled", gravity=(0.0, 0.0, -9.81))
        .link("base", joint="planar", axis=(0, 0, 1), mass=2.0, inertia=(0.1, 0.1, 0.1))
        .link(
            "arm",
            parent="base",
            joint="revolute",
            axis=(0, 1, 1),
            mass=1.0,
            com=(0.3, 0, 0),
            inertia=(0.01, 0.02, 0.02),
        )
        .model()
    )
    found = run(model, np.zeros(4), np.array([0.3, -0.1, 0.5, 1.0]), 2.0)
    assert len(found.audit.momentum) == 2
    assert found.audit.passed, str(found.audit)
    assert np.ptp(found.momentum.linear[:, 2]) > 1e-3  # across the plane the ground holds it


def test_rest_passes_and_has_no_error() -> None:
    model = pendulum()
    t, still = np.linspace(0.0, 1.0, 5), np.zeros((5, 1))
    found = Result(model, t, still, still, still, still, Work(t * 0, t * 0)).audit
    assert found.passed
    assert found.energy.relative == 0.0
    assert found.tolerance == 1e-3
    assert "no rtol" in str(found)


def test_motion_as_small_as_atol_is_no_failure() -> None:
    """A pendulum whose swing is a few atol: the error is the integrator's right, whatever share of
    the tiny energy it is.
    """
    good = run(pendulum(), [1e-9], [0.0], 2.0, rtol=1e-6)
    assert good.audit.passed, str(good.audit)


def test_a_tolerance_of_ones_own(arm: Result) -> None:
    assert audit(arm, 1e-6).passed
    assert not audit(arm, 1e-15).passed
    for wrong in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(rf.RamifyError, match="finite and positive"):
            audit(arm, wrong)


def test_a_fixed_step_has_no_rtol(arm: Result) -> None:
    assert (
        changed(arm, options={"rtol": 1e-9, "step": 1e-3, "damping": 0.3}).audit.tolerance == 1e-3
    )
    assert changed(arm, options={"rtol": 1e-9, "step": None, "damping": 0.3}).audit.tolerance < 1e-6


def test_unknown_forces_fail_though_the_work_is_known(arm: Result) -> None:
    tau = arm.tau.copy()
    tau[40, 1] = np.nan
    found = changed(arm, tau=tau).audit
    assert not found.passed
    assert found.first_break is not None
    assert found.first_break.row == 40
    assert found.first_break.reason == "tau of 'joint2' is not finite"


def test_nan_forces_fail_where_they_stand(arm: Result) -> None:
    tau, work = np.array(arm.tau), np.array(arm.work.actuator)
    tau[70:, 2] = np.nan
    work[70:] = np.nan
    at = changed(
        arm,
        tau=tau,
        work=Work(work, arm.work.dissipated),
        status="failed: the controller returned NaN",
    ).audit.first_break
    assert at is not None
    assert (at.row, at.body) == (70, arm.model.bodies[2].name)
    assert "not finite" in at.reason


def test_plain_data_for_json(arm: Result) -> None:
    bad = changed(arm, v=arm.v * 1.1, work=Work(arm.work.actuator * np.nan, arm.work.dissipated))
    for found in (arm.audit, bad.audit):
        data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert data["passed"] is found.passed
        assert data["checks"][0]["quantity"] == "energy"
    assert data["first_break"]["row"] == 0


def test_no_body_is_blamed_for_what_rows_far_apart_cannot_tell() -> None:
    """Touches of stops between the rows: shares of the bodies that exceed the error many times."""
    b = rf.Builder("two", gravity=(0, -9.81, 0))
    rod = {"mass": 1.0, "com": (0.25, 0, 0), "inertia": (0, 0.02, 0.02)}
    m = b.link("a", **rod, limits=(-1, 2)).link("b", "a", at=(0.5, 0, 0), **rod, limits=(-1, 1))
    r = rf.simulate(m.model(), 2.0, [0.4, 0.2], step=2e-3, method="rk4", dt_out=0.05)
    found = audit(r, 1e-9).first_break
    assert found is not None
    assert found.body is None
    assert found.reason.startswith("no body stands out: the rows are too far apart to tell")
    assert found.reason.endswith("; shorten the step")
