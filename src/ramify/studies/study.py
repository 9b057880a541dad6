"""Studies: many runs of one scenario, planned, made, kept, looked at."""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ramify.api.result import Result
from ramify.core.arrays import Array
from ramify.core.errors import ModelError, SimulationError
from ramify.kernels.keys import robot_key
from ramify.scenario_files.scenario import Scenario
from ramify.studies.engines import engine as engine_of
from ramify.studies.engines import survivors
from ramify.studies.export import export, history, table, to_pandas, to_xarray
from ramify.studies.ledger import Count, Ledger
from ramify.studies.outputs import Keep, Missing, code_of
from ramify.studies.plots import plot
from ramify.studies.progress import Progress
from ramify.studies.recipe import Recipe, versions
from ramify.studies.spec import Spec, read_spec, read_study_file
from ramify.studies.work import Task, run_row

TASK_SECONDS: Final = 0.5
TASK_BYTES: Final = 4 << 20
MOST_IN_TASK: Final = 256
"""A task is this much work at most, gives back this much, and has this many runs."""

Functions = Mapping[str, Callable[[Any], float]]


@dataclass(frozen=True)
class Study:
    """A study: its name, what makes its runs, the points (runs, parameters), and the path of its
    ledger.
    """

    name: str
    description: str
    text: str
    recipe: Recipe
    points: Array
    ledger: Path

    def __repr__(self) -> str:
        return f"<ramify.Study {self.name!r}: {len(self.points)} runs over {', '.join(self.recipe.paths) or 'nothing'}>"

    def __len__(self) -> int:
        return len(self.points)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The paths of what varies: the columns of ``points``."""
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
    ) -> Count:
        """Make the runs that have not been made. What is done stays done, whatever ends this call;
        call it again to go on.

        jobs: local processes, all cores unless told. engine: "processes", "serial", "dask" or
        "ray"; scheduler: address of the cluster. again: statuses ("killed", "failed") that are
        tried once more. Ctrl-C ends it, with what was made kept.

        Raises SimulationError where the ledger cannot be written (another writer, a full disk) or
        the engine is not there.
        """
        with Ledger(self.ledger, writer=True) as ledger:
            keys = [self.recipe.key(row) for row in self.points]
            ledger.replan(self._facts(), keys, self.points)
            tasks = _Tasks(ledger.waiting(again), len(self.parameters), uuid.uuid4().hex)
            missing = [
                name for name, f in self.recipe.keep.functions.items() if isinstance(f, Missing)
            ]
            if tasks.total and missing:
                text = (
                    f"{self.ledger} does not hold the functions of its metrics {', '.join(missing)}"
                )
                raise SimulationError(f"{text}; give them, unchanged, to Study.open(metrics=)")
            if tasks.total:
                self._work(ledger, keys, tasks, engine_of(engine, jobs, scheduler), progress)
            return ledger.count()

    def _work(
        self, ledger: Ledger, keys: Sequence[bytes], tasks: _Tasks, by: Any, progress: bool
    ) -> None:
        tasks.lanes = by.lanes
        try:
            with Progress(self.name, tasks.total, progress) as shown:
                for outcomes in survivors(by, self.recipe, tasks):
                    ledger.record((keys[o.number], o) for o in outcomes)
                    tasks.learn(outcomes)
                    shown.add(len(outcomes), sum(o.status != "done" for o in outcomes))
        finally:
            by.close()

    def _facts(self) -> dict[str, Any]:
        keep = self.recipe.keep
        kept = {
            "final": keep.final,
            "metrics": keep.metrics,
            "history": keep.history,
            "every": keep.every,
        }
        recipe = {
            name: value for name, value in self.recipe.__dict__.items() if name in _RECIPE
        } | {"keep": kept}
        return {
            "study": {"name": self.name, "description": self.description, "text": self.text},
            "recipe": recipe | {"fixed": dict(self.recipe.fixed)},
            "functions": {name: code_of(f) for name, f in keep.functions.items()},
            "parameters": self.parameters,
            "columns": self.columns,
            "history": keep.history_columns(self.recipe.robot),
            "versions": versions(),
        }

    # ---- looking ----

    def status(self) -> Count:
        """How far it is: Count(planned, done, failed, killed, waiting, seconds)."""
        with Ledger(self.ledger) as ledger:
            return ledger.count()

    def errors(self, most: int = 20) -> list[tuple[int, str, str]]:
        """(number, status, error) of runs that were set aside."""
        with Ledger(self.ledger) as ledger:
            return ledger.errors(most)

    def table(self) -> dict[str, np.ndarray[Any, Any]]:
        """All runs of the plan, by column: run, status, seconds, parameters, kept numbers (NaN
        where there is none).
        """
        return table(self.ledger)

    def history(self, number: int) -> tuple[list[str], Array]:
        """(columns, rows) of the history kept of a run."""
        return history(self.ledger, number)

    def result(self, number: int) -> Result:
        """Make a run once more from its row: the same numbers, bit for bit (on the same kind of
        machine). A full Result.

        Raises SimulationError for a number that is not in the plan, where the ledger holds another
        plan, and what the run raises.
        """
        return run_row(self.recipe, self._values(number))

    def scenario(self, number: int) -> Scenario:
        """The scenario of a run. Raises as ``result`` does."""
        return self.recipe.scenario(self._values(number))

    def _values(self, number: int) -> list[float]:
        """The values of a run, which is one of this study as it is in memory."""
        with Ledger(self.ledger) as ledger:
            row, made_with = ledger.row(number), ledger.fact("versions")
        values: list[float] = row.values.tolist()
        if len(values) != len(self.parameters) or self.recipe.key(values, made_with) != row.key:
            text = f"{self.ledger} holds another plan than this study: it was run from a changed study, or this one was not run"
            raise SimulationError(f"{text}; run this one, or open the ledger's with rf.Study.open")
        return values

    def other_versions(self) -> dict[str, tuple[str, str]]:
        """{library: (version, version now)} where the plan in the ledger was made with others: its
        runs would be made again.
        """
        with Ledger(self.ledger) as ledger:
            before, now = ledger.fact("versions"), versions()
        return {
            name: (before.get(name, "none"), now[name])
            for name in now
            if before.get(name, "none") != now[name]
        }

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``, a row per run. Needs the extra ``ramify[data]``."""
        return to_pandas(self.ledger)

    def to_xarray(self) -> Any:
        """An ``xarray.Dataset`` over run (and row, where histories were kept). Needs the extra
        ``ramify[data]``.
        """
        return to_xarray(self.ledger)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write all runs as .csv, .parquet, .zarr or .nc, by the suffix. Raises SimulationError for
        any other.
        """
        export(self.ledger, Path(path))

    def plot(self, columns: Sequence[str] | None = None) -> Any:
        """A Matplotlib figure: the distribution of each number kept, and its dependence on each
        parameter.
        """
        return plot(self.ledger, columns)

    def page(self, path: str | os.PathLike[str], reports: Sequence[int] = ()) -> None:
        """Write the summary as one HTML file; ``reports``: runs whose own pages are written beside
        it and linked.
        """
        from ramify.studies.page import write_page

        write_page(self, Path(path), reports)

    @staticmethod
    def open(path: str | os.PathLike[str], metrics: Functions | None = None) -> Study:
        """The study in a ledger, from the ledger alone. metrics: its functions of Python, which a
        ledger cannot hold.

        Raises SimulationError for a file that is no ledger.
        """
        with Ledger(path) as ledger:
            said, recipe, functions = (
                ledger.fact("study"),
                ledger.fact("recipe"),
                ledger.fact("functions"),
            )
            parameters = len(ledger.fact("parameters"))
            rows = [row.values for row in ledger.rows()]
        given = dict(metrics or {})
        for name, code in functions.items():
            if name not in given or code_of(given[name]) != code:
                given[name] = Missing(code)
        kept = recipe.pop("keep")
        keep = Keep(
            kept["final"],
            tuple(kept["metrics"]),
            tuple(kept["history"]),
            kept["every"],
            {n: given[n] for n in functions},
        )
        made = Recipe(**{**recipe, "paths": tuple(recipe["paths"])}, keep=keep)
        return Study(
            said["name"],
            said["description"],
            said["text"],
            made,
            np.array(rows).reshape(len(rows), parameters),
            Path(path),
        )


_RECIPE: Final = tuple(name for name in Recipe.__dataclass_fields__ if name != "keep")


class _Tasks:
    """Waiting runs cut into tasks: small at first, then of about half a second each, small again
    towards the end.
    """

    def __init__(
        self, rows: Sequence[tuple[int, bytes, bytes]], parameters: int, token: str
    ) -> None:
        self.total, self.lanes, self._token = len(rows), 1, token
        self._numbers = [number for number, _, _ in rows]
        self._values = np.frombuffer(b"".join(row for _, _, row in rows), dtype=np.float64).reshape(
            len(rows), parameters
        )
        self._next, self._lock = 0, threading.Lock()
        self._made, self._seconds, self._bytes = 0, 0.0, 0

    def __iter__(self) -> Iterator[Task]:
        return self

    def __next__(self) -> Task:
        with self._lock:
            first, left = self._next, self.total - self._next
            if not left:
                raise StopIteration
            size = min(self._size(), max(1, left // (2 * self.lanes)))
            self._next += size
        return Task(
            self._token,
            tuple(self._numbers[first : first + size]),
            self._values[first : first + size],
        )

    def _size(self) -> int:
        if not self._made:
            return 8
        seconds, kept = max(self._seconds / self._made, 1e-6), max(self._bytes / self._made, 1.0)
        wanted = max(TASK_SECONDS, 0.02 * self.lanes)
        return int(max(1, min(wanted / seconds, TASK_BYTES / kept, MOST_IN_TASK)))

    def learn(self, outcomes: Sequence[Any]) -> None:
        """How long runs take and how much they leave."""
        with self._lock:
            self._made += len(outcomes)
            self._seconds += sum(o.seconds for o in outcomes)
            self._bytes += sum(len(o.numbers) + len(o.history) for o in outcomes)


def study(
    what: str | os.PathLike[str] | None = None,
    *,
    ledger: str | os.PathLike[str] | None = None,
    metrics: Sequence[str] | Functions | None = None,
    **parts: Any,
) -> Study:
    """A study: from the path of a study file, or from its parts as in such a file.

    parts: name, scenario (a name, a path, a mapping, or a Scenario), set, vary, points, keep,
    most_runs. ledger: its file, beside the study file or in this folder unless told. metrics: names
    to keep besides those of ``keep``, or functions of Python, {name: result -> number}.

    Raises ModelError with all mistakes, each with its place, before anything is computed.
    """
    functions = dict(metrics) if isinstance(metrics, Mapping) else {}
    if what is not None:
        if parts or metrics:
            raise ModelError(
                "a study from a file has its parts there; leave out "
                f"{', '.join([*parts] or ['metrics'])}"
            )
        path = Path(os.fspath(what))
        if path.suffix.lower() not in (".yaml", ".yml"):
            raise ModelError(f"{path} is no study file; such a file ends in .yaml or .yml")
        return _made(
            read_study_file(path), Path(ledger) if ledger is not None else path.with_suffix(".db")
        )
    scenario, folder = _plain_scenario(parts.get("scenario"))
    document = {"name": "study", **parts} | ({"scenario": scenario} if scenario is not None else {})
    if metrics and not functions:
        document["keep"] = {
            **document.get("keep", {}),
            "metrics": [*document.get("keep", {}).get("metrics", []), *metrics],
        }
    try:
        text = json.dumps(document, indent=1, default=_plain)
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"a study is made of texts, numbers, lists and mappings: {error}"
        ) from None
    made = _made(
        read_spec(text, "study", folder, functions),
        Path(ledger if ledger is not None else f"{document['name']}.db"),
    )
    given: Any = parts.get("scenario")
    if hasattr(given, "robot") and robot_key(given.robot) != robot_key(made.recipe.robot):
        raise ModelError(
            f"the robot of {given.name!r} is not the one that its file names; vary the file's "
            "numbers instead"
        )
    return made


def _made(spec: Spec, ledger: Path) -> Study:
    return Study(spec.name, spec.description, spec.text, spec.recipe, spec.points, ledger)


def _plain_scenario(given: Any) -> tuple[Any, Path | None]:
    if hasattr(given, "document"):
        return json.loads(json.dumps(given.document)), given.folder
    return given, Path.cwd()


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{value!r} is none of them")
