"""Every public call with one argument at a time replaced by what users pass by mistake: an answer,
or one of our errors. ``tests/fuzzing.py --only calls`` goes through all of them.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from public_calls import NOT_CALLED, ODD, calls

import ramify as rf

SHARE = 9
"""One in so many of all cases is tried here."""
SLOW = ("Result.report", "Result.animate", "Study.page", "Study.plot", "Result.plot", "to_fmu", "to_c", "Model.casadi")  # fmt: skip

WRONG = {
    "bool": ("1.5", "text", "zeros", "empty list", "-1", "object"),
    "int": ("True", "1.5", "text", "nan", "zeros", "1j", "object", "[None]"),
    "float": ("True", "text", "nan", "1j", "zeros", "object", "[None]"),
    "str": ("True", "1.5", "object", "zeros", "bytes", "['a']"),
}
"""What an argument of a type is not."""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A word is a path in some calls."""
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", np.exceptions.ComplexWarning)  # half of a number is lost
        yield


def test_every_public_name_is_in_the_table() -> None:
    named = {name.rpartition(".")[2] for name in calls()} | {n.partition(".")[0] for n in calls()}
    functions = {n for n in rf.__all__ if not inspect.ismodule(getattr(rf, n))}
    assert not functions - named - NOT_CALLED


GROUPS = ("Model.", "closed.", "Result.", "Study.", "control.", "motion.", "contact.", "Builder")


def foreign(name: str) -> Iterator[str]:
    """Errors of a call that are not ours."""
    call = calls()[name]
    call.function(**call.right)
    for parameter in call.names:
        for odd, value in ODD.items():
            share = SHARE * 4 if name in SLOW else SHARE
            if crc32(f"{name} {parameter} {odd}".encode()) % share:
                continue
            try:
                call.function(**{**call.right, parameter: value})
            except rf.RamifyError as error:
                if not 0 < len(str(error)) < 20_000:
                    yield f"{name}({parameter}={odd}): a message of {len(str(error))} characters"
            except Exception as error:
                yield f"{name}({parameter}={odd}): {error!r}"


@pytest.mark.parametrize("group", [*GROUPS, "others"])
def test_odd_arguments_are_refused_in_our_own_words(group: str) -> None:
    chosen = [
        name
        for name in calls()
        if name.startswith(group) or (group == "others" and not name.startswith(GROUPS))
    ]
    assert chosen
    assert not [line for name in chosen for line in foreign(name)]


def typed() -> Iterator[tuple[str, str, str]]:
    """(call, parameter, type) of arguments of one plain type."""
    for name, call in calls().items():
        if name == "Frame" or name in SLOW:
            continue
        for parameter in inspect.signature(call.function).parameters.values():
            kind = str(parameter.annotation).replace(" | None", "")
            if kind in WRONG and parameter.name in call.names:
                yield name, parameter.name, kind


def test_arguments_of_another_type_are_not_taken_silently() -> None:
    """Any text is true, and True is one: both would be taken for what they are not."""
    taken = []
    for name, parameter, kind in typed():
        call = calls()[name]
        for odd in WRONG[kind]:
            if crc32(f"{name} {parameter} {odd}".encode()) % 2:
                continue
            try:
                call.function(**{**call.right, parameter: ODD[odd]})
            except rf.RamifyError:
                continue
            taken.append(f"{name}({parameter}={odd}), which is a {kind}")
    assert not taken


@pytest.mark.parametrize("switch", ["passive", "stops", "efforts"])
@pytest.mark.parametrize("odd", [np.zeros(0), np.ones(2), 0, "no"], ids=repr)
def test_switches_of_derivatives_are_true_or_false(switch: str, odd: Any) -> None:
    m = rf.load("two_link")
    x = np.zeros(2)
    for ask in (m.inverse_dynamics_derivatives, m.forward_dynamics_derivatives):
        with pytest.raises(rf.StateError, match=f"{switch} must be True or False"):
            ask(x, x, x, **{switch: odd})
    with pytest.raises(rf.StateError, match=f"{switch} must be True or False"):
        m.derivatives("inverse_dynamics", x, x, x, **{switch: odd})
