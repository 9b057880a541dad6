"""What the step does to returns on the ground: ``python benchmarks/ground_steps.py [GAITS]``.

Legged robots under random periodic gaits, 2 s each, in several steps: how far the return of a gait
is off, on average, from that in steps of 0.1 ms, as a share of the mean absolute return; and
environment steps (20 ms) a second of processor time, one thread.
"""

from __future__ import annotations

import sys
import time
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import models
import numpy as np
from report import Table

import ramify as rf
from ramify.core.arrays import Array
from ramify.envs import EXAMPLES, RobotVectorEnv, States

PERIOD, SECONDS, FINE = 0.02, 2.0, 1e-4  # s
METHOD = "implicit_extrapolation"
KINDS = (
    ("implicit_euler", 2e-3),
    ("implicit_euler", 5e-4),
    (METHOD, 4e-3),
    (METHOD, 2e-3),
    (METHOD, 1e-3),
    (METHOD, 5e-4),
)


def quadruped(count: int, **options: Any) -> RobotVectorEnv:
    """The registered example."""
    return EXAMPLES["Quadruped"](count, **options)


@cache
def solo12() -> tuple[rf.Model, Array]:
    """Solo on its four feet, and how it stands."""
    path = Path(str(distribution("example-robot-data").locate_file("cmeel.prefix/share")))
    file = path / "example-robot-data" / "robots" / models.FILES["solo12"]
    model = rf.load(file, base="free_euler")
    at = model.kinematics(model.neutral())
    points = {}
    for leg in ("FL", "FR", "HL", "HR"):
        i = model.body_index(f"{leg}_LOWER_LEG")
        foot = model.pose(model.neutral(), f"{leg}_FOOT").position - at.position[i]
        points[f"{leg}_LOWER_LEG"] = {f"{leg}_foot": at.rotation[i].T @ foot}
    model = rf.with_contact_points(model, points)
    home = model.neutral()
    home[6:] = [0.0, 0.7, -1.4] * 2 + [0.0, -0.7, 1.4] * 2
    home[2] = -model.pose(home, "FL_FOOT").position[2]
    return model, home


def solo(count: int, **options: Any) -> RobotVectorEnv:
    """Solo12 walks forward; actions are targets of its servos."""
    model, home = solo12()

    def start(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        return np.tile(home, (n, 1)), rng.normal(0.0, 0.05, (n, model.nv))

    def reward(before: States, after: States) -> Array:
        tilt = np.square(after.q[:, 3:6]).sum(axis=1)
        return np.asarray(1.5 - np.minimum(np.abs(after.v[:, 0] - 0.6), 2.0) - tilt)

    return RobotVectorEnv(
        model, count, reward=reward, start=start, terminated=lambda s: s.q[:, 2] < 0.5 * home[2],
        kp=6.0, kd=0.15, scale=0.4, home=home, max_steps=500, **{"ground": "firm", **options},
    )  # fmt: skip


@cache
def cheetah_model() -> rf.Model:
    """Gymnasium's half-cheetah with contact points below the ends of its feet."""
    import gymnasium

    file = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / "half_cheetah.xml"
    model = rf.load(file)
    feet = {
        "bfoot": ((-0.064, 0.0, -0.13), (0.11, 0.0, -0.09)),
        "ffoot": ((-0.02, 0.0, -0.15), (0.11, 0.0, -0.12)),
    }
    return rf.with_contact_points(
        model, {body: {f"{body}{i}": s for i, s in enumerate(ends)} for body, ends in feet.items()}
    )


def cheetah(count: int, **options: Any) -> RobotVectorEnv:
    """The half-cheetah runs forward; actions are torques."""
    model = cheetah_model()
    standing = model.neutral()
    low = min(
        float(model.pose(standing, body.name).position[2] + point[2])
        for body in model.bodies
        for _, point in body.points
    )
    standing[1] -= low

    def start(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        return np.tile(standing, (n, 1)), rng.normal(0.0, 0.05, (n, model.nv))

    return RobotVectorEnv(
        model, count, reward=lambda before, after: after.v[:, 0], start=start, scale=60.0,
        terminated=lambda s: np.abs(s.q[:, 2]) > 1.2, max_steps=500,
        **{"ground": "firm", **options},
    )  # fmt: skip


ROBOTS = {"quadruped": quadruped, "solo12": solo, "half-cheetah": cheetah}


def gait_returns(env: RobotVectorEnv, seconds: float = SECONDS) -> Array:
    """(N): the returns of as many random gaits, the same whatever the step: every joint swings at 2
    Hz with its own amplitude and phase about its own middle.
    """
    sizes = np.array([0.5, 0.5, 0.15])[:, None, None]
    wave = sizes * np.random.default_rng(0).normal(size=(3, *(env.action_space.shape or ())))
    env.reset(seed=7)
    total, running = np.zeros(env.num_envs), np.ones(env.num_envs, dtype=bool)
    for k in range(round(seconds / PERIOD)):
        angle = 4.0 * np.pi * PERIOD * k
        action = np.tanh(wave[0] * np.sin(angle) + wave[1] * np.cos(angle) + wave[2])
        _, reward, ended, cut, _ = env.step(action)
        total += np.where(running, reward, 0.0)
        running &= ~(ended | cut)
    return total


def off(name: str, count: int, seconds: float = SECONDS, **options: Any) -> tuple[float, float]:
    """(error, rate): the mean absolute error of the returns by their mean size, and environment
    steps a second of processor time.
    """
    fine = {"dt": FINE, "substeps": round(PERIOD / FINE), "method": METHOD}
    exact = gait_returns(ROBOTS[name](count, **fine), seconds)
    env = ROBOTS[name](count, **options)
    gait_returns(env, PERIOD)  # compiled
    began = time.process_time()
    error = np.abs(gait_returns(env, seconds) - exact).mean() / np.abs(exact).mean()
    rate = count * seconds / PERIOD / (time.process_time() - began)
    return float(error), rate


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    rf.threads(1)
    table = Table(
        f"Mean error of the returns of {count} gaits on firm ground",
        ("method", "step, ms", *ROBOTS, "quadruped, steps/s"),
    )
    for method, dt in KINDS:
        steps = {"method": method, "dt": dt, "substeps": round(PERIOD / dt)}
        found = {name: off(name, count, **steps) for name in ROBOTS}
        errors = (f"{100.0 * error:.1f} %" for error, _ in found.values())
        table.add(method, f"{dt * 1e3:g}", *errors, f"{found['quadruped'][1]:,.0f}")
    print(table.markdown())


if __name__ == "__main__":
    main()
