"""What is measured, and the floors it is held against."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter, sleep

import models
import numpy as np
import questions
import startup
import tables
from ground_accuracy import at_equal_error
from programs import (
    ALGORITHMS,
    PEERS,
    MuJoCo,
    Peer,
    Pinocchio,
    Ramify,
    Start,
    States,
    random_states,
)
from report import Table, duration, ratio
from rich.console import Console
from tables import (
    CHAIN_STATES,
    COARSE,
    GROUND_STEPS,
    MUJOCO_STEP,
    PEER_SHARE,
    PINOCCHIO_LINKS,
    ROLLOUT_STEPS,
    STATES,
    UNROLLED_LINKS,
)
from timing import Call, fastest, fma_lanes, relative_error

import ramify as rf
from ramify.contact import LAWS, Firm, Flat, HuntCrossley

AGREEMENT = 1e-8  # relative, of forces and accelerations
SAME_SCHEME = 1e-10  # relative, of states after the same steps
ROLLOUT_DT = 1e-3  # seconds, of the timed rollouts

# The part of Pinocchio's time that one call may take; how many times faster than its batch
# functions, with one thread.
SINGLE_FLOOR = 0.3
BATCH_FLOORS = {"UR5": 40.0, "solo12": 26.0, "G1": 22.0}
# The part of the FMA lanes that counted operations fill.
LANES_FLOORS = {
    "forward_dynamics": {"solo12": 0.75, "G1": 0.80, "Talos": 0.80},
    "inverse_dynamics": {"solo12": 0.65, "G1": 0.70, "Talos": 0.70},
}
# How much longer loops may take than straight-line code, on free bases.
ROLLED_FLOORS = {"forward_dynamics": 2.5, "inverse_dynamics": 1.6}
# How many times faster than MuJoCo's rollouts; the order at which the two ways to turn a quaternion
# come together.
ROLLOUT_FLOORS = {"UR5": 15.0, "solo12": 8.0, "G1": 6.0}
ROLLOUT_ORDERS = {"rk4": 4, "semi_implicit_euler": 2}
# On the ground: laws, schemes and steps that are stable for the walker.
_ROUND = Flat(
    height=models.FOOT
)  # a sphere over a plane is its centre over a plane that much higher
GROUNDS = (
    (HuntCrossley(slip_speed=0.05, terrain=_ROUND), "semi_implicit_euler", 1e-3),
    (HuntCrossley(slip_speed=0.05, terrain=_ROUND), "rk4", 2e-3),
    (Firm(terrain=_ROUND), "semi_implicit_euler", 1e-4),
)
SAME_HEIGHT = 0.02  # m, of the trunks
GROUND_FLOOR = 10.0
FLAT = 1.3  # most that the cost per link may vary
FIRST_CHAIN, COMPILE, LOAD, TABLE = 2.0, 2.0, 0.05, 1.0  # seconds


@dataclass(frozen=True)
class Effort:
    """How long to measure."""

    seconds: float  # per comparison
    repeats: int  # of each fresh interpreter
    chains: tuple[int, ...]
    threads: tuple[int, ...]
    rollouts: int  # states
    robots: tuple[str, ...]


WHOLE = Effort(
    seconds=1.5,
    repeats=4,
    chains=tuple(2**k for k in range(1, 11)),
    threads=(1, 2),
    rollouts=STATES,
    robots=tuple(models.FILES),
)
QUICK = Effort(
    seconds=0.15,
    repeats=1,
    chains=(2, 16, 64, 256, 1024),
    threads=(1,),
    rollouts=STATES // 8,
    robots=models.CHOSEN,
)


class Bench:
    """Measures part by part; collects tables, floors and the number of disagreements."""

    def __init__(self, effort: Effort, console: Console) -> None:
        self.effort, self.console = effort, console
        self.tables: list[Table] = []
        self.floors = Table(
            "Floors",
            ("what", "measured", "floor", "verdict"),
            "What ramify holds itself to, in this run.",
        )
        self.lanes = fma_lanes()
        self.gains: dict[str, list[tuple[str, float]]] = {}
        self.wrong = 0

    def gain(self, group: str, title: str, times: float) -> None:
        """Remember how many times faster than a peer, for the picture."""
        self.gains.setdefault(group, []).append((title, times))

    def show(self, table: Table) -> None:
        table.show(self.console)
        self.tables.append(table)

    def at_least(self, what: str, measured: float, floor: float | None) -> None:
        if floor is None:
            return
        self.floors.add(
            what, ratio(measured), f"≥ {ratio(floor)}", "ok" if measured >= floor else "below"
        )

    def at_most(
        self, what: str, measured: float, bound: float | None, text: Callable[[float], str] = ratio
    ) -> None:
        if bound is None:
            return
        self.floors.add(
            what, text(measured), f"≤ {text(bound)}", "ok" if measured <= bound else "below"
        )

    def verdict(self, error: float, most: float = AGREEMENT) -> str:
        """The error as text; one that is too large is remembered."""
        agree = error < most
        self.wrong += not agree
        return f"{error:.0e}" if agree else f"{error:.0e} WRONG"

    def compare(self, calls: Mapping[str, Call | None]) -> tuple[dict[str, float], str]:
        """Seconds of each program, and the largest error of any against Pinocchio."""
        real = {name: call for name, call in calls.items() if call is not None}
        expected = real[Pinocchio.name].run()
        error = max(relative_error(call.run(), expected) for call in real.values())
        return fastest(real, self.effort.seconds), self.verdict(error)

    # ---- robots ----

    def questions(self) -> None:
        """What else a model answers, one state per call."""
        table = tables.question_table()
        for robot in self.effort.robots:
            asked = questions.asked(models.real(robot))
            for name, question in questions.of(asked.robot).items():
                questions.settle(asked, question)
                times, error = self.compare(question.calls(asked))
                share = times["ramify"] / times[Pinocchio.name]
                title = f"{robot} ({asked.robot.nv}), {name}"
                shown = [duration(times[program]) for program in ("ramify", Pinocchio.name)]
                table.add(title, *shown, ratio(share), error)
                self.at_most(f"one state, {title}: part of Pinocchio's time", share, question.most)
        self.show(table)

    def robots(self) -> None:
        """Forward and inverse dynamics, one state per call and in batches."""
        single, work = tables.single_table(), tables.work_table()
        batches = {count: tables.batch_table(count) for count in self.effort.threads}
        for robot in self.effort.robots:
            model = models.real(robot)
            peers = [peer(model) for peer in PEERS]
            states = random_states(model, STATES)
            for algorithm in ALGORITHMS:
                title = f"{robot} ({model.nv}), {algorithm.split('_')[0]}"
                self._single(
                    single, title, model, peers, algorithm, tuple(a[0].copy() for a in states)
                )
                for count, table in batches.items():
                    seconds = self._batch(table, title, model, peers, algorithm, states, count)
                    if count == 1:
                        part = tables.add_work(work, title, model, algorithm, seconds, self.lanes)
                        self.at_least(
                            f"batch, {title}: operations as a part of the FMA lanes",
                            part,
                            LANES_FLOORS[algorithm].get(robot),
                        )
        for table in (single, *batches.values(), work):
            self.show(table)

    def _single(
        self,
        table: Table,
        title: str,
        model: rf.Model,
        peers: Sequence[Peer],
        algorithm: str,
        state: States,
    ) -> None:
        _settle(model, algorithm)
        calls = {
            "method": Ramify(model).single(algorithm, state),
            "kernel": Ramify(model, "unrolled").single(algorithm, state),
        }
        times, error = self.compare(
            calls | {peer.name: peer.single(algorithm, state) for peer in peers}
        )
        shares = [times["method"] / times[peer.name] for peer in peers]
        shown = [
            duration(times[name]) for name in ("method", "kernel", Pinocchio.name, MuJoCo.name)
        ]
        table.add(title, *shown, *map(ratio, shares), error)
        self.at_most(
            f"one state, {title}: part of Pinocchio's time",
            shares[0],
            SINGLE_FLOOR,
        )
        self.gain("one call, against Pinocchio", title, 1.0 / shares[0])

    def _batch(
        self,
        table: Table,
        title: str,
        model: rf.Model,
        peers: Sequence[Peer],
        algorithm: str,
        states: States,
        count: int,
    ) -> float:
        """A row; gives the seconds per state of the straight-line code."""
        tiers = {"unrolled": Ramify(model, "unrolled"), "rolled": Ramify(model, "rolled")}
        calls = {name: program.batch(algorithm, states, count) for name, program in tiers.items()}
        times, error = self.compare(
            calls | {peer.name: peer.batch(algorithm, states, count) for peer in peers}
        )
        rf.threads(1)
        ours = times["unrolled"]
        names = ("unrolled", "rolled", Pinocchio.name, MuJoCo.name)
        shown = [duration(times[name] / STATES if name in times else None) for name in names]
        gains = [times[peer.name] / ours if peer.name in times else None for peer in peers]
        bound = (tables.bound(model, algorithm, self.lanes),) if count == 1 else ()
        table.add(title, *shown, *bound, *map(ratio, gains), error)
        if count == 1:
            floor = BATCH_FLOORS.get(title.split()[0])
            self.at_least(f"batch, {title}: times faster than Pinocchio", gains[0] or 0.0, floor)
            self.gain("4096 states, one thread, against Pinocchio", title, gains[0] or 0.0)
            if model.layout.balls:
                loops = times["rolled"] / ours
                bound = ROLLED_FLOORS[algorithm]
                self.at_most(f"batch, {title}: rolled / unrolled", loops, bound)
        return ours / STATES

    # ---- rollouts ----

    def rollouts(self) -> None:
        """Fixed steps of many states, against MuJoCo's with the same integrator."""
        table = tables.rollout_table(self.effort.rollouts)
        for robot in models.CHOSEN:
            model = models.real(robot)
            q, v, _ = random_states(model, self.effort.rollouts)
            for method in ROLLOUT_ORDERS:
                self._rollout(table, robot, model, method, (q, v))
        self.show(table)

    def _rollout(
        self, table: Table, robot: str, model: rf.Model, method: str, start: Start
    ) -> None:
        ours, peer = Ramify(model), MuJoCo(model)
        few: Start = (start[0][::PEER_SHARE], start[1][::PEER_SHARE])
        found = self._rollout_verdict(model, method, ours, peer, few)
        calls = {
            "last": ours.rollout(method, start, ROLLOUT_STEPS, ROLLOUT_DT),
            "history": ours.rollout(method, start, ROLLOUT_STEPS, ROLLOUT_DT, every=1),
            MuJoCo.name: peer.rollout(method, few, ROLLOUT_STEPS, ROLLOUT_DT),
        }
        counts = {"last": len(start[0]), "history": len(start[0]), MuJoCo.name: len(few[0])}
        times = {
            k: t / (counts[k] * ROLLOUT_STEPS)
            for k, t in fastest(calls, self.effort.seconds).items()
        }
        gains = [times[MuJoCo.name] / times[name] for name in ("last", "history")]
        title = f"{robot} ({model.nv}), {method.replace('_', ' ')}"
        table.add(title, *map(duration, times.values()), *map(ratio, gains), *found)
        self.at_least(
            f"rollout with history, {title}: times faster than MuJoCo",
            gains[1],
            ROLLOUT_FLOORS[robot],
        )
        self.gain("rollouts, one thread, against MuJoCo", title, gains[0])

    def _rollout_verdict(
        self, model: rf.Model, method: str, ours: Ramify, peer: MuJoCo, start: Start
    ) -> tuple[str, str]:
        """Difference from MuJoCo after a tenth of a second in coarse steps, and the order at which
        it falls with the step.
        """
        coarse, fine = (
            relative_error(
                ours.rollout(method, start, n, 0.1 / n).run(),
                peer.rollout(method, start, n, 0.1 / n).run(),
            )
            for n in (round(0.1 / COARSE), round(0.2 / COARSE))
        )
        if model.layout.balls:
            order = np.log2(coarse / fine)
            agree, shown = abs(order - ROLLOUT_ORDERS[method]) < 0.3, f"{order:.1f}"
        else:
            agree, shown = coarse < SAME_SCHEME, "–"
        self.wrong += not agree
        return f"{coarse:.0e}", shown if agree else f"{shown} WRONG"

    # ---- on the ground ----

    def ground(self) -> None:
        """Rollouts with contact, against MuJoCo's own."""
        table, model = tables.ground_table(self.effort.rollouts), models.walker()
        start = models.standing(model, self.effort.rollouts)
        few: Start = (start[0][::PEER_SHARE], start[1][::PEER_SHARE])
        ours, peer = Ramify(model), MuJoCo(model, models.FOOT)
        height = _mean_height(
            peer.rollout("semi_implicit_euler", few, round(0.1 / MUJOCO_STEP), MUJOCO_STEP)
        )
        for law, method, dt in GROUNDS:
            off = _mean_height(ours.rollout(method, few, round(0.1 / dt), dt, ground=law)) - height
            agree = abs(off) < SAME_HEIGHT
            self.wrong += not agree
            calls = {
                "ramify": ours.rollout(method, start, GROUND_STEPS, dt, ground=law),
                MuJoCo.name: peer.rollout("semi_implicit_euler", few, GROUND_STEPS, MUJOCO_STEP),
            }
            counts = {"ramify": len(start[0]), MuJoCo.name: len(few[0])}
            times = {
                k: t / (counts[k] * GROUND_STEPS)
                for k, t in fastest(calls, self.effort.seconds).items()
            }
            gain = times[MuJoCo.name] / times["ramify"]
            word = LAWS.word_of(type(law))
            title = f"{word}, {method}, {dt * 1e3:g} ms".replace("_", " ")
            shown = f"{off * 1e3:+.1f} mm{'' if agree else ' WRONG'}"
            table.add(
                title,
                *map(duration, times.values()),
                ratio(gain),
                ratio(gain * dt / MUJOCO_STEP),
                shown,
            )
            self.at_least(
                f"rollout on the ground, {title}: times faster than MuJoCo, per step",
                gain,
                GROUND_FLOOR,
            )
        self.show(table)
        equal, gains = at_equal_error(self.effort.rollouts, self.effort.seconds)
        for law, gain in gains.items():
            title = f"rollout on the ground, {law.replace('_', ' ')}, at 5 mm"
            self.at_least(
                f"{title}: times faster than MuJoCo, per simulated second", gain, GROUND_FLOOR
            )
        self.show(equal)

    # ---- chains ----

    def chains(self) -> None:
        """Cost per link of the forward dynamics of chains."""
        table = tables.chain_table()
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
        self.show(table)
        for where, costs in long.items():
            self.at_most(
                f"cost per link {where}, 64 to 1024 links: largest / smallest",
                max(costs) / min(costs),
                FLAT,
            )

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
        batch = {
            name: program.batch("forward_dynamics", states, 1) for name, program in programs.items()
        }
        one = {
            name: program.single("forward_dynamics", first) for name, program in programs.items()
        }
        if n <= PINOCCHIO_LINKS:
            expected = batch[Pinocchio.name].run()
            errors = [relative_error(call.run(), expected) for call in batch.values()]
            errors += [relative_error(call.run(), expected[:1]) for call in one.values()]
        else:
            back = model.inverse_dynamics(q, v, batch["rolled"].run())
            errors = list(np.abs(back - tau).max(axis=1) / np.abs(model.bias(q, v)).max(axis=1))
        per_link = (
            {
                name: seconds / (count * n)
                for name, seconds in fastest(calls, self.effort.seconds).items()
            }
            for calls, count in ((batch, CHAIN_STATES), (one, 1))
        )
        return *per_link, self.verdict(max(errors))

    # ---- the first seconds ----

    def first_seconds(self) -> None:
        """Import, first answer, compilation, memory; in fresh interpreters."""
        table, repeats = tables.first_table(), self.effort.repeats
        for name, seconds in startup.import_times(2 * repeats + 1).items():
            table.add(f"import {name}", duration(seconds), "", "")
        for robot in ("UR5", "G1", "chain1000"):
            cold, warm = startup.cold_and_warm("first", robot, repeats)
            peak = f"{cold['peak']:.0f} MB"
            table.add(
                f"{robot}: start to first forward dynamics",
                duration(cold["total"]),
                duration(warm["total"]),
                peak,
            )
            table.add(
                "… of which the call itself", duration(cold["answer"]), duration(warm["answer"]), ""
            )
        self.at_most(
            "1000-link chain: start to first answer, cold cache",
            cold["total"],
            FIRST_CHAIN,
            duration,
        )
        for robot in ("G1", "Talos"):
            cold, warm = startup.cold_and_warm("compile", robot, repeats)
            for what, key in (
                ("forward dynamics, one state", "single"),
                ("forward dynamics, batches", "batch"),
                ("inverse dynamics, batches", "inverse_dynamics"),
                ("M, batches", "mass_matrix"),
                ("M⁻¹, batches", "mass_matrix_inverse"),
            ):
                title = f"{robot}: unrolled kernel, {what}"
                table.add(title, duration(cold[key]), duration(warm[key]), "")
                self.at_most(f"{title}: compiled", cold[key], COMPILE, duration)
                self.at_most(f"{title}: loaded from the cache", warm[key], LOAD, duration)
        few, many = (startup.cold_and_warm("table", n, repeats)[0]["run"] for n in ("10", "100000"))
        table.add("UR5: first run under a table of 10 rows", duration(few), "", "")
        table.add("UR5: first run under a table of 100,000 rows", duration(many), "", "")
        longer = max(0.0, many - few)
        self.at_most("first run: 100,000 rows of torques beyond 10", longer, TABLE, duration)
        self.show(table)


def _mean_height(call: Call) -> float:
    return float(call.run()[:, 2].mean())


def _settle(model: rf.Model, algorithm: str, patience: float = 60.0) -> None:
    """Use a method until its straight-line code is ready, as a program that runs for a while would
    find it.
    """
    q, v = model.random()
    start = perf_counter()
    while model.kernel(algorithm).tier != "unrolled" and perf_counter() - start < patience:
        getattr(model, algorithm)(q, v, v)
        sleep(0.01)
