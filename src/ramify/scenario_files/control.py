"""Controllers of scenario files."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ramify import control as rc
from ramify import motion as rm
from ramify.api.result import Result
from ramify.core.errors import RamifyError
from ramify.core.messages import near, shown
from ramify.documents.mistakes import Path
from ramify.scenario_files.motion import Coordinates, kind_of
from ramify.scenario_files.schema import CONTROLS

FOLLOWING = {
    "pd": rc.PD,
    "pid": rc.PID,
    "computed_torque": rc.ComputedTorque,
    "feedforward": rc.Feedforward,
}
"""Controllers that need a motion."""


Inverse = Callable[[rm.Trajectory, int], "Result"]
"""A run of the scenario with its joints prescribed by a motion, and how many rows it is to have."""


def controller(
    read: Coordinates, raw: object, path: Path, motion: rm.Trajectory | None, inverse: Inverse | None = None
) -> rc.Controller | None:  # fmt: skip
    """The controller that a part describes; None where it says none, and where there are mistakes,
    which are noted.

    inverse: where the robot floats, how to find the forces of its motion.
    """
    if isinstance(raw, str):
        raw = {"type": raw}
    if not isinstance(raw, Mapping):
        read.mistakes.add(
            path, f"{shown(raw)} will not do; a word or a mapping with a type belongs here"
        )
        return None
    kind = kind_of(read, raw, path, "controller", CONTROLS)
    if kind is None:
        return None
    part = read.part(CONTROLS[kind], raw, path)
    if part is None or kind == "none":
        return None
    if motion is None and (kind in FOLLOWING or kind in ("inverse", "torques_of_motion")):
        if "motion" not in (read.mistakes.root if isinstance(read.mistakes.root, Mapping) else {}):
            read.mistakes.add(path, f"{kind} follows a motion; add the key motion")
        return None
    try:
        made = _made(read, kind, part, path, motion, inverse)
        if made is not None:
            made.check(read.model)
        return made
    except RamifyError as error:
        read.mistakes.add(path, str(error))
        return None


def controllers(
    read: Coordinates, document: Mapping[str, Any], motion: rm.Trajectory | None, inverse: Inverse | None = None
) -> rc.Controller | None:  # fmt: skip
    """The controller of a scenario file. A word may stand for one of ``controls``, where the file
    says with which numbers.
    """
    offered = document.get("controls")
    known: dict[str, Any] = dict(offered) if isinstance(offered, Mapping) else {}
    made: dict[str, rc.Controller | None] = {}
    for word, raw in known.items():
        if not isinstance(raw, Mapping):
            read.mistakes.add(
                ("controls", word),
                f"{shown(raw)} will not do; a mapping with the numbers of {word} belongs here",
            )
        elif raw.get("type", word) != word:
            read.mistakes.add(
                ("controls", word, "type"),
                f"{shown(raw['type'])} stands under {word}; leave the type out",
            )
        elif word not in CONTROLS:
            read.mistakes.add(
                ("controls", word),
                f"no controller is called {shown(word)}{near(word, list(CONTROLS))}",
                key=True,
            )
        else:
            needed = (
                inverse if document.get("control") == word else None
            )  # nothing is computed for those that are not chosen
            made[word] = controller(read, {**raw, "type": word}, ("controls", word), motion, needed)
    chosen = document.get("control")
    if isinstance(chosen, str) and chosen in known:
        return made.get(chosen)
    return (
        controller(read, chosen, ("control",), motion, inverse) if "control" in document else None
    )


def _made(
    read: Coordinates, kind: str, part: Any, path: Path, motion: rm.Trajectory | None, inverse: Inverse | None
) -> rc.Controller | None:  # fmt: skip
    common = {"actuated": part.actuated, "limits": part.limits, "rate_hz": part.rate_hz}
    if kind in FOLLOWING:
        gains = {name: getattr(part, name) for name in ("kp", "ki", "kd") if hasattr(part, name)}
        return FOLLOWING[kind](motion, **gains, **common)
    match kind:
        case "inverse":
            assert motion is not None
            return rc.Prescribed(motion, **common)
        case "gravity_compensation":
            return rc.GravityCompensation(kd=part.kd, **common)
        case "torque":
            return rc.Torque(read.chosen(part, "tau", path, np.zeros(len(read.driven))), **common)
        case "torque_table":
            return rc.TorqueTable(part.times, part.values, part.interpolate, **common)
        case "torques_of_motion":
            assert motion is not None
            return beforehand(read, part, motion, common, inverse)
    parts = [
        controller(read, raw, (*path, "parts", i), motion, inverse)
        for i, raw in enumerate(part.parts)
    ]
    return rc.Sum(parts, **common) if all(one is not None for one in parts) else None


def beforehand(
    read: Coordinates, part: Any, motion: rm.Trajectory, common: dict[str, Any], inverse: Inverse | None
) -> rc.Controller | None:  # fmt: skip
    """A table of the inverse dynamics of the whole motion, applied without a look at the robot.

    On a floating base they come from a run with the joints prescribed, over the time and on the
    ground of the scenario.
    """
    model = read.model
    if model.joints[0].kind in ("free", "free_euler"):
        if inverse is None:
            return None  # one of several that a file offers, not the one that is asked for
        r = inverse(motion, int(part.rows))
        return rc.TorqueTable(r.t, r.tau[:, list(read.driven.v)], part.interpolate, **common)
    if motion.n != model.nv or model.nq != model.nv:
        raise RamifyError(
            f"torques_of_motion needs a motion of all {model.nv} coordinates, none of them a "
            "quaternion"
        )
    if not math.isfinite(motion.duration):
        raise RamifyError("torques_of_motion needs a motion that ends")
    m = motion.samples(int(part.rows))
    return rc.TorqueTable(m.t, model.inverse_dynamics(m.q, m.v, m.a), part.interpolate, **common)
