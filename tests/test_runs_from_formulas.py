"""Runs whose rows follow from formulas: audits of a free flight that starts late, sampled integrals,
states that failed before, heat of a machine on a ground, singular postures state by state.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparing import close
from scipy.spatial.transform import Rotation

import ramify as rf
from ramify.core.arrays import Array
from ramify.integrate.singular_postures import Watch
from ramify.runs.audit import audit
from ramify.runs.run_record import Run, Work

GRAVITY = np.array([0.4, -3.0, 1.0])


def flight(first: float = 2.0, row: int = 61, factor: float = 1.0) -> Run:
    """A thrown body that spins about a principal axis: its centre of mass flies along a parabola.
    From a row on its spin has another size, as if something had turned it.
    """
    com, spin = np.array([0.1, -0.2, 0.3]), np.array([0.0, 0.0, 1.3])
    b = rf.Builder("flyer", gravity=GRAVITY.tolist())
    b.link("hull", joint="free", mass=2.0, com=(0.1, -0.2, 0.3), inertia=(0.2, 0.3, 0.5))
    model = b.model()
    t = first + np.linspace(0.0, 1.5, 61)
    s = (t - first)[:, None]
    centre = np.array([1.0, 2.0, 3.0]) + s * [0.5, 1.0, -2.0] + 0.5 * s**2 * GRAVITY
    speed = np.array([0.5, 1.0, -2.0]) + s * GRAVITY
    attitude = Rotation.from_rotvec([0.3, -0.4, 0.2]) * Rotation.from_rotvec(s * spin)
    arm = attitude.apply(com)
    w = attitude.apply(spin)
    share = np.where(np.arange(61) < row, 1.0, factor)[:, None]
    q = np.concatenate([centre - arm, attitude.as_quat(scalar_first=True)], axis=1)
    v = np.concatenate([speed - np.cross(share * w, arm), share * spin], axis=1)
    a = np.zeros_like(v)
    a[:, :3] = GRAVITY - np.cross(w, np.cross(w, arm))
    none = np.zeros(61)
    options = {"rtol": 1e-8, "damping": [0.0] * 6}
    return Run(model, t, q, v, a, np.zeros_like(v), Work(none, none), options, {"steps": 100})


def test_a_free_flight_passes_its_audit_whenever_it_starts() -> None:
    """All four balances; each breaks where its quantity is changed, from that row on."""
    for first in (0.0, 2.0, -5.0):
        run = flight(first)
        found = audit(run, 1e-10)
        assert [check.name for check in found.checks] == ["energy", "internal energy", "linear momentum", "angular momentum"]  # fmt: skip
        assert found.passed, str(found)
        for check in found.checks:
            assert check.scale > 0.0 or check.name in ("internal energy", "linear momentum")
        close(run.momentum.linear - run.momentum.linear[0], 2.0 * np.outer(run.t - run.t[0], GRAVITY), 1e-9, 1e-9, "momentum")  # fmt: skip
    run = flight()
    for factor, did in ((1.01, "gained"), (0.99, "lost")):
        broken = audit(flight(2.0, 30, factor), 1e-6)
        assert [check.passed for check in broken.checks] == [False, False, True, False]
        assert broken.energy.first == broken.momentum[1].first == 30
        at = broken.first_break
        assert at is not None
        assert (at.row, at.body) == (30, "hull")
        close(at.time, run.t[30], 0.0, 0.0, "time")
        assert f"failed at t = {run.t[30]:.6g} s, body 'hull'" in broken.verdict
        change = 0.5 * 0.5 * 1.3**2 * (factor**2 - 1.0)
        assert f"body 'hull' has {did} {abs(change):.3g} J" in at.reason
    pushed = run.v.copy()
    pushed[20:, 1] += 1e-2
    found = audit(replace(run, v=pushed), 1e-7)
    assert [check.name for check in found.momentum if not check.passed] == ["linear momentum"]
    assert found.momentum[0].first == 20


def test_what_an_audit_says_in_numbers() -> None:
    run = flight()
    work, lost = np.linspace(0.0, 3.0, 61), np.linspace(0.0, 1.0, 61)
    found = audit(replace(run, work=Work(work, lost), options={"method": "implicit_euler"}), 1e-6)
    close(found.error, lost - work, 1e-9, 1e-9, "error")
    close(found.own_dissipation, 2.0, 1e-9, 0.0, "dissipated by the steps")
    assert "the implicit steps themselves dissipated 2 J" in str(found)
    assert audit(replace(run, options={"method": "rk4"})).own_dissipation is None
    figures = found.to_dict()
    kinetic, potential = run.energy.kinetic, run.energy.potential
    close([*figures["kinetic"], *figures["potential"]], [*kinetic[[0, -1]], *potential[[0, -1]]], 1e-12, 0.0, "ends")  # fmt: skip
    assert (figures["actuator_work"], figures["dissipated"], figures["passed"]) == (3.0, 1.0, False)
    (energy, *_) = figures["checks"]
    close([energy["largest_error"], energy["at"]], [2.0, run.t[-1]], 1e-9, 0.0, "largest error")
    moved = max(np.abs(potential - potential[0]).max(), 3.0, found.energy.scale)
    close(energy["scale"], moved, 1e-9, 0.0, "scale")
    close(energy["relative_error"], 2.0 / moved, 1e-9, 0.0, "relative")
    assert energy["limit"] > 1e-6 * energy["scale"]
    assert energy["limit"] < 1e-6 * energy["scale"] + 1e-11


# ---- controllers ----


@pytest.mark.parametrize("rate", [20.0, 10.0])
def test_integrals_of_a_sampled_controller_advance_by_a_period(rate: float) -> None:
    """z += e / rate at each sample; the force is constant between samples, in runs and rollouts."""
    b = rf.Builder("two")
    b.link("a", joint="prismatic", mass=1.0, axis=(1, 0, 0))
    b.link("b", joint="prismatic", mass=2.0, axis=(1, 0, 0))
    model = b.model()
    law = rf.control.PID(rf.motion.Quintic([0.0, 0.3], [1.0, -1.0], 1.0), kp=[9.0, 4.0], ki=[5.0, 3.0], kd=[2.0, 1.0], rate_hz=rate)  # fmt: skip
    kp, ki, kd = np.array([9.0, 4.0]), np.array([5.0, 3.0]), np.array([2.0, 1.0])
    x, w, z = np.array([0.2, -0.1]), np.array([0.5, 0.4]), np.zeros(2)
    q, v, forces = [x], [w], []
    dt, count = 0.05, 8
    for k in range(count):
        if k % round(1.0 / (rate * dt)) == 0:
            at = law.motion.at(k * dt)
            force = kp * (at.q - x) + ki * z + kd * (at.v - w)
            z = z + (at.q - x) / rate
        forces.append(force)
        a = force / [1.0, 2.0]
        x, w = x + dt * w + 0.5 * dt**2 * a, w + dt * a
        q.append(x)
        v.append(w)
    run = rf.simulate(model, count * dt, q[0], v[0], law, dt_out=dt)
    close(run.q, q, 1e-7, 1e-8, "coordinates")
    close(run.tau[1:], forces, 1e-6, 1e-7, "forces")
    close(run.tau[0], forces[0], 1e-9, 1e-9, "the first force")
    many = rf.rollout(model, np.array([q[0], q[0]]), np.array([v[0], v[0]]), steps=count, dt=dt, control=law, every=1, method="rk4")  # fmt: skip
    close(many.q[1], q[1:], 1e-8, 1e-9, "rollout")


def test_states_that_failed_before_stay_so_and_need_no_forces() -> None:
    b = rf.Builder("slide").link("a", joint="prismatic", mass=2.0, axis=(1, 0, 0))
    model = b.model()
    q, v = np.array([[0.1], [np.nan], [0.3], [0.4]]), np.array([[1.0], [np.nan], [2.0], [3.0]])
    tau = np.ones((4, 5, 1)) * np.array([1.0, np.nan, 3.0, 4.0])[:, None, None]
    given = tau.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = rf.rollout(model, q, v, steps=5, dt=0.1, tau=tau, every=1)
    assert np.array_equal(tau, given, equal_nan=True)
    assert found.status.failed.tolist() == [False, True, False, False]
    assert np.isnan(found.q[1]).all()
    for i, force in ((0, 1.0), (2, 3.0), (3, 4.0)):
        t = found.t
        close(
            found.q[i, :, 0], q[i, 0] + v[i, 0] * t + 0.25 * force * t**2, 1e-9, 0.0, f"state {i}"
        )


def test_heat_of_a_machine_on_a_ground_is_told_apart() -> None:
    """What the ground and each part of the machine lose: columns of one state vector."""
    b = rf.Builder("foot")
    b.link("trunk", joint="prismatic", axis=(0, 0, 1), mass=3.0, damping=4.0)
    b.link("leg", "trunk", axis=(0, 1, 0), mass=0.5, com=(0, 0, -0.2), inertia=(0.01, 0.01, 0.01),
           friction={"coulomb": 0.3, "slip_speed": 0.05}, points={"foot": (0.1, 0, -0.4)})  # fmt: skip
    model = b.model()
    options: dict[str, Any] = {"ground": rf.contact.HuntCrossley(stiffness=8e3), "damping": [0.5, 0.0], "dt_out": 2e-3}  # fmt: skip
    run = rf.simulate(model, 0.3, [0.45, 0.1], [-0.5, 0.4], **options)
    losses = run.stats["machine_losses"]
    assert [*losses] == ["damping", "friction"]
    spline = np.trapezoid

    def lost(power: Array) -> float:
        return float(spline(power, run.t))

    close(losses["damping"], lost(4.0 * run.v[:, 0] ** 2), 2e-3, 0.0, "damping")
    close(losses["friction"], lost(run.passive.loss["friction"]), 2e-2, 0.0, "friction")
    assert run.contacts is not None
    heat = run.contacts.dissipated[-1]
    assert heat > 0.05
    viscous = lost(0.5 * run.v[:, 0] ** 2)
    close(run.work.dissipated[-1], heat + sum(losses.values()) + viscous, 1e-4, 0.0, "in all")
    assert run.audit.passed
    off = rf.simulate(model, 0.05, [0.9, 0.1], passive=False, stops=True, **options)
    assert (off.options["passive"], off.options["stops"], off.options["efforts"]) == (False, True, True)  # fmt: skip
    assert off.options["damping"] == [0.5, 0.0]


# ---- loops ----


def test_states_that_meet_a_singular_posture_are_marked_when_they_do() -> None:
    """A parallelogram folds where all bars are in line; each state has its own time."""
    b = rf.Builder("parallelogram", gravity=(0, 0, 0))
    b.link("crank", axis=(0, 0, 1), mass=1.0, com=(0.25, 0, 0), inertia=(0.01, 0.01, 0.01))
    b.link("rod", "crank", at=(0.5, 0, 0), axis=(0, 0, 1), mass=1.0, com=(0.5, 0, 0), inertia=(0.01, 0.01, 0.1))  # fmt: skip
    b.link("rocker", axis=(0, 0, 1), at=(1.0, 0, 0), mass=1.0, com=(0.25, 0, 0), inertia=(0.01, 0.01, 0.01))  # fmt: skip
    b.loop("pin", "revolute", ("rod", (1.0, 0, 0)), ("rocker", (0.5, 0, 0)), axis=(0, 0, 1))
    model = b.model()

    def at(angle: Any) -> Array:
        x = np.atleast_1d(angle)
        return np.stack([x, -x, x], axis=1)

    start = np.array([0.8, 1.0, 1.2])
    watch = Watch(model, at(start), (), 0.01)
    for t, angles in ((0.1, [0.7, 0.9, 1.4]), (0.2, [0.2, 0.5, 1.6]), (0.3, [-0.2, 0.2, 1.9]), (0.4, [-0.5, -0.3, 2.2])):  # fmt: skip
        watch.check(t, at(np.array(angles)))
    assert watch.met.tolist() == [True, True, False]
    close(watch.times[:2], [0.3, 0.4], 0.0, 0.0, "times")
    assert np.isnan(watch.times[2])
    watch.compare(np.array([[1.0, -1.0, 1.0]] * 3), np.array([[1.0, -1.0, 1.0], [1.3, -1.0, 1.0], [1.0, -1.0, 1.0]]))  # fmt: skip
    watch.compare(np.array([[1.0, -1.0, 1.0]] * 3), np.array([[1.0, -1.0, 1.0], [1.1, -1.0, 1.0], [1.0, -1.0, 1.0]]))  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        watch.warn()
    said = [str(w.message) for w in caught]
    assert "in 1 of 3 states" in said[0]
    assert "'crank' by up to 0.3 rad/s" in said[0]
    assert "2 of 3 states of 'parallelogram' pass a singular posture" in said[1]
    assert "(states 0, 1)" in said[1]
