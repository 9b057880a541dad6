"""The companion pages: every command that they name runs, and no figure or table is left out."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import ramify as rf
from ramify.cli import main

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "companion"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
COMMANDS = sorted({c for text in PAGES.values() for c in re.findall(r"`(ramify [^`]+)`", text)})


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Simulations for a fiftieth of a second only: the lines of the pages and test_walking.py check
    the numbers that the pages give.
    """
    monkeypatch.chdir(tmp_path)
    words = shlex.split(command)[1:]
    words += ["--t-end", "0.02"] if words[0] == "simulate" else []
    words += ["--n", "3"] if words[0] == "stability" else []
    with pytest.raises(SystemExit) as stop:
        main(words)
    shown = capsys.readouterr()
    assert stop.value.code in (0, None), shown.err
    assert shown.out


def listed(text: str, kind: str) -> set[str]:
    """Numbers of the figures or of the tables that a text names; 6.7–6.9 are three of them."""
    found = set()
    number = r"(?:[A-D\d]+\.)?(?:\d+|[IVX]+|A1)"
    for word, numbers in re.findall(
        rf"(figure|table)s? ({number}(?:–{number})?(?:, {number}(?:–{number})?)*)", text
    ):
        for one in numbers.split(", ") if word == kind else ():
            first, _, last = one.partition("–")
            chapter, _, k = first.rpartition(".")
            if last:
                upto = int(last.rpartition(".")[2])
                found |= {f"{chapter}.{i}".lstrip(".") for i in range(int(k), upto + 1)}
            else:
                found.add(first)
    return found


NUMBERED = [
    ("book", "figure", {1: 2, 2: 6}),
    ("chapter-3", "figure", {3: 13}),
    ("chapter-3", "table", {3: 8}),
    ("chapter-4", "figure", {4: 10}),
    ("chapter-5", "figure", {5: 3}),
    ("chapter-6", "figure", {6: 16}),
    ("chapter-6", "table", {6: 12}),
    ("chapter-7", "figure", {7: 31}),
    ("chapter-7", "table", {7: 7}),
    ("chapter-8", "figure", {8: 16}),
    ("chapter-8", "table", {8: 4}),
    ("chapter-9", "figure", {9: 12}),
    ("chapter-10", "figure", {10: 5}),
    ("chapter-10", "table", {10: 12}),
    ("appendices", "figure", {"B": 6, "C": 4, "D": 3}),
    ("appendices", "table", {"B": 2}),
    ("saha-serial", "figure", {"": 10}),
    ("saha-serial", "table", {"": 3}),
    ("saha-inverse", "figure", {"": 3}),
    ("lin", "figure", {"": 3}),
    ("quinn-chang", "figure", {"": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("page", "kind", "last"), NUMBERED)
def test_nothing_is_left_out(page: str, kind: str, last: dict[Any, int]) -> None:
    """Every numbered figure and table of the documents has a row."""
    named = listed(PAGES[page], kind)
    every = {f"{c}.{k}".lstrip(".") for c, most in last.items() for k in range(1, most + 1)}
    assert sorted(every - named) == []


def test_tables_and_figures_with_other_numbers() -> None:
    assert {"I", "II"} <= listed(PAGES["lin"], "table")
    assert "A1" in listed(PAGES["lin"], "figure")


def test_every_erratum_names_a_check_that_exists() -> None:
    text = PAGES["errata"]
    shown = re.findall(r"`(test_\w+\.py)::(test_\w+)`", text)
    assert len(shown) > 30
    folder = Path(__file__).resolve().parent
    for file, name in shown:
        assert f"def {name}(" in (folder / file).read_text(encoding="utf-8"), (file, name)
    letters = set(re.findall(r"\| \(([a-z])\) \|", text))
    assert letters == set(re.findall(r"# \(([a-z])\)", text))


@pytest.mark.parametrize("page", sorted(PAGES))
def test_no_row_says_only_that_it_is_a_plot(page: str) -> None:
    """A row has what the text prints, or says that the text has no number; then it says what our
    numbers are compared with instead.
    """
    assert not re.search(r"\| *(?:a plot|plots?|curves?) *\|", PAGES[page])
    assert "not compared" not in PAGES[page]
    for line in PAGES[page].splitlines():
        if line.startswith("|") and re.search(r"\bno (?:number|torque)\b", line):
            assert re.search(r"Pinocchio|kinematics", line), line


def test_forces_at_touchdown() -> None:
    """Figure 7.6, the swinging foot, in rows of 1 ms."""
    r = rf.scenario("planar_biped_walk").run(t_end=1.0, dt_out=1e-3)
    assert r.contacts is not None
    foot = r.contacts["leg2_toe"] + r.contacts["leg2_heel"]
    row = next(x for x in PAGES["chapter-7"].splitlines() if x.startswith("| figure 7.6 |"))
    up, along = re.findall(r"with (\d+) N up and −(\d+) N along x", row)[0]
    assert float(up) == pytest.approx(foot[:, 2].max(), rel=0.01)
    assert float(along) == pytest.approx(-foot[:, 0].min(), rel=0.01)


def test_nothing_is_to_do() -> None:
    for text in PAGES.values():
        assert not re.search(r"to do|TODO|tbd", text, re.IGNORECASE)
