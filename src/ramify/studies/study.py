"""Studies: many runs of one scenario, planned, made, kept, looked at."""

from __future__ import annotations

import json
import os
import time
import uuid
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ramify.api.result import Result
from ramify.core import html
from ramify.core.arrays import Array, flag, whole
from ramify.core.bar import Bar
from ramify.core.errors import ModelError, SimulationError
from ramify.core.file_path import path_of
from ramify.core.names import a_text, mapping_of, names_of, one_of
from ramify.documents.yaml_text import read_text
from ramify.kernels.robot_keys import robot_key
from ramify.scenario_files.scenario import Scenario
from ramify.studies.engines import Engine, check_engine, survivors
from ramify.studies.engines import engine as engine_of
from ramify.studies.ledger import Count, Ledger
from ramify.studies.outputs import CustomMetric, Missing, Versioned, metric_code
from ramify.studies.page import write_page
from ramify.studies.recipe import Recipe, result_versions
from ramify.studies.spec import read_spec
from ramify.studies.study_export import export_study, history, module, study_columns, study_dataset
from ramify.studies.study_plots import plot_study
from ramify.studies.study_units import column_unit, parameter_unit
from ramify.studies.work import CommonFailure, Tasks, run_row

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure

MOST_SHOWN: Final = 10
"""Runs in the table that a notebook shows."""
AGAIN: Final = ("killed", "failed", "damaged")
"""Runs that may be tried once more."""
Functions = Mapping[str, CustomMetric]
"""Custom metrics by name: functions of a Result that return a number."""


@dataclass(frozen=True)
class Study:
    """A study: its name, the recipe of its runs, the points (runs, parameters), and the path of
    its ledger.
    """

    name: str
    description: str
    text: str
    recipe: Recipe
    points: Array
    ledger: Path

    def __repr__(self) -> str:
        varied = ", ".join(self.recipe.paths) or "nothing"
        return f"<ramify.Study {self.name!r}: {len(self.points)} runs over {varied}>"

    def _repr_html_(self) -> str:
        rows: dict[str, object] = {"study": self.name, "description": self.description}
        rows |= {"runs": len(self), "over": ", ".join(self.parameters) or "nothing"}
        if not self.ledger.exists():
            return html.facts({**rows, "status": "not run yet"})
        count, found = self.status(), self.table()
        rows["status"] = ", ".join(f"{name} {n}" for name, n in count._asdict().items() if n)
        first = zip(*(column[:MOST_SHOWN].tolist() for column in found.values()), strict=True)
        return html.facts(rows) + html.scrolled(html.html_table(list(found), list(first)))

    def __len__(self) -> int:
        return len(self.points)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The paths of the varied numbers: the columns of ``points``."""
        return self.recipe.paths

    @property
    def columns(self) -> list[str]:
        """Names of the numbers kept of each run."""
        return self.recipe.keep.columns(self.recipe.robot)

    # ---- running ----

    def run(
        self,
        jobs: int | None = None,
        engine: str = "processes",
        scheduler: str | None = None,
        *,
        progress: bool = False,
        again: Sequence[str] = ("killed",),
        keep_going: bool = False,
    ) -> Count:
        """Compute the runs that are not in the ledger yet. Finished runs are kept however this call
        ends; call it again to continue.

        jobs: number of local processes, by default one per core. engine: "processes", "serial",
        "dask" or "ray"; scheduler: address of the cluster. again: statuses ("killed", "failed") to
        try once more; with "damaged", all runs of the ledger are checked, and those that are not as
        they were written are computed again. progress: show a progress bar. Ctrl-C stops it and
        keeps finished runs. keep_going: go on where the first runs all fail for one reason.

        Raises SimulationError if the ledger cannot be written (another writer, a full disk), the
        engine is not available, or the first eight runs all fail with the same message but for its
        numbers.
        """
        check_engine(engine, jobs, scheduler)
        flag("progress", progress, SimulationError)
        flag("keep_going", keep_going, SimulationError)
        for status in (again := names_of("again", again)):
            one_of("again", status, AGAIN, SimulationError)
        with Ledger(self.ledger, writer=True) as ledger:
            keys = [self.recipe.key(row) for row in self.points]
            ledger.replan(self._facts(), keys, self.points)
            if "damaged" in again:
                ledger.forget_damaged()
            tasks = Tasks(ledger.waiting(again), len(self.parameters), uuid.uuid4().hex)
            metrics = self.recipe.keep.functions.items()
            missing = [name for name, function in metrics if isinstance(function, Missing)]
            if tasks.total and missing:
                raise SimulationError(
                    f"{self.ledger} does not contain the functions of its custom metrics "
                    f"{', '.join(missing)}; pass them, unchanged, to Study.open(metrics=)"
                )
            if tasks.total:
                by = engine_of(engine, jobs, scheduler)
                self._work(ledger, keys, tasks, by, progress, keep_going)
            return ledger.count()

    def _work(
        self, ledger: Ledger, keys: Sequence[bytes], tasks: Tasks, by: Engine, progress: bool,
        keep_going: bool,
    ) -> None:  # fmt: skip
        tasks.lanes, failure = by.lanes, CommonFailure()
        finished, aside, started = 0, 0, time.perf_counter()
        with (
            closing(by),
            closing(Bar(self.name, tasks.total)) if progress else nullcontext() as bar,
        ):
            for outcomes in survivors(by, self.recipe, tasks):
                ledger.record((keys[o.number], o) for o in outcomes)
                tasks.learn(outcomes)
                finished += len(outcomes)
                aside += sum(o.status != "done" for o in outcomes)
                if bar is not None:
                    rate = finished / max(time.perf_counter() - started, 1e-9)
                    failed = f", {aside} failed" if aside else ""
                    bar.update(finished, f"{finished}/{tasks.total}, {rate:.1f} runs/s{failed}")
                reason = "" if keep_going else failure.reason(outcomes)
                if reason and finished < tasks.total:
                    raise SimulationError(
                        f"the study {self.name!r} was stopped: its first {finished} runs all "
                        f"failed for the same reason, {reason!r}; {tasks.total - finished} runs "
                        "were not tried. Correct the scenario, or run all with keep_going=True "
                        "(--keep-going)"
                    )

    def _facts(self) -> dict[str, Any]:
        """What a ledger says of the study: custom metrics by what identifies them."""
        recipe, robot, keep = self.recipe, self.recipe.robot, self.recipe.keep
        units = {name: parameter_unit(name, robot, recipe.control) for name in self.parameters}
        kept = {f.name: getattr(keep, f.name) for f in fields(keep) if f.name != "functions"}
        return {
            "recipe": recipe.__getstate__() | {"keep": kept, "fixed": dict(recipe.fixed)},
            "functions": {name: metric_code(function) for name, function in keep.functions.items()},
            "study": {"name": self.name, "description": self.description, "text": self.text},
            "parameters": self.parameters,
            "columns": self.columns,
            "units": units | {name: column_unit(name, robot) for name in self.columns},
            "history": keep.history_columns(robot),
            "versions": result_versions(),
        }

    # ---- looking ----

    def status(self) -> Count:
        """The progress: Count(planned, done, failed, killed, waiting, seconds)."""
        with Ledger(self.ledger) as ledger:
            return ledger.count()

    def errors(self, most: int = 20) -> list[tuple[int, str, str]]:
        """(number, status, error) of the first ``most`` runs that failed or were killed."""
        with Ledger(self.ledger) as ledger:
            return ledger.errors(whole("most", most, 0, SimulationError))

    def table(self) -> dict[str, np.ndarray[Any, Any]]:
        """All runs of the plan, by column: run, status, seconds, parameters, kept numbers (NaN
        where a run is not done).
        """
        return study_columns(self.ledger)

    def history(self, number: int) -> tuple[list[str], Array]:
        """(columns, rows) of the history kept of a run."""
        return history(self.ledger, number)

    def result(self, number: int) -> Result:
        """Compute a run again from its row, as a full Result: the same numbers, bit for bit (on the
        same kind of machine).

        Raises SimulationError for a number that is not in the plan and if the ledger contains
        another plan; also raises what the run raises.
        """
        return run_row(self.recipe, self._values(number))

    def scenario(self, number: int) -> Scenario:
        """The scenario of a run. Raises as ``result`` does."""
        return self.recipe.scenario(self._values(number))

    def _values(self, number: int) -> list[float]:
        """The values of a run, checked to be one of this study."""
        with Ledger(self.ledger) as ledger:
            row, made_with = ledger.row(number), ledger.fact("versions")
        values: list[float] = row.values.tolist()
        if len(values) != len(self.parameters) or self.recipe.key(values, made_with) != row.key:
            raise SimulationError(
                f"{self.ledger} contains another plan than this study: the study was changed, or "
                "not run yet; run it, or open the ledger's study with rf.Study.open"
            )
        return values

    def other_versions(self) -> dict[str, tuple[str, str]]:
        """{library: (version, version now)} of libraries that have changed since the plan was
        written: its runs would be computed again.
        """
        with Ledger(self.ledger) as ledger:
            before = ledger.fact("versions")
        pairs = {name: (before.get(name, "none"), now) for name, now in result_versions().items()}
        return {name: (then, now) for name, (then, now) in pairs.items() if then != now}

    def to_pandas(self) -> pandas.DataFrame:
        """A ``pandas.DataFrame``, a row per run. Needs the extra ``ramify[data]``."""
        return module("pandas", "data").DataFrame(self.table()).set_index("run")

    def to_xarray(self) -> xarray.Dataset:
        """An ``xarray.Dataset`` over run (and row, where histories were kept). Needs the extra
        ``ramify[data]``.
        """
        return study_dataset(self.ledger)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write all runs as .csv, .parquet, .zarr or .nc, by the suffix. Raises SimulationError for
        any other suffix.
        """
        export_study(self.ledger, path_of(path, SimulationError))

    def plot(self, columns: Sequence[str] | None = None) -> Figure:
        """A Matplotlib figure: the distribution of each number kept (or of some, by the names of
        their columns), and its dependence on each parameter.
        """
        return plot_study(self.ledger, columns)

    def page(self, path: str | os.PathLike[str], reports: Sequence[int] = ()) -> None:
        """Write the summary as one HTML file; ``reports``: runs whose own pages are written beside
        it and linked.
        """
        write_page(self.ledger, path_of(path, SimulationError), reports)

    @staticmethod
    def open(
        path: str | os.PathLike[str],
        metrics: Functions | None = None,
        metrics_version: str | None = None,
    ) -> Study:
        """The study in a ledger, from the ledger alone. metrics, metrics_version: its custom
        metrics, which a ledger cannot contain; see ``rf.study``.

        Raises SimulationError for a file that is not a ledger.
        """
        a_text("metrics_version", metrics_version, SimulationError)
        functions = _versioned(mapping_of("metrics", metrics), metrics_version)
        with Ledger(path_of(path, SimulationError)) as ledger:
            about, recipe, points = ledger.fact("study"), ledger.recipe(functions), ledger.plan()
            if list(recipe.paths) != ledger.fact("parameters"):
                raise SimulationError(
                    f"{ledger.path} is damaged: its parameters are not those of its recipe"
                )
            if not ledger.has_digests:
                warnings.warn(
                    f"{ledger.path} was written by an earlier version, without digests: damage to "
                    "its numbers would not be noticed. Running the study adds the digests",
                    stacklevel=2,
                )
        return Study(**about, recipe=recipe, points=points, ledger=ledger.path)


def study(
    what: str | os.PathLike[str] | None = None,
    *,
    ledger: str | os.PathLike[str] | None = None,
    metrics: Sequence[str] | Functions | None = None,
    metrics_version: str | None = None,
    **parts: object,
) -> Study:
    """A study, from a study file or from its parts as in such a file.

    what: path of a study file. parts: name, scenario (a name, a path, a mapping, or a Scenario),
    set, vary, points, keep, most_runs. ledger: path of the ledger, by default beside the study file
    or in the current folder. metrics: names to keep besides those of ``keep``, or custom metrics,
    {name: function of a Result that returns a number}. metrics_version: any text that you change
    when your metrics change; without it their code is compared, which works for functions and
    plain data, not for objects of your classes.

    Raises ModelError with all mistakes, each with its place, before anything is computed.
    """
    a_text("metrics_version", metrics_version, ModelError)
    functions = _versioned(metrics, metrics_version) if isinstance(metrics, Mapping) else {}
    more = [] if functions or metrics is None else names_of("metrics", metrics)
    if ledger is not None:
        ledger = path_of(ledger, SimulationError)
    if what is not None:
        if parts or functions or more:
            raise ModelError(
                "a study file contains all parts of its study; leave out "
                f"{', '.join([*parts] or ['metrics'])}"
            )
        path = path_of(what, ModelError)
        if path.suffix.lower() not in (".yaml", ".yml"):
            raise ModelError(f"{path} is not a study file; the suffix must be .yaml or .yml")
        spec = read_spec(read_text(path), str(path), path.parent)
        return Study(**vars(spec), ledger=Path(ledger or path.with_suffix(".db")))
    scenario = parts.get("scenario")
    folder = scenario.folder if isinstance(scenario, Scenario) else Path.cwd()
    text = _document(parts, more)
    spec = read_spec(text, "study", folder, functions)
    if isinstance(scenario, Scenario) and robot_key(scenario.robot) != robot_key(spec.recipe.robot):
        raise ModelError(
            f"the robot of {scenario.name!r} is not the one in its file; vary the numbers of the "
            "file instead"
        )
    return Study(**vars(spec), ledger=Path(ledger or f"{spec.name}.db"))


def _document(parts: Mapping[str, object], metrics: Iterable[str]) -> str:
    """The text of a study file with these parts."""
    document: dict[str, Any] = {"name": "study", **parts}
    if isinstance(scenario := document.get("scenario"), Scenario):
        document["scenario"] = scenario.document
    if metrics:
        keep = document.get("keep", {})
        own = names_of("metrics", metrics)
        document["keep"] = {**keep, "metrics": [*keep.get("metrics", []), *own]}
    try:
        return json.dumps(document, indent=1, default=_plain)
    except (TypeError, ValueError) as error:
        text = f"a study consists of texts, numbers, lists and mappings: {error}"
        raise ModelError(text) from None


def _versioned(metrics: Functions, version: str | None) -> dict[str, CustomMetric]:
    if version is None:
        return dict(metrics)
    return {
        name: Versioned(function, version) if callable(function) else function
        for name, function in metrics.items()
    }


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"not {value!r}")
