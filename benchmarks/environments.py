"""Steps a second of vectorised environments: ``python benchmarks/environments.py [ENVS]``.

1024 quadrupeds (18 degrees of freedom, position servos) on the ground, 10 substeps an environment
step, one thread: the whole environment with its checks, reward and observation, its compiled steps
alone, and MuJoCo's own loop over states (``mujoco.rollout``), which has neither reward nor
observation. Least time of the processor of many calls, the programs in turn.
"""

from __future__ import annotations

import sys
from typing import Any

import models
import numpy as np
from libraries import least
from programs import MuJoCo
from report import Table

import ramify as rf
from ramify.contact import Firm, HuntCrossley
from ramify.contact.terrain import Flat
from ramify.envs import RobotVectorEnv, States

SUBSTEPS, SHARE, MUJOCO_STEP = 10, 8, 2e-3
GROUND = Flat(height=models.FOOT)
KINDS = (
    ("Hunt-Crossley, semi-implicit Euler", HuntCrossley(slip_speed=0.05, terrain=GROUND),
     "semi_implicit_euler", 1e-3),
    ("firm, implicit Euler", Firm(terrain=GROUND), "implicit_euler", 2e-3),
)  # fmt: skip


def environment(count: int, ground: Any, method: str, dt: float) -> RobotVectorEnv:
    """The walkers, rewarded for their forward speed."""
    model = models.walker()
    home = model.neutral()
    home[7:] = models.STANCE

    def start(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
        return models.standing(model, n)

    def reward(before: States, after: States) -> Any:
        change = after.action - before.action
        return after.v[:, 3] - 0.01 * np.einsum("ij,ij->i", change, change)

    return RobotVectorEnv(
        model, count, reward=reward, start=start, terminated=lambda s: s.q[:, 2] < 0.1,
        dt=dt, substeps=SUBSTEPS, method=method, ground=ground, scale=0.3, home=home,
        kp=models.SPRING, kd=models.DAMPER, max_steps=10**6,
    )  # fmt: skip


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    rf.threads(1)
    table = Table(
        f"{count} quadrupeds on the ground, {SUBSTEPS} substeps, one thread",
        ("", "step, ms", "steps alone, /s", "environment, /s", "ratio", "MuJoCo, /s",
         "ramify / MuJoCo", "per simulated second"),
    )  # fmt: skip
    few = models.standing(models.walker(), count // SHARE)
    peer = MuJoCo(models.walker(), models.FOOT)
    for title, ground, method, dt in KINDS:
        env = environment(count, ground, method, dt)
        env.reset(seed=0)
        zero = np.zeros(env.action_space.shape or ())
        y, forces = env._y.copy(), np.zeros((count, env.model.nv))
        steps, nv = env._steps, env.model.nv
        theirs = peer.rollout("semi_implicit_euler", few, SUBSTEPS, MUJOCO_STEP)
        compiled, known = compile(theirs.text, "rollout", "exec"), dict(theirs.names)

        def alone(
            steps: Any = steps, y: Any = y, u: Any = forces, dt: float = dt, nv: int = nv
        ) -> Any:
            return steps.run(y, u, SUBSTEPS, dt, 0.0, strides=(nv, 0))

        def whole(env: Any = env, y: Any = y, action: Any = zero) -> Any:
            env._y = y
            return env.step(action)

        def mujoco(text: Any = compiled, names: Any = known) -> None:
            exec(text, names)

        times = dict(zip(("steps", "env", "MuJoCo"), least(alone, whole, mujoco), strict=True))
        rates = {k: (count // SHARE if k == "MuJoCo" else count) / t for k, t in times.items()}
        gain = rates["env"] / rates["MuJoCo"]
        table.add(
            title, f"{dt * 1e3:g}", *(f"{rates[k]:,.0f}" for k in ("steps", "env")),
            f"{rates['env'] / rates['steps']:.2f}", f"{rates['MuJoCo']:,.0f}", f"{gain:.1f}",
            f"{gain * dt / MUJOCO_STEP:.1f}",
        )  # fmt: skip
    print(table.markdown())


if __name__ == "__main__":
    main()
