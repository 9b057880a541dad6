"""Corners that few calls visit: each of these tests fails for a small mistake that the rest of the
suite does not notice.
"""

from __future__ import annotations

import json
import re
import threading
import time
from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.cli import main
from ramify.envs import RobotVectorEnv
from ramify.formulations.counting.literature import best_of
from ramify.kernels import timing
from ramify.kernels.timing import Timing
from ramify.runtime.piece_workers import in_parallel
from ramify.studies.outputs import metric
from ramify.studies.sensitivity_indices import first_order_index

ARM = rf.load("planar_3r")


@pytest.mark.parametrize("tier", ["unrolled", "rolled"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_huge_angles_are_noticed_on_both_sides(tier: Any, sign: float) -> None:
    """Our sine and cosine are good to some 1e9 rad; NumPy takes over, also for one state of many."""
    q, v = np.array([0.1, sign * 3.7e15, 0.2]), np.zeros(3)
    kernel, want = ARM.kernel("mass_matrix", tier), ARM.kernel("mass_matrix", "numpy")(q)
    for batch in (q, np.stack([v, q, v]), np.concatenate([np.zeros((40, 3)), q[None]])):
        found = kernel(batch)
        row = found if batch.ndim == 1 else found[1 if len(batch) == 3 else -1]
        np.testing.assert_allclose(row, want, rtol=1e-9, err_msg=f"{tier}, {len(batch)} states")


@pytest.mark.parametrize(("count", "most"), [(2, 2), (3, 3), (None, 6), (9, 6)])
def test_a_batch_is_shared_by_as_many_threads_as_are_asked_for(
    count: int | None, most: int
) -> None:
    who: set[int] = set()
    done: list[tuple[int, int]] = []

    def work(start: int, stop: int) -> int:
        time.sleep(0.02)
        who.add(threading.get_ident())
        done.append((start, stop))
        return 1 << start

    flags, _ = in_parallel(work, 12, 6, count)
    assert sorted(done) == [(i, i + 2) for i in range(0, 12, 2)]
    assert flags == sum(1 << i for i in range(0, 12, 2))
    assert 2 <= len(who) <= most
    assert len(who) == most or most > 3


def test_errors_of_joints_without_a_desired_motion_are_zero() -> None:
    """Where one joint of two follows a motion, the other has no error, and all are numbers."""
    model = rf.load("two_link")
    first, second = model.coordinates
    follow = rf.motion.Cycloid([0.0], [0.3], duration=0.2)
    control = rf.control.PD(follow, kp=9.0, actuated=[model.joints[0].name])
    result = rf.simulate(model, 0.05, [0.1, 0.2], control=control)
    assert result.desired is not None
    assert np.isnan(result.desired.q[:, 1]).all()  # what makes this test one
    error = result.q[:, 0] - result.desired.q[:, 0]
    want = {
        "max_error": np.abs(error).max(),
        "rms_error": np.sqrt(np.mean(error**2) / 2.0),
        "final_error": abs(error[-1]),
        f"max_error.{first}": np.abs(error).max(),
        f"max_error.{second}": 0.0,
    }
    found = {name: metric(name, model)[1](result)[0] for name in want}
    assert found == pytest.approx(want, rel=1e-12)


def test_the_first_order_index_by_hand() -> None:
    """Groups (0, 1) and (2, 3): between them 4, within them 1, of 5; by chance 1 · 1/2 of it."""
    x, y = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 1.0, 2.0, 3.0])
    assert first_order_index(x, y) == pytest.approx(3.5 / 5.0, rel=1e-12)
    x, y = np.repeat([0.0, 1.0, 2.0], 3), np.array([0.0, 1, 2, 2, 3, 4, 7, 8, 9])
    between, within = 3 * ((1 - 4) ** 2 + (3 - 4) ** 2 + (8 - 4) ** 2), 6.0
    want = (between - within * 2 / 6) / (between + within)
    assert first_order_index(x, y) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e12, -1e12])
def test_a_robot_of_an_environment_that_is_not_a_number_has_failed(bad: float) -> None:
    env = RobotVectorEnv(ARM, 3, reward=lambda before, after: np.zeros(3), scale=1.0)
    env.reset(seed=1)
    assert env._failed() is None
    env._y[1, 4] = bad
    assert env._failed().tolist() == [False, True, False]


def test_a_step_of_casadi_without_a_horizon() -> None:
    """An output that is also an input has a name of its own, or there is no function at all."""
    q, v, tau = np.array([0.1, 0.2, 0.3]), np.array([0.5, -0.4, 0.3]), np.array([1.0, 2.0, 0.5])
    step = ARM.casadi("step", dt=0.01, method="rk4")
    assert {"q_next", "v_next"} <= set(step.name_out())
    given = {"q": q, "v": v, "tau": tau}
    found = step(**{name: given[name] for name in step.name_in() if name in given})
    want = rf.rollout(ARM, q, v, steps=1, dt=0.01, tau=tau, method="rk4")
    np.testing.assert_allclose(found["q_next"].full()[:, 0], want.q, rtol=1e-12)
    np.testing.assert_allclose(found["v_next"].full()[:, 0], want.v, rtol=1e-12)


# ---- tables of the command line ----


def command(*words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert not ended.value.code


def cells(text: str, first: str) -> list[str]:
    """The cells of the row that begins with a word."""
    line = next(line for line in text.splitlines() if line.split()[:1] == [first])
    return re.split(r"\s{2,}", line.strip())


def test_the_table_of_timings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [Timing("bias", "rolled", 0.25, 3e-6, 5e-8), Timing("energy", "numpy", 2.0, 4e-5, 8e-6)]
    monkeypatch.setattr(timing, "measure", lambda *_: made)
    command("bench", "planar_3r")
    said = capsys.readouterr().out
    assert cells(said, "bias")[1:] == ["rolled", "0.25", "3", "0.05", "20,000,000"]
    assert cells(said, "energy")[1:] == ["numpy", "2", "40", "8", "125,000"]


def test_the_table_of_counts_says_how_many_operations_are_saved(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command("count", "kuka_kr5", "--json")
    rows = json.loads(capsys.readouterr().out)
    command("count", "kuka_kr5")
    lines = capsys.readouterr().out.splitlines()
    compared = 0
    for row in rows:
        line = next(
            x for x in lines if row["algorithm"] in x.split() and x.split()[0] == row["robot"]
        )
        found = re.split(r"\s{2,}", line.strip())
        numbers = [row[k] for k in ("nv", "mul", "add", "div", "sqrt", "sincos")]
        assert [int(x) for x in (found[1], *found[3:8])] == numbers
        if not row["published"]:
            assert len(found) == 8
            continue
        compared += 1
        _, (mul, add) = best_of([(x["who"], (x["mul"], x["add"])) for x in row["published"]])
        ours = row["mul"] + row["div"] + row["add"]
        assert found[9] == f"{1.0 - ours / (mul + add):.0%}"
        assert found[8].startswith(f"{mul}M {add}A, ")
    assert compared >= 2


def heavy(gyration: float) -> rf.Model:
    """Ten kilograms on a mount of a centimetre."""
    moments = (10.0 * gyration**2,) * 3
    return rf.Builder("wheel").link("disc", mass=10.0, com=(0.01, 0, 0), inertia=moments).model()


def test_a_wide_wheel_on_a_small_mount_is_not_too_dense() -> None:
    """Its size is its radius of gyration, not the mount's; a lump of a centimetre is in grams."""
    found = {r: [f.code for f in heavy(r).check() if "units" in f.code] for r in (0.1, 0.005)}
    assert found == {0.1: [], 0.005: ["mass-units"]}
