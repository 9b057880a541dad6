"""Returns of a policy, and how they depend on the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, positive, whole
from ramify.core.errors import StateError
from ramify.runs.step_check import StepCheck, estimated, step_lengths

Environment = gymnasium.vector.VectorEnv[Any, Any, Any]
Policy = Callable[[Array], ArrayLike]


def episode_returns(env: Environment, policy: Policy | None, steps: int, seed: int) -> Array:
    """(N): the sums of rewards of the first episodes, each cut after ``steps`` steps."""
    observation, _ = env.reset(seed=seed)
    rng, shape = np.random.default_rng(seed), env.action_space.shape
    total, running = np.zeros(env.num_envs), np.ones(env.num_envs, dtype=bool)
    for _ in range(steps):
        action = rng.uniform(-1.0, 1.0, shape) if policy is None else policy(observation)
        observation, reward, ended, cut, _ = env.step(action)
        total += np.where(running, reward, 0.0)
        running &= ~(ended | cut)
        if not running.any():
            break
    return total


def check_returns(
    recipe: Callable[..., Any], period: float, policy: Policy | None, dt: float, steps: int,
    tolerance: float, halvings: int, seed: int,
) -> StepCheck:  # fmt: skip
    """The check of ``RobotVectorEnv.check_step``; recipe(dt=, substeps=): the environment, whose
    steps last ``period`` (s).
    """
    lengths, limit = step_lengths(dt, halvings), positive("tolerance", tolerance)
    count = whole("steps", steps, 1)
    if abs(round(period / lengths[0]) * lengths[0] - period) > 1e-6 * lengths[0]:
        text = f"an environment step lasts {period:g} s, which must be a multiple of dt"
        raise StateError(f"{text}; got {lengths[0]:g}")
    environments = [recipe(dt=h, substeps=round(period / h)) for h in lengths]
    returns = np.array([episode_returns(env, policy, count, seed) for env in environments])
    scale = float(np.abs(returns[-1]).mean()) or 1.0
    off = (returns[:-1] - returns[-1]) / scale
    noise = np.append(off.std(axis=1), 0.0) / np.sqrt(returns.shape[1])
    error = estimated([float(abs(x)) for x in off.mean(axis=1)])
    methods = tuple(env.method for env in environments)
    return StepCheck(np.array(lengths), methods, error, noise, limit, "%")
