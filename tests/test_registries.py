"""Registries and what is remembered: one way for all kinds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

import ramify as rf
from ramify.core.cached import Memo
from ramify.core.registry import NamedEntries
from ramify.files.formats import FORMATS
from ramify.integrate.integrators import INTEGRATORS
from ramify.kernels.algorithms import ALGORITHMS
from ramify.model.joint import JOINT_KINDS
from ramify.trace.ops import OPS

ROOT = Path(__file__).resolve().parent.parent
TABLES = (ALGORITHMS, FORMATS, INTEGRATORS, JOINT_KINDS, OPS)


@dataclass(frozen=True)
class Tool:
    name: str


def test_an_entry_is_added_once() -> None:
    hammer = Tool("hammer")
    tools: NamedEntries[Tool] = NamedEntries("tool", [hammer], error=rf.ModelError)
    saw = tools.add(Tool("saw"), "saw", "blade")
    assert list(tools) == ["hammer", "saw", "blade"]
    with pytest.raises(rf.ModelError, match="the tool 'blade' exists already"):
        tools.add(Tool("blade"))
    with pytest.raises(rf.ModelError, match="'hammer' exists already"):
        tools.add(saw, "new", "hammer")
    assert "new" not in tools, "all names or none"
    tools.remove(saw)
    assert tools == {"hammer": hammer}


def test_registries_of_rows_are_of_one_kind() -> None:
    for table in TABLES:
        assert type(table) is NamedEntries
        name, entry = next(iter(table.items()))
        with pytest.raises(rf.RamifyError, match="exists already"):
            table.add(entry, name)  # type: ignore[arg-type]


def test_contributing_shows_one_way_to_add() -> None:
    code = "\n".join(
        re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    )
    assert not re.findall(r"^[A-Z_]+\[.*\] =|^register\(", code, re.MULTILINE)
    assert len(re.findall(r"^@?(?:rf\.control\.)?[A-Z_]+\.add\(", code, re.MULTILINE)) >= 9


def test_a_memo_makes_a_value_once_and_forgets_the_oldest() -> None:
    memo, made = Memo(most=2), []
    for key in "aabca":
        assert memo.remember(key, lambda key=key: made.append(key) or key.upper()) == key.upper()
    assert made == ["a", "b", "c", "a"]
    assert list(memo) == ["c", "a"]
    assert memo.keep("c", "other") == "C"
    assert memo.remember("none", lambda: None) is None
    assert "none" in memo


def test_what_is_remembered_is_in_a_memo() -> None:
    """Not under hidden keys of an object, nor in dictionaries that each count their entries."""
    hidden = re.compile(r"__dict__\.setdefault|\.memo\.(get|setdefault)\(|\.pop\(next\(iter\(")
    places = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        if path.name != "cached.py"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if hidden.search(line)
    ]
    assert not places
