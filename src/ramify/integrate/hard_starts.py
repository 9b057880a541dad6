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
DEEP: Final = 1e-4
"""m or rad: of a start that is further inside there is a warning."""


def refuse_deep_start(field: Field, q: Array, step: float) -> None:
    """Refuse starts q (states, nq) deep inside the ground or far beyond a stop; warn of others,
    which the first ``step`` (s) throws.
    """
    slots = field.hard_slots
    if slots is None or not len(q):
        return
    columns = list(np.ascontiguousarray(q.T))
    gaps: dict[str, tuple[Array, str]] = {}
    contact = slots.contact
    for name, other, touch in zip(
        contact.names, contact.others, contact.touches(columns), strict=True
    ):
        inside = f"m inside {other!r}" if other else "m inside the ground"
        gaps[f"contact point {name!r}"] = np.asarray(touch.gap), inside
    for i, j, low, high in slots.stopped:
        unit = [step.unit for joint in field.model.joints for step in joint.steps][j]
        gap = np.minimum(q[:, i] - low, high - q[:, i])
        gaps[f"{field.model.coordinates[i]!r}"] = gap, f"{unit} beyond its stop"
    if not gaps:
        return
    finite = {  # states that an earlier rollout has left as NaN start nowhere
        name: np.nan_to_num(np.broadcast_to(gap, len(q)), nan=np.inf)
        for name, (gap, _) in gaps.items()
    }
    name = min(finite, key=lambda key: float(finite[key].min()))
    gap, what = finite[name], gaps[name][1]
    depth, state = -float(gap.min()), int(np.argmin(gap))
    which = f" in state {state}" if len(q) > 1 else ""
    if depth > DEEPEST:
        raise SimulationError(
            f"{name} of {field.model.name!r} starts {depth:.3g} {what}{which}, more than hard "
            f"contact recovers from ({DEEPEST:g}); raise the start, or bring the joint into its "
            "range"
        )
    if depth > DEEP:
        speed, unit = min(depth / step, RECOVERY), f"{what.split()[0]}/s"
        warn(
            f"{name} of {field.model.name!r} starts {depth:.3g} {what}{which}: the first step "
            f"pushes it out, and it leaves with {speed:.3g} {unit}; start it {depth:.3g} "
            f"{what.split()[0]} further out",
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
