"""The builtin entries of kernels: what they give is what the Python path gives, at less cost."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import ramify as rf
from ramify.kernels.algorithms import ALGORITHMS
from ramify.kernels.make import make_kernel
from ramify.model.answers import UDU, Energy, Kinematics, Momentum
from ramify.runtime.kernel import Kernel

VECTORS = [
    name
    for name, row in ALGORITHMS.items()
    if all(port.per != "link" or port.count == 1 for port in row.inputs)
]
ANSWERS = {"energy": Energy, "momentum": Momentum, "kinematics": Kinematics, "udu": UDU}
STATES = 40


def made(name: str, base: str = "quadruped") -> tuple[Kernel, list[np.ndarray]]:
    """A kernel with its entry for states and batches, and a batch for it."""
    model = rf.load(base)
    body = len(model.bodies) - 1 if ALGORITHMS[name].extras[:1] == ("target",) else None
    kernel = make_kernel(model, name, "unrolled", body)
    rng = np.random.default_rng(0)
    given = [rng.uniform(-1.0, 1.0, size=(STATES, *p.shape)) for p in kernel._plan.inputs]
    kernel(*(x[0] for x in given))
    kernel(*given)
    assert type(kernel.call) is type(len), "no builtin entry on this interpreter"
    assert type(kernel.__call__) is type(len)
    return kernel, given


def tuple_of(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize("name", VECTORS)
def test_an_entry_gives_what_python_gives(name: str) -> None:
    """The same bits, types and shapes: for a state, for a batch of few or of many states, and into
    arrays that are given.
    """
    kernel, given = made(name, "kuka_kr5")
    for xs in ([x[3] for x in given], [x[:1] for x in given], [x[3:5] for x in given], given):
        wanted, found = kernel._general(*xs), kernel.call(*xs)
        assert type(found) is type(wanted)
        for a, b in zip(tuple_of(found), tuple_of(wanted), strict=True):
            assert type(a) is type(b)
            assert a.shape == b.shape
            assert_array_equal(a, b)
        room = tuple(np.full(np.shape(x), np.nan) for x in tuple_of(wanted))
        out = room if len(room) > 1 else room[0]
        for call in (kernel.call, kernel):
            assert call(*xs, out=out) is out
            for a, b in zip(room, tuple_of(wanted), strict=True):
                assert_array_equal(a, b)
                a.fill(np.nan)
            assert_array_equal(tuple_of(call(*xs))[0], tuple_of(wanted)[0])


@pytest.mark.parametrize("name", ANSWERS)
def test_models_answer_with_named_tuples(name: str) -> None:
    model = rf.load("planar_3r")
    q = np.array([0.1, 0.2, 0.3])
    xs = (q, q) if name in ("energy", "momentum") else (q,)
    for _ in range(3):
        assert type(getattr(model, name)(*xs)) is ANSWERS[name]
        for tier in ("numpy", "rolled", "unrolled"):
            assert type(model.kernel(name, tier)(*xs)) is ANSWERS[name]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["mass_matrix", "energy", "kinematics"])
def test_no_reference_is_lost_or_kept(name: str) -> None:
    kernel, given = made(name, "kuka_kr5")
    one = [x[0].copy() for x in given]
    room = tuple(np.empty_like(x) for x in tuple_of(kernel(*one)))
    out = room if len(room) > 1 else room[0]
    bad = [np.full_like(x, np.nan) for x in one]
    objects = [*one, *given, *room, out, *bad, ANSWERS.get(name, tuple)]

    def calls(times: int) -> tuple[int, list[int]]:
        for _ in range(times):
            kernel.call(*one)
            kernel.call(*given)
            kernel.call(*one, out=out)
            with pytest.raises(rf.StateError):
                kernel.call(*bad)
        gc.collect()
        return len(gc.get_objects()), [sys.getrefcount(x) for x in objects]

    calls(2)
    before, after = calls(1), calls(40)
    assert after[1] == before[1]
    assert abs(after[0] - before[0]) < 20


@pytest.mark.parametrize("name", ["mass_matrix", "momentum"])
def test_arrays_that_do_not_fit_are_refused_not_written(name: str) -> None:
    """Wrong shapes, kinds and strides, read-only and overlapping arrays: the error of the Python
    path, and nothing is written.
    """
    kernel, given = made(name, "planar_3r")
    xs = [x[0].copy() for x in given]
    shapes = [np.shape(x) for x in tuple_of(kernel(*xs))]
    big = np.full(100, 7.0)
    big[: xs[0].size] = xs[0]
    locked = np.full(shapes[0], 7.0)
    locked.flags.writeable = False
    first = [
        np.full((*shapes[0], 1), 7.0),
        np.full([n + 1 for n in shapes[0]], 7.0),
        np.full(shapes[0], 7.0, dtype=np.float32),
        np.full([2 * n for n in shapes[0]], 7.0)[tuple(slice(None, None, 2) for _ in shapes[0])],
        locked,
        big[1 : 1 + int(np.prod(shapes[0]))].reshape(shapes[0]),
        7.0,
        np.ma.zeros(shapes[0]),
    ]
    for i, bad in enumerate(first):
        inputs = [big[: xs[0].size], *xs[1:]] if i == 5 else xs
        before = np.array(bad, copy=True)
        rest = [np.empty(shape) for shape in shapes[1:]]
        with pytest.raises(rf.StateError, match="out"):
            kernel.call(*inputs, out=(bad, *rest) if rest else bad)
        assert_array_equal(bad, before)


def test_results_must_be_apart_from_each_other() -> None:
    kernel, given = made("momentum", "planar_3r")
    one = np.empty(3)
    with pytest.raises(rf.StateError, match="shares memory"):
        kernel.call(given[0][0], given[1][0], out=(one, one))


def test_unknown_options_are_refused() -> None:
    kernel, given = made("bias", "planar_3r")
    for call in (kernel.call, kernel):
        for further in ({"further": 1}, {"further": 1, "out": given[0]}):
            with pytest.raises(TypeError, match="further"):
                call(given[0], given[1], **further)
        with pytest.raises(rf.StateError, match="takes 2 arrays"):
            call(given[0])
        with pytest.raises(rf.StateError, match="takes 2 arrays"):
            call(given[0], out=given[0])


def test_no_options_cost_nothing() -> None:
    """A call with an empty dictionary of options does not go to Python."""
    kernel, given = made("bias", "planar_3r")
    wanted, options = kernel(*given), dict[str, Any]()
    for call in (kernel.call, kernel.__call__):
        call.__self__._fallback = None  # type: ignore[attr-defined]
        assert_array_equal(call(*given, **options), wanted)
        assert_array_equal(call(given[0][:2], given[1][:2]), wanted[:2])  # nor do few states
        assert_array_equal(call(given[0][0], given[1][0], **options), wanted[0])


def test_a_float_stands_for_an_array_of_one_number() -> None:
    """In the Python path and in the entry alike; whole numbers and batches do not."""
    kernel = rf.load("chain", n=1).kernel("inverse_dynamics", "unrolled")
    one = np.array([0.3])
    for _ in range(3):
        assert_array_equal(kernel(0.3, one, 0.3), kernel(one, one, one))
        with pytest.raises(rf.StateError, match="inverse_dynamics: q has shape"):
            kernel(3, one, one)
        with pytest.raises(rf.StateError, match=r"q\[0\].*is nan"):
            kernel(float("nan"), one, one)
    assert kernel(np.full((20, 1), 0.3), 0.3, one).shape == (20, 1)
