"""The reference is complete: every public name, every argument; and the pages speak plain English."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from pages import ROOT

import ramify as rf

API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
ERRORS = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")


def _written(kind: str) -> set[str]:
    return set(re.findall(rf"^\.\. auto{kind}:: (\S+)", API, re.MULTILINE))


def test_every_public_name_is_in_the_reference() -> None:
    """A directive for each name, or for the module that has it; directives name what exists."""
    modules = _written("module")
    found = set().union(*(_written(kind) for kind in ("function", "class", "exception", "data")))
    for name in rf.__all__:
        value = getattr(rf, name)
        if inspect.ismodule(value):
            public = {f"{value.__name__}.{inner}" for inner in getattr(value, "__all__", ())}
            assert value.__name__ in modules or public <= found, name
        else:
            assert f"ramify.{name}" in found, f"docs/api.md lacks ramify.{name}"
    assert modules


def _callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in rf.__all__:
        value = getattr(rf, name)
        if inspect.isclass(value):
            for inner, member in vars(value).items():
                if not inner.startswith("_") and callable(member):
                    yield f"{name}.{inner}", member
        elif callable(value) and not inspect.ismodule(value):
            yield name, value


def test_every_argument_is_explained() -> None:
    """By the docstring, or by the table of arguments that recur."""
    table = API.split("## Arguments that recur")[1].split("\n## ")[0]
    recurring = {
        name
        for line in table.splitlines()
        for name in re.findall(r"`(\w+)`", line[: line.find("|", 2)])
    }
    missing = []
    for name, function in _callables():
        text = inspect.getdoc(function) or ""
        assert text, f"{name} has no docstring"
        words = {word.lower() for word in re.findall(r"\w+", text)}
        missing += [
            f"{name}({argument})"
            for argument in inspect.signature(function).parameters
            if argument not in ("self", *recurring) and argument.lower() not in words
        ]
    assert not missing


def _nan(t: float, q: Any, v: Any) -> Any:
    return np.full(6, np.nan)


KUKA = rf.load("kuka_kr5")
MET: list[Callable[[], Any]] = [
    lambda: rf.load("kuka"),
    lambda: KUKA.pose(np.zeros(6), "tool0"),
    lambda: rf.from_dh([(0, 0, 0, 0)]).mass_matrix([0]),
    lambda: KUKA.inverse_dynamics(np.zeros(5), np.zeros(6), np.zeros(6)),
    lambda: KUKA.inverse_dynamics(np.zeros(6), np.zeros(6), [np.nan] * 6),
    lambda: rf.load("quadruped", base="free").energy(np.zeros(19), np.zeros(18)),
    lambda: rf.load("four_bar").inverse_dynamics([0, 1, 0], [0, 0, 0], [0, 0, 0]),
    lambda: rf.ik(KUKA, rf.motion.Target("link6", position=(5, 0, 0)), restarts=0),
    lambda: rf.simulate(KUKA, 0.1, control=_nan),
]


@pytest.mark.parametrize("ask", MET)
def test_the_page_of_errors_quotes_what_is_said(ask: Callable[[], Any]) -> None:
    with pytest.raises(rf.RamifyError) as raised:
        ask()
    quoted = re.findall(r"^\*\*`(.+?)`", ERRORS, re.MULTILINE)
    assert any(words in str(raised.value) for words in quoted), raised.value


def test_pages_avoid_odd_phrases() -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    import prose

    pages, modules = prose.read(prose.PAGES), prose.read(prose.sources())
    found = {name: list(prose.phrases(text)) for name, text in pages.items()}
    found |= {name: list(prose.source_phrases(text)) for name, text in modules.items()}
    assert not {name: phrases for name, phrases in found.items() if phrases}
    assert [words for _, words, _ in prose.phrases("It stands twice, `unless told`.\n")] == [
        "stands twice"
    ]


MODULE = '''"""There is no fault here."""
MOST = 3
"""So many rows."""


def f(x):
    """The same for x."""
    warn(f"{x} is no robot")
    raise ValueError("these are no joints" if x else f"{x} is no longer for ever {x} {x}")
    return "it is no message"
'''


def test_docstrings_and_messages_are_read_as_well() -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    import prose

    assert sorted((line, words) for line, words, _ in prose.source_phrases(MODULE)) == [
        (3, "So many"),
        (7, "The same"),
        (8, "is no robot"),
        (9, "are no joints"),
        (9, "for ever"),
    ]
