"""The README's Python runs as it stands, and its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parent.parent / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_there_is_an_example() -> None:
    assert BLOCKS


@pytest.mark.parametrize("block", BLOCKS, ids=[f"block{i + 1}" for i in range(len(BLOCKS))])
def test_blocks_run(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block, str(README), "exec"), {"__name__": "__main__"})


def test_first_example_keeps_its_promise() -> None:
    names: dict[str, object] = {}
    exec(BLOCKS[0], names)
    assert max(abs(names["a"])) < 1e-9  # type: ignore[call-overload]


def test_commands_exist() -> None:
    from ramify.cli import app

    commands = re.findall(r"^ramify (\w+)", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert commands
    for command in commands:
        assert command in app


def test_links_lead_somewhere() -> None:
    for page in (README, *README.parent.joinpath("docs").glob("*.md")):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
