"""Custom metrics: what they depend on is part of a run's key, and nothing of it is mixed up."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.studies.outputs import metric_code
from ramify.studies.work import Task, work

PARTS: dict[str, Any] = {
    "scenario": {"robot": "two_link", "t_end": 0.02},
    "vary": {"initial.q.joint1": [0.1, 0.2]},
}


def closing_over(value: Any) -> Callable[[Any], float]:
    return lambda result: float(np.sum(value))


def with_default(value: Any) -> Callable[..., float]:
    def metric(result: Any, by: Any = value, *, more: Any = value) -> float:
        return float(by) + float(more)

    return metric


class Stateful:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, result: Any) -> float:
        return float(self.value)


def plus(result: Any, value: float) -> float:
    return value


MAKERS: dict[str, Callable[[Any], Any]] = {
    "closure": closing_over,
    "defaults": with_default,
    "partial": lambda value: functools.partial(plus, value=value),
    "nested": lambda value: closing_over([{"a": (value, {value})}]),
    "array": lambda value: closing_over(np.array([value])),
}


@pytest.mark.parametrize("made", MAKERS.values(), ids=MAKERS)
def test_digests_tell_functions_apart_by_what_they_hold(made: Callable[[Any], Any]) -> None:
    assert metric_code(made(1.0)) == metric_code(made(1.0))
    assert len({metric_code(made(value)) for value in (1.0, 2.0, 1)}) == 3


def test_digests_know_globals_and_helpers() -> None:
    def under(text: str) -> str:
        space: dict[str, Any] = {"__name__": "somewhere"}
        exec(compile(text + "\ndef metric(r):\n    return helper() + LIMIT\n", "m", "exec"), space)
        return metric_code(space["metric"])

    base = under("LIMIT = 1\ndef helper(): return 1")
    assert base == under("LIMIT = 1\ndef helper(): return 1")
    assert base != under("LIMIT = 2\ndef helper(): return 1")
    assert base != under("LIMIT = 1\ndef helper(): return 2")
    assert under("LIMIT = 1\ndef helper(): return metric(0)") != base  # a circle ends


STABLE = """
import re, functools
import numpy as np
import ramify as rf
from ramify.studies.digest import function_digest as code_of
names = {"one", "two", "three", "four"}
def metric(r, a=frozenset(names), *, p="x"):
    known = r.status in {"ended", "stopped", "other"}
    return known + len(names) + bool(re.compile("x")) + np.ptp(r.q)
print(code_of(metric), code_of(functools.partial(metric, a=names)), code_of(rf.load))
"""


def test_digests_are_the_same_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(STABLE, encoding="utf-8")
    found = {
        subprocess.run(
            [sys.executable, str(tmp_path / "m.py")],
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in (1, 2)
    }
    assert len(found) == 1


def test_what_has_no_digest_is_refused(tmp_path: Path) -> None:
    lock = threading.Lock()

    def metric(result: rf.Result) -> float:
        with lock:
            return 1.0

    with pytest.raises(
        rf.ModelError,
        match=r"metric 'm': 'lock' is a lock, which has no digest; give your metrics a version",
    ):
        rf.study(**PARTS, metrics={"m": metric}, ledger=tmp_path / "s.db")
    with pytest.raises(rf.ModelError, match="metric 'm': 3 is not a function"):
        rf.study(**PARTS, metrics={"m": 3}, ledger=tmp_path / "s.db")  # type: ignore[dict-item]


def test_data_too_deep_for_a_digest_are_refused() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(rf.ModelError, match="nested too deeply"):
        metric_code(closing_over(deep))


def test_a_version_stands_for_the_code(tmp_path: Path) -> None:
    """Objects have no digest; with a version they need none, and another version counts anew."""
    for version, value, wanted in (("1", 1.0, 1.0), ("1", 2.0, 1.0), ("2", 2.0, 2.0)):
        parts = PARTS | {"metrics_version": version, "ledger": tmp_path / "s.db"}
        s = rf.study(**parts, metrics={"m": Stateful(value)})
        assert s.run(engine="serial").done == 2
        assert s.table()["m"].tolist() == [wanted, wanted]
    opened = rf.Study.open(s.ledger, {"m": Stateful(2.0)}, "2")
    assert opened.recipe.key([0.1]) == s.recipe.key([0.1])
    assert opened.recipe.keep.functions["m"](s.result(0)) == 2.0
    other = rf.Study.open(s.ledger, {"m": Stateful(2.0)}, "3")
    with pytest.raises(rf.ModelError, match="was not given"):
        other.recipe.keep.functions["m"](s.result(0))


def test_threads_of_two_studies_do_not_take_each_others_recipe(tmp_path: Path) -> None:
    """As in a worker with threads of Dask's: one recipe is kept, whichever came last."""
    made = [
        rf.study(**PARTS, metrics={"m": closing_over(float(i))}, ledger=tmp_path / f"{i}.db")
        for i in range(2)
    ]
    found: dict[int, set[bytes]] = {0: set(), 1: set()}

    def go(i: int) -> None:
        s = made[i]
        for _ in range(15):
            found[i] |= {
                o.numbers[-8:] for o in work(s.recipe, Task(f"study {i}", (0, 1), s.points))
            }

    threads = [threading.Thread(target=go, args=(i,)) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: {np.float64(i).tobytes()} for i in (0, 1)}


@pytest.mark.parametrize("engine", ["serial", "processes"])
def test_changed_functions_give_their_own_numbers(tmp_path: Path, engine: str) -> None:
    """The same ledger, the same processes, the same code; another value held."""
    for value in (1.0, 2.0):
        s = rf.study(**PARTS, metrics={"m": closing_over(value)}, ledger=tmp_path / "s.db")
        assert s.run(1, engine=engine).done == 2
        assert s.table()["m"].tolist() == [value, value]


def test_a_metric_that_exits_fails_alone(tmp_path: Path) -> None:
    def leaving(result: rf.Result) -> float:
        if result.q[0, 0] > 0.15:
            sys.exit(3)
        return 1.0

    s = rf.study(**PARTS, metrics={"leaving": leaving}, ledger=tmp_path / "s.db")
    count = s.run(engine="serial")
    assert (count.done, count.failed) == (1, 1)
    assert s.errors() == [(1, "failed", "SystemExit: 3")]


@pytest.mark.parametrize(
    "name", ["run", "status", "seconds", "initial.q.joint1", "final.q.joint1", "max_speed", ""]
)
def test_names_of_functions_are_their_own(tmp_path: Path, name: str) -> None:
    parts = PARTS | {"keep": {"metrics": ["max_speed"]}}
    with pytest.raises(
        rf.ModelError, match=f"metric '{name}': .*(already has a column|must be a text)"
    ):
        rf.study(**parts, metrics={name: closing_over(1.0)}, ledger=tmp_path / "s.db")
