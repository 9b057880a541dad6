"""Where LLVM is missing: straight-line Python for single states, NumPy for batches, the same numbers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.core.lookup import LookupTable
from ramify.core.scalar import atan2, floor, lookup, select, sqrt
from ramify.emit.python_code import python_source
from ramify.runtime.backend import PlainNumpy
from ramify.runtime.straight_python import StraightPython
from ramify.trace.interpret import interpret
from ramify.trace.program import Port, trace

HIDDEN = """
import sys
from importlib.machinery import PathFinder

class Hide:
    def find_spec(name, path=None, target=None):
        return None if name.split(".")[0] == "llvmlite" else PathFinder.find_spec(name, path, target)

sys.meta_path = [Hide if finder is PathFinder else finder for finder in sys.meta_path]
"""
QUESTIONS = """
import warnings
import numpy as np, ramify as rf

def answers():
    found = {}
    for name in ("two_link", "four_bar"):
        m = rf.load(name)
        state = m.assemble({"crank": 0.4}, {"crank": 1.0}) if m.loops else None
        q, v = m.random(seed=1) if state is None else (state.q, state.v)
        a = m.forward_dynamics(q, v, 0.0 * v)
        found |= {f"{name} a": a, f"{name} tau": m.inverse_dynamics(q, v, a), f"{name} M": m.mass_matrix(q)}
        found |= {f"{name} energy": np.array(m.energy(q, v)), f"{name} R": m.kinematics(q).rotation}
        found[f"{name} many"] = m.bias(np.tile(q, (100, 1)), np.tile(v, (100, 1)))
        found[f"{name} run"] = rf.simulate(m, 0.01, q, v).q[-1]
        found[f"{name} steps"] = rf.rollout(m, q, v, steps=3, dt=1e-3).q
        if not m.loops:
            found[f"{name} slopes"] = np.array(m.forward_dynamics_derivatives(q, v, a))
            found[f"{name} A"] = rf.linearize(m, q, v, a).A
    return found
"""
TELL = """
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    np.savez(sys.argv[1], **answers())
assert "llvmlite" not in sys.modules
print([str(w.message) for w in seen])
try:
    rf.load("two_link").kernel("bias", tier="unrolled")
except rf.RamifyError as error:
    print(error)
"""


def test_all_is_computed_without_llvm(tmp_path: Path) -> None:
    there = tmp_path / "answers.npz"
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN + QUESTIONS + TELL, str(there)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("llvmlite is not installed: ramify computes with Python") == 1
    assert "tier='unrolled' needs llvmlite" in done.stdout
    names: dict[str, Any] = {}
    exec(QUESTIONS, names)
    with np.load(there) as found:
        for key, own in names["answers"]().items():
            assert np.allclose(found[key], own, rtol=1e-8, atol=1e-9), key


def odd(x: list[Any], y: list[Any]) -> list[list[Any]]:
    a, b = x
    table = LookupTable(np.array([1.0, 4.0, 9.0]))
    return [
        [a / b, sqrt(a), atan2(a, b), select(a < b, a - b, a * b), select(b <= a, b, -a)],
        [floor(a), lookup(table, y[0]), (a + b) * (a + b) - 1.0 / (a + 3.0)],
        [2.5],
    ]


PORTS = [Port("x", (2,)), Port("y", ())], [Port("u", (5,)), Port("w", (3,)), Port("c", ())]


@pytest.mark.parametrize("x", [(0.7, 1.3), (1.3, 0.7), (-0.7, 0.2), (1.0, 0.0), (0.0, -0.0)])
def test_straight_python_is_what_the_graph_means(x: tuple[float, float]) -> None:
    """Also where Python raises and arrays give infinities or NaN."""
    program = trace("odd", odd, *PORTS)
    rows = [np.array([x, x]), np.array([[1.0], [7.0]])]
    with np.errstate(all="ignore"):
        meant = interpret(program, rows)
    found = [np.empty_like(a) for a in meant]
    flags = StraightPython(lambda: program, PlainNumpy(odd)).run(rows, found, 0, 2)
    for a, b in zip(found, meant, strict=True):
        assert np.allclose(a, b, rtol=1e-14, equal_nan=True)
    assert bool(flags) == (not all(np.isfinite(a).all() for a in meant))


def test_the_source_has_no_name_for_what_is_used_once() -> None:
    source, _ = python_source(trace("odd", odd, *PORTS))
    assert source.count("=") < 16
    assert "sqrt(i0_0)" in source


def test_calls_check_what_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists, options, wrong shapes and numbers that are not finite, as with compiled kernels."""
    monkeypatch.setattr("ramify.kernels.make._compiler", lambda: False)
    m = rf.from_dh([(0, 0, 0, 0)] * 2, [1, 1], [(0.5, 0, 0)] * 2, [(0, 0.1, 0.1)] * 2)
    q, v = np.array([0.3, -0.2]), np.array([1.0, 2.0])
    for _ in range(2):
        energy = m.energy(q, v)
        h = m.bias(q, v)
        assert m.kernel("bias").tier == "numpy"
    assert np.array_equal(m.bias([0.3, -0.2], v), h)
    out = np.empty(2)
    assert m.kernel("bias")(q, v, out=out) is out
    assert np.array_equal(out, h)
    assert np.allclose(m.bias(np.tile(q, (3, 1)), v), h)
    assert energy.kinetic == m.energy(q, v).kinetic > 0.0
    with pytest.raises(rf.StateError, match="it must be finite"):
        m.bias(np.array([np.nan, 0.0]), v)
    with pytest.raises(rf.StateError, match="has shape"):
        m.bias(np.zeros(3), v)
    with pytest.raises(rf.StateError, match="takes 2 arrays"):
        m.kernel("bias")(q)
