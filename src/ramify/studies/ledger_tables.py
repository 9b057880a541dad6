"""The tables of a ledger, the digests of their rows, and what is checked of a file before it is
read: somebody may have damaged or crafted it.

Every row has a digest of its fields, under the name of its table. A digest shows damage, not
forgery: whoever writes a ledger can write its digests, too.
"""

from __future__ import annotations

import os
import sqlite3
from hashlib import blake2b
from pathlib import Path
from typing import Final

from ramify.core.errors import SimulationError

FORMAT: Final = 2
"""Ledgers of format 1 have no digests."""
APPLICATION: Final = 0x72616D69  # "rami"
STATUSES: Final = ("done", "failed", "killed")

_FACTS: Final = "facts (name TEXT PRIMARY KEY, value TEXT NOT NULL{}) WITHOUT ROWID"
_PLAN: Final = "plan (number INTEGER PRIMARY KEY, key BLOB NOT NULL, row BLOB NOT NULL{})"
_RUNS: Final = """runs (
    key BLOB PRIMARY KEY, status TEXT NOT NULL CHECK (status IN ('done', 'failed', 'killed')),
    error TEXT NOT NULL, numbers BLOB NOT NULL, history BLOB NOT NULL, seconds REAL NOT NULL,
    host TEXT NOT NULL, ended REAL NOT NULL{}
)"""
_DIGEST: Final = ", digest BLOB NOT NULL"
_PLANNED: Final = "CREATE INDEX planned ON plan (key)"


def _schema(*digests: str) -> dict[str, str]:
    """The statement that makes each table and index, by its name."""
    tables = {"facts": _FACTS, "plan": _PLAN, "runs": _RUNS}
    made = {name: f"CREATE TABLE {text}" for name, text in tables.items()}
    made = {name: made[name].format(digest) for name, digest in zip(made, digests, strict=True)}
    return made | {"planned": _PLANNED}


SCHEMAS: Final = {
    1: _schema("", "", ""),
    FORMAT: _schema(_DIGEST, _DIGEST, f", history_digest BLOB NOT NULL{_DIGEST}"),
}
"""The schema of each format."""

_UPGRADE: Final = {
    "facts": "name, value, row_digest('facts', name, value)",
    "plan": "number, key, row, row_digest('plan', number, key, row)",
    "runs": (
        "key, status, error, numbers, history, seconds, host, ended, row_digest('history', "
        "history), row_digest('runs', key, status, error, numbers, row_digest('history', history), "
        "seconds, host, ended)"
    ),
}
"""The fields of a row of today's format from one of the format before."""


def row_digest(table: str, *fields: bytes | str | float) -> bytes:
    """The digest (16 bytes) of the fields of a row."""
    digest = blake2b(table.encode(), digest_size=16)
    for field in fields:
        data = field if isinstance(field, bytes) else repr(field).encode("utf-8", "surrogatepass")
        digest.update(f" {type(field).__name__} {len(data)} ".encode())
        digest.update(data)
    return digest.digest()


# ---- limits ----

_PATIENCE: Final = 10_000
"""Instructions of SQLite between two looks at how many there were."""
_BASE: Final = 20_000_000
_PER_BYTE: Final = 100
"""Instructions that a query may take, and those for each byte of the file: a row has some fifty
bytes, and no query takes a hundred instructions for one.
"""
_LONGEST: Final = 1 << 26
"""Bytes of a field in a file that is smaller."""


class Limits:
    """Limits of a connection: time and memory in proportion to the size of the file."""

    def __init__(self, db: sqlite3.Connection, path: Path, writer: bool) -> None:
        self._path, self._left = path, 0
        db.execute("PRAGMA trusted_schema = OFF")  # no function of the file's own is called
        db.execute("PRAGMA cell_size_check = ON")
        if not writer:
            db.execute("PRAGMA query_only = ON")
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(self._size(), _LONGEST))
        db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        self.renew()
        db.set_progress_handler(self._spend, _PATIENCE)

    def _size(self) -> int:
        files = (self._path, self._path.with_name(f"{self._path.name}-wal"))
        return sum(os.path.getsize(file) for file in files if file.exists())

    def renew(self) -> None:
        """A query begins."""
        self._left = (_BASE + _PER_BYTE * self._size()) // _PATIENCE

    def _spend(self) -> bool:
        self._left -= 1
        return self._left < 0

    @property
    def exceeded(self) -> bool:
        """Whether a query was stopped since it took too long."""
        return self._left < 0


# ---- formats ----


def check_schema(db: sqlite3.Connection, path: Path) -> int:
    """The format of a ledger, 0 for a file without tables. Raises SimulationError for a file of
    another program, of a newer version, and for one with a view, a trigger, or any table, column or
    index that ramify did not make.
    """
    ((application,),) = db.execute("PRAGMA application_id")
    ((version,),) = db.execute("PRAGMA user_version")
    most = 2 * len(SCHEMAS[FORMAT])
    listed = db.execute(
        "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_autoindex\\_%' "
        f"ESCAPE '\\' LIMIT {most}"
    ).fetchall()
    if application != APPLICATION and (application or listed):
        raise SimulationError(f"{path} is a database of another program, not the ledger of a study")
    if version > FORMAT:
        raise SimulationError(f"{path} was written by a newer version of ramify")
    if not listed:
        return 0
    wanted = {name: " ".join(text.split()) for name, text in SCHEMAS.get(version, {}).items()}
    for kind, name, text in listed:
        if not isinstance(text, str) or wanted.pop(name, None) != " ".join(text.split()):
            raise SimulationError(
                f"{path} is not the ledger of a study, or is damaged: its {kind} "
                f"{str(name)[:40]!r} is not one that ramify made"
            )
    if wanted:
        raise SimulationError(f"{path} is damaged: it has no table {next(iter(wanted))!r}")
    return int(version)


def make_tables(db: sqlite3.Connection, version: int) -> None:
    """Make the tables of today's format, with the rows of an earlier one."""
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    if version == FORMAT:
        return
    schema = SCHEMAS[FORMAT]
    if version:
        db.create_function("row_digest", -1, row_digest, deterministic=True)
        db.execute("DROP INDEX planned")
        for name, fields in _UPGRADE.items():
            db.execute(f"ALTER TABLE {name} RENAME TO earlier")
            db.execute(schema[name])
            db.execute(f"INSERT INTO {name} SELECT {fields} FROM earlier")
            db.execute("DROP TABLE earlier")
        db.execute(schema["planned"])
        ((count,),) = db.execute("SELECT count(*) FROM plan")
        fact = ("planned", str(count))
        db.execute("INSERT INTO facts VALUES (?, ?, ?)", (*fact, row_digest("facts", *fact)))
    else:
        for text in schema.values():
            db.execute(text)
    db.execute(f"PRAGMA user_version = {FORMAT}")
