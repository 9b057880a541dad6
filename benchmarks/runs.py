"""Simulations and rollouts as a whole, beside MuJoCo's loop and SciPy on Pinocchio."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import models
import mujoco
import numpy as np
import pinocchio as pin
from calls import timed
from measure import Bench
from programs import MuJoCo, Pinocchio, random_states
from report import Table, duration, ratio
from scipy.integrate import solve_ivp
from timing import Array, relative_error

import ramify as rf

LOOP_FLOOR, ADAPTIVE_FLOOR = 5.0, 15.0
AGAIN, ROLLOUT_AGAIN = 5e-4, 3e-5  # seconds
POLICY_FLOOR = 1.3
STEPS, SPAN = 1000, 10.0


def least(function: Any, seconds: float) -> float:
    """Seconds of the fastest of at least three calls."""
    best, start, count = float("inf"), perf_counter(), 0
    while count < 3 or perf_counter() - start < seconds:
        begin = perf_counter()
        function()
        best, count = min(best, perf_counter() - begin), count + 1
    return best


def fixed_steps(bench: Bench) -> None:
    """A second in steps of 1 ms by RK4, beside a loop over mj_step."""
    table = Table(
        "Simulations in fixed steps",
        ("robot", "ramify", "four calls a step", "MuJoCo", "MuJoCo / ramify", "difference"),
        "One second in steps of 1 ms, RK4. ramify: `simulate` with its result of 101 samples and "
        "its energy. *Four calls*: of the kernel of its forward dynamics. MuJoCo: a Python loop "
        "over `mj_step` with the same integrator.",
    )
    for robot in models.CHOSEN:
        model = models.real(robot)
        q, v = (rows[0].copy() for rows in random_states(model, 1)[:2])
        v *= 0.1
        peer = MuJoCo(model)
        peer.model.opt.timestep, peer.model.opt.integrator = 1e-3, peer._INTEGRATORS["rk4"]
        data = peer.data

        def loop(peer: MuJoCo = peer, q: Array = q, v: Array = v) -> None:
            mujoco.mj_resetData(peer.model, peer.data)
            peer.data.qpos[:], peer.data.qvel[:] = q, v
            for _ in range(STEPS):
                mujoco.mj_step(peer.model, peer.data)

        def ours(model: rf.Model = model, q: Array = q, v: Array = v) -> Any:
            return rf.simulate(
                model, 1.0, q, v, method="rk4", step=1e-3, stops=False, passive=False
            )

        loop()
        error = relative_error(ours().q[-1], np.array(data.qpos))
        shown = bench.verdict(error, 1e-5)
        times = [least(call, bench.effort.seconds) for call in (ours, loop)]
        gain = times[1] / times[0]
        names = {"kernel": model.kernel("forward_dynamics", "unrolled"), "q": q, "v": v}
        names |= {"out": np.empty(model.nv)}
        once = timed({"": "kernel(q, v, v, out=out)"}, names, bench.effort.seconds)[""]
        title = f"{robot} ({model.nv})"
        own = duration(times[0]), duration(4 * STEPS * once)
        table.add(title, *own, duration(times[1]), ratio(gain), shown)
        bench.at_least(f"simulate, rk4, {title}: times faster than mj_step", gain, LOOP_FLOOR)
        bench.gain("simulations, against a loop over mj_step", title, gain)
    bench.show(table)


def adaptive(bench: Bench) -> None:
    """Ten seconds at a tolerance, beside SciPy's DOP853 on Pinocchio."""
    table = Table(
        "Adaptive simulations",
        ("robot", "ramify", "SciPy + Pinocchio", "gain", "difference"),
        "Ten seconds from a small velocity without damping, DOP853, rtol = 1e-8, samples every "
        "10 ms. ramify: `simulate` with its result and audit. SciPy: `solve_ivp` on `pin.aba`. "
        "*Difference*: after the first second; later ones measure how chaotic the fall is.",
    )
    for robot in models.ARMS:
        model = models.real(robot)
        q, v = (rows[0].copy() for rows in random_states(model, 1)[:2])
        v *= 0.1
        peer = Pinocchio(model)
        nothing, n = np.zeros(model.nv), model.nq

        def rates(
            t: float, y: Array, peer: Pinocchio = peer, n: int = n, nothing: Array = nothing
        ) -> Array:
            a = pin.aba(peer.model, peer.data, y[:n], y[n:], nothing)
            return np.concatenate([y[n:], a])

        def theirs(rates: Any = rates, q: Array = q, v: Array = v, end: float = SPAN) -> Any:
            grid = np.linspace(0.0, end, round(100 * end) + 1)
            start = np.concatenate([q, v])
            return solve_ivp(rates, (0.0, end), start, "DOP853", t_eval=grid, rtol=1e-8, atol=1e-10)

        def ours(model: rf.Model = model, q: Array = q, v: Array = v, end: float = SPAN) -> Any:
            found = rf.simulate(model, end, q, v, method="dop853", stops=False, passive=False)
            assert found.audit is not None
            return found

        error = relative_error(ours(end=1.0).q[-1], theirs(end=1.0).y[:n, -1])
        shown = bench.verdict(error, 1e-5)
        times = [least(call, bench.effort.seconds) for call in (ours, theirs)]
        gain = times[1] / times[0]
        title = f"{robot} ({model.nv})"
        table.add(title, *map(duration, times), ratio(gain), shown)
        what = f"simulate, adaptive, {title}: times faster than SciPy on Pinocchio"
        bench.at_least(what, gain, ADAPTIVE_FLOOR)
        bench.gain("simulations, against SciPy on Pinocchio", title, gain)
    bench.show(table)


def fixed_costs(bench: Bench) -> None:
    """What a second call of the same machine costs before its first step."""
    table = Table(
        "Fixed costs",
        ("robot", "simulate, one step", "rollout, one step of one state", "of which the step"),
        "The same machine asked again. The step of a rollout: a hundredth of what a hundred more "
        "of them take.",
    )
    for robot in models.CHOSEN:
        model = models.real(robot)
        q, v = model.random()
        names = {"rf": rf, "m": model, "q": q, "v": v}
        texts = {
            "simulate": "rf.simulate(m, 1e-3, q, v, method='rk4', step=1e-3, dt_out=1e-3)",
            "rollout": "rf.rollout(m, q, v, steps=1, dt=1e-3)",
            "longer": "rf.rollout(m, q, v, steps=101, dt=1e-3)",
        }
        times = timed(texts, names, bench.effort.seconds)
        step = (times.pop("longer") - times["rollout"]) / 100
        title, fixed = f"{robot} ({model.nv})", times["rollout"] - step
        table.add(title, *map(duration, times.values()), duration(step))
        bench.at_most(f"{title}: a second simulate", times["simulate"], AGAIN, duration)
        bench.at_most(f"{title}: a second rollout, its step aside", fixed, ROLLOUT_AGAIN, duration)
    bench.show(table)


def policies(bench: Bench) -> None:
    """Rollouts with a policy in NumPy."""
    states = bench.effort.rollouts
    table = Table(
        f"Rollouts of {states} states with a policy in NumPy, one thread",
        ("robot", "with the policy", "policy alone", "without", "with / (alone + without)"),
        "20 steps of 1 ms, RK4, without stops; the policy, a linear law of q and v with a tanh, is "
        "called once a step with the whole batch.",
    )
    for robot in models.CHOSEN:
        model = models.real(robot)
        q, v = (np.stack(x) for x in zip(*map(model.random, range(states)), strict=True))
        driven = models.driven(model)
        rng = np.random.default_rng(0)
        P, D = 0.1 * rng.normal(size=(model.nq, driven)), 0.1 * rng.normal(size=(model.nv, driven))

        def policy(t: float, q: Array, v: Array, P: Array = P, D: Array = D) -> Array:
            return np.tanh(q @ P + v @ D)

        names = {"rf": rf, "m": model, "q": q, "v": v, "policy": policy}
        texts = {
            "with": "rf.rollout(m, q, v, steps=20, dt=1e-3, control=policy, stops=False)",
            "alone": "for _ in range(20): policy(0.0, q, v)",
            "without": "rf.rollout(m, q, v, steps=20, dt=1e-3, stops=False)",
        }
        times = timed(texts, names, bench.effort.seconds)
        share = times["with"] / (times["alone"] + times["without"])
        title = f"{robot} ({model.nv})"
        table.add(title, *map(duration, times.values()), ratio(share))
        bench.at_most(f"rollout with a policy, {title}", share, POLICY_FLOOR)
    bench.show(table)
