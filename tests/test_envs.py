"""Environments of Gymnasium: what they promise, and that they step as rollouts do."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import ramify as rf
from ramify import envs


@pytest.mark.filterwarnings("ignore:.*infinity")
@pytest.mark.parametrize("name", ["Pendulum", "CartPole", "Reacher", "Quadruped"])
def test_the_examples_pass_gymnasiums_own_check(name: str) -> None:
    env = gymnasium.make(f"ramify/{name}-v0").unwrapped
    check_env(env, skip_render_check=True)
    many = gymnasium.make_vec(f"ramify/{name}-v0", num_envs=5)
    observation, _ = many.reset(seed=3)
    again, _ = many.reset(seed=3)
    np.testing.assert_array_equal(observation, again)
    assert many.observation_space.contains(observation)
    action = many.action_space.sample() * 0.1
    observation, reward, ended, cut, _ = many.step(action)
    assert many.observation_space.contains(observation)
    assert reward.shape == ended.shape == cut.shape == (5,)


def test_a_step_is_a_rollout() -> None:
    env = envs.EXAMPLES["CartPole"](7)
    env.reset(seed=1)
    before = env.states
    action = np.linspace(-1.0, 1.0, 7)[:, None]
    env.step(action)
    tau = np.zeros((7, 5, 2))
    tau[:, :, 0] = 10.0 * action
    wanted = rf.rollout(
        env.model, before.q, before.v, steps=5, dt=0.004, tau=tau, method="semi_implicit_euler"
    )
    np.testing.assert_allclose(env.states.q, wanted.q, rtol=0, atol=1e-15)
    np.testing.assert_allclose(env.states.v, wanted.v, rtol=0, atol=1e-15)


@pytest.mark.parametrize("copied", [lambda x: pickle.loads(pickle.dumps(x)), deepcopy])
def test_a_copy_goes_on_from_the_same_state(copied: Callable[[Any], Any]) -> None:
    env = gymnasium.make_vec("ramify/Pendulum-v0", num_envs=3, max_steps=2)
    env.reset(seed=4)
    env.step(np.ones((3, 1)))
    other = copied(env)
    assert other.spec.id == env.spec.id
    for _ in range(3):  # over the end of an episode: the generator is copied, too
        one, two = env.step(np.ones((3, 1))), other.step(np.ones((3, 1)))
        np.testing.assert_array_equal(one[0], two[0])


def test_servos_hold_their_targets() -> None:
    def flat(before: envs.States, after: envs.States) -> Any:
        return np.zeros(len(after.q))

    m = rf.with_gravity(rf.load("planar_3r"), (0.0, 0.0, 0.0))
    env = envs.RobotVectorEnv(m, 2, reward=flat, dt=0.001, substeps=20, kp=60.0, kd=15.0, scale=0.5)
    env.reset(seed=0)
    action = np.array([[0.2, -0.4, 0.6], [0.0, 0.0, 0.0]])
    for _ in range(500):
        env.step(action)
    np.testing.assert_allclose(env.states.q, 0.5 * action, atol=1e-3)
    np.testing.assert_allclose(env.states.v, 0.0, atol=1e-2)


def test_servos_take_a_home_and_gains_of_the_driven_joints_alone() -> None:
    m = rf.load("space_3_link", base="free")
    home, kp, kd = [0.3, -0.2, 0.1], [20.0, 9.0, 5.0], [4.0, 2.0, 2.0]
    options: Any = {"reward": lambda a, b: 0.0, "dt": 1e-3, "scale": 0.5}
    short = envs.RobotVectorEnv(m, 2, home=home, kp=kp, kd=kd, **options)
    full = np.concatenate([m.neutral()[:-3], home])
    long = envs.RobotVectorEnv(m, 2, home=full, kp=kp, kd=kd, **options)
    action = np.array([[0.2, -0.4, 0.1], [0.0, 0.0, 0.0]])
    for _ in range(30):
        np.testing.assert_array_equal(short.step(action)[0], long.step(action)[0])
    law = rf.control.PD(rf.motion.Hold(home + 0.5 * action[0]), kp=kp, kd=kd)
    wanted = rf.rollout(m, m.neutral(), np.zeros(m.nv), steps=300, dt=1e-3, control=law)
    np.testing.assert_allclose(short.states.q[0], wanted.q, rtol=0, atol=1e-3)
    with pytest.raises(rf.StateError, match=r"one position per driven joint, \(3,\), or"):
        envs.RobotVectorEnv(m, 2, home=[0.0] * 4, kp=kp, kd=kd, **options)
    with pytest.raises(rf.StateError, match=r"kp must be a number or 3 of them; got \(2,\)"):
        envs.RobotVectorEnv(m, 2, kp=[1.0] * 2, **options)


def test_what_an_episode_drew_is_known_and_moves_its_servos() -> None:
    m = rf.with_gravity(rf.load("planar_3r"), (0.0, 0.0, 0.0))
    link = m.bodies[-1].name
    ranges = {
        f"{link}.mass": (1.0, 3.0),
        "control.kp": (30.0, 90.0),
        f"{link}.com": (np.zeros(3), np.full(3, 0.1)),
    }
    env = envs.RobotVectorEnv(
        m, 4, reward=lambda a, b: 0.0, dt=1e-3, substeps=20, kp=60.0, kd=15.0, scale=0.5,
        parameters=ranges, max_steps=400,
    )  # fmt: skip
    env.reset(seed=1)
    first = env.parameters
    assert {name: x.shape for name, x in first.items()} == {
        f"{link}.mass": (4,), "control.kp": (4,), f"{link}.com": (4, 3)
    }  # fmt: skip
    assert np.ptp(first["control.kp"]) > 1.0
    action = np.tile([0.2, -0.4, 0.6], (4, 1))
    for _ in range(399):
        env.step(action)
    np.testing.assert_allclose(env.states.q, 0.5 * action, atol=5e-3)  # also where kp is another
    *_, cut, info = env.step(action)
    assert cut.all()
    for name, x in first.items():
        np.testing.assert_array_equal(info["final_parameters"][name], x)
        assert not np.array_equal(env.parameters[name], x)
    assert envs.EXAMPLES["Pendulum"](2).parameters == {}


def test_episodes_end_and_start_anew_within_the_step() -> None:
    env = envs.EXAMPLES["Pendulum"](3, max_steps=4)
    env.reset(seed=0)
    for k in range(4):
        observation, _, ended, cut, info = env.step(np.zeros((3, 1)))
        assert cut.all() == (k == 3)
        assert not ended.any()
    assert info["_final_obs"].all()
    assert not np.allclose(info["final_obs"], observation)
    assert (env.states.t == 0.0).all()


def test_a_robot_that_diverges_ends_its_episode_alone() -> None:
    def start(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
        v = np.zeros((n, 2))
        v[0, 0] = 1e9 if n == 3 else 0.0
        return np.zeros((n, 2)), v

    env = envs.RobotVectorEnv(
        envs.example_envs.cart_pole_model(),
        3,
        reward=lambda a, b: np.ones(3),
        start=start,
        scale=1.0,
    )
    env.reset(seed=0)
    _, reward, ended, _, info = env.step(np.zeros((3, 1)))
    assert ended.tolist() == [True, False, False]
    assert info["failed"].tolist() == [True, False, False]
    assert np.isfinite(env.states.v).all()
    assert reward.tolist() == [0.0, 1.0, 1.0]


def test_every_episode_has_a_robot_of_its_own() -> None:
    ranges = {"pole.mass": (0.05, 0.5)}
    env = envs.EXAMPLES["CartPole"](64, parameters=ranges)
    env.reset(seed=0)
    env._y[:, :4] = [0.0, 1.0, 0.0, 0.0]
    env.step(np.ones((64, 1)))
    cart = env.states.v[:, 0]
    assert np.ptp(cart) > 1e-3  # the cart feels the mass of its pole
    mass = env._y[:, -1]
    assert (mass >= 0.05).all()
    assert (mass <= 0.5).all()
    assert (
        np.diff(cart[np.argsort(mass)]) * np.sign(cart[np.argmax(mass)] - cart[np.argmin(mass)])
        >= 0
    ).all()


def test_pictures() -> None:
    env = gymnasium.make("ramify/CartPole-v0", render_mode="rgb_array")
    env.reset(seed=0)
    picture: Any = env.render()
    assert picture.shape == (270, 480, 3)
    assert picture.std() > 5.0


def test_what_does_not_fit_is_named() -> None:
    env = envs.EXAMPLES["Pendulum"](2)
    env.reset()
    with pytest.raises(rf.StateError, match=r"actions have shape \(2, 2\), not \(2, 1\)"):
        env.step(np.zeros((2, 2)))
    with pytest.raises(rf.StateError, match="must be finite"):
        env.step(np.full((2, 1), np.nan))
    with pytest.raises(rf.StateError, match="no effort to scale actions by"):
        envs.RobotVectorEnv(rf.load("planar_3r"), 1, reward=lambda a, b: np.zeros(1))


def test_numbers_that_are_not_finite_are_named() -> None:
    env = envs.EXAMPLES["Pendulum"](3)
    before, _ = env.reset(seed=0)
    with pytest.raises(rf.StateError, match=r"actions must be finite; actions\[1, 0\] is inf"):
        env.step([[0.0], [np.inf], [0.0]])
    with pytest.raises(rf.StateError, match="masked entries"):
        env.step(np.ma.masked_array(np.zeros((3, 1)), [[0], [1], [0]]))
    np.testing.assert_array_equal(env._observed(), before)  # none of these has moved anything
    env._reward = lambda before, after: np.array([0.0, np.nan, 0.0])
    with pytest.raises(rf.StateError, match=r"reward must be finite; reward\[1\] is nan"):
        env.step(np.zeros((3, 1)))
    env = envs.EXAMPLES["Pendulum"](3)
    env._observe = lambda states: states.q[:2]
    with pytest.raises(rf.StateError, match=r"observation gave shape \(2, 1\); it must give"):
        env.step(np.zeros((3, 1)))


def test_what_functions_were_given_does_not_change() -> None:
    env = envs.EXAMPLES["Pendulum"](3)
    env.reset(seed=0)
    kept: list[tuple[Any, Any]] = []

    def reward(before: envs.States, after: envs.States) -> Any:
        kept.extend((x, np.array(x)) for x in (*before, *after))
        return np.zeros(3)

    env._reward, env._terminated = reward, lambda s: np.array([False, True, False])
    for _ in range(3):
        env.step(np.ones((3, 1)))
    for x, copied in kept:
        np.testing.assert_array_equal(x, copied)


def test_without_gymnasium_there_is_one_clear_line() -> None:
    code = (
        "import sys; sys.modules['gymnasium'] = None\n"
        "try:\n    import ramify.envs\nexcept Exception as e:\n    print(e)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        "ramify.envs needs Gymnasium; install it with: pip install 'ramify[gym]'"
    )


def test_loops_must_be_closed_and_rewards_of_one_number_each() -> None:
    four_bar = rf.load("four_bar")

    def flat(before: envs.States, after: envs.States) -> Any:
        return np.zeros(len(after.q))

    env = envs.RobotVectorEnv(four_bar, 2, reward=flat, scale=0.1, dt=0.001)
    env.step(np.ones(env.action_space.shape))
    assert abs(four_bar.constraints(env.states.q).residual).max() < 1e-9
    with pytest.raises(rf.LoopError):
        envs.RobotVectorEnv(
            four_bar, 2, reward=flat, scale=0.1, start=lambda rng, n: (np.ones((n, 3)),) * 2
        )
    wide = envs.EXAMPLES["Pendulum"](2)
    wide._reward = lambda before, after: after.q
    with pytest.raises(rf.StateError, match=r"reward gave shape \(2, 1\); it must give \(2,\)"):
        wide.step(np.zeros((2, 1)))
    with pytest.raises(ValueError, match="read-only"):
        wide.states.q[0] = 1.0
    with pytest.raises(rf.StateError, match=r"dt .* must be finite and positive"):
        envs.EXAMPLES["Pendulum"](2, dt=-1.0)
