"""Derivatives and regressor beside Pinocchio's, one thread: ``python benchmarks/derivatives.py``.

Real robots of example-robot-data: an arm, a quadruped and a humanoid, the latter two on a free
base. A figure is the least of many short windows; a batch has 256 states and arrays to fill, one
call of Pinocchio has its data ready.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pinocchio as pin

import ramify as rf

ROBOTS = {
    "UR5": ("ur_description/urdf/ur5_robot.urdf", "fixed"),
    "solo12": ("solo_description/robots/solo12.urdf", "free"),
    "G1": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", "free"),
}
STATES = 256
WINDOW, SECONDS = 3e-4, 1.0


def least(function: Callable[..., Any], *inputs: Any, **options: Any) -> float:
    """Seconds of a call."""
    function(*inputs, **options)
    start = perf_counter()
    function(*inputs, **options)
    calls = max(1, int(WINDOW / (perf_counter() - start)))
    found, end = np.inf, perf_counter() + SECONDS
    while perf_counter() < end:
        start = perf_counter()
        for _ in range(calls):
            function(*inputs, **options)
        found = min(found, (perf_counter() - start) / calls)
    return float(found)


def measure(name: str) -> None:
    relative, base = ROBOTS[name]
    folder = distribution("example-robot-data").locate_file("cmeel.prefix/share/example-robot-data")
    path = str(Path(str(folder)) / "robots" / relative)
    model = rf.load(path, base=base)
    root = [pin.JointModelFreeFlyer()] if base == "free" else []
    peer = pin.buildModelFromUrdf(path, *root)
    data = peer.createData()
    rng = np.random.default_rng(0)
    v, x = rng.normal(size=(2, STATES, model.nv))
    q = np.stack([model.random(seed)[0] for seed in range(STATES)])
    there = pin.neutral(peer), rng.normal(size=peer.nv), rng.normal(size=peer.nv)
    peers = {
        "inverse_dynamics_derivatives": pin.computeRNEADerivatives,
        "forward_dynamics_derivatives": pin.computeABADerivatives,
        "regressor": pin.computeJointTorqueRegressor,
    }
    for algorithm, theirs in peers.items():
        links = len(model.skeleton.links)
        kernel = model.kernel(algorithm, "unrolled" if links <= 18 else "rolled")
        fresh = kernel(q, v, x)
        fresh = fresh if isinstance(fresh, tuple) else (fresh,)
        out = tuple(np.zeros_like(part) for part in fresh)
        filled = out if len(out) > 1 else out[0]
        batch = least(kernel, q, v, x, out=filled) / STATES
        kernel(q[0], v[0], x[0])
        single = least(kernel, q[0], v[0], x[0])
        other = least(theirs, peer, data, *there)
        print(
            f"{name:7} {algorithm:29} {kernel.tier:9} batch {batch * 1e6:6.3f} us a state,"
            f" {other / batch:5.1f}x; one call {single * 1e6:6.2f} us, {other / single:4.2f}x"
            f" (Pinocchio {other * 1e6:.2f} us)",
            flush=True,
        )


if __name__ == "__main__":
    rf.threads(1)
    for robot in ROBOTS:
        measure(robot)
