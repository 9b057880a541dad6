"""Figures of runs, computed anew from rows that nobody integrated: limits that were reached, drives,
energies, audits, tables; and every warning on both sides of its threshold.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparing import close
from scipy.spatial.transform import Rotation

import ramify as rf
from ramify.core.arrays import Array
from ramify.model.machine import Actuator
from ramify.runs.audit_checks import Check, allowed, free_directions
from ramify.runs.audit_scales import Scales
from ramify.runs.drive_table import drives
from ramify.runs.energy_balance import EnergyBalance
from ramify.runs.limits_reached import (
    limits_reached,
    warn_beyond_stops,
    warn_of_chatter,
    warn_of_degrees,
    warn_of_soft_stops,
)
from ramify.runs.machine_account import machine_figures, machine_lines
from ramify.runs.run_export import _with_angles
from ramify.runs.run_options import recorded_options
from ramify.runs.run_record import Run, Work, json_value
from ramify.runs.step_check import StepCheck, estimated
from ramify.runs.store import labels, variables


def mixed() -> rf.Model:
    """A ball first, so that places in q and v differ; unequal limits and efforts."""
    b = rf.Builder("mixed", gravity=(1.0, -9.0, 2.0))
    solid = {"mass": 1.1, "com": (0.1, 0.2, 0.05), "inertia": (0.02, 0.03, 0.04)}
    b.link("ball", joint="ball", cone=0.6, **solid)
    b.link("slide", "ball", "prismatic", at=(0.2, 0, 0), limits=[(-0.3, 0.5)], effort=7.0,
           backward_effort=4.0, velocity=1.5, armature=0.3, gear=-5.0, **solid)  # fmt: skip
    b.link("hinge", "slide", at=(0.1, 0.3, 0), axis=(0, 1, 0), limits=[(-1.0, 0.8)], effort=3.0,
           velocity=2.0, damping=0.2, spring={"stiffness": 4.0, "rest": 0.1}, **solid)  # fmt: skip
    b.link("wheel", "hinge", at=(0.1, 0.3, 0), axis=(1, 0, 0), **solid)
    return b.model()


def rows(model: rf.Model, count: int = 40, seed: int = 0, **more: Any) -> Run:
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.uniform(0.01, 0.05, count))
    q = np.array([model.random(seed=s)[0] for s in range(count)])
    v, a, tau = (rng.normal(size=(count, model.nv)) * x for x in (1.5, 4.0, 5.0))
    work = Work(np.cumsum(rng.normal(size=count)), np.cumsum(rng.uniform(size=count)))
    return Run(model, t, q, v, a, tau, work, **more)


def said(call: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught]


# ---- limits ----


@pytest.mark.parametrize("stops", [True, False])
def test_limits_that_rows_reach(stops: bool) -> None:
    model = mixed()
    run = rows(model)
    q = run.q.copy()
    q[:, 4] = np.linspace(-0.4, 0.7, len(q))[::-1]
    q[:, 5] = 0.9 * np.sin(3.0 * run.t)
    tau = np.clip(run.tau, [-9] * 3 + [-4, -3, -9], [9] * 3 + [7, 3, 9])
    end = "stop" if stops else "limit"
    angle = np.linalg.norm(Rotation.from_quat(q[:, :4], scalar_first=True).as_rotvec(), axis=1)
    expected = [
        ("ball", "cone", angle - 0.6, False),
        ("slide", f"lower {end}", -0.3 - q[:, 4], False),
        ("slide", f"upper {end}", q[:, 4] - 0.5, False),
        ("hinge", f"lower {end}", -1.0 - q[:, 5], False),
        ("hinge", f"upper {end}", q[:, 5] - 0.8, False),
        ("slide", "effort", np.maximum(tau[:, 3] - 7.0, -4.0 - tau[:, 3]), True),
        ("slide", "velocity", np.abs(run.v[:, 3]) - 1.5, False),
        ("hinge", "effort", np.abs(tau[:, 4]) - 3.0, True),
        ("hinge", "velocity", np.abs(run.v[:, 4]) - 2.0, False),
    ]
    found = limits_reached(model, run.t, q, run.v, tau, stops)
    wanted = []
    for name, what, excess, at in expected:
        there = [k for k, x in enumerate(excess) if x > 0.0 or (at and x == 0.0)]
        if there:
            row = name, what, run.t[there[0]], len(there) / len(q), max(excess[there])
            wanted.append(row)
    assert [x[:2] for x in found] == [x[:2] for x in wanted]
    assert len(found) >= 7
    for one, row in zip(found, wanted, strict=True):
        close(one[2:], row[2:], 1e-9, 1e-12, f"{row[0]}, {row[1]}")
        beyond = one.what != "effort"
        assert ("beyond" in str(one).split(" % ")[1]) == beyond
        assert (f"beyond its {one.what}" in str(one)) == (not stops and "limit" in one.what)


def test_starts_beyond_a_stop_name_the_joint_that_is_furthest_out_once() -> None:
    model = mixed()
    q = np.tile(model.neutral(), (3, 1))
    q[0, 4], q[2, 5], q[1, 5] = 0.51, -1.2, 0.82

    def warned(rows: Array, slack: float) -> list[str]:
        return said(lambda: warn_beyond_stops(model, rows, slack))

    assert not warned(q[:1], 0.0101)
    assert not warned(q[1], 0.021)
    (first,) = warned(q, 0.005)
    assert "'hinge' starts at -1.2, outside its limits (-1, 0.8)" in first
    assert not warned(q, 0.005)  # both have been reported
    fresh = mixed()
    assert len(said(lambda: warn_beyond_stops(fresh, q[0], 0.005))) == 1
    assert len(said(lambda: warn_beyond_stops(fresh, q, 0.005))) == 1


def test_soft_stops_degrees_and_chatter_on_both_sides() -> None:
    model = mixed()
    q = np.tile(model.neutral(), (5, 1))
    for depth, reported in ((0.15, False), (0.17, True)):
        for k, sign, edge in ((2, 1.0, 0.5), (4, -1.0, -0.3)):
            x = q.copy()
            x[k, 4] = edge + sign * depth  # a fifth of the range is 0.16
            lines = said(lambda x=x: warn_of_soft_stops(model, x))
            assert len(lines) == reported
            assert not reported or "'slide' gave way by 0.17, its range is 0.8" in lines[0]
    start = model.neutral()
    for value, reported in ((12.0, False), (13.0, True), (-90.0, True), (720.0, True), (721.0, False), (30.5, False)):  # fmt: skip
        start[5] = value
        lines = said(lambda: warn_of_degrees(model, start))
        assert len(lines) == reported, value
        assert not reported or f"'hinge' = {value:g} looks like degrees; in rad it would be {math.radians(value):.4g}" in lines[0]  # fmt: skip
    start[5], start[4] = 0.0, 45.0  # metres
    assert not said(lambda: warn_of_degrees(model, start))
    for count, jumps, reported in ((60, 8, False), (60, 9, True), (200, 20, False), (200, 21, True)):  # fmt: skip
        tau = np.zeros((count, model.nv))
        tau[: jumps + 1, 3] = np.where(np.arange(jumps + 1) % 2, 7.0, -4.0)
        lines = said(lambda tau=tau: warn_of_chatter(model, tau))
        assert len(lines) == reported, (count, jumps)
        assert not reported or "'slide' jumps between both ends of its effort (-4, 7)" in lines[0]


# ---- drives ----


def trapezoid(t: Array, x: Array) -> float:
    return float(sum(0.5 * (x[1:] + x[:-1]) * np.diff(t)))


def test_every_figure_of_a_drive_over_two_runs() -> None:
    model = mixed()
    motor = Actuator("m", joint="hinge", gear=(-6.0, 0, 0, 0, 0, 0), gain=(0.5, 0, 0), bias=(0, 0, -0.2))  # fmt: skip
    model = replace(model, machine=replace(model.machine, actuators=(motor,)))
    runs = [rows(model, n, seed) for n, seed in ((30, 1), (21, 2))]
    work = [np.cumsum(np.random.default_rng(n).normal(size=(len(r), 6)), axis=0) * 0.02 for n, r in enumerate(runs)]  # fmt: skip
    runs = [replace(r, drive_work=w - w[0]) for r, w in zip(runs, work, strict=True)]
    table = drives(*runs)
    span = sum(r.t[-1] - r.t[0] for r in runs)
    for name, j, armature, gear, effort, speed in (("slide", 3, 0.3, -5.0, 7.0, 1.5), ("hinge", 4, 0.0, -6.0, 3.0, 2.0)):  # fmt: skip
        d = table[name]
        tau, v, a = (np.concatenate([getattr(r, x)[:, j] for r in runs]) for x in ("tau", "v", "a"))

        def mean(f: Callable[[Run], Array]) -> float:
            return sum(trapezoid(r.t, f(r)) for r in runs) / span

        power, output = tau * v, tau - armature * a
        rms = math.sqrt(mean(lambda r, j=j: r.tau[:, j] ** 2))
        close([d.force_peak, d.force_rms], [np.abs(tau).max(), rms], 1e-9, 0.0, f"force of {name}")
        travel = mean(lambda r, j=j: np.abs(r.v[:, j]))
        close([d.speed_peak, d.speed_mean], [np.abs(v).max(), travel], 1e-9, 0.0, "speed")
        close([d.power_peak, d.braking_peak], [power.max(), -power.min()], 1e-9, 0.0, "power")
        total = sum(r.drive_work[-1, j] for r in runs)  # type: ignore[index]
        close(d.energy - d.regenerated, total, 1e-9, 1e-12, "work")
        close(d.power_mean, total / span, 1e-9, 1e-12, "mean power")
        assert d.energy >= sum(max(x, 0.0) for r in runs for x in np.diff(r.drive_work[:, j])) - 1e-12  # type: ignore[index] # fmt: skip
        load = mean(lambda r, j=j, m=armature: np.abs(r.v[:, j]) * np.abs(r.tau[:, j] - m * r.a[:, j]) ** 3)  # fmt: skip
        close(d.gear_load, (load / travel) ** (1 / 3), 1e-9, 0.0, "gear load")
        close([d.force_share, d.speed_share], [d.force_peak / effort, d.speed_peak / speed], 1e-12)
        assert (d.gear, d.unit) == (gear, "N" if name == "slide" else "N m")
        close(d.output_peak, np.abs(output).max(), 1e-12, 0.0, "output")
        size = abs(gear)
        close([d.motor_peak, d.motor_rms, d.motor_speed], [d.force_peak / size, rms / size, d.speed_peak * size], 1e-9)  # fmt: skip
        if name == "slide":
            assert math.isnan(d.current_peak)
            continue
        K, R = 0.2 / 0.5, 0.2 / 0.25
        current = tau / (gear * K)
        voltage = R * current + K * gear * v
        close([d.current_peak, d.voltage_peak], [np.abs(current).max(), np.abs(voltage).max()], 1e-9)  # fmt: skip
        close(d.copper_loss, R * span * mean(lambda r, j=j: (r.tau[:, j] / (gear * K)) ** 2), 1e-9, 0.0, "copper loss")  # fmt: skip
    single = drives(replace(runs[0], drive_work=None))["hinge"]
    power = runs[0].tau[:, 4] * runs[0].v[:, 4]
    close(single.energy - single.regenerated, trapezoid(runs[0].t, power), 1e-9, 1e-12, "work")


# ---- energies, records ----


def test_the_balance_of_energy_and_what_a_machine_stores() -> None:
    rng = np.random.default_rng(3)
    parts = rng.normal(size=(6, 5))
    balance = EnergyBalance(*parts)
    T, V, S, actuator, external, lost = parts
    E = T + V + S
    close(balance.error, E - E[0] - actuator - external + lost, 1e-12, 1e-12, "error")
    close(balance.conserved, E - actuator - external + lost, 1e-12, 1e-12, "conserved")
    model = mixed()
    run = rows(model, options={"passive": True, "stops": True, "efforts": False})
    x = run.q[:, 5] - 0.1
    close(run.passive.stored["spring"], 2.0 * x * x, 1e-9, 1e-12, "spring")
    at = model.kinematics(run.q)
    weight = sum(
        body.mass * (at.position[:, b] + at.rotation[:, b] @ np.array(body.com)) @ np.array(model.gravity)
        for b, body in enumerate(model.bodies)
    )  # fmt: skip
    stored = sum(run.passive.stored.values())
    close(run.energy.potential, stored - weight, 1e-9, 1e-9, "potential")
    M = model.mass_matrix(run.q)
    close(run.energy.kinetic, 0.5 * np.einsum("ti,tij,tj->t", run.v, M, run.v), 1e-9, 1e-9, "kinetic")  # fmt: skip
    close(run.energy.total, run.energy.kinetic + run.energy.potential, 1e-12, 1e-12, "total")
    gained = run.energy.total - run.energy.total[0]
    close(run.energy_balance.error, gained - run.work.actuator + run.work.dissipated, 1e-9, 1e-9, "error")  # fmt: skip
    unknown = np.array(run.tau)
    unknown[7, 2] = np.nan
    missing = np.flatnonzero(np.isnan(replace(run, tau=unknown).energy_balance.error))
    assert missing.tolist() == [7]
    off = rows(model, options={"passive": False, "stops": True})
    assert "spring" not in off.passive.parts
    assert "stop" in off.passive.parts
    lines = "\n".join(machine_lines(run))
    rotors = 0.5 * 0.3 * run.v[:, 3] ** 2
    assert f"kinetic energy of rotors {rotors[0]:.6g} J at the start, {rotors[-1]:.6g} J" in lines
    spring = run.passive.stored["spring"]
    assert f"stored in springs {spring[0]:.6g} J at the start, {spring[-1]:.6g} J" in lines
    assert "switched off: effort limits of the drives" in lines
    figures = machine_figures(run)
    close(figures["rotors"], rotors[[0, -1]], 1e-12, 0.0, "rotors")
    close(figures["stored"]["spring"], spring[[0, -1]], 1e-12, 0.0, "springs")
    worked = sum(0.5 * (run.tau * run.v)[1:] * np.diff(run.t)[:, None] + 0.5 * (run.tau * run.v)[:-1] * np.diff(run.t)[:, None])  # fmt: skip
    close([*figures["work"].values()], worked, 1e-9, 1e-12, "work by drive")
    assert [x["name"] for x in figures["limits_reached"]] == [x.name for x in run.limits_reached]


def test_units_and_names_of_every_column() -> None:
    model = mixed()
    run = replace(rows(model), drive_work=np.zeros((40, 6)))
    units = {x.name: x.units for x in variables(run)}
    assert units["q"] == ("1",) * 4 + ("m", "rad", "rad")
    assert units["v"] == ("rad/s",) * 3 + ("m/s", "rad/s", "rad/s")
    assert units["a"] == ("rad/s^2",) * 3 + ("m/s^2", "rad/s^2", "rad/s^2")
    assert units["tau"] == ("N m",) * 3 + ("N", "N m", "N m")
    assert units["drive_work"] == ("J",) * 6
    assert labels(run) == {"coordinate": model.coordinates, "velocity": model.velocities}
    for x in variables(run):
        many = math.prod(x.values.shape[1:])
        assert len(x.units) in (1, many), x.name
        assert x.values is getattr(run, {"time": "t"}.get(x.name, x.name), x.values)
    assert np.array_equal(run["slide"], run.q[:, 4])
    assert np.array_equal(run["ball"], run.q[:, :4])
    assert json_value({"a": (np.float64(1.5), math.inf, None, True), 2: np.arange(2)}) == {
        "a": [1.5, "inf", None, True], "2": [0, 1]}  # fmt: skip
    record = recorded_options({"t_end": 2.0, "max_step": math.inf, "events": {"hit": 1}, "start": "x"})  # fmt: skip
    assert (record["t_end"], record["max_step"], record["events"], record["start"]) == (2.0, None, ["hit"], "x")  # fmt: skip
    assert (record["method"], record["rtol"], record["atol"], record["dt_out"]) == ("auto", 1e-8, 1e-10, 0.01)  # fmt: skip
    assert "progress" not in record


# ---- audits ----


def test_tolerances_and_checks_of_audits() -> None:
    model = mixed()
    for options, stats, wanted in (
        ({"rtol": 1e-8, "atol": 1e-10}, {"steps": 400}, (8e-6, 8e-8)),
        ({"rtol": 1e-8, "atol": [1e-10, 3e-10]}, {"steps": 10}, (1e-6, 3e-8)),
        ({"rtol": 1e-8}, {}, (1e-6, 0.0)),
        ({"rtol": 1e-15, "atol": 1e-10}, {"steps": 100}, (1e-12, 2e-8)),
        ({"rtol": 1e-2, "atol": 1e-10}, {"steps": 100}, (1e-3, 2e-8)),
        ({"rtol": 1e-8, "atol": 1e-10, "step": 0.01}, {"steps": 100}, (1e-3, 0.0)),
        ({}, {"steps": 100}, (1e-3, 0.0)),
    ):  # fmt: skip
        found = allowed(rows(model, options=options, stats=stats))
        close(found[:2], wanted, 1e-12, 0.0, f"{options}, {stats}")
    check = Check("energy", "J", np.array([0.0, 0.3, -0.7, 0.5]), 2.0, 0.4)
    assert (check.worst, check.largest, check.relative, check.first, check.passed) == (2, 0.7, 0.35, 2, False)  # fmt: skip
    assert replace(check, limit=0.7).passed
    assert replace(check, error=np.array([0.1, 0.2, np.nan, 9.0])).worst == 2
    assert replace(check, scale=0.0).relative == math.inf
    assert replace(check, scale=0.0, error=np.zeros(4)).relative == 0.0


def flyer() -> rf.Model:
    b = rf.Builder("flyer", gravity=(0.4, -3.0, 1.0))
    b.link("hull", joint="free", mass=2.0, com=(0.1, 0.2, 0.0), inertia=(0.2, 0.3, 0.5))
    b.link("rotor", "hull", at=(0.3, 0, 0.1), axis=(0, 1, 0), mass=0.4, com=(0, 0.1, 0.3), inertia=(0.01, 0.03, 0.02), armature=0.05)  # fmt: skip
    return b.model()


def test_scales_of_audits_from_the_motion_of_the_bodies() -> None:
    model = flyer()
    run = rows(model, 12, stats={"steps": 77})
    scales, h = Scales(run), 1e-6
    m = np.array([2.0, 0.4])
    coms = [np.array(body.com) for body in model.bodies]

    def bodies(q: Array) -> tuple[Array, Array]:
        at = model.kinematics(q)
        R = at.rotation
        return np.stack([at.position[:, b] + R[:, b] @ coms[b] for b in range(2)], 1), R

    ahead, behind = (bodies(np.array([model.integrate(q, v, s * h) for q, v in zip(run.q, run.v, strict=True)])) for s in (1, -1))  # fmt: skip
    place, R = bodies(run.q)
    u = (ahead[0] - behind[0]) / (2 * h)
    turning = np.einsum("tbji,tbjk->tbik", R, (ahead[1] - behind[1]) / (2 * h))
    w = np.stack([turning[..., 2, 1], turning[..., 0, 2], turning[..., 1, 0]], axis=-1)
    inertia = np.array([body.inertia for body in model.bodies])

    def energy(u: Array, w: Array) -> Array:
        return 0.5 * (m * (u**2).sum(-1) + np.einsum("tbi,bij,tbj->tb", w, inertia, w))

    def kinetic(u: Array) -> float:
        moved = np.maximum(np.abs(energy(u, w) - energy(u, w)[:1]), energy(u - u[:1], w - w[:1]))
        x = run.v[:, 6]
        rotor = 0.5 * 0.05 * np.maximum(np.abs(x**2 - x[0] ** 2), (x - x[0]) ** 2)
        return float((moved.sum(axis=1) + rotor).max())

    close(scales.kinetic(), kinetic(u), 1e-5, 0.0, "kinetic energy that moved")
    axes = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 2)))[0]
    mean = np.einsum("b,tbi->ti", m, u) / m.sum()
    beside = u - (mean @ axes @ axes.T)[:, None]
    close(scales.kinetic(axes), kinetic(beside), 1e-5, 0.0, "beside the centre of mass")
    fall = np.outer(run.t - run.t[0], model.gravity)[:, None]
    at = model.kinematics
    origins = (at(np.array([model.integrate(q, v, h) for q, v in zip(run.q, run.v, strict=True)])).position - at(np.array([model.integrate(q, v, -h) for q, v in zip(run.q, run.v, strict=True)])).position) / (2 * h)  # fmt: skip
    moved = np.maximum(*(np.linalg.norm((x - x[:1] - fall) @ axes, axis=2) for x in (u, origins)))
    eps = np.finfo(float).eps * (64.0 + 77)
    whole = (np.linalg.norm(u, axis=2) @ m).max()
    close(scales.linear(axes), [(moved @ m).max(), eps * whole], 1e-5, 0.0, "linear momentum")
    centre = np.einsum("b,tbi->ti", m, place) / m.sum()
    spin = np.einsum("tbij,bjk,tbk->tbi", R, inertia, w)
    moment = spin + m[:, None] * np.cross(place - centre[:, None], u - mean[:, None])
    changed = np.linalg.norm((moment - moment[:1]) @ axes, axis=2).sum(axis=1)
    own = np.linalg.norm(spin[:, 0], axis=1)
    close(scales.angular(axes)[0], (changed + own).max(), 1e-5, 0.0, "angular momentum")
    close(scales.centre(axes), centre @ axes, 1e-9, 1e-9, "centre of mass")
    v = run.v - 0.0
    inside = energy(beside, w).sum(axis=1) + 0.5 * 0.05 * v[:, 6] ** 2
    close(scales.internal_kinetic(axes), inside, 1e-5, 1e-6, "internal energy")
    speed = np.linalg.norm(mean @ axes, axis=1).max()
    close(scales.carried(axes), scales.linear(axes)[0] * speed, 1e-5, 0.0, "carried")
    close(scales.largest_energy, (run.energy.kinetic + np.abs(run.energy.potential)).max(), 1e-9)
    g, M = model.gravity_forces(run.q), model.mass_matrix(run.q)
    steady = np.array([0.0] * 6 + [run.v[0, 6]])
    p = np.einsum("tij,tj->ti", M, run.v - steady)
    for size in (1e-9, 0.3):
        dq = np.minimum(size, (run.t[-1] - run.t[0]) * np.abs(run.v).max(axis=0))
        dv = np.minimum(size, np.abs(run.v - steady).max(axis=0))
        most = (np.abs(g) @ dq + np.abs(p) @ dv).max()
        close(scales.by_errors(size), most, 1e-6, 0.0, f"by errors of {size}")


def test_where_momentum_is_conserved() -> None:
    """Only where nothing acts at the root: joint forces, losses, grounds and wrenches do."""
    model = flyer()
    still = {"tau": np.zeros((40, 7)), "options": {"damping": [0.0] * 7}}
    free = replace(rows(model), **still)
    along, about = free_directions(free)  # type: ignore[misc]
    assert along.shape == about.shape == (3, 3)
    forced = np.zeros((40, 7))
    forced[3, 6] = 2.0
    assert free_directions(replace(free, tau=forced)) is not None  # between the bodies
    forced[9, 4] = 1e-3
    blocked: list[dict[str, Any]] = [
        {"tau": forced},
        {"options": {"damping": [0.0] * 5 + [0.1, 0.0]}},
        {"options": {"damping": [0.0] * 7, "ground": "firm"}},
        {"options": {"damping": [0.0] * 7, "wrenches": {"hull": [0] * 6}}},
    ]
    for change in blocked:
        assert free_directions(replace(free, **change)) is None, change
    for joint, axis in (("planar", (0.0, 0.6, 0.8)), ("prismatic", (0.6, 0.0, 0.8))):
        b = rf.Builder("sled")
        turned = np.eye(4)
        turned[:3, :3] = Rotation.from_rotvec([0.3, -0.5, 0.2]).as_matrix()
        b.link("sled", joint=joint, axis=axis, at=turned, mass=1.0, inertia=(0.1, 0.2, 0.3))
        sled = b.model()
        nothing = {"tau": np.zeros((40, sled.nv)), "options": {"damping": [0.0] * sled.nv}}
        along, about = free_directions(replace(rows(sled), **nothing))  # type: ignore[misc]
        normal = turned[:3, :3] @ np.array(axis)
        if joint == "prismatic":
            close(np.abs(normal @ along), [1.0], 1e-9, 0.0, "its axis")
            assert about.shape == (3, 0)
        else:
            close(normal @ along, [0.0, 0.0], 0.0, 1e-9, "in the plane")
            close(along.T @ along, np.eye(2), 1e-9, 1e-9, "axes")
            close(np.abs(normal @ about), [1.0], 1e-9, 0.0, "about the normal")


# ---- steps ----


def test_steps_that_meet_a_tolerance() -> None:
    """The longest one below which all do; the error of the last from the two shortest distances."""
    for error, step in (([9.0, 0.5, 0.2, 0.1], 0.1), ([0.5, 9.0, 0.2, 0.1], 0.05), ([0.9, 0.5, 0.2, 0.1], 0.2), ([9.0, 9.0, 9.0, 2.0], None), ([0.5, 0.5, 0.5, 2.0], None)):  # fmt: skip
        found = StepCheck(0.2 / 2.0 ** np.arange(4), ("rk4",) * 4, np.array(error), np.zeros(4), 1.0, "m")  # fmt: skip
        assert (found.step, found.passed) == (step, step == 0.2)
    close(estimated([4.0, 3.0, 0.4]), [5.0, 4.0, 1.4, 1.0], 1e-12, 0.0, "by the last but one")
    close(estimated([4.0, 0.3, 0.4]), [4.4, 0.7, 0.8, 0.4], 1e-12, 0.0, "by the last")
    close(estimated([math.nan, 3.0, math.inf])[[1, 3]], [4.0, 1.0], 1e-12, 0.0, "finite ones")
    shown = StepCheck(np.array([2e-3, 1e-3]), ("rk4", ""), np.array([0.02, np.inf]), np.array([0.001, 0.0]), 0.05, "%")  # fmt: skip
    assert str(shown).splitlines() == [
        "step, error, method", "2 ms, 2 ± 0.1 %, rk4", "1 ms, diverged",
        "no step down to 1 ms is within 5 %; try shorter ones",
    ]  # fmt: skip


# ---- ReDySim's angles ----


@pytest.mark.parametrize(("joint", "more"), [("free", {}), ("free_euler", {"sequence": "XYZ"}), ("planar", {"axis": (0.0, 0.6, 0.8), "actuated": False}), ("planar", {"axis": (0.0, 1.0, 0.0), "actuated": False})])  # fmt: skip
def test_angles_of_a_base_and_their_rates(joint: str, more: dict[str, Any]) -> None:
    b = rf.Builder("base")
    b.link("base", joint=joint, mass=1.0, inertia=(0.1, 0.2, 0.3), **more)
    b.link("arm", "base", axis=(0, 1, 0), at=(0.1, 0, 0), mass=0.3, com=(0.1, 0, 0))
    model = b.model()
    q0, v = model.random(seed=3)
    t = np.linspace(0.0, 0.4, 9)

    def written(shift: float) -> tuple[Array, Array]:
        q = np.array([model.integrate(q0, v, x + shift) for x in t])
        none = np.zeros((9, model.nv))
        run = Run(model, t, q, np.tile(v, (9, 1)), none, none, Work(np.zeros(9), np.zeros(9)))
        return run.q, np.concatenate(_with_angles(run), axis=1)

    q, found = written(0.0)
    at = model.kinematics(q)
    angles = Rotation.from_matrix(at.rotation[:, 0]).as_euler("ZXY")
    close(np.cos(found[:, 3:6]), np.cos(angles), 1e-9, 1e-9, "cosines")
    close(np.sin(found[:, 3:6]), np.sin(angles), 1e-9, 1e-9, "sines")
    close(found[:, :3], at.position[:, 0], 1e-9, 1e-9, "place")
    close(found[:, 6], q[:, -1], 1e-12, 1e-12, "the arm")
    ahead, behind = written(1e-6)[1], written(-1e-6)[1]
    close(found[:, 7:], (ahead - behind)[:, :7] / 2e-6, 1e-5, 1e-5, "rates")
    assert (np.abs(np.diff(found[:, 3:6], axis=0)) < 1.0).all()
