"""Straight-line code in segments: the same bits as in one piece, at every width and number of rows,
and the same flags.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import ramify as rf
from ramify.core.scalar import select, sqrt
from ramify.emit.cpu_target import CpuTarget
from ramify.emit.guards import HUGE_ANGLE, NOT_FINITE, NOT_UNIT
from ramify.emit.segments import worth_segments
from ramify.emit.unrolled import unrolled_ir
from ramify.emit.writer import InOrder
from ramify.runtime.backend import function_of, pointers
from ramify.runtime.compile import Compiled, _build, compile_text
from ramify.runtime.target import host
from ramify.trace.program import Port, Program, trace

SHORT = 100
"""Operations of a segment: even small robots need many."""


def build(program: Program, target: CpuTarget, cut: bool | int, preset: bool = False) -> Compiled:
    """A program in one piece or in segments."""
    quaternions = (3,) if program.inputs[0].name == "q" else ()
    segment = SHORT if cut else 10**9
    text = unrolled_ir(program, target, "k", quaternions, None, preset, segment)
    assert ("@k.3(" in text) == cut
    return compile_text(text, "k", target)


def run(made: Compiled, program: Program, inputs: list[np.ndarray]) -> tuple[list[Any], int]:
    """Results, filled with sevens beforehand, and flags."""
    states = len(inputs[0])
    outputs = [np.full((states, port.size), 7.0, inputs[0].dtype) for port in program.outputs]
    function = function_of(made.address, 2)
    return outputs, function(states, pointers(inputs, 0), pointers(outputs, 0))


@pytest.fixture(scope="module")
def walker() -> rf.Model:
    """Two legs on a trunk whose orientation is a quaternion."""
    made = rf.Builder("legs").link("trunk", joint="free", mass=6.0, inertia=(0.05, 0.2, 0.22))
    for leg in range(2):
        parent, place = "trunk", (0.2 * (-1) ** leg, 0.1, 0.0)
        for k, axis in enumerate(((1, 0, 0), (0, 1, 0), (0.6, 0.8, 0))):
            inertia = (2e-3, 1e-3 * (k + 2), 3e-3)
            made.link(f"{leg}{k}", parent, at=place, axis=axis, mass=0.5, com=(0.01, 0, -0.1),
                      inertia=inertia)  # fmt: skip
            parent, place = f"{leg}{k}", (0.02, 0.0, -0.2)
    return made.model()


def inputs_of(model: rf.Model, program: Program, states: int) -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    q = np.stack([model.random(seed=i)[0] for i in range(states)])
    return [q, *(rng.normal(size=(states, port.size)) for port in program.inputs[1:])]


@pytest.mark.parametrize(
    ("name", "width"),
    [("inverse_dynamics", 2), ("forward_dynamics", 4), ("forward_dynamics", 8)],
)
def test_segments_give_the_same_bits(walker: rf.Model, name: str, width: int) -> None:
    program, target = walker.kernel(name, "unrolled").program, host().with_width(width)
    whole, cut = (build(program, target, x) for x in (False, True))
    for states in (width, width + 1, 31, 32, 33, 70):
        inputs = inputs_of(walker, program, states)
        (expected,), flags = run(whole, program, inputs)
        (found,), same = run(cut, program, inputs)
        assert_array_equal(found, expected)
        assert flags == same == 0


def test_every_flag_is_raised_from_every_segment(walker: rf.Model) -> None:
    program = walker.kernel("inverse_dynamics", "unrolled").program
    made = build(program, host().with_width(4), True)
    inputs = inputs_of(walker, program, 40)
    for x in inputs:
        for column in range(x.shape[1]):
            kept = x[37, column]
            x[37, column] = np.nan
            assert run(made, program, inputs)[1] & NOT_FINITE, column
            x[37, column] = kept
    inputs[0][39, 12] = 1e7
    assert run(made, program, inputs)[1] == HUGE_ANGLE
    inputs[0][39, 12] = 0.0
    inputs[0][2, 3:7] *= 1.01
    assert run(made, program, inputs)[1] == NOT_UNIT
    inputs[0][2, 3:7] /= 1.01
    assert run(made, program, inputs)[1] == 0


def test_an_overflow_inside_is_flagged() -> None:
    """A result that is not finite where every input is; and an input that nothing reads."""

    def text(x: list[Any]) -> list[list[Any]]:
        x = x[:5]
        for _ in range(200):
            x = [a * b + a for a, b in zip(x, [*x[1:], x[0]], strict=True)]
        return [x]

    program = trace("powers", text, (Port("x", (9,)),), (Port("y", (5,)),))
    made = build(program, host().with_width(4), True)
    rows = np.zeros((6, 9))
    assert run(made, program, [rows])[1] == 0
    assert run(made, program, [rows + 2.0])[1] == NOT_FINITE
    rows[3, 8] = np.inf
    assert run(made, program, [rows])[1] == NOT_FINITE


def test_branches_and_results_that_are_numbers() -> None:
    """Arms that are rarely taken read values of earlier segments, and late ones are chosen by an
    early comparison; results may be inputs, constants or repeated, and blocks of zeros are left
    alone where they are preset.
    """

    def text(x: list[Any]) -> list[list[Any]]:
        early, y, less = list(x), list(x), x[0] < x[1]
        for _ in range(120):
            y = [0.5 * (a + sqrt(b * b + 1.0)) for a, b in zip(y, [*y[1:], y[0]], strict=True)]
        arm = y[0]
        for k in range(12):
            arm = arm * early[k % 3] + y[1]
        picked = select(y[0] < early[1], arm, 0.0)
        late = picked + select(less, y[1], y[2])
        return [[picked, x[2], 3.0, y[0], y[0], 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, late]]

    program = trace("branches", text, (Port("x", (3,)),), (Port("y", (13,)),))
    rows = np.random.default_rng(2).normal(size=(45, 3))
    rows[::7, 1] = 1e6
    for preset in (False, True):
        (whole, flags), (cut, same) = (
            run(build(program, host().with_width(4), x, preset), program, [rows])
            for x in (False, True)
        )
        assert_array_equal(cut[0], whole[0])
        assert (cut[0][:, 8] == 7.0).all() == preset
        assert np.count_nonzero(cut[0][:, 0]) not in (0, 45)
        assert flags == same == 0


def test_long_kernels_are_cut_and_short_ones_are_not(walker: rf.Model) -> None:
    long = walker.kernel("forward_dynamics", "unrolled").program
    wide = walker.kernel("mass_matrix", "unrolled").program  # writes more than it computes
    assert [worth_segments(long, x) for x in (100, 5000)] == [True, False]
    assert not worth_segments(wide, 100)
    target = host().with_width(4)
    kinds = [type(unrolled_ir(long, target, "k", segment=x)) for x in (100, 5000)]
    assert kinds == [InOrder, str]


def test_single_precision_in_segments(walker: rf.Model) -> None:
    program = walker.kernel("forward_dynamics", "unrolled").program
    target = host().with_width(4).in_single()
    rows = [x.astype(np.float32) for x in inputs_of(walker, program, 21)]
    (whole, _), (cut, flags) = (run(build(program, target, x), program, rows) for x in (0, 1))
    assert_array_equal(cut[0], whole[0])
    assert whole[0].dtype == np.float32
    assert flags == 0


def test_the_scheduler_is_switched_on_again() -> None:
    """The switch is the whole process's: code that follows comes out as before."""
    target = host().with_width(4)
    program = rf.load("planar_3r").kernel("forward_dynamics", "unrolled").program
    text = unrolled_ir(program, target, "k")
    before = _build(text, target, 2)
    assert _build(InOrder(text), target, 2) != before
    assert _build(text, target, 2) == before
