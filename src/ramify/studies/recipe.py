"""The recipe of a run: files of a robot and a scenario, in which parameters get their values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path as FilePath
from typing import Any, Final

from ramify.api.builders import load_named
from ramify.api.model import Model
from ramify.core.cached import cached_property
from ramify.core.errors import ModelError
from ramify.core.messages import near
from ramify.core.version import __version__
from ramify.documents.mistakes import Map, Mistakes, Path
from ramify.documents.yaml_text import parse_yaml, read_text
from ramify.files.formats import YAML, format_of
from ramify.files.load import built_in_text, robots
from ramify.files.robot_reader import robot_of_document
from ramify.files.robot_writer import to_yaml
from ramify.model.edits import with_payload
from ramify.model.floating_base import with_base
from ramify.scenario_files.scenario import Scenario, from_document
from ramify.studies.outputs import Keep
from ramify.studies.paths import NoPlaceError, copy_map, document_without, path_steps, with_value

PAYLOAD: Final = {"mass": 0.0, "com": [0.0, 0.0, 0.0], "inertia": 0.0}
"""The numbers of a payload, see rf.with_payload."""
ENTRIES: Final = {"x": 0, "y": 1, "z": 2, "0": 0, "1": 1, "2": 2}
LIBRARIES: Final = ("numpy", "scipy", "llvmlite")


def result_versions() -> dict[str, str]:
    """Versions that may change the last bit of a result."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"ramify": __version__} | dict.fromkeys(LIBRARIES, "none")
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


@dataclass(frozen=True)
class Recipe:
    """A scenario file and its robot's file, as texts; the paths of the parameters; what is kept of
    a run.

    Paths start with ``robot.`` (the robot file), ``payload.LINK.`` (mass, com, inertia of a load on
    a link), or are paths of the scenario file. fixed: values common to all runs. The recipe and a
    row of values determine a run completely.
    """

    scenario_text: str
    scenario_file: str
    robot_text: str
    robot_file: str
    base: str | None
    paths: tuple[str, ...]
    keep: Keep
    fixed: Mapping[str, float] = field(default_factory=dict)
    folder: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Only the fields travel to the workers; what follows from them is computed there, once."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    # ---- documents ----

    @cached_property
    def _files(self) -> Map:
        """{robot, payload, scenario}: the files, with the scenario's changes of its robot."""
        robot = parse_yaml(self.robot_text, Mistakes(self.robot_file))
        scenario = parse_yaml(self.scenario_text, Mistakes(self.scenario_file))
        given = scenario.get("robot")
        if isinstance(given, Mapping):
            for name, value in given.get("parameters", {}).items():
                robot = with_value(robot, ("parameters", name), value)
            if "gravity" in given:
                robot = with_value(robot, ("gravity",), given["gravity"])
        return copy_map({"robot": robot, "payload": {}, "scenario": scenario})

    @cached_property
    def robot(self) -> Model:
        """The robot of the files."""
        return self._model(self._files)

    @cached_property
    def _documents(self) -> Map:
        """The documents with the fixed values, ready for the varied ones."""
        root = self._files
        for path in (*self.fixed, *self.paths):
            root = made_ready(root, path, self.robot)
        for path, value in self.fixed.items():
            root = with_value(root, parameter_steps(root, path), float(value))
        return root

    @property
    def control(self) -> str:
        """The type of the controller in the scenario file; empty without one."""
        given = self._documents["scenario"].get("control", "")
        return str(given.get("type", "") if isinstance(given, Mapping) else given)

    @cached_property
    def places(self) -> tuple[Path, ...]:
        """The steps to each parameter. Raises NoPlaceError for a path that leads nowhere."""
        return tuple(parameter_steps(self._documents, path) for path in self.paths)

    def wrong_paths(self) -> dict[str, str]:
        """The paths that lead nowhere, each with the reason."""
        errors: dict[str, str] = {}
        for path in (*self.fixed, *self.paths):
            try:
                parameter_steps(made_ready(self._files, path, self.robot), path)
            except NoPlaceError as error:
                errors[path] = str(error)
        return errors

    # ---- a run ----

    def _model(self, root: Map) -> Model:
        mistakes = Mistakes(self.robot_file)
        mistakes.root = root["robot"]
        model = robot_of_document(
            root["robot"], mistakes, {}, warns=False
        )  # the file was warned of
        if self.base is not None:
            model = with_base(model, self.base)
        for link, payload in root["payload"].items():
            model = with_payload(model, link, **{**PAYLOAD, **payload})
        return Model.of(model)

    def scenario(self, values: Sequence[float]) -> Scenario:
        """The scenario of a row of values, one per path. Raises ModelError for impossible ones."""
        root: Any = self._documents
        for steps, value in zip(self.places, values, strict=True):
            root = with_value(root, steps, float(value))
        moved = {steps[0] for steps in self.places}
        model = self._model(root) if moved & {"robot", "payload"} else self._fixed_robot
        document = root["scenario"]
        folder = FilePath(self.folder) if self.folder is not None else None
        return from_document(document, self.scenario_file, model, json.dumps(document), folder)

    @cached_property
    def _fixed_robot(self) -> Model:
        return self._model(self._documents)

    # ---- keys ----

    @cached_property
    def _canonical(self) -> list[str]:
        return self._cut(result_versions())

    def _cut(self, made_with: Mapping[str, str]) -> list[str]:
        """The text of everything that determines a run, cut where the values are inserted."""
        root: Any = self._documents
        for i, steps in enumerate(self.places):
            root = with_value(root, steps, f"\0{i}\0")
        told = ("description", "source")
        scenario = _less(root["scenario"], "name", "robot", *told)
        robot = _less(root["robot"], *told)
        facts = [robot, self.base, root["payload"], scenario, self.keep.facts, made_with]
        text = json.dumps(facts, sort_keys=True, default=str)
        for i in range(len(self.places)):
            text = text.replace(json.dumps(f"\0{i}\0"), f"\0{i}\0")
        return text.split("\0")

    def key(self, values: Sequence[float], made_with: Mapping[str, str] | None = None) -> bytes:
        """The digest (32 bytes) of everything that determines a run: robot, base, scenario, values,
        what is kept, versions (by default the present ones).
        """
        parts = self._canonical if made_with is None else self._cut(made_with)
        cut = [repr(float(values[int(part)])) if i % 2 else part for i, part in enumerate(parts)]
        return hashlib.sha256("".join(cut).encode()).digest()

    def trial(self, path: str, value: float) -> Model:
        """Build the scenario with one parameter changed, the others as in the files; return its
        robot. Raises ModelError.
        """
        others = {name: v for name, v in self.fixed.items() if name != path}
        return replace(self, paths=(path,), fixed=others).scenario([value]).robot


def _less(part: Map, *keys: str) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key not in keys}


def parameter_steps(root: Map, path: str) -> Path:
    """The steps to a parameter in the documents."""
    first, _, rest = path.partition(".")
    if first == "payload":
        link, what, entry = _of_payload(rest)
        given = root["robot"].get("links", [])
        links = [str(x["name"]) for x in given if isinstance(x, dict) and "name" in x]
        found = link in links or (link and "templates" in root["robot"])
        if what not in PAYLOAD or not found:
            numbers = ("mass", "com.x", "com.y", "com.z", "inertia")
            choices = [f"payload.{name}.{number}" for name in links for number in numbers]
            raise NoPlaceError(f"no number is found at {path!r}{near(path, choices)}")
        return ("payload", link, what, *entry)
    if first == "robot" and rest:
        return ("robot", *path_steps(root["robot"], rest, path))
    try:
        return ("scenario", *path_steps(root["scenario"], path, path))
    except NoPlaceError:
        if first in root["scenario"] or "." not in path:
            raise
        known = ["robot.links.<name>.mass", "payload.<link>.mass", *root["scenario"]]
        raise NoPlaceError(
            f"no number is found at {path!r}: the scenario has no {first!r}{near(first, known)}"
        ) from None


def _of_payload(path: str) -> tuple[str, str, tuple[int, ...]]:
    """Link, mass, com or inertia, and the entry of com, of a path without ``payload.``."""
    link, _, what = path.rpartition(".")
    if what not in ENTRIES:
        return link, what, ()
    body, _, com = link.rpartition(".")
    return body, com, (ENTRIES[what],)


def made_ready(root: Map, path: str, model: Model) -> Map:
    """The documents prepared for a path: a word becomes a mapping, an initial value of all
    coordinates becomes one for each.
    """
    head, *rest = path.split(".")
    scenario: Any = root["scenario"]
    if head == "control" and isinstance(scenario.get("control"), str):
        return with_value(root, ("scenario", "control"), copy_map({"type": scenario["control"]}))
    if head == "initial" and len(rest) >= 2:
        return _start_by_name(root, rest[0], ".".join(rest[1:]), model)
    link, _, entry = _of_payload(".".join(rest))
    if head == "payload" and entry:
        com = root["payload"].get(link, {}).get("com", PAYLOAD["com"])
        return with_value(root, ("payload", link, "com"), com)
    return root


def _start_by_name(root: Map, what: str, name: str, model: Model) -> Map:
    """``initial.q`` as a mapping from coordinates, so that one of them can be set; the same
    coordinate in other units is removed.
    """
    kind = what.removesuffix("_deg")
    if kind not in ("q", "v"):
        return root
    names = model.coordinates if kind == "q" else model.velocities
    if name not in names:
        raise NoPlaceError(
            f"no number is found at {f'initial.{what}.{name}'!r}{near(name, list(names))}"
        )
    for key in (kind, f"{kind}_deg"):
        given = root["scenario"].get("initial", {}).get(key)
        if given is None:
            continue
        if not isinstance(given, dict):
            column = given if isinstance(given, list) else [given] * len(names)
            by_name = copy_map(dict(zip(names, column, strict=False)))
            root = with_value(root, ("scenario", "initial", key), by_name)
        if key != what and name in root["scenario"]["initial"][key]:
            root = document_without(root, ("scenario", "initial", key, name))
    if name not in root["scenario"].get("initial", {}).get(what, {}):
        root = with_value(root, ("scenario", "initial", what, name), 0.0)
    return root


def robot_document(
    scenario: Mapping[str, Any], folder: FilePath | None
) -> tuple[str, str, str | None]:
    """(text, file name, base) of the robot of a scenario, as a robot file whatever its format."""
    given = scenario.get("robot")
    given = given if isinstance(given, Mapping) else {"name": given}
    name, base = given.get("name"), given.get("base")
    if not isinstance(name, str):
        raise ModelError("the scenario names no robot")
    if name in robots():
        return built_in_text(name), f"{name}.yaml", base
    path = (folder or FilePath()) / name
    if format_of(path) is YAML:
        return read_text(path), str(name), base
    return to_yaml(load_named(path, base=base)), FilePath(name).with_suffix(".yaml").name, None
