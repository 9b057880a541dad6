"""The graph, its folding, and every operation in every form: floats, interpreter, compiled code, C
text.
"""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ramify.core.jet import Jet, rate, value
from ramify.core.lookup import LookupTable
from ramify.core.scalar import apply, atan2, cos, floor, lookup, select, sin, sqrt
from ramify.emit.c99 import c_function, c_library
from ramify.emit.python_code import python_source
from ramify.runtime import backend
from ramify.runtime.backend import Unrolled
from ramify.runtime.cache_keys import digest
from ramify.trace.differentiate import adjoint, tangent
from ramify.trace.graph import Graph
from ramify.trace.interpret import interpret
from ramify.trace.op_count import op_count
from ramify.trace.ops import OPS, Op
from ramify.trace.program import Port, Program, trace

NUMBERS = LookupTable([0.5, -1.25, 3.0, 7.5, -2.0])
TEXTS = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "neg": lambda x, y: -x,
    "recip": lambda x, y: 1.0 / x,
    "sqrt": lambda x, y: sqrt(x * x),
    "floor": lambda x, y: floor(4.0 * x),
    "sin": lambda x, y: sin(x),
    "cos": lambda x, y: cos(x),
    "atan2": lambda x, y: atan2(x, y),
    "lt": lambda x, y: select(x < y, x, y),
    "le": lambda x, y: select(x <= y, x, y),
    "select": lambda x, y: select(x > 0.0, y, -y),
    "lookup": lambda x, y: lookup(NUMBERS, floor(3.0 * x) + 2.0),
}


def test_every_operation_is_tested() -> None:
    assert set(TEXTS) == set(OPS) - {"const", "symbol"}


def test_a_row_is_all_that_an_operation_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The hyperbolic tangent, added from outside: floats, arrays, the interpreter, derivatives in
    both directions, C, Python, compiled code, counts.
    """

    def tanh(x: Any) -> Any:
        return apply("tanh", x)

    row = Op(
        "tanh", 1, tanh, lambda value, x: (1.0 - value * value,),
        c="tanh{f}({0})", python="tanh({0})", on_floats=math.tanh, cost="div",
        llvm=lambda w, x: w.call("tanh", x),
    )  # fmt: skip
    monkeypatch.setitem(OPS, "tanh", row)
    ports = (Port("x", (1,)),)
    program = trace("f", lambda x: [[2.0 * tanh(3.0 * x[0])]], ports, (Port("z", (1,)),))
    x = np.random.default_rng(1).normal(size=(19, 1))
    wanted, slope = 2.0 * np.tanh(3.0 * x), 6.0 / np.cosh(3.0 * x) ** 2
    assert tanh(0.3) == math.tanh(0.3)
    np.testing.assert_array_equal(tanh(x), np.tanh(x))
    np.testing.assert_array_equal(interpret(program, [x])[0], wanted)
    for derivative in (tangent(program, (0,)), adjoint(program, (0,))):
        np.testing.assert_allclose(interpret(derivative, [x, np.ones_like(x)])[0], slope, 1e-12)
    source, names = python_source(program)
    exec(source, names)
    np.testing.assert_allclose([names["compute"]([row])[0] for row in x], wanted, 1e-15)
    out = np.empty_like(x)
    kernel = Unrolled(lambda: program, lambda: digest("test", "tanh"), "tanh")
    for states in (1, 19):
        assert kernel.run([x[:states]], [out[:states]], 0, states) == 0
        np.testing.assert_allclose(out[:states], wanted[:states], 1e-15)
    assert str(op_count(program)) == "2M 0A 1D 0S 0 sincos"
    np.testing.assert_allclose(run_in_c(program, tmp_path, 0.3), [2.0 * math.tanh(0.9)], 1e-15)
    with pytest.raises(TypeError, match="'cosh' is not an operation"):
        trace("f", lambda x: [[apply("cosh", x[0])]], ports, (Port("z", (1,)),))


@pytest.mark.parametrize("op", TEXTS)
def test_every_operation_means_the_same_everywhere(
    op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = (Port("x", (1,)), Port("y", (1,)))
    program = trace(op, lambda x, y: [[TEXTS[op](x[0], y[0])]], ports, (Port("z", (1,)),))
    assert op in {program.graph.ops[node] for node in program.order}
    x, y = np.random.default_rng(0).normal(size=(2, 11, 1))
    wanted = np.array(
        [[TEXTS[op](float(a), float(b))] for a, b in zip(x[:, 0], y[:, 0], strict=True)]
    )
    np.testing.assert_allclose(interpret(program, [x, y])[0], wanted, rtol=4e-16)
    for width in (1, 2, 4, 8):
        monkeypatch.setattr(backend, "width_for", lambda states, width=width: width)
        out = np.empty((11, 1))
        kernel = Unrolled(lambda: program, lambda: digest("test", op), op)
        assert kernel.run([x, y], [out], 0, 11) == 0
        np.testing.assert_allclose(out, wanted, rtol=4e-16, atol=2e-16)
    assert "z[0] =" in c_function(program, "test")


@pytest.mark.parametrize("place", [-3.0, 0.0, 2.0, 4.0, 9.0, np.nan, np.inf, -np.inf])
def test_places_beyond_a_table_take_its_ends(place: float) -> None:
    """Also in compiled code, where nothing may be read beyond the memory of the table."""
    want = NUMBERS.values[int(np.clip(np.nan_to_num(place, nan=0.0, posinf=9.0), 0, 4))]
    assert lookup(NUMBERS, place) == want
    program = trace(
        "place", lambda x: [[lookup(NUMBERS, x[0])]], (Port("x", (1,)),), (Port("z", (1,)),)
    )
    kernel = Unrolled(lambda: program, lambda: digest("test", "place"), "place")
    for states in (1, 16):
        out = np.empty((states, 1))
        kernel.run([np.full((states, 1), place)], [out], 0, states)
        assert (out == want).all()


def run_in_c(program: Program, folder: Path, *places: float) -> list[float]:
    """The only result of a program as C, compiled, for some values of its only input."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler here")
    header, source = c_library([program], "r", "r")
    (folder / "r.h").write_text(header)
    (folder / "r.c").write_text(source)
    flags = ["-std=c99", "-Wall", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "r.c", "-o", "r.so", "-lm"], check=True, cwd=folder)
    function = getattr(ctypes.CDLL(str(folder / "r.so")), f"r_{program.name}")
    results = []
    for place in places:
        z = (ctypes.c_double * 1)()
        function((ctypes.c_double * 1)(place), z)
        results.append(z[0])
    return results


def test_a_table_in_c(tmp_path: Path) -> None:
    program = trace(
        "look", lambda x: [[lookup(NUMBERS, x[0])]], (Port("x", (1,)),), (Port("z", (1,)),)
    )
    assert run_in_c(program, tmp_path, -1.0, 2.0, 77.0, np.nan) == [0.5, 3.0, -2.0, 0.5]


def test_known_numbers_fold_and_equal_terms_are_shared() -> None:
    g = Graph()
    x, y = g.symbol("x"), g.symbol("y")
    assert 0.0 * x == 0.0
    assert (1.0 * x).node == x.node
    assert (x + 0.0).node == x.node
    assert x - x == 0.0
    assert (x * y).node == (y * x).node
    negated = -x
    assert (-negated).node == x.node
    assert (x * (1.0 / x)) == 1.0
    assert (x * (y * (1.0 / x))).node == y.node
    assert (2.0 * (3.0 * x)).node == (6.0 * x).node
    assert ((-x) * y).node == (-(x * y)).node
    assert (y - x).node == (-(x - y)).node
    assert (x + (-y)).node == (x - y).node


def test_an_expression_has_no_truth_value() -> None:
    g = Graph()
    with pytest.raises(TypeError, match="select"):
        bool(g.symbol("x") < g.symbol("y"))


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sin": lambda x: sin(x),
    "cos": lambda x: cos(x),
    "sqrt": lambda x: sqrt(x),
    "sqrt of a sum": lambda x: sqrt(x * x + 2.0),
    "reciprocal": lambda x: 1.0 / x,
    "quotient": lambda x: (x - 2.0) / (9.0 - x * x),
    "product": lambda x: -x * (1.0 - x),
    "power": lambda x: x**3,
    "floor": lambda x: floor(x) * x,
    "lookup": lambda x: lookup(NUMBERS, floor(x) + 1.0) * x,
    "angle": lambda x: atan2(sin(x), 2.0 + x * x),
    "angle of a number": lambda x: atan2(0.7, x),
    "branch": lambda x: select(x < 1.0, x * x, 2.0 - x),
}


@pytest.mark.parametrize("x", [0.3, 1.7])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_jet_carries_the_derivatives(name: str, x: float) -> None:
    """f(x + 3 h + 5 h^2 / 2) to second order; a jet without ddx has the same value and rate."""
    f, h = FUNCTIONS[name], 1e-4
    before, at, after = f(x - h), f(x), f(x + h)
    slope, bend = (after - before) / (2.0 * h), (after - 2.0 * at + before) / (h * h)
    found = f(Jet(x, 3.0, 5.0))
    assert value(found) == pytest.approx(at, rel=1e-15)
    assert rate(found) == pytest.approx(3.0 * slope, rel=1e-6, abs=1e-12)
    assert found.ddx == pytest.approx(9.0 * bend + 5.0 * slope, rel=1e-5, abs=1e-6)
    first = f(Jet(x, 3.0, None))
    assert (first.x, first.dx, first.ddx) == (found.x, found.dx, None)
