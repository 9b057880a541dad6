"""What the machine of a run stored, lost and gave: the lines that an audit has for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from ramify.core.arrays import Array
from ramify.runs.drive_table import works
from ramify.runs.run_record import Run

_PLURAL: Final = {
    "spring": "springs", "damping": "damping", "friction": "friction", "stop": "stops",
    "tendon": "tendons", "gravity_compensation": "gravity compensation",
}  # fmt: skip
_SWITCHES: Final = {
    "passive": "passive forces of the machine",
    "stops": "stops at joint limits",
    "efforts": "effort limits of the drives",
}


def rotor_energy(run: Run) -> Array:
    """(T,): kinetic energy of the rotors, J; a part of that of the robot."""
    return 0.5 * (run.v * run.v) @ run.model.armature


def drive_work(run: Run) -> dict[str, float]:
    """J: the work of each drive that gave or took some."""
    work = works(run)[-1]
    least = 1e-12 * np.abs(work).max(initial=0.0)
    pairs = zip(run.model.velocities, work.tolist(), strict=True)
    return {name: w for name, w in pairs if abs(w) > least}


def machine_lines(run: Run) -> Iterator[str]:
    """Rotors, what was stored and lost by part, the work of each drive, what was switched off, and
    which limits were reached.
    """
    if run.model.armature.any():
        x = rotor_energy(run)
        yield f"kinetic energy of rotors {x[0]:.6g} J at the start, {x[-1]:.6g} J at the end"
    for part, x in run.passive.stored.items():
        if np.any(x):
            yield f"stored in {_PLURAL[part]} {x[0]:.6g} J at the start, {x[-1]:.6g} J at the end"
    for part, loss in run.stats.get("machine_losses", {}).items():
        yield f"dissipated by {_PLURAL[part]} {loss:.6g} J"
    taken = {part: x for part, x in run.stats.get("hard_losses", {}).items() if x}
    if taken:
        yield "taken by " + ", ".join(f"{part} {x:.4g} J" for part, x in taken.items())
    if "scheme_work" in run.stats:
        yield f"error of the steps themselves, counted: {run.stats['scheme_work']:.4g} J"
    drives = drive_work(run)
    if drives:
        parts = ", ".join(f"{name} {w:.4g} J" for name, w in drives.items())
        yield f"work by drive: {parts}"
    off = [word for key, word in _SWITCHES.items() if run.options.get(key) is False]
    if off:
        yield f"switched off: {', '.join(off)}"
    yield from map(str, run.limits_reached)


def machine_figures(run: Run) -> dict[str, Any]:
    """The figures of ``machine_lines`` as plain data; numbers that are not finite become None."""

    def number(x: float) -> float | None:
        return float(x) if np.isfinite(x) else None

    def ends(x: Array) -> list[float | None]:
        return [number(x[0]), number(x[-1])]

    return {
        "rotors": ends(rotor_energy(run)),
        "stored": {part: ends(x) for part, x in run.passive.stored.items()},
        "dissipated": dict(run.stats.get("machine_losses", {})),
        "work": {name: number(w) for name, w in drive_work(run).items()},
        "limits_reached": [limit._asdict() for limit in run.limits_reached],
    }
