"""The ledger of a study: one SQLite file, in WAL mode, with one writer.

``plan`` lists the runs of the study as it is now, ``runs`` the outcome of every run that was ever
computed, under the digest of all that determines it. A transaction is complete or absent, even if
the process is killed or the disk is full.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import RamifyError, SimulationError
from ramify.studies.outputs import CustomMetric, Keep, Missing, code_of
from ramify.studies.recipe import Recipe
from ramify.studies.work import Outcome

FORMAT: Final = 1
_connect: Final = partial(sqlite3.connect, isolation_level=None, check_same_thread=False)
_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_APPLICATION: Final = 0x72616D69  # "rami"
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS plan (number INTEGER PRIMARY KEY, key BLOB NOT NULL, row BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS runs (
    key BLOB PRIMARY KEY, status TEXT NOT NULL CHECK (status IN ('done', 'failed', 'killed')),
    error TEXT NOT NULL, numbers BLOB NOT NULL, history BLOB NOT NULL, seconds REAL NOT NULL,
    host TEXT NOT NULL, ended REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS planned ON plan (key);
"""
_RECORD: Final = """
INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET
status = excluded.status, error = excluded.error, numbers = excluded.numbers,
history = excluded.history, seconds = excluded.seconds, host = excluded.host, ended = excluded.ended
WHERE runs.status <> 'done'
"""
_ROWS: Final = """
SELECT number, plan.key, row, status, error, numbers, {}, seconds
FROM plan LEFT JOIN runs USING (key)
"""


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


@contextmanager
def sound(path: str | os.PathLike[str]) -> Iterator[None]:
    """Contents of a ledger are read: SimulationError where they are not what ramify wrote."""
    try:
        yield
    except RamifyError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        said = f"{type(error).__name__}: {str(error)[:200]}"
        raise SimulationError(f"{os.fspath(path)} is damaged ({said})") from None


class Ledger:
    """A ledger, open for reading or writing. Raises SimulationError if it cannot be opened."""

    def __init__(self, path: str | os.PathLike[str], writer: bool = False) -> None:
        self.path = Path(path)
        self._db: Any = None
        self._lock: sqlite3.Connection | None = None
        if not writer and not os.path.isfile(self.path):
            raise SimulationError(f"{self.path}: there is no such ledger; run the study first")
        try:
            with self._reported():
                if writer:
                    self._lock = self._only_writer()
                self._open(writer)
        except BaseException:
            self._release()
            raise

    def _open(self, writer: bool) -> None:
        try:
            self._db = _connect(self.path, timeout=30.0)
            known, tables = self._seen()
        except sqlite3.OperationalError as error:
            if writer or _code(error) in _BUSY:
                raise
            self._release()
            self._db = self._unchanging(error)
            known, tables = self._seen()
        if known != _APPLICATION and (known or tables):
            raise SimulationError(
                f"{self.path} is a database of another program, not the ledger of a study"
            )
        if self._db.execute("PRAGMA user_version").fetchone()[0] > FORMAT:
            raise SimulationError(f"{self.path} was written by a newer version of ramify")
        if writer:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            with self._transaction():
                self._db.execute(f"PRAGMA application_id = {_APPLICATION}")
                self._db.execute(f"PRAGMA user_version = {FORMAT}")
                for statement in _TABLES.split(";\n"):
                    self._db.execute(statement)
        elif known == 0:
            raise SimulationError(f"{self.path} contains no study yet")

    def _seen(self) -> tuple[int, int]:
        """(application, number of tables) of the file."""
        ((known,),) = self._db.execute("PRAGMA application_id")
        ((tables,),) = self._db.execute("SELECT count(*) FROM sqlite_schema")
        return known, tables

    def _unchanging(self, error: sqlite3.Error) -> sqlite3.Connection:
        """The ledger in a folder that is not writable: SQLite has no index of readers there."""
        log = self.path.with_name(f"{self.path.name}-wal")
        if log.is_file() and log.stat().st_size:
            raise SimulationError(
                f"{self.path}: its folder cannot be written, and its last runs are still in "
                f"{log.name} ({error}); copy both files to a folder that you can write"
            )
        return _connect(f"{self.path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)

    def _only_writer(self) -> sqlite3.Connection:
        """A lock beside the ledger, which the system releases when its holder dies."""
        lock = _connect(f"{self.path}.lock", timeout=0.0)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            lock.close()
            if _code(error) not in _BUSY:
                raise
            raise SimulationError(
                f"another process is writing {self.path}; a ledger has one writer"
            ) from None
        return lock

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = _code(error)
            if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
                safe = "every run committed so far is safe: make room, then resume the study"
                text = f"{self.path}: the disk is full ({error}); {safe}"
            elif code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                text = f"{self.path} is not the ledger of a study, or is damaged: {error}"
            elif code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                folder, what = self.path.absolute().parent, "does not exist"
                if folder.is_dir():
                    what = "or the file itself cannot be written"
                text = f"{self.path}: the folder {folder} {what} ({error})"
            else:
                text = f"{self.path}: {error}"
            raise SimulationError(text) from error
        except UnicodeDecodeError as error:  # a text in it
            raise SimulationError(f"{self.path} is damaged: {error}") from None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Write the log back into the ledger and close it."""
        try:
            if self._lock is not None:
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error:
            pass  # the log stays beside the ledger; SQLite reads both
        finally:
            self._release()

    def _release(self) -> None:
        if self._db is not None:
            self._db.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- writing ----

    def replan(self, facts: Mapping[str, Any], keys: Sequence[bytes], points: Array) -> None:
        """Write the plan of the study as it is now. Runs of earlier plans stay."""
        rows = (
            (i, key, row.tobytes()) for i, (key, row) in enumerate(zip(keys, points, strict=True))
        )
        with self._reported(), self._transaction():
            self._db.execute("DELETE FROM plan")
            self._db.executemany("INSERT INTO plan VALUES (?, ?, ?)", rows)
            texts = [(name, json.dumps(value)) for name, value in facts.items()]
            self._db.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", texts)

    def record(self, outcomes: Iterable[tuple[bytes, Outcome]]) -> None:
        """Write runs, all or none of them. A run that is done is never overwritten."""
        now = time.time()
        rows = [
            (key, o.status, o.error, o.numbers, o.history, o.seconds, o.host, now)
            for key, o in outcomes
        ]
        with self._reported(), self._transaction():
            self._db.executemany(_RECORD, rows)

    # ---- reading ----

    def _all(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        with self._reported():
            return self._db.execute(text, values).fetchall()

    def fact(self, name: str, default: Any = None) -> Any:
        """A fact of the study. Raises SimulationError if it is missing and there is no default."""
        found = self._all("SELECT value FROM facts WHERE name = ?", name)
        if found:
            with sound(self.path):
                return json.loads(found[0][0])
        if default is None:
            raise SimulationError(f"{self.path} is incomplete: it has no entry {name!r}")
        return default

    def recipe(self, metrics: Mapping[str, CustomMetric] | None = None) -> Recipe:
        """The recipe of the study. A custom metric that is not given, or is another one, is
        Missing.
        """
        facts, given = self.fact("recipe"), dict(metrics or {})
        functions: dict[str, CustomMetric] = {
            name: given[name] if name in given and code_of(given[name]) == code else Missing(code)
            for name, code in self.fact("functions").items()
        }
        kept = facts.pop("keep")
        kept |= {"metrics": tuple(kept["metrics"]), "history": tuple(kept["history"])}
        paths = tuple(facts.pop("paths"))
        return Recipe(**facts, paths=paths, keep=Keep(**kept, functions=functions))

    def waiting(self, again: Sequence[str] = ()) -> list[tuple[int, bytes, bytes]]:
        """(number, key, values) of runs to compute, each once; ``again``: statuses to retry."""
        marks = ", ".join("?" * len(again))
        text = (
            "SELECT min(number), plan.key, row FROM plan LEFT JOIN runs USING (key) "
            f"WHERE status IS NULL OR status IN ({marks}) GROUP BY plan.key ORDER BY 1"
        )
        return self._all(text, *again)

    def count(self) -> Count:
        """The progress of the study."""
        text = (
            "SELECT status, count(*), total(seconds) FROM plan LEFT JOIN runs USING (key) "
            "GROUP BY status"
        )
        found = self._all(text)
        of = Counter({status: n for status, n, _ in found})
        total = sum((seconds for _, _, seconds in found), 0.0)
        return Count(of.total(), of["done"], of["failed"], of["killed"], of[None], total)

    def rows(self, history: bool = False) -> Iterator[RunRow]:
        """The runs of the plan, in its order."""
        text = _ROWS.format("history" if history else "x''") + " ORDER BY number"
        with self._reported():
            for found in self._db.execute(text):
                yield _row(*found)

    def row(self, number: int) -> RunRow:
        """One run of the plan. Raises SimulationError for a number that it does not have."""
        found = self._all(_ROWS.format("history") + " WHERE number = ?", number)
        if not found:
            ((last,),) = self._all("SELECT max(number) FROM plan")
            raise SimulationError(f"{self.path} has no run {number}; its runs are 0 to {last}")
        return _row(*found[0])

    def errors(self, most: int = 20) -> list[tuple[int, str, str]]:
        """(number, status, error) of runs that failed or were killed."""
        text = (
            "SELECT number, status, error FROM plan JOIN runs USING (key) "
            "WHERE status <> 'done' ORDER BY 1 LIMIT ?"
        )
        return self._all(text, most)

    def check(self) -> str:
        """SQLite's own check of the file: "ok", or the damage."""
        return "; ".join(str(line[0]) for line in self._all("PRAGMA integrity_check"))


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code of an error; 0 where Python itself raised it."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _row(number: int, key: bytes, row: bytes, status: str | None, *outcome: Any) -> RunRow:
    """A row of a query; fields of a waiting run are empty."""
    error, numbers, past, seconds = outcome
    values, kept = (np.frombuffer(x or b"", dtype=np.float64) for x in (row, numbers))
    return RunRow(number, key, values, status, error or "", kept, past or b"", seconds or 0.0)
