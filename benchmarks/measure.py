"""What is measured, and the floors it is held against."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter, sleep

import models
import numpy as np
import startup
from programs import ALGORITHMS, PEERS, MuJoCo, Peer, Pinocchio, Ramify, States, random_states
from report import Table, digits, duration, ratio
from rich.console import Console
from timing import Call, fastest, relative_error

import ramify as rf

STATES = 4096
CHAIN_STATES = 256
PINOCCHIO_LINKS = 256  # its workspace takes memory with the cube of the links: 4 GB for 512, 35 GB for 1024
UNROLLED_LINKS = 64
AGREEMENT = 1e-8

# How many times faster than Pinocchio's batch functions (one thread); which part of the time of its single call.
BATCH_FLOORS = {
    "forward_dynamics": {"kuka_kr5": 35.0, "quadruped": 16.0, "humanoid": 12.0},
    "inverse_dynamics": {"kuka_kr5": 30.0, "quadruped": 15.0, "humanoid": 9.0},
}
SINGLE_FLOORS = {"kuka_kr5": 0.4, "quadruped": 0.6, "humanoid": 0.7}
FLAT = 1.3  # most that the cost per link may vary
FIRST_CHAIN, COMPILE, LOAD = 2.0, 3.0, 0.05  # seconds


@dataclass(frozen=True)
class Effort:
    """How long to measure."""

    seconds: float  # per comparison
    repeats: int  # of each fresh interpreter
    chains: tuple[int, ...]
    threads: tuple[int, ...]


WHOLE = Effort(seconds=2.5, repeats=4, chains=tuple(2**k for k in range(1, 11)), threads=(1, 2))
QUICK = Effort(seconds=0.15, repeats=1, chains=(2, 16, 64, 256, 1024), threads=(1,))


class Bench:
    """Measures part by part; collects tables, floors and the number of disagreements."""

    def __init__(self, effort: Effort, console: Console) -> None:
        self.effort, self.console = effort, console
        self.tables: list[Table] = []
        self.floors = Table("Floors", ("what", "measured", "floor", "verdict"), "What ramify holds itself to, in this run.")
        self.wrong = 0

    def _show(self, table: Table) -> None:
        table.show(self.console)
        self.tables.append(table)

    def _at_least(self, what: str, measured: float, floor: float) -> None:
        self.floors.add(what, ratio(measured), f"≥ {ratio(floor)}", "ok" if measured >= floor else "below")

    def _at_most(self, what: str, measured: float, bound: float, text: Callable[[float], str] = ratio) -> None:
        self.floors.add(what, text(measured), f"≤ {text(bound)}", "ok" if measured <= bound else "below")

    def _verdict(self, error: float) -> str:
        """The error as text; one that is too large is remembered."""
        agree = error < AGREEMENT
        self.wrong += not agree
        return f"{error:.0e}" if agree else f"{error:.0e} WRONG"

    def _compare(self, calls: Mapping[str, Call | None]) -> tuple[dict[str, float], str]:
        """Seconds of each program, and the largest error of any against Pinocchio."""
        real = {name: call for name, call in calls.items() if call is not None}
        expected = real[Pinocchio.name].run()
        error = max(relative_error(call.run(), expected) for call in real.values())
        return fastest(real, self.effort.seconds), self._verdict(error)

    # ---- three robots ----

    def robots(self) -> None:
        """Forward and inverse dynamics, one state per call and in batches."""
        single, work = _single_table(), _work_table()
        batches = {count: _batch_table(count) for count in self.effort.threads}
        for make in models.ROBOTS:
            model = make()
            peers = [peer(model) for peer in PEERS]
            states = random_states(model, STATES)
            for algorithm in ALGORITHMS:
                title = f"{model.name} ({model.nv}), {algorithm.split('_')[0]}"
                self._single(single, title, model, peers, algorithm, tuple(a[0].copy() for a in states))
                for count, table in batches.items():
                    seconds = self._batch(table, title, model, peers, algorithm, states, count)
                    if count == 1:
                        _add_work(work, title, model, algorithm, seconds)
        for table in (single, *batches.values(), work):
            self._show(table)

    def _single(
        self, table: Table, title: str, model: rf.Model, peers: Sequence[Peer], algorithm: str, state: States
    ) -> None:  # fmt: skip
        _settle(model, algorithm)
        calls = {"method": Ramify(model).single(algorithm, state), "kernel": Ramify(model, "unrolled").single(algorithm, state)}
        times, error = self._compare(calls | {peer.name: peer.single(algorithm, state) for peer in peers})
        shares = [times["method"] / times[peer.name] for peer in peers]
        shown = [duration(times[name]) for name in ("method", "kernel", Pinocchio.name, MuJoCo.name)]
        table.add(title, *shown, *map(ratio, shares), error)
        self._at_most(f"one state, {title}: part of Pinocchio's time", shares[0], SINGLE_FLOORS[model.name])

    def _batch(
        self, table: Table, title: str, model: rf.Model, peers: Sequence[Peer], algorithm: str, states: States, count: int
    ) -> float:  # fmt: skip
        """A row; gives the seconds per state of the straight-line code."""
        tiers = {"unrolled": Ramify(model, "unrolled"), "rolled": Ramify(model, "rolled")}
        calls = {name: program.batch(algorithm, states, count) for name, program in tiers.items()}
        times, error = self._compare(calls | {peer.name: peer.batch(algorithm, states, count) for peer in peers})
        ours = times["unrolled"]
        names = ("unrolled", "rolled", Pinocchio.name, MuJoCo.name)
        shown = [duration(times[name] / STATES if name in times else None) for name in names]
        gains = [times[peer.name] / ours if peer.name in times else None for peer in peers]
        table.add(title, *shown, *map(ratio, gains), error)
        if count == 1:
            self._at_least(f"batch, {title}: times faster than Pinocchio", gains[0] or 0.0, BATCH_FLOORS[algorithm][model.name])
        return ours / STATES

    # ---- chains ----

    def chains(self) -> None:
        """Cost per link of the forward dynamics of chains."""
        table = _chain_table()
        long: dict[str, list[float]] = {"in a batch": [], "alone": []}
        for n in self.effort.chains:
            batch, one, error = self._chain(n)
            names = ("unrolled", "rolled", Pinocchio.name)
            shown = [duration(times.get(name)) for times in (batch, one) for name in names]
            gain = batch[Pinocchio.name] / batch["rolled"] if Pinocchio.name in batch else None
            table.add(n, *shown, ratio(gain), error)
            if n >= 64:
                long["in a batch"].append(batch["rolled"])
                long["alone"].append(one["rolled"])
        self._show(table)
        for where, costs in long.items():
            self._at_most(f"cost per link {where}, 64 to 1024 links: largest / smallest", max(costs) / min(costs), FLAT)

    def _chain(self, n: int) -> tuple[dict[str, float], dict[str, float], str]:
        """Seconds per state and link in a batch and alone, and the error."""
        model = models.chain(n)
        q, v, tau = random_states(model, CHAIN_STATES)
        states = q, v, tau = q / 4.0, v, 1e-3 * tau  # a chain that is neither a knot nor torn apart
        programs: dict[str, Ramify | Pinocchio] = {"rolled": Ramify(model, "rolled")}
        if n <= UNROLLED_LINKS:
            programs["unrolled"] = Ramify(model, "unrolled")
        if n <= PINOCCHIO_LINKS:
            programs[Pinocchio.name] = Pinocchio(model)
        first = tuple(a[0].copy() for a in states)
        batch = {name: program.batch("forward_dynamics", states, 1) for name, program in programs.items()}
        one = {name: program.single("forward_dynamics", first) for name, program in programs.items()}
        if n <= PINOCCHIO_LINKS:
            expected = batch[Pinocchio.name].run()
            errors = [relative_error(call.run(), expected) for call in batch.values()]
            errors += [relative_error(call.run(), expected[:1]) for call in one.values()]
        else:
            back = model.inverse_dynamics(q, v, batch["rolled"].run())
            errors = list(np.abs(back - tau).max(axis=1) / np.abs(model.bias(q, v)).max(axis=1))
        per_link = (
            {name: seconds / (count * n) for name, seconds in fastest(calls, self.effort.seconds).items()}
            for calls, count in ((batch, CHAIN_STATES), (one, 1))
        )
        return *per_link, self._verdict(max(errors))

    # ---- the first seconds ----

    def first_seconds(self) -> None:
        """Import, first answer, compilation, memory; in fresh interpreters."""
        table, repeats = _first_table(), self.effort.repeats
        for name, seconds in startup.import_times(2 * repeats + 1).items():
            table.add(f"import {name}", duration(seconds), "", "")
        for robot in ("kuka", "humanoid", "chain1000"):
            cold, warm = startup.cold_and_warm("first", robot, repeats)
            peak = f"{cold['peak']:.0f} MB"
            table.add(f"{robot}: start to first forward dynamics", duration(cold["total"]), duration(warm["total"]), peak)
            table.add("… of which the call itself", duration(cold["answer"]), duration(warm["answer"]), "")
        self._at_most("1000-link chain: start to first answer, cold cache", cold["total"], FIRST_CHAIN, duration)
        cold, warm = startup.cold_and_warm("compile", "humanoid", repeats)
        table.add("humanoid: unrolled kernel for one state", duration(cold["single"]), duration(warm["single"]), "")
        peak = f"{cold['peak']:.0f} MB"
        table.add("humanoid: unrolled kernel for batches", duration(cold["batch"]), duration(warm["batch"]), peak)
        self._show(table)
        for what, runs, bound in (("compiled", cold, COMPILE), ("loaded from the cache", warm, LOAD)):
            self._at_most(
                f"36-body unrolled kernel, for one state and for batches: {what}", runs["single"] + runs["batch"], bound, duration
            )


def _settle(model: rf.Model, algorithm: str, patience: float = 60.0) -> None:
    """Use a method until its straight-line code is ready, as a program that runs for a while would find it."""
    q, v = model.random()
    start = perf_counter()
    while model.kernel(algorithm).tier != "unrolled" and perf_counter() - start < patience:
        getattr(model, algorithm)(q, v, v)
        sleep(0.01)


# ---- the tables ----


def _single_table() -> Table:
    return Table(
        "One state per call",
        ("robot, algorithm", "ramify", "its kernel", "Pinocchio", "MuJoCo", "ramify / Pinocchio", "ramify / MuJoCo", "error"),
        "From Python, with a fresh array for the result: `m.forward_dynamics(q, v, tau)`, `kernel(q, v, tau)`, "
        "`pin.aba(model, data, q, v, tau)`, `mj_forward`. MuJoCo computes more than was asked: all poses, the inertia matrix.",
    )


def _batch_table(count: int) -> Table:
    return Table(
        f"Batch of {STATES} states, {'one thread' if count == 1 else f'{count} threads'}",
        ("robot, algorithm", "unrolled", "rolled", "Pinocchio", "MuJoCo", "Pinocchio / ramify", "MuJoCo / ramify", "error"),
        "Time per state. ramify: arrays (N, nv) in and out, everything included; both tiers. Pinocchio: `abaInParallel`, "
        "`rneaInParallel` with arrays in its own layout and a ready result. MuJoCo: `rollout` of one step; it has no batched "
        "inverse dynamics."
        if count == 1
        else f"The same with {count} threads in every program.",
    )


def _work_table() -> Table:
    return Table(
        "Work",
        ("robot, algorithm", "+ and ×", "÷", "sin, cos", "per state", "operations per ns"),
        "Operations per state after folding and sharing, without those inside sine and cosine; time in a batch, one thread.",
    )


def _add_work(table: Table, title: str, model: rf.Model, algorithm: str, seconds: float) -> None:
    count = model.op_count(algorithm)
    sums = count.add + count.mul
    table.add(title, sums, count.div, count.sincos, duration(seconds), digits(sums / (seconds * 1e9)))


def _chain_table() -> Table:
    return Table(
        "Chains: forward dynamics per link",
        (
            "links", "batch, unrolled", "batch, rolled", "batch, Pinocchio", "one, unrolled", "one, rolled", "one, Pinocchio",
            "Pinocchio / rolled, batch", "error",
        ),
        f"Time per state and link, one thread; in batches of {CHAIN_STATES} states (with few links a call's fixed cost shows) and "
        f"one state per call. Straight-line code up to {UNROLLED_LINKS} links. Pinocchio's workspace takes memory with the cube of "
        f"the links (4 GB for 512, 35 GB for 1024), so it takes part up to {PINOCCHIO_LINKS}; beyond, the error is the residual of "
        "the inverse dynamics in units of the largest bias force.",
    )  # fmt: skip


def _first_table() -> Table:
    return Table(
        "The first seconds",
        ("in a fresh interpreter", "cold cache", "warm cache", "peak memory"),
        "Cold: an empty kernel cache, so that everything is compiled. Warm: a second process finds it on disk. Answers count from "
        "the start of the interpreter and include loading the robot; imports are above a bare interpreter.",
    )
