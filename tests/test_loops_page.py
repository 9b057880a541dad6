"""docs/loops.md: its counts are counted, its mechanisms are those built in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mechanisms import MECHANISMS

import ramify as rf
from ramify.loops.counting import counts

PAGE = Path(__file__).resolve().parent.parent / "docs" / "loops.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_counts_are_those_of_the_table() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (\d+) \| (\d+) \| (.*?) \| (.*?) \| (.*?) \|$", TEXT, re.MULTILINE
    )
    assert {row[0] for row in rows} == set(MECHANISMS) - {"hoeken_four_bar"}
    for name, whole, block, *columns in rows:
        found = counts(rf.load(name))
        assert (found.whole, found.block) == (int(whole), int(block))
        for cost, column in zip(found[:3], columns, strict=True):
            roots = f" + {cost.sqrt} √" if cost.sqrt else ""
            assert column == f"{cost.mul} / {cost.add} / {cost.div}{roots}"


def test_every_mechanism_is_listed() -> None:
    for name, loops, mobility in re.findall(
        r"^\| `(\w+)` \| (\d+) \| (\d+) \| [^/|]* \|$", TEXT, re.MULTILINE
    ):
        model = rf.load(name)
        assert len(model.loops) == int(loops)
        assert model.constraints(model.assemble().q).mobility == int(mobility)
    assert all(f"| `{name}` |" in TEXT for name in MECHANISMS)


def test_the_systems_without_an_order_have_no_count() -> None:
    robot = rf.Builder("loose")
    robot.link("a", mass=1, com=(1, 0, 0), inertia=(1, 1, 1)).link(
        "b", at=(1, 0, 0), mass=1, com=(1, 0, 0), inertia=(1, 1, 1)
    )
    robot.loop("rod", "distance", ("a", (1, 0, 0)), ("b", (1, 0, 0)), length=1.0)
    with pytest.raises(
        rf.LoopError,
        match="cannot be solved one after the other: 1 multipliers for 0 passive equations",
    ):
        counts(robot.model())
