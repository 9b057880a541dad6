"""Runs of one structure share one compiled right-hand side, and get the numbers they would get from
code of their own.
"""

from __future__ import annotations

import numpy as np
import pytest

import ramify as rf
from ramify.plant import shared_code as sharing
from ramify.plant.make_field import PlantOptions, make_field
from ramify.trace.program import Port, trace


def test_lifted_programs_compute_the_same() -> None:
    from ramify.trace.interpret import interpret

    program = trace(
        "f",
        lambda x, u: [[2.5 * x[0] + x[1] * u[0] - 0.75, 3.0]],
        [Port("x", (2,)), Port("u", (1,))],
        [Port("y", (2,))],
    )
    bare, numbers = sharing.lifted(program)
    assert sorted(numbers) == [0.75, 2.5, 3.0]
    assert bare.inputs[1].size == 4
    assert not [op for op in bare.graph.ops if op == "const"]
    x, u = np.array([[0.3, -1.2]]), np.array([[7.0]])
    assert np.array_equal(
        interpret(bare, [x, np.append(u, [numbers], axis=1)])[0], interpret(program, [x, u])[0]
    )


@pytest.mark.parametrize("control", [None, "pd"])
def test_shared_code_gives_the_same_run_to_the_last_bit(control: str | None) -> None:
    s = rf.scenario("kuka_motion")
    law = None if control is None else rf.control.PD(s.motion, 300.0, 30.0)
    for mass in (0.7, 1.9):
        model = rf.with_payload(s.robot, "link6", mass, (0.0, 0.01, 0.1))
        own = rf.simulate(model, 0.2, control=law, rtol=1e-7)
        with sharing.sharing():
            found = rf.simulate(model, 0.2, control=law, rtol=1e-7)
        assert np.array_equal(found.q, own.q)
        assert np.array_equal(found.v, own.v)
        np.testing.assert_allclose(found.a, own.a, rtol=0.0, atol=1e-10 * np.abs(own.a).max())
        assert np.array_equal(found.tau, own.tau)


def test_a_structure_is_compiled_once() -> None:
    s = rf.scenario("planar_3r_free_fall")
    sharing._structures.clear()
    sharing._last.clear()
    with sharing.sharing():
        for mass in (2.3, 3.3, 5.3):  # none leaves a rounding in an inertia that is zero for others
            rf.simulate(
                rf.with_payload(s.robot, s.robot.bodies[-1].name, mass, (0.3, 0.0, 0.0)), 0.05
            )
    assert len(sharing._structures) == 1
    (structure,) = sharing._structures.values()
    assert "call" in structure.__dict__


def test_neighbours_do_not_matter() -> None:
    s = rf.scenario("planar_3r_free_fall")
    with sharing.sharing():
        field = sharing.shared(make_field(s.robot, None, PlantOptions(0.1)))
    assert isinstance(field, sharing.SharedField)
    structure, numbers = field.shared
    rng = np.random.default_rng(0)
    t, y = rng.random(21), rng.random((21, field.size))
    u = np.concatenate([rng.random((21, 3)), np.broadcast_to(numbers, (21, len(numbers)))], axis=1)
    together = structure.rows(t, y, u)
    for i in (0, 7, 20):
        assert np.array_equal(
            structure.rows(t[i : i + 1], y[i : i + 1], u[i : i + 1])[0], together[i]
        )


def test_without_sharing_nothing_changes() -> None:
    field = sharing.shared(make_field(rf.load("planar_3r")))
    assert not isinstance(field, sharing.SharedField)
