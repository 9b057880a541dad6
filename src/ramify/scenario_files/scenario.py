"""Scenarios: everything that a run needs, ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from ramify.api.model import Model
from ramify.api.result import Result
from ramify.api.simulate import simulate
from ramify.control.base import Controller, as_controller
from ramify.core.arrays import Array
from ramify.core.errors import SimulationError
from ramify.core.messages import near
from ramify.documents.mistakes import Map
from ramify.motion import Trajectory
from ramify.sim.integrators import AUTO, find
from ramify.sim.rates import desired
from ramify.sim.record import plain

PARTS: Final = ("control", "motion", "ground", "initial")
"""Overrides that may be given as in a scenario file: a word, a mapping, or YAML text."""
DIRECT: Final = (
    "t_end", "method", "step", "max_step", "rtol", "atol", "dt_out", "damping", "q0", "v0", "events", "progress",
)  # fmt: skip
"""Overrides that go to rf.simulate as they are."""


@dataclass(frozen=True, eq=False)
class Scenario:
    """A robot, its start, a motion, a controller and the options of ``rf.simulate``. ``run`` runs
    it.

    robot: the model; q0 (nq), v0 (nv): the start; motion and control: objects of rf.motion and
    rf.control, or None; options: what else goes to rf.simulate; text: the scenario file.
    """

    name: str
    robot: Model
    q0: Array
    v0: Array
    motion: Trajectory | None
    control: Controller | None
    options: Mapping[str, Any]
    description: str = ""
    source: str = ""
    text: str = field(default="", repr=False)
    folder: Path | None = field(default=None, repr=False)
    document: Map = field(default=None, repr=False)  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<ramify.Scenario {self.name!r}: {self.robot.name}, {self.options['t_end']:g} s>"

    def run(self, **overrides: Any) -> Result:
        """Simulate, with some options replaced by name.

        control, motion, ground, initial: as in a scenario file (a word, a mapping, YAML text); the
        first three also as objects of rf.control, rf.motion and rf.contact, control also as a
        function (t, q, v) -> tau, control and ground as None. q0, v0: arrays. t_end, method, step,
        max_step, rtol, atol, dt_out, damping, events, progress: see rf.simulate. A step is dropped
        where a method without one is chosen.

        The scenario's text and the overrides are in the result's ``options["scenario"]``:
        ``Scenario.again(result)`` repeats it. Raises SimulationError for an unknown option and
        where the run fails (its ``result`` is what was computed), ModelError for a part that does
        not fit the robot.
        """
        for name in overrides:
            if name not in (*PARTS, *DIRECT):
                raise SimulationError(
                    f"a scenario has no option {name!r}{near(name, [*PARTS, *DIRECT])}"
                )
        ready = self._with_parts({name: overrides[name] for name in PARTS if name in overrides})
        options: dict[str, Any] = {
            "q0": ready.q0,
            "v0": ready.v0,
            "control": ready.control,
            **ready.options,
        }
        options |= {name: overrides[name] for name in DIRECT if name in overrides}
        method = str(options.get("method", AUTO)).lower()
        chosen = "method" in overrides and "step" not in overrides and method != AUTO
        if chosen and not find(method).fixed:
            options.pop("step", None)
        record = {"name": self.name, "text": self.text, "overrides": plain(_recorded(overrides))}
        try:
            return _noted(simulate(ready.robot, **options), record, ready)
        except SimulationError as error:
            if isinstance(error.result, Result):
                error.result = _noted(error.result, record, ready)
            raise

    def _with_parts(self, given: Mapping[str, Any]) -> Scenario:
        """The scenario with another control, motion or start."""
        ready: Scenario = self
        words = {name: value for name, value in given.items() if isinstance(value, (str, Mapping))}
        motion, control = given.get("motion"), given.get("control")
        if isinstance(motion, Trajectory):
            if (
                not isinstance(control, Controller)
                and self.control is not None
                and "control" not in words
            ):
                ready = replace(ready, control=_following(self.control, motion))
            ready = replace(ready, motion=motion)
        if words:
            from ramify.scenario_files.reader import changed

            ready = changed(ready, words)
        if "control" in given and "control" not in words:
            ready = replace(ready, control=as_controller(control, self.robot))
        if "ground" in given and "ground" not in words:
            ready = replace(ready, options={**ready.options, "ground": given["ground"]})
        return ready

    @staticmethod
    def again(result: Result) -> Result:
        """Run once more what gave a result, from its own record: the robot, the scenario's text and
        its overrides.

        Raises SimulationError where the result does not come from a scenario, or where an override
        was an object that a file cannot hold.
        """
        from ramify.scenario_files.reader import read_scenario

        record = result.metadata["options"].get("scenario")
        if not isinstance(record, Mapping):
            raise SimulationError(
                "this result does not come from a scenario; run rf.simulate with its options "
                "instead"
            )
        overrides = dict(record["overrides"])
        lost = [
            name
            for name, value in overrides.items()
            if isinstance(value, str) and value.startswith("<object")
        ]
        if lost:
            raise SimulationError(
                f"{', '.join(lost)} was given as an object of Python; give it again to "
                f"{record['name']}.run(...)"
            )
        return read_scenario(record["text"], f"{record['name']}.yaml", robot=result.model).run(
            **overrides
        )


def _recorded(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides as a file can hold them; objects become a text that says so."""
    import numpy as np

    kept = (str, bool, int, float, list, tuple, Mapping, np.ndarray, np.generic, type(None))
    shown = {
        name: value if isinstance(value, kept) else f"<object {value!r}>"
        for name, value in overrides.items()
    }
    return {name: value for name, value in shown.items() if name != "progress"}


def _following(control: Controller, motion: Trajectory) -> Controller:
    """The same controller after another motion."""
    return replace(control, motion=motion) if hasattr(control, "motion") else control  # type: ignore[call-arg]


def _noted(result: Result, record: Mapping[str, Any], scenario: Scenario) -> Result:
    """The result with the record of its scenario, and with the scenario's motion beside what was
    simulated.
    """
    wanted = result.desired or desired(result.model, scenario.control, scenario.motion, result.t)
    return replace(result, options={**result.options, "scenario": record}, desired=wanted)
