"""Ledgers that somebody damaged or crafted, with digests that fit or do not."""

from __future__ import annotations

import json
import shutil
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from crafted_results import changed_anywhere

import ramify as rf
from ramify.studies.ledger_tables import row_digest

FIRST_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE plan (number INTEGER PRIMARY KEY, key BLOB NOT NULL, row BLOB NOT NULL);
CREATE TABLE runs (
    key BLOB PRIMARY KEY, status TEXT NOT NULL CHECK (status IN ('done', 'failed', 'killed')),
    error TEXT NOT NULL, numbers BLOB NOT NULL, history BLOB NOT NULL, seconds REAL NOT NULL,
    host TEXT NOT NULL, ended REAL NOT NULL
);
CREATE INDEX planned ON plan (key);
"""
"""The tables of the first version, as it made them."""


def small_study(path: Path) -> rf.Study:
    """Three short runs with kept numbers and histories, done."""
    study = rf.study(
        scenario={"robot": "two_link", "t_end": 0.02, "initial": {"q_deg": [10, 20]}},
        vary={"damping": [0.0, 0.1, 0.2]},
        keep={"metrics": ["max_speed"], "history": {"of": ["q"]}},
        ledger=path,
    )
    assert study.run(engine="serial").done == 3
    return study


def edited(source: Path, target: Path, *statements: str | tuple[str, Any]) -> Path:
    """A copy of a ledger after some SQL."""
    shutil.copy(source, target)
    with closing(sqlite3.connect(target)) as db:
        db.create_function("row_digest", -1, row_digest)
        db.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            text, values = (statement, ()) if isinstance(statement, str) else statement
            db.execute(text, values)
        db.commit()
    return target


RENEWED = (
    "UPDATE facts SET digest = row_digest('facts', name, value)",
    "UPDATE plan SET digest = row_digest('plan', number, key, row)",
    "UPDATE runs SET history_digest = row_digest('history', history)",
    "UPDATE runs SET digest = row_digest('runs', key, status, error, numbers, history_digest, "
    "seconds, host, ended)",
)
"""Digests that fit whatever the rows are."""


def first_format(source: Path, target: Path) -> Path:
    """A ledger as the first version wrote it."""
    target.unlink(missing_ok=True)
    with closing(sqlite3.connect(target)) as db:
        db.executescript(FIRST_TABLES)
        db.execute("PRAGMA ignore_check_constraints = ON")
        db.execute("ATTACH ? AS now", (str(source),))
        db.execute("INSERT INTO facts SELECT name, value FROM now.facts WHERE name <> 'planned'")
        db.execute("INSERT INTO plan SELECT number, key, row FROM now.plan")
        fields = "key, status, error, numbers, history, seconds, host, ended"
        db.execute(f"INSERT INTO runs SELECT {fields} FROM now.runs")
        db.execute("PRAGMA application_id = 0x72616D69")
        db.execute("PRAGMA user_version = 1")
        db.commit()
    return target


def endless_pages(source: Path, target: Path) -> Path:
    """A ledger of which the pages of the table ``plan`` are a tree whose many branches all end in
    the same leaf: 500 to the eighth rows in a file of some kilobytes.
    """
    shutil.copy(source, target)
    with closing(sqlite3.connect(target)) as db:
        ((root,),) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'plan'")
        ((size,),) = db.execute("PRAGMA page_size")
    data = bytearray(target.read_bytes())
    leaf = bytes(data[(root - 1) * size : root * size])
    count = len(data) // size
    pages = [*range(count + 1, count + 9)]  # seven inner pages, then the leaf
    data += bytes(size) * len(pages)

    def inner(child: int) -> bytes:
        cells = min(400, (size - 12) // 7)
        page = bytearray(size)
        first = size - 5 * cells
        page[:12] = struct.pack(">BHHHBI", 5, 0, cells, first, 0, child)
        for i in range(cells):
            at = size - 5 * (i + 1)
            page[12 + 2 * i : 14 + 2 * i] = struct.pack(">H", at)
            page[at : at + 5] = struct.pack(">IB", child, 2)  # its largest key
        return bytes(page)

    for page, child in zip([root, *pages[:-1]], pages, strict=True):
        data[(page - 1) * size : page * size] = inner(child)
    data[(pages[-1] - 1) * size : pages[-1] * size] = leaf
    data[28:32] = struct.pack(">I", len(data) // size)
    target.write_bytes(data)
    return target


def crafted_ledger(source: Path, target: Path, rng: np.random.Generator) -> Path:
    """A ledger with something odd in it, mostly with digests that fit."""
    odd = [None, b"", b"\0" * 8, b"\xff" * 8, "", "x", 0, -1, 2**62, 1e300, "done", b"\0" * 8000]
    proofs = RENEWED if rng.random() < 0.8 else ()
    match int(rng.integers(5)):
        case 0 | 1:
            with closing(sqlite3.connect(source)) as db:
                texts = dict(db.execute("SELECT name, value FROM facts").fetchall())
            name = list(texts)[int(rng.integers(len(texts)))]
            text = json.dumps(changed_anywhere(json.loads(texts[name]), rng))
            change = ("UPDATE facts SET value = ? WHERE name = ?", (text, name))
        case 2:
            fields = ("status", "error", "numbers", "history", "seconds", "host", "ended")
            field = fields[int(rng.integers(len(fields)))]
            value = odd[int(rng.integers(len(odd)))]
            change = (f"UPDATE OR IGNORE runs SET {field} = ?", (value,))
        case 3:
            field = ("key", "row", "number")[int(rng.integers(3))]
            value = int(rng.integers(-3, 9)) if field == "number" else odd[int(rng.integers(12))]
            change = (f"UPDATE OR IGNORE plan SET {field} = ?", (value,))
        case _:
            table = ("facts", "plan", "runs")[int(rng.integers(3))]
            change = (f"DELETE FROM {table} WHERE random() % 3 = 0", ())
    return edited(source, target, change, *proofs)
