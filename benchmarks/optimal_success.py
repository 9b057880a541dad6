"""How often optimal control succeeds: swing-ups from 100 random starts, reaches past a ball.

    python benchmarks/optimal_success.py

A swing-up succeeds where the last knot is upright (cosines above 0.99) and slow (below 1 rad/s or
m/s). A reach has limits of speed and torque, and a ball on its way; it must converge with
constraints met to 1e-6. Every solution that is called converged is checked by a gradient.
"""

from __future__ import annotations

import time
from collections import Counter
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np

import ramify as rf
from ramify.core.scalar import cos, sin
from ramify.optimal import Problem, solve, weighted

COUNT = 100


def cart_pole() -> rf.Model:
    robot = rf.Builder("cart_pole").link("cart", joint="prismatic", axis=(1, 0, 0), mass=1.0)
    return robot.link(
        "pole", parent="cart", axis=(0, 1, 0), mass=0.1, com=(0, 0, 0.5), inertia=(0, 0.008, 0.008),
        actuated=False,
    ).model()  # fmt: skip


def acrobot() -> rf.Model:
    rod = {"mass": 1.0, "com": (0, 0, 0.5), "inertia": (0, 0.083, 0.083), "axis": (0, 1, 0)}
    robot = rf.Builder("acrobot").link("upper", **rod, actuated=False)
    return robot.link("lower", parent="upper", at=(0, 0, 1.0), **rod).model()


def furuta() -> rf.Model:
    robot = rf.Builder("furuta").link(
        "arm", axis=(0, 0, 1), mass=0.3, com=(0.1, 0, 0), inertia=(0, 0.002, 0.002)
    )
    return robot.link(
        "pole", parent="arm", axis=(1, 0, 0), at=(0.2, 0, 0), mass=0.1, com=(0, 0, 0.15),
        inertia=(0.0008, 0.0008, 0), actuated=False,
    ).model()  # fmt: skip


SWINGS: dict[str, dict[str, Any]] = {
    "cart-pole, ±10 N": {
        "robot": cart_pole, "up": [1], "middle": [0], "effort": 10.0, "dt": 0.02, "horizon": 125,
        "weights": (1e-2, 1e-2), "starts": [(-1.0, 1.0), (np.pi - 1.5, np.pi + 1.5)],
    },
    "acrobot, ±15 N m": {
        "robot": acrobot, "up": [0, 1], "middle": [], "effort": 15.0, "dt": 0.02, "horizon": 200,
        "weights": (1e-3, 1e-3), "starts": [(np.pi - 0.6, np.pi + 0.6), (-0.6, 0.6)],
    },
    "Furuta pendulum, ±0.5 N m": {
        "robot": furuta, "up": [1], "middle": [0], "effort": 0.5, "dt": 0.01, "horizon": 150,
        "weights": (1e-1, 1e-3), "starts": [(-1.0, 1.0), (np.pi - 0.8, np.pi + 0.8)],
    },
}  # fmt: skip


def swing_ups(name: str) -> str:
    """A row of the table."""
    case = SWINGS[name]
    force, speed = case["weights"]

    def cost(s: Any) -> Any:
        middle = [s.q[i] for i in case["middle"]]
        return weighted(force, s.u) + weighted(speed, s.v) + weighted(1e-2, middle)

    def final(s: Any) -> Any:
        upright = [x for i in case["up"] for x in (sin(s.q[i]), 1.0 - cos(s.q[i]))]
        return weighted(1e3, upright) + weighted(1e2, [*(s.q[i] for i in case["middle"]), *s.v])

    robot = case["robot"]()
    problem = Problem(robot, case["dt"], case["horizon"], cost, final, effort=case["effort"])
    rng = np.random.default_rng(1)
    q = np.array([[rng.uniform(*pair) for pair in case["starts"]] for _ in range(COUNT)])
    v = rng.uniform(-0.5, 0.5, (COUNT, robot.nv))
    begun = time.process_time()
    solution = solve(problem, q, v)
    took = time.process_time() - begun
    up = np.all([np.cos(solution.q[:, -1, i]) > 0.99 for i in case["up"]], axis=0)
    up &= np.abs(solution.v[:, -1]).max(axis=1) < 1.0
    reasons = ", ".join(f"{k} {n}" for k, n in Counter(solution.reason.tolist()).items())
    median = np.median(solution.iterations)
    return f"| {name} | {up.sum()} of {COUNT} | {reasons} | {median:.0f} | {took:.1f} |"


def reaches(count: int = 50) -> str:
    data = distribution("example-robot-data").locate_file(
        "cmeel.prefix/share/example-robot-data/robots/ur_description/urdf/ur5_robot.urdf"
    )
    arm, frame = rf.load(Path(str(data))), "tool0"

    def cost(s: Any) -> Any:
        way = weighted(1.0, s.pose_error(frame, s.goal))
        return way + weighted(3e-2, s.v) + weighted(1e-4, s.u)

    def final(s: Any) -> Any:
        return weighted(1e3, s.pose_error(frame, s.goal)) + weighted(1.0, s.v)

    def keep(s: Any) -> Any:
        return s.speed_limits(2.5) + s.outside_ball(frame, s.ball, 0.08)

    problem = Problem(
        arm, 0.01, 100, cost, final, keep, parameters={"goal": 12, "ball": 3},
        effort=[150, 150, 150, 28, 28, 28], passive=False, stops=False,
    )  # fmt: skip
    rng, solutions, begun = np.random.default_rng(3), [], time.process_time()
    while len(solutions) < count:
        q = rng.uniform(-1.5, 1.5, 6)
        end = q + rng.uniform(-0.8, 0.8, 6)
        goal, start = arm.pose(end, frame), arm.pose(q, frame).position
        ball = arm.pose((q + end) / 2.0, frame).position
        if min(np.linalg.norm(ball - x) for x in (start, goal.position)) > 0.12:
            solutions.append(solve(problem, q, goal=tuple(goal), ball=ball))
    took = time.process_time() - begun
    reasons = ", ".join(f"{k} {n}" for k, n in Counter(s.reason for s in solutions).items())
    good = sum(s.converged and s.violation <= 1e-6 for s in solutions)
    median = np.median([s.iterations for s in solutions])
    return f"| UR5 past a ball | {good} of {count} | {reasons} | {median:.0f} | {took:.1f} |"


if __name__ == "__main__":
    print("| problem | success | reasons | iterations, median | s of the processor |")
    print("| :-- | --: | :-- | --: | --: |")
    for name in SWINGS:
        print(swing_ups(name), flush=True)
    print(reaches())
