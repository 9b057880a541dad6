"""Closed systems in motion: assembly, simulation under the torque of inverse dynamics, drift, dead
centres, rollouts, results.
"""

from __future__ import annotations

import dataclasses
import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from closed_systems import folding_twins, four_bar, parallelogram, tangent, two_arms

import ramify as rf
from ramify.core.arrays import Array
from ramify.core.scalar import sin
from ramify.runs.audit import audit
from ramify.scenario_files.scenario import read_scenario

TURN = 4.0 / 3.0
RATE = 1.5 * np.pi


def relative_drift(r: rf.Result) -> float:
    """Change of the energy, as a share of what was exchanged."""
    kinetic, potential, total = r.energy
    return float(np.abs(total - total[0]).max() / max(np.ptp(kinetic), np.ptp(potential)))


# ---- assembly ----


def test_both_branches_are_found_and_told() -> None:
    model = four_bar()
    up = model.assemble({"crank": 0.0}, {"crank": RATE})
    np.testing.assert_allclose(up.q, [0.0, 0.9844, 4.3144], atol=5e-5)
    np.testing.assert_allclose(up.v, [4.7124, 1.4045, 0.0], atol=5e-5)
    down = model.assemble({"crank": 0.0}, guess={"rocker": -1.0, "coupler": 2.0})
    np.testing.assert_allclose(down.q, [0.0, -up.q[1], 2 * np.pi - up.q[2]], atol=1e-9)
    assert (up.branch, down.branch) == (-1, 1)
    assert "branch of negative determinant" in up.note
    assert up.gap < 1e-15
    q, v, a = up
    c = model.constraints(q, v)
    np.testing.assert_allclose(c.J @ v, 0.0, atol=1e-14)
    np.testing.assert_allclose(c.J @ a, -c.Jdot_v, atol=1e-12)


def test_a_path_is_followed_row_by_row() -> None:
    t = np.linspace(0.0, TURN, 13)  # 30 degrees a row
    path = four_bar().assemble({"crank": RATE * t}, {"crank": np.full(13, RATE)})
    fine = four_bar().assemble({"crank": RATE * np.linspace(0.0, TURN, 121)})
    np.testing.assert_allclose(path.q, fine.q[::10], atol=1e-12)
    np.testing.assert_allclose(path.q[-1] - path.q[0], [2 * np.pi, 0, 0], atol=1e-12)
    assert path.gap < 1e-14


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "fixed", "spherical"])
def test_an_open_robot_is_closed_from_nearby(kind: str) -> None:
    model, q = two_arms(2, kind, {})
    away = model.integrate(q, np.random.default_rng(1).normal(size=model.nv) * 0.05, 1.0)
    state = model.assemble(guess=away)
    assert model.constraints(away).gap > 1e-3
    assert state.gap < 1e-12
    assert np.abs(model.difference(away, state.q)).max() < 0.5
    assert "left free" in state.note


def test_a_robot_starts_with_its_drives_where_the_guess_has_them() -> None:
    """The same posture in all ways to start; the drives move only where the loops do not close."""
    m = replace(rf.load("four_bar"), guess={"crank": 0.3, "rocker": 1.3, "coupler": 4.0})
    home = m.assemble().q
    assert home[0] == 0.3
    text = "{name: fall, robot: four_bar, t_end: 0.01}"
    for q in (rf.simulate(m, 0.01).q[0], read_scenario(text, robot=m).q0):
        np.testing.assert_allclose(q, home, atol=1e-12)
    side = replace(m, guess={"rocker": 1.3})  # the crank follows what the guess names
    assert side.assemble().q[0] > 0.1
    np.testing.assert_allclose(side.assemble().q, read_scenario(text, robot=side).q0, atol=1e-12)
    far = rf.load("four_bar", ground=0.2)  # the crank does not reach all around
    assert abs(far.assemble().q[0]) > 0.5
    np.testing.assert_allclose(far.assemble().q, far.assemble(guess={}).q)


def test_what_cannot_be_assembled_is_said_with_its_gap() -> None:
    model = four_bar()
    reach = r"bar cannot be assembled with crank = 0, rocker = 2\.5: a gap of 0\.1\d* m remains in pin\.x"
    with pytest.raises(rf.LoopError, match=reach):
        model.assemble({"crank": 0.0, "rocker": 2.5})
    torn = rf.with_loop(
        model,
        "other",
        "revolute",
        ("crank", (0.038, 0.01, 0)),
        ("coupler", (0.1152, 0, 0)),
        planar=True,
    )
    with pytest.raises(
        rf.LoopError,
        match=r"misses by 0\.005 m in every posture.*the loops 'other', 'pin' contradict each other",
    ):
        torn.assemble({"crank": 0.1})
    with pytest.raises(rf.StateError, match="independent names 'krank', which is not a coordinate"):
        model.assemble({"krank": 0.0})
    with pytest.raises(
        rf.StateError, match="rates names 'rocker', which is not among the independent"
    ):
        model.assemble({"crank": 0.0}, rates={"rocker": 1.0})
    with pytest.raises(rf.StateError, match="rows of one length"):
        model.assemble({"crank": np.zeros(3)}, rates={"crank": np.zeros(4)})
    with pytest.raises(rf.LoopError, match="has no loops to assemble"):
        model.tree.assemble()


def test_dead_centres_are_said() -> None:
    """The rocker cannot be driven past the ends of its swing, a parallelogram not past the line."""
    model = four_bar()
    swing = model.assemble({"crank": np.linspace(0.0, 2 * np.pi, 121)}).q[:, 1]
    past = np.linspace(1.0, swing.max() + 0.1, 60)
    said = r"rocker = (\S+): .* Row (\d+) of the path \(rocker = (\S+)\) still closes: the edge of"
    with pytest.raises(rf.LoopError, match=said) as refused:
        model.assemble({"rocker": past}, {"rocker": np.ones(60)})
    found = re.search(said, str(refused.value))
    assert found is not None
    assert float(found[3]) == pytest.approx(past[int(found[2])], abs=1e-5)
    assert float(found[3]) < swing.max() + 1e-3 < float(found[1]) + 2e-3
    platform = rf.load("stewart_platform")
    with pytest.raises(rf.StateError, match=r"one for all rows; where it changes .* rf.ik"):
        platform.assemble({"platform": np.tile([1.0, 0.0, 0.0, 0.0], (3, 1))})
    flat = parallelogram()
    with pytest.raises(
        rf.LoopError, match=r"the branch changes between rows 34 and 35 .* through a dead centre"
    ):
        flat.assemble({"crank": np.linspace(1.0, 4.0, 50)})
    with pytest.raises(
        rf.LoopError, match="of a dead centre: rates of the other coordinates are not determined"
    ):
        flat.assemble({"crank": np.pi}, {"crank": 1.0})
    assert flat.assemble({"crank": np.pi - 1e-3}).margin < 2e-3
    over = {"crank": 0.3, "rocker": four_bar().assemble({"crank": 0.3}).q[1]}
    with pytest.raises(rf.LoopError, match="rates of crank, rocker cannot be kept"):
        model.assemble(over, {"crank": 1.0, "rocker": 5.0})


def test_ways_past_a_dead_centre_are_told() -> None:
    """Rod and crank of one length fold where the slider is at zero: beyond, the slider is on the
    other side.
    """
    model = rf.load("slider_crank", rod=1.0)
    near, beyond = model.assemble({"crank": -1.2}), model.assemble({"crank": 1.2})
    assert near.note == "from the guess; branch of positive determinant"
    assert beyond.note.startswith(
        "from the guess, past a dead centre on the way, where the branch of the guess ends; branch "
        "of neg"
    )
    with pytest.raises(
        rf.LoopError,
        match=r"changes after row 0, before crank = -3\.2: the way leads through a dead centre",
    ):
        model.assemble({"crank": [-1.2, -4.2]})
    twins = folding_twins()  # two signs change, their product does not
    rows = np.linspace(-1.2, -4.0, 50)
    with pytest.raises(rf.LoopError, match="the branch changes between rows 33 and 34"):
        twins.assemble({"cranka": rows, "crankb": rows})
    with pytest.raises(
        rf.LoopError, match=r"after row 0, before crank = 3\.14159: the way leads through"
    ):
        parallelogram().assemble(
            {"crank": [np.pi - 0.3, np.pi + 0.3]}, guess=[np.pi - 0.3, 0.3 - np.pi, np.pi - 0.3]
        )


def test_whole_turns_are_not_walked() -> None:
    model = four_bar()
    state, one = model.assemble({"crank": 2000 * np.pi + 0.3}), model.assemble({"crank": 0.3})
    np.testing.assert_allclose(state.q - one.q, [2000 * np.pi, 0.0, 0.0], atol=1e-11)
    rows = model.assemble({"crank": [0.3, 2000 * np.pi + 0.3]})
    np.testing.assert_allclose(rows.q, [one.q, state.q], atol=1e-11)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (
            {"independent": {"crank": "a"}},
            "the value of 'crank' must be an array of real numbers",
        ),
        ({"independent": {"crank": []}}, "the value of 'crank' has no rows"),
        ({"guess": {"crank": "a"}}, "guess: the value 'a' of 'crank' must be a finite number"),
    ],
)
def test_values_that_are_no_numbers(given: dict[str, Any], what: str) -> None:
    with pytest.raises(rf.StateError, match=what):
        four_bar().assemble(**given)


# ---- simulation ----


def torque_of_a_turn(model: rf.Model, joint: str, rows: int = 128) -> Any:
    """tau(t) of one turn at a constant rate: periodic, so that its Fourier series is exact to
    rounding.
    """
    theta = 2 * np.pi * np.arange(rows) / rows
    q, v, a = model.assemble({joint: theta}, {joint: np.full(rows, RATE)})
    tau = model.inverse_dynamics(q, v, a)
    series, order = np.fft.rfft(tau, axis=0) / rows, np.arange(rows // 2 + 1)
    series[1:-1] *= 2.0

    def control(t: float, q: Array, v: Array) -> Array:
        found: Array = (np.exp(1j * order * RATE * t) @ series).real
        return found

    return control


@pytest.mark.parametrize(("name", "loops"), [("four_bar", 1), ("robotic_leg", 3)])
def test_the_driving_torque_brings_back_the_motion(name: str, loops: int) -> None:
    model = rf.load(name)
    assert len(model.loops) == loops
    start = model.assemble({"crank": 0.0}, {"crank": RATE})
    r = rf.simulate(
        model,
        TURN,
        start.q,
        start.v,
        control=torque_of_a_turn(model, "crank"),
        rtol=1e-10,
        atol=1e-12,
        dt_out=TURN / 40,
    )
    assert np.abs(r["crank"] - RATE * r.t).max() < 1e-7
    assert r.loops is not None
    assert r.loops.largest_gap < 1e-14
    _, lam = model.inverse_dynamics(
        *model.assemble({"crank": RATE * r.t}, {"crank": np.full(len(r), RATE)}), multipliers=True
    )
    np.testing.assert_allclose(r.loops.multipliers, lam, atol=1e-4 * np.abs(lam).max())


def test_three_rrr_is_led_by_its_three_torques() -> None:
    model = rf.load("three_rrr")
    start = model.assemble()
    cranks = ["crank1", "crank2", "crank3"]
    t = np.linspace(0.0, 0.5, 129)
    q0 = {name: start.q[model.coordinates.index(name)] for name in cranks}
    way = {name: q0[name] + 0.1 * np.sin(2 * t * (k + 1)) for k, name in enumerate(cranks)}
    rates = {name: 0.2 * (k + 1) * np.cos(2 * t * (k + 1)) for k, name in enumerate(cranks)}
    second = {name: -0.4 * (k + 1) ** 2 * np.sin(2 * t * (k + 1)) for k, name in enumerate(cranks)}
    state = model.assemble(way, rates, guess=start.q, accelerations=second)
    tau, lam = model.inverse_dynamics(*state, multipliers=True)
    moved, again = model.forward_dynamics(state.q, state.v, tau, multipliers=True)
    np.testing.assert_allclose(moved, state.a, atol=1e-8 * np.abs(state.a).max())
    np.testing.assert_allclose(again, lam, atol=1e-9 * np.abs(lam).max())
    from scipy.interpolate import CubicSpline

    control = CubicSpline(t, tau)
    r = rf.simulate(
        model,
        0.5,
        state.q[0],
        state.v[0],
        control=lambda s, q, v: control(s),
        rtol=1e-9,
        atol=1e-11,
        dt_out=0.125,
    )
    np.testing.assert_allclose(r.q, state.q[::32], atol=1e-6)


@pytest.mark.parametrize(
    ("name", "posture"),
    [
        ("slider_crank", {"crank": -0.5}),
        ("robotic_leg", {"crank": 0.0}),
        ("spatial_four_bar", {"crank": 0.4}),
    ],
)
def test_free_fall_keeps_loops_and_energy(name: str, posture: dict[str, float]) -> None:
    model = rf.load(name)
    r = rf.simulate(model, 10.0, model.assemble(posture).q, rtol=1e-11, atol=1e-13, dt_out=0.05)
    assert r.loops is not None
    assert r.loops.largest_gap < 1e-13
    assert relative_drift(r) < 1e-9
    assert np.abs(r.loops.power).max() < 1e-8 * np.abs(r.loops.multipliers).max()
    assert r.audit.passed
    assert "closed loops     ok" in str(r.audit)


def test_two_hundred_seconds() -> None:
    """200,000 compiled steps: the gap stays at rounding, the energy within 1e-8."""
    model = rf.load("slider_crank")
    q = model.assemble({"crank": -0.5}).q
    run = rf.rollout(model, q, np.zeros(3), steps=200_000, dt=1e-3, every=2_000)
    energy = sum(model.energy(run.q, run.v))
    kinetic = model.energy(run.q, run.v).kinetic
    assert model.constraints(run.q, run.v).gap < 1e-14
    assert np.abs(energy - sum(model.energy(q, np.zeros(3)))).max() < 1e-8 * kinetic.max()


def test_three_rrr_falls() -> None:
    """From the posture that the cranks of table 8.4 give."""
    model = rf.load("three_rrr")
    cranks = {"crank1": 1.0472, "crank2": 4.1888, "crank3": 5.7596}
    guess = {"coupler1": -0.8727, "platform": 3.7525, "coupler2": -2.0943, "coupler3": -0.9942}
    r = rf.simulate(model, 1.0, model.assemble(cranks, guess=guess).q, rtol=1e-10, atol=1e-12)
    assert r.loops is not None
    assert r.loops.largest_gap < 1e-14
    assert relative_drift(r) < 1e-8


def test_pins_in_space_fall_like_pins_in_the_plane() -> None:
    q = four_bar().assemble({"crank": 0.3}).q
    flat = rf.simulate(four_bar(), 1.0, q, rtol=1e-11, atol=1e-13)
    space = rf.simulate(four_bar(planar=False, turned=True), 1.0, q, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(space.q, flat.q, atol=1e-9)
    assert space.loops is not None
    assert space.loops.largest_gap < 1e-14


def test_massless_couplers_fall() -> None:
    model = four_bar(coupler=0.0)
    r = rf.simulate(model, 2.0, model.assemble({"crank": 0.3}).q, rtol=1e-10, atol=1e-12)
    assert relative_drift(r) < 1e-8


@pytest.mark.parametrize(
    ("options", "gap", "drift"),
    [
        ({"method": "rk4", "step": 1e-3}, 1e-15, 1e-6),
        ({"method": "semi_implicit_euler", "step": 1e-3}, 1e-12, 0.2),
        ({"method": "ab4", "step": 1e-3}, 1e-15, 1e-3),
        ({"method": "rk45"}, 1e-15, 1e-6),
        ({"method": "radau"}, 1e-15, 1e-5),
        ({"method": "lsoda"}, 1e-15, 1e-5),
        ({"stabilisation": 20.0}, 1e-8, 1e-6),
        ({"stabilisation": "none"}, 1e-7, 1e-6),
        ({"control": lambda t, q, v: np.zeros(3)}, 1e-15, 1e-6),
        ({"control": lambda t, q, v: np.zeros(3), "stabilisation": 20.0}, 1e-8, 1e-6),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, dict) else None,
)
def test_every_method_keeps_the_loops(options: dict[str, Any], gap: float, drift: float) -> None:
    model = four_bar()
    r = rf.simulate(model, 0.5, model.assemble({"crank": 0.3}).q, **options)
    assert r.loops is not None
    assert r.loops.largest_gap < gap
    assert relative_drift(r) < drift


def test_baumgarte_closes_what_is_open() -> None:
    """A gap decays with the rate given: after ten time constants of 1/20 s next to nothing is left."""
    model = four_bar()
    q = model.assemble({"crank": 0.3}).q + np.array([0.0, 1e-4, 0.0])
    run = rf.rollout(model, q, np.zeros(3), steps=500, dt=1e-3, every=50, stabilisation=40.0)
    gaps = np.abs(model.constraints(run.q, run.v).residual).max(axis=1)
    assert gaps[0] < 1.2e-5
    assert gaps[-1] < 1e-9
    with pytest.raises(
        rf.SimulationError, match="stabilisation -1 must be 'projection', 'none', or a rate"
    ):
        rf.simulate(model, 0.1, q, stabilisation=-1)


@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler"])
def test_rollouts_are_the_steps_in_python(method: str) -> None:
    model, q = two_arms(2, "revolute", {"axis": (1.0, 2.0, 0.5)}, None)
    v = tangent(model, q) * 0.3
    q, v = (np.stack([x, x]) for x in (q, v))
    compiled = rf.rollout(model, q, v, steps=5, dt=2e-3, method=method)
    python = rf.rollout(
        model, q, v, steps=5, dt=2e-3, method=method, control=lambda t, q, v: np.zeros_like(v)
    )
    np.testing.assert_allclose(compiled.q, python.q, atol=1e-12)
    np.testing.assert_allclose(compiled.v, python.v, atol=1e-10)
    c = model.constraints(compiled.q, compiled.v)
    assert c.gap < 1e-12
    np.testing.assert_allclose(np.einsum("nki,ni->nk", c.J, compiled.v), 0.0, atol=1e-12)


def test_a_floating_robot_with_loops_keeps_its_momentum() -> None:
    model, q = two_arms(2, "spherical", {})
    model = rf.with_gravity(model, (0.0, 0.0, 0.0))
    r = rf.simulate(model, 0.5, q, tangent(model, q) * 0.5, rtol=1e-10, atol=1e-12)
    assert len(r.audit.momentum) == 2
    assert r.audit.passed
    np.testing.assert_allclose(
        r.momentum.linear, r.momentum.linear[:1].repeat(len(r), 0), atol=1e-9
    )
    np.testing.assert_allclose(
        r.momentum.angular, r.momentum.angular[:1].repeat(len(r), 0), atol=1e-9
    )


def test_a_prescribed_crank_is_inverse_dynamics_over_time() -> None:
    model = four_bar()
    start = model.assemble({"crank": 0.3})
    r_control = rf.control.Prescribed(rf.motion.Cycloid([0.3], [1.3], 0.5))
    r = rf.simulate(model, 0.5, start.q, control=r_control, dt_out=0.05)
    assert r.desired is not None
    want = [{"crank": column[:, 0]} for column in (r.desired.q, r.desired.v, r.desired.a)]
    state = model.assemble(want[0], want[1], guess=start.q, accelerations=want[2])
    np.testing.assert_allclose(r.q, state.q, atol=1e-7)
    np.testing.assert_allclose(r.tau, model.inverse_dynamics(*state), atol=1e-6)
    for begin in (None, model.assemble({"crank": 0.2}).q):  # elsewhere: led to where it begins
        with nullcontext() if begin is None else pytest.warns(RuntimeWarning, match="'crank' .0.3"):
            again = rf.simulate(model, 0.5, begin, control=r_control, dt_out=0.05)
        np.testing.assert_allclose(again.q, r.q, atol=1e-7)
        assert again.options["start"] == "assembled where the motion begins"
    both = rf.control.Prescribed(rf.motion.Hold([0.3, 0.9]), actuated=["crank", "rocker"])
    with pytest.raises(
        rf.LoopError,
        match="1 degree of freedom: the 2 prescribed accelerations depend on each other",
    ):
        rf.simulate(model, 0.1, start.q, control=both)


def test_a_crank_that_begins_in_motion_takes_its_loops_with_it() -> None:
    """No start at all, or one at rest: the rates of the others follow from the crank's."""
    model = four_bar()
    turning = rf.control.Prescribed(rf.motion.Spline([0.0, 1.0], [[0.3], [2.3]]))
    state = model.assemble({"crank": 0.3}, {"crank": turning.motion.at(0.0).v[0]})
    for begin in (None, state.q):
        r = rf.simulate(model, 0.2, begin, control=turning, rtol=1e-10)
        np.testing.assert_allclose(r.v[0], state.v, atol=1e-9)
        assert r.audit.passed
        assert r.loops is not None
        assert r.loops.largest_gap < 1e-8
    with pytest.raises(rf.LoopError, match=r"q0 of state 0 .* opens the loops"):
        rf.rollout(
            model,
            model.assemble({"crank": 1.0}).q[None],
            np.zeros(3),
            steps=2,
            dt=1e-3,
            control=turning,
        )


def test_an_audit_fails_where_loops_are_open() -> None:
    model = four_bar()
    r = rf.simulate(model, 0.2, model.assemble({"crank": 0.3}).q)
    assert r.audit.passed
    assert r.loops is not None
    gap = np.array(r.loops.gap)
    gap[3:] += 1e-3
    torn = dataclasses.replace(r, loops=dataclasses.replace(r.loops, gap=gap))
    assert torn.audit.verdict == f"failed at t = {r.t[3]:.6g} s"
    assert "closed loops     BROKEN" in str(torn.audit)


@pytest.mark.parametrize("law", ["ComputedTorque", "Feedforward"])
def test_desires_that_contradict_the_loops_are_refused(law: str) -> None:
    model = four_bar()
    start = model.assemble({"crank": 0.3})
    rocker = float(start.q[1])
    follow = getattr(rf.control, law)
    hold = follow(rf.motion.Hold([0.3, rocker]), actuated=["crank", "rocker"])
    assert np.abs(rf.simulate(model, 0.05, start.q, control=hold).q - start.q).max() < 1e-3
    apart = follow(
        rf.motion.Cycloid([0.3, rocker], [0.8, rocker], 0.5), actuated=["crank", "rocker"]
    )
    told = r"1 degree of freedom: the 2 driven coordinates depend on each other .* contradicts them: at t = 0\.\d+ s it asks for"
    with pytest.raises(rf.LoopError, match=told):
        rf.simulate(model, 0.5, start.q, control=apart)
    with pytest.raises(rf.LoopError, match="contradicts them"):
        rf.rollout(model, start.q, start.v, steps=500, dt=1e-3, control=apart)


def test_planar_loops_must_be_planar() -> None:
    model = rf.load("four_bar")
    robot = rf.Builder("crooked", gravity=model.gravity)
    for body in model.bodies:
        parent = model.bodies[body.parent].name if body.parent >= 0 else None
        axis = (0.0, 0.1, 1.0) if body.name == "rocker" else (0.0, 0.0, 1.0)
        robot.link(
            body.name,
            parent,
            at=body.joint.placement,
            axis=axis,
            mass=1.0,
            inertia=(1e-3, 1e-3, 1e-3),
        )
    (pin,) = model.loops
    robot.loop(
        "pin",
        "revolute",
        (pin.first.link, pin.first.frame),
        (pin.second.link, pin.second.frame),
        planar=True,
    )
    crooked = robot.near(**model.guess).model()
    with pytest.raises(
        rf.LoopError,
        match=r"loop 'pin' of 'crooked' is called planar, but 'rocker' moves it out of its plane",
    ):
        crooked.assemble()
    with pytest.raises(rf.LoopError, match="is called planar"):
        rf.simulate(crooked, 0.1)
    assert "is called planar" in "".join(str(finding) for finding in crooked.check())


def test_dynamics_of_an_open_posture_are_refused() -> None:
    model = four_bar()
    q = model.assemble({"crank": 0.3}).q
    assert np.isfinite(model.forward_dynamics([q, q], np.zeros((2, 3)), np.zeros((2, 3)))).all()
    for options in ({}, {"multipliers": True}):
        with pytest.raises(
            rf.LoopError,
            match=r"the loops of 'bar' are open at q: pin\.[xy] is off by 0\.\d+ m; model\.assemble",
        ):
            model.forward_dynamics(
                [q, q + np.array([0.0, 0.1, 0.0])], np.zeros((2, 3)), np.zeros((2, 3)), **options
            )


# ---- starts and ends ----


def test_starts_that_do_not_fit() -> None:
    model = four_bar()
    q = model.assemble({"crank": 0.3}).q
    with pytest.raises(
        rf.LoopError, match=r"q0 of state 0 .* opens the loops of 'bar': pin\.x by 0\.\d+ m"
    ):
        rf.simulate(model, 1.0, np.zeros(3))
    with pytest.raises(
        rf.LoopError, match=r"v0 of state 0 .* opens the loops of 'bar': pin\.y by 0\.0\d+ m/s"
    ):
        rf.simulate(model, 1.0, q, [1.0, 0.0, 0.0])
    with pytest.raises(rf.LoopError, match="q0 of state 1 "):
        rf.rollout(model, [q, np.zeros(3)], np.zeros((2, 3)), steps=1, dt=1e-3)
    with pytest.raises(rf.SimulationError, match="energy-preserving method is for trees"):
        rf.simulate(model, 0.1, q, method="energy", step=1e-3)
    near = rf.simulate(model, 0.02, [0.0, 0.9844, 4.3144])  # as printed
    assert "q0 moved by 6.7" in near.options["start"]
    assert rf.simulate(model, 0.02).options["start"] == "assembled near the model's guess"
    assert rf.simulate(model, 0.02, q).options["start"] == "as given"


def test_singular_postures_end_a_run_unless_told() -> None:
    model = parallelogram()
    q, v, _ = model.assemble({"crank": 1.0}, {"crank": 2.0})
    with pytest.raises(
        rf.SimulationError, match=r"singular posture at t = 1\.0708 s .*at_singularity='pass'"
    ) as stopped:
        rf.simulate(model, 5.0, q, v)  # at (pi - 1) / 2
    assert isinstance(stopped.value.result, rf.Result)
    assert stopped.value.result.t[-1] < 1.2
    r = rf.simulate(model, 2.0, q, v, at_singularity="pass")
    assert len(r.stats["singular_postures"]) == 1
    np.testing.assert_allclose(
        r.q, np.outer(1.0 + 2.0 * r.t, [1, -1, 1]), atol=1e-5
    )  # it goes on as a parallelogram
    with pytest.raises(
        rf.SimulationError, match="at_singularity must be 'stop' or 'pass'; got 'go'"
    ):
        rf.simulate(model, 0.1, q, v, at_singularity="go")
    slider = rf.load("slider_crank", rod=1)  # as long as its crank: it folds up
    with pytest.raises(
        rf.SimulationError, match=r"\(margin 0, 2 degrees of freedom instead of 1\)"
    ):
        rf.simulate(slider, 1.0)


def test_two_loops_that_fold_at_once_are_seen() -> None:
    """Both determinants change their sign, their product does not."""
    model = folding_twins()
    start = model.assemble({"cranka": -1.2, "crankb": -1.2})
    said = r"twins is at a singular posture at t = 0\.82397\d s"
    with pytest.raises(rf.SimulationError, match=said):
        rf.simulate(model, 1.0, start.q)
    alone = rf.load("slider_crank", rod=1.0)
    r = rf.simulate(model, 1.0, start.q, at_singularity="pass")
    one = rf.simulate(alone, 1.0, alone.assemble({"crank": -1.2}).q, at_singularity="pass")
    np.testing.assert_allclose(
        r.stats["singular_postures"], one.stats["singular_postures"], atol=1e-6
    )
    assert len(one.stats["singular_postures"]) == 1


def test_rollouts_name_the_states_that_fold() -> None:
    """The second state rises first, and falls too late; the third goes round."""
    model = rf.load("slider_crank", rod=1.0)
    crank, rate = [-1.2, -1.2, -1.2], [0.0, 1.5, 9.0]
    starts = [model.assemble({"crank": x}, {"crank": u}) for x, u in zip(crank, rate, strict=True)]
    q, v = np.stack([s.q for s in starts]), np.stack([s.v for s in starts])
    for options in (
        {},
        {"every": 100},
        {"control": lambda t, q, v: np.zeros_like(v)},
        {"tau": np.zeros((3, 830, 3))},
    ):
        with pytest.warns(
            RuntimeWarning,
            match=r"2 of 3 states of 'slider_crank' pass a singular posture .*\(states 0, 2\)",
        ):
            run = rf.rollout(model, q, v, steps=830, dt=1e-3, **options)
        assert run.singular is not None
        assert run.singular.tolist() == [True, False, True]
        last = run.q[:, -1] if "every" in options else run.q
        np.testing.assert_allclose(
            last[1],
            rf.simulate(model, 0.8 if "every" in options else 0.83, q[1], v[1]).q[-1],
            atol=1e-6,
        )
    fine = rf.rollout(model, q[:2], v[:2], steps=800, dt=1e-3)
    assert fine.singular is not None
    assert not fine.singular.any()
    twins = folding_twins()
    with pytest.warns(RuntimeWarning, match="1 of 1 states of 'twins'"):
        rf.rollout(
            twins,
            twins.assemble({"cranka": -1.2, "crankb": -1.2}).q,
            np.zeros(6),
            steps=900,
            dt=1e-3,
        )


def test_a_drive_that_turns_back_at_its_dead_centre_is_seen() -> None:
    """The legs of a platform follow a turn through its singular posture; they would as well fit a
    motion that turns back there, and no determinant changes its sign then.
    """
    model, legs = rf.load("stewart_platform"), [f"leg{i}_length" for i in range(1, 7)]
    at, guess, yaw = [model.coordinates.index(leg) for leg in legs], None, np.linspace(60, 100, 41)
    rows: list[Array] = []
    for half in np.deg2rad(yaw) / 2:
        pose = {"platform.x": 0.0, "platform.y": 0.0, "platform.z": 0.6}
        turn = [np.cos(half), 0.0, 0.0, np.sin(half)]
        guess = model.assemble({**pose, "platform": turn}, guess=guess).q
        rows.append(guess)
    lengths = rf.motion.Spline(np.linspace(0.0, 2.0, 41), np.stack(rows)[:, at])
    start = model.assemble(
        dict(zip(legs, rows[0][at], strict=True)),
        dict(zip(legs, lengths.at(0.0).v, strict=True)),
        guess=rows[0],
    )
    control = rf.control.Prescribed(lengths)
    for rtol in (1e-6, 1e-8, 1e-10):
        with pytest.raises(rf.SimulationError, match=r"singular posture at t = 1\.4[789]"):
            rf.simulate(model, 2.0, start.q, start.v, control=control, rtol=rtol)
    r = rf.simulate(model, 1.4985, start.q, start.v, control=control, at_singularity="pass")
    assert len(r.stats["singular_postures"]) == 1
    assert "meets a singular posture at t = 1.49" in str(r.audit)
    assert "meets a singular posture at t = 1.49" in r.audit._repr_html_()


@pytest.mark.parametrize(
    ("control", "amplitude"), [("Prescribed", 0.3), ("Prescribed", 0.5), ("ComputedTorque", 0.5)]
)
def test_the_dead_centre_of_a_drive_ends_a_run(control: str, amplitude: float) -> None:
    """A slider is driven until the linkage is stretched (2.5 m), or further: which way the crank
    turns, nothing decides.
    """
    model = rf.load("slider_crank")
    start = model.assemble(
        {"slider": 2.2}, {"slider": amplitude}, guess=model.assemble({"crank": -1.2}).q
    )
    motion = rf.motion.TimeFunction(lambda t: [2.2 + amplitude * sin(t)])
    drive = getattr(rf.control, control)(motion, actuated=["slider"])
    with pytest.raises(rf.SimulationError, match="dead centre") as stopped:
        rf.simulate(model, 3.0, start.q, start.v, control=drive)
    r = stopped.value.result
    assert isinstance(r, rf.Result)
    assert r.t[-1] == pytest.approx(np.arcsin(0.3 / amplitude), abs=0.011)
    assert r.loops is not None
    assert r.loops.largest_gap < 1e-8  # rtol
    assert "where the loops do not follow the drive of 'slider'" in str(stopped.value)
    if amplitude == 0.5:  # out of reach, whatever happens at the dead centre
        with pytest.raises(rf.SimulationError, match=r"passed a dead centre at t = 0\.643"):
            rf.simulate(model, 3.0, start.q, start.v, control=drive, at_singularity="pass")


# ---- results ----


def test_results_carry_their_loops(tmp_path: Path) -> None:
    model = four_bar()
    r = rf.simulate(model, 0.3, model.assemble({"crank": 0.3}).q)
    assert r.loops is not None
    assert r.loops.names == ("pin.x", "pin.y")
    lam = model.forward_dynamics(r.q, r.v, r.tau, multipliers=True)[1]
    np.testing.assert_allclose(r.loops.multipliers, lam, atol=1e-12)
    r.save(tmp_path / "run.nc")
    again = rf.Result.open(tmp_path / "run.nc")
    assert again.loops is not None
    assert (again.loops.names, again.loops.units) == (r.loops.names, r.loops.units)
    np.testing.assert_array_equal(again.loops.gap, r.loops.gap)
    np.testing.assert_array_equal(again.loops.multipliers, r.loops.multipliers)
    assert again.model.loops == model.loops
    assert r.to_xarray()["multipliers"].sel(constraint="pin.y").shape == (31,)
    r.to_csv(tmp_path / "run.csv")
    assert "multipliers pin.x [N]" in (tmp_path / "run.csv").read_text().splitlines()[0]
    figure = r.plot("loops")
    assert [line.get_label() for line in figure.axes[0].lines] == ["pin.x", "pin.y"]
    with pytest.raises(rf.RamifyError, match="has no loops to plot"):
        rf.simulate(model.tree, 0.1).plot("loops")


@pytest.mark.parametrize("name", ["robotic_leg", "slider_crank", "three_rrr"])
def test_loose_runs_have_a_verdict(name: str) -> None:
    """What atol lets through is measured by the inertia of the opened tree, whatever the actuators
    can do.
    """
    r = rf.simulate(rf.load(name), 2.0, method="rk45", rtol=1e-3, atol=1e-3, at_singularity="pass")
    assert r.audit.passed
    assert r.audit.energy.limit > 1.1 * r.audit.tolerance * r.audit.energy.scale


def test_a_broken_run_is_blamed_on_a_body() -> None:
    """The audit's account per body knows the loops' forces: of a sound run, no body is off by more
    than its own doubt.
    """
    from ramify.runs.energy_blame import shares_of

    model = four_bar()
    r = rf.simulate(
        model, 0.5, model.assemble({"crank": 0.3}).q, dt_out=1e-3, rtol=1e-10, atol=1e-12
    )
    shares, _ = shares_of(r, 400)
    assert np.abs(shares).max() < 1e-6
    assert not audit(r, 1e-15).passed


# ---- values far away ----


def gantry() -> rf.Model:
    """A beam on two rails: its slides may go anywhere."""
    made = rf.Mechanism("gantry")
    for name in ("left", "right", "beam"):
        made.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
    made.joint("left", None, "left", "prismatic", axis=(1, 0, 0))
    made.joint("right", (None, (0, 1, 0)), "right", "prismatic", axis=(1, 0, 0))
    made.joint("near", "left", "beam", "revolute", axis=(0, 0, 1))
    made.joint("far", "right", ("beam", (0, 1, 0)), "revolute", axis=(0, 0, 1))
    return made.model()


@pytest.mark.parametrize("value", [1e3, 1e12, 1e300, -1e12])
def test_ways_that_are_too_long_are_refused_at_once(value: float) -> None:
    """They were followed in steps of a tenth of the robot's size, for hours."""
    says = rf"'left' moves by {abs(value):.3g} m on it, and 500 m is the most".replace("+", r"\+")
    for values, origin in ((value, "the guess"), ([0.0, value], "row 0")):
        with pytest.raises(rf.LoopError, match=f"the way from {origin} to left = .*{says}"):
            gantry().assemble({"left": values})
    near = gantry().assemble({"left": 20.0})
    assert near.gap < 1e-9
    assert abs(near.q[1] - 20.0) < 1e-3


def test_whole_turns_are_not_a_long_way() -> None:
    model, turns = rf.load("four_bar"), 2.0 * np.pi * 1e5
    far, near = (model.assemble({"crank": 0.5 + x}) for x in (turns, 0.0))
    np.testing.assert_allclose(far.q[1:], near.q[1:], atol=1e-8)
