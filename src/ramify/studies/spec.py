"""Study files: a scenario, the parameters to vary, and what to keep. All mistakes are reported at
once, each with its place.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import Annotated, Any, Final, Literal, TypeVar

from ramify.core.arrays import Array
from ramify.core.errors import ModelError, RamifyError
from ramify.core.messages import near, shown
from ramify.documents.file_version import Version, refuse_newer
from ramify.documents.forms import Name, NameList, NotedError, Number, Reading
from ramify.documents.kinds import read_part
from ramify.documents.mistakes import DocumentError, Map, Mistakes, Path
from ramify.documents.yaml_text import parse_yaml, read_text
from ramify.files.robot_writer import to_yaml
from ramify.scenario_files.shipped import scenarios, shipped_text
from ramify.studies.outputs import HISTORIES, CustomMetric, Keep, metric, metric_code
from ramify.studies.points import MOST_RUNS, Design, Varied, points
from ramify.studies.recipe import Recipe, robot_document
from ramify.studies.variation import VariationReader

WANTED: Final = "a study file is a mapping with the keys name, scenario and vary"
Runs = Annotated[int, Number(least=1.0, whole=True)]
SomeNames = Annotated[list[str], NameList()]
P = TypeVar("P")


@dataclass(frozen=True, kw_only=True)
class PointsPart:
    """How points are laid out."""

    design: Literal["random", "latin_hypercube", "sobol"] = "random"
    runs: Runs = 1
    seed: Annotated[int, Number(least=0.0, whole=True)] = 0
    combine: Literal["cross", "together"] = "cross"


@dataclass(frozen=True, kw_only=True)
class HistoryPart:
    """Quantities kept over time, and every how many rows of output."""

    of: SomeNames = field(default_factory=lambda: ["q", "v"])
    every: Runs = 1


@dataclass(frozen=True, kw_only=True)
class KeepPart:
    """What is kept of a run."""

    final: bool = True
    metrics: SomeNames = field(default_factory=list)
    history: Any = None


@dataclass(frozen=True, kw_only=True)
class StudyPart:
    """The file itself; its parts are checked one by one."""

    version: Version = 1
    name: str
    description: Annotated[str, Name(prose=True)] = ""
    scenario: Any
    set: dict[str, float] = field(default_factory=dict)
    vary: dict[str, Any] = field(default_factory=dict)
    points: Any = None
    keep: Any = None
    most_runs: Runs = MOST_RUNS


@dataclass(frozen=True)
class Spec:
    """A study that can start: its recipe and its points (runs, parameters)."""

    name: str
    description: str
    text: str
    recipe: Recipe
    points: Array


def read_spec(
    text: str,
    file: str,
    folder: FilePath | None,
    functions: Mapping[str, CustomMetric] | None = None,
) -> Spec:
    """A study from the text of its file. Raises ModelError with all mistakes, without a run."""
    mistakes = Mistakes(file)
    document = parse_yaml(text, mistakes, WANTED)
    return _SpecReader(document, mistakes, folder, text, dict(functions or {})).spec()


@dataclass(frozen=True)
class _SpecReader:
    document: Map
    mistakes: Mistakes
    folder: FilePath | None
    text: str
    functions: dict[str, CustomMetric]

    def part(self, kind: type[P], raw: object, path: Path) -> P | None:
        with suppress(NotedError):
            return read_part(kind, raw, path, Reading(self.mistakes))
        return None

    def spec(self) -> Spec:
        refuse_newer(self.document, self.mistakes)
        top = self.part(StudyPart, self.document, ())
        most = top.most_runs if top is not None else MOST_RUNS
        reader = VariationReader(self.mistakes, most)
        raw = self.document.get("vary")
        raw = raw if isinstance(raw, Mapping) else {}
        vary = {path: reader.varied(path, how) for path, how in raw.items()}
        laid = self.part(PointsPart, self.document.get("points", {}), ("points",))
        keep = self._keep()
        if top is None or laid is None or keep is None or None in vary.values():
            self.mistakes.raise_if_any()
            raise AssertionError
        sound: dict[str, Varied] = {path: one for path, one in vary.items() if one is not None}
        design = Design(laid.design, laid.runs, laid.seed, laid.combine)
        reader.check_count(sound, design)
        recipe = self._with_paths(self._recipe(top, tuple(sound), keep))
        self._check_keep(recipe)
        self.mistakes.raise_if_any()
        rows = points(sound, design)
        self._check_values(recipe, sound, rows)
        self.mistakes.raise_if_any()
        return Spec(top.name, top.description, self.text, recipe, rows)

    # ---- the scenario ----

    def _keep(self) -> Keep | None:
        """What is kept; None with its mistakes noted."""
        part = self.part(KeepPart, self.document.get("keep", {}), ("keep",))
        if part is None:
            return None
        keep = Keep(part.final, tuple(part.metrics), functions=self.functions)
        if part.history is None:
            return keep
        past = self.part(HistoryPart, part.history, ("keep", "history"))
        if past is None:
            return None
        return replace(keep, history=tuple(past.of), every=past.every)

    def _recipe(self, top: StudyPart, paths: tuple[str, ...], keep: Keep) -> Recipe:
        text, file, folder = self._scenario(top.scenario)
        try:
            robot = robot_document(parse_yaml(text, Mistakes(file)), folder)
            place = str(folder) if folder else None
            made = Recipe(text, file, *robot, paths, keep, dict(top.set), place)
            replace(made, paths=(), fixed={}).scenario([])  # as the files are
            return made
        except RamifyError as error:
            for line in str(error).splitlines():
                self.mistakes.add(("scenario",), line)
            self.mistakes.raise_if_any()
            raise AssertionError from None

    def _scenario(self, source: Any) -> tuple[str, str, FilePath | None]:
        """(text, file, folder) of the scenario: a name, a path beside the study, or a mapping."""
        if isinstance(source, Mapping):
            text = json.dumps({"name": "scenario", **source})
            return text, f"{self.mistakes.file}, scenario", self.folder
        if not isinstance(source, str):
            self.mistakes.stop(
                ("scenario",), f"{shown(source)} must be a name, a path or a mapping"
            )
        if source in scenarios():
            return shipped_text(source), f"{source}.yaml", None
        if FilePath(source).suffix.lower() not in (".yaml", ".yml"):
            text = f"there is no scenario {source!r}{near(source, scenarios())}"
            self.mistakes.stop(("scenario",), text)
        path = self.folder / source if self.folder is not None else FilePath(source)
        try:
            return read_text(path), source, path.parent
        except ModelError as error:
            self.mistakes.stop(("scenario",), str(error))

    def _with_paths(self, recipe: Recipe) -> Recipe:
        """The recipe with its paths checked. A link that comes from a template is found after the
        robot file is written out.
        """
        wrong = recipe.wrong_paths()
        if any(path.startswith("robot.links.") for path in wrong):
            text = to_yaml(replace(recipe, base=None).robot)
            file = f"{recipe.robot_file}, written out"
            whole = replace(recipe, robot_text=text, robot_file=file)
            left = whole.wrong_paths()
            if len(left) <= len(wrong):
                recipe, wrong = whole, left
        starts: dict[str, str] = {}
        for part in ("set", "vary"):
            for path in self.document.get(part, {}):
                texts: list[str] = []
                same = starts.setdefault(path.replace("_deg.", ".", 1), path)
                if path.startswith("initial.") and same != path:
                    texts.append(f"{same} is the same coordinate; leave out one of them")
                if path in wrong:
                    texts.append(wrong[path])
                elif part == "vary" and path in recipe.fixed:
                    texts.append("is also under set; leave out one of them")
                for text in texts:
                    self.mistakes.add((part, path), text, key=True)
        return recipe

    def _check_keep(self, recipe: Recipe) -> None:
        keep, add = recipe.keep, self.mistakes.add
        for i, what in enumerate(keep.history):
            if what not in HISTORIES:
                text = f"there is no history {what!r}{near(what, [*HISTORIES])}"
                add(("keep", "history", "of", i), text)
        taken = {"run", "status", "seconds", *recipe.paths}
        with suppress(RamifyError):  # reported below
            taken |= set(replace(keep, functions={}).columns(recipe.robot))
        for name, function in keep.functions.items():
            which = f"metric {name!r}:"
            if not isinstance(name, str) or not name:
                add((), f"{which} the name of a metric must be a text that is not empty")
            elif name in taken:
                add((), f"{which} the study already has a column of this name; choose another")
            if not callable(function):
                add((), f"{which} {shown(function)} is not a function")
                continue
            try:
                metric_code(function)
            except RamifyError as error:
                add((), f"{which} {error}")
        for i, name in enumerate(keep.metrics):
            if name in recipe.paths or keep.metrics.index(name) < i:
                what = "name of a parameter" if name in recipe.paths else "duplicate"
                add(("keep", "metrics", i), f"{what}; leave out one of them")
            try:
                metric(name, recipe.robot)
            except RamifyError as error:
                add(("keep", "metrics", i), str(error))

    def _check_values(self, recipe: Recipe, vary: Mapping[str, Varied], rows: Array) -> None:
        """Try each parameter alone at its smallest and largest value and the ends of its range."""
        for path, value in recipe.fixed.items():
            self._try(recipe, ("set", path), path, value)
        self.mistakes.raise_if_any()
        for i, path in enumerate(recipe.paths):
            ends = [end for end in vary[path].ends if math.isfinite(end)]
            for value in dict.fromkeys((*ends, float(rows[:, i].min()), float(rows[:, i].max()))):
                self._try(recipe, ("vary", path), path, value)

    def _try(self, recipe: Recipe, place: Path, path: str, value: float) -> None:
        try:
            robot, files = recipe.trial(path, value), recipe.robot
            if (robot.nq, robot.nv) != (files.nq, files.nv):
                self.mistakes.add(
                    place,
                    f"with {value:g} the robot has {robot.nv} degrees of freedom, that of the "
                    f"scenario {files.nv}; the runs of a study have the same columns: write this "
                    "value into the scenario, and make one study for each value",
                )
        except RamifyError as error:
            first = error.mistakes[0] if isinstance(error, DocumentError) else None
            if first is not None and first.key:
                self.mistakes.add(place, f"no number is found at {path!r}: {first.text}", key=True)
            else:
                reason = str(error).splitlines()[0]
                self.mistakes.add(place, f"{value:g} is impossible: {reason}")
