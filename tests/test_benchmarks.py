"""The robots of the benchmark are the same robots in ramify, Pinocchio and MuJoCo. Correctness
only: nothing here is timed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ramify as rf

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))

import measure
import models
import programs
import questions
from timing import Call, fastest, relative_error

ROBOTS = [*models.ROBOTS, lambda: models.chain(20)]
SIZES = {
    "kuka_kr5": 6,
    "quadruped": 18,
    "humanoid": 36,
    "free_quadruped": 18,
    "free_humanoid": 36,
    "chain": 20,
}


@pytest.mark.parametrize("make", ROBOTS, ids=[*(make.__name__ for make in models.ROBOTS), "chain"])
@pytest.mark.parametrize("algorithm", programs.ALGORITHMS)
def test_programs_agree(make: Callable[[], rf.Model], algorithm: str) -> None:
    model = make()
    assert model.nv == SIZES[model.name]
    assert not [finding for finding in model.check() if finding.level == "error"]
    states = programs.random_states(model, 32)
    one = tuple(a[0].copy() for a in states)
    ours = programs.Ramify(model, "rolled")
    expected = ours.batch(algorithm, states, 1).run()
    assert relative_error(ours.single(algorithm, one).run(), expected[:1]) < 1e-12
    for peer in (make_peer(model) for make_peer in programs.PEERS):
        assert relative_error(peer.single(algorithm, one).run(), expected[:1]) < 1e-8
        for threads in (1, 2):
            call = peer.batch(algorithm, states, threads)
            if call is not None:
                assert relative_error(call.run(), expected) < 1e-8


@pytest.mark.parametrize("make", models.ROBOTS, ids=[make.__name__ for make in models.ROBOTS])
def test_questions_agree(make: Callable[[], rf.Model]) -> None:
    """Both programs give the same answers, in the same terms."""
    asked = questions.asked(make(), seed=3)
    found = questions.of(asked.robot)
    assert len(found) >= 8
    for name, question in found.items():
        calls = question.calls(asked)
        ours, theirs = calls["ramify"].run(), calls["Pinocchio"].run()
        assert relative_error(ours, theirs) < 1e-10, name


@pytest.mark.parametrize(
    "make", models.ROLLED_OUT, ids=[make.__name__ for make in models.ROLLED_OUT]
)
@pytest.mark.parametrize(("method", "order"), [("rk4", 4), ("semi_implicit_euler", 2)])
def test_rollouts_agree(make: Callable[[], rf.Model], method: str, order: int) -> None:
    model = make()
    q, v, _ = programs.random_states(model, 8)
    ours, peer = programs.Ramify(model), programs.MuJoCo(model)
    coarse, fine = (
        relative_error(
            ours.rollout(method, (q, v), n, 0.1 / n).run(),
            peer.rollout(method, (q, v), n, 0.1 / n).run(),
        )
        for n in (10, 20)
    )
    if model.layout.balls:  # quaternions are turned in two ways
        assert abs(np.log2(coarse / fine) - order) < 0.3
    else:
        assert coarse < 1e-10


def test_walkers_stand_alike_on_the_ground_of_both_programs() -> None:
    model = models.walker()
    assert (model.nv, sum(len(body.points) for body in model.bodies)) == (18, 4)
    start = models.standing(model, 8)
    theirs = (
        programs.MuJoCo(model, models.FOOT).rollout("semi_implicit_euler", start, 50, 2e-3).run()
    )
    loads = []
    for law, method, dt in measure.GROUNDS:
        ours = programs.Ramify(model).rollout(method, start, round(0.1 / dt), dt, ground=law).run()
        assert abs(ours[:, 2].mean() - theirs[:, 2].mean()) < 5e-3
        loads.append(
            rf.contact.forces(model, law, ours[:, : model.nq], ours[:, model.nq :])
            .load.sum(axis=1)
            .mean()
        )
    assert np.allclose(loads, 9.81 * model.mass, rtol=0.4)  # they stand


def test_models_are_repeatable() -> None:
    for make in models.ROBOTS:
        q, v = make().random()
        assert np.array_equal(make().bias(q, v), make().bias(q, v))


def test_fastest_times_every_statement() -> None:
    calls = {
        name: Call(text, {"x": [1.0]}, lambda: np.ones(1))
        for name, text in (("a", "sum(x)"), ("b", "max(x)"))
    }
    found = fastest(calls, 0.0)
    assert found.keys() == {"a", "b"}
    assert all(0.0 < seconds < 1.0 for seconds in found.values())
