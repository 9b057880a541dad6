"""The companion pages: every command that they name runs, and no figure or table is left out."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

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
    """Simulations for a tenth of a second only: their scenarios have tests elsewhere."""
    monkeypatch.chdir(tmp_path)
    words = shlex.split(command)[1:]
    words += ["--t-end", "0.1"] if words[0] == "simulate" else []
    words += ["--n", "4"] if words[0] == "stability" else []
    with pytest.raises(SystemExit) as stop:
        main(words)
    shown = capsys.readouterr()
    assert stop.value.code in (0, None), shown.err
    assert shown.out


def listed(text: str, kind: str) -> set[str]:
    """Numbers of the figures or of the tables that a text names; 6.7–6.9 are three of them."""
    found = set()
    for word, numbers in re.findall(r"(figure|table)s? ((?:[\d.–]+(?:, )?)+)", text):
        for chapter, first, last in re.findall(r"(\d+\.)(\d+)(?:–\d+\.(\d+))?", numbers):
            if word == kind:
                found |= {f"{chapter}{k}" for k in range(int(first), int(last or first) + 1)}
    return found


@pytest.mark.parametrize(
    ("kind", "last"),
    [
        ("figure", {3: 13, 4: 10, 5: 3, 6: 16, 7: 31, 8: 16, 9: 12, 10: 5}),
        ("table", {3: 8, 6: 12, 7: 7, 8: 4, 10: 12}),
    ],
)
def test_nothing_of_the_book_is_left_out(kind: str, last: dict[int, int]) -> None:
    """Of chapters 3 to 10; 1 and 2 show robots of others."""
    named = listed(PAGES["book"], kind)
    every = {f"{chapter}.{k}" for chapter, most in last.items() for k in range(1, most + 1)}
    assert sorted(every - named) == []


def test_nothing_is_to_do() -> None:
    for text in PAGES.values():
        assert not re.search(r"to do|TODO|tbd", text, re.IGNORECASE)
