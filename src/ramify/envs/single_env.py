"""One robot as an environment of Gymnasium."""

from __future__ import annotations

from typing import Any

import gymnasium

from ramify.core.arrays import Array, real
from ramify.envs.vector_env import RobotVectorEnv


class RobotEnv(gymnasium.Env[Any, Any]):
    """A vectorised environment with one robot, as a single one."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, vector: RobotVectorEnv) -> None:
        self.vector, self.render_mode = vector, vector.render_mode
        self.metadata = {**self.metadata, "render_fps": vector.metadata["render_fps"]}
        self.observation_space = vector.single_observation_space
        self.action_space = vector.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Start anew."""
        super().reset(seed=seed)
        observation, info = self.vector.reset(seed=seed, options=options)
        return observation[0], info

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """(observation, reward, terminated, truncated, info)."""
        observation, reward, ended, cut, info = self.vector.step(real("action", action)[None])
        final = info.get("final_obs", observation)
        return final[0], float(reward[0]), bool(ended[0]), bool(cut[0]), {}

    def render(self) -> Any:
        """A picture (height, width, 3)."""
        found = self.vector.render()
        return None if found is None else found[0]
