"""Scenarios: everything that a run needs, ready to run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import Any, Final

from ramify.api.builders import load
from ramify.api.model import Model
from ramify.api.result import Result, simulate
from ramify.contact.ground import LAWS, Ground
from ramify.contact.hard import CONTACTS, Hard
from ramify.control.controller import CONTROLLERS, Controller
from ramify.control.function_controller import as_controller
from ramify.core.arrays import Array
from ramify.core.errors import ModelError, SimulationError, shortened
from ramify.core.html import facts
from ramify.core.messages import near, shown
from ramify.documents.forms import holds_python, plain_document
from ramify.documents.kinds import Registry
from ramify.documents.mistakes import Map, Mistakes
from ramify.documents.yaml_text import parse_yaml, read_text
from ramify.integrate.integrators import AUTO, HARD, find_integrator
from ramify.motion.trajectory import MOTIONS, Trajectory
from ramify.plant.rates import desired_motion
from ramify.runs.run_options import OPTIONS
from ramify.runs.run_record import json_value
from ramify.scenario_files.scenario_reader import WANTED, read_document, start_on_motion
from ramify.scenario_files.shipped import scenarios, shipped_text
from ramify.view.film import still
from ramify.view.report import player

_MORE_PARTS: Final = ("motion", "initial")
"""Parts of a scenario that are not options of ``simulate``."""


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
    folder: FilePath | None = field(default=None, repr=False)
    document: Map = field(default=None, repr=False)  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<ramify.Scenario {self.name!r}: {self.robot.name}, {self.options['t_end']:g} s>"

    def _repr_html_(self) -> str:
        ground = self.options.get("ground")
        rows = {
            "scenario": self.name,
            "robot": self.robot.name,
            "description": self.description,
            "motion": "none" if self.motion is None else self.motion,
            "control": "none" if self.control is None else self.control,
            "ground": "none" if ground is None else ground,
            "until": f"{self.options['t_end']:g} s",
            "source": self.source,
        }
        said = facts({name: shortened(str(x)) for name, x in rows.items() if x != ""})
        return said + player(still(self.robot, self.q0), plots=False)

    def run(self, **overrides: Any) -> Result:
        """Simulate, with some options replaced by name.

        control, motion, ground, contact, initial, wrenches: as in a scenario file (a word, a
        mapping, YAML text); the first four also as objects of rf.control, rf.motion and rf.contact,
        control also as a function (t, q, v) -> tau; control, ground, contact and wrenches as None,
        wrenches as any that rf.simulate takes. All other options of rf.simulate: as there. A step
        is dropped where a method without one is chosen.

        The scenario's text and the overrides are in the result's ``options["scenario"]``:
        ``Scenario.again(result)`` repeats it. Raises SimulationError for an unknown option and
        where the run fails (its ``result`` is what was computed), ModelError for a part that does
        not fit the robot.
        """
        parts = {*_MORE_PARTS, *(name for name, row in OPTIONS.items() if row.part)}
        for name in overrides:
            if name not in (*_MORE_PARTS, *OPTIONS):
                hint = near(name, [*_MORE_PARTS, *OPTIONS])
                raise SimulationError(f"a scenario has no option {name!r}{hint}")
        ready = self._with_parts({name: x for name, x in overrides.items() if name in parts})
        initial = None if ready.document is None else ready.document.get("initial")
        q0, v0 = start_on_motion(ready.robot, ready.control, initial, ready.q0, ready.v0)
        options: dict[str, Any] = {"q0": q0, "v0": v0, "control": ready.control, **ready.options}
        options |= {name: x for name, x in overrides.items() if name not in parts}
        method = str(options.get("method", AUTO)).lower()
        free = method not in (AUTO, HARD.name)
        chosen = "method" in overrides and "step" not in overrides and free
        if chosen and not find_integrator(method).fixed:
            options.pop("step", None)
        try:
            return ready.with_record(simulate(ready.robot, **options), overrides)
        except SimulationError as error:
            if isinstance(error.result, Result):
                error.result = ready.with_record(error.result, overrides)
            raise

    def with_record(self, result: Result, overrides: Mapping[str, Any] | None = None) -> Result:
        """A result of this scenario with its record: the text and the overrides, and the scenario's
        motion as the desired one.
        """
        record: dict[str, Any] = {"name": self.name, "text": self.text}
        record["overrides"] = json_value(_recorded(overrides or {}))
        if objects := [name for name, x in (overrides or {}).items() if _registry(x) is not None]:
            record["objects"] = objects
        wanted = result.desired or desired_motion(result.model, self.control, self.motion, result.t)
        return replace(result, options={**result.options, "scenario": record}, desired=wanted)

    def _with_parts(self, parts: Mapping[str, Any]) -> Scenario:
        """The scenario with another control, motion or start."""
        ready: Scenario = self
        words = {name: value for name, value in parts.items() if isinstance(value, (str, Mapping))}
        motion, control = parts.get("motion"), parts.get("control")
        if isinstance(motion, Trajectory):
            ready = replace(ready, motion=motion)
            follows = not isinstance(control, Controller) and "control" not in words
            if follows and hasattr(self.control, "motion"):  # the same controller follows it
                ready = replace(ready, control=replace(self.control, motion=motion))  # type: ignore[type-var]
        if words:
            ready = _changed(ready, words)
        if "control" in parts and "control" not in words:
            ready = replace(ready, control=as_controller(control, self.robot))
        for name in ("ground", "contact", "wrenches"):
            if name in parts and name not in words:
                ready = replace(ready, options={**ready.options, name: parts[name]})
        return ready

    @staticmethod
    def again(result: Result) -> Result:
        """Run once more what gave a result, from its own record: the robot, the scenario's text and
        its overrides.

        Raises SimulationError where the result does not come from a scenario, or where an override
        was an object that a file cannot hold.
        """
        if not isinstance(result, Result):
            raise SimulationError(f"give a result of a scenario; got {shown(result)}")
        record = result.metadata["options"].get("scenario")
        if not isinstance(record, Mapping):
            text = "this result does not come from a scenario"
            raise SimulationError(f"{text}; run rf.simulate with its options instead")
        name, overrides = record["name"], dict(record["overrides"])
        lost = [key for key, value in overrides.items() if holds_python(value)]
        if lost:
            text = f"{', '.join(lost)} was given as an object of Python"
            raise SimulationError(f"{text}; give it again to {name}.run(...)")
        for key in record.get("objects", ()):
            overrides[key] = _BY_PART[key].from_document(overrides[key])
        made = read_scenario(record["text"], f"{name}.yaml", robot=result.model)
        return made.run(**overrides)


def _recorded(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides as a file can hold them; what it cannot hold becomes a document that says so."""
    return {
        name: _document(value)
        for name, value in overrides.items()
        if name not in OPTIONS or OPTIONS[name].record is not None
    }


_BY_PART: Final[Mapping[str, Registry[Any]]] = {
    "control": CONTROLLERS, "motion": MOTIONS, "ground": LAWS, "contact": CONTACTS,
}  # fmt: skip


def _registry(value: object) -> Registry[Any] | None:
    """The registry that writes an object; None for other values."""
    kinds = {"control": Controller, "motion": Trajectory, "ground": Ground, "contact": Hard}
    return next((_BY_PART[part] for part, kind in kinds.items() if isinstance(value, kind)), None)


def _document(value: object) -> Any:
    registry = _registry(value)
    return plain_document(value) if registry is None else registry.write(value)


# ---- from files ----


def scenario(
    name_or_path: str | os.PathLike[str], *, robot: Model | str | os.PathLike[str] | None = None
) -> Scenario:
    """A scenario: one that comes with ramify by its name, or one from the path of a ``.yaml`` file.

    robot: a model, a built-in name or a robot file, instead of the robot that the scenario names.
    Raises ModelError for an unknown name and for a file with mistakes: one line for each, with
    file, line, column and key.
    """
    if not isinstance(name_or_path, (str, os.PathLike)):
        raise ModelError(
            f"give the name of a scenario or the path of its file; got {shown(name_or_path)}"
        )
    name = os.fspath(name_or_path)
    instead = robot if robot is None or isinstance(robot, Model) else load(robot)
    if name in scenarios():
        return read_scenario(shipped_text(name), f"{name}.yaml", robot=instead)
    path = FilePath(name)
    if path.suffix.lower() not in (".yaml", ".yml"):
        if path.suffix or len(path.parts) != 1 or os.path.lexists(path):
            raise ModelError(f"{name} is not a scenario file; such a file ends in .yaml or .yml")
        raise ModelError(f"no scenario is named {name!r}{near(name, scenarios())}")
    return read_scenario(read_text(path), name, path.parent, instead)


def read_scenario(
    text: str,
    file: str = "scenario.yaml",
    folder: FilePath | None = None,
    robot: Model | None = None,
) -> Scenario:
    """A scenario from the text of its file.

    file: its name in messages; folder: where relative paths of robots start; robot: the robot,
    instead of the one that the file names. Raises ModelError with all mistakes.
    """
    mistakes = Mistakes(file)
    document = parse_yaml(text, mistakes, WANTED)
    return _scenario(document, mistakes, folder, robot, text)


def from_document(
    document: Map, file: str, robot: Model, text: str, folder: FilePath | None = None
) -> Scenario:
    """A scenario from a changed document; ``text`` is recorded with its runs. Raises ModelError."""
    mistakes = Mistakes(file)
    mistakes.root = document
    return _scenario(document, mistakes, folder, robot, text)


def _scenario(
    document: Map, mistakes: Mistakes, folder: FilePath | None, robot: Model | None, text: str
) -> Scenario:
    parts = read_document(document, mistakes, folder, robot)
    return Scenario(*parts, text=text, folder=folder, document=document)


def _changed(old: Scenario, changes: Mapping[str, Any]) -> Scenario:
    """A scenario with other parts, each a word, a mapping or YAML text."""
    document = Map(old.document.at)
    document.update(old.document)
    document.keys_at, document.values_at = dict(old.document.keys_at), dict(old.document.values_at)
    mistakes = Mistakes(f"{old.name}, changed")
    for key, value in changes.items():
        new = value
        if key == "wrenches" and isinstance(value, str):  # which may also be a list
            new = parse_yaml(f"{key}: {value}", mistakes, f"{key} is a mapping or a list").get(key)
        elif _is_mapping(value):
            wanted = f"{key} is a word or a mapping such as {{{_kind(key)}: ...}}"
            new = parse_yaml(value, mistakes, wanted)
        own = document.get(key)
        if isinstance(new, str) and isinstance(own, Mapping) and own.get(_kind(key)) == new:
            continue  # the same kind: its numbers stay
        document[key] = new
        document.keys_at[key] = document.values_at[key] = document.at
    mistakes.root = document
    return _scenario(document, mistakes, old.folder, old.robot, old.text)


def _kind(part: str) -> str:
    """The key that says of what kind a part is."""
    return "law" if part in ("ground", "contact") else "type"


def _is_mapping(value: object) -> bool:
    return isinstance(value, str) and (value.lstrip().startswith("{") or ":" in value)
