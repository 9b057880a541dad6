"""Environments of Gymnasium (``pip install 'ramify[gym]'``): many robots that step together.

Importing this registers ``ramify/Pendulum-v0``, ``ramify/CartPole-v0``, ``ramify/Reacher-v0`` and
``ramify/Quadruped-v0``, for ``gymnasium.make`` and ``gymnasium.make_vec``.
"""

from functools import partial

from ramify.core.errors import RamifyError

try:
    import gymnasium
except ImportError:
    raise RamifyError(
        "ramify.envs needs Gymnasium; install it with: pip install 'ramify[gym]'"
    ) from None

from ramify.envs.example_envs import EXAMPLES, single
from ramify.envs.vector_env import RobotEnv, RobotVectorEnv, States

__all__ = ["EXAMPLES", "RobotEnv", "RobotVectorEnv", "States"]

for _name, _made in EXAMPLES.items():
    gymnasium.register(
        f"ramify/{_name}-v0", entry_point=partial(single, _name), vector_entry_point=_made
    )
