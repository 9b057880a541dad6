"""The robots of the benchmark are the same robots in ramify, Pinocchio and MuJoCo. Correctness
only: nothing here is timed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import ramify as rf

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))

import measure
import models
import programs
import questions
from picture import svg
from timing import Call, fastest, relative_error

SIZES = {"UR5": 6, "Panda": 9, "solo12": 18, "G1": 35, "chain": 20}


def made(name: str) -> rf.Model:
    return models.chain(20) if name == "chain" else models.real(name)


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("algorithm", programs.ALGORITHMS)
def test_programs_agree(name: str, algorithm: str) -> None:
    model = made(name)
    assert model.nv == SIZES[name]
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


@pytest.mark.parametrize("robot", models.CHOSEN)
def test_questions_agree(robot: str) -> None:
    """Both programs give the same answers, in the same terms."""
    asked = questions.asked(models.real(robot), seed=3)
    found = questions.of(asked.robot)
    assert len(found) >= 8
    for name, question in found.items():
        calls = question.calls(asked)
        ours, theirs = calls["ramify"].run(), calls["Pinocchio"].run()
        assert relative_error(ours, theirs) < 1e-10, name


@pytest.mark.parametrize("robot", ["UR5", "solo12"])
@pytest.mark.parametrize(("method", "order"), [("rk4", 4), ("semi_implicit_euler", 2)])
def test_rollouts_agree(robot: str, method: str, order: int) -> None:
    model = models.real(robot)
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


def test_fastest_times_every_statement() -> None:
    calls = {
        name: Call(text, {"x": [1.0]}, lambda: np.ones(1))
        for name, text in (("a", "sum(x)"), ("b", "max(x)"))
    }
    found = fastest(calls, 0.0)
    assert found.keys() == {"a", "b"}
    assert all(0.0 < seconds < 1.0 for seconds in found.values())


def test_the_picture_shows_wins_and_losses() -> None:
    drawn = svg({"a < b": [("fast", 30.0), ("slow", 0.5)]})
    bars = [element.attrib for element in ElementTree.fromstring(drawn).iter()]
    kinds = {bar["class"]: float(bar["width"]) for bar in bars if "width" in bar}
    assert kinds.keys() == {"win", "loss"}
    assert kinds["win"] > 4.0 * kinds["loss"]
