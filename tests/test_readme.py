"""The README's first example does what it says; that all of it runs is in test_docs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import PAGES

README = PAGES[0]


def test_first_example_keeps_its_promise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(README.blocks("python")[0], names)
    assert max(abs(names["a"])) < 1e-9  # type: ignore[call-overload]


def test_the_two_commands_are_in_the_makefile() -> None:
    makefile = (README.path.parent / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test"):
        assert f"make {target}" in README.text
        assert f"\n{target}:" in makefile
