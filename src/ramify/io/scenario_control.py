"""Controllers of scenario files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ramify import control as rc
from ramify import motion as rm
from ramify.errors import RamifyError
from ramify.io.expression import near, shown
from ramify.io.mistakes import Path
from ramify.io.scenario_motion import Coordinates
from ramify.io.scenario_schema import CONTROLS

FOLLOWING = {"pd": rc.PD, "pid": rc.PID, "computed_torque": rc.ComputedTorque, "feedforward": rc.Feedforward}
"""Controllers that need a motion."""


def controller(read: Coordinates, raw: object, path: Path, motion: rm.Trajectory | None) -> rc.Controller | None:
    """The controller that a part describes; None where it says none, and where there are mistakes, which are noted."""
    if isinstance(raw, str):
        raw = {"type": raw}
    if not isinstance(raw, Mapping):
        read.mistakes.add(path, f"{shown(raw)} will not do; a word or a mapping with a type belongs here")
        return None
    kind = raw.get("type")
    if not isinstance(kind, str) or kind not in CONTROLS:
        text = "type is missing" if kind is None else f"no controller is called {shown(kind)}"
        hint = near(str(kind), list(CONTROLS)) if kind is not None else f"; there are {', '.join(CONTROLS)}"
        read.mistakes.add((*path, "type"), f"{text}{hint}")
        return None
    part = read.part(CONTROLS[kind], raw, path)
    if part is None or kind == "none":
        return None
    if motion is None and (kind in FOLLOWING or kind == "torques_of_motion"):
        if "motion" not in (read.mistakes.root if isinstance(read.mistakes.root, Mapping) else {}):
            read.mistakes.add(path, f"{kind} follows a motion; add the key motion")
        return None
    try:
        made = _made(read, kind, part, path, motion)
        if made is not None:
            made.check(read.model)
        return made
    except RamifyError as error:
        read.mistakes.add(path, str(error))
        return None


def _made(read: Coordinates, kind: str, part: Any, path: Path, motion: rm.Trajectory | None) -> rc.Controller | None:
    common = {"actuated": part.actuated, "limits": part.limits, "rate_hz": part.rate_hz}
    if kind in FOLLOWING:
        gains = {name: getattr(part, name) for name in ("kp", "ki", "kd") if hasattr(part, name)}
        return FOLLOWING[kind](motion, **gains, **common)
    match kind:
        case "gravity_compensation":
            return rc.GravityCompensation(kd=part.kd, **common)
        case "torque":
            return rc.Torque(read.chosen(part, "tau", path, np.zeros(len(read.driven))), **common)
        case "torque_table":
            return rc.TorqueTable(part.times, part.values, part.interpolate, **common)
        case "torques_of_motion":
            assert motion is not None
            return beforehand(read, part, motion, common)
    parts = [controller(read, raw, (*path, "parts", i), motion) for i, raw in enumerate(part.parts)]
    return rc.Sum(parts, **common) if all(one is not None for one in parts) else None


def beforehand(read: Coordinates, part: Any, motion: rm.Trajectory, common: dict[str, Any]) -> rc.Controller:
    """A table of the inverse dynamics of the whole motion, applied without a look at the robot."""
    if motion.n != read.model.nv or read.model.nq != read.model.nv:
        raise RamifyError(f"torques_of_motion needs a motion of all {read.model.nv} coordinates, none of them a quaternion")
    if not math.isfinite(motion.duration):
        raise RamifyError("torques_of_motion needs a motion that ends")
    m = motion.samples(int(part.rows))
    return rc.TorqueTable(m.t, read.model.inverse_dynamics(m.q, m.v, m.a), part.interpolate, **common)
