"""Right-hand sides, pushes, steps and failures of batches whose states differ: each state against a
computation of its own, with a start that is not at zero, several events, pushes and drives.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from comparing import close
from mechanisms import consistent

import ramify as rf
from ramify.contact import Firm, Slope
from ramify.core.arrays import Array
from ramify.drives.machine_forces import passive_forces
from ramify.integrate.closed_start import refuse_open_states, warn_of_changed_rates
from ramify.integrate.dop853 import Ranges
from ramify.integrate.integrator import runge_kutta_step
from ramify.integrate.integrators import find_integrator, integrators, scheme_of
from ramify.integrate.options import Options
from ramify.integrate.scipy_solvers import difference_jacobian
from ramify.integrate.thrown_rates import ThrownRates
from ramify.loops.constraints import column_sizes
from ramify.plant.field import Field
from ramify.plant.kernel_parts import KernelParts, columns
from ramify.plant.make_field import PlantOptions, make_field
from ramify.plant.pushes import AppliedWrenches, Pushes, push_forces, wrench_table
from ramify.plant.rates import desired_motion, entry_name, evaluate_samples, rates_of


def rider() -> rf.Model:
    """A free base, a sticky hinge with a stop, a driven slide; frames off the links' origins."""
    b = rf.Builder("rider", gravity=(0.5, -1.0, -9.0))
    b.link("base", joint="free", mass=2.0, com=(0.1, 0.0, 0.2), inertia=(0.2, 0.3, 0.4),
           points={"left": (0.3, 0.2, -0.1), "right": (0.3, -0.2, -0.1)})  # fmt: skip
    b.link("hinge", "base", at=(0.3, 0.1, 0.0), axis=(0, 1, 0), mass=0.5, com=(0, 0.1, 0.2), damping=0.2,
           spring={"stiffness": 3.0, "rest": 0.4}, inertia=(0.01, 0.02, 0.01), limits=[(-0.4, 0.5)],
           friction={"coulomb": {"forward": 0.3, "backward": 0.2}, "lugre": {"stiffness": 90.0}},
           points={"tip": (0.0, 0.1, 0.4)})  # fmt: skip
    b.link("slide", "hinge", "prismatic", at=(0.1, 0.0, 0.2), axis=(1, 0, 0), mass=0.4, com=(0.1, 0, 0),
           effort=2.0, backward_effort=1.5, inertia=(0.01, 0.01, 0.01))  # fmt: skip
    b.frame("hook", "slide", at=(0.1, -0.2, 0.3))
    b.frame("eye", "base", at=(-0.2, 0.1, 0.1))
    return b.model()


def states(model: rf.Model, count: int = 3) -> tuple[Array, Array]:
    drawn = [model.random(seed=s) for s in range(count)]
    return np.array([x[0] for x in drawn]), np.array([x[1] for x in drawn])


def said(call: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught]


# ---- the right-hand side ----


def plants() -> list[tuple[str, Field]]:
    model = rider()
    follow = rf.control.PID(rf.motion.Quintic([0.1, 0.2], [0.6, -0.3], 1.0), kp=[9.0, 5.0], ki=[3.0, 2.0], kd=[1.0, 0.4], actuated=["hinge", "slide"])  # fmt: skip
    damping = [0.0, 0.1, 0.2, 0.3, 0.0, 0.1, 0.7, 0.4]
    whole = PlantOptions(damping, Firm(terrain=Slope(angle=0.2, height=-0.1)), pushed=("hook", "base"))  # fmt: skip
    return [
        ("all of it", make_field(model, follow, whole)),
        ("no stops", make_field(model, follow, whole._replace(stops=False, ground=None))),
        ("stops alone", make_field(model, follow, whole._replace(passive=False, pushed=("eye",)))),
        ("no efforts", make_field(model, follow, whole._replace(efforts=False, ground=None, pushed=()))),
    ]  # fmt: skip


@pytest.mark.parametrize("which", range(4))
def test_the_right_hand_side_by_its_parts(which: int) -> None:
    """As numbers, as a text and compiled; forces, counters and states from the robot's answers."""
    name, field = plants()[which]
    model: Any = field.model
    t, h = 0.37, 1e-7
    q, v = states(model)
    q[:, 7] = 0.7, -0.6, 0.1  # beyond both ends of the hinge, and within
    rng = np.random.default_rng(which)
    y = field.start(q, v)
    close(y[:, field.state_slices[0]], q, 0.0, 0.0, "q")
    z = rng.normal(size=(3, field.states)) * 0.01
    y[:, field.state_slices[2]] = z
    u = rng.normal(size=(3, field.input_size))
    found = rates_of(KernelParts(field), t, y, u)
    text = np.array([field.text(t, y[i].tolist(), u[i].tolist()) for i in range(3)])
    close(found, text, 1e-8, 1e-8, f"{name}: numbers and text")
    several: Any = field.text(t, columns(y), columns(u))
    close(np.stack([np.broadcast_to(x, 3) for x in several], -1), text, 1e-8, 1e-8, "of many")
    for i in range(3):
        compiled = field.entry.call(np.array([t]), y[i], np.concatenate([u[i], field.numbers]))
        assert compiled is not None
        close(compiled, text[i], 1e-8, 1e-8, f"{name}: compiled")
    of_q, of_v, of_z, of_work = field.state_slices
    moved = [np.array([model.integrate(a, b, s * h) for a, b in zip(q, v, strict=True)]) for s in (1, -1)]  # fmt: skip
    close(found[:, of_q], (moved[0] - moved[1]) / (2 * h), 1e-6, 1e-6, "dq/dt")
    at = field.control.motion.at(t)  # type: ignore[union-attr]
    error, rate = at.q - q[:, [7, 8]], at.v - v[:, [6, 7]]
    tau = np.zeros((3, 8))
    kp, ki, kd = np.array([9.0, 5.0]), np.array([3.0, 2.0]), np.array([1.0, 0.4])
    tau[:, 6:] = kp * error + ki * z[:, :2] + kd * rate
    close(found[:, of_z][:, :2], error, 1e-9, 1e-9, "rates of the integrals")
    tau += u[:, :8]
    if field.efforts:
        tau[:, 7] = np.clip(tau[:, 7], -1.5, 2.0)
    bristles = z[:, 2:]
    acting = passive_forces(model, q, v, field.stops, field.passive, bristles)
    losses = field.passive_forces.losses
    damping = np.array(field.damping)
    pushed = {link: u[:, 8 + 6 * i : 14 + 6 * i] for i, link in enumerate(field.pushed)}
    wrenches = {link: w.copy() for link, w in pushed.items()}
    heat = []
    if field.ground is not None:
        contacts = rf.contact.forces(model, field.ground, q, v)
        fitted = field.ground.fitted(model)
        on = contacts.wrenches(model, q)
        for link, w in on.items():
            wrenches[link] = wrenches.get(link, np.zeros((3, 6))) + w
        assert contacts.penetration.max() > 0.0
        power = sum((on[link] * np.einsum("nij,nj->ni", model.jacobian(q, link), v)).sum(axis=1) for link in on)  # fmt: skip
        ahead, behind = (rf.contact.forces(model, fitted, x, v).stored for x in moved)
        heat.append(-power - (ahead - behind) / (2 * h))
    net = tau - damping * v + acting.total
    a = model.forward_dynamics(q, v, net, wrenches or None)
    close(found[:, of_v], a, 1e-7, 1e-6, f"{name}: accelerations")
    if field.passive:
        close(found[:, of_z][:, 2:], acting.bristle_rate, 1e-9, 1e-9, "rates of the bristles")
    close(found[:, of_work], np.stack([(tau * v).sum(axis=1), (damping * v * v).sum(axis=1)], 1), 1e-8, 1e-8, "work, loss")  # fmt: skip
    if field.pushed:
        power = sum((w * np.einsum("nij,nj->ni", model.jacobian(q, link), v)).sum(axis=1) for link, w in pushed.items())  # fmt: skip
        close(found[:, field.of_pushes][:, 0], power, 1e-8, 1e-8, "work of the pushes")
        forces = push_forces(model, field.pushed, q, u[:, 8:])
        by_hand = sum(np.einsum("nij,ni->nj", model.jacobian(q, link), w) for link, w in pushed.items())  # fmt: skip
        close(forces, by_hand, 1e-9, 1e-9, "joint forces of the pushes")
    heat += [acting.loss[part] for part in losses]
    close(found[:, field.of_heat], np.stack(heat, 1), 1e-5, 1e-4, f"{name}: heat")
    assert field.drives == (6, 7)
    close(found[:, field.of_drives][:, 0], tau[:, 6] * v[:, 6], 1e-8, 1e-8, "work of the first drive")  # fmt: skip
    sampled = evaluate_samples(field, np.full(3, t), y, u)
    close(sampled[0], a, 1e-7, 1e-6, "accelerations at samples")
    close(sampled[1], tau, 1e-9, 1e-9, "joint forces at samples")
    names = [entry_name(field, i) for i in range(of_work.stop)]
    assert names[:17] == [*model.coordinates, *model.velocities]
    assert names[17:] == ["the controller"] * 2 + ["the bristles"] * field.passive + ["the work"] * 2  # fmt: skip
    desired = desired_motion(model, field.control, None, np.array([0.1, 0.6]))
    assert desired is not None
    goal = field.control.motion.at(np.array([0.1, 0.6]))  # type: ignore[union-attr]
    close(desired.q[:, 7:], goal.q, 0.0, 0.0, "desired")
    close(desired.a[:, 6:], goal.a, 0.0, 0.0, "desired accelerations")
    assert np.isnan(desired.q[:, :7]).all()


def test_damping_of_a_number_and_of_each_joint() -> None:
    model = rider()
    assert make_field(model, None, PlantOptions(damping=0.3)).damping == (0.0,) * 6 + (0.3, 0.3)
    assert make_field(model, None, PlantOptions(damping=[0.3])).damping == (0.0,) * 6 + (0.3, 0.3)
    each = tuple(0.1 * k for k in range(8))
    assert make_field(model, None, PlantOptions(damping=each)).damping == each
    for wrong in (-0.1, [0.1] * 7, math.nan):
        with pytest.raises(rf.StateError, match=r"damping must be a number or \(8,\)"):
            make_field(model, None, PlantOptions(damping=wrong))


# ---- pushes ----

FIRST, SECOND = np.array([0.1, -0.2, 0.3, 1.0, -2.0, 3.0]), np.array([-0.4, 0.5, 0.6, 4.0, 5.0, -6.0])  # fmt: skip
PUSHES: Any = [(0.2, 0.5, {"hook": FIRST}), (0.3, 0.9, {"base": SECOND, "hook": SECOND}), (-1.0, 0.25, {"base": FIRST})]  # fmt: skip


def test_pushes_that_overlap_add_up_and_jump_at_their_ends() -> None:
    model = rider()
    pushes = Pushes(model, PUSHES, np.linspace(0.0, 0.8, 5))
    assert pushes.names == ("hook", "base")
    assert [*pushes.breaks] == [0.2, 0.25, 0.3, 0.5]
    for t in (0.0, 0.2, 0.24, 0.25, 0.3, 0.4, 0.5, 0.7):
        wanted = np.zeros((2, 6))
        for start, end, wrenches in PUSHES:
            for link, w in wrenches.items():
                wanted[("hook", "base").index(link)] += w if start <= t < end else 0.0
        close(pushes.at(t), wanted.reshape(-1), 0.0, 1e-15, f"at {t}")
        assert pushes.until(t, 0.8) == min(x for x in (0.2, 0.25, 0.3, 0.5, 0.8) if x > t)
    assert pushes.described == [[a, b, {k: list(w) for k, w in x.items()}] for a, b, x in PUSHES]


def test_tables_of_pushes_keep_their_impulse_and_functions_are_asked_in_the_middle() -> None:
    model, t0, dt, steps = rider(), 0.1, 0.07, 9
    names, table = wrench_table(model, PUSHES, (3,), steps, dt, t0)
    assert (names, table.shape) == (("hook", "base"), (1, steps, 12))
    for k in range(steps):
        begin, wanted = t0 + k * dt, np.zeros((2, 6))
        for start, end, wrenches in PUSHES:
            share = max(0.0, min(begin + dt, end) - max(begin, start)) / dt
            for link, w in wrenches.items():
                wanted[names.index(link)] += share * w
        close(table[0, k], wanted.reshape(-1), 1e-9, 1e-12, f"step {k}")
    asked: list[float] = []

    def follow(t: float) -> dict[str, Any]:
        asked.append(t)
        late = {"base": np.outer([1.0, 2.0, 3.0], SECOND)} if t > 0.4 else {}
        return {"hook": t * FIRST, **late}

    names, table = wrench_table(model, follow, (3,), steps, dt, t0)
    close(asked, t0 + dt * (np.arange(steps) + 0.5), 1e-12, 0.0, "times")
    assert (names, table.shape) == (("hook", "base"), (3, steps, 12))
    for i in range(3):
        for k, t in enumerate(asked):
            close(table[i, k, :6], t * FIRST, 1e-12, 0.0, "hook")
            close(table[i, k, 6:], (i + 1.0) * SECOND * (t > 0.4), 1e-12, 0.0, "base")
    rng = np.random.default_rng(4)
    for shape, rows in (((6,), (1, 1)), ((3, 6), (3, 1)), ((steps, 6), (1, steps)), ((3, steps, 6), (3, steps)), ((3, 1, 6), (3, 1)), ((1, steps, 6), (3, steps))):  # fmt: skip
        w = rng.normal(size=shape)
        _, table = wrench_table(model, {"hook": w}, (3,), steps, dt, t0)
        assert table.shape == (*rows, 6), shape
        lead = w if shape == (3, steps, 6) else w[:, None] if shape == (3, 6) else w
        close(np.broadcast_to(table, (3, steps, 6)), np.broadcast_to(lead, (3, steps, 6)), 0.0, 0.0, f"{shape}")  # fmt: skip
    with pytest.raises(rf.StateError, match="one per state or one per step"):
        wrench_table(model, {"hook": np.zeros((3, 6))}, (3,), 3, dt, t0)


@pytest.mark.parametrize("per_state", [False, True])
@pytest.mark.parametrize("forces", ["none", "constant", "steps", "states"])
def test_pushed_states_of_a_batch_are_those_alone(forces: str, per_state: bool) -> None:
    """Tables of joint forces and of wrenches, each with strides of its own, from t0 on."""
    model = rider()
    q, v = states(model)
    rng = np.random.default_rng(5)
    steps, options = 6, {"dt": 2e-3, "t0": 0.3, "method": "rk4", "stops": False}
    shape = {"none": None, "constant": (8,), "steps": (steps, 8), "states": (3, steps, 8)}[forces]
    tau = None if shape is None else rng.normal(size=shape)
    w = rng.normal(size=(3, steps, 6) if per_state else (steps, 6))
    both = rf.rollout(model, q, v, steps=steps, tau=tau, wrenches={"hook": w, "base": SECOND}, every=2, **options)  # type: ignore[arg-type] # fmt: skip
    for i in range(3):
        mine = tau[i] if forces == "states" else tau  # type: ignore[index]
        wrenches = {"hook": w[i] if per_state else w, "base": SECOND}
        alone = rf.rollout(model, q[i], v[i], steps=steps, tau=mine, wrenches=wrenches, every=2, **options)  # type: ignore[arg-type] # fmt: skip
        close(both.v[i], alone.v, 1e-10, 1e-10, f"state {i}")
        run = both.result(i)
        close(run.t, 0.3 + 4e-3 * np.arange(4), 1e-12, 0.0, "times")
        assert run.wrenches is not None
        acted = np.concatenate([w[i] if per_state else w], axis=0)
        close(run.wrenches["hook"], acted[[0, 1, 3, 5]], 1e-12, 0.0, "recorded")
        assert run.wrenches.names == ("hook", "base")
    assert np.array_equal(both.result(-1).q, both.result(2).q)


def test_wrenches_on_bodies_are_moved_to_their_origins() -> None:
    model = rider()
    q, _ = states(model)
    values = np.random.default_rng(6).normal(size=(3, 3, 6))
    applied = AppliedWrenches(("hook", "eye", "base"), values, np.zeros(3))
    found = applied.on_bodies(model, q)
    assert set(found) == {"slide", "base"}
    at = model.kinematics(q)
    names = [body.name for body in model.bodies]
    for body, parts in (("slide", [(0, (0.1, -0.2, 0.3))]), ("base", [(1, (-0.2, 0.1, 0.1)), (2, (0, 0, 0))])):  # fmt: skip
        wanted = np.zeros((3, 6))
        for k, place in parts:
            arm = at.rotation[:, names.index(body)] @ np.array(place, dtype=float)
            wanted[:, :3] += values[:, k, :3] + np.cross(arm, values[:, k, 3:])
            wanted[:, 3:] += values[:, k, 3:]
        close(found[body], wanted, 1e-10, 1e-10, body)


# ---- steps ----


@pytest.mark.parametrize("method", ["dop853", "rk4", "ab4", "rk45"])
def test_the_earliest_of_several_events_ends_the_run(method: str) -> None:
    """In whichever order they are listed, within one step and one chunk; the last row is there."""
    model = rf.Builder("slide").link("a", joint="prismatic", mass=1.0, axis=(1, 0, 0)).model()
    step = {"step": 0.25} if method in ("rk4", "ab4") else {}
    times = {"late": 0.63, "early": 0.56, "middle": 0.6}
    for order in (("late", "early", "middle"), ("middle", "late", "early"), ("early", "late")):
        events: Any = {name: (lambda t, q, v, at=times[name]: t - at) for name in order}
        run = rf.simulate(model, 1.0, [0.0], [2.0], events=events, method=method, dt_out=0.25, **step)  # type: ignore[arg-type] # fmt: skip
        assert run.status == "event: early"
        close(run.t, [0.0, 0.25, 0.5, 0.56], 1e-9, 0.0, "times")
        close(run.q[:, 0], 2.0 * run.t, 1e-9, 1e-12, "rows")


def test_functions_and_sampled_controllers_see_the_time_of_their_step() -> None:
    """From t0 on; beside a table that differs from step to step and state to state."""
    b = rf.Builder("two")
    b.link("a", joint="prismatic", mass=1.0, axis=(1, 0, 0))
    b.link("b", joint="prismatic", mass=2.0, axis=(1, 0, 0))
    model = b.model()
    q, v = np.array([[0.1, 0.2], [0.3, -0.4], [-0.5, 0.6]]), np.array([[1.0, -1.0], [0.5, 2.0], [-2.0, 0.1]])  # fmt: skip
    steps, dt, t0 = 8, 0.05, 0.4
    tau = np.random.default_rng(7).normal(size=(3, steps, 2))
    asked: list[tuple[float, Array]] = []

    def policy(t: float, q: Array, v: Array) -> Array:
        asked.append((t, q.copy()))
        return np.stack([3.0 * t - 2.0 * q[:, 0], -v[:, 1]], axis=1)

    for every in (1, 4):
        asked.clear()
        found = rf.rollout(model, q, v, steps=steps, dt=dt, t0=t0, tau=tau, control=policy, method="euler", every=every)  # fmt: skip
        x, w, rows = q.copy(), v.copy(), []
        forces = np.zeros((3, steps, 2))
        for k in range(steps):
            t = t0 + k * dt
            close(asked[k][0], t, 1e-12, 0.0, "time")
            close(asked[k][1], x, 1e-10, 1e-12, "coordinates")
            forces[:, k] = np.stack([3.0 * t - 2.0 * x[:, 0], -w[:, 1]], 1) + tau[:, k]
            x, w = x + dt * w, w + dt * forces[:, k] / [1.0, 2.0]
            rows.append((x, w))
        close(found.q, np.stack([r[0] for r in rows], 1)[:, every - 1 :: every], 1e-10, 1e-12, "q")
        close(found.v, np.stack([r[1] for r in rows], 1)[:, every - 1 :: every], 1e-10, 1e-12, "v")
        close(found.t, t0 + dt * every * np.arange(1, steps // every + 1), 1e-12, 0.0, "t")
        if every == 1:
            for i in range(3):
                close(found.result(i).tau[1:], forces[i], 1e-9, 1e-12, "recorded forces")
    law = rf.control.PD(rf.motion.Quintic([0.0, 0.1], [1.0, -1.0], 2.0), kp=[4.0, 3.0], kd=[1.0, 2.0], rate_hz=10.0)  # fmt: skip
    found = rf.rollout(model, q, v, steps=steps, dt=dt, t0=t0, tau=tau, control=law, method="euler", every=1)  # fmt: skip
    x, w = q.copy(), v.copy()
    for k in range(steps):
        if k % 2 == 0:
            at = law.motion.at(t0 + k * dt)
            constant = np.array([4.0, 3.0]) * (at.q - x) + np.array([1.0, 2.0]) * (at.v - w)
        x, w = x + dt * w, w + dt * (constant + tau[:, k]) / [1.0, 2.0]
        close(found.v[:, k], w, 1e-9, 1e-12, f"sampled, step {k}")


def test_failures_of_a_batch_have_index_time_and_reason() -> None:
    b = rf.Builder("two")
    b.link("a", joint="prismatic", mass=1.0, axis=(1, 0, 0))
    b.link("b", mass=1.0, inertia=(0.1, 0.1, 0.1))
    model = b.model()
    tau = np.zeros((2, 3, 12, 2))
    tau[0, 2, 4, 0] = 1e8  # beyond the speed of any machine after step 5
    tau[1, 1, 9:, 1] = 1e308
    q, v = np.zeros((2, 3, 2)), np.zeros((2, 3, 2))
    v[1, 2, 1] = 9e4
    for every in (1, 3, None):
        lines: list[Any] = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = rf.rollout(model, q, v, steps=12, dt=0.01, t0=2.0, tau=tau, every=every, method="euler")  # fmt: skip
        lines = [str(w.message) for w in caught]
        assert [x.index for x in found.status.failures] == [(0, 2), (1, 1)]
        first, second = found.status.failures
        close([first.t, second.t], [2.05, 2.1], 1e-12, 0.0, "times")
        assert first.reason == "the motion runs away: the rate of 'a' exceeds 100000"
        assert "'b'" in second.reason
        assert found.status.failed.tolist() == [[False, False, True], [False, True, False]]
        assert len(lines) == 1
        assert "2 of 6 states failed; state (0, 2) at t = 2.05 s" in lines[0]
        assert "a smaller dt or an implicit method may help" in lines[0]
        if every:
            last = {(0, 2): 5, (1, 1): 10}
            for i in np.ndindex(2, 3):
                bad = np.isnan(found.q[i]).all(axis=-1)
                rows = (last.get(i, 13) - 1) // every
                assert np.flatnonzero(bad).tolist() == list(range(rows, 12 // every)), (i, every)
        else:
            assert np.isnan(found.q[0, 2]).all()
        assert np.isfinite(found.q[1, 2]).all()

    def broken(t: float, q: Array, v: Array) -> Array:
        forces = np.ones((2, 3, 2))
        if t > 2.035:
            forces[1, 0, 1] = np.nan
        return forces

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = rf.rollout(model, q, v, steps=12, dt=0.01, t0=2.0, control=broken, every=1)
    assert found.status.failures[0].index == (1, 0)
    assert found.status.failures[0].reason == "the controller gave nan for 'b'"
    close(found.status.failures[0].t, 2.04, 1e-9, 0.0, "time")
    assert "smaller dt" not in str(caught[0].message)


def test_tables_of_runge_kutta_and_differences_on_a_linear_system() -> None:
    """y' = A y + b t: the polynomial of the scheme's order is exact to it; every explicit table."""
    rng = np.random.default_rng(8)
    A, b, y = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3)
    t, h = 0.7, 1e-2

    def rates(time: float, x: Array) -> Array:
        return A @ x + b * time

    close(difference_jacobian(rates, t, np.array([3.0, 0.0, -50.0])), A, 1e-5, 1e-5, "df/dy")
    for integrator in integrators():
        scheme: Any = integrator.method
        if not hasattr(scheme, "b") or scheme.implicit or getattr(scheme, "kick", False):
            continue
        wanted, derivative, factor = y.copy(), rates(t, y), 1.0
        for n in range(1, integrator.order + 1):
            factor /= n
            wanted = wanted + factor * h**n * derivative
            derivative = A @ derivative + (b if n == 1 else 0.0)
        found = runge_kutta_step(rates, scheme, t, y, h)
        close(found, wanted, 0.0, 5.0 * h ** (integrator.order + 1), integrator.name)
    assert scheme_of("ode5") is find_integrator("RK5").method


def test_grids_of_output_and_sides_of_ranges() -> None:
    def grid(t_end: float, dt_out: float) -> Array:
        how: Any = (
            find_integrator("dop853"),
            t_end,
            dt_out,
            1e-8,
            1e-10,
            None,
            np.inf,
            {},
            False,
            False,
        )
        return Options(*how).grid

    close(grid(1.0, 0.3), [0.0, 0.3, 0.6, 0.9, 1.0], 1e-12, 0.0, "not a multiple")
    assert grid(0.3, 0.1)[-1] == 0.3
    assert len(grid(0.3, 0.1)) == 4
    close(grid(0.2, 0.5), [0.0, 0.2], 0.0, 0.0, "one row")
    ranges = Ranges(np.array([1, 3]), np.array([-1.0, 0.0]), np.array([1.0, 2.0]))
    sides = {ranges.sides(np.array([9.0, a, 9.0, b])) for a in (-2.0, 0.0, 2.0) for b in (-1.0, 1.0, 3.0)}  # fmt: skip
    assert len(sides) == 9
    assert ranges.sides(np.array([9.0, 1.0, 0.0, 0.0])) == ranges.sides(np.array([0.0, -1.0, 0.0, 2.0]))  # fmt: skip


# ---- loops ----


def test_open_loops_of_a_batch_are_named_by_state_and_row() -> None:
    model = rf.load("four_bar")
    drawn = [consistent(model, seed) for seed in range(4)]
    q, v = (np.array([x[k] for x in drawn]) for k in (0, 1))
    refuse_open_states(model, q, v)
    assert not said(lambda: warn_of_changed_rates(model, q, v))
    names = model.constraints(q[0]).names
    for state, column in ((1, 0), (3, 2)):
        for size in (0.05, 0.3):
            off = q.copy()
            off[state, column] += size
            gap = np.abs(model.constraints(off[state]).residual)
            row = names[int(np.argmax(gap))]
            with pytest.raises(rf.LoopError, match=rf"q0 of state {state} \(1 of 4 in all\) .*{row} by"):  # fmt: skip
                refuse_open_states(model, off, v)
    fast = v.copy()
    fast[2, 1] += 0.5
    opening = np.abs(model.constraints(q[2]).J @ fast[2])
    row = names[int(np.argmax(opening))]
    with pytest.raises(rf.LoopError, match=rf"v0 of state 2 \(1 of 4 in all\) .*{row} by"):
        refuse_open_states(model, q, fast)
    for sign in (1.0, -1.0):
        little = v.copy()
        little[2, 1] += sign * 1e-5 * np.abs(v[2]).max()
        refuse_open_states(model, q, little)
        (text,) = said(partial(warn_of_changed_rates, model, q, little))
        assert "v0 of state 2 opens the loops" in text


def test_rates_that_closing_changes_are_counted_from_their_share() -> None:
    model = rf.load("four_bar")
    v = np.array([[1.0, -0.5, 0.2], [2.0, 0.3, -0.4], [-0.7, 0.6, 0.9], [np.nan, 0.1, 0.2]])
    v = np.pad(v, ((0, 0), (0, max(0, model.nv - 3))), constant_values=0.1)[:, : model.nv]
    thrown, sizes = ThrownRates(model, 1e-2), column_sizes(model)
    fastest = thrown.speeds(np.nan_to_num(v))
    close(fastest, (np.abs(np.nan_to_num(v)) * sizes).max(axis=1), 1e-12, 0.0, "speeds")
    closed = v.copy()
    closed[0, 1] += 0.5 * 1e-2 * fastest[0] / sizes[1]
    closed[1, 2] -= 3e-2 * fastest[1] / sizes[2]
    closed[2, 0] += 2e-2 * fastest[2] / sizes[0]
    found = thrown.compare(v, closed, fastest)
    assert found.tolist() == [False, True, True, False]
    assert thrown.count == 2
    change = 3e-2 * fastest[1] / sizes[2]
    assert f"{model.velocities[2]!r} by up to {change:.3g}" in thrown.text("now")
    assert ", 3 % of the fastest" in thrown.text("now")


# ---- constants ----


def test_robots_with_other_constants_one_by_one() -> None:
    """Each kind of constant where it belongs, against fields that are set by hand."""
    model = rider()
    six = np.array([0.3, 0.4, 0.5, 0.01, 0.02, 0.03])
    given: dict[str, Any] = {
        "hinge.mass": 0.9, "hinge.com": [0.1, 0.2, 0.3], "base.inertia": six, "hinge.damping": 0.6,
        "slide.position": [0.4, 0.5, 0.6], "hinge.stiffness": 7.0, "slide.armature": 0.2,
        "gravity": [1.0, 2.0, 3.0], "hinge.friction": 0.5,
    }  # fmt: skip
    found = rf.with_parameters(model, given)
    base, hinge, slide = found.bodies
    assert (hinge.mass, [*hinge.com]) == (0.9, [0.1, 0.2, 0.3])
    xx, yy, zz, xy, yz, xz = six
    close(base.inertia, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], 0.0, 0.0, "inertia")
    close(slide.joint.placement.position, [0.4, 0.5, 0.6], 0.0, 0.0, "position")
    close(slide.joint.placement.rotation, model.bodies[2].joint.placement.rotation, 0.0, 0.0, "axes")  # fmt: skip
    (element,) = hinge.joint.machine
    assert element.damping == (0.6, 0.0, 0.0)
    assert element.spring is not None
    assert (element.spring.stiffness, element.spring.rest) == ((7.0, 0.0, 0.0), (0.4,))
    assert element.friction is not None
    close([element.friction.forward, element.friction.backward], [0.6, 0.4], 1e-12, 0.0, "friction")
    assert slide.joint.machine[0].armature == 0.2
    assert slide.joint.machine[0].efforts == (-1.5, 2.0)
    assert tuple(found.gravity) == (1.0, 2.0, 3.0)
    assert [body.mass for body in (base, slide)] == [2.0, 0.4]
    q, v = states(model)
    many = {"hinge.damping": np.array([0.1, 0.2, 0.3]), "hinge.mass": np.array([0.4, 0.5, 0.6]), "hinge.friction": np.array([0.2, 0.3, 0.1])}  # fmt: skip
    for kind in ("inverse_dynamics", "forward_dynamics"):
        x = np.random.default_rng(9).normal(size=(3, 8))
        all_of_them = getattr(model, kind)(q, v, x, passive=True, stops=False, parameters=many)
        for i in range(3):
            single = rf.with_parameters(model, {k: value[i] for k, value in many.items()})
            own = passive_forces(single, q[i], v[i], False).total
            shift = own if kind == "forward_dynamics" else 0.0 * own
            alone = getattr(single, kind)(q[i], v[i], x[i] + shift)
            alone = alone if kind == "forward_dynamics" else alone - own
            close(all_of_them[i], alone, 1e-7, 1e-7, f"{kind} of state {i}")
    assert replace(found, gravity=model.gravity).gravity == model.gravity
