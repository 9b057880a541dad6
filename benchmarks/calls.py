"""Calls beside the dynamics of trees: controllers, arrays to fill, closed loops, matrices in
batches, threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Barrier, Thread
from time import perf_counter, sleep
from typing import Any

import models
import numpy as np
import pinocchio as pin
from measure import Bench
from programs import Pinocchio, random_states
from report import Table, duration, ratio
from tables import STATES
from timing import Array, Call, fastest, relative_error

import ramify as rf
from ramify.runtime import kernel

CONTROL_FLOOR = 1.5  # of one inverse dynamics
MATRIX_FLOORS = {
    "mass_matrix": {"UR5": 45.0, "solo12": 8.0, "G1": 7.0},
    "mass_matrix_inverse": {"UR5": 40.0, "solo12": 9.0, "G1": 8.0},
}
LOOPS_FLOOR, LOOPS_MORE = 3.0, 2e-6  # times the opened tree, and seconds
ALONE_FLOOR, SHARED_FLOOR, SHARED_FROM = 0.97, 1.7, 5e-4
MATRIX_STATES = 1024


def settled(text: str, names: dict[str, Any], patience: float = 60.0) -> None:
    """Run a statement until no kernel waits for straight-line code any more."""
    code, start = compile(text, "statement", "exec"), perf_counter()
    for _ in range(20):
        exec(code, names)
    while kernel._queue and perf_counter() - start < patience:
        sleep(0.02)
    for _ in range(20):
        exec(code, names)


def timed(
    texts: dict[str, str], names: dict[str, Any], seconds: float, before: str = "pass"
) -> dict[str, float]:
    """Seconds of some statements; ``before`` each sample, where {} stands for the statement's name,
    something is done that is not timed.
    """
    nothing = np.zeros(1)
    calls = {k: Call(x, names, lambda: nothing, before.format(k)) for k, x in texts.items()}
    return fastest(calls, seconds)


def apart(call: Callable[[Array], object], rows: Sequence[Array], seconds: float) -> float:
    """Seconds of a call where two threads of Python make it side by side, each with an array of
    its own, sharing nothing: what the machine allows.
    """
    number, best = max(2, round(6e-3 / seconds)), float("inf")

    def work(out: Array, gate: Barrier, found: list[float]) -> None:
        gate.wait()
        begin = perf_counter()
        for _ in range(number):
            call(out)
        found.append(perf_counter() - begin)

    for _ in range(12):
        gate, found = Barrier(2), list[float]()
        crew = [Thread(target=work, args=(out, gate, found)) for out in rows]
        for one in crew:
            one.start()
        for one in crew:
            one.join()
        best = min(best, max(found) / number)
    return best


def controllers(bench: Bench) -> None:
    """What a controller gives by hand, beside one inverse dynamics."""
    table = Table(
        "Controllers, one state per call",
        ("robot, controller", "torque", "inverse dynamics", "torque / inverse dynamics"),
        "`control.torque(m, t, q, v)` beside `m.inverse_dynamics(q, v, v)`.",
    )
    for robot in models.CHOSEN:
        model = models.real(robot)
        q, v = (rows[0].copy() for rows in random_states(model, 1)[:2])
        rest = rf.motion.Hold(tuple(np.zeros(models.driven(model))))
        for control in (
            rf.control.PD(rest, kp=10.0, kd=1.0),
            rf.control.ComputedTorque(rest, kp=10.0, kd=1.0),
            rf.control.GravityCompensation(),
        ):
            names = {"control": control, "m": model, "t": 0.1, "q": q, "v": v}
            texts = {
                "torque": "control.torque(m, t, q, v)",
                "inverse": "m.inverse_dynamics(q, v, v)",
            }
            for text in texts.values():
                settled(text, names)
            times = timed(texts, names, bench.effort.seconds)
            share = times["torque"] / times["inverse"]
            title = f"{robot} ({model.nv}), {type(control).__name__}"
            table.add(title, duration(times["torque"]), duration(times["inverse"]), ratio(share))
            bench.at_most(f"one state, {title}: times one inverse dynamics", share, CONTROL_FLOOR)
    bench.show(table)


def filled(bench: Bench) -> None:
    """Arrays to fill beside fresh ones."""
    table = Table(
        "Arrays to fill, one state per call",
        ("robot, algorithm", "fresh", "out=", "out= / fresh"),
        "`kernel(q, v, a)` beside `kernel(q, v, a, out=out)`.",
    )
    for robot in models.CHOSEN:
        model = models.real(robot)
        q, v, x = (rows[0].copy() for rows in random_states(model, 1))
        for algorithm in ("inverse_dynamics", "forward_dynamics", "mass_matrix", "kinematics"):
            asked = model.kernel(algorithm, "unrolled")
            names = {"kernel": asked, "q": q, "v": v, "x": x}
            given = "q, v, x" if "dynamics" in algorithm else "q"
            found = eval(f"kernel({given})", names)
            names["out"] = (
                tuple(map(np.empty_like, found)) if isinstance(found, tuple) else found.copy()
            )
            texts = {"fresh": f"kernel({given})", "out": f"kernel({given}, out=out)"}
            times = timed(texts, names, bench.effort.seconds)
            share = times["out"] / times["fresh"]
            title = f"{robot} ({model.nv}), {algorithm.replace('_', ' ')}"
            table.add(title, duration(times["fresh"]), duration(times["out"]), ratio(share))
            bench.at_most(f"one state, {title}: out= / fresh", share, 1.02)
    bench.show(table)


def loops(bench: Bench) -> None:
    """Closed loops beside the trees they become when opened."""
    table = Table(
        "Closed loops, one state per call",
        ("robot, algorithm", "closed", "tree", "closed / tree", "allowed", "error"),
        "The loops' posture is checked in each call. *Allowed*: three times the tree's and 2 µs. "
        "*Error*: of the closed inverse dynamics put back into the forward dynamics.",
    )
    for robot in ("four_bar", "stewart_platform", "robotic_leg"):
        model = rf.load(robot)
        q = model.assemble().q
        v, x = np.zeros(model.nv), 0.1 * np.ones(model.nv)
        names = {"m": model, "tree": model.tree, "q": q, "v": v, "x": x}
        a = model.forward_dynamics(q, v, 0.0 * x)
        back = model.forward_dynamics(q, v, model.inverse_dynamics(q, v, a))
        error = float(np.abs(back - a).max() / (1.0 + np.abs(a).max()))
        shown = bench.verdict(error)
        for algorithm in ("forward_dynamics", "inverse_dynamics"):
            given = "x" if algorithm == "forward_dynamics" else "a"
            names["a"] = a
            texts = {
                "closed": f"m.{algorithm}(q, v, {given})",
                "tree": f"tree.{algorithm}(q, v, {given})",
            }
            settled(texts["closed"], names)
            settled(texts["tree"], names)
            times = timed(texts, names, bench.effort.seconds)
            title = f"{robot} ({model.nv}), {algorithm.split('_')[0]}"
            share = times["closed"] / times["tree"]
            bound = LOOPS_FLOOR * times["tree"] + LOOPS_MORE
            both = map(duration, times.values())
            table.add(title, *both, ratio(share), duration(bound), shown)
            bench.at_most(f"one state, {title}, closed", times["closed"], bound, duration)
    bench.show(table)


def _symmetric(upper: Array) -> Array:
    return np.triu(upper) + np.triu(upper, 1).T


def matrices(bench: Bench) -> None:
    """Inertia matrices and their inverses in batches; Pinocchio has no batch function for them."""
    table = Table(
        f"Inertia matrices, batch of {MATRIX_STATES} states, one thread",
        ("robot, matrix", "ramify", "filling", "Pinocchio", "Pinocchio / ramify", "error"),
        "Time per state, into a ready array. *Filling*: the same array with zeros, the least that "
        "writing takes. Pinocchio: one call of `crba` or `computeMinverse`, which fill one "
        "triangle.",
    )
    peers = {"mass_matrix": pin.crba, "mass_matrix_inverse": pin.computeMinverse}
    for robot in bench.effort.robots:
        model = models.real(robot)
        peer = Pinocchio(model)
        q, v, _ = random_states(model, MATRIX_STATES)
        there = model.to_pinocchio(q[0], v[0]).q
        axes = model.to_pinocchio(np.tile(q[0], (model.nv, 1)), np.eye(model.nv)).v.T
        for name, function in peers.items():
            asked = model.kernel(name, "unrolled")
            found = asked(q)
            B = axes if name == "mass_matrix" else np.linalg.inv(axes).T
            wanted = B.T @ _symmetric(function(peer.model, peer.data, there)) @ B
            shown = bench.verdict(relative_error(found[0].ravel(), wanted.ravel()))
            names = {"kernel": asked, "q": q, "out": np.empty_like(found), "function": function}
            names |= {"model": peer.model, "data": peer.data, "there": there}
            texts = {"ours": "kernel(q, out=out)", "filling": "out.fill(0.0)"}
            texts["peer"] = "function(model, data, there)"
            times = timed(texts, names, bench.effort.seconds)
            ours, filling = (times[key] / MATRIX_STATES for key in ("ours", "filling"))
            gain = times["peer"] / ours
            title = f"{robot} ({model.nv}), {'M' if name == 'mass_matrix' else 'M⁻¹'}"
            own = duration(ours), duration(filling)
            table.add(title, *own, duration(times["peer"]), ratio(gain), shown)
            floor = MATRIX_FLOORS[name].get(robot)
            bench.at_least(f"batch, {title}: times faster than Pinocchio", gain, floor)
    bench.show(table)


def lighter(bench: Bench) -> None:
    """Batches with fewer bytes: single precision, and the inertia matrix as a triangle."""
    table = Table(
        f"Fewer bytes, batch of {STATES} states, one thread",
        ("robot, algorithm", "double", "lighter", "gain", "error"),
        "Time per state. Forward and inverse dynamics in single precision (*error*: of a column, "
        "in units of its largest number); M as a packed triangle, in double precision.",
    )
    for robot in models.CHOSEN:
        model = models.real(robot)
        q, v, x = random_states(model, STATES)
        for name in ("forward_dynamics", "inverse_dynamics", "mass_matrix"):
            given = (q,) if name == "mass_matrix" else (q, v, x)
            full, single = model.kernel(name, "unrolled"), name != "mass_matrix"
            light = (
                model.kernel(name, dtype="float32")
                if single
                else model.kernel("mass_matrix_packed", "unrolled")
            )
            few = [a.astype(np.float32) for a in given] if single else list(given)
            exact, found = full(*(a.astype(np.float64) for a in few)), light(*few)
            low = np.tril_indices(model.nv)
            wanted = exact if single else exact[:, *low]
            error = float((np.abs(found - wanted).max(0) / np.abs(wanted).max(0).clip(1e-9)).max())
            names = {"full": full, "light": light, "given": given, "few": few}
            names |= {"a": np.empty_like(exact), "b": np.empty_like(found)}
            texts = {"full": "full(*given, out=a)", "light": "light(*few, out=b)"}
            times = timed(texts, names, bench.effort.seconds)
            title = f"{robot} ({model.nv}), {name.replace('_', ' ')}"
            shown = [duration(times[k] / STATES) for k in texts]
            gain = times["full"] / times["light"]
            table.add(title, *shown, ratio(gain), bench.verdict(error, 1e-3))
    bench.show(table)


def shared(bench: Bench) -> None:
    """Two threads beside one, by the work of a batch."""
    table = Table(
        "Two threads",
        ("robot, states", "one thread", "two threads", "gain", "bound"),
        "Forward dynamics, straight-line code, with `rf.threads(1)` and `rf.threads(2)`. Below a "
        "fifth of a millisecond of work the caller works alone. *Bound*: what two threads gain "
        "that compute the same batch side by side and share nothing.",
    )
    for robot in models.CHOSEN:
        model = models.real(robot)
        asked = model.kernel("forward_dynamics", "unrolled")
        for states in (256, 1024, 4096, 16384):
            q, v, x = random_states(model, states)
            names = {"kernel": asked, "q": q, "v": v, "x": x, "out": np.empty_like(x)}
            names |= {"threads": rf.threads}
            texts = dict.fromkeys(("1", "2"), "kernel(q, v, x, out=out)")
            times = timed(texts, names, bench.effort.seconds, "threads({})")
            one, two = times["1"], times["2"]
            title = f"{robot} ({model.nv}), {states} states"
            bound = None
            if one >= SHARED_FROM:
                rf.threads(1)
                rows = np.empty_like(x), np.empty_like(x)
                given = partial(asked, q, v, x)
                bound = 2.0 * one / apart(lambda out, f=given: f(out=out), rows, one)  # type: ignore[misc]
            table.add(title, duration(one), duration(two), ratio(one / two), ratio(bound))
            floor = SHARED_FLOOR if one >= SHARED_FROM else ALONE_FLOOR
            bench.at_least(f"two threads, {title}: gain", one / two, floor)
    rf.threads(1)
    bench.show(table)
