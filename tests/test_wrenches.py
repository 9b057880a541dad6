"""External wrenches in runs and rollouts, against integrators of the tests' own, impulses, and each
other.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ramify as rf
from ramify.cli import main
from ramify.runs.energy_blame import shares_of
from ramify.scenario_files.scenario import read_scenario

ARM = "kuka_kr5"
LEAN = np.array([0.1, 0.5, -0.3, 0.2, 0.4, 0.0])
LOAD = {"link6": [0.01, 0.02, -0.01, 4.0, 5.0, -9.0], "link3": [0.0, 0.5, 0.0, 0.0, 3.0, 0.0]}


def by_hand(m: rf.Model, q: np.ndarray, wrenches, steps: int, dt: float, **how) -> tuple:
    """(q, v) by the classical Runge-Kutta method around ``Model.forward_dynamics``."""

    def rates(t: float, x: np.ndarray) -> np.ndarray:
        w = wrenches(t) if callable(wrenches) else wrenches
        q, v = x[: m.nq], x[m.nq :]
        a = m.forward_dynamics(q, v, np.zeros(m.nv), wrenches=w, **how)
        return np.concatenate([v, a])

    x = np.concatenate([q, np.zeros(m.nv)])
    for k in range(steps):
        t = k * dt
        k1 = rates(t, x)
        k2 = rates(t + dt / 2, x + dt / 2 * k1)
        k3 = rates(t + dt / 2, x + dt / 2 * k2)
        x = x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + rates(t + dt, x + dt * k3))
    return x[: m.nq], x[m.nq :]


@pytest.mark.parametrize("form", ["constant", "function", "push"])
def test_a_run_under_wrenches_is_that_of_an_independent_integrator(form: str) -> None:
    m = rf.load(ARM)
    given = {"constant": LOAD, "function": lambda t: LOAD, "push": [(0.0, 9.0, LOAD)]}[form]
    q, v = by_hand(m, LEAN, LOAD, 200, 1e-3)
    r = rf.simulate(m, 0.2, LEAN, wrenches=given, method="rk4", step=1e-3)
    np.testing.assert_allclose(r.q[-1], q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(r.v[-1], v, rtol=0, atol=1e-11)
    a = m.forward_dynamics(r.q, r.v, r.tau, wrenches=LOAD)
    np.testing.assert_allclose(r.a, a, rtol=0, atol=1e-9 * np.abs(a).max())


def test_wrenches_that_follow_a_function_of_time() -> None:
    m = rf.load(ARM)

    def wave(t: float) -> dict:
        return {"link6": [0.0, 0.0, 0.0, 8.0 * np.sin(20.0 * t), 0.0, 5.0 * t]}

    q, _ = by_hand(m, LEAN, wave, 2000, 1e-4)
    for how in ({"rtol": 1e-11, "atol": 1e-13}, {"method": "rk4", "step": 1e-3}):
        r = rf.simulate(m, 0.2, LEAN, wrenches=wave, **how)
        np.testing.assert_allclose(r.q[-1], q, rtol=0, atol=1e-8)
        np.testing.assert_allclose(r.wrenches["link6"][:, 3], 8.0 * np.sin(20.0 * r.t))
        assert r.options["wrenches"].startswith("function ")
        assert "wave" in r.options["wrenches"]
    errors = []
    for step in (4e-3, 2e-3):  # held as in the middle of a step, which keeps the order
        held = rf.simulate(m, 0.2, LEAN, wrenches=wave, method="implicit_extrapolation", step=step)
        errors.append(np.abs(held.q[-1] - q).max())
    assert errors[1] < errors[0] / 3.0


def test_an_impulse_is_the_change_of_momentum() -> None:
    m = rf.load("quadruped", base="free")
    body, force, t0, t1 = m.bodies[0].name, np.array([30.0, -20.0, 50.0]), 0.0512, 0.1043
    r = rf.simulate(m, 0.3, wrenches=[(t0, t1, {body: [0, 0, 0, *force]})], rtol=1e-11, atol=1e-13)
    p = r.momentum.linear
    gained = p[-1] - p[0] - m.mass * np.array(m.gravity) * 0.3
    np.testing.assert_allclose(gained, (t1 - t0) * force, rtol=0, atol=1e-9)
    assert r.audit.passed
    assert r.audit.momentum == ()
    on = (r.t > t0) & (r.t <= t1)
    np.testing.assert_array_equal(r.wrenches[body][on, 3:], np.tile(force, (on.sum(), 1)))
    assert not r.wrenches[body][~on].any()


def box() -> rf.Model:
    b = rf.Builder("box", gravity=(0.0, 0.0, 0.0))
    return b.link("box", joint="free_euler", mass=2.0, inertia=(0.1, 0.2, 0.3)).model()


def test_a_moment_turns_a_free_body() -> None:
    r = rf.simulate(box(), 0.1, wrenches={"box": [0.0, 0.0, 0.6, 0.0, 0.0, 0.0]})
    np.testing.assert_allclose(r.momentum.angular[-1], [0.0, 0.0, 0.06], atol=1e-12)


def test_a_push_of_a_part_of_a_step_keeps_its_impulse_in_rollouts() -> None:
    zero = np.zeros((2, 6))
    end = rf.rollout(
        box(), zero, zero, steps=10, dt=1e-2,
        wrenches=[(0.0123, 0.0456, {"box": [[0, 0, 0, 3.0, 0, 0], [0, 0, 0, 0, 5.0, 0]]})],
    )  # fmt: skip
    np.testing.assert_allclose(end.v[0, :3], [3.0 * 0.0333 / 2.0, 0, 0], atol=1e-15)
    np.testing.assert_allclose(end.v[1, :3], [0, 5.0 * 0.0333 / 2.0, 0], atol=1e-15)


PUSHES = [(0.03, 0.11, LOAD), (0.07, 0.13, {"link5": [0, 0, 0, 0, 9.0, 0]})]


@pytest.mark.parametrize("given", [LOAD, PUSHES], ids=["constant", "pushes"])
def test_the_energy_audit_counts_the_work_of_wrenches(given) -> None:
    m = rf.load(ARM)
    r = rf.simulate(m, 0.2, LEAN, wrenches=given, rtol=1e-12, atol=1e-14)
    assert r.audit.passed
    assert r.audit.energy.relative < 1e-9
    assert abs(r.wrenches.work[-1]) > 0.01
    assert "work of external wrenches" in str(r.audit)
    assert r.audit.to_dict()["wrench_work"] == r.wrenches.work[-1]
    assert "work of wrenches" in [curve.get_label() for curve in r.plot("energy").axes[0].lines]
    # the same work, by quadrature over the rows
    if given is LOAD:
        power = sum(
            np.einsum("tij,tj,i->t", m.jacobian(r.q, name), r.v, w) for name, w in LOAD.items()
        )
        assert np.trapezoid(power, r.t) == pytest.approx(r.wrenches.work[-1], rel=1e-2)


def test_the_audit_blames_no_body_for_wrenches_and_still_finds_mistakes() -> None:
    from dataclasses import replace

    m = rf.load("planar_3r")
    r = rf.simulate(m, 0.5, wrenches={"link3": [0, 0, 0, 0, 6.0, 0]}, dt_out=0.005)
    assert r.audit.passed
    shares, _ = shares_of(r, len(r) - 1)
    assert np.abs(shares).max() < 1e-4 * abs(r.wrenches.work[-1])
    v = np.array(r.v)
    v[25:, 1] += 0.05
    broken = replace(r, v=v)
    assert not broken.audit.passed
    assert broken.audit.first_break.row == 25


def test_wrenches_of_a_result_are_in_its_files(tmp_path: Path) -> None:
    m = rf.load("planar_3r")
    r = rf.simulate(m, 0.1, wrenches=[(0.02, 0.05, {"link3": [0, 0, 0.2, 0, 6.0, 0]})])
    r.save(tmp_path / "run.nc")
    again = rf.Result.open(tmp_path / "run.nc")
    np.testing.assert_array_equal(again.wrenches.values, r.wrenches.values)
    np.testing.assert_array_equal(again.wrenches.work, r.wrenches.work)
    assert again.wrenches.names == ("link3",)
    assert again.audit.passed
    assert again.options["wrenches"] == [[0.02, 0.05, {"link3": [0, 0, 0.2, 0, 6.0, 0]}]]
    r.to_csv(tmp_path / "run.csv")
    header = (tmp_path / "run.csv").read_text().splitlines()[0]
    assert "wrenches link3 nz [N m]" in header
    assert "wrench_work [J]" in header
    total = np.loadtxt(r.to_redysim(tmp_path / "rd")[3])[:, -1]
    np.testing.assert_allclose(total, total[0], atol=1e-8)


def test_wrenches_beside_a_ground_loops_and_controllers() -> None:
    s = rf.scenario("biped_fall")
    trunk = s.robot.bodies[0].name
    for how in ({"rtol": 1e-9}, {"step": 5e-4}):
        r = rf.simulate(
            s.robot, 0.1, s.q0, s.v0, ground="hunt_crossley",
            wrenches={trunk: [0, 0, 0, 40.0, 0, 0]}, **how,
        )  # fmt: skip
        assert r.audit.passed
        assert r.wrenches.work[-1] != 0.0
    bar = rf.load("four_bar")
    link = bar.bodies[-1].name
    load = {link: [0, 0, 0.3, 0, 2.0, 0]}
    start = bar.assemble().q
    r = rf.simulate(bar, 0.2, start, wrenches=load)
    assert r.audit.passed
    assert r.loops.largest_gap < 1e-8
    a, lam = bar.forward_dynamics(
        r.q[5], r.v[5], np.zeros(bar.nv), wrenches=load, multipliers=True, passive=True
    )
    np.testing.assert_allclose(r.a[5], a, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(r.loops.multipliers[5], lam, rtol=1e-6, atol=1e-6)


def test_wrenches_act_beside_limited_drives() -> None:
    """They are no forces of the drives: no effort clips them, and tau does not contain them."""
    b = rf.Builder("arm").link("upper", axis=(0, 1, 0), mass=1.0, com=(0.2, 0, 0), effort=0.1)
    m, motion = b.model(), rf.motion.Cycloid(0.0, [1.0], duration=1.0)
    w = {"upper": [0.0, 3.0, 0.0, 0.0, 0.0, 0.0]}
    for control in (None, lambda t, q, v: [5.0], rf.control.PD(motion, kp=100.0, kd=1.0)):
        r = rf.simulate(m, 0.05, control=control, wrenches=w, method="rk4", step=1e-3)
        assert np.abs(r.tau).max() <= 0.1
        a = m.forward_dynamics(r.q, r.v, r.tau, wrenches=w)
        np.testing.assert_allclose(r.a, a, rtol=1e-9)
        assert r.audit.passed


def test_wrenches_beside_sampled_prescribed_and_python_controllers() -> None:
    m = rf.load("planar_3r")
    motion = rf.motion.Cycloid(np.zeros(3), np.full(3, 0.5), duration=0.2)
    pushes = [(0.0503, 0.1207, {"link3": [0, 0, 0, 0, 5.0, 0]})]
    law = rf.control.ComputedTorque(motion, kp=100.0, kd=20.0)
    python = rf.control.Function(lambda t, q, v: law.torque(m, t, q, v))
    exact = rf.simulate(m, 0.2, control=law, wrenches=pushes)
    slow = rf.simulate(m, 0.2, control=python, wrenches=pushes)
    np.testing.assert_allclose(slow.q, exact.q, rtol=0, atol=1e-8)
    assert exact.audit.passed
    assert slow.audit.passed
    counted = []

    def asked(t, q, v):
        counted.append(t)
        return law.torque(m, t, q, v)

    held = rf.simulate(m, 0.2, control=rf.control.Function(asked, rate_hz=100), wrenches=pushes)
    assert held.audit.passed
    times = sorted(set(np.round(counted, 9)))
    np.testing.assert_allclose(times[:20], np.arange(20) / 100, atol=1e-9)  # at samples alone
    led = rf.simulate(m, 0.2, control=rf.control.Prescribed(motion), wrenches=pushes)
    on = (led.t > 0.06) & (led.t < 0.12)
    tau = m.inverse_dynamics(led.q[on], led.v[on], led.a[on], wrenches=pushes[0][2])
    np.testing.assert_allclose(led.tau[on], tau, rtol=1e-9, atol=1e-9)
    assert led.audit.passed


def test_wrenches_on_merged_links_and_frames_act_at_their_origins() -> None:
    b = rf.Builder("arm").link("upper", axis=(0, 1, 0), mass=1.0, com=(0.2, 0, 0))
    b = b.link("tip", parent="upper", joint="fixed", at=(0.5, 0.0, 0.0), mass=0.1)
    m = b.model()
    w = {"tip": [0.0, 0.0, 0.0, 0.0, 0.0, 2.0]}
    q, v = by_hand(m, np.zeros(1), w, 100, 1e-3)
    r = rf.simulate(m, 0.1, wrenches=w, method="rk4", step=1e-3)
    np.testing.assert_allclose(np.r_[r.q[-1], r.v[-1]], np.r_[q, v], rtol=1e-12)


def test_rollouts_under_wrenches_are_those_of_single_runs() -> None:
    m, rng = rf.load(ARM), np.random.default_rng(0)
    states, steps, dt = 5, 40, 1e-3
    q0, v0 = rng.uniform(-0.5, 0.5, (states, 6)), np.zeros((states, 6))
    own = rng.normal(size=(states, 6)) * [0.01, 0.01, 0.01, 3.0, 3.0, 3.0]
    how = {"steps": steps, "dt": dt, "method": "rk4"}
    pushes = [(0.01, 0.03, LOAD)]
    runs = {"per state": {"link6": own}, "shared": LOAD, "pushes": pushes}
    for name, given in runs.items():
        end = rf.rollout(m, q0, v0, wrenches=given, **how)
        for i in range(states):
            single = {"link6": own[i]} if name == "per state" else given
            r = rf.simulate(m, steps * dt, q0[i], wrenches=single, method="rk4", step=dt)
            np.testing.assert_allclose(end.q[i], r.q[-1], rtol=0, atol=1e-12)
    table = np.zeros((states, steps, 6))
    table[:, 10:30] = own[:, None]
    whole = rf.rollout(m, q0, v0, wrenches={"link6": table}, **how)
    same = [
        rf.rollout(m, q0, v0, wrenches=[(0.01, 0.03, {"link6": own})], **how),
        rf.rollout(m, q0, v0, wrenches=lambda t: {"link6": own} if 0.01 <= t < 0.03 else {}, **how),
        rf.rollout(m, q0, v0, wrenches={"link6": table}, control=lambda t, q, v: 0.0 * v, **how),
        rf.rollout(
            m, q0, v0, wrenches={"link6": table},
            parameters={"link6.mass": np.full(states, m.bodies[-1].mass)}, **how,
        ),
    ]  # fmt: skip
    for end in same:
        np.testing.assert_allclose(end.q, whole.q, rtol=0, atol=1e-14)
    for i in range(states):
        alone = rf.rollout(m, q0[i], v0[i], wrenches={"link6": table[i]}, **how)
        np.testing.assert_allclose(alone.q, whole.q[i], rtol=0, atol=1e-14)


def test_derivatives_of_rollouts_under_wrenches() -> None:
    m, rng = rf.load("planar_3r"), np.random.default_rng(1)
    q0, tau = rng.uniform(-0.5, 0.5, (4, 3)), rng.normal(size=(20, 3))
    load = {"link3": rng.normal(size=(4, 6)) * 2.0}

    def end(q, tau):
        return rf.rollout(
            m, q, np.zeros((4, 3)), steps=20, dt=1e-2, tau=tau, wrenches=load, method="rk4"
        )

    run = end(q0, tau)
    weights = rng.normal(size=(4, 3))
    found, h = run.gradient(q=weights), 1e-6
    for given, slope, place in ((0, found.q0, (2, 1)), (1, found.tau, (7, 2))):
        both = []
        for sign in (1.0, -1.0):
            inputs = [q0.copy(), tau.copy()]
            inputs[given][place] += sign * h
            both.append((weights * end(*inputs).q).sum())
        assert (both[0] - both[1]) / (2 * h) == pytest.approx(slope[place], rel=1e-5)
    along = run.tangent(tau=np.ones((20, 3)))
    assert (weights * along.q).sum() == pytest.approx(found.tau.sum(), rel=1e-9)
    assert run.sensitivity().tau.shape == (4, 6, 3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"nobody": [0] * 6}, "no link or frame 'nobody'"),
        ({"link3": [0, 1, 2]}, r"needs \(\.\.\., 6\)"),
        ({"link3": [0, 0, 0, 0, 0, np.nan]}, "must be finite"),
        ({"link3": np.zeros((2, 6))}, "simulate runs one state"),
        ([0.0] * 6, "a push must be"),
        ([(0.2, 0.1, {"link3": [0] * 6})], "start < end"),
        ("link3", "wrenches must be a mapping"),
        (7.0, "wrenches must be a mapping"),
        (lambda t: [0] * 6, "wrenches must be a mapping"),
        (lambda t: 1 / 0, "wrenches raised ZeroDivisionError"),
        (lambda t: {"link3": [0] * 6} if 0.011 < t < 0.019 else {}, "on no time of output"),
    ],
)
def test_wrenches_that_do_not_fit_are_refused(given, said: str) -> None:
    with pytest.raises(rf.RamifyError, match=said):
        rf.simulate(rf.load("planar_3r"), 0.1, wrenches=given, method="rk4", step=1e-3)


def test_what_takes_no_wrenches_says_what_to_use() -> None:
    m = rf.load("planar_3r")
    with pytest.raises(rf.SimulationError, match=r"takes no wrenches.*dop853 or rk4"):
        rf.simulate(m, 0.1, wrenches={"link3": [0] * 6}, method="energy", step=1e-3)
    zero, load = np.zeros((5, 3)), np.zeros((5, 6))
    with pytest.raises(rf.StateError, match=r"per state or one per step: give \(5, 1, 6\)"):
        rf.rollout(m, zero, zero, steps=5, dt=1e-3, wrenches={"link3": load})
    with pytest.raises(rf.StateError, match=r"must be one of \(6,\), \(5, 6\), \(7, 6\)"):
        rf.rollout(m, zero, zero, steps=7, dt=1e-3, wrenches={"link3": load[:3]})


def test_no_wrenches_are_none() -> None:
    m = rf.load("planar_3r")
    plain = rf.simulate(m, 0.1)
    for nothing in ({}, []):
        r = rf.simulate(m, 0.1, wrenches=nothing)
        assert r.wrenches is None
        assert r.options["wrenches"] is None
        np.testing.assert_array_equal(r.q, plain.q)


# ---- scenario files ----

PUSHED = """
name: pushed
robot: planar_3r
t_end: 0.1
wrenches:
  - [0.02, 2*0.025, {link3: [0, 0, 0.2, 0, 6, 0]}]
"""


def test_scenarios_have_wrenches() -> None:
    m, push = rf.load("planar_3r"), [(0.02, 0.05, {"link3": [0, 0, 0.2, 0, 6.0, 0]})]
    exact = rf.simulate(m, 0.1, wrenches=push)
    s = read_scenario(PUSHED)
    plain = read_scenario(PUSHED.partition("wrenches")[0])
    runs = [
        s.run(),
        plain.run(wrenches=push),
        plain.run(wrenches="[[0.02, 0.05, {link3: [0, 0, 0.2, 0, 6, 0]}]]"),
        rf.Scenario.again(plain.run(wrenches=push)),
    ]
    for r in runs:
        np.testing.assert_array_equal(r.q, exact.q)
        np.testing.assert_array_equal(r.wrenches.work, exact.wrenches.work)
    load = {"link3": [0, 0, 0, 0, 1.0, 0]}
    constant = rf.simulate(m, 0.1, wrenches=load)
    for given in (load, "{link3: [0, 0, 0, 0, 1, 0]}", lambda t: load):
        np.testing.assert_allclose(s.run(wrenches=given).q, constant.q, rtol=0, atol=1e-9)
    assert s.run(wrenches=None).wrenches is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{link9: [0, 0, 0, 0, 0, 0]}", r"wrenches.link9: planar_3r has no link or frame 'link9'"),
        ("{link3: [0, 0, 1]}", r"wrenches.link3: 3 entries; it must be a list of 6 numbers"),
        ("[[0.1, {link3: [0, 0, 0, 0, 0, 0]}]]", r"wrenches.0: 2 entries"),
        ("[[0.2, 0.1, {link3: [0, 0, 0, 0, 0, 0]}]]", r"wrenches.0: must be \[start, end"),
        ("[[0, soon, {link3: [0, 0, 0, 0, 0, 0]}]]", r"wrenches.0.1: no parameter"),
        ("strong", r"wrenches: 'strong' must be a mapping from links"),
    ],
)
def test_wrenches_of_files_that_do_not_fit_are_refused(given: str, said: str) -> None:
    with pytest.raises(rf.ModelError, match=said):
        read_scenario(PUSHED.partition("wrenches")[0] + f"wrenches: {given}")


def test_wrenches_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    given = "[[0.02, 0.05, {link3: [0, 0, 0.2, 0, 6, 0]}]]"
    with pytest.raises(SystemExit) as ended:
        main(["simulate", "planar_3r", "--t-end", "0.1", "--wrenches", given, "--audit"])
    assert not ended.value.code
    assert "work of external wrenches" in capsys.readouterr().out
