"""The ledger of a study: one SQLite file, in WAL mode, with one writer.

``plan`` lists the runs of the study as it is now, ``runs`` the outcome of every run that was ever
computed, under the digest of all that determines it, ``facts`` the study as a whole. A transaction
is complete or absent, even if the process is killed or the disk is full. What is read is what was
written, or an error names the damage.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from ramify.core.arrays import Array, whole
from ramify.core.errors import SimulationError
from ramify.studies.ledger_database import LedgerDatabase
from ramify.studies.ledger_facts import FACTS, read_fact, recipe_of
from ramify.studies.ledger_tables import FORMAT, STATUSES, row_digest
from ramify.studies.outputs import CustomMetric
from ramify.studies.recipe import Recipe
from ramify.studies.work import Outcome

_RECORD: Final = """
INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET
status = excluded.status, error = excluded.error, numbers = excluded.numbers,
history = excluded.history, seconds = excluded.seconds, host = excluded.host,
ended = excluded.ended, history_digest = excluded.history_digest, digest = excluded.digest
WHERE runs.status <> 'done'
"""
_RUN: Final = "status, error, numbers, {history}, seconds, host, ended"
_RUN_KINDS: Final = (str, str, bytes, bytes, float, str, float)
_REPLAN: Final = "run the study again from its file, which writes its plan anew and keeps its runs"
_AGAIN: Final = (
    "compute it again with run(again=('killed', 'damaged')) or ramify sweep resume --damaged"
)


class Count(NamedTuple):
    """Numbers of runs in the plan: all, done, failed (with an error), killed (its worker died),
    waiting; and the seconds of computing.
    """

    planned: int
    done: int
    failed: int
    killed: int
    waiting: int
    seconds: float


class RunRow(NamedTuple):
    """A run of the plan; ``status`` is None if it is still waiting."""

    number: int
    key: bytes
    values: Array
    status: str | None
    error: str
    numbers: Array
    history: bytes
    seconds: float


class _Sizes(NamedTuple):
    """How many numbers a row has: parameters, kept numbers, columns of a history."""

    parameters: int
    columns: int
    history: int


class Ledger:
    """A ledger, open for reading or writing. Raises SimulationError if it cannot be opened."""

    def __init__(self, path: str | os.PathLike[str], writer: bool = False) -> None:
        self._file = LedgerDatabase(path, writer)

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._file.path

    @property
    def has_digests(self) -> bool:
        """Whether its rows have digests; those of ledgers of the first version have none."""
        return self._file.format == FORMAT

    def close(self) -> None:
        """Write the log back into the ledger and close it."""
        self._file.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- writing ----

    def replan(self, facts: Mapping[str, Any], keys: Sequence[bytes], points: Array) -> None:
        """Write the plan of the study as it is now. Runs of earlier plans stay."""
        planned = (
            (i, k, row.tobytes()) for i, (k, row) in enumerate(zip(keys, points, strict=True))
        )
        rows = ((*row, row_digest("plan", *row)) for row in planned)
        about = {**facts, "planned": len(keys)}
        entries = [(name, json.dumps(value)) for name, value in about.items()]
        texts = [(*entry, row_digest("facts", *entry)) for entry in entries]
        self._file.write(
            ("DELETE FROM plan", [()]),
            ("INSERT INTO plan VALUES (?, ?, ?, ?)", rows),
            ("DELETE FROM facts", [()]),
            ("INSERT INTO facts VALUES (?, ?, ?)", texts),
        )

    def record(self, outcomes: Iterable[tuple[bytes, Outcome]]) -> None:
        """Write runs, all or none of them. A run that is done is never overwritten."""
        now, rows = time.time(), list[tuple[Any, ...]]()
        for key, o in outcomes:
            past = row_digest("history", o.history)
            fields = (key, o.status, o.error, o.numbers, past, float(o.seconds), o.host, now)
            stored = (*fields[:4], o.history, *fields[5:])
            rows.append((*stored, past, row_digest("runs", *fields)))
        self._file.write((_RECORD, rows))

    def forget_damaged(self) -> int:
        """Delete the runs that are not as they were written, so that they are computed again; the
        number of them.
        """
        sizes, damaged = self._sizes(), list[tuple[int]]()
        text = (
            f"SELECT runs.rowid, number, runs.key, {_RUN}, history_digest, runs.digest FROM runs "
            "LEFT JOIN plan USING (key)"
        ).format(history="history")
        for row, number, *run in self._file.each(text):
            if _damage(run, sizes if number is not None else None):
                damaged.append((row,))
        self._file.write(("DELETE FROM runs WHERE rowid = ?", damaged))
        return len(damaged)

    # ---- reading ----

    def fact(self, name: str) -> Any:
        """A fact of the study. Raises SimulationError if it is missing or damaged."""
        digest = "digest" if self.has_digests else "NULL"
        for value, proof in self._file.each(
            f"SELECT value, {digest} FROM facts WHERE name = ?", name
        ):
            try:
                fact = read_fact(name, value)
                if self.has_digests and proof != row_digest("facts", name, value):
                    raise ValueError("does not match its digest")
            except ValueError as error:
                text = f"{self.path} is damaged: its entry {name!r} {error}; {_REPLAN}"
                raise SimulationError(text) from None
            return fact
        if name == "units" and not self.has_digests:
            return {}  # the first ledgers have none
        raise SimulationError(f"{self.path} is incomplete: it has no entry {name!r}; {_REPLAN}")

    def recipe(self, metrics: Mapping[str, CustomMetric] | None = None) -> Recipe:
        """The recipe of the study. A custom metric that is not given, or is another one, is
        Missing.
        """
        return recipe_of(self.fact("recipe"), self.fact("functions"), metrics or {})

    def _sizes(self) -> _Sizes:
        names = {name: self.fact(name) for name in ("parameters", "columns", "history")}
        taken = ["run", "status", "seconds", *names["parameters"], *names["columns"]]
        if len(set(taken)) < len(taken):
            raise SimulationError(f"{self.path} is damaged: two of its columns have one name")
        return _Sizes(*map(len, names.values()))

    def _in_order(self, fields: str) -> Iterator[tuple[Any, ...]]:
        """Fields of the runs of the plan, which are numbered 0, 1, 2, ..."""
        text = f"SELECT number, {fields} FROM plan LEFT JOIN runs USING (key) ORDER BY number"
        count = 0
        for number, *rest in self._file.each(text):
            if number != count:
                raise SimulationError(
                    f"{self.path} is damaged: its plan has no run {count}; {_REPLAN}"
                )
            yield (number, *rest)
            count += 1
        if self.has_digests and count != (planned := self.fact("planned")):
            raise SimulationError(
                f"{self.path} is damaged: its plan has {count} runs, and had {planned} when it was "
                f"written; {_REPLAN}"
            )

    def waiting(self, again: Sequence[str] = ()) -> list[tuple[int, bytes, bytes]]:
        """(number, key, values) of runs to compute, each once; ``again``: statuses to retry."""
        found: dict[bytes, tuple[int, bytes, bytes]] = {}
        for number, key, row, status in self._in_order("plan.key, row, status"):
            if status is None or status in again:
                found.setdefault(key, (number, key, row))
        return list(found.values())

    def count(self) -> Count:
        """The progress of the study."""
        of, total = Counter[str | None](), 0.0
        for number, status, seconds in self._in_order("status, seconds"):
            if status is not None:
                self._check_status(number, status)
                total += seconds if isinstance(seconds, float) else 0.0
            of[status] += 1
        return Count(of.total(), of["done"], of["failed"], of["killed"], of[None], total)

    def errors(self, most: int = 20) -> list[tuple[int, str, str]]:
        """(number, status, error) of runs that failed or were killed."""
        failures: list[tuple[int, str, str]] = []
        for number, status, error in self._in_order("status, error"):
            if status is not None and len(failures) < most:
                self._check_status(number, status)
                if status != "done":
                    failures.append((number, status, str(error)))
        return failures

    def _check_status(self, number: int, status: object) -> None:
        if status not in STATUSES:
            raise self._damaged(number, "its status is not known")

    def _damaged(self, number: int, what: str) -> SimulationError:
        return SimulationError(f"{self.path}: run {number} is damaged: {what}; {_AGAIN}")

    def plan(self) -> Array:
        """The values (runs, parameters) of the plan."""
        size = len(self.fact("parameters"))
        digest = "plan.digest" if self.has_digests else "NULL"
        fields = f"plan.key, row, {digest}"
        rows = [self._values(size, *row) for row in self._in_order(fields)]
        return np.array(rows, dtype=np.float64).reshape(len(rows), size)

    def _values(self, size: int, number: int, key: bytes, row: bytes, proof: object) -> Array:
        """The values of a run, where they are what was written."""
        right = isinstance(key, bytes) and isinstance(row, bytes) and len(row) == 8 * size
        if right and self.has_digests:
            right = proof == row_digest("plan", number, key, row)
        values = np.frombuffer(row if right else b"", dtype=np.float64)
        if not right or not np.isfinite(values).all():
            raise SimulationError(
                f"{self.path} is damaged: the values of run {number} in its plan are not those "
                f"that were written; {_REPLAN}"
            )
        return values

    def rows(self, history: bool = False) -> Iterator[RunRow]:
        """The runs of the plan, in its order."""
        sizes = self._sizes()
        for found in self._in_order(self._row_fields(history)):
            yield self._row(sizes, history, *found)

    def row(self, number: int) -> RunRow:
        """One run of the plan. Raises SimulationError for a number that it does not have."""
        whole("run", number, 0, SimulationError)
        text = f"SELECT number, {self._row_fields(True)} FROM plan LEFT JOIN runs USING (key)"
        for found in self._file.each(f"{text} WHERE number = ?", number):
            return self._row(self._sizes(), True, *found)
        last = sum(1 for _ in self._in_order("1")) - 1
        raise SimulationError(f"{self.path} has no run {number}; its runs are 0 to {last}")

    def _row_fields(self, history: bool) -> str:
        proofs = ("plan.digest", "history_digest", "runs.digest")
        of_plan, *of_run = proofs if self.has_digests else ("NULL",) * 3
        run = _RUN.format(history="history" if history else "NULL")
        return ", ".join(("plan.key, row", of_plan, run, *of_run))

    def _row(
        self, sizes: _Sizes, history: bool, number: int, key: bytes, row: bytes, proof: object,
        *run: Any,
    ) -> RunRow:  # fmt: skip
        """A row of a query; fields of a waiting run are empty."""
        values = self._values(sizes.parameters, number, key, row, proof)
        status, error, numbers, rows, seconds, *_ = run
        if status is None:
            return RunRow(number, key, values, None, "", np.empty(0), b"", 0.0)
        if what := _damage((key, *run), sizes, history):
            raise self._damaged(number, what)
        kept = np.frombuffer(numbers, dtype=np.float64)
        return RunRow(number, key, values, status, error, kept, rows or b"", seconds)

    def check(self) -> str:
        """SQLite's own check of the file, then the digest of every row: "ok", or the damage."""
        found = [str(line[0]) for line in self._file.each("PRAGMA integrity_check")]
        if found != ["ok"]:
            return "; ".join(found)
        try:
            for name in FACTS.keys() - ({"planned"} if not self.has_digests else set()):
                self.fact(name)
            for _ in self.rows(history=True):
                pass
        except SimulationError as error:
            return str(error)
        return "ok"


def _damage(run: Sequence[Any], sizes: _Sizes | None, history: bool = True) -> str:
    """What is wrong with a run (key, status, ..., digests), or "". ``sizes``: those of its study,
    None for a run of an earlier plan; ``history``: whether it was read. Digests of None are not
    checked.
    """
    key, *fields, past, proof = run
    status, _, numbers, rows, seconds, _, ended = fields
    if not history:
        fields[3] = rows = b""
    if not all(map(isinstance, fields, _RUN_KINDS)):
        return "a field of it has the wrong kind"
    if proof is not None:
        if proof != row_digest("runs", key, *fields[:3], past, *fields[4:]):
            return "its record does not match its digest"
        if history and past != row_digest("history", rows):
            return "its history does not match its digest"
    if status not in STATUSES or not (isfinite(seconds) and isfinite(ended)):
        return "its status is not known"
    if sizes is None or status != "done":
        return "" if len(numbers) % 8 == 0 else "its numbers are cut"
    if len(numbers) != 8 * sizes.columns:
        return f"it has {len(numbers) / 8:g} numbers, and the study keeps {sizes.columns}"
    width = 8 * sizes.history
    if history and (len(rows) % width if width else rows):
        return f"its history has {len(rows) / 8:g} numbers, for {sizes.history} columns"
    return "its history is missing" if history and width and not rows else ""
