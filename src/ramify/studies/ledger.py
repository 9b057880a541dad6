"""The ledger of a study: one SQLite file, in WAL mode, with one writer.

``plan`` says which runs the study has now, ``runs`` what became of every run that was ever made,
under the digest of all that determines it. A transaction is whole or absent, whatever kills the
process or fills the disk.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import SimulationError
from ramify.studies.work import Outcome

FORMAT: Final = 1
_APPLICATION: Final = 0x72616D69  # "rami"
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS plan (number INTEGER PRIMARY KEY, key BLOB NOT NULL, row BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS runs (
    key BLOB PRIMARY KEY, status TEXT NOT NULL CHECK (status IN ('done', 'failed', 'killed')), error TEXT NOT NULL,
    numbers BLOB NOT NULL, history BLOB NOT NULL, seconds REAL NOT NULL, host TEXT NOT NULL, ended REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS planned ON plan (key);
"""
_RECORD: Final = """
INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET status = excluded.status, error = excluded.error,
numbers = excluded.numbers, history = excluded.history, seconds = excluded.seconds, host = excluded.host, ended = excluded.ended
WHERE runs.status <> 'done'
"""
_ROWS: Final = "SELECT number, plan.key, row, status, error, numbers, {}, seconds FROM plan LEFT JOIN runs USING (key)"


class Count(NamedTuple):
    """Runs of the plan: all, done, failed (the run said why), killed (it took its worker with it),
    still to do.
    """

    planned: int
    done: int
    failed: int
    killed: int
    waiting: int
    seconds: float


class Row(NamedTuple):
    """A run of the plan; ``status`` is None where it has not been made."""

    number: int
    key: bytes
    values: Array
    status: str | None
    error: str
    numbers: Array
    history: bytes
    seconds: float


class Ledger:
    """A ledger that is open for reading, or (``writer``) for writing. Raises SimulationError where
    that is not possible.
    """

    def __init__(self, path: str | os.PathLike[str], writer: bool = False) -> None:
        self.path = Path(path)
        self._db: Any = None
        self._lock: sqlite3.Connection | None = None
        if not writer and not self.path.is_file():
            raise SimulationError(f"{self.path}: there is no such ledger; start the study first")
        try:
            with self._told():
                if writer:
                    self._lock = self._only_writer()
                self._open(writer)
        except BaseException:
            self._let_go()
            raise

    def _open(self, writer: bool) -> None:
        try:
            self._db = sqlite3.connect(
                self.path, isolation_level=None, timeout=30.0, check_same_thread=False
            )
            known, tables = self._seen()
        except sqlite3.OperationalError as error:
            if writer or "locked" in str(error):
                raise
            self._let_go()
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
            raise SimulationError(f"{self.path} holds no study yet")

    def _seen(self) -> tuple[int, int]:
        """(application, number of tables) of the file."""
        known = self._db.execute("PRAGMA application_id").fetchone()[0]
        return known, self._db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]

    def _unchanging(self, error: sqlite3.Error) -> sqlite3.Connection:
        """The ledger in a folder that cannot be written, where SQLite cannot keep its notes on
        readers.
        """
        log = self.path.with_name(f"{self.path.name}-wal")
        if log.is_file() and log.stat().st_size:
            text = (
                f"its folder cannot be written, and its last runs are still in {log.name} ({error})"
            )
            raise SimulationError(
                f"{self.path}: {text}; copy both files to a folder that can be written"
            )
        address = f"{self.path.resolve().as_uri()}?mode=ro&immutable=1"
        return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)

    def _only_writer(self) -> sqlite3.Connection:
        """A lock beside the ledger that the system lets go of when its holder dies."""
        lock = sqlite3.connect(
            f"{self.path}.lock", isolation_level=None, timeout=0.0, check_same_thread=False
        )
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            lock.close()
            if "locked" not in str(error):
                raise
            raise SimulationError(
                f"{self.path} is being written by another process; a ledger has one writer"
            ) from None
        return lock

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if "full" in str(error) or "disk I/O" in str(error):
                safe = "every run committed so far is safe: make room, then resume the study"
                text = f"{self.path}: the disk is full ({error}); {safe}"
            elif "not a database" in str(error) or "malformed" in str(error):
                text = f"{self.path} is not the ledger of a study, or is damaged: {error}"
            elif "unable to open" in str(error) or "readonly" in str(error):
                folder = self.path.absolute().parent
                what = (
                    "or the file itself cannot be written" if folder.is_dir() else "does not exist"
                )
                text = f"{self.path}: the folder {folder} {what} ({error})"
            else:
                text = f"{self.path}: {error}"
            raise SimulationError(text) from error

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
        """Close, the log written back."""
        try:
            if self._lock is not None:
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error:
            pass  # the log stays beside the ledger, and is read with it
        finally:
            self._let_go()

    def _let_go(self) -> None:
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
        """Write what the study is now. Runs made before stay, whether or not the plan still has
        them.
        """
        rows = (
            (i, key, np.ascontiguousarray(row).tobytes())
            for i, (key, row) in enumerate(zip(keys, points, strict=True))
        )
        with self._told(), self._transaction():
            self._db.execute("DELETE FROM plan")
            self._db.executemany("INSERT INTO plan VALUES (?, ?, ?)", rows)
            said = [(name, json.dumps(value)) for name, value in facts.items()]
            self._db.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", said)

    def record(self, outcomes: Iterable[tuple[bytes, Outcome]]) -> None:
        """Write runs, all or none of them. A run that is done is never overwritten."""
        now = time.time()
        rows = [
            (key, o.status, o.error, o.numbers, o.history, o.seconds, o.host, now)
            for key, o in outcomes
        ]
        with self._told(), self._transaction():
            self._db.executemany(_RECORD, rows)

    # ---- reading ----

    def fact(self, name: str) -> Any:
        """A fact of the study. Raises SimulationError where there is none."""
        with self._told():
            found = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        if found is None:
            raise SimulationError(
                f"{self.path} says nothing about {name!r}; it is no complete ledger"
            )
        return json.loads(found[0])

    def waiting(self, again: Sequence[str] = ()) -> list[tuple[int, bytes, bytes]]:
        """(number, key, values) of the runs to make; ``again``: statuses that are tried once more.
        Equal runs are listed once.
        """
        marks = ", ".join("?" * len(again))
        text = (
            "SELECT min(number), plan.key, row FROM plan LEFT JOIN runs USING (key) "
            f"WHERE status IS NULL OR status IN ({marks}) GROUP BY plan.key ORDER BY 1"
        )
        with self._told():
            return self._db.execute(text, tuple(again)).fetchall()

    def count(self) -> Count:
        """How far the study is."""
        text = "SELECT status, count(*), total(seconds) FROM plan LEFT JOIN runs USING (key) GROUP BY status"
        with self._told():
            found = {status: (n, seconds) for status, n, seconds in self._db.execute(text)}
        of = {
            status: found.get(status, (0, 0.0))[0] for status in ("done", "failed", "killed", None)
        }
        total = sum(seconds for _, seconds in found.values())
        return Count(sum(of.values()), of["done"], of["failed"], of["killed"], of[None], total)

    def rows(self, history: bool = False) -> Iterator[Row]:
        """The runs of the plan, in its order."""
        with self._told():
            for found in self._db.execute(
                _ROWS.format("history" if history else "x''") + " ORDER BY number"
            ):
                yield _row(*found)

    def row(self, number: int) -> Row:
        """One run of the plan. Raises SimulationError where there is no such number."""
        with self._told():
            found = self._db.execute(
                _ROWS.format("history") + " WHERE number = ?", (number,)
            ).fetchone()
            if found is None:
                last = self._db.execute("SELECT max(number) FROM plan").fetchone()[0]
                raise SimulationError(f"{self.path} has no run {number}; its runs are 0 to {last}")
        return _row(*found)

    def errors(self, most: int = 20) -> list[tuple[int, str, str]]:
        """(number, status, error) of runs that were set aside."""
        text = "SELECT number, status, error FROM plan JOIN runs USING (key) WHERE status <> 'done' ORDER BY 1 LIMIT ?"
        with self._told():
            return self._db.execute(text, (most,)).fetchall()

    def check(self) -> str:
        """SQLite's own check of the file: "ok", or what is wrong."""
        with self._told():
            return "; ".join(str(line[0]) for line in self._db.execute("PRAGMA integrity_check"))


def _row(
    number: int, key: bytes, row: bytes, status: str | None, error: str | None, numbers: bytes | None, past: bytes | None,
    seconds: float | None,
) -> Row:  # fmt: skip
    """A row of a query; what a run that has not been made lacks is empty."""
    values, kept = (np.frombuffer(x or b"", dtype=np.float64) for x in (row, numbers))
    return Row(number, key, values, status, error or "", kept, past or b"", seconds or 0.0)
