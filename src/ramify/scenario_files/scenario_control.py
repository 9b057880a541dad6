"""Controllers of scenario files: the one that is chosen, and those that a file offers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ramify.api.model import Model
from ramify.api.result import Result
from ramify.control.controller import (
    ACTUATED,
    CONTROLLERS,
    LIMITS,
    RATE,
    SENSOR,
    Controller,
    read_controller,
)
from ramify.control.follow import FOLLOWED
from ramify.control.sensors import Sensor
from ramify.control.torque import INTERPOLATE, TorqueTable
from ramify.core.errors import StateError
from ramify.core.messages import near, shown
from ramify.documents.forms import NotedError, Number, Reading
from ramify.documents.kinds import key
from ramify.motion.coordinate_reader import RobotReading, about_robot
from ramify.motion.trajectory import Motion, Trajectory

Inverse = Callable[[Trajectory, int], Result]
"""A run of the scenario with its joints prescribed by a motion, and how many rows it is to have."""
INVERSE: Final = "inverse dynamics"
"""Where a reading has an ``Inverse``."""


@CONTROLLERS.add("torques_of_motion")
@dataclass(frozen=True)
class TorquesOfMotion:
    """A table of the inverse dynamics of the whole motion, applied without feedback.

    On a floating base the forces come from a run with the joints prescribed, over the time and on
    the ground of the scenario. With loops the motion is that of the driven coordinates.
    """

    motion: Trajectory = field(metadata=FOLLOWED)
    rows: int = field(default=101, metadata=key(Number(least=1, whole=True)))
    interpolate: str = field(default="linear", metadata=key(INTERPOLATE))
    actuated: Any = field(default=None, metadata=ACTUATED)
    limits: Any = field(default=None, metadata=LIMITS)
    rate_hz: float | None = field(default=None, metadata=RATE)
    sensor: Sensor | None = field(default=None, metadata=SENSOR)

    def build(self, reading: Reading) -> TorqueTable | None:
        about = about_robot(reading)
        model, motion = Model.of(about.robot), self.motion
        options = {
            name: getattr(self, name) for name in ("actuated", "limits", "rate_hz", "sensor")
        }
        if model.joints[0].floating:
            inverse: Any = reading.context.get(INVERSE)
            if inverse is None:
                return None  # one of several that a file offers, not the one that is chosen
            r = inverse(motion, self.rows)
            forces = r.tau[:, list(about.driven.v)]
            return TorqueTable(r.t, forces, self.interpolate, **options)
        if model.loops and motion.n == len(about.driven.v):
            m = self._samples()
            names = about.driven.names
            led = [dict(zip(names, x.T, strict=True)) for x in (m.q, m.v, m.a)]
            q, v, a = model.assemble(led[0], rates=led[1], accelerations=led[2])
            forces = model.inverse_dynamics(q, v, a)[:, list(about.driven.v)]
            return TorqueTable(m.t, forces, self.interpolate, **options)
        if motion.n != model.nv or model.nq != model.nv:
            raise StateError(
                f"torques_of_motion needs a motion of all {model.nv} coordinates, none of them a "
                "quaternion"
            )
        m = self._samples()
        forces = model.inverse_dynamics(m.q, m.v, m.a)
        return TorqueTable(m.t, forces, self.interpolate, **options)

    def _samples(self) -> Motion:
        if not math.isfinite(self.motion.duration):
            raise StateError("torques_of_motion needs a motion that ends")
        return self.motion.samples(self.rows)


def controller_of(
    document: Mapping[str, Any], reading: RobotReading, inverse: Inverse
) -> Controller | None:
    """The controller of a scenario file; None where it has none and where there are mistakes, which
    are noted. A word may stand for one of ``controls``, where the file gives its numbers.
    """
    offered = document.get("controls")
    laws: dict[str, Any] = dict(offered) if isinstance(offered, Mapping) else {}
    chosen, controller = document.get("control"), None
    able = replace(reading, context={**reading.context, INVERSE: inverse})
    for word, raw in laws.items():
        wrong = _wrong(word, raw)
        if wrong is not None:
            at, text = wrong
            reading.mistakes.add(("controls", word, *at), text, key=word not in CONTROLLERS)
            continue
        one = _read({**raw, "type": word}, ("controls", word), able if word == chosen else reading)
        controller = one if word == chosen else controller
    if isinstance(chosen, str) and chosen in laws:
        return controller
    return _read(chosen, ("control",), able) if chosen is not None else None


def _wrong(word: str, raw: object) -> tuple[tuple[str, ...], str] | None:
    """What is wrong with an entry of ``controls``, and where below its word."""
    if not isinstance(raw, Mapping):
        return (), f"{shown(raw)} must be a mapping with the numbers of {word}"
    if raw.get("type", word) != word:
        return ("type",), f"{shown(raw['type'])} contradicts {word}; leave the type out"
    if word not in CONTROLLERS:
        return (), f"no controller is called {shown(word)}{near(word, list(CONTROLLERS))}"
    return None


def _read(raw: object, path: tuple[str, ...], reading: RobotReading) -> Controller | None:
    try:
        return read_controller(raw, path, reading)
    except NotedError:
        return None
