"""Robots on the ground at equal error: time per simulated second in the longest steps that keep the
trunk within 5 mm of each program's own fine solution after a second.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import models
import numpy as np
from programs import MuJoCo, Ramify, Start
from report import Table, duration, ratio
from rich.console import Console
from timing import Call, fastest

import ramify as rf
from ramify.contact import LAWS, Dusty, Firm, Flat, Ground, HuntCrossley

ERROR, SECONDS = 5e-3, 1.0  # m, s
STEPS = (1e-2, 5e-3, 4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4, 1.25e-4)  # s, longest first
FINE = 5e-5  # s, of the fine solutions
FEW = 8  # states whose errors are looked at: the worst counts
PEERS_STATES = 32  # that MuJoCo is timed on
_ROUND = Flat(height=models.FOOT)
GROUNDS = (
    HuntCrossley(slip_speed=0.05, terrain=_ROUND),
    Firm(terrain=_ROUND),
    Dusty(terrain=_ROUND),
)

Steps = Callable[[str, Start, int, float], Call]


class Choice(NamedTuple):
    """The longest steps that are accurate enough, and the error they make."""

    method: str
    dt: float
    error: float


def trunks(call: Call) -> np.ndarray:
    """Where the trunks are at the end, (states, 3)."""
    return np.asarray(call.run())[:, :3]


def chosen(steps: Steps, methods: tuple[str, ...], start: Start) -> list[Choice]:
    """Of each method the longest steps within the error of the last method's fine solution, all
    shorter ones being so, too.
    """
    exact = trunks(steps(methods[-1], start, round(SECONDS / FINE), FINE))
    found = []
    for method in methods:
        longest = None
        for dt in reversed(STEPS):  # a long step that happens to end near counts for nothing
            try:
                ends = trunks(steps(method, start, round(SECONDS / dt), dt))
            except rf.SimulationError:
                break
            error = float(np.linalg.norm(ends - exact, axis=1).max())
            if not error <= ERROR:
                break
            longest = Choice(method, dt, error)
        found += [longest] if longest is not None else []
    return found


def timed(steps: Steps, choice: Choice, start: Start, seconds: float) -> float:
    """Seconds per state and simulated second, from a tenth of one."""
    count = max(1, round(0.1 / choice.dt))
    call = steps(choice.method, start, count, choice.dt)
    return fastest({"": call}, seconds)[""] / (len(start[0]) * count * choice.dt)


def at_equal_error(states: int, seconds: float) -> tuple[Table, dict[str, float]]:
    """The table, and by law how many times faster than MuJoCo a simulated second is."""
    model = models.walker()
    start = models.standing(model, states)
    few, some = ((start[0][:n], start[1][:n]) for n in (FEW, PEERS_STATES))
    peer, ours = MuJoCo(model, models.FOOT), Ramify(model)
    table = Table(
        f"{states} robots on the ground at equal error, one thread",
        ("ground, method", "step", "error", "ramify", "MuJoCo", "MuJoCo / ramify"),
        "The same robots for one second, in the longest steps whose trunks end within "
        f"{ERROR * 1e3:g} mm of the program's own solution in steps of {FINE * 1e3:g} ms (the "
        f"worst of {FEW} states). Time per state and simulated second. MuJoCo: the better of "
        "semi-implicit Euler and `implicitfast`",
    )
    choices = chosen(peer.rollout, ("semi_implicit_euler", "implicitfast"), few)
    slow, their = min((timed(peer.rollout, choice, some, seconds), choice) for choice in choices)
    table.note += f"; here {their.method} in steps of {their.dt * 1e3:g} ms."
    gains: dict[str, float] = {}
    for law in GROUNDS:
        word = LAWS.word_of(type(law))

        def steps(method: str, given: Start, count: int, dt: float, law: Ground = law) -> Call:
            return ours.rollout(method, given, count, dt, ground=law)

        methods = ("semi_implicit_euler", "implicit_euler", "implicit_extrapolation")
        for choice in chosen(steps, methods, few):
            own = timed(steps, choice, start, seconds)
            gains[word] = max(gains.get(word, 0.0), slow / own)
            table.add(
                f"{word}, {choice.method}".replace("_", " "), f"{choice.dt * 1e3:g} ms",
                f"{choice.error * 1e3:.1f} mm", duration(own), duration(slow), ratio(slow / own),
            )  # fmt: skip
    return table, gains


if __name__ == "__main__":
    warnings.simplefilter("ignore", RuntimeWarning)  # of steps that are too long
    at_equal_error(4096, 2.0)[0].show(Console())
