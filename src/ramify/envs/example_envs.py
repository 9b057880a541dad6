"""Environments to start from: a pendulum, a cart-pole, a reacher and a walking quadruped."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from ramify.api.builders import Builder, load
from ramify.api.model import Model
from ramify.core.arrays import Array
from ramify.envs.vector_env import RobotEnv, RobotVectorEnv, States


def _example(make: Callable[..., RobotVectorEnv]) -> Callable[..., RobotVectorEnv]:
    """An example that is copied and pickled by its name: its reward and start are inner
    functions.
    """

    @wraps(make)
    def named(num_envs: int = 1, **options: Any) -> RobotVectorEnv:
        made = make(num_envs, **options)
        made.recipe = partial(named, num_envs, **options)
        return made

    return named


def _rod(length: float, mass: float) -> dict[str, Any]:
    """A rod that hangs from its joint, turning about y."""
    across = mass * length**2 / 12.0
    return {"mass": mass, "com": (0.0, 0.0, -length / 2), "inertia": (across, across, 1e-5)}


def _squares(x: Array) -> Array:
    """Squared length of each row."""
    found: Array = np.einsum("ij,ij->i", x, x)
    return found


@_example
def pendulum(num_envs: int = 1, **options: Any) -> RobotVectorEnv:
    """A rod of 1 m and 1 kg swings up under a torque of at most 2 N m, too weak to lift it at
    once.

    Observation [cos, sin, rate]; reward -(angle from upright)² - 0.1 rate² - 0.001 torque².
    """
    robot = Builder("pendulum")
    robot.link("rod", joint="revolute", axis=(0, 1, 0), **_rod(1.0, 1.0))
    model = robot.model()

    def reward(before: States, after: States) -> Array:
        off = np.mod(before.q[:, 0], 2.0 * np.pi) - np.pi
        torque = 2.0 * after.action[:, 0]
        return -(off**2 + 0.1 * before.v[:, 0] ** 2 + 0.001 * torque**2)

    def start(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        return rng.uniform(-np.pi, np.pi, (n, 1)), rng.uniform(-1.0, 1.0, (n, 1))

    settings = {"dt": 0.005, "substeps": 10, "scale": 2.0, "max_steps": 200, **options}
    return RobotVectorEnv(
        model, num_envs, reward=reward, start=start,
        observation=lambda s: np.column_stack([np.cos(s.q), np.sin(s.q), s.v]), **settings,
    )  # fmt: skip


def cart_pole_model() -> Model:
    """A cart of 1 kg on a rail with a free pole of 0.1 kg and 1 m, which hangs at zero."""
    robot = Builder("cart_pole")
    robot.link("cart", joint="prismatic", axis=(1, 0, 0), mass=1.0, inertia=(0.01, 0.01, 0.01))
    robot.link("pole", "cart", joint="revolute", axis=(0, 1, 0), actuated=False, **_rod(1.0, 0.1))
    return robot.model()


@_example
def cart_pole(num_envs: int = 1, **options: Any) -> RobotVectorEnv:
    """The cart swings its pole up and keeps it there, with at most 10 N, on 2.4 m to each side.

    Observation [x, cos, sin, speed, rate]; reward: the height of the pole's end, 0 where it hangs
    and 1 upright, times factors from 1/2 to 1 for a cart near the middle and a slow pole.
    """

    def reward(before: States, after: States) -> Array:
        height = 0.5 - 0.5 * np.cos(after.q[:, 1])
        middle = 0.5 + 0.5 / (1.0 + after.q[:, 0] ** 2)
        calm = 0.5 + 0.5 / (1.0 + 0.1 * after.v[:, 1] ** 2)
        total: Array = height * middle * calm
        return total

    def start(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        return rng.normal(0.0, 0.05, (n, 2)), rng.normal(0.0, 0.05, (n, 2))

    settings = {"dt": 0.004, "substeps": 5, "scale": 10.0, "max_steps": 500, **options}
    return RobotVectorEnv(
        cart_pole_model(), num_envs, reward=reward, start=start,
        terminated=lambda s: np.abs(s.q[:, 0]) > 2.4,
        observation=lambda s: np.column_stack(
            [s.q[:, 0], np.cos(s.q[:, 1]), np.sin(s.q[:, 1]), s.v]
        ), **settings,
    )  # fmt: skip


@_example
def reacher(num_envs: int = 1, **options: Any) -> RobotVectorEnv:
    """The planar arm of three links brings its tip to (1.2, 0.8) m and stays there.

    Observation [cos q, sin q, v, tip - goal]; reward: -distance - 0.01 |action|².
    """
    model = load("planar_3r")
    tip, goal = model.bodies[-1].name, np.array([1.2, 0.8])

    def away(states: States) -> Array:
        offset: Array = model.pose(states.q, tip).position[:, :2] - goal
        return offset

    def reward(before: States, after: States) -> Array:
        near = -np.linalg.norm(away(after), axis=1)
        cost: Array = near - 0.01 * (after.action**2).sum(axis=1)
        return cost

    def start(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        return rng.uniform(-0.5, 0.5, (n, 3)), np.zeros((n, 3))

    settings = {
        "dt": 0.005,
        "substeps": 4,
        "scale": 20.0,
        "damping": 1.0,
        "max_steps": 150,
        **options,
    }
    return RobotVectorEnv(
        model, num_envs, reward=reward, start=start,
        observation=lambda s: np.column_stack([np.cos(s.q), np.sin(s.q), s.v, away(s)]), **settings,
    )  # fmt: skip


@_example
def quadruped(num_envs: int = 1, **options: Any) -> RobotVectorEnv:
    """A quadruped walks forward on firm ground; its actions are targets of the joints around a
    standing posture.

    Observation: height and turn of the trunk, joints, velocities, last action. Reward: 0.5, plus 1
    at a forward speed of 1 m/s and less at others, less tilt, drift and changes of the action; an
    episode ends where the trunk falls.
    """
    from ramify.scenario_files.scenario import scenario

    ready = scenario("quadruped_trot")
    model, standing = ready.robot, ready.q0
    height = float(standing[2])

    def reward(before: States, after: States) -> Array:
        forward = 1.0 - np.minimum(np.abs(after.v[:, 0] - 1.0), 2.0)
        tilt = _squares(after.q[:, 3:6])
        change = _squares(after.action - before.action)
        cost: Array = forward + 0.5 - tilt - 0.1 * after.v[:, 1] ** 2 - 0.01 * change
        return cost

    def start(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        return np.tile(standing, (n, 1)), rng.normal(0.0, 0.05, (n, model.nv))

    def observation(s: States) -> Array:
        return np.column_stack([s.q[:, 2:], s.v, s.action])

    settings = {
        "scale": 0.3, "kp": 200.0, "kd": 5.0, "home": standing, "ground": "firm",
        "max_steps": 500, **options,
    }  # fmt: skip
    return RobotVectorEnv(
        model, num_envs, reward=reward, start=start, observation=observation,
        terminated=lambda s: s.q[:, 2] < 0.6 * height, **settings,
    )  # fmt: skip


EXAMPLES = {"Pendulum": pendulum, "CartPole": cart_pole, "Reacher": reacher, "Quadruped": quadruped}
"""The examples by the names under which Gymnasium knows them, after ``ramify/``."""


def single(name: str, **options: Any) -> RobotEnv:
    """One environment of an example."""
    return RobotEnv(EXAMPLES[name](1, **options))
