"""Derivatives and regressor beside Pinocchio's, one thread: ``python benchmarks/derivatives.py``.

Real robots of example-robot-data: an arm, a quadruped and a humanoid, the latter two on a free
base. A figure is the least of many short windows; a batch has 256 states and arrays to fill, one
call of Pinocchio has its data ready. Beside it stands what the machine allows, measured in the same
run: the operations of the kernel's straight-line program with all lanes at work, and the time to
fill the results' arrays with zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pinocchio as pin
from bounds import multiply_adds, operations, writing

import ramify as rf
from ramify.kernels import make
from ramify.runtime.target import host

ROBOTS = {
    "UR5": ("ur_description/urdf/ur5_robot.urdf", "fixed"),
    "solo12": ("solo_description/robots/solo12.urdf", "free"),
    "G1": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", "free"),
}
STATES = 256
WINDOW, SECONDS = 3e-4, 1.0


def least(function: Callable[..., Any], *inputs: Any, **options: Any) -> float:
    """Seconds of a call."""
    run = (lambda: function(*inputs, **options)) if options else (lambda: function(*inputs))
    run()
    start = perf_counter()
    run()
    calls = max(1, int(WINDOW / (perf_counter() - start)))
    found, end = np.inf, perf_counter() + SECONDS
    while perf_counter() < end:
        start = perf_counter()
        for _ in range(calls):
            run()
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
        count, rate = operations(model.kernel(algorithm, "numpy").program), multiply_adds()
        computing, stored = 1e-9 * count / rate, writing(out) / STATES
        print(
            f"{name:7} {algorithm:29} {kernel.tier:9} batch {batch * 1e6:6.3f} us a state,"
            f" {other / batch:5.1f}x; one call {single * 1e6:6.2f} us, {other / single:4.2f}x"
            f" (Pinocchio {other * 1e6:.2f} us)\n{'':8}the machine allows: {count} operations"
            f" {computing * 1e6:.3f} us + writing {stored * 1e6:.3f} us a state,"
            f" {other / (computing + stored):.1f}x; one number at a time"
            f" {computing * host().width * 1e6:.2f} us, {other / computing / host().width:.1f}x",
            flush=True,
        )


def in_turn(*functions: Callable[[], Any], rounds: int = 7) -> list[float]:
    """Seconds of each, the least of some rounds."""
    found = [np.inf] * len(functions)
    for _ in range(rounds):
        for i, function in enumerate(functions):
            start = perf_counter()
            function()
            found[i] = min(found[i], perf_counter() - start)
    return found


def robots_of_their_own(name: str, states: int = 4096) -> None:
    """Forward dynamics of a batch with a payload for each state beside that of equal robots."""
    model = rf.load(name)
    rng = np.random.default_rng(0)
    q = np.stack([model.random(seed)[0] for seed in range(64)])[rng.integers(0, 64, states)]
    v, tau = rng.normal(size=(2, states, model.nv))
    payload = {f"{model.bodies[-1].name}.payload": rng.uniform(0.0, 3.0, states)}
    plain = model.kernel("forward_dynamics", "unrolled")
    varied = make.kernel(model, "forward_dynamics", "unrolled", None, tuple(payload))
    mass = next(iter(payload.values()))[:, None]
    equal, own = in_turn(lambda: plain(q, v, tau), lambda: varied(q, v, tau, mass), rounds=200)
    print(f"{name:9} {states} payloads: {own / equal:.2f} of the time of equal robots", flush=True)


def adjoint(name: str, ground: str | None, states: int, steps: int) -> None:
    """The gradient of a rollout beside the rollout, and beside differences along a direction."""
    model = rf.load(name)
    rng = np.random.default_rng(1)
    q = np.tile(model.neutral(), (states, 1))
    options: dict[str, Any] = {"steps": steps, "dt": 1e-3, "ground": ground}
    if ground is not None:
        q[:, 2] = 0.6 * np.cos(0.4) - 1e-3
        q[:, 7::3], q[:, 8::3] = -0.4, 0.8
        options["control"] = rf.control.PD(rf.motion.Hold(q[0, 6:]), kp=300.0, kd=10.0)
    v = 0.02 * rng.normal(size=(states, model.nv))
    run = rf.rollout(model, q, v, **options)
    by_q, by_v, dq, dv = rng.normal(size=(4, states, model.nv))
    found = run.gradient(by_q, by_v)
    forth, back = in_turn(
        lambda: rf.rollout(model, q, v, **options), lambda: run.gradient(by_q, by_v)
    )
    step = 1e-7
    ends = [rf.rollout(model, q + s * dq, v + s * dv, **options) for s in (step, -step)]
    change = (by_q * (ends[0].q - ends[1].q) + by_v * (ends[0].v - ends[1].v)).sum(axis=-1)
    along = (found.q0 * dq + found.v0 * dv).sum(axis=-1)
    off = np.abs(along - change / (2 * step)) / np.abs(along)
    where = f"on {ground}" if ground else "in the air"
    print(
        f"{name:9} {where}, {states} states, {steps} steps: gradient {back / forth:.2f} of the "
        f"rollout's time; off by {np.median(off):.1e} of differences (median), "
        f"{(off < 1e-4).mean():.2%} of the states within 1e-4",
        flush=True,
    )


if __name__ == "__main__":
    rf.threads(1)
    print(f"{multiply_adds():.1f} multiply-adds a nanosecond on {host().width} lanes", flush=True)
    for robot in ROBOTS:
        measure(robot)
    for robot in ("kuka_kr5", "quadruped"):
        robots_of_their_own(robot)
    adjoint("kuka_kr5", None, 64, 1000)
    adjoint("quadruped", None, 64, 1000)
    adjoint("quadruped", "hunt_crossley", 64, 1000)
    adjoint("quadruped", "hunt_crossley", 4096, 20)
