"""All runs of a ledger as one table: arrays, CSV, Parquet, Zarr, NetCDF, pandas, xarray."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import SimulationError
from ramify.core.memory import refuse_too_large
from ramify.documents.writing import whole_path
from ramify.studies.ledger import Ledger, RunRow

SUFFIXES: Final = (".csv", ".parquet", ".zarr", ".nc")
StudyTable = dict[str, np.ndarray[Any, Any]]


def study_columns(path: Path) -> StudyTable:
    """Columns by name: run, status ("done", "failed", "killed" or "waiting"), seconds, the
    parameters, the kept numbers.
    """
    with Ledger(path) as ledger:
        parameters, columns = ledger.fact("parameters"), ledger.fact("columns")
        count = ledger.count().planned
        refuse_too_large("the table", (count, len(parameters) + len(columns) + 2), "keep less")
        values, numbers = np.empty((count, len(parameters))), np.full((count, len(columns)), np.nan)
        number, seconds = np.empty(count, dtype=np.int64), np.empty(count)
        status: list[str] = []
        for i, row in enumerate(ledger.rows()):
            number[i], seconds[i], values[i] = row.number, row.seconds, row.values
            if row.status == "done":
                numbers[i] = row.numbers
            status.append(row.status or "waiting")
    out: StudyTable = {"run": number, "status": np.array(status), "seconds": seconds}
    named = zip([*parameters, *columns], [*values.T, *numbers.T], strict=True)
    return out | dict(named)


def history(path: Path, number: int) -> tuple[list[str], Array]:
    """(columns, rows) of the history of a run. Raises SimulationError if none was kept."""
    with Ledger(path) as ledger:
        columns, row = ledger.fact("history"), ledger.row(number)
    if not columns:
        raise SimulationError(
            f"{path} keeps no histories; ask for them with keep: {{history: {{of: [q, v]}}}}"
        )
    if not row.history:
        why = f"{row.status or 'waiting'}{f', {row.error}' if row.error else ''}"
        raise SimulationError(f"run {number} has no history: it is {why}")
    return columns, _history(row, columns)


def _history(row: RunRow, columns: Sequence[str]) -> Array:
    """The history of a run (rows, columns); no rows where it has none."""
    return np.frombuffer(row.history, dtype=np.float64).reshape(-1, len(columns))


def study_dataset(path: Path) -> Any:
    """A Dataset over run; histories over (run, row, column), NaN after the end of a shorter one."""
    xarray = module("xarray", "data")
    values = study_columns(path)
    run = values.pop("run")
    with Ledger(path) as ledger:
        columns, about = ledger.fact("history"), ledger.fact("study")
        units = {"seconds": "s", **ledger.fact("units")}
        data: dict[str, Any] = {
            name: ("run", column, {"units": units[name]} if units.get(name) else {})
            for name, column in values.items()
        }
        coordinates: dict[str, Any] = {"run": run}
        if columns:
            rows = [_history(row, columns) for row in ledger.rows(history=True)]
            longest = max(map(len, rows), default=0)
            refuse_too_large(
                "all histories", (len(rows), longest, len(columns)), "export them as .parquet"
            )
            full = np.full((len(rows), longest, len(columns)), np.nan)
            for i, one in enumerate(rows):
                full[i, : len(one)] = one
            data["history"] = (("run", "row", "column"), full)
            coordinates["column"] = columns
    return xarray.Dataset(data, coordinates, {"study": about["name"], "text": about["text"]})


def export_study(path: Path, target: Path) -> None:
    """Write all runs or nothing. Raises SimulationError for an unknown suffix or a failure."""
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        raise SimulationError(f"{target}: the suffix must be one of {', '.join(SUFFIXES)}")
    with whole_path(target, SimulationError) as passing:
        _WRITERS[suffix](path, passing)


def _csv(path: Path, target: Path) -> None:
    found = study_columns(path)
    with open(target, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(found)
        writer.writerows(zip(*(column.tolist() for column in found.values()), strict=True))


def _parquet(path: Path, target: Path) -> None:
    arrow, parquet = module("pyarrow", "export"), module("pyarrow.parquet", "export")
    columns: dict[str, Any] = dict(study_columns(path))
    with Ledger(path) as ledger:
        names, about = ledger.fact("history"), ledger.fact("study")
        rows = [_history(row, names) for row in ledger.rows(history=True)] if names else []
        columns |= {f"history.{name}": [row[:, i] for row in rows] for i, name in enumerate(names)}
    said = {"study": about["name"], "text": about["text"]}
    parquet.write_table(arrow.table(columns).replace_schema_metadata(said), target)


def _zarr(path: Path, target: Path) -> None:
    module("zarr", "export")
    _plain(path).to_zarr(target, mode="w", zarr_format=2)


def _netcdf(path: Path, target: Path) -> None:
    _plain(path).to_netcdf(target, engine="scipy")


def _plain(path: Path) -> Any:
    """The Dataset with texts of fixed length, as the formats want them."""
    dataset = study_dataset(path)
    dataset["status"] = dataset["status"].astype("S8")
    return dataset


_WRITERS: Final = {".csv": _csv, ".parquet": _parquet, ".zarr": _zarr, ".nc": _netcdf}


def module(name: str, extra: str) -> Any:
    """An optional library. Raises SimulationError with the extra that installs it."""
    try:
        return import_module(name)
    except ImportError:
        needs = f"this needs {name.partition('.')[0]}"
        raise SimulationError(f"{needs}; install it with: pip install 'ramify[{extra}]'") from None
