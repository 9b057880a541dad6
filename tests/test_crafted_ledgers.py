"""Ledgers that were damaged, or made to do harm: the numbers that were written, or an error that
names the damage, in bounded time and memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crafted_ledgers import RENEWED, edited, endless_pages, first_format, small_study

import ramify as rf
from ramify.cli import main
from ramify.studies.ledger import Ledger

QUESTIONS: dict[str, Callable[[Path], Any]] = {
    "open": lambda path: rf.Study.open(path),
    "status": lambda path: rf.Study.open(path).status(),
    "errors": lambda path: rf.Study.open(path).errors(),
    "table": lambda path: rf.Study.open(path).table(),
    "history": lambda path: rf.Study.open(path).history(1),
    "result": lambda path: rf.Study.open(path).result(1),
    "versions": lambda path: rf.Study.open(path).other_versions(),
    "page": lambda path: rf.Study.open(path).page(path.with_suffix(".html")),
    "export": lambda path: rf.Study.open(path).export(path.with_suffix(".nc")),
    "plot": lambda path: rf.Study.open(path).plot(),
    "repr": lambda path: rf.Study.open(path)._repr_html_(),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_study(tmp_path_factory.mktemp("ledger") / "s.db").ledger


def refusals(path: Path) -> list[str]:
    """What each question says of a ledger. Every one must refuse it."""
    said = []
    for name in ("open", "table", "page"):
        with pytest.raises(rf.SimulationError) as caught:
            QUESTIONS[name](path)
        said.append(str(caught.value))
    return said


def test_a_good_ledger_answers_every_question(good: Path) -> None:
    for ask in QUESTIONS.values():
        ask(good)
    with Ledger(good) as ledger:
        assert ledger.check() == "ok"


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM n) SELECT x"


@pytest.mark.parametrize(
    "statements",
    [
        ("DROP TABLE plan", f"CREATE VIEW plan AS {ENDLESS} AS number, x'00' AS key, x'' AS row, x'' AS digest FROM n"),
        ("DROP TABLE plan", "CREATE VIEW plan AS SELECT 0 AS number, x'00' AS key, zeroblob(900000000) AS row, x'' AS digest"),
        ("DROP TABLE facts", f"CREATE VIEW facts AS {ENDLESS} AS name, x AS value, x AS digest FROM n"),
        ("CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END",),
        ("DROP TABLE plan", "CREATE TABLE plan (number INTEGER PRIMARY KEY, key BLOB, row BLOB AS (zeroblob(900000000)), digest BLOB)"),
        ("DROP TABLE plan", "CREATE VIRTUAL TABLE plan USING fts5(number, key, row, digest)"),
        ("CREATE INDEX odd ON runs (hex(zeroblob(900000000)))",),
        ("CREATE TABLE more (x)",),
    ],
    ids=["endless view", "view of zeros", "view of facts", "trigger", "generated", "virtual", "index", "table"],
)  # fmt: skip
def test_only_our_own_tables_are_read(good: Path, tmp_path: Path, statements: tuple[str]) -> None:
    """An endless view made ``Study.open`` hang for ever, one of zeros took gigabytes."""
    path = edited(good, tmp_path / "s.db", "DELETE FROM runs", *statements)
    for said in refusals(path):
        assert "is not one that ramify made" in said
    with pytest.raises(rf.SimulationError, match="not one that ramify made"):
        Ledger(path, writer=True)


def test_an_endless_tree_of_pages_is_refused(good: Path, tmp_path: Path) -> None:
    """SQLite follows pages that lead to each other; the numbers of the plan come only once."""
    path = endless_pages(good, tmp_path / "s.db")
    for said in refusals(path):
        assert "damaged" in said
    with pytest.raises(rf.SimulationError, match="damaged"), Ledger(path) as ledger:
        ledger.count()


def test_queries_that_take_too_long_are_stopped(good: Path) -> None:
    with Ledger(good) as ledger, pytest.raises(rf.SimulationError, match="takes too long"):
        for _ in ledger._file.each(f"{ENDLESS} FROM n WHERE x < 0"):
            pass


def flipped(path: Path, column: str, table: str, bit: int) -> None:
    """Flip a bit of a field of the second row."""
    with closing(sqlite3.connect(path)) as db:
        ((number, data),) = db.execute(
            f"SELECT rowid, CAST({column} AS BLOB) FROM {table} LIMIT 1 OFFSET 1"
        )
        new = bytearray(data)
        new[bit // 8 % len(new)] ^= 1 << bit % 8
        kind = "TEXT" if isinstance(column, str) and column in ("error", "host") else "BLOB"
        db.execute(
            f"UPDATE {table} SET {column} = CAST(? AS {kind}) WHERE rowid = ?", (bytes(new), number)
        )
        db.commit()


@pytest.mark.parametrize("column", ["numbers", "host"])
@pytest.mark.parametrize("bit", [0, 13, 62])
def test_a_flipped_bit_is_found(good: Path, tmp_path: Path, column: str, bit: int) -> None:
    path = edited(good, tmp_path / "s.db")
    flipped(path, column, "runs", bit)
    with pytest.raises(rf.SimulationError, match=r"run \d is damaged: its record .* --damaged"):
        rf.Study.open(path).table()


DAMAGE: dict[str, tuple[str, str, str]] = {
    "a flipped value": ("open", "UPDATE plan SET row = x'0000000000002440' WHERE number = 1", "values of run 1"),
    "a swapped plan": ("open", "UPDATE plan SET number = CASE number WHEN 0 THEN -7 WHEN 1 THEN 0 ELSE number END", "no run 0"),
    "a cut plan": ("open", "DELETE FROM plan WHERE number = 2", "has 2 runs, and had 3"),
    "a hole in the plan": ("open", "DELETE FROM plan WHERE number = 1", "no run 1"),
    "a changed fact": ("open", "UPDATE facts SET value = replace(value, '0.02', '0.03') WHERE name = 'recipe'", "entry 'recipe' does not match"),
    "a missing fact": ("table", "DELETE FROM facts WHERE name = 'columns'", "no entry 'columns'"),
    "other numbers": ("table", "UPDATE runs SET numbers = x'0000000000000000'", "run 0 is damaged: its record"),
    "swapped runs": ("table", "UPDATE runs SET numbers = (SELECT r.numbers FROM runs r WHERE r.key <> runs.key LIMIT 1)", "is damaged: its record"),
    "a cut history": ("history", "UPDATE runs SET history = substr(history, 1, length(history) - 24)", "run 1 is damaged: its history does not"),
    "an empty history": ("export", "UPDATE runs SET history = x''", "run 0 is damaged: its history"),
    "a failed run as done": ("table", "UPDATE runs SET status = 'failed'", "run 0 is damaged"),
    "no such status": ("status", "UPDATE runs SET status = 'perhaps'", "run 0 is damaged: its status"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_named(good: Path, tmp_path: Path, name: str) -> None:
    question, statement, says = DAMAGE[name]
    path = edited(good, tmp_path / "s.db", statement)
    with pytest.raises(rf.SimulationError, match=says):
        QUESTIONS[question](path)
    with Ledger(path) as ledger:
        assert ledger.check() != "ok"


CRAFTED: dict[str, tuple[str, str, str]] = {
    "one number for all": ("table", "UPDATE runs SET numbers = x'0000000000000840'", "has 1 numbers, and the study keeps 5"),
    "no numbers": ("table", "UPDATE runs SET numbers = x''", "has 0 numbers"),
    "half a number": ("table", "UPDATE runs SET numbers = x'00000000'", "has 0.5 numbers"),
    "a history of another width": ("history", "UPDATE runs SET history = x'0000000000000840'", "history has 1 numbers, for 3 columns"),
    "no history": ("history", "UPDATE runs SET history = x''", "its history is missing"),
    "a number for a history": ("history", "UPDATE runs SET history = 7", "wrong kind"),
    "text for numbers": ("table", "UPDATE runs SET numbers = 'abc'", "wrong kind"),
    "endless seconds": ("table", "UPDATE runs SET seconds = 9e999", "status is not known|wrong kind"),
    "NaN for a value": ("open", "UPDATE plan SET row = x'000000000000F87F'", "values of run 0"),
    "many values": ("open", "UPDATE plan SET row = zeroblob(80)", "values of run 0"),
    "a number for a recipe": ("open", "UPDATE facts SET value = '3' WHERE name = 'recipe'", "'recipe' has the wrong kind"),
    "a deep fact": ("open", f"UPDATE facts SET value = '{'[' * 90_000}' WHERE name = 'study'", r"its entry 'study' cannot be read as JSON \(nested too deeply\); "),
    "a cut fact": ("table", "UPDATE facts SET value = '{' WHERE name = 'columns'", r"its entry 'columns' cannot be read as JSON \(Expecting property name"),
    "half a fact": ("open", "UPDATE facts SET value = '{\"name\"' WHERE name = 'study'", "'study' "),
    "two columns of a name": ("table", "UPDATE facts SET value = '[\"status\", \"a\", \"b\", \"c\", \"d\"]' WHERE name = 'columns'", "two of its columns have one name"),
    "other parameters": ("open", "UPDATE facts SET value = '[\"mass\"]' WHERE name = 'parameters'", "not those of its recipe"),
    "no steps between rows": ("open", "UPDATE facts SET value = replace(value, '\"every\": 1', '\"every\": 0') WHERE name = 'recipe'", "'recipe' has the wrong kind"),
}  # fmt: skip


@pytest.mark.parametrize("name", CRAFTED)
def test_rows_whose_digests_fit_are_not_believed_either(
    good: Path, tmp_path: Path, name: str
) -> None:
    """One number was broadcast over all columns; others were KeyError, TypeError, RecursionError."""
    question, statement, says = CRAFTED[name]
    path = edited(good, tmp_path / "s.db", statement, *RENEWED)
    with pytest.raises(rf.SimulationError, match=says):
        QUESTIONS[question](path)


def test_damaged_runs_are_computed_again(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    want = rf.Study.open(good).table()
    path = edited(good, tmp_path / "s.db", "UPDATE runs SET history = x'' WHERE rowid = 2")
    flipped(path, "numbers", "runs", 5)
    with pytest.raises(SystemExit) as ended:
        main(["sweep", "resume", str(path), "--engine", "serial", "--damaged"])
    assert not ended.value.code
    capsys.readouterr()
    assert rf.Study.open(path).table()["max_speed"].tolist() == want["max_speed"].tolist()
    with Ledger(path) as ledger:
        assert ledger.check() == "ok"
    with pytest.raises(rf.SimulationError, match="again must be 'killed', 'failed' or 'damaged'"):
        rf.Study.open(path).run(engine="serial", again=("lost",))


def test_ledgers_of_the_first_version_are_read_and_upgraded(good: Path, tmp_path: Path) -> None:
    path, want = first_format(good, tmp_path / "s.db"), rf.Study.open(good).table()
    with pytest.warns(UserWarning, match=r"without digests.*Running the study adds the digests"):
        old = rf.Study.open(path)
    for name, column in old.table().items():
        assert np.array_equal(column, want[name]), name
    assert old.history(2)[1].shape[1] == 3
    with Ledger(path) as ledger:
        assert not ledger.has_digests
        assert ledger.check() == "ok"
    assert old.run(engine="serial").done == 3
    with Ledger(path) as ledger, Ledger(good) as fresh:
        assert ledger.has_digests
        assert ledger.check() == "ok"
        assert [r.history for r in ledger.rows(True)] == [r.history for r in fresh.rows(True)]
    for name, column in rf.Study.open(path).table().items():
        assert np.array_equal(column, want[name]), name


def test_sizes_in_ledgers_of_the_first_version_are_checked(good: Path, tmp_path: Path) -> None:
    first = first_format(good, tmp_path / "first.db")
    path = edited(first, tmp_path / "s.db", "UPDATE runs SET numbers = x'0000000000000840'")
    with pytest.warns(UserWarning, match="without digests"):
        study = rf.Study.open(path)
    with pytest.raises(rf.SimulationError, match="run 0 is damaged: it has 1 numbers"):
        study.table()
    assert study.run(engine="serial", again=("damaged",)).done == 3
    assert np.isfinite(study.table()["max_speed"]).all()
