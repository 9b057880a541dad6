"""Kernels in single precision: as accurate as they say, and exact where single precision fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.runtime.target import host

ALGORITHMS = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "kinematics", "energy")
ACCURACY = {"kuka_kr5": 1e-5, "quadruped": 1e-4}


def states(model: rf.Model, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    q = np.stack([model.random(seed)[0] for seed in range(count)])
    return [q, *rng.normal(size=(2, count, model.nv))]


def tuple_of(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize("robot", ACCURACY)
def test_accuracy(robot: str) -> None:
    """Errors by the largest number of each result, for batches of any size."""
    model = rf.load(robot)
    for name in ALGORITHMS[: 5 if robot == "kuka_kr5" else 2]:
        exact, single = model.kernel(name), model.kernel(name, dtype="float32")
        for count in (1, 3, host().width * 2, 50):
            given = states(model, count)[: len(exact._plan.inputs)]
            found = single(*given)
            assert type(found) is type(exact(*given))
            for x, y in zip(tuple_of(found), tuple_of(exact(*given)), strict=True):
                assert x.dtype == np.float32
                assert x.shape == y.shape
                assert np.abs(x - y).max() < ACCURACY[robot] * np.abs(y).max()
                assert np.abs(x - y).max() > 0.0


def test_bits_do_not_depend_on_the_batch() -> None:
    model = rf.load("kuka_kr5")
    single = model.kernel("inverse_dynamics", dtype=np.float32)
    q, v, a = (x.astype(np.float32) for x in states(model, 45))
    whole = single(q, v, a)
    assert np.array_equal(single(q[7], v[7], a[7]), whole[7])
    assert np.array_equal(single(q[:20], v[:20], a[:20]), whole[:20])
    single._cost.ns = 1e5
    assert np.array_equal(single(q, v, a, threads=2), whole)
    room = np.empty_like(whole)
    assert single(q, v[:1], a[0], out=room) is room
    assert np.array_equal(room, single(q, np.tile(v[0], (45, 1)), np.tile(a[0], (45, 1))))
    assert single(q[:0], v[:0], a[:0]).shape == (0, 6)


def test_where_single_precision_fails_double_answers() -> None:
    model = rf.load("kuka_kr5")
    single = model.kernel("inverse_dynamics", dtype="float32")
    q, v, a = states(model, 20)
    q[3, 2] = 5000.0
    assert np.allclose(single(q, v, a), model.inverse_dynamics(q, v, a), rtol=0, atol=1e-3)
    v[4, 1] = np.inf
    with pytest.raises(rf.StateError, match=r"v\[1\] of state 4"):
        single(q, v, a)


def test_wrong_requests_are_refused() -> None:
    model = rf.load("kuka_kr5")
    single = model.kernel("inverse_dynamics", dtype="float32")
    q, v, a = (x.astype(np.float32) for x in states(model, 20))
    masked = np.ma.zeros((20, 6), dtype=np.float32)
    for bad in (np.empty((20, 6)), np.empty((20, 5), dtype=np.float32), masked, 3):
        with pytest.raises(rf.StateError, match="float32 array of shape"):
            single(q, v, a, out=bad)
    with pytest.raises(rf.StateError, match="out has 2 arrays for 1 results"):
        single(q, v, a, out=(a, a))
    with pytest.raises(rf.StateError, match="shares memory"):
        single(q, v, a, out=a)
    with pytest.raises(rf.StateError, match="takes 3 arrays"):
        single(q, v)
    with pytest.raises(rf.StateError, match=r"v has shape \(20, 5\)"):
        single(q, v[:, :5], a)
    with pytest.raises(rf.RamifyError, match="must be float64, or float32 without a tier"):
        model.kernel("bias", dtype=np.float16)  # type: ignore[call-overload]
    with pytest.raises(rf.RamifyError, match="belongs to one body"):
        model.kernel("jacobian_rate", dtype="float32")
    with pytest.raises(rf.RamifyError, match="has loops"):
        rf.load("four_bar").kernel("bias", dtype="float32")
