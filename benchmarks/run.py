"""ramify against Pinocchio and MuJoCo, in one run on this machine.

    python benchmarks/run.py            the whole run, about three minutes; writes docs/benchmarks.md
    python benchmarks/run.py --quick    about twenty seconds; only prints

Times are minima of many short samples taken in turn; every ratio compares two figures of the same run, and every compared pair
is checked to give the same numbers. Exit code 1 where they do not.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from time import perf_counter, sleep

import models
import numpy as np
import startup
from peers import ALGORITHMS, PEERS, MuJoCo, Peer, Pinocchio, Ramify, States, random_states
from report import Table, digits, duration, machine, ratio
from rich.console import Console
from timing import Call, fastest, relative_error

import ramify as rf

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
STATES = 4096
CHAIN_STATES = 256
AGREEMENT = 1e-8  # relative
PINOCCHIO_LINKS = 256
FLAT = 1.3  # most the cost per link may vary

# Floors: how many times faster than Pinocchio's batch functions (one thread), and which part of its single call's time is allowed.
BATCH_FLOORS = {
    "forward_dynamics": {"kuka_kr5": 35.0, "quadruped": 16.0, "humanoid": 12.0},
    "inverse_dynamics": {"kuka_kr5": 30.0, "quadruped": 15.0, "humanoid": 9.0},
}
SINGLE_FLOORS = {"kuka_kr5": 0.4, "quadruped": 0.6, "humanoid": 0.7}


@dataclass(frozen=True)
class Effort:
    """How long to measure."""

    seconds: float  # per comparison
    repeats: int  # of each fresh interpreter
    chains: tuple[int, ...]
    threads: tuple[int, ...]


WHOLE = Effort(seconds=2.5, repeats=4, chains=tuple(2**k for k in range(1, 11)), threads=(1, 2))
QUICK = Effort(seconds=0.2, repeats=1, chains=(2, 16, 64, 256, 1024), threads=(1,))


class Bench:
    """Collects tables and verdicts."""

    def __init__(self, effort: Effort, console: Console) -> None:
        self.effort, self.console = effort, console
        self.tables: list[Table] = []
        self.floors = Table("Floors", ("what", "measured", "floor", "verdict"), "What ramify has promised itself, from this run.")
        self.wrong = 0

    def show(self, table: Table) -> None:
        table.show(self.console)
        self.tables.append(table)

    def floor(self, what: str, measured: float, bound: float, text: str, sign: str) -> None:
        met = measured >= bound if sign == "≥" else measured <= bound
        show = duration if text == "s" else ratio
        self.floors.add(what, show(measured), f"{sign} {show(bound)}", "ok" if met else "below")

    def verdict(self, error: float) -> str:
        """The error as text; one that is too large is remembered."""
        agree = error < AGREEMENT
        self.wrong += not agree
        return f"{error:.0e}" if agree else f"{error:.0e} WRONG"

    def compare(self, calls: Mapping[str, Call | None]) -> tuple[dict[str, float], str]:
        """Seconds of each program, and the largest error of any against Pinocchio."""
        real = {name: call for name, call in calls.items() if call is not None}
        expected = real[Pinocchio.name].run()
        error = max(relative_error(call.run(), expected) for call in real.values())
        return fastest(real, self.effort.seconds), self.verdict(error)

    # ---- the parts ----

    def robots(self) -> None:
        """Forward and inverse dynamics of three robots."""
        made = [make() for make in models.ROBOTS]
        single = Table(
            "One state per call",
            ("robot, algorithm", "ramify", "kernel", "Pinocchio", "MuJoCo", "ramify / Pinocchio", "ramify / MuJoCo", "error"),
            "From Python, with a fresh array for the result: `m.forward_dynamics(q, v, tau)`, `kernel(q, v, tau)`, `pin.aba(model, data, q, v, tau)`, "
            "`mj_forward`. MuJoCo computes more than was asked (all positions, the inertia matrix).",
        )
        batches = [self._batch_table(count) for count in self.effort.threads]
        work = Table(
            "Work",
            ("robot, algorithm", "+ and ×", "÷", "sin, cos", "per state", "operations per ns"),
            "Operations per state after folding and sharing; time in a batch, one thread.",
        )
        for model in made:
            peers = [make(model) for make in PEERS]
            states = random_states(model, STATES)
            for algorithm in ALGORITHMS:
                title = f"{model.name} ({model.nv}), {algorithm.split('_')[0]}"
                self._single_row(single, title, model, peers, algorithm, tuple(a[0].copy() for a in states))
                for table, count in zip(batches, self.effort.threads, strict=True):
                    times, error = self._batch(model, peers, algorithm, states, count)
                    self._batch_row(table, title, times, error)
                    if count == 1:
                        floor = BATCH_FLOORS[algorithm][model.name]
                        self.floor(f"batch, {title}: times faster", times[Pinocchio.name] / times["unrolled"], floor, "×", "≥")
                        ops = model.op_count(algorithm)
                        per_state = times["unrolled"] / STATES
                        flops = (ops.add + ops.mul) / per_state * 1e-9
                        work.add(title, ops.add + ops.mul, ops.div, ops.sincos, duration(per_state), digits(flops))
        for table in (single, *batches, work):
            self.show(table)

    def _single_row(self, table: Table, title: str, model: rf.Model, peers: Sequence[Peer], algorithm: str, state: States) -> None:
        settle(model, algorithm)
        public, pinned = Ramify(model), Ramify(model, "unrolled")
        calls = {"ramify": public.single(algorithm, state), "kernel": pinned.single(algorithm, state)}
        times, error = self.compare(calls | {peer.name: peer.single(algorithm, state) for peer in peers})
        share, other = (times["ramify"] / times[peer] for peer in (Pinocchio.name, MuJoCo.name))
        table.add(
            title,
            *(duration(times[name]) for name in ("ramify", "kernel", Pinocchio.name, MuJoCo.name)),
            ratio(share),
            ratio(other),
            error,
        )
        self.floor(f"one state, {title}: part of the time", share, SINGLE_FLOORS[model.name], "×", "≤")

    def _batch_table(self, count: int) -> Table:
        return Table(
            f"Batch of {STATES} states, {'one thread' if count == 1 else f'{count} threads'}",
            ("robot, algorithm", "unrolled", "rolled", "Pinocchio", "MuJoCo", "Pinocchio / ramify", "MuJoCo / ramify", "error"),
            "Time per state. ramify: arrays (N, nv) in and out, everything included. Pinocchio: `abaInParallel`, `rneaInParallel` with arrays in its own layout "
            "and a ready result. MuJoCo: `rollout` of one step; it has no batched inverse dynamics."
            if count == 1
            else f"The same with `threads={count}` in every program.",
        )

    def _batch(
        self, model: rf.Model, peers: Sequence[Peer], algorithm: str, states: States, count: int
    ) -> tuple[dict[str, float], str]:
        tiers = {tier: Ramify(model, tier).batch(algorithm, states, count) for tier in ("unrolled", "rolled")}
        return self.compare(tiers | {peer.name: peer.batch(algorithm, states, count) for peer in peers})

    def _batch_row(self, table: Table, title: str, times: dict[str, float], error: str) -> None:
        names = ("unrolled", "rolled", Pinocchio.name, MuJoCo.name)
        shown = [duration(times[name] / STATES if name in times else None) for name in names]
        gains = [ratio(times[name] / times["unrolled"] if name in times else None) for name in names[2:]]
        table.add(title, *shown, *gains, error)

    def chains(self) -> None:
        """Cost per link of the forward dynamics of chains."""
        table = Table(
            "Chains: forward dynamics per link",
            (
                "links",
                "batch unrolled",
                "batch rolled",
                "batch Pinocchio",
                "one unrolled",
                "one rolled",
                "one Pinocchio",
                "Pinocchio / rolled, batch",
                "error",
            ),
            f"Time per state and link, one thread; batches of {CHAIN_STATES} states, and one state per call. ramify makes straight-line code for up to 72 links. "
            f"Pinocchio's workspace grows with the cube of the links (4 GB for 512, 35 GB for 1024), so it takes part up to {PINOCCHIO_LINKS}; "
            "beyond, the error is that of the inverse dynamics of the answer, in units of the largest bias force.",
        )
        long: dict[str, list[float]] = {"in a batch": [], "alone": []}
        for n in self.effort.chains:
            batch, one, error = self._chain(n)
            names = ("unrolled", "rolled", Pinocchio.name)
            shown = [duration(times.get(name)) for times in (batch, one) for name in names]
            table.add(n, *shown, ratio(batch[Pinocchio.name] / batch["rolled"] if Pinocchio.name in batch else None), error)
            if n >= 64:
                long["in a batch"].append(batch["rolled"])
                long["alone"].append(one["rolled"])
        self.show(table)
        for where, costs in long.items():
            self.floor(f"cost per link {where}, 64 to 1024 links: largest / smallest", max(costs) / min(costs), FLAT, "×", "≤")

    def _chain(self, n: int) -> tuple[dict[str, float], dict[str, float], str]:
        """Seconds per state and link in a batch and alone, and the error."""
        model = models.chain(n)
        q, v, tau = random_states(model, CHAIN_STATES)
        states = q / 4.0, v, 1e-3 * tau  # a chain that is neither a knot nor torn apart
        programs: dict[str, Ramify | Pinocchio] = {
            tier: Ramify(model, tier) for tier in ("unrolled", "rolled") if n <= 64 or tier == "rolled"
        }
        if n <= PINOCCHIO_LINKS:
            programs[Pinocchio.name] = Pinocchio(model)
        batch = {name: program.batch("forward_dynamics", states, 1) for name, program in programs.items()}
        one = {name: program.single("forward_dynamics", tuple(a[0].copy() for a in states)) for name, program in programs.items()}
        if n <= PINOCCHIO_LINKS:
            expected = batch[Pinocchio.name].run()
            error = max(
                relative_error(call.run(), expected[: len(np.atleast_2d(call.run()))]) for call in (*batch.values(), *one.values())
            )
        else:
            q, v, tau = states
            back = model.inverse_dynamics(q, v, batch["rolled"].run())
            error = float((np.abs(back - tau).max(axis=1) / np.abs(model.bias(q, v)).max(axis=1)).max())
        per_link = [
            {name: seconds / (count * n) for name, seconds in fastest(calls, self.effort.seconds).items()}
            for calls, count in ((batch, CHAIN_STATES), (one, 1))
        ]
        return *per_link, self.verdict(error)

    def first_seconds(self) -> None:
        """Import, first answer, compilation, memory."""
        repeats = self.effort.repeats
        table = Table(
            "The first seconds",
            ("in a fresh interpreter", "cold cache", "warm cache", "peak memory"),
            "Cold: an empty kernel cache, so that everything is compiled. Warm: a second process finds it on disk. "
            "Answers count from the start of the interpreter, with loading the robot's file.",
        )
        for name, seconds in startup.import_times(2 * repeats + 1).items():
            table.add(f"import {name}", duration(seconds), "", "")
        for robot in ("kuka", "humanoid", "chain1000"):
            cold, warm = startup.cold_and_warm("first", robot, repeats)
            table.add(
                f"{robot}: first forward dynamics", duration(cold["total"]), duration(warm["total"]), f"{cold['peak']:.0f} MB"
            )
            table.add("… of which the call itself", duration(cold["answer"]), duration(warm["answer"]), "")
            if robot == "chain1000":
                self.floor("1000-link chain: start to first answer, cold", cold["total"], 2.0, "s", "≤")
        cold, warm = startup.cold_and_warm("compile", "humanoid", repeats)
        table.add("humanoid: unrolled kernel for one state", duration(cold["single"]), duration(warm["single"]), "")
        table.add(
            "humanoid: unrolled kernel for batches", duration(cold["batch"]), duration(warm["batch"]), f"{cold['peak']:.0f} MB"
        )
        self.show(table)
        self.floor("36-body unrolled kernel, both widths: compile, cold", cold["single"] + cold["batch"], 3.0, "s", "≤")
        self.floor("36-body unrolled kernel, both widths: load from the cache", warm["single"] + warm["batch"], 0.05, "s", "≤")


def settle(model: rf.Model, algorithm: str, patience: float = 60.0) -> None:
    """Use a kernel until its straight-line code is ready, as a program that runs for a while would find it."""
    q, v = model.random()
    start = perf_counter()
    while model.kernel(algorithm).tier != "unrolled" and perf_counter() - start < patience:
        getattr(model, algorithm)(q, v, v)
        sleep(0.01)


LIMITS = """## What limits

Found on this machine by counting instructions in the emitted objects and by changing one thing at a time; the table *Work* gives the rates.

- **Small robots: the way into the kernel.** A batched call spends some tens of microseconds in Python (shapes, broadcasting, addresses) before the
  kernel starts: for the KUKA arm and 4096 states about a third of the inverse dynamics' time. Inside, the two 512-bit ports are busy about 70 % of the
  time; a tenth of the instructions transposes rows to lanes and back, and a fifth of the inverse dynamics' is sine and cosine. Two blocks of states in flight
  (16 lanes) gain nothing, so latency does not limit.
- **Large robots: instruction supply and the first-level cache.** The humanoid's forward dynamics is 107 kB of code per eight states, more than three times the
  instruction cache: 20 % more bytes of no-operations cost 8 to 16 % time there, but only 2 to 5 % on the arm. Its spilled values take 44 kB, which with the states
  no longer fits the 48 kB data cache; hence fewer operations per nanosecond than the quadruped reaches.
- **Loops** read every constant from memory and fold nothing, yet come within a third of the straight-line code in inverse dynamics of many links: their
  code stays in the cache of decoded instructions.
- **One state per call** uses one lane of eight; of the arm's time about a quarter is Python's call itself.
- **Chains** beyond some hundred links: the records of one block of states outgrow the second-level cache, and memory traffic adds to the cost per link.
"""


def document(bench: Bench, seconds: float) -> str:
    """The page."""
    head = [
        "# Benchmarks",
        "",
        "Written by `make bench` (`python benchmarks/run.py`); the figures belong to the machine named below, the ratios travel better. Times are "
        "minima of many short samples taken in turn between the programs; every compared pair is checked in the same run, the largest relative "
        "difference of any state is the column *error*.",
        "",
        f"{date.today().isoformat()}, {os.cpu_count()} cores, {seconds:.0f} s; "
        + ", ".join(f"{name} {value}" for name, value in machine().items())
        + ".",
        "",
    ]
    tables = [bench.floors, *bench.tables]
    return "\n".join([*head, *(table.markdown() for table in tables), LIMITS])


def main() -> int:
    parser = argparse.ArgumentParser(description="ramify against Pinocchio and MuJoCo on this machine")
    parser.add_argument(
        "--quick", action="store_true", help="a run of about twenty seconds, without a document unless --output is given"
    )
    parser.add_argument("--output", type=Path, help=f"the document to write (default: {DOCUMENT.parent.name}/{DOCUMENT.name})")
    options = parser.parse_args()
    start = perf_counter()
    bench = Bench(QUICK if options.quick else WHOLE, Console())
    with tempfile.TemporaryDirectory(prefix="ramify-bench-") as cache:
        os.environ["RAMIFY_CACHE_DIR"] = cache
        rf.threads(1)
        bench.robots()
        bench.chains()
        bench.first_seconds()
    bench.floors.show(bench.console)
    seconds = perf_counter() - start
    output = options.output or (None if options.quick else DOCUMENT)
    if output:
        output.write_text(document(bench, seconds), encoding="utf-8")
    bench.console.print(f"{seconds:.0f} s{f', written to {output}' if output else ''}")
    return 1 if bench.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
