"""Values of LLVM code: arithmetic on them writes the instructions of their type."""

from __future__ import annotations

import math

import pytest

from ramify.emit.cpu_target import CpuTarget
from ramify.emit.values import double_literal, where
from ramify.emit.writer import Lines, Writer
from ramify.runtime.target import host


def test_arithmetic_follows_the_type() -> None:
    w = Lines()
    x, n = w.value("%x", "double"), w.value("%n", "i64")
    assert (0.5 * x - x / n.to_real()).kind == "double"
    assert ((n + 1) * n % 3).kind == "i64"
    assert w.lines == [
        f"  %t1 = fmul double {double_literal(0.5)}, %x",
        "  %t2 = sitofp i64 %n to double",
        "  %t3 = fdiv double %x, %t2",
        "  %t4 = fsub double %t1, %t3",
        "  %t5 = add i64 %n, 1",
        "  %t6 = mul i64 %t5, %n",
        "  %t7 = srem i64 %t6, 3",
    ]


def test_numbers_keep_their_side() -> None:
    w = Lines()
    n = w.value("%n", "i64")
    assert [7 - n, n - 7, n // 2]
    assert w.lines[:2] == ["  %t1 = sub i64 7, %n", "  %t2 = sub i64 %n, 7"]


def test_comparisons_and_choices() -> None:
    w = Lines()
    error, rejected = w.value("%error", "double"), w.value("%rejected", "i1")
    slower = where((error < math.inf) & rejected, 0.9 / error, 0.2)
    assert slower.kind == "double"
    assert w.lines == [
        f"  %t1 = fcmp olt double %error, {double_literal(math.inf)}",
        "  %t2 = and i1 %t1, %rejected",
        f"  %t3 = fdiv double {double_literal(0.9)}, %error",
        f"  %t4 = select i1 %t2, double %t3, double {double_literal(0.2)}",
    ]
    assert (error >= error).kind == (w.value("%n", "i64").equals(0)).kind == "i1"
    assert w.lines[-2:] == ["  %t5 = fcmp oge double %error, %error", "  %t6 = icmp eq i64 %n, 0"]
    with pytest.raises(TypeError, match="must be a value with a type"):
        where(rejected, 1.0, "%x")


@pytest.mark.parametrize("width", [1, 4])
def test_vectors_work_lane_by_lane(width: int) -> None:
    target: CpuTarget = host().with_width(width)
    w = Writer(target)
    x = w.load("%p")
    above = x > 1.0
    y = where(above, 1.0 / x, x)
    kind, truth = ("double", "i1") if width == 1 else ("<4 x double>", "<4 x i1>")
    assert (x.kind, above.kind, y.kind) == (kind, truth, kind)
    one = w.const(1.0)
    assert w.lines[1:] == [
        f"  %t2 = fcmp ogt {kind} %t1, {one}",
        f"  %t3 = fdiv {kind} {one}, %t1",
        f"  %t4 = select {truth} %t2, {kind} %t3, {kind} %t1",
    ]


def test_names_stay_names() -> None:
    """A value is the text of its name: it can be put into any line, and compared with others."""
    w = Lines()
    x = w.value("%x", "double")
    assert f"ret double {x}" == "ret double %x"
    assert x == "%x"
    assert {x: 1}["%x"] == 1
    assert not w.lines
