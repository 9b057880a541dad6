"""The file of a ledger, open for reading or writing. One process writes at a time; errors of SQLite
say what is wrong and what to do.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from ramify.core.errors import SimulationError
from ramify.studies.ledger_tables import FORMAT, Limits, check_schema, make_tables

_connect: Final = partial(sqlite3.connect, isolation_level=None, check_same_thread=False)
_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class LedgerDatabase:
    """A ledger's file. Raises SimulationError if it cannot be opened."""

    def __init__(self, path: str | os.PathLike[str], writer: bool) -> None:
        self.path = Path(path)
        self.format = 0
        self.db: Any = None
        self._limits: Limits | None = None
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
            self.db = _connect(self.path, timeout=30.0)
            self.format = self._checked_format(writer)
        except sqlite3.OperationalError as error:
            if writer or _code(error) in _BUSY or self._limits_exceeded:
                raise
            self._release()
            self.db = self._unchanging(error)
            self.format = self._checked_format(writer)
        if writer:
            self.db.execute("PRAGMA journal_mode = WAL")
            self.db.execute("PRAGMA synchronous = FULL")
            with self._transaction():
                make_tables(self.db, self.format)
            self.format = FORMAT
        elif self.format == 0:
            raise SimulationError(f"{self.path} contains no study yet")

    def _checked_format(self, writer: bool) -> int:
        """The format of the file, which is then safe to read. A reader sees the file as it is now,
        whatever is written meanwhile.
        """
        self._limits = Limits(self.db, self.path, writer)
        if not writer:
            self.db.execute("BEGIN")
        return check_schema(self.db, self.path)

    @property
    def _limits_exceeded(self) -> bool:
        return self._limits is not None and self._limits.exceeded

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
            elif code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_TOOBIG):
                text = f"{self.path} is not the ledger of a study, or is damaged: {error}"
            elif code == sqlite3.SQLITE_INTERRUPT:
                if not self._limits_exceeded:
                    raise KeyboardInterrupt from None  # it came while SQLite was at work
                text = f"{self.path} is damaged: reading it takes too long for a file of its size"
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
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.db.execute("COMMIT")
        except BaseException:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Write the log back into the ledger and close it."""
        try:
            if self._lock is not None:
                self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error:
            pass  # the log stays beside the ledger; SQLite reads both
        finally:
            self._release()

    def _release(self) -> None:
        if self.db is not None:
            self.db.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def each(self, text: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """The rows of a query."""
        with self._reported():
            if self._limits is not None:
                self._limits.renew()
            cursor = self.db.execute(text, values)
            while (row := cursor.fetchone()) is not None:
                yield row

    def write(self, *statements: tuple[str, Iterable[Sequence[object]]]) -> None:
        """Write in one transaction: statements, each with the rows that it is executed for."""
        with self._reported(), self._transaction():
            for text, rows in statements:
                self.db.executemany(text, rows)


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code of an error; 0 where Python itself raised it."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
