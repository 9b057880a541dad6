"""Starts that hard contact cannot take, and steps that it could not solve."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ramify.contact.hard_rows import RECOVERY
from ramify.core.arrays import Array
from ramify.core.errors import SimulationError
from ramify.core.warning import warn
from ramify.plant.field import Field
from ramify.plant.hard_slots import LOSSES

DEEPEST: Final = 0.02
"""m or rad: a start that is further inside the ground or beyond a stop is refused."""
DEEP: Final = 1e-3
"""m or rad: of a start that is further inside there is a warning."""


def refuse_deep_start(field: Field, q: Array) -> None:
    """Refuse starts q (states, nq) deep inside the ground or far beyond a stop; warn of others."""
    slots = field.hard_slots
    if slots is None or not len(q):
        return
    columns = list(np.ascontiguousarray(q.T))
    gaps: dict[str, tuple[Array, str]] = {}
    for name, touch in zip(slots.contact.names, slots.contact.touches(columns), strict=True):
        gaps[f"contact point {name!r}"] = np.asarray(touch.gap), "m inside the ground"
    for i, j, low, high in slots.stopped:
        unit = [step.unit for joint in field.model.joints for step in joint.steps][j]
        gap = np.minimum(q[:, i] - low, high - q[:, i])
        gaps[f"{field.model.coordinates[i]!r}"] = gap, f"{unit} beyond its stop"
    if not gaps:
        return
    name = min(gaps, key=lambda key: float(np.min(gaps[key][0])))
    gap, what = gaps[name]
    gap = np.broadcast_to(gap, len(q))
    depth, state = -float(gap.min()), int(np.argmin(gap))
    which = f" in state {state}" if len(q) > 1 else ""
    if depth > DEEPEST:
        raise SimulationError(
            f"{name} of {field.model.name!r} starts {depth:.3g} {what}{which}, more than hard "
            f"contact recovers from ({DEEPEST:g}); raise the start, or bring the joint into its "
            "range"
        )
    if depth > DEEP:
        warn(
            f"{name} of {field.model.name!r} starts {depth:.3g} {what}{which}; it is pushed out at "
            f"up to {RECOVERY:g} m/s or rad/s",
            RuntimeWarning,
        )


def warn_of_open_steps(count: int, steps: int) -> None:
    """Warn of steps that hard contact could not solve to its tolerance."""
    if count:
        warn(
            f"hard contact did not converge in {count} of {steps} steps: their impulses are "
            "approximate (see iterations and residual in r.contacts); a shorter step or more "
            "iterations may help",
            RuntimeWarning,
        )


def hard_stats(field: Field, y: Array) -> dict[str, Any]:
    """What hard steps have counted until the last row of y (T, size): those that have not
    converged, and where counted the energy lost by kind and that which the steps have added, J.
    """
    stats: dict[str, Any] = {"unconverged_steps": int(y[-1, field.of_hard][-1])}
    if field.counted:
        lost = y[-1, field.of_heat][: len(LOSSES)]
        stats["hard_losses"] = dict(zip(LOSSES, lost.tolist(), strict=True))
        stats["scheme_work"] = float(y[-1, field.of_step.start])
    return stats
