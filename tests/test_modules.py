"""Kinematic modules: found automatically, or given and checked against the two conditions of
section 4.1.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ramify as rf
from ramify.api.builders import as_model
from ramify.api.model import Model
from ramify.model.build import LinkSpec, build
from ramify.model.joint import Joint
from ramify.model.modules import Module, check_modules, find_modules

build = as_model(build)

# A biped: the trunk carries two legs of three links; numbered leg by leg.
BIPED = {
    "trunk": None,
    "thigh1": "trunk",
    "shin1": "thigh1",
    "foot1": "shin1",
    "thigh2": "trunk",
    "shin2": "thigh2",
}


def robot(parents: dict[str, str | None], modules: list[list[str]] | None = None) -> Model:
    return build(
        "robot",
        [LinkSpec(n, p, Joint(n, "revolute"), 1.0) for n, p in parents.items()],
        modules=modules,
    )


def test_a_chain_is_one_module() -> None:
    assert find_modules([-1, 0, 1, 2]) == (Module(0, -1, (0, 1, 2, 3)),)


def test_a_run_ends_where_the_tree_branches() -> None:
    assert robot(BIPED).modules == (
        Module(0, -1, (0,)),
        Module(1, 0, (1, 2, 3)),
        Module(2, 0, (4, 5)),
    )


def test_chains_on_the_base_are_modules_of_their_own() -> None:
    assert find_modules([-1, 0, -1, 2]) == (Module(0, -1, (0, 1)), Module(1, -1, (2, 3)))


def test_bodies_of_a_module_need_not_be_numbered_in_a_run() -> None:
    assert find_modules([-1, 0, 0, 1, 2]) == (
        Module(0, -1, (0,)),
        Module(1, 0, (1, 3)),
        Module(2, 0, (2, 4)),
    )


trees = st.lists(st.integers(0, 10**6), min_size=1, max_size=40).map(
    lambda xs: [x % (i + 1) - 1 for i, x in enumerate(xs)]
)


@given(trees)
def test_found_modules_meet_the_conditions_and_cannot_be_longer(parents: list[int]) -> None:
    modules = find_modules(parents)
    names = [str(b) for b in range(len(parents))]
    assert check_modules([m.bodies for m in modules], parents, names) == modules
    for module in modules:
        assert module.parent < module.index
        if module.parent >= 0:
            siblings = [m for m in modules if m.parent == module.parent]
            assert len(siblings) > 1


@given(trees)
def test_single_links_are_always_modules(parents: list[int]) -> None:
    modules = check_modules(
        [(b,) for b in range(len(parents))], parents, [str(b) for b in range(len(parents))]
    )
    assert [m.parent for m in modules] == parents


def test_given_modules() -> None:
    legs = [["trunk"], ["thigh1", "shin1"], ["foot1"], ["thigh2", "shin2"]]
    model = robot(BIPED, legs)
    assert model.modules == (
        Module(0, -1, (0,)),
        Module(1, 0, (1, 2)),
        Module(2, 1, (3,)),
        Module(3, 0, (4, 5)),
    )


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        (
            [["trunk"], ["thigh1", "foot1"], ["shin1"], ["thigh2", "shin2"]],
            r"module 2 .* is not serial: 'foot1' .* 'thigh1'",
        ),
        (
            [["trunk", "thigh1", "shin1", "foot1"], ["thigh2", "shin2"]],
            r"module 2 .* last link .* split that one at 'trunk'",
        ),
        (
            [["thigh1", "shin1", "foot1"], ["trunk"], ["thigh2", "shin2"]],
            r"module 1 .* starts on 'trunk', .* parent modules first",
        ),
        (
            [["trunk"], ["thigh1", "shin1", "foot1"], ["shin1"]],
            r"module 3 .* 'shin1' is in two modules",
        ),
        ([["trunk"], ["thigh1", "shin1", "foot1"]], r"leave out 'thigh2', 'shin2'"),
        ([["trunk"], []], r"module 2 is empty"),
        (
            [["trunk"], ["thigh3"]],
            r"'thigh3', which is not a moving link; choose among trunk, thigh1",
        ),
    ],
)
def test_broken_conditions(modules: list[list[str]], message: str) -> None:
    with pytest.raises(rf.ModelError, match=message):
        robot(BIPED, modules)


def test_a_module_starts_at_the_last_link_of_its_parent() -> None:
    with pytest.raises(rf.ModelError, match="last link"):
        check_modules([(0, 1), (2,)], [-1, 0, 0], ["a", "b", "c"])
    assert len(check_modules([(0, 1), (2,)], [-1, 0, 1], ["a", "b", "c"])) == 2
