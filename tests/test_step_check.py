"""Fixed steps on a ground: defaults whose answers are converged, and a check of the step."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from comparing import close

import ramify as rf
from ramify import envs
from ramify.envs.returns import episode_returns
from ramify.runs.step_check import StepCheck, estimated

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))

import ground_steps

pytestmark = pytest.mark.filterwarnings("ignore:(?s).*left out, which changes the motion")
GAITS = 24


@pytest.mark.parametrize("name", ground_steps.ROBOTS)
def test_returns_are_converged_by_default(name: str) -> None:
    """Catches: the default step and method gave returns that were off by 15 to 30 %, and friction acted under the force of a damper before
    it stopped a landing foot.
    """
    env = ground_steps.ROBOTS[name](GAITS)
    assert env.method == "implicit_extrapolation"
    assert env.dt * env.substeps == pytest.approx(0.02)
    now, _ = ground_steps.off(name, GAITS, seconds=1.0)
    before, _ = ground_steps.off(name, GAITS, 1.0, dt=2e-3, substeps=10, method="implicit_euler")
    assert now < 0.05
    assert before > 1.5 * now


def test_the_mean_return_of_one_policy_is_converged_by_default() -> None:
    """A stepping gait of the registered quadruped, from 24 starts."""

    def mean(**options: Any) -> float:
        env = envs.EXAMPLES["Quadruped"](GAITS, **options)
        env.reset(seed=3)
        total = 0.0
        for k in range(60):
            swing = np.sin(4.0 * np.pi * 0.02 * k + np.pi * np.array([0, 0, 0, 1, 1, 1] * 2))
            total += float(env.step(np.tile(0.6 * swing, (GAITS, 1)))[1].mean())
        return total

    fine = mean(dt=1e-4, substeps=200)
    assert abs(mean() - fine) < 0.1 * abs(fine)


@pytest.mark.parametrize("ground", ["firm", "dusty", "hunt_crossley"])
def test_auto_takes_the_method_of_second_order_on_every_ground(ground: str) -> None:
    m = rf.load("quadruped")
    q0 = m.neutral()
    q0[2] = 0.62
    end = rf.rollout(m, q0, np.zeros(m.nv), steps=2, dt=2e-3, ground=ground)
    run = rf.simulate(m, 4e-3, q0, ground=ground, step=2e-3, dt_out=4e-3)
    assert end.method == run.options["method"] == "implicit_extrapolation"
    close(run.q[-1], end.q, atol=1e-12, of="q")


# ---- the length of steps of environments ----


def test_lengths_of_environment_steps() -> None:
    m, options = rf.load("quadruped"), {"reward": lambda a, b: 0.0, "scale": 1.0}
    lengths = {
        (): (2e-3, 10),
        ("ground",): (1e-3, 20),
        ("ground", "dt"): (4e-3, 10),
        ("ground", "substeps"): (1e-3, 4),
    }
    some: dict[str, Any] = {"ground": "firm", "dt": 4e-3, "substeps": 4}
    for names, wanted in lengths.items():
        env = envs.RobotVectorEnv(m, 1, **options, **{name: some[name] for name in names})
        assert (env.dt, env.substeps) == wanted, names


# ---- the check ----


def pendulum() -> rf.Model:
    rod = {"axis": (0, 1, 0), "mass": 1.0, "com": (0.3, 0, 0), "inertia": (0.01, 0.01, 0.01)}
    return rf.Builder("pendulum").link("rod", **rod).model()


def test_the_estimate_is_near_the_true_error() -> None:
    """A pendulum by schemes of first and second order, in a batch whose second state swings
    furthest.
    """
    m = pendulum()
    q0 = np.array([[1.5], [0.2]])
    true = [rf.simulate(m, 0.5, q, rtol=1e-12, atol=1e-13).q[-1] for q in q0]
    for method, most in (("euler", 3.0), ("rk4", 100.0)):  # first order is assumed of all
        check = rf.check_step(m, q0, np.zeros((2, 1)), dt=1e-2, t_end=0.5, method=method)
        for h, error in zip(check.dt, check.error, strict=True):
            steps = round(0.5 / h)
            end = rf.rollout(m, q0, np.zeros((2, 1)), steps=steps, dt=h, method=method).q
            off = float(np.abs(end - true).max())
            assert off / 1.3 < error < most * off + 1e-12, (method, h)
        assert check.method == (method,) * 4


def table(*error: float, tolerance: float = 0.1) -> StepCheck:
    n = len(error)
    return StepCheck(
        1e-3 / 2.0 ** np.arange(n), ("rk4",) * n, np.array(error), np.zeros(n), tolerance, "%"
    )


@pytest.mark.parametrize(
    ("errors", "step"),
    [
        ((0.05, 0.02, 0.01), 1e-3),
        ((0.2, 0.1, 0.01), 5e-4),
        ((0.05, 0.2, 0.01), 2.5e-4),  # near by chance counts for nothing
        ((0.3, 0.2, 0.15), None),
        ((np.inf, 0.2, 0.05), 2.5e-4),
    ],
)
def test_the_longest_step_within_the_tolerance(errors: Any, step: float | None) -> None:
    check = table(*errors)
    assert check.step == step
    assert check.passed == (step == 1e-3)
    said = str(check).splitlines()
    assert len(said) == len(errors) + 2
    wanted = "no step down to 0.25 ms" if step is None else f"is {step * 1e3:g} ms"
    assert wanted in said[-1]
    assert ("diverged" in said[1]) == np.isinf(errors[0])


def test_long_steps_that_diverge_are_reported_as_such() -> None:
    m = pendulum()
    law = rf.control.PD(rf.motion.Hold([0.0]), kp=20.0, kd=6.0)  # decays at 60 1/s
    options: dict[str, Any] = {"control": law, "method": "rk4", "halvings": 5}
    with pytest.warns(RuntimeWarning, match="too long for rk4"):
        check = rf.check_step(m, [0.3], [0.0], dt=0.1, t_end=40.0, **options)
    assert np.isinf(check.error[0])
    assert check.method[0] == ""
    assert check.step is not None
    assert check.step < 0.05
    assert "diverged" in str(check)


def test_answers_that_agree_by_chance_do_not_make_an_error_small() -> None:
    error = estimated([0.8, 0.3, 1e-9])
    close(error, [0.9, 0.4, 0.1 + 1e-9, 0.1], of="error")  # 0.3 in steps 4 times as long: 0.1
    close(estimated([np.nan, 0.4, 0.2]), [np.inf, 0.6, 0.4, 0.2], of="error")


def test_landings_and_chosen_quantities() -> None:
    m = rf.load("quadruped")
    q0 = m.neutral()
    q0[2] = 0.62
    parts: dict[str, Any] = {"t_end": 0.1, "ground": "firm"}
    check = rf.check_step(m, q0, np.zeros(m.nv), dt=4e-3 / 4, **parts)
    height = rf.check_step(
        m, q0, np.zeros(m.nv), dt=4e-3 / 4, quantity=lambda q, v: q[..., 2], **parts
    )
    assert (height.error <= check.error).all()
    assert check.passed
    assert "rad or m" in str(check)


def test_turned_bases_are_compared_by_their_angle() -> None:
    m = rf.load("quadruped", base="free")
    v0 = np.zeros(m.nv)
    v0[3:6] = 3.0, -2.0, 1.0
    check = rf.check_step(m, m.neutral(), v0, dt=1e-2, t_end=0.2, method="euler")
    assert 1e-3 < check.error[0] < 1.0
    assert check.error[0] > check.error[-1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"t_end": 0.0105}, "t_end 0.0105 s must be a multiple of dt, 0.001 s"),
        ({"halvings": 1}, "halvings 1 must be a whole number ≥ 2"),
        ({"halvings": 40}, "halvings must be 2 to 12; got 40"),
        ({"tolerance": -1.0}, "tolerance -1.0 must be finite and positive"),
        ({"every": 2}, "leave out every and steps"),
        ({"method": "rk9"}, "'rk9'"),
        ({"quantity": {}}, "quantity must be a function of q and v"),
        ({"quantity": dict}, "quantity must be a function of q and v"),
    ],
)
def test_refused(given: dict[str, Any], message: str) -> None:
    m = rf.load("two_link")
    options = {"dt": 1e-3, "t_end": 0.01, **given}
    with pytest.raises(rf.RamifyError, match=message):
        rf.check_step(m, np.zeros(2), np.zeros(2), **options)


def test_only_robots_are_checked_here() -> None:
    env: Any = envs.EXAMPLES["Pendulum"](2)
    with pytest.raises(rf.StateError, match=r"env.check_step\(policy\)"):
        rf.check_step(env, [0.0], [0.0], dt=1e-3, t_end=0.01)
    with pytest.raises(rf.ModelError, match="give a model"):
        rf.check_step("two_link", [0.0], [0.0], dt=1e-3, t_end=0.01)  # type: ignore[arg-type]


def test_environments_check_their_step() -> None:
    env: Any = gymnasium.make_vec("ramify/Quadruped-v0", num_envs=8)
    env.reset(seed=5)
    before = env.states.q.copy()
    asked: list[tuple[int, ...]] = []

    def still(observation: Any) -> Any:
        asked.append(observation.shape)
        return np.zeros((8, 12))

    check = env.check_step(still, dt=4e-3, steps=10, halvings=2)
    assert asked == [env.observation_space.shape] * 30
    np.testing.assert_array_equal(env.states.q, before)
    assert check.dt.tolist() == [4e-3, 2e-3, 1e-3]
    assert check.method == ("implicit_extrapolation",) * 3
    returns = [
        episode_returns(envs.EXAMPLES["Quadruped"](8, dt=h, substeps=round(0.02 / h)), still, 10, 0)
        for h in check.dt
    ]
    scale = np.abs(returns[-1]).mean()
    off = [abs((r - returns[-1]).mean()) / scale for r in returns]
    close(check.error, estimated(off[:-1]), of="error")
    close(check.noise[0], (returns[0] - returns[-1]).std() / scale / np.sqrt(8), of="noise")
    assert env.check_step(steps=3, halvings=2).dt[0] == env.dt  # random actions
    with pytest.raises(rf.StateError, match=r"lasts 0.02 s, which must be a multiple of dt; got 0.003"):  # fmt: skip
        env.check_step(dt=3e-3)


def test_a_run_that_ends_early_keeps_its_return() -> None:
    """After the first episode nothing is added."""
    m = rf.load("two_link")
    env = envs.RobotVectorEnv(
        m, 2, reward=lambda a, b: 1.0, terminated=lambda s: s.t > 0.05, scale=1.0, dt=1e-3
    )
    assert episode_returns(env, None, 50, 0).tolist() == [6.0, 6.0]
