"""What a type checker sees of ramify: typical user code passes mypy strict, and the functions that
users call most say what they take and return.
"""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ramify as rf
from ramify.api import other_names
from ramify.api import result as api_result

ROOT = Path(__file__).resolve().parent.parent


def test_typical_user_code_passes_mypy_strict(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import ramify as rf\n"
        "m = rf.load('planar_3r')\n"
        "m.energy(m.neutral(), 0.0).kinetik\n"
        "rf.simulate(m, t_end='soon')\n"
        "rf.rollout(m, 0.0, 0.0, steps=1.5, dt=0.1)\n"
        "x: str = m.mass_matrix(m.neutral())\n"
    )
    right = ROOT / "tests" / "typing" / "user_code.py"
    command = [sys.executable, "-m", "mypy", str(right), str(wrong)]
    # strict by pyproject.toml, and from the root, where the linter has left its cache
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout
    assert "user_code.py" not in found, found
    for line in (3, 4, 5, 6):
        assert f"wrong.py:{line}: error" in found, found


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for owner in (rf.Model, rf.Result, rf.Rollout, rf.Study):
        for name, member in inspect.getmembers(owner):
            if name.startswith("_"):
                continue
            function = member.fget if isinstance(member, property) else member
            if inspect.isfunction(function) and function.__module__.startswith("ramify"):
                yield f"{owner.__name__}.{name}", function
    yield from {"simulate": api_result.simulate, "rollout": rf.rollout, "study": rf.study}.items()


FUNCTIONS = dict(functions())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions_say_their_types(name: str) -> None:
    hints = inspect.get_annotations(inspect.unwrap(FUNCTIONS[name]))
    parameters = set(inspect.signature(inspect.unwrap(FUNCTIONS[name])).parameters) - {"self"}
    assert set(hints) == parameters | {"return"}
    assert "Any" not in hints.values()


def test_a_name_of_another_program_says_what_to_write():
    m = rf.load("two_link")
    for name in other_names.FUNCTIONS:
        assert callable(getattr(rf, name))
        with pytest.raises(AttributeError, match=rf"it is a function: rf\.{name}\(model"):
            getattr(m, name)
    for ours, theirs in other_names.METHODS.items():
        for part in ours.replace("model.", "").split(" or "):
            assert hasattr(m, part.split("(")[0]), part
        for name in theirs.split():
            with pytest.raises(AttributeError, match=re.escape(f"write model.{ours}")):
                getattr(m, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
        m.nonsense  # noqa: B018
    assert copy.deepcopy(m).nv == pickle.loads(pickle.dumps(m)).nv == 2
