"""Scenario files: a robot, its start, a motion, a controller and the options of a run, in one YAML
file.

They are read by the machinery of robot files: all mistakes are told at once, each with file, line
and column.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path as FilePath
from typing import Any, Final

import numpy as np

from ramify.api.build import load
from ramify.api.model import Model
from ramify.api.result import Result
from ramify.api.simulate import simulate
from ramify.contact.reader import ground_of
from ramify.control import Prescribed
from ramify.core.errors import ModelError, RamifyError
from ramify.core.messages import near, shown
from ramify.documents.mistakes import Map, Mistakes, Path
from ramify.documents.schema import P, validate
from ramify.documents.yaml_text import parse, read_text
from ramify.model.drives import driven
from ramify.model.edits import with_gravity
from ramify.motion import Gait, Trajectory
from ramify.scenario_files.control import controllers
from ramify.scenario_files.motion import Coordinates, motion
from ramify.scenario_files.scenario import Scenario
from ramify.scenario_files.schema import Initial, RobotOf, ScenarioPart
from ramify.sim.integrators import AUTO, find, names

WANTED: Final = "a scenario file is a mapping with the keys name, robot and t_end"
OPTIONS: Final = ("t_end", "method", "step", "max_step", "rtol", "atol", "dt_out", "damping")
"""Keys that go to rf.simulate as they are."""


def scenarios() -> list[str]:
    """Names of the scenarios that come with ramify, sorted."""
    return list(_built_in())


@cache
def _built_in() -> tuple[str, ...]:
    folder = resources.files("ramify") / "scenarios"
    return tuple(
        sorted(
            entry.name.removesuffix(".yaml")
            for entry in folder.iterdir()
            if entry.name.endswith(".yaml")
        )
    )


def summaries() -> list[dict[str, Any]]:
    """Name, robot, end, description and source of every scenario that comes with ramify; nothing is
    built.
    """
    folder, found = resources.files("ramify") / "scenarios", []
    for name in _built_in():
        head = parse((folder / f"{name}.yaml").read_text(encoding="utf-8"), Mistakes(name), WANTED)
        made, wrong = validate(ScenarioPart, head, {})
        assert made is not None, wrong
        robot = head["robot"]["name"] if isinstance(head["robot"], Mapping) else head["robot"]
        about = {"description": made.description, "source": made.source}
        found.append({"name": made.name, "robot": robot, "t_end": made.t_end, **about})
    return found


def scenario(
    name_or_path: str | os.PathLike[str], *, robot: Model | str | os.PathLike[str] | None = None
) -> Scenario:
    """A scenario: one that comes with ramify by its name, or one from the path of a ``.yaml`` file.

    robot: a model, a built-in name or a robot file, instead of the robot that the scenario names.
    Raises ModelError for an unknown name and for a file with mistakes: one line for each, with
    file, line, column and key.
    """
    given = os.fspath(name_or_path)
    instead = robot if robot is None or isinstance(robot, Model) else load(robot)
    if given in _built_in():
        entry = resources.files("ramify") / "scenarios" / f"{given}.yaml"
        return read_scenario(entry.read_text(encoding="utf-8"), entry.name, robot=instead)
    path = FilePath(given)
    if path.suffix.lower() not in (".yaml", ".yml"):
        if path.suffix or len(path.parts) != 1 or os.path.lexists(path):
            raise ModelError(f"{given} is no scenario file; such a file ends in .yaml or .yml")
        raise ModelError(f"no scenario is named {given!r}{near(given, scenarios())}")
    return read_scenario(read_text(path), given, path.parent, instead)


def is_scenario(name_or_path: str | os.PathLike[str]) -> bool:
    """Whether that is a scenario rather than a robot: by name, or by the keys of a file that can be
    read.
    """
    given = os.fspath(name_or_path)
    path = FilePath(given)
    if given in _built_in() or path.suffix.lower() not in (".yaml", ".yml"):
        return given in _built_in()
    try:
        document = parse(read_text(path), Mistakes(given), WANTED)
    except ModelError:
        return False
    return "links" not in document and bool(
        {"robot", "t_end", "motion", "control", "ground", "initial"} & set(document)
    )


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
    return _Reader(parse(text, mistakes, WANTED), mistakes, folder, robot, text).scenario()


def from_document(
    document: Map, file: str, robot: Model, text: str, folder: FilePath | None = None
) -> Scenario:
    """A scenario from a document that was read and changed; ``text`` is recorded with its runs.
    Raises ModelError.
    """
    mistakes = Mistakes(file)
    mistakes.root = document
    return _Reader(document, mistakes, folder, robot, text).scenario()


def changed(old: Scenario, changes: Mapping[str, Any]) -> Scenario:
    """A scenario with other parts: ``motion``, ``control``, ``ground`` or ``initial`` as a word, a
    mapping or YAML text.
    """
    document = Map(old.document.at)
    document.update(old.document)
    document.keys_at, document.values_at = dict(old.document.keys_at), dict(old.document.values_at)
    mistakes = Mistakes(f"{old.name}, changed")
    for key, value in changes.items():
        new = (
            parse(value, mistakes, f"{key} is a word or a mapping such as {{{_kind(key)}: ...}}")
            if _is_mapping(value)
            else value
        )
        own = document.get(key)
        if isinstance(new, str) and isinstance(own, Mapping) and own.get(_kind(key)) == new:
            continue  # the same kind: its numbers stay
        document[key] = new
        document.keys_at[key] = document.values_at[key] = document.at
    mistakes.root = document
    return _Reader(document, mistakes, old.folder, old.robot, old.text).scenario()


def _kind(part: str) -> str:
    """The key that says of what kind a part is."""
    return "law" if part == "ground" else "type"


def _is_mapping(value: object) -> bool:
    return isinstance(value, str) and (value.lstrip().startswith("{") or ":" in value)


class _Reader:
    def __init__(
        self,
        document: Map,
        mistakes: Mistakes,
        folder: FilePath | None,
        robot: Model | None,
        text: str,
    ) -> None:
        self.document, self.mistakes, self.folder, self.robot, self.text = (
            document,
            mistakes,
            folder,
            robot,
            text,
        )

    def part(self, kind: type[P], raw: object, path: Path) -> P | None:
        """A validated part, or None with its mistakes noted."""
        made, wrong = validate(kind, raw, {})
        for where, text, key in wrong:
            self.mistakes.add((*path, *where), text, key=key)
        return made

    def scenario(self) -> Scenario:
        top = self.part(ScenarioPart, self.document, ())
        self._check_method()
        model = self.robot or self._load()
        if model is None:  # nothing else can be judged without the robot
            self.mistakes.raise_if_any()
            raise AssertionError
        q, v = self._initial(model)
        read = Coordinates(model, self.mistakes, q)
        moved = (
            motion(read, self.document["motion"], ("motion",))
            if "motion" in self.document
            else None
        )
        ground = ground_of(self.document.get("ground"), ("ground",), self.mistakes, model)
        q0, v0 = _start(model, q, v, moved)
        options = (
            {key: getattr(top, key) for key in OPTIONS if getattr(top, key) is not None}
            if top is not None
            else {}
        )
        options |= {"ground": ground} if ground is not None else {}

        def inverse(motion: Trajectory, rows: int) -> Result:
            """The forces of a motion on a floating base: the same run with its joints prescribed."""
            self.mistakes.raise_if_any()
            run = {
                **options,
                "control": Prescribed(motion),
                "dt_out": options["t_end"] / max(1, rows - 1),
            }
            return simulate(model, q0=q0, v0=v0, **run)

        control = controllers(read, self.document, moved, inverse)
        damping = self.document.get("damping")
        if isinstance(damping, list) and len(damping) != model.nv:
            self.mistakes.add(
                ("damping",), f"{len(damping)} entries; a number, or {model.nv} of them belong here"
            )
        self.mistakes.raise_if_any()
        assert top is not None
        if model.loops:
            q0, v0 = self._assembled(model, q0, v0, ~np.isnan(q))
        return Scenario(
            top.name,
            model,
            q0,
            v0,
            moved,
            control,
            options,
            top.description,
            top.source,
            self.text,
            self.folder,
            self.document,
        )

    def _check_method(self) -> None:
        method = self.document.get("method", "auto")
        if not isinstance(method, str) or method.lower() == AUTO:
            return
        if method.lower() not in names():
            self.mistakes.add(
                ("method",),
                f"no method is called {shown(method)}{near(method.lower(), list(names()))}",
            )
        elif find(method).fixed and "step" not in self.document:
            self.mistakes.add(("method",), f"{method} needs a fixed step: add the key step, in s")

    def _load(self) -> Model | None:
        """The robot, or None with its mistakes noted."""
        raw = self.document.get("robot")
        if raw is None:
            return None
        spec = self.part(RobotOf, {"name": raw} if isinstance(raw, str) else raw, ("robot",))
        if spec is None:
            return None
        name = spec.name
        if (
            self.folder is not None
            and not FilePath(name).is_absolute()
            and (self.folder / name).is_file()
        ):
            name = os.fspath(self.folder / name)
        try:
            model = load(name, base=spec.base, **spec.parameters)
            return model if spec.gravity is None else with_gravity(model, spec.gravity)
        except RamifyError as error:
            where = ("robot",) if isinstance(raw, str) else ("robot", "name")
            for line in str(error).splitlines():
                self.mistakes.add(where, line)
            return None

    def _initial(self, model: Model) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """q (nq) and v (nv) as the file gives them, NaN where it says nothing."""
        raw = self.document.get("initial")
        part = self.part(Initial, raw, ("initial",)) if raw is not None else None
        read = Coordinates(model, self.mistakes)
        q = read.all(part, "q", ("initial",), of_q=True)
        v = read.all(part, "v", ("initial",), of_q=False)
        return q, v

    def _assembled(
        self, model: Model, q: Any, v: Any, given: Any
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """A start that closes the loops: the driven coordinates and their rates as they are, the
        others found near those given, or near the model's guess.
        """
        chosen = driven(model)
        places = list(zip(chosen.names, chosen.q, chosen.v, strict=True))
        others = {
            model.coordinates[i]: float(q[i])
            for i in model.layout.plain_q
            if given[i] and i not in chosen.q
        }
        independent, rates = (
            {name: float(q[i]) for name, i, _ in places},
            {name: float(v[j]) for name, _, j in places},
        )
        loose = [model.velocities[j] for j in range(model.nv) if v[j] and j not in chosen.v]
        if loose:
            text = f"{loose[0]!r} is not driven: its rate follows from the loops; give the rates of {', '.join(chosen.names)}"
            self.mistakes.stop(("initial", "v"), text)
        try:
            state = model.assemble(independent, rates=rates, guess=others)
        except RamifyError as error:
            self.mistakes.stop(("initial",), str(error))
        return state.q, state.v


def _start(
    model: Model, q: Any, v: Any, moved: Any
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The start: what ``initial`` says, elsewhere what the motion says, elsewhere neutral (or a
    closed model's guess), at rest.
    """
    q0, v0 = model.neutral(), np.zeros(model.nv)
    for name, value in model.guess.items():
        q0[model.coordinates.index(name)] = value
    if moved is not None:
        first = moved.at(0.0)
        if moved.n == model.nv == model.nq:
            q0, v0 = first.q.copy(), first.v.copy()
        elif isinstance(moved, Gait):
            q0, v0 = moved.start(model)
        else:
            chosen = driven(model)
            if len(chosen) == moved.n and -1 not in chosen.q:
                q0[list(chosen.q)], v0[list(chosen.v)] = first.q, first.v
    return np.where(np.isnan(q), q0, q), np.where(np.isnan(v), v0, v)
