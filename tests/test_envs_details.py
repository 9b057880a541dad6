"""Environments against what is written out here: rewards, observations and starts of the examples, the
options of a step, ends of single environments, and returns of a policy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from comparing import close

import ramify as rf
from ramify import envs
from ramify.core.errors import StateError
from ramify.envs.env_options import (
    action_factors,
    no_options,
    picture_size,
    ranges,
    refuse_infinite,
    time_steps,
)
from ramify.envs.returns import check_returns, episode_returns


def states(env: Any, seed: int) -> Any:
    """Three states and actions, all different."""
    rng = np.random.default_rng(seed)
    q = np.tile(env.model.neutral(), (3, 1)) + rng.normal(0.0, 0.5, (3, env.model.nq))
    v = rng.normal(0.0, 0.7, (3, env.model.nv))
    action = rng.uniform(-0.9, 0.9, env.action_space.shape)
    return envs.States(q, v, np.array([0.1, 0.2, 0.3]), action)


@pytest.mark.parametrize("name", list(envs.EXAMPLES))
def test_rewards_observations_and_ends_of_the_examples(name: str) -> None:
    env = envs.EXAMPLES[name](3)
    one, two = states(env, 1), states(env, 2)
    for k in range(3):
        q0, v0, a0, q, v, a = one.q[k], one.v[k], one.action[k], two.q[k], two.v[k], two.action[k]
        if name == "Pendulum":
            upright = (q0[0] % (2 * np.pi)) - np.pi
            reward = -(upright**2) - 0.1 * v0[0] ** 2 - 0.001 * (2.0 * a[0]) ** 2
            seen = [np.cos(q[0]), np.sin(q[0]), v[0]]
        elif name == "CartPole":
            height = (1 - np.cos(q[1])) / 2
            reward = height * (1 + 1 / (1 + q[0] ** 2)) / 2 * (1 + 1 / (1 + 0.1 * v[1] ** 2)) / 2
            seen = [q[0], np.cos(q[1]), np.sin(q[1]), v[0], v[1]]
        elif name == "Reacher":
            tip = env.model.pose(q, env.model.bodies[-1].name).position[:2] - [1.2, 0.8]
            reward = -np.sqrt(tip @ tip) - 0.01 * (a @ a)
            seen = [*np.cos(q), *np.sin(q), *v, *tip]
        else:
            reward = 1.5 - min(abs(v[0] - 1.0), 2.0) - q[3:6] @ q[3:6] - 0.1 * v[1] ** 2
            reward -= 0.01 * ((a - a0) @ (a - a0))
            seen = [*q[2:], *v, *a]
        close(env._reward(one, two)[k], reward, 1e-12, 1e-12, f"reward {k}")
        close(np.asarray(env._observe(two))[k], seen, 1e-12, 1e-12, f"observation {k}")


def test_settings_of_the_examples() -> None:
    for name, (dt, substeps, steps, scale) in {
        "Pendulum": (0.005, 10, 200, [2.0]), "CartPole": (0.004, 5, 500, [10.0]),
        "Reacher": (0.005, 4, 150, [20.0] * 3), "Quadruped": (0.001, 20, 500, None),
    }.items():  # fmt: skip
        env = envs.EXAMPLES[name](2)
        assert (env.dt, env.substeps, env.max_steps, env.num_envs) == (dt, substeps, steps, 2)
        if scale is not None:
            close(env._scale, scale, 0.0)
        assert env.metadata["render_fps"] == round(1.0 / (dt * substeps))
        other = envs.EXAMPLES[name](2, dt=0.002, max_steps=7)
        assert (other.dt, other.max_steps) == (0.002, 7)
    walker = envs.EXAMPLES["Quadruped"](2)
    close(walker._scale, 0.3 * 200.0, 1e-12)
    assert envs.EXAMPLES["Quadruped"].__name__ == "quadruped"


def test_starts_and_ends_of_the_examples() -> None:
    rng = np.random.default_rng
    pendulum = envs.EXAMPLES["Pendulum"](400)
    q, v = pendulum._start(rng(1), 400)
    assert 3.0 < q.max() < np.pi
    assert -np.pi < q.min() < -3.0
    assert 0.9 < v.max() < 1.0
    cart = envs.EXAMPLES["CartPole"](3)
    q, v = cart._start(rng(1), 4000)
    close([q.std(), v.std()], 0.05, 0.05)
    off = np.array([[2.3, 0.0], [2.5, 0.0], [-2.5, 0.0]])
    at = envs.States(off, np.zeros((3, 2)), np.zeros(3), np.zeros((3, 1)))
    assert list(cart._terminated(at)) == [False, True, True]
    reacher = envs.EXAMPLES["Reacher"](3)
    q, v = reacher._start(rng(1), 400)
    assert 0.45 < q.max() < 0.5
    assert not v.any()
    walker = envs.EXAMPLES["Quadruped"](2)
    standing = rf.scenario("quadruped_trot").q0
    q, v = walker._start(rng(1), 300)
    close(q, np.tile(standing, (300, 1)), 0.0)
    close(v.std(), 0.05, 0.1)
    low = np.tile(standing, (2, 1))
    low[:, 2] *= [0.61, 0.59]
    at = envs.States(low, np.zeros((2, walker.model.nv)), np.zeros(2), np.zeros((2, 12)))
    assert list(walker._terminated(at)) == [False, True]


def arm(**options: Any) -> envs.RobotVectorEnv:
    settings: dict[str, Any] = {
        "reward": lambda before, after: after.t + 10.0 * after.action[:, 0], "dt": 0.01, "substeps": 3,
        "scale": [1.0, 2.0, 3.0],
    }  # fmt: skip
    return envs.RobotVectorEnv(rf.load("planar_3r"), 3, **(settings | options))


def test_single_environments_end_and_begin_anew() -> None:
    """The second ends by itself at its second step, all others after four."""
    begun: list[int] = []

    def start(rng: Any, n: int) -> Any:
        begun.append(n)
        return rng.uniform(-1.0, 1.0, (n, 3)), rng.uniform(-1.0, 1.0, (n, 3))

    def ends(after: Any) -> Any:
        return np.array([False, after.t[1] > 0.05, False])

    env = arm(start=start, terminated=ends, max_steps=4)
    env.reset(seed=3)
    actions = np.array([[0.5, 2.0, -3.0], [0.1, 0.2, 0.3], [-0.4, 0.0, 1.0]])
    clipped = np.clip(actions, -1.0, 1.0)
    observation, reward, ended, cut, info = env.step(actions)
    close(reward, 0.03 + 10.0 * clipped[:, 0], 1e-12)
    assert (info, ended.any(), cut.any()) == ({}, False, False)
    close(env.states.action, clipped, 0.0)
    close(observation, np.concatenate([env.states.q, env.states.v], axis=1), 0.0)
    before = env.states
    observation, reward, ended, cut, info = env.step(0.5 * actions)
    assert list(ended) == [False, True, False]
    assert not cut.any()
    assert list(info["_final_obs"]) == [False, True, False]
    assert not info["failed"].any()
    assert "final_parameters" not in info
    close(env.states.t, [0.06, 0.0, 0.06], 1e-12)
    close(env.states.action[1], 0.0, 0.0)
    close(env.states.action[0], [0.25, 1.0, -1.0], 0.0)
    tau = np.clip(0.5 * actions, -1, 1) * [1.0, 2.0, 3.0]
    wanted = rf.rollout(
        env.model, before.q, before.v, steps=3, dt=0.01, tau=np.repeat(tau[:, None], 3, axis=1),
        method="semi_implicit_euler",
    )  # fmt: skip
    close(info["final_obs"], np.concatenate([wanted.q, wanted.v], axis=1), 1e-12, 1e-14)
    close(observation[[0, 2]], info["final_obs"][[0, 2]], 0.0)
    assert not np.allclose(observation[1], info["final_obs"][1])
    close(observation[1], np.concatenate([env.states.q[1], env.states.v[1]]), 0.0)
    *_, cut, _ = env.step(actions)
    assert not cut.any()
    _, _, ended, cut, info = env.step(actions)
    assert list(cut) == [True, False, True]  # the second is at its second step again
    assert list(ended) == [False, True, False]
    assert begun[1:] == [3, 1, 3]


def test_a_robot_that_ends_is_not_cut() -> None:
    env = arm(terminated=lambda s: [True, False, False], max_steps=1)
    env.reset(seed=0)
    _, _, ended, cut, _ = env.step(np.zeros((3, 3)))
    assert (list(ended), list(cut)) == ([True, False, False], [False, True, True])


def test_robots_that_diverge() -> None:
    def start(rng: Any, n: int) -> Any:
        v = np.zeros((n, 3))
        if n == 3:
            v[1] = 1e7
        return np.zeros((n, 3)), v

    env = arm(start=start)
    env.reset(seed=0)
    _, reward, ended, cut, info = env.step(np.full((3, 3), 0.1))
    assert list(ended) == list(info["failed"]) == [False, True, False]
    close(reward, [1.03, 0.0, 1.03], 1e-12)
    assert not cut.any()
    hopeless = arm(start=lambda rng, n: (np.zeros((n, 3)), np.full((n, 3), 1e7)))
    hopeless.reset(seed=0)
    with pytest.raises(rf.SimulationError, match="every robot diverged in its first step"):
        hopeless.step(np.zeros((3, 3)))


def test_what_an_environment_refuses() -> None:
    with pytest.raises(StateError, match=r"start must give q \(3, 3\) and v \(3, 3\); it gave"):
        arm(start=lambda rng, n: (np.zeros((1, 3)), np.zeros((n, 3))))
    still = rf.Builder("ball").link("ball", joint="ball", mass=1.0, inertia=(1, 1, 1)).model()
    with pytest.raises(
        StateError, match="actions need driven joints of single coordinates; ball has"
    ):
        envs.RobotVectorEnv(still, 2, reward=lambda a, b: 0.0)
    env = arm()
    env.reset(seed=0)
    with pytest.raises(StateError, match=r"actions have shape \(3, 2\), not \(3, 3\)"):
        env.step(np.zeros((3, 2)))
    assert env.render() is None
    single = envs.RobotEnv(envs.EXAMPLES["Pendulum"](1))
    assert single.render() is None


def test_one_environment_returns_its_last_observation() -> None:
    env = envs.RobotEnv(envs.EXAMPLES["Pendulum"](1, max_steps=1))
    first, info = env.reset(seed=5)
    assert (first.shape, info) == ((3,), {})
    observation, reward, ended, cut, info = env.step([0.5])
    twin = envs.EXAMPLES["Pendulum"](1, max_steps=1)
    twin.reset(seed=5)
    _, wanted, *_, more = twin.step([[0.5]])
    close(observation, more["final_obs"][0], 0.0)
    assert (reward, ended, cut, info) == (wanted[0], False, True, {})
    assert isinstance(reward, float)


# ---- options ----


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ((None, None, False), (2e-3, 10)), ((None, None, True), (1e-3, 20)), ((None, 3, True), (1e-3, 3)),
        ((0.004, None, True), (0.004, 10)), ((0.004, 7, False), (0.004, 7)),
    ],
)  # fmt: skip
def test_steps_by_default(given: Any, found: Any) -> None:
    assert time_steps(*given) == found


def test_options() -> None:
    close(action_factors([1.0, 2.0], [3.0, 5.0], 2), [3.0, 10.0], 0.0)
    close(action_factors(None, 4.0, 2), [4.0, 4.0], 0.0)
    close(action_factors(-2.0, None, 2), [-2.0, -2.0], 0.0)
    close(action_factors(2.0, 0.0, 2), [0.0, 0.0], 0.0)
    for scale, kp in (
        ([1.0], None),
        (None, [1.0, 2.0, 3.0]),
        (None, -1.0),
        (np.inf, None),
        (None, np.inf),
    ):
        with pytest.raises(StateError):
            action_factors(scale, kp, 2)
    found = ranges({"a": (1.0, 2.0), "b": np.array([[1.0, 2.0], [3.0, 2.0]])})
    close(found["b"], [[1.0, 2.0], [3.0, 2.0]], 0.0)
    assert ranges(None) == {}
    assert ranges({"a": (1.0, 1.0)})["a"] == (1.0, 1.0)
    for wrong, said in (
        ({"a": (2.0, 1.0)}, "low of 'a' exceeds high"), ({"a": ([1.0, 2.0], [2.0, 1.0])}, "exceeds"),
        ({"a": (1.0, np.inf)}, "two finite ends"), ({"a": (1.0, [1.0, 2.0])}, "two finite ends"),
        ({"a": (1.0,)}, r"must be \(low, high\)"), ([1.0], "parameters must be"),
    ):  # fmt: skip
        with pytest.raises(StateError, match=said):
            ranges(wrong)
    assert picture_size((3, 4)) == (3, 4)
    for empty in (None, {}):
        no_options(empty)
    for wrong in ({"a": 1}, [], 0):
        with pytest.raises(StateError, match="reset takes no options"):
            no_options(wrong)
    refuse_infinite("x", np.array([1e308, 1e308]))  # the sum is not finite, the numbers are
    with pytest.raises(StateError, match=r"x must be finite; x\[1, 0\] is nan"):
        refuse_infinite("x", np.array([[1.0, 2.0], [np.nan, np.inf]]))


def test_efforts_scale_actions() -> None:
    b = rf.Builder("arm").link("a", mass=1.0, inertia=(1, 1, 1), effort=3.0)
    b.link("b", "a", mass=1.0, inertia=(1, 1, 1), actuated=False)
    m = b.link("c", "b", mass=1.0, inertia=(1, 1, 1), effort=7.0).model()
    close(envs.RobotVectorEnv(m, 2, reward=lambda a, b: 0.0)._scale, [3.0, 7.0], 0.0)
    with pytest.raises(
        StateError, match="some drives of planar_3r have no effort to scale actions by"
    ):
        envs.RobotVectorEnv(rf.load("planar_3r"), 2, reward=lambda a, b: 0.0)


# ---- returns ----


class Counting:
    """An environment of three whose rewards are the actions; the second ends at step 2, the third is
    cut at step 3.
    """

    num_envs, method = 3, "counting"

    def __init__(self, bias: float = 0.0) -> None:
        from gymnasium.spaces import Box

        self.action_space, self.bias, self.steps = Box(-1.0, 1.0, (3, 2)), bias, 0
        self.seeds: list[Any] = []

    def reset(self, seed: int) -> Any:
        self.seeds.append(seed)
        self.steps = 0
        return np.array([1.0, 2.0, 3.0]), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        ended = np.array([False, self.steps == 2, False])
        cut = np.array([False, False, self.steps == 3])
        return np.full(3, 1.0 + self.steps), np.asarray(action)[:, 0] + self.bias, ended, cut, {}


def test_returns_count_the_first_episodes() -> None:
    env: Any = Counting()
    shown: list[Any] = []

    def policy(observation: Any) -> Any:
        shown.append(observation.copy())
        return np.column_stack([observation, np.zeros(3)])

    found = episode_returns(env, policy, 4, 9)
    close(found, [1 + 2 + 3 + 4, 2 + 2, 3 + 2 + 3], 0.0)
    close(shown[0], [1.0, 2.0, 3.0], 0.0)
    close(shown[2], [3.0, 3.0, 3.0], 0.0)
    assert env.seeds == [9]
    rng = np.random.default_rng(4)
    drawn = np.array([rng.uniform(-1.0, 1.0, (3, 2))[:, 0] for _ in range(2)])
    close(episode_returns(env, None, 2, 4), drawn.sum(axis=0), 1e-14)


def test_returns_of_shorter_and_shorter_steps() -> None:
    made: list[Any] = []

    def recipe(dt: float, substeps: int) -> Any:
        made.append((dt, substeps))
        return Counting(bias=10.0 * dt * np.sign(dt))

    def policy(observation: Any) -> Any:
        return np.full((3, 2), 2.0)

    check = check_returns(recipe, 0.04, policy, 0.02, 3, 0.1, 2, 5)
    assert made == [(0.02, 2), (0.01, 4), (0.005, 8)]
    steps = np.array([3.0, 2.0, 3.0])
    returns = np.array([(2.0 + 10.0 * dt) * steps for dt in (0.02, 0.01, 0.005)])
    scale = np.abs(returns[-1]).mean()
    off = (returns[:-1] - returns[-1]) / scale
    close(check.noise[:2], off.std(axis=1) / np.sqrt(3), 1e-12)
    close(check.noise[2], 0.0, 0.0)
    close(check.dt, [0.02, 0.01, 0.005], 1e-14)
    with pytest.raises(StateError, match="an environment step lasts 0.04 s, which must be a multiple of dt; got 0.03"):  # fmt: skip
        check_returns(recipe, 0.04, policy, 0.03, 3, 0.1, 2, 5)


def test_the_options_of_a_step_check_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("ramify.envs.vector_env.check_returns", lambda *given: asked.append(given))
    env = arm(max_steps=12)
    env.check_step()
    env.check_step(len, dt=0.005, steps=4, tolerance=0.3, halvings=2, seed=8)  # type: ignore[arg-type]
    assert asked[0][1:] == (pytest.approx(0.03), None, 0.01, 12, 0.1, 3, 0)
    assert asked[1][1:] == (pytest.approx(0.03), len, 0.005, 4, 0.3, 2, 8)
    assert asked[0][0] is env.recipe


def test_a_recipe_has_every_option() -> None:
    options: dict[str, Any] = {
        "terminated": lambda s: [False] * 3, "observation": lambda s: s.q, "dt": 0.003, "substeps": 4,
        "start": lambda rng, n: (np.zeros((n, 3)), np.zeros((n, 3))),
        "method": "rk4", "damping": [0.1, 0.2, 0.3], "scale": [1.0, 2.0, 4.0], "kp": [5.0, 6.0, 7.0],
        "kd": [0.1, 0.2, 0.4], "home": [0.1, -0.2, 0.3], "max_steps": 9, "size": (40, 30),
        "parameters": {"control.kp": (1.0, 2.0)}, "render_mode": "rgb_array",
    }  # fmt: skip
    env = arm(**options)
    for name, value in options.items():
        assert env.recipe.keywords[name] is value, name  # type: ignore[attr-defined]
    again = env.recipe(dt=0.001, substeps=12)
    assert (again.dt, again.substeps, again.max_steps, again.method) == (0.001, 12, 9, "rk4")
    assert again.size == (40, 30)
